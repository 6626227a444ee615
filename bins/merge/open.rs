//! Opens the repository, the selected run and its settings, for all verbs of `merge`.

use std::collections::BTreeMap;

use arborist_core::{
    failure::{Exit, Explain, Failure},
    gardener::{GardenerError, start},
    git::{Config, Network, Repository},
    history::{CommitSource, HistoryError, Run, RunScope, State},
    name::{BranchName, TaskId},
    plan::Plan,
    process::{Cancel, shell_word},
    queue::{LoggedOutcome, OtherBranches, QueueClaim, QueueError, Store, Target, Ticket, opened_for},
    run::Continuation,
    session::forget_unrecorded,
    settings::Settings,
    workspace::{Workspace, compare_for_display},
};

use super::{QueueScopeArgs, show};
use crate::{clock, scope, ui::Ui};

/// A repository, and the selected run in it.
pub(super) struct OpenQueue {
    pub(super) repository: Repository,
    pub(super) scope: RunScope,
    /// Whether we were started in the worktree of a conflict, which may be removed afterwards.
    pub(super) is_in_conflict: bool,
    config: Config,
}

impl OpenQueue {
    /// Finds both. In the worktree of a conflict, its run is selected, and we work from the main worktree.
    pub(super) fn open(args: &QueueScopeArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let (repository, config) = crate::entry::open_repository(ui)?;
        let Some(run) = opened_for(&repository) else {
            let scope = scope::resolve(&repository, args.scope.as_ref())?;
            let site = Self { repository, scope, is_in_conflict: false, config };
            if args.scope.is_some() && site.store().load(Some(&site.scope.branch))?.is_empty() {
                scope::require(&site.repository, &site.scope)?;
            }
            return Ok(site);
        };
        let main = repository.list_worktrees()?.into_iter().next();
        let repository = main.map_or(Ok(repository), |main| Repository::discover_from(&main.path))?;
        let scope = RunScope::resolve(&repository, Some(args.scope.as_ref().unwrap_or(&run)))?;
        Ok(Self { repository, scope, is_in_conflict: true, config })
    }

    /// Like [`Self::open`], but for landing: history that a shallow clone lacks is fetched, which is reported.
    pub(super) fn open_to_land(args: &QueueScopeArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let site = Self::open(args, ui)?;
        let is_readable = || match Run::scan(&site.repository, site.run_scope()?, CommitSource::Fresh) {
            Err(HistoryError::Shallow { .. }) => Ok(false),
            // Any other error is reported when the history is needed.
            _ => Ok::<_, Failure>(true),
        };
        if site.repository.is_shallow && !is_readable()? {
            let settings = Settings::load(&site.repository, &site.config)?;
            let network = Network { silence: settings.network_silence(), cancel: Cancel::new() };
            let deepened = site.repository.deepen_until(&network, is_readable)?;
            ui.note(&deepened.to_string());
        }
        Ok(site)
    }

    /// A command of `merge` for a hint, which selects the same run from the current directory.
    pub(super) fn command(&self, verb: &str) -> String {
        format!("git arborist merge {verb}{}", self.scope_option())
    }

    /// The command that lands a queued task that is not complete.
    pub(super) fn by_force(&self, ticket: &Ticket) -> String {
        let is_own = ticket.into == self.scope.branch;
        let into = if is_own { String::new() } else { format!(" --into {}", ticket.into) };
        self.command(&format!("{}{into} --force", ticket.task))
    }

    /// How the run is continued, for hints.
    pub(super) fn continuation<'a>(&'a self, run: &'a Run) -> Continuation<'a> {
        Continuation::of(&self.repository, run)
    }

    /// The command that starts a task over.
    pub(super) fn start_over(&self, run: &Run, task: &TaskId) -> String {
        let again = self.continuation(run).continue_run("");
        format!("git arborist reset {task}{} && {again}", self.scope_option())
    }

