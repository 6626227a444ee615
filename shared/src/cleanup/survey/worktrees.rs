//! Worktrees and leftovers: whether a process is at work there, and their uncommitted files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::CleanupFacts;
use crate::{
    cleanup::{Candidate, CandidateKind, CandidatePlace, CleanupRules, InUse, UncommittedContent},
    git::{GitError, OperationInProgress, Repository, UncommittedPath, Worktree, find_repository},
    name::BranchName,
    worktree::{Pool, RemainsKind, TrashState, WorktreeRemains},
};

/// How many worktrees are examined in parallel.
const THREADS: usize = 6;
/// How many paths of an unknown directory are listed.
const MAX_PATHS: usize = 100;

/// Operations in progress in any worktree, by its top.
pub(in crate::cleanup) fn find_going_on(worktrees: &[Worktree]) -> Vec<(PathBuf, OperationInProgress)> {
    let look = |worktree: &Worktree| {
        Some((worktree.path.clone(), OperationInProgress::find(worktree.git_dir.as_deref()?)?))
    };
    worktrees.iter().filter_map(look).collect()
}

impl CleanupFacts<'_> {
    pub(super) fn worktrees(&self) -> Vec<Candidate> {
        let is_listed = |place: &&WorktreeRemains| {
            // Somebody is deleting it, and will be done.
            place.kind != RemainsKind::Trash || self.trash_state(place) != TrashState::BeingDeleted
        };
        self.places.iter().filter(is_listed).map(|place| self.place(place)).collect()
    }

    fn trash_state(&self, place: &WorktreeRemains) -> TrashState {
        TrashState::find(self.sweep.repository, &place.path)
    }

    fn place(&self, place: &WorktreeRemains) -> Candidate {
        let what = match place.kind {
            RemainsKind::Trash => CandidateKind::Trash,
            RemainsKind::Orphan => CandidateKind::Folder,
            _ => CandidateKind::Worktree,
        };
        let mut candidate = Candidate::new(what, candidate_place(place), place.name());
        candidate.time = place.active;
        candidate.owners = vec![place.name()];
        candidate.owners.extend(place.name().strip_prefix("session-").map(str::to_owned));
        self.add_processes(&mut candidate, &place.path);
        if what == CandidateKind::Trash {
            candidate.time = Some(0);
            if let TrashState::Failed(why) = self.trash_state(place) {
                candidate.deletion_failed = Some(why);
            }
            return candidate;
        }
        self.add_ownership(&mut candidate, place);
        self.add_occupant(&mut candidate, place);
        if let Some(branch) = place.branch() {
            self.add_task(&mut candidate, branch);
        }
        let going_on = self.going_on.iter().find(|(path, _)| *path == place.path);
        candidate.in_use.extend(going_on.map(|(_, going_on)| InUse::OperationInProgress(going_on.what)));
        let moved = self.sweep.pool.as_ref().and_then(|pool| pool.find_moved(place.worktree.as_ref()?));
        candidate.in_use.extend(moved.map(|path| InUse::Moved(path.display().to_string())));
        if place.worktree.as_ref().is_some_and(|worktree| worktree.git_dir.is_none()) {
            candidate.unknown.push("its git directory cannot be found".into());
        }
        candidate
    }

    fn add_ownership(&self, candidate: &mut Candidate, place: &WorktreeRemains) {
        let lock = place.worktree.as_ref().and_then(|worktree| worktree.lock.clone());
        match (place.kind, lock) {
            (RemainsKind::Foreign, Some(reason)) => candidate.in_use.push(InUse::Locked(reason)),
            (RemainsKind::Foreign, None) => {
                candidate.in_use.push(InUse::Foreign("git arborist did not make it".into()));
            }
            (RemainsKind::Outside, _) => {
                let base = self.sweep.pool.as_ref().map(|pool| pool.base().display().to_string());
                let why = format!("it is not in {}", base.unwrap_or_default());
                candidate.in_use.push(InUse::Foreign(why));
            }
            _ => {}
        }
    }

    /// Adds processes that are in it. Ours comes first, because the shell that started us is there too.
    fn add_processes(&self, candidate: &mut Candidate, path: &Path) {
        if self.here.as_ref().is_some_and(|here| here.starts_with(path)) {
            candidate.in_use.push(InUse::Here);
        }
        match &self.occupants {
            Some(occupants) => candidate.in_use.extend(occupants.of(path).map(InUse::Process)),
            None => candidate.unknown.push("which processes are in it".into()),
        }
    }

    fn add_occupant(&self, candidate: &mut Candidate, place: &WorktreeRemains) {
        let Some(pool) = &self.sweep.pool else { return };
        match pool.find_occupant(&place.path) {
            Ok(None) => {}
            Ok(Some(holder)) => candidate.in_use.push(InUse::Lock(holder.to_string())),
            Err(error) => candidate.unknown.push(format!("whether a process is working in it: {error}")),
        }
    }

    fn add_task(&self, candidate: &mut Candidate, branch: &BranchName) {
        candidate.owners.push(branch.to_string());
        let last = branch.as_str().rsplit('/').next().unwrap_or_default();
        candidate.owners.push(last.to_owned());
        let Some(run) = branch.run_component().map(str::to_owned) else {
            candidate.run = Some(branch.component());
            let is_elsewhere = |found| self.is_recorded_elsewhere(found) && !self.is_recorded(branch);
            if self.refs.find(&branch.to_ref()).is_some_and(is_elsewhere) {
                candidate.unknown.push(self.sweep.homes.unknown_words());
            }
            let session = self.sessions.iter().find(|session| session.branch == *branch);
            candidate.home = session.and_then(|session| session.home.clone());
            self.keep_for_sessions(candidate);
            return self.add_run_facts(candidate);
        };
        candidate.owners.push(format!("{run}/{last}"));
        if let Ok(task) = last.parse() {
            self.add_queue_facts(candidate, &run, &task);
            self.add_worker_facts(candidate, branch, &task);
        }
        candidate.run = Some(run);
        self.keep_for_sessions(candidate);
        self.add_run_facts(candidate);
    }

    /// Examines the worktrees that nothing else keeps, several in parallel.
    pub(super) fn look_into(&self, found: &mut [Candidate]) {
        let Some(pool) = &self.sweep.pool else { return };
        let rules = &self.sweep.options.rules;
        let wanted: Vec<(usize, &WorktreeRemains)> = found
            .iter()
            .enumerate()
            .filter(|(_, candidate)| is_open(candidate, rules))
            .filter_map(|(at, candidate)| {
                let path = candidate.path()?;
                Some((at, self.places.iter().find(|place| place.path == *path)?))
            })
            .collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut seen = Vec::new();
            while let Some((at, place)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                seen.push((*at, content_of(pool, place)));
            }
            seen
        };
        let seen: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS.min(wanted.len())).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
        });
        for (at, content) in seen {
            match content {
                Ok((content, ignored)) => (found[at].content, found[at].ignored) = (content, ignored),
                Err(error) => found[at].unknown.push(format!("which files are in it: {error}")),
            }
        }
    }
}

