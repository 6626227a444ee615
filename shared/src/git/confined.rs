//! Gits that write or remove files of a worktree may do so only there. An agent of another task can replace a folder of the
//! worktree by a link at any moment, also between git's look at the folder and its next file: without this, git would write
//! to wherever the link leads, or remove what is there.
//!
//! So such a git is confined to the worktree, the git directories and temporary files. Filters and merge drivers of the user run inside of
//! that; [`Helpers`] says what is done where they need more. Which of them there are, the frozen settings tell.

use std::{
    env,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    GitCommand, Repository, SettingsChange, identity, remote_ssh::is_openssh, setting_entry::SettingEntry,
};
use crate::{process::Confinement, safe_files};

/// Commands that write, make or remove files of a worktree. `clone` and `submodule update` are not among them: they need the
/// network, and with it programs (ssh, helpers for passwords) that write wherever the user's own settings say.
const WRITING: [&str; 17] = [
    "am",
    "apply",
    "bisect",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "merge",
    "mv",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "worktree",
];

/// Those among them that merge files, and so run merge drivers.
const MERGING: [&str; 6] = ["am", "cherry-pick", "merge", "rebase", "revert", "stash"];

/// Commands that run filters or merge drivers, also where they only compare: a file that was written in the same moment as
/// the index is read again.
const HELPED: [&str; 23] = [
    "add",
    "am",
    "apply",
    "bisect",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "diff-files",
    "diff-index",
    "hash-object",
    "ls-files",
    "merge",
    "merge-tree",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "stash",
    "status",
    "submodule",
    "update-index",
    "worktree",
];

/// Folders of a git directory that users link to another disk or to another repository.
const OFTEN_LINKED: [&str; 6] = ["annex", "lfs", "logs", "modules", "objects", "refs"];

/// Whether a command writes, makes or removes files of a worktree.
fn is_writing(command: &str) -> bool {
    WRITING.contains(&command)
}

/// What the user's settings let git run while it writes files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Helpers {
    /// git-lfs, which may download: it writes to the user's cache, too.
    lfs: bool,
    /// Where git-lfs keeps its files, if the user says so.
    lfs_storage: Option<PathBuf>,
    /// How ssh is started, if the user says so.
    ssh: Option<String>,
    /// A filter that is not known here.
    filter: bool,
    /// A merge driver.
    driver: bool,
    /// Objects that are fetched when they are needed.
    promisor: bool,
}

impl Helpers {
    pub(super) fn of<'e>(settings: impl Iterator<Item = &'e SettingEntry>) -> Self {
        let mut found = Self::default();
        settings.for_each(|entry| found.note(entry));
        found
    }

    fn note(&mut self, entry: &SettingEntry) {
        let (key, value) = (entry.key.as_slice(), entry.value.as_deref().unwrap_or_default());
        let text = || String::from_utf8_lossy(value).into_owned();
        match key {
            b"lfs.storage" => self.lfs_storage = Some(PathBuf::from(OsStr::from_bytes(value))),
            b"core.sshcommand" => self.ssh = Some(text()),
            b"extensions.partialclone" => self.promisor = true,
            _ if key.starts_with(b"filter.lfs.") => self.lfs = true,
            _ if key.starts_with(b"filter.") => {
                let is_program =
                    [&b".clean"[..], b".smudge", b".process"].iter().any(|end| key.ends_with(end));
                self.filter |= is_program && !value.is_empty();
            }
            _ if key.starts_with(b"merge.") => self.driver |= key.ends_with(b".driver"),
            _ if key.starts_with(b"remote.") => {
                self.promisor |= key.ends_with(b".promisor") && entry.is_true();
            }
            _ => {}
        }
    }

    /// Whether this command may run a program that is not git's: a script of the repository, perhaps, which an agent has
    /// just written.
    pub(super) fn may_run_in(&self, command: &str) -> bool {
        (self.filter || self.lfs || self.driver) && HELPED.contains(&command)
    }

    /// Whether it is unknown what this command has to write. Then it is not confined: the programs are the user's own, an agent
    /// cannot configure one, and a checkout that fails for every task is worse than a race that only an agent of
    /// another task can win.
    fn are_unknown(&self, command: &str) -> bool {
        self.filter || self.promisor || (self.driver && MERGING.contains(&command))
    }

    /// The folders that may be written besides worktree and git directory: that for temporary files, which git, filters and
    /// merge drivers use and any program can write to, and what git-lfs needs.
    fn folders(&self) -> Vec<PathBuf> {
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
        let storage = || self.lfs_storage.clone().filter(|storage| storage.is_absolute());
        let all = [Some(env::temp_dir()), cache().filter(|_| self.lfs), storage().filter(|_| self.lfs)];
        // These are the user's own, and may well be links.
        all.into_iter().flatten().map(|folder| safe_files::resolved(&folder)).collect()
    }

    /// ssh without a socket for later calls, which it would put into a folder that is closed, and give up.
    fn ssh(&self) -> Option<String> {
        let own =
            env::var("GIT_SSH_COMMAND").ok().or_else(|| self.ssh.clone()).unwrap_or_else(|| "ssh".into());
        let is_usual = self.lfs && env::var_os("GIT_SSH").is_none() && is_openssh(&own);
        is_usual.then(|| format!("{own} -o ControlMaster=no"))
    }
}

impl Repository {
    /// The same as [`Repository::pin`] for a command that changes something. If it writes files of the worktree, it is confined
    /// to that and the git directories.
    pub(super) fn pin_changing(&self, command: GitCommand) -> GitCommand {
        if !is_writing(command.name()) {
            return self.pin(command);
        }
        // Agents of another run may be at work before this one has started any. Where this fails, every call is refused.
        let _ = self.freeze_settings(SettingsChange::Once);
        let command = self.pin(command);
        let is_register = command.name() == "worktree";
        // A command for the register of worktrees writes to the folders that it is given, not to this one.
        let top = self.worktree.as_deref().filter(|_| !is_register).map(identity::real_top);
        let homes = [self.common_dir.clone(), self.git_dir.clone()];
        let linked = identity::linked_folders(&self.common_dir, &OFTEN_LINKED);
        self.confine_to(command, homes.into_iter().chain(linked).chain(top))
    }

    /// The same command, confined to these folders if it writes files.
    pub(super) fn confine_to(
        &self,
        command: GitCommand,
        folders: impl IntoIterator<Item = PathBuf>,
    ) -> GitCommand {
        if !is_writing(command.name()) {
            return command;
        }
        let Some(helpers) = self.frozen_helpers().filter(|helpers| !helpers.are_unknown(command.name()))
        else {
            return command;
        };
        let confinement = Confinement::new(folders.into_iter().chain(helpers.folders()));
        let command = command.map_program(|program| program.confined(confinement));
        match helpers.ssh() {
            Some(ssh) => command.env("GIT_SSH_COMMAND", ssh),
            None => command,
        }
    }
}

impl GitCommand {
    /// The same, which may change files beneath this folder too.
    #[must_use]
    pub(super) fn writing_in(self, folder: &Path) -> Self {
        self.map_program(|program| program.writing_in(folder))
    }
}
