//! Sessions that were begun elsewhere: a fresh clone has what was pushed of them, and no branch of its own yet.

use super::{OpenRun, Planned, RunListener};
use crate::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{RawCommit, Repository, Taken},
    history::{CommitSource, Run, RunScope},
    message::visible,
    name::{BranchName, Oid, PipelineName, SessionId},
    plan::Plan,
    progress::{Boxes, Progress},
    queue::Target,
    session::SessionReader,
    workspace::{FetchScope, RepoSection, Supply, Workspace},
    worktree::SESSION_REASON,
};

const SESSIONS: &str = "refs/arborist/sessions/";

impl OpenRun {
    /// What the remote of the repository with the plan is asked for. What the user sends to a certain place goes on there,
    /// and nobody is asked.
    pub(super) fn wanted_of_main(&self, session: &SessionId, planned: &Planned) -> Option<FetchScope> {
        let prefix = &self.workspace.main().prefix;
        Some(match self.move_in.as_ref()? {
            _ if self.request.new_run => FetchScope::Branch,
            begun if begun.has_begun => FetchScope::Also(vec![format!("{SESSIONS}{session}*")]),
            _ => FetchScope::Also(vec![format!("refs/heads/{prefix}{}/*", planned.pipeline())]),
        })
    }

    /// Whether the run goes on with a session that has records and a branch, apart from the user's checkout.
    pub(super) fn has_begun(&self) -> bool {
        self.move_in.as_ref().is_some_and(|move_in| move_in.has_begun)
    }

    /// Refuses to begin or to go on with what has gone on elsewhere, as far as the remote tells.
    pub(super) fn refuse_elsewhere(
        &self,
        session: &SessionId,
        planned: &Planned,
        supply: &Supply,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let (repository, main) = (&self.repository, self.workspace.main());
        let has_begun = self.has_begun();
        match supply {
            _ if self.request.new_run => {}
            Supply::Offline { why, .. } if has_begun => listener.warn(&visible(&format!(
                "offline: whether session '{session}' has gone on elsewhere is not known ({why})"
            ))),
            Supply::Fetched { .. } if has_begun => self.refuse_newer(session)?,
            Supply::Fetched { .. } => {
                if let Some(path) = planned.file.as_ref().map(|file| file.path.as_str()) {
                    refuse_left(repository, (main, &self.workspace), (&planned.pipeline(), path))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses to go on with a branch that is behind the session's records, which were fetched without it.
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
        // What is parked is ahead of the branch because it waits for the user.
        let position = Target::new(repository, &self.branch).require().map_err(GardenerError::from)?;
        if position.parked.is_some() { Ok(()) } else { Err(gone_on(session)) }
    }

    /// Refuses to go on behind what a session has come to elsewhere.
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
            return Err(gone_on(session));
        }
        let words = format!("session '{session}' has gone on elsewhere, and here too");
        Err(Failure::new(Exit::Person, words).hint("begin another: --new-run"))
    }

    /// Brings the session's branch in another repository to where its remote has it.
    pub(super) fn catch_up(
        &self,
        section: &RepoSection,
        (repository, branch): (&Repository, &BranchName),
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let there = self.workspace.find_seen(repository, section, &branch.to_ref())?;
        let (Some(here), Some(there)) = (repository.find_branch(branch)?, there) else {
            return Ok(());
        };
        if here == there || repository.is_ancestor(there, here)? {
            return Ok(());
        }
        if !repository.is_ancestor(here, there)? {
            listener.warn(&format!(
                "'{branch}' has other commits at the remote of '{}': it is not pushed over them",
                section.name
            ));
            return Ok(());
        }
        match repository.bring_forward(branch, (here, there), SESSION_REASON)? {
            Taken::Done => {
                let (name, at) = (&section.name, there.short());
                listener.remark(&format!("'{branch}' is at {at} in '{name}', as its remote has it"));
                Ok(())
            }
            taken => {
                let why = if let Taken::Refused(why) = taken { why } else { "somebody moves it".into() };
                let words = format!(
                    "'{branch}' is behind its remote in '{}', and cannot follow: {why}",
                    section.name
                );
                let place = repository.checkouts_of(branch)?.pop().unwrap_or_else(|| section.path.clone());
                Err(Failure::new(Exit::Person, words)
                    .hint(format!("bring it there: git -C '{}' merge --ff-only {there}", place.display())))
            }
        }
    }
}

fn gone_on(session: &SessionId) -> Failure {
    Failure::new(Exit::Person, format!("session '{session}' has gone on elsewhere"))
        .hint(format!("go on from there: git arborist session resume {session}\nor begin another: --new-run"))
}

/// Refuses to begin a plan again that this user has begun elsewhere, and whose work a remote has.
pub(super) fn refuse_left(
    repository: &Repository,
    (main, workspace): (&RepoSection, &Workspace),
    (pipeline, plan): (&PipelineName, &str),
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
        // What cannot be read keeps nobody from beginning.
        let Ok(run) = Run::scan(repository, scope, CommitSource::Fresh) else {
            continue;
        };
        let Some(start) = run.start.as_ref().filter(|_| is_left(repository, &run, plan)) else {
            continue;
        };
        let (session, branch) = (&start.session, &run.scope.branch);
        let words =
            format!("you have begun '{plan}' elsewhere: session '{session}', on '{branch}', is not done");
        return Err(Failure::new(Exit::Person, words).hint(format!(
            "go on with it: git arborist session resume {session}\nor begin another: --new-run"
        )));
    }
    Ok(())
}

/// Whether something of this plan is left to do in a run.
fn is_left(repository: &Repository, run: &Run, path: &str) -> bool {
    let frozen = run.start.as_ref().and_then(|start| start.plan.as_ref()).filter(|plan| plan.path == path);
    let bytes = frozen.and_then(|plan| repository.find_blob(plan.blob).ok().flatten());
    let Some(plan) = bytes.and_then(|bytes| Plan::read(path, &bytes).ok()) else {
        return false;
    };
    let progress = Progress::new(Some(&plan), run, Boxes::Count);
    progress.counted().any(|standing| progress.is_left(standing.id))
}
