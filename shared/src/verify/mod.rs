//! Verifies that the finished tasks in a range of commits went through their steps.
//!
//! Only commits are trusted. Records in refs are compared with them. A check whose records are missing is reported as
//! not checked, never as passed.

mod landing;
mod records;
mod report;
mod steps;

pub use report::{
    OutsideCommit, Unchecked, Verification, VerifiedTask, VerifyCheck, VerifyError, VerifyProblem,
};

use std::collections::{BTreeSet, HashSet};

use self::{landing::GateResultList, steps::ProtectedSince};
use crate::{
    git::{Config, GitError, Merge, RawCommit, Repository},
    history::{CommitSource, Event, HistoryError, Run, RunScope, State, TaskHistory},
    message::{self, MessageReading, Status, first_of, plain_line, plain_text},
    name::{BranchName, Oid, SessionId, TaskId},
};

/// The commits to verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyRange {
    /// The range for people.
    pub shown: String,
    /// Commits that are reachable from this one are not verified; `None` to verify the whole history.
    pub from: Option<Oid>,
    /// The newest commit.
    pub to: Oid,
    /// Only tasks of this session, if it is set.
    pub session: Option<SessionId>,
}

/// Verifies a range. If `must_be_signed`, every task commit and every record that is used must have a valid signature
/// of a known signer.
pub fn verify(
    repository: &Repository,
    range: &VerifyRange,
    must_be_signed: bool,
    config: &Config,
) -> Result<Verification, VerifyError> {
    let mut verifier = Verifier {
        repository,
        config,
        range,
        gates: GateResultList::load(repository)?,
        within: HashSet::new(),
        records_used: BTreeSet::new(),
        result: Verification::new(range, must_be_signed),
    };
    let events = verifier.read_range()?;
    for branch in branches_of(&events) {
        let of_branch: Vec<&Event> = events.iter().filter(|event| *event.branch() == branch).collect();
        verifier.check_branch(&branch, &of_branch)?;
    }
    // Where a run is cut off, the error above says so. But the missing part can also contain whole runs.
    let edge = repository.list_shallow_edge().into_iter().filter(|commit| verifier.within.contains(commit));
    if let Some(edge) = edge.min() {
        return Err(VerifyError::Shallow { edge });
    }
    if must_be_signed {
        verifier.check_signatures(&events)?;
    }
    Ok(verifier.result)
}

/// The state of one verification.
struct Verifier<'a> {
    repository: &'a Repository,
    config: &'a Config,
    range: &'a VerifyRange,
    gates: GateResultList,
    /// All commits of the range.
    within: HashSet<Oid>,
    /// The commits of the records that a check has used.
    records_used: BTreeSet<Oid>,
    result: Verification,
}

