//! Errors that prevent a run from starting or continuing.

use std::path::PathBuf;

use super::{
    LostBranch, RedCause, UnacceptedChange, UntriedOutside,
    advice::{
        ADVICE_ON_OPERATION, advice_on_denials, advice_on_finished_tasks, advice_on_lost_branch,
        advice_on_meddling_tests, advice_on_other_plan, advice_on_parked, advice_on_several_plans,
        advice_to_commit, advice_to_ignore, advice_to_land, advice_to_resolve, advice_to_run_all,
        baseline_advice, continue_in_lane,
    },
    refusals::advice_on_task_branch,
};
use crate::{
    agent::AgentError,
    coordination::CoordinationError,
    failure::{Exit, Explain, Explanation, Failure},
    git::{GitError, OperationInProgress, Repository},
    history::{HistoryError, RevertedMerge, Run, State},
    message::{first_of, nearest},
    name::{BranchName, Oid, SessionId, TaskId},
    pipeline::PipelineError,
    plan::PlanError,
    process::LockError,
    progress::Progress,
    queue::{LandingCommand, ParkingObstacle, QueueError, Store, Ticket, TicketState, words_on_unmerged},
    record::RecordError,
    session::SessionError,
    settings::SettingsError,
    worktree::WorktreeError,
};

