//! Refs that a run owns: its task branches, its session's records, its marks of unfinished work. Whoever runs as the same
//! user can write refs, and so can every program that an agent starts. So the run keeps in memory where these refs are,
//! compares after every child process, and puts back what something else moved, before anything is read from it.
//!
//! The table is one for each repository and process: workers, the queue and the session write through different views of a
//! repository, and what one of them moves, all of them know.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use super::{
    GitError, RefMove, Repository,
    followed::{Followed, Landings, last_before_claims},
    identity::{has_begun, note_child},
    loose::{Loose, PackedStamp},
    moved_refs::{Found, restore, save, take_off},
    notes_of_others::OtherDrivers,
    packed::SoundPacked,
    stale,
    users_refs::{RefSource, UsersRefs, compare_users, is_users},
};
use crate::name::{BranchName, Oid};

/// The tables of this process, by the common git directory of their repository.
pub(super) static TABLES: LazyLock<Mutex<HashMap<PathBuf, OwnedRefs>>> = LazyLock::new(Mutex::default);

/// Refs that put one object in the place of another for every git. No child process has reason to make one, packed or not.
const REPLACED: &str = "refs/replace/";

/// What is owned of a repository. Copies share it.
#[derive(Debug, Clone, Default)]
pub struct OwnedRefs(Arc<Mutex<RefTable>>);

#[derive(Debug, Default)]
pub(super) struct RefTable {
    /// Refs that are owned, whether they are there or not.
    names: BTreeSet<String>,
    /// All refs whose names begin so are owned.
    prefixes: BTreeSet<String>,
    /// The same where other drivers write too.
    shared: BTreeSet<String>,
    /// What is known of those.
    others: OtherDrivers,
    /// A ref that appears under a prefix and holds nothing beyond these refs was made by the user to work there.
    bases: BTreeSet<String>,
    /// Where owned refs are, as far as they are there.
    pub(super) values: BTreeMap<String, Oid>,
    /// Refs that somebody else looks after for now: a task's own branch, while its worker is at it.
    floating: BTreeMap<String, usize>,
    /// Which of the refs stood in the file of packed refs, when that was this file.
    packed: Option<(Option<PackedStamp>, BTreeMap<String, Oid>)>,
    /// That file as git could read it last.
    sound: SoundPacked,
    /// What was put back since the process began, in sentences.
    changes: Vec<String>,
    /// Branches that others move too. They are never put back: it is only known where this process left them.
    followed: BTreeMap<String, Followed>,
    /// Refs that the run has no business with. They are never put back, either.
    pub(super) users: UsersRefs,
}

/// What a run owns of a repository.
#[derive(Debug, Clone, Default)]
pub struct Ownership {
    /// Full names.
    pub names: Vec<String>,
    /// How full names begin.
    pub prefixes: Vec<String>,
    /// How full names begin of refs that other drivers write, too. What no driver wrote there is taken away.
    pub shared: Vec<String>,
    /// The run's own branch, and others that a new branch of the user's may begin at.
    pub bases: Vec<String>,
}

/// A child process that is about to run: what is put back from now on is its doing, or that of one beside it.
#[derive(Debug)]
pub struct RefWatch {
    repository: Repository,
    known: usize,
}

/// A ref that its holder looks after, until this is dropped.
#[derive(Debug)]
pub struct FloatingRef {
    table: OwnedRefs,
    name: String,
}

/// Refs that are owned until this is dropped.
#[derive(Debug)]
pub struct OwnedMeanwhile {
    table: OwnedRefs,
    names: Vec<String>,
    prefixes: Vec<String>,
}

impl Drop for OwnedMeanwhile {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        table.names.retain(|name| !self.names.contains(name));
        table.prefixes.retain(|prefix| !self.prefixes.contains(prefix));
        let mut values = std::mem::take(&mut table.values);
        values.retain(|name, _| table.owns(name));
        table.values = values;
    }
}

impl Drop for FloatingRef {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if let Some(count) = table.floating.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                table.floating.remove(&self.name);
            }
        }
    }
}

