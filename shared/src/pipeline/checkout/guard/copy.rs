//! A copy of what is watched, and how it is put back.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use super::surface::{How, WatchedItem};
use crate::{
    git::is_own_exclude,
    safe_files::{self, Enclosure, FileKind},
};

/// Larger files are only told by their size and time, and cannot be put back.
const LARGEST: u64 = 1024 * 1024;
/// After so many seconds without a change the stamp of a file is believed.
const SETTLED: i64 = 1;
/// Of so many files of a folder the content is kept: a folder of hooks may be anything. A folder that comes to hold more
/// is moved as a whole.
const MOST: usize = 1000;
/// Links that lead to folders with links are followed so often.
const ROUNDS: usize = 4;
/// Lines that we add to the exclude file ourselves, from whichever process.
const EXCLUDED: [&str; 3] = [Enclosure::DRAFTS, "/.arborist/worktrees/", "/spec/logs/"];

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    File {
        bytes: Arc<[u8]>,
        mode: u32,
    },
    /// The time is that of the last change of any kind, which nobody can set.
    Large {
        size: u64,
        time: (i64, i64),
    },
    Folder,
    Link(PathBuf),
    Special,
}

/// What tells one writing of a file from the next. Only the system sets the time of a change, so that whoever writes the
/// same number of bytes and sets the other times back is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    place: (u64, u64),
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(found: &fs::Metadata) -> Self {
        Self {
            place: (found.dev(), found.ino()),
            size: found.size(),
            mode: found.mode(),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether whatever is written from now on gets another stamp: clocks of file systems tick slowly.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_secs()).is_ok_and(|now| now > self.changed.0.saturating_add(SETTLED))
    }
}

/// Files whose content is known by their stamps. Every agent, reviewer and test looks at all that is watched twice, and next
/// to nothing of it ever changes.
static READ: LazyLock<Mutex<HashMap<PathBuf, (FileStamp, There)>>> = LazyLock::new(Mutex::default);

/// Whether an agent, a reviewer or a test may be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtWork {
    /// None is, so that what is read now may be remembered.
    Nobody,
    /// One may be. A process that has mapped a file into its memory can change it without a trace for as long as the system
    /// has not written it out, so nothing is remembered that was read meanwhile.
    Somebody,
}

impl There {
    fn at(path: &Path, at_work: AtWork) -> Self {
        path.symlink_metadata().map_or(Self::Nothing, |found| Self::known_or_read(path, &found, at_work))
    }

    fn known_or_read(path: &Path, found: &fs::Metadata, at_work: AtWork) -> Self {
        let stamp = FileStamp::of(found);
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, there)) = read.get(path)
            && *known == stamp
        {
            return there.clone();
        }
        let there = Self::look_at(path);
        if at_work == AtWork::Nobody && matches!(there, Self::File { .. }) && stamp.is_settled() {
            read.insert(path.to_owned(), (stamp, there.clone()));
        } else {
            read.remove(path);
        }
        there
    }

    /// Whether what is at a path is as it was before, as far as one look tells. Whoever gets a no looks closely.
    fn is_as_before(path: &Path, how: How, before: &Self) -> bool {
        let Ok(found) = path.symlink_metadata() else { return is_same(how, before, &Self::Nothing) };
        let after = match FileKind::of(&found) {
            FileKind::Folder => Self::Folder,
            // Of a file that git writes all the time, only that it is one matters.
            FileKind::File if how == How::Sort || matches!(before, Self::Large { .. }) => Self::large(&found),
            _ => Self::known_or_read(path, &found, AtWork::Somebody),
        };
        is_same(how, before, &after)
    }

    fn look_at(path: &Path) -> Self {
        match safe_files::kind_of(path) {
            None => Self::Nothing,
            Some(FileKind::Folder) => Self::Folder,
            Some(FileKind::Special) => Self::Special,
            Some(FileKind::Link) => Self::Link(fs::read_link(path).unwrap_or_default()),
            Some(FileKind::File) => Self::file(path),
        }
    }

    fn file(path: &Path) -> Self {
        let Ok(found) = path.symlink_metadata() else { return Self::Nothing };
        match safe_files::read_up_to(path, LARGEST) {
            Ok(bytes) => Self::File { bytes: bytes.into(), mode: found.permissions().mode() & 0o7777 },
            Err(_) => Self::large(&found),
        }
    }

    fn large(found: &fs::Metadata) -> Self {
        Self::Large { size: found.len(), time: (found.ctime(), found.ctime_nsec()) }
    }

    /// What is there, in the way that it was looked at `before`.
    fn again(path: &Path, before: &Self) -> Self {
        match (before, Self::at(path, AtWork::Somebody)) {
            (Self::Large { .. }, Self::File { .. }) => {
                path.symlink_metadata().map_or(Self::Nothing, |found| Self::large(&found))
            }
            (_, there) => there,
        }
    }

    fn is_odd(&self) -> bool {
        matches!(self, Self::Link(_) | Self::Special)
    }
}

