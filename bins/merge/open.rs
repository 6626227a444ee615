//! What every verb of `merge` begins with: the repository, the run that is meant, and the settings that hold for it.

use std::path::Path;

use arborist_core::{
    failure::{Explain, Failure},
    gardener::start,
    git::{Config, Network, Repository},
    history::{CommitSource, HistoryError, Run, RunScope},
    name::TaskId,
    plan::Plan,
    process::Cancel,
    queue::{QueueClaim, QueueError, Store, Target, opened_for},
    session::forget_unrecorded,
    settings::Settings,
};

use super::QueueScopeArgs;
use crate::{clock, scope, ui::Ui};

/// A repository, and the run in it that is meant.
pub(super) struct OpenQueue {
    pub(super) repository: Repository,
    pub(super) scope: RunScope,
    /// True if we were started in a worktree that a person resolves a conflict in, which may be gone afterwards.
    pub(super) is_in_conflict: bool,
    config: Config,
}

impl OpenQueue {
    /// Finds both. In the worktree of a conflict its run is meant, and all is done from the main worktree.
    pub(super) fn open(args: &QueueScopeArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let config = Config::start(Path::new("."))?;
        let repository = Repository::discover()?;
        let config = config.finish()?;
        ui.configure(&config);
        let Some(run) = opened_for(&repository) else {
            let scope = RunScope::resolve(&repository, args.scope.as_ref())?;
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

    /// The same for one who lands something: what a shallow history lacks for that is fetched, and said so.
    pub(super) fn open_to_land(args: &QueueScopeArgs, ui: &mut Ui) -> Result<Self, Failure> {
        let site = Self::open(args, ui)?;
        let is_readable = || match site.try_scan(CommitSource::Fresh)? {
            Err(HistoryError::Shallow { .. }) => Ok(false),
            // Whatever else is wrong is said by whoever asks for it.
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

    /// A command of `merge` to go on with, which means the same run where we were started.
    pub(super) fn command(&self, verb: &str) -> String {
        let branch = &self.scope.branch;
        let is_usual = RunScope::resolve(&self.repository, None).is_ok_and(|found| found.branch == *branch);
        let scope = if is_usual { String::new() } else { format!(" --scope {branch}") };
        format!("git arborist merge {verb}{scope}")
    }

    /// What brings tasks back that were taken out of the queue.
    pub(super) fn queued_again(&self, tasks: &[&TaskId]) -> String {
        let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
        format!("back into the queue with: {}", self.command(&format!("add {}", names.join(" "))))
    }

    /// The task is not queued for this run. Where it is for others, they are named.
    pub(super) fn not_queued(&self, task: &TaskId) -> Failure {
        let failure = Failure::from(QueueError::NotQueued { task: task.clone() });
        let all = self.store().load(None).unwrap_or_default().into_iter();
        let of_others = all.map(|stored| stored.ticket).filter(|ticket| ticket.task == *task);
        let runs: Vec<String> = of_others.map(|ticket| format!("--scope {}", ticket.scope)).collect();
        if runs.is_empty() {
            return failure;
        }
        failure.hint(format!("another run has queued it: add {}", runs.join(" or ")))
    }

    pub(super) fn store(&self) -> Store<'_> {
        Store::new(&self.repository)
    }

    /// Who is landing now.
    pub(super) fn claims(&self) -> Result<Vec<QueueClaim>, Failure> {
        Ok(QueueClaim::list(&self.repository, clock::now())?)
    }

    /// What history says, with what is parked for the run's branch.
    pub(super) fn scan(&self, reading: CommitSource) -> Result<Run, Failure> {
        Ok(self.scan_with_unrecorded(reading)?.0)
    }

    /// The same, and the tasks whose work on their own branches no record knows.
    pub(super) fn scan_with_unrecorded(&self, reading: CommitSource) -> Result<(Run, Vec<TaskId>), Failure> {
        let mut run = self.try_scan(reading)??;
        let unrecorded = forget_unrecorded(&self.repository, &mut run)?;
        Ok((run, unrecorded))
    }

    fn try_scan(&self, reading: CommitSource) -> Result<Result<Run, HistoryError>, Failure> {
        let branch = self.scope.branch.clone();
        let position = Target::new(&self.repository, &branch).find()?;
        let tip = position.map(|position| position.tip()).or(self.scope.tip);
        Ok(Run::scan(&self.repository, RunScope { branch, tip }, reading))
    }

    /// Gates that somebody has just changed in the checkout would not be those that are asked: better to say so.
    pub(super) fn refuse_changed_settings(&self, run: &Run) -> Result<(), Failure> {
        if self.repository.worktree.is_none()
            || self.repository.head.branch.as_ref() != Some(&self.scope.branch)
        {
            return Ok(());
        }
        start::require_unchanged(&self.repository, run, None, None).map_err(|error| {
            Failure::new(error.exit(), error.to_string())
                .hint("accept it with: git arborist gardener --accept-changes")
        })
    }

    /// The settings of a run: what the repository brings along is read from the commit that the run accepted, never
    /// from a file that agents edit.
    pub(super) fn settings(&self, run: &Run) -> Result<Settings, Failure> {
        Ok(match &run.start {
            Some(start) => Settings::load_at(&self.repository, &self.config, start.accepted)?,
            None => Settings::load(&self.repository, &self.config)?,
        })
    }

    /// The plan that the run was frozen with.
    pub(super) fn plan(&self, run: &Run) -> Result<Option<Plan>, Failure> {
        let Some(frozen) = run.start.as_ref().and_then(|start| start.plan.as_ref()) else {
            return Ok(None);
        };
        let bytes = self.repository.find_blob(frozen.blob)?;
        Ok(bytes.map(|bytes| Plan::read(&frozen.path, &bytes)).transpose()?)
    }
}
