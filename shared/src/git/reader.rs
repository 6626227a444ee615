//! Where names lead, asked of a git that stays; and objects, where libgit2 cannot be used.

use std::{
    io::{BufRead, Read},
    path::Path,
};

use super::{
    GitError, Repository,
    kept::GitService,
    odb::{StoredKind, StoredObject},
};
use crate::{
    name::{ObjectKind, Oid},
    process::RunningProgram,
};

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    id: Oid,
    is_commit: bool,
}

impl Repository {
    /// The commit that any revision names; `None` outside if the git that stays gave no answer.
    pub(super) fn ask_for_commit(&self, revision: &str) -> Result<Option<Option<Oid>>, GitError> {
        if let Ok(id) = revision.parse::<Oid>() {
            match self.find_object(id, "commit")?.map(|found| found.kind) {
                Some(StoredKind::Known(ObjectKind::Commit)) => return Ok(Some(Some(id))),
                Some(StoredKind::Known(_)) | None => return Ok(Some(None)),
                Some(StoredKind::Tag) => {}
            }
        }
        let found = self.look_up(&self.git_dir, &[format!("{revision}^{{commit}}")])?;
        let commit = |found: Found| found.is_commit.then_some(found.id);
        Ok(found.map(|found| found.into_iter().flatten().find_map(commit)))
    }

    /// The same for a ref of this full name. Where there is none, git looks for the name elsewhere too: if anything is to be
    /// found there, no answer is given.
    pub(super) fn ask_for_ref(&self, name: &str) -> Result<Option<Option<Oid>>, GitError> {
        if !is_plain(name) {
            return Ok(None);
        }
        let is_shared = ["refs/heads/", "refs/arborist/"].iter().any(|folder| name.starts_with(folder));
        let git_dir = if is_shared { &self.common_dir } else { &self.git_dir };
        let elsewhere = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
        let mut names: Vec<String> = elsewhere.iter().map(|folder| format!("{folder}{name}")).collect();
        names.extend([format!("refs/remotes/{name}/HEAD"), name.to_owned()]);
        let Some(mut found) = self.look_up(git_dir, &names)? else {
            return Ok(None);
        };
        let own = found.pop().flatten();
        let is_alone = found.iter().all(Option::is_none);
        Ok(is_alone.then(|| own.map(|own| own.id)))
    }

    /// The object with this id, as git reads it. git does not hash what it reads, so that is done here.
    pub(super) fn ask_git_for_object(
        &self,
        id: Oid,
        name: &'static str,
    ) -> Result<Option<StoredObject>, GitError> {
        let kept = self.clerk(GitService::Read);
        let start = || self.start_reader(&self.common_dir);
        let corrupt = || GitError::Corrupt(id.to_string(), name);
        // It ends where it cannot read a file.
        let found = kept.ask(start, |running| content_of(running, id))?.map_err(|_| corrupt())?;
        let is_false = found.as_ref().is_some_and(|found| match found.kind {
            StoredKind::Known(kind) => Oid::of(kind, &found.content, id.format()) != id,
            StoredKind::Tag => false,
        });
        if is_false { Err(corrupt()) } else { Ok(found) }
    }

    fn look_up(&self, git_dir: &Path, names: &[String]) -> Result<Option<Vec<Option<Found>>>, GitError> {
        if names.iter().any(|name| name.contains(['\n', '\0'])) {
            return Ok(None);
        }
        let question: String = names.iter().map(|name| format!("info {name}\n")).collect();
        let told = self.clerk_at(git_dir, GitService::Read).ask(
            || self.start_reader(git_dir),
            |running| {
                running.tell(question.as_bytes()).ok()?;
                names.iter().map(|_| read_info(running)).collect()
            },
        )?;
        Ok(told.ok())
    }

    fn start_reader(&self, git_dir: &Path) -> Result<RunningProgram, GitError> {
        let command = self.git("cat-file").arg("--batch-command");
        self.converse(command.env("GIT_DIR", git_dir))
    }
}

/// Whether a name that leads to no ref cannot lead to a commit either: git would take the end of `v1-4-gabcdef` for one.
fn is_plain(name: &str) -> bool {
    let is_described =
        name.rsplit_once("-g").is_some_and(|(_, rest)| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.starts_with("refs/") && !is_described
}

/// One line: `<id> <kind> <size>`, or the name with a word why not.
fn read_info(running: &mut RunningProgram) -> Option<Option<Found>> {
    let line = read_line(running)?;
    if line.ends_with(" missing") || line.ends_with(" ambiguous") {
        return Some(None);
    }
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    Some(Some(Found { id, is_commit: words.next()? == "commit" }))
}

fn content_of(running: &mut RunningProgram, id: Oid) -> Option<Option<StoredObject>> {
    running.tell(format!("contents {id}\n").as_bytes()).ok()?;
    let line = read_line(running)?;
    if line.ends_with(" missing") {
        return Some(None);
    }
    let mut words = line.strip_prefix(&format!("{id} "))?.split(' ');
    let kind = match words.next()? {
        "blob" => StoredKind::Known(ObjectKind::Blob),
        "tree" => StoredKind::Known(ObjectKind::Tree),
        "commit" => StoredKind::Known(ObjectKind::Commit),
        _ => StoredKind::Tag,
    };
    let mut content = vec![0; words.next()?.parse::<usize>().ok()? + 1];
    running.output()?.read_exact(&mut content).ok()?;
    content.pop();
    Some(Some(StoredObject { kind, content }))
}

fn read_line(running: &mut RunningProgram) -> Option<String> {
    let mut line = Vec::new();
    running.output()?.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_git_would_read_as_a_commit_is_told() {
        assert!(is_plain("refs/heads/main") && is_plain("refs/heads/a-green"));
        assert!(!is_plain("refs/heads/v1-4-gabcdef") && !is_plain("HEAD"));
    }
}
