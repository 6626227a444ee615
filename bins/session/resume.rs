//! `git arborist session resume`: continues a session on its own branch, wherever that is checked out.

use std::time::Duration;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::start::difference,
    git::Repository,
    history::Run,
    message::PlanRef,
    name::{BranchName, Oid},
    plan::Plan,
    process::{FileLock, shell_word},
    run::{bring_file, lock_branch, replay_only_error},
    safe_files,
    session::{
        DamagedRecord, Driver, Record, RecordKind, Resumed, SessionEnd, SessionError, SessionState,
        SessionVerdict, SessionWriter, StoredRecord,
    },
    worktree::SessionWorktree,
};
use clap::Args;

use super::{
    approvals,
    external_driver::append,
    fetch::{self, fetch},
    moment::{self, Moment},
    open::{OpenSessions, open},
    restore,
    resume_options::{ContinueArgs, ResumeOptions},
    session_worktree::{Follow, is_own_branch, run_in_session_worktree, session_worktree},
};
use crate::{approval, clock, entry::Outcome, gardening::release_branch, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The session: its id, or a unique prefix [default: the only unfinished one]
    #[arg(value_name = "SESSION")]
    id: Option<String>,
    /// Put the files back as they were after this turn, and continue from there; later turns stay in history
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u32>)]
    turn: Option<u32>,
    /// Continue although the plan has changed since (also --accept-changes)
    #[arg(long, alias = "accept-changes")]
    plan_changed: bool,
    #[command(flatten)]
    continue_args: ContinueArgs,
}

/// How long a session without a recorded pause is assumed to be at work in another clone.
const BUSY: Duration = Duration::from_secs(30 * 60);

pub(super) fn run(args: &ResumeArgs, ui: &mut Ui) -> Outcome {
    let mut opened = open(ui)?;
    let is_known = match &args.id {
        Some(id) => opened.session_list.require(id).is_ok(),
        None => !left(&opened).is_empty(),
    };
    let known: Vec<Oid> = opened.session_list.sessions.iter().map(|stored| stored.commit).collect();
    fetch(&mut opened, is_known, &args.continue_args, ui)?;
    if let Some(id) = &args.id
        && let Err(error) = opened.session_list.require(id)
    {
        return Err(find_damaged(id).unwrap_or_else(|| match error {
            SessionError::Unknown(id) => without_record(&opened, id),
            error => error.into(),
        }));
    }
    let has_followed =
        args.turn.is_none() && fetch::follow(&opened, args.id.as_deref(), &args.continue_args, ui)?;
    if has_followed && (args.id.is_some() || left(&opened).is_empty()) {
        return Ok(Exit::Done);
    }
    let newest = find(&opened, args, &known)?;
    let state = opened.state_of(newest);
    refuse(&opened.repository, newest, state, args.turn)?;
    Resuming::prepare(&opened, args, newest, ui)?.enter(ui)
}

/// A session that is about to continue.
struct Resuming<'a> {
    opened: &'a OpenSessions,
    args: &'a ResumeArgs,
    newest: &'a StoredRecord,
    /// The run on the session's branch.
    history: Run,
    options: ResumeOptions<'a>,
    session_worktree: SessionWorktree,
    had_failed: bool,
}

