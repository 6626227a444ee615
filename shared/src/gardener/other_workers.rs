//! Works on a plan together with workers on other machines: follows what they land, claims tasks before they start, and
//! publishes those that are finished. In a run that does not share its plan, these functions do nothing, or grant
//! everything.

use std::time::{Duration, Instant};

use super::{
    Gardener, GardenerError, TaskCheckout,
    choose::failed_before,
    saved_branches::save_branch,
    work_state::{FinishedTask, Stop, WorkState},
};
use crate::{
    coordination::{
        Claiming, CoordinationError, Publication, Release, RemoteProgress, RemoteWork, WorkRequest,
    },
    event::{EventKind, RunEvent},
    failure::Explain,
    git::{Ref, RefMove, RemoteError},
    history::{Run, RunScope, State, TaskHistory},
    name::{Oid, TaskId},
    plan::Task,
    progress::{NodeProgress, PlanMarks, Progress},
    queue::{QueueError, Target},
    worktree::Lease,
};

/// How often in a row the remote may be out of reach.
const MAX_REMOTE_FAILURES: u32 = 20;
/// How many looks a finished task waits for its own worker to land it, before another worker does.
const LOOKS_BEFORE_LANDING: u32 = 4;

/// The shortest time between two looks of a worker that has nothing to do.
const MIN_IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a worker that has other work waits before it lands what it has finished, so that more can land with it.
const SHARED_BATCH_DELAY: Duration = Duration::from_secs(3);
/// How often this worker tries to land a task that has to wait.
const MAX_LANDING_TRIES: u32 = 10;

