//! As whom a commit is written. Who that is only git can tell: the first commit is written by `commit-tree`, and the
//! next ones say of their author what that one says.

use std::{
    env,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{GitError, Repository, Signing, Stamp, command::checked, followed::note_written, write::id_of};
use crate::name::{ObjectKind, Oid};

/// Clocks are put forward and back at the quarters of an hour, so that for so many seconds a time zone stays.
const QUARTER: u64 = 15 * 60;

/// Where agents are reached: nowhere.
const AGENTS: &str = "arborist@local";

/// The authors of a repository's worktrees, as far as they are known. Copies share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Authors(Arc<Mutex<Vec<Known>>>);

/// What is known of the author in one worktree.
#[derive(Debug)]
struct Known {
    git_dir: PathBuf,
    quarter: u64,
    /// The files that can say who it is, as they were.
    files: Vec<Option<Stamp>>,
    example: Example,
}

/// A commit that git wrote for us.
#[derive(Debug, Clone)]
enum Example {
    /// Nobody has looked at it yet.
    Unread(Oid),
    /// The lines of its header from the author on.
    Read(Vec<u8>),
}

impl Repository {
    /// Writes a commit with any number of parents. It is signed if the user's commits are.
    pub fn write_joint(
        &self,
        tree: Oid,
        parents: &[Oid],
        message: &str,
        signing: Signing,
    ) -> Result<Oid, GitError> {
        self.write_authored(None, (tree, parents), message, signing)
    }

    /// The same; `agent` is the name of its author, if that is not the user.
    pub(super) fn write_authored(
        &self,
        agent: Option<&str>,
        (tree, parents): (Oid, &[Oid]),
        message: &str,
        signing: Signing,
    ) -> Result<Oid, GitError> {
        let now = seconds();
        if signing == Signing::No
            && !message.contains('\0')
            && let Some(lines) = self.example_of(now / QUARTER)?
            && let Some(author) = at_time(&lines, now).and_then(|lines| by_agent(lines, agent))
        {
            let mut content = format!("tree {tree}\n").into_bytes();
            let is_first = |(n, parent): &(usize, &Oid)| !parents[..*n].contains(parent);
            for (_, parent) in parents.iter().enumerate().filter(is_first) {
                content.extend(format!("parent {parent}\n").bytes());
            }
            content.extend(author);
            content.extend([b"\n", message.as_bytes()].concat());
            return self.write_object(ObjectKind::Commit, &content).inspect(|commit| note_written(*commit));
        }
        let mut command = self.change("commit-tree");
        if signing == Signing::AsConfigured {
            command = command.asking().arg("-S");
        }
        if let Some(name) = agent {
            command = command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", AGENTS);
        }
        command = command.args(["-F", "-"]);
        for parent in parents {
            command = command.args(["-p", &parent.to_string()]);
        }
        let command = command.arg(tree.to_string());
        let commit =
            id_of("commit-tree", &checked("commit-tree", command.finish_with(message.as_bytes())?)?)?;
        if signing == Signing::No && agent.is_none() {
            self.remember(now / QUARTER, Example::Unread(commit));
        }
        note_written(commit);
        Ok(commit)
    }

    /// What git wrote of the author in this quarter of an hour, if it wrote anything.
    fn example_of(&self, quarter: u64) -> Result<Option<Vec<u8>>, GitError> {
        let files = self.config_files();
        let known = self.authors.lock();
        let is_it = |known: &&Known| {
            known.git_dir == self.git_dir && known.quarter == quarter && known.files == files
        };
        let found = known.iter().find(is_it);
        let example = found.map(|known| known.example.clone());
        drop(known);
        let commit = match example {
            None => return Ok(None),
            Some(Example::Read(lines)) => return Ok(Some(lines)),
            Some(Example::Unread(commit)) => commit,
        };
        let commits = self.load_commits(&[commit])?;
        let header = commits.first().map(super::RawCommit::header).unwrap_or_default();
        let Some(begin) = memchr::memmem::find(header, b"\nauthor ") else {
            return Ok(None);
        };
        let lines = header[begin + 1..].to_vec();
        self.remember(quarter, Example::Read(lines.clone()));
        Ok(Some(lines))
    }

    fn remember(&self, quarter: u64, example: Example) {
        let files = self.config_files();
        let mut known = self.authors.lock();
        known.retain(|known| known.git_dir != self.git_dir);
        known.push(Known { git_dir: self.git_dir.clone(), quarter, files, example });
    }

    /// The user's configuration and the repository's. What these include is not looked at: it is believed for a quarter.
    fn config_files(&self) -> Vec<Option<Stamp>> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("HOME").unwrap_or_default();
        let global = variable("GIT_CONFIG_GLOBAL").unwrap_or_else(|| home.join(".gitconfig"));
        let other = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("git/config");
        let own = [self.common_dir.join("config"), self.git_dir.join("config.worktree")];
        own.iter().chain([&global, &other]).map(|file| Stamp::of(file)).collect()
    }
}

impl Authors {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The same lines with another time, but where our environment names one. `None` if they have another form.
fn at_time(lines: &[u8], now: u64) -> Option<Vec<u8>> {
    let is_set = |name: &str| env::var_os(name).is_some_and(|date| !date.is_empty());
    let mut written = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let date = if line.starts_with(b"author ") {
            "GIT_AUTHOR_DATE"
        } else if line.starts_with(b"committer ") {
            "GIT_COMMITTER_DATE"
        } else {
            written.extend(line);
            continue;
        };
        if is_set(date) {
            written.extend(line);
            continue;
        }
        let end = memchr::memrchr(b'>', line)?;
        let zone = memchr::memrchr(b' ', line).filter(|at| *at > end + 1)?;
        written.extend(&line[..=end]);
        written.extend(format!(" {now}").bytes());
        written.extend(&line[zone..]);
    }
    Some(written)
}

/// The same lines with an agent as the author. `None` if they have another form, or the agent's name cannot stand there.
fn by_agent(lines: Vec<u8>, agent: Option<&str>) -> Option<Vec<u8>> {
    let Some(name) = agent else {
        return Some(lines);
    };
    let end = memchr::memchr(b'\n', &lines).filter(|_| lines.starts_with(b"author "))?;
    let mail = memchr::memrchr(b'>', &lines[..end])?;
    let is_plain = !name.contains(['<', '>', '\n', '\0']) && name.trim() == name && !name.is_empty();
    is_plain.then(|| [format!("author {name} <{AGENTS}").as_bytes(), &lines[mail..]].concat())
}
