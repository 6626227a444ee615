//! Finds forged steps on target branches, which users move as well as the run. Commits of users are kept, and the run
//! builds on them. Step commits of the run that this process did not write are forged: a child process could write them
//! to make the next run believe that a task is done.

use std::{
    collections::{BTreeSet, HashSet},
    fmt::Write as _,
    sync::{LazyLock, Mutex},
};

use crate::{
    git::{
        GitError, Merge, RawCommit, Repository,
        refs::{
            moved_refs::{remove_forged, restore, save},
            owned_refs::{OwnedRefs, RefTable},
            ref_files::RefValue,
        },
    },
    message::{self, Message, MessageReading, Status},
    mutex::MutexExt,
    name::{BranchName, Oid},
};

/// Commits that this process has written.
static WRITTEN_COMMITS: LazyLock<Mutex<HashSet<Oid>>> = LazyLock::new(Mutex::default);

/// Landings that passed the gates of this process.
static GATED_LANDINGS: LazyLock<Mutex<HashSet<Oid>>> = LazyLock::new(Mutex::default);

/// A target branch of a run, and the value that this process last saw or wrote.
#[derive(Debug)]
pub(in crate::git) struct TargetBranch {
    pub(in crate::git) last_known: Oid,
    /// Moves by others that this process has built on: pairs (from, to).
    pub(in crate::git) foreign_moves: Vec<(Oid, Oid)>,
    /// The branch of the run. Only this process may write steps of that run to the target.
    pub(in crate::git) scope: BranchName,
}

/// Records that a landing passed the gates of this process. That this process wrote the commit is no proof: it is
/// written before the gates run, and every process can move a target to it.
pub fn note_landing(commit: Oid) {
    GATED_LANDINGS.hold().insert(commit);
}

/// Records that this process has written a commit.
pub(in crate::git) fn note_written(commit: Oid) {
    WRITTEN_COMMITS.hold().insert(commit);
}

/// Which landings that did not pass the gates of this process count as forged. Other drivers land tasks of the run too.
/// A landing that merges nothing but the target and a task may be theirs; then the run has to stop, but no child is
/// blamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum ForgedLandings {
    /// Those that contain more than the merge of their parents.
    Inconsistent,
    /// All of them.
    All,
}

impl Repository {
    /// The moves of a run's target branch by others since the last call, as pairs (from, to) in order. The first call
    /// returns nothing; from then on, only this process may write steps of that run to the branch.
    ///
    /// The tip is read under the lock of the table, when no thread of this process can move the branch. If a caller
    /// passed a tip that it had read before, our own later move would look like one that lost commits.
    pub fn take_moves_by_others(&self, name: &str, scope: &BranchName) -> Result<Vec<(Oid, Oid)>, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let Some(now) = self.find_ref(name)? else { return Ok(Vec::new()) };
        let new = TargetBranch { last_known: now, foreign_moves: Vec::new(), scope: scope.clone() };
        let Some(TargetBranch { last_known, mut foreign_moves, .. }) =
            table.targets.insert(name.to_owned(), new)
        else {
            return Ok(Vec::new());
        };
        foreign_moves.extend((last_known != now).then_some((last_known, now)));
        Ok(foreign_moves)
    }

    /// Removes steps and landings of a run from its target branch that were added between two commits by another
    /// process. Returns a message about it, or `None` if there were none.
    pub fn remove_forged_commits(
        &self,
        name: &str,
        scope: &BranchName,
        from: Oid,
        to: Oid,
    ) -> Result<Option<String>, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let own = (&table.own_tips(scope), ForgedLandings::All);
        let Some(last) = last_before_forgery(self, scope, (from, to), own)? else { return Ok(None) };
        let message = format!("steps of the run were written to {name} by another process");
        let message = remove_forged(self, name, self.find_ref(name)?.unwrap_or(to), last, message);
        if let Some(target) = table.targets.get_mut(name) {
            target.last_known = last;
        }
        Ok(Some(message))
    }
}

