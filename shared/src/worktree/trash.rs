//! Deletes folders that were renamed to trash, in the background. No process waits for that, so it leaves notes: which
//! process deletes a folder, and why a deletion failed.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    git::Repository,
    message::one_line,
    name::digest,
    process::{Confinement, Program, is_process_alive},
    safe_files,
};

/// How many directories one process deletes.
const AT_ONCE: usize = 500;
/// Deletes each directory, even if parts of it are read-only. The arguments are directories, each followed by the path of
/// its notes without an ending.
const DELETE: &str = r#"
n=0; for note; do n=$((n + 1)); [ $((n % 2)) -eq 1 ] || echo $$ > "$note.deleting"; done
while [ $# -gt 1 ]; do
  d=$1 note=$2; shift 2
  rm -rf -- "$d" 2>/dev/null || { chmod -R u+rwX -- "$d"; rm -rf -- "$d"; } 2>/dev/null
  if [ -e "$d" ]; then rm -rf -- "$d" 2>&1 | head -n 1 > "$note.failed"; else rm -f -- "$note.failed"; fi
  rm -f -- "$note.deleting"
done
"#;
/// A deletion that was just started may not have its own note yet.
const STARTING: Duration = Duration::from_secs(10);

/// What is known about a folder in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrashState {
    /// A process is deleting it.
    BeingDeleted,
    /// The last deletion failed, for this reason.
    Failed(String),
    /// The process that was to delete it was killed.
    Left,
}

impl TrashState {
    /// Reads the notes about a folder.
    #[must_use]
    pub fn find(repository: &Repository, folder: &Path) -> Self {
        let note = note_of(repository, folder);
        let deleting = note.with_extension("deleting");
        if let Ok(text) = safe_files::read_text(&deleting) {
            let is_new = deleting
                .symlink_metadata()
                .and_then(|found| found.modified())
                .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age < STARTING));
            let is_starting = text.trim().is_empty() && is_new;
            if is_starting || text.trim().parse().is_ok_and(is_process_alive) {
                return Self::BeingDeleted;
            }
        }
        match safe_files::read_text(&note.with_extension("failed")) {
            Ok(why) => Self::Failed(one_line(why.trim())),
            Err(_) => Self::Left,
        }
    }
}

/// Deletes directories in the background at low priority.
pub fn delete_in_background(repository: &Repository, folders: &[PathBuf]) {
    let notes = notes_folder(repository);
    let _ = safe_files::make_folders(&notes);
    for part in folders.chunks(AT_ONCE) {
        let mut program = Program::located("nice").args(["-n", "19"]).arg(Program::locate("sh"));
        program = program.args(["-c", DELETE, "sh"]);
        for folder in part {
            let note = note_of(repository, folder);
            let _ = safe_files::write(&note.with_extension("deleting"), b"");
            program = program.args([folder, &note]);
        }
        // A live agent might replace a directory by a link while it is being emptied, so confine the deletion.
        let beside = part.iter().filter_map(|folder| folder.parent()).map(Path::to_owned);
        // What it deletes is no longer a worktree, so it need not be guarded.
        let confinement = Confinement::new(beside.chain([notes.clone()]));
        let _ = program.writes_no_worktree().confined(confinement).release();
    }
}

fn notes_folder(repository: &Repository) -> PathBuf {
    repository.common_dir.join("arborist/trash")
}

fn note_of(repository: &Repository, folder: &Path) -> PathBuf {
    notes_folder(repository).join(&digest(folder.as_os_str().as_encoded_bytes())[..16])
}
