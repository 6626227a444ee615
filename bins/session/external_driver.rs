//! `git arborist session start`, `checkpoint` and `end`: for other drivers that record their work.

use std::collections::BTreeMap;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{GardenerError, start::new_session},
    git::Repository,
    history::{CommitSource, Run, RunScope},
    name::{BranchName, Oid, SessionId, TaskId},
    plan::Plan,
    progress::{PlanMarks, Progress},
    session::{
        Checkpoint, DraftRecord, Driver, RecordKind, RepositoryStart, SessionEnd, SessionError, SessionStart,
        SessionVerdict, SessionWriter, StoredRecord,
    },
};
use clap::{Args, ValueEnum};

use super::{
    commit_turn::SessionMark,
    document::RecordedDocument,
    open::{JsonArgs, OpenSessions, open},
    resume::lock,
};
use crate::{clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// The name of the pipeline
    #[arg(long, value_name = "NAME", default_value = "adhoc")]
    pipeline: String,
    /// The id, instead of a new one
    #[arg(long, value_name = "ID")]
    id: Option<SessionId>,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Args)]
pub(super) struct SessionArg {
    /// The session: its id, or a unique prefix
    #[arg(long, value_name = "SESSION")]
    pub(super) session: String,
}

#[derive(Debug, Args)]
pub(super) struct CheckpointArgs {
    #[command(flatten)]
    session: SessionArg,
    /// The task whose step has ended
    #[arg(long, value_name = "TASK")]
    node: Option<TaskId>,
    /// The step
    #[arg(long, value_name = "STEP", default_value = "implement", value_parser = STEPS)]
    step: String,
    /// How it ended
    #[arg(long, value_name = "STATUS", default_value = "pass", value_parser = STATUSES)]
    status: String,
    #[command(flatten)]
    json: JsonArgs,
}

/// The valid names of steps, as in the trailers of task commits.
const STEPS: [&str; 6] = ["plan", "implement", "test", "review", "complete", "merge"];
const STATUSES: [&str; 4] = ["pass", "fail", "approved", "rejected"];

