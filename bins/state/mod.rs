//! `git arborist state`: shows the state of every task of a run, derived from its commits.

mod detail;
pub mod document;
mod reading;
mod remark;
pub mod remote;
mod source;
mod tree;
mod unpushed;

use std::{
    cell::LazyCell,
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{LostBranch, find_due_phase, find_lost_branches},
    git::{Config, Repository},
    history::{ReadAhead, Run, State, TaskHistory},
    message::visible,
    name::{BranchName, LANDINGS, Oid, RepoName, TASK_REFS, TaskId},
    plan::Plan,
    process::{Cancel, shell_word},
    progress::{NodeProgress, Progress, RunTotals, Share},
    queue::{LoggedOutcome, OtherBranches, OtherRun, ParkingObstacle, Store, Target, Ticket},
    record::UnfinishedAttempt,
    run::Continuation,
    session::{find_lost_tasks, forget_unrecorded},
    settings::Settings,
    workspace::{Workspace, compare_elsewhere},
};
use clap::Parser;

use self::{detail::TaskLogs, reading::read, unpushed::find_unpushed};
use crate::{active_work::ActiveWork, catalog, document::print, entry::Outcome, scope, ui::Ui};

/// How many entries of the queue's log are read for tasks that are not queued.
const LOG_ENTRIES: usize = 1000;

const EXAMPLES: &str = "\
EXAMPLES
   The state of the run of this branch
       git arborist state

   One task, with its history and what went wrong
       git arborist state T001

   Tasks that could start now
       git arborist state --ready

   In a script: is everything done?
       git arborist state --exit-code >/dev/null && echo done

   Who works on a plan that several machines share
       git arborist state --remote

   The run of a branch that is not checked out, or was renamed
       git arborist state --scope feature/login

EXIT STATUS
   1  With --exit-code: not all tasks that you asked for are done (complete and
      landed, or skipped).";

const LONG_ABOUT: &str = "\
Show which tasks are done, running, ready or failed.

The state is not stored anywhere. It is read from the commits of the run, each
time, and the newest commit of a task decides. The plan is the one that was
frozen when the run began; before the first run it is the file in the checkout.
Reading changes nothing and can be done while a run is active.

With one task, its history is shown: every step and attempt, why a test or a
review failed, and where the logs are.

A task that is 'ready' can start: everything that it waits for is complete and
has landed. A 'pending' task waits for another task or phase, which is named.
'git arborist plan --explain TASK' shows the line of the plan that says so. If
a task was complete and its commits are no longer on the branch, because the
branch was reset or rewritten, the last of them is named. 'implementing',
'testing' and 'reviewing' name the step that runs now. A 'paused' task was
started, and no run is working on it: the next run continues it. 'interrupted'
means that you, a crash or an outage stopped its last attempt, which does not
count.

A task is 'complete' when all its steps have passed. 'not landed' means that
its branch is not merged yet: tasks that depend on it wait until it is.
'parked' means that it is merged, but changes in your checkout are in the way.
A task has 'failed' when all its attempts are used up; 'git arborist gardener
--retry-failed' tries again. A 'skipped' task is marked so in the plan.

Two states need your decision. A task is 'forked' if two branches with
different results for it were merged: decide with 'git arborist reset TASK'.
It is 'reverted' if you merged its branch but its changes are not there,
because the merge was reverted or took nothing of it ('-s ours'): 'git
arborist state TASK' says what to do.

