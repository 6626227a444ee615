//! Limits where a child process may change files, with Landlock or bubblewrap on Linux, and with `sandbox-exec` on macOS.
//!
//! With Landlock, a separate thread restricts itself and starts the child. The child and everything that it starts inherit the
//! restriction and cannot remove it. The thread then ends; no parent-death signal is used, so children survive it, and
//! they are waited for by process id.
//!
//! Rules name folders by descriptor. Folders are opened without following links, so a folder that was replaced by a
//! link is not granted, and one that is replaced later leads to a path that is not granted either.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{
    ResourceLimits, bwrap,
    landlock_rules::{self, LandlockRules},
    mounts::{self, MountKind, Mounts, ReplacedPath},
    rights::drop_rights_of_root,
    sandbox_exec,
};
use crate::{safe_files, words::words};

words! {
    /// What enforces a [`Confinement`].
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum ConfinementBackend {
        /// Rules of the kernel that only add rights: nothing below a granted folder can be closed again.
        #[default]
        Landlock = "landlock",
        /// Namespaces made by bubblewrap. Only supervised programs can be run in them.
        Bwrap = "bwrap",
        /// A profile for `sandbox-exec` on macOS. Only supervised programs can be run with it.
        SandboxExec = "sandbox-exec",
    }
}

impl ConfinementBackend {
    /// Those that this system may have, the strongest first.
    #[must_use]
    pub const fn of_system() -> &'static [Self] {
        if cfg!(target_os = "macos") { &[Self::SandboxExec] } else { &[Self::Bwrap, Self::Landlock] }
    }

    /// Whether it can take the network away, close a folder inside of a writable one, and hide one.
    #[must_use]
    pub const fn can_take_away(self) -> bool {
        !matches!(self, Self::Landlock)
    }

    /// Whether it can put something else in the place of a path.
    #[must_use]
    pub const fn can_replace(self) -> bool {
        matches!(self, Self::Bwrap)
    }

    /// Whether a program inside can start another sandbox. That needs mounts, which Landlock forbids. This is tried once.
    #[must_use]
    pub fn can_nest(self) -> bool {
        matches!(self, Self::Bwrap) && bwrap::can_nest()
    }

    /// Whether it works on this system. This is tried once, because a kernel may support it and still refuse it (because
    /// of a boot parameter, or a container's system call filter).
    #[must_use]
    pub fn works(self) -> bool {
        match self {
            Self::Landlock => landlock_rules::is_enforced(),
            Self::Bwrap => bwrap::find().is_some(),
            Self::SandboxExec => sandbox_exec::works(),
        }
    }
}

/// What happens to the sandbox of a child's own program (codex) inside of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InnerSandbox {
    /// Its program has none.
    #[default]
    None,
    /// It works inside of ours.
    Nested,
    /// It is turned off.
    Off,
}

/// The folders below which a child may write, create, remove and rename. If Landlock does not work (see
/// [`Confinement::is_enforced`]), a child is started without limits, unless the confinement is required.
///
/// A confined process cannot gain privileges (`sudo`), mount anything, or trace and inspect a process outside of its own
/// confinement. So it cannot write to the output of another one through `/proc` either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    folders: Vec<PathBuf>,
    /// The first of them, in which the child works. They stay visible in hidden folders, even if an outer folder is granted.
    own: Vec<PathBuf>,
    /// Files and devices that may be written to, but not replaced.
    pub(crate) files: Vec<PathBuf>,
    /// Folders and files that cannot be changed even if they are in a granted folder. Landlock cannot enforce this.
    pub(crate) closed: Vec<PathBuf>,
    /// Folders that look empty and can be changed, but not for anybody else. Landlock cannot enforce this.
    pub(crate) private: Vec<PathBuf>,
    /// Folders and files that look empty. With Landlock, the names in them stay visible, and what is in a granted folder
    /// stays readable.
    hidden: Vec<PathBuf>,
    /// The setting that hides them.
    hidden_by: String,
    /// Folders in hidden ones that can be read.
    pub(crate) shown: Vec<PathBuf>,
    /// Paths that lead to something else. Only bubblewrap can do this.
    pub(crate) replaced: Vec<ReplacedPath>,
    /// The setting that takes the network away from a child. With Landlock it is not started.
    pub(crate) offline_by: Option<String>,
    backend: ConfinementBackend,
    /// Whether a supervised child gets a folder for temporary files (`TMPDIR`) that is removed after it.
    pub(crate) has_private_temp: bool,
    /// Whether a child is not started at all if the system cannot enforce this.
    pub(crate) is_required: bool,
    /// What else a supervised child may use.
    pub(crate) resources: ResourceLimits,
    /// Whether only that is limited, and every file may be changed.
    is_open: bool,
    /// What happens to the sandbox of the child's own program.
    pub(crate) inner: InnerSandbox,
}

