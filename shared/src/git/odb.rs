//! The object database: objects are read and written by their ids.
//!
//! libgit2 does it in this process, which costs microseconds where a git process costs milliseconds, and it refuses an
//! object whose content does not match its id. Where libgit2 cannot be used, a git process that stays open answers behind
//! the same functions: in repositories with SHA-256 ids or with an extension that libgit2 does not know (partial clones,
//! reftable), and where the configuration or the environment asks for something that only git does.

use std::{
    env, fmt,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use git2::{ErrorCode, ObjectType, RepositoryOpenFlags};

use super::{GitError, Repository};
use crate::name::{ObjectFormat, ObjectKind, Oid};

/// Where git looks for objects besides the repository's own folder, for example while a hook checks a push.
const OTHER_FOLDERS: [&str; 2] = ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"];
/// Settings about written objects that libgit2 does not follow.
const SETTINGS_FOR_GIT_ONLY: [&str; 2] = ["core.fsync", "core.sharedRepository"];

/// libgit2's view of the objects of a repository, opened when it is needed first. Copies share it.
#[derive(Clone, Default)]
pub(super) struct ObjectDatabase(Arc<OnceLock<Option<Mutex<git2::Repository>>>>);

impl fmt::Debug for ObjectDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectDatabase").finish_non_exhaustive()
    }
}

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredObject {
    pub(super) kind: StoredKind,
    pub(super) content: Vec<u8>,
}

/// What kind of object is stored under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredKind {
    /// A kind that we read and write.
    Known(ObjectKind),
    /// An annotated tag. We only need to know that it is one.
    Tag,
}

impl ObjectDatabase {
    /// Runs `action` with libgit2's object database; `None` where libgit2 cannot be used.
    fn with<T>(&self, repository: &Repository, action: impl FnOnce(&git2::Odb<'_>) -> T) -> Option<T> {
        self.with_repository(repository, |opened| opened.odb().ok().map(|odb| action(&odb)))?
    }

    fn with_repository<T>(
        &self,
        repository: &Repository,
        action: impl FnOnce(&git2::Repository) -> T,
    ) -> Option<T> {
        let opened = self.0.get_or_init(|| open(repository).map(Mutex::new));
        let opened = opened.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(action(&opened))
    }
}

fn open(repository: &Repository) -> Option<git2::Repository> {
    if repository.format != ObjectFormat::Sha1 || OTHER_FOLDERS.iter().any(|name| env::var_os(name).is_some())
    {
        return None;
    }
    let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT | RepositoryOpenFlags::BARE;
    let no_ceiling: [&Path; 0] = [];
    let opened = git2::Repository::open_ext(&repository.common_dir, flags, no_ceiling).ok()?;
    let config = opened.config().ok()?;
    if SETTINGS_FOR_GIT_ONLY.iter().any(|name| config.get_entry(name).is_ok()) {
        return None;
    }
    // Whoever writes a tree has just written what is new in it. To look for every other file of it takes as long as all the
    // rest, and what is new is hashed before it counts.
    git2::opts::strict_object_creation(false);
    // Only reading an object's file each time shows whether it is true. With a cache, small trees and commits would come from memory.
    git2::opts::enable_caching(false);
    // Only the objects are kept: what an agent writes into the configuration later is never read by libgit2.
    git2::Repository::from_odb(opened.odb().ok()?).ok()
}

impl Repository {
    /// Whether libgit2 reads the objects. Otherwise each of them costs a question to a git process.
    pub(super) fn reads_objects_in_process(&self) -> bool {
        self.objects.with(self, |_| ()).is_some()
    }

    /// The content of an object; `None` if there is none with this id, or one of another kind.
    pub(super) fn read_object(&self, kind: ObjectKind, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        let found = self.find_object(id, kind.as_str())?;
        Ok(found.filter(|found| found.kind == StoredKind::Known(kind)).map(|found| found.content))
    }

