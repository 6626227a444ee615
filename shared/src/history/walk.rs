//! Finds the commits of a run from its branch, reading as few as possible from git.

use std::{
    collections::HashSet,
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    HistoryError,
    cache::{Cache, ReadAhead},
    event::{CommitMeaning, HistoryEntry, takes_back},
    graph::{Graph, Marks},
};
use crate::{
    git::{GitError, OperationInProgress, RawCommit, Repository},
    message,
    name::{BranchName, Oid},
};

/// The run that is meant: the branch that its commits name, and where to start reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunScope {
    /// The branch name in the subjects.
    pub branch: BranchName,
    /// The newest commit; `None` if the branch does not exist yet.
    pub tip: Option<Oid>,
}

impl RunScope {
    /// The run of the branch `asked` for, or of the branch that is checked out. A branch that no longer exists is
    /// searched from `HEAD`; a task's own branch stands for its run.
    pub fn resolve(repository: &Repository, requested: Option<&BranchName>) -> Result<Self, HistoryError> {
        let head = &repository.head;
        let on_task = match &head.branch {
            Some(branch) if requested.is_none() => run_of(repository, branch)?,
            _ => None,
        };
        let Some(branch) = requested.or(on_task.as_ref()) else {
            let Some(branch) = head.branch.clone() else {
                return Err(detached(repository)?);
            };
            return Ok(Self { branch, tip: head.commit });
        };
        let tip = repository.find_branch(branch)?.or(head.commit);
        Ok(Self { branch: branch.clone(), tip })
    }
}

/// The error for a checkout without a branch. During a rebase, a branch at the same commit is usually that of someone else.
fn detached(repository: &Repository) -> Result<HistoryError, HistoryError> {
    let operation = OperationInProgress::find_operation(&repository.git_dir);
    let branch = match &operation {
        Some(operation) => operation.branches.first().cloned(),
        None => branch_at(repository, repository.head.commit)?,
    };
    Ok(HistoryError::Detached { branch, operation: operation.map(|operation| operation.what) })
}

/// A branch at this commit that is not a task's own.
fn branch_at(repository: &Repository, commit: Option<Oid>) -> Result<Option<BranchName>, HistoryError> {
    let refs = repository.list_refs(&["refs/heads/"])?.into_iter();
    let at = refs.filter(|found| Some(found.target) == commit);
    let mut names = at.filter_map(|found| found.name.strip_prefix("refs/heads/")?.parse::<BranchName>().ok());
    Ok(names.find(|branch| branch.run_component().is_none()))
}

/// The run of a task's own branch. A name that was too long for a ref is found among the branches.
fn run_of(repository: &Repository, branch: &BranchName) -> Result<Option<BranchName>, HistoryError> {
    let Some(component) = branch.run_component() else {
        return Ok(None);
    };
    if let Some(run) = branch.run_of_task_branch() {
        return Ok(Some(run));
    }
    let names = repository.list_refs(&["refs/heads/"])?.into_iter();
    let mut runs =
        names.filter_map(|found| found.name.strip_prefix("refs/heads/")?.parse::<BranchName>().ok());
    Ok(runs.find(|run| run.component() == component))
}

/// Where commits may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitSource {
    /// Cached commits are used, for display.
    Cached,
    /// All commits are read from git, for changes.
    Fresh,
}

/// The commits of a run, and its start among them if it has one.
#[derive(Debug)]
pub(super) struct RunCommits {
    pub(super) graph: Graph,
    pub(super) start: Option<u32>,
}

/// Runs with more bytes or commits are not cached.
const LARGEST_CACHE: usize = 64 << 20;
pub(super) const LONGEST_CACHE: usize = 50_000;

/// Reads the commits of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walker<'a> {
    pub(super) repository: &'a Repository,
    pub(super) branch: &'a BranchName,
    pub(super) tip: Oid,
}