impl RefWatch {
    /// Puts back what was moved, and says what was put back since the watch began.
    #[must_use]
    pub fn restore(&self) -> Vec<String> {
        let owned = OwnedRefs::of(&self.repository);
        let mut table = owned.lock();
        // First: no git can be asked before.
        let mended = self.repository.mend_packed_refs(&mut table.sound);
        table.changes.extend(mended);
        if let Err(error) = table.inspect(&self.repository) {
            let words = format!("the refs of the run could not be compared: {error}");
            table.changes.push(words);
        }
        compare_users(&mut table, &self.repository, RefSource::Files);
        table.changes.iter().skip(self.known).cloned().collect()
    }
}

impl Repository {
    /// From now on these refs are owned, as they are now. What is owned already stays as it is known to be.
    pub fn own_refs(&self, wanted: &Ownership) -> Result<(), GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let prefixes: Vec<String> = wanted.prefixes.iter().cloned().chain([REPLACED.to_owned()]).collect();
        let new: Vec<String> = (wanted.names.iter().filter(|name| !table.names.contains(*name)))
            .chain(prefixes.iter().filter(|prefix| !table.prefixes.contains(*prefix)))
            .chain(wanted.shared.iter().filter(|prefix| !table.shared.contains(*prefix)))
            .cloned()
            .collect();
        let shared_before = table.shared.clone();
        table.bases.extend(wanted.bases.iter().cloned());
        if new.is_empty() {
            return Ok(());
        }
        table.names.extend(wanted.names.iter().cloned());
        table.prefixes.extend(prefixes);
        table.shared.extend(wanted.shared.iter().cloned());
        for (name, found) in table.scan(self)? {
            let is_new = new.iter().any(|new| name == *new || name.starts_with(new.as_str()));
            let is_new = is_new && !shared_before.iter().any(|known| name.starts_with(known.as_str()));
            if let (true, Found::At(target)) = (is_new, found) {
                table.values.insert(name, target);
            }
        }
        Ok(())
    }

    /// These refs are owned, too, until what is returned is dropped. Nobody but this process has reason to move them
    /// meanwhile, and others have later.
    pub fn own_refs_meanwhile(&self, wanted: &Ownership) -> Result<OwnedMeanwhile, GitError> {
        let table = OwnedRefs::of(self);
        let known = table.lock();
        let is_new = |known: &BTreeSet<String>, all: &[String]| -> Vec<String> {
            all.iter().filter(|one| !known.contains(*one)).cloned().collect()
        };
        let names = is_new(&known.names, &wanted.names);
        let prefixes = is_new(&known.prefixes, &wanted.prefixes);
        drop(known);
        let meanwhile = OwnedMeanwhile { table, names, prefixes };
        self.own_refs(wanted)?;
        Ok(meanwhile)
    }

    /// A child process begins.
    #[must_use]
    pub fn watch_refs(&self) -> RefWatch {
        note_child();
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        // Whatever somebody has made of it by now is not the doing of this child alone.
        let mended = self.mend_packed_refs(&mut table.sound);
        table.changes.extend(mended);
        if !table.shared.is_empty() {
            table.others.look(self);
        }
        table.users.begin(self, RefSource::Files);
        RefWatch { repository: self.clone(), known: table.changes.len() }
    }

    /// The caller looks after this ref itself until it drops what it gets.
    #[must_use]
    pub fn float_ref(&self, name: &str) -> FloatingRef {
        let table = OwnedRefs::of(self);
        *table.lock().floating.entry(name.to_owned()).or_default() += 1;
        FloatingRef { table, name: name.to_owned() }
    }

    /// Puts one owned ref back where this process left it. False if it is not owned, or is there already.
    pub fn restore_ref(&self, name: &str) -> Result<bool, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        if !table.owns(name) {
            return Ok(false);
        }
        let found = table.scan(self)?.remove(name);
        if found == table.values.get(name).map(|target| Found::At(*target)) {
            return Ok(false);
        }
        table.put_back(self, name, found);
        Ok(true)
    }

    /// Moves refs while nobody compares, and takes note where they are then.
    pub(super) fn moving_owned(
        &self,
        moves: &[RefMove<'_>],
        act: impl FnOnce() -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let is_free = |name: &str| !table.owns(name) && !table.followed.contains_key(name) && !is_users(name);
        if moves.iter().all(|moved| is_free(moved.name)) {
            drop(table);
            return act();
        }
        act()?;
        moves.iter().for_each(|moved| table.note_move(moved));
        Ok(())
    }

    /// What others made of the target of a run since it was last asked: from where to where, in order. The first to ask
    /// learns nothing, and from then on nobody else may write steps of that run there.
    ///
    /// Where the branch is now is looked up while none of us can move it: one who asked with what they had read before
    /// would take a move of ours for one that lost commits.
    pub fn moves_of_others(&self, name: &str, scope: &BranchName) -> Result<Vec<(Oid, Oid)>, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let Some(now) = self.find_ref(name)? else { return Ok(Vec::new()) };
        let new = Followed { left: now, gaps: Vec::new(), scope: scope.clone() };
        let Some(Followed { left, mut gaps, .. }) = table.followed.insert(name.to_owned(), new) else {
            return Ok(Vec::new());
        };
        gaps.extend((left != now).then_some((left, now)));
        Ok(gaps)
    }
}

