//! A run: the only owner of its state. It takes up what is ready, hears what workers report, and stops where a person is
//! needed.

pub mod approval;
mod choose;
mod error;
mod phase;
mod recover;
mod site;
pub mod start;
mod worker;

pub use choose::{Failed, KeepGoing, Wish, wanted};
pub use error::GardenerError;
pub use recover::recover;
pub use site::Site;
pub use start::PlanFile;
pub use worker::Tools;

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    agent::limits::Spent,
    history::{Event, Ground, Run},
    message::{Status, Wording},
    name::{Attempt, Oid, TaskId},
    pipeline::{End, Happening, News},
    plan::{Plan, Task},
    progress::{Boxes, Progress},
    record::Entry,
};
use worker::{Ended, Job, Report, Work, work};

/// How a whole run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Completed in this call.
    pub completed: Vec<TaskId>,
    /// Failed in this call.
    pub failed: Vec<TaskId>,
    /// Left undone because something they wait for is.
    pub left: Vec<TaskId>,
}

/// A run that is open.
pub struct Gardener<'a> {
    /// The plan that the run was frozen with.
    pub plan: &'a Plan,
    /// What history said when the run was opened, and what has happened since.
    pub run: Run,
    /// What workers work with.
    pub tools: Tools<'a>,
    /// The user's checkout, while nobody works in it.
    pub checkout: Option<Site>,
    /// Who is told what happens.
    pub voice: Box<dyn FnMut(News) + 'a>,
}

/// How often a worker is looked after that says nothing.
const PULSE: Duration = Duration::from_secs(1);

/// A worker at work.
struct Running<'scope, 'a> {
    task: &'a Task,
    handle: ScopedJoinHandle<'scope, ()>,
}

/// What becomes of a run while workers are at work.
struct Course<'scope, 'a, 'w> {
    wanted: Vec<&'a Task>,
    wish: &'w Wish,
    running: Vec<Running<'scope, 'a>>,
    summary: Summary,
    /// Tasks that have had their turn.
    ended: BTreeSet<TaskId>,
    /// Why nothing more is taken up.
    stop: Option<Stop>,
}

enum Stop {
    /// A task failed.
    Failure,
    /// The run cannot go on.
    Error(GardenerError),
}

impl<'a> Gardener<'a> {
    /// Takes up tasks until none is left that can be.
    pub fn run(&mut self, wish: &Wish) -> Result<Summary, GardenerError> {
        self.refuse_forks()?;
        let wanted = wanted(self.plan, wish);
        if wish.failed == Failed::Retry {
            self.reset_failed(&wanted)?;
        }
        let tools = self.tools.clone();
        let (sender, reports) = channel();
        thread::scope(|scope| {
            let mut course = Course {
                wanted,
                wish,
                running: Vec::new(),
                summary: Summary::default(),
                ended: BTreeSet::new(),
                stop: None,
            };
            loop {
                self.take_up(&mut course, scope, (&tools, &sender));
                if course.running.is_empty() {
                    break;
                }
                match next_report(&reports, &mut course) {
                    Report::News(news) => (self.voice)(news),
                    Report::Ended(ended) => self.settle(&mut course, *ended),
                }
            }
            self.conclude(course)
        })
    }

    /// Starts workers while there is a place and something to do.
    fn take_up<'scope, 'env>(
        &mut self,
        course: &mut Course<'scope, 'a, '_>,
        scope: &'scope Scope<'scope, 'env>,
        (tools, sender): (&'env Tools<'a>, &Sender<Report>),
    ) where
        'a: 'scope,
    {
        while course.stop.is_none() && self.has_place() {
            let Some(task) = self.next_job(course) else {
                return;
            };
            let job = match self.prepare(task) {
                Ok(job) => job,
                Err(error) => {
                    course.stop = Some(Stop::Error(error));
                    return;
                }
            };
            let sender = sender.clone();
            let handle = scope.spawn(move || work(tools, job, &sender));
            course.running.push(Running { task, handle });
        }
    }

    fn has_place(&self) -> bool {
        self.checkout.is_some()
    }

    /// A phase whose tests are due, else a task that is ready.
    fn next_job(&self, course: &Course<'_, 'a, '_>) -> Option<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), &self.run, Boxes::Count);
        let running: Vec<&Task> = course.running.iter().map(|running| running.task).collect();
        phase::find_due(plan, &progress)
            .or_else(|| choose::next_task(&course.wanted, &progress, &running, &course.ended))
    }

