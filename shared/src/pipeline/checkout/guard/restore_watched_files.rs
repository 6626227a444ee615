//! A copy of the watched files, and how they are restored from it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

use super::{
    around::{folders_around, targets_of},
    watched_files::{WatchMode, WatchedItem},
};
use crate::{
    git::{copy_aside, is_own_exclude, move_aside, runs_nothing},
    mutex::MutexExt,
    safe_files::{self, ChangeStamp, Enclosure, FileKind},
};

/// Larger files are compared only by size and time, and cannot be restored.
const MAX_KEPT_SIZE: u64 = 1024 * 1024;
/// The number of files in a folder whose content is kept: `core.hooksPath` may name any folder. A folder that grows
/// beyond this is moved as a whole.
const MAX_KEPT_FILES: usize = 1000;
/// How many levels of links to folders with links are followed.
const MAX_LINK_LEVELS: usize = 4;
/// Lines that any of our processes may add to the exclude file.
const OWN_EXCLUDES: [&str; 3] = [Enclosure::DRAFTS, "/.arborist/worktrees/", "/spec/logs/"];

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileState {
    Nothing,
    File {
        bytes: Arc<[u8]>,
        mode: u32,
    },
    /// The time is the inode's change time, which programs cannot set.
    Large {
        size: u64,
        time: (i64, i64),
    },
    Folder,
    Link(PathBuf),
    Special,
}

/// Files whose content is known by their stamps. Every child causes two reads of everything that is watched, and almost
/// none of it ever changes.
static KNOWN_CONTENT: LazyLock<Mutex<HashMap<PathBuf, (ChangeStamp, FileState)>>> =
    LazyLock::new(Mutex::default);

/// What could not be restored, as it was before. Later children are compared with this, so that none of them passes with
/// what an earlier one left.
static UNRESTORED: Mutex<BTreeMap<PathBuf, (WatchMode, FileState)>> = Mutex::new(BTreeMap::new());

/// Whether an agent, a reviewer or a test may be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunningChildren {
    /// None is running, so that what is read now may be cached.
    None,
    /// One may be running. A process can change a file that it has mapped into memory, without a trace until the system
    /// has written it out. So nothing that is read now may be cached.
    Possible,
}

impl FileState {
    fn at(path: &Path, running_children: RunningChildren) -> Self {
        path.symlink_metadata()
            .map_or(Self::Nothing, |found| Self::known_or_read(path, &found, running_children))
    }

    fn known_or_read(path: &Path, found: &fs::Metadata, running_children: RunningChildren) -> Self {
        let stamp = ChangeStamp::of(found);
        let mut read = KNOWN_CONTENT.hold();
        if let Some((known, there)) = read.get(path)
            && *known == stamp
        {
            return there.clone();
        }
        let there = Self::look_at(path);
        if running_children == RunningChildren::None
            && matches!(there, Self::File { .. })
            && stamp.is_settled()
        {
            read.insert(path.to_owned(), (stamp, there.clone()));
        } else {
            read.remove(path);
        }
        there
    }

    /// Whether a path looks the same as before. If not, it must be compared closely.
    fn is_as_before(path: &Path, watch_mode: WatchMode, before: &Self) -> bool {
        let Ok(found) = path.symlink_metadata() else {
            return is_same(path, watch_mode, before, &Self::Nothing);
        };
        let after = match FileKind::of(&found) {
            FileKind::Folder => Self::Folder,
            // Git writes such a file all the time, so only its kind matters.
            FileKind::File if watch_mode == WatchMode::Kind || matches!(before, Self::Large { .. }) => {
                Self::large(&found)
            }
            _ => Self::known_or_read(path, &found, RunningChildren::Possible),
        };
        is_same(path, watch_mode, before, &after)
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
        match safe_files::read_up_to(path, MAX_KEPT_SIZE) {
            Ok(bytes) => Self::File { bytes: bytes.into(), mode: found.permissions().mode() & 0o7777 },
            Err(_) => Self::large(&found),
        }
    }

    fn large(found: &fs::Metadata) -> Self {
        Self::Large { size: found.len(), time: (found.ctime(), found.ctime_nsec()) }
    }

    /// What is at a path, read in the same way as `before`.
    fn again(path: &Path, before: &Self) -> Self {
        match (before, Self::at(path, RunningChildren::Possible)) {
            (Self::Large { .. }, Self::File { .. }) => {
                path.symlink_metadata().map_or(Self::Nothing, |found| Self::large(&found))
            }
            (_, there) => there,
        }
    }

