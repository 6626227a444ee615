//! Saves branches, tags and stashes of the user that a run does not work with, and detached heads of other worktrees. An
//! agent can delete or move them, and so can the user, and the driver cannot tell which it was. So their old values are
//! saved and reported, but nothing is restored and no attempt fails. New commits on branches, new stashes, new tags with
//! the name of a branch, and remote-tracking refs that changed are reported. So are commits that reflogs have lost, and
//! what was staged in the user's checkouts.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    git::{
        Repository, add_notice,
        index::users_index::{OwnCheckout, StagedState},
        refs::{
            moved_refs::save,
            owned_refs::{OwnedRefs, RefTable},
            ref_files::{PackedStamp, RefValue},
            reflogs::Reflogs,
        },
        worktrees::worktree_git_dirs::is_own_git_dir,
    },
    name::{BranchName, Oid, TASK_REFS},
    process::find_other_drivers,
    safe_files,
};

const FOLDERS: [&str; 3] = ["refs/heads", "refs/tags", STASH];
const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
const STASH: &str = "refs/stash";
const REMOTES: &str = "refs/remotes/";
/// The prefixes of refs that belong to one worktree, as git spells them in other worktrees.
const OF_MAIN_WORKTREE: &str = "main-worktree/";
const OF_LINKED_WORKTREES: &str = "worktrees/";
/// The folders of such refs, and `HEAD`.
const WORKTREE_REFS: [&str; 4] = ["HEAD", "refs/worktree", "refs/bisect", "refs/rewritten"];
/// With more loose refs than this, they are compared only at the end of a run. Reading this many takes about 5 ms.
const MAX_LOOSE: usize = 500;

/// Whether a ref may be the user's.
pub(in crate::git) fn is_user_ref(name: &str) -> bool {
    FOLDERS
        .iter()
        .any(|folder| name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

impl Repository {
    /// Records the user's refs, and what is staged in the user's checkouts, before a run starts its first child
    /// process.
    /// Damaged refs are named at its end.
    pub fn record_user_refs(&self, own: OwnCheckout) {
        self.skip_broken_files(&FOLDERS);
        let owned = OwnedRefs::of(self);
        owned.lock().user_refs.begin(self, RefSource::Git);
        let staged = StagedState::read_all(self, own);
        owned.lock().user_refs.staged = staged;
    }

    /// Compares the user's refs at the end of a run, with the help of git where the files are not enough.
    pub fn compare_user_refs(&self) {
        let owned = OwnedRefs::of(self);
        compare_user_refs(&mut owned.lock(), self, RefSource::Git);
        let staged = std::mem::take(&mut owned.lock().user_refs.staged);
        staged.iter().flat_map(|state| state.compare(self)).for_each(add_notice);
    }

    /// The names of the user's branches, without `refs/heads/`. The list is empty if only git can list them, or if
    /// there are too many.
    #[must_use]
    pub fn list_user_branches(&self) -> Vec<String> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        table.user_refs.begin(self, RefSource::Files);
        table.user_refs.branches().take(MAX_LOOSE).map(str::to_owned).collect()
    }
}

/// Saves user refs that were deleted or moved and belong to no run.
pub(in crate::git) fn compare_user_refs(table: &mut RefTable, repository: &Repository, source: RefSource) {
    let mut user_refs = std::mem::take(&mut table.user_refs);
    user_refs.compare(repository, source, |name| table.is_of_run(name));
    table.user_refs = user_refs;
}

/// Whether git may be asked where the files are not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum RefSource {
    /// Only files: after each child process.
    Files,
    /// Files or git: once at the beginning and once at the end of a run.
    Git,
}

/// The user's refs in packed-refs, and the stamp of that version of the file.
type PackedRefs = (Option<PackedStamp>, Vec<(String, Oid)>);

/// The user's refs at the last comparison.
#[derive(Debug, Default)]
pub(in crate::git) struct UserRefs {
    known: Option<KnownRefs>,
    /// Remote-tracking refs at the start of the run. There may be many, so they are compared only at its end.
    remotes: Option<BTreeMap<String, Oid>>,
    /// The user's packed refs.
    packed: Option<PackedRefs>,
    reflogs: Reflogs,
    /// `HEAD` and the index of each of the user's checkouts at the start of the run. They are compared at its end.
    staged: Vec<StagedState>,
    /// Whether only git can list the refs, or there are too many.
    is_asked_of_git: bool,
}