#[derive(Debug, Args)]
pub(super) struct EndArgs {
    #[command(flatten)]
    session: SessionArg,
    /// How it ended [default: complete; for a paused run of git arborist: failed]
    #[arg(long, value_enum)]
    result: Option<ResultWord>,
    /// Further remarks
    #[arg(short, long, value_name = "WORDS", default_value = "")]
    message: String,
    #[command(flatten)]
    json: JsonArgs,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ResultWord {
    /// All was done.
    Complete,
    /// Something failed.
    Failed,
}

pub(super) fn start(args: &StartArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let repository = &opened.repository;
    let (branch, base) = place(repository)?;
    let session = args.id.clone().unwrap_or_else(|| new_session(base));
    let mark = SessionMark::new(&branch, &session);
    let start = session_start(repository, branch, base, &args.pipeline);
    let session_writer = SessionWriter::begin(repository, session.clone(), start, clock::now())?;
    // Changes that exist now are the user's, and belong to no turn.
    if repository.worktree.is_some() {
        mark.set(repository, repository.snapshot()?, base)?;
    }
    if !args.json.json {
        ui.line(session.as_str());
    }
    print_newest(&session_writer, &args.json, ui)
}

/// The start of a session of another driver, which begins at `base`.
pub(super) fn session_start(
    repository: &Repository,
    branch: BranchName,
    base: Oid,
    pipeline: &str,
) -> SessionStart {
    SessionStart {
        repositories: vec![RepositoryStart { name: name_of(repository), branch, base }],
        plan: None,
        pipeline: pipeline.to_owned(),
        driver: Driver::Other,
        options: BTreeMap::new(),
        withheld: Vec::new(),
        forked_from: None,
        offline: false,
    }
}

/// Prints the newest record, if requested.
fn print_newest(session_writer: &SessionWriter, args: &JsonArgs, ui: &mut Ui) -> Outcome {
    if !args.json {
        return Ok(Exit::Done);
    }
    let StoredRecord { commit, record } = session_writer.newest();
    document::print(ui, &RecordedDocument { commit: commit.to_string(), record })
}

/// The checked out branch, and its commit.
pub(super) fn place(repository: &Repository) -> Result<(BranchName, Oid), Failure> {
    let branch = repository.head.branch.clone().ok_or_else(|| GardenerError::detached(repository))?;
    let base = repository.head.commit.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
    Ok((branch, base))
}

/// The name of the repository: that of its directory.
pub(super) fn name_of(repository: &Repository) -> String {
    let folder = repository.top().file_name().map(|name| name.to_string_lossy().into_owned());
    folder.unwrap_or_else(|| "repository".into())
}

/// The writer of a session that another driver has started, whose branch is checked out here.
pub(super) fn session_writer(opened: &OpenSessions, args: &SessionArg) -> Result<SessionWriter, Failure> {
    let newest = opened.session_list.require(&args.session)?;
    let record = &newest.record;
    let session = &record.session;
    if record.context.driver == Driver::Run {
        let words = format!("session '{session}' is a run of git arborist, which records its turns itself");
        return Err(Failure::new(Exit::No, words).hint("start your own session: git arborist session start"));
    }
    refuse_ended(newest)?;
    let (branch, _) = place(&opened.repository)?;
    if branch != record.context.branch {
        let words = format!(
            "session '{session}' works on '{}', but '{branch}' is checked out",
            record.context.branch
        );
        return Err(Failure::new(Exit::Person, words)
            .hint(format!("switch to it: git switch {}", record.context.branch)));
    }
    Ok(SessionWriter::after(&opened.repository, newest.clone()))
}

pub(super) fn checkpoint(args: &CheckpointArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let session_writer = session_writer(&opened, &args.session)?;
    let (_, head) = place(&opened.repository)?;
    let newest = opened.session_list.require(&args.session.session)?;
    let before = match opened.session_reader().checkpoint_of(newest)? {
        Some(stored) => stored.record.context.head,
        None => opened.session_reader().start_of(newest)?.record.context.head,
    };
    let has_changed = before != head;
    let snapshot = has_changed.then(|| (name_of(&opened.repository), head));
    let kind = RecordKind::Checkpoint(Checkpoint {
        node: args.node.clone(),
        step: args.step.clone(),
        status: args.status.clone(),
        snapshot: snapshot.into_iter().collect(),
    });
    append(&session_writer, &kind, head)?;
    print_newest(&session_writer, &args.json, ui)
}

pub(super) fn end(args: &EndArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let newest = opened.session_list.require(&args.session.session)?;
    if newest.record.context.driver == Driver::Run {
        return give_up(&opened, newest, args, ui);
    }
    let session_writer = session_writer(&opened, &args.session)?;
    let (branch, head) = place(&opened.repository)?;
    let result = match args.result {
        None | Some(ResultWord::Complete) => SessionVerdict::Complete,
        Some(ResultWord::Failed) => SessionVerdict::Failed,
    };
    let kind = RecordKind::End(SessionEnd { result, words: args.message.clone() });
    append(&session_writer, &kind, head)?;
    SessionMark::new(&branch, session_writer.session()).take_away(&opened.repository)?;
    print_newest(&session_writer, &args.json, ui)
}

/// Ends a paused or killed run, so that nothing waits for it. Its branch and its records stay.
fn give_up(opened: &OpenSessions, newest: &StoredRecord, args: &EndArgs, ui: &mut Ui) -> Outcome {
    let (session, branch) = (&newest.record.session, &newest.record.context.branch);
    let _lock = lock(&opened.repository, branch)?;
    refuse_ended(newest)?;
    if args.result == Some(ResultWord::Complete) {
        let words =
            format!("session '{session}' is a run of git arborist, which decides itself when it is complete");
        let hint = format!("continue it: git arborist session resume {session}");
        return Err(Failure::new(Exit::No, words).hint(hint));
    }
    let tip = opened.repository.find_branch(branch)?.unwrap_or(newest.record.context.tip);
    // A run whose tasks are all done has not failed. One that cannot be read can still be ended.
    let is_done = args.result.is_none() && is_all_done(&opened.repository, branch, tip).unwrap_or(false);
    let (result, usual) = match is_done {
        true => (SessionVerdict::Complete, "all tasks are done"),
        false => (SessionVerdict::Failed, "given up"),
    };
    let words = if args.message.is_empty() { usual.to_owned() } else { args.message.clone() };
    let session_writer = SessionWriter::after(&opened.repository, newest.clone());
    append(&session_writer, &RecordKind::End(SessionEnd { result, words }), tip)?;
    if !args.json.json {
        ui.note(&match is_done {
            true => format!("ended session '{session}'; it is recorded as complete"),
            false => format!(
                "ended session '{session}'; not all of its tasks are done, so it is recorded as failed"
            ),
        });
    }
    print_newest(&session_writer, &args.json, ui)
}

/// Whether all tasks of the run of this branch are done and on the branch.
fn is_all_done(repository: &Repository, branch: &BranchName, tip: Oid) -> Result<bool, Failure> {
    let scope = RunScope { branch: branch.clone(), tip: Some(tip) };
    let run = Run::scan(repository, scope, CommitSource::Fresh)?;
    let plan = Plan::read_frozen(repository, run.frozen_plan())?.transpose()?;
    Ok(plan.is_some_and(|plan| Progress::new(Some(&plan), &run, PlanMarks::Count).is_done()))
}

fn refuse_ended(newest: &StoredRecord) -> Result<(), Failure> {
    match newest.record.kind {
        RecordKind::End(_) => {
            let words = format!("session '{}' has ended", newest.record.session);
            Err(Failure::new(Exit::No, words).hint("start another: git arborist session start"))
        }
        _ => Ok(()),
    }
}

/// Records something about the branch at `head`.
pub(super) fn append(session_writer: &SessionWriter, kind: &RecordKind, head: Oid) -> Outcome {
    let draft = |_| Ok::<_, SessionError>(DraftRecord::at(head, kind.clone()));
    session_writer.append(clock::now(), draft)?;
    Ok(Exit::Done)
}