impl Verifier<'_> {
    /// Reads the range, and returns its task commits. A message that claims to be ours and is not valid is a problem.
    fn read_range(&mut self) -> Result<Vec<Event>, VerifyError> {
        let mut revisions = vec![self.range.to.to_string()];
        revisions.extend(self.range.from.map(|from| format!("^{from}")));
        let mut events = Vec::new();
        for commit in self.repository.stream_commits(&revisions)? {
            let commit = commit?;
            self.within.insert(commit.id);
            if !message::claims_to_be_ours(commit.message()) {
                continue;
            }
            let commit = self.repository.exact(commit)?;
            match message::read(commit.message()) {
                MessageReading::Foreign => {}
                MessageReading::WellFormed(message)
                    if message.subject.status == Status::Merge && commit.parents().count() < 2 =>
                {
                    let words = "it looks like a landing, but is not a merge commit";
                    self.result.problem(
                        VerifyCheck::Message,
                        message.subject.task.as_ref(),
                        Some(commit.id),
                        words,
                    );
                }
                MessageReading::WellFormed(message) => events.push(Event::new(&commit, *message)),
                MessageReading::Malformed(faults) => {
                    let fault = faults.first().map(ToString::to_string).unwrap_or_default();
                    let words = format!("it looks like a task commit, but is not valid: {fault}");
                    self.result.problem(VerifyCheck::Message, None, Some(commit.id), words);
                }
            }
        }
        if let Some(session) = &self.range.session {
            events.retain(|event| event.session().is_none_or(|named| named == *session));
        }
        Ok(events)
    }

    /// Verifies the runs of a branch, newest first: a branch can have had several, one after the other.
    fn check_branch(&mut self, branch: &BranchName, events: &[&Event]) -> Result<(), VerifyError> {
        let mut open: BTreeSet<Option<SessionId>> = events.iter().map(|event| event.session()).collect();
        let mut tips = vec![self.range.to];
        let mut seen = HashSet::new();
        while let Some(at) = tips.pop().filter(|_| !open.is_empty()) {
            if !seen.insert(at) {
                continue;
            }
            let run = match self.scan(branch, at)? {
                ScannedRun::Clear(run) => run,
                ScannedRun::Unclear(sides) => {
                    tips.extend(sides.into_iter().rev());
                    continue;
                }
            };
            let Some(start) = &run.start else { continue };
            tips.extend(self.load(start.commit)?.parents().next());
            let is_asked = open.remove(&Some(start.session.clone()));
            // Task commits without a session count for the newest run.
            if open.remove(&None) || is_asked {
                self.check_run(&run)?;
            }
        }
        // Commits of turns may come from 'git arborist session', or from a run in another repository.
        let is_verdict = |event: &Event| {
            use Status::{Complete, Merge, ReviewApproved, TestPass};
            matches!(event.status(), TestPass | ReviewApproved | Complete | Merge)
        };
        for event in events.iter().filter(|event| is_verdict(event) && open.contains(&event.session())) {
            let words = match event.session() {
                Some(session) => {
                    format!(
                        "it names session '{session}', but this history has no run of '{branch}' with that session"
                    )
                }
                None => format!("it names a run of '{branch}', but this history has no such run"),
            };
            self.result.problem(VerifyCheck::Run, event.task(), Some(event.commit), words);
        }
        Ok(())
    }

    /// The newest run of `branch` in the history of `tip`. Task branches of this clone are not read: only what is in
    /// that history is verified. Two runs that a merge has joined are a problem, and each is verified on its side.
    fn scan(&mut self, branch: &BranchName, tip: Oid) -> Result<ScannedRun, VerifyError> {
        let scope = RunScope { branch: branch.clone(), tip: Some(tip) };
        let scanned =
            Run::scan_beside(self.repository, scope.clone(), CommitSource::Fresh, || Ok(Vec::new()));
        let error = match scanned {
            Ok(run) => return Ok(ScannedRun::Clear(Box::new(run))),
            Err(HistoryError::Renamed { .. }) => return Ok(ScannedRun::Unclear(Vec::new())),
            Err(error) => error,
        };
        let (commit, sides) = match &error {
            HistoryError::ForkedRun { commits } => (commits[0], scope.find_sides(self.repository, *commits)?),
            HistoryError::ForkedPlan { commits } => (commits[0], Vec::new()),
            _ => return Err(error.into()),
        };
        self.result.problem(VerifyCheck::Run, None, Some(commit), error.to_string());
        Ok(ScannedRun::Unclear(sides))
    }

    fn check_run(&mut self, run: &Run) -> Result<(), VerifyError> {
        for event in run.unproven.iter().filter(|event| self.within.contains(&event.commit)) {
            let words = match event.status() {
                Status::Merge => "it lands a commit that does not contain the completion of the task",
                _ => {
                    "this completion does not follow an implementation, passed tests and an approved review of the same attempt"
                }
            };
            self.result.problem(VerifyCheck::Steps, event.task(), Some(event.commit), words);
        }
        let mut landings = Vec::new();
        let protections = self.protections_of(run)?;
        for task in &run.tasks {
            landings.extend(self.check_task(run, task, &protections)?);
        }
        self.check_gates(&landings)?;
        self.check_records(run)?;
        self.list_outside(run, &protections)?;
        self.list_merges_by_hand(run, &protections)
    }

    /// Verifies a task, if it was completed or landed within the range. Returns its landing.
    fn check_task(
        &mut self,
        run: &Run,
        task: &TaskHistory,
        protections: &[ProtectedSince],
    ) -> Result<Option<Event>, VerifyError> {
        if let [a, b, ..] = task.forks[..]
            && task.forks.iter().any(|fork| self.within.contains(fork))
        {
            let words =
                format!("the history has two last commits of the task, {} and {}", a.short(), b.short());
            self.result.problem(VerifyCheck::Steps, Some(&task.id), Some(a), words);
        }
        let Some(last) = task.last().filter(|last| self.within.contains(&last.commit)) else {
            return Ok(None);
        };
        if task.state() != State::Complete {
            return Ok(None);
        }
        self.result.tasks.push(VerifiedTask {
            task: task.id.clone(),
            branch: run.scope.branch.clone(),
            session: run.start.as_ref().map(|start| start.session.clone()),
            commit: last.commit,
        });
        if task.is_unverified {
            let why = "the landed commits are not in this shallow clone";
            self.result.unchecked(VerifyCheck::Steps, Some(&task.id), why);
            return Ok(None);
        }
        let landing = task.events.iter().rfind(|event| event.status() == Status::Merge);
        self.check_steps(task, landing)?;
        if !protections.is_empty() {
            self.check_protected(run, protections, task)?;
        }
        if let Some(landing) = landing {
            self.check_landing(&task.id, landing)?;
        }
        Ok(landing.cloned())
    }

    /// Requires a valid signature of a known signer for task commits and for the records that were used.
    fn check_signatures(&mut self, events: &[Event]) -> Result<(), VerifyError> {
        let commits = events.iter().map(|event| (event.commit, event.task()));
        let records = self.records_used.iter().map(|record| (*record, None));
        let all: Vec<(Oid, Option<&TaskId>)> = commits.chain(records).collect();
        let ids: Vec<Oid> = all.iter().map(|(commit, _)| *commit).collect();
        for (commit, why) in self.repository.find_unsigned(&ids)? {
            let task = all.iter().find(|(known, _)| *known == commit).and_then(|(_, task)| *task);
            self.result.problem(VerifyCheck::Signature, task, Some(commit), why);
        }
        Ok(())
    }

    fn load(&self, commit: Oid) -> Result<RawCommit, GitError> {
        let loaded = self.repository.load_commits(&[commit])?.pop();
        loaded.ok_or_else(|| GitError::Unknown(commit.to_string(), "commit"))
    }

    /// The paths that differ between the trees of two commits.
    fn changed_paths(&self, before: Oid, after: Oid) -> Result<Vec<String>, GitError> {
        let [before, after] = [self.repository.tree_of(before)?, self.repository.tree_of(after)?];
        self.differing_paths(before, after)
    }

    /// The paths that differ between two trees.
    fn differing_paths(&self, before: Oid, after: Oid) -> Result<Vec<String>, GitError> {
        let changes = self.repository.changes(before, after)?.into_iter();
        Ok(changes.map(|change| String::from_utf8_lossy(&change.path).into_owned()).collect())
    }
}

