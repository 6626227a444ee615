//! Lanes for a run: where they come from, and what has to be done before they are used.

use arborist_core::{
    failure::Failure,
    gardener::{Attended, GardenerError, Lanes, LeftMarks, Proofs},
    message::plain_text,
    name::SessionId,
    queue::{self, FanIn, Queue, QueueEvent, Target},
    settings::Settings,
    worktree::{Pool, WorktreeOptions},
};

use super::{OpenRun, Planned, Reporter, open::secrets};
use crate::clock;

/// What to try when it is crowded.
pub(crate) const CLEAN_UP: &str = "see what can go with: git arborist cleanup --dry-run";

impl OpenRun {
    /// Lanes for so many tasks at once, of which this is to land.
    pub(crate) fn lanes(
        &self,
        (jobs, policy): (usize, FanIn),
        planned: &Planned,
        session: &SessionId,
    ) -> Result<Lanes<'_>, Failure> {
        let mut queue = self.queue_options(planned)?;
        queue.worktrees.session = Some(session.clone());
        queue.worktrees.repo = Some(self.workspace.main().name.clone());
        Ok(Lanes {
            repository: &self.repository,
            pool: Pool::open(&self.repository, &self.branch, queue.worktrees.clone())
                .map_err(GardenerError::from)?,
            jobs,
            lock: &self.lock,
            queue: queue::QueueOptions { fan_in: policy, ..queue },
            left: LeftMarks::default(),
            with_orphan_lock: Attended::default(),
            proofs: Proofs::default(),
        })
    }

    /// How what is finished in lanes lands.
    pub(super) fn queue_options(&self, planned: &Planned) -> Result<queue::QueueOptions, Failure> {
        let queue = queue::QueueOptions::new(&self.options.runners, secrets()?, &self.cancel, clock::now)?;
        let queue = queue.briefed(&planned.plan).spread(&self.workspace.sections, &planned.plan);
        let queue = queue.tested_by(self.options.test_command.as_deref(), self.options.test_origin);
        Ok(queue::QueueOptions { report_dir: self.options.report_dir.clone(), ..queue })
    }

    pub(super) fn worktree_options(&self) -> WorktreeOptions {
        WorktreeOptions::new(&self.settings, &self.cancel)
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

    /// Says when worktrees or what is left of the disk call for cleaning up.
    pub(super) fn tell_of_crowding(&self, reporter: &mut Reporter<'_>) {
        let Ok(pool) = Pool::open(&self.repository, &self.branch, self.worktree_options()) else { return };
        let words = pool.find_crowding();
        words.iter().for_each(|words| reporter.warn(words));
        if !words.is_empty() {
            reporter.hint(CLEAN_UP);
        }
    }

    /// What a crashed run left running in lanes is ended. What is not committed in the checkout is not seen there.
    pub(super) fn clear(&self, lanes: &Lanes<'_>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        let ended: Vec<String> = lanes.clear()?.iter().map(ToString::to_string).collect();
        if !ended.is_empty() {
            reporter.warn(&format!("ended what a crashed run had left running: {}", ended.join(", ")));
        }
        self.check_parked(lanes, reporter)?;
        if !self.repository.is_clean()? {
            reporter.warn("what is not committed stays in your checkout, and the tasks do not see it");
        }
        Ok(())
    }

    /// Lanes begin at what is parked for the target. What another process parked is asked about before.
    fn check_parked(&self, lanes: &Lanes<'_>, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        let position = Target::new(&self.repository, &self.branch).find()?;
        if position.is_none_or(|position| position.parked.is_none()) {
            return Ok(());
        }
        let (run, target) = (self.branch.clone(), self.branch.clone());
        let queue = Queue::open(&self.repository, run, target, clock::now)?;
        Ok(queue.check_parked(&lanes.queue, &mut |event| {
            if let QueueEvent::Note { words } = event {
                reporter.warn(&plain_text(&words));
            }
        })?)
    }
}
