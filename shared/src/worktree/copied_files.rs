//! The untracked files of the main checkout that worktrees get. The list is made before the first child process runs:
//! from then on an agent can write to the checkout, and copied files decide what tests and reviewers see.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use super::{WorktreeError, WorktreeNote};
use crate::{
    git::Repository,
    mutex::MutexExt,
    pipeline::record_copies,
    safe_files::{self, ChangeStamp, Facts, FileKind},
};

/// Files, links and directories by their paths from the top of a worktree.
#[derive(Debug, Clone, Default)]
pub(super) struct FileList(BTreeMap<PathBuf, Facts>);

impl FileList {
    /// Lists these paths and everything below them. Links are not followed.
    pub(super) fn scan(top: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut open = Vec::new();
        for path in paths {
            // Git marks directories by a trailing slash.
            let path: PathBuf = path.components().collect();
            let Some(facts) = safe_files::look_at(&top.join(&path)) else { continue };
            if facts.kind == FileKind::Folder {
                open.push(path.clone());
            }
            found.insert(path, facts);
        }
        while let Some(folder) = open.pop() {
            safe_files::visit_facts(&top.join(&folder), |name, facts| {
                let path = folder.join(name);
                if facts.kind == FileKind::Folder {
                    open.push(path.clone());
                }
                found.insert(path, *facts);
                Some(())
            })?;
        }
        Ok(Self(found))
    }

    /// Whether one of them was changed so recently that another change might leave no trace.
    fn is_fresh(&self) -> bool {
        self.0.values().any(|facts| facts.kind != FileKind::Folder && facts.stamp.is_fresh())
    }

    /// The entries at a path and below it, directories before their content.
    pub(super) fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Facts)> {
        let rest = self.0.range(path.to_owned()..).take_while(move |(found, _)| found.starts_with(path));
        rest.map(|(path, facts)| (path.as_path(), facts))
    }

    /// All entries, directories before their content.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Facts)> {
        self.0.iter().map(|(path, facts)| (path.as_path(), facts))
    }

    /// Whether the list has this path in this state.
    pub(super) fn has(&self, path: &Path, facts: &Facts) -> bool {
        self.0.get(path).is_some_and(|known| is_same(known, facts))
    }
}

/// Whether a file has not been written since. Directories are always the same, because their content is listed itself.
pub(super) fn is_same(before: &Facts, now: &Facts) -> bool {
    before.kind == now.kind && (now.kind == FileKind::Folder || before.stamp == now.stamp)
}

/// The file that lists the files that worktrees get, one pattern per line.
const INCLUDE: &str = ".worktreeinclude";
/// How often files that were written just now are examined again.
const MAX_SCANS: usize = 4;
/// The pause before that.
const PAUSE: Duration = Duration::from_millis(25);
/// How many files are named in a note.
const MAX_NAMED: usize = 10;

type Lists = BTreeMap<(PathBuf, Vec<String>), Arc<CopiedFiles>>;

/// One list for each checkout and set of patterns, for the life of this process.
static LISTS: Mutex<Lists> = Mutex::new(Lists::new());

/// The files that are copied, as they were when the list was made.
#[derive(Debug, Default)]
pub(super) struct CopiedFiles {
    /// The top of the main checkout.
    main: PathBuf,
    /// The patterns from the settings and the include file.
    pub(super) patterns: Vec<String>,
    /// The state of the include file.
    include: Option<ChangeStamp>,
    /// What git finds for the patterns. A directory stands for everything in it.
    pub(super) matches: Vec<PathBuf>,
    files: FileList,
    /// The paths of all files.
    paths: Arc<BTreeSet<PathBuf>>,
    /// The targets of links.
    links: BTreeMap<PathBuf, PathBuf>,
    left_out: Mutex<LeftOut>,
}

/// Files that were not copied because they have changed since.
#[derive(Debug, Default)]
struct LeftOut {
    known: BTreeSet<PathBuf>,
    unnamed: Vec<PathBuf>,
}

impl CopiedFiles {
    /// The list of a checkout: made now, unless this process has made it before.
    pub(super) fn list(
        repository: &Repository,
        main: &Path,
        copy: &[String],
    ) -> Result<Arc<Self>, WorktreeError> {
        let key = (main.canonicalize().unwrap_or_else(|_| main.to_owned()), copy.to_vec());
        if let Some(known) = LISTS.hold().get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(Self::make(repository, main, copy)?);
        Ok(Arc::clone(LISTS.hold().entry(key).or_insert(made)))
    }

