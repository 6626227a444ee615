//! `git arborist session replay`: starts a new session at a turn of another one, on its own branch. The other session
//! is not touched.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::start::{FrozenPlan, new_session, write_start_of},
    git::RefMove,
    history::State,
    message::{Body, Key, PlanRef, Status, SubjectParts},
    name::{Attempt, BranchName, Oid, PipelineName, SessionId},
    process::Cancel,
    record::{RunRecorder, TaskEvent},
    run::bring_file,
    session::{Driver, Fork, RecordedOptions, RepositoryStart, SessionStart, SessionWriter, StoredRecord},
    settings::TRACKED_FILES,
    worktree::SessionWorktree,
};
use clap::Args;

use super::{
    approvals,
    external_driver::name_of,
    moment::{self, Moment},
    open::{IdArgs, OpenSessions, open},
    other_repos,
    resume::lock,
    resume_options::ContinueArgs,
    session_worktree::{run_in_session_worktree, session_worktree},
    show::start_in,
};
use crate::{clock, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    id: IdArgs,
    /// The turn to start from; 0 is the start of the session
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u32>)]
    turn: u32,
    /// Call no agent: replay the recorded output and commits of the turns after this one
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    continue_args: ContinueArgs,
}

pub(super) fn run(args: &ReplayArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let newest = opened.require(&args.id)?;
    if newest.record.context.driver == Driver::Other {
        let words = format!(
            "session '{}' was recorded by another program, so it has no plan to continue",
            newest.record.session
        );
        return Err(Failure::new(Exit::No, words));
    }
    let moment = Moment::of(&opened, newest, args.turn)?;
    let commit = moment.commit;
    let first = opened.session_reader().start_of(newest)?;
    let start = start_in(&first)?;
    let mut resume_options = args.continue_args.recorded(&opened, newest)?;
    let plan = start.plan.as_deref().and_then(PlanRef::parse).ok_or_else(|| {
        let session = &newest.record.session;
        let words = format!("session '{session}' began without a plan file, so it cannot be replayed");
        let turn = args.turn;
        Failure::new(Exit::No, words).hint(format!(
            "to go back to that turn in the session itself, run: git arborist session resume {session} --turn {turn}"
        ))
    })?;
    if args.offline {
        require_recording(&opened, newest, start, args.turn)?;
        // No agent is called, so these are not used.
        resume_options.approvals.clear();
    }
    let configured = moment::configured_in(&opened, newest, args.turn, &moment)?;
    approvals::require(&opened, &resume_options, configured, Some(&plan), None, ui)?;
    let RecordedOptions { options, withheld } = match resume_options.changed_options(&opened, newest)? {
        Some(given) => given,
        None => opened.session_reader().recorded_options_of(newest)?,
    };
    // Nothing is written before this. `begin` creates the branch and the session's first record at once. If the process is
    // killed in a later step, a session without a run is left, and the same command makes another one.
    let start = SessionStart { options, withheld, offline: args.offline, ..start.clone() };
    let (session, branch) = begin(&opened, newest, &start, args.turn, commit)?;
    let session_worktree = session_worktree(&opened, &branch, &session, &args.continue_args, ui)?;
    bring_configuration(&opened, &session_worktree, configured, commit)?;
    write_history(&opened, &session_worktree, newest, &session, &branch, &moment, &plan)?;
    ui.note(&format!(
        "new session '{session}', from turn {} of session '{}', on the branch '{branch}' in '{}'",
        args.turn,
        newest.record.session,
        session_worktree.path.display()
    ));
    // For scripts. On a terminal, the note has said it.
    if !args.continue_args.json && !ui.is_terminal() {
        ui.line(session.as_str());
    }
    let _ = ui.finish();
    if args.offline {
        resume_options.without_agents();
        resume_options.switch("offline");
    }
    run_in_session_worktree(&session_worktree, &branch, resume_options)
}

