//! Knows the author lines of new commits. Only git can tell who the author is: the first commit is written by `git
//! commit-tree`, and later ones copy its lines.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    git::{GitError, Repository, Signing, Stamp, objects::write::id_of, refs::forged_steps::note_written},
    mutex::MutexExt,
    name::{ObjectKind, Oid},
};

/// Time zones change only at quarters of an hour, so the offset of a commit is valid until the next one.
const QUARTER: u64 = 15 * 60;

/// The mail address of agents, which reaches nobody.
const AGENT_ADDRESS: &str = "arborist@local";

/// The known authors of all worktrees: each task opens its worktree again.
static AUTHORS: Mutex<Vec<KnownAuthor>> = Mutex::new(Vec::new());

/// The author in one worktree, or in all worktrees of a repository.
#[derive(Debug)]
struct KnownAuthor {
    /// The common git directory, or that of the worktree if worktrees may have different settings.
    place: PathBuf,
    quarter: u64,
    /// Stamps of the files that can define the author.
    files: Vec<Option<Stamp>>,
    example: Example,
}

/// A commit that git wrote for us.
#[derive(Debug, Clone)]
enum Example {
    /// It was not read yet.
    Unread(Oid),
    /// The lines of its header from the author on.
    Read(Vec<u8>),
}

impl Repository {
    /// Writes a commit with any number of parents. It is signed if the user's commits are.
    pub fn write_commit_with_parents(
        &self,
        tree: Oid,
        parents: &[Oid],
        message: &str,
        signing: Signing,
    ) -> Result<Oid, GitError> {
        self.write_authored(None, tree, parents, message, signing)
    }

    /// Fails unless git knows who makes commits here: a run would stop at its first one.
    pub fn require_author(&self) -> Result<(), GitError> {
        match self.git("var").arg("GIT_COMMITTER_IDENT").stdout() {
            Err(GitError::Failed { .. }) => Err(GitError::NoAuthor),
            known => known.map(|_| ()),
        }
    }

    /// Like [`Self::write_commit_with_parents`]; `agent` is the name of the author, if that is not the user.
    pub(in crate::git) fn write_authored(
        &self,
        agent: Option<&str>,
        tree: Oid,
        parents: &[Oid],
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
            command = command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", AGENT_ADDRESS);
        }
        command = command.args(["-F", "-"]);
        for parent in parents {
            command = command.args(["-p", &parent.to_string()]);
        }
        let command = command.arg(tree.to_string());
        let commit = id_of("commit-tree", &command.stdout_with(message.as_bytes())?)?;
        if signing == Signing::No && agent.is_none() {
            self.remember(now / QUARTER, Example::Unread(commit));
        }
        note_written(commit);
        Ok(commit)
    }

    /// The author lines that git wrote in this quarter of an hour, if any.
    fn example_of(&self, quarter: u64) -> Result<Option<Vec<u8>>, GitError> {
        let files = self.config_files();
        let known = AUTHORS.hold();
        let is_valid = |known: &&KnownAuthor| {
            known.place == self.author_place() && known.quarter == quarter && known.files == files
        };
        let found = known.iter().find(is_valid);
        let example = found.map(|known| known.example.clone());
        drop(known);
        let commit = match example {
            None => return Ok(None),
            Some(Example::Read(lines)) => return Ok(Some(lines)),
            Some(Example::Unread(commit)) => commit,
        };
        let commits = self.load_commits(&[commit])?;
        let header = commits.first().map(crate::git::RawCommit::header).unwrap_or_default();
        let Some(begin) = memchr::memmem::find(header, b"\nauthor ") else {
            return Ok(None);
        };
        let lines = header[begin + 1..].to_vec();
        self.remember(quarter, Example::Read(lines.clone()));
        Ok(Some(lines))
    }

    fn remember(&self, quarter: u64, example: Example) {
        let files = self.config_files();
        let mut known = AUTHORS.hold();
        known.retain(|known| known.place != self.author_place());
        known.push(KnownAuthor { place: self.author_place().to_owned(), quarter, files, example });
    }

    /// Where the author is the same: in all worktrees, unless their settings can differ.
    fn author_place(&self) -> &Path {
        if self.has_same_settings_everywhere() { &self.common_dir } else { &self.git_dir }
    }

    /// Stamps of the user's configuration and the repository's. Include files are not checked; they may be out of date
    /// for a quarter of an hour.
    fn config_files(&self) -> Vec<Option<Stamp>> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("HOME").unwrap_or_default();
        let global = variable("GIT_CONFIG_GLOBAL").unwrap_or_else(|| home.join(".gitconfig"));
        let other = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("git/config");
        let own = [self.common_dir.join("config"), self.git_dir.join("config.worktree")];
        own.iter().chain([&global, &other]).map(|file| Stamp::of(file)).collect()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The lines with another time, except where our environment sets one. `None` if they have another form.
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

/// The lines with an agent as the author. `None` if they have another form, or the agent's name cannot be written
/// there.
fn by_agent(lines: Vec<u8>, agent: Option<&str>) -> Option<Vec<u8>> {
    let Some(name) = agent else {
        return Some(lines);
    };
    let end = memchr::memchr(b'\n', &lines).filter(|_| lines.starts_with(b"author "))?;
    let mail = memchr::memrchr(b'>', &lines[..end])?;
    let is_plain = !name.contains(['<', '>', '\n', '\0']) && name.trim() == name && !name.is_empty();
    is_plain.then(|| [format!("author {name} <{AGENT_ADDRESS}").as_bytes(), &lines[mail..]].concat())
}