/// Whether its files matter for the decision.
fn is_open(candidate: &Candidate, rules: &CleanupRules) -> bool {
    let is_place = matches!(candidate.what, CandidateKind::Worktree | CandidateKind::Folder);
    let is_scratch = matches!(candidate.place, CandidatePlace::Worktree { is_scratch: true, .. });
    let is_old = candidate.time.is_some_and(|time| !rules.is_young(candidate.what, time));
    is_place && !is_scratch && is_old && candidate.in_use.is_empty() && candidate.unknown.is_empty()
}

fn candidate_place(place: &WorktreeRemains) -> CandidatePlace {
    match &place.worktree {
        Some(worktree) => CandidatePlace::Worktree {
            path: place.path.clone(),
            branch: worktree.branch.clone(),
            head: worktree.head,
            is_scratch: place.kind == RemainsKind::Scratch,
            is_missing: place.is_missing,
        },
        None => CandidatePlace::Path(place.path.clone()),
    }
}

/// The uncommitted files of a worktree, and the ignored ones.
pub(in crate::cleanup) fn content_of(
    pool: &Pool,
    place: &WorktreeRemains,
) -> Result<(UncommittedContent, Vec<String>), GitError> {
    let alone = |content| Ok((content, Vec::new()));
    if place.worktree.is_none() {
        return alone(files_of(&place.path));
    }
    let Some(view) = pool.look_into(place) else {
        return alone(UncommittedContent::Stuck("its git directory is gone".into()));
    };
    // Commits of submodules may be nowhere else; `worktree remove` saves them.
    if view.git_dir.join("modules").is_dir() {
        return alone(UncommittedContent::Stuck("it contains repositories of submodules".into()));
    }
    if place.is_missing {
        return alone(staged_in(&view)?);
    }
    if place.path.join(".git").is_dir() {
        return alone(UncommittedContent::Stuck("it contains another repository".into()));
    }
    // A worktree that was never filled has no index. Files in it were put there by someone.
    if !view.git_dir.join("index").exists() {
        return alone(files_of(&place.path));
    }
    let changed_paths = view.changed_paths()?;
    let ignored = view.list_ignored()?;
    let submodule = changed_paths
        .iter()
        .find(|changed_paths| changed_paths.is_inside_submodule)
        .map(UncommittedPath::shown);
    let inner = || Repository::find_inner(&place.path, &changed_paths, &ignored).as_deref().map(shown);
    let content = match submodule.or_else(inner) {
        Some(inner) => {
            UncommittedContent::Stuck(format!("it contains a repository with unsaved work: {inner}"))
        }
        None if changed_paths.is_empty() => UncommittedContent::Nothing,
        None => UncommittedContent::Unsaved(changed_paths.iter().map(UncommittedPath::shown).collect()),
    };
    Ok((content, ignored.iter().map(|path| shown(path)).collect()))
}

fn shown(path: &Path) -> String {
    crate::message::visible(&path.to_string_lossy())
}

/// The staged files of a worktree whose directory is gone.
fn staged_in(view: &Repository) -> Result<UncommittedContent, GitError> {
    let Some(head) = view.head.commit.filter(|_| view.git_dir.join("index").exists()) else {
        return Ok(UncommittedContent::Nothing);
    };
    let staged = view.staged_since(head)?;
    let shown: Vec<String> =
        staged.iter().map(|path| crate::message::visible(&String::from_utf8_lossy(path))).collect();
    Ok(if shown.is_empty() { UncommittedContent::Nothing } else { UncommittedContent::Unsaved(shown) })
}

/// Everything in a directory except its `.git` file.
fn files_of(folder: &Path) -> UncommittedContent {
    let mut paths: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == ".git" {
            continue;
        }
        if let Some(inner) = find_repository(&entry.path()) {
            let inner = shown(inner.strip_prefix(folder).unwrap_or(&inner));
            return UncommittedContent::Stuck(format!("it contains another repository: {inner}"));
        }
        paths.push(crate::message::visible(&name.to_string_lossy()));
    }
    paths.sort();
    paths.truncate(MAX_PATHS);
    if paths.is_empty() { UncommittedContent::Nothing } else { UncommittedContent::Unsaved(paths) }
}
