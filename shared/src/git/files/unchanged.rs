//! Decides without git whether a worktree contains exactly a tree, by the metadata of each name in it. This is asked
//! several times for each task, nearly always nothing has changed, and `git status` takes as long as an agent that
//! writes one file. The answer no only means that git has to be asked.
//!
//! The index must be one that this process knows, so that its stat data can be trusted. Files that are not in the index
//! must be ignored, according to an earlier answer of git by the same rules.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, SystemTime},
};

use crate::{
    git::{
        GitError, Repository,
        command::checked,
        files::{
            nested_repositories::NOT_OPENED,
            scan::{Scan, ScannedName},
        },
        index::{
            index_entries::{FileFacts, IndexEntries, PlainEntry},
            known_index::with_index,
        },
    },
    mutex::MutexExt,
    name::{ObjectFormat, ObjectKind, Oid},
    safe_files::{self, ChangeStamp, Facts, FileKind},
};

/// The name of files with ignore rules in a worktree.
const GITIGNORE: &str = ".gitignore";
/// A file that was changed within this time before the index was written may have been changed again with the same
/// ctime: clocks of file systems tick every 10 ms or faster. Such a file is read.
const TICK: Duration = Duration::from_millis(20);
/// Larger files are not read here.
const LARGEST_READ: u64 = 1024 * 1024;

/// Ignored paths as git reported them, by git directory.
static IGNORED: LazyLock<Mutex<HashMap<PathBuf, Arc<Ignored>>>> = LazyLock::new(Mutex::default);

/// The ignored paths of a worktree as git reported them, and the rules that were in force.
#[derive(Debug, Default)]
struct Ignored {
    /// Paths from the top. A folder that is ignored as a whole ends in a slash.
    paths: BTreeSet<Vec<u8>>,
    /// The `.gitignore` files in the index.
    rules: Vec<(Vec<u8>, Oid)>,
    /// Files outside of the worktree that contain rules or say where rules are.
    sources: Vec<RuleSource>,
}

/// A file that contains rules or says where rules are, and its state at that time.
type RuleSource = (PathBuf, Option<ChangeStamp>);

/// The result of `git status`.
#[derive(Debug)]
pub(in crate::git) struct WorktreeStatus {
    /// Whether worktree and index match `HEAD`.
    pub(in crate::git) is_clean: bool,
    files: UncommittedFiles,
}

/// The files of a worktree that are not committed.
#[derive(Debug, Clone, Default)]
pub struct UncommittedFiles {
    /// Ignored files. A folder that is ignored as a whole ends in a slash, and its content is not listed.
    pub ignored: BTreeSet<Vec<u8>>,
    /// All others, including deleted ones.
    pub others: BTreeSet<Vec<u8>>,
}

impl Repository {
    /// Whether index and worktree contain exactly `tree`, except for ignored files, according to the last scan.
    #[must_use]
    pub fn is_known_clean(&self, tree: Oid) -> bool {
        self.compare_with(tree, self.find_scan()).is_some()
    }

    /// Like [`Self::is_known_clean`], with a new scan if there is no valid one.
    #[must_use]
    pub fn is_clean_by_scan(&self, tree: Oid) -> bool {
        self.compare_with(tree, self.scan()).is_some()
    }

    /// Like [`Self::is_known_clean`], for a worktree without ignored files and without empty folders.
    #[must_use]
    pub fn holds_only(&self, tree: Oid) -> bool {
        self.holds_only_by_scan(tree, self.find_scan())
    }

    /// Like [`Self::holds_only`], with a given scan.
    pub(in crate::git) fn holds_only_by_scan(&self, tree: Oid, scan: Option<Arc<Scan>>) -> bool {
        self.compare_with(tree, scan)
            .is_some_and(|untracked| untracked.ignored.is_empty() && !untracked.has_folders)
    }

    /// The uncommitted files of this worktree. If it contains exactly `tree`, git is not asked.
    pub fn list_uncommitted(&self, tree: Oid) -> Result<UncommittedFiles, GitError> {
        match self.compare_with(tree, self.find_scan()) {
            Some(untracked) => Ok(UncommittedFiles { ignored: untracked.ignored, others: BTreeSet::new() }),
            None => Ok(self.ask_status()?.files),
        }
    }