/// The newest run of a branch in a history.
enum ScannedRun {
    /// It is known. It may have no start.
    Clear(Box<Run>),
    /// It is not clear which one it is. There are clear ones on these sides of a merge.
    Unclear(Vec<Oid>),
}

/// The branches that events name, in their order.
fn branches_of(events: &[Event]) -> Vec<BranchName> {
    let mut branches: Vec<BranchName> = Vec::new();
    for event in events {
        if !branches.contains(event.branch()) {
            branches.push(event.branch().clone());
        }
    }
    branches
}

/// The names of a few paths, and how many more there are.
fn list_paths(paths: &[String]) -> String {
    const MAX_PATHS: usize = 3;
    let quoted: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
    first_of(&quoted, MAX_PATHS)
}

/// The longest subject that is shown, in characters.
const LONGEST_SUBJECT: usize = 72;

impl Verifier<'_> {
    /// Lists commits after the start of the run and before its last task commit, as far as they are in the range. Clean
    /// merges bring in nothing that is not listed itself.
    fn list_outside(&mut self, run: &Run, protections: &[ProtectedSince]) -> Result<(), VerifyError> {
        let Some(start) = &run.start else { return Ok(()) };
        let mut revisions: Vec<String> =
            run.tasks.iter().filter_map(|task| task.last()).map(|event| event.commit.to_string()).collect();
        if revisions.is_empty() {
            return Ok(());
        }
        revisions.push(format!("^{}", start.commit));
        let listed: HashSet<Oid> = self.result.outside.iter().map(|known| known.commit).collect();
        for commit in self.repository.stream_commits(&revisions)? {
            let commit = commit?;
            if !self.within.contains(&commit.id)
                || message::claims_to_be_ours(commit.message())
                || listed.contains(&commit.id)
            {
                continue;
            }
            let merge = self.compare_merge(&commit, protections)?;
            if !merge.is_clean {
                self.add_outside(run, &commit, &merge);
            }
        }
        Ok(())
    }

    /// Lists merges that brought finished tasks to the branch of the run, that the run did not make, and that git would not have
    /// made like this. No gate ran on what they have added.
    fn list_merges_by_hand(&mut self, run: &Run, protections: &[ProtectedSince]) -> Result<(), VerifyError> {
        let Some(start) = &run.start else { return Ok(()) };
        let is_landed = |task: &TaskHistory| task.events.iter().any(|event| event.status() == Status::Merge);
        let finished = run.tasks.iter().filter(|task| task.state() == State::Complete && !is_landed(task));
        let finished: Vec<(&TaskId, Oid)> =
            finished.filter_map(|task| Some((&task.id, task.last()?.commit))).collect();
        if finished.is_empty() {
            return Ok(());
        }
        let revisions = [self.range.to.to_string(), format!("^{}", start.commit)];
        for commit in self.repository.stream_commits(&revisions)? {
            let commit = commit?;
            let parents: Vec<Oid> = commit.parents().collect();
            let ([onto, merged @ ..], true) = (&parents[..], self.within.contains(&commit.id)) else {
                continue;
            };
            if merged.is_empty()
                || message::claims_to_be_ours(commit.message())
                || !self.repository.is_ancestor(start.commit, *onto)?
            {
                continue;
            }
            let mut revisions: Vec<String> = merged.iter().map(ToString::to_string).collect();
            revisions.extend([format!("^{onto}"), format!("^{}", start.commit)]);
            let brought = self.repository.stream_commits(&revisions)?;
            let brought: HashSet<Oid> =
                brought.map(|found| Ok(found?.id)).collect::<Result<_, GitError>>()?;
            let tasks: Vec<&TaskId> =
                finished.iter().filter(|(_, last)| brought.contains(last)).map(|(task, _)| *task).collect();
            if tasks.is_empty() {
                continue;
            }
            let merge = self.compare_merge(&commit, protections)?;
            if merge.is_clean {
                continue;
            }
            for task in tasks {
                let why = format!(
                    "{}, which the run did not make, merged it with other changes, and no gates ran on the result",
                    commit.id.short()
                );
                self.result.unchecked(VerifyCheck::Gates, Some(task), why);
            }
            if !self.result.outside.iter().any(|known| known.commit == commit.id) {
                self.add_outside(run, &commit, &merge);
            }
        }
        Ok(())
    }

    fn add_outside(&mut self, run: &Run, commit: &RawCommit, merge: &ComparedMerge) {
        self.result.outside.push(OutsideCommit {
            commit: commit.id,
            branch: run.scope.branch.clone(),
            subject: subject_of(commit),
            changed: merge.changed.iter().map(|path| plain_line(path)).collect(),
            protected: merge.protected.iter().map(|path| plain_line(path)).collect(),
        });
    }

    /// Compares a commit with git's own merge of its parents.
    fn compare_merge(
        &self,
        commit: &RawCommit,
        protections: &[ProtectedSince],
    ) -> Result<ComparedMerge, VerifyError> {
        let mut compared = ComparedMerge::default();
        let parents: Vec<Oid> = commit.parents().collect();
        let [ours, theirs] = parents[..] else { return Ok(compared) };
        let (merged, is_conflicted) = match self.repository.merge(ours, theirs)? {
            Merge::Clean(tree) => (tree, false),
            Merge::Conflicted(tree, _) => (tree, true),
        };
        let tree = self.repository.tree_of(commit.id)?;
        compared.is_clean = !is_conflicted && merged == tree;
        if !compared.is_clean {
            compared.changed = self.differing_paths(merged, tree)?;
            if let Some(protection) = protections.last() {
                compared.protected = protection.list_changes(self.repository, (merged, tree))?;
            }
        }
        Ok(compared)
    }
}

/// A commit that is compared with git's own merge of its parents.
#[derive(Default)]
struct ComparedMerge {
    /// Whether it is this merge.
    is_clean: bool,
    /// The paths that differ.
    changed: Vec<String>,
    /// The protected ones among them.
    protected: Vec<String>,
}

fn subject_of(commit: &RawCommit) -> String {
    let text = String::from_utf8_lossy(commit.message()).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    plain_text(line).chars().take(LONGEST_SUBJECT).collect()
}