    fn is_irregular(&self) -> bool {
        matches!(self, Self::Link(_) | Self::Special)
    }
}

/// What was found at each path.
pub(super) type PathStates = BTreeMap<PathBuf, (WatchMode, FileState)>;

/// A copy of everything that is watched.
#[derive(Debug)]
pub(super) struct WatchedCopy {
    items: Vec<WatchedItem>,
    there: PathStates,
    /// The folders in which we may write; nothing outside of them is restored.
    inside: Vec<PathBuf>,
    /// The git directory to which replaced folders are moved.
    git_dir: PathBuf,
    /// Whether replaced files are kept there, too.
    keeps_files: bool,
}

impl WatchedCopy {
    pub(super) fn take(
        mut items: Vec<WatchedItem>,
        inside: Vec<PathBuf>,
        git_dir: PathBuf,
        running_children: RunningChildren,
    ) -> Self {
        items.extend(folders_around(&items, &inside));
        let mut there = look(&items, running_children);
        // The targets of the user's links are watched, too: several repositories may share a folder of hooks or a file
        // of settings. Each round finds the links in what the last round added.
        for _ in 0..MAX_LINK_LEVELS {
            let mut targets = targets_of(&there, &items);
            // If `.git` is a link, its target is watched by the names in it.
            targets.retain(|target| target.path != git_dir);
            if targets.is_empty() {
                break;
            }
            there.extend(look(&targets, running_children));
            items.extend(targets);
        }
        // Also those around the targets.
        let folders = folders_around(&items, &inside);
        for (path, found) in look(&folders, running_children) {
            there.entry(path).or_insert(found);
        }
        items.extend(folders);
        for (path, before) in UNRESTORED.hold().iter() {
            if inside.iter().any(|top| path.starts_with(top)) {
                there.insert(path.clone(), before.clone());
            }
        }
        Self { items, there, inside, git_dir, keeps_files: false }
    }

    /// Keeps files that are replaced.
    pub(super) fn keeping_files(self) -> Self {
        Self { keeps_files: true, ..self }
    }

    pub(super) fn states(&self) -> &PathStates {
        &self.there
    }

    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Replaces the state of paths outside by what was `known` before, or makes the current state known.
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

    /// Restores what has changed, and returns messages about it.
    pub(super) fn restore(&self) -> Vec<String> {
        self.restore_where(|_| true)
    }

    /// Restores what has changed outside of the git directory, and returns messages about it.
    pub(super) fn restore_elsewhere(&self) -> Vec<String> {
        self.restore_where(|path| !path.starts_with(&self.git_dir))
    }

    fn restore_where(&self, is_compared: impl Fn(&Path) -> bool) -> Vec<String> {
        if self.is_unchanged(&is_compared) {
            return Vec::new();
        }
        let mut found = self.move_overfull(&is_compared);
        let now = look(&self.items, RunningChildren::Possible);
        let paths = self.there.keys().chain(now.keys()).filter(|path| is_compared(path));
        let paths: BTreeSet<&PathBuf> = paths.collect();
        // Folders come before their content, so that a link that replaced a folder is gone first.
        for path in paths {
            let nothing = (WatchMode::Whole, FileState::Nothing);
            let (watch_mode, before) = self.there.get(path).unwrap_or(&nothing);
            // Restoring a parent may have restored this path.
            let after = FileState::again(path, before);
            let watch_mode = now.get(path).map_or(*watch_mode, |(watch_mode, _)| *watch_mode);
            // Git reads the whole file, so that a huge HEAD would stop every git.
            let is_huge_head =
                path.ends_with("HEAD") && is_file(before) && matches!(after, FileState::Large { .. });
            if (is_same(path, watch_mode, before, &after) && !is_huge_head)
                || is_lane_gone(path, &after)
                || (watch_mode == WatchMode::Submodule && is_submodule_gone(path))
            {
                continue;
            }
            found.push(self.restore_path(path, watch_mode, before, &after));
        }
        found
    }