    /// The ignored files, if the worktree contains everything in `tree` and all other files are ignored. `None` if that
    /// is not so or cannot be decided.
    fn compare_with(&self, tree: Oid, scan: Option<Arc<Scan>>) -> Option<Untracked> {
        let (entries, written) = self.find_index_of(tree)?;
        let files = entries.plain()?;
        let ignored = self.recall_ignored(&entries).unwrap_or_default();
        // Without a complete scan of a large worktree, only the tracked folders are read.
        let scan = scan.filter(|scan| scan.is_complete());
        let comparison =
            Comparison::new(self.worktree.as_deref()?, self.format, &files, written, &ignored.paths);
        Comparison { scan: scan.as_deref(), ..comparison }.finish()
    }

    /// Asks git for the status, and remembers what is ignored.
    pub(in crate::git) fn ask_status(&self) -> Result<WorktreeStatus, GitError> {
        self.refuse_special()?;
        let view = self.find_trusted_view()?;
        // What is ignored is remembered together with the index.
        let is_remembered = view.is_none() && self.find_known_entries().is_some();
        let sources = match self.known_ignored() {
            _ if !is_remembered => None,
            Some(known) if are_unchanged(&known.sources) => Some(known.sources.clone()),
            _ => Some(self.list_rule_sources()?),
        };
        let status = with_index(view.as_ref(), self.git("status"));
        let status = status.args(["--porcelain", "-z", "--untracked-files=all", "--no-renames"]);
        let ended = status.arg("--ignored=matching").finish()?;
        let has_closed = ended.complaint().contains(NOT_OPENED);
        let printed = checked("status", ended)?;
        let (mut files, mut has_other_rules) = (UncommittedFiles::default(), false);
        for record in printed.split(|byte| *byte == 0).filter(|record| record.len() > 3) {
            // Rules that are not committed can change without a trace in the index.
            has_other_rules |= is_called(&record[3..], GITIGNORE);
            let list = if record.starts_with(b"!! ") { &mut files.ignored } else { &mut files.others };
            list.insert(record[3..].to_vec());
        }
        if has_closed {
            // git does not list these, but their files are there for every program that gets at them.
            let closed = self.list_closed()?.into_iter();
            files.others.extend(closed.map(|path| [&path[..], b"/"].concat()));
        }
        if let Some(sources) = sources.filter(|sources| !has_other_rules && are_unchanged(sources)) {
            self.remember_ignored(&files.ignored, sources);
        }
        Ok(WorktreeStatus { is_clean: files.others.is_empty(), files })
    }

    fn remember_ignored(&self, paths: &BTreeSet<Vec<u8>>, sources: Vec<RuleSource>) {
        let Some(entries) = self.find_known_entries() else { return };
        let ignored = Ignored { paths: paths.clone(), rules: entries.called(GITIGNORE), sources };
        let mut known = IGNORED.hold();
        known.insert(self.git_dir.clone(), Arc::new(ignored));
    }

    fn known_ignored(&self) -> Option<Arc<Ignored>> {
        IGNORED.hold().get(&self.git_dir).cloned()
    }

    /// What git reported as ignored, if the rules are still the same.
    fn recall_ignored(&self, entries: &IndexEntries) -> Option<Arc<Ignored>> {
        let known = self.known_ignored()?;
        let is_same = known.rules == entries.called(GITIGNORE) && are_unchanged(&known.sources);
        is_same.then_some(known)
    }

    /// The files outside of the worktree that contain ignore rules or say where they are.
    fn list_rule_sources(&self) -> Result<Vec<RuleSource>, GitError> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let users = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let users = users.or_else(|| home.as_ref().map(|home| home.join(".config")));
        let reply = match self.lacks_frozen_settings(&["core.excludesfile"]) {
            true => None,
            false => self.git("config").args(["--type=path", "-z", "--get", "core.excludesFile"]).answer()?,
        };
        let named =
            reply.map(|path| PathBuf::from(OsStr::from_bytes(path.strip_suffix(&[0]).unwrap_or(&path))));
        let ours = [self.common_dir.join("config"), self.common_dir.join("info/exclude")].into_iter();
        let ours = ours.chain([self.git_dir.join("config.worktree")]);
        let users = users.iter().flat_map(|users| ["git/config", "git/ignore"].map(|file| users.join(file)));
        let users = users.chain(home.map(|home| home.join(".gitconfig"))).chain(named);
        Ok(ours.chain(users).map(|file| stamped(&self.dir.join(file))).collect())
    }
}

