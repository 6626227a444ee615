//! Tells whether child processes may have written files. A scan of a worktree stays valid while no child runs:
//! everything that runs code of others is a child of this process, and ends before its work is judged.
//!
//! With several jobs there is nearly always a child running somewhere. A child in another worktree is not supposed to
//! write into this one; that it could is what guards are for. So there are two questions: whether no child ran at all
//! ([`Quiet`]), and whether no child ran that works in one worktree, or is watched there ([`NoChildrenIn`]).
//!
//! The sandbox answers two more: whether no child ran that could have changed a folder ([`ChildReach`]), and whether no child that
//! works elsewhere could have written files in it ([`OthersReach`]).

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, Weak},
};

use super::Confinement;

use crate::mutex::MutexExt;

/// The children that may write files.
static WRITERS: LazyLock<Mutex<Writers>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct Writers {
    /// How many have ever begun. The id of a child is this number at its start.
    begun: u64,
    /// The running children.
    at_work: HashMap<u64, RunningChild>,
    /// The last child that began in a folder.
    last_in: HashMap<PathBuf, u64>,
    /// The last child that may write anywhere.
    last_anywhere: u64,
    /// Those that want to know every child.
    observers: Vec<Weak<Mutex<Vec<RunningChild>>>>,
}

#[derive(Debug, Clone)]
struct RunningChild {
    folders: WorkFolders,
    reach: WriteReach,
}

/// Which files a child can change, as far as the kernel enforces it.
#[derive(Debug, Clone, Default)]
pub(super) enum WriteReach {
    /// A program of the driver, such as git, that changes nothing behind its back.
    #[default]
    Driver,
    /// Everything that the user can change.
    Unlimited,
    /// What this allows.
    Limited(Arc<Confinement>),
    /// What Landlock allows. It does not limit who changes permissions and times of a file.
    LimitedContent(Arc<Confinement>),
}

impl WriteReach {
    /// The reach of a supervised child.
    pub(super) fn of(confinement: Option<&Confinement>) -> Self {
        match confinement {
            Some(confinement) if confinement.is_read_only_elsewhere() => {
                Self::Limited(Arc::new(confinement.clone()))
            }
            Some(confinement) if confinement.is_effective() => {
                Self::LimitedContent(Arc::new(confinement.clone()))
            }
            _ => Self::Unlimited,
        }
    }

    fn includes(&self, folder: &Path) -> bool {
        match self {
            Self::Driver => false,
            Self::Unlimited | Self::LimitedContent(_) => true,
            Self::Limited(confinement) => confinement.allows_below(folder),
        }
    }

    fn includes_content(&self, folder: &Path) -> bool {
        match self {
            Self::LimitedContent(confinement) => confinement.allows_below(folder),
            _ => self.includes(folder),
        }
    }
}

/// The folders that a child works in, with all links resolved. `None` means that it may write anywhere.
type WorkFolders = Option<Vec<PathBuf>>;

/// A child that may write files, from just before it begins until all of its processes have ended.
#[derive(Debug)]
pub struct RunningWriter(u64);

impl RunningWriter {
    /// A program of the driver that works in these folders. If they are not known, or not all of them exist, it may
    /// write anywhere.
    #[must_use]
    pub fn begin(folders: &[&Path]) -> Self {
        Self::begin_child(folders, WriteReach::Driver)
    }

    /// A program that works in these folders and can change no more than `reach`.
    pub(super) fn begin_child(folders: &[&Path], reach: WriteReach) -> Self {
        let folders: Option<Vec<PathBuf>> = folders.iter().map(|folder| folder.canonicalize().ok()).collect();
        let folders = folders.filter(|folders| !folders.is_empty());
        let mut writers = WRITERS.hold();
        writers.begun += 1;
        let number = writers.begun;
        match &folders {
            Some(folders) => writers.last_in.extend(folders.iter().map(|folder| (folder.clone(), number))),
            None => writers.last_anywhere = number,
        }
        writers.observers.retain(|observer| observer.strong_count() > 0);
        let child = RunningChild { folders, reach };
        for observer in writers.observers.iter().filter_map(Weak::upgrade) {
            observer.hold().push(child.clone());
        }
        writers.at_work.insert(number, child);
        Self(number)
    }

    /// Some of its processes could not be ended and may write anywhere, so from now on nothing is quiet any more.
    pub(super) fn stays(self) {
        if let Some(child) = WRITERS.hold().at_work.get_mut(&self.0) {
            child.folders = None;
        }
        std::mem::forget(self);
    }
}

impl Drop for RunningWriter {
    fn drop(&mut self) {
        WRITERS.hold().at_work.remove(&self.0);
    }
}

/// A moment at which no child was running that may write files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet(u64);

impl Quiet {
    /// Now; `None` while a child is running. Call this before you read anything.
    #[must_use]
    pub fn now() -> Option<Self> {
        let writers = WRITERS.hold();
        writers.at_work.is_empty().then_some(Self(writers.begun))
    }

    /// Whether no child has run since.
    #[must_use]
    pub fn is_unchanged(self) -> bool {
        Self::now() == Some(self)
    }
}

/// A moment at which no child was running in a folder, below it or above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoChildrenIn {
    folder: PathBuf,
    begun: u64,
}

