//! How files are opened, written, moved and removed where agents can reach: in git directories and worktrees.
//!
//! No link is followed, not even one in the middle of a path: whoever can write there could lead us elsewhere. Only regular
//! files are opened, without waiting for anybody, so that a queue or a device cannot hold a command up. A file is written
//! beside its place and renamed, so that what another name leads to stays as it is.
//!
//! The places themselves may well be reached through links (a linked home, `/tmp` on some systems): git resolves its
//! directories when a repository is opened, and [`resolved`] does the same for folders that the user names. From then on a
//! link on the way is not the user's.
//!
//! Folders on the way are made where they are missing, but never a git directory: where that was removed, nothing of ours
//! brings it back as an empty one.

mod draft;
mod files;
mod folder;
mod journal;
mod path;
mod tree;
mod walk;

pub use draft::WriteOutcome;
pub use files::{
    FolderEntry, copy, copy_unchanged, hard_link, is_own_log, make_folder, make_folders, open, open_log,
    open_or_create, read, read_beneath, read_named, read_text, read_up_to, read_users, remove, remove_folder,
    rename, set_mode, symlink, write, write_new, write_with_mode,
};
pub use folder::{Enclosure, EnclosureError};
pub use journal::Journal;
pub use path::InnerPath;
pub use tree::{
    ChangeStamp, Facts, FileKind, OpenedFolder, StampedName, kind_of, list, list_kinds, list_stamps, look_at,
    remove_all, visit_facts, visit_kinds, visit_stamps,
};
pub use walk::{allow_linked, open_place, plain_folders, resolved};