/// Folders that git ignores as a whole, while its rules are the same.
#[derive(Debug)]
pub(in crate::git) struct IgnoredFolders {
    /// Each with a slash at its end.
    pub(in crate::git) folders: BTreeSet<Vec<u8>>,
    /// The stat data of the `.gitignore` files in the index.
    rules: HashMap<Vec<u8>, FileFacts>,
    written: SystemTime,
}

impl IgnoredFolders {
    /// Whether the worktree has exactly these `.gitignore` files, unchanged.
    pub(in crate::git) fn has_rules_of(&self, scan: &Scan) -> bool {
        let mut count = 0;
        let is_known = |(folder, name): (&[u8], &ScannedName)| {
            // git reads no rules in an ignored folder.
            let Some(facts) = name.facts.filter(|_| name.name == GITIGNORE.as_bytes()) else { return true };
            count += 1;
            let rule = self.rules.get(&[folder, &name.name].concat());
            rule.is_some_and(|rule| rule.are(&facts.stamp) && !is_racy(&facts.stamp, self.written))
        };
        let mut names =
            scan.folders().flat_map(|(folder, names)| names.iter().map(move |name| (folder, name)));
        names.all(is_known) && count == self.rules.len()
    }
}

impl Repository {
    /// The ignored folders of this worktree without tracked files, unless rules outside of it have changed.
    pub(in crate::git) fn find_ignored_folders(&self) -> Option<IgnoredFolders> {
        let (entries, written) = self.recall_index()?;
        let ignored = self.recall_ignored(&entries)?;
        let is_whole = |path: &&Vec<u8>| path.ends_with(b"/") && !entries.has_below(path);
        let folders: BTreeSet<Vec<u8>> = ignored.paths.iter().filter(is_whole).cloned().collect();
        let rules = entries.facts().filter(|(path, _)| is_called(path, GITIGNORE));
        let rules = rules.map(|(path, facts)| (path.to_vec(), facts)).collect();
        (!folders.is_empty()).then_some(IgnoredFolders { folders, rules, written })
    }
}

/// Whether a file may have been changed after the index was written without a newer ctime.
fn is_racy(stamp: &ChangeStamp, written: SystemTime) -> bool {
    let (seconds, nanoseconds) = stamp.changed;
    let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
    changed.is_none_or(|(seconds, nanoseconds)| {
        SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds) + TICK >= written
    })
}

fn stamped(file: &Path) -> RuleSource {
    let found = file.metadata().ok();
    (file.to_owned(), found.map(|found| ChangeStamp::of(&found)))
}

fn are_unchanged(sources: &[RuleSource]) -> bool {
    sources.iter().all(|source| *source == stamped(&source.0))
}

/// A comparison of each name in a worktree with the index.
struct Comparison<'a> {
    top: &'a Path,
    format: ObjectFormat,
    files: HashMap<&'a [u8], &'a PlainEntry<'a>>,
    /// Folders with tracked files, each with a slash at its end.
    folders: HashSet<&'a [u8]>,
    written: SystemTime,
    ignored: &'a BTreeSet<Vec<u8>>,
    /// The scan to use; without it, the folders are read.
    scan: Option<&'a Scan>,
    /// How many of the tracked files were found.
    seen: usize,
    untracked: Untracked,
}

/// Names in a worktree that are not in its index.
#[derive(Debug, Default)]
struct Untracked {
    ignored: BTreeSet<Vec<u8>>,
    /// Whether there are folders without tracked files.
    has_folders: bool,
}

