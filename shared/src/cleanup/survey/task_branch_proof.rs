//! Which branches are ours. The form of a name is no proof: anyone can choose it.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use super::{CleanupFacts, branch_of, readable};
use crate::{
    cleanup::{Candidate, CandidatePlace, CleanupError, What},
    git::{LogLine, RefFacts},
    name::{Oid, TaskId},
    queue::TICKETS,
    record::Unfinished,
    worktree::PlaceKind,
};

/// A branch, local or at a remote, whose name has the form of a task branch.
pub(super) struct TaskBranch<'a> {
    pub(super) run: &'a str,
    pub(super) task: TaskId,
    pub(super) found: &'a RefFacts,
}

/// How many bytes of the start of a reflog are read.
const HEAD: u64 = 16 * 1024;
/// How many of the newest landings are searched.
const MOST: usize = 10_000;
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
        subject.starts_with(&format!("task({}@{}@", readable(self.run), self.task))
    }
}

impl CleanupFacts<'_> {
    /// The full names of those of these branches that git arborist created: a commit of the task is on it, after the
    /// point where it left the branches that stay; or its reflog, worktree, ticket or mark proves it.
    pub(super) fn find_ours(&self, branches: &[TaskBranch<'_>]) -> Result<HashSet<String>, CleanupError> {
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
            repository.merged_into(&self.targets_of(&open), MOST)?
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
            let spot = CandidatePlace::Ref { name: named.found.name.clone(), tip: named.found.target };
            let mut candidate = Candidate::new(What::Branch, spot, String::new());
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
        let is_marked =
            |place: &String| self.refs.below(&format!("{}{place}/", Unfinished::REFS)).next().is_some();
        let is_in_worktree = || {
            let ours =
                self.places.iter().filter(|place| matches!(place.kind, PlaceKind::Work | PlaceKind::Outside));
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
        let _ = file.take(HEAD).read_to_end(&mut head);
        let text = String::from_utf8_lossy(&head);
        text.lines()
            .any(|line| line.split_once('\t').is_some_and(|(_, message)| message.starts_with(OUR_PREFIX)))
    }
}