impl NoChildrenIn {
    /// Now; `None` while a child is running there. Call this before you read anything.
    #[must_use]
    pub fn now(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let writers = WRITERS.hold();
        let mut at_work = writers.at_work.values();
        let is_quiet = !at_work.any(|child| match &child.folders {
            Some(folders) => folders.iter().any(|other| are_related(&folder, other)),
            None => true,
        });
        is_quiet.then_some(Self { folder, begun: writers.begun })
    }

    /// Whether no child has run there since.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let writers = WRITERS.hold();
        let mut last = writers.last_in.iter();
        // A running child has begun since, because none was running before.
        writers.last_anywhere <= self.begun
            && !writers.at_work.values().any(|child| child.folders.is_none())
            && !last.any(|(folder, last)| *last > self.begun && are_related(&self.folder, folder))
    }
}

/// The children since a moment, with those that were running then.
#[derive(Debug)]
struct SeenChildren(Arc<Mutex<Vec<RunningChild>>>);

impl SeenChildren {
    fn begin() -> Self {
        let mut writers = WRITERS.hold();
        let children = Arc::new(Mutex::new(writers.at_work.values().cloned().collect()));
        writers.observers.push(Arc::downgrade(&children));
        Self(children)
    }

    /// Those since the last question.
    fn take(&self) -> Vec<RunningChild> {
        std::mem::take(&mut *self.0.hold())
    }
}

/// Whether children could change something in these folders since a moment. Guards skip what no child could change.
#[derive(Debug)]
pub struct ChildReach {
    folders: Vec<PathBuf>,
    children: SeenChildren,
    is_reached: bool,
}

impl ChildReach {
    /// From now on, with the children that are running.
    #[must_use]
    pub fn begin(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let resolved = |folder: PathBuf| folder.canonicalize().unwrap_or(folder);
        let folders = folders.into_iter().map(resolved).collect();
        Self { folders, children: SeenChildren::begin(), is_reached: false }
    }

    /// Whether a child could have changed one of the folders or anything below them.
    pub fn is_reached(&mut self) -> bool {
        let includes = |child: &RunningChild| self.folders.iter().any(|folder| child.reach.includes(folder));
        self.is_reached = self.is_reached || self.children.take().iter().any(includes);
        self.is_reached
    }
}

/// Whether children that work elsewhere could write files in this folder since a moment.
#[derive(Debug)]
pub struct OthersReach {
    folder: PathBuf,
    children: SeenChildren,
}

impl OthersReach {
    /// From now on, with the children that are running.
    #[must_use]
    pub fn begin(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { folder, children: SeenChildren::begin() }
    }

    /// Whether such a child could have written a file there.
    #[must_use]
    pub fn is_reached(self) -> bool {
        let works_there = |child: &RunningChild| {
            child
                .folders
                .as_ref()
                .is_some_and(|folders| folders.iter().all(|place| place.starts_with(&self.folder)))
        };
        let children = self.children.take();
        children.iter().any(|child| !works_there(child) && child.reach.includes_content(&self.folder))
    }
}

fn are_related(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Program, Supervised};

    #[test]
    fn no_place_is_quiet_while_a_child_process_runs_or_after_one_ran() {
        // Other tests of this process may have running children: then there is nothing to compare with.
        let before = Quiet::now();
        let writer = RunningWriter::begin(&[]);
        assert_eq!(Quiet::now(), None);
        assert!(before.is_none_or(|before| !before.is_unchanged()));
        drop(writer);
        assert!(before.is_none_or(|before| !before.is_unchanged()));
        let after = Quiet::now();
        Supervised::new(Program::new("true")).run(|_| ());
        assert!(after.is_none_or(|after| !after.is_unchanged()));
        let after = Quiet::now();
        Program::new("true").finish().unwrap();
        assert!(after.is_none_or(|after| !after.is_unchanged()));
    }

    #[test]
    fn a_child_process_disturbs_its_folder_and_those_above_and_below() {
        let folder = tempfile::tempdir().unwrap();
        let [top, lane, inner, other] =
            ["", "lane", "lane/inner", "other"].map(|name| folder.path().join(name));
        [&inner, &other].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&lane, &link).unwrap();
        for (place, is_disturbed) in
            [(&top, true), (&lane, true), (&inner, true), (&link, true), (&other, false)]
        {
            // Other tests of this process may have running children that write anywhere.
            let Some(before) = NoChildrenIn::now(place) else { continue };
            let writer = RunningWriter::begin(&[&lane]);
            let during = NoChildrenIn::now(place);
            drop(writer);
            let number = WRITERS.hold().last_anywhere;
            let (is_over, is_unchanged) = (NoChildrenIn::now(place), before.is_unchanged());
            if number <= before.begun && is_over.is_some() {
                assert_eq!(
                    (during.is_none(), !is_unchanged),
                    (is_disturbed, is_disturbed),
                    "{}",
                    place.display()
                );
            }
        }
    }

    #[test]
    fn a_child_process_that_writes_anywhere_or_leaves_processes_disturbs_every_folder() {
        let folder = tempfile::tempdir().unwrap();
        for stays in [false, true] {
            let before = NoChildrenIn::now(folder.path());
            let writer =
                if stays { RunningWriter::begin(&[Path::new("/")]) } else { RunningWriter::begin(&[]) };
            assert_eq!(NoChildrenIn::now(folder.path()), None);
            if stays {
                let number = writer.0;
                writer.stays();
                assert_eq!(NoChildrenIn::now(folder.path()), None);
                WRITERS.hold().at_work.remove(&number);
            }
            assert!(before.is_none_or(|before| !before.is_unchanged()));
        }
    }
}
