//! Packs loose objects. A run leaves about seventeen small object files for each task. When there are so many that git
//! itself would pack them, this is done between two tasks and at the end of a run, like the task `loose-objects` of
//! `git maintenance`.
//!
//! It is not left to `git maintenance run --auto` in the background, for three reasons. An agent can have overwritten
//! an object file, and git packs what it finds: so a new pack is verified before the object files are removed, and is
//! removed itself if it is wrong. `git gc` also prunes objects, expires reflogs, prunes worktrees and writes caches,
//! which the guards of other runs would blame on an agent. And nothing may write to the repository once the run's lock
//! is released. Nothing is pruned here: unreachable objects are packed like all others.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{
        GitError, Repository,
        objects::object_files::{PACK_EXTENSIONS, is_valid_pack, list_loose_ids},
    },
    name::Oid,
    process::{Quiet, is_executable},
    safe_files,
};

/// The number of object files that git tolerates, unless `gc.auto` is set.
const DEFAULT_LIMIT: u64 = 6700;
/// git estimates the number of files by those in this folder, because ids are evenly distributed.
const SAMPLE: &str = "17";
/// The number of such folders.
const FOLDERS: u64 = 256;
/// The largest number of objects for one pack, as in git.
const MAX_OBJECTS: usize = 50_000;

/// Packs loose objects during a run.
#[derive(Debug, Default)]
pub struct Packing {
    /// The limit for each repository, by common git directory.
    limits: BTreeMap<PathBuf, PackingLimit>,
}

/// What the user's settings say about packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackingLimit {
    /// Pack if there are more files than this.
    Above(u64),
    /// Never pack.
    Off,
}

impl Packing {
    /// Packs loose objects if there are too many and no child process is running. After an error it is not tried again.
    pub fn run(&mut self, repository: &Repository) -> Result<(), GitError> {
        let key = &repository.common_dir;
        let known = self.limits.get(key).copied();
        // This reads only one folder, because it is called after each task.
        let files = if known != Some(PackingLimit::Off) && Quiet::now().is_some() {
            repository.count_sample()
        } else {
            0
        };
        if files == 0 {
            return Ok(());
        }
        // If anything below fails, it would fail again.
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

    /// The limit according to the user's settings from before the first child.
    fn find_packing_limit(&self) -> Result<PackingLimit, GitError> {
        // Objects may be in other folders then, which are not ours to tidy up.
        if std::env::var_os("GIT_OBJECT_DIRECTORY").is_some() || self.has_gc_hook()? {
            return Ok(PackingLimit::Off);
        }
        let ask = |kind: &str, name: &str| self.git("config").args([kind, "--get", name]).answer();
        let is_off =
            ask("--type=bool", "maintenance.auto")?.is_some_and(|answer| answer.trim_ascii() == b"false");
        let limit = ask("--type=int", "gc.auto")?;
        let limit = limit.and_then(|limit| String::from_utf8(limit).ok()?.trim().parse::<i64>().ok());
        let limit = limit.map_or(DEFAULT_LIMIT, |limit| u64::try_from(limit).unwrap_or(0));
        Ok(if is_off || limit == 0 { PackingLimit::Off } else { PackingLimit::Above(limit) })
    }

    /// Whether the user has a hook that decides when git may pack. We run no hooks here, so nothing is packed then.
    fn has_gc_hook(&self) -> Result<bool, GitError> {
        let printed =
            self.act("rev-parse").args(["--path-format=absolute", "--git-path", "hooks"]).stdout()?;
        let named = PathBuf::from(OsStr::from_bytes(printed.trim_ascii_end()));
        // While settings are frozen, git does not print the default folder.
        let folders = [named, self.default_hooks_dir()];
        Ok(folders.iter().any(|folder| is_executable(&folder.join("pre-auto-gc"))))
    }

    /// Packs loose objects, verifies the packs, and only then removes the object files.
    fn pack_loose_objects(&self) -> Result<(), GitError> {
        let ids = list_loose_ids(self);
        let names: Vec<u8> =
            ids.iter().take(MAX_OBJECTS).flat_map(|id: &Oid| format!("{id}\n").into_bytes()).collect();
        let folder = self.common_dir.join("objects/pack");
        let pack = self.change("pack-objects").args(["-q", "--non-empty"]).arg(folder.join("loose"));
        let printed = pack.stdout_with(&names)?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let packs: Vec<PathBuf> =
            printed.lines().map(|hash| folder.join(format!("loose-{}", hash.trim()))).collect();
        if let Some(invalid) = packs.iter().find(|pack| !is_valid_pack(self, pack)) {
            packs.iter().for_each(|pack| remove_pack(pack));
            let complaint = format!("an object is not what its id says, in '{}'", invalid.display());
            return Err(GitError::Failed { command: "verify-pack".into(), complaint });
        }
        self.change("prune-packed").arg("-q").stdout().map(drop)
    }
}

/// Removes a pack. Its loose objects still exist.
fn remove_pack(stem: &Path) {
    for end in PACK_EXTENSIONS {
        let _ = safe_files::remove(&stem.with_extension(end));
    }
}
