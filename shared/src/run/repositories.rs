//! The other repositories of a run: fetches them, and creates the session's branch and worktree in each.

use std::sync::Arc;

use super::{OpenRun, Planned, RunListener, opening::pre_commit};
use crate::{
    failure::Failure,
    gardener::{GardenerError, Lanes, OtherLanes, recover, start},
    git::{Config, RawCommit, RefMove, Repository},
    history::{CommitSource, Event, Run, RunScope, WorkBase},
    name::{BranchName, Oid, SessionId},
    pipeline::{IgnoredFiles, OtherRepo, PipelineError},
    process::FileLock,
    queue::finish_landings,
    record::{RunRecorder, UnfinishedAttempt, repair_index},
    session::{RecordKind, SessionReader, SessionStart, finish_turn_elsewhere, owned_elsewhere},
    settings::{PushPolicy, Settings},
    workspace::{
        FetchReply, FetchScope, PushSet, Pusher, RepoRequest, RepoSection, WorkspaceError,
        remember_plan_repository,
    },
    worktree::{Pool, SessionWorktree, WorktreeOptions},
};

/// How many commits of others on top of a session's branch are looked through.
const MAX_ON_TOP: usize = 100;

/// Another repository of the workspace, cloned or fetched.
pub(super) struct FetchedRepo {
    pub(super) section: RepoSection,
    pub(super) repository: Repository,
    /// The session's branch there. It may not exist yet.
    pub(super) branch: BranchName,
    /// The commit that it will start from.
    pub(super) base: Option<Oid>,
}

impl OpenRun {
    /// Fetches or clones all repositories in parallel. If the session worked in a repository of another clone but not
    /// here, its branch is fetched too. Clones are moved to their paths only after the run was not refused.
    pub(super) fn fetch_repositories(
        &mut self,
        session: &SessionId,
        planned: &Planned,
        run: &Run,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let (workspace, main) = (&self.workspace, self.workspace.main());
        let mut requests = Vec::new();
        let mut branches = Vec::new();
        for section in workspace.sections.iter().filter(|section| !section.is_main) {
            let branch = section.session_branch(&planned.pipeline(), session)?;
            let here = workspace.locate(section)?;
            let is_here = match &here {
                Some(repository) => repository.find_branch(&branch)?.is_some(),
                None => false,
            };
            let wanted = match (&run.start, is_here) {
                (None, _) => FetchScope::Branch,
                (Some(_), true) => FetchScope::Also(vec![
                    format!("{}*", branch.to_ref()),
                    format!("{}*", branch.task_refs()),
                ]),
                (Some(_), false) => FetchScope::Everything,
            };
            requests.push(RepoRequest { section, here, wanted });
            branches.push(branch);
        }
        let wanted = self.wanted_of_main(session, planned);
        let here = Some(self.repository.clone());
        requests.extend(wanted.map(|wanted| RepoRequest { section: main, here, wanted }));
        let mut replies = workspace.fetch_all(&requests);
        self.require_unstopped()?;
        if let Some(FetchReply::Here(here)) = replies.split_off(branches.len()).pop().transpose()? {
            self.refuse_elsewhere(session, planned, &here.1, listener)?;
            self.main_sync = Some(here.1);
            if !self.has_begun() {
                self.head = self.find_base(listener)?;
            }
        }
        let replies: Vec<FetchReply> = replies.into_iter().collect::<Result<_, _>>()?;
        let answers = workspace.place_all(&requests, &replies);
        self.require_unstopped()?;
        let mut others = Vec::new();
        for ((RepoRequest { section, wanted, .. }, branch), answer) in
            requests.into_iter().zip(branches).zip(answers)
        {
            let (repository, outcome) = answer?;
            match wanted {
                FetchScope::Everything => drop(self.workspace.adopt(&repository, section)?),
                FetchScope::Also(_) => self.catch_up(section, &repository, &branch, listener)?,
                FetchScope::Branch => {}
            }
            let base = self.workspace.base(&repository, section)?;
            listener.report_sync(section, &outcome, base);
            others.push(FetchedRepo { section: section.clone(), repository, branch, base });
        }
        self.others = others;
        Ok(())
    }