impl Walker<'_> {
    /// Reads the run back to its start, or the whole history if there is none.
    pub(super) fn walk(&self, reading: CommitSource) -> Result<RunCommits, HistoryError> {
        match reading {
            CommitSource::Cached => self.walk_cached(None),
            CommitSource::Fresh => self.read_git(None),
        }
    }

    /// Like [`Self::walk`], with the cache, which may already have been read.
    pub(super) fn walk_cached(&self, ahead: Option<ReadAhead>) -> Result<RunCommits, HistoryError> {
        if self.repository.is_shallow {
            return self.read_git(None);
        }
        let cache = Cache::new(&self.repository.common_dir, self.branch);
        match self.read_cache(&cache, ahead) {
            Some(walk) => Ok(walk),
            None => self.read_git(Some(&cache)),
        }
    }

    /// The commits that `revisions` select, read for this run. A shallow boundary among them is an error.
    pub(super) fn read_entries(&self, revisions: &[String]) -> Result<Vec<HistoryEntry>, HistoryError> {
        let found = self.read_all(revisions)?;
        self.refuse_shallow_edge(&found.entries)?;
        Ok(found.entries)
    }

    fn read_git(&self, cache: Option<&Cache>) -> Result<RunCommits, HistoryError> {
        let mut found = self.read_until_start()?;
        if let Some(start) = found.start
            && !is_one_line(&found.entries)
        {
            let mut revisions = vec![self.tip.to_string()];
            if !self.repository.list_shallow_edge().contains(&start.id) {
                revisions.extend(start.parents().map(|id| format!("^{id}")));
            }
            found = self.read_all(&revisions)?;
        }
        self.refuse_shallow_edge(&found.entries)?;
        let walk = select_run(found.entries, self.tip)?;
        if let (Some(cache), Some(_), Some(commits)) = (cache, walk.start, found.commits) {
            self.store(cache, retain_kept(&walk.graph, commits));
        }
        Ok(walk)
    }

    /// The cached commits, and from git only newer ones. `None` if the cache cannot be used.
    fn read_cache(&self, cache: &Cache, ahead: Option<ReadAhead>) -> Option<RunCommits> {
        let ahead = ahead.filter(|ahead| ahead.is_of(cache, self.branch));
        let ReadAhead { cached, entries: known, .. } =
            ahead.or_else(|| ReadAhead::read(cache.clone(), self.branch))?;
        let mut commits = Vec::new();
        if cached.tip != self.tip {
            let since = [self.tip.to_string(), format!("^{}", cached.tip)];
            commits = self.read_all(&since).ok()?.commits?;
        }
        let mut entries = read_verified(&commits, self.branch)?;
        entries.extend(known);
        let walk = select_run(entries, self.tip).ok()?;
        walk.start?;
        self.has_complete_edges(&walk)?;
        if cached.tip != self.tip {
            commits.extend(cached.commits);
            self.store(cache, retain_kept(&walk.graph, commits));
        }
        Some(walk)
    }

    /// Reads commits again that the stream did not contain completely, so that they can be verified later.
    fn store(&self, cache: &Cache, mut commits: Vec<RawCommit>) {
        let partial = |commit: &&mut RawCommit| !commit.is_authentic();
        let mut partial: Vec<&mut RawCommit> = commits.iter_mut().filter(partial).collect();
        if !partial.is_empty() {
            let ids: Vec<Oid> = partial.iter().map(|commit| commit.id).collect();
            let Ok(whole) = self.repository.load_commits(&ids) else {
                return;
            };
            partial.iter_mut().zip(whole).for_each(|(commit, whole)| **commit = whole);
        }
        cache.store(self.tip, &commits);
    }

    /// A parent that the cache lacks must be older than the run. That is true for parents of the start; git is asked
    /// about all others, so that an incomplete cache hides nothing.
    pub(super) fn has_complete_edges(&self, walk: &RunCommits) -> Option<()> {
        let graph = &walk.graph;
        let start = graph.entry(walk.start?);
        if graph.is_chain() && graph.entries.last().is_some_and(|oldest| oldest.id == start.id) {
            return Some(());
        }
        let known: HashSet<Oid> = graph.entries.iter().map(|entry| entry.id).chain(start.parents()).collect();
        let edges: Vec<String> = graph
            .entries
            .iter()
            .flat_map(HistoryEntry::parents)
            .filter(|id| !known.contains(id))
            .map(|id| id.to_string())
            .collect();
        if edges.is_empty() {
            return Some(());
        }
        let before: Vec<String> = start.parents().map(|id| id.to_string()).collect();
        let outside = self
            .repository
            .git("rev-list")
            .arg("--max-count=1")
            .args(edges)
            .arg("--not")
            .args(before)
            .stdout();
        outside.is_ok_and(|ids| ids.is_empty()).then_some(())
    }

    /// Reads in git's own order, which needs no more history than what is read, until a start of this run is found.
    fn read_until_start(&self) -> Result<WalkedCommits, HistoryError> {
        let mut found = WalkedCommits::default();
        for commit in self.repository.stream_commits(&[self.tip.to_string()])? {
            let entry = found.add(self.verified(commit?, found.entries.len())?, self.branch);
            if entry.run_start().is_some() {
                found.start = Some(entry.clone());
                break;
            }
        }
        Ok(found)
    }

    pub(super) fn read_all(&self, revisions: &[String]) -> Result<WalkedCommits, HistoryError> {
        let mut found = WalkedCommits::default();
        for commit in self.repository.stream_commits(revisions)? {
            found.add(self.verified(commit?, found.entries.len())?, self.branch);
        }
        Ok(found)
    }

    /// Verifies the bytes of a commit. Git does not hash what it reads, so an object file with other content would be
    /// believed: its message and its parents. In runs that are too large for the cache, only commits with a relevant
    /// message are verified, because a million commits would take too long.
    fn verified(&self, commit: RawCommit, at: usize) -> Result<RawCommit, GitError> {
        let decides =
            at < LONGEST_CACHE || message::claims_to_be_ours(commit.message()) || takes_back(&commit);
        if decides { self.repository.exact(commit) } else { Ok(commit) }
    }

    /// The state of a run whose history is cut off by a shallow clone is unknown.
    fn refuse_shallow_edge(&self, entries: &[HistoryEntry]) -> Result<(), HistoryError> {
        let edge = self.repository.list_shallow_edge();
        match entries.iter().find(|entry| edge.contains(&entry.id) && entry.run_start().is_none()) {
            Some(entry) => {
                let is_part = |entry: &HistoryEntry| matches!(entry.note, CommitMeaning::Event(_));
                Err(HistoryError::Shallow { edge: entry.id, has_begun: entries.iter().any(is_part) })
            }
            None => Ok(()),
        }
    }
}