#[derive(Debug, Default)]
struct KnownRefs {
    refs: BTreeMap<String, Oid>,
    /// All stashes. The ref itself is only the latest one.
    stashes: BTreeSet<Oid>,
}

impl UserRefs {
    /// Records the present refs, unless some are recorded already.
    pub(in crate::git) fn begin(&mut self, repository: &Repository, source: RefSource) {
        if self.known.is_none() {
            self.known = self.list(repository, source);
        }
        if self.reflogs.is_empty() {
            self.reflogs.compare(repository, source);
        }
        if self.remotes.is_none() && source == RefSource::Git {
            self.remotes = list_remotes(repository);
        }
    }

    fn branches(&self) -> impl Iterator<Item = &str> {
        let names = self.known.iter().flat_map(|known| known.refs.keys());
        names.filter_map(|name| name.strip_prefix(BRANCHES))
    }

    /// Saves refs that were deleted, or moved other than by fast-forward, since the last comparison. `is_other` says
    /// which refs belong to a run, which checks them itself.
    pub(in crate::git) fn compare(
        &mut self,
        repository: &Repository,
        source: RefSource,
        is_other: impl Fn(&str) -> bool,
    ) {
        self.compare_refs(repository, source, is_other);
        // After the refs, whose old values are saved by now: the same commits are not saved twice.
        self.reflogs.compare(repository, source).into_iter().for_each(add_notice);
    }

    fn compare_refs(&mut self, repository: &Repository, source: RefSource, is_other: impl Fn(&str) -> bool) {
        let Some(now) = self.list(repository, source) else { return };
        let Some(before) = self.known.replace(now) else { return };
        let Some(now) = &self.known else { return };
        let mut messages = Vec::new();
        for (name, old) in before.refs.iter().filter(|(name, _)| !is_other(name)) {
            let new = now.refs.get(name);
            let is_kept = new == Some(old)
                || (name == STASH && !before.stashes.is_empty())
                || new.is_some_and(|new| is_forward(repository, name, (*old, *new)))
                // Heads move with every checkout. Only commits that nothing else holds would be lost.
                || (is_of_worktree(name) && repository.is_reachable_from_refs(*old).unwrap_or(false));
            if !is_kept {
                let verb = if new.is_some() { "moved" } else { "deleted" };
                messages.push(save_lost(repository, name, *old, &format!("{name} was {verb}")));
            }
        }
        let is_changed = |(name, target): &(&String, &Oid)| {
            name.starts_with(BRANCHES) && before.refs.get(*name) != Some(target) && !is_other(name)
        };
        let (changed, others): (Vec<_>, Vec<_>) = now.refs.iter().partition(is_changed);
        let known: Vec<Oid> = before.refs.iter().chain(others).map(|(_, target)| *target).collect();
        for (name, target) in changed {
            let old = before.refs.get(name).copied();
            messages.extend(describe_new_commits(repository, name, old, *target, &known));
        }
        let new_tags = now.refs.keys().filter(|name| !before.refs.contains_key(*name));
        for name in new_tags.filter_map(|name| name.strip_prefix(TAGS)) {
            if now.refs.contains_key(&format!("{BRANCHES}{name}")) {
                messages.push(format!(
                    "{TAGS}{name} was created during the run: 'git merge {name}' uses it instead of the branch"
                ));
            }
        }
        for stash in before.stashes.difference(&now.stashes) {
            messages.push(save_lost(
                repository,
                STASH,
                *stash,
                &format!("the stash {} was dropped", stash.short()),
            ));
        }
        for stash in now.stashes.difference(&before.stashes) {
            messages.push(format!("the stash {} was created during the run", stash.short()));
        }
        if source == RefSource::Git {
            let before = std::mem::replace(&mut self.remotes, list_remotes(repository));
            messages.extend(describe_remotes(repository, before.as_ref(), self.remotes.as_ref()));
        }
        messages.into_iter().for_each(add_notice);
    }

