//! Which tests may fail in the test step of a task: those that failed before the run, and those that an earlier task wrote
//! to fail until others make them pass.

use super::{Gardener, GardenerError};
use crate::{
    message::{Key, Status},
    name::TaskId,
    pipeline::{KnownRed, TO_BE_MENDED},
    plan::Task,
    progress::{Boxes, Progress},
};

impl Gardener<'_> {
    /// What is known to fail where this task begins. The last of those that have to make tests pass is excused from
    /// nothing.
    pub(super) fn known_red(&self, task: &Task) -> KnownRed {
        let tests_first = self.plan.tests_first();
        if tests_first.is_empty() {
            return self.red_before.clone();
        }
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        let is_done = |id: &TaskId| progress.find(id).is_some_and(|standing| standing.state.is_settled());
        let mut known = self.red_before.clone();
        for (red, menders) in tests_first.iter().filter(|(red, _)| *red != task.id) {
            let is_open = menders.is_empty() || menders.iter().any(|id| *id != task.id && !is_done(id));
            let is_beside = menders.contains(&task.id)
                || self.plan.find(red).is_some_and(|red| red.parent == task.parent);
            let own = self.to_be_mended(red).filter(|own| is_open && (is_beside || !own.is_unread()));
            known = own.map_or(known.clone(), |own| known.join(&own));
        }
        if task.red { known.join(&KnownRed::none_of(self.passed_before())) } else { known }
    }

    /// A task that has to write failing tests needs something that can fail.
    pub(super) fn refuse_red_without_test(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let is_untested = |task: &&&Task| task.red && !self.tools.context.options.tests_of(task).1;
        match wanted.iter().find(is_untested) {
            Some(task) => Err(GardenerError::RedWithoutTest(task.id.clone())),
            None => Ok(()),
        }
    }

    /// The tests that a task wrote to fail, as its own test commit tells.
    fn to_be_mended(&self, red: &TaskId) -> Option<KnownRed> {
        let history = self.run.find(red)?;
        let passed = history.events.iter().rfind(|event| event.status() == Status::TestPass)?;
        KnownRed::read(&passed.body(), TO_BE_MENDED)
    }

    /// How many tests passed when they last did.
    fn passed_before(&self) -> u64 {
        let events = self.run.tasks.iter().flat_map(|task| &task.events);
        let passes = events.filter(|event| event.status() == Status::TestPass);
        let newest = passes.max_by_key(|event| event.time);
        newest.and_then(|event| event.trailers.get(Key::TestPassed)?.parse().ok()).unwrap_or(0)
    }
}
