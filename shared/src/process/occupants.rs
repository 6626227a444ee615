//! Finds out which folders processes are working in.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::table;

/// The visible processes of this machine, by their working directory.
#[derive(Debug, Clone, Default)]
pub struct Occupants(Vec<(u32, PathBuf)>);

impl Occupants {
    /// All of them; `None` if the system does not tell.
    #[must_use]
    pub fn find() -> Option<Self> {
        system::all().map(Self)
    }

    /// A process whose working directory is `folder` or below it.
    #[must_use]
    pub fn of(&self, folder: &Path) -> Option<u32> {
        self.0.iter().find(|(_, place)| place.starts_with(folder)).map(|(pid, _)| *pid)
    }

    /// Whether a git that is neither a descendant nor an ancestor of this process works in one of these folders. A git
    /// whose directory is not visible counts. `None` if the system does not tell.
    #[must_use]
    pub fn has_other_git(folders: &[&Path]) -> Option<bool> {
        Some(find_gits(folders)?.iter().any(|git| !git.only_reads()))
    }

    /// The git processes in these folders that were started by a driver that has died. They continue to write until
    /// they end.
    #[must_use]
    pub fn gits_of_dead_drivers(folders: &[&Path]) -> Vec<u32> {
        let gits = find_gits(folders).unwrap_or_default();
        let is_orphan = |git: &&Git| {
            let mark = git.environment.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(DRIVER_IS));
            mark.and_then(|mark| std::str::from_utf8(mark).ok()).is_some_and(|mark| !is_driver_alive(mark))
        };
        gits.iter().filter(is_orphan).map(|git| git.pid).collect()
    }
}

/// The variable that names the driver which started a git.
pub const DRIVER: &str = "ARBORIST_DRIVER";
const DRIVER_IS: &[u8] = b"ARBORIST_DRIVER=";

/// The value of [`DRIVER`] for children of this process.
#[must_use]
pub fn driver_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let pid = std::process::id();
        format!("{pid}.{}", table::start_of(pid))
    })
}

/// Whether this environment is that of a git which this process started, or of something that such a git started.
pub(super) fn is_of_this_driver(environment: &[u8]) -> bool {
    let mut marks = environment.split(|byte| *byte == 0).filter_map(|one| one.strip_prefix(DRIVER_IS));
    marks.any(|mark| mark == driver_mark().as_bytes())
}

fn is_driver_alive(mark: &str) -> bool {
    let parts = mark.split_once('.').and_then(|(pid, started)| Some((pid.parse().ok()?, started)));
    parts.is_some_and(|(pid, started)| table::is_alive(pid, started))
}

/// A running git.
#[derive(Debug)]
struct Git {
    pid: u32,
    /// Its working directory, if that is visible.
    place: Option<PathBuf>,
    /// The device and inode of that directory and of those above it, if it is in another sandbox or container: its paths
    /// mean something else there.
    identities: Vec<(u64, u64)>,
    arguments: Vec<u8>,
    environment: Vec<u8>,
}

/// Commands that take no lock. Other runs keep some of these open all the time.
const READERS: [&[u8]; 9] = [
    b"cat-file", b"diff-tree", b"rev-list", b"rev-parse", b"log", b"ls-files", b"for-each-ref",
    b"hash-object", b"merge-tree",
];

impl Git {
    fn only_reads(&self) -> bool {
        // Options of git come first, each with "-c"; the first other argument is the command.
        let mut words = self.arguments.split(|byte| *byte == 0).skip(1);
        while let Some(word) = words.next() {
            match word {
                b"-c" | b"-C" => drop(words.next()),
                _ if word.starts_with(b"-") => {}
                _ => return READERS.contains(&word),
            }
        }
        false
    }

