//! `git arborist session which`.

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, Repository},
    message::visible,
    name::Oid,
    session::{CommitOrigin, SessionReader},
    workspace::list_plan_repositories,
};
use clap::Args;

use super::{
    document::WhichDocument,
    list::fetch_records,
    open::{JsonArgs, OpenSessions, open},
    other_repos::OtherRepos,
};
use crate::{document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// The commit, in this repository or another one of the workspace
    #[arg(value_name = "COMMIT")]
    commit: String,
    #[command(flatten)]
    json: JsonArgs,
}

/// Where a commit comes from, and the name of its repository if it is another one.
type Found = (CommitOrigin, Option<String>);

pub(super) fn run(args: &WhichArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let other_repos = OtherRepos::of(&opened);
    let (commit, found) = match opened.repository.find_commit(&args.commit)? {
        Some(commit) => (commit, origin_here(&opened.repository, commit)?.map(|origin| (origin, None))),
        None => origin_in_others(&opened, &other_repos, &args.commit)?,
    };
    let Some((origin, repository)) = found else {
        return Err(Failure::new(
            Exit::No,
            format!("no recorded session made the commit {}", commit.short()),
        ));
    };
    let document = WhichDocument::new(commit.to_string(), &origin, repository);
    if args.json.json {
        document::print(ui, &document)?;
    } else {
        print_document(ui, document);
    }
    if origin.is_proven() {
        return Ok(Exit::Done);
    }
    ui.warn(match origin.is_known {
        true => "this is what its trailers say, but the records of the session name another commit",
        false => {
            "this is what the commit's trailers say; the record of the session is not in this repository"
        }
    });
    if !origin.is_known {
        let remotes = opened.repository.list_remotes()?;
        remotes.first().iter().for_each(|remote| ui.hint(&fetch_records(remote)));
        ui.hint("if the session is one of a workspace, run this command in the repository with its plan");
    }
    Ok(Exit::No)
}

fn print_document(ui: &mut Ui, document: WhichDocument) {
    let word = |name: &str, value: Option<String>| value.map(|value| format!("{name} {}", visible(&value)));
    let words = [
        word("repository", document.repository),
        word("session", Some(document.session)),
        word("task", document.node),
        word("turn", document.turn.map(|turn| turn.to_string())),
        word("model", document.model),
        word("provider", document.provider),
    ];
    words.into_iter().flatten().for_each(|line| ui.line(&line));
}

/// Where a commit of this repository comes from. The records may be in the plan's repository.
fn origin_here(repository: &Repository, commit: Oid) -> Result<Option<CommitOrigin>, Failure> {
    let Some(origin) = SessionReader::new(repository).origin(repository, commit)? else {
        return Ok(None);
    };
    if !origin.is_known {
        for main in list_plan_repositories(repository) {
            match SessionReader::new(&main).origin(repository, commit) {
                Ok(Some(known_origin)) if known_origin.is_known => return Ok(Some(known_origin)),
                _ => {}
            }
        }
    }
    Ok(Some(origin))
}

/// Where a commit of another repository of the workspace comes from, with the name of that repository.
fn origin_in_others(
    opened: &OpenSessions,
    other_repos: &OtherRepos<'_>,
    revision: &str,
) -> Result<(Oid, Option<Found>), Failure> {
    let Some(((name, repository), commit)) = other_repos.find_commit(revision)? else {
        return Err(Failure::new(Exit::No, GitError::Unknown(revision.to_owned(), "commit").to_string()));
    };
    let origin = opened.session_reader().origin(repository, commit)?;
    Ok((commit, origin.map(|origin| (origin, Some(name.clone())))))
}
