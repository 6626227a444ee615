//! Branches, tags and stashes of the user's, beside those that a run works with. An agent can delete or move them, and so can
//! the user, and the driver cannot tell which. So their old values are saved and named, but nothing is put back and no attempt fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Repository,
    loose::{Loose, PackedStamp},
    moved_refs::save,
    owned::{OwnedRefs, RefTable, TABLES},
};
use crate::{name::Oid, safe_files};

const FOLDERS: [&str; 3] = ["refs/heads", "refs/tags", STASH];
const STASH: &str = "refs/stash";
/// Branches of tasks belong to runs, of which there may be others.
const TASKS: &str = "refs/heads/arborist/task/";
/// With more loose refs than this, which take about 5 ms to read, they are compared only at the end of a run.
const MOST_LOOSE: usize = 500;

/// Whether a sentence waits to be taken. Asked all the time, so it costs no lock.
static HAS_WORDS: AtomicBool = AtomicBool::new(false);

/// Whether a ref is one that the user may have.
pub(super) fn is_users(name: &str) -> bool {
    FOLDERS
        .iter()
        .any(|folder| name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The user's own refs that were deleted or moved since this was last asked, in sentences that say what keeps them.
#[must_use]
pub fn take_moved_refs() -> Vec<String> {
    if !HAS_WORDS.swap(false, Ordering::SeqCst) {
        return Vec::new();
    }
    let tables: Vec<OwnedRefs> =
        TABLES.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    tables.iter().flat_map(|table| table.lock().users.take()).collect()
}

impl Repository {
    /// Takes note of where the user's own refs are, before a run starts its first child process.
    pub fn note_users_refs(&self) {
        OwnedRefs::of(self).lock().users.begin(self, RefSource::Git);
    }

    /// Compares the user's own refs once more, at the end of a run: git is asked where the files do not tell.
    pub fn compare_users_refs(&self) {
        compare_users(&mut OwnedRefs::of(self).lock(), self, RefSource::Git);
    }
}

/// Keeps what became of refs that belong to no run.
pub(super) fn compare_users(table: &mut RefTable, repository: &Repository, source: RefSource) {
    let mut users = std::mem::take(&mut table.users);
    users.compare(repository, source, |name| table.is_of_run(name));
    table.users = users;
}

/// Whether git may be asked where the files do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefSource {
    /// After each child process.
    Files,
    /// Once, at the beginning or the end of a run.
    Git,
}

/// What tells one file of packed refs from the next, and those of its refs that are the user's.
type PackedRefs = (Option<PackedStamp>, Vec<(String, Oid)>);

/// Where they were when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct UsersRefs {
    known: Option<KnownRefs>,
    /// Those in the file of packed refs, when that was this file.
    packed: Option<PackedRefs>,
    /// Whether only git can list them, or there are too many.
    is_asked_of_git: bool,
    words: Vec<String>,
}

#[derive(Debug, Default)]
struct KnownRefs {
    refs: BTreeMap<String, Oid>,
    /// Every stash, of which the ref is only the last.
    stashes: BTreeSet<Oid>,
}

impl UsersRefs {
    /// Takes note of where they are, the first time.
    pub(super) fn begin(&mut self, repository: &Repository, source: RefSource) {
        if self.known.is_none() {
            self.known = self.list(repository, source);
        }
    }