/// The first of the tasks, and how many more there are.
fn name_some(tasks: &[TaskId]) -> String {
    const MAX_TASKS: usize = 5;
    first_of(tasks, MAX_TASKS)
}

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum GardenerError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    #[error("{}", source.sentence(&if source.is_landing() { format!("tasks are landing on '{branch}'") } else { format!("a run of '{branch}' is active") }))]
    Locked { branch: BranchName, source: LockError },
    #[error("a run needs a branch, but HEAD is detached")]
    Detached,
    #[error("a run needs a branch, but a {0} is in progress in this checkout")]
    DetachedBy(&'static str),
    #[error("'{0}' has no commits yet")]
    Unborn(BranchName),
    #[error("there are no commits yet")]
    NoCommit,
    #[error("this command needs a checkout, but this repository is bare")]
    Bare,
    #[error("the worktree of task '{task}' is gone: {path}")]
    LaneGone { task: TaskId, path: String },
    #[error(
        "the task branch '{branch}' has commits from before this run, and the run could not be merged into it: {why}"
    )]
    BegunBefore { branch: BranchName, path: String, run: Oid, why: String },
    #[error("there is no worktree to work in")]
    NoPlace,
    #[error("{} {}: {files}", .session.as_ref().map_or_else(|| "there are".to_owned(), |(session, _)| format!("the worktree of session '{session}' has")), if *.is_untracked { "uncommitted new files" } else { "uncommitted changes" })]
    Dirty {
        files: String,
        is_untracked: bool,
        has_done: bool,
        /// The plan and the configuration, if they are not committed either. The run commits them itself, so they must
        /// not be stashed with the others.
        needed: Vec<String>,
        /// The session and the folder of its worktree, if the files are there and not in the user's checkout.
        session: Option<(SessionId, String)>,
    },
    /// The session and the folder of its worktree are given if the files are there and not in the user's checkout.
    #[error("{}", words_on_unmerged(.files))]
    Unmerged { files: Vec<String>, has_done: bool, session: Option<(SessionId, String)> },
    #[error(
        "'{0}' is an untracked repository in your checkout, which git-arborist cannot save before agents work there"
    )]
    UntrackedRepository(String),
    #[error("the changes to these files cannot be undone, because the files have uncommitted changes: {0}")]
    Overlap(String),
    #[error("the changes of {0} cannot be undone, because later commits have changed the same lines: {1}")]
    Contested(TaskId, String),
    #[error("a {0} is in progress in this checkout")]
    OperationInProgress(&'static str),
    #[error("no plan was found")]
    NoPlan,
    #[error("{} plans were found: {}", .0.len(), .0.join(", "))]
    SeveralPlans(Vec<String>),
    #[error("the plan has no task or phase '{task}'")]
    NoTask { task: TaskId, meant: Option<String> },
    #[error("--only {} and --until {until} have no task in common: '{until}' comes first in the plan", name_some(.only))]
    NothingSelected { only: Vec<TaskId>, until: TaskId },
    #[error("task '{task}' is not ready: it waits for {needs}")]
    NotReady { task: TaskId, needs: String, has_failed: bool },
    #[error("task '{task}' has failed, and its attempts are used up")]
    NoAttemptLeft { task: TaskId, command: String },
    #[error("'{task}' is a phase, not a task")]
    IsPhase { task: TaskId },
    #[error("this run is of the plan '{frozen}', not of '{path}'")]
    OtherPlan { frozen: String, path: String },
    #[error("the plan '{path}' has changed since the run began:\n{difference}")]
    PlanChanged { path: String, difference: String, change: Option<Box<UnacceptedChange>> },
    /// The difference begins with a line break, and is empty if an empty file was created or deleted.
    #[error("'{path}' has changed since the run began{}{difference}", if .difference.is_empty() { "" } else { ":" })]
    ConfigChanged { path: &'static str, difference: String, change: Option<Box<UnacceptedChange>> },
    #[error("task '{task}' is forked: branches with different results for it were merged ({} and {})", .commits[0].short(), .commits[1].short())]
    Forked { task: TaskId, commits: [Oid; 2] },
    #[error("task '{task}' was {}", .reverted.words())]
    Reverted { task: TaskId, reverted: RevertedMerge },
    #[error("the work of task '{}' is lost: {}", .0.task, .0)]
    Lost(LostBranch),
    #[error("the tests of '{0}' fail")]
    PhaseFailed(TaskId),
    /// The command is there if it was not tried outside of the sandbox.
    #[error("the tests fail before the {} task: {why}; log: {log}", first_or_next(*.is_first))]
    RedBaseline {
        is_first: bool,
        why: String,
        log: String,
        is_elsewhere: bool,
        names_tests: bool,
        cause: RedCause,
        untried: Option<UntriedOutside>,
        command: String,
    },
    #[error("the tests fail in the sandbox, but pass outside of it: {why} (log: {log})")]
    RedInSandbox { why: String, denials: Vec<String>, log: String },
    #[error(
        "task '{task}' cannot start, because the changes of '{other}' make the tests fail: {why}; log: {log}"
    )]
    RedLeftovers { task: TaskId, other: TaskId, why: String, log: String },
    #[error("the test command changed files or refs of the run before the {} task: {why}", first_or_next(*.is_first))]
    MeddlingTests { is_first: bool, why: String, log: String },
    #[error("could not write '{path}': {why}")]
    Log { path: String, why: String },
    #[error("task '{0}' is marked [red], but there is no test command that could fail")]
    RedWithoutTest(TaskId),
    #[error(
        "no test command is known here, but {tested} was tested in this run, so {untested} would be complete without tests"
    )]
    LostTestCommand { tested: TaskId, untested: TaskId },
    #[error("task '{task}' was started on its own branch, '{branch}'")]
    StartedInLane { task: TaskId, branch: BranchName, command: String },
    /// The reason is `None` if the task is not queued or waits for its turn.
    #[error("task '{task}' is complete on its own branch, '{branch}', and has not landed{}", words_on_delay(.why.as_ref()))]
    NotLanded { task: TaskId, branch: BranchName, why: Option<LandingDelay>, command: LandingCommand },
    #[error("a landing on '{branch}' is parked: {}", .obstacle.as_ref().map_or_else(|| format!("the checkout of '{branch}' has to be updated first"), ToString::to_string))]
    Parked { branch: BranchName, obstacle: Option<ParkingObstacle> },
    #[error("{} {} already done here, in the run of '{branch}'; a new run would do {} again", name_some(.tasks), if .tasks.len() == 1 { "is" } else { "are" }, if .tasks.len() == 1 { "it" } else { "them" })]
    Merged { branch: BranchName, path: Option<String>, tasks: Vec<TaskId> },
    #[error("'{branch}' is the branch of a task of the run of '{run}', so no run can start on it")]
    OnTaskBranch { branch: BranchName, run: BranchName, place: Option<PathBuf> },
}