    /// Everything that a worker needs for a task or a phase.
    fn prepare(&mut self, task: &'a Task) -> Result<Job<'a>, GardenerError> {
        let Some(site) = self.checkout.take() else {
            return Err(GardenerError::NoPlace);
        };
        let work = if task.is_leaf() { self.go_on(task, &site)? } else { Work::Phase };
        Ok(Job { task, work, site })
    }

    fn go_on(&self, task: &Task, site: &Site) -> Result<Work, GardenerError> {
        let events = self.run.find(&task.id).map(|history| history.current().to_vec()).unwrap_or_default();
        let base = match events.first() {
            Some(first) => parent_of(site, first.commit)?,
            None => site.tip.head,
        };
        Ok(Work::Task { events, base, others: Spent::beside(&self.run, &task.id) })
    }

    /// Takes in what a worker did.
    fn settle(&mut self, course: &mut Course<'_, 'a, '_>, ended: Ended) {
        let Ended { task, site, events, result } = ended;
        course.running.retain(|running| running.task.id != task);
        events.into_iter().for_each(|event| self.run.grow(event, Ground::Run));
        self.checkout = Some(site);
        let is_phase = self.plan.find(&task).is_some_and(|task| !task.is_leaf());
        match result {
            Ok(End::Complete) if is_phase => {}
            Ok(End::Failed) if is_phase => course.stop = Some(Stop::Error(GardenerError::PhaseFailed(task))),
            Ok(End::Complete) => course.summary.completed.push(task.clone()),
            Ok(End::Failed) => {
                course.summary.failed.push(task.clone());
                course.ended.insert(task);
                if course.wish.keeps_going == KeepGoing::No && course.stop.is_none() {
                    course.stop = Some(Stop::Failure);
                }
            }
            Err(error) if error.concerns_only_the_task() && course.wish.keeps_going == KeepGoing::Yes => {
                (self.voice)(News::of(&task, Happening::Note { words: format!("{task} stops: {error}") }));
                course.ended.insert(task);
            }
            Err(error) => course.stop = Some(Stop::Error(error.into())),
        }
    }

    fn conclude(&self, course: Course<'_, 'a, '_>) -> Result<Summary, GardenerError> {
        if let Some(Stop::Error(error)) = course.stop {
            return Err(error);
        }
        let mut summary = course.summary;
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        summary.left = choose::left(&course.wanted, &progress, &summary.failed);
        Ok(summary)
    }

    /// Tasks that have failed before begin anew.
    fn reset_failed(&mut self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let Some(site) = &mut self.checkout else {
            return Err(GardenerError::NoPlace);
        };
        let failed = choose::failed_before(wanted, &Progress::new(Some(self.plan), &self.run, Boxes::Count));
        let mut recorder = site.recorder(&self.tools.hand);
        let mut commits = Vec::new();
        for task in failed {
            let wording = Wording { name: &task.name, attempt: Attempt(0), max: 0 };
            let entry = Entry::new(task.id.clone(), Status::Reset, wording);
            let commit = recorder.record(entry, recorder.tree())?;
            commits.push(commit);
            let happening = Happening::Recorded { status: Status::Reset, commit, why: None, usage: None };
            (self.voice)(News::of(&task.id, happening));
        }
        let events = site.repository.load_commits(&commits)?;
        let tip = recorder.tip().clone();
        site.tip = tip;
        events.iter().filter_map(Event::of).for_each(|event| self.run.grow(event, Ground::Run));
        Ok(())
    }

    fn refuse_forks(&self) -> Result<(), GardenerError> {
        match self.run.tasks.iter().find(|history| history.forks.len() > 1) {
            Some(history) => Err(GardenerError::Forked {
                task: history.id.clone(),
                commits: [history.forks[0], history.forks[1]],
            }),
            None => Ok(()),
        }
    }
}

/// Waits for a report. A worker that ended without one has panicked, and so do we.
fn next_report(reports: &Receiver<Report>, course: &mut Course<'_, '_, '_>) -> Report {
    loop {
        match reports.recv_timeout(PULSE) {
            Ok(report) => return report,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let Some(at) = course.running.iter().position(|running| running.handle.is_finished()) else {
            continue;
        };
        match reports.try_recv() {
            Ok(report) => return report,
            Err(_) => {
                if let Err(panic) = course.running.swap_remove(at).handle.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

fn parent_of(site: &Site, commit: Oid) -> Result<Oid, GardenerError> {
    let commits = site.repository.load_commits(&[commit])?;
    Ok(commits.first().and_then(|commit| commit.parents().next()).unwrap_or(commit))
}
