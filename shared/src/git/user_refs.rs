//! Saves branches, tags and stashes of the user that a run does not work with, and detached heads of other worktrees. An
//! agent can delete or move them, and so can the user, and the driver cannot tell which it was. So their old values are
//! saved and reported, but nothing is restored and no attempt fails. New branches with commits are reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Repository,
    moved_refs::save,
    owned_refs::{OwnedRefs, RefTable, TABLES},
    ref_files::{PackedStamp, RefValue},
    worktree_git_dirs::is_own_git_dir,
};
use crate::{name::Oid, safe_files};

const FOLDERS: [&str; 3] = ["refs/heads", "refs/tags", STASH];
const STASH: &str = "refs/stash";
/// Task branches belong to runs, possibly to others.
const TASKS: &str = "refs/heads/arborist/task/";
/// The prefixes of refs that belong to one worktree, as git spells them in other worktrees.
const OF_MAIN_WORKTREE: &str = "main-worktree/";
const OF_LINKED_WORKTREES: &str = "worktrees/";
/// The folders of such refs, and `HEAD`.
const WORKTREE_REFS: [&str; 4] = ["HEAD", "refs/worktree", "refs/bisect", "refs/rewritten"];
/// With more loose refs than this, they are compared only at the end of a run. Reading this many takes about 5 ms.
const MAX_LOOSE: usize = 500;

/// Whether there are messages to take. It is checked often, so it must not take a lock.
static HAS_MESSAGES: AtomicBool = AtomicBool::new(false);

