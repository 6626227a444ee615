//! Reads the metadata of every name in a worktree once. The guard takes one scan before a child process starts and one
//! after it has ended, and all checks in between (special and huge files, whether anything changed, what is ignored,
//! which tracked files were written) use it. Names that this process writes itself are read again.
//!
//! A scan is valid until a child process starts in that worktree, or is watched there, or may write anywhere. With
//! several jobs, children in other worktrees can write here at any time, even between a scan and the decision that
//! follows from it; scanning again would only move that gap. What such a child does is found by comparing the state
//! before a step with the state after it. A scan that is older than the start of a step makes that interval longer,
//! never shorter. After a child has ended, no earlier scan is valid in any worktree that was watched for it.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant, SystemTime},
};

use crate::{
    git::{GitError, Repository, files::unchanged::IgnoredFolders, misplaced_files::move_and_report},
    mutex::MutexExt,
    process::NoChildrenIn,
    safe_files::{self, Facts, FileKind, Journal},
};

/// How many names are read, beginning with the folders at the top.
const MAX_NAMES: usize = 20_000;

/// git cannot open paths that are longer than this on Linux; other systems allow less.
const LONGEST_PATH: usize = 4095;

/// How long a scan of the user's checkout is valid. The user may write there at any time; a file saved this shortly
/// before an agent starts could as well have been saved just after that.
const MAX_AGE: Duration = Duration::from_millis(100);

/// How long a scan of a linked worktree is valid: these are ours, or the user has left them to a run.
const MAX_AGE_LINKED: Duration = Duration::from_secs(1);

/// The last scan of each worktree, by its top.
static SCANS: LazyLock<Mutex<HashMap<PathBuf, Arc<Scan>>>> = LazyLock::new(Mutex::default);

/// A name in a folder, and its metadata.
#[derive(Debug, Clone)]
pub(in crate::git) struct ScannedName {
    pub(in crate::git) name: Vec<u8>,
    pub(in crate::git) kind: FileKind,
    /// Its metadata. `None` in folders that git ignores, where reading it would take as long as all the rest.
    pub(in crate::git) facts: Option<Facts>,
}

/// The names in a worktree at one moment. Neither links nor git directories are entered.
#[derive(Debug, Clone)]
pub(in crate::git) struct Scan {
    /// The names of each folder that could be read, by its path from the top with a slash at the end.
    folders: HashMap<Vec<u8>, Arc<Vec<ScannedName>>>,
    /// Folders that git cannot read: without permission, or with names at the end of a path that is too long.
    closed: Vec<Vec<u8>>,
    /// Whether all names were read.
    is_complete: bool,
    /// Since when no child has worked there; `None` if one has, even during the scan.
    quiet: Option<NoChildrenIn>,
    taken: Instant,
    /// When the scan started, by the clock of file times.
    taken_at: SystemTime,
    journal: Arc<Journal>,
}