    fn require_unstopped(&self) -> Result<(), PipelineError> {
        if self.cancel.is_cancelled() { Err(PipelineError::stopped(&self.cancel)) } else { Ok(()) }
    }

    /// Starts watching all repositories, before the first child process. The session's branches and the marks of a
    /// crash that exist now are trusted when worktrees are created there later.
    pub(super) fn watch_others(&self, session: &SessionId) -> Result<(), Failure> {
        if !self.others.is_empty() {
            self.config_guard.add(self.workspace.main().name.as_str(), &self.repository);
        }
        for FetchedRepo { section, repository, branch, .. } in &self.others {
            repository.own_refs(&owned_elsewhere(branch, session))?;
            self.config_guard.add(section.name.as_str(), repository);
        }
        Ok(())
    }

    /// Creates the session's branch and worktree in each of the other repositories.
    pub(super) fn enter_other_repos(
        &self,
        session: &SessionId,
        planned: &Planned,
        listener: &mut dyn RunListener,
    ) -> Result<Vec<OtherRepo>, Failure> {
        let mut other_repos = Vec::new();
        for FetchedRepo { section, repository, branch, base } in &self.others {
            if repository.find_branch(branch)?.is_none() {
                let (name, path) = (section.name.clone(), section.path.clone());
                let base = base.ok_or(WorkspaceError::Empty { name, path })?;
                let made = RefMove { name: &branch.to_ref(), new: Some(base), old: None };
                repository.move_refs(&[made], "arborist: session")?;
                listener.report_branch(section, branch, base);
            }
            other_repos.push(self.enter_other_repo(
                section,
                repository,
                branch.clone(),
                session,
                planned,
                listener,
            )?);
        }
        Ok(other_repos)
    }

    fn enter_other_repo(
        &self,
        section: &RepoSection,
        repository: &Repository,
        branch: BranchName,
        session: &SessionId,
        planned: &Planned,
        listener: &mut dyn RunListener,
    ) -> Result<OtherRepo, Failure> {
        // The run's lock is in the plan's repository. Take one here too, so that runs of this repository see that we
        // work in it.
        let locks = repository.lock_folder();
        let path = locks.join(format!("session-{}", branch.component()));
        let lock = FileLock::try_take(&path, &format!("git arborist on {branch}"))
            .map_err(|source| GardenerError::Locked { branch: branch.clone(), source })?;
        // The worktree settings apply to the plan's repository only.
        let options = WorktreeOptions::new(&Settings::default(), &self.cancel);
        let session_worktree: SessionWorktree =
            Pool::open(repository, &branch, options)?.session_worktree(session)?;
        if session_worktree.was_entered_now {
            listener.report_worktree(section, &session_worktree.path, &branch);
        }
        session_worktree.notes.iter().for_each(|note| listener.remark(&note.to_string()));
        let place = session_worktree.repository;
        self.config_guard.add_place(section.name.as_str(), &place);
        remember_plan_repository(&place, &self.repository)?;
        // What a crash has left of a landing.
        place.undo_updates(&lock, &branch)?;
        finish_landings(&self.repository, &self.branch, &section.name, &place, &branch)?;
        // A turn is interrupted only within an attempt, and then the attempt's mark still exists.
        if !UnfinishedAttempt::find_all(&place, &branch)?.is_empty() {
            finish_turn_elsewhere(&self.repository, session, section.name.as_str(), &place, &branch, None)?;
        }
        let head = place.find_branch(&branch)?.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
        let mut recorder = RunRecorder::new(&place, branch.clone(), session.clone(), head)?;
        repair_index(&place, &branch, head)?;
        if is_begun(&place, &branch, head)? {
            let run = Run::scan(&place, RunScope { branch, tip: Some(head) }, CommitSource::Fresh)?;
            for recovered in recover(&mut recorder, &run, &planned.plan, &self.options, &self.config_guard)? {
                listener.warn(&format!("in {}: {}", section.name, recovered.words()));
            }
        } else {
            start::write_start_of(
                &mut recorder,
                start::FrozenPlan::Nothing,
                self.replayed(session)?.as_ref(),
            )?;
        }
        let (identity, tip) = (recorder.identity().clone(), recorder.tip().clone());
        let hook = pre_commit(&place, &Config::load(&place)?)?;
        let (name, base) = (section.name.clone(), WorkBase::fresh(tip.head, tip.tree));
        // Before the first agent, so that files left by earlier tasks are recognised by later ones' tests.
        let ignored = IgnoredFiles::default();
        ignored.begin(&place, tip.tree, &self.options.log_dir)?;
        Ok(OtherRepo { name, repository: place, identity, tip, hook, ignored, base, lock: Arc::new(lock) })
    }

