//! One look at every name in a worktree. The guard takes one before a child process begins and one after it has ended, and
//! everything that is asked in between (queues and huge files, whether anything has changed, what is ignored, which tracked files
//! were written) is answered by it. What this process writes itself is looked at again.
//!
//! A scan counts until a child process begins in that worktree, or is watched there, or may write anywhere. With several jobs, children
//! that are at work in other worktrees can write here too, at any moment, so also between any look and what follows from it: to look
//! again would only move that moment. What such a child does is found by comparing what is from before a step with what is from after it.
//! A scan that is older than the beginning of a step makes that interval longer, never shorter. After a child has ended, no scan from
//! before counts in any worktree that was watched for it.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{Repository, unchanged::IgnoredFolders};
use crate::{
    process::PlaceQuiet,
    safe_files::{self, Facts, FileKind, Journal},
};

/// So many names are looked at, the folders at the top first.
const MOST: usize = 20_000;

/// The user may write in their own checkout at any time. What they save this shortly before an agent begins is as good as
/// saved just after that.
const LONGEST: Duration = Duration::from_millis(100);

/// Linked worktrees are ours, or the user has left them to a run.
const LONGEST_LINKED: Duration = Duration::from_secs(1);

/// The last look at each worktree, by its top.
static KEPT: LazyLock<Mutex<HashMap<PathBuf, Arc<Scan>>>> = LazyLock::new(Mutex::default);

/// A name in a folder, with what the system says of it.
#[derive(Debug, Clone)]
pub(super) struct ScannedName {
    pub(super) name: Vec<u8>,
    pub(super) kind: FileKind,
    /// More about it, unless git ignores the folder: to ask for that takes as long as all the rest.
    pub(super) facts: Option<Facts>,
}

/// What lay in a worktree at one moment. Neither links nor git directories are entered.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    /// What is in each folder that could be read, by its path from the top with a slash at its end.
    folders: HashMap<Vec<u8>, Arc<Vec<ScannedName>>>,
    /// Whether that is all that lies there.
    is_whole: bool,
    /// Since when no child worked there; `None` if one did, even during the scan.
    quiet: Option<PlaceQuiet>,
    taken: Instant,
    /// When it began, by the clock that files have their times from.
    taken_at: SystemTime,
    journal: Arc<Journal>,
}

impl Scan {
    /// Looks at all names; in folders that git ignores, only at what they are.
    fn take(top: &Path, ignored: Option<&IgnoredFolders>) -> Self {
        // These first: what is done from now on may or may not be seen below.
        let mut scan = Self {
            folders: HashMap::new(),
            is_whole: true,
            quiet: PlaceQuiet::now(top),
            taken: Instant::now(),
            taken_at: SystemTime::now(),
            journal: Journal::begin(top),
        };
        let (mut seen, mut open) = (0, VecDeque::from([(Vec::new(), false)]));
        while let Some((folder, is_ignored)) = open.pop_front() {
            if seen >= MOST {
                scan.is_whole = false;
                break;
            }
            let is_ignored = is_ignored || ignored.is_some_and(|ignored| ignored.folders.contains(&folder));
            let place = top.join(OsStr::from_bytes(&folder));
            let names = if is_ignored { list_kinds(&place) } else { list(&place) };
            let Some(names) = names else { continue };
            seen += names.len();
            let is_entered = |entry: &&ScannedName| entry.kind == FileKind::Folder && entry.name != b".git";
            let entered = names.iter().filter(is_entered);
            open.extend(entered.map(|entry| ([&folder, &entry.name[..], b"/"].concat(), is_ignored)));
            scan.folders.insert(folder, Arc::new(names));
        }
        scan
    }

    /// The same for a worktree in which git ignores folders by rules that may have been changed.
    fn take_by_rules(repository: &Repository, top: &Path) -> Self {
        let Some(ignored) = repository.find_ignored_folders() else { return Self::take(top, None) };
        let scan = Self::take(top, Some(&ignored));
        // Whoever changes a rule may have git read what it ignored before.
        if ignored.has_rules_of(&scan) { scan } else { Self::take(top, None) }
    }

    /// Whether all names in the worktree were looked at.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// When it began.
    pub(super) fn taken_at(&self) -> SystemTime {
        self.taken_at
    }

    /// What the system said of a name, given as its path from the top; `None` if it was not there or not asked for.
    pub(super) fn find(&self, path: &[u8]) -> Option<&Facts> {
        let (folder, name) = path.split_at(memchr::memrchr(b'/', path).map_or(0, |at| at + 1));
        let names = self.folders.get(folder)?;
        let at = names.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        names[at].facts.as_ref()
    }

    /// What is in a folder, by name; `None` if it was not read.
    pub(super) fn folder(&self, path: &[u8]) -> Option<&[ScannedName]> {
        self.folders.get(path).map(|names| names.as_slice())
    }

    /// All folders that were read.
    pub(super) fn folders(&self) -> impl Iterator<Item = (&[u8], &[ScannedName])> {
        self.folders.iter().map(|(path, names)| (path.as_slice(), names.as_slice()))
    }

