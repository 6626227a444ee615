//! Opens, writes, moves and removes files where agents can write: in git directories and worktrees.
//!
//! No link is followed, not even in the middle of a path, because an agent could have planted it. Only regular files
//! are opened, and opening never blocks, so that a named pipe or a device cannot stop a command. A file is replaced by
//! a rename, so that other hard links to the old one keep their content.
//!
//! The folders themselves may be reached through links (a linked home, `/tmp` on some systems): git resolves its
//! directories when a repository is opened, and [`resolved`] does the same for folders that the user names. Links
//! further down in a path may have been planted by an agent.
//!
//! Missing parent folders are created, but never a git directory: if that was removed, we must not bring it back as an
//! empty one.

mod draft;
mod events;
mod files;
mod folder;
mod journal;
mod path;
mod tree;
mod walk;

pub use draft::WriteOutcome;
pub use events::FileEvents;
pub use files::{
    FolderEntry, allow_owner, allow_writing_around, allow_writing_below, copy, copy_unchanged, create_log,
    hard_link, is_hard_link, is_own_log, link_files, make_folder, make_folders, open, open_log,
    open_or_create, read, read_beneath, read_named, read_tail, read_text, read_up_to, read_users, remove,
    remove_folder, rename, separate, set_mode, symlink, write, write_new, write_with_mode,
};
pub use folder::{Enclosure, EnclosureError};
pub use journal::Journal;
pub use path::InnerPath;
pub use tree::{
    ChangeStamp, Facts, FileKind, OpenedFolder, StampedName, find_file_in_way, kind_of, list, list_kinds,
    list_stamps, look_at, remove_all, visit_facts, visit_kinds, visit_stamps,
};
pub use walk::{allow_linked, find_link_out, open_folder, open_place, plain_folders, resolved};
