//! Decides where a run works: on the checked out branch, or on a session branch in a separate worktree.
//!
//! Running the same command again continues the last session of the same plan. Only `--new-run` starts another one.

use std::{path::Path, time::Duration};

use super::{
    OpenRun, Planned, RunListener, RunRequest, other_clones::refuse_unfinished_elsewhere, planned::find_plan,
};
use crate::{
    failure::{Exit, Failure},
    gardener::{GardenerError, PlanFile, start},
    git::{RefMove, Repository, UncommittedPath},
    history::Run,
    message::{PlanRef, visible},
    name::{BranchName, Oid, PipelineName, SessionId, digest},
    process::FileLock,
    safe_files::{self, Enclosure, InnerPath},
    session::{Record, RecordKind, SessionVerdict, SessionWriter},
    settings::{Settings, TRACKED_FILES},
    workspace::{DamagedSession, SessionFilter, SyncOutcome, Workspace},
    worktree::Pool,
};

/// How long to wait for another process that is choosing a session. It may be fetching from a remote.
const CHOICE_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a run works.
pub(super) struct RunPlace {
    /// Its branch.
    pub(super) branch: BranchName,
    /// The commit of the branch, or the one it will start from.
    pub(super) head: Oid,
    /// The session, if the branch is a session branch.
    pub(super) session: Option<SessionId>,
    /// What is left to do before the run works there; `None` if it works in the current checkout.
    pub(super) pending_move: Option<PendingMove>,
}

/// A run that is about to move from the user's checkout to the session's worktree.
pub(super) struct PendingMove {
    /// Held while a session is chosen, so that two runs started at the same time get the same session.
    _choice_lock: Option<FileLock>,
    /// Whether the session has records and a branch already.
    pub(super) has_begun: bool,
    /// Whether the branch has commits of the session.
    pub(super) is_written_on: bool,
}

impl RunPlace {
    /// Decides where a run works.
    pub(super) fn choose(
        repository: &Repository,
        request: &RunRequest,
        settings: &Settings,
        workspace: &Workspace,
    ) -> Result<RunPlace, Failure> {
        let here = match &repository.head.branch {
            Some(branch) => workspace.main().find_session_of(repository, branch)?,
            None => None,
        };
        let is_wanted = request.session_branch || workspace.wants_session_branches(settings);
        // On a session branch, that session continues here. A new session gets its own branch.
        let is_elsewhere = if here.is_some() { request.new_run } else { is_wanted };
        if is_elsewhere {
            return Self::choose_session(repository, request, settings, workspace);
        }
        let branch = repository.head.branch.clone().ok_or_else(|| GardenerError::detached(repository))?;
        let head = repository.head.commit.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
        Ok(RunPlace { branch, head, session: here, pending_move: None })
    }

    fn choose_session(
        repository: &Repository,
        request: &RunRequest,
        settings: &Settings,
        workspace: &Workspace,
    ) -> Result<RunPlace, Failure> {
        let head = repository.head.commit.ok_or(GardenerError::NoCommit)?;
        let plan = find_plan(repository, request, settings);
        let choosing = match request.new_run {
            true => None,
            false => Some(lock_choice(repository, plan.as_deref(), workspace)?),
        };
        let pipeline = PipelineName::of_plan(plan.as_deref());
        let main = workspace.main();
        let filter = match &plan {
            Some(plan) => SessionFilter::Plan(plan),
            None if request.is_unplanned() => SessionFilter::Unplanned,
            None => SessionFilter::Any,
        };
        let last = if request.new_run { None } else { main.find_last_session(repository, filter)? };
        if !request.new_run
            && let Some(damaged) = main.find_damaged_session(repository, &pipeline, last.as_ref())?
        {
            // Without its record, a session is not recognised as the one to continue, and a new one would do its tasks
            // again. Its branch says what was done, and the run writes a new record.
            let DamagedSession { session, branch, tip } = damaged;
            let pending_move = PendingMove { _choice_lock: choosing, has_begun: true, is_written_on: true };
            let pending_move = Some(pending_move);
            return Ok(RunPlace { branch, head: tip, session: Some(session), pending_move });
        }
        let Some(last) = last else {
            if let Some(plan) = plan.as_deref().filter(|_| !request.new_run) {
                refuse_unfinished_elsewhere(repository, main, workspace, &pipeline, plan)?;
            }
            let session = start::new_session(head);
            let branch = main.session_branch(&pipeline, &session)?;
            let pending_move = PendingMove { _choice_lock: choosing, has_begun: false, is_written_on: false };
            return Ok(RunPlace { branch, head, session: Some(session), pending_move: Some(pending_move) });
        };
        if let Some(other) = main.find_concurrent_session(repository, filter, &last)? {
            return Err(ambiguous(&last.record, &other.record));
        }
        let branch = last.record.context.branch.clone();
        let head = repository.find_branch(&branch)?.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
        let is_fresh = matches!(last.record.kind, RecordKind::Start(_)) && last.record.context.tip == head;
        let pending_move = PendingMove { _choice_lock: choosing, has_begun: true, is_written_on: !is_fresh };
        Ok(RunPlace { branch, head, session: Some(last.record.session), pending_move: Some(pending_move) })
    }
}

