//! Confines git commands that write or remove files of a worktree to that worktree. An agent of another task can
//! replace a folder by a link at any time, even between git's check of the folder and its next file. Without
//! confinement, git would write to wherever the link points, or remove what is there.
//!
//! Such a command may write to the worktree, the git directories and temporary files. The user's filters and merge
//! drivers run inside of these limits; [`Helpers`] knows which of them need more. It takes them from the frozen
//! settings.

use std::{
    env,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    GitCommand, Repository, SettingsChange, before_children, remote::remote_ssh::is_openssh,
    settings::harmless_settings::SettingEntry,
};
use crate::{process::Confinement, safe_files};

/// Commands that write, create or remove files of a worktree. `clone` and `submodule update` are not among them: they
/// need the network, and with it programs (ssh, credential helpers) that write wherever the user's own settings say.
const WRITING: [&str; 17] = [
    "am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean", "merge", "mv",
    "read-tree", "rebase", "reset", "restore", "revert", "rm", "stash", "worktree",
];

/// Commands that write refs and their reflogs, but no files of a worktree.
const WRITING_REFS: [&str; 3] = ["notes", "symbolic-ref", "update-ref"];

/// Further commands that append to reflogs.
const APPENDING: [&str; 10] =
    ["am", "bisect", "checkout", "cherry-pick", "fetch", "merge", "push", "rebase", "reset", "worktree"];

/// Commands that merge files, and so run merge drivers.
const MERGING: [&str; 6] = ["am", "cherry-pick", "merge", "rebase", "revert", "stash"];

/// Commands that run filters or merge drivers, even if they only compare: git reads a file again that is as young as
/// the index.
const RUNNING_HELPERS: [&str; 23] = [
    "add", "am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "diff-files", "diff-index",
    "hash-object", "ls-files", "merge", "merge-tree", "read-tree", "rebase", "reset", "restore", "revert",
    "stash", "status", "submodule", "update-index", "worktree",
];

/// Folders of a git directory that users often link to another disk or repository.
const OFTEN_LINKED: [&str; 6] = ["annex", "lfs", "logs", "modules", "objects", "refs"];

/// Whether a command writes, creates or removes files of a worktree.
fn is_writing(command: &str) -> bool {
    WRITING.contains(&command)
}

/// Programs that the user's settings let git run while it writes files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Helpers {
    /// git-lfs, which may download and write to the user's cache.
    lfs: bool,
    /// Where git-lfs keeps its files, if that is set.
    lfs_storage: Option<PathBuf>,
    /// The ssh command, if that is set.
    ssh: Option<String>,
    /// Any other filter.
    filter: bool,
    /// A merge driver.
    driver: bool,
    /// A partial clone, which fetches objects when they are needed.
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

    /// Whether this command may run a program other than git, perhaps a script of the repository that an agent has just
    /// written.
    pub(super) fn may_run_in(&self, command: &str) -> bool {
        (self.filter || self.lfs || self.driver) && RUNNING_HELPERS.contains(&command)
    }

    /// Whether it is unknown where this command has to write. Then it is not confined: the programs are the user's own,
    /// an agent cannot configure them, and a checkout that fails for every task is worse than a race that only an agent
    /// of another task can win.
    fn has_unknown_needs(&self, command: &str) -> bool {
        self.filter || self.promisor || (self.driver && MERGING.contains(&command))
    }

    /// The folders that may be written in addition: the one for temporary files, which git, filters and merge drivers
    /// use and every program can write to, and those of git-lfs.
    fn folders(&self) -> Vec<PathBuf> {
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
        let storage = || self.lfs_storage.clone().filter(|storage| storage.is_absolute());
        let all = [Some(env::temp_dir()), cache().filter(|_| self.lfs), storage().filter(|_| self.lfs)];
        // These are the user's own and may be links.
        all.into_iter().flatten().map(|folder| safe_files::resolved(&folder)).collect()
    }

    /// The ssh command without a control socket: ssh would create it in a folder that is not writable, and fail.
    fn ssh(&self) -> Option<String> {
        let command =
            env::var("GIT_SSH_COMMAND").ok().or_else(|| self.ssh.clone()).unwrap_or_else(|| "ssh".into());
        let is_replaceable = self.lfs && env::var_os("GIT_SSH").is_none() && is_openssh(&command);
        is_replaceable.then(|| format!("{command} -o ControlMaster=no"))
    }
}

impl Repository {
    /// Whether our own git commands may run filters of the user.
    #[must_use]
    pub fn has_filters(&self) -> bool {
        self.frozen_helpers().is_some_and(|helpers| helpers.may_run_in("add"))
    }

    /// Like [`Repository::pin`], for a command that changes something. If it writes files of the worktree, it is
    /// confined to that and to the git directories.
    pub(super) fn pin_changing(&self, command: GitCommand) -> GitCommand {
        let is_for_refs = WRITING_REFS.contains(&command.name());
        if is_for_refs || APPENDING.contains(&command.name()) {
            self.clear_reflogs();
        }
        if is_for_refs && self.confines_refs() {
            return self.confine_to(self.pin(command), self.git_dirs_to_write());
        }
        if !is_writing(command.name()) {
            return self.pin(command);
        }
        // Agents of other runs may be active before this run has started any. If freezing fails, every command is
        // refused.
        let _ = self.freeze_settings(SettingsChange::Ignored);
        let command = self.pin(command);
        let is_worktree_command = command.name() == "worktree";
        // `git worktree` writes to the folders in its arguments, not to this worktree.
        let top = self.worktree.as_deref().filter(|_| !is_worktree_command).map(before_children::real_top);
        self.confine_to(command, self.git_dirs_to_write().into_iter().chain(top))
    }

    fn git_dirs_to_write(&self) -> Vec<PathBuf> {
        let linked = before_children::linked_folders(&self.common_dir, &OFTEN_LINKED);
        [self.common_dir.clone(), self.git_dir.clone()].into_iter().chain(linked).collect()
    }

    /// Whether commands that write refs are confined to the git directories. That is so after the settings were frozen, but
    /// not in a partial clone, where such a command may fetch objects.
    pub(super) fn confines_refs(&self) -> bool {
        self.frozen_helpers().is_some_and(|helpers| !helpers.promisor)
    }

    /// Confines a command to these folders if it writes files.
    pub(super) fn confine_to(
        &self,
        command: GitCommand,
        folders: impl IntoIterator<Item = PathBuf>,
    ) -> GitCommand {
        let is_for_refs = WRITING_REFS.contains(&command.name());
        if !is_for_refs && !is_writing(command.name()) {
            return command;
        }
        let is_known = |helpers: &Helpers| is_for_refs || !helpers.has_unknown_needs(command.name());
        let Some(helpers) = self.frozen_helpers().filter(is_known) else {
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
    /// Allows a command to write below this folder too.
    #[must_use]
    pub(super) fn writing_in(self, folder: &Path) -> Self {
        self.map_program(|program| program.writing_in(folder))
    }
}