    /// Whether nothing has changed. That is so after nearly every child, and takes one `lstat` for each name.
    fn is_unchanged(&self, is_compared: impl Fn(&Path) -> bool) -> bool {
        // The target of a link is a separate item.
        let is_link = |path| matches!(self.there.get(path), Some((_, FileState::Link(_))));
        let mut items = self.items.iter().filter(|item| is_compared(&item.path));
        let folders = items.clone().filter(|item| item.watch_mode.is_folder());
        let mut folders = folders.filter(|item| !is_link(&item.path));
        let mut there = self.there.iter().filter(|(path, _)| is_compared(path));
        there.all(|(path, (watch_mode, before))| FileState::is_as_before(path, *watch_mode, before))
            && folders.all(|folder| self.has_nothing_new(&folder.path, folder.watch_mode.inside()))
            && items.all(|item| self.there.contains_key(&item.path))
    }

    /// Whether all entries of a folder existed before. Links to folders are not followed.
    fn has_nothing_new(&self, folder: &Path, watch_mode: WatchMode) -> bool {
        let Ok(entries) = safe_files::list_kinds(folder) else { return false };
        entries.iter().filter(|entry| !is_unwatched(&entry.path, watch_mode)).all(|entry| {
            self.there.contains_key(&entry.path)
                && (entry.kind != FileKind::Folder || self.has_nothing_new(&entry.path, watch_mode))
        })
    }

    /// Moves folders that now contain too many files to compare, and restores them from the copy.
    fn move_overfull(&self, is_compared: impl Fn(&Path) -> bool) -> Vec<String> {
        let folders = self.items.iter().filter(|item| item.watch_mode.is_folder()).map(|item| &item.path);
        let folders = folders.filter(|folder| is_compared(folder));
        let is_overfull = |folder: &&PathBuf| {
            let mut now = PathStates::new();
            self.count_in(folder) <= MAX_KEPT_FILES
                && !look_into(
                    folder,
                    WatchMode::Whole,
                    RunningChildren::Possible,
                    &mut now,
                    Some(MAX_KEPT_FILES),
                )
        };
        folders
            .filter(is_overfull)
            .map(|folder| {
                self.restore_path(folder, WatchMode::Folder, &FileState::Folder, &FileState::Folder)
            })
            .collect()
    }

    fn count_in(&self, folder: &Path) -> usize {
        let below = self.there.range(folder.to_owned()..).skip_while(|(path, _)| *path == folder);
        below.take_while(|(path, _)| path.starts_with(folder)).count()
    }

    fn restore_path(
        &self,
        path: &Path,
        watch_mode: WatchMode,
        before: &FileState,
        after: &FileState,
    ) -> String {
        let mut words = self.sentence(path, watch_mode, before);
        if !self.inside.iter().any(|folder| path.starts_with(folder)) {
            return format!("{words}, and is not restored: it is outside the repository and its worktree");
        }
        let is_script = watch_mode.is_named();
        let keeps_files = self.keeps_files || is_script;
        self.allow_writing_around(path);
        let cleared = self.clear(path, (before, after), keeps_files);
        let restored = match before {
            FileState::Nothing => ", and was removed",
            _ => ", and was restored",
        };
        let written = cleared.and_then(|kept| write(path, before).map(|()| kept));
        let mut unrestored = UNRESTORED.hold();
        match &written {
            Ok(_) => unrestored.remove(path),
            Err(_) => unrestored.insert(path.to_owned(), (watch_mode, before.clone())),
        };
        match written {
            Ok(Some(kept)) if *before == FileState::Nothing => {
                words += &format!(", and was moved to {}", kept.display());
            }
            Ok(Some(kept)) => {
                words += &format!("{restored}; the changed version is kept in {}", kept.display());
            }
            Ok(None) => words += restored,
            Err(error) => words += &format!(", and could not be restored: {error}"),
        }
        words
    }

    /// A child may have closed the folders around a path. What fails here fails again when the path is written.
    fn allow_writing_around(&self, path: &Path) {
        for top in self.inside.iter().filter(|top| path.starts_with(top)) {
            safe_files::allow_writing_around(top, path);
        }
    }

    /// Removes what is at the path. A folder may contain work, so it is moved; so is a file of which there is no copy.
    fn clear(
        &self,
        path: &Path,
        states: (&FileState, &FileState),
        keeps_files: bool,
    ) -> io::Result<Option<PathBuf>> {
        match states {
            (_, FileState::Nothing) => Ok(None),
            (_, FileState::Folder) | (FileState::Large { .. }, _) => {
                move_aside(&self.git_dir, path).map(Some)
            }
            (_, FileState::File { .. }) if keeps_files => {
                let kept = copy_aside(&self.git_dir, path)?;
                safe_files::remove(path).map(|()| Some(kept))
            }
            _ => safe_files::remove(path).map(|()| None),
        }
    }