/// Whether a ref may be the user's.
pub(super) fn is_user_ref(name: &str) -> bool {
    FOLDERS
        .iter()
        .any(|folder| name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Messages about user refs that were deleted or moved since the last call, with the names under which they are saved.
#[must_use]
pub fn take_moved_refs() -> Vec<String> {
    if !HAS_MESSAGES.swap(false, Ordering::SeqCst) {
        return Vec::new();
    }
    let tables: Vec<OwnedRefs> =
        TABLES.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    tables.iter().flat_map(|table| table.lock().user_refs.take()).collect()
}

impl Repository {
    /// Records the user's refs before a run starts its first child process.
    pub fn record_user_refs(&self) {
        OwnedRefs::of(self).lock().user_refs.begin(self, RefSource::Git);
    }

    /// Compares the user's refs at the end of a run, with the help of git where the files are not enough.
    pub fn compare_user_refs(&self) {
        compare_user_refs(&mut OwnedRefs::of(self).lock(), self, RefSource::Git);
    }
}

/// Saves user refs that were deleted or moved and belong to no run.
pub(super) fn compare_user_refs(table: &mut RefTable, repository: &Repository, source: RefSource) {
    let mut user_refs = std::mem::take(&mut table.user_refs);
    user_refs.compare(repository, source, |name| table.is_of_run(name));
    table.user_refs = user_refs;
}

/// Whether git may be asked where the files are not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefSource {
    /// Only files: after each child process.
    Files,
    /// Files or git: once at the beginning and once at the end of a run.
    Git,
}

/// The user's refs in packed-refs, and the stamp of that version of the file.
type PackedRefs = (Option<PackedStamp>, Vec<(String, Oid)>);

/// The user's refs at the last comparison.
#[derive(Debug, Default)]
pub(super) struct UserRefs {
    known: Option<KnownRefs>,
    /// The user's packed refs.
    packed: Option<PackedRefs>,
    /// Whether only git can list the refs, or there are too many.
    is_asked_of_git: bool,
    messages: Vec<String>,
}

#[derive(Debug, Default)]
struct KnownRefs {
    refs: BTreeMap<String, Oid>,
    /// All stashes. The ref itself is only the latest one.
    stashes: BTreeSet<Oid>,
}

impl UserRefs {
    /// Records the present refs, unless some are recorded already.
    pub(super) fn begin(&mut self, repository: &Repository, source: RefSource) {
        if self.known.is_none() {
            self.known = self.list(repository, source);
        }
    }

    /// Saves refs that were deleted, or moved other than by fast-forward, since the last comparison. `is_other` says
    /// which refs belong to a run, which checks them itself.
    pub(super) fn compare(
        &mut self,
        repository: &Repository,
        source: RefSource,
        is_other: impl Fn(&str) -> bool,
    ) {
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
                messages.push(keep(repository, (name, *old), &format!("{name} was {verb}")));
            }
        }
        let is_new = |name: &str| {
            name.starts_with("refs/heads/") && !before.refs.contains_key(name) && !is_other(name)
        };
        let others = now.refs.iter().filter(|(name, _)| !is_new(name));
        let known: Vec<Oid> = before.refs.iter().chain(others).map(|(_, target)| *target).collect();
        for (name, target) in now.refs.iter().filter(|(name, _)| is_new(name)) {
            messages.extend(describe_new(repository, (name, *target), &known));
        }
        for stash in before.stashes.difference(&now.stashes) {
            messages.push(keep(
                repository,
                (STASH, *stash),
                &format!("the stash {} was dropped", stash.short()),
            ));
        }
        self.messages.extend(messages);
        if !self.messages.is_empty() {
            HAS_MESSAGES.store(true, Ordering::SeqCst);
        }
    }

    /// The recorded values, of which none may be lost.
    pub(super) fn needed(&self) -> impl Iterator<Item = Oid> {
        self.known.iter().flat_map(|known| known.refs.values().chain(&known.stashes)).copied()
    }

    /// Records a move by this process.
    pub(super) fn note(&mut self, name: &str, to: Option<Oid>) {
        let Some(known) = self.known.as_mut().filter(|_| is_user_ref(name)) else { return };
        match to {
            Some(to) => drop(known.refs.insert(name.to_owned(), to)),
            None => drop(known.refs.remove(name)),
        }
    }

    /// Takes the messages since the last call.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    fn list(&mut self, repository: &Repository, source: RefSource) -> Option<KnownRefs> {
        let refs = match self.read(repository) {
            Some(refs) => refs,
            None if source == RefSource::Files => return None,
            None => {
                let listed = repository.list_refs(&FOLDERS).ok()?;
                let listed = listed.into_iter().map(|listed| (listed.name, listed.target));
                listed.filter(|(name, _)| !name.starts_with(TASKS)).collect()
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
            if let (RefValue::Id(target), false) = (loose, name.starts_with(TASKS)) {
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
            let packed = packed.filter(|(name, _)| is_user_ref(name) && !name.starts_with(TASKS)).collect();
            self.packed = Some((stamp, packed));
        }
        for (name, target) in self.packed.iter().flat_map(|(_, packed)| packed) {
            found.entry(name.clone()).or_insert(*target);
        }
        found.extend(read_worktree_refs(repository));
        Some(found)
    }
}

/// A message about a branch that was created meanwhile, if it has commits that no other branch has or had. An agent may have left
/// its work there.
fn describe_new(repository: &Repository, (name, target): (&str, Oid), known: &[Oid]) -> Option<String> {
    let commits = repository.list_between(&[target], known).ok()?.len();
    let noun = if commits == 1 { "commit" } else { "commits" };
    (commits > 0).then(|| {
        format!(
            "{name} was created while the run was at work, and has {commits} {noun} that no ref had before"
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
    (name.starts_with("refs/heads/") || name.ends_with("/HEAD"))
        && repository.is_ancestor(old, new).unwrap_or(false)
}

fn keep(repository: &Repository, (name, target): (&str, Oid), messages: &str) -> String {
    match save(repository, name, target) {
        Some(saved_as) => format!("{messages} while the run was at work; where it was is kept as {saved_as}"),
        None => {
            format!(
                "{messages} while the run was at work; where it was, {}, could not be kept",
                target.short()
            )
        }
    }
}

/// Each stash is one line of the reflog: the previous id, the id, and more.
fn list_stashes(repository: &Repository) -> BTreeSet<Oid> {
    let log = safe_files::read(&repository.common_dir.join("logs").join(STASH)).unwrap_or_default();
    let lines = log.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Oid::from_hex(line.split(|byte| *byte == b' ').nth(1)?)).collect()
}