    /// The same with what this process has written since. `None` if that is more than a few files, or if anybody else may have
    /// written.
    fn brought_forward(self: &Arc<Self>, top: &Path, longest: Duration) -> Option<Arc<Self>> {
        if !self.quiet.as_ref()?.lasts() || self.taken.elapsed() > longest {
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
        written.try_for_each(|path| scan.look_again(top, path))?;
        Some(Arc::new(scan))
    }

    /// Looks at one name again. `None` if a folder came, went or was moved: then what is in it is not known.
    fn look_again(&mut self, top: &Path, path: &Path) -> Option<()> {
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

/// `None` if the folder cannot be read.
fn list(folder: &Path) -> Option<Vec<ScannedName>> {
    let mut names = Vec::new();
    let listed = safe_files::visit_facts(folder, |name, facts| {
        names.push(ScannedName::new(name.as_bytes(), *facts));
        Some(())
    });
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    listed.ok().map(|_| names)
}

/// The same without a question for each name.
fn list_kinds(folder: &Path) -> Option<Vec<ScannedName>> {
    let mut names = Vec::new();
    let listed = safe_files::visit_kinds(folder, |name, kind| {
        names.push(ScannedName { name: name.as_bytes().to_vec(), kind, facts: None });
    });
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    listed.ok().map(|()| names)
}

impl Repository {
    /// A look at all of this worktree: the last one if that still counts, else a new one that is kept for whoever asks next.
    pub(super) fn scan(&self) -> Option<Arc<Scan>> {
        self.find_scan().or_else(|| self.take_scan())
    }

    fn take_scan(&self) -> Option<Arc<Scan>> {
        let top = self.worktree.as_deref()?;
        let scan = Arc::new(Scan::take_by_rules(self, top));
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, scan| scan.taken.elapsed() <= LONGEST_LINKED);
        kept.remove(top);
        if scan.quiet.is_some() {
            kept.insert(top.to_owned(), Arc::clone(&scan));
        }
        Some(scan)
    }

    /// The last look at this worktree, if it is as true as a new one would be.
    pub(super) fn find_scan(&self) -> Option<Arc<Scan>> {
        let top = self.worktree.as_deref()?;
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(top).cloned();
        let longest = if self.git_dir == self.common_dir { LONGEST } else { LONGEST_LINKED };
        kept?.brought_forward(top, longest)
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

    /// A repository that ignores the folder `logs`, in which git has said so.
    fn repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let script = "git init -q . && mkdir a logs && echo x > a/b && echo /logs/ > .gitignore && echo l > logs/1 \
                      && git add -A && git -c user.name=A -c user.email=a@e.c commit -qm begin";
        run(&top, script);
        let repository = Repository::open_at(&top).unwrap();
        repository.settle_index(HiddenMarks::Kept).unwrap();
        assert!(repository.is_clean().unwrap());
        (folder, repository)
    }

    fn run(top: &Path, script: &str) {
        let program = Program::new("sh").args(["-ec", script]).dir(top).env("HOME", top);
        Supervised::new(program).run(|_| ());
    }

    /// What is known of a name, if it is there.
    fn find(scan: &Scan, folder: &str, name: &str) -> Option<ScannedName> {
        scan.folder(folder.as_bytes())?.iter().find(|entry| entry.name == name.as_bytes()).cloned()
    }

    #[test]
    fn what_a_child_has_done_is_seen_however_short_it_was_there() {
        let (_folder, repository) = repository();
        for n in 0..20 {
            assert!(find(&repository.scan().unwrap(), "a/", &n.to_string()).is_none());
            run(repository.top(), &format!("echo {n} > a/{n}"));
            assert!(find(&repository.scan().unwrap(), "a/", &n.to_string()).is_some());
            run(repository.top(), &format!("rm a/{n}"));
        }
    }

    #[test]
    fn what_this_process_has_written_is_seen() {
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
    fn files_in_ignored_folders_are_measured_once_a_rule_has_changed() {
        let rules = [
            "echo > .gitignore",
            "rm .gitignore",
            "echo '!/logs/' > a/.gitignore",
            "echo '!x' >> .git/info/exclude",
        ];
        for rule in rules {
            let (_folder, repository) = repository();
            let size = || find(&repository.scan().unwrap(), "logs/", "1").unwrap().facts;
            // A file that is as young as the index is not believed: it counts as changed.
            run(
                repository.top(),
                "touch -d 2020-01-01 .gitignore && sleep 0.03 && git update-index -q --refresh",
            );
            repository.settle_index(HiddenMarks::Kept).unwrap();
            assert!(repository.is_clean().unwrap());
            // A child that does nothing: the scan that `is_clean` took knew no ignored folder.
            run(repository.top(), ":");
            assert!(size().is_none(), "{rule}");
            run(repository.top(), rule);
            assert!(size().is_some(), "{rule}");
        }
    }
}
