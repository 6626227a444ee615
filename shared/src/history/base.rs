//! The base of a task's work: the tree without anything that the task added. Everything that judges a task compares
//! with it, so it is computed from commits alone and by this function alone.
//!
//! A plain comparison with the commit before the task's first one would be wrong in both directions. It would blame the
//! task for commits of others that came in between. And where attempts are counted from the beginning again (after a
//! reset, a revert, or a restored turn) it would start too late. So the base is computed commit by commit, oldest
//! first:
//!
//! - Before the task's first commit, the base is the commit's own tree.
//! - A commit of the task leaves the base as it is.
//! - Any other commit applies its changes to the base, by a three-way merge. On a conflict the base keeps its version:
//!   a reviewer then sees more than the task has added, never less.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Event, taken_back::by_path};
use crate::{
    git::{GitError, RawCommit, Repository, TreeChange},
    message::{Key, Status},
    name::{Oid, SessionId, TaskId},
};

/// The heading in the message of a reset that restores the tree of an earlier turn.
pub const BROUGHT_BACK: &str = "Brought back:";

/// The task whose work is meant, and where it ends.
#[derive(Debug, Clone, Copy)]
pub struct TaskWork<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// The session of the run.
    pub session: &'a SessionId,
    /// The commit that the run began with.
    pub start: Oid,
    /// The newest commit of the branch that the task works on.
    pub tip: Oid,
}

/// The state that a task's work is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBase {
    /// The commit before the task's first one.
    pub commit: Oid,
    /// The tree of the tip without anything that the task added.
    pub tree: Oid,
}

/// Paths that both the task and others have changed, in ways that cannot be merged.
pub type Conflicts = BTreeSet<Vec<u8>>;

/// The relevant parts of a commit.
#[derive(Debug)]
struct Node {
    tree: Oid,
    parents: Vec<Oid>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A step or a turn of the task.
    Own,
    /// A reset that restores the tree of this commit.
    Back(Oid),
    /// A commit of others, or a plain reset: its changes are not work of the task.
    Other,
}

/// The base at a commit after the task has begun: the changes from `from` to the commit's tree, applied to `base`. The
/// merge is delayed, because consecutive foreign commits need only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BaseState {
    from: Oid,
    base: Oid,
    commit: Oid,
}

impl WorkBase {
    /// The base of a task without commits before `commit`, whose tree is `tree`.
    #[must_use]
    pub fn fresh(commit: Oid, tree: Oid) -> Self {
        Self { commit, tree }
    }

    /// Computes it from history.
    pub fn find(repository: &Repository, work: TaskWork<'_>) -> Result<Self, GitError> {
        Self::find_with_conflicts(repository, work).map(|(base, _)| base)
    }

    /// Like [`Self::find`], and returns the paths in which it differs from commits of others because of conflicts.
    pub fn find_with_conflicts(
        repository: &Repository,
        work: TaskWork<'_>,
    ) -> Result<(Self, Conflicts), GitError> {
        let graph = Graph::load(repository, work)?;
        let mut conflicts = Conflicts::new();
        let mut begun: HashMap<Oid, BaseState> = HashMap::new();
        for id in graph.oldest_first(work.tip) {
            if let Some(found) = graph.step(repository, id, &begun, &mut conflicts)? {
                begun.insert(id, found);
            }
        }
        let tree = repository.tree_of(work.tip)?;
        let base = match begun.get(&work.tip) {
            Some(found) => {
                let tree = apply_difference(repository, found.from, tree, found.base, &mut conflicts)?;
                Self { commit: found.commit, tree }
            }
            None => Self::fresh(work.tip, tree),
        };
        Ok((base, conflicts))
    }
}

/// The commits of a run, with those of the sessions that it replays.
struct Graph<'a> {
    task: &'a TaskId,
    sessions: HashSet<SessionId>,
    nodes: HashMap<Oid, Node>,
}

