//! Sessions that were started in another clone. A fresh clone has what was pushed of them, and no branch of its own
//! yet.

use super::{OpenRun, Planned, RunListener};
use crate::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{FastForward, RawCommit, Repository},
    history::{CommitSource, Run, RunScope},
    message::visible,
    name::{BranchName, Oid, PipelineName, SessionId},
    plan::Plan,
    process::shell_word,
    progress::{PlanMarks, Progress},
    queue::Target,
    session::SessionReader,
    workspace::{FetchScope, RepoSection, SyncOutcome, Workspace},
    worktree::SESSION_REASON,
};

const SESSIONS: &str = "refs/arborist/sessions/";

impl OpenRun {
    /// What to fetch for the plan's repository. `None` if the run works in the current checkout: then the remote is not
    /// asked.
    pub(super) fn wanted_of_main(&self, session: &SessionId, planned: &Planned) -> Option<FetchScope> {
        let prefix = &self.workspace.main().prefix;
        Some(match self.pending_move.as_ref()? {
            _ if self.request.new_run => FetchScope::Branch,
            begun if begun.has_begun => FetchScope::Also(vec![format!("{SESSIONS}{session}*")]),
            _ => FetchScope::Also(vec![format!("refs/heads/{prefix}{}/*", planned.pipeline())]),
        })
    }

    /// Whether the run continues a session that has records and a branch, in a separate worktree.
    pub(super) fn has_begun(&self) -> bool {
        self.pending_move.as_ref().is_some_and(|pending_move| pending_move.has_begun)
    }