    /// Saves what was deleted, or moved other than forward, since the last comparison. `is_other` tells which refs belong
    /// to a run and are compared by it.
    pub(super) fn compare(
        &mut self,
        repository: &Repository,
        source: RefSource,
        is_other: impl Fn(&str) -> bool,
    ) {
        let Some(now) = self.list(repository, source) else { return };
        let Some(before) = self.known.replace(now) else { return };
        let Some(now) = &self.known else { return };
        let mut words = Vec::new();
        for (name, old) in before.refs.iter().filter(|(name, _)| !is_other(name)) {
            let new = now.refs.get(name);
            let is_kept = new == Some(old)
                || (name == STASH && !before.stashes.is_empty())
                || new.is_some_and(|new| is_forward(repository, name, (*old, *new)));
            if !is_kept {
                let deed = if new.is_some() { "moved" } else { "deleted" };
                words.push(keep(repository, (name, *old), &format!("{name} was {deed}")));
            }
        }
        for stash in before.stashes.difference(&now.stashes) {
            words.push(keep(
                repository,
                (STASH, *stash),
                &format!("the stash {} was dropped", stash.short()),
            ));
        }
        self.words.extend(words);
        if !self.words.is_empty() {
            HAS_WORDS.store(true, Ordering::SeqCst);
        }
    }

    /// This process moved one of them, or is about to say so.
    pub(super) fn note(&mut self, name: &str, to: Option<Oid>) {
        let Some(known) = self.known.as_mut().filter(|_| is_users(name)) else { return };
        match to {
            Some(to) => drop(known.refs.insert(name.to_owned(), to)),
            None => drop(known.refs.remove(name)),
        }
    }

    /// What was kept since this was last asked, in sentences.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    fn list(&mut self, repository: &Repository, source: RefSource) -> Option<KnownRefs> {
        let refs = match self.read(repository) {
            Some(refs) => refs,
            None if source == RefSource::Files => return None,
            None => {
                let listed = repository.list_refs(&FOLDERS).ok()?;
                let listed = listed.into_iter().map(|listed| (listed.name, listed.target));
                listed.filter(|(name, _)| !name.starts_with(TASKS)).collect()
            }
        };
        Some(KnownRefs { refs, stashes: list_stashes(repository) })
    }

    /// Reads them from the files that they are in. `None` if that cannot be done.
    fn read(&mut self, repository: &Repository) -> Option<BTreeMap<String, Oid>> {
        if self.is_asked_of_git || !repository.keeps_loose_refs {
            return None;
        }
        let mut found = BTreeMap::new();
        for (name, loose) in FOLDERS.iter().flat_map(|folder| repository.read_loose(folder)) {
            if let (Loose::At(target), false) = (loose, name.starts_with(TASKS)) {
                found.insert(name, target);
            }
        }
        self.is_asked_of_git = found.len() > MOST_LOOSE;
        if self.is_asked_of_git {
            return None;
        }
        // git writes packed-refs before it removes the loose files, so this file is read last.
        let stamp = repository.packed_stamp();
        if self.packed.as_ref().is_none_or(|(known, _)| *known != stamp) {
            let packed = repository.read_packed_refs()?.into_iter();
            let packed = packed.filter(|(name, _)| is_users(name) && !name.starts_with(TASKS)).collect();
            self.packed = Some((stamp, packed));
        }
        for (name, target) in self.packed.iter().flat_map(|(_, packed)| packed) {
            found.entry(name.clone()).or_insert(*target);
        }
        Some(found)
    }
}

/// A branch that only got new commits has lost nothing.
fn is_forward(repository: &Repository, name: &str, (old, new): (Oid, Oid)) -> bool {
    name.starts_with("refs/heads/") && repository.is_ancestor(old, new).unwrap_or(false)
}

fn keep(repository: &Repository, (name, target): (&str, Oid), words: &str) -> String {
    match save(repository, name, target) {
        Some(under) => format!("{words} while the run was at work; where it was is kept as {under}"),
        None => {
            format!("{words} while the run was at work; where it was, {}, could not be kept", target.short())
        }
    }
}

/// The stashes are lines of a log, each with the one before it and its own name first.
fn list_stashes(repository: &Repository) -> BTreeSet<Oid> {
    let log = safe_files::read(&repository.common_dir.join("logs").join(STASH)).unwrap_or_default();
    let lines = log.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Oid::from_hex(line.split(|byte| *byte == b' ').nth(1)?)).collect()
}
