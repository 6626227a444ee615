//! Deletes what is no longer needed, without losing work.
//!
//! `survey` collects facts with few git commands; [`judge_all`] decides, as a pure function; `apply` does exactly that,
//! and checks each fact again at the moment of deletion. Work that exists nowhere else is saved under
//! `refs/arborist/saved/` first.

mod apply;
mod candidate;
mod error;
mod homes;
mod judge;
mod proof;
mod reclaim;
mod restore;
mod saved;
mod survey;

pub use apply::CleanupOutcome;
pub use candidate::{
    Candidate, CandidateKind, CandidatePlace, Commits, InUse, Proof, Topic, UncommittedContent,
};
pub use error::CleanupError;
pub use judge::{CleanupRules, CleanupVerdict, Grounds, KeepReason, Save, UnsavedPolicy, judge_all};
pub use reclaim::{Mode, Reclaimed};
pub use restore::{RestoreRequest, RestoredRef, RestoredWork, restore};
pub use saved::{Part, SavedWork, list_saved};
pub use survey::size_of;

use homes::{DriverLocks, KnownSession, SessionHomes};

use crate::{
    git::{Network, Repository},
    session::SessionList,
    workspace::RepoSection,
    worktree::Pool,
};

/// The options of a cleanup.
#[derive(Debug, Clone)]
pub struct CleanupOptions {
    /// The rules that decide.
    pub rules: CleanupRules,
    /// Only these topics; all if empty.
    pub topics: Vec<Topic>,
    /// Only candidates of these tasks and sessions; all if empty.
    pub names: Vec<String>,
    /// Whether branches of remotes that have landed are deleted.
    pub cleans_remotes: bool,
    /// How long to wait for remotes.
    pub network: Network,
    /// The directory of logs, below the main checkout.
    pub log_dir: String,
    /// The directory of reports.
    pub report_dir: String,
    /// The settings of this repository in its workspace.
    pub section: RepoSection,
}

/// One cleanup of a repository.
#[derive(Debug)]
pub struct Sweep<'a> {
    repository: &'a Repository,
    /// `None` in a bare repository without worktrees.
    pool: Option<Pool>,
    options: CleanupOptions,
    /// The other repositories of the workspace.
    others: Vec<(RepoSection, Repository)>,
    homes: SessionHomes,
}

/// The decisions about all candidates.
#[derive(Debug, Clone)]
pub struct CleanupPlan {
    /// The candidates with their verdicts.
    pub items: Vec<JudgedCandidate>,
}

/// One candidate with its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCandidate {
    /// The candidate.
    pub candidate: Candidate,
    /// The decision.
    pub verdict: CleanupVerdict,
}

impl<'a> Sweep<'a> {
    /// A cleanup of this repository. `others` are the other repositories of its workspace.
    #[must_use]
    pub fn new(
        repository: &'a Repository,
        pool: Option<Pool>,
        options: CleanupOptions,
        others: Vec<(RepoSection, Repository)>,
    ) -> Self {
        let homes = SessionHomes::find(repository, &others);
        Self { repository, pool, options, others, homes }
    }

    /// Collects candidates and decides. Changes nothing.
    pub fn plan(&self) -> Result<CleanupPlan, CleanupError> {
        let mut candidates = survey::collect(self)?;
        survey::measure(&mut candidates);
        let verdicts = judge_all(&candidates, &self.options.rules);
        let items = candidates.into_iter().zip(verdicts);
        Ok(CleanupPlan {
            items: items.map(|(candidate, verdict)| JudgedCandidate { candidate, verdict }).collect(),
        })
    }

    /// All sessions that may have branches here, with their states now.
    fn sessions(&self, recorded: &SessionList) -> Vec<KnownSession> {
        let own = KnownSession::recorded_in(self.repository, &self.options.section, recorded);
        own.into_iter().chain(self.homes.sessions()).collect()
    }

    /// Where the drivers of a run hold their locks: here, and where its session is recorded.
    fn drivers_of(&self, run: &str) -> Vec<DriverLocks> {
        let here = DriverLocks { folder: self.repository.lock_folder(), run: run.to_owned() };
        std::iter::once(here).chain(self.homes.drivers_of(run)).collect()
    }

    fn covers(&self, topic: Topic) -> bool {
        self.options.topics.is_empty() || self.options.topics.contains(&topic)
    }

    /// Whether a candidate with these names is selected.
    fn wants(&self, owners: &[String]) -> bool {
        self.options.names.is_empty() || owners.iter().any(|owner| self.options.names.contains(owner))
    }
}

/// Refuses a name to which nothing belongs in any of the repositories.
pub fn refuse_unknown_names(names: &[String], plans: &[CleanupPlan]) -> Result<(), CleanupError> {
    let is_known = |name: &&String| {
        plans.iter().flat_map(|plan| &plan.items).any(|item| item.candidate.owners.contains(name))
    };
    match names.iter().find(|name| !is_known(name)) {
        Some(name) => Err(CleanupError::NothingOf(name.clone())),
        None => Ok(()),
    }
}
