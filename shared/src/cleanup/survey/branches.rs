//! The branches of tasks, here and at remotes, and the reasons to keep them.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use super::{CleanupFacts, branch_of};
use crate::{
    cleanup::{Candidate, CandidateKind, CandidatePlace, CleanupError, InUse, saved::reflog_time},
    git::{LogLine, RefFacts},
    name::{Oid, TASK_BRANCHES, TASK_REFS, TaskId, unescaped},
    queue::TICKETS,
    record::UnfinishedAttempt,
    worktree::RemainsKind,
};

/// A branch, local or at a remote, whose name has the form of a task branch.
pub(super) struct TaskBranch<'a> {
    pub(super) run: &'a str,
    pub(super) task: TaskId,
    pub(super) found: &'a RefFacts,
}

/// How many bytes of the start of a reflog are read.
const REFLOG_START: u64 = 16 * 1024;
/// How many of the newest landings are searched.
const MAX_LANDINGS: usize = 10_000;
/// The prefix of our reflog messages.
pub(super) const OUR_PREFIX: &str = "arborist: ";

impl<'a> TaskBranch<'a> {
    /// Parses `{run}/{task}`, the part after the prefix.
    pub(super) fn read(rest: &'a str, found: &'a RefFacts) -> Option<Self> {
        let (run, task) = rest.split_once('/')?;
        Some(Self { run, task: task.parse().ok()?, found })
    }

    /// Whether a commit with this subject is one of the task.
    fn is_task_subject(&self, subject: &str) -> bool {
        subject.starts_with(&format!("task({}@{}@", unescaped(self.run), self.task))
    }
}

