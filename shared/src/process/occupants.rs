//! Which folders processes are in.

use std::path::{Path, PathBuf};

use super::table;

/// The processes of this machine that can be seen, by the folder that they are in.
#[derive(Debug, Clone, Default)]
pub struct Occupants(Vec<(u32, PathBuf)>);

impl Occupants {
    /// All of them; `None` where the system does not tell.
    #[must_use]
    pub fn find() -> Option<Self> {
        system::all().map(Self)
    }

    /// A process that is in `folder` or below it.
    #[must_use]
    pub fn of(&self, folder: &Path) -> Option<u32> {
        self.0.iter().find(|(_, place)| place.starts_with(folder)).map(|(pid, _)| *pid)
    }

    /// Whether a git that neither we nor any of ours started, and that did not start us, is in one of these folders. One whose
    /// folder cannot be seen may be. `None` where the system does not tell.
    #[must_use]
    pub fn has_other_git(folders: &[&Path]) -> Option<bool> {
        let gits = system::find_gits()?;
        let real = |folder: &&Path| folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let folders: Vec<PathBuf> = folders.iter().map(real).collect();
        let (table, us) = (table::all(), std::process::id());
        let mut ours = table::with_descendants(&table, [us].into());
        ours.extend(table::with_ancestors(&table, us));
        let is_there = |place: &Option<PathBuf>| {
            place.as_ref().is_none_or(|place| folders.iter().any(|folder| place.starts_with(folder)))
        };
        Some(gits.iter().any(|(pid, place)| !ours.contains(pid) && is_there(place)))
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io::ErrorKind, path::PathBuf};

    /// The name of a program, as the system keeps it: its first fifteen bytes.
    const OURS: &str = "git-arborist";

    /// All gits, with the folder that each is in, if that can be seen.
    pub(super) fn find_gits() -> Option<Vec<(u32, Option<PathBuf>)>> {
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let git = |entry: fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let name = name.trim_end();
            let is_git = name == "git" || (name.starts_with("git-") && !name.starts_with(OURS));
            match fs::read_link(entry.path().join("cwd")) {
                Ok(place) => is_git.then_some((pid, Some(place))),
                // One that has ended is nowhere any more.
                Err(error) if error.kind() != ErrorKind::PermissionDenied => None,
                Err(_) => is_git.then_some((pid, None)),
            }
        };
        Some(entries.filter_map(git).collect())
    }

    pub(super) fn all() -> Option<Vec<(u32, PathBuf)>> {
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let place = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, fs::read_link(entry.path().join("cwd")).ok()?))
        };
        let found: Vec<(u32, PathBuf)> = entries.filter_map(place).collect();
        // We are one of them: where not even we are seen, nothing is told.
        found.iter().any(|(pid, _)| *pid == std::process::id()).then_some(found)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{path::PathBuf, process::Command};

    pub(super) fn find_gits() -> Option<Vec<(u32, Option<PathBuf>)>> {
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
    fn we_are_where_we_are() {
        let here = std::env::current_dir().unwrap();
        let found = Occupants::find().unwrap();
        assert!(found.of(&here).is_some() && found.of(&here.join("nowhere")).is_none());
    }
}