/// Why a complete task has not landed, as its ticket says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingDelay {
    /// It has a conflict, with these words about it.
    Conflict(String),
    /// Another reason.
    Other(String),
}

impl LandingDelay {
    fn of(ticket: &Ticket) -> Option<Self> {
        let reason = ticket.reason()?;
        let is_conflict = matches!(ticket.state, TicketState::Conflict { .. });
        Some(if is_conflict { Self::Conflict(reason) } else { Self::Other(reason) })
    }
}

/// The reason as the end of a sentence.
fn words_on_delay(why: Option<&LandingDelay>) -> String {
    match why {
        Some(LandingDelay::Conflict(reason)) => format!(" because of a conflict: {reason}"),
        Some(LandingDelay::Other(reason)) => format!(": {reason}"),
        None => String::new(),
    }
}

/// The options of a command that hints repeat, as they are typed. Each has a space before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedOptions {
    /// `--tree`, or another option that selects the tasks which `state` shows.
    pub tree: String,
    /// All options that `garden` and `gardener` have, `--tree` among them.
    pub common: String,
    /// The options that only `gardener` has.
    pub lanes: String,
    /// The options that select tasks.
    pub selection: String,
}

impl GardenerError {
    /// The error for a checkout without a branch. A rebase is the usual reason, and a branch cannot be created during
    /// one.
    #[must_use]
    pub fn detached(repository: &Repository) -> Self {
        match OperationInProgress::find_operation(&repository.git_dir) {
            Some(operation) => Self::DetachedBy(operation.what),
            None => Self::Detached,
        }
    }

    /// The error for a task whose newest state is on its own branch, and which the checkout therefore cannot continue.
    #[must_use]
    pub fn in_lane(repository: &Repository, run: &Run, scope: &BranchName, task: &TaskId) -> Self {
        let is_complete = run.state_of(task) == State::Complete;
        let (command, branch) = (continue_in_lane(run, task), scope.task_branch(task));
        if is_complete {
            return Self::not_landed(repository, run, task, branch);
        }
        Self::StartedInLane { task: task.clone(), branch, command }
    }

    /// The error for a complete task that has not landed. Its ticket says why, and what helps.
    fn not_landed(repository: &Repository, run: &Run, task: &TaskId, branch: BranchName) -> Self {
        let ticket = Store::new(repository).find(&run.scope.branch, task).ok().flatten();
        let mut ticket = ticket.map(|stored| stored.ticket);
        if let Some(ticket) = &mut ticket {
            // Whoever cannot find out more says what the queue says.
            let _ = ticket.update_state(repository, run, None);
        }
        let why = ticket.as_ref().and_then(LandingDelay::of);
        let command = match &ticket {
            Some(ticket) if ticket.held.is_some() => LandingCommand::Status,
            Some(ticket) if ticket.state != TicketState::Waiting => ticket.state.command(),
            _ => LandingCommand::Land,
        };
        Self::NotLanded { task: task.clone(), branch, why, command }
    }

    /// The error for a task that waits for others.
    #[must_use]
    pub fn not_ready(task: &TaskId, needs: &[TaskId], progress: &Progress<'_>) -> Self {
        let is_failed = |need: &&TaskId| progress.find(need).is_some_and(|node| node.state == State::Failed);
        let words =
            |need: &TaskId| if is_failed(&need) { format!("{need}, which failed") } else { need.to_string() };
        let has_failed = needs.iter().any(|need| is_failed(&need));
        let needs: Vec<String> = needs.iter().map(words).collect();
        Self::NotReady { task: task.clone(), needs: needs.join(", "), has_failed }
    }