    /// Lanes in the other repositories, if tasks work in lanes.
    pub(super) fn other_lanes(
        &self,
        lanes: Option<&Lanes<'_>>,
        other_repos: &[OtherRepo],
    ) -> Result<Vec<OtherLanes>, Failure> {
        let Some(lanes) = lanes else { return Ok(Vec::new()) };
        // The worktree settings apply to the plan's repository only.
        let mut options = WorktreeOptions::new(&Settings::default(), &self.cancel);
        options.want_lanes(Lanes::number_for(lanes.jobs));
        let open = |session: &OtherRepo| OtherLanes::new(session, options.clone());
        Ok(other_repos.iter().map(open).collect::<Result<_, _>>()?)
    }

    /// The session that this one replays.
    fn replayed(&self, session: &SessionId) -> Result<Option<SessionId>, Failure> {
        let session_reader = SessionReader::new(&self.repository);
        let Some(newest) = session_reader.newest(session)? else { return Ok(None) };
        let first = session_reader.start_of(&newest)?;
        Ok(match first.record.kind {
            RecordKind::Start(SessionStart { forked_from: Some(fork), .. }) => Some(fork.session),
            _ => None,
        })
    }

    /// The session's branches in the other repositories that tasks work in, by repository name.
    pub(super) fn branches_of_others(&self, planned: &Planned) -> Vec<(String, BranchName)> {
        let is_named =
            |name: &str| planned.plan.tasks.iter().any(|task| task.repos.iter().any(|repo| repo == name));
        let others = self.others.iter().filter(|other| is_named(other.section.name.as_str()));
        others.map(|other| (other.section.name.to_string(), other.branch.clone())).collect()
    }

    /// Starts pushing what this run commits. Uses the main checkouts, because a relative path of a remote may be
    /// correct only there.
    pub(super) fn pusher(&self, session: SessionId) -> Result<Option<Pusher>, Failure> {
        let push_set = PushSet { sessions: vec![session], transcripts: self.settings.session.transcripts };
        let mut repositories = Vec::new();
        for section in self.workspace.sections.iter().filter(|section| section.push != PushPolicy::Never) {
            let repository = self.workspace.open(section)?;
            repositories.extend(repository.map(|repository| (section.clone(), repository)));
        }
        Ok(Pusher::start(&self.workspace, repositories, &push_set))
    }
}

/// Whether a session's branch has commits of the session. Looks at the tip, and at the tasks that landed below it or the
/// commits that others have put on top. The start itself may be far away, and a shallow history may lack it.
fn is_begun(place: &Repository, branch: &BranchName, head: Oid) -> Result<bool, Failure> {
    let is_of_session = |commit: &RawCommit| Event::of(commit).is_some_and(|event| event.branch() == branch);
    let line = ["--first-parent".into(), format!("-n{MAX_ON_TOP}"), head.to_string()];
    for commit in place.stream_commits(&line)? {
        let commit = place.exact(commit?)?;
        let others: Vec<Oid> = commit.parents().skip(1).collect();
        let here = place.find_commits(&others)?.into_iter().flatten().collect::<Vec<Oid>>();
        if is_of_session(&commit) || place.load_commits(&here)?.iter().any(is_of_session) {
            return Ok(true);
        }
    }
    Ok(false)
}