impl<'a> Resuming<'a> {
    /// Brings the branch and its worktree to their place, once the user has approved what the session may run.
    fn prepare(
        opened: &'a OpenSessions,
        args: &'a ResumeArgs,
        newest: &'a StoredRecord,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let (record, branch) = (&newest.record, &newest.record.context.branch);
        let moment = args.turn.map(|number| Moment::of(opened, newest, number)).transpose()?;
        let had_failed = had_failed(opened, newest)?;
        let options = args.continue_args.recorded(opened, newest)?;
        let follow = Follow::find(&opened.repository, record)?;
        let history = follow.history()?;
        refuse_other(record, &history, args.turn)?;
        if let Some(start) = &history.start {
            approvals::require(opened, &options, start.accepted, start.plan.as_ref(), Some(branch), ui)?;
        }
        if let Some(moment) = moment {
            // The plan and the configuration of that turn are in force again.
            let plan = moment::restored_plan(opened, newest, &history, &moment)?;
            approvals::require(opened, &options, moment.commit, plan.as_ref(), Some(branch), ui)?;
        }
        // If it is checked out, it is not moved.
        if !is_own_branch(opened, record)? && opened.repository.checkouts_of(branch)?.is_empty() {
            let moved = follow.required_approval().into_iter().collect();
            approval::require(&opened.repository, &moved, args.continue_args.consent(), ui)?;
        }
        follow.go(ui)?;
        let session_worktree = session_worktree(opened, branch, &record.session, &args.continue_args, ui)?;
        Ok(Self { opened, args, newest, history, options, session_worktree, had_failed })
    }

    /// Executes the run. If it does not start, the user gets a branch back that was moved to a new worktree.
    fn enter(mut self, ui: &mut Ui) -> Outcome {
        let (opened, record) = (self.opened, &self.newest.record);
        let has_borrowed_branch = self.session_worktree.is_made && !is_own_branch(opened, record)?;
        if has_borrowed_branch {
            self.options.switch("give-back");
        }
        let was_entered_now = self.session_worktree.was_entered_now;
        let stopped = self.execute(ui);
        if has_borrowed_branch && was_entered_now {
            release_branch(&opened.repository, &record.context.branch, ui);
        }
        stopped
    }

    /// Executes the run where the branch is checked out, unless something is in the way.
    fn execute(mut self, ui: &mut Ui) -> Outcome {
        let Self { opened, args, newest, .. } = self;
        let session_worktree = &self.session_worktree;
        let (record, branch) = (&newest.record, &newest.record.context.branch);
        let has_changed = self.find_changed_plan()?;
        let session_writer = SessionWriter::after(&opened.repository, newest.clone());
        let commit = match args.turn {
            Some(number) => restore::turn(opened, newest, session_worktree, &self.history, number, ui)?,
            None => opened.repository.require_commit(&branch.to_ref())?,
        };
        if let Some(changed) = &has_changed {
            // The run commits it as an accepted change.
            bring_file(&session_worktree.path, &changed.path, &changed.bytes)?;
        }
        let new_options = self.options.changed_options(opened, newest)?;
        append(
            &session_writer,
            &RecordKind::Resume(Resumed { turn: args.turn, commit, asked: new_options }),
            commit,
        )?;
        if self.had_failed && args.turn.is_none() {
            self.options.switch("retry-failed");
        }
        if has_changed.is_some() || args.plan_changed {
            self.options.switch("accept-changes");
        }
        self.options.switch("resumed");
        let path = session_worktree.path.display();
        ui.note(&format!("continuing session '{}' on '{branch}' in '{path}'", record.session));
        run_in_session_worktree(session_worktree, branch, self.options)
    }

    /// The plan, if it has changed and the user wants the new one.
    fn find_changed_plan(&self) -> Result<Option<ChangedPlan>, Failure> {
        let found = plan_has_changed(&self.opened.repository, &self.session_worktree, &self.history)?;
        match found {
            Some(changed) if !self.args.plan_changed => {
                let session = &self.newest.record.session;
                let words =
                    format!("the plan has changed since session '{session}' was paused:\n{}", changed.words);
                let hint = format!(
                    "to continue with the new plan, run: git arborist session resume {session} --plan-changed"
                );
                Err(Failure::new(Exit::Person, words).hint(hint))
            }
            found => Ok(found),
        }
    }
}