impl Confinement {
    /// Allows only these folders. A folder that is missing or a link when the child starts is left out.
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let own: Vec<PathBuf> = folders.into_iter().collect();
        let mut made = Self::default();
        own.iter().for_each(|folder| made.add(folder.clone()));
        Self { own, ..made }
    }

    /// Allows everything, so that only the use of resources can be limited.
    #[must_use]
    pub fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Limits the use of resources by a supervised child.
    #[must_use]
    pub fn with_resources(self, resources: ResourceLimits) -> Self {
        Self { resources, ..self }
    }

    /// Sets what enforces it.
    #[must_use]
    pub fn enforced_by(self, backend: ConfinementBackend) -> Self {
        Self { backend, ..self }
    }

    /// Allows this folder, too.
    pub fn add(&mut self, folder: PathBuf) {
        // Each rule costs an open file, so a folder inside of another one gets none, unless it would be closed.
        let is_closed = self.closed.iter().any(|closed| folder.starts_with(closed));
        if is_closed || !self.folders.iter().any(|known| folder.starts_with(known)) {
            self.folders.retain(|known| !known.starts_with(&folder));
            self.folders.push(folder);
        }
    }

    /// Makes these folders and files look empty, because this setting wants it.
    pub fn hide(&mut self, paths: Vec<PathBuf>, setting: String) {
        self.hidden.extend(paths);
        self.hidden_by = setting;
    }

    /// Whether something at `path` may be changed.
    #[must_use]
    pub fn allows(&self, path: &Path) -> bool {
        if self.is_closed(path) {
            return false;
        }
        self.folders.iter().any(|folder| path.starts_with(folder))
            || self.files.iter().any(|file| file == path)
    }

    /// Whether everything that is not allowed is a read-only file system for the child, once it has started.
    pub(super) fn is_read_only_elsewhere(&self) -> bool {
        self.is_bwrap() && !self.is_open
    }

    /// Whether `folder` or anything below it may be changed.
    pub(super) fn allows_below(&self, folder: &Path) -> bool {
        let is_inside = |path: &Path| path != folder && path.starts_with(folder);
        let writable = self.replaced.iter().filter(|replaced| replaced.is_writable);
        self.allows(folder)
            || self.folders.iter().any(|granted| is_inside(granted) && !self.is_closed(granted))
            || self.files.iter().any(|file| is_inside(file))
            || writable.into_iter().any(|replaced| is_inside(&replaced.by))
    }

    /// Whether `path` is kept as it is although it is in a folder that is allowed.
    #[must_use]
    pub fn is_closed(&self, path: &Path) -> bool {
        self.backend.can_take_away()
            && self.closed.iter().any(|closed| {
                path.starts_with(closed)
                    // A folder inside of it may be allowed explicitly.
                    && !self.folders.iter().any(|folder| folder != closed && folder.starts_with(closed) && path.starts_with(folder))
            })
    }

    /// Whether `path` is kept as it is, or would be if the backend could do that.
    #[must_use]
    pub fn is_kept(&self, path: &Path) -> bool {
        self.closed.iter().any(|closed| path.starts_with(closed))
    }

    /// The git directory of the checkout that a child works in, as it is kept.
    #[must_use]
    pub fn find_git(&self) -> Option<&Path> {
        self.closed.iter().map(PathBuf::as_path).find(|path| path.ends_with(".git"))
    }

    /// What hides `path`: the folder or file, and the setting.
    #[must_use]
    pub fn find_hidden(&self, path: &Path) -> Option<(&Path, &str)> {
        let mut visible = self.folders.iter().chain(&self.files).chain(&self.shown);
        let hidden = self.hidden.iter().find(|hidden| path.starts_with(hidden))?;
        let is_visible = visible.any(|shown| shown.starts_with(hidden) && path.starts_with(shown));
        (!is_visible).then_some((hidden, &self.hidden_by))
    }

    /// Whether it limits on this system which files children can change.
    #[must_use]
    pub fn is_effective(&self) -> bool {
        !self.is_open && self.backend.works()
    }

    /// Whether bubblewrap enforces it, which stays the parent of the child.
    pub(crate) fn is_bwrap(&self) -> bool {
        self.backend == ConfinementBackend::Bwrap
    }

    /// The command that starts `command` with limited resources, if they are limited.
    pub(super) fn limit(&self, command: &Command) -> io::Result<Option<Command>> {
        self.resources.wrap(command, !self.is_open && self.is_bwrap())
    }

    /// The command with the options that its own sandbox needs inside of this one. These are the options of codex.
    pub(super) fn adapt_inner_sandbox(&self, command: &Command) -> Option<Command> {
        let mode: &[&str] = match self.inner {
            InnerSandbox::None => return None,
            // It makes mount points in all folders that it opens, and /tmp is read-only here. Its TMPDIR stays open.
            InnerSandbox::Nested => {
                make_folder_of_codex();
                &["workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true"]
            }
            InnerSandbox::Off => &["danger-full-access"],
        };
        let mut changed = Command::new(command.get_program());
        let mut before = OsStr::new("");
        for arg in command.get_args() {
            match std::mem::replace(&mut before, arg) == "-s" && arg == "workspace-write" {
                true => changed.args(mode),
                false => changed.arg(arg),
            };
        }
        mounts::copy_surroundings(command, &mut changed);
        Some(changed)
    }

    /// The command that starts `command` confined, where another program enforces it.
    pub(super) fn wrap(&self, command: &Command) -> io::Result<Option<Command>> {
        match self.backend {
            _ if self.is_open => Ok(None),
            ConfinementBackend::Landlock => Ok(None),
            ConfinementBackend::Bwrap => bwrap::wrap(command, &self.mounts()).map(Some),
            ConfinementBackend::SandboxExec => sandbox_exec::wrap(command, &self.mounts()).map(Some),
        }
    }

    /// What a child finds at which path. Paths that are missing are left out. So are granted folders that
    /// are links: an agent may have put a link there.
    fn mounts(&self) -> Mounts {
        let is_granted = |folder: &&PathBuf| safe_files::open_place(folder).is_ok();
        let folders = self.own.iter().chain(&self.folders).filter(is_granted);
        // bubblewrap provides its own terminals.
        let is_device = |file: &Path| file.starts_with("/dev") && !file.starts_with("/dev/shm");
        let files = self.files.iter().filter(|file| !is_device(file) && file.is_file());
        let of_kind = |kind: MountKind| move |path: &PathBuf| Some((path.canonicalize().ok()?, kind));
        let writable = folders.chain(files).filter_map(of_kind(MountKind::Writable));
        let closed = self.closed.iter().filter_map(of_kind(MountKind::ReadOnly));
        let is_folder = |folder: &&PathBuf| safe_files::open_place(folder).is_ok();
        let private = self.private.iter().filter(is_folder).filter_map(of_kind(MountKind::Private));
        let hidden = self.hidden.iter().filter_map(of_kind(MountKind::Hidden));
        let shown = self.shown.iter().filter(is_folder).filter_map(of_kind(MountKind::ReadOnly));
        let paths = writable.chain(closed).chain(private).chain(hidden).chain(shown).collect();
        Mounts { paths, replaced: self.replaced.clone(), is_offline: self.offline_by.is_some() }
    }

    /// Makes the folder for temporary files, if a child gets one.
    pub(super) fn make_temp(&mut self) -> io::Result<Option<TempDir>> {
        if !self.has_private_temp || !self.is_effective() {
            return Ok(None);
        }
        let folder = tempfile::Builder::new().prefix("git-arborist-").tempdir()?;
        self.add(safe_files::resolved(folder.path()));
        Ok(Some(folder))
    }

    /// Whether Landlock works on this system.
    #[must_use]
    pub fn is_enforced() -> bool {
        ConfinementBackend::Landlock.works()
    }

    /// Runs `start` in a thread that is confined permanently.
    pub(super) fn apply<T: Send>(&self, start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if self.is_open || !Self::is_enforced() {
            self.enter()?;
            return start();
        }
        std::thread::scope(|scope| {
            let work = || self.enter().and_then(|()| start());
            let thread =
                std::thread::Builder::new().name("confined start".into()).spawn_scoped(scope, work)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended early")))
        })
    }

    /// Confines the calling thread permanently, and everything that it starts.
    pub(super) fn enter(&self) -> io::Result<()> {
        if self.is_open {
            Ok(())
        } else if self.offline_by.is_some() {
            Err(io::Error::other(
                "only bubblewrap (bwrap) can turn the network off, but the sandbox does not use bubblewrap here",
            ))
        } else if self.backend != ConfinementBackend::Landlock {
            Err(io::Error::other("the sandbox needs bubblewrap (bwrap), which does not work here"))
        } else if Self::is_enforced() {
            // The driver's own git commands have no such folder, and keep their rights.
            if self.has_private_temp {
                drop_rights_of_root();
            }
            let rules = LandlockRules {
                folders: &self.folders,
                files: &self.files,
                hidden: &self.hidden,
                shown: &self.shown,
                keeps_signals_inside: self.has_private_temp,
            };
            rules.enter()
        } else if self.is_required {
            Err(io::Error::other("this system cannot enforce the sandbox"))
        } else {
            Ok(())
        }
    }
}