    /// Refuses to start or continue a session that the remote shows to have continued in another clone.
    pub(super) fn refuse_elsewhere(
        &self,
        session: &SessionId,
        planned: &Planned,
        outcome: &SyncOutcome,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let (repository, main) = (&self.repository, self.workspace.main());
        let has_begun = self.has_begun();
        match outcome {
            _ if self.request.new_run => {}
            SyncOutcome::Offline { why, .. } if has_begun => listener.warn_of_failure(&visible(&format!(
                "offline: could not find out whether session '{session}' continued on another machine ({why})"
            ))),
            SyncOutcome::Fetched { .. } if has_begun => self.refuse_newer(session)?,
            SyncOutcome::Fetched { .. } => {
                if let Some(path) = planned.file.as_ref().map(|file| file.path.as_str()) {
                    refuse_unfinished_elsewhere(
                        repository,
                        main,
                        &self.workspace,
                        &planned.pipeline(),
                        path,
                    )?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses to continue on a branch that is behind the session's records, which happens if only the records were
    /// fetched.
    pub(super) fn refuse_behind(&self, session: &SessionId) -> Result<(), Failure> {
        if !self.has_begun() {
            return Ok(());
        }
        let (repository, here) = (&self.repository, self.head);
        let Some(newest) = SessionReader::new(repository).newest(session)? else {
            return Ok(());
        };
        let tip = newest.record.context.tip;
        let is_known = tip != here && repository.find_commits(&[tip])?.iter().all(Option::is_some);
        if !is_known || !repository.is_ancestor(here, tip)? {
            return Ok(());
        }
        // A parked landing is ahead of the branch until the user makes room for it.
        let position = Target::new(repository, &self.branch).require().map_err(GardenerError::from)?;
        if position.parked.is_some() { Ok(()) } else { Err(continued_elsewhere(session)) }
    }

    /// Refuses to continue if the session's records at the remote are newer.
    fn refuse_newer(&self, session: &SessionId) -> Result<(), Failure> {
        let repository = &self.repository;
        let name = format!("{SESSIONS}{session}");
        let there = self.workspace.find_seen(repository, self.workspace.main(), &name)?;
        let (Some(here), Some(there)) = (repository.find_ref(&name)?, there) else {
            return Ok(());
        };
        if here == there || repository.is_ancestor(there, here)? {
            return Ok(());
        }
        if repository.is_ancestor(here, there)? {
            return Err(continued_elsewhere(session));
        }
        let words = format!("session '{session}' continued on another machine, and here too");
        Err(Failure::new(Exit::Person, words).hint("start another session with --new-run"))
    }

    /// Fast-forwards the session's branch in another repository, and those of its tasks, to their remote.
    pub(super) fn catch_up(
        &self,
        section: &RepoSection,
        repository: &Repository,
        branch: &BranchName,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        for name in self.workspace.adopt_below(repository, section, &branch.task_refs())? {
            let (task, name) = (name.trim_start_matches("refs/heads/"), &section.name);
            listener.warn(&format!(
                "updated '{task}' in '{name}' from its remote; its commits were not made or reviewed here"
            ));
        }
        let there = self.workspace.find_seen(repository, section, &branch.to_ref())?;
        let (Some(here), Some(there)) = (repository.find_branch(branch)?, there) else {
            return Ok(());
        };
        if here == there || repository.is_ancestor(there, here)? {
            return Ok(());
        }
        if !repository.is_ancestor(here, there)? {
            listener.warn_of_failure(&format!(
                "'{branch}' has other commits at the remote of '{}', so it is not pushed",
                section.name
            ));
            return Ok(());
        }
        match repository.fast_forward_branch(branch, here, there, SESSION_REASON)? {
            FastForward::Done => {
                let (name, range) = (&section.name, format!("{}..{}", here.short(), there.short()));
                listener.warn(&format!(
                    "updated '{branch}' in '{name}' from its remote; these commits were not made or reviewed here: {range}"
                ));
                Ok(())
            }
            taken => {
                let why = if let FastForward::Refused(why) = taken {
                    why
                } else {
                    "another process is moving it".into()
                };
                let words = format!(
                    "'{branch}' is behind its remote in '{}', and could not be updated: {why}",
                    section.name
                );
                let place = repository.checkouts_of(branch)?.pop().unwrap_or_else(|| section.path.clone());
                Err(Failure::new(Exit::Person, words)
                    .hint(format!("update it with: git -C '{}' merge --ff-only {there}", place.display())))
            }
        }
    }
}

fn continued_elsewhere(session: &SessionId) -> Failure {
    Failure::new(Exit::Person, format!("session '{session}' continued on another machine")).hint(format!(
        "continue it with: git arborist session resume {session}\nor start another session with --new-run"
    ))
}

/// Refuses to start a plan again that this user has started in another clone, if a remote has unfinished work of it.
pub(super) fn refuse_unfinished_elsewhere(
    repository: &Repository,
    main: &RepoSection,
    workspace: &Workspace,
    pipeline: &PipelineName,
    plan: &str,
) -> Result<(), Failure> {
    let prefix = format!("{}{pipeline}/", main.prefix);
    let branch_of = |name: &str| -> Option<BranchName> {
        let (_, branch) = name.strip_prefix("refs/remotes/")?.split_once('/')?;
        branch.parse().ok()
    };
    let tracked = repository.list_refs(&["refs/remotes/"])?;
    let tracked = tracked.iter().filter_map(|found| Some((branch_of(&found.name)?, found.target)));
    let mut seen = workspace.list_seen(repository, main)?;
    seen.extend(tracked);
    seen.retain(|(branch, _)| branch.as_str().starts_with(&prefix));
    if seen.is_empty() {
        return Ok(());
    }
    let user = repository.committer()?;
    let tips: Vec<Oid> = seen.iter().map(|(_, tip)| *tip).collect();
    let commits = repository.load_commits(&tips)?;
    let is_own = |commit: &RawCommit| user.is_some() && commit.committer() == user;
    for ((branch, tip), _) in seen.into_iter().zip(&commits).filter(|(_, commit)| is_own(commit)) {
        let scope = RunScope { branch, tip: Some(tip) };
        // A run that cannot be read is no reason to refuse a new one.
        let Ok(run) = Run::scan(repository, scope, CommitSource::Fresh) else {
            continue;
        };
        let Some(start) = run.start.as_ref().filter(|_| is_left(repository, &run, plan)) else {
            continue;
        };
        let (session, branch) = (&start.session, &run.scope.branch);
        let words = format!(
            "session '{session}' of '{plan}' was started on another machine, on '{branch}', and is not done"
        );
        let advice = format!(
            "continue it with: git arborist session resume {session}\nif its records were not pushed, continue from its commits: git switch {} && git arborist gardener\nor start another session with --new-run",
            shell_word(branch.as_str())
        );
        return Err(Failure::new(Exit::Person, words).hint(advice));
    }
    Ok(())
}

/// Whether a run has unfinished tasks of this plan.
fn is_left(repository: &Repository, run: &Run, path: &str) -> bool {
    let frozen = run.frozen_plan().filter(|plan| plan.path == path);
    let Ok(Some(Ok(plan))) = Plan::read_frozen(repository, frozen) else {
        return false;
    };
    let progress = Progress::new(Some(&plan), run, PlanMarks::Count);
    progress.counted().any(|node| progress.is_left(node.id))
}
