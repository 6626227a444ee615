//! Restores refs that a run owns: its task branches, its session records, its notes about unfinished work. Every
//! process of the same user can write refs, and so can every program that an agent starts. So the run remembers the
//! values of its refs, compares them after every child process, and restores those that something else moved before it
//! reads anything from them.
//!
//! There is one table for each repository and process. Workers, the queue and the session use different `Repository`
//! values, and all of them have to know about each other's moves.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};

use crate::{
    git::{
        GitError, RefMove, Repository,
        before_children::{has_child_started, note_child_started},
        checkout_locks,
        refs::{
            forged_steps::{ForgedLandings, TargetBranch, last_before_forgery},
            moved_refs::{remove_forged, restore, save},
            packed_refs::LastGoodPackedRefs,
            recovery_notes::OtherDrivers,
            ref_files::{PackedStamp, RefValue, folder_of, is_inside},
            user_refs::{RefSource, UserRefs, compare_user_refs, is_user_ref},
        },
    },
    mutex::MutexExt,
    name::{BranchName, Oid},
};

/// The tables of this process, by common git directory.
pub(in crate::git) static TABLES: LazyLock<Mutex<HashMap<PathBuf, OwnedRefs>>> =
    LazyLock::new(Mutex::default);

/// Replace refs substitute objects in every git command. No child process has a reason to create one.
const REPLACE_REFS: &str = "refs/replace/";

/// The owned refs of one repository. Clones share the same table.
#[derive(Debug, Clone, Default)]
pub struct OwnedRefs(Arc<Mutex<RefTable>>);

#[derive(Debug, Default)]
pub(in crate::git) struct RefTable {
    /// Full names of owned refs, whether they exist or not.
    names: BTreeSet<String>,
    /// Refs that git would find before a branch of the run when only the branch's short name is given. Refs below them
    /// belong to the user.
    shadows: BTreeSet<String>,
    /// All refs with one of these prefixes are owned.
    prefixes: BTreeSet<String>,
    /// Owned prefixes below which other drivers write too.
    shared: BTreeSet<String>,
    /// What is known about other drivers and the refs they wrote below `shared`.
    others: OtherDrivers,
    /// The run's branches with the values that this process wrote last. A new ref below a prefix that contains nothing
    /// beyond these branches is one that the user started there.
    bases: BTreeMap<String, Option<Oid>>,
    /// The values of owned refs that exist.
    pub(in crate::git) values: BTreeMap<String, Oid>,
    /// Owned refs whose files were damaged before the first child process. No child is blamed for them.
    damaged: BTreeSet<String>,
    /// Refs that are not checked for now, with the number of their [`ExemptRef`]s: a task's branch while its worker
    /// moves it.
    exempt: BTreeMap<String, usize>,
    /// The owned refs in packed-refs, and the stamp of that file when it was read.
    packed: Option<(Option<PackedStamp>, BTreeMap<String, Oid>)>,
    /// The last version of packed-refs that git could read.
    last_good_packed: LastGoodPackedRefs,
    /// Messages about everything that was restored since the process started.
    pub(in crate::git) changes: Vec<String>,
    /// Target branches, which the user moves too. They are not restored to a recorded value; only forged steps are
    /// removed.
    pub(in crate::git) targets: BTreeMap<String, TargetBranch>,
    /// The user's other refs. They are saved, but never restored.
    pub(in crate::git) user_refs: UserRefs,
}

/// The refs of a repository that a run owns.
#[derive(Debug, Clone, Default)]
pub struct Ownership {
    /// Full names.
    pub names: Vec<String>,
    /// Prefixes of full names.
    pub prefixes: Vec<String>,
    /// Prefixes of full names below which other drivers write too. A ref there that no driver wrote is removed.
    pub shared: Vec<String>,
    /// The run's branch, and others at which the user may start new branches. Refs that git would find instead when it
    /// is given the short name of one of them are owned, too.
    pub bases: Vec<String>,
}

/// Watches refs while a child process runs. Everything that is restored after its start was changed by this child, or
/// by another one at the same time.
#[derive(Debug)]
pub struct RefWatch {
    repository: Repository,
    /// How many changes were recorded before the watch started.
    changes_before: usize,
}

/// Exempts a ref from the comparison until it is dropped: its holder checks the ref.
#[derive(Debug)]
pub struct ExemptRef {
    table: OwnedRefs,
    name: String,
}

/// Refs that are owned until this is dropped.
#[derive(Debug)]
pub struct TemporaryOwnership {
    table: OwnedRefs,
    names: Vec<String>,
    prefixes: Vec<String>,
}

