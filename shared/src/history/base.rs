//! The base of a task's work: the tree without anything that the task added. Everything that judges a task compares with
//! it, so it is computed from commits alone and by this function alone.
//!
//! A plain comparison with the commit before the task's first one would be wrong in both directions. It would blame the
//! task for commits of others that came in between, and where attempts are counted anew (a reset, a revert, another turn
//! brought back) it would start too late. So the base is computed commit by commit, from the oldest on:
//!
//! - Before the task's first commit, the base is the commit's own tree.
//! - A commit of the task leaves the base as it is.
//! - Any other commit takes its changes to the base, by a three-way merge. Where that conflicts, the base keeps its own
//!   version: a reviewer then sees more than the task has added, never less.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Event;
use crate::{
    git::{GitError, RawCommit, Repository, TreeChange},
    message::{Key, Status},
    name::{Oid, SessionId, TaskId},
};

/// The heading in the message of a reset that brings back the tree of an earlier turn.
pub const BROUGHT_BACK: &str = "Brought back:";

/// Whose work is meant, and where it ends.
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

/// What a task's work is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBase {
    /// The commit before the task's first one.
    pub commit: Oid,
    /// The tree of the tip without anything that the task added.
    pub tree: Oid,
}

/// Paths that the task and somebody else have both changed, in ways that cannot be joined.
pub type Conflicts = BTreeSet<Vec<u8>>;

/// A commit as far as it matters here.
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
    /// A reset that brings back what this commit holds.
    Back(Oid),
    /// Of somebody else, or a reset: what a reset changes is no work of the task.
    Other,
}

/// What is known of the base at a commit, once the task has begun there: the changes from `from` to the commit's tree,
/// carried to `base`. Kept unmerged, because a row of foreign commits needs one merge only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    from: Oid,
    base: Oid,
    commit: Oid,
}

impl WorkBase {
    /// Where nothing of a task was committed before `commit`, which holds `tree`.
    #[must_use]
    pub fn fresh(commit: Oid, tree: Oid) -> Self {
        Self { commit, tree }
    }

    /// Finds it in history.
    pub fn find(repository: &Repository, work: TaskWork<'_>) -> Result<Self, GitError> {
        Self::find_with_conflicts(repository, work).map(|(base, _)| base)
    }

    /// The same, with the paths where it has another version than commits of others, because these conflicted.
    pub fn find_with_conflicts(
        repository: &Repository,
        work: TaskWork<'_>,
    ) -> Result<(Self, Conflicts), GitError> {
        let graph = Graph::load(repository, work)?;
        let mut conflicts = Conflicts::new();
        let mut begun: HashMap<Oid, Begun> = HashMap::new();
        for id in graph.oldest_first(work.tip) {
            if let Some(found) = graph.step(repository, id, &begun, &mut conflicts)? {
                begun.insert(id, found);
            }
        }
        let tree = repository.tree_of(work.tip)?;
        let base = match begun.get(&work.tip) {
            Some(found) => {
                let tree = carry(repository, found.from, tree, (found.base, &mut conflicts))?;
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
                // A replay goes on with the work of another session, so that counts as the task's own.
                tip = *parent;
                start = find_start(repository, tip, &session)?;
                graph.sessions.insert(session);
            }
        }
        Ok(graph)
    }

    /// Reads the commits from `tip` down, without `others` and what they follow.
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
        // A turn of a lane was brought back: its commits need not be on this branch.
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
        let strange = || GitError::Strange { command: "rev-list".into(), what: format!("{}", commit.id) };
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
            Status::Reset => brought_back(event).map_or(Kind::Other, Kind::Back),
            _ if event.task() == Some(self.task) => Kind::Own,
            _ => Kind::Other,
        }
    }

    /// Everything below `tip` that was read, parents first.
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

    /// The base at one commit, given those of all that it follows. `None` where the task has not begun.
    fn step(
        &self,
        repository: &Repository,
        id: Oid,
        begun: &HashMap<Oid, Begun>,
        conflicts: &mut Conflicts,
    ) -> Result<Option<Begun>, GitError> {
        let Some(node) = self.nodes.get(&id) else { return Ok(None) };
        if node.kind == Kind::Own {
            let Some(parent) = node.parents.first().copied() else { return Ok(None) };
            let found = match begun.get(&parent) {
                Some(before) => {
                    let tree = self.tree(repository, parent)?;
                    let base = carry(repository, before.from, tree, (before.base, conflicts))?;
                    Begun { from: node.tree, base, commit: before.commit }
                }
                None => Begun { from: node.tree, base: self.tree(repository, parent)?, commit: parent },
            };
            return Ok(Some(found));
        }
        let mut known: Vec<(Oid, Begun)> = Vec::new();
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
        // The task has begun on several sides: what each of them knows as its work is taken out, one after the other.
        let mut base = node.tree;
        for (parent, found) in &known {
            let tree = self.tree(repository, *parent)?;
            let without = carry(repository, found.from, tree, (found.base, conflicts))?;
            base = carry(repository, tree, base, (without, conflicts))?;
        }
        Ok(Some(Begun { from: node.tree, base, commit: first.commit }))
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

/// The session that a run replays, if its start says so.
fn replayed(start: &Event) -> Option<SessionId> {
    start.trailers.get(Key::Replays)?.parse().ok()
}

/// The start of a session's run, in the history of `tip`.
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

/// The commit that a reset brings back: `turn 3 of session 0a1b2c3d, <commit>; …`.
fn brought_back(event: &Event) -> Option<Oid> {
    let sections = event.body().sections;
    let section = sections.iter().find(|section| section.heading == BROUGHT_BACK)?;
    section.text.split([' ', ',', ';', '\n']).filter_map(|word| word.parse().ok()).next_back()
}

/// The tree `to` without what separates `from` from `base`: the changes from `from` to `to`, made to `base`.
fn carry(
    repository: &Repository,
    from: Oid,
    to: Oid,
    (base, conflicts): (Oid, &mut Conflicts),
) -> Result<Oid, GitError> {
    if from == to || base == to {
        return Ok(base);
    }
    if from == base {
        return Ok(to);
    }
    let foreign: HashMap<Vec<u8>, TreeChange> =
        repository.changes(from, to)?.into_iter().map(|change| (change.path.clone(), change)).collect();
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

/// What became of a file that both changed.
enum Merged {
    Joined(Option<(u32, Oid)>),
    /// The base's version stays.
    Conflict,
}

/// A file that both changed. Its lines are joined without attributes, which an agent could have written.
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
