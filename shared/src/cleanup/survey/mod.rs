//! Collects the facts for a cleanup: all refs with one git command, all worktrees with another, and the uncommitted
//! files of a worktree only if they matter for the decision.

mod branches;
mod files;
mod in_use;
mod refs;
mod sessions;
mod worktrees;

pub(super) use files::measure;
pub use files::size_of;
pub(super) use refs::Refs;
pub(super) use sessions::SessionBranchProof;
pub(super) use worktrees::{content_of, find_going_on};

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
};

use super::{
    Candidate, CandidateKind, CandidatePlace, CleanupError, Commits, InUse, Sweep, Topic, UnsavedPolicy,
    homes::{KnownSession, LeftRunning},
    proof,
};
use crate::{
    coordination::CLAIMS,
    git::{GitError, OperationInProgress, Worktree, skip_ref},
    history::{CommitSource, Run, RunScope, State},
    name::{BranchName, Oid, SessionId, TASK_REFS, TaskId, unescaped},
    process::Occupants,
    queue::{Claimant, QueueClaim, TICKETS},
    record::UnfinishedAttempt,
    session::{SessionReader, SessionState},
    worktree::WorktreeRemains,
};

/// Facts that are read once.
pub(super) struct CleanupFacts<'a> {
    sweep: &'a Sweep<'a>,
    refs: Refs,
    worktrees: Vec<Worktree>,
    places: Vec<WorktreeRemains>,
    going_on: Vec<(PathBuf, OperationInProgress)>,
    occupants: Option<Occupants>,
    here: Option<PathBuf>,
    sessions: Vec<KnownSession>,
    /// The sessions that have a branch in another repository of the workspace.
    branched_elsewhere: HashSet<SessionId>,
    unpushed: HashSet<String>,
    /// The claims, by the components of their targets.
    claims: BTreeMap<String, Claimant>,
    left_running: LeftRunning,
    runs: RefCell<HashMap<String, Result<Option<InUse>, String>>>,
}

/// All candidates with all facts except their sizes.
pub(super) fn collect(sweep: &Sweep<'_>) -> Result<Vec<Candidate>, CleanupError> {
    let facts = CleanupFacts::look(sweep)?;
    let mut found = Vec::new();
    if sweep.covers(Topic::Worktrees) {
        found.extend(facts.worktrees());
    }
    if sweep.covers(Topic::Branches) {
        found.extend(facts.branches()?);
        found.extend(facts.landings());
        found.extend(facts.claims());
        found.extend(facts.unfinished());
    }
    if sweep.covers(Topic::Sessions) {
        found.extend(facts.sessions());
    }
    if sweep.covers(Topic::Saved) {
        found.extend(facts.saved()?);
    }
    if sweep.covers(Topic::Logs) {
        found.extend(facts.logs()?);
    }
    if sweep.covers(Topic::Caches) {
        found.extend(facts.caches());
    }
    found.sort_by_key(|candidate| candidate.what);
    found.retain(|candidate| sweep.wants(&candidate.owners));
    facts.link_worktrees(&mut found);
    facts.add_damaged_refs(&mut found);
    facts.add_copies(&mut found);
    facts.add_reverted(&mut found);
    facts.add_failed(&mut found);
    facts.add_unmerged(&mut found);
    facts.look_into(&mut found);
    Ok(found)
}

impl<'a> CleanupFacts<'a> {
    fn look(sweep: &'a Sweep<'a>) -> Result<Self, CleanupError> {
        let repository = sweep.repository;
        let refs = repository.start_surveying_refs();
        let sessions = sweep.sessions(&SessionReader::new(repository).list()?);
        let worktrees = repository.list_worktrees()?;
        let places = sweep.pool.as_ref().map(|pool| pool.list_places(&worktrees)).unwrap_or_default();
        let mut facts = Self {
            sweep,
            going_on: find_going_on(&worktrees),
            occupants: Occupants::find(),
            here: std::env::current_dir().ok(),
            refs: Refs::new(refs.finish()?, &sessions, SessionBranchProof { repository }),
            branched_elsewhere: sessions::find_branched(&sweep.others, &sessions)?,
            sessions,
            worktrees,
            places,
            unpushed: HashSet::new(),
            claims: BTreeMap::new(),
            left_running: LeftRunning::find(&repository.lock_folder()),
            runs: RefCell::default(),
        };
        if facts.refs.has_upstreams() {
            facts.unpushed = repository.unpushed("refs/heads/")?;
        }
        if facts.refs.below(CLAIMS).next().is_some() {
            facts.claims = QueueClaim::survey(repository, sweep.options.rules.now)?;
        }
        Ok(facts)
    }