impl<'a> Graph<'a> {
    fn load(repository: &Repository, work: TaskWork<'a>) -> Result<Self, GitError> {
        let sessions = HashSet::from([work.session.clone()]);
        let mut graph = Self { task: work.task, sessions, nodes: HashMap::new() };
        let (mut tip, mut start) = (work.tip, Some(work.start));
        while let Some(found) = start {
            let first = repository.load_commits(&[found])?.pop();
            let parents: Vec<Oid> = first.iter().flat_map(RawCommit::parents).collect();
            graph.read(repository, tip, &parents)?;
            let replayed = first.as_ref().and_then(Event::of).and_then(|event| replayed(&event));
            start = None;
            if let (Some(session), Some(parent)) = (replayed, parents.first()) {
                // A replay continues the work of another session, which counts as the task's own.
                tip = *parent;
                start = find_start(repository, tip, &session)?;
                graph.sessions.insert(session);
            }
        }
        Ok(graph)
    }

    /// Reads the commits from `tip` down, without `others` and their ancestors.
    fn read(&mut self, repository: &Repository, tip: Oid, others: &[Oid]) -> Result<(), GitError> {
        let hidden = others.iter().map(|id| format!("^{id}"));
        let revisions: Vec<String> = std::iter::once(tip.to_string()).chain(hidden).collect();
        let mut named = Vec::new();
        for commit in repository.stream_commits(&revisions)? {
            let commit = commit?;
            if self.nodes.contains_key(&commit.id) {
                continue;
            }
            let node = self.node(repository, &commit)?;
            if let Kind::Back(head) = node.kind {
                named.push(head);
            }
            self.nodes.insert(commit.id, node);
        }
        // A turn of a lane was restored: its commits need not be on this branch.
        for head in named {
            let is_here =
                || Ok::<_, GitError>(repository.find_commits(&[head])?.first() == Some(&Some(head)));
            if !self.nodes.contains_key(&head) && is_here()? {
                self.read(repository, head, others)?;
            }
        }
        Ok(())
    }

    fn node(&self, repository: &Repository, commit: &RawCommit) -> Result<Node, GitError> {
        let strange =
            || GitError::UnexpectedOutput { command: "rev-list".into(), what: format!("{}", commit.id) };
        let tree = commit.tree().ok_or_else(strange)?;
        let parents = commit.parents().collect();
        // The stream loses white space; only a message that may be ours has to be exact.
        let is_ours = commit.message().starts_with(b"task(");
        let event = if is_ours { Event::of(&repository.exact(commit.clone())?) } else { None };
        let kind = event.map_or(Kind::Other, |event| self.kind(&event));
        Ok(Node { tree, parents, kind })
    }

    fn kind(&self, event: &Event) -> Kind {
        if event.session().is_some_and(|session| !self.sessions.contains(&session)) {
            return Kind::Other;
        }
        match event.status() {
            Status::Reset => restored_commit(event).map_or(Kind::Other, Kind::Back),
            _ if event.task() == Some(self.task) => Kind::Own,
            _ => Kind::Other,
        }
    }

    /// All commits that were read below `tip`, parents first.
    fn oldest_first(&self, tip: Oid) -> Vec<Oid> {
        let (mut order, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![(tip, false)]);
        while let Some((id, is_done)) = open.pop() {
            let Some(node) = self.nodes.get(&id) else { continue };
            if is_done {
                order.push(id);
            } else if seen.insert(id) {
                open.push((id, true));
                open.extend(node.follows().map(|parent| (parent, false)));
            }
        }
        order
    }

    /// The base at one commit, given those of all its parents. `None` if the task has not begun.
    fn step(
        &self,
        repository: &Repository,
        id: Oid,
        begun: &HashMap<Oid, BaseState>,
        conflicts: &mut Conflicts,
    ) -> Result<Option<BaseState>, GitError> {
        let Some(node) = self.nodes.get(&id) else { return Ok(None) };
        if node.kind == Kind::Own {
            let Some(parent) = node.parents.first().copied() else { return Ok(None) };
            let found = match begun.get(&parent) {
                Some(before) => {
                    let tree = self.tree(repository, parent)?;
                    let base = apply_difference(repository, before.from, tree, before.base, conflicts)?;
                    BaseState { from: node.tree, base, commit: before.commit }
                }
                None => BaseState { from: node.tree, base: self.tree(repository, parent)?, commit: parent },
            };
            return Ok(Some(found));
        }
        let mut known: Vec<(Oid, BaseState)> = Vec::new();
        for parent in node.follows() {
            if let Some(found) = begun.get(&parent)
                && known.iter().all(|(_, other)| other != found)
            {
                known.push((parent, *found));
            }
        }
        let (Some((_, first)), false) = (known.first(), known.len() == 1) else {
            return Ok(known.first().map(|(_, only)| *only));
        };
        // The task has begun on several sides: the work of each side is removed, one after the other.
        let mut base = node.tree;
        for (parent, found) in &known {
            let tree = self.tree(repository, *parent)?;
            let without = apply_difference(repository, found.from, tree, found.base, conflicts)?;
            base = apply_difference(repository, tree, base, without, conflicts)?;
        }
        Ok(Some(BaseState { from: node.tree, base, commit: first.commit }))
    }