With --remote, it shows a plan that workers on several machines share ('git
arborist work'): the tasks at the remote, how many land in an hour, what the
landed tasks cost, which worker works on which task, where and since when, and
when each worker was last active by its own clock.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-state", bin_name = "git arborist state", about = catalog::about("state"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct StateArgs {
    /// Only these tasks; a single one is shown in detail
    #[arg(value_name = "TASK")]
    tasks: Vec<TaskId>,
    /// Read the plan from this file. The path is relative to the top of the repository, or to the current directory if
    /// it begins with ./ or ../ or exists only there [default: the frozen plan of the run]
    #[arg(long, value_name = "FILE")]
    tree: Option<PathBuf>,
    /// Use the run that commits to this branch [default: the current branch]
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
    /// Also show the commits of each task
    #[arg(long)]
    history: bool,
    /// Only tasks that can start now
    #[arg(long)]
    ready: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Exit with 1 unless all requested tasks are complete and landed, or skipped
    #[arg(long)]
    exit_code: bool,
    /// Print one line for the whole run
    #[arg(long, conflicts_with_all = ["tasks", "json", "history", "ready"])]
    short: bool,
    /// Show who works on the plan that workers share through this remote [default: origin]
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "origin", conflicts_with_all = ["tasks", "tree", "scope", "history", "ready", "exit_code", "short"])]
    remote: Option<String>,
    /// Print ids and names, for completion
    #[arg(long, hide = true)]
    list_ids: bool,
}

/// Everything that is shown.
pub(crate) struct StateView<'a> {
    run: &'a Run,
    /// Whether the repository has no checkout in which a plan could be.
    is_bare: bool,
    plan: source::Shown,
    progress: Progress<'a>,
    totals: RunTotals,
    work: ActiveWork,
    /// The number of unpushed commits of each repository, if there are any.
    unpushed: Vec<(String, u64)>,
    /// A landing that waits because the checkout is in its way.
    parked: Option<Oid>,
    /// What keeps it from landing.
    obstacle: Option<ParkingObstacle>,
    /// The commits that are not on the branch yet because of it.
    parked_commits: HashSet<Oid>,
    lost: LostWork,
    /// The branch that was asked for, if the run is that of a session that was merged into it.
    merged_into: Option<BranchName>,
    continuation: Continuation<'a>,
    /// The phase with whose tests the next run starts.
    due_phase: Option<TaskId>,
    /// The checkout that keeps the logs of runs, if one task is shown.
    home: Option<PathBuf>,
    /// The branches of the selected task in other repositories, if its work has not landed there.
    branches: Vec<(RepoName, BranchName)>,
    /// The logs of the selected task.
    logs: TaskLogs,
    args: StateArgs,
}

