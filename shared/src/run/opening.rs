//! Opens a run: chooses its branch, takes the lock and repairs what a crash left. Also reads the state of the run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    InheritedOptions, RunRequest,
    branch_choice::{PendingMove, RunPlace},
    caveats::has_message_hook,
    recovery::recover_repository,
    refuse_in_step::refuse_in_step,
    repositories::FetchedRepo,
    run_lock::take_lock,
};
use crate::{
    coordination::RemoteWork,
    failure::Failure,
    gardener::{GardenerError, start},
    git::{Config, GitVersion, Repository, SavedCheckout},
    history::{CommitCache, CommitSource, HistoryError, Run, RunScope},
    name::{BranchName, Oid, SessionId},
    pipeline::{ConfigGuard, PreCommit, RunOptions},
    plan::typed_plan_path,
    process::{Cancel, FileLock, is_executable},
    sandbox::{SandboxError, SandboxUse},
    session::{SessionWriter, forget_unrecorded},
    settings::Settings,
    workspace::{SyncOutcome, Workspace},
};

/// What a run needs from the program that drives it.
pub struct RunHost {
    /// The repository that the program was started in.
    pub repository: Repository,
    /// Its configuration.
    pub config: Config,
    /// Cancelled when the user wants to stop.
    pub cancel: Cancel,
    /// The current time in seconds since 1970.
    pub clock: fn() -> i64,
}

/// A run that holds the lock of its branch.
pub struct OpenRun {
    /// The options as they were typed, but with the path of the plan from the top of the worktree.
    pub request: RunRequest,
    /// The repository, opened where the run works.
    pub repository: Repository,
    /// The effective options.
    pub options: RunOptions,
    /// The configuration.
    pub settings: Settings,
    /// Its branch.
    pub branch: BranchName,
    /// Whether no task is left to do, so that no approval is needed.
    pub has_no_task_left: bool,
    /// Options taken from the session's records.
    pub(super) inherited: InheritedOptions,
    pub(super) head: Oid,
    pub(super) session: OnceLock<SessionId>,
    pub(super) session_writer: OnceLock<SessionWriter>,
    pub(super) workspace: Workspace,
    pub(super) lock: FileLock,
    /// What is left to do before the run works outside of the user's checkout.
    pub(super) pending_move: Option<PendingMove>,
    /// The result of fetching the plan's repository, if it was fetched.
    pub(super) main_sync: Option<SyncOutcome>,
    /// The other repositories of the workspace.
    pub(super) others: Vec<FetchedRepo>,
    /// Whether the branch is a session branch.
    pub(super) has_session_branch: bool,
    /// Whether the branch has no commit of this run yet: because it was created for the run, or because a new run was
    /// requested in a shallow clone, where old runs cannot be found.
    pub(super) has_no_run_commit: bool,
    /// Where logs are kept: the user's checkout.
    pub(super) home: PathBuf,
    /// The uncommitted work of the user's checkouts.
    pub(super) saved_checkouts: Mutex<Vec<SavedCheckout>>,
    /// Whether the plan is copied from the user's checkout to the session's worktree.
    pub(super) brings_plan: bool,
    pub(super) hook: PreCommit,
    /// Whether the user has a commit-msg hook, which is not run.
    pub(super) has_message_hook: bool,
    /// Whether git's configuration names a remote, or the upstream of a branch.
    pub(super) has_remotes: bool,
    /// Watches all repositories of the run around every child process.
    pub(super) config_guard: ConfigGuard,
    /// Commits of the run that were read before.
    memory: CommitCache,
    /// Where the plan is shared with workers on other machines, if it is.
    pub(super) remote_work: Option<Arc<RemoteWork>>,
    pub(super) cancel: Cancel,
    pub(super) clock: fn() -> i64,
}