    /// The error for a name that the plan does not have. `known` are the names that could be meant.
    pub fn no_task<'a>(task: &TaskId, known: impl IntoIterator<Item = &'a str>) -> Self {
        let meant = nearest(task.as_str(), known).map(str::to_owned);
        Self::NoTask { task: task.clone(), meant }
    }

    /// The failure whose hints repeat the options of the command.
    #[must_use]
    pub fn into_failure(self, options: &TypedOptions) -> Failure {
        let hint = self.explain_with(options).hint;
        // A plan has a hint for each of its problems.
        let has_own_hints = matches!(self, Self::Plan(_));
        let failure = Failure::from(self);
        if has_own_hints { failure } else { Failure { hints: hint.into_iter().collect(), ..failure } }
    }

    /// The option whose limit is used up, and a value with which the run can continue.
    #[must_use]
    pub fn raise(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Pipeline(PipelineError::Budget(overrun)) => Some((overrun.option(), overrun.raised())),
            _ => None,
        }
    }

    /// The failed task whose changes have to be removed before the run can continue.
    #[must_use]
    pub fn find_blocking(&self) -> Option<TaskId> {
        match self {
            Self::RedLeftovers { other, .. } => Some(other.clone()),
            _ => None,
        }
    }

    /// How a file changed that the run has accepted.
    #[must_use]
    pub fn unaccepted_change(&self) -> Option<&UnacceptedChange> {
        match self {
            Self::PlanChanged { change, .. } | Self::ConfigChanged { change, .. } => change.as_deref(),
            _ => None,
        }
    }

    /// Whether other tasks can continue.
    pub(super) fn concerns_only_the_task(&self) -> bool {
        matches!(self, Self::LaneGone { .. } | Self::BegunBefore { .. } | Self::RedLeftovers { .. })
            || matches!(self, Self::Pipeline(error) if error.concerns_only_the_task())
    }
}

/// Which task follows a baseline.
pub(crate) const fn first_or_next(is_first: bool) -> &'static str {
    if is_first { "first" } else { "next" }
}

impl Explain for GardenerError {
    fn explain(&self) -> Explanation {
        self.explain_with(&TypedOptions::default())
    }

    fn messages(&self) -> Vec<(String, Option<String>)> {
        match self {
            Self::Plan(error) => error.messages(),
            _ => vec![(self.to_string(), self.hint())],
        }
    }
}

