//! What a confined child finds at which path, and the command that starts it through a program which enforces that.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use super::find::is_executable;
use crate::safe_files;

/// What a child finds at a path. At the same path the later kind wins; a path inside of another one counts more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    /// It may be changed.
    Writable,
    /// It can be read.
    ReadOnly,
    /// It is empty and may be changed. Only the child sees it, and it is removed when the child ends.
    Private,
    /// It is empty or cannot be read, and it cannot be changed.
    Hidden,
}

/// A file or folder that a child finds at another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedPath {
    /// Where the child finds it. Something of the same kind must be there.
    pub path: PathBuf,
    /// The file or folder itself.
    pub by: PathBuf,
    /// Whether the child may change it.
    pub is_writable: bool,
}

/// What a confined child may do.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    pub(super) paths: Vec<(PathBuf, MountKind)>,
    /// Paths that lead to something else. Only bubblewrap can do this.
    pub(super) replaced: Vec<ReplacedPath>,
    pub(super) is_offline: bool,
}

impl Mounts {
    /// Folders before what is in them.
    pub(super) fn sorted(&self) -> Vec<(PathBuf, MountKind)> {
        let mut paths = self.paths.clone();
        paths.sort();
        paths
    }

    /// Makes the folders `open`, `closed` and `hidden` in `root`, with which a trial shows whether a sandbox works.
    pub(super) fn for_trial(root: &Path) -> io::Result<Self> {
        for name in ["open", "closed", "hidden"] {
            safe_files::make_folder(&root.join(name))?;
        }
        safe_files::write(&root.join("hidden/file"), b"x")?;
        let paths = vec![
            (root.to_owned(), MountKind::Writable),
            (root.join("closed"), MountKind::ReadOnly),
            (root.join("hidden"), MountKind::Hidden),
        ];
        Ok(Self { paths, ..Self::default() })
    }
}

/// The command that runs `command` through `wrapper`, whose options may depend on the folder that the child starts in. Its
/// streams and its process group must be set afterwards.
pub(super) fn wrap_with(
    wrapper: &Path,
    command: &Command,
    options: impl FnOnce(&Path) -> Vec<OsString>,
) -> io::Result<Command> {
    let dir = match command.get_current_dir() {
        Some(dir) => std::path::absolute(dir)?,
        None => std::env::current_dir()?,
    };
    // If it is missing, bwrap would start the child in the home directory.
    dir.metadata()?;
    let program = locate(command, &dir)?;
    let mut wrapped = Command::new(wrapper);
    wrapped.args(options(&dir)).arg(program).args(command.get_args());
    copy_surroundings(command, &mut wrapped);
    wrapped.current_dir(dir);
    Ok(wrapped)
}

/// Gives a command the directory and the environment of another one.
pub(super) fn copy_surroundings(from: &Command, to: &mut Command) {
    if let Some(dir) = from.get_current_dir() {
        to.current_dir(dir);
    }
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

/// Finds the program as the system would, so that a missing one is reported by us and not by the wrapper.
fn locate(command: &Command, dir: &Path) -> io::Result<PathBuf> {
    let name = Path::new(command.get_program());
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        let file = dir.join(name);
        file.metadata()?;
        return if is_executable(&file) { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) };
    }
    let own = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let path = own.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&path).map(|folder| dir.join(folder).join(name)).collect();
    match files.iter().find(|file| is_executable(file)) {
        Some(file) => Ok(file.clone()),
        None if files.iter().any(|file| file.is_file()) => Err(io::ErrorKind::PermissionDenied.into()),
        None => Err(io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error())),
    }
}
