//! Where git looks for hooks, and how one is fired through git.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Config, ConfigEntry, GitCommand, GitError, Repository};
use crate::{process::ProgramOutput, safe_files::resolved};

/// The directory that git takes hook files from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksDir {
    /// Its absolute path. It need not exist.
    pub path: PathBuf,
    /// `core.hooksPath`, where that decided.
    pub setting: Option<ConfigEntry>,
    /// Whose it is.
    pub reach: DirPlace,
}

/// Where a directory lies, links resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirPlace {
    /// In the git directory: of this clone only.
    Clone,
    /// In a worktree: its files may be tracked and shared with others.
    Worktree,
    /// Outside of the repository.
    Outside,
}

impl Repository {
    /// Where git looks for hook files of this worktree.
    pub fn hooks_dir(&self, config: &Config) -> Result<HooksDir, GitError> {
        let setting = config.find("core.hookspath").cloned();
        let printed =
            self.act("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]).stdout()?;
        let line = printed.strip_suffix(b"\n").unwrap_or(&printed);
        let path = PathBuf::from(OsStr::from_bytes(line));
        Ok(HooksDir { reach: self.reach(&path), path, setting })
    }

    /// The directory that holds for every worktree unless `core.hooksPath` says otherwise.
    #[must_use]
    pub fn default_hooks_dir(&self) -> PathBuf {
        self.common_dir.join("hooks")
    }

    fn reach(&self, path: &Path) -> DirPlace {
        let path = resolved(path);
        if path.starts_with(resolved(&self.common_dir)) {
            return DirPlace::Clone;
        }
        let main = self.common_dir.parent().filter(|_| self.common_dir.ends_with(".git"));
        let mut worktrees = [self.worktree.as_deref(), main].into_iter().flatten();
        if worktrees.any(|top| path.starts_with(resolved(top))) {
            DirPlace::Worktree
        } else {
            DirPlace::Outside
        }
    }

    /// Fires a hook as git would. A hook that is not there counts as one that succeeds.
    pub fn fire_hook(&self, firing: &Firing<'_>) -> Result<ProgramOutput, GitError> {
        let mut command = self.pin_hook(GitCommand::acting("hook", &self.dir));
        command = command.args(["run", "--ignore-missing"]);
        if let Some(file) = firing.stdin {
            let mut option = OsString::from("--to-stdin=");
            option.push(file);
            command = command.arg(option);
        }
        let (name, value) = firing.variable;
        command.env(name, value).args([firing.event, "--"]).args(firing.arguments).finish()
    }
}

/// One firing of a hook.
#[derive(Debug, Clone, Copy)]
pub struct Firing<'a> {
    /// Which hook.
    pub event: &'a str,
    /// What git would give it.
    pub arguments: &'a [OsString],
    /// The file that it reads from standard input; git 2.40 or newer.
    pub stdin: Option<&'a Path>,
    /// A variable of its environment.
    pub variable: (&'a str, &'a str),
}