impl Scan {
    /// Reads at most `max_names` names, or a few more. In folders that git ignores, only their kinds.
    fn take(top: &Path, ignored: Option<&IgnoredFolders>, max_names: usize) -> Self {
        // These come first: changes from now on may or may not be seen below.
        let mut scan = Self {
            folders: HashMap::new(),
            closed: Vec::new(),
            is_complete: true,
            quiet: NoChildrenIn::now(top),
            taken: Instant::now(),
            taken_at: SystemTime::now(),
            journal: Journal::begin(top),
        };
        let (mut seen, mut open) = (0, VecDeque::from([(Vec::new(), false)]));
        while let Some((folder, is_ignored)) = open.pop_front() {
            if seen >= max_names {
                scan.is_complete = false;
                break;
            }
            let is_ignored = is_ignored || ignored.is_some_and(|ignored| ignored.folders.contains(&folder));
            let place = top.join(OsStr::from_bytes(&folder));
            let names = if is_ignored { list_kinds(&place) } else { list(&place) };
            let is_closed = match &names {
                Ok(names) => {
                    let longest = names.iter().map(|entry| entry.name.len()).max().unwrap_or_default();
                    place.as_os_str().len() + longest > LONGEST_PATH
                }
                Err(error) => {
                    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidFilename)
                }
            };
            if is_closed && !is_ignored {
                scan.closed.push(folder.strip_suffix(b"/").unwrap_or(&folder).to_vec());
            }
            let Ok(names) = names else { continue };
            seen += names.len();
            let is_entered = |entry: &&ScannedName| entry.kind == FileKind::Folder && entry.name != b".git";
            let entered = names.iter().filter(is_entered);
            open.extend(entered.map(|entry| ([&folder, &entry.name[..], b"/"].concat(), is_ignored)));
            scan.folders.insert(folder, Arc::new(names));
        }
        scan
    }

    /// Like [`Self::take`], with the folders that git ignores, if the ignore rules have not changed.
    fn take_by_rules(repository: &Repository, top: &Path) -> Self {
        let Some(ignored) = repository.find_ignored_folders() else {
            return Self::take(top, None, MAX_NAMES);
        };
        let scan = Self::take(top, Some(&ignored), MAX_NAMES);
        // With another rule, git may read folders that it ignored before.
        if ignored.has_rules_of(&scan) { scan } else { Self::take(top, None, MAX_NAMES) }
    }

    /// Whether all names in the worktree were read.
    pub(in crate::git) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// When the scan started.
    pub(in crate::git) fn taken_at(&self) -> SystemTime {
        self.taken_at
    }

    /// The metadata of a path from the top; `None` if it did not exist or was not read.
    pub(in crate::git) fn find(&self, path: &[u8]) -> Option<&Facts> {
        let (folder, name) = path.split_at(memchr::memrchr(b'/', path).map_or(0, |at| at + 1));
        let names = self.folders.get(folder)?;
        let at = names.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        names[at].facts.as_ref()
    }

    /// The names in a folder, sorted; `None` if it was not read.
    pub(in crate::git) fn folder(&self, path: &[u8]) -> Option<&[ScannedName]> {
        self.folders.get(path).map(|names| names.as_slice())
    }

    /// All folders that were read.
    pub(in crate::git) fn folders(&self) -> impl Iterator<Item = (&[u8], &[ScannedName])> {
        self.folders.iter().map(|(path, names)| (path.as_slice(), names.as_slice()))
    }

    /// The scan with the files updated that this process has written since. `None` if these are more than a few, if it
    /// is too old, or if another process may have written there.
    fn updated(self: &Arc<Self>, top: &Path, max_age: Duration) -> Option<Arc<Self>> {
        if !self.quiet.as_ref()?.is_unchanged() || self.taken.elapsed() > max_age {
            return None;
        }
        let written = self.journal.paths();
        let is_outside =
            |path: &Path| path.components().next() == Some(Component::Normal(OsStr::new(".git")));
        let mut written = written.iter().filter(|path| !is_outside(path)).peekable();
        if written.peek().is_none() {
            return Some(Arc::clone(self));
        }
        let mut scan = Self::clone(self);
        written.try_for_each(|path| scan.read_again(top, path))?;
        Some(Arc::new(scan))
    }

    /// Reads one name again. `None` if a folder was created, removed or moved: then its content is unknown.
    fn read_again(&mut self, top: &Path, path: &Path) -> Option<()> {
        let mut folder = path.parent()?.as_os_str().as_bytes().to_vec();
        if !folder.is_empty() {
            folder.push(b'/');
        }
        let name = path.file_name()?.as_bytes();
        let names = Arc::make_mut(self.folders.get_mut(&folder)?);
        let at = names.binary_search_by(|entry| entry.name.as_slice().cmp(name));
        let before = at.ok().map(|at| names.remove(at).kind);
        let now = safe_files::look_at(&top.join(path));
        if [before, now.map(|facts| facts.kind)].contains(&Some(FileKind::Folder)) {
            return None;
        }
        if let (Some(facts), Ok(at) | Err(at)) = (now, at) {
            names.insert(at, ScannedName::new(name, facts));
        }
        Some(())
    }
}

impl ScannedName {
    fn new(name: &[u8], facts: Facts) -> Self {
        Self { name: name.to_vec(), kind: facts.kind, facts: Some(facts) }
    }
}

/// The names in a folder with their metadata.
fn list(folder: &Path) -> io::Result<Vec<ScannedName>> {
    let mut names = Vec::new();
    let listed = safe_files::visit_facts(folder, |name, facts| {
        names.push(ScannedName::new(name.as_bytes(), *facts));
        Some(())
    });
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    listed.map(|_| names)
}

/// The names in a folder with their kinds only, which needs no system call for each name.
fn list_kinds(folder: &Path) -> io::Result<Vec<ScannedName>> {
    let mut names = Vec::new();
    let listed = safe_files::visit_kinds(folder, |name, kind| {
        names.push(ScannedName { name: name.as_bytes().to_vec(), kind, facts: None });
    });
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    listed.map(|()| names)
}

impl Repository {
    /// A scan of this worktree: the last one if it is still valid, otherwise a new one, which is kept.
    pub(in crate::git) fn scan(&self) -> Option<Arc<Scan>> {
        self.find_scan().or_else(|| self.take_scan())
    }

    fn take_scan(&self) -> Option<Arc<Scan>> {
        let top = self.worktree.as_deref()?;
        let scan = Arc::new(Scan::take_by_rules(self, top));
        let mut kept = SCANS.hold();
        kept.retain(|_, scan| scan.taken.elapsed() <= MAX_AGE_LINKED);
        kept.remove(top);
        if scan.quiet.is_some() {
            kept.insert(top.to_owned(), Arc::clone(&scan));
        }
        Some(scan)
    }

    /// Folders of this worktree that git cannot read and does not ignore. Call this if git has warned about one.
    pub fn list_closed(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let Some(top) = self.worktree.as_deref() else { return Ok(Vec::new()) };
        let closed = match self.scan().filter(|scan| scan.is_complete()) {
            Some(scan) => scan.closed.clone(),
            None => Scan::take(top, None, usize::MAX).closed,
        };
        if closed.is_empty() {
            return Ok(closed);
        }
        let places = closed.iter().map(|path| top.join(OsStr::from_bytes(path))).collect();
        let (ignored, _) = self.split_ignored(places)?;
        let is_ignored = |path: &Vec<u8>| ignored.contains(&top.join(OsStr::from_bytes(path)));
        Ok(closed.into_iter().filter(|path| !is_ignored(path)).collect())
    }

