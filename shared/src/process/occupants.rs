//! Which folders processes are in.

use std::path::{Path, PathBuf};

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
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, path::PathBuf};

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