/// Runs the command.
pub fn run(args: StateArgs, ui: &mut Ui) -> Outcome {
    if let Some(remote) = &args.remote {
        return remote::run(remote, args.json, ui);
    }
    let here = Repository::current_dir()?;
    // Its answer is needed first.
    let search = Repository::start_search(&here)?;
    let config = Config::start(&here)?;
    let ahead = if args.scope.is_none() { ReadAhead::guess(&here) } else { None };
    let repository = search.finish()?;
    let refs = repository.start_listing_refs(&[TASK_REFS, LANDINGS, UnfinishedAttempt::REFS])?;
    let config = config.finish()?;
    ui.configure(&config);
    let settings = Settings::load(&repository, &config)?;
    let workspace = Workspace::load(&repository, &settings, &Cancel::new())?;
    let scope = scope::find_shown(&workspace, &repository, &settings, args.scope.as_ref())?;
    let refs = refs.finish()?;
    let is_gone = args.scope.is_some() && repository.find_branch(&scope.branch)?.is_none();
    let tip = scope.tip;
    let (mut work, mut run, parked) = read(&repository, scope, &refs, ahead, ui)?;
    let mut merged_into = None;
    if run.start.is_none()
        && args.scope.is_none()
        && args.tree.is_none()
        && let Some(merged) = scope::find_merged(&repository, &settings, &run)?
    {
        merged_into = Some(run.scope.branch.clone());
        (work, run, _) = read(&repository, merged, &refs, None, ui)?;
    }
    let parked_commits = find_parked_commits(&repository, parked, tip)?;
    let target = parked.map(|_| Target::new(&repository, &run.scope.branch));
    let obstacle = target.map_or(Ok(None), |target| target.find_obstacle())?;
    compare_elsewhere(&workspace.sections, &mut run)?;
    warn_of_unrecorded(&forget_unrecorded(&repository, &mut run)?, ui);
    // The process ends after the output: freeing ten thousand commits one by one would take a tenth of its time.
    let run: &Run = Box::leak(Box::new(run));
    if is_gone && run.start.is_none() && run.tasks.is_empty() {
        return Err(scope::unknown(&repository, run));
    }
    let found = source::find(&repository, &settings, run, args.tree.as_deref())?;
    let mut progress = Progress::new(found.plan.as_ref(), run, found.boxes);
    progress.mark_not_ready(|node| work.has(node));
    let totals = RunTotals::of_run(run);
    let kind = args.kind();
    let unpushed = find_unpushed(&workspace, &settings, run)?;
    let home = match (kind, args.tasks.as_slice()) {
        (Kind::Text, [_]) => repository.list_worktrees()?.into_iter().next().map(|main| main.path),
        _ => None,
    };
    let elsewhere = LazyCell::new(|| {
        let (start, plan) = (run.start.as_ref()?, found.plan.as_ref()?);
        Some(OtherBranches::open(&workspace.sections, plan, &start.session))
    });
    let lost = LostWork::find(&repository, run, &elsewhere, &mut progress)?;
    let logs = match (&home, args.tasks.as_slice()) {
        (Some(home), [task]) => TaskLogs::find(&repository, &settings, home, run, task),
        _ => TaskLogs::default(),
    };
    let branches = match (kind, args.tasks.as_slice()) {
        (Kind::Text, [task]) => elsewhere.as_ref().map(|elsewhere| elsewhere.find_unlanded(task)),
        _ => None,
    };
    let branches = branches.transpose()?.unwrap_or_default();
    let due_phase = found.plan.as_ref().and_then(|plan| find_due_phase(plan, &progress));
    let due_phase = due_phase.map(|phase| phase.id.clone());
    let plan = found.shown;
    let view = StateView {
        run,
        is_bare: repository.worktree.is_none(),
        plan,
        progress,
        totals,
        work,
        unpushed,
        parked,
        obstacle,
        parked_commits,
        lost,
        merged_into,
        continuation: Continuation::of(&repository, run),
        due_phase,
        home,
        branches,
        logs,
        args,
    };
    view.refuse_unknown(&repository, found.plan.as_ref())?;
    view.show(ui, kind)?;
    if run.start.is_none()
        && view.args.scope.is_none()
        && kind == Kind::Text
        && let Some(last) = scope::find_last_session_run(&workspace, &repository, &settings)?
    {
        ui.hint(&scope::hint_session_branch("git arborist state", &last.branch));
    }
    Ok(if view.args.exit_code && !view.is_settled() { Exit::No } else { Exit::Done })
}

fn warn_of_unrecorded(tasks: &[TaskId], ui: &mut Ui) {
    for task in tasks {
        ui.warn(&format!(
            "the branch of '{task}' has commits that the records of the session do not name; they do not count"
        ));
    }
}

impl StateArgs {
    /// The options that select the plan and the run, for hints.
    fn selection(&self) -> String {
        let tree = self.tree.as_ref().map(|tree| format!(" --tree {}", shell_word(&tree.to_string_lossy())));
        let branch = self.scope.as_ref().map(|branch| format!(" --scope {branch}"));
        tree.into_iter().chain(branch).collect()
    }

    fn kind(&self) -> Kind {
        match (self.json, self.short, self.list_ids) {
            (true, _, _) => Kind::Json,
            (_, true, _) => Kind::Short,
            (_, _, true) => Kind::Ids,
            _ => Kind::Text,
        }
    }
}

/// The commits that have landed, but are not on the branch yet.
fn find_parked_commits(
    repository: &Repository,
    parked: Option<Oid>,
    tip: Option<Oid>,
) -> Result<HashSet<Oid>, Failure> {
    match (parked, tip) {
        (Some(parked), Some(tip)) => Ok(repository.list_between(&[parked], &[tip])?.into_iter().collect()),
        _ => Ok(HashSet::new()),
    }
}