    fn make(repository: &Repository, main: &Path, copy: &[String]) -> Result<Self, WorktreeError> {
        let file = main.join(INCLUDE);
        let include = stamp_of(&file);
        let listed = safe_files::read_text(&file).unwrap_or_default();
        let listed = listed.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let patterns: Vec<String> = listed.map(str::to_owned).chain(copy.iter().cloned()).collect();
        let list = Self { main: main.to_owned(), patterns, include, ..Self::default() };
        if list.patterns.is_empty() {
            return Ok(list);
        }
        let worktrees = repository.list_worktrees()?;
        let checkout = worktrees.first().filter(|first| !first.is_bare);
        let Some(checkout) = checkout.and_then(|first| repository.linked(first)) else { return Ok(list) };
        let matches = checkout.find_untracked(&list.patterns)?;
        let files = scan(main, &matches).map_err(WorktreeError::file("read", main))?;
        let links = files.iter().filter(|(_, facts)| facts.kind == FileKind::Link);
        let links =
            links.filter_map(|(path, _)| Some((path.to_owned(), fs::read_link(main.join(path)).ok()?)));
        let links = links.collect();
        let paths = files.iter().map(|(path, _)| path.to_owned()).collect();
        Ok(Self { matches, files, paths: Arc::new(paths), links, ..list })
    }

    /// Copies a file or directory to the same path below `top`. Existing files stay.
    pub(super) fn copy(&self, path: &Path, top: &Path) -> Result<(), WorktreeError> {
        let path: PathBuf = path.components().collect();
        let parent = path.parent().map_or_else(|| top.to_owned(), |parent| top.join(parent));
        safe_files::make_folders(&parent).map_err(WorktreeError::file("make", &parent))?;
        let mut passed: Option<&Path> = None;
        for (inner, facts) in self.files.below(&path) {
            if passed.is_some_and(|passed| inner.starts_with(passed)) {
                continue;
            }
            let there = top.join(inner).symlink_metadata().ok();
            let is_folder = facts.kind == FileKind::Folder;
            if there.as_ref().is_some_and(|there| !(is_folder && there.is_dir())) {
                // Something else is there, possibly a link: do not write through it.
                passed = Some(inner);
            } else if there.is_none() {
                let is_copied = self.copy_one(inner, facts, &top.join(inner));
                let is_copied = is_copied.map_err(WorktreeError::file("copy", self.main.join(inner)))?;
                if !is_copied {
                    self.leave_out(inner);
                }
            }
        }
        Ok(())
    }

    /// Returns false if the file has changed since the list was made.
    fn copy_one(&self, path: &Path, facts: &Facts, to: &Path) -> io::Result<bool> {
        let from = self.main.join(path);
        match facts.kind {
            FileKind::Folder => safe_files::make_folder(to).map(|()| true),
            FileKind::File => safe_files::copy_unchanged(&from, to, &facts.stamp),
            FileKind::Link => match (self.links.get(path), safe_files::look_at(&from)) {
                (Some(target), Some(now)) if is_same(facts, &now) => {
                    safe_files::symlink(target, to).map(|()| true)
                }
                _ => Ok(false),
            },
            // A named pipe or socket has no content to copy.
            FileKind::Special => Ok(true),
        }
    }

    /// Records that the worktree at `top` has copies of these files, which no task commits.
    pub(super) fn record(&self, top: &Path) {
        record_copies(top, Arc::clone(&self.paths));
    }

    /// Reports changes to the include file, which are ignored.
    pub(super) fn check_include(&self) {
        if stamp_of(&self.main.join(INCLUDE)) != self.include {
            self.leave_out(Path::new(INCLUDE));
        }
    }

    fn leave_out(&self, path: &Path) {
        let mut left_out = self.left_out.hold();
        if left_out.known.insert(path.to_owned()) {
            left_out.unnamed.push(path.to_owned());
        }
    }

    fn take_uncopied_files(&self) -> Option<WorktreeNote> {
        let unnamed = {
            let mut left_out = self.left_out.hold();
            std::mem::take(&mut left_out.unnamed)
        };
        let mut names: Vec<String> =
            unnamed.iter().take(MAX_NAMED).map(|path| path.display().to_string()).collect();
        if unnamed.len() > MAX_NAMED {
            names.push(format!("and {} more", unnamed.len() - MAX_NAMED));
        }
        (!names.is_empty()).then(|| WorktreeNote::Changed { paths: names.join(", ") })
    }
}

/// The files that were not copied since the last call. Each is named once.
#[must_use]
pub fn take_uncopied_files() -> Vec<WorktreeNote> {
    let lists: Vec<Arc<CopiedFiles>> = LISTS.hold().values().cloned().collect();
    lists.iter().filter_map(|list| list.take_uncopied_files()).collect()
}

fn stamp_of(file: &Path) -> Option<ChangeStamp> {
    safe_files::look_at(file).map(|facts| facts.stamp)
}

/// Lists files. One that was written within the last tick of the clock could be written again without a trace, so it is
/// examined again later.
fn scan(main: &Path, matches: &[PathBuf]) -> io::Result<FileList> {
    let mut files = FileList::scan(main, matches)?;
    for _ in 0..MAX_SCANS {
        if !files.is_fresh() {
            break;
        }
        thread::sleep(PAUSE);
        files = FileList::scan(main, matches)?;
    }
    Ok(files)
}
