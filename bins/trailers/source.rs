//! The sources of messages: a revision, a range, a file or standard input.

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::Path,
};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, RawCommit, Repository},
    name::Oid,
};

/// What was named on the command line.
#[derive(Debug)]
pub(super) enum MessageSource {
    /// A single message, and its label.
    Text { label: String, message: Vec<u8> },
    /// One commit.
    Commit(RawCommit),
    /// All commits of a range.
    Range { repository: Box<Repository>, range: Range },
}

/// A range of commits.
#[derive(Debug)]
pub(super) struct Range {
    /// The range as typed.
    pub named: String,
    /// As an argument of `rev-list`, by ids only.
    pub revision: String,
}

impl MessageSource {
    /// `named` is a revision, a range or a file; `-` or nothing is standard input.
    pub(super) fn resolve(named: Option<&str>, file: Option<&Path>) -> Result<Self, Failure> {
        match (named, file) {
            (_, Some(file)) if file != Path::new("-") => read_file(file),
            (_, Some(_)) | (None | Some("-"), None) => read_stdin(),
            (Some(named), None) => find(named),
        }
    }
}

fn find(named: &str) -> Result<MessageSource, Failure> {
    let path = Path::new(named);
    let repository = match Repository::discover() {
        Ok(repository) => repository,
        Err(GitError::NoRepository { .. }) if path.is_file() => return read_file(path),
        Err(error) => return Err(error.into()),
    };
    if !path.is_file()
        && let Some(range) = Range::find(&repository, named)?
    {
        return Ok(MessageSource::Range { repository: Box::new(repository), range });
    }
    match (repository.find_commit(named)?, path.is_file()) {
        (Some(_), true) => Err(Failure::new(Exit::Usage, format!("'{named}' is both a revision and a file"))
            .hint("name the file with --file, or the revision as refs/heads/… or by its id")),
        (Some(id), false) => match repository.load_commits(&[id])?.pop() {
            Some(commit) => Ok(MessageSource::Commit(commit)),
            None => Err(unknown(named)),
        },
        (None, true) => read_file(path),
        (None, false) => Err(unknown(named)),
    }
}

impl Range {
    /// Parses a range: `A..B` is what B adds to A, `A...B` what either adds to the other, and a missing end is `HEAD`.
    /// Both ends are resolved first, so that git gets only ids.
    pub(super) fn find(repository: &Repository, named: &str) -> Result<Option<Self>, Failure> {
        let Some((from, to)) = named.split_once("..") else {
            return Ok(None);
        };
        let (dots, to) = to.strip_prefix('.').map_or(("..", to), |to| ("...", to));
        let end = |name: &str| require_commit(repository, if name.is_empty() { "HEAD" } else { name });
        let revision = format!("{}{dots}{}", end(from)?, end(to)?);
        Ok(Some(Self { named: named.to_owned(), revision }))
    }
}

/// The commit that `name` means, or an error with a hint.
pub(super) fn require_commit(repository: &Repository, name: &str) -> Result<Oid, Failure> {
    if let Some(commit) = repository.find_commit(name)? {
        return Ok(commit);
    }
    let failure = Failure::from(GitError::Unknown(name.to_owned(), "commit"));
    let base = name.split(['~', '^']).next().unwrap_or_default();
    Err(match base {
        "HEAD" | "@" if base == name => failure.hint("there is no commit yet"),
        "" => failure,
        base if base != name && repository.find_commit(base)?.is_some() => failure.hint(format!(
            "the history of '{base}' is shorter; its first commit: git rev-list --max-parents=0 {base}"
        )),
        _ => {
            failure.hint("see which branches there are with 'git branch --all'; get others with 'git fetch'")
        }
    })
}

fn unknown(named: &str) -> Failure {
    Failure::new(Exit::Fatal, format!("'{}' is neither a revision nor a file", named.escape_debug()))
        .hint("name a commit, a range such as main..HEAD, a file, or - for standard input")
}

fn read_file(path: &Path) -> Result<MessageSource, Failure> {
    let label = path.display().to_string();
    let message = fs::read(path).with_context(|| format!("could not read '{label}'"))?;
    Ok(MessageSource::Text { label, message })
}

fn read_stdin() -> Result<MessageSource, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nothing was named, and standard input is a terminal")
            .hint("name a commit such as HEAD, a range, a file, or - for standard input"));
    }
    let mut message = Vec::new();
    io::stdin().lock().read_to_end(&mut message).context("could not read standard input")?;
    Ok(MessageSource::Text { label: "standard input".into(), message })
}
