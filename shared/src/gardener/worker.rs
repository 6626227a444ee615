//! One worker: takes a task to its end in a place of its own, and reports.

use std::{path::PathBuf, sync::mpsc::Sender};

use super::{Site, phase};
use crate::{
    agent::{limits::Spent, redact::Secrets},
    git::Repository,
    history::Event,
    name::{Oid, TaskId},
    pipeline::{End, Memory, News, Options, PipelineError, PreCommit, TaskRun, Workshop},
    plan::Task,
    process::{Attendance, Cancel},
    record::{Hand, Recorder},
};

/// What all workers of a run have in common.
#[derive(Clone)]
pub struct Tools<'a> {
    /// What was meant.
    pub options: &'a Options,
    /// For which run they write.
    pub hand: Hand,
    /// What must not be written down.
    pub secrets: Secrets,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The program of the built-in agent.
    pub demo: PathBuf,
    /// Where logs stand: the top of the user's checkout, also for lanes.
    pub home: PathBuf,
    /// Whether the user has a hook to be asked before an agent's work is committed.
    pub hook: PreCommit,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
}

impl<'a> Tools<'a> {
    fn workshop<'w>(
        &'w self,
        repository: &'w Repository,
        attendance: Attendance,
        voice: impl FnMut(News) + Send + 'w,
    ) -> Workshop<'w> {
        Workshop {
            options: self.options,
            dir: repository.top(),
            home: &self.home,
            secrets: self.secrets.clone(),
            cancel: self.cancel.clone(),
            attendance,
            demo: self.demo.clone(),
            hook: self.hook,
            clock: self.clock,
            voice: Box::new(voice),
            memory: Memory::default(),
        }
    }
}

/// Something to do, and where.
pub(super) struct Job<'a> {
    pub(super) task: &'a Task,
    pub(super) work: Work,
    pub(super) site: Site,
}

/// What is to be done.
pub(super) enum Work {
    /// A task goes on to its end.
    Task {
        /// The events that attempts are counted from.
        events: Vec<Event>,
        /// The commit before its first change.
        base: Oid,
        /// What the run has spent beside these events.
        others: Spent,
    },
    /// The tests of a phase are run.
    Phase,
}

/// What a worker tells.
pub(super) enum Report {
    News(News),
    Ended(Box<Ended>),
}

/// A job that is at its end, and the place that is free again.
pub(super) struct Ended {
    pub(super) task: TaskId,
    pub(super) site: Site,
    /// What was written down.
    pub(super) events: Vec<Event>,
    pub(super) result: Result<End, PipelineError>,
}

/// Does a job. Everything that is told was written down before.
pub(super) fn work(tools: &Tools<'_>, job: Job<'_>, reports: &Sender<Report>) {
    let Job { task, work, site } = job;
    let Site { repository, tip, attendance } = site;
    let voice = reports.clone();
    let mut shop = tools.workshop(&repository, attendance, move |news| {
        // Nobody listens only when the run is at its end.
        let _ = voice.send(Report::News(news));
    });
    let mut recorder = Recorder::at(&repository, tools.hand.clone(), tip);
    let (result, events) = match work {
        Work::Task { events, base, others } => {
            let known = events.len();
            let mut run = TaskRun { shop: &mut shop, recorder: &mut recorder, task, events, base, others };
            let result = run.run();
            (result, run.events.split_off(known))
        }
        Work::Phase => phase::test(&mut shop, &mut recorder, task),
    };
    let tip = recorder.tip().clone();
    let attendance = shop.leave();
    let site = Site { repository, tip, attendance };
    let _ = reports.send(Report::Ended(Box::new(Ended { task: task.id.clone(), site, events, result })));
}