    /// Connects branches with the candidate worktrees that have them checked out.
    fn link_worktrees(&self, found: &mut [Candidate]) {
        let mut places: HashMap<BranchName, usize> = HashMap::new();
        for (at, candidate) in found.iter().enumerate() {
            if let CandidatePlace::Worktree { branch: Some(branch), .. } = &candidate.place {
                places.insert(branch.clone(), at);
            }
        }
        let mut users: HashMap<&BranchName, Vec<&Worktree>> = HashMap::new();
        for worktree in &self.worktrees {
            if let Some(branch) = &worktree.branch {
                users.entry(branch).or_default().push(worktree);
            }
        }
        for candidate in found.iter_mut().filter(|candidate| is_branch(candidate.what)) {
            let Some(branch) = candidate.as_ref().and_then(|(name, _)| branch_of(name)) else { continue };
            match (users.get(&branch).map(Vec::as_slice), places.get(&branch)) {
                (None, _) => {}
                (Some([_]), Some(place)) => candidate.worktree_index = Some(*place),
                (Some(users), _) => {
                    let path = users.first().map(|worktree| worktree.path.display().to_string());
                    candidate.in_use.push(InUse::CheckedOut(path.unwrap_or_default()));
                }
            }
        }
    }

    /// Adds which refs cannot be read.
    fn add_damaged_refs(&self, found: &mut [Candidate]) {
        for candidate in found {
            let facts = candidate.as_ref().and_then(|(name, _)| self.refs.find(name));
            if facts.is_some_and(|facts| facts.is_damaged) {
                candidate.unknown.insert(0, "what it points at: its object is missing or damaged".into());
            }
        }
    }

    /// Adds where else the commits of all candidates are: in this repository, and separately at each remote.
    fn add_copies(&self, found: &mut [Candidate]) {
        for what in [CandidateKind::SessionBranch, CandidateKind::Branch] {
            let kept = self.refs.kept_for(what);
            let is_session = |candidate: &Candidate| {
                matches!(candidate.what, CandidateKind::SessionBranch | CandidateKind::Record)
            };
            let suits = |candidate: &&mut Candidate| {
                remote_of(candidate).is_none()
                    && is_session(candidate) == (what == CandidateKind::SessionBranch)
            };
            self.add_copies_of(found.iter_mut().filter(suits).collect(), &kept, self.refs.copies());
        }
        let mut remotes: Vec<String> = found.iter().filter_map(remote_of).collect();
        remotes.sort();
        remotes.dedup();
        for remote in remotes {
            let kept: Vec<Oid> = self.refs.kept_at(&remote).iter().filter_map(|found| found.commit).collect();
            let part = found.iter_mut().filter(|candidate| remote_of(candidate).as_ref() == Some(&remote));
            self.add_copies_of(part.collect(), &kept, &[]);
        }
    }

    /// Adds which branches were merged into the branch of their run and reverted there. History is read once for each
    /// run, and only if one of its branches could go because it was merged.
    fn add_reverted(&self, found: &mut [Candidate]) {
        let mut runs: HashMap<String, Option<Run>> = HashMap::new();
        let is_merged = |candidate: &&mut Candidate| {
            matches!(candidate.what, CandidateKind::Branch | CandidateKind::RemoteBranch)
                && matches!(candidate.commits, Commits::Held | Commits::Landed { .. })
        };
        for candidate in found.iter_mut().filter(is_merged) {
            let Some((run, task)) = task_of(candidate) else { continue };
            let read = runs.entry(run).or_insert_with_key(|run| self.read_run(run));
            let history = read.as_ref().and_then(|run| run.find(&task));
            if let Some(reverted) = history.and_then(|history| history.reverted.clone()) {
                candidate.commits = Commits::Reverted(reverted);
            }
        }
    }