    /// The hint for a task that cannot land because there is no run.
    pub(super) fn hint_without_run(&self, run: &Run, task: &TaskId) -> String {
        match self.settings(run) {
            Ok(settings) => {
                let again = format!("git arborist merge add {task}");
                // A session that has not done the task yet has to be continued first.
                let workspace = Workspace::load(&self.repository, &settings, &Cancel::new()).ok();
                let find = |workspace: Workspace| {
                    scope::find_last_session_run(&workspace, &self.repository, &settings).ok()
                };
                let apart = workspace.and_then(find).flatten();
                let has_it = |scope: &RunScope| {
                    let tip = self.repository.find_branch(&scope.branch).ok().flatten();
                    let scope = RunScope { branch: scope.branch.clone(), tip };
                    let run = Run::scan(&self.repository, scope, CommitSource::Cached);
                    run.is_ok_and(|run| run.find(task).is_some())
                };
                match apart.filter(|scope| self.scope_option().is_empty() && !has_it(scope)) {
                    Some(RunScope { branch, .. }) => {
                        let next = "git arborist gardener --session-branch";
                        format!("the last session works on '{branch}'; to continue it, run: {next}")
                    }
                    None => scope::hint_without_run(&self.repository, &settings, run, " --isolate", &again),
                }
            }
            Err(_) => format!("start a run with: {}", self.continuation(run).continue_run(" --jobs 2")),
        }
    }

    /// The option that selects the same run, for hints.
    pub(super) fn scope_option(&self) -> String {
        scope::option(&self.repository, &self.scope.branch)
    }

    /// The hints with the commands that queue removed tasks again, one for each target. A branch that is gone is brought
    /// back first, and a task that is not complete is queued by force.
    pub(super) fn queued_again(&self, removed: &[Ticket]) -> Result<Vec<String>, Failure> {
        let run = self.scan(CommitSource::Cached)?;
        let mut groups: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for ticket in removed {
            let branch = ticket.branch();
            let is_lost = self.repository.find_branch(&branch)?.is_none();
            let is_own = ticket.into == self.scope.branch;
            let into = if is_own { String::new() } else { format!(" --into {}", ticket.into) };
            let is_forced = ticket.forced || !is_lost && run.state_of(&ticket.task) != State::Complete;
            let force = if is_forced { " --force" } else { "" };
            let (before, tasks) = groups.entry(format!("{into}{force}")).or_default();
            tasks.push(ticket.task.to_string());
            if is_lost {
                before.push_str(&format!("git branch {} {} && ", shell_word(branch.as_str()), ticket.source));
            }
        }
        let hints = groups.iter().map(|(options, (before, tasks))| {
            let what = if tasks.len() == 1 { "it" } else { "them" };
            let add = self.command(&format!("add {}{options}", tasks.join(" ")));
            format!("to queue {what} again, run: {before}{add}")
        });
        Ok(hints.collect())
    }

    /// The error for a task that is not queued for this run, because it has landed or was never queued, or the error of
    /// reading what has landed. Names other runs for which it is queued. `verb` is the verb of the command that failed.
    pub(super) fn not_queued(&self, verb: &str, task: &TaskId) -> Failure {
        let result = if verb == "resolve" { "there is nothing to resolve" } else { "it is no longer queued" };
        let log = match show::entries(self, None) {
            Ok(log) => log,
            Err(unreadable) => return unreadable,
        };
        let last = log.into_iter().find(|entry| entry.task == *task);
        if let Some(entry) = last.filter(|entry| entry.outcome == LoggedOutcome::Landed) {
            let commit = entry.commit.map(|commit| format!(" ({})", commit.short())).unwrap_or_default();
            let words = format!("'{task}' has already landed{commit}, so {result}");
            return Failure::new(Exit::No, words);
        }
        let words = QueueError::NotQueued { task: task.clone() }.to_string();
        let all = self.store().load(None).unwrap_or_default().into_iter();
        let of_others = all.map(|stored| stored.ticket).filter(|ticket| ticket.task == *task);
        let runs: Vec<BranchName> = of_others.map(|ticket| ticket.scope).collect();
        let failure = Failure::new(Exit::No, words);
        match runs.as_slice() {
            [] => failure.hint(format!("see the queue with: {}", self.command("list"))),
            [run] => failure.hint(format!(
                "the run of '{run}' has queued it: git arborist merge {verb} {task} --scope {run}"
            )),
            runs => {
                let options: Vec<String> = runs.iter().map(|run| format!("--scope {run}")).collect();
                failure.hint(format!("other runs have queued it; add {}", options.join(" or ")))
            }
        }
    }