impl OpenRun {
    /// Chooses the branch, takes its lock and repairs what a crash left.
    pub fn open(mut request: RunRequest, host: RunHost) -> Result<Self, Failure> {
        let RunHost { repository, config, cancel, clock } = host;
        refuse_in_step(&repository)?;
        // Printed and recorded commands may be executed in another directory.
        request.tree = request.tree.map(|typed| typed_plan_path(&repository, &typed));
        let mut settings = Settings::load_for_run(&repository, &config)?;
        if let Some(mode) = &request.flags.sandbox {
            settings.set_sandbox_mode(mode)?;
        }
        if repository.worktree.is_none() {
            return Err(GardenerError::Bare.into());
        }
        let workspace = Workspace::load(&repository, &settings, &cancel)?;
        let mut place = RunPlace::choose(&repository, &request, &settings, &workspace)?;
        repository.refuse_branch_in_the_way(&place.branch)?;
        let options = effective_options(&request, &settings, &workspace, &repository)?;
        require_sandbox(&options.runners.list_sandbox_uses(), &options, &workspace, &repository)?;
        for (role, runner) in options.runners.list_uses() {
            options.sandbox.require_network_control(Some(role.as_str()), Some(&runner))?;
        }
        let what = format!("git arborist on {}", place.branch);
        let lock = take_lock(&repository, &place.branch, &what, None)?;
        let repository = recover_repository(repository, &lock, &mut place)?;
        let hook = pre_commit(&repository, &config)?;
        let has_message_hook = has_message_hook(&repository.hooks_dir(&config)?.path);
        let RunPlace { branch, head, session, pending_move } = place;
        // A worktree that was created for the run may be removed, and its logs must stay.
        let is_in_own_worktree = request.has_borrowed_branch || session.is_some() && pending_move.is_none();
        let home =
            if is_in_own_worktree { workspace.main().path.clone() } else { repository.top().to_owned() };
        Ok(Self {
            home,
            has_session_branch: session.is_some(),
            has_no_run_commit: pending_move.as_ref().is_some_and(|pending_move| !pending_move.is_written_on)
                || is_first_in_shallow(&repository, &request, &branch, head)?,
            pending_move,
            saved_checkouts: Mutex::default(),
            brings_plan: false,
            main_sync: None,
            others: Vec::new(),
            workspace,
            repository,
            options,
            settings,
            branch,
            head,
            session: session.map(OnceLock::from).unwrap_or_default(),
            session_writer: OnceLock::new(),
            lock,
            hook,
            has_message_hook,
            has_remotes: ["remote.", "branch."].iter().any(|prefix| config.section(prefix).next().is_some()),
            config_guard: ConfigGuard::default(),
            memory: CommitCache::default(),
            remote_work: None,
            cancel,
            clock,
            request,
            has_no_task_left: false,
            inherited: InheritedOptions::default(),
        })
    }
}