/// Work that is no longer where it was, and the queue, which knows about some of it.
struct LostWork {
    /// The tasks whose commits are no longer on the branch, each with the last of them.
    commits: HashMap<TaskId, Oid>,
    /// Tasks whose branches were deleted before they landed.
    branches: HashMap<TaskId, LostBranch>,
    /// The tickets of tasks that are complete and have not landed, or whose commits are gone.
    tickets: Vec<Ticket>,
    /// Tasks that have left the queue, by the last entry of its log.
    unqueued: HashSet<TaskId>,
}

impl LostWork {
    fn find(
        repository: &Repository,
        run: &Run,
        elsewhere: &LazyCell<Option<OtherBranches>, impl FnOnce() -> Option<OtherBranches>>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Failure> {
        let is_untouched = |node: &NodeProgress<'_>| node.state == State::Pending && node.history.is_none();
        let (mut commits, mut branches) = (HashMap::new(), HashMap::new());
        if progress.leaves().any(is_untouched) {
            commits.extend(find_lost_tasks(repository, run)?);
            branches = hold_lost(repository, run, progress)?;
        }
        let has_ticket = |node: &NodeProgress<'_>| node.is_unlanded() || is_untouched(node);
        let tickets = match progress.counted().any(has_ticket) {
            true => Store::new(repository).load(Some(&run.scope.branch))?,
            false => Vec::new(),
        };
        let mut tickets: Vec<Ticket> = tickets.into_iter().map(|stored| stored.ticket).collect();
        for ticket in &mut tickets {
            ticket.update_state(repository, run, elsewhere.as_ref())?;
        }
        for ticket in &tickets {
            let is_untouched = progress.find(&ticket.task).is_some_and(is_untouched);
            if is_untouched && OtherRun::find(repository, ticket, run)?.is_some_and(|other| other.is_gone) {
                commits.entry(ticket.task.clone()).or_insert(ticket.source);
            }
        }
        let is_unqueued = |node: &NodeProgress<'_>| {
            node.is_unlanded() && tickets.iter().all(|ticket| ticket.task != *node.id)
        };
        let mut unqueued = HashSet::new();
        if progress.counted().any(is_unqueued) {
            let mut known = HashSet::new();
            // Newest first: only the last entry of a task counts.
            for entry in Store::new(repository).load_logs(&run.scope.branch, Some(LOG_ENTRIES))? {
                let is_left = matches!(
                    entry.outcome,
                    LoggedOutcome::Dropped | LoggedOutcome::NotChosen | LoggedOutcome::Landed
                );
                if known.insert(entry.task.clone()) && is_left {
                    unqueued.insert(entry.task);
                }
            }
        }
        Ok(Self { commits, branches, tickets, unqueued })
    }
}

/// Finds tasks whose branches were deleted before they landed. A run refuses to begin them, so they are not ready.
fn hold_lost(
    repository: &Repository,
    run: &Run,
    progress: &mut Progress<'_>,
) -> Result<HashMap<TaskId, LostBranch>, Failure> {
    let found = find_lost_branches(repository, &run.scope.branch)?;
    let lost: HashMap<TaskId, LostBranch> =
        found.into_iter().map(|found| (found.task.clone(), found)).collect();
    progress.mark_not_ready(|node| lost.contains_key(node.id));
    Ok(lost)
}

/// How to show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Json,
    Short,
    Ids,
}