    /// Adds which branches have the only record that their task has failed in a run that may continue. Without it, the run
    /// would do the task again. `--force` removes them only if the task is named.
    fn add_failed(&self, found: &mut [Candidate]) {
        if self.sweep.options.rules.unsaved == UnsavedPolicy::Kept || !self.sweep.options.names.is_empty() {
            return;
        }
        let mut runs: HashMap<String, Option<Run>> = HashMap::new();
        let is_loose = |candidate: &&mut Candidate| {
            candidate.what == CandidateKind::Branch && matches!(candidate.commits, Commits::Loose(_))
        };
        for candidate in found.iter_mut().filter(is_loose) {
            let Some((run, task)) = task_of(candidate) else { continue };
            let read = runs.entry(run).or_insert_with_key(|run| self.read_run(run));
            if read.as_ref().is_some_and(|run| run.state_of(&task) == State::Failed) {
                candidate.in_use.push(InUse::Failed);
            }
        }
    }

    /// Adds which logs are about tasks that are not merged: they tell why. `--force` removes them too.
    fn add_unmerged(&self, found: &mut [Candidate]) {
        let options = &self.sweep.options;
        let is_log = |candidate: &Candidate| candidate.what == CandidateKind::Log;
        let is_asked = options.rules.unsaved == UnsavedPolicy::Saved || !options.names.is_empty();
        if is_asked || !found.iter().any(is_log) {
            return;
        }
        let unmerged = self.unmerged_tasks();
        for candidate in found.iter_mut().filter(|candidate| is_log(candidate)) {
            if candidate.owners.first().is_some_and(|task| unmerged.contains(task)) {
                candidate.in_use.push(InUse::Unmerged);
            }
        }
    }

    /// The tasks that are queued, have commits on a branch of their own that are not merged, or have begun and not landed in a
    /// run that is not complete.
    fn unmerged_tasks(&self) -> HashSet<String> {
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let mut tasks: HashSet<String> = self.refs.below(TICKETS).map(|found| last(&found.name)).collect();
        let branches: Vec<(String, Oid)> =
            self.refs.below(TASK_REFS).filter_map(|found| Some((last(&found.name), found.commit?))).collect();
        let tips: Vec<Oid> = branches.iter().map(|(_, tip)| *tip).collect();
        // If an object is damaged, nothing proves that any of them is merged.
        let loose = self.sweep.repository.loose_commits(&tips, self.refs.kept()).ok();
        let is_loose = |tip: &Oid| loose.as_ref().is_none_or(|loose| loose.contains_key(tip));
        tasks.extend(branches.into_iter().filter(|(_, tip)| is_loose(tip)).map(|(task, _)| task));
        let open = self.sessions.iter().filter(|session| session.state != SessionState::Complete);
        let runs: BTreeSet<&BranchName> = open.map(|session| &session.branch).collect();
        // An attempt that was cut off has no commit yet.
        for mark in self.refs.below(UnfinishedAttempt::REFS) {
            tasks.extend(
                runs.iter()
                    .find_map(|run| UnfinishedAttempt::task_of(&mark.name, run))
                    .map(|id| id.to_string()),
            );
        }
        for run in runs.into_iter().filter_map(|run| self.read_run_of(run)) {
            let unmerged = run.tasks.iter().filter(|history| !history.has_landed());
            tasks.extend(unmerged.map(|history| history.id.to_string()));
        }
        tasks
    }

    fn read_run(&self, component: &str) -> Option<Run> {
        self.read_run_of(&unescaped(component).parse().ok()?)
    }

    fn read_run_of(&self, branch: &BranchName) -> Option<Run> {
        let tip = self.refs.find(&branch.to_ref())?.commit?;
        let scope = RunScope { branch: branch.clone(), tip: Some(tip) };
        // Nothing may write a cache that this cleanup then finds.
        Run::scan(self.sweep.repository, scope, CommitSource::Fresh).ok()
    }

