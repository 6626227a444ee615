//! Packing. A run leaves about seventeen small files of objects for each task. Where git itself would pack them by now, this
//! does it between two tasks and at the end of a run: the same as the task `loose-objects` of `git maintenance`.
//!
//! It is not left to a `git maintenance run --auto` in the background, for three reasons. A file of an object can have been
//! overwritten by an agent, and git packs what it finds there: so a new pack is verified before the files go that it was made
//! of, and goes itself where it is not true. `git gc` also prunes objects, expires logs, prunes worktrees and writes caches that
//! the guards of other runs take for an agent's doing. And nothing may write to the repository once the lock of the run is given
//! back. Nothing is ever pruned here: objects that no ref reaches yet are packed like all others.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    GitError, Repository,
    command::checked,
    object_files::{PARTS, is_sound_pack, list_loose_ids},
};
use crate::{
    name::Oid,
    process::{Quiet, is_executable},
    safe_files,
};

/// So many files git leaves alone, where `gc.auto` says nothing else.
const USUAL_LIMIT: u64 = 6700;
/// git estimates how many files there are by those in this folder. Ids are evenly spread.
const SAMPLE: &str = "17";
/// So many folders of files there are.
const FOLDERS: u64 = 256;
/// So many objects go into one pack at most, as with git.
const MOST: usize = 50_000;

/// Whether and when objects are packed during a run.
#[derive(Debug, Default)]
pub struct Packing {
    /// What was found for each repository, by its common git directory.
    limits: BTreeMap<PathBuf, PackingLimit>,
}

/// What the user's settings say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackingLimit {
    /// Objects are packed if there are more files than this.
    Above(u64),
    /// They are never packed.
    Off,
}

impl Packing {
    /// Packs the files of objects if there are too many of them and no child process of this one is at work. After an error it
    /// is not tried again.
    pub fn run(&mut self, repository: &Repository) -> Result<(), GitError> {
        let key = &repository.common_dir;
        let known = self.limits.get(key).copied();
        // One look into one folder: this is asked after each task.
        let files = if known != Some(PackingLimit::Off) && Quiet::now().is_some() {
            repository.count_sample()
        } else {
            0
        };
        if files == 0 {
            return Ok(());
        }
        // Whatever fails below fails again.
        self.limits.insert(key.clone(), PackingLimit::Off);
        let found = known.map_or_else(|| repository.find_packing_limit(), Ok)?;
        if let PackingLimit::Above(limit) = found
            && files > limit.div_ceil(FOLDERS)
        {
            repository.pack_loose_objects()?;
        }
        self.limits.insert(key.clone(), found);
        Ok(())
    }
}

impl Repository {
    fn count_sample(&self) -> u64 {
        let mut count = 0;
        let folder = self.common_dir.join("objects").join(SAMPLE);
        let listed = safe_files::visit_kinds(&folder, |_, _| count += 1);
        if listed.is_ok() { count } else { 0 }
    }

    /// What the settings of the user say, as they were before the first child.
    fn find_packing_limit(&self) -> Result<PackingLimit, GitError> {
        // Objects may be elsewhere then, and are not ours to tidy up.
        if std::env::var_os("GIT_OBJECT_DIRECTORY").is_some() || self.has_veto()? {
            return Ok(PackingLimit::Off);
        }
        let ask = |kind: &str, name: &str| self.git("config").args([kind, "--get", name]).answer();
        let is_off =
            ask("--type=bool", "maintenance.auto")?.is_some_and(|answer| answer.trim_ascii() == b"false");
        let limit = ask("--type=int", "gc.auto")?;
        let limit = limit.and_then(|limit| String::from_utf8(limit).ok()?.trim().parse::<i64>().ok());
        let limit = limit.map_or(USUAL_LIMIT, |limit| u64::try_from(limit).unwrap_or(0));
        Ok(if is_off || limit == 0 { PackingLimit::Off } else { PackingLimit::Above(limit) })
    }

    /// Whether a hook of the user's decides when git may pack. No hook runs here, so nothing is packed.
    fn has_veto(&self) -> Result<bool, GitError> {
        let printed =
            self.act("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]).stdout()?;
        let named = PathBuf::from(OsStr::from_bytes(printed.trim_ascii_end()));
        // While settings are frozen, git does not find the usual folder.
        let folders = [named, self.default_hooks_dir()];
        Ok(folders.iter().any(|folder| is_executable(&folder.join("pre-auto-gc"))))
    }

    /// Packs the files of objects, verifies the packs, and only then removes the files.
    fn pack_loose_objects(&self) -> Result<(), GitError> {
        let ids = list_loose_ids(self);
        let names: Vec<u8> =
            ids.iter().take(MOST).flat_map(|id: &Oid| format!("{id}\n").into_bytes()).collect();
        let folder = self.common_dir.join("objects/pack");
        let pack = self.change("pack-objects").args(["-q", "--non-empty"]).arg(folder.join("loose"));
        let printed = checked("pack-objects", pack.finish_with(&names)?)?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let packs: Vec<PathBuf> =
            printed.lines().map(|hash| folder.join(format!("loose-{}", hash.trim()))).collect();
        if let Some(untrue) = packs.iter().find(|pack| !is_sound_pack(self, pack)) {
            packs.iter().for_each(|pack| remove_pack(pack));
            let complaint = format!("an object is not what its id says, in '{}'", untrue.display());
            return Err(GitError::Failed { command: "verify-pack".into(), complaint });
        }
        self.change("prune-packed").arg("-q").stdout().map(drop)
    }
}

/// Removes a pack. The files of its objects are still there.
fn remove_pack(stem: &Path) {
    for end in PARTS {
        let _ = safe_files::remove(&stem.with_extension(end));
    }
}