impl Drop for TemporaryOwnership {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        table.names.retain(|name| !self.names.contains(name));
        table.prefixes.retain(|prefix| !self.prefixes.contains(prefix));
        let mut values = std::mem::take(&mut table.values);
        values.retain(|name, _| table.owns(name));
        table.values = values;
    }
}

impl Drop for ExemptRef {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if let Some(count) = table.exempt.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                table.exempt.remove(&self.name);
            }
        }
    }
}

impl RefWatch {
    /// Restores refs that were moved. Returns messages about everything that was restored since the watch started.
    #[must_use]
    pub fn restore(&self) -> Vec<String> {
        let owned = OwnedRefs::of(&self.repository);
        let mut table = owned.lock();
        // This comes first: git fails in every command while packed-refs is unreadable.
        let repaired = self.repository.repair_packed_refs(&mut table.last_good_packed);
        table.changes.extend(repaired);
        table.changes.extend(self.repository.take_removed_reflog_links());
        if self.repository.take_lost_objects() {
            self.repository.relink_missing_objects(table.needed());
        }
        if let Err(error) = table.restore_all(&self.repository) {
            let message = format!("the refs of the run could not be compared: {error}");
            table.changes.push(message);
        }
        compare_user_refs(&mut table, &self.repository, RefSource::Files);
        table.changes.iter().skip(self.changes_before).cloned().collect()
    }
}