impl StateView<'_> {
    /// The selected tasks, in the order of the plan.
    fn selected(&self) -> impl Iterator<Item = &NodeProgress<'_>> {
        let StateArgs { tasks, ready: only_ready, .. } = &self.args;
        self.progress
            .nodes()
            .iter()
            .filter(move |node| tasks.is_empty() || tasks.contains(node.id))
            .filter(move |node| !only_ready || node.is_ready())
    }

    /// Whether all selected tasks are done and on the run's branch. If nothing is known, nothing is done; and a parked
    /// landing is not there yet.
    fn is_settled(&self) -> bool {
        let tasks = &self.args.tasks;
        let mut selected =
            self.progress.nodes().iter().filter(|s| tasks.is_empty() || tasks.contains(s.id)).peekable();
        let is_there = |node: &NodeProgress<'_>| {
            node.state == State::Skipped || (node.is_landed() && !self.is_parked(node))
        };
        selected.peek().is_some() && selected.all(is_there)
    }

    /// How much of the work is done. As in the summary of a run, parked landings do not count.
    fn share(&self) -> Share {
        let share = self.progress.share();
        let is_parked = |node: &&NodeProgress<'_>| node.is_landed() && self.is_parked(node);
        Share { done: share.done - self.progress.counted().filter(is_parked).count(), ..share }
    }

    /// Whether a task has landed in a commit that waits for the checkout.
    fn is_parked(&self, node: &NodeProgress<'_>) -> bool {
        let last = node.history.and_then(TaskHistory::last);
        last.is_some_and(|event| self.parked_commits.contains(&event.commit))
    }

    /// That the commits of a task are no longer on the branch.
    fn lost_words(&self, node: &NodeProgress<'_>) -> Option<String> {
        if let Some(lost) = self.lost.branches.get(node.id).filter(|_| node.state == State::Pending) {
            return Some(lost.to_string());
        }
        let last = self.find_lost(node)?;
        let is_queued = self.lost.tickets.iter().any(|ticket| ticket.task == *node.id);
        let queue = if is_queued { "; it is still queued, see 'git arborist merge status'" } else { "" };
        let branch = visible(self.run.scope.branch.as_str());
        Some(format!("its commits are no longer in {branch}, the last was {}{queue}", last.short()))
    }

    fn find_lost(&self, node: &NodeProgress<'_>) -> Option<Oid> {
        let tip = self.lost.branches.get(node.id).and_then(|lost| lost.tip);
        self.lost.commits.get(node.id).copied().or(tip).filter(|_| node.state == State::Pending)
    }

    /// Whether a complete task has left the queue and is not on the branch: the user removed it, another was chosen, or
    /// its landing was undone.
    fn is_unqueued(&self, node: &NodeProgress<'_>) -> bool {
        self.find_ticket(node).is_none() && self.lost.unqueued.contains(node.id)
    }

    /// The ticket of a task that is complete and has not landed.
    fn find_ticket(&self, node: &NodeProgress<'_>) -> Option<&Ticket> {
        self.lost.tickets.iter().find(|ticket| node.is_unlanded() && ticket.task == *node.id)
    }

    /// Refuses unknown tasks.
    fn refuse_unknown(&self, repository: &Repository, plan: Option<&Plan>) -> Result<(), Failure> {
        let Some(unknown) = self.args.tasks.iter().find(|id| self.progress.find(id).is_none()) else {
            return Ok(());
        };
        if let Some(failure) = scope::added_later(repository, self.run, unknown) {
            return Err(failure);
        }
        let place = if plan.is_some() { "the plan or the history" } else { "the history" };
        let failure =
            Failure::new(Exit::No, format!("no task '{unknown}' in {place} of '{}'", self.run.scope.branch));
        let known = self.progress.nodes().iter().map(|node| node.id.as_str());
        let all = format!("see all tasks with: git arborist state{}", self.args.selection());
        Err(failure.hint(scope::hint_nearest(unknown.as_str(), known, all)))
    }

    fn show(&self, ui: &mut Ui, kind: Kind) -> Outcome {
        match kind {
            Kind::Json => return print(ui, &document::StateDocument::new(self)),
            Kind::Short => tree::show_line(ui, self),
            Kind::Ids => {
                self.selected().for_each(|node| ui.line(&format!("{}\t{}", node.id, node.name)));
            }
            Kind::Text => match self.args.tasks.as_slice() {
                [task] if !self.args.ready => detail::show(ui, self, task),
                _ => tree::show(ui, self),
            },
        }
        Ok(Exit::Done)
    }

    fn count(&self, state: State) -> usize {
        self.progress.count(state)
    }
}