/// The selected session. Without a name, the only unfinished one; others may have just been fetched.
fn find<'a>(opened: &'a OpenSessions, args: &ResumeArgs, known: &[Oid]) -> Result<&'a StoredRecord, Failure> {
    if let Some(id) = &args.id {
        return Ok(opened.session_list.require(id)?);
    }
    let (running, idle): (Vec<&StoredRecord>, Vec<&StoredRecord>) =
        left(opened).into_iter().partition(|stored| opened.state_of(stored) == SessionState::Running);
    match idle.as_slice() {
        // A running session cannot be continued, and the caller says so.
        [] if !running.is_empty() => Ok(running[0]),
        [] => Err(find_damaged("").unwrap_or_else(|| {
            Failure::new(Exit::No, "no unfinished session is recorded in this repository")
                .hint("see all sessions: git arborist session list")
                .hint("to continue the run of a branch without its records, run the command again that started it")
                .hint("to go back to a turn of one: git arborist session resume <session> --turn <number>")
        })),
        [only] => refuse_busy(opened, only, known).map(|()| *only),
        several => {
            let lines: Vec<String> = several
                .iter()
                .map(|stored| {
                    let (record, state) = (&stored.record, opened.state_of(stored).as_str());
                    format!("  {}  {state}  {}", record.session, record.context.branch)
                })
                .collect();
            let words = format!("several sessions can be continued:\n{}", lines.join("\n"));
            Err(Failure::new(Exit::Person, words).hint("name one: git arborist session resume <session>"))
        }
    }
}

/// The error for a session that has no record. Its branch may have been pushed without it.
fn without_record(opened: &OpenSessions, id: String) -> Failure {
    let branches = opened.repository.list_refs(&["refs/heads/", "refs/remotes/"]).unwrap_or_default();
    let is_its = |name: &str| name.rsplit('/').next() == Some(id.as_str());
    let Some(found) = branches.iter().find(|found| is_its(&found.name)) else {
        return SessionError::Unknown(id).into();
    };
    let branch = match found.name.strip_prefix("refs/remotes/") {
        Some(tracked) => tracked.split_once('/').map_or(tracked, |(_, branch)| branch),
        None => found.name.trim_start_matches("refs/heads/"),
    };
    let words = format!("the record of session '{id}' was not pushed, only its branch '{branch}'");
    Failure::new(Exit::No, words).hint(format!(
        "continue from its commits: git switch {} && git arborist gardener",
        shell_word(branch)
    ))
}

/// The error for a session whose record cannot be read and whose id begins with this, if there is one. Call this after
/// the sessions were listed.
fn find_damaged(prefix: &str) -> Option<Failure> {
    let mut damaged = DamagedRecord::list().into_iter();
    let found = damaged.find(|damaged| damaged.session.as_str().starts_with(prefix))?;
    Some(SessionError::Damaged(found).into())
}

/// Unfinished runs. Replays are continued only by name.
fn left(opened: &OpenSessions) -> Vec<&StoredRecord> {
    let is_left = |stored: &&StoredRecord| {
        let context = &stored.record.context;
        let is_run = context.driver == Driver::Run && context.forked_from.is_none();
        is_run && opened.state_of(stored) != SessionState::Complete
    };
    opened.session_list.sessions.iter().filter(is_left).collect()
}

/// Refuses a session whose newest record is recent and was not written here: it may be at work in another clone.
fn refuse_busy(opened: &OpenSessions, stored: &StoredRecord, known: &[Oid]) -> Result<(), Failure> {
    let record = &stored.record;
    let is_at_rest = matches!(record.kind, RecordKind::Pause(_) | RecordKind::End(_));
    let is_recent = clock::now().saturating_sub(record.time) < BUSY.as_secs().cast_signed();
    let was_here =
        known.contains(&stored.commit) && opened.repository.run_lock(&record.context.branch).exists();
    if is_at_rest || was_here || !is_recent {
        return Ok(());
    }
    let session = &record.session;
    let words = format!(
        "session '{session}' may be running on another machine: its last record is from {}",
        clock::ago(record.time)
    );
    Err(Failure::new(Exit::Person, words)
        .hint(format!("if it is not, run: git arborist session resume {session}")))
}

