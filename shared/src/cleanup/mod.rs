//! Cleaning up: nothing that matters is deleted, and nothing is kept that does not.
//!
//! `survey` finds out what there is, in few questions to git; [`judge_all`] decides, in pure code; `apply` does exactly that,
//! and looks at each fact again at the moment of deletion. What is not elsewhere is saved under `refs/arborist/saved/` first.

mod apply;
mod candidate;
mod error;
mod judge;
mod left_running;
mod proof;
mod reclaim;
mod restore;
mod saved;
mod survey;

pub use apply::CleanupOutcome;
pub use candidate::{Candidate, CandidatePlace, Commits, Proof, Topic, UncommittedContent, What};
pub use error::CleanupError;
pub use judge::{Active, CleanupRules, CleanupVerdict, Grounds, KeepReason, Save, UnsavedPolicy, judge_all};
pub use reclaim::{Mode, Reclaimed};
pub use restore::{RestoreRequest, RestoredRef, RestoredWork, restore};
pub use saved::{Part, SavedWork, list_saved};

use crate::{
    git::{Network, Repository},
    workspace::RepoSection,
    worktree::Pool,
};

/// What is to be cleaned up, and how.
#[derive(Debug, Clone)]
pub struct CleanupOptions {
    /// What decides.
    pub rules: CleanupRules,
    /// Only these; all if it is empty.
    pub topics: Vec<Topic>,
    /// Only what belongs to these tasks and sessions; everything if it is empty.
    pub names: Vec<String>,
    /// What becomes of branches of remotes.
    pub remotes: Remotes,
    /// How remotes are waited for.
    pub network: Network,
    /// Where logs are, below the main checkout.
    pub log_dir: String,
    /// Where reports are.
    pub report_dir: String,
    /// What is configured for this repository as part of a workspace.
    pub section: RepoSection,
}

/// What becomes of branches of remotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remotes {
    /// They are left alone.
    Left,
    /// Those that have landed go.
    Cleaned,
}

/// One cleaning of a repository.
#[derive(Debug)]
pub struct Sweep<'a> {
    repository: &'a Repository,
    /// None in a bare repository without worktrees.
    pool: Option<Pool>,
    options: CleanupOptions,
}

/// What is to be done with each candidate.
#[derive(Debug, Clone)]
pub struct CleanupPlan {
    /// What there is, with what is to be done with it.
    pub items: Vec<JudgedCandidate>,
}

/// One candidate with its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCandidate {
    /// What it is.
    pub candidate: Candidate,
    /// What is to be done.
    pub verdict: CleanupVerdict,
}

impl<'a> Sweep<'a> {
    /// A cleaning of this repository.
    #[must_use]
    pub fn new(repository: &'a Repository, pool: Option<Pool>, options: CleanupOptions) -> Self {
        Self { repository, pool, options }
    }

    /// What would be done. Nothing is changed.
    pub fn plan(&self) -> Result<CleanupPlan, CleanupError> {
        let mut candidates = survey::collect(self)?;
        if !self.options.names.is_empty() {
            self.refuse_unknown_names(&candidates)?;
        }
        survey::measure(&mut candidates);
        let verdicts = judge_all(&candidates, &self.options.rules);
        let items = candidates.into_iter().zip(verdicts);
        Ok(CleanupPlan {
            items: items.map(|(candidate, verdict)| JudgedCandidate { candidate, verdict }).collect(),
        })
    }

    /// Who can tell which branches were made for sessions.
    fn maker(&self) -> survey::Maker<'_> {
        survey::Maker { repository: self.repository, section: &self.options.section }
    }

    fn covers(&self, topic: Topic) -> bool {
        self.options.topics.is_empty() || self.options.topics.contains(&topic)
    }

    /// Whether somebody asked for what belongs to one of these.
    fn wants(&self, owners: &[String]) -> bool {
        self.options.names.is_empty() || owners.iter().any(|owner| self.options.names.contains(owner))
    }

    fn refuse_unknown_names(&self, candidates: &[Candidate]) -> Result<(), CleanupError> {
        let is_known = |name: &&String| candidates.iter().any(|candidate| candidate.owners.contains(name));
        match self.options.names.iter().find(|name| !is_known(name)) {
            Some(name) => Err(CleanupError::NothingOf(name.clone())),
            None => Ok(()),
        }
    }
}
