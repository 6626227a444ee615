//! Gates in other repositories: which of them a task has to pass, and running them in a scratch worktree at the head of
//! the session's branch, or at the commit where the task started.

use super::{GitQueue, gating::GateRecord};
use crate::{
    git::Repository,
    history::{CommitSource, Run, RunScope},
    name::{BranchName, Oid, RepoName, TaskId},
    queue::{Failing, Gate, QueueError, gate::GatePoint},
    settings::Settings,
    workspace::RepoSection,
    worktree::{Pool, WorktreeOptions, run_variables},
};

/// Another repository, as read in this drain.
pub(in crate::queue) struct GateRepo {
    repository: Repository,
    /// The session's run there, and the head at which it was read. The run is `None` if it could not be read.
    run: Option<(Oid, Option<Run>)>,
}

/// Where a gate runs in another repository.
pub(super) struct GatePlace {
    name: RepoName,
    repository: Repository,
    branch: BranchName,
    /// The commit that it tests.
    commit: Oid,
    pub(super) tree: Oid,
}

/// The result of a gate that could not be run.
pub(super) fn absent(gate: &Gate, repo: &RepoName, commit: Oid) -> Failing {
    let why = format!("the session has no branch in the repository '{repo}' here");
    Failing { gate: gate.clone(), commit, why, log: String::new(), tail: String::new() }
}

impl GitQueue<'_> {
    /// Where a gate of another repository runs, if that repository and the session's branch exist.
    pub(super) fn find_gate_place(&mut self, gate: &Gate) -> Result<Option<GatePlace>, QueueError> {
        let Some(repo) = &gate.repo else { return Ok(None) };
        let Some((repository, branch, head)) = self.find_session(repo) else { return Ok(None) };
        let commit = if let GatePoint::At(commit) = gate.point { commit } else { head };
        let tree = repository.tree_of(commit)?;
        Ok(Some(GatePlace { name: repo.clone(), repository, branch, commit, tree }))
    }

    /// The branch of this run's session in another repository, and its commit.
    fn find_session(&mut self, repo: &RepoName) -> Option<(Repository, BranchName, Oid)> {
        let section = self.options.find_other(repo)?;
        let session = self.options.worktrees.session.as_ref()?;
        if !self.other_repos.contains_key(repo) {
            let opened = self.options.config_guard.find_repository(repo.as_str());
            let repository = opened.or_else(|| Repository::open_at(&section.path).ok())?;
            self.other_repos.insert(repo.clone(), GateRepo { repository, run: None });
        }
        let repository = &self.other_repos.get(repo)?.repository;
        let (branch, head) = section.find_session_branch(repository, session).ok()??;
        Some((repository.clone(), branch, head))
    }

    /// Runs a gate there.
    pub(super) fn run_in_other_repo(
        &mut self,
        gate: &Gate,
        gate_place: &GatePlace,
    ) -> Result<GateRecord, QueueError> {
        // The worktree settings apply to the plan's repository only.
        let options = WorktreeOptions::new(&Settings::default(), &self.options.cancel);
        let pool = Pool::open(&gate_place.repository, &gate_place.branch, options)?;
        self.run_in(&pool, gate, (gate_place.commit, gate_place.tree), |git_queue, program, place| {
            let session = git_queue.options.worktrees.session.as_ref();
            let variables = run_variables(&gate_place.name, &gate_place.branch, session, place);
            variables.iter().fold(program, |program, (name, value)| program.env(name, value))
        })
    }

    /// The gates whose paths a task changed in another repository. If that is not known, all of them.
    pub(super) fn gates_in_other_repo(
        &mut self,
        section: &RepoSection,
        task: &TaskId,
    ) -> Result<Vec<Gate>, QueueError> {
        let all = self.options.gates_in(Some(&section.name));
        let Some((repository, branch, head)) = self.find_session(&section.name) else {
            return Ok(all.map(|gate| Gate { own: true, ..gate }).collect());
        };
        let Some(run) = self.read_other_run(&section.name, RunScope { branch, tip: Some(head) }) else {
            return Ok(all.map(|gate| Gate { own: true, ..gate }).collect());
        };
        let last = run.find(task).and_then(|history| history.last()).map(|last| last.commit);
        let Some(to) = last else { return Ok(Vec::new()) };
        let Some(base) = run.find_base(&repository, task, to)? else { return Ok(Vec::new()) };
        let mut gates = Vec::new();
        for gate in all {
            if repository.touches(base.tree, to, &[gate.when.as_deref().unwrap_or(".")])? {
                gates.push(Gate { point: GatePoint::HeadSince(base.commit), ..gate });
            }
        }
        Ok(gates)
    }

    /// The session's run there. It is read again only if its branch has moved.
    fn read_other_run(&mut self, repo: &RepoName, scope: RunScope) -> Option<&Run> {
        let GateRepo { repository, run } = self.other_repos.get_mut(repo)?;
        let head = scope.tip?;
        if run.as_ref().is_none_or(|(read_at, _)| *read_at != head) {
            *run = Some((head, Run::scan(repository, scope, CommitSource::Fresh).ok()));
        }
        run.as_ref().and_then(|(_, run)| run.as_ref())
    }
}
