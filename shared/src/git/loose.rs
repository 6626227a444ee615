//! A look into the file of a ref, which costs less than to ask git: that looks for the name in a dozen places. What stands
//! nowhere else, or is not understood, git is asked about.

use std::{fs, io::ErrorKind};

use super::Repository;
use crate::name::Oid;

/// The refs that all worktrees share, of those that we know.
const SHARED: [&str; 2] = ["refs/heads/", "refs/arborist/"];

impl Repository {
    /// What the ref of this full name points at, `None` within if there is none. `None` outside if only git can tell: refs
    /// may be packed, kept in tables, or lead to other refs.
    pub(super) fn glance_at_ref(&self, name: &str) -> Option<Option<Oid>> {
        let is_plain = SHARED.iter().any(|folder| name.starts_with(folder)) && !name.contains("..");
        let is_here = |file: &str| self.common_dir.join(file).symlink_metadata().is_ok();
        if !is_plain || is_here("reftable") {
            return None;
        }
        match fs::read(self.common_dir.join(name)) {
            Ok(content) => {
                let id = content.trim_ascii_end();
                let is_whole = id.len() == self.format.hex_len();
                is_whole.then(|| Oid::from_hex(id)).flatten().map(Some)
            }
            // Whoever packs refs writes the file of all before the file of one goes.
            Err(error) if error.kind() == ErrorKind::NotFound && !is_here("packed-refs") => Some(None),
            Err(_) => None,
        }
    }
}