impl<'a> Gardener<'a> {
    /// Where the plan is shared with workers on other machines, if it is.
    pub(super) fn remote_work(&self) -> Option<&'a RemoteWork> {
        self.resources.lanes?.queue.remote_work.as_deref()
    }

    /// Looks at what others have done, if it is time.
    pub(super) fn catch_up_with_others(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        let is_early = state.other_workers.next_look_at.is_some_and(|at| at > Instant::now());
        if self.remote_work().is_some() && !is_early {
            self.look_at_remote(state);
        }
    }

    /// Looks at what others have done. Returns whether the remote could be reached.
    fn look_at_remote(&mut self, state: &mut WorkState<'_, 'a, '_>) -> bool {
        let Some(remote_work) = self.remote_work() else { return true };
        state.other_workers.next_look_at =
            Some(Instant::now() + state.other_workers.interval(remote_work.interval()));
        match remote_work
            .catch_up()
            .map_err(GardenerError::from)
            .and_then(|remote_progress| self.apply_remote_progress(state, remote_progress))
        {
            Ok(()) => {
                state.other_workers.failures = 0;
                true
            }
            Err(error) => {
                self.tolerate(state, error);
                false
            }
        }
    }

    /// Looks at others more often while this worker has nothing to do but to wait for them.
    pub(super) fn look_at_others_soon(&self, state: &mut WorkState<'_, 'a, '_>) {
        let Some(remote_work) = self.remote_work().filter(|_| state.other_workers.failures == 0) else {
            return;
        };
        let soon =
            Instant::now() + state.other_workers.interval(remote_work.interval().min(MIN_IDLE_INTERVAL));
        state.other_workers.next_look_at =
            Some(state.other_workers.next_look_at.map_or(soon, |at| at.min(soon)));
    }

    /// Applies what others have done.
    fn apply_remote_progress(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        remote_progress: RemoteProgress,
    ) -> Result<(), GardenerError> {
        for remark in &remote_progress.remarks {
            self.report_once(state, EventKind::warning(format!("at the remote: {remark}")));
        }
        match remote_progress.request {
            Some(WorkRequest::Stop) => {
                self.report_once(state, EventKind::note("this worker was asked to stop"));
                self.resources.context.cancel.cancel();
            }
            Some(WorkRequest::Drain) => {
                let words = "this worker was asked to drain: it finishes its tasks and starts no new ones";
                self.report_once(state, EventKind::note(words));
                state.halt(Stop::NoMore);
            }
            None => {}
        }
        let target = remote_progress.target;
        let taken = u32::try_from(remote_progress.taken.len()).unwrap_or(u32::MAX);
        state.other_workers.most_taken = state.other_workers.most_taken.max(taken);
        state.other_workers.remote_progress = remote_progress;
        let has_waiting = !self.waiting_elsewhere(state).is_empty();
        state.other_workers.waited = if has_waiting { state.other_workers.waited + 1 } else { 0 };
        // While this process lands, it moves the target itself.
        if state.lander.is_none() {
            if let Some(target) = target {
                self.follow_target(target)?;
            }
            self.notice_landed(state);
        }
        for finished in std::mem::take(&mut state.other_workers.unpublished) {
            self.keep_until_landed(state, finished);
        }
        Ok(())
    }

    fn report_once(&mut self, state: &mut WorkState<'_, 'a, '_>, message: EventKind) {
        let EventKind::Note { words, .. } = &message else { return };
        if state.other_workers.reported.insert(words.clone()) {
            (self.on_event)(RunEvent::of_run(message));
        }
    }

    /// Moves the run's branch to where others have moved it.
    fn follow_target(&mut self, to: Oid) -> Result<(), GardenerError> {
        let run = &self.resources.context.identity.run_branch;
        let target = Target::new(self.repository, run);
        let before = target.require()?.tip();
        target.follow(to)?;
        if target.require()?.tip() != before { self.read_again() } else { Ok(()) }
    }

    /// Reads the state of the run again.
    fn read_again(&mut self) -> Result<(), GardenerError> {
        let Some(lanes) = self.resources.lanes else { return Ok(()) };
        let branch = &self.resources.context.identity.run_branch;
        let scope = RunScope { branch: branch.clone(), tip: Some(self.newest()?) };
        // A child process may have moved a branch. The value that the run gave it counts.
        let own = |found: Ref| {
            let target = self.repository.find_recorded_ref(&found.name).unwrap_or(Some(found.target))?;
            Some(Ref { target, ..found })
        };
        let refs = self.repository.list_refs(&[&branch.task_refs()])?;
        let refs = refs.into_iter().filter_map(own).collect();
        let mut run = Run::scan_again(self.repository, scope, refs, &lanes.queue.memory.commits)?;
        run.tasks.retain(|history| history.is_landed || !lanes.queue.memory.distrusted.has(&history.id));
        self.run = run;
        Ok(())
    }

    /// Notices the tasks of this worker that another one has landed.
    fn notice_landed(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        while let Some(at) = state.finished.iter().position(|finished| self.run.has_landed(&finished.task)) {
            let finished = state.finished.swap_remove(at);
            (self.on_event)(RunEvent::of(&finished.task, EventKind::note("landed by another worker")));
            state.summary.completed.push(finished.task);
        }
    }

    /// Forgets what this clone knows of failed tasks, so that they start over. Their branches are saved when that
    /// happens. No commit is made, because the target moves only by landings.
    pub(super) fn forget_failed(&mut self, wanted: &[&Task]) {
        let Some(lanes) = self.resources.lanes else { return };
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        let failed: Vec<TaskId> =
            failed_before(wanted, &progress).into_iter().map(|task| task.id.clone()).collect();
        for task in failed {
            self.run.forget(&task);
            lanes.queue.memory.distrusted.add(task);
        }
    }

    /// Claims a task. Returns whether it is ours, and still to be done.
    pub(super) fn claim(&mut self, state: &mut WorkState<'_, 'a, '_>, task: &Task) -> bool {
        let Some(remote_work) = self.remote_work() else { return true };
        if !task.is_leaf() {
            return true;
        }
        match remote_work.claim(&task.id) {
            Ok(Claiming::Taken) => {
                state.other_workers.lost_claims += 1;
                // What else others have claimed meanwhile need not be tried.
                self.look_at_remote(state);
                state.other_workers.remote_progress.taken.insert(task.id.clone());
                return false;
            }
            Ok(Claiming::Won) => {}
            // Something at the remote is in the way of this claim. Other tasks can be claimed.
            Err(error @ CoordinationError::Refused { .. }) => {
                let words = format!("the task cannot be claimed: {error}");
                (self.on_event)(RunEvent::of(&task.id, EventKind::warning(words)));
                state.excluded.insert(task.id.clone());
                return false;
            }
            Err(error) => {
                self.tolerate(state, error.into());
                state.other_workers.remote_progress.taken.insert(task.id.clone());
                return false;
            }
        }
        // Another worker may have claimed and landed it since we last looked.
        let is_reached = self.look_at_remote(state);
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        let is_ready = progress.find(&task.id).is_some_and(NodeProgress::is_ready);
        if !is_reached || !is_ready || state.stop.is_some() {
            self.give_back(state, &task.id, Release::Free);
            state.other_workers.remote_progress.taken.insert(task.id.clone());
            return false;
        }
        true
    }

    /// Gives a task back that this worker does not finish.
    pub(super) fn give_back(&mut self, state: &mut WorkState<'_, 'a, '_>, task: &TaskId, release: Release) {
        let Some(remote_work) = self.remote_work() else { return };
        if let Err(error) = remote_work.release(task, release) {
            let words = format!(
                "the claim on {task} could not be removed, so other workers wait until it expires: {error}"
            );
            (self.on_event)(RunEvent::of(task, EventKind::note(words)));
            state.other_workers.next_look_at = None;
        }
    }

    /// Gives the task back that was claimed together with the last result, if it was not started.
    pub(super) fn release_early_claim(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        let Some(task) = state.other_workers.claimed_early.take() else { return };
        if state.running.iter().all(|running| running.task.id != task) {
            self.give_back(state, &task, Release::Free);
        }
    }

    /// The task that this worker would start now. It is claimed together with a result, which saves a push.
    fn next_claim(&self, state: &WorkState<'_, 'a, '_>) -> Option<TaskId> {
        let may_start = state.stop.is_none() && !self.resources.context.cancel.is_cancelled();
        let is_free = state.other_workers.claimed_early.is_none() && self.has_place(state);
        let task = self.next_job(state).filter(|task| may_start && is_free && task.is_leaf())?;
        Some(task.id.clone())
    }

    /// Keeps a finished task until it has landed. If the plan is shared, publishes it first.
    pub(super) fn keep_until_landed(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        mut finished: FinishedTask,
    ) {
        let Some(remote_work) = self.remote_work() else {
            state.finished.push(finished);
            return;
        };
        let next = self.next_claim(state);
        match remote_work.finish(&finished.task, finished.source, next.as_ref()) {
            Ok(Publication::Done) => {
                state.other_workers.claimed_early = state.other_workers.claimed_early.take().or(next);
                let batch_until = Instant::now() + SHARED_BATCH_DELAY.min(remote_work.interval());
                state.other_workers.batch_until = Some(batch_until);
                // Another worker may land it meanwhile.
                state.other_workers.next_look_at =
                    state.other_workers.next_look_at.map(|at| at.min(batch_until));
                state.other_workers.remote_progress.finished.insert(finished.task.clone(), finished.source);
                // The work is at the remote, so the next task can use the lane.
                let leases = finished.workplace.take().into_iter().flat_map(TaskCheckout::into_leases);
                if let Err(error) = leases.into_iter().try_for_each(Lease::release) {
                    state.halt(Stop::Error(error.into()));
                }
                state.finished.push(finished);
            }
            Ok(Publication::Lost) => {
                if let Err(error) = self.save_lost(state, finished) {
                    state.halt(Stop::Error(error));
                }
            }
            Err(error) => {
                state.other_workers.unpublished.push(finished);
                self.tolerate(state, error.into());
            }
        }
    }

    /// Saves the work on a task that another worker has taken over, and names it.
    fn save_lost(
        &mut self,
        state: &mut WorkState<'_, 'a, '_>,
        finished: FinishedTask,
    ) -> Result<(), GardenerError> {
        let FinishedTask { task, workplace, source, .. } = finished;
        let branch = self.resources.context.identity.run_branch.task_branch(&task);
        let (name, saved) = (branch.to_ref(), save_branch(self.repository, &branch, source)?);
        workplace.into_iter().flat_map(TaskCheckout::into_leases).try_for_each(Lease::release)?;
        let gone = RefMove { name: &name, new: None, old: Some(source) };
        self.repository.move_refs(&[gone], "arborist: taken over by another worker")?;
        // The other worker may have landed it already.
        self.read_again()?;
        state.other_workers.remote_progress.taken.insert(task.clone());
        let words = format!(
            "this worker did not renew its claim on {task} in time, so another worker has taken the task over; the work done here is saved as {saved}"
        );
        (self.on_event)(RunEvent::of(&task, EventKind::note(words)));
        Ok(())
    }

    /// Publishes what an earlier process in this clone has finished, unless others have it.
    pub(super) fn publish_earlier(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        let Some(remote_work) = self.remote_work() else { return };
        self.look_at_remote(state);
        for finished in std::mem::take(&mut state.finished) {
            let published = state.other_workers.remote_progress.finished.get(&finished.task);
            if published == Some(&finished.source) {
                state.finished.push(FinishedTask { is_queued: false, ..finished });
                continue;
            }
            match remote_work.claim(&finished.task) {
                Ok(Claiming::Won) => {
                    self.keep_until_landed(state, FinishedTask { is_queued: false, ..finished });
                }
                Ok(Claiming::Taken) => {
                    if let Err(error) = self.save_lost(state, finished) {
                        state.halt(Stop::Error(error));
                    }
                }
                Err(error) => self.tolerate(state, error.into()),
            }
        }
    }

    /// Decides whether this run lands now. If the plan is shared, takes the claim to land, and brings here what others have
    /// finished, so that it lands too.
    pub(super) fn begin_landing(&mut self, state: &mut WorkState<'_, 'a, '_>) -> bool {
        let Some(remote_work) = self.remote_work() else { return true };
        let is_own = state.finished.iter().any(|finished| !finished.is_queued);
        let is_coming = |at: Option<Instant>| at.is_some_and(|at| at > Instant::now());
        let may_batch =
            is_coming(state.other_workers.batch_until) && state.has_threads() && state.stop.is_none();
        let is_early = is_coming(state.other_workers.retry_landing_at) || may_batch;
        let is_due = (is_own || state.other_workers.waited > LOOKS_BEFORE_LANDING || !state.has_threads())
            && !is_early;
        if !is_due
            || state.other_workers.remote_progress.is_landing
            || self.waiting_elsewhere(state).is_empty() && !is_own
        {
            return false;
        }
        match remote_work.begin_landing() {
            Ok(true) => {}
            Ok(false) => {
                state.other_workers.remote_progress.is_landing = true;
                return false;
            }
            Err(error) => {
                self.tolerate(state, error.into());
                return false;
            }
        }
        let adopted = if self.look_at_remote(state) { self.adopt(state) } else { Ok(()) };
        if let Err(error) = adopted {
            self.tolerate(state, error);
        }
        if state.finished.iter().any(|finished| !finished.is_queued) {
            return true;
        }
        self.end_landing(state);
        false
    }

    /// Schedules another try to land a task that had to wait, if the plan is shared. Returns whether the task is left in the
    /// queue: a worker does not try for ever.
    pub(super) fn schedule_another_try(&self, state: &mut WorkState<'_, 'a, '_>, at: usize) -> bool {
        let Some(remote_work) = self.remote_work() else { return true };
        let finished = &mut state.finished[at];
        finished.is_queued = false;
        state.other_workers.retry_landing_at = Some(Instant::now() + remote_work.interval());
        let tries = state.other_workers.tries.entry(finished.task.clone()).or_default();
        *tries += 1;
        *tries < MAX_LANDING_TRIES
    }

    /// Lets others land.
    pub(super) fn end_landing(&mut self, state: &mut WorkState<'_, 'a, '_>) {
        let ended = self.remote_work().map(RemoteWork::end_landing);
        if let Some(Err(error)) = ended {
            self.tolerate(state, error.into());
        }
    }

    /// The finished tasks of other workers that this one could land.
    fn waiting_elsewhere(&self, state: &WorkState<'_, 'a, '_>) -> Vec<(TaskId, Oid)> {
        let is_known = |task: &TaskId| {
            state.excluded.contains(task)
                || state.finished.iter().any(|finished| finished.task == *task)
                || self.run.has_landed(task)
        };
        let is_wanted = |task: &TaskId| state.wanted.iter().any(|wanted| wanted.id == *task);
        let waiting = state.other_workers.remote_progress.finished.iter();
        let waiting = waiting.filter(|(task, _)| is_wanted(task) && !is_known(task));
        waiting.map(|(task, source)| (task.clone(), *source)).collect()
    }

    /// Whether to wait for other workers although this one has nothing to do.
    pub(super) fn awaits_others(&mut self, state: &mut WorkState<'_, 'a, '_>) -> bool {
        if self.remote_work().is_none()
            || state.stop.is_some()
            || self.resources.context.cancel.is_cancelled()
        {
            return false;
        }
        if !state.other_workers.unpublished.is_empty() || state.other_workers.failures > 0 {
            return true;
        }
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        let is_left = |task: &&&Task| progress.is_left(&task.id) && !state.excluded.contains(&task.id);
        let RemoteProgress { taken, finished, .. } = &state.other_workers.remote_progress;
        let is_elsewhere = |task: &&Task| taken.contains(&task.id) || finished.contains_key(&task.id);
        state.wanted.iter().filter(is_left).any(is_elsewhere) || self.next_job(state).is_some()
    }

    /// Lets the run continue for a while if the remote is out of reach. Other errors end it.
    fn tolerate(&mut self, state: &mut WorkState<'_, 'a, '_>, error: GardenerError) {
        if !is_unreached(&error) {
            state.halt(Stop::Error(error));
            return;
        }
        state.other_workers.failures += 1;
        if state.other_workers.failures > MAX_REMOTE_FAILURES {
            state.halt(Stop::Error(error));
            return;
        }
        if state.other_workers.failures == 1 {
            let mut words = format!("{error}; trying again");
            for hint in error.hint().iter().flat_map(|hint| hint.lines()) {
                words.push_str(&format!("\n  hint: {hint}"));
            }
            (self.on_event)(RunEvent::of_run(EventKind::warning(words)));
        }
        let delay = Duration::from_secs(1 << state.other_workers.failures.min(5));
        state.other_workers.next_look_at = Some(Instant::now() + delay);
    }

    /// Brings finished tasks of other workers here.
    pub(super) fn adopt(&mut self, state: &mut WorkState<'_, 'a, '_>) -> Result<(), GardenerError> {
        let (Some(remote_work), Some(lanes)) = (self.remote_work(), self.resources.lanes) else {
            return Ok(());
        };
        let mut waiting = self.waiting_elsewhere(state);
        if waiting.is_empty() {
            return Ok(());
        }
        remote_work.fetch(&waiting)?;
        let sources: Vec<Oid> = waiting.iter().map(|(_, source)| *source).collect();
        let commits = self.repository.find_commits(&sources)?;
        for ((task, source), commit) in waiting.clone().into_iter().zip(commits) {
            if commit != Some(source) {
                self.distrust(state, &task, source);
                continue;
            }
            let branch = self.resources.context.identity.run_branch.task_branch(&task);
            let old = self.repository.find_branch(&branch)?;
            // A lane of this clone that has the branch checked out keeps its work.
            if old != Some(source) && !self.repository.checkouts_of(&branch)?.is_empty() {
                waiting.retain(|(kept, _)| *kept != task);
                continue;
            }
            if let Some(old) = old.filter(|old| *old != source) {
                save_branch(self.repository, &branch, old)?;
            }
            if old != Some(source) {
                let moved = RefMove { name: &branch.to_ref(), new: Some(source), old };
                self.repository.move_refs(&[moved], "arborist: finished by another worker")?;
            }
            lanes.queue.memory.distrusted.remove(&task);
        }
        self.read_again()?;
        for (task, source) in waiting {
            let history = self.run.find(&task);
            let is_complete = history.is_some_and(|history| history.state() == State::Complete);
            let is_there = history.and_then(TaskHistory::last).is_some_and(|event| event.commit == source);
            if is_complete && is_there {
                state.finished.push(FinishedTask::adopted(task, source));
            } else {
                self.distrust(state, &task, source);
            }
        }
        Ok(())
    }

    /// Names a finished task whose branch is missing or does not complete the task, and does not wait for it to land.
    fn distrust(&mut self, state: &mut WorkState<'_, 'a, '_>, task: &TaskId, source: Oid) {
        let (Some(remote_work), Some(lanes)) = (self.remote_work(), self.resources.lanes) else { return };
        remote_work.distrust(task, source);
        state.other_workers.remote_progress.finished.remove(task);
        state.other_workers.remote_progress.taken.insert(task.clone());
        self.run.forget(task);
        // Without a branch here, nothing is reset that would make the task trusted again.
        let branch = self.resources.context.identity.run_branch.task_branch(task);
        if !matches!(self.repository.find_branch(&branch), Ok(None)) {
            lanes.queue.memory.distrusted.add(task.clone());
        }
        let words = format!(
            "at the remote: the claim on {task} says that it is finished, but {} is missing there or does not complete it; it can be taken over when the claim expires",
            source.short()
        );
        self.report_once(state, EventKind::warning(words));
    }
}

/// Whether an error says that the remote could not be reached.
pub(super) fn is_unreached(error: &GardenerError) -> bool {
    matches!(
        error,
        GardenerError::Coordination(CoordinationError::Remote(RemoteError::Unreached { .. }))
            | GardenerError::Queue(QueueError::Coordination(CoordinationError::Remote(
                RemoteError::Unreached { .. }
            )))
    )
}