/// A session that started while another one was at work may have been started by that one's agent.
fn ambiguous(last: &Record, other: &Record) -> Failure {
    let (newer, older) = (&last.session, &other.session);
    let what = format!(
        "session '{newer}' was started while session '{older}' of the same plan was running, so it is not clear which one to continue"
    );
    let resume = |record: &Record| match &record.kind {
        RecordKind::End(end) if end.result == SessionVerdict::Complete => {
            format!("it is complete, see it with: git arborist session show {}", record.session)
        }
        _ => format!("continue it with: git arborist session resume {}", record.session),
    };
    Failure::new(Exit::Person, what)
        .hint(format!("'{older}' was first; {}", resume(other)))
        .hint(format!("'{newer}' may have been started by an agent of the first; {}", resume(last)))
        .hint("or start another session with --new-run")
}

/// Serialises the choice of a session for one plan, so that two runs started at the same time get the same session.
/// Runs of other plans do not wait.
fn lock_choice(
    repository: &Repository,
    plan: Option<&str>,
    workspace: &Workspace,
) -> Result<FileLock, Failure> {
    let name = format!("session-of-{}", &digest(plan.unwrap_or_default().as_bytes())[..12]);
    let path = repository.lock_folder().join(name);
    let what = "git arborist, to choose a session";
    Ok(FileLock::take_within(&path, what, CHOICE_TIMEOUT, &workspace.network.cancel)?)
}

impl OpenRun {
    /// Fetches the other repositories. Then moves to the session's worktree, if the run has one. The branch and the
    /// first record are created in one transaction, and the worktree after them, so the same command can continue after
    /// a kill.
    pub fn enter_workplace(
        mut self,
        planned: &Planned,
        run: &Run,
        listener: &mut dyn RunListener,
    ) -> Result<Self, Failure> {
        let session = self.session(run).clone();
        self.refuse_behind(&session)?;
        self.refuse_beside_workers(&planned.plan, run, listener)?;
        self.fetch_repositories(&session, planned, run, listener)?;
        let Some(pending_move) = self.pending_move.take() else {
            return Ok(self);
        };
        if !pending_move.has_begun {
            self.begin_branch(planned, &session, listener)?;
        } else {
            listener.remark(&format!("continuing session '{session}' on '{}'", self.branch));
        }
        let user = self.repository.clone();
        // Before the worktree is made: its set-up command is a child process.
        let uncommitted = user.changed_paths()?;
        if !uncommitted.is_empty() {
            self.save_checkout(&user, "your checkout", listener);
        }
        self.save_left_checkouts(listener);
        self.brings_plan = !pending_move.is_written_on || self.request.accept_changes;
        drop(pending_move);
        let session_worktree =
            Pool::open(&user, &self.branch, self.worktree_options())?.session_worktree(&session)?;
        if session_worktree.was_entered_now {
            listener.report_worktree(self.workspace.main(), &session_worktree.path, &self.branch);
        }
        session_worktree.notes.iter().for_each(|note| listener.remark(&note.to_string()));
        warn_of_uncommitted_files(&user, &uncommitted, planned, listener);
        self.repository = session_worktree.repository;
        Ok(self)
    }