impl<'a> Comparison<'a> {
    fn new(
        top: &'a Path,
        format: ObjectFormat,
        files: &'a [PlainEntry<'a>],
        written: SystemTime,
        ignored: &'a BTreeSet<Vec<u8>>,
    ) -> Self {
        let slashes = |path: &'a [u8]| memchr::memchr_iter(b'/', path).map(move |at| &path[..=at]);
        let folders = files.iter().flat_map(|file| slashes(file.path)).collect();
        let files = files.iter().map(|file| (file.path, file)).collect();
        Self {
            top,
            format,
            files,
            folders,
            written,
            ignored,
            scan: None,
            seen: 0,
            untracked: Untracked::default(),
        }
    }

    fn finish(mut self) -> Option<Untracked> {
        self.compare_folder(b"")?;
        (self.seen == self.files.len()).then_some(self.untracked)
    }

    /// Compares the names in a folder. `None` at the first unexpected name.
    fn compare_folder(&mut self, folder: &[u8]) -> Option<()> {
        let (scan, place) = (self.scan, self.top.join(OsStr::from_bytes(folder)));
        let (mut path, mut folders) = (folder.to_vec(), Vec::new());
        let mut compare_name = |name: &[u8], facts: &Facts| {
            path.truncate(folder.len());
            path.extend(name);
            self.compare_name(&mut path, facts, &mut folders)
        };
        match scan {
            Some(scan) => {
                scan.folder(folder)?
                    .iter()
                    .try_for_each(|entry| compare_name(&entry.name, entry.facts.as_ref()?))?;
            }
            None => {
                safe_files::visit_facts(&place, |name, facts| compare_name(name.as_bytes(), facts))
                    .ok()??;
            }
        }
        folders.iter().try_for_each(|folder| self.compare_folder(folder))
    }

    /// Compares one name, and adds it to `folders` if it is a folder that has to be entered.
    fn compare_name(&mut self, path: &mut Vec<u8>, facts: &Facts, folders: &mut Vec<Vec<u8>>) -> Option<()> {
        match facts.kind {
            _ if path == b".git" => {}
            FileKind::Folder => {
                path.push(b'/');
                let is_tracked = self.folders.contains(path.as_slice());
                self.untracked.has_folders |= !is_tracked;
                if !is_tracked && self.ignored.contains(path) {
                    self.untracked.ignored.insert(path.clone());
                } else {
                    folders.push(path.clone());
                }
            }
            FileKind::File | FileKind::Link => self.compare_file(path, facts.kind, &facts.stamp)?,
            FileKind::Special => return None,
        }
        Some(())
    }

    fn compare_file(&mut self, path: &[u8], kind: FileKind, stamp: &ChangeStamp) -> Option<()> {
        match self.files.get(path) {
            Some(entry)
                if entry.facts.are(stamp) && (!is_racy(stamp, self.written) || self.holds(entry, kind)) =>
            {
                self.seen += 1;
            }
            None if self.ignored.contains(path) => drop(self.untracked.ignored.insert(path.to_vec())),
            _ => return None,
        }
        Some(())
    }

    /// Whether the content of a file or link has the id of its entry. It has not if a filter changed it; then git is
    /// asked.
    fn holds(&self, entry: &PlainEntry<'_>, kind: FileKind) -> bool {
        let path = self.top.join(OsStr::from_bytes(entry.path));
        let bytes = match kind {
            FileKind::Link => path.read_link().map(|target| target.into_os_string().into_vec()),
            _ => safe_files::read_up_to(&path, LARGEST_READ),
        };
        bytes.is_ok_and(|bytes| Oid::of(ObjectKind::Blob, &bytes, self.format) == entry.id)
    }
}