    /// Finds out where the commits of these candidates are. If that fails, because an object is missing or damaged, they are
    /// halved until those that need it are alone.
    fn add_copies_of(&self, mut found: Vec<&mut Candidate>, kept: &[Oid], copies: &[Oid]) {
        found.retain(|candidate| tip_of(candidate).is_some());
        let Err(error) = self.find_commits_of(&mut found, kept, copies) else { return };
        match &mut found[..] {
            [] => {}
            [candidate] => {
                let error = error.to_string();
                let why = format!("where its commits are: {}", error.lines().next().unwrap_or_default());
                if let Some((name, _)) = candidate.as_ref() {
                    skip_ref(name, &why);
                }
                candidate.unknown.push(why);
            }
            _ => {
                let rest = found.split_off(found.len() / 2);
                self.add_copies_of(found, kept, copies);
                self.add_copies_of(rest, kept, copies);
            }
        }
    }

    /// One git command finds the commits that no kept ref leads to, another those that no remote-tracking ref leads to.
    /// Only for the rest, contents are compared.
    fn find_commits_of(
        &self,
        found: &mut [&mut Candidate],
        kept: &[Oid],
        copies: &[Oid],
    ) -> Result<(), GitError> {
        let repository = self.sweep.repository;
        let tips: Vec<Oid> = found.iter().filter_map(|candidate| tip_of(candidate)).collect();
        let loose = repository.loose_commits(&tips, kept)?;
        let unheld: HashSet<Oid> = tips.into_iter().filter(|tip| loose.contains_key(tip)).collect();
        let loose = match copies {
            [] => loose,
            _ => {
                let unheld: Vec<Oid> = unheld.iter().copied().collect();
                repository.loose_commits(&unheld, &[kept, copies].concat())?
            }
        };
        let mut open = Vec::new();
        for (at, candidate) in found.iter_mut().enumerate() {
            let Some(tip) = tip_of(candidate) else { continue };
            if !loose.contains_key(&tip) {
                candidate.commits = if unheld.contains(&tip) { Commits::Copied } else { Commits::Held };
                continue;
            }
            candidate.commits = Commits::Loose(proof::own_commits(&loose, tip).len());
            if is_landable(candidate) {
                open.push(proof::Open { at, tip, targets: self.refs.targets(candidate) });
            }
        }
        for (at, (into, how)) in proof::prove(repository, &loose, &open)? {
            found[at].commits = Commits::Landed { into, how };
        }
        Ok(())
    }
}

fn remote_of(candidate: &Candidate) -> Option<String> {
    match &candidate.place {
        CandidatePlace::Remote { remote, .. } => Some(remote.clone()),
        _ => None,
    }
}

/// The commit for which it matters where else it is.
fn tip_of(candidate: &Candidate) -> Option<Oid> {
    match (&candidate.place, candidate.what) {
        (CandidatePlace::Ref { .. }, CandidateKind::Claim | CandidateKind::Saved | CandidateKind::Cache) => {
            None
        }
        (CandidatePlace::Ref { tip, .. } | CandidatePlace::Remote { tip, .. }, _) => Some(*tip),
        (CandidatePlace::Worktree { branch: None, head, is_scratch: false, .. }, _) => *head,
        _ => None,
    }
}

/// The run and the task that a candidate belongs to.
fn task_of(candidate: &Candidate) -> Option<(String, TaskId)> {
    Some((candidate.run.clone()?, candidate.owners.first()?.parse().ok()?))
}

/// Contents are compared only for candidates that nothing else keeps.
fn is_landable(candidate: &Candidate) -> bool {
    let is_work = matches!(
        candidate.what,
        CandidateKind::Branch | CandidateKind::RemoteBranch | CandidateKind::Worktree
    );
    is_work && candidate.in_use.is_empty() && candidate.unknown.is_empty()
}

fn is_branch(what: CandidateKind) -> bool {
    matches!(what, CandidateKind::Branch | CandidateKind::SessionBranch)
}

/// The branch of this full ref name.
pub(super) fn branch_of(name: &str) -> Option<BranchName> {
    name.strip_prefix("refs/heads/")?.parse().ok()
}