/// The last commit between `from` and `to` before any forged step of the run, or `None` if there is no forged step.
/// Commits on the run's `own` task branches are not forged, but a target that was moved to one of them has skipped its
/// gate.
pub(in crate::git) fn last_before_forgery(
    repository: &Repository,
    scope: &BranchName,
    (from, to): (Oid, Oid),
    (own, landings): (&BTreeSet<Oid>, ForgedLandings),
) -> Result<Option<Oid>, GitError> {
    let line = ["--first-parent", "--reverse", &to.to_string(), &format!("^{from}")].map(str::to_owned);
    let line: Vec<RawCommit> = repository.stream_commits(&line)?.collect::<Result<_, _>>()?;
    let mut last = from;
    for commit in line {
        let commit = repository.exact(commit)?;
        if is_forged(repository, scope, &commit, landings)?
            || !find_forged_steps(repository, scope, last, commit.id, own)?.is_empty()
        {
            return Ok(Some(last));
        }
        last = commit.id;
    }
    Ok(None)
}

/// Whether a commit on the target's first-parent line is forged: a step, which never belongs there, or a landing that
/// did not pass our gates.
fn is_forged(
    repository: &Repository,
    scope: &BranchName,
    commit: &RawCommit,
    landings: ForgedLandings,
) -> Result<bool, GitError> {
    let Some(message) = step_of(scope, commit.message()) else { return Ok(false) };
    if message.subject.status != Status::Merge {
        return Ok(true);
    }
    if GATED_LANDINGS.hold().contains(&commit.id) {
        return Ok(false);
    }
    Ok(landings == ForgedLandings::All
        || !is_consistent_landing(repository, commit, message.trailers.source())?)
}

/// Whether a landing has exactly the tree that follows from merging its parents.
fn is_consistent_landing(
    repository: &Repository,
    commit: &RawCommit,
    source: Option<Oid>,
) -> Result<bool, GitError> {
    let parents: Vec<Oid> = commit.parents().collect();
    let [onto, landed] = parents[..] else { return Ok(false) };
    if source != Some(landed) {
        return Ok(false);
    }
    Ok(match repository.merge(onto, landed)? {
        Merge::Clean(tree) => commit.tree() == Some(tree),
        Merge::Conflicted(..) => false,
    })
}

fn find_forged_steps(
    repository: &Repository,
    scope: &BranchName,
    from: Oid,
    to: Oid,
    own: &BTreeSet<Oid>,
) -> Result<Vec<Oid>, GitError> {
    let mut revisions = vec![to.to_string(), format!("^{from}")];
    revisions.extend(own.iter().map(|own| format!("^{own}")));
    let mut forged = Vec::new();
    for commit in repository.stream_commits(&revisions)? {
        let commit = repository.exact(commit?)?;
        let step = step_of(scope, commit.message()).filter(|step| step.subject.status != Status::Merge);
        if step.is_some() && !is_written(commit.id) {
            forged.push(commit.id);
        }
    }
    Ok(forged)
}

/// The parsed message, if the commit would count as a step of the run.
fn step_of(scope: &BranchName, message: &[u8]) -> Option<Box<Message>> {
    match message::read(message) {
        MessageReading::Foreign | MessageReading::Malformed(_) => None,
        MessageReading::WellFormed(message) => (message.subject.branch == *scope).then_some(message),
    }
}

fn is_written(commit: Oid) -> bool {
    WRITTEN_COMMITS.hold().contains(&commit)
}

impl RefTable {
    /// Makes a target a branch again if it was turned into a symbolic ref: otherwise everything that is committed to
    /// the other branch would have landed.
    pub(in crate::git) fn unlink_targets(&mut self, repository: &Repository) {
        let is_symbolic = |(name, _): &(&String, &TargetBranch)| repository.is_symbolic_ref(name);
        let linked = self.targets.iter().filter(is_symbolic);
        let linked: Vec<(String, Oid)> =
            linked.map(|(name, target)| (name.clone(), target.last_known)).collect();
        for (name, last_known) in linked {
            let mut message =
                format!("{name} was turned into a symbolic ref while an agent or a command ran");
            let now = repository.find_ref(&name).ok().flatten().filter(|now| *now != last_known);
            if let Some(under) = now.and_then(|now| save(repository, &name, now)) {
                let _ = write!(message, "; its target is kept as {under}");
            }
            if let Err(error) = restore(repository, &name, Some(last_known), Some(RefValue::Other)) {
                let _ = write!(message, "; it could not be restored: {error}");
            }
            self.changes.push(message);
        }
    }
}
