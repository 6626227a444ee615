//! Finished tasks that a person merged, and whose changes are not on the run's branch all the same: the merge was
//! reverted, or took nothing of the task (`git merge -s ours`). Content decides here, because ancestry would call them
//! landed. A squash merge is recognised by its content too.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{
    Event, State, TaskHistory,
    graph::Graph,
    taken_back::{Line, LineCommit, by_path},
};
use crate::{
    git::{GitError, Merge, RawCommit, Repository, TreeChange},
    message::{Key, Status, visible},
    name::{Oid, RepoName, TaskId},
    process::shell_word,
};

/// How the changes of a merged task were lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedMerge {
    /// The merge that a person made.
    pub merge: Oid,
    /// The commit on the run's branch that took the changes back; the merge itself if it took nothing of the task.
    pub by: Oid,
    /// Whether only a part was taken back, after a squash merge.
    #[serde(default)]
    pub is_partial: bool,
    /// The repository of the workspace, if it is not the plan's.
    #[serde(default)]
    pub place: Option<Box<RevertedPlace>>,
}

/// Another repository of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedPlace {
    /// Its name.
    pub repo: RepoName,
    /// A checkout of the session's branch there.
    pub path: PathBuf,
}

/// A merge of a task by a person, whose changes are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandMerge {
    /// The merge.
    pub merge: Oid,
    /// Files of the task that are again as they were before the merge.
    pub taken_back: Vec<String>,
}

impl HandMerge {
    /// What was taken back, if a part was.
    #[must_use]
    pub fn taken_back_words(&self) -> Option<String> {
        let files = self.taken_back.join(", ");
        (!files.is_empty()).then(|| format!("a part of it was reverted later: {files}"))
    }
}

impl RevertedMerge {
    /// Whether the merge took nothing of the task.
    #[must_use]
    fn is_empty_merge(&self) -> bool {
        self.merge == self.by
    }

    /// What happened, as the end of a sentence about the task.
    #[must_use]
    pub fn words(&self) -> String {
        let merge = match &self.place {
            Some(place) => format!("in {}, {}", place.repo, self.merge.short()),
            None => self.merge.short(),
        };
        match self.is_empty_merge() {
            true => format!("merged and reverted: {merge} merged it without its changes"),
            false if self.is_partial => {
                format!(
                    "merged and partly reverted: {merge} merged it, and {} reverted a part of it",
                    self.by.short()
                )
            }
            false => format!("merged and reverted: {merge} merged it, and {} reverted it", self.by.short()),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self, task: &TaskId) -> String {
        let again = format!("do it again with: git arborist reset {task}");
        match self.is_empty_merge() {
            true => format!("{again}\nor leave it out: skip it in the plan"),
            false => {
                let git = match &self.place {
                    Some(place) => format!("git -C {}", shell_word(&place.path.to_string_lossy())),
                    None => "git".to_owned(),
                };
                let by = self.by.short();
                format!(
                    "bring it back with: {git} revert {by}\n{again}\nor leave it out: skip it in the plan"
                )
            }
        }
    }
}

/// The completion of a task that came with a merge.
struct Merged {
    /// The position of the merge on the line.
    at: usize,
    /// The commit that the task began from.
    base: Oid,
}

/// The merges that are no landings of ours and brought finished tasks.
pub(super) struct HandMerges {
    /// The first-parent line, the tip first.
    line: Vec<LineCommit>,
    /// By the commit that completed the task.
    merged: HashMap<Oid, Merged>,
}

impl HandMerges {
    /// Finds them in the history of `tip`, without looking at any file. `has_branches` says whether tasks have their
    /// own branches, which may have been merged as one commit.
    pub(super) fn find(graph: &Graph, tip: Oid, has_branches: bool) -> Self {
        let mut found = Self { line: Vec::new(), merged: HashMap::new() };
        // In a chain, everything is on the line.
        if graph.is_chain() && !has_branches {
            return found;
        }
        let mut nodes = Vec::new();
        let mut next = graph.find(tip);
        while let Some(node) = next {
            nodes.push(node);
            next = graph.first_parent(node);
        }
        let mut owner: Vec<Option<usize>> = vec![None; graph.entries.len()];
        for (at, node) in nodes.iter().enumerate().rev() {
            let brought = brought_by(graph, *node, at, &mut owner);
            let entry = graph.entry(*node);
            let task_of = |node: &u32| graph.entry(*node).event().and_then(|event| event.task()).cloned();
            if entry.event().is_none() {
                let completions = brought.iter().filter(|node| {
                    graph.entry(**node).event().is_some_and(|event| event.status() == Status::Complete)
                });
                for completion in completions {
                    if let Some(base) = base_of(graph, *completion, |node| owner[node as usize] == Some(at)) {
                        found.merged.insert(graph.entry(*completion).id, Merged { at, base });
                    }
                }
            }
            let tasks = brought.iter().filter_map(task_of).collect();
            let is_users_commit = entry.event().is_none();
            found.line.push(LineCommit {
                id: entry.id,
                first_parent: entry.first_parent,
                tasks,
                is_users_commit,
            });
        }
        found.line.reverse();
        found
    }