    fn tree(&self, repository: &Repository, id: Oid) -> Result<Oid, GitError> {
        self.nodes.get(&id).map_or_else(|| repository.tree_of(id), |node| Ok(node.tree))
    }
}

impl Node {
    /// The commits that this one takes its content from.
    fn follows(&self) -> impl Iterator<Item = Oid> {
        let back = if let Kind::Back(head) = self.kind { Some(head) } else { None };
        back.into_iter().chain(self.parents.iter().copied())
    }
}

/// The session that a run replays, according to its start.
fn replayed(start: &Event) -> Option<SessionId> {
    start.trailers.get(Key::Replays)?.parse().ok()
}

/// The start of a session's run in the history of `tip`.
fn find_start(repository: &Repository, tip: Oid, session: &SessionId) -> Result<Option<Oid>, GitError> {
    for commit in repository.stream_commits(&[tip.to_string()])? {
        let commit = commit?;
        if !commit.message().starts_with(b"task(") {
            continue;
        }
        let event = Event::of(&repository.exact(commit)?);
        let is_start = |event: &Event| event.status() == Status::RunStart;
        if let Some(event) =
            event.filter(|event| is_start(event) && event.session().as_ref() == Some(session))
        {
            return Ok(Some(event.commit));
        }
    }
    Ok(None)
}

/// The commit that a reset restores: `turn 3 of session 0a1b2c3d, <commit>; …`.
fn restored_commit(event: &Event) -> Option<Oid> {
    let sections = event.body().sections;
    let section = sections.iter().find(|section| section.heading == BROUGHT_BACK)?;
    section.text.split([' ', ',', ';', '\n']).filter_map(|word| word.parse().ok()).next_back()
}

/// The tree `to` without the difference between `from` and `base`: the changes from `from` to `to`, applied to `base`.
fn apply_difference(
    repository: &Repository,
    from: Oid,
    to: Oid,
    base: Oid,
    conflicts: &mut Conflicts,
) -> Result<Oid, GitError> {
    if from == to || base == to {
        return Ok(base);
    }
    if from == base {
        return Ok(to);
    }
    let foreign = by_path(repository.changes(from, to)?);
    let mut edits = Vec::new();
    for own in repository.changes(from, base)? {
        let after = match foreign.get(&own.path) {
            Some(change) => match merged(repository, &own, change)? {
                Merged::Joined(after) => after,
                Merged::Conflict => {
                    conflicts.insert(own.path.clone());
                    own.after
                }
            },
            None => own.after,
        };
        edits.push(TreeChange { after, ..own });
    }
    repository.tree_with(to, &edits)
}

/// The result for a file that both sides changed.
enum Merged {
    Joined(Option<(u32, Oid)>),
    /// The base's version stays.
    Conflict,
}

/// Merges a file that both sides changed. Attributes are not used, because an agent could have written them.
fn merged(repository: &Repository, own: &TreeChange, foreign: &TreeChange) -> Result<Merged, GitError> {
    if own.after == foreign.after {
        return Ok(Merged::Joined(own.after));
    }
    let (Some((mode, before)), Some((own_mode, base)), Some((other_mode, other))) =
        (own.before, own.after, foreign.after)
    else {
        return Ok(Merged::Conflict);
    };
    let is_file = |mode: u32| mode == 0o100_644 || mode == 0o100_755;
    if !(is_file(mode) && is_file(own_mode) && is_file(other_mode)) {
        return Ok(Merged::Conflict);
    }
    let mode = if own_mode == mode { other_mode } else { own_mode };
    if base == other || before == base {
        return Ok(Merged::Joined(Some((mode, other))));
    }
    if before == other {
        return Ok(Merged::Joined(Some((mode, base))));
    }
    let joined = repository.merge_blobs(base, before, other)?;
    Ok(joined.map_or(Merged::Conflict, |blob| Merged::Joined(Some((mode, blob)))))
}