    fn sentence(&self, path: &Path, watch_mode: WatchMode, before: &FileState) -> String {
        let in_git = path.strip_prefix(&self.git_dir).ok().map(|inner| Path::new(".git").join(inner));
        let inside = self.inside.iter().find_map(|folder| path.strip_prefix(folder).ok());
        let inside = inside.filter(|inner| *inner != Path::new(""));
        let shown = in_git.unwrap_or_else(|| inside.unwrap_or(path).to_owned());
        let shown = shown.display();
        let role = match watch_mode {
            WatchMode::ReviewSettings => Some("is read by the reviewer's program"),
            WatchMode::GitScript => Some("is run by git"),
            WatchMode::OtherConfig => {
                Some("belongs to the git configuration of another repository of the run")
            }
            _ => None,
        };
        if watch_mode == WatchMode::ReviewScript {
            let (may, deed) =
                if *before == FileState::Nothing { ("add", "added") } else { ("change", "changed") };
            return format!(
                "the reviewer's command names '{shown}', so a task may not {may} it; it was {deed}"
            );
        }
        if let Some(role) = role {
            let deed = if *before == FileState::Nothing { "added" } else { "changed" };
            return format!("'{shown}' {role}; it was {deed} while the task ran");
        }
        let is_hook = path.parent().is_some_and(|folder| folder.ends_with("hooks"));
        match (before, path.file_name()) {
            (FileState::Nothing, Some(name)) if is_hook => {
                format!("the hook {} was added while an agent or a command ran", name.to_string_lossy())
            }
            (FileState::Nothing, _) => format!("{shown} was added while an agent or a command ran"),
            _ => format!("{shown} was changed while an agent or a command ran"),
        }
    }
}

fn write(path: &Path, before: &FileState) -> io::Result<()> {
    // A worktree that was removed must not come back as a folder with nothing but `.git`.
    if path.ends_with(".git") && !path.parent().is_some_and(Path::is_dir) {
        return Err(io::ErrorKind::NotFound.into());
    }
    match before {
        FileState::Nothing => Ok(()),
        FileState::File { bytes, mode } => safe_files::write_with_mode(path, bytes, *mode),
        FileState::Folder => safe_files::make_folders(path),
        FileState::Link(target) => safe_files::symlink(target, path),
        FileState::Large { .. } | FileState::Special => Err(io::Error::other("no copy of it was kept")),
    }
}

fn look(items: &[WatchedItem], running_children: RunningChildren) -> PathStates {
    let mut found = BTreeMap::new();
    for WatchedItem { path, watch_mode } in items {
        let there = FileState::at(path, running_children);
        if watch_mode.is_folder() && there == FileState::Folder {
            look_into(path, watch_mode.inside(), running_children, &mut found, None);
        }
        // A path that is watched under several names is watched as closely as any of them requires.
        let entry = found.entry(path.clone()).or_insert((*watch_mode, there));
        entry.0 = entry.0.min(*watch_mode);
    }
    found
}

/// Reads everything in a folder. Returns false if there are more than `most` entries; the rest is then left out.
fn look_into(
    folder: &Path,
    watch_mode: WatchMode,
    running_children: RunningChildren,
    found: &mut PathStates,
    most: Option<usize>,
) -> bool {
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = open.pop() {
        let mut entries = safe_files::list_kinds(&folder).unwrap_or_default();
        // The order decides which files are counted, so it must be the same each time.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries.retain(|entry| !is_unwatched(&entry.path, watch_mode));
        count += entries.len();
        if most.is_some_and(|most| count > most) {
            return false;
        }
        for entry in entries {
            let there = if entry.kind == FileKind::File && count > MAX_KEPT_FILES {
                entry.path.symlink_metadata().map_or(FileState::Nothing, |file| FileState::large(&file))
            } else {
                FileState::at(&entry.path, running_children)
            };
            if entry.kind == FileKind::Folder {
                open.push(entry.path.clone());
            }
            found.insert(entry.path, (watch_mode, there));
        }
    }
    true
}

