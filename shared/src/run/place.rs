//! Where a run works: on the branch that is checked out, or on a branch of its session in a worktree apart from the user's
//! checkout. Running the same command again continues the session that was begun last for the same plan; only a new run
//! begins another.

use std::{path::Path, time::Duration};

use super::{OpenRun, Planned, RunListener, RunRequest, elsewhere::refuse_left, planned::find_plan};
use crate::{
    failure::{Exit, Failure},
    gardener::{GardenerError, PlanFile, start},
    git::{RefMove, Repository, UncommittedPath},
    history::Run,
    message::PlanRef,
    name::{BranchName, Oid, PipelineName, SessionId, digest},
    process::FileLock,
    safe_files::{self, Enclosure, InnerPath},
    session::{RecordKind, SessionWriter},
    settings::Settings,
    workspace::{SessionFilter, Supply, Workspace},
    worktree::Pool,
};

/// How long another process may keep us from choosing a session: it may be asking a remote.
const PATIENCE: Duration = Duration::from_secs(60);
const CONFIG: &str = ".arborist/config.toml";

/// Where a run works.
pub(super) struct RunPlace {
    /// Its branch.
    pub(super) branch: BranchName,
    /// Where that is, or will begin.
    pub(super) head: Oid,
    /// Its session, where the branch was made for it.
    pub(super) session: Option<SessionId>,
    /// What is left to do before the run works there; `None` if it works where we are.
    pub(super) move_in: Option<MoveIn>,
}

/// A run that is to leave the user's checkout.
pub(super) struct MoveIn {
    /// Nobody else chooses a session meanwhile: two that are started at once are one.
    _choosing: Option<FileLock>,
    /// Whether the session has begun: it has records, and a branch.
    pub(super) has_begun: bool,
    /// Whether anything was written on that branch.
    pub(super) is_written_on: bool,
}

impl RunPlace {
    /// Decides where a run works.
    pub(super) fn choose(
        repository: &Repository,
        request: &RunRequest,
        (settings, workspace): (&Settings, &Workspace),
    ) -> Result<RunPlace, Failure> {
        let here = match &repository.head.branch {
            Some(branch) => workspace.main().find_session_of(repository, branch)?,
            None => None,
        };
        let is_wanted = request.session_branch || workspace.wants_session_branches(settings);
        // Whoever is on the branch of a session is where that session works; another has a branch of its own.
        let is_elsewhere = if here.is_some() { request.new_run } else { is_wanted };
        if is_elsewhere {
            return Self::choose_session(repository, request, (settings, workspace));
        }
        let branch = repository.head.branch.clone().ok_or(GardenerError::Detached)?;
        let head = repository.head.commit.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
        Ok(RunPlace { branch, head, session: here, move_in: None })
    }

    fn choose_session(
        repository: &Repository,
        request: &RunRequest,
        (settings, workspace): (&Settings, &Workspace),
    ) -> Result<RunPlace, Failure> {
        let head = repository.head.commit.ok_or(GardenerError::NoCommit)?;
        let plan = find_plan(repository, request, settings);
        let choosing = match request.new_run {
            true => None,
            false => Some(lock_choice(repository, plan.as_deref(), workspace)?),
        };
        let pipeline = PipelineName::of_plan(plan.as_deref());
        let main = workspace.main();
        let meant = match &plan {
            Some(plan) => SessionFilter::Plan(plan),
            None if request.is_unplanned => SessionFilter::Unplanned,
            None => SessionFilter::Any,
        };
        let last = if request.new_run { None } else { main.find_last_session(repository, meant)? };
        let Some(last) = last else {
            if let Some(plan) = plan.as_deref().filter(|_| !request.new_run) {
                refuse_left(repository, (main, workspace), (&pipeline, plan))?;
            }
            let session = start::new_session(head);
            let branch = main.session_branch(&pipeline, &session)?;
            let move_in = MoveIn { _choosing: choosing, has_begun: false, is_written_on: false };
            return Ok(RunPlace { branch, head, session: Some(session), move_in: Some(move_in) });
        };
        if let Some(other) = main.find_session_beside(repository, meant, &last)? {
            return Err(ambiguous(&last.record.session, &other));
        }
        let branch = last.record.context.branch.clone();
        let head = repository.find_branch(&branch)?.ok_or_else(|| GardenerError::Unborn(branch.clone()))?;
        let is_fresh = matches!(last.record.kind, RecordKind::Start(_)) && last.record.context.tip == head;
        let move_in = MoveIn { _choosing: choosing, has_begun: true, is_written_on: !is_fresh };
        Ok(RunPlace { branch, head, session: Some(last.record.session), move_in: Some(move_in) })
    }
}

/// A session that began while another was at work was perhaps begun by an agent of that one.
fn ambiguous(last: &SessionId, other: &SessionId) -> Failure {
    let what = format!(
        "session '{last}' began while session '{other}' of the same plan was at work: which is meant?"
    );
    Failure::new(Exit::Person, what)
        .hint(format!("go on with the first: git arborist session resume {other}"))
        .hint(format!("see what the other did: git arborist session show {last}"))
}

/// Two that are started at once for one plan are one. Those of other plans do not wait, and a new run chooses nothing.
fn lock_choice(
    repository: &Repository,
    plan: Option<&str>,
    workspace: &Workspace,
) -> Result<FileLock, Failure> {
    let name = format!("session-of-{}", &digest(plan.unwrap_or_default().as_bytes())[..12]);
    let path = repository.common_dir.join("arborist/locks").join(name);
    let what = "git arborist, to choose a session";
    Ok(FileLock::take_within(&path, what, PATIENCE, &workspace.network.cancel)?)
}

