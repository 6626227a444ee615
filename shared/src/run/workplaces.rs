//! Where the tasks of a run work, and what has to be so before they do: the checkout of the run, or lanes.

use std::path::Path;

use super::{CallSource, OpenRun, Planned, RunListener, closing::RunMonitor, request::secrets};
use crate::{
    failure::{Exit, Failure},
    gardener::{Attended, GardenerError, Lanes, LeftMarks, Proofs},
    git::{GoingOn, TreeChange},
    history::Run,
    message::plain_text,
    queue::{Queue, QueueEvent, QueueOptions, Target},
    record::RunRecorder,
    safe_files::{self, FileKind},
    settings::Settings,
    worktree::{Pool, WorktreeOptions},
};

impl OpenRun {
    /// Lanes for so many tasks at once.
    pub fn lanes(&self, jobs: usize, planned: &Planned, run: &Run) -> Result<Lanes<'_>, Failure> {
        let mut queue = self.queue_options(planned)?;
        queue.fan_in = self.request.lanes.policy;
        queue.worktrees.session = Some(self.session(run).clone());
        queue.worktrees.repo = Some(self.workspace.main().name.clone());
        queue.worktrees.want_lanes(Lanes::wanted(jobs));
        Ok(Lanes {
            repository: &self.repository,
            pool: Pool::open(&self.repository, &self.branch, queue.worktrees.clone())
                .map_err(GardenerError::from)?,
            jobs,
            lock: &self.lock,
            queue,
            left: LeftMarks::default(),
            with_orphan_lock: Attended::default(),
            proofs: Proofs::default(),
        })
    }

    /// How what is finished in lanes lands.
    fn queue_options(&self, planned: &Planned) -> Result<QueueOptions, Failure> {
        let queue = QueueOptions::new(&self.options.runners, secrets()?, &self.cancel, self.clock)?;
        let queue = queue.guarded_by(&self.config_guard);
        let queue = queue.briefed(&planned.plan).spread(&self.workspace.sections, &planned.plan);
        let queue = queue.tested_by(self.options.test_command.as_deref(), self.options.test_origin);
        // Where records are played again, no agent resolves a conflict.
        let resolver = queue.resolver.clone().filter(|_| self.request.source == CallSource::Agents);
        Ok(QueueOptions { report_dir: self.options.report_dir.clone(), resolver, ..queue })
    }

    pub(super) fn worktree_options(&self) -> WorktreeOptions {
        let mut options = WorktreeOptions::new(&self.settings, &self.cancel);
        options.config_guard = self.config_guard.clone();
        // A number of jobs that cannot be read is reported where lanes are opened.
        if let Ok(Some(jobs)) = self.request.lanes.count(&self.settings) {
            options.want_lanes(Lanes::wanted(jobs));
        }
        options
    }

    /// Settles which untracked files worktrees get, before the first child process can write to a checkout.
    pub(super) fn settle_files(&self) -> Result<(), Failure> {
        Pool::open(&self.repository, &self.branch, self.worktree_options())?;
        for other in &self.others {
            let options = WorktreeOptions::new(&Settings::default(), &self.cancel);
            Pool::open(&other.repository, &other.branch, options)?;
        }
        Ok(())
    }

    /// Brings the plan to where the run works, and refuses to mix the work of agents with what the user has not committed.
    pub(super) fn prepare_workplace(
        &self,
        planned: &Planned,
        recorder: &RunRecorder<'_>,
        lanes: Option<&Lanes<'_>>,
        monitor: &mut RunMonitor<'_>,
    ) -> Result<(), Failure> {
        self.bring_plan(planned)?;
        self.hide_logs()?;
        match lanes {
            None => self.refuse_uncommitted(recorder, planned),
            Some(lanes) => self.prepare_lanes(lanes, monitor.listener()),
        }
    }

    /// Hides logs from `git status` by an entry in the repository's own exclude file.
    fn hide_logs(&self) -> Result<(), Failure> {
        self.refuse_tracked_link()?;
        // The user may well keep them on another disk. What an agent links there later is not theirs.
        safe_files::allow_linked(&self.repository.top().join(&self.options.log_dir));
        Ok(self.repository.exclude(&format!("/{}/", self.options.log_dir.trim_matches('/')))?)
    }

    /// A link that the user made may lead to another disk. One that came with the repository was chosen by someone else.
    fn refuse_tracked_link(&self) -> Result<(), Failure> {
        let top = self.repository.top();
        let folders: Vec<&Path> = Path::new(self.options.log_dir.trim_matches('/')).ancestors().collect();
        let is_link = |folder: &&&Path| safe_files::kind_of(&top.join(folder)) == Some(FileKind::Link);
        // From the top: below the first link, nothing is tracked here.
        let Some(link) = folders.iter().rev().find(is_link) else { return Ok(()) };
        let is_tracked = self.repository.find_path(self.head, &link.to_string_lossy())?.is_some();
        if !is_tracked || safe_files::resolved(&top.join(link)).starts_with(safe_files::resolved(top)) {
            return Ok(());
        }
        let what = format!(
            "logs would be written outside of the repository: '{}' is a tracked link that leads there",
            link.display()
        );
        Err(Failure::new(Exit::No, what).hint("keep logs elsewhere with: --log-dir logs"))
    }

    /// What is not committed could be lost or mixed in. The plan and the configuration are committed with the start.
    fn refuse_uncommitted(&self, recorder: &RunRecorder<'_>, planned: &Planned) -> Result<(), Failure> {
        if let Some(going_on) = GoingOn::find_operation(&self.repository.git_dir) {
            return Err(GardenerError::GoingOn(going_on.what).into());
        }
        if self.request.allow_dirty || self.settings.switch("allow-dirty") == Some(true) {
            return Ok(());
        }
        let changes = self.repository.changes(recorder.tree(), self.repository.snapshot()?)?;
        let plan = planned.file.as_ref().map(|file| file.path.as_str());
        // What git is told not to look at stays out of commits, and is not shown by 'git status' either.
        let hidden = self.repository.hidden()?;
        let uncommitted: Vec<String> = changes
            .iter()
            .filter(|change| !hidden.contains(&change.path))
            .map(TreeChange::shown)
            .filter(|path| Some(path.as_str()) != plan && path != ".arborist/config.toml")
            .collect();
        if uncommitted.is_empty() { Ok(()) } else { Err(GardenerError::Dirty(uncommitted.join(", ")).into()) }
    }

    /// What a crashed run left running in lanes is ended. What is not committed in the checkout is not seen there.
    fn prepare_lanes(&self, lanes: &Lanes<'_>, listener: &mut dyn RunListener) -> Result<(), Failure> {
        let ended: Vec<String> = lanes.clear()?.iter().map(ToString::to_string).collect();
        if !ended.is_empty() {
            listener.warn(&format!("ended what a crashed run had left running: {}", ended.join(", ")));
        }
        let (jobs, max) = (lanes.jobs, lanes.pool.max());
        if max < jobs {
            listener
                .warn(&format!("worktree.max is {max}: at most {max} of {jobs} jobs are at work at once"));
        }
        self.check_parked(lanes, listener)?;
        if !self.repository.is_clean()? {
            listener.warn("what is not committed stays in your checkout, and the tasks do not see it");
        }
        Ok(())
    }

    /// Lanes begin at what is parked for the target. What another process parked is asked about before.
    fn check_parked(&self, lanes: &Lanes<'_>, listener: &mut dyn RunListener) -> Result<(), Failure> {
        let position = Target::new(&self.repository, &self.branch).find()?;
        if position.is_none_or(|position| position.parked.is_none()) {
            return Ok(());
        }
        let (run, target) = (self.branch.clone(), self.branch.clone());
        let queue = Queue::open(&self.repository, run, target, self.clock)?;
        Ok(queue.check_parked(&lanes.queue, &mut |event| {
            if let QueueEvent::Note { words } = event {
                listener.warn(&plain_text(&words));
            }
        })?)
    }
}
