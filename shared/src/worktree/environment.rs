//! Environment variables of programs in a worktree. Each worktree has its own ports, so that servers under test do not
//! collide.

use std::path::Path;

use super::{Pool, WorktreeError, claim::PlaceClaim};
use crate::{
    git::{Repository, Worktree},
    name::{BranchName, RepoName, SessionId, TaskId, digest},
    safe_files,
};

/// The first port that is assigned.
const FIRST: u16 = 20_000;
/// How many ports a worktree has.
const BLOCK: u16 = 10;
/// How many blocks there are.
const BLOCKS: u16 = 1_000;
const FILE: &str = "arborist/port";

/// The first of a worktree's own ports. It stays the same and is unique. The caller must hold the lock of
/// [`Pool::gate`].
pub(super) fn allot_port(lane: &Repository, others: &[Worktree]) -> Result<u16, WorktreeError> {
    if let Some(port) = read(&lane.git_dir) {
        return Ok(port);
    }
    let taken: Vec<u16> = others.iter().filter_map(|other| read(other.git_dir.as_deref()?)).collect();
    let place = digest(lane.dir.as_os_str().as_encoded_bytes());
    let start = u16::from_str_radix(&place[..4], 16).unwrap_or(0) % BLOCKS;
    let port = |step: u16| FIRST + (start + step) % BLOCKS * BLOCK;
    let port = (0..BLOCKS).map(port).find(|port| !taken.contains(port)).unwrap_or(FIRST);
    let file = lane.git_dir.join(FILE);
    safe_files::write(&file, format!("{port}\n").as_bytes()).map_err(WorktreeError::file("write", &file))?;
    Ok(port)
}

fn read(git_dir: &Path) -> Option<u16> {
    safe_files::read_text(&git_dir.join(FILE)).ok()?.trim().parse().ok()
}

/// The variables of every program of a run: the repository, the run's branch, its session and the worktree.
#[must_use]
pub fn run_variables(
    repo: &RepoName,
    run: &BranchName,
    session: Option<&SessionId>,
    place: &Path,
) -> Vec<(String, String)> {
    let known = [
        ("ARBORIST_REPO", Some(repo.to_string())),
        ("ARBORIST_BRANCH", Some(run.to_string())),
        ("ARBORIST_SESSION", session.map(ToString::to_string)),
        ("ARBORIST_WORKTREE", Some(text(place))),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

impl Pool {
    /// The variables of a worktree that belongs to no task.
    pub(super) fn place_variables(&self, place: &Path) -> Vec<(String, String)> {
        let session = self.options.session.as_ref();
        let repo = self.options.repo.clone().unwrap_or_else(|| self.repository.name());
        let mut variables = run_variables(&repo, &self.run, session, place);
        variables.push(("ARBORIST_REPOSITORY".to_owned(), text(&self.places.main)));
        variables
    }

    /// The variables of a worktree that a task has claimed.
    pub(super) fn task_variables(&self, claim: &PlaceClaim, task: &TaskId) -> Vec<(String, String)> {
        let own = [
            ("ARBORIST_TASK", task.to_string()),
            ("ARBORIST_PORT", claim.port.to_string()),
            ("ARBORIST_PORTS", format!("{}-{}", claim.port, claim.port + BLOCK - 1)),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        self.place_variables(&claim.path).into_iter().chain(own).collect()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
