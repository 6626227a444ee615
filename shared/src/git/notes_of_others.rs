//! Notes that only one of all drivers of a repository wrote: marks of unfinished attempts and of updates of a checkout. The
//! next driver believes them after a crash, and acts on the user's checkout. So a run watches all of them, not only its own.
//!
//! Those of other runs come and go at any time. They are left alone while another driver is at work, and so are those of a
//! driver that was seen at work and has died since. Any other note was written by a child process.

use std::collections::BTreeSet;

use super::{GitError, RefMove, Repository, owned::OwnedRefs};
use crate::{name::Oid, process::find_other_drivers};

/// What is known of other drivers and their notes.
#[derive(Debug, Default)]
pub(super) struct OtherDrivers {
    /// The branches, as ref components, that other drivers were seen to have a lock for.
    seen: BTreeSet<String>,
    /// Notes that are accepted as theirs. They are compared, but this process never acts on them.
    notes: BTreeSet<String>,
}

impl OtherDrivers {
    /// Looks who is at work now. Whether anybody is.
    pub(super) fn look(&mut self, repository: &Repository) -> bool {
        let locks = find_other_drivers(&repository.common_dir.join("arborist/locks"));
        let branches = locks.iter().filter_map(|name| Some(name.split_once('-')?.1.to_owned()));
        self.seen.extend(branches);
        !locks.is_empty()
    }

    /// Whether a note is about a branch, or a task of a run, that another driver was seen at work on.
    pub(super) fn may_have_written(&self, note: &str) -> bool {
        // Behind `refs/arborist/wip/`. A task's own branch has the name of its run in it, escaped once more.
        let place = note.split('/').nth(3).unwrap_or_default();
        self.seen
            .iter()
            .any(|branch| place == branch || place.contains(&format!("%2F{}%2F", branch.replace('%', "%25"))))
    }

    pub(super) fn accept(&mut self, note: &str) {
        self.notes.insert(note.to_owned());
    }

    /// It is gone, or this process has written it.
    pub(super) fn forget(&mut self, note: &str) {
        self.notes.remove(note);
    }

    pub(super) fn wrote(&self, note: &str) -> bool {
        self.notes.contains(note)
    }
}

impl Repository {
    /// Whether a note may be acted on: it was there before the first child process began, or this process wrote it. One that
    /// appears later is another driver's, or a child's.
    #[must_use]
    pub fn is_own_note(&self, name: &str, target: Oid) -> bool {
        OwnedRefs::of(self).knows_note(name, target)
    }

    /// Moves a note that is not believed to where it does no harm.
    pub(super) fn set_note_aside(&self, name: &str, target: Oid) -> Result<(), GitError> {
        super::moved_refs::save(self, name, target);
        self.move_refs(&[RefMove { name, new: None, old: Some(target) }], "arborist: set aside")
    }
}
