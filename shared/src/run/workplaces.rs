//! Prepares the places where tasks work: the run's checkout, or lanes.

use std::{path::Path, sync::MutexGuard};

use super::{
    CallSource, OpenRun, Planned, RunListener, branch_choice::warn_of_uncommitted_files, monitor::RunMonitor,
    request::secrets,
};
use crate::{
    failure::{Exit, Failure},
    gardener::{GardenerError, Lanes, LeftMarks},
    git::{OperationInProgress, Repository, SavedCheckout, SavedCheckouts, TreeChange},
    history::{Run, State},
    message::plain_text,
    mutex::{MutexExt, SharedSet},
    name::SessionId,
    pipeline::RunOptions,
    queue::{Queue, QueueEvent, QueueOptions, Target},
    record::{LogLink, RunRecorder},
    safe_files::{self, InnerPath},
    settings::{Settings, TRACKED_FILES},
    worktree::{Pool, WorktreeOptions},
};

impl OpenRun {
    /// Lanes for `jobs` tasks at once.
    pub fn lanes(&self, jobs: usize, planned: &Planned, run: &Run) -> Result<Lanes<'_>, Failure> {
        let mut queue = self.queue_options(planned)?;
        queue.rules.policy = self.request.lanes.policy;
        queue.remote_work = self.remote_work.clone();
        queue.worktrees.session = Some(self.session(run).clone());
        queue.worktrees.repo = Some(self.workspace.main().name.clone());
        queue.worktrees.want_lanes(Lanes::number_for(jobs));
        Ok(Lanes {
            repository: &self.repository,
            pool: Pool::open(&self.repository, &self.branch, queue.worktrees.clone())
                .map_err(GardenerError::from)?,
            jobs,
            lock: &self.lock,
            queue,
            left: LeftMarks::default(),
            visited: SharedSet::default(),
            green_trees: SharedSet::default(),
            green_lanes: SharedSet::default(),
        })
    }

    /// How tasks that are finished in lanes land.
    fn queue_options(&self, planned: &Planned) -> Result<QueueOptions, Failure> {
        let queue = QueueOptions::new(&self.options.runners, secrets()?, &self.cancel, self.clock)?;
        let queue = queue.with_guard(&self.config_guard);
        let queue = queue.with_plan(&planned.plan, &self.workspace.sections);
        let queue =
            queue.with_test_command(self.options.test_command.as_deref(), self.options.test_command_origin);
        // In a replay, no agent resolves conflicts.
        let resolver = queue.resolver.clone().filter(|_| self.request.source == CallSource::Agents);
        Ok(QueueOptions {
            report_dir: self.options.report_dir.clone(),
            protection: self.options.protection.clone(),
            resolver,
            ..queue
        })
    }

    pub(super) fn worktree_options(&self) -> WorktreeOptions {
        let mut options = WorktreeOptions::new(&self.settings, &self.cancel);
        options.config_guard = self.config_guard.clone();
        options.sandbox = self.options.sandbox.clone();
        // An invalid number of jobs is reported when lanes are opened.
        if let Ok(Some(jobs)) = self.request.lanes.count(&self.settings) {
            options.want_lanes(Lanes::number_for(jobs));
        }
        options
    }

    /// Determines which untracked files worktrees get, before the first child process can write to a checkout.
    pub(super) fn list_copied_files(&self) -> Result<(), Failure> {
        // The first opening of a pool lists them, for all later ones of this process.
        Pool::open(&self.repository, &self.branch, self.worktree_options())?;
        for other in &self.others {
            let options = WorktreeOptions::new(&Settings::default(), &self.cancel);
            Pool::open(&other.repository, &other.branch, options)?;
        }
        Ok(())
    }

    /// Copies the plan to where the run works, and refuses to mix agents' work with uncommitted changes of the user.
    pub(super) fn prepare_workplace(
        &self,
        planned: &Planned,
        run: &Run,
        recorder: &RunRecorder<'_>,
        lanes: Option<&Lanes<'_>>,
        monitor: &mut RunMonitor<'_>,
    ) -> Result<(), Failure> {
        self.save_left_checkouts(monitor.listener);
        self.bring_plan(planned)?;
        self.require_inner_folders()?;
        self.hide_logs()?;
        match lanes {
            None => {
                if let Some(operation) = OperationInProgress::find_operation(&self.repository.git_dir) {
                    return Err(GardenerError::OperationInProgress(operation.what).into());
                }
                // If nothing is left to do, no agent can touch uncommitted changes.
                if !self.has_no_task_left {
                    let is_clean = is_clean(&self.repository);
                    if !is_clean {
                        self.refuse_unmerged(run)?;
                        self.refuse_uncommitted(recorder, planned, run)?;
                    }
                    if self.home == self.repository.top() {
                        if !is_clean {
                            self.save_checkout(&self.repository, "your checkout", monitor.listener);
                        }
                        self.refuse_untracked_repository()?;
                    }
                }
            }
            Some(lanes) => self.prepare_lanes(lanes, planned, monitor.listener)?,
        }
        self.prepare_folders()
    }

    /// Saves uncommitted work of the user's checkouts in which no task works: the one that the run left for a session's
    /// worktree, and those of the other repositories.
    pub(super) fn save_left_checkouts(&self, listener: &mut dyn RunListener) {
        if self.has_no_task_left {
            return;
        }
        if self.home != self.repository.top()
            && let Ok(user) = Repository::open_at(&self.home)
        {
            self.save_unless_clean(&user, "your checkout", listener);
        }
        for other in self.others.iter().filter(|other| other.repository.worktree.is_some()) {
            let place = format!("your checkout of '{}'", other.section.name);
            self.save_unless_clean(&other.repository, &place, listener);
        }
    }

    fn save_unless_clean(&self, user: &Repository, place: &str, listener: &mut dyn RunListener) {
        if !is_clean(user) {
            self.save_checkout(user, place, listener);
        }
    }

    /// Saves uncommitted work of a checkout, which messages call `place`. The run does not depend on it, so an error is
    /// a warning.
    pub(super) fn save_checkout(&self, user: &Repository, place: &str, listener: &mut dyn RunListener) {
        let mut saved_checkouts = self.saved_checkouts();
        if saved_checkouts.iter().any(|saved| saved.is_of(user)) {
            return;
        }
        let SavedCheckouts { checkouts, failures } = user.save_uncommitted(place);
        saved_checkouts.extend(checkouts);
        failures.iter().for_each(|words| listener.warn_of_failure(words));
    }

    /// Refuses to let agents work beside an untracked repository of the user, whose files and commits cannot be saved.
    fn refuse_untracked_repository(&self) -> Result<(), Failure> {
        let saved_checkouts = self.saved_checkouts();
        let saved = saved_checkouts.iter().find(|saved| saved.is_of(&self.repository));
        match saved.and_then(SavedCheckout::find_untracked_repository) {
            Some(path) => Err(GardenerError::UntrackedRepository(path).into()),
            None => Ok(()),
        }
    }

    pub(super) fn saved_checkouts(&self) -> MutexGuard<'_, Vec<SavedCheckout>> {
        self.saved_checkouts.hold()
    }

    /// Reports are committed. Logs are hidden from git, and all commands look for them in the checkout.
    fn require_inner_folders(&self) -> Result<(), Failure> {
        let RunOptions { log_dir, report_dir, .. } = &self.options;
        for (key, folder) in [("report-dir", report_dir), ("log-dir", log_dir)] {
            if let Err(error) = folder.trim_end_matches('/').parse::<InnerPath>() {
                let what = format!("the {key} {error}");
                return Err(Failure::new(Exit::No, what).hint(format!("choose another folder with --{key}")));
            }
        }
        Ok(())
    }

    /// Hides logs from `git status` by an entry in the repository's own exclude file.
    fn hide_logs(&self) -> Result<(), Failure> {
        self.refuse_tracked_link()?;
        // The user may keep logs on another disk behind a link. A link that an agent makes later is not allowed.
        safe_files::allow_linked(&self.repository.top().join(&self.options.log_dir));
        Ok(self.repository.exclude_logs(&self.options.log_dir)?)
    }

    /// Creates the folder of logs, and refuses a folder of logs or reports that would replace a file. This is found
    /// before the run starts, not by its first task.
    fn prepare_folders(&self) -> Result<(), Failure> {
        if self.has_no_task_left {
            return Ok(());
        }
        let RunOptions { log_dir, report_dir, .. } = &self.options;
        for (key, top, folder) in
            [("log-dir", self.home.as_path(), log_dir), ("report-dir", self.repository.top(), report_dir)]
        {
            if let Some(file) = safe_files::find_file_in_way(top, Path::new(folder.trim_end_matches('/'))) {
                let what = format!("'{folder}' cannot be the {key}: '{}' is a file", file.display());
                return Err(Failure::new(Exit::No, what).hint(format!("choose another folder with --{key}")));
            }
        }
        let logs = self.home.join(log_dir);
        // An earlier run may have been killed before the guard opened folders that a child had closed.
        safe_files::allow_writing_around(&self.home, &logs.join("log"));
        safe_files::make_folders(&logs).map_err(|error| {
            let what = format!("logs cannot be written to '{}': {error}", logs.display());
            Failure::new(Exit::No, what).hint("choose another folder with --log-dir")
        })
    }

    /// A link made by the user may lead to another disk. A tracked link was chosen by whoever committed it, so it must
    /// stay in the worktree.
    fn refuse_tracked_link(&self) -> Result<(), Failure> {
        let Some(LogLink { link, target }) =
            LogLink::find_tracked(&self.repository, self.repository.top(), self.head, &self.options.log_dir)?
        else {
            return Ok(());
        };
        let what = format!(
            "logs would be written to '{}': '{}' is a tracked symbolic link",
            target.display(),
            link.display()
        );
        Err(Failure::new(Exit::No, what).hint("keep logs elsewhere with: --log-dir logs"))
    }

    /// Refuses unresolved conflicts: git cannot store an index that has them.
    fn refuse_unmerged(&self, run: &Run) -> Result<(), Failure> {
        let files = self.repository.unmerged_paths()?;
        if files.is_empty() {
            return Ok(());
        }
        let has_done = has_done(run);
        Err(GardenerError::Unmerged { files, has_done, session: self.session_elsewhere(run) }.into())
    }

    /// The session and the folder of its worktree, if the run works there and not in the user's checkout.
    fn session_elsewhere(&self, run: &Run) -> Option<(SessionId, String)> {
        let is_elsewhere = self.has_session_branch && self.home != self.repository.top();
        is_elsewhere.then(|| (self.session(run).clone(), self.repository.top().display().to_string()))
    }

    /// Refuses uncommitted changes, which could be lost or mixed into commits. The plan and the configuration are
    /// committed with the start of the run.
    fn refuse_uncommitted(
        &self,
        recorder: &RunRecorder<'_>,
        planned: &Planned,
        run: &Run,
    ) -> Result<(), Failure> {
        if self.request.allow_dirty || self.settings.general.allow_dirty {
            return Ok(());
        }
        let changes = self.repository.changes(recorder.tree(), self.repository.snapshot()?)?;
        let plan = planned.file.as_ref().map(|file| file.path.as_str());
        // Files that git is told not to look at stay out of commits, and `git status` does not show them either.
        let hidden = self.repository.hidden()?;
        let is_ours = |path: &str| Some(path) == plan || TRACKED_FILES.contains(&path);
        let uncommitted: Vec<&TreeChange> = changes
            .iter()
            .filter(|change| !hidden.contains(&change.path) && !is_ours(&change.shown()))
            .collect();
        if uncommitted.is_empty() {
            return Ok(());
        }
        let has_done = has_done(run);
        let is_untracked = uncommitted.iter().all(|change| change.before.is_none());
        let files: Vec<String> = uncommitted.iter().map(|change| change.shown()).collect();
        let needed = changes.iter().map(TreeChange::shown).filter(|path| is_ours(path)).collect();
        let session = self.session_elsewhere(run);
        Err(GardenerError::Dirty { files: files.join(", "), is_untracked, has_done, needed, session }.into())
    }

    /// Ends what a crashed run left running in lanes, and warns about uncommitted changes, which lanes do not see.
    fn prepare_lanes(
        &self,
        lanes: &Lanes<'_>,
        planned: &Planned,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let is_clean = self.repository.is_clean()?;
        if !is_clean && self.home == self.repository.top() {
            self.save_checkout(&self.repository, "your checkout", listener);
        }
        let ended: Vec<String> = lanes.end_orphans()?.iter().map(ToString::to_string).collect();
        if !ended.is_empty() {
            listener.warn(&format!("ended processes that a crashed run had left: {}", ended.join(", ")));
        }
        let (jobs, max) = (lanes.jobs, lanes.pool.max());
        if max < jobs {
            listener.warn(&format!("worktree.max is {max}: at most {max} of {jobs} jobs run at once"));
        }
        self.check_parked(lanes, listener)?;
        let operation = OperationInProgress::find_operation(&self.repository.git_dir);
        if let Some(OperationInProgress { what, .. }) = operation {
            listener.warn(&format!(
                "finished tasks cannot land on '{}' until the {what} in this checkout is finished",
                self.branch
            ));
            listener.hint("finish or cancel it, as 'git status' says");
        } else if !is_clean {
            warn_of_uncommitted_files(&self.repository, &self.repository.changed_paths()?, planned, listener);
        }
        Ok(())
    }

    /// Lanes start at a parked landing. One that another process parked is checked first.
    fn check_parked(&self, lanes: &Lanes<'_>, listener: &mut dyn RunListener) -> Result<(), Failure> {
        let position = Target::new(&self.repository, &self.branch).find()?;
        if position.is_none_or(|position| position.parked.is_none()) {
            return Ok(());
        }
        let (run, target) = (self.branch.clone(), self.branch.clone());
        let queue = Queue::open(&self.repository, run, target, self.clock)?;
        Ok(queue.check_parked(&lanes.queue, &mut |event| {
            if let QueueEvent::Note { words, .. } = event {
                listener.warn_of_failure(&plain_text(&words));
            }
        })?)
    }
}

/// Whether tasks are complete. A session branch that starts here would have them, too.
fn has_done(run: &Run) -> bool {
    run.tasks.iter().any(|task| task.state() == State::Complete)
}

/// Whether a checkout has no uncommitted work that should be saved. Submodules whose repositories are in the worktree count
/// as clean for git.
fn is_clean(checkout: &Repository) -> bool {
    checkout.is_clean().unwrap_or(false) && !checkout.has_folder_submodule()
}