    /// The object with this id. Its content was hashed: an object that does not match its id is an error, in which it is
    /// called `name`.
    pub(super) fn find_object(&self, id: Oid, name: &'static str) -> Result<Option<StoredObject>, GitError> {
        self.homes.iter().try_for_each(super::identity::GitDirId::require)?;
        // libgit2 would wait at a pipe for ever. git would too, but a git process can be ended.
        let is_special = self.loose_file(id).metadata().is_ok_and(|found| !found.is_file());
        if is_special {
            return Err(GitError::Corrupt(id.to_string(), name));
        }
        let read = |odb: &git2::Odb<'_>| read(odb, id);
        match self.objects.with(self, read) {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) if error.code() == ErrorCode::HashsumMismatch => {
                Err(GitError::Corrupt(id.to_string(), name))
            }
            // Too many open files, for example: git is asked for a second opinion.
            Some(Err(_)) | None => self.ask_git_for_object(id, name),
        }
    }

    /// Stores an object as it is.
    pub(super) fn write_object(&self, kind: ObjectKind, content: &[u8]) -> Result<Oid, GitError> {
        self.homes.iter().try_for_each(super::identity::GitDirId::require)?;
        let id = Oid::of(kind, content, self.format);
        let write = |odb: &git2::Odb<'_>| odb.write(object_type(kind), content);
        match self.objects.with(self, write) {
            Some(Ok(written)) if written.as_bytes() == id.as_bytes() => Ok(id),
            _ => self.have_git_write(kind, id, content),
        }
    }

    /// The tree that an index of our own holds. It is not asked whether all of its files are stored.
    pub(super) fn write_tree_of(&self, index: &Path) -> Option<Oid> {
        let write = |objects: &git2::Repository| git2::Index::open(index)?.write_tree_to(objects);
        let written = self.objects.with_repository(self, write)?;
        Oid::from_bytes(written.ok()?.as_bytes())
    }

    /// Where the file of an object is, unless it is packed.
    pub(super) fn loose_file(&self, id: Oid) -> std::path::PathBuf {
        let id = id.to_string();
        self.common_dir.join("objects").join(&id[..2]).join(&id[2..])
    }
}