    /// Whether it works in one of these folders, or its arguments or environment name one of them.
    fn is_in(&self, folders: &[PathBuf]) -> bool {
        let names = |name: &[u8]| {
            [&self.arguments, &self.environment]
                .iter()
                .any(|bytes| memchr::memmem::find(bytes, name).is_some())
        };
        if let Some(place) = &self.place {
            return folders
                .iter()
                .any(|folder| place.starts_with(folder) || names(folder.as_os_str().as_encoded_bytes()));
        }
        let is_elsewhere = !self.identities.is_empty()
            && !names(b"GIT_DIR=")
            && !names(b"--git-dir")
            && !names(b"\0-C\0")
            && folders.iter().all(|folder| identity(folder).is_some_and(|id| !self.identities.contains(&id)));
        !is_elsewhere
    }
}

/// The device and inode of a folder.
fn identity(folder: &Path) -> Option<(u64, u64)> {
    folder.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// The git processes in these folders that are neither descendants nor ancestors of this process.
fn find_gits(folders: &[&Path]) -> Option<Vec<Git>> {
    let gits = system::find_gits()?;
    let real = |folder: &&Path| folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let folders: Vec<PathBuf> = folders.iter().map(real).collect();
    let (table, us) = (table::all(), std::process::id());
    let mut ours = table::with_descendants(&table, [us].into());
    ours.extend(table::with_ancestors(&table, us));
    Some(gits.into_iter().filter(|git| !ours.contains(&git.pid) && git.is_in(&folders)).collect())
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        fs,
        io::ErrorKind,
        path::{Path, PathBuf},
    };

    use super::{Git, identity};

    /// The name of a program as the kernel stores it: its first fifteen bytes.
    const OURS: &str = "git-arborist";

    /// All git processes. Paths of one in another container cannot be compared.
    pub(super) fn find_gits() -> Option<Vec<Git>> {
        let space = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let ours = space("self");
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let git = |entry: fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let name = name.trim_end();
            let is_git = name == "git" || (name.starts_with("git-") && !name.starts_with(OURS));
            if !is_git {
                return None;
            }
            let place = match fs::read_link(entry.path().join("cwd")) {
                Ok(place) => Some(place).filter(|_| space(&pid.to_string()) == ours),
                // A process that has ended has no directory.
                Err(error) if error.kind() != ErrorKind::PermissionDenied => return None,
                Err(_) => None,
            };
            let identities = if place.is_none() { identities(&entry.path().join("cwd")) } else { Vec::new() };
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            Some(Git { pid, place, identities, arguments: read("cmdline"), environment: read("environ") })
        };
        Some(entries.filter_map(git).collect())
    }

    /// The identities of a folder and of all above it, as its own process sees them; none if one cannot be read.
    fn identities(folder: &Path) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let mut folder = folder.join(".");
        loop {
            match identity(&folder) {
                None => return Vec::new(),
                // The root is its own parent.
                Some(id) if found.last() == Some(&id) => return found,
                Some(id) => found.push(id),
            }
            folder.push("..");
        }
    }

    pub(super) fn all() -> Option<Vec<(u32, PathBuf)>> {
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let place = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, fs::read_link(entry.path().join("cwd")).ok()?))
        };
        let found: Vec<(u32, PathBuf)> = entries.filter_map(place).collect();
        // We are one of them: if not even we are visible, the system tells nothing.
        found.iter().any(|(pid, _)| *pid == std::process::id()).then_some(found)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{path::PathBuf, process::Command};

    pub(super) fn find_gits() -> Option<Vec<super::Git>> {
        None
    }

    pub(super) fn all() -> Option<Vec<(u32, PathBuf)>> {
        let output = Command::new("lsof").args(["-w", "-d", "cwd", "-F", "pn"]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (mut found, mut pid) = (Vec::new(), 0);
        for line in text.lines() {
            if let Some(number) = line.strip_prefix('p') {
                pid = number.parse().ok()?;
            } else if let Some(path) = line.strip_prefix('n') {
                found.push((pid, PathBuf::from(path)));
            }
        }
        found.iter().any(|(pid, _)| *pid == std::process::id()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_working_folder_of_this_process_is_found() {
        let here = std::env::current_dir().unwrap();
        let found = Occupants::find().unwrap();
        assert!(found.of(&here).is_some() && found.of(&here.join("nowhere")).is_none());
    }
}
