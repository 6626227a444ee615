//! Where tests run beside the place of a task: at the commit that a lane's task began at, to tell a lane that lacks
//! something from work that is bad, and in a clean checkout where that is asked for.

use std::{path::PathBuf, sync::Arc};

use super::{Baseline, GardenerError, Lanes, Probe, Tools};
use crate::{
    name::Oid,
    pipeline::{CleanPlace, CleanPlaces, KnownRed, LaneCheck, PipelineError},
    worktree::{Pool, Scratch, run_variables},
};

/// A clean checkout in which tests run. Once they have ended, what they left there may stay for the next.
struct TestedIn {
    clean: Arc<(Pool, Vec<String>)>,
    scratch: Scratch,
}

impl Drop for TestedIn {
    fn drop(&mut self) {
        let (pool, keep) = &*self.clean;
        pool.remember_kept(&self.scratch.repository, keep);
    }
}

impl Tools<'_> {
    /// Tells whether the tests that failed first in a lane fail without the work of its task too.
    pub(super) fn lane_check(&self, lane: PathBuf) -> Option<LaneCheck<'_>> {
        let lanes = self.lanes?;
        let command =
            self.context.options.test_command.as_deref().filter(|_| !self.context.options.allow_red)?;
        let is_tool = self.sections.iter().any(|section| section.find_tool(command).is_some());
        (!is_tool).then(|| -> LaneCheck<'_> {
            Box::new(move |failed| match failed {
                None => {
                    lanes.proofs.add_lane(&lane);
                    Ok(())
                }
                Some(_) if lanes.proofs.has_lane(&lane) => Ok(()),
                Some((base, known)) => self.test_base(lanes, command, (base, known)),
            })
        })
    }

    fn test_base(
        &self,
        lanes: &Lanes<'_>,
        command: &str,
        (base, known): (Oid, &KnownRed),
    ) -> Result<(), PipelineError> {
        let tree = lanes.repository.tree_of(base)?;
        if lanes.proofs.has(tree, command) {
            return Ok(());
        }
        let log =
            format!("{}/baseline_test_{}.log", self.context.options.log_dir.trim_matches('/'), base.short());
        match self.probe(lanes, command, (base, &log)).map_err(pipeline_error)? {
            Baseline::Red { observed, .. } if known.excuses(&observed) => {}
            Baseline::Red { why, .. } | Baseline::Trespass(why) => {
                return Err(PipelineError::RedLane { why, log });
            }
            Baseline::Green(_) | Baseline::NoTests(_) => lanes.proofs.add(tree, command),
        }
        Ok(())
    }

    fn probe(
        &self,
        lanes: &Lanes<'_>,
        command: &str,
        (base, log): (Oid, &str),
    ) -> Result<Baseline, GardenerError> {
        let mut scratch = lanes.pool.scratch("gate", base)?;
        lanes.pool.refresh(&scratch, base, &lanes.queue.keep)?;
        let place = scratch.repository.clone();
        let (repo, session) = (self.toolbox.main(), Some(&self.context.identity.session));
        let probe = Probe {
            command,
            dir: &scratch.path,
            places: vec![&place],
            config_guard: &self.context.config_guard,
            environment: run_variables(repo, &self.context.identity.run, session, &scratch.path),
            limit: self.context.options.test_time,
            log: self.context.home.join(log),
            secrets: &self.context.secrets,
            cancel: &self.context.cancel,
        };
        let baseline = probe.run(&mut scratch.orphan_lock);
        lanes.pool.remember_kept(&place, &lanes.queue.keep);
        baseline
    }

    /// Clean checkouts for the tests of tasks that are worked on in the user's own, if they are asked for.
    pub(super) fn clean_places(&self) -> Option<CleanPlaces<'_>> {
        let clean = self.clean.as_ref()?;
        Some(Box::new(move |commit| {
            let (pool, keep) = &**clean;
            let make = || -> Result<CleanPlace, GardenerError> {
                let scratch = pool.scratch("gate", commit)?;
                pool.refresh(&scratch, commit, keep)?;
                let path = scratch.path.clone();
                let held = Box::new(TestedIn { clean: Arc::clone(clean), scratch });
                Ok(CleanPlace { path, held })
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
