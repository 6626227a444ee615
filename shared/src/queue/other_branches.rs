//! The branches of tasks in the other repositories of a workspace: whether one is lost, and whether one has commits
//! that have not landed.

use std::collections::HashMap;

use super::{QueueError, Ticket, TicketState, git_backend::OtherTarget};
use crate::{
    git::Repository,
    history::Run,
    name::{BranchName, Oid, RepoName, SessionId, TaskId},
    plan::{Plan, Task},
    process::Cancel,
    session::find_turn_elsewhere,
    settings::Settings,
    workspace::{RepoSection, Workspace, WorkspaceError},
};

/// The repositories that each task works in, if one of them is not the plan's.
pub(super) fn repos_of_tasks(sections: &[RepoSection], plan: &Plan) -> HashMap<TaskId, Vec<RepoName>> {
    let find = |name: &String| sections.iter().find(|section| section.name.as_str() == name);
    let spread = |task: &Task| {
        let own: Vec<&RepoSection> = task.repos.iter().filter_map(find).collect();
        let names = own.iter().map(|section| section.name.clone()).collect();
        own.iter().any(|section| !section.is_main).then(|| (task.id.clone(), names))
    };
    plan.tasks.iter().filter_map(spread).collect()
}

/// A branch of a landed task in another repository that has commits which did not land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaterCommits {
    /// The repository.
    pub repo: RepoName,
    /// The branch of the task.
    pub branch: BranchName,
    /// The branch of the session, which lacks the commits.
    pub target: BranchName,
    /// A checkout in which they can be merged.
    pub place: std::path::PathBuf,
    /// How many there are.
    pub count: u64,
}

/// The other repositories of a run, in which its session has a branch.
#[derive(Debug)]
pub struct OtherBranches {
    session: SessionId,
    targets: Vec<OtherTarget>,
    task_repos: HashMap<TaskId, Vec<RepoName>>,
}

impl OtherBranches {
    /// The other repositories of the workspace in which tasks of a run work; `None` if there are none.
    pub fn of_run(
        repository: &Repository,
        settings: &Settings,
        run: &Run,
        plan: Option<&Plan>,
    ) -> Result<Option<Self>, WorkspaceError> {
        let (Some(start), Some(plan)) = (&run.start, plan) else { return Ok(None) };
        if plan.tasks.iter().all(|task| task.repos.is_empty()) {
            return Ok(None);
        }
        let workspace = Workspace::load(repository, settings, &Cancel::new())?;
        Ok(Some(Self::open(&workspace.sections, plan, &start.session)))
    }

    /// Opens the repositories that tasks of the plan work in. Those that are not here are left out.
    #[must_use]
    pub fn open(sections: &[RepoSection], plan: &Plan, session: &SessionId) -> Self {
        let task_repos = repos_of_tasks(sections, plan);
        let is_used = |section: &&RepoSection| {
            !section.is_main && task_repos.values().flatten().any(|name| *name == section.name)
        };
        let open = |section: &RepoSection| {
            let repository = Repository::open_at(&section.path).ok()?;
            OtherTarget::find(section, repository, session)
        };
        let targets = sections.iter().filter(is_used).filter_map(open).collect();
        Self { session: session.clone(), targets, task_repos }
    }

    fn of<'a>(&'a self, task: &TaskId) -> impl Iterator<Item = &'a OtherTarget> + use<'a> {
        let names = self.task_repos.get(task).map(Vec::as_slice).unwrap_or_default();
        self.targets.iter().filter(move |target| names.contains(&target.name))
    }

    /// The state of a ticket whose branch is gone in one of these repositories. `records` has the session's records.
    pub(super) fn find_lost(
        &self,
        records: &Repository,
        ticket: &Ticket,
    ) -> Result<Option<TicketState>, QueueError> {
        for target in self.of(&ticket.task) {
            if target.find_tip(&target.branch.task_branch(&ticket.task))?.is_none()
                && let Some(lost) = target.find_lost(records, Some(&self.session), ticket)?
            {
                return Ok(Some(lost));
            }
        }
        Ok(None)
    }

    /// The branches of a task with commits that the session's branch lacks, with their repositories.
    pub fn find_unlanded(&self, task: &TaskId) -> Result<Vec<(RepoName, BranchName)>, QueueError> {
        let mut found = Vec::new();
        for target in self.of(task) {
            let branch = target.branch.task_branch(task);
            if target.find_unlanded(&branch)?.is_some() {
                found.push((target.name.clone(), branch));
            }
        }
        Ok(found)
    }

    /// Commits on the branch of a landed task that the session's branch lacks.
    pub fn find_later_commits(&self, task: &TaskId) -> Result<Option<LaterCommits>, QueueError> {
        for target in self.of(task) {
            let branch = target.branch.task_branch(task);
            let Some(tip) = target.find_unlanded(&branch)? else { continue };
            let count = target.repository.distance(tip, target.head)?.ahead;
            if count > 0 {
                let place = target.repository.checkouts_of(&target.branch)?.into_iter().next();
                let place = place.unwrap_or_else(|| target.repository.top().to_owned());
                let (repo, target) = (target.name.clone(), target.branch.clone());
                return Ok(Some(LaterCommits { repo, branch, target, place, count }));
            }
        }
        Ok(None)
    }
}

impl OtherTarget {
    /// The tip of a task's branch, if it has commits that the session's branch lacks.
    fn find_unlanded(&self, branch: &BranchName) -> Result<Option<Oid>, QueueError> {
        let Some(tip) = self.find_tip(branch)? else { return Ok(None) };
        // Nearly always so, and known without a git process.
        Ok((!self.repository.is_ancestor(tip, self.head)?).then_some(tip))
    }

    /// The state of a ticket whose branch is gone here, unless its work has landed or there was none.
    pub(super) fn find_lost(
        &self,
        records: &Repository,
        session: Option<&SessionId>,
        ticket: &Ticket,
    ) -> Result<Option<TicketState>, QueueError> {
        let known = match ticket.elsewhere.get(&self.name) {
            Some(known) => Some(*known),
            None => self.find_recorded(records, session, &ticket.task)?,
        };
        let Some(tip) = known else { return Ok(None) };
        if self.has_landed(tip)? {
            return Ok(None);
        }
        Ok(Some(TicketState::LostElsewhere {
            repo: self.name.clone(),
            branch: self.branch.task_branch(&ticket.task),
            tip,
            place: self.repository.top().to_owned(),
        }))
    }

    /// The last commit of a task here, according to the session's records.
    fn find_recorded(
        &self,
        records: &Repository,
        session: Option<&SessionId>,
        task: &TaskId,
    ) -> Result<Option<Oid>, QueueError> {
        let Some(session) = session else { return Ok(None) };
        let found = find_turn_elsewhere(records, session, self.name.as_str(), Some(task))?;
        Ok(found.map(|(_, commit)| commit))
    }
}