/// What was found at each path.
pub(super) type PathStates = BTreeMap<PathBuf, (How, There)>;

/// Everything that is watched, as it was.
#[derive(Debug)]
pub(super) struct Copy {
    items: Vec<WatchedItem>,
    there: PathStates,
    /// Where we may write: nothing outside of these is put back.
    inside: Vec<PathBuf>,
    /// Where a folder is moved to that took the place of something else.
    aside: PathBuf,
}

impl Copy {
    pub(super) fn take(
        mut items: Vec<WatchedItem>,
        inside: Vec<PathBuf>,
        aside: PathBuf,
        at_work: AtWork,
    ) -> Self {
        let mut there = look(&items, at_work);
        // What a link of the user's leads to is watched, too: a folder of hooks or a file of settings that several
        // repositories share. Each round finds the links in what the last one added.
        for _ in 0..ROUNDS {
            let targets = targets_of(&there, &items);
            if targets.is_empty() {
                break;
            }
            there.extend(look(&targets, at_work));
            items.extend(targets);
        }
        Self { items, there, inside, aside }
    }

    /// Takes what is outside from what was `known` of it before, or makes it known.
    pub(super) fn keep_outside(&mut self, known: Option<PathStates>) -> PathStates {
        let is_inside = |path: &Path| self.inside.iter().any(|folder| path.starts_with(folder));
        let outside = || {
            self.there
                .iter()
                .filter(|(path, _)| !is_inside(path))
                .map(|(path, there)| (path.clone(), there.clone()))
        };
        let known = known.unwrap_or_else(|| outside().collect());
        self.there.retain(|path, _| self.inside.iter().any(|folder| path.starts_with(folder)));
        self.there.extend(known.clone());
        known
    }

    /// Puts back what is not as it was, and names it.
    pub(super) fn restore(&self) -> Vec<String> {
        if self.is_unchanged() {
            return Vec::new();
        }
        let mut found = self.move_crowded();
        let now = look(&self.items, AtWork::Somebody);
        let paths: BTreeSet<&PathBuf> = self.there.keys().chain(now.keys()).collect();
        // Folders come before what is in them, so that a link in the place of one is gone first.
        for path in paths {
            let nothing = (How::Whole, There::Nothing);
            let (how, before) = self.there.get(path).unwrap_or(&nothing);
            // What was above may have been put back by now.
            let after = There::again(path, before);
            let how = now.get(path).map_or(*how, |(how, _)| *how);
            // Git reads all of it, so no more is needed to stop every git.
            let is_swollen =
                path.ends_with("HEAD") && is_file(before) && matches!(after, There::Large { .. });
            if (is_same(how, before, &after) && !is_swollen)
                || is_lane_gone(path, &after)
                || (how == How::Submodule && is_submodule_gone(path))
            {
                continue;
            }
            found.push(self.put_back(path, before, &after));
        }
        found
    }

    /// Whether everything is as it was. That is so after nearly every child, and one look at each name tells.
    fn is_unchanged(&self) -> bool {
        // What a link of the user's leads to is an item of its own.
        let is_link = |path| matches!(self.there.get(path), Some((_, There::Link(_))));
        let folders = self.items.iter().filter(|item| item.how == How::Folder);
        let mut folders = folders.filter(|item| !is_link(&item.path));
        self.there.iter().all(|(path, (how, before))| There::is_as_before(path, *how, before))
            && folders.all(|folder| self.has_nothing_new(&folder.path))
            && self.items.iter().all(|item| self.there.contains_key(&item.path))
    }

