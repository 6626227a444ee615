//! Scratch worktrees for one review or one test. They hold one commit and nothing else.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::{
    gardener::{Baseline, GardenerError, Lanes, Probe, RunResources, create_baseline_log},
    git::Repository,
    mutex::MutexExt,
    name::{BranchName, Oid},
    pipeline::{
        BaseCounter, CleanCheckout, CleanCheckouts, KnownRed, LaneCheck, PipelineError, ReviewPlace,
        ReviewPlaces, TestTally,
    },
    process::Cancel,
    settings::Settings,
    worktree::{Pool, Scratch, WorktreeError, WorktreeOptions, run_variables},
};

/// The prefix of their directory names.
const KIND: &str = "review";
/// How many worktrees are tried if one cannot be reset.
const MAX_WORKTREE_TRIES: usize = 3;

/// The worktrees for reviewers of a run. They are reused.
#[derive(Debug)]
pub struct ReviewWorktrees {
    /// The worktree settings of the plan's repository.
    options: WorktreeOptions,
    main: PathBuf,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

/// A worktree whose lock this run holds.
#[derive(Debug)]
struct KeptWorktree {
    pool: Arc<Pool>,
    scratch: Scratch,
}

/// A worktree in use. It is returned on drop.
struct Lent {
    kept: Option<KeptWorktree>,
    free: Arc<Mutex<Vec<KeptWorktree>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.free.hold().extend(self.kept.take());
    }
}

impl ReviewWorktrees {
    /// For a run in `repository`. Creates no worktree yet.
    #[must_use]
    pub fn new(repository: &Repository, options: WorktreeOptions) -> Self {
        Self { options, main: repository.common_dir.clone(), free: Arc::default() }
    }

    fn find_free(&self, repository: &Repository) -> Option<KeptWorktree> {
        let mut free = self.free.hold();
        let is_same = |kept: &KeptWorktree| kept.scratch.repository.common_dir == repository.common_dir;
        let at = free.iter().position(is_same)?;
        Some(free.swap_remove(at))
    }

    fn open(&self, repository: &Repository, branch: &BranchName) -> Result<Arc<Pool>, WorktreeError> {
        // The worktree settings apply to the plan's repository only.
        let options = if repository.common_dir == self.main {
            self.options.clone()
        } else {
            WorktreeOptions::new(&Settings::default(), &Cancel::new())
        };
        Pool::open(repository, branch, options).map(Arc::new)
    }

    fn find(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<KeptWorktree, WorktreeError> {
        // Keep the locks of broken worktrees until the end, so that the next try gets another one.
        let (mut last, mut broken) = (None, Vec::new());
        for _ in 0..MAX_WORKTREE_TRIES {
            let kept = match self.find_free(repository) {
                Some(kept) => kept,
                None => {
                    let pool = self.open(repository, branch)?;
                    let scratch = pool.scratch(KIND, commit)?;
                    KeptWorktree { pool, scratch }
                }
            };
            match kept.pool.reset_scratch(&kept.scratch, commit) {
                Ok(()) => return Ok(kept),
                // A reviewer or a crash left it in a state that git cannot use. It holds nothing of value.
                Err(error) => {
                    if kept.pool.remove_scratch(&kept.scratch).is_err() {
                        broken.push(kept);
                    }
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or(WorktreeError::Bare))
    }
}

impl ReviewPlaces for ReviewWorktrees {
    fn take(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<ReviewPlace, PipelineError> {
        let kept = self
            .find(repository, branch, commit)
            .map_err(|error| PipelineError::ReviewPlace(error.to_string()))?;
        let place = kept.scratch.repository.clone();
        let path = kept.scratch.path.to_string_lossy().into_owned();
        let environment = vec![("ARBORIST_WORKTREE".to_owned(), path)];
        let lent = Lent { kept: Some(kept), free: Arc::clone(&self.free) };
        let tree = place.tree_of(commit)?;
        Ok(ReviewPlace { repository: place, tree, environment, held: Box::new(lent) })
    }
}

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
            Box::new(move |failed| match failed {
                None => {
                    lanes.green_lanes.add(lane.clone());
                    Ok(())
                }
                Some(_) if lanes.green_lanes.has(&lane) => Ok(()),
                Some((base, known)) => self.test_base(lanes, command, base, known),
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
        let environment = run_variables(repo, &self.context.identity.run, session, &scratch.path);
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