/// Checks that everything to replay is here, before anything is started.
fn require_recording(
    opened: &OpenSessions,
    newest: &StoredRecord,
    start: &SessionStart,
    turn: u32,
) -> Result<(), Failure> {
    other_repos::require_all(opened, newest, start)?;
    let recording = opened.session_reader().recording(newest, turn)?;
    if recording.calls.values().all(Vec::is_empty) {
        let words = format!("session '{}' recorded nothing after turn {turn}", newest.record.session);
        return Err(Failure::new(Exit::No, words));
    }
    Ok(())
}

/// Creates the branch and the first record.
fn begin(
    opened: &OpenSessions,
    newest: &StoredRecord,
    start: &SessionStart,
    turn: u32,
    commit: Oid,
) -> Result<(SessionId, BranchName), Failure> {
    let repository = &opened.repository;
    let session = new_session(commit);
    let pipeline = PipelineName::new(&start.pipeline);
    let workspace = opened.workspace(&Cancel::new())?;
    let branch = workspace.main().session_branch(&pipeline, &session)?;
    let name = branch.to_ref();
    let made = RefMove { name: &name, new: Some(commit), old: None };
    let place = RepositoryStart { name: name_of(repository), branch: branch.clone(), base: commit };
    let forked_from = Some(Fork { session: newest.record.session.clone(), turn });
    let mut repositories = vec![place];
    for other in other_repos::at(opened, newest, (turn, commit))? {
        repositories.push(other.fork(&pipeline, &session)?);
    }
    let start = SessionStart { repositories, forked_from, ..start.clone() };
    SessionWriter::begin_with(repository, session.clone(), start, clock::now(), &[made])?;
    Ok((session, branch))
}

/// Brings the configuration of one commit into the worktree of another; the start of the run commits it.
fn bring_configuration(
    opened: &OpenSessions,
    session_worktree: &SessionWorktree,
    configured: Oid,
    commit: Oid,
) -> Result<(), Failure> {
    let repository = &opened.repository;
    for path in TRACKED_FILES {
        let blob = repository.find_path(configured, path)?;
        if blob == repository.find_path(commit, path)? {
            continue;
        }
        if let Some(bytes) = blob.map(|blob| repository.find_blob(blob)).transpose()?.flatten() {
            bring_file(&session_worktree.path, path, &bytes)?;
        }
    }
    Ok(())
}

/// Writes the start of the new run on its branch, and the states of all tasks right after the turn. Holds the lock of the
/// new run while it writes.
fn write_history(
    opened: &OpenSessions,
    session_worktree: &SessionWorktree,
    newest: &StoredRecord,
    session: &SessionId,
    branch: &BranchName,
    moment: &Moment,
    plan: &PlanRef,
) -> Result<(), Failure> {
    let repository = &opened.repository;
    let _lock = lock(repository, branch)?;
    // The plan that was frozen at that turn, not the file: agents may have edited the file by then.
    let frozen = moment::frozen_plan(opened, newest, moment)?;
    let mut recorder =
        RunRecorder::new(&session_worktree.repository, branch.clone(), session.clone(), moment.commit)?;
    let freeze = FrozenPlan::Kept(frozen.as_ref().unwrap_or(plan));
    write_start_of(&mut recorder, freeze, Some(&newest.record.session))?;
    for past in moment::past_tasks(opened, newest, moment)? {
        if past.state().state != State::Complete {
            past.repeat(&mut recorder)?;
            continue;
        }
        past.repeat_passed(&mut recorder)?;
        let report = past.events.iter().rev().find_map(|event| event.trailers.get(Key::Report));
        let wording = SubjectParts { name: &past.name, attempt: Attempt(0), max: 0 };
        let mut entry = TaskEvent::new(past.task.clone(), Status::Complete, wording);
        entry.body = Body::new("Completed before:", &format!("in session {}", newest.record.session));
        let _ = entry.trailers.set(Key::Report, report.unwrap_or("none"));
        let tree = recorder.tree();
        recorder.record(entry, tree)?;
    }
    Ok(())
}
