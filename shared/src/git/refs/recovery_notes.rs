//! Recognises the recovery notes of other drivers. A recovery note is a ref below `refs/arborist/wip/`: a mark of an
//! unfinished attempt, or of an update of a checkout. After a crash, the next driver trusts these notes and changes the
//! user's checkout accordingly. So a run watches all of them, not only its own.
//!
//! Notes of other runs may appear and vanish at any time. They are left alone while another driver is running, and so
//! are those of a driver that was running earlier and has died. Any other note was forged by a child process.

use std::collections::BTreeSet;

use crate::{
    git::{GitError, RefMove, Repository, refs::owned_refs::OwnedRefs},
    name::Oid,
    process::find_other_drivers,
};

/// How often a note is written again that a child process replaces. After that, the attempt or landing fails.
const NOTE_TRIES: usize = 10;

/// Other drivers, and the notes that they wrote.
#[derive(Debug, Default)]
pub(in crate::git) struct OtherDrivers {
    /// Branches, as ref components, for which another driver held a lock when we looked.
    seen: BTreeSet<String>,
    /// Notes that are accepted as theirs. They are compared, but this process never acts on them.
    notes: BTreeSet<String>,
}

impl OtherDrivers {
    /// Records which drivers are running now. Returns whether there is any.
    pub(in crate::git) fn look(&mut self, repository: &Repository) -> bool {
        let locks = find_other_drivers(&repository.common_dir.join("arborist/locks"), "");
        let branches = locks.iter().filter_map(|name| Some(name.split_once('-')?.1.to_owned()));
        self.seen.extend(branches);
        !locks.is_empty()
    }

    /// Whether a note is about a branch of another driver, or about a task of its run.
    pub(in crate::git) fn may_have_written(&self, note: &str) -> bool {
        // The component after `refs/arborist/wip/`. The note of a task's branch contains the name of its run's branch,
        // escaped twice.
        let component = note.split('/').nth(3).unwrap_or_default();
        self.seen.iter().any(|branch| {
            component == branch || component.contains(&format!("%2F{}%2F", branch.replace('%', "%25")))
        })
    }

    pub(in crate::git) fn accept(&mut self, note: &str) {
        self.notes.insert(note.to_owned());
    }

    /// Call this when a note is gone, or this process has written it.
    pub(in crate::git) fn forget(&mut self, note: &str) {
        self.notes.remove(note);
    }

    pub(in crate::git) fn wrote(&self, note: &str) -> bool {
        self.notes.contains(note)
    }
}

impl Repository {
    /// Whether a note may be acted on: a driver of this clone wrote it, and it existed before the first child process
    /// started, or this process wrote it. A later one was written by another driver, or forged by a child.
    #[must_use]
    pub fn is_own_note(&self, name: &str, target: Oid) -> bool {
        self.has_written(name, target) && OwnedRefs::of(self).is_trusted_note(name, target)
    }

    /// Writes a note. If another ref has its name, that one is set aside: a child process planted it, or it was
    /// fetched.
    pub fn write_note(&self, name: &str, target: Oid) -> Result<(), GitError> {
        let note = RefMove { name, new: Some(target), old: None };
        for _ in 0..NOTE_TRIES {
            match self.move_refs_with_default_reason(&[note]) {
                Err(error) if !error.is_lock() => match self.find_ref(name)? {
                    Some(planted) => drop(self.set_aside_note(name, planted)),
                    None => return Err(error),
                },
                written => return written,
            }
        }
        self.move_refs_with_default_reason(&[note])
    }

    /// Moves an untrusted note below `refs/arborist/saved/`, where nothing acts on it.
    pub(in crate::git) fn set_aside_note(&self, name: &str, target: Oid) -> Result<(), GitError> {
        crate::git::refs::moved_refs::save(self, name, target);
        self.move_refs(&[RefMove { name, new: None, old: Some(target) }], "arborist: set aside")
    }
}