impl OpenRun {
    /// Gets the other repositories. Then leaves the user's checkout, if the run works apart from it: its branch and the first
    /// record appear together, then the worktree. Killed anywhere, the same command continues.
    pub fn settle(
        mut self,
        planned: &Planned,
        run: &Run,
        listener: &mut dyn RunListener,
    ) -> Result<Self, Failure> {
        let session = self.session(run).clone();
        self.refuse_behind(&session)?;
        self.supply_all(&session, planned, run, listener)?;
        let Some(move_in) = self.move_in.take() else {
            return Ok(self);
        };
        if !move_in.has_begun {
            self.begin_branch(planned, &session, listener)?;
        } else {
            listener.remark(&format!("goes on with session '{session}' on '{}'", self.branch));
        }
        let user = self.repository.clone();
        self.brings_plan = !move_in.is_written_on || self.request.accept_changes;
        drop(move_in);
        let session_worktree =
            Pool::open(&user, &self.branch, self.worktree_options())?.session_worktree(&session)?;
        if session_worktree.is_new {
            listener.tell_worktree(self.workspace.main(), &session_worktree.path, &self.branch);
        }
        session_worktree.notes.iter().for_each(|note| listener.remark(&note.to_string()));
        tell_of_uncommitted(&user, planned, listener)?;
        self.repository = session_worktree.repository;
        Ok(self)
    }

    fn begin_branch(
        &mut self,
        planned: &Planned,
        session: &SessionId,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let plan = match &planned.file {
            Some(PlanFile { path, bytes }) => {
                let blob = self.repository.write_blob(bytes)?;
                Some(PlanRef { path: path.clone(), blob }.to_string())
            }
            None => None,
        };
        let start = self.start(planned, plan)?;
        let (name, base) = (self.branch.to_ref(), self.head);
        let made = RefMove { name: &name, new: Some(base), old: None };
        SessionWriter::begin_with(&self.repository, (session.clone(), start), (self.clock)(), &[made])?;
        listener.tell_branch(self.workspace.main(), &self.branch, base);
        Ok(())
    }
}

impl OpenRun {
    /// Where a new session begins: at what the user has, or at what the remote has on top of that.
    pub(super) fn find_base(&self, listener: &mut dyn RunListener) -> Result<Oid, Failure> {
        let (repository, main) = (&self.repository, self.workspace.main());
        let supply = self.supply.as_ref().unwrap_or(&Supply::Local);
        let seen = self.workspace.base(repository, main)?;
        let here = repository.head.branch.as_ref();
        let is_own = main.default_branch.as_ref().is_none_or(|branch| Some(branch) == here);
        let base = match seen {
            Some(seen) if !is_own || !repository.is_ancestor(seen, self.head)? => seen,
            _ => self.head,
        };
        listener.tell_supply(main, supply, Some(base));
        if is_own && !repository.is_ancestor(self.head, base)? {
            listener.warn(&format!(
                "what you have committed is not at the remote of '{}', which has other commits: the run begins at {}, without yours",
                main.name,
                base.short()
            ));
            listener.hint("to begin with both, merge or rebase first, then use --new-run");
        }
        Ok(base)
    }
}

/// What is not committed is not seen where the run works. The plan and the configuration are brought there.
fn tell_of_uncommitted(
    user: &Repository,
    planned: &Planned,
    listener: &mut dyn RunListener,
) -> Result<(), Failure> {
    let plan = planned.file.as_ref().map(|file| file.path.as_str());
    let is_brought = |found: &UncommittedPath| {
        let path = found.path.as_slice();
        Some(path) == plan.map(str::as_bytes) || path == CONFIG.as_bytes() || path == b".arborist/"
    };
    if !user.changed_paths()?.iter().all(is_brought) {
        listener.warn("what is not committed stays in your checkout, and the tasks do not see it");
    }
    Ok(())
}

impl OpenRun {
    /// The run freezes its plan and its configuration as the user has them. Whatever an agent left where they go is
    /// committed by then.
    pub(super) fn bring_plan(&self, planned: &Planned) -> Result<(), Failure> {
        if !self.brings_plan {
            return Ok(());
        }
        let session_worktree = self.repository.top();
        if let Some(PlanFile { path, bytes }) = &planned.file {
            bring_file(session_worktree, path, bytes)?;
        }
        match safe_files::read_beneath(&self.home, CONFIG) {
            Ok(bytes) => bring_file(session_worktree, CONFIG, &bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(anyhow::Error::new(error).context(format!("could not read '{CONFIG}'")).into()),
        }
    }
}

/// Puts a file of the user's where a session works. Whatever an agent made there, nothing outside of it is written.
pub fn bring_file(session_worktree: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let file = session_worktree.join(path);
    if safe_files::read(&file).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Person, format!("'{path}' could not be written where the session works: {error}"))
            .hint(format!("look at '{}'", file.display()))
    };
    let place = path.parse::<InnerPath>().map_err(|error| failed(&error))?;
    let enclosure = Enclosure::open(session_worktree).map_err(|error| failed(&error))?;
    enclosure.write(&place, bytes).map_err(|error| failed(&error)).map(drop)
}
