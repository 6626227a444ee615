//! Where messages come from: a revision, a range, a file or standard input.

use std::{
    fs,
    io::{self, IsTerminal, Read},
    path::Path,
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, RawCommit, Repository},
};

/// What was named on the command line.
#[derive(Debug)]
pub(super) enum Source {
    /// A message by itself, and what to call it.
    Text { label: String, message: Vec<u8> },
    /// One commit.
    Commit(RawCommit),
    /// All commits of a range.
    Range { repository: Repository, range: String },
}

impl Source {
    /// `named` is a revision, a range or a file; `-` or nothing is standard input.
    pub(super) fn resolve(named: Option<&str>, file: Option<&Path>) -> Result<Self, Failure> {
        match (named, file) {
            (_, Some(file)) => read_file(file),
            (None | Some("-"), None) => read_stdin(),
            (Some(named), None) => find(named),
        }
    }
}

fn find(named: &str) -> Result<Source, Failure> {
    let path = Path::new(named);
    let repository = match Repository::discover() {
        Ok(repository) => repository,
        Err(GitError::NoRepository { .. }) if path.is_file() => return read_file(path),
        Err(error) => return Err(error.into()),
    };
    if named.contains("..") && !path.is_file() {
        return range(repository, named);
    }
    match (repository.find_commit(named)?, path.is_file()) {
        (Some(_), true) => Err(Failure::new(Exit::Usage, format!("'{named}' is both a revision and a file"))
            .hint("name the file with --file, or the revision as refs/heads/… or by its id")),
        (Some(id), false) => match repository.load_commits(&[id])?.pop() {
            Some(commit) => Ok(Source::Commit(commit)),
            None => Err(unknown(named)),
        },
        (None, true) => read_file(path),
        (None, false) => Err(unknown(named)),
    }
}

/// Both ends are looked up first, so that what is handed to git can only be a range.
fn range(repository: Repository, named: &str) -> Result<Source, Failure> {
    let (from, to) = named.split_once("..").unwrap_or((named, ""));
    let dots = if to.starts_with('.') { "..." } else { ".." };
    let end = |name: &str| match name.trim_start_matches('.') {
        "" => repository.require_commit("HEAD"),
        name => repository.require_commit(name),
    };
    let range = format!("{}{dots}{}", end(from)?, end(to)?);
    Ok(Source::Range { repository, range })
}

fn unknown(named: &str) -> Failure {
    Failure::new(Exit::Fatal, format!("'{}' is neither a revision nor a file", named.escape_debug()))
        .hint("name a commit, a range such as main..HEAD, a file, or - for standard input")
}

fn read_file(path: &Path) -> Result<Source, Failure> {
    let label = path.display().to_string();
    match fs::read(path) {
        Ok(message) => Ok(Source::Text { label, message }),
        Err(error) => Err(Failure::new(Exit::Fatal, format!("could not read '{label}': {error}"))),
    }
}

fn read_stdin() -> Result<Source, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nothing was named, and standard input is a terminal")
            .hint("name a commit such as HEAD, a range, a file, or - for standard input"));
    }
    let mut message = Vec::new();
    match io::stdin().lock().read_to_end(&mut message) {
        Ok(_) => Ok(Source::Text { label: "standard input".into(), message }),
        Err(error) => Err(Failure::new(Exit::Fatal, format!("could not read standard input: {error}"))),
    }
}