/// codex makes this folder before it starts a command, and cannot do so where /tmp is read-only. It need not write to it.
fn make_folder_of_codex() {
    let folder = format!("/tmp/codex-daemon-{}", rustix::process::getuid().as_raw());
    let _ = rustix::fs::mkdir(folder, rustix::fs::Mode::RWXU);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::{Limits, Program, Supervised};

    /// Two folders of which the first is granted, with a file and a folder each, and a link from one to the other.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let (inside, outside) = (real.join("inside"), real.join("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir_all(folder.join("sub")).unwrap();
            fs::write(folder.join("file"), "old").unwrap();
        }
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        (root, inside, outside)
    }

    fn shell(script: &str, inside: &PathBuf) -> Program {
        let confinement = Confinement::new([inside.clone()]);
        Program::new("sh").args(["-c", script]).dir(inside).confined(confinement)
    }

    #[test]
    fn a_confined_program_changes_nothing_outside_the_granted_folders() {
        if !Confinement::is_enforced() {
            return;
        }
        for script in [
            "echo new > link/file",
            "echo new >> link/file",
            "echo new > link/new",
            "mkdir link/new",
            "rm link/file",
            "rmdir link/sub",
            "mv link/file link/new",
            "mv link/file moved",
            "mv file link/new",
            "ln file link/new",
            "ln link/file linked",
            "ln -s x link/new",
            "mkfifo link/new",
            "sh -c 'sh -c \"echo new > link/file\"'",
        ] {
            let (_root, inside, outside) = folders();
            let ended = shell(script, &inside).finish().unwrap();
            assert!(!ended.status.success(), "{script}");
            let mut names: Vec<_> =
                fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["file", "sub"], "{script}");
            assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "old", "{script}");
        }
    }

    #[test]
    fn a_confined_program_can_change_granted_folders_and_read_everything() {
        let (_root, inside, outside) = folders();
        let script = "echo new > file; mv file sub/moved; mkdir a; mv sub/moved a/b; ln a/b c; rm c; rmdir sub; \
                      ln -s x y; cat link/file > /dev/null; cat link/file > copy; test -d link/sub";
        let ended = shell(&format!("set -e; {script}"), &inside).finish().unwrap();
        assert!(ended.status.success(), "{}", ended.complaint());
        assert_eq!(fs::read_to_string(inside.join("copy")).unwrap(), "old");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "old");
        let made = inside.join("a/b");
        assert_eq!(fs::read_to_string(made).unwrap(), "new\n");
    }

    #[test]
    fn supervised_programs_are_confined_and_outlive_the_thread_that_started_them() {
        let (_root, inside, outside) = folders();
        let script = "sleep 0.1; echo new > file; echo new > link/file; true";
        let outcome = Supervised::new(shell(script, &inside)).limits(Limits::default()).run(|_| ());
        assert!(outcome.ending.is_success(), "{:?}", outcome.ending);
        assert_eq!(fs::read_to_string(inside.join("file")).unwrap(), "new\n");
        let is_old = fs::read_to_string(outside.join("file")).unwrap() == "old";
        assert_eq!(is_old, Confinement::is_enforced());
    }

    #[test]
    fn starting_a_confined_program_does_not_confine_this_process() {
        let (_root, inside, outside) = folders();
        shell("true", &inside).finish().unwrap();
        fs::write(outside.join("file"), "new").unwrap();
        let ended = Program::new("sh").args(["-c", "echo more > file"]).dir(&outside).finish().unwrap();
        assert!(ended.status.success());
    }

    #[test]
    fn landlock_grants_no_folder_that_is_a_link() {
        if !Confinement::is_enforced() {
            return;
        }
        let (_root, inside, outside) = folders();
        let program = Program::new("sh").args(["-c", "echo new > file"]).dir(&outside);
        let ended = program.confined(Confinement::new([inside.join("link")])).finish().unwrap();
        assert!(!ended.status.success());
    }

    #[test]
    fn a_folder_within_a_granted_one_needs_no_rule() {
        let mut confinement = Confinement::new(["/a/b", "/a", "/a/c", "/d"].map(PathBuf::from));
        assert_eq!(confinement.folders, ["/a", "/d"].map(PathBuf::from));
        confinement.add("/".into());
        assert_eq!(confinement.folders, ["/"].map(PathBuf::from));
    }
}
