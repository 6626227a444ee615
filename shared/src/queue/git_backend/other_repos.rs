//! The other repositories of a workspace, as a drain sees them: where the session's branch is, the gates that run there in a
//! scratch worktree at the commit that is to land, and the landings.

use std::collections::BTreeMap;

use super::{GitQueue, land::MergedTree, read_and_repair::landing_of};
use crate::{
    git::{Merge, MergeConflict, Repository},
    history::{CommitSource, Event, Run, RunScope},
    message::OtherLandings,
    name::{BranchName, Oid, RepoName, SessionId, TaskId},
    queue::{Failing, Gate, GateFault, QueueError, Store, Target, Ticket, TicketState, target::MoveResult},
    settings::Settings,
    workspace::RepoSection,
    worktree::{Pool, WorktreeOptions},
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

/// Where a gate runs.
pub(super) struct GatePlace {
    /// The other repository that it belongs to; `None` for the plan's.
    pub(super) other: Option<OtherTarget>,
    /// The commit that it tests there.
    pub(super) commit: Oid,
    pub(super) tree: Oid,
}

/// The result of a gate that could not be run, because its repository is not here.
pub(super) fn absent(gate: &Gate, commit: Oid) -> Failing {
    Failing {
        gate: gate.clone(),
        commit,
        why: gate.repo.as_ref().map(words_of_absent).unwrap_or_default(),
        fault: GateFault::Other,
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
    /// Where a gate runs for a commit of the plan's repository. `None` if the gate belongs to another repository, and that
    /// or the session's branch there is missing.
    pub(super) fn find_gate_place(
        &mut self,
        gate: &Gate,
        commit: Oid,
    ) -> Result<Option<GatePlace>, QueueError> {
        let Some(repo) = &gate.repo else {
            return Ok(Some(GatePlace { other: None, commit, tree: self.tree_of(commit)? }));
        };
        let Some(target) = self.find_target(repo) else { return Ok(None) };
        let commit = self.head_with(commit, &target);
        let tree = target.repository.tree_of(commit)?;
        Ok(Some(GatePlace { other: Some(target), commit, tree }))
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
        OtherTarget::find(section, repository, session)
    }

    /// A repository in which a task works and the session has no branch here.
    pub(super) fn find_absent(&mut self, task: &TaskId) -> Option<RepoName> {
        let others = self.options.others_of(task).into_iter().map(|section| section.name.clone());
        let others: Vec<RepoName> = others.collect();
        others.into_iter().find(|repo| self.find_target(repo).is_none())
    }

    /// The pool for the scratch worktree of a gate.
    pub(super) fn gate_pool(&self, place: &GatePlace) -> Result<Pool, QueueError> {
        let Some(target) = &place.other else { return self.pool() };
        // The worktree settings apply to the plan's repository only.
        let options = WorktreeOptions::new(&Settings::default(), &self.options.cancel);
        Ok(Pool::open(&target.repository, &target.branch, options)?)
    }

    /// The gates whose paths a landing changes in another repository, where it brings `landed` on top of what belongs
    /// to `onto`. If the repository is not here, all of them.
    pub(super) fn gates_in_other_repo(
        &mut self,
        section: &RepoSection,
        task: &TaskId,
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

// Landings in other repositories. A task lands in all of its repositories or in none.
//
// The merge commit in the plan's repository names the commits that land with it elsewhere, and moving the target to it
// is the moment of landing. Before that, merges elsewhere are only objects: nothing has to be undone if a gate fails or
// the process is killed. After it, the branches elsewhere are moved, and then the ticket is closed. If the process is
// killed in between, the ticket is still open, and the next run or drain moves them.

/// How often a move is tried if the branch is moved meanwhile.
const MAX_TRIES: usize = 5;

/// What a merge brings to another repository.
#[derive(Debug, Clone)]
pub(in crate::queue) struct OtherLanding {
    name: RepoName,
    /// The commit that it is on top of.
    onto: Oid,
    /// The commit that lands.
    pub(super) commit: Oid,
}

/// The result of the merges in other repositories.
pub(super) enum MergedElsewhere {
    /// What lands there.
    Clean(Vec<OtherLanding>),
    /// The conflicts of all of them.
    Conflict(Vec<MergeConflict>),
}

/// Whether the branches of other repositories can be moved.
pub(super) enum OtherMoves {
    /// They can, each to this commit.
    Ready(Vec<(OtherTarget, Oid)>),
    /// Another process has moved one of them.
    TargetChanged,
    /// One of them cannot be moved, for this reason.
    Refused(String),
}

impl OtherTarget {
    /// The branch of a session in a repository that is opened here.
    pub(in crate::queue) fn find(
        section: &RepoSection,
        repository: Repository,
        session: &SessionId,
    ) -> Option<Self> {
        let (branch, head) = section.find_session_branch(&repository, session).ok()??;
        Some(Self { name: section.name.clone(), repository, branch, head })
    }

    /// The commit that this run gave a branch, whatever a child process has made of the ref since.
    pub(in crate::queue) fn find_tip(&self, branch: &BranchName) -> Result<Option<Oid>, QueueError> {
        Ok(self.repository.find_own_branch(branch)?)
    }

    /// Whether the branch has a commit, which may not be here at all.
    pub(in crate::queue) fn has_landed(&self, commit: Oid) -> Result<bool, QueueError> {
        let is_here = self.repository.find_commits(&[commit])?.first() == Some(&Some(commit));
        Ok(is_here && self.repository.is_ancestor(commit, self.head)?)
    }

    /// Writes the commit that joins `onto` with the work of a task.
    fn write_merge(
        &self,
        MergedTree { onto, tree }: MergedTree,
        source: Oid,
        what: &str,
    ) -> Result<Oid, QueueError> {
        let message = format!("Merge {what} into '{}'\n", self.branch);
        let signing = self.repository.signing()?;
        Ok(self.repository.write_commit_with_parents(tree, &[onto, source], &message, signing)?)
    }

    /// Moves the branch so that it has a commit that landed. If others have committed on the branch since, they are
    /// merged.
    fn advance_to_landed(&self, landed: Oid) -> Result<(), QueueError> {
        let unfinished = |why: String| QueueError::Unfinished {
            repo: self.name.clone(),
            branch: self.branch.clone(),
            commit: landed,
            why,
        };
        for _ in 0..MAX_TRIES {
            let head = self.find_tip(&self.branch)?;
            let head = head.ok_or_else(|| QueueError::NoTarget(self.branch.clone()))?;
            if self.repository.is_ancestor(landed, head)? {
                return Ok(());
            }
            let to = if self.repository.is_ancestor(head, landed)? {
                landed
            } else {
                match self.repository.merge(head, landed)? {
                    Merge::Clean(tree) => self.write_merge(
                        MergedTree { onto: head, tree },
                        landed,
                        &landed.short().to_string(),
                    )?,
                    Merge::Conflicted(..) => {
                        return Err(unfinished("it has other commits, which conflict".into()));
                    }
                }
            };
            match Target::new(&self.repository, &self.branch).advance(head, to)? {
                MoveResult::Done => return Ok(()),
                MoveResult::Refused(parking) => return Err(unfinished(parking.why)),
                // A child process may have moved it.
                MoveResult::TargetChanged => drop(self.repository.restore_ref(&self.branch.to_ref())?),
            }
        }
        Err(unfinished("another process keeps moving it".into()))
    }
}

impl GitQueue<'_> {
    /// The commit that belongs to a commit of the plan's repository in another one: what lands with it and with the
    /// merges below it, or else where the session's branch is.
    fn head_with(&self, commit: Oid, target: &OtherTarget) -> Oid {
        let landings = self.open_merges_below(commit).flat_map(|merge| merge.landings.iter().flatten().rev());
        let own = landings.filter(|landing| landing.name == target.name).map(|landing| landing.commit).next();
        own.unwrap_or(target.head)
    }

    /// Merges the work of a ticket in each other repository, on top of what belongs to `onto` there. Moves no ref.
    pub(super) fn merge_elsewhere(
        &mut self,
        onto: Oid,
        ticket: &Ticket,
    ) -> Result<MergedElsewhere, QueueError> {
        let (mut landings, mut conflicts) = (Vec::new(), Vec::new());
        for (name, source) in &ticket.elsewhere {
            let target = self.require_target(name)?;
            let head = self.head_with(onto, &target);
            if target.repository.is_ancestor(*source, head)? {
                continue;
            }
            match target.repository.merge(head, *source)? {
                Merge::Clean(tree) => {
                    let what = format!("'{}'", target.branch.task_branch(&ticket.task));
                    let commit = target.write_merge(MergedTree { onto: head, tree }, *source, &what)?;
                    landings.push(OtherLanding { name: name.clone(), onto: head, commit });
                }
                Merge::Conflicted(_, found) => {
                    conflicts.extend(found.into_iter().map(|conflict| conflict.in_repository(name)));
                }
            }
        }
        Ok(match conflicts.is_empty() {
            true => MergedElsewhere::Clean(landings),
            false => MergedElsewhere::Conflict(conflicts),
        })
    }

    fn require_target(&mut self, name: &RepoName) -> Result<OtherTarget, QueueError> {
        self.find_target(name).ok_or_else(|| QueueError::NoOther(name.clone()))
    }

    /// What a landing brings to other repositories, for its message.
    pub(super) fn landed_in(landings: &[OtherLanding]) -> Option<OtherLandings> {
        let all = landings.iter().map(|landing| (landing.name.clone(), landing.commit));
        let all: BTreeMap<RepoName, Oid> = all.collect();
        (!all.is_empty()).then_some(OtherLandings(all))
    }

    /// Whether the branches of other repositories can be moved to what these merges bring there, one after the other.
    pub(super) fn plan_moves(&mut self, merges: &[Oid]) -> Result<OtherMoves, QueueError> {
        let mut planned: BTreeMap<RepoName, (Oid, Oid)> = BTreeMap::new();
        for landing in merges.iter().flat_map(|merge| self.landings_of(*merge)) {
            let moved = planned.entry(landing.name.clone()).or_insert((landing.onto, landing.commit));
            moved.1 = landing.commit;
        }
        let mut moves = Vec::new();
        for (name, (from, to)) in planned {
            let target = self.require_target(&name)?;
            if target.head != from {
                return Ok(OtherMoves::TargetChanged);
            }
            if let Some(why) = target.repository.find_obstacle(&target.branch, from, to)? {
                let why = format!("'{}' in {name} cannot be moved: {why}", target.branch);
                return Ok(OtherMoves::Refused(why));
            }
            moves.push((target, to));
        }
        Ok(OtherMoves::Ready(moves))
    }

    /// Moves the branches of other repositories, after the target was moved here.
    pub(super) fn land_elsewhere(&mut self, moves: &[(OtherTarget, Oid)]) -> Result<(), QueueError> {
        // From now on, merges are made on top of the branches.
        self.merges.values_mut().for_each(|merge| merge.landings = None);
        moves.iter().try_for_each(|(target, landed)| target.advance_to_landed(*landed))
    }

    /// Finishes a landing that was interrupted after the target was moved here.
    pub(super) fn finish_landing(&mut self, merge: Oid) -> Result<(), QueueError> {
        for (name, landed) in landed_with(self.repository, merge)?.0 {
            self.require_target(&name)?.advance_to_landed(landed)?;
        }
        Ok(())
    }

    /// The ticket with the current tips of its task's branches in other repositories. It must not land if one of them
    /// cannot be found.
    pub(super) fn refreshed_elsewhere(&mut self, ticket: Ticket) -> Result<Ticket, QueueError> {
        let names: Vec<RepoName> =
            self.options.others_of(&ticket.task).into_iter().map(|section| section.name.clone()).collect();
        let mut tips = BTreeMap::new();
        for name in names {
            // Without the repository, it is refused when it is merged.
            let Some(target) = self.find_target(&name) else { return Ok(ticket) };
            let branch = target.branch.task_branch(&ticket.task);
            if let Some(tip) = target.find_tip(&branch)? {
                tips.insert(name, tip);
                continue;
            }
            if let Some(lost) =
                target.find_lost(self.repository, self.options.worktrees.session.as_ref(), &ticket)?
            {
                return Ok(Ticket { state: lost, ..ticket });
            }
        }
        let is_new = ticket.elsewhere.is_empty();
        if ticket.elsewhere == tips {
            return Ok(ticket);
        }
        let ticket = Ticket { elsewhere: tips, ..ticket };
        // A person has worked on it since it was tried: it is tried again.
        let is_tried = matches!(ticket.state, TicketState::Conflict { .. } | TicketState::Red { .. });
        if is_new || !is_tried {
            return Ok(ticket);
        }
        Ok(Ticket { state: TicketState::Waiting, held: None, tries: Vec::new(), ..ticket })
    }

    /// Where a person can resolve the conflict of a task, if it is in another repository.
    pub(in crate::queue) fn find_conflict_elsewhere(
        &mut self,
        ticket: &Ticket,
        onto: Oid,
    ) -> Result<Option<OtherTarget>, QueueError> {
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        if matches!(self.repository.merge(onto, theirs)?, Merge::Conflicted(..)) {
            return Ok(None);
        }
        for (name, source) in &ticket.elsewhere {
            let target = self.require_target(name)?;
            if matches!(target.repository.merge(target.head, *source)?, Merge::Conflicted(..)) {
                return Ok(Some(target));
            }
        }
        Ok(None)
    }

    /// The error for a person who wants to resolve a conflict that is in another repository.
    pub(in crate::queue) fn conflict_elsewhere(
        &self,
        task: &TaskId,
        target: &OtherTarget,
    ) -> Result<QueueError, QueueError> {
        let branch = target.branch.task_branch(task);
        let place = target.repository.checkouts_of(&branch)?.into_iter().next();
        let (repo, session) = (target.name.clone(), target.branch.clone());
        Ok(QueueError::ConflictElsewhere { task: task.clone(), repo, branch, session, place })
    }
}

/// What a landing brought to other repositories, according to its message.
fn landed_with(repository: &Repository, merge: Oid) -> Result<OtherLandings, QueueError> {
    let commits = repository.load_commits(&[merge])?;
    let event = commits.first().and_then(Event::of);
    Ok(event.map(|event| event.trailers.landed_in()).unwrap_or_default())
}

/// Finishes landings of the run `scope` in another repository, in which the session has `branch`: those whose process was
/// killed after it had moved the target.
pub fn finish_landings(
    repository: &Repository,
    scope: &BranchName,
    name: &RepoName,
    other: &Repository,
    branch: &BranchName,
) -> Result<(), QueueError> {
    for stored in Store::new(repository).load(Some(scope))? {
        let ticket = stored.ticket;
        let Some(position) = Target::new(repository, &ticket.into).find()? else { continue };
        let run_scope = RunScope { branch: scope.clone(), tip: Some(position.tip()) };
        let run = Run::scan(repository, run_scope, CommitSource::Fresh)?;
        let Some(merge) = landing_of(&run, &ticket) else { continue };
        let Some(landed) = landed_with(repository, merge)?.0.remove(name) else { continue };
        let head = other.find_branch(branch)?.ok_or_else(|| QueueError::NoTarget(branch.clone()))?;
        let (repository, branch) = (other.clone(), branch.clone());
        OtherTarget { name: name.clone(), repository, branch, head }.advance_to_landed(landed)?;
    }
    Ok(())
}