    /// Moves the folders that git cannot read into the git directory: a test may have made them, and the next one would
    /// find their files. They are reported at the end of the command.
    pub fn move_closed_aside(&self) -> Result<(), GitError> {
        let has_closed = self.scan().is_some_and(|scan| !scan.is_complete() || !scan.closed.is_empty());
        for path in if has_closed { self.list_closed()? } else { Vec::new() } {
            let folder = self.top().join(OsStr::from_bytes(&path));
            let _ = safe_files::allow_owner(&folder);
            if !move_and_report(&self.git_dir, &folder) {
                let source = io::Error::from(io::ErrorKind::PermissionDenied);
                return Err(GitError::File { path: folder.display().to_string(), source });
            }
        }
        Ok(())
    }

    /// The last scan of this worktree, if it is still valid.
    pub(in crate::git) fn find_scan(&self) -> Option<Arc<Scan>> {
        let top = self.worktree.as_deref()?;
        let kept = SCANS.hold().get(top).cloned();
        let max_age = if self.git_dir == self.common_dir { MAX_AGE } else { MAX_AGE_LINKED };
        kept?.updated(top, max_age)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{
        git::HiddenMarks,
        process::{Program, Supervised},
    };

    /// A repository that ignores the folder `logs`. git was asked about it once.
    fn repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let script = "git init -q . && mkdir a logs && echo x > a/b && echo /logs/ > .gitignore && echo l > logs/1 \
                      && git add -A && git -c user.name=A -c user.email=a@e.c commit -qm begin";
        run(&top, script);
        let repository = Repository::open_at(&top).unwrap();
        repository.make_index_known(HiddenMarks::Kept).unwrap();
        assert!(repository.is_clean().unwrap());
        (folder, repository)
    }

    fn run(top: &Path, script: &str) {
        let program = Program::new("sh").args(["-ec", script]).dir(top).env("HOME", top);
        Supervised::new(program).run(|_| ());
    }

    /// The scanned name, if it exists.
    fn find(scan: &Scan, folder: &str, name: &str) -> Option<ScannedName> {
        scan.folder(folder.as_bytes())?.iter().find(|entry| entry.name == name.as_bytes()).cloned()
    }

    #[test]
    fn changes_by_a_short_child_process_are_seen_by_the_next_scan() {
        let (_folder, repository) = repository();
        for n in 0..20 {
            assert!(find(&repository.scan().unwrap(), "a/", &n.to_string()).is_none());
            run(repository.top(), &format!("echo {n} > a/{n}"));
            assert!(find(&repository.scan().unwrap(), "a/", &n.to_string()).is_some());
            run(repository.top(), &format!("rm a/{n}"));
        }
    }

    #[test]
    fn files_written_by_this_process_are_seen_by_the_next_scan() {
        let (_folder, repository) = repository();
        let top = repository.top().to_owned();
        for n in 0..20 {
            repository.scan();
            safe_files::write(&top.join("a/b"), format!("{n:0n$}").as_bytes()).unwrap();
            let size = |scan: &Scan| find(scan, "a/", "b").and_then(|found| found.facts).unwrap().stamp.size;
            let now = fs::metadata(top.join("a/b")).unwrap().len();
            assert_eq!(size(&repository.scan().unwrap()), now);
            safe_files::write(&top.join(format!("new{n}/c")), b"").unwrap();
            assert!(find(&repository.scan().unwrap(), &format!("new{n}/"), "c").is_some());
            safe_files::remove_all(&top.join(format!("new{n}"))).unwrap();
            assert!(find(&repository.scan().unwrap(), &format!("new{n}/"), "c").is_none());
        }
    }

    #[test]
    fn files_in_ignored_folders_are_scanned_after_an_ignore_rule_changed() {
        let rules = [
            "echo > .gitignore",
            "rm .gitignore",
            "echo '!/logs/' > a/.gitignore",
            "echo '!x' >> .git/info/exclude",
        ];
        for rule in rules {
            let (_folder, repository) = repository();
            let size = || find(&repository.scan().unwrap(), "logs/", "1").unwrap().facts;
            // A file as young as the index counts as changed, so it is made older here.
            run(
                repository.top(),
                "touch -d 2020-01-01 .gitignore && sleep 0.03 && git update-index -q --refresh",
            );
            repository.make_index_known(HiddenMarks::Kept).unwrap();
            assert!(repository.is_clean().unwrap());
            // A child that does nothing, to invalidate the scan that `is_clean` took before it knew any ignored folder.
            run(repository.top(), ":");
            assert!(size().is_none(), "{rule}");
            run(repository.top(), rule);
            assert!(size().is_some(), "{rule}");
        }
    }
}
