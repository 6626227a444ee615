//! One worker: takes a task to its end in a place of its own, and reports.

use std::{
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::Duration,
};

use super::{
    GardenerError, Lanes, WorkerPlace,
    saving::{Saving, Signals},
};
use crate::{
    event::{EventKind, RunEvent},
    gardener::{
        land::Landed,
        lanes::LaneStart,
        phase,
        recover::{TaskFacts, write_down},
    },
    git::Repository,
    history::{self, Event, WorkBase},
    name::{Oid, RepoName, SessionId, TaskId},
    pipeline::{
        CallMemory, CheckpointWriter, IgnoredFiles, KnownRed, NamedCommand, OtherRepo, Others, RunContext,
        TaskContext, TaskEnd, TaskRun,
    },
    plan::Task,
    process::OrphanLock,
    record::{RunRecorder, Tip},
    session::ResumeContext,
    workspace::{RepoSection, Tool, ToolRoot, Toolbox},
    worktree::{Pool, run_variables},
};

/// What all workers of a run have in common.
#[derive(Clone)]
pub struct Tools<'a> {
    /// What all tasks share.
    pub context: RunContext<'a>,
    /// What agents may be given as tools.
    pub toolbox: Toolbox,
    /// Who writes the session down.
    pub checkpoints: CheckpointWriter<'a>,
    /// What is known of tasks that an earlier process began.
    pub recalled: Vec<ResumeContext>,
    /// How often unfinished work is saved.
    pub save_every: Duration,
    /// What git ignores in the user's checkout.
    pub ignored: IgnoredFiles,
    /// Where tests run that need a clean checkout, and which ignored files stay there.
    pub clean: Option<Arc<(Pool, Vec<String>)>>,
    /// The repositories of the workspace; the first is the one that has the plan.
    pub sections: &'a [RepoSection],
    /// Where several tasks are worked on at once; `None` if the user's checkout is the place.
    pub lanes: Option<&'a Lanes<'a>>,
}

impl<'a> Tools<'a> {
    /// A lane for a task; what is to be said of it is said.
    fn take_lane(
        &self,
        task: &TaskId,
        ground: &LaneStart,
        reports: &SyncSender<WorkerReport>,
    ) -> Result<WorkerPlace, GardenerError> {
        let site = self.lanes.ok_or(GardenerError::NoPlace)?.take(task, ground)?;
        if let Some(lease) = &site.lease {
            let (path, branch) = (lease.path.clone(), lease.branch.clone());
            let placed = EventKind::WorktreeCreated { repo: None, path, branch, recycled: !lease.is_new };
            let _ = reports.send(WorkerReport::News(RunEvent::of(task, placed)));
        }
        for note in site.lease.iter().flat_map(|lease| &lease.notes) {
            let words = note.to_string();
            let _ = reports.send(WorkerReport::News(RunEvent::of(task, EventKind::note(words))));
        }
        Ok(site)
    }

