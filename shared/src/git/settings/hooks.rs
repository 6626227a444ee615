//! Finds the folder of git's hooks, and runs hooks through git.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{Config, ConfigEntry, GitCommand, GitError, Repository},
    process::ProgramOutput,
    safe_files::resolved,
};

/// The folder from which git takes hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksDir {
    /// Its absolute path. It need not exist.
    pub path: PathBuf,
    /// `core.hooksPath`, if it is set.
    pub setting: Option<ConfigEntry>,
    /// Which part of the repository it belongs to.
    pub reach: DirPlace,
}

/// Where a folder is, with links resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirPlace {
    /// In the git directory, so for this clone only.
    Clone,
    /// In a worktree: its files may be tracked and shared with others.
    Worktree,
    /// Outside of the repository.
    Outside,
}

/// The hooks that git runs in a checkout.
pub const CHECKOUT_HOOKS: [&str; 23] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
];

/// The folder in which husky expects the hooks of the user, if `hooks` is a folder of husky: since husky 9 its parent,
/// because the scripts in `hooks` only run the files of the same name there.
#[must_use]
pub fn husky_folder(hooks: &Path) -> Option<&Path> {
    let is_generated = hooks.ends_with("_") && (hooks.ends_with(".husky/_") || hooks.join("h").is_file());
    let is_older = hooks.ends_with(".husky") || hooks.join("_/husky.sh").is_file();
    if is_generated { hooks.parent() } else { Some(hooks).filter(|_| is_older) }
}

impl Repository {
    /// The folder of hooks for this worktree.
    pub fn hooks_dir(&self, config: &Config) -> Result<HooksDir, GitError> {
        let setting = config.find("core.hookspath").cloned();
        let path = match &setting {
            Some(_) => {
                let command = self.act("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]);
                let printed = command.stdout()?;
                PathBuf::from(OsStr::from_bytes(printed.strip_suffix(b"\n").unwrap_or(&printed)))
            }
            None => self.default_hooks_dir(),
        };
        Ok(HooksDir { reach: self.reach(&path), path, setting })
    }

    /// The folder for all worktrees, unless `core.hooksPath` is set.
    #[must_use]
    pub fn default_hooks_dir(&self) -> PathBuf {
        self.common_dir.join("hooks")
    }

    fn reach(&self, path: &Path) -> DirPlace {
        let path = resolved(path);
        if path.starts_with(resolved(&self.common_dir)) {
            return DirPlace::Clone;
        }
        let main = self.main_top();
        let mut worktrees = [self.worktree.as_deref(), main].into_iter().flatten();
        if worktrees.any(|top| path.starts_with(resolved(top))) {
            DirPlace::Worktree
        } else {
            DirPlace::Outside
        }
    }

    /// Runs a hook as git would. A missing hook counts as successful.
    pub fn run_hook(&self, hook: &HookRun<'_>) -> Result<ProgramOutput, GitError> {
        let mut command = self.pin_hook(GitCommand::acting("hook", &self.dir));
        command = command.args(["run", "--ignore-missing"]);
        if let Some(file) = hook.stdin {
            let mut option = OsString::from("--to-stdin=");
            option.push(file);
            command = command.arg(option);
        }
        let (name, value) = hook.variable;
        command.env(name, value).args([hook.name, "--"]).args(hook.arguments).finish()
    }
}

/// One run of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookRun<'a> {
    /// The name of the hook.
    pub name: &'a str,
    /// The arguments that git would pass.
    pub arguments: &'a [OsString],
    /// The file for its standard input; needs git 2.40 or newer.
    pub stdin: Option<&'a Path>,
    /// A variable for its environment.
    pub variable: (&'a str, &'a str),
}