    /// The recorded values, of which none may be lost.
    pub(in crate::git) fn needed(&self) -> impl Iterator<Item = Oid> {
        self.known.iter().flat_map(|known| known.refs.values().chain(&known.stashes)).copied()
    }

    /// Records a move by this process.
    pub(in crate::git) fn note(&mut self, name: &str, to: Option<Oid>) {
        let Some(known) = self.known.as_mut().filter(|_| is_user_ref(name)) else { return };
        match to {
            Some(to) => drop(known.refs.insert(name.to_owned(), to)),
            None => drop(known.refs.remove(name)),
        }
    }

    fn list(&mut self, repository: &Repository, source: RefSource) -> Option<KnownRefs> {
        let refs = match self.read(repository) {
            Some(refs) => refs,
            None if source == RefSource::Files => return None,
            None => {
                let listed = repository.list_refs(&FOLDERS).ok()?;
                let listed = listed.into_iter().map(|listed| (listed.name, listed.target));
                // Task branches belong to runs, possibly to others.
                listed.filter(|(name, _)| !name.starts_with(TASK_REFS)).collect()
            }
        };
        Some(KnownRefs { refs, stashes: list_stashes(repository) })
    }

    /// Reads the refs from their files. `None` if that is impossible.
    fn read(&mut self, repository: &Repository) -> Option<BTreeMap<String, Oid>> {
        if self.is_asked_of_git || !repository.has_files_backend {
            return None;
        }
        let mut found = BTreeMap::new();
        for (name, loose) in FOLDERS.iter().flat_map(|folder| repository.read_loose(folder)) {
            if let (RefValue::Id(target), false) = (loose, name.starts_with(TASK_REFS)) {
                found.insert(name, target);
            }
        }
        self.is_asked_of_git = found.len() > MAX_LOOSE;
        if self.is_asked_of_git {
            return None;
        }
        // git writes packed-refs before it removes the loose files, so this file is read last.
        let stamp = repository.packed_stamp();
        if self.packed.as_ref().is_none_or(|(known, _)| *known != stamp) {
            let packed = repository.read_packed_refs()?.into_iter();
            let packed =
                packed.filter(|(name, _)| is_user_ref(name) && !name.starts_with(TASK_REFS)).collect();
            self.packed = Some((stamp, packed));
        }
        for (name, target) in self.packed.iter().flat_map(|(_, packed)| packed) {
            found.entry(name.clone()).or_insert(*target);
        }
        found.extend(read_worktree_refs(repository));
        Some(found)
    }
}

/// A message about a branch that was created or moved forward meanwhile, if it has commits that no other ref has or
/// had.
/// An agent may have left its work there. A branch on which another driver works is left to that driver.
fn describe_new_commits(
    repository: &Repository,
    name: &str,
    old: Option<Oid>,
    new: Oid,
    known: &[Oid],
) -> Option<String> {
    let commits = repository.list_between(&[new], known).ok()?.len();
    let noun = if commits == 1 { "commit" } else { "commits" };
    if commits == 0 || has_other_driver(repository, name) {
        return None;
    }
    let Some(old) = old else {
        return Some(format!(
            "{name} was created during the run by you or another program, and has {commits} new {noun}"
        ));
    };
    let range = format!("{}..{}", old.short(), new.short());
    is_forward(repository, name, (old, new)).then(|| {
        format!("during the run, {name} got {commits} {noun} that the run did not make: git log {range}")
    })
}

fn has_other_driver(repository: &Repository, name: &str) -> bool {
    let branch = name.strip_prefix(BRANCHES).and_then(|name| name.parse::<BranchName>().ok());
    let locks = || find_other_drivers(&repository.common_dir.join("arborist/locks"), "");
    branch.is_some_and(|branch| {
        let locks = locks();
        ["run-", "landing-"].iter().any(|kind| locks.contains(&format!("{kind}{}", branch.component())))
    })
}