    fn saving<'w>(&'w self, repository: &'w Repository, task: &'w TaskId) -> Saving<'w> {
        Saving { repository, run: &self.context.identity.run, task, every: self.save_every }
    }

    fn task_context<'w>(
        &'w self,
        repository: &'w Repository,
        orphan_lock: OrphanLock,
        on_event: impl FnMut(RunEvent) + Send + 'w,
    ) -> TaskContext<'w> {
        let (repo, place, session) =
            (self.toolbox.main(), repository.top(), Some(&self.context.identity.session));
        let environment = run_variables(repo, &self.context.identity.run, session, place);
        TaskContext {
            run: &self.context,
            dir: repository.top(),
            orphan_lock,
            tools: self.toolbox.server(
                &[ToolRoot { name: repo, path: place, run: &self.context.identity.run }],
                &environment,
            ),
            environment,
            on_event: Box::new(on_event),
            memory: CallMemory::recalling(self.recalled.clone()),
            checkpoints: self.checkpoints.clone(),
            other_repos: Vec::new(),
            lent: Vec::new(),
            places: Vec::new(),
            commands: Vec::new(),
            ignored: None,
            lane_check: None,
            clean_places: None,
        }
    }

    /// Whether a task, or a phase, needs this repository for itself: it works there, or a tool of it is among its tests.
    pub(super) fn needs(&self, task: &Task, name: &RepoName) -> bool {
        let is_tested_there = |section: &RepoSection| {
            let tests =
                if task.is_leaf() { self.context.options.tests_of(task).0 } else { phase::commands(task) };
            tests.iter().any(|test| section.find_tool(&test.command).is_some())
        };
        works_in(task, name)
            || self.sections.iter().any(|section| section.name == *name && is_tested_there(section))
    }

    /// Gives a task the other repositories that it works in, and the tools of those that only test it.
    fn equip(&self, context: &mut TaskContext<'_>, task: &Task, other_repos: Vec<OtherRepo>) {
        let session = Some(&self.context.identity.session);
        let top = |other_repo: &OtherRepo| other_repo.repository.top().to_owned();
        let own = self.sections.iter().filter(|section| section.is_main);
        context.places = own.map(|section| (section.name.clone(), context.dir.to_owned())).collect();
        for section in self.sections {
            let other_repo = other_repos.iter().find(|other_repo| other_repo.name == section.name);
            let (run, dir) = match other_repo {
                Some(other_repo) => (&other_repo.identity.run, other_repo.repository.top()),
                None if section.is_main => (&self.context.identity.run, context.dir),
                None => continue,
            };
            let environment = run_variables(&section.name, run, session, dir);
            let named = |(tool, what): (&String, &Tool)| NamedCommand {
                name: format!("{}:{tool}", section.name),
                command: what.command.clone(),
                dir: dir.to_owned(),
                environment: environment.clone(),
            };
            context.commands.extend(section.tools.iter().map(named));
        }
        let (other_repos, lent): (Vec<OtherRepo>, Vec<OtherRepo>) =
            other_repos.into_iter().partition(|other_repo| works_in(task, &other_repo.name));
        context
            .places
            .extend(other_repos.iter().map(|other_repo| (other_repo.name.clone(), top(other_repo))));
        let first = other_repos
            .iter()
            .find(|other_repo| task.repos.first().is_some_and(|name| other_repo.name.as_str() == name));
        if let Some(other_repo) = first {
            let (run, place) = (&other_repo.identity.run, other_repo.repository.top());
            context.environment.extend(run_variables(&other_repo.name, run, session, place));
        }
        if !other_repos.is_empty() {
            let run_in = |name: &RepoName| {
                let other_repo = other_repos.iter().find(|other_repo| other_repo.name == *name);
                other_repo.map_or(&self.context.identity.run, |other_repo| &other_repo.identity.run)
            };
            let named = context.places.iter().filter(|(name, _)| works_in(task, name));
            let roots: Vec<ToolRoot<'_>> =
                named.map(|(name, path)| ToolRoot { name, path, run: run_in(name) }).collect();
            context.tools = self.toolbox.server(&roots, &context.environment);
        }
        (context.other_repos, context.lent) = (other_repos, lent);
    }
}

/// Whether a task names a repository as one that it works in.
pub(super) fn works_in(task: &Task, name: &RepoName) -> bool {
    task.repos.iter().any(|repo| name.as_str() == repo)
}

/// Something to do, and where.
pub(super) struct Job<'a> {
    pub(super) task: &'a Task,
    pub(super) work: JobKind,
    pub(super) place: JobPlace,
    /// Places in other repositories.
    pub(super) other_repos: Vec<OtherRepo>,
}

/// What is to be done.
pub(super) enum JobKind {
    /// A task goes on to its end.
    Task(Box<TaskStart>),
    /// The tests of a phase are run.
    Phase,
}

/// Where a task stands.
pub(super) struct TaskStart {
    /// Events from before those.
    pub(super) earlier: Vec<Event>,
    /// The events that attempts are counted from.
    pub(super) events: Vec<Event>,
    /// Where its base is looked for: the start of the run and its session. `None` if nothing of it was committed before.
    pub(super) begun: Option<(Oid, SessionId)>,
    /// Tests that may fail.
    pub(super) known_red: KnownRed,
    /// What the run has spent beside these events, and goes on spending.
    pub(super) others: Others,
    /// Whether an attempt may be marked that nobody ended.
    pub(super) is_interrupted: bool,
    /// Whether the user asks for it although it was interrupted too often.
    pub(super) is_retried: bool,
}