    /// Whether all that is in a folder was there before. A folder behind a link is not looked into.
    fn has_nothing_new(&self, folder: &Path) -> bool {
        let Ok(entries) = safe_files::list_kinds(folder) else { return false };
        entries.iter().all(|entry| {
            self.there.contains_key(&entry.path)
                && (entry.kind != FileKind::Folder || self.has_nothing_new(&entry.path))
        })
    }

    /// A folder that came to hold more than can be compared file by file is moved, and begins anew with what is known.
    fn move_crowded(&self) -> Vec<String> {
        let folders = self.items.iter().filter(|item| item.how == How::Folder).map(|item| &item.path);
        let is_crowded = |folder: &&PathBuf| {
            let mut now = PathStates::new();
            self.count_in(folder) <= MOST && !look_into(folder, AtWork::Somebody, &mut now, Some(MOST))
        };
        folders
            .filter(is_crowded)
            .map(|folder| self.put_back(folder, &There::Folder, &There::Folder))
            .collect()
    }

    fn count_in(&self, folder: &Path) -> usize {
        let below = self.there.range(folder.to_owned()..).skip_while(|(path, _)| *path == folder);
        below.take_while(|(path, _)| path.starts_with(folder)).count()
    }

    fn put_back(&self, path: &Path, before: &There, after: &There) -> String {
        let mut words = self.sentence(path, before);
        if !self.inside.iter().any(|folder| path.starts_with(folder)) {
            return format!("{words}, and is not put back: it is outside of the repository and its worktree");
        }
        match self.clear(path, before, after).and_then(|kept| write(path, before).map(|()| kept)) {
            Ok(Some(kept)) => words += &format!(": what stood there is kept in {}", kept.display()),
            Ok(None) => {}
            Err(error) => words += &format!(", and could not be put back: {error}"),
        }
        words
    }

    /// Takes away what is there. A folder may hold work, so it is moved, and so is a file of which there is no copy.
    fn clear(&self, path: &Path, before: &There, after: &There) -> io::Result<Option<PathBuf>> {
        match (before, after) {
            (_, There::Nothing) => Ok(None),
            (_, There::Folder) | (There::Large { .. }, _) => {
                let free =
                    (1..).map(|n| self.aside.with_extension(n.to_string())).find(|path| !path.exists());
                let free = free.unwrap_or_else(|| self.aside.clone());
                safe_files::rename(path, &free).map(|()| Some(free))
            }
            _ => safe_files::remove(path).map(|()| None),
        }
    }

    fn sentence(&self, path: &Path, before: &There) -> String {
        let inside = self.inside.iter().find_map(|folder| path.strip_prefix(folder).ok());
        let shown = inside.unwrap_or(path).display();
        let is_hook = path.parent().is_some_and(|folder| folder.ends_with("hooks"));
        match (before, path.file_name()) {
            (There::Nothing, Some(name)) if is_hook => {
                format!("the hook {} was added while it ran", name.to_string_lossy())
            }
            (There::Nothing, _) => format!("{shown} was added while it ran"),
            _ => format!("{shown} was changed while it ran"),
        }
    }
}

fn write(path: &Path, before: &There) -> io::Result<()> {
    // A worktree that is gone does not come back by this.
    if path.ends_with(".git") && !path.parent().is_some_and(Path::is_dir) {
        return Err(io::ErrorKind::NotFound.into());
    }
    match before {
        There::Nothing => Ok(()),
        There::File { bytes, mode } => safe_files::write_with_mode(path, bytes, *mode),
        There::Folder => safe_files::make_folders(path),
        There::Link(target) => safe_files::symlink(target, path),
        There::Large { .. } | There::Special => Err(io::Error::other("no copy of it was kept")),
    }
}

/// What links lead to that is not watched yet.
fn targets_of(there: &PathStates, items: &[WatchedItem]) -> Vec<WatchedItem> {
    let is_closely = |how: How| matches!(how, How::Whole | How::Folder | How::Excludes);
    let links = there.iter().filter(|(_, (how, there))| is_closely(*how) && matches!(there, There::Link(_)));
    let mut targets: Vec<WatchedItem> = Vec::new();
    for (path, (how, _)) in links {
        let Ok(target) = path.canonicalize() else { continue };
        let how = if target.is_dir() { How::Folder } else { *how };
        let is_known = |item: &WatchedItem| item.path == target;
        if !there.contains_key(&target) && !items.iter().chain(&targets).any(is_known) {
            targets.push(WatchedItem { path: target, how });
        }
    }
    targets
}