/// Whether this is a folder that codex fills again whenever it starts, or a sample of a hook in another repository, which
/// may be made again with another git.
fn is_unwatched(path: &Path, watch_mode: WatchMode) -> bool {
    let is_sample = || path.extension().is_some_and(|extension| extension == "sample");
    path.ends_with("skills/.system") || (watch_mode == WatchMode::InnerFile && is_sample())
}

fn is_same(path: &Path, watch_mode: WatchMode, before: &FileState, after: &FileState) -> bool {
    match watch_mode {
        _ if before == after => true,
        WatchMode::Submodule | WatchMode::KnownFolder => false,
        // The content of a new folder is compared by itself.
        _ if *before == FileState::Nothing && *after == FileState::Folder => true,
        WatchMode::Whole
        | WatchMode::GitScript
        | WatchMode::ReviewScript
        | WatchMode::ReviewSettings
        | WatchMode::OtherConfig
        | WatchMode::Folder => false,
        WatchMode::InnerFile | WatchMode::InnerFolder => *after == FileState::Nothing,
        WatchMode::InnerConfig => match after {
            FileState::Nothing => true,
            FileState::File { bytes, .. } => runs_nothing(bytes),
            _ => false,
        },
        WatchMode::Kind => match (before, after) {
            (FileState::Nothing, after) => !after.is_irregular(),
            (FileState::Folder, FileState::Nothing) => true,
            (before, after) => is_file(before) && is_file(after),
        },
        WatchMode::Absence => !(*before == FileState::Nothing || after.is_irregular()),
        WatchMode::ExcludeFile => match (before, after) {
            (FileState::File { bytes: before, .. }, FileState::File { bytes: after, .. }) => {
                others(path, before) == others(path, after)
            }
            (FileState::Nothing, FileState::File { bytes, .. }) => others(path, bytes).is_empty(),
            _ => false,
        },
    }
}

fn is_file(there: &FileState) -> bool {
    matches!(there, FileState::File { .. } | FileState::Large { .. })
}

/// The lines of an exclude file that we did not add.
fn others<'a>(path: &Path, text: &'a [u8]) -> Vec<&'a [u8]> {
    let is_usual = |line: &[u8]| OWN_EXCLUDES.iter().any(|ours| ours.as_bytes() == line);
    let is_ours = |line: &&[u8]| line.is_empty() || is_usual(line) || is_own_exclude(path, line);
    text.split(|byte| *byte == b'\n').filter(|line| !is_ours(line)).collect()
}

/// Whether the path belongs to a lane that was removed meanwhile, together with its git directory.
fn is_lane_gone(path: &Path, after: &FileState) -> bool {
    let home = path.parent().filter(|home| home.parent().is_some_and(|all| all.ends_with("worktrees")));
    *after == FileState::Nothing && home.is_some_and(|home| !home.exists())
}

/// Whether the folder of the submodule is gone. Git does not look into such a submodule.
fn is_submodule_gone(path: &Path) -> bool {
    path.parent().is_none_or(|folder| safe_files::kind_of(folder) != Some(FileKind::Folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> FileState {
        FileState::File { bytes: text.as_bytes().into(), mode: 0o644 }
    }

    #[test]
    fn lines_that_we_add_to_watched_files_are_no_change() {
        let is_same = |mode, before: &_, after: &_| is_same(Path::new("info/exclude"), mode, before, after);
        let [plain, ours] = [file("a\n"), file("a\n/spec/logs/\n.arborist-draft-*\n")];
        assert!(is_same(WatchMode::ExcludeFile, &plain, &ours));
        assert!(is_same(WatchMode::ExcludeFile, &FileState::Nothing, &file("/spec/logs/\n")));
        assert!(!is_same(WatchMode::ExcludeFile, &plain, &file("a\nsecret\n")));
        assert!(!is_same(WatchMode::ExcludeFile, &plain, &FileState::Nothing));
        assert!(
            is_same(WatchMode::Kind, &plain, &file("b"))
                && is_same(WatchMode::Kind, &FileState::Nothing, &plain)
        );
        assert!(!is_same(WatchMode::Kind, &plain, &FileState::Special));
        assert!(!is_same(WatchMode::Kind, &FileState::Folder, &FileState::Link("x".into())));
        assert!(is_same(WatchMode::Absence, &plain, &file("b")));
        assert!(!is_same(WatchMode::Absence, &FileState::Nothing, &plain));
    }
}
