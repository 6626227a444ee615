//! Sets up new worktrees: copies untracked files, then runs the user's set-up commands. Gives programs in a worktree their
//! environment variables, with ports of their own, so that servers under test do not collide.

use std::path::Path;

use super::{Pool, WorktreeError, WorktreeNote, claim::ChosenWorktree};
use crate::{
    git::{Repository, Worktree},
    name::{BranchName, RepoName, SessionId, TaskId, digest},
    process::{FileLock, Limits, Program, Supervised},
    safe_files,
    sandbox::{SandboxedChild, describe_denials},
};

/// The file that says that a worktree has been set up, and how.
const MARK: &str = "arborist/set-up";
/// How much output of a failed command is shown.
const MAX_OUTPUT: usize = 1000;

/// Removes the mark, so that the next set-up does everything again.
pub(super) fn forget_set_up(lane: &Repository) {
    let _ = safe_files::remove(&lane.git_dir.join(MARK));
}

impl Pool {
    /// Sets a worktree up, unless that was completed before with the same options.
    pub(super) fn set_up(
        &self,
        lane: &Repository,
        environment: &[(String, String)],
    ) -> Result<Vec<WorktreeNote>, WorktreeError> {
        let mark = lane.git_dir.join(MARK);
        let wanted = digest(format!("{:?} {:?}", self.options.setup(), self.copied.patterns).as_bytes());
        if safe_files::read_text(&mark).is_ok_and(|done| done == wanted) {
            return Ok(Vec::new());
        }
        let mut notes: Vec<WorktreeNote> = self.copy_files(lane)?.into_iter().collect();
        for command in self.options.setup() {
            notes.extend(self.run_command(command, lane, environment)?);
        }
        safe_files::write(&mark, wanted.as_bytes()).map_err(WorktreeError::file("write", &mark))?;
        Ok(notes)
    }

    fn run_command(
        &self,
        command: &str,
        lane: &Repository,
        environment: &[(String, String)],
    ) -> Result<Option<WorktreeNote>, WorktreeError> {
        let program = Program::located("sh").args(["-c", command]).dir(&lane.dir);
        let child =
            SandboxedChild { step: "setup", places: vec![lane.dir.clone()], ..SandboxedChild::default() };
        let confinement = self.options.sandbox.confine(&child);
        let program = program.confined_if(confinement.clone());
        let program = environment.iter().fold(program, |program, (name, value)| program.env(name, value));
        let limits = Limits { whole: Some(self.options.setup_time), ..Limits::default() };
        let supervised = Supervised::new(program).limits(limits).until(&self.options.cancel).tail(MAX_OUTPUT);
        let (outcome, trespass) = self.options.config_guard.guard(lane, || supervised.run(|_| {}));
        let denial = describe_denials(&outcome.words(), confinement.as_ref());
        if outcome.ending.is_success() && trespass.is_none() {
            let command = command.to_owned();
            return Ok(denial.map(|words| WorktreeNote::Denied { command, words }));
        }
        let mut said =
            format!("{}{}{}", outcome.stdout.text, outcome.stderr.text, trespass.unwrap_or_default());
        if let Some(note) = denial {
            said = format!("{}\n{note}", said.trim_end());
        }
        let said = if said.trim().is_empty() { String::new() } else { format!(":\n{}", said.trim_end()) };
        Err(WorktreeError::SetUp { command: command.to_owned(), ending: outcome.ending.to_string(), said })
    }

    /// Copies the configured files that the main checkout has and git ignores. Files that git would not ignore are not
    /// copied: they would be committed with the first change.
    pub(super) fn copy_files(&self, lane: &Repository) -> Result<Option<WorktreeNote>, WorktreeError> {
        self.copied.check_include();
        if self.copied.matches.is_empty() {
            return Ok(None);
        }
        self.copied.record(lane.top());
        let mut found = self.copied.matches.clone();
        found.retain(|path| !is_beyond_link(&lane.dir, path));
        let (ignored, others) = lane.split_ignored(found)?;
        for path in &ignored {
            self.copied.copy(path, &lane.dir)?;
        }
        let shown =
            others.iter().filter(|path| !has_trailing_slash(path)).map(|path| path.display().to_string());
        let shown: Vec<String> = shown.collect();
        Ok((!shown.is_empty()).then(|| WorktreeNote::NotCopied { paths: shown.join(", ") }))
    }
}

/// Git marks directories by a trailing slash. Such a directory only has files that are listed themselves.
fn has_trailing_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Whether a parent directory of `path` is something else here. Nothing is written through a link.
fn is_beyond_link(top: &Path, path: &Path) -> bool {
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    parents
        .map(|parent| top.join(parent))
        .any(|parent| parent.symlink_metadata().is_ok_and(|found| !found.is_dir()))
}

/// The first port that is assigned.
const FIRST: u16 = 20_000;
/// How many ports a worktree has.
const BLOCK: u16 = 10;
/// How many blocks there are.
const BLOCKS: u16 = 1_000;
const FILE: &str = "arborist/port";

/// The first of a worktree's own ports. It stays the same and is unique, because `_registry_lock` keeps other processes
/// from choosing one meanwhile.
pub(super) fn allot_port(
    _registry_lock: &FileLock,
    lane: &Repository,
    others: &[Worktree],
) -> Result<u16, WorktreeError> {
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

    /// The variables of a worktree that was chosen for a task.
    pub(super) fn task_variables(&self, chosen: &ChosenWorktree, task: &TaskId) -> Vec<(String, String)> {
        let own = [
            ("ARBORIST_TASK", task.to_string()),
            ("ARBORIST_PORT", chosen.port.to_string()),
            ("ARBORIST_PORTS", format!("{}-{}", chosen.port, chosen.port + BLOCK - 1)),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        self.place_variables(&chosen.path).into_iter().chain(own).collect()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
