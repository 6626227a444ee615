//! Holds the objects that exist before the first child process. An agent that deletes a branch or a stash, expires the
//! reflogs and collects garbage would destroy the commits for good, because `git gc` removes what no ref reaches. So
//! every object file gets a second name in a folder of this process. These are hard links: nothing is copied, and git
//! does not know of them. Objects of refs that are still needed are linked back when they are missing.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use crate::{
    git::{
        Repository,
        settings::frozen_settings::{remove_abandoned, remove_at_end},
    },
    mutex::MutexExt,
    name::Oid,
    safe_files::{self, ChangeStamp, FileKind},
};

/// Where the links are, below the common git directory.
const FOLDER: &str = "arborist/held";
const PACKS: &str = "pack";
/// The files of a pack that are needed to read it. git finds a pack by its index, so that one is linked back last.
const PACK_EXTENSIONS: [&str; 4] = ["pack", "rev", "mtimes", "idx"];

/// The held objects of this process, by common git directory.
static HELD: LazyLock<Mutex<HashMap<PathBuf, HeldObjects>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
struct HeldObjects {
    folder: PathBuf,
    /// The folders of loose objects, with their stamps when their files were linked.
    seen: HashMap<OsString, ChangeStamp>,
}

impl Repository {
    /// Holds all objects that exist now, until the process ends. Linking needs a file system with hard links and files
    /// that belong to the user; files for which it fails are not held.
    pub fn hold_objects(&self) {
        if std::env::var_os("GIT_OBJECT_DIRECTORY").is_some() {
            return;
        }
        let mut all = HELD.hold();
        let held = all.entry(self.common_dir.clone()).or_insert_with(|| HeldObjects::new(self));
        let objects = self.common_dir.join("objects");
        for (name, kind, stamp) in safe_files::list_stamps(&objects).unwrap_or_default() {
            let is_loose = kind == FileKind::Folder && name.len() == 2;
            if (is_loose && held.seen.get(&name) != Some(&stamp)) || name == PACKS {
                let to = held.folder.join(&name);
                let _ = safe_files::link_files(&objects.join(&name), &to, is_object_file);
                held.seen.insert(name, stamp);
            }
        }
    }

    /// Links held objects back if one of `needed` is missing. git is asked, because libgit2 may still have a deleted
    /// pack open.
    pub fn relink_missing_objects(&self, needed: impl Iterator<Item = Oid>) {
        let all = HELD.hold();
        let Some(held) = all.get(&self.common_dir) else { return };
        // Under the table of owned refs; git runs while this is held.
        let names: Vec<u8> = needed.flat_map(|id| format!("{id}\n").into_bytes()).collect();
        let reply = self.git("cat-file").arg("--batch-check").finish_with(&names);
        let is_missing = |line: &[u8]| line.ends_with(b" missing");
        if !reply.is_ok_and(|reply| reply.stdout.split(|byte| *byte == b'\n').any(is_missing)) {
            return;
        }
        let objects = self.common_dir.join("objects");
        for (name, _, _) in safe_files::list_stamps(&held.folder).unwrap_or_default() {
            let (from, to) = (held.folder.join(&name), objects.join(&name));
            for extension in PACK_EXTENSIONS.iter().filter(|_| name == PACKS) {
                let is_wanted = |file: &OsStr| extension_of(file) == Some(extension.as_bytes());
                let _ = safe_files::link_files(&from, &to, is_wanted);
            }
            if name != PACKS {
                let _ = safe_files::link_files(&from, &to, is_object_file);
            }
        }
    }
}

impl HeldObjects {
    fn new(repository: &Repository) -> Self {
        let base = repository.common_dir.join(FOLDER);
        remove_abandoned(&base);
        let folder = base.join(std::process::id().to_string());
        // One of an earlier process with the same number.
        let _ = safe_files::remove_all(&folder);
        remove_at_end(folder.clone());
        Self { folder, seen: HashMap::new() }
    }
}

/// Whether this is a loose object, or a file of a pack. Unfinished files and `.keep` files of git are neither.
fn is_object_file(name: &OsStr) -> bool {
    match extension_of(name) {
        Some(extension) => PACK_EXTENSIONS.iter().any(|known| known.as_bytes() == extension),
        None => name.as_bytes().iter().all(u8::is_ascii_hexdigit),
    }
}

fn extension_of(name: &OsStr) -> Option<&[u8]> {
    let name = name.as_bytes();
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    Some(&name[dot + 1..])
}
