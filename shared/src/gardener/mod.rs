//! A run: the only owner of its state. It opens the plan, takes up what is ready, and stops where a person is needed.

pub mod approval;
mod error;
mod recover;
pub mod start;

pub use error::GardenerError;
pub use start::PlanFile;

use crate::{
    git::Repository,
    history::{Reading, Run, Scope, State, TaskHistory},
    message::Status,
    name::{Oid, TaskId},
    pipeline::{End, Happening, TaskRun, Workshop},
    plan::{Plan, Task, TestCommand, TestKind},
    progress::{Boxes, Progress},
    record::{Entry, Recorder},
};

/// What was tidied up before a run goes on.
pub use recover::recover;

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

/// What a gardener is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Only these tasks, if any are named.
    pub only: Vec<TaskId>,
    /// Go on with others when one fails.
    pub keeps_going: KeepGoing,
}

/// What a failed task means for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepGoing {
    /// The run stops.
    #[default]
    No,
    /// Those that do not wait for it are still taken up.
    Yes,
}

/// Whether the tests of a phase ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phases {
    /// Some did, and passed.
    Tested,
    /// None was due.
    Waiting,
}

/// A run that is open.
pub struct Gardener<'a, 'w> {
    /// The repository.
    pub repository: &'a Repository,
    /// The plan that the run was frozen with.
    pub plan: &'a Plan,
    /// Who writes it down.
    pub recorder: Recorder<'a>,
    /// What it works with.
    pub shop: Workshop<'w>,
}

impl<'a> Gardener<'a, '_> {
    /// Takes up tasks until none is left that can be.
    pub fn run(&mut self, wish: &Wish) -> Result<Summary, GardenerError> {
        let mut summary = Summary::default();
        loop {
            let mut run = self.scan()?;
            if self.test_phases(&run)? == Phases::Tested {
                run = self.scan()?;
            }
            refuse_forks(&run)?;
            let Some(task) = self.next_task(&run, wish, &summary) else {
                summary.left = self.left(&run, wish, &summary);
                return Ok(summary);
            };
            match self.run_task(task, run.find(&task.id))? {
                End::Complete => summary.completed.push(task.id.clone()),
                End::Failed => {
                    summary.failed.push(task.id.clone());
                    if wish.keeps_going == KeepGoing::No {
                        summary.left = self.left(&self.scan()?, wish, &summary);
                        return Ok(summary);
                    }
                }
            }
        }
    }

    /// Takes one task to its end.
    pub fn run_task(&mut self, task: &Task, history: Option<&TaskHistory>) -> Result<End, GardenerError> {
        let events = history.map(|history| history.current().to_vec()).unwrap_or_default();
        let base = match events.first() {
            Some(first) => self.parent_of(first.commit)?,
            None => self.recorder.head(),
        };
        let mut run = TaskRun { shop: &mut self.shop, recorder: &mut self.recorder, task, events, base };
        Ok(run.run()?)
    }

    fn parent_of(&self, commit: Oid) -> Result<Oid, GardenerError> {
        let commits = self.repository.load_commits(&[commit])?;
        Ok(commits.first().and_then(|commit| commit.parents().next()).unwrap_or(commit))
    }

    fn scan(&self) -> Result<Run, GardenerError> {
        let scope = Scope { branch: self.recorder.run().clone(), tip: Some(self.recorder.head()) };
        Ok(Run::scan(self.repository, scope, Reading::Fresh)?)
    }

    fn next_task(&self, run: &Run, wish: &Wish, summary: &Summary) -> Option<&'a Task> {
        let plan = self.plan;
        let progress = Progress::new(Some(plan), run, Boxes::Count);
        let id = plan.order().into_iter().find(|task| {
            let is_wanted = wish.only.is_empty() || wish.only.contains(&task.id);
            let is_new = !summary.failed.contains(&task.id);
            is_wanted && is_new && progress.find(&task.id).is_some_and(|standing| standing.is_ready)
        });
        id.map(|task| &task.id).and_then(|id| plan.find(id))
    }

    fn left(&self, run: &Run, wish: &Wish, summary: &Summary) -> Vec<TaskId> {
        let progress = Progress::new(Some(self.plan), run, Boxes::Count);
        let unfinished = progress.leaves().filter(|standing| {
            let is_wanted = wish.only.is_empty() || wish.only.contains(standing.id);
            is_wanted && !standing.state.is_settled() && !summary.failed.contains(standing.id)
        });
        unfinished.map(|standing| standing.id.clone()).collect()
    }

    /// When the last leaf of a phase is done, the phase's own tests run; a failure stops the run.
    fn test_phases(&mut self, run: &Run) -> Result<Phases, GardenerError> {
        let progress = Progress::new(Some(self.plan), run, Boxes::Count);
        let waiting: Vec<&Task> = self
            .plan
            .tasks
            .iter()
            .rev()
            .filter(|task| !task.is_leaf())
            .filter(|task| progress.find(&task.id).is_some_and(|standing| standing.state == State::Testing))
            .collect();
        for phase in &waiting {
            self.test_phase(phase)?;
        }
        Ok(if waiting.is_empty() { Phases::Waiting } else { Phases::Tested })
    }

    fn test_phase(&mut self, phase: &Task) -> Result<(), GardenerError> {
        let is_own = |test: &&TestCommand| matches!(test.kind, TestKind::Integration | TestKind::E2e);
        let commands: Vec<TestCommand> = phase.test_commands.iter().filter(is_own).cloned().collect();
        let attempt = crate::name::Attempt(0);
        let by = commands[0].command.clone();
        let begins = Happening::Begins { name: phase.name.clone(), attempt, step: "test", by };
        self.shop.tell(&phase.id, begins);
        let log = format!("{}/{}_test_{}.log", self.shop.options.log_dir, phase.id, self.shop.stamp());
        let result = self.shop.test(phase, &commands, &log)?;
        let status = if result.is_passed { Status::TestPass } else { Status::TestFail };
        let wording = crate::message::Wording { name: &phase.name, attempt, max: 1 };
        let mut entry = Entry::new(phase.id.clone(), status, wording);
        entry.body = result.body;
        entry.trailers = result.trailers;
        let commit = self.recorder.record(entry, self.recorder.tree())?;
        let is_passed = result.is_passed;
        let recorded = Happening::Recorded { status, commit, why: result.why, usage: None };
        self.shop.tell(&phase.id, recorded);
        if is_passed { Ok(()) } else { Err(GardenerError::PhaseFailed(phase.id.clone())) }
    }
}

fn refuse_forks(run: &Run) -> Result<(), GardenerError> {
    match run.tasks.iter().find(|history| history.forks.len() > 1) {
        Some(history) => Err(GardenerError::Forked {
            task: history.id.clone(),
            commits: [history.forks[0], history.forks[1]],
        }),
        None => Ok(()),
    }
}
