//! The rules of Landlock for a confined child. They only add rights: what is not granted is closed, and nothing below a
//! granted folder can be closed again.
//!
//! A folder that must not be read is closed by granting everything beside it: all entries of the folders above it, except
//! those that lead to it. So an entry that is made there later cannot be read by a child that runs already. Listing folders
//! is not limited, because the right to list a folder holds for everything below it, and programs need to list the home
//! directory: the names in a hidden folder can be seen, its files cannot be read.

use std::path::PathBuf;

/// What a child may do.
#[derive(Debug, Default)]
pub(super) struct LandlockRules<'c> {
    /// Folders in which everything may be changed.
    pub(super) folders: &'c [PathBuf],
    /// Files and devices that may be written to.
    pub(super) files: &'c [PathBuf],
    /// Folders and files that must not be read. One in a granted folder can be read.
    pub(super) hidden: &'c [PathBuf],
    /// Folders in hidden ones that may be read.
    pub(super) shown: &'c [PathBuf],
    /// Whether it can signal only processes that are limited by these rules, too. Linux before 6.12 cannot do this.
    pub(super) keeps_signals_inside: bool,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_enforced() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
impl LandlockRules<'_> {
    pub(super) fn enter(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
pub(super) use system::is_enforced;

#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::BTreeSet,
        fs, io,
        path::{Path, PathBuf},
        sync::OnceLock,
        thread,
    };

    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset,
        RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    };
    use rustix::fs::{Mode, OFlags};

    use super::LandlockRules;
    use crate::safe_files;

    /// Devices that programs may write to.
    const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

    pub(in crate::process) fn is_enforced() -> bool {
        static ENFORCED: OnceLock<bool> = OnceLock::new();
        // The thread that tries it stays confined, so it must be a separate one.
        let try_out = || LandlockRules::default().restrict().is_ok();
        *ENFORCED.get_or_init(|| thread::spawn(try_out).join().unwrap_or(false))
    }

    /// The rights in a granted folder. Before version 2 (Linux 5.19) Landlock refuses every move to another
    /// folder, which git needs. Version 3 added truncating by name, which git never does without opening the file for
    /// writing.
    ///
    /// No child may make devices: root could read and write a disk through one.
    fn changing() -> BitFlags<AccessFs> {
        let all = AccessFs::from_write(ABI::V2) | AccessFs::Truncate;
        all & !(AccessFs::MakeBlock | AccessFs::MakeChar)
    }

    impl LandlockRules<'_> {
        /// Confines the calling thread permanently, and everything that it starts.
        pub(in crate::process) fn enter(&self) -> io::Result<()> {
            self.restrict().map_err(io::Error::other)
        }

        fn restrict(&self) -> Result<(), RulesetError> {
            let hidden = self.closable();
            let rules = Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_write(ABI::V2))?;
            let is_reading_limited = !hidden.is_empty();
            let rules = if is_reading_limited { rules.handle_access(AccessFs::ReadFile)? } else { rules };
            let rules = rules.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::Truncate)?;
            let rules = if self.keeps_signals_inside { rules.scope(Scope::Signal)? } else { rules };
            let mut rules = rules.create()?;
            let reading =
                if is_reading_limited { AccessFs::ReadFile.into() } else { BitFlags::<AccessFs>::EMPTY };
            for folder in self.folders {
                if let Ok(place) = safe_files::open_place(folder) {
                    rules = rules.add_rule(PathBeneath::new(place, changing() | reading))?;
                }
            }
            let devices = DEVICES.iter().map(Path::new);
            for file in devices.chain(self.files.iter().map(PathBuf::as_path)) {
                if let Ok(file) = PathFd::new(file) {
                    let access = AccessFs::WriteFile | AccessFs::Truncate;
                    rules = rules.add_rule(PathBeneath::new(file, access | reading))?;
                }
            }
            if is_reading_limited {
                for path in list_readable(&hidden).iter().chain(self.shown) {
                    // A link is not followed: it could lead to a hidden folder.
                    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    if let Ok(place) = rustix::fs::open(path, flags, Mode::empty()) {
                        rules = rules.add_rule(PathBeneath::new(place, AccessFs::ReadFile))?;
                    }
                }
            }
            rules.restrict_self().map(|_: RestrictionStatus| ())
        }

        /// The hidden folders and files that can be closed: those that exist, are in no granted folder, and whose parents can be
        /// listed.
        fn closable(&self) -> BTreeSet<PathBuf> {
            let is_granted = |path: &Path| self.folders.iter().any(|folder| path.starts_with(folder));
            let is_listable =
                |path: &Path| path.ancestors().skip(1).all(|folder| fs::read_dir(folder).is_ok());
            let hidden = self.hidden.iter().filter_map(|path| path.canonicalize().ok());
            hidden.filter(|path| !is_granted(path) && is_listable(path)).collect()
        }
    }

    /// Everything beside the ways to hidden folders and files.
    fn list_readable(hidden: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let ways: BTreeSet<&Path> = hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        let is_inside = |folder: &&Path| folder.ancestors().any(|above| hidden.contains(above));
        let entries = ways.iter().filter(|way| !is_inside(way)).filter_map(|way| fs::read_dir(way).ok());
        let entries = entries.flatten().flatten().map(|entry| entry.path());
        entries.filter(|entry| !ways.contains(entry.as_path()) && !hidden.contains(entry)).collect()
    }
}