fn read(odb: &git2::Odb<'_>, id: Oid) -> Result<Option<StoredObject>, git2::Error> {
    let object = match odb.read(git2::Oid::from_bytes(id.as_bytes())?) {
        Ok(object) => object,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = match object.kind() {
        ObjectType::Blob => StoredKind::Known(ObjectKind::Blob),
        ObjectType::Tree => StoredKind::Known(ObjectKind::Tree),
        ObjectType::Commit => StoredKind::Known(ObjectKind::Commit),
        _ => StoredKind::Tag,
    };
    Ok(Some(StoredObject { kind, content: object.data().to_vec() }))
}

fn object_type(kind: ObjectKind) -> ObjectType {
    match kind {
        ObjectKind::Blob => ObjectType::Blob,
        ObjectKind::Tree => ObjectType::Tree,
        ObjectKind::Commit => ObjectType::Commit,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::process::Program;

    /// A repository after these commands. Objects with SHA-1 ids are read by libgit2, others by git.
    fn repository(format: &str, script: &str) -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        let begin = format!(
            "git init -q -b main --object-format={format} . && git config user.name A && git config user.email a@example.com"
        );
        run(folder.path(), &format!("{begin} && {script}"));
        let repository = Repository::open_at(folder.path()).unwrap();
        (folder, repository)
    }

    fn run(dir: &Path, script: &str) -> String {
        let program = Program::new("sh").args(["-ec", script]).dir(dir);
        let ended = program.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        String::from_utf8(ended.stdout).unwrap()
    }

    fn uses_libgit2(repository: &Repository) -> bool {
        repository.reads_objects_in_process()
    }

    const SCRIPT: &str = "mkdir -p a/b && echo 1 > a/b/c && echo 2 > a-b && ln -s a-b link && git add -A && git commit -qm 1 &&
        git rm -qr a/b && mkdir -p a && echo 3 > a/b && chmod +x a-b && echo 4 > a.b && git add -A && git commit -qm 2";

    #[test]
    fn both_ways_of_reading_give_what_git_gives() {
        for format in ["sha1", "sha256"] {
            let (folder, repository) = repository(format, SCRIPT);
            assert_eq!(uses_libgit2(&repository), format == "sha1");
            let [old, new] = ["HEAD~", "HEAD"].map(|name| repository.require_commit(name).unwrap());
            let [old, new] = [old, new].map(|commit| repository.tree_of(commit).unwrap());
            assert_eq!(run(folder.path(), "git rev-parse 'HEAD^{tree}'").trim(), new.to_string());
            let of_index = repository.write_tree_of(&folder.path().join(".git/index"));
            assert_eq!(of_index, (format == "sha1").then_some(new));
            let printed = run(folder.path(), "git diff-tree -r --no-renames --no-abbrev HEAD~ HEAD");
            let shown = |side: Option<(u32, Oid)>| {
                side.unwrap_or_else(|| (0, Oid::from_bytes(&vec![0; old.as_bytes().len()]).unwrap()))
            };
            let changes = repository.changes(old, new).unwrap().into_iter().map(|change| {
                let (before, after) = (shown(change.before), shown(change.after));
                let start = format!(":{:06o} {:06o} {} {}", before.0, after.0, before.1, after.1);
                (start, String::from_utf8(change.path).unwrap())
            });
            let git = printed.lines().map(|line| {
                let (start, path) = line.split_once('\t').unwrap();
                (start[..start.len() - 2].to_owned(), path.to_owned())
            });
            assert_eq!(changes.collect::<Vec<_>>(), git.collect::<Vec<_>>(), "{format}");
            assert!(repository.find_entry(new, b"a/b").unwrap().is_some());
            assert!(repository.find_entry(new, b"a/b/c").unwrap().is_none());
            assert!(repository.find_entry(new, b"").unwrap().is_none());
        }
    }

    #[test]
    fn both_ways_of_writing_store_what_git_finds() {
        for format in ["sha1", "sha256"] {
            let (folder, repository) = repository(format, "true");
            let id = repository.write_object(ObjectKind::Blob, b"a\0b").unwrap();
            assert_eq!(
                run(folder.path(), &format!("git cat-file blob {id} | od -An -c | tr -d ' \\n'")),
                "a\\0b"
            );
            assert_eq!(repository.read_object(ObjectKind::Blob, id).unwrap().unwrap(), b"a\0b");
            assert_eq!(repository.read_object(ObjectKind::Tree, id).unwrap(), None, "another kind");
            let missing = Oid::of(ObjectKind::Blob, b"c", repository.format);
            assert_eq!(repository.read_object(ObjectKind::Blob, missing).unwrap(), None);
        }
    }

    #[test]
    fn an_object_that_does_not_match_its_id_is_refused() {
        for format in ["sha1", "sha256"] {
            let (_folder, repository) = repository(format, "true");
            let [good, bad] =
                [b"good", b"evil"].map(|text| repository.write_object(ObjectKind::Blob, text).unwrap());
            let file = repository.loose_file(good);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            fs::copy(repository.loose_file(bad), &file).unwrap();
            let again = Repository::open_at(repository.top()).unwrap();
            assert!(
                matches!(again.read_object(ObjectKind::Blob, good), Err(GitError::Corrupt(..))),
                "{format}"
            );
        }
    }

    #[test]
    fn settings_and_extensions_that_libgit2_does_not_know_leave_it_to_git() {
        for setting in ["core.fsync all", "core.sharedRepository group", "extensions.partialClone origin"] {
            let script = format!("git config core.repositoryFormatVersion 1 && git config {setting}");
            let (_folder, repository) = repository("sha1", &script);
            assert!(!uses_libgit2(&repository), "{setting}");
            let id = repository.write_object(ObjectKind::Blob, b"a").unwrap();
            assert_eq!(repository.read_object(ObjectKind::Blob, id).unwrap().unwrap(), b"a");
        }
    }
}
