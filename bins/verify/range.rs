//! The commits that are verified: a range, a session, a revision, or a default.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{GitError, Repository},
    history::Event,
    message::Status,
    name::{Oid, SessionId},
    process::shell_word,
    session::{RecordKind, SessionError, SessionReader, StoredRecord},
    verify::VerifyRange,
};

/// The range that was asked for.
pub(super) fn find(repository: &Repository, argument: Option<&str>) -> Result<VerifyRange, Failure> {
    let Some(argument) = argument else { return default_range(repository) };
    if argument.contains("...") {
        let failure = Failure::new(Exit::Usage, format!("'{argument}' is not a range of one branch"));
        return Err(failure.hint("write it with two dots, such as main..HEAD"));
    }
    if let Some((from, to)) = argument.split_once("..") {
        let end = |name: &str| require_commit(repository, if name.is_empty() { "HEAD" } else { name });
        let (from, to) = (Some(end(from)?), end(to)?);
        return Ok(VerifyRange { shown: argument.to_owned(), from, to, session: None });
    }
    if let Some(range) = find_session(repository, argument)? {
        return Ok(range);
    }
    if let Some(to) = repository.find_commit(argument)? {
        return Ok(VerifyRange { shown: argument.to_owned(), from: None, to, session: None });
    }
    find_in_history(repository, argument)?.ok_or_else(|| {
        Failure::new(Exit::No, format!("'{argument}' is not a range, a session or a revision"))
            .hint("name a range such as main..HEAD, a commit, or a session that 'git arborist session list' shows; a single task cannot be verified")
    })
}

/// What HEAD adds to its upstream. If it adds nothing, or has none, everything in the history of HEAD.
fn default_range(repository: &Repository) -> Result<VerifyRange, Failure> {
    let to = require_commit(repository, "HEAD")?;
    let upstream = match &repository.head.branch {
        Some(branch) => repository.find_upstream(branch)?,
        None => None,
    };
    if let Some(upstream) = upstream
        && let Some(from) = repository.find_commit(upstream.shown())?
        && !repository.is_ancestor(to, from)?
    {
        let shown = format!("{}..HEAD", upstream.shown());
        return Ok(VerifyRange { shown, from: Some(from), to, session: None });
    }
    Ok(VerifyRange { shown: "HEAD".to_owned(), from: None, to, session: None })
}

/// The range of a session, by its records.
fn find_session(repository: &Repository, argument: &str) -> Result<Option<VerifyRange>, Failure> {
    let reader = SessionReader::new(repository);
    match reader.list()?.require(argument) {
        Ok(newest) => range_of_record(repository, &reader, newest).map(Some),
        Err(SessionError::Unknown(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn range_of_record(
    repository: &Repository,
    reader: &SessionReader<'_>,
    newest: &StoredRecord,
) -> Result<VerifyRange, Failure> {
    let RecordKind::Start(start) = reader.start_of(newest)?.record.kind else {
        let words = format!("the first record of session '{}' is not its start", newest.record.session);
        return Err(Failure::new(Exit::Fatal, words));
    };
    let context = &newest.record.context;
    let to = repository.find_branch(&context.branch)?.unwrap_or(context.tip);
    let from = start.repositories.first().map(|first| first.base);
    Ok(range_of(&newest.record.session, from, to))
}

/// The range of a session whose records are not in this clone: from the start of its run in the history of HEAD.
fn find_in_history(repository: &Repository, argument: &str) -> Result<Option<VerifyRange>, Failure> {
    let (Some(head), Ok(session)) = (repository.head.commit, argument.parse::<SessionId>()) else {
        return Ok(None);
    };
    for commit in repository.stream_commits(&[head.to_string()])? {
        let commit = repository.exact(commit?)?;
        let start = Event::of(&commit).filter(|event| event.status() == Status::RunStart);
        if start.is_some_and(|start| start.session().as_ref() == Some(&session)) {
            return Ok(Some(range_of(&session, commit.parents().next(), head)));
        }
    }
    Ok(None)
}

fn range_of(session: &SessionId, from: Option<Oid>, to: Oid) -> VerifyRange {
    VerifyRange { shown: format!("session {session}"), from, to, session: Some(session.clone()) }
}

fn require_commit(repository: &Repository, name: &str) -> Result<Oid, Failure> {
    let found = repository.find_commit(name)?;
    if let (None, None, Some(branch)) = (&found, &repository.head.commit, &repository.head.branch) {
        return Err(GardenerError::Unborn(branch.clone()).into());
    }
    found.ok_or_else(|| {
        Failure::new(Exit::No, GitError::Unknown(name.to_owned(), "commit").to_string())
            .hint(advice_on_missing(repository, name))
    })
}

/// How to find a commit that is not here.
fn advice_on_missing(repository: &Repository, name: &str) -> String {
    if repository.is_shallow {
        return "get the rest of the history with: git fetch --unshallow".to_owned();
    }
    let start = name.split(['~', '^']).next().filter(|start| *start != name);
    match start.filter(|start| repository.find_commit(start).is_ok_and(|found| found.is_some())) {
        Some(start) => {
            format!("its history is shorter; see it with: git log --oneline {}", shell_word(start))
        }
        None => "get other branches with: git fetch".to_owned(),
    }
}
