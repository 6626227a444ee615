//! Gates in other repositories: which of them a task has to pass there, and asking them in a scratch worktree at the head
//! of the session's branch there, or where the task began.

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

/// Another repository, as this drain has read it.
pub(in crate::queue) struct GateRepo {
    repository: Repository,
    /// The session's run there, and the head that it was read at. `None` where it could not be read.
    run: Option<(Oid, Option<Run>)>,
}

/// Where a gate is asked in another repository.
pub(super) struct Abroad {
    name: RepoName,
    repository: Repository,
    branch: BranchName,
    /// The commit that it is asked about.
    commit: Oid,
    pub(super) tree: Oid,
}

/// A gate that nobody could ask.
pub(super) fn absent(gate: &Gate, repo: &RepoName, commit: Oid) -> Failing {
    let why = format!("the session has no branch in the repository '{repo}' here");
    Failing { gate: gate.clone(), commit, why, log: String::new(), tail: String::new() }
}

impl GitQueue<'_> {
    /// Where a gate is asked that is asked in another repository, if that and the session's branch are there.
    pub(super) fn find_abroad(&mut self, gate: &Gate) -> Result<Option<Abroad>, QueueError> {
        let Some(repo) = &gate.repo else { return Ok(None) };
        let Some((repository, branch, head)) = self.find_session(repo) else { return Ok(None) };
        let commit = if let GatePoint::At(commit) = gate.point { commit } else { head };
        let tree = repository.tree_of(commit)?;
        Ok(Some(Abroad { name: repo.clone(), repository, branch, commit, tree }))
    }

    /// The branch of this run's session in another repository, and where it is now.
    fn find_session(&mut self, repo: &RepoName) -> Option<(Repository, BranchName, Oid)> {
        let section = self.options.find_other(repo)?;
        let session = self.options.worktrees.session.as_ref()?;
        if !self.neighbours.contains_key(repo) {
            let opened = self.options.config_guard.find_repository(repo.as_str());
            let repository = opened.or_else(|| Repository::open_at(&section.path).ok())?;
            self.neighbours.insert(repo.clone(), GateRepo { repository, run: None });
        }
        let repository = &self.neighbours.get(repo)?.repository;
        let (branch, head) = section.find_session_branch(repository, session).ok()??;
        Some((repository.clone(), branch, head))
    }

    /// Asks a gate there.
    pub(super) fn run_abroad(&mut self, gate: &Gate, abroad: &Abroad) -> Result<GateRecord, QueueError> {
        // What is configured for worktrees is meant for the repository that has the plan.
        let options = WorktreeOptions::new(&Settings::default(), &self.options.cancel);
        let pool = Pool::open(&abroad.repository, &abroad.branch, options)?;
        self.run_in(&pool, gate, (abroad.commit, abroad.tree), |git_queue, program, place| {
            let session = git_queue.options.worktrees.session.as_ref();
            let variables = run_variables(&abroad.name, &abroad.branch, session, place);
            variables.iter().fold(program, |program, (name, value)| program.env(name, value))
        })
    }

    /// The gates whose paths are among what a task changed in another repository. Where nobody can tell, all are asked.
    pub(super) fn gates_abroad(
        &mut self,
        section: &RepoSection,
        task: &TaskId,
    ) -> Result<Vec<Gate>, QueueError> {
        let all = self.options.gates_in(Some(&section.name));
        let Some((repository, branch, head)) = self.find_session(&section.name) else {
            return Ok(all.map(|gate| Gate { own: true, ..gate }).collect());
        };
        let Some(run) = self.read_abroad(&section.name, RunScope { branch, tip: Some(head) }) else {
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

    /// The session's run there: read again only once its branch has moved.
    fn read_abroad(&mut self, repo: &RepoName, scope: RunScope) -> Option<&Run> {
        let GateRepo { repository, run } = self.neighbours.get_mut(repo)?;
        let head = scope.tip?;
        if run.as_ref().is_none_or(|(read_at, _)| *read_at != head) {
            *run = Some((head, Run::scan(repository, scope, CommitSource::Fresh).ok()));
        }
        run.as_ref().and_then(|(_, run)| run.as_ref())
    }
}
