//! Places for tests beside the one in which a task works: clean checkouts, and a scratch worktree of the commit that the task
//! began at, which shows whether a test fails or is missing without the task, too.

use std::{path::PathBuf, sync::Arc};

use crate::{
    gardener::{Baseline, GardenerError, Lanes, Probe, RunResources, create_baseline_log},
    name::Oid,
    pipeline::{
        BaseCounter, CleanCheckout, CleanCheckouts, KnownRed, LaneCheck, LaneTests, PipelineError, TestTally,
    },
    worktree::{Pool, Scratch, run_variables},
};

/// A pool of clean checkouts for tests, and the ignored files that stay there.
#[derive(Debug)]
pub struct CleanPool {
    /// The pool.
    pub pool: Pool,
    /// The ignored files.
    pub keep: Vec<String>,
}

/// A clean checkout for tests. On drop, remembers which ignored files may stay there for the next tests.
struct TestedIn {
    clean: Arc<CleanPool>,
    scratch: Scratch,
}

impl Drop for TestedIn {
    fn drop(&mut self) {
        let CleanPool { pool, keep } = &*self.clean;
        pool.remember_kept(&self.scratch.repository, keep);
    }
}

impl RunResources<'_> {
    /// Checks whether the first tests that fail in a lane also fail without the work of its task.
    pub(super) fn lane_check(&self, lane: PathBuf) -> Option<LaneCheck<'_>> {
        let lanes = self.lanes?;
        let command =
            self.context.options.test_command.as_deref().filter(|_| !self.context.options.allow_red)?;
        let is_tool = self.sections.iter().any(|section| section.find_tool(command).is_some());
        (!is_tool).then(|| -> LaneCheck<'_> {
            Box::new(move |tests| match tests {
                LaneTests::Passed => {
                    lanes.green_lanes.add(lane.clone());
                    Ok(())
                }
                LaneTests::Failed { .. } if lanes.green_lanes.has(&lane) => Ok(()),
                LaneTests::Failed { base, known } => self.test_base(lanes, command, base, known),
            })
        })
    }

    /// Counts the tests of a command without the work of a task.
    pub(super) fn base_counter(&self) -> Option<BaseCounter<'_>> {
        let lanes = self.lanes?;
        Some(Box::new(move |base, command| {
            let log = self.create_baseline_log(base).map_err(pipeline_error)?;
            Ok(match self.probe(lanes, command, base, &log).map_err(pipeline_error)? {
                Baseline::NoTests(_) => Some(TestTally::NONE),
                Baseline::Green(observed) => Some(observed.tally),
                Baseline::Red { observed, .. } => Some(observed.tally).filter(|tally| !tally.is_unknown()),
                Baseline::Trespass(_) => None,
            })
        }))
    }

    fn create_baseline_log(&self, base: Oid) -> Result<String, GardenerError> {
        create_baseline_log(&self.context.home, &self.context.options.log_dir, &base.short())
    }

    fn test_base(
        &self,
        lanes: &Lanes<'_>,
        command: &str,
        base: Oid,
        known: &KnownRed,
    ) -> Result<(), PipelineError> {
        let tree = lanes.repository.tree_of(base)?;
        if lanes.green_trees.has(&(tree, command.to_owned())) {
            return Ok(());
        }
        let log = self.create_baseline_log(base).map_err(pipeline_error)?;
        match self.probe(lanes, command, base, &log).map_err(pipeline_error)? {
            Baseline::Red { observed, .. } if known.excuses(&observed) => {}
            Baseline::Red { why, .. } | Baseline::Trespass(why) => {
                return Err(PipelineError::RedLane { why, log });
            }
            Baseline::Green(_) | Baseline::NoTests(_) => lanes.green_trees.add((tree, command.to_owned())),
        }
        Ok(())
    }

    fn probe(
        &self,
        lanes: &Lanes<'_>,
        command: &str,
        base: Oid,
        log: &str,
    ) -> Result<Baseline, GardenerError> {
        let mut scratch = lanes.pool.scratch("gate", base)?;
        lanes.pool.refresh(&scratch, base, &lanes.queue.merge.keep)?;
        let place = scratch.repository.clone();
        let (repo, session) = (self.toolbox.main(), Some(&self.context.identity.session));
        let environment = run_variables(repo, &self.context.identity.run_branch, session, &scratch.path);
        let probe = Probe::after_agents(&self.context, command, &scratch.path, &place, environment, log);
        let baseline = probe.run(&mut scratch.orphan_lock);
        lanes.pool.remember_kept(&place, &lanes.queue.merge.keep);
        baseline
    }

    /// Clean checkouts for the tests of tasks that work in the user's checkout, if they are configured.
    pub(super) fn clean_checkouts(&self) -> Option<CleanCheckouts<'_>> {
        let clean = self.clean.as_ref()?;
        Some(Box::new(move |commit| {
            let CleanPool { pool, keep } = &**clean;
            let make = || -> Result<CleanCheckout, GardenerError> {
                let scratch = pool.scratch("gate", commit)?;
                pool.refresh(&scratch, commit, keep)?;
                let path = scratch.path.clone();
                let held = Box::new(TestedIn { clean: Arc::clone(clean), scratch });
                Ok(CleanCheckout { path, held })
            };
            make().map_err(pipeline_error)
        }))
    }
}

fn pipeline_error(error: GardenerError) -> PipelineError {
    match error {
        GardenerError::Pipeline(error) => error,
        other => PipelineError::NoTestPlace(other.to_string()),
    }
}