fn look(items: &[WatchedItem], at_work: AtWork) -> PathStates {
    let mut found = BTreeMap::new();
    for WatchedItem { path, how } in items {
        let there = There::at(path, at_work);
        if *how == How::Folder && there == There::Folder {
            look_into(path, at_work, &mut found, None);
        }
        // What is watched by more than one name is watched as closely as any of them asks.
        let entry = found.entry(path.clone()).or_insert((*how, there));
        entry.0 = entry.0.min(*how);
    }
    found
}

/// Looks at everything in a folder. False if there is more than `most`, and then the rest is left out.
fn look_into(folder: &Path, at_work: AtWork, found: &mut PathStates, most: Option<usize>) -> bool {
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        let mut entries = safe_files::list_kinds(&folder).unwrap_or_default();
        // Which folder comes last decides what is counted, so it must be the same one each time.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        count += entries.len();
        if most.is_some_and(|most| count > most) {
            return false;
        }
        for entry in entries {
            let there = if entry.kind == FileKind::File && count > MOST {
                entry.path.symlink_metadata().map_or(There::Nothing, |file| There::large(&file))
            } else {
                There::at(&entry.path, at_work)
            };
            if entry.kind == FileKind::Folder {
                open.push(entry.path.clone());
            }
            found.insert(entry.path, (How::Whole, there));
        }
    }
    true
}

fn is_same(how: How, before: &There, after: &There) -> bool {
    match how {
        _ if before == after => true,
        How::Submodule => false,
        // A folder that git, or an agent, made where none was holds only what is looked at by itself.
        _ if *before == There::Nothing && *after == There::Folder => true,
        How::Whole | How::Folder => false,
        How::Sort => match (before, after) {
            (There::Nothing, after) => !after.is_odd(),
            (There::Folder, There::Nothing) => true,
            (before, after) => is_file(before) && is_file(after),
        },
        How::Absence => !(*before == There::Nothing || after.is_odd()),
        How::Excludes => match (before, after) {
            (There::File { bytes: before, .. }, There::File { bytes: after, .. }) => {
                others(before) == others(after)
            }
            (There::Nothing, There::File { bytes, .. }) => others(bytes).is_empty(),
            _ => false,
        },
    }
}

fn is_file(there: &There) -> bool {
    matches!(there, There::File { .. } | There::Large { .. })
}

/// The lines of an exclude file that are not ours.
fn others(text: &[u8]) -> Vec<&[u8]> {
    let is_usual = |line: &[u8]| EXCLUDED.iter().any(|ours| ours.as_bytes() == line);
    let is_ours = |line: &&[u8]| line.is_empty() || is_usual(line) || is_own_exclude(line);
    text.split(|byte| *byte == b'\n').filter(|line| !is_ours(line)).collect()
}

/// A lane that was removed meanwhile takes its git directory with it.
fn is_lane_gone(path: &Path, after: &There) -> bool {
    let home = path.parent().filter(|home| home.parent().is_some_and(|all| all.ends_with("worktrees")));
    *after == There::Nothing && home.is_some_and(|home| !home.exists())
}

/// git looks into no submodule that has no folder.
fn is_submodule_gone(path: &Path) -> bool {
    path.parent().is_none_or(|folder| safe_files::kind_of(folder) != Some(FileKind::Folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> There {
        There::File { bytes: text.as_bytes().into(), mode: 0o644 }
    }

    #[test]
    fn what_we_write_ourselves_is_no_change() {
        let [plain, ours] = [file("a\n"), file("a\n/spec/logs/\n.arborist-draft-*\n")];
        assert!(is_same(How::Excludes, &plain, &ours));
        assert!(is_same(How::Excludes, &There::Nothing, &file("/spec/logs/\n")));
        assert!(!is_same(How::Excludes, &plain, &file("a\nsecret\n")));
        assert!(!is_same(How::Excludes, &plain, &There::Nothing));
        assert!(is_same(How::Sort, &plain, &file("b")) && is_same(How::Sort, &There::Nothing, &plain));
        assert!(!is_same(How::Sort, &plain, &There::Special));
        assert!(!is_same(How::Sort, &There::Folder, &There::Link("x".into())));
        assert!(is_same(How::Absence, &plain, &file("b")));
        assert!(!is_same(How::Absence, &There::Nothing, &plain));
    }
}