    /// An error of `merge resolve`, with hints that select the same run. `into` is the option for the target.
    pub(super) fn explain(&self, error: QueueError, into: &str) -> Failure {
        let failure = Failure::new(error.exit(), error.to_string());
        match &error {
            QueueError::NoConflict { task, command, .. } => {
                failure.hint(command.advice(task, &self.scope_option()))
            }
            QueueError::CannotBeParked(resolution) => {
                let run = self.command(&format!("resolve {}{into} --yes", resolution.task));
                failure.hint(resolution.advice(&run))
            }
            _ => error.into(),
        }
    }

    pub(super) fn store(&self) -> Store<'_> {
        Store::new(&self.repository)
    }

    /// The processes that are landing now.
    pub(super) fn claims(&self) -> Result<Vec<QueueClaim>, Failure> {
        Ok(QueueClaim::list(&self.repository, clock::now())?)
    }

    /// The state of the run, including a parked landing.
    pub(super) fn scan(&self, reading: CommitSource) -> Result<Run, Failure> {
        Ok(self.scan_with_unrecorded(reading)?.0)
    }

    /// Like [`Self::scan`], and also returns the tasks with work on their own branches that no record mentions.
    pub(super) fn scan_with_unrecorded(&self, reading: CommitSource) -> Result<(Run, Vec<TaskId>), Failure> {
        let mut run = Run::scan(&self.repository, self.run_scope()?, reading)?;
        let unrecorded = forget_unrecorded(&self.repository, &mut run)?;
        if let Ok(settings) = self.settings(&run) {
            compare_for_display(&self.repository, &settings, &mut run)?;
        }
        Ok((run, unrecorded))
    }

    /// The run with what is parked for its branch.
    fn run_scope(&self) -> Result<RunScope, Failure> {
        let branch = self.scope.branch.clone();
        let position = Target::new(&self.repository, &branch).find()?;
        let tip = position.map(|position| position.tip()).or(self.scope.tip);
        Ok(RunScope { branch, tip })
    }

    /// Refuses uncommitted changes to the settings, because their gates would not be the ones that run.
    pub(super) fn refuse_changed_settings(&self, run: &Run) -> Result<(), Failure> {
        if self.repository.worktree.is_none()
            || self.repository.head.branch.as_ref() != Some(&self.scope.branch)
        {
            return Ok(());
        }
        let Err(error) = start::require_unchanged(&self.repository, run, None, None) else { return Ok(()) };
        // Files that are not valid cannot be accepted.
        Settings::load_for_run(&self.repository, &self.config)?;
        let accept = self.continuation(run).continue_run(" --accept-changes --yes");
        let failure = Failure::new(error.exit(), error.to_string());
        let failure = match error.unaccepted_change() {
            Some(change) => failure.hint(change.words()),
            None => failure,
        };
        Err(failure.hint(format!("or accept it and its commands, which also continues the run: {accept}")))
    }

    /// Refuses a branch to land on that does not exist.
    pub(super) fn require_target(&self, into: &BranchName) -> Result<(), Failure> {
        match self.repository.find_branch(into)? {
            Some(_) => Ok(()),
            None if self.repository.head.branch.as_ref() == Some(into) => {
                Err(GardenerError::Unborn(into.clone()).into())
            }
            None => Err(QueueError::NoTarget(into.clone()).into()),
        }
    }

    /// The settings of a run. Those of the repository are read from the commit that the run accepted, never from a file
    /// that agents can edit.
    pub(super) fn settings(&self, run: &Run) -> Result<Settings, Failure> {
        Ok(match &run.start {
            Some(start) => Settings::load_at(&self.repository, &self.config, start.accepted)?,
            None => Settings::load(&self.repository, &self.config)?,
        })
    }

    /// The branches of the run's tasks in the other repositories of its workspace, if it has any.
    pub(super) fn other_branches(&self, run: &Run) -> Result<Option<OtherBranches>, Failure> {
        let (plan, settings) = (self.plan(run)?, self.settings(run)?);
        Ok(OtherBranches::of_run(&self.repository, &settings, run, plan.as_ref())?)
    }

    /// The plan that the run was frozen with.
    pub(super) fn plan(&self, run: &Run) -> Result<Option<Plan>, Failure> {
        Ok(Plan::read_frozen(&self.repository, run.frozen_plan())?.transpose()?)
    }
}
