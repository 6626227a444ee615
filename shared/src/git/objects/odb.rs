//! Reads and writes objects by their ids.
//!
//! libgit2 does it in this process, which costs microseconds instead of the milliseconds of a git process, and it
//! refuses an object whose content does not match its id. Where libgit2 cannot be used, a git process answers behind
//! the same functions, and its answers are hashed here: if the environment names other folders of objects, if settings
//! for written objects need git, and if libgit2 fails.

use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType};

use crate::{
    git::{
        GitError, Repository,
        objects::{open_objects::libgit2_format, write::id_of},
    },
    name::{ObjectKind, Oid},
};

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct StoredObject {
    pub(in crate::git) kind: StoredKind,
    pub(in crate::git) content: Vec<u8>,
}

/// The kind of a stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum StoredKind {
    /// A kind that we read and write.
    Known(ObjectKind),
    /// An annotated tag. We only need to know that it is one.
    Tag,
}

impl Repository {
    /// Whether libgit2 reads the objects. Otherwise each read costs a git process.
    pub(in crate::git) fn reads_objects_in_process(&self) -> bool {
        self.objects.read(self, |_| ()).is_some()
    }

    /// The content of an object; `None` if it does not exist, or is of another kind.
    pub(in crate::git) fn read_object(&self, kind: ObjectKind, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        let found = self.find_object(id, kind.as_str())?;
        Ok(found.filter(|found| found.kind == StoredKind::Known(kind)).map(|found| found.content))
    }