/// Whether the last component of a path is this name.
fn is_called(path: &[u8], name: &str) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::PermissionsExt,
    };

    use super::*;
    use crate::git::HiddenMarks;
    use crate::process::Program;

    const BEGIN: &str = "mkdir -p a/d && echo x > a/b && echo y > c && echo z > a/d/e && ln -s c link && echo '*.o' > .gitignore \
                         && echo 0 > a.c && echo 1 > a0 && git add -A && git commit -qm begin";

    fn run(dir: &Path, script: &str) -> String {
        let program = Program::new("sh").args(["-ec", script]).dir(dir).env("HOME", dir);
        let program = ["AUTHOR", "COMMITTER"].iter().fold(program, |program, who| {
            program.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.com")
        });
        let ended = program.env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        String::from_utf8(ended.stdout).unwrap().trim_end().to_owned()
    }

    /// A repository whose index this process knows, and its tree.
    fn repository(format: &str) -> (tempfile::TempDir, Repository, Oid) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        run(&top, &format!("git init -q -b main --object-format={format} . && {BEGIN}"));
        let repository = Repository::open_at(&top).unwrap();
        repository.make_index_known(HiddenMarks::Kept).unwrap();
        let tree = run(&top, "git rev-parse HEAD^{tree}").parse().unwrap();
        (folder, repository, tree)
    }

    #[test]
    fn a_worktree_is_known_clean_until_something_in_it_changes() {
        for format in ["sha1", "sha256"] {
            let (_folder, repository, tree) = repository(format);
            assert!(repository.is_known_clean(tree) && repository.holds_only(tree), "{format}");
            fs::create_dir(repository.top().join("a/empty")).unwrap();
            assert!(repository.is_known_clean(tree) && !repository.holds_only(tree), "{format}");
            assert!(!repository.is_known_clean(Oid::of(ObjectKind::Tree, b"", repository.format)));
        }
    }

    #[test]
    fn every_change_of_a_file_makes_the_worktree_unknown() {
        let changes: [fn(&Path); 8] = [
            |top| fs::write(top.join("c"), "Y\n").unwrap(),
            |top| fs::write(top.join("new"), "").unwrap(),
            |top| fs::write(top.join("a/new.o"), "").unwrap(),
            |top| fs::remove_file(top.join("a/b")).unwrap(),
            |top| fs::set_permissions(top.join("c"), PermissionsExt::from_mode(0o755)).unwrap(),
            |top| {
                fs::remove_file(top.join("link")).unwrap();
                std::os::unix::fs::symlink("b", top.join("link")).unwrap();
            },
            |top| {
                let modified = fs::metadata(top.join("c")).unwrap().modified().unwrap();
                fs::write(top.join("c"), "Y\n").unwrap();
                File::options().write(true).open(top.join("c")).unwrap().set_modified(modified).unwrap();
            },
            |top| drop(run(top, "git init -q a/inner")),
        ];
        for (number, change) in changes.iter().enumerate() {
            let (_folder, repository, tree) = repository("sha1");
            assert!(repository.is_known_clean(tree), "{number}");
            change(repository.top());
            assert!(!repository.is_known_clean(tree), "{number}");
        }
    }

    #[test]
    fn a_change_of_the_index_makes_the_worktree_unknown() {
        for change in ["git rm -q --cached c", "git update-index --assume-unchanged c", "git add -N -f x.o"] {
            let (_folder, repository, tree) = repository("sha1");
            run(repository.top(), &format!("echo > x.o && {change}"));
            fs::remove_file(repository.top().join("x.o")).unwrap();
            assert!(!repository.is_known_clean(tree), "{change}");
            repository.make_index_known(HiddenMarks::Kept).unwrap();
            assert!(!repository.is_known_clean(tree), "{change}");
        }
    }

    #[test]
    fn ignored_files_are_no_change_until_the_ignore_rules_change() {
        let (_folder, repository, tree) = repository("sha1");
        let top = repository.top().to_owned();
        run(&top, "echo /logs/ >> .git/info/exclude && mkdir logs && echo > logs/1 && echo > a/x.o");
        assert!(!repository.is_known_clean(tree), "git was not asked yet");
        assert!(repository.is_clean().unwrap() && repository.is_known_clean(tree));
        assert!(!repository.holds_only(tree));
        let listed = repository.list_uncommitted(tree).unwrap().ignored;
        assert_eq!(listed, BTreeSet::from([b"a/x.o".to_vec(), b"logs/".to_vec()]));
        run(&top, "echo > logs/2");
        assert!(repository.is_known_clean(tree), "all of the folder is ignored");
        run(&top, "echo '!/logs/' >> .git/info/exclude");
        assert!(!repository.is_known_clean(tree) && !repository.is_clean().unwrap());
        run(&top, "echo /logs/ >> .git/info/exclude");
        assert!(repository.is_clean().unwrap() && repository.is_known_clean(tree));
        run(&top, "echo > .gitignore && git add -A && git commit -qm rules");
        repository.make_index_known(HiddenMarks::Kept).unwrap();
        let tree = run(&top, "git rm -q --cached a/x.o && git write-tree").parse().unwrap();
        repository.make_index_known(HiddenMarks::Kept).unwrap();
        assert!(!repository.is_known_clean(tree), "the file is not ignored any more");
    }

    #[test]
    fn uncommitted_ignore_rules_are_not_trusted() {
        let (_folder, repository, tree) = repository("sha1");
        run(repository.top(), "echo /a/.gitignore >> .git/info/exclude && echo '*.log' > a/.gitignore");
        run(repository.top(), "echo > a/1.log");
        assert!(repository.is_clean().unwrap());
        assert!(!repository.is_known_clean(tree));
    }
}