/// Where it is to be done.
pub(super) enum JobPlace {
    /// Here.
    Site(Box<WorkerPlace>),
    /// In a lane, which has to be taken first.
    Lane(LaneStart),
    /// On no branch, at this commit of the run's.
    Scratch(Oid),
}

/// What a worker tells.
pub(super) enum WorkerReport {
    News(RunEvent),
    Ended(Box<EndedJob>),
    Landed(Box<Landed>),
}

/// A job that is at its end.
pub(super) struct EndedJob {
    pub(super) task: TaskId,
    /// The place that is free again, if there was one.
    pub(super) site: Option<WorkerPlace>,
    /// Those in other repositories.
    pub(super) other_repos: Vec<OtherRepo>,
    /// What was written down.
    pub(super) events: Vec<Event>,
    pub(super) result: Result<TaskEnd, GardenerError>,
}

/// Does a job. Everything that is told was written down before.
pub(super) fn work(tools: &Tools<'_>, job: Job<'_>, reports: &SyncSender<WorkerReport>) {
    let Job { task, work, place, mut other_repos } = job;
    let mut events = Vec::new();
    // The steps of the task look after its own branch. Once they are over it is compared like all others.
    let _branch = tools.lanes.map(|lanes| {
        let branch = tools.context.identity.run.task_branch(&task.id);
        lanes.repository.float_ref(&branch.to_ref())
    });
    let site = match place {
        JobPlace::Site(site) => Ok(*site),
        JobPlace::Lane(ground) => tools.take_lane(&task.id, &ground, reports),
        JobPlace::Scratch(commit) => {
            let result = test_in_scratch(tools, (task, &mut other_repos), commit, &mut events, reports);
            let ended = EndedJob { task: task.id.clone(), site: None, other_repos, events, result };
            let _ = reports.send(WorkerReport::Ended(Box::new(ended)));
            return;
        }
    };
    let (site, result) = match site {
        Ok(site) => {
            let (site, result) = work_at(tools, (task, work), (site, &mut other_repos), &mut events, reports);
            let result = result.map_err(|error| site.explain(error));
            (Some(site), result)
        }
        Err(error) => (None, Err(error)),
    };
    let _ = reports.send(WorkerReport::Ended(Box::new(EndedJob {
        task: task.id.clone(),
        site,
        other_repos,
        events,
        result,
    })));
}

fn work_at(
    tools: &Tools<'_>,
    (task, work): (&Task, JobKind),
    (site, other_repos): (WorkerPlace, &mut Vec<OtherRepo>),
    written: &mut Vec<Event>,
    reports: &SyncSender<WorkerReport>,
) -> (WorkerPlace, Result<TaskEnd, GardenerError>) {
    let WorkerPlace { repository, tip, orphan_lock, lease } = site;
    let (signs, heard) = Signals::new();
    let on_event = reports.clone();
    let (tip, orphan_lock, result) = thread::scope(|scope| {
        let saving = tools.saving(&repository, &task.id);
        scope.spawn(move || saving.go_on(&heard));
        let mut context = tools.task_context(&repository, orphan_lock, move |event| {
            // Nobody listens only when the run is at its end.
            signs.give(&event.kind);
            let _ = on_event.send(WorkerReport::News(event));
        });
        if let Some(lease) = &lease {
            context.environment.extend(lease.environment.clone());
            context.lane_check = tools.lane_check(lease.path.clone());
        } else {
            context.clean_places = tools.clean_places();
            context.ignored = Some(tools.ignored.clone());
        }
        tools.equip(&mut context, task, std::mem::take(other_repos));
        let mut recorder = RunRecorder::at(&repository, tools.context.identity.clone(), tip);
        let result = match work {
            JobKind::Task(start) => run_task(&mut context, &mut recorder, task, *start, written),
            JobKind::Phase => {
                phase::test(&mut context, &mut recorder, task, written).map_err(GardenerError::from)
            }
        };
        *other_repos = std::mem::take(&mut context.other_repos);
        other_repos.append(&mut context.lent);
        (recorder.tip().clone(), context.leave(), result)
    });
    (WorkerPlace { repository, tip, orphan_lock, lease }, result)
}

