//! Sets up new worktrees: copies untracked files, then runs the user's set-up commands.

use std::path::Path;

use super::{Pool, WorktreeError, WorktreeNote};
use crate::{
    git::Repository,
    name::digest,
    process::{Limits, Program, Supervised},
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
        let wanted = digest(format!("{:?} {:?}", self.options.setup, self.copied.patterns).as_bytes());
        if safe_files::read_text(&mark).is_ok_and(|done| done == wanted) {
            return Ok(Vec::new());
        }
        let mut notes: Vec<WorktreeNote> = self.copy_files(lane)?.into_iter().collect();
        for command in &self.options.setup {
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

    /// Whether set-up commands are configured.
    #[must_use]
    pub fn has_set_up(&self) -> bool {
        !self.options.setup.is_empty()
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