impl OpenRun {
    /// Reads the state of the run from history, with work on task branches that no record mentions, and that may be
    /// forged.
    pub(super) fn scan_with_unrecorded(&self) -> Result<Run, Failure> {
        if self.has_no_run_commit {
            let scope = RunScope { branch: self.branch.clone(), tip: None };
            return Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?);
        }
        self.scan_with_unrecorded_at(self.head)
    }

    /// Reads the state as other commands show it: without work on task branches that no record mentions. In a new run, no
    /// task has been started.
    pub fn scan_recorded(&self) -> Result<Run, Failure> {
        let mut run = self.scan_with_unrecorded()?;
        forget_unrecorded(&self.repository, &mut run)?;
        if self.request.new_run {
            run.tasks.clear();
        }
        Ok(run)
    }

    /// The current tip of the branch, and the state there, as other commands show it.
    pub(super) fn scan_recorded_now(&self) -> Result<(Oid, Run), Failure> {
        let tip = self.repository.find_branch(&self.branch)?.unwrap_or(self.head);
        let mut run = self.scan_with_unrecorded_at(tip)?;
        forget_unrecorded(&self.repository, &mut run)?;
        Ok((tip, run))
    }

    /// Reads the state at `tip`, with work on task branches that no record mentions.
    pub(super) fn scan_with_unrecorded_at(&self, tip: Oid) -> Result<Run, Failure> {
        let scope = RunScope { branch: self.branch.clone(), tip: Some(tip) };
        let refs = self.repository.list_refs(&[&self.branch.task_refs()])?;
        match Run::scan_again(&self.repository, scope, refs, &self.memory) {
            // The old run keeps its name, and this one starts under the new name. Or there are two old runs, and neither is
            // continued.
            Err(
                HistoryError::Renamed { .. }
                | HistoryError::ForkedRun { .. }
                | HistoryError::ForkedPlan { .. },
            ) if self.request.new_run => {
                let scope = RunScope { branch: self.branch.clone(), tip: None };
                Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?)
            }
            run => Ok(run?),
        }
    }

    /// Whether nothing of this run has been recorded yet.
    pub(super) fn is_new_run(&self, run: &Run) -> bool {
        run.start.is_none() || self.request.new_run
    }

    /// The worktree of the session branch, if the run has one.
    pub(super) fn session_worktree(&self) -> Option<&Path> {
        self.has_session_branch.then(|| self.repository.top())
    }

    /// The session of the run that continues, or a new one. Each call returns the same value.
    pub(super) fn session(&self, run: &Run) -> &SessionId {
        self.session.get_or_init(|| match (&run.start, self.request.new_run) {
            (Some(start), false) => start.session.clone(),
            _ => start::new_session(self.head),
        })
    }
}

/// Whether a run begins in a shallow clone. If nothing here belongs to an earlier run of the branch, there is nothing
/// to continue.
fn is_first_in_shallow(
    repository: &Repository,
    request: &RunRequest,
    branch: &BranchName,
    head: Oid,
) -> Result<bool, Failure> {
    if !repository.is_shallow || request.new_run {
        return Ok(repository.is_shallow);
    }
    let scope = RunScope { branch: branch.clone(), tip: Some(head) };
    let is_unknown = matches!(
        Run::scan(repository, scope, CommitSource::Fresh),
        Err(HistoryError::Shallow { has_begun: false, .. })
    );
    let traces = ["refs/arborist/sessions/", &branch.task_refs()];
    Ok(is_unknown && repository.list_refs(&traces)?.is_empty())
}

/// The effective options. They can be computed again after options were inherited, because nothing else changes them.
pub(super) fn effective_options(
    request: &RunRequest,
    settings: &Settings,
    workspace: &Workspace,
    repository: &Repository,
) -> Result<RunOptions, Failure> {
    let mut options = RunOptions::new(&request.flags, settings)?;
    options.sandbox =
        options.sandbox.closing(workspace.paths(), &[&repository.git_dir, &repository.common_dir]);
    Ok(options)
}

/// Refuses settings of the sandbox that cannot be enforced.
pub(super) fn require_sandbox(
    uses: &[SandboxUse],
    options: &RunOptions,
    workspace: &Workspace,
    repository: &Repository,
) -> Result<(), SandboxError> {
    options.sandbox.require_supported(uses)?;
    let git_dirs = [repository.git_dir.as_path(), &repository.common_dir];
    options.sandbox.require_closed(&workspace.paths(), &git_dirs, uses)
}

/// Whether there is a pre-commit hook to run before an agent's work is committed.
pub(super) fn pre_commit(repository: &Repository, config: &Config) -> Result<PreCommit, Failure> {
    let file = repository.hooks_dir(config)?.path.join("pre-commit");
    let has_config_hook =
        repository.version >= GitVersion::CONFIG_HOOKS && config.section("hook.").next().is_some();
    Ok(if is_executable(&file) || has_config_hook { PreCommit::Present } else { PreCommit::None })
}