/// Whether a session has failed, even if it was resumed since without a result.
fn had_failed(opened: &OpenSessions, newest: &StoredRecord) -> Result<bool, Failure> {
    for stored in opened.session_reader().walk(newest)? {
        match stored?.record.kind {
            RecordKind::Resume(_) => {}
            RecordKind::End(SessionEnd { result: SessionVerdict::Failed, .. }) => return Ok(true),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// Refuses sessions that cannot be continued.
fn refuse(
    repository: &Repository,
    newest: &StoredRecord,
    state: SessionState,
    turn: Option<u32>,
) -> Result<(), Failure> {
    let session = &newest.record.session;
    if newest.record.context.driver == Driver::Other {
        let words = format!(
            "session '{session}' was recorded by another program, and only that program can continue it"
        );
        return Err(Failure::new(Exit::No, words)
            .hint(format!("see its turns: git arborist session turns {session}")));
    }
    if newest.record.context.offline {
        return Err(replay_only_error(&newest.record));
    }
    match state {
        SessionState::Running => {
            let holder = FileLock::find_holder(&repository.run_lock(&newest.record.context.branch));
            Err(Failure::new(Exit::Locked, format!("session '{session}' is running"))
                .hint(holder.unwrap_or_default().advice_to_stop()))
        }
        SessionState::Complete if turn.is_none() => {
            // Then it could not be continued from a turn either.
            if let Ok(history) = Follow::find(repository, &newest.record).and_then(|follow| follow.history())
            {
                refuse_other(&newest.record, &history, None)?;
            }
            let words = format!("session '{session}' is complete, so there is nothing to continue");
            Err(Failure::new(Exit::No, words).hint(format!(
                "see its turns with: git arborist session turns {session}\nthen go back to one, for example: git arborist session resume {session} --turn 1"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses if the branch has another run: it can have only one at a time.
fn refuse_other(record: &Record, history: &Run, turn: Option<u32>) -> Result<(), Failure> {
    let (session, branch) = (&record.session, &record.context.branch);
    match &history.start {
        Some(start) if start.session == *session => Ok(()),
        Some(start) => {
            let words = format!("session '{}' is newer and uses '{branch}' now", start.session);
            Err(Failure::new(Exit::Person, words).hint(format!(
                "start a new session from a turn of it, for example: git arborist session replay {session} --turn {}",
                turn.unwrap_or(1)
            )))
        }
        None => Err(Failure::new(
            Exit::Person,
            format!("'{branch}' does not contain the start of session '{session}'"),
        )
        .hint("start a new one: git arborist gardener --session-branch")),
    }
}

/// A plan that differs from the frozen one.
struct ChangedPlan {
    /// The differences, one line each.
    words: String,
    path: String,
    bytes: Vec<u8>,
}

/// The plan file, in the session's worktree or the user's checkout, if it differs from the frozen one.
fn plan_has_changed(
    here: &Repository,
    session_worktree: &SessionWorktree,
    history: &Run,
) -> Result<Option<ChangedPlan>, Failure> {
    let frozen = history.frozen_plan();
    let before = Plan::read_frozen(here, frozen)?.transpose()?;
    let Some((PlanRef { path, .. }, before)) = frozen.zip(before) else {
        return Ok(None);
    };
    for top in [session_worktree.path.as_path(), here.top()] {
        let Ok(bytes) = safe_files::read_beneath(top, path) else {
            continue;
        };
        let words = difference(&before, &Plan::read(path, &bytes)?);
        if !words.is_empty() {
            return Ok(Some(ChangedPlan { words, path: path.clone(), bytes }));
        }
    }
    Ok(None)
}

/// Takes the lock of a branch's run, so that none starts while we write on the branch.
pub(super) fn lock(repository: &Repository, branch: &BranchName) -> Result<FileLock, Failure> {
    lock_branch(repository, branch, "git arborist session", None)
}