impl Repository {
    /// Starts to own these refs at their present values. Refs that are owned already keep the recorded value.
    pub fn own_refs(&self, wanted: &Ownership) -> Result<(), GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let prefixes: Vec<String> =
            wanted.prefixes.iter().cloned().chain([REPLACE_REFS.to_owned()]).collect();
        let new: Vec<String> = (wanted.names.iter().filter(|name| !table.names.contains(*name)))
            .chain(prefixes.iter().filter(|prefix| !table.prefixes.contains(*prefix)))
            .chain(wanted.shared.iter().filter(|prefix| !table.shared.contains(*prefix)))
            .cloned()
            .collect();
        let shared_before = table.shared.clone();
        for base in &wanted.bases {
            if !table.bases.contains_key(base) {
                table.bases.insert(base.clone(), self.find_ref(base)?);
                table.own_shadows(self, base)?;
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        table.names.extend(wanted.names.iter().cloned());
        table.prefixes.extend(prefixes);
        table.shared.extend(wanted.shared.iter().cloned());
        for (name, found) in table.scan(self)? {
            let is_new = new.iter().any(|new| name == *new || name.starts_with(new.as_str()));
            let is_new = is_new && !shared_before.iter().any(|known| name.starts_with(known.as_str()));
            match found {
                RefValue::Id(target) if is_new => drop(table.values.insert(name, target)),
                RefValue::Other if is_new && self.is_broken_file(&name) => drop(table.damaged.insert(name)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Owns more refs until the returned value is dropped: for refs that only this process may move during that time,
    /// but others may move later.
    pub fn own_refs_temporarily(&self, wanted: &Ownership) -> Result<TemporaryOwnership, GitError> {
        let table = OwnedRefs::of(self);
        let known = table.lock();
        let is_new = |known: &BTreeSet<String>, all: &[String]| -> Vec<String> {
            all.iter().filter(|one| !known.contains(*one)).cloned().collect()
        };
        let names = is_new(&known.names, &wanted.names);
        let prefixes = is_new(&known.prefixes, &wanted.prefixes);
        drop(known);
        let meanwhile = TemporaryOwnership { table, names, prefixes };
        self.own_refs(wanted)?;
        Ok(meanwhile)
    }

    /// Call this before a child process starts.
    #[must_use]
    pub fn watch_refs(&self) -> RefWatch {
        self.remember_reflog_links();
        note_child_started();
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        // If packed-refs is damaged already, this child is not blamed for it.
        let repaired = self.repair_packed_refs(&mut table.last_good_packed);
        table.changes.extend(repaired);
        if !table.shared.is_empty() {
            table.others.look(self);
        }
        table.user_refs.begin(self, RefSource::Files);
        RefWatch { repository: self.clone(), changes_before: table.changes.len() }
    }

    /// Stops checking this ref until the returned value is dropped. The caller checks it instead.
    #[must_use]
    pub fn exempt_ref(&self, name: &str) -> ExemptRef {
        let table = OwnedRefs::of(self);
        *table.lock().exempt.entry(name.to_owned()).or_default() += 1;
        ExemptRef { table, name: name.to_owned() }
    }

    /// Restores one owned ref. Returns false if it is not owned, or has its recorded value.
    pub fn restore_ref(&self, name: &str) -> Result<bool, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        if !table.owns(name) {
            return Ok(false);
        }
        let found = table.scan(self)?.remove(name);
        if found == table.values.get(name).map(|target| RefValue::Id(*target)) {
            return Ok(false);
        }
        table.restore_one(self, name, found);
        Ok(true)
    }

    /// Moves refs and records their new values, under the lock of the table so that no comparison happens in between. The
    /// table is held while git runs: under it, only the mutexes of object files, reflog links, the updater and child
    /// processes are taken.
    pub(in crate::git) fn move_and_record(
        &self,
        moves: &[RefMove<'_>],
        act: impl FnOnce() -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let is_free = |name: &str| !table.is_of_run(name) && !is_user_ref(name);
        if moves.iter().all(|moved| is_free(moved.name)) {
            drop(table);
            return act();
        }
        act()?;
        moves.iter().for_each(|moved| table.note_move(moved));
        Ok(())
    }
}

impl OwnedRefs {
    /// Whether a note has the value that this process wrote, or was there before the first child process.
    pub(in crate::git) fn is_trusted_note(&self, name: &str, target: Oid) -> bool {
        let table = self.lock();
        if !table.owns(name) {
            return !has_child_started();
        }
        table.values.get(name) == Some(&target) && !table.others.wrote(name)
    }

    pub(in crate::git) fn of(repository: &Repository) -> Self {
        let mut tables = TABLES.hold();
        tables.entry(repository.common_dir.clone()).or_default().clone()
    }

    pub(in crate::git) fn lock(&self) -> MutexGuard<'_, RefTable> {
        self.0.hold()
    }
}

impl RefTable {
    /// Owns the refs that git finds before this branch when only its short name is given: `git merge` would take them.
    fn own_shadows(&mut self, repository: &Repository, branch: &str) -> Result<(), GitError> {
        let Some(short) = branch.strip_prefix("refs/heads/") else { return Ok(()) };
        for name in [format!("refs/{short}"), format!("refs/tags/{short}")] {
            if let Some(target) = repository.find_ref(&name)? {
                self.values.entry(name.clone()).or_insert(target);
            }
            self.shadows.insert(name);
        }
        Ok(())
    }

    /// The recorded values of all refs, of the run and of the user.
    fn needed(&self) -> impl Iterator<Item = Oid> {
        let targets = self.targets.values().map(|target| target.last_known);
        let of_run = self.values.values().chain(self.bases.values().flatten()).copied();
        of_run.chain(targets).chain(self.user_refs.needed())
    }

    pub(in crate::git) fn run_branches(&self) -> Vec<String> {
        let short = |name: &String| name.strip_prefix("refs/heads/").map(str::to_owned);
        self.bases.keys().filter_map(short).collect()
    }

    /// The recorded value of a ref; `None` if it is neither owned nor a branch of the run.
    pub(in crate::git) fn find_recorded(&self, name: &str) -> Option<Option<Oid>> {
        if self.owns(name) {
            return Some(self.values.get(name).copied());
        }
        self.bases.get(name).copied()
    }

    pub(in crate::git) fn owns(&self, name: &str) -> bool {
        self.owns_alone(name) || self.shared.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn owns_alone(&self, name: &str) -> bool {
        self.names.contains(name)
            || self.shadows.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn note_move(&mut self, moved: &RefMove<'_>) {
        self.user_refs.note(moved.name, moved.new);
        self.note(moved.name, moved.new);
        if let Some(recorded) = self.bases.get_mut(moved.name) {
            *recorded = moved.new;
        }
        if let (Some(target), Some(new)) = (self.targets.get_mut(moved.name), moved.new) {
            let gap = moved.old.filter(|old| *old != target.last_known).map(|old| (target.last_known, old));
            target.foreign_moves.extend(gap);
            target.last_known = new;
        }
    }

    fn note(&mut self, name: &str, to: Option<Oid>) {
        if !self.owns(name) {
            return;
        }
        self.others.forget(name);
        self.damaged.remove(name);
        match to {
            Some(to) => drop(self.values.insert(name.to_owned(), to)),
            None => drop(self.values.remove(name)),
        }
    }

    /// Whether a ref belongs to a run. Other refs are the user's; these are only saved.
    pub(in crate::git) fn is_of_run(&self, name: &str) -> bool {
        let is_checked_elsewhere = self.bases.contains_key(name) || self.exempt.contains_key(name);
        is_checked_elsewhere || self.owns(name) || self.targets.contains_key(name)
    }

    /// Removes steps of a run from its target branch that another process wrote there. Commits before them stay, and
    /// the removed ones are saved.
    fn remove_forged_target_commits(&mut self, repository: &Repository) -> Result<(), GitError> {
        let moved = |name: &String| {
            let Some(target) = self.targets.get(name) else { return Ok(None) };
            let now = repository.find_ref(name)?.filter(|now| *now != target.last_known);
            Ok(now.map(|now| (target.scope.clone(), target.last_known, now)))
        };
        let names: Vec<String> = self.targets.keys().filter(|name| !self.owns(name)).cloned().collect();
        let found: Result<Vec<_>, GitError> = names.iter().map(moved).collect();
        for (name, found) in names.iter().zip(found?) {
            let Some((scope, last_known, now)) = found else { continue };
            // If the branch lost commits, only the user can decide what to do.
            if !repository.is_ancestor(last_known, now)? {
                continue;
            }
            let own = (&self.own_tips(&scope), ForgedLandings::Inconsistent);
            let Some(last) = last_before_forgery(repository, &scope, (last_known, now), own)? else {
                continue;
            };
            let message = format!("steps of the run were written to {name} while an agent or a command ran");
            self.changes.push(remove_forged(repository, name, now, last, message));
        }
        Ok(())
    }

    /// The tips of the run's task branches.
    pub(in crate::git) fn own_tips(&self, scope: &BranchName) -> BTreeSet<Oid> {
        let branches = scope.task_refs();
        let own = self.values.iter().filter(|(name, _)| name.starts_with(&branches));
        own.map(|(_, target)| *target).collect()
    }

    /// Restores every ref whose value is not the recorded one.
    fn restore_all(&mut self, repository: &Repository) -> Result<(), GitError> {
        self.unlink_targets(repository);
        self.remove_forged_target_commits(repository)?;
        if self.names.is_empty() && self.prefixes.is_empty() {
            return Ok(());
        }
        let found = self.scan(repository)?;
        let names: BTreeSet<&String> = found.keys().chain(self.values.keys()).collect();
        let is_damaged = |name: &String| {
            found.get(name) == Some(&RefValue::Other)
                && self.damaged.contains(name)
                && repository.is_broken_file(name)
        };
        let is_elsewhere = |name: &&&String| {
            !self.exempt.contains_key(**name)
                && !is_damaged(name)
                && found.get(**name).copied() != self.values.get(**name).map(|target| RefValue::Id(*target))
        };
        let moved: Vec<String> = names.iter().filter(is_elsewhere).map(|name| (*name).clone()).collect();
        let is_shared = |name: &String| self.owns(name) && !self.owns_alone(name);
        let (shared, moved): (Vec<String>, Vec<String>) = moved.into_iter().partition(is_shared);
        self.check_shared(repository, shared, &found)?;
        // Unknown refs are removed first: a file `a` must be gone before the folder `a/` can be created for a ref
        // `a/b`.
        let (intruders, missing): (Vec<String>, Vec<String>) =
            moved.into_iter().partition(|name| !self.values.contains_key(name));
        for name in intruders.into_iter().chain(missing) {
            self.restore_one(repository, &name, found.get(&name).copied());
        }
        Ok(())
    }

    /// Removes refs below shared prefixes that no driver wrote. A deleted one was finished by the driver that wrote it.
    fn check_shared(
        &mut self,
        repository: &Repository,
        names: Vec<String>,
        found: &BTreeMap<String, RefValue>,
    ) -> Result<(), GitError> {
        let (remaining, gone): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| found.contains_key(name));
        for name in gone {
            self.values.remove(&name);
            self.others.forget(&name);
        }
        if remaining.is_empty() {
            return Ok(());
        }
        // A driver removes its notes before it releases its lock. So a note that exists both before and after we looked
        // at the locks was written by a driver whose lock we saw, or by no driver.
        let has_other_drivers = self.others.look(repository);
        let found_again = self.scan(repository)?;
        for name in remaining.iter().filter(|name| found.get(*name) == found_again.get(*name)) {
            match found.get(name) {
                Some(RefValue::Id(target)) if has_other_drivers || self.others.may_have_written(name) => {
                    self.values.insert(name.clone(), *target);
                    self.others.accept(name);
                }
                found => self.restore_one(repository, name, found.copied()),
            }
        }
        Ok(())
    }

    /// All owned refs that exist. Loose refs are read from their files, which costs no process. git is asked only where
    /// packed-refs has changed, and for reftables.
    fn scan(&mut self, repository: &Repository) -> Result<BTreeMap<String, RefValue>, GitError> {
        let prefixes = self.prefixes.iter().chain(&self.shared);
        let folders: BTreeSet<&str> = prefixes.map(|prefix| folder_of(prefix)).collect();
        let mut found = BTreeMap::new();
        let stamp = repository.packed_stamp();
        if repository.has_files_backend {
            let mut add = |name: String, value: RefValue| {
                found.insert(name, value);
            };
            for name in self.names.iter().chain(&self.shadows) {
                repository.read_loose(name).into_iter().for_each(|(name, loose)| add(name, loose));
            }
            for folder in &folders {
                repository.read_loose(folder).into_iter().for_each(|(name, loose)| add(name, loose));
                let blocking = repository.find_blocking(folder);
                blocking.into_iter().for_each(|(name, loose)| add(name, loose));
            }
        }
        if !repository.has_files_backend {
            let names = self.names.iter().chain(&self.shadows);
            let patterns: Vec<&str> = names.map(String::as_str).chain(folders).collect();
            for (listed, is_link) in repository.list_refs_and_links(&patterns)? {
                let at = if is_link { RefValue::Other } else { RefValue::Id(listed.target) };
                found.insert(listed.name, at);
            }
        } else if stamp.is_some() {
            if !self.has_current_packed(stamp, &found) {
                let names = self.names.iter().chain(&self.shadows);
                let patterns = names.map(String::as_str).chain(folders);
                let listed = repository.list_refs(&patterns.collect::<Vec<_>>())?;
                let packed = listed.into_iter().filter(|listed| !found.contains_key(&listed.name));
                self.packed = Some((stamp, packed.map(|packed| (packed.name, packed.target)).collect()));
            }
            let packed = self.packed.iter().flat_map(|(_, packed)| packed);
            for (name, target) in packed {
                found.entry(name.clone()).or_insert(RefValue::Id(*target));
            }
        }
        let is_blocking = |name: &str| self.prefixes.iter().any(|prefix| prefix.starts_with(name));
        let is_below = |name: &str| self.names.iter().any(|own| is_inside(name, own));
        found.retain(|name, _| self.owns(name) || is_blocking(name) || is_below(name));
        Ok(found)
    }

    /// Whether the recorded packed refs are still valid: the file is the same, and every ref without a loose file is in
    /// it. A ref that was both loose and packed and lost its loose file now has its older, packed value.
    fn has_current_packed(&self, stamp: Option<PackedStamp>, loose: &BTreeMap<String, RefValue>) -> bool {
        let Some((known, packed)) = self.packed.as_ref().filter(|_| stamp.is_some()) else {
            return false;
        };
        *known == stamp
            && self.values.keys().all(|name| loose.contains_key(name) || packed.contains_key(name))
    }

    fn restore_one(&mut self, repository: &Repository, name: &str, found: Option<RefValue>) {
        let wanted = self.values.get(name).copied();
        if let (None, Some(RefValue::Id(target))) = (wanted, found)
            && self.is_new_user_branch(repository, name, target)
        {
            self.values.insert(name.to_owned(), target);
            return;
        }
        let mut message = match (wanted, found) {
            (Some(_), None) => format!("{name} was deleted while an agent or a command ran"),
            (None, _) => format!("{name} was created while an agent or a command ran"),
            _ => format!("{name} was moved while an agent or a command ran"),
        };
        if let Some(RefValue::Id(target)) = found
            && let Some(under) = save(repository, name, target)
        {
            let _ = write!(message, "; its target is kept as {under}");
        }
        if wanted.is_some()
            && let Some(more) = repository.make_room_for_ref(name)
        {
            let _ = write!(message, "; {more}");
        }
        let lock = repository.common_dir.join(format!("{name}.lock"));
        let restored = restore(repository, name, wanted, found).or_else(|_| {
            // A git that was killed while it moved the ref leaves its lock.
            checkout_locks::clear(&lock);
            restore(repository, name, wanted, found)
        });
        if let Err(error) = restored {
            let _ = write!(message, "; it could not be restored: {error}");
        }
        self.changes.push(message);
    }

    /// Whether the user only started a branch there: it contains nothing that the run's branch does not contain.
    fn is_new_user_branch(&self, repository: &Repository, name: &str, target: Oid) -> bool {
        let holds = |base: &String| {
            let tip = repository.find_ref(base).ok().flatten();
            tip.is_some_and(|tip| repository.is_ancestor(target, tip).unwrap_or(false))
        };
        name.starts_with("refs/heads/") && self.owns(name) && self.bases.keys().any(holds)
    }
}