impl Repository {
    /// Takes steps and landings of a run off its target that came there between two commits and that this process did not
    /// write. Says what was done, if there were any.
    pub fn take_off_claims(
        &self,
        name: &str,
        scope: &BranchName,
        (from, to): (Oid, Oid),
    ) -> Result<Option<String>, GitError> {
        let owned = OwnedRefs::of(self);
        let mut table = owned.lock();
        let own = (&table.own_tips(scope), Landings::All);
        let Some(last) = last_before_claims(self, scope, (from, to), own)? else { return Ok(None) };
        let words = format!("steps of the run were written to {name} by another process");
        let words = take_off(self, name, (self.find_ref(name)?.unwrap_or(to), last), words);
        if let Some(followed) = table.followed.get_mut(name) {
            followed.left = last;
        }
        Ok(Some(words))
    }
}

impl OwnedRefs {
    /// Whether a note is where this process left it, or where it was before the first child process.
    pub(super) fn knows_note(&self, name: &str, target: Oid) -> bool {
        let table = self.lock();
        if !table.owns(name) {
            return !has_begun();
        }
        table.values.get(name) == Some(&target) && !table.others.wrote(name)
    }

    pub(super) fn of(repository: &Repository) -> Self {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.entry(repository.common_dir.clone()).or_default().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RefTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RefTable {
    pub(super) fn owns(&self, name: &str) -> bool {
        self.owns_alone(name) || self.shared.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn owns_alone(&self, name: &str) -> bool {
        self.names.contains(name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn note_move(&mut self, moved: &RefMove<'_>) {
        self.users.note(moved.name, moved.new);
        self.note(moved.name, moved.new);
        if let (Some(followed), Some(new)) = (self.followed.get_mut(moved.name), moved.new) {
            let gap = moved.old.filter(|old| *old != followed.left).map(|old| (followed.left, old));
            followed.gaps.extend(gap);
            followed.left = new;
        }
    }

    fn note(&mut self, name: &str, to: Option<Oid>) {
        if !self.owns(name) {
            return;
        }
        self.others.forget(name);
        match to {
            Some(to) => drop(self.values.insert(name.to_owned(), to)),
            None => drop(self.values.remove(name)),
        }
    }

    /// Whether a ref belongs to a run: those of the user's are only kept.
    pub(super) fn is_of_run(&self, name: &str) -> bool {
        let is_looked_after = self.bases.contains(name) || self.floating.contains_key(name);
        is_looked_after || self.owns(name) || self.followed.contains_key(name)
    }

    /// Takes steps of a run off its target that somebody else wrote there. What was committed before them stays, and all
    /// of it is kept.
    fn inspect_followed(&mut self, repository: &Repository) -> Result<(), GitError> {
        let moved = |name: &String| {
            let Some(followed) = self.followed.get(name) else { return Ok(None) };
            let now = repository.find_ref(name)?.filter(|now| *now != followed.left);
            Ok(now.map(|now| (followed.scope.clone(), followed.left, now)))
        };
        let names: Vec<String> = self.followed.keys().filter(|name| !self.owns(name)).cloned().collect();
        let found: Result<Vec<_>, GitError> = names.iter().map(moved).collect();
        for (name, found) in names.iter().zip(found?) {
            let Some((scope, left, now)) = found else { continue };
            // One that lost commits is left to a person.
            if !repository.is_ancestor(left, now)? {
                continue;
            }
            let own = (&self.own_tips(&scope), Landings::False);
            let Some(last) = last_before_claims(repository, &scope, (left, now), own)? else { continue };
            let words = format!("steps of the run were written to {name} while it ran");
            self.changes.push(take_off(repository, name, (now, last), words));
        }
        Ok(())
    }

    /// Where the branches of tasks are.
    fn own_tips(&self, scope: &BranchName) -> BTreeSet<Oid> {
        let branches = scope.task_refs();
        let own = self.values.iter().filter(|(name, _)| name.starts_with(&branches));
        own.map(|(_, target)| *target).collect()
    }

    /// Makes targets branches again that lead to another ref: whatever is committed to that one would have landed.
    fn part_followed(&mut self, repository: &Repository) {
        let is_parted = |(name, _): &(&String, &Followed)| repository.leads_elsewhere(name);
        let linked = self.followed.iter().filter(is_parted);
        let linked: Vec<(String, Oid)> =
            linked.map(|(name, followed)| (name.clone(), followed.left)).collect();
        for (name, left) in linked {
            let mut words = format!("{name} was made to lead to another ref while it ran");
            let now = repository.find_ref(&name).ok().flatten().filter(|now| *now != left);
            if let Some(under) = now.and_then(|now| save(repository, &name, now)) {
                let _ = write!(words, "; where it led is kept as {under}");
            }
            if let Err(error) = restore(repository, &name, Some(left), Some(Found::Odd)) {
                let _ = write!(words, "; it could not be put back: {error}");
            }
            self.changes.push(words);
        }
    }

    /// Puts back everything that is elsewhere than this process left it.
    fn inspect(&mut self, repository: &Repository) -> Result<(), GitError> {
        self.part_followed(repository);
        self.inspect_followed(repository)?;
        if self.names.is_empty() && self.prefixes.is_empty() {
            return Ok(());
        }
        let found = self.scan(repository)?;
        let names: BTreeSet<&String> = found.keys().chain(self.values.keys()).collect();
        let is_elsewhere = |name: &&&String| {
            !self.floating.contains_key(**name)
                && found.get(**name).copied() != self.values.get(**name).map(|target| Found::At(*target))
        };
        let moved: Vec<String> = names.iter().filter(is_elsewhere).map(|name| (*name).clone()).collect();
        let is_shared = |name: &String| self.owns(name) && !self.owns_alone(name);
        let (shared, moved): (Vec<String>, Vec<String>) = moved.into_iter().partition(is_shared);
        self.inspect_shared(repository, shared, &found)?;
        // What stands in the way of a name goes first: a file cannot be where a folder must be.
        let (intruders, missing): (Vec<String>, Vec<String>) =
            moved.into_iter().partition(|name| !self.values.contains_key(name));
        for name in intruders.into_iter().chain(missing) {
            self.put_back(repository, &name, found.get(&name).copied());
        }
        Ok(())
    }

    /// Takes away what no driver wrote. What is gone was ended by whoever began it.
    fn inspect_shared(
        &mut self,
        repository: &Repository,
        names: Vec<String>,
        found: &BTreeMap<String, Found>,
    ) -> Result<(), GitError> {
        let (left, gone): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| found.contains_key(name));
        for name in gone {
            self.values.remove(&name);
            self.others.forget(&name);
        }
        if left.is_empty() {
            return Ok(());
        }
        // A driver takes its notes away before it gives up its lock. So a note that is there before the locks are looked at
        // and after that was written by one whose lock was seen, or by no driver.
        let is_anybody_here = self.others.look(repository);
        let again = self.scan(repository)?;
        for name in left.iter().filter(|name| found.get(*name) == again.get(*name)) {
            match found.get(name) {
                Some(Found::At(target)) if is_anybody_here || self.others.may_have_written(name) => {
                    self.values.insert(name.clone(), *target);
                    self.others.accept(name);
                }
                found => self.put_back(repository, name, found.copied()),
            }
        }
        Ok(())
    }

    /// All owned refs that are there. A look into the files of loose refs costs no process; git is asked where refs may
    /// be packed anew, or are kept in tables.
    fn scan(&mut self, repository: &Repository) -> Result<BTreeMap<String, Found>, GitError> {
        let prefixes = self.prefixes.iter().chain(&self.shared);
        let folders: BTreeSet<&str> = prefixes.map(|prefix| folder_of(prefix)).collect();
        let mut found = BTreeMap::new();
        let stamp = repository.packed_stamp();
        if repository.keeps_loose_refs {
            let mut add = |name: String, loose: Loose| {
                found.insert(
                    name,
                    match loose {
                        Loose::At(target) => Found::At(target),
                        Loose::Odd => Found::Odd,
                    },
                );
            };
            for name in &self.names {
                repository.read_loose(name).into_iter().for_each(|(name, loose)| add(name, loose));
            }
            for folder in &folders {
                repository.read_loose(folder).into_iter().for_each(|(name, loose)| add(name, loose));
                let blocking = repository.find_blocking(folder);
                blocking.into_iter().for_each(|(name, loose)| add(name, loose));
            }
        }
        if !repository.keeps_loose_refs {
            let patterns: Vec<&str> = self.names.iter().map(String::as_str).chain(folders).collect();
            for (listed, is_link) in repository.list_refs_and_links(&patterns)? {
                let at = if is_link { Found::Odd } else { Found::At(listed.target) };
                found.insert(listed.name, at);
            }
        } else if stamp.is_some() {
            if !self.knows_packed(stamp, &found) {
                let patterns = self.names.iter().map(String::as_str).chain(folders);
                let listed = repository.list_refs(&patterns.collect::<Vec<_>>())?;
                let packed = listed.into_iter().filter(|listed| !found.contains_key(&listed.name));
                self.packed = Some((stamp, packed.map(|packed| (packed.name, packed.target)).collect()));
            }
            let packed = self.packed.iter().flat_map(|(_, packed)| packed);
            for (name, target) in packed {
                found.entry(name.clone()).or_insert(Found::At(*target));
            }
        }
        let is_blocking = |name: &str| self.prefixes.iter().any(|prefix| prefix.starts_with(name));
        let is_below = |name: &str| self.names.iter().any(|own| is_inside(name, own));
        found.retain(|name, _| self.owns(name) || is_blocking(name) || is_below(name));
        Ok(found)
    }

    /// Whether what is known of packed refs still holds: their file is the same, and every ref that is missed among the
    /// loose ones is among them. One that was both and lost its file has an older value now.
    fn knows_packed(&self, stamp: Option<PackedStamp>, loose: &BTreeMap<String, Found>) -> bool {
        let Some((known, packed)) = self.packed.as_ref().filter(|_| stamp.is_some()) else {
            return false;
        };
        *known == stamp
            && self.values.keys().all(|name| loose.contains_key(name) || packed.contains_key(name))
    }

    fn put_back(&mut self, repository: &Repository, name: &str, found: Option<Found>) {
        let wanted = self.values.get(name).copied();
        if let (None, Some(Found::At(target))) = (wanted, found)
            && self.is_a_beginning(repository, name, target)
        {
            self.values.insert(name.to_owned(), target);
            return;
        }
        let mut words = match (wanted, found) {
            (Some(_), None) => format!("{name} was deleted while it ran"),
            (None, _) => format!("{name} was made while it ran"),
            _ => format!("{name} was moved while it ran"),
        };
        if let Some(Found::At(target)) = found
            && let Some(under) = save(repository, name, target)
        {
            let _ = write!(words, "; where it led is kept as {under}");
        }
        if wanted.is_some()
            && let Some(more) = repository.make_room_for_ref(name)
        {
            let _ = write!(words, "; {more}");
        }
        let first = restore(repository, name, wanted, found);
        let put_back = first.or_else(|_| {
            // A git that was killed in the middle of a move leaves its lock.
            stale::clear(&repository.common_dir.join(format!("{name}.lock")));
            restore(repository, name, wanted, found)
        });
        if let Err(error) = put_back {
            let _ = write!(words, "; it could not be put back: {error}");
        }
        self.changes.push(words);
    }

    /// Whether somebody only began a branch there: it holds nothing that the run's own branch does not hold.
    fn is_a_beginning(&self, repository: &Repository, name: &str, target: Oid) -> bool {
        let holds = |base: &String| {
            let tip = repository.find_ref(base).ok().flatten();
            tip.is_some_and(|tip| repository.is_ancestor(target, tip).unwrap_or(false))
        };
        name.starts_with("refs/heads/") && self.owns(name) && self.bases.iter().any(holds)
    }
}

/// The folder that all refs with a prefix are in.
fn folder_of(prefix: &str) -> &str {
    prefix.rfind('/').map_or(prefix, |at| &prefix[..at])
}

fn is_inside(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}
