//! The other repositories of a workspace, as a drain sees them: where the session's branch is, and the gates that run
//! there, in a scratch worktree at the commit that is to land there.

use super::{GitQueue, gating::GateRecord};
use crate::{
    git::Repository,
    name::{BranchName, Oid, RepoName, TaskId},
    queue::{Failing, Gate, QueueError},
    settings::Settings,
    workspace::RepoSection,
    worktree::{Pool, WorktreeOptions, run_variables},
};

/// The session's branch in another repository, on which tasks land.
#[derive(Debug, Clone)]
pub(in crate::queue) struct OtherTarget {
    pub(in crate::queue) name: RepoName,
    pub(in crate::queue) repository: Repository,
    pub(in crate::queue) branch: BranchName,
    /// The commit of the branch.
    pub(in crate::queue) head: Oid,
}

/// Where a gate runs in another repository.
pub(super) struct GatePlace {
    target: OtherTarget,
    /// The commit that it tests.
    commit: Oid,
    pub(super) tree: Oid,
}

/// The result of a gate that could not be run, because its repository is not here.
pub(super) fn absent(gate: &Gate, commit: Oid) -> Failing {
    Failing {
        gate: gate.clone(),
        commit,
        why: gate.repo.as_ref().map(words_of_absent).unwrap_or_default(),
        denied: None,
        log: String::new(),
        tail: String::new(),
        ran_fewer: false,
    }
}

/// Why nothing can land in a repository.
pub(super) fn words_of_absent(repo: &RepoName) -> String {
    format!("the session has no branch in the repository '{repo}' here")
}

impl GitQueue<'_> {
    /// Where a gate of another repository runs for a commit of the plan's repository, if that repository and the
    /// session's branch exist.
    pub(super) fn find_gate_place(
        &mut self,
        gate: &Gate,
        commit: Oid,
    ) -> Result<Option<GatePlace>, QueueError> {
        let Some(repo) = &gate.repo else { return Ok(None) };
        let Some(target) = self.find_target(repo) else { return Ok(None) };
        let commit = self.head_with(commit, &target);
        let tree = target.repository.tree_of(commit)?;
        Ok(Some(GatePlace { target, commit, tree }))
    }

    /// The branch of this run's session in another repository.
    pub(super) fn find_target(&mut self, repo: &RepoName) -> Option<OtherTarget> {
        let section = self.options.find_other(repo)?;
        let session = self.options.worktrees.session.as_ref()?;
        if !self.other_repos.contains_key(repo) {
            let opened = self.options.config_guard.find_repository(repo.as_str());
            let repository = opened.or_else(|| Repository::open_at(&section.path).ok())?;
            self.other_repos.insert(repo.clone(), repository);
        }
        let repository = self.other_repos.get(repo)?.clone();
        let (branch, head) = section.find_session_branch(&repository, session).ok()??;
        Some(OtherTarget { name: repo.clone(), repository, branch, head })
    }

    /// A repository in which a task works and the session has no branch here.
    pub(super) fn find_absent(&mut self, task: &TaskId) -> Option<RepoName> {
        let others = self.options.others_of(task).into_iter().map(|section| section.name.clone());
        let others: Vec<RepoName> = others.collect();
        others.into_iter().find(|repo| self.find_target(repo).is_none())
    }

    /// Runs a gate there.
    pub(super) fn run_in_other_repo(
        &mut self,
        gate: &Gate,
        gate_place: &GatePlace,
    ) -> Result<GateRecord, QueueError> {
        let GatePlace { target, commit, tree } = gate_place;
        // The worktree settings apply to the plan's repository only.
        let options = WorktreeOptions::new(&Settings::default(), &self.options.cancel);
        let pool = Pool::open(&target.repository, &target.branch, options)?;
        self.run_in(&pool, gate, (*commit, *tree), |git_queue, program, place| {
            let session = git_queue.options.worktrees.session.as_ref();
            let variables = run_variables(&target.name, &target.branch, session, place);
            variables.iter().fold(program, |program, (name, value)| program.env(name, value))
        })
    }

    /// The gates whose paths a landing changes in another repository, where it brings `landed` on top of what belongs
    /// to `onto`. If the repository is not here, all of them.
    pub(super) fn gates_in_other_repo(
        &mut self,
        (section, task): (&RepoSection, &TaskId),
        onto: Oid,
        landed: Option<Oid>,
    ) -> Result<Vec<Gate>, QueueError> {
        let all = self.options.gates_in(Some(&section.name), task);
        let Some(target) = self.find_target(&section.name) else {
            return Ok(all.map(|gate| Gate { own: true, ..gate }).collect());
        };
        let Some(to) = landed else { return Ok(Vec::new()) };
        let from = self.head_with(onto, &target);
        let mut gates = Vec::new();
        for gate in all {
            if target.repository.touches(from, to, &[gate.when.as_deref().unwrap_or(".")])? {
                gates.push(gate);
            }
        }
        Ok(gates)
    }
}