    /// The object with this id. Its content was hashed: an object that does not match its id is an error, in which it
    /// is called `name`.
    pub(in crate::git) fn find_object(
        &self,
        id: Oid,
        name: &'static str,
    ) -> Result<Option<StoredObject>, GitError> {
        self.git_dir_ids.iter().try_for_each(crate::git::git_dir_id::GitDirId::require)?;
        // libgit2 would block on a named pipe for ever. git would too, but a git process has a time limit.
        let is_special = self.loose_file(id).metadata().is_ok_and(|found| !found.is_file());
        if is_special {
            return Err(GitError::Corrupt(id.to_string(), name));
        }
        match self.objects.read(self, |odb| read(odb, id)) {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) if error.code() == ErrorCode::HashsumMismatch => {
                Err(GitError::Corrupt(id.to_string(), name))
            }
            // For example too many open files. git may still be able to read it.
            Some(Err(_)) | None => self.ask_git_for_object(id, name),
        }
    }

    /// Writes an object.
    pub(in crate::git) fn write_object(&self, kind: ObjectKind, content: &[u8]) -> Result<Oid, GitError> {
        self.git_dir_ids.iter().try_for_each(crate::git::git_dir_id::GitDirId::require)?;
        let id = Oid::of(kind, content, self.format);
        let write = |opened: &git2::Repository| opened.odb()?.write(object_type(kind), content);
        match self.objects.write(self, write) {
            Some(Ok(written)) if written.as_bytes() == id.as_bytes() => Ok(id),
            _ => self.have_git_write(kind, content),
        }
    }

    /// Lets git write an object. Its format is not checked: we made it from existing objects.
    fn have_git_write(&self, kind: ObjectKind, content: &[u8]) -> Result<Oid, GitError> {
        let command = self.change("hash-object").args(["-w", "--literally", "-t", kind.as_str(), "--stdin"]);
        id_of("hash-object", &command.stdout_with(content)?)
    }

    /// The tree of a private index. It is not checked that all of its files are stored.
    pub(in crate::git) fn write_tree_of(&self, index: &Path) -> Option<Oid> {
        let format = libgit2_format(self.format);
        let write = |opened: &git2::Repository| git2::Index::open_ext(index, format)?.write_tree_to(opened);
        let written = self.objects.write(self, write)?;
        Oid::from_bytes(written.ok()?.as_bytes())
    }

    /// The path of a loose object.
    pub(in crate::git) fn loose_file(&self, id: Oid) -> PathBuf {
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

    /// How a repository is made, and whether libgit2 reads and writes its objects.
    const FORMS: [(&str, [bool; 2]); 7] = [
        ("git init -q -b main .", [true, true]),
        ("git init -q -b main --object-format=sha256 .", [true, true]),
        ("git init -q -b main --ref-format=reftable .", [true, true]),
        ("git init -q -b main --ref-format=reftable --object-format=sha256 .", [true, true]),
        ("git init -q -b main . && git config core.fsync all", [true, false]),
        // An extension that changes nothing, and that libgit2 does not know.
        (
            "git init -q -b main . && git config core.repositoryFormatVersion 1 && git config extensions.noop-v1 1",
            [false, false],
        ),
        ("git init -q -b main --object-format=sha256 . && git config extensions.noop-v1 1", [false, false]),
    ];

    /// A repository of each kind after these commands, except for kinds that this git does not know.
    fn repositories(script: &str) -> impl Iterator<Item = (&'static str, tempfile::TempDir, Repository)> {
        FORMS.into_iter().filter_map(move |(form, uses_libgit2)| {
            let folder = tempfile::tempdir().unwrap();
            let made = try_to_run(folder.path(), form);
            if form.contains("--ref-format") && made.is_none() {
                eprintln!("skipped: this git has no tables of refs");
                return None;
            }
            let author = "git config user.name A && git config user.email a@example.com";
            run(folder.path(), &format!("{author} && {script}"));
            let repository = Repository::open_at(&folder.path().canonicalize().unwrap()).unwrap();
            let writes = repository.objects.write(&repository, |_| ()).is_some();
            assert_eq!([repository.reads_objects_in_process(), writes], uses_libgit2, "{form}");
            Some((form, folder, repository))
        })
    }

    fn try_to_run(dir: &Path, script: &str) -> Option<String> {
        let program = Program::new("sh").args(["-ec", script]).dir(dir);
        let ended = program.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        ended.status.success().then(|| String::from_utf8(ended.stdout).unwrap())
    }

    fn run(dir: &Path, script: &str) -> String {
        try_to_run(dir, script).unwrap_or_else(|| panic!("{script} failed"))
    }

    const SCRIPT: &str = "mkdir -p a/b && echo 1 > a/b/c && echo 2 > a-b && ln -s a-b link && git add -A && git commit -qm 1 &&
        git rm -qr a/b && mkdir -p a && echo 3 > a/b && chmod +x a-b && echo 4 > a.b && git add -A && git commit -qm 2";

    #[test]
    fn every_way_of_reading_an_object_gives_the_same_as_git() {
        for (form, folder, repository) in repositories(SCRIPT) {
            let [old, new] = ["HEAD~", "HEAD"].map(|name| repository.require_commit(name).unwrap());
            let [old, new] = [old, new].map(|commit| repository.tree_of(commit).unwrap());
            assert_eq!(run(folder.path(), "git rev-parse 'HEAD^{tree}'").trim(), new.to_string());
            let of_index = repository.write_tree_of(&folder.path().join(".git/index"));
            assert!(of_index.is_none_or(|tree| tree == new), "{form}");
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
            assert_eq!(changes.collect::<Vec<_>>(), git.collect::<Vec<_>>(), "{form}");
            assert!(repository.find_entry(new, b"a/b").unwrap().is_some());
            assert!(repository.find_entry(new, b"a/b/c").unwrap().is_none());
            assert!(repository.find_entry(new, b"").unwrap().is_none());
        }
    }

    #[test]
    fn packed_objects_are_read_in_every_way() {
        let script = format!("{SCRIPT} && git gc -q");
        for (form, _folder, repository) in repositories(&script) {
            let head = repository.require_commit("HEAD").unwrap();
            let tree = repository.tree_of(head).unwrap();
            let blob = repository.find_entry(tree, b"a/b").unwrap().unwrap();
            assert_eq!(repository.read_object(ObjectKind::Blob, blob).unwrap().unwrap(), b"3\n", "{form}");
            assert_eq!(repository.load_commits(&[head, head]).unwrap().len(), 2, "{form}");
            let all: Vec<Oid> = vec![head; 20];
            assert_eq!(repository.load_commits(&all).unwrap().len(), 20, "{form}");
            assert!(matches!(repository.load_commits(&[blob]), Err(GitError::Unknown(..))), "{form}");
        }
    }

    #[test]
    fn git_reads_objects_written_in_every_way() {
        for (form, folder, repository) in repositories("true") {
            let id = repository.write_object(ObjectKind::Blob, b"a\0b").unwrap();
            assert_eq!(
                run(folder.path(), &format!("git cat-file blob {id} | od -An -c | tr -d ' \\n'")),
                "a\\0b"
            );
            assert_eq!(repository.read_object(ObjectKind::Blob, id).unwrap().unwrap(), b"a\0b", "{form}");
            assert_eq!(repository.read_object(ObjectKind::Tree, id).unwrap(), None, "another kind");
            let missing = Oid::of(ObjectKind::Blob, b"c", repository.format);
            assert_eq!(repository.read_object(ObjectKind::Blob, missing).unwrap(), None, "{form}");
        }
    }

    #[test]
    fn an_object_that_does_not_match_its_id_is_refused() {
        for (form, _folder, repository) in repositories("true") {
            let [good, bad] =
                [b"good", b"evil"].map(|text| repository.write_object(ObjectKind::Blob, text).unwrap());
            let file = repository.loose_file(good);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            fs::copy(repository.loose_file(bad), &file).unwrap();
            let again = Repository::open_at(repository.top()).unwrap();
            assert!(
                matches!(again.read_object(ObjectKind::Blob, good), Err(GitError::Corrupt(..))),
                "{form}"
            );
            let all: Vec<Oid> = vec![good; 20];
            assert!(again.load_commits(&all).is_err(), "{form}");
        }
    }

    #[test]
    fn objects_are_written_by_git_if_libgit2_ignores_a_setting() {
        for setting in ["core.fsync all", "core.sharedRepository group"] {
            let folder = tempfile::tempdir().unwrap();
            run(folder.path(), &format!("git init -q . && git config {setting}"));
            let repository = Repository::open_at(&folder.path().canonicalize().unwrap()).unwrap();
            assert!(repository.objects.write(&repository, |_| ()).is_none(), "{setting}");
        }
    }

    #[test]
    fn a_stand_in_repository_folder_is_not_used_after_it_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        run(
            folder.path(),
            "git init -q . && git config core.repositoryFormatVersion 1 && git config extensions.partialClone origin",
        );
        let repository = Repository::open_at(&folder.path().canonicalize().unwrap()).unwrap();
        let path = repository
            .objects
            .write(&repository, |_| ())
            .map(|()| crate::git::settings::frozen_settings::retired_folders());
        let made = path.unwrap().into_iter().filter(|dir| {
            fs::read_link(dir.join("objects")).is_ok_and(|link| link.starts_with(repository.top()))
        });
        let made: Vec<PathBuf> = made.collect();
        assert_eq!(made.len(), 1);
        fs::remove_file(made[0].join("objects")).unwrap();
        assert!(repository.objects.write(&repository, |_| ()).is_none());
        let id = repository.write_object(ObjectKind::Blob, b"a").unwrap();
        assert_eq!(repository.read_object(ObjectKind::Blob, id).unwrap().unwrap(), b"a");
    }
}