    /// Marks the tasks whose changes are not in the tip.
    pub(super) fn mark(self, repository: &Repository, tasks: &mut [TaskHistory]) -> Result<(), GitError> {
        // In a shallow clone, files of old commits may be missing.
        if self.line.is_empty() || repository.is_shallow {
            return Ok(());
        }
        let line = Line { repository, commits: &self.line };
        for history in tasks.iter_mut().filter(|history| history.state() == State::Complete) {
            let Some(completion) = history.last().map(|event| event.commit) else { continue };
            if history.is_landed {
                if let Some(merged) = self.merged.get(&completion) {
                    mark_merged(&line, history, completion, merged)?;
                }
            } else if let Some(reverted) = find_reverted_squash(&line, history, completion)? {
                history.state.state = State::Reverted;
                history.reverted = Some(reverted);
            }
        }
        Ok(())
    }
}

/// Compares the changes of a merged task with the tip. Our own reports are not its work.
fn mark_merged(
    line: &Line<'_>,
    history: &mut TaskHistory,
    completion: Oid,
    merged: &Merged,
) -> Result<(), GitError> {
    let merge = &line.commits[merged.at];
    let Some(before) = merge.first_parent else { return Ok(()) };
    let work: HashSet<Vec<u8>> =
        without_reports(line.changes(merged.base, completion)?, history).map(|change| change.path).collect();
    let mut own = line.changes(before, completion)?;
    own.retain(|change| work.contains(&change.path));
    let found = line.follow(merged.at, before, &own, &history.id)?;
    let (merge, is_partial) = (merge.id, found.taken_back.len() < found.count);
    match found.by.filter(|_| !is_partial) {
        Some(by) => {
            history.state.state = State::Reverted;
            history.reverted = Some(RevertedMerge { merge, by, is_partial, place: None });
        }
        None => {
            let shown = |path: &Vec<u8>| visible(&String::from_utf8_lossy(path));
            let taken_back = found.taken_back.iter().map(shown).collect();
            history.merged_by_hand = Some(HandMerge { merge, taken_back });
        }
    }
    Ok(())
}

/// Finds a commit that brought what a merge of the task would have brought, and whose changes were taken back since: a
/// squash merge that was reverted. The task has not landed, and would land again.
fn find_reverted_squash(
    line: &Line<'_>,
    history: &TaskHistory,
    completion: Oid,
) -> Result<Option<RevertedMerge>, GitError> {
    let Some(first) = history.events.first() else { return Ok(None) };
    let first = line.repository.load_commits(&[first.commit])?;
    let Some(base) = first.first().and_then(|commit| commit.parents().next()) else { return Ok(None) };
    let since = line.commits.iter().take_while(|commit| commit.id != base).enumerate();
    let foreign: Vec<(usize, &LineCommit)> = since.filter(|(_, commit)| commit.is_users_commit).collect();
    if foreign.is_empty() {
        return Ok(None);
    }
    let work: HashSet<Vec<u8>> =
        without_reports(line.changes(base, completion)?, history).map(|change| change.path).collect();
    for (at, commit) in foreign {
        let Some(before) = commit.first_parent else { continue };
        let brought = by_path(line.changes(before, commit.id)?);
        if brought.keys().all(|path| !work.contains(path)) {
            continue;
        }
        let Ok(Merge::Clean(tree)) = line.repository.merge(before, completion) else { continue };
        let wanted = line.repository.changes(line.repository.tree_of(before)?, tree)?;
        let wanted: Vec<TreeChange> = without_reports(wanted, history).collect();
        let is_there =
            |change: &TreeChange| brought.get(&change.path).is_some_and(|found| found.after == change.after);
        if wanted.is_empty() || !wanted.iter().all(is_there) {
            continue;
        }
        let found = line.follow(at, before, &wanted, &history.id)?;
        let is_partial = found.taken_back.len() < found.count;
        return Ok(found.by.map(|by| RevertedMerge { merge: commit.id, by, is_partial, place: None }));
    }
    Ok(None)
}

/// How many commits since a merge are looked at in another repository.
const MAX_LINE: usize = 1000;

impl TaskHistory {
    /// Compares a landed task, whose branch is at `tip`, with the session's branch in another repository of the
    /// workspace.
    pub fn compare_elsewhere(
        &mut self,
        session_branch: &mut FirstParentLine<'_>,
        tip: Oid,
        place: RevertedPlace,
    ) -> Result<(), GitError> {
        let repository = session_branch.repository;
        let is_done = self.has_landed();
        if !is_done || repository.is_shallow {
            return Ok(());
        }
        let commits = session_branch.down_to(tip, &self.id)?;
        let line = Line { repository, commits: &commits };
        let Some(merge) = commits.last() else { return Ok(()) };
        let Some(before) = merge.first_parent else { return Ok(()) };
        let mut own = line.changes(before, merge.id)?;
        // A merge that took nothing is compared with what it would have brought.
        if own.is_empty()
            && let Merge::Clean(tree) = repository.merge(before, tip)?
        {
            own = repository.changes(repository.tree_of(before)?, tree)?;
        }
        let found = line.follow(commits.len() - 1, before, &own, &self.id)?;
        let is_partial = found.taken_back.len() < found.count;
        match found.by {
            Some(by) if !is_partial => {
                self.state.state = State::Reverted;
                self.reverted =
                    Some(RevertedMerge { merge: merge.id, by, is_partial, place: Some(Box::new(place)) });
            }
            Some(_) => {
                let shown =
                    |path: &Vec<u8>| format!("{}:{}", place.repo, visible(&String::from_utf8_lossy(path)));
                let taken_back = found.taken_back.iter().map(shown).collect();
                self.merged_by_hand = Some(HandMerge { merge: merge.id, taken_back });
            }
            None => {}
        }
        Ok(())
    }
}

/// The first-parent line of a commit in another repository of the workspace, read as far as the tasks need it, and once
/// for all of them.
#[derive(Debug)]
pub struct FirstParentLine<'a> {
    repository: &'a Repository,
    commits: Vec<LineCommit>,
    next: Option<Oid>,
}