#[derive(Default)]
pub(super) struct WalkedCommits {
    pub(super) entries: Vec<HistoryEntry>,
    start: Option<HistoryEntry>,
    /// `None` if there are too many to be cached.
    commits: Option<Vec<RawCommit>>,
    size: usize,
}

impl WalkedCommits {
    fn add(&mut self, commit: RawCommit, branch: &BranchName) -> &HistoryEntry {
        let at = self.entries.len();
        self.entries.push(HistoryEntry::new(&commit, branch));
        if at == 0 {
            self.commits = Some(Vec::new());
        }
        self.size += commit.content().len();
        if self.size > LARGEST_CACHE || at >= LONGEST_CACHE {
            self.commits = None;
        }
        if let Some(commits) = &mut self.commits {
            commits.push(commit);
        }
        &self.entries[at]
    }
}

fn is_one_line(entries: &[HistoryEntry]) -> bool {
    entries.windows(2).all(|pair| pair[0].more_parents.is_empty() && pair[0].first_parent == Some(pair[1].id))
}

/// How many commits a thread takes at a time. Reading them takes as long as starting a few threads, and if one thread has
/// to wait for a core, the others take the rest. The commits of a hundred tasks are read by one thread, while git runs on
/// the other cores.
const SHARE: usize = 500;

/// Reads commits after verifying their bytes; `None` if one does not match its id. On all cores: for 10,000 commits
/// this is most of the cost of showing state from the cache.
pub(super) fn read_verified(commits: &[RawCommit], branch: &BranchName) -> Option<Vec<HistoryEntry>> {
    let read = |commit: &RawCommit| commit.is_authentic().then(|| HistoryEntry::new(commit, branch));
    let shares: Vec<&[RawCommit]> = commits.chunks(SHARE).collect();
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        shares.get(at).map(|share| (at, share.iter().map(read).collect::<Option<Vec<HistoryEntry>>>()))
    };
    let work = || std::iter::from_fn(take).collect::<Vec<_>>();
    // Finding the number of cores reads a dozen files.
    let cores = if shares.len() > 1 { thread::available_parallelism().map_or(1, NonZero::get) } else { 1 };
    thread::scope(|scope| {
        let others: Vec<_> = (1..cores.min(shares.len())).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().ok()?);
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        let mut entries = Vec::with_capacity(commits.len());
        for (_, share) in done {
            entries.extend(share?);
        }
        Some(entries)
    })
}

/// Chooses the last start of the run, and leaves out commits that are unreachable or older.
pub(super) fn select_run(entries: Vec<HistoryEntry>, tip: Oid) -> Result<RunCommits, HistoryError> {
    let graph = Graph::new(entries);
    let Some(top) = graph.find(tip) else {
        return Ok(RunCommits { graph, start: None });
    };
    let within = graph.reachable(&[top]);
    let starts = graph
        .newest(1, |node| (within.contains(node) && graph.entry(node).run_start().is_some()).then_some(0));
    let start = match starts[0].as_slice() {
        [] => None,
        [start] => Some(*start),
        [a, b, ..] => {
            return Err(HistoryError::ForkedRun { commits: [graph.entry(*a).id, graph.entry(*b).id] });
        }
    };
    Ok(prune(graph, &within, start))
}

fn prune(graph: Graph, within: &Marks, start: Option<u32>) -> RunCommits {
    let before: Vec<u32> = start.map(|start| graph.parents(start).collect()).unwrap_or_default();
    let before = graph.reachable(&before);
    let start_id = start.map(|start| graph.entry(start).id);
    let nodes = 0..u32::try_from(graph.entries.len()).unwrap_or(u32::MAX);
    if nodes.clone().all(|node| within.contains(node) && !before.contains(node)) {
        return RunCommits { graph, start };
    }
    let keep: Vec<bool> = nodes.map(|node| within.contains(node) && !before.contains(node)).collect();
    let mut keep = keep.into_iter();
    let mut entries = graph.entries;
    entries.retain(|_| keep.next().unwrap_or(false));
    let graph = Graph::new(entries);
    let start = start_id.and_then(|id| graph.find(id));
    RunCommits { graph, start }
}

/// The raw commits that are left.
fn retain_kept(graph: &Graph, commits: Vec<RawCommit>) -> Vec<RawCommit> {
    if graph.entries.len() == commits.len() {
        return commits;
    }
    let ids: HashSet<Oid> = graph.entries.iter().map(|entry| entry.id).collect();
    commits.into_iter().filter(|commit| ids.contains(&commit.id)).collect()
}