fn list_remotes(repository: &Repository) -> Option<BTreeMap<String, Oid>> {
    let listed = repository.list_refs(&[REMOTES]).ok()?;
    Some(listed.into_iter().map(|listed| (listed.name, listed.target)).collect())
}

/// A message about remote-tracking refs that were created or moved. After a push of ours, such a ref has commits of the
/// local branch, so that merging it brings nothing.
fn describe_remotes(
    repository: &Repository,
    before: Option<&BTreeMap<String, Oid>>,
    now: Option<&BTreeMap<String, Oid>>,
) -> Option<String> {
    let (before, now) = (before?, now?);
    let is_pushed = |name: &str, target: Oid| {
        let branch =
            name.strip_prefix(REMOTES).and_then(|name| name.split_once('/')).map(|(_, branch)| branch);
        let local =
            branch.and_then(|branch| repository.find_ref(&format!("{BRANCHES}{branch}")).ok().flatten());
        local.is_some_and(|local| repository.is_ancestor(target, local).unwrap_or(false))
    };
    // The default branch of a remote is a symbolic ref, and moves with the ref that it names.
    let follows = |name: &str| {
        let Some(remote) = name.strip_suffix("HEAD") else { return false };
        let is_named = |other: &String| {
            other != name && before.get(other) == before.get(name) && now.get(other) == now.get(name)
        };
        before.contains_key(name) && now.keys().filter(|other| other.starts_with(remote)).any(is_named)
    };
    let changed = now.iter().filter(|(name, target)| before.get(*name) != Some(target) && !follows(name));
    let names: Vec<&str> =
        changed.filter(|(name, target)| !is_pushed(name, **target)).map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "remote-tracking refs were changed during the run, perhaps by 'git fetch': {}",
            names.join(", ")
        )
    })
}

/// Detached heads and other refs that belong to one of the user's worktrees, except for this one.
fn read_worktree_refs(repository: &Repository) -> Vec<(String, Oid)> {
    let read = |folder: &str, prefix: &str| -> Vec<(String, Oid)> {
        let names = WORKTREE_REFS.iter().map(|name| format!("{folder}{name}"));
        let loose = names.flat_map(|name| repository.read_loose(&name));
        let ids = loose.filter_map(|(name, loose)| match loose {
            RefValue::Id(target) => Some((format!("{prefix}{}", &name[folder.len()..]), target)),
            RefValue::Other => None,
        });
        ids.collect()
    };
    let is_main = repository.git_dir == repository.common_dir;
    let mut found = if is_main { Vec::new() } else { read("", OF_MAIN_WORKTREE) };
    for entry in safe_files::list_kinds(&repository.common_dir.join("worktrees")).unwrap_or_default() {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        let Some(folder) = name.map(|name| format!("{OF_LINKED_WORKTREES}{name}/")) else { continue };
        let refs = read(&folder, &folder);
        if !refs.is_empty() && entry.path != repository.git_dir && !is_own_git_dir(&entry.path) {
            found.extend(refs);
        }
    }
    found
}

fn is_of_worktree(name: &str) -> bool {
    name.starts_with(OF_MAIN_WORKTREE) || name.starts_with(OF_LINKED_WORKTREES)
}

/// Whether a branch only got new commits, so that nothing is lost.
fn is_forward(repository: &Repository, name: &str, (old, new): (Oid, Oid)) -> bool {
    (name.starts_with(BRANCHES) || name.ends_with("/HEAD"))
        && repository.is_ancestor(old, new).unwrap_or(false)
}

fn save_lost(repository: &Repository, name: &str, target: Oid, messages: &str) -> String {
    match save(repository, name, target) {
        Some(saved_as) => format!("{messages} during the run; its old value is kept as {saved_as}"),
        None => {
            format!("{messages} during the run; its old value, {}, could not be kept", target.short())
        }
    }
}

/// Each stash is one line of the reflog: the previous id, the id, and more.
fn list_stashes(repository: &Repository) -> BTreeSet<Oid> {
    let log = safe_files::read(&repository.common_dir.join("logs").join(STASH)).unwrap_or_default();
    let lines = log.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Oid::from_hex(line.split(|byte| *byte == b' ').nth(1)?)).collect()
}