impl<'a> FirstParentLine<'a> {
    /// The line of `head`.
    #[must_use]
    pub fn new(repository: &'a Repository, head: Oid) -> Self {
        Self { repository, commits: Vec::new(), next: Some(head) }
    }

    /// The part down to the commit that brought `tip`. If the branch was moved to `tip` without a merge, that commit is
    /// `tip`, on top of what the task began from. Empty if the line does not contain `tip`.
    fn down_to(&mut self, tip: Oid, task: &TaskId) -> Result<Vec<LineCommit>, GitError> {
        let mut count = 0;
        while let Some(commit) = self.get(count)? {
            let id = commit.id;
            if id == tip || !self.repository.is_ancestor(tip, id)? {
                break;
            }
            count += 1;
        }
        let mut line = self.commits[..count].to_vec();
        if line.last().is_some_and(|last| last.first_parent == Some(tip)) {
            let tasks = HashSet::new();
            line.push(LineCommit {
                id: tip,
                first_parent: self.find_base(tip, task)?,
                tasks,
                is_users_commit: true,
            });
        }
        Ok(line)
    }

    fn get(&mut self, index: usize) -> Result<Option<&LineCommit>, GitError> {
        while self.commits.len() <= index.min(MAX_LINE - 1)
            && let Some(id) = self.next
        {
            let Some(commit) = self.repository.load_commits(&[id])?.pop() else { break };
            let parents: Vec<Oid> = commit.parents().collect();
            let merged = self.repository.load_commits(parents.get(1..).unwrap_or_default())?;
            let tasks = merged.iter().chain([&commit]).filter_map(task_of).collect();
            self.next = parents.first().copied();
            self.commits.push(LineCommit { id, first_parent: self.next, tasks, is_users_commit: true });
        }
        Ok(self.commits.get(index))
    }

    /// The parent of the first commit of a task that ends with `tip`.
    fn find_base(&self, tip: Oid, task: &TaskId) -> Result<Option<Oid>, GitError> {
        let (mut base, mut next) = (None, Some(tip));
        for _ in 0..MAX_LINE {
            let Some(commit) = self.repository.load_commits(next.as_slice())?.pop() else { break };
            if task_of(&commit).as_ref() != Some(task) {
                break;
            }
            next = commit.parents().next();
            base = next;
        }
        Ok(base)
    }
}

fn task_of(commit: &RawCommit) -> Option<TaskId> {
    Event::of(commit).and_then(|event| event.task().cloned())
}

fn without_reports(changes: Vec<TreeChange>, history: &TaskHistory) -> impl Iterator<Item = TreeChange> {
    let events = history.events.iter().chain(&history.cancelled);
    let reports = events.filter_map(|event| event.trailers.get(Key::Report));
    let reports: HashSet<Vec<u8>> = reports.map(|report| report.as_bytes().to_vec()).collect();
    changes.into_iter().filter(move |change| !reports.contains(&change.path))
}

/// The commits that came to the line with the commit at `at`: its ancestors without an owner yet, and itself.
fn brought_by(graph: &Graph, node: u32, at: usize, owner: &mut [Option<usize>]) -> Vec<u32> {
    let (mut brought, mut open) = (Vec::new(), vec![node]);
    while let Some(node) = open.pop() {
        if owner[node as usize].is_none() {
            owner[node as usize] = Some(at);
            brought.push(node);
            open.extend(graph.parents(node));
        }
    }
    brought
}

/// The parent of the first commit of the task among those that came with the merge.
fn base_of(graph: &Graph, completion: u32, is_brought: impl Fn(u32) -> bool) -> Option<Oid> {
    let task = graph.entry(completion).event()?.task()?;
    let (mut first, mut next) = (completion, Some(completion));
    while let Some(node) = next.filter(|node| is_brought(*node)) {
        if graph.entry(node).event().and_then(|event| event.task()) == Some(task) {
            first = node;
        }
        next = graph.first_parent(node);
    }
    graph.entry(first).first_parent
}