/// The tests of a phase run beside the checkout, at the run's newest commit. What comes of them is written down on the run's
/// own branch.
fn test_in_scratch(
    tools: &Tools<'_>,
    (phase, other_repos): (&Task, &mut Vec<OtherRepo>),
    commit: Oid,
    written: &mut Vec<Event>,
    reports: &SyncSender<WorkerReport>,
) -> Result<TaskEnd, GardenerError> {
    let lanes = tools.lanes.ok_or(GardenerError::NoPlace)?;
    let scratch = lanes.pool.scratch("phase", commit)?;
    lanes.pool.refresh(&scratch, commit, &lanes.queue.keep)?;
    let (place, orphan_lock, _lock) = scratch.into_parts();
    let on_event = reports.clone();
    let mut context = tools.task_context(&place, orphan_lock, move |event| {
        let _ = on_event.send(WorkerReport::News(event));
    });
    tools.equip(&mut context, phase, std::mem::take(other_repos));
    let tip = Tip::new(lanes.repository, tools.context.identity.run.clone(), commit)?;
    let mut recorder = RunRecorder::at(lanes.repository, tools.context.identity.clone(), tip);
    let result = phase::test(&mut context, &mut recorder, phase, written);
    lanes.pool.remember_kept(&place, &lanes.queue.keep);
    *other_repos = std::mem::take(&mut context.other_repos);
    other_repos.append(&mut context.lent);
    Ok(result?)
}

/// What an earlier run left of the task in this place is written down first.
fn run_task(
    context: &mut TaskContext<'_>,
    recorder: &mut RunRecorder<'_>,
    task: &Task,
    start: TaskStart,
    written: &mut Vec<Event>,
) -> Result<TaskEnd, GardenerError> {
    let TaskStart { earlier, mut events, begun, known_red, others, is_interrupted, is_retried } = start;
    let tip = recorder.head();
    let base = match &begun {
        Some((start, session)) => WorkBase::find(
            recorder.repository(),
            history::TaskWork { task: &task.id, session, start: *start, tip },
        )?,
        None => WorkBase::fresh(tip, recorder.tree()),
    };
    let known = events.len();
    if is_interrupted {
        record_left((context, recorder), task, &mut events, None)?;
    }
    context.checkpoints.begin(recorder.tree());
    let mut run = TaskRun { context, recorder, task, earlier, events, base, known_red, others, is_retried };
    let result = run.run();
    let TaskRun { context, recorder, mut events, .. } = run;
    // An error of ours leaves the attempt marked. Its reason is known only now, so it is recorded at once; if that fails too,
    // the mark stays, and the next run records it.
    if let Err(error) = &result
        && error.is_interruption()
    {
        let _ = record_left((context, recorder), task, &mut events, Some(&error.reason()));
    }
    let result = result.map_err(|error| error.after(&task.id, &events));
    written.extend(events.drain(known..));
    Ok(result?)
}

/// Records attempts of the task that are marked and have no end.
fn record_left(
    (context, recorder): (&mut TaskContext<'_>, &mut RunRecorder<'_>),
    task: &Task,
    events: &mut Vec<Event>,
    why: Option<&str>,
) -> Result<(), GardenerError> {
    let (own, name) = (|_: &TaskId| events.as_slice(), |_: &TaskId| Some(task.name.as_str()));
    let known = TaskFacts { events: &own, name: &name, max: context.run.options.max_retries, why };
    for recovered in write_down(recorder, &known)? {
        context.tell(&task.id, EventKind::note(recovered.words()));
        // What no record knows would not land, if the next attempt finds nothing left to change.
        if recovered.has_files()
            && let Some(told) = context.checkpoints.step(recorder, &recovered.event)
        {
            context.tell(&task.id, told);
        }
        events.push(recovered.event);
    }
    Ok(())
}