impl GardenerError {
    /// The exit code, and what to try next. The commands in it have these options.
    #[must_use]
    fn explain_with(&self, options: &TypedOptions) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Settings(error) => error.explain(),
            Self::History(error) => error.explain(),
            Self::Plan(error) => error.explain(),
            Self::Pipeline(error) => error.explain(),
            Self::Record(error) => error.explain(),
            Self::Agent(error) => error.explain(),
            Self::Worktree(error) => error.explain(),
            Self::Queue(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Coordination(error) => error.explain(),
            Self::Locked { source, .. } => source.explain(),
            Self::NoPlace | Self::Log { .. } => Exit::Fatal.into(),
            Self::Detached => Exit::Fatal.hint(
                "create a branch: git switch -c my-branch\nor give the run its own branch: --session-branch",
            ),
            Self::DetachedBy(_) => Exit::Fatal
                .hint("finish or cancel it, as 'git status' says, then run the same command again"),
            Self::Unborn(_) | Self::NoCommit => {
                Exit::Fatal.hint("make a first commit: git commit --allow-empty -m 'first commit'")
            }
            Self::Bare => Exit::Fatal.hint("clone it, and run this in the clone"),
            Self::SeveralPlans(plans) => Exit::No.hint(advice_on_several_plans(plans)),
            Self::NoPlan => Exit::No.hint(
                "name a plan with --tree, or create tasks.md\nor run one task without a plan: git arborist garden -m 'what to do'",
            ),
            Self::NoTask { meant: Some(meant), .. } => Exit::No.hint(format!("did you mean '{meant}'?")),
            Self::NoTask { .. } => {
                Exit::No.hint(format!("see all tasks with: git arborist state{}", options.tree))
            }
            Self::NothingSelected { .. } => Exit::No.into(),
            Self::NoAttemptLeft { command, .. } => {
                Exit::No.hint(format!("to try it again, run: {command} --retry-failed{}", options.common))
            }
            Self::IsPhase { task } => Exit::No.hint(format!(
                "to run its tasks: git arborist gardener --only {task}{}{}",
                options.common, options.lanes
            )),
            Self::NotReady { has_failed, .. } => Exit::No.hint(advice_to_run_all(*has_failed, options)),
            Self::PhaseFailed(_) => Exit::No.hint(
                "fix the code or the tests, then run the same command again, which starts with these tests",
            ),
            Self::RedBaseline { is_elsewhere, names_tests, cause, untried, command, .. } => {
                let untried = untried.as_ref().map(|untried| (untried, command.as_str()));
                Exit::No.hint(baseline_advice(*is_elsewhere, *names_tests, *cause, untried))
            }
            Self::RedInSandbox { denials, .. } => Exit::No.hint(advice_on_denials(denials)),
            Self::RedLeftovers { other, .. } => {
                Exit::No.hint(format!("to remove its changes, run: git arborist reset --drop {other}"))
            }
            Self::MeddlingTests { log, .. } => Exit::No.hint(advice_on_meddling_tests(log)),
            Self::RedWithoutTest(_) => Exit::No
                .hint("give one with --test-command, or set test-command in .arborist/config.toml"),
            Self::Dirty { has_done, needed, session, .. } => {
                Exit::Person.hint(advice_to_commit(*has_done, needed, session.as_ref()))
            }
            Self::Unmerged { files, has_done, session } => {
                Exit::Person.hint(advice_to_resolve(files, *has_done, session.as_ref()))
            }
            Self::UntrackedRepository(path) => Exit::Person.hint(advice_to_ignore(path)),
            Self::Overlap(_) => Exit::Person.hint("commit them, or run: git stash -u"),
            Self::Contested(task, _) => Exit::Person
                .hint(format!("to keep the files and run the task again: git arborist reset {task}")),
            Self::OperationInProgress(_) => Exit::Person.hint(ADVICE_ON_OPERATION),
            Self::OtherPlan { path, .. } => Exit::Person.hint(advice_on_other_plan(path)),
            Self::PlanChanged { change, .. } | Self::ConfigChanged { change, .. } => {
                let change = change.as_deref().map(|change| format!("{}\n", change.words())).unwrap_or_default();
                Exit::Person.hint(format!("{change}accept the change with --accept-changes, or start a new run with --new-run"))
            }
            Self::Forked { task, .. } => Exit::Person.hint(format!("to start it over, run: git arborist reset {task}")),
            Self::Reverted { task, reverted } => Exit::Person.hint(reverted.advice(task)),
            Self::Lost(lost) => Exit::Person.hint(advice_on_lost_branch(lost)),
            Self::LaneGone { .. } => Exit::Person
                .hint("its commits are on its branch; to continue from there, run the same command again"),
            Self::BegunBefore { path, run, .. } => {
                Exit::Person.hint(format!("merge the run there by hand: git -C '{path}' merge {}", run.short()))
            }
            Self::LostTestCommand { .. } => Exit::Person.hint(
                "give the same one again with --test-command; to continue without tests, add --test-command ''",
            ),
            Self::StartedInLane { command, .. } => {
                Exit::Person.hint(format!("to continue it there, run: {command}{}", options.common))
            }
            Self::NotLanded { task, branch, command, .. } => {
                Exit::Person.hint(advice_to_land((task, branch), *command))
            }
            Self::Merged { path, .. } => Exit::Person.hint(advice_on_finished_tasks(path.as_deref())),
            Self::OnTaskBranch { run, place, .. } => {
                Exit::Person.hint(advice_on_task_branch(run, place.as_deref()))
            }
            Self::Parked { branch, obstacle } => {
                Exit::Person.hint(advice_on_parked(branch, obstacle.as_ref(), options))
            }
        }
    }
}