impl CleanupFacts<'_> {
    /// The full names of those of these branches that git arborist created: a commit of the task is on it, after the
    /// point where it left the branches that stay; or its reflog, worktree, ticket or mark proves it.
    fn find_ours(&self, branches: &[TaskBranch<'_>]) -> Result<HashSet<String>, CleanupError> {
        let repository = self.sweep.repository;
        let (proved, open): (Vec<&TaskBranch<'_>>, Vec<&TaskBranch<'_>>) =
            branches.iter().partition(|named| self.is_proved(named));
        let mut ours: HashSet<String> = proved.iter().map(|named| named.found.name.clone()).collect();
        let tips: Vec<Oid> = open.iter().filter_map(|named| named.found.commit).collect();
        let kept = [self.refs.kept(), self.refs.copies()].concat();
        // With a damaged commit, each branch is asked for by itself. Nothing proves that the damaged one is ours.
        let one_by_one = |_| {
            let of_tip = |tip: &Oid| repository.log_between(&[*tip], &kept).unwrap_or_default();
            tips.iter().flat_map(of_tip).collect()
        };
        let loose = repository.log_between(&tips, &kept).unwrap_or_else(one_by_one);
        let landings = if open.is_empty() {
            HashMap::new()
        } else {
            repository.merged_into(&self.targets_of(&open), MAX_LANDINGS)?
        };
        let has_log_files = repository.has_files_backend;
        for named in open {
            let is_logged = || match has_log_files {
                true => Ok(false),
                false => repository
                    .read_reflog(&named.found.name)
                    .map(|log| log.iter().any(|message| message.starts_with(OUR_PREFIX))),
            };
            if self.has_task_commit(named, &loose, &landings)? || is_logged()? {
                ours.insert(named.found.name.clone());
            }
        }
        Ok(ours)
    }

    /// Whether a commit of the task is among those of its branch that are nowhere else, or among their ancestors that
    /// were merged.
    fn has_task_commit(
        &self,
        named: &TaskBranch<'_>,
        loose: &HashMap<Oid, LogLine>,
        landings: &HashMap<Oid, Oid>,
    ) -> Result<bool, CleanupError> {
        let mut open: Vec<Oid> = named.found.commit.into_iter().collect();
        let mut seen: HashSet<Oid> = open.iter().copied().collect();
        while let Some(commit) = open.pop() {
            match (loose.get(&commit), landings.get(&commit)) {
                (Some(line), _) if named.is_task_subject(&line.subject) => return Ok(true),
                (Some(line), _) => open.extend(line.parents.iter().filter(|parent| seen.insert(**parent))),
                (None, Some(onto)) => {
                    let landed = self.sweep.repository.log_between(&[commit], &[*onto])?;
                    if landed.values().any(|line| named.is_task_subject(&line.subject)) {
                        return Ok(true);
                    }
                }
                (None, None) => {}
            }
        }
        Ok(false)
    }

    /// The branches that these may have landed on.
    fn targets_of(&self, branches: &[&TaskBranch<'_>]) -> Vec<Oid> {
        let mut targets: Vec<Oid> = Vec::new();
        for named in branches {
            let place = CandidatePlace::Ref { name: named.found.name.clone(), tip: named.found.target };
            let mut candidate = Candidate::new(CandidateKind::Branch, place, String::new());
            candidate.run = Some(named.run.to_owned());
            targets.extend(self.refs.targets(&candidate).into_iter().map(|(_, tip)| tip));
        }
        targets.sort();
        targets.dedup();
        targets
    }

    fn is_proved(&self, named: &TaskBranch<'_>) -> bool {
        let TaskBranch { run, task, found } = named;
        if named.is_task_subject(&found.subject)
            || self.refs.find(&format!("{TICKETS}{run}/{task}")).is_some()
        {
            return true;
        }
        let Some(branch) = branch_of(&found.name) else { return false };
        let marks = [format!("{run}/{task}"), format!("{}/{task}", branch.component())];
        let is_marked = |place: &String| {
            self.refs.below(&format!("{}{place}/", UnfinishedAttempt::REFS)).next().is_some()
        };
        let is_in_worktree = || {
            let ours = self
                .places
                .iter()
                .filter(|place| matches!(place.kind, RemainsKind::Work | RemainsKind::Outside));
            ours.filter_map(|place| place.branch()).any(|known| *known == branch)
        };
        marks.iter().any(is_marked) || is_in_worktree() || self.is_in_log(&found.name)
    }

    /// Whether we ever wrote this ref, according to its reflog, if git keeps that in a file.
    fn is_in_log(&self, name: &str) -> bool {
        let Ok(file) = crate::safe_files::open(&self.sweep.repository.common_dir.join("logs").join(name))
        else {
            return false;
        };
        let mut head = Vec::new();
        let _ = file.take(REFLOG_START).read_to_end(&mut head);
        let text = String::from_utf8_lossy(&head);
        text.lines()
            .any(|line| line.split_once('\t').is_some_and(|(_, message)| message.starts_with(OUR_PREFIX)))
    }
}

pub(super) const UNPROVED: &str = "nothing proves that git arborist made it";
/// The prefix of all our branches, of tasks and sessions.
pub(super) const OURS: &str = "refs/heads/arborist/";

impl CleanupFacts<'_> {
    pub(super) fn branches(&self) -> Result<Vec<Candidate>, CleanupError> {
        let is_of_session =
            |found: &RefFacts| self.refs.is_session_branch(&found.name) || self.is_recorded_elsewhere(found);
        let here = self.refs.below(OURS).filter(|found| !is_of_session(found));
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for found in here {
            match found.name.strip_prefix(TASK_REFS).and_then(|rest| TaskBranch::read(rest, found)) {
                Some(one) => named.push(one),
                None => others.push(unnamed(found)),
            }
        }
        let ours = self.find_ours(&named)?;
        let mut found: Vec<Candidate> = named.iter().filter_map(|named| self.branch(named, &ours)).collect();
        found.extend(others);
        if self.sweep.options.cleans_remotes {
            for remote in self.sweep.repository.list_remotes()? {
                found.extend(self.remote_branches(&remote)?);
                found.extend(self.remote_sessions(&remote));
            }
        }
        Ok(found)
    }

    fn remote_branches(&self, remote: &str) -> Result<Vec<Candidate>, CleanupError> {
        let prefix = format!("refs/remotes/{remote}/{TASK_BRANCHES}");
        let there = self.refs.below(&prefix);
        let named: Vec<TaskBranch<'_>> =
            there.filter_map(|found| TaskBranch::read(found.name.strip_prefix(&prefix)?, found)).collect();
        let ours = self.find_ours(&named)?;
        Ok(named.iter().map(|named| self.remote_branch(remote, named, &ours)).collect())
    }

    fn branch(&self, named: &TaskBranch<'_>, ours: &HashSet<String>) -> Option<Candidate> {
        let found = named.found;
        let branch = branch_of(&found.name)?;
        let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = self.task_branch(named, place, ours);
        candidate.time = candidate.time.max(reflog_time(&self.sweep.repository.common_dir, &found.name));
        candidate.owners.push(branch.to_string());
        if self.going_on.iter().any(|(_, going_on)| going_on.branches.contains(&branch)) {
            let what = self.going_on.iter().find(|(_, going_on)| going_on.branches.contains(&branch));
            candidate.in_use.extend(what.map(|(_, going_on)| InUse::OperationInProgress(going_on.what)));
        }
        if self.unpushed.contains(&found.name) {
            let upstream = found.upstream.as_deref().unwrap_or_default();
            let upstream = upstream.strip_prefix("refs/remotes/").unwrap_or(upstream);
            candidate.in_use.push(InUse::Unpushed(upstream.to_owned()));
        }
        self.add_worker_facts(&mut candidate, &branch, &named.task);
        Some(candidate)
    }

    fn remote_branch(&self, remote: &str, named: &TaskBranch<'_>, ours: &HashSet<String>) -> Candidate {
        let name = format!("{TASK_REFS}{}/{}", named.run, named.task);
        let place = CandidatePlace::Remote { remote: remote.to_owned(), name, tip: named.found.target };
        let mut candidate = self.task_branch(named, place, ours);
        candidate.what = CandidateKind::RemoteBranch;
        candidate.name = format!("{remote}/{}", candidate.name);
        candidate
    }

    /// The facts that are the same for a local branch and one at a remote.
    fn task_branch(
        &self,
        named: &TaskBranch<'_>,
        place: CandidatePlace,
        ours: &HashSet<String>,
    ) -> Candidate {
        let TaskBranch { run, task, found } = named;
        let mut candidate =
            Candidate::new(CandidateKind::Branch, place, format!("{}/{task}", unescaped(run)));
        let branch = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name).to_owned();
        candidate.owners = vec![task.to_string(), format!("{run}/{task}"), candidate.name.clone(), branch];
        candidate.run = Some((*run).to_owned());
        candidate.time = found.time;
        if !ours.contains(&found.name) {
            candidate.in_use.push(InUse::Foreign(UNPROVED.into()));
        }
        self.add_queue_facts(&mut candidate, run, task);
        self.keep_for_sessions(&mut candidate);
        self.add_run_facts(&mut candidate);
        if found.commit.is_none() {
            candidate.unknown.push("what it points at".into());
        }
        candidate
    }
}

/// A branch below our prefix whose name does not have our form. It is listed, and it stays.
fn unnamed(found: &RefFacts) -> Candidate {
    let name = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name);
    let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
    let mut candidate = Candidate::new(CandidateKind::Branch, place, name.to_owned());
    candidate.owners = vec![name.to_owned()];
    candidate.time = found.time;
    candidate.in_use.push(InUse::Foreign(UNPROVED.into()));
    candidate
}