    fn begin_branch(
        &mut self,
        planned: &Planned,
        session: &SessionId,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let plan = match &planned.file {
            Some(PlanFile { path, bytes }) => {
                let blob = self.repository.write_blob(bytes)?;
                Some(PlanRef { path: path.clone(), blob }.to_string())
            }
            None => None,
        };
        let start = self.start(planned, plan)?;
        let (name, base) = (self.branch.to_ref(), self.head);
        let made = RefMove { name: &name, new: Some(base), old: None };
        SessionWriter::begin_with(&self.repository, session.clone(), start, (self.clock)(), &[made])?;
        listener.report_branch(self.workspace.main(), &self.branch, base);
        Ok(())
    }
}

impl OpenRun {
    /// The commit that a new session starts from: the user's, or the remote's if that has more.
    pub(super) fn find_base(&self, listener: &mut dyn RunListener) -> Result<Oid, Failure> {
        let (repository, main) = (&self.repository, self.workspace.main());
        let outcome = self.main_sync.as_ref().unwrap_or(&SyncOutcome::Local);
        let seen = self.workspace.base(repository, main)?;
        let here = repository.head.branch.as_ref();
        let is_own = main.default_branch.as_ref().is_none_or(|branch| Some(branch) == here);
        let base = match seen {
            Some(seen) if !is_own || !repository.is_ancestor(seen, self.head)? => seen,
            _ => self.head,
        };
        listener.report_sync(main, outcome, Some(base));
        if is_own && !repository.is_ancestor(self.head, base)? {
            listener.warn(&format!(
                "the run starts at {1}, without your commits, because your branch and the remote of '{0}' have diverged",
                main.name,
                base.short()
            ));
            listener.hint("to start with your commits and those of the remote, merge or rebase first, then use --new-run");
        }
        Ok(base)
    }
}

/// Warns about uncommitted changes, which the run will not see. The plan and the configuration are copied to the
/// worktree.
pub(super) fn warn_of_uncommitted_files(
    repository: &Repository,
    uncommitted: &[UncommittedPath],
    planned: &Planned,
    listener: &mut dyn RunListener,
) {
    let plan = planned.file.as_ref().map(|file| file.path.as_str());
    let is_brought = |found: &UncommittedPath| {
        let path = found.path.as_slice();
        let is_tracked = TRACKED_FILES.iter().any(|file| file.as_bytes() == path);
        let is_folder = [b".arborist/".as_slice(), b".arborist/prompts/"].contains(&path);
        Some(path) == plan.map(str::as_bytes) || is_tracked || is_folder
    };
    if !uncommitted.iter().all(is_brought) {
        let place = match repository.git_dir != repository.common_dir {
            true => format!("'{}'", repository.top().display()),
            false => "your checkout".to_owned(),
        };
        listener
            .warn(&visible(&format!("uncommitted changes stay in {place}, and the tasks do not see them")));
    }
}

impl OpenRun {
    /// Copies the user's plan and configuration to the session's worktree. Changes that an agent left there have been
    /// committed by now.
    pub(super) fn bring_plan(&self, planned: &Planned) -> Result<(), Failure> {
        if !self.brings_plan {
            return Ok(());
        }
        let session_worktree = self.repository.top();
        if let Some(PlanFile { path, bytes }) = &planned.file {
            bring_file(session_worktree, path, bytes)?;
        }
        for path in TRACKED_FILES {
            match safe_files::read_beneath(&self.home, path) {
                Ok(bytes) => bring_file(session_worktree, path, &bytes)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(anyhow::Error::new(error).context(format!("could not read '{path}'")).into());
                }
            }
        }
        Ok(())
    }
}

/// Writes a user's file into a session's worktree. Links that an agent may have made there are not followed.
pub fn bring_file(session_worktree: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let file = session_worktree.join(path);
    if safe_files::read(&file).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Person,
            format!("'{path}' could not be written to the session's worktree: {error}"),
        )
        .hint(format!("look at '{}'", file.display()))
    };
    let place = path.parse::<InnerPath>().map_err(|error| failed(&error))?;
    let enclosure = Enclosure::open(session_worktree).map_err(|error| failed(&error))?;
    enclosure.write(&place, bytes).map_err(|error| failed(&error)).map(drop)
}
