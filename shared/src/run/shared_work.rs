//! Joins the workers that share a plan through a remote.

use std::{collections::BTreeSet, panic::resume_unwind, sync::Arc, thread, time::Duration};

use super::{OpenRun, RunListener};
use crate::{
    coordination::{
        CoordinationError, PublishedLanding, RemoteView, RemoteWork, SharedLanding, WorkOptions, WorkRequest,
    },
    engine::{Engine, StartedBy},
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{Network, Repository, shown_url},
    history::Run,
    message::visible,
    name::{BranchName, SessionId, TaskId, WorkerName},
    plan::Plan,
    process::{Cancel, shell_word},
    queue::Target,
    session::{SessionReader, StoredRecord},
    settings::Settings,
    workspace::Workspace,
};

/// How long a run that works alone waits for a remote that is asked about workers.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(10);
/// The remote through which a plan is shared, if the user names no other.
pub const DEFAULT_REMOTE: &str = "origin";

/// A remote through which workers share the plan of a branch.
#[derive(Debug)]
pub struct SharedWork {
    pub(super) repository: Repository,
    pub(super) options: WorkOptions,
    network: Network,
}

impl SharedWork {
    /// The remote of the branch that is checked out.
    pub fn find(
        repository: &Repository,
        settings: &Settings,
        remote: &str,
        clock: fn() -> i64,
    ) -> Result<Self, Failure> {
        let run = repository.head.branch.clone().ok_or_else(|| GardenerError::detached(repository))?;
        if repository.find_remote(remote)?.is_none() {
            let failure = Failure::new(Exit::No, format!("there is no remote '{}'", visible(remote)));
            return Err(failure.hint(match repository.list_remotes()?.as_slice() {
                [] => format!("add one with: git remote add {} <url>", shell_word(remote)),
                names => format!("known remotes: {}", visible(&names.join(", "))),
            }));
        }
        // A separate token: claims are given back after Ctrl-C.
        let Workspace { sections, network, .. } = Workspace::load(repository, settings, &Cancel::new())?;
        if sections.len() > 1 {
            let words = "workers cannot share the plan of a workspace with several repositories";
            return Err(Failure::new(Exit::No, words)
                .hint("work on it from one machine: git arborist gardener --jobs auto"));
        }
        let remote = remote.to_owned();
        let coordination = settings.work.coordination.clone();
        let ttl = settings.work.ttl.clamp(Duration::from_secs(1), Duration::from_secs(86_400));
        let options = WorkOptions { remote, coordination, run, ttl, clock, started_by: StartedBy::find() };
        Ok(Self { repository: repository.clone(), options, network })
    }

    /// The branch whose plan is shared.
    #[must_use]
    pub fn run(&self) -> &BranchName {
        &self.options.run
    }

    /// The remote, without secrets.
    #[must_use]
    pub fn remote(&self) -> String {
        shown_url(&self.options.remote)
    }

    /// The remote that has the claims, without secrets.
    #[must_use]
    pub fn claims_remote(&self) -> String {
        shown_url(self.options.coordination.as_ref().unwrap_or(&self.options.remote))
    }

    /// What the remote has of the run.
    pub fn view(&self) -> Result<RemoteView, CoordinationError> {
        RemoteView::load(&self.repository, &self.options, &self.network)
    }

    /// The jobs of an engine that have claims.
    pub fn list_jobs(&self, engine: &Engine) -> Result<BTreeSet<String>, CoordinationError> {
        let view = self.view()?;
        let claims = view.tasks.values().chain(&view.lander).filter_map(|found| found.claim.as_ref());
        let jobs = claims.filter_map(|claim| claim.job.as_ref());
        let jobs = jobs.filter(|job| job.engine == engine.name && engine.reaches(&job.job));
        Ok(jobs.map(|job| job.job.clone()).collect())
    }

    /// The newest record of a session that a worker has published. `Err` names the workers that have published some.
    pub fn find_record(&self, session: &SessionId, worker: &WorkerName) -> Result<StoredRecord, Failure> {
        let found = RemoteWork::fetch_records(&self.repository, &self.options, &self.network)?;
        let reader = SessionReader::new(&self.repository);
        let newest = found.get(worker).map(|commit| reader.load(*commit, session)).transpose();
        if let Ok(Some(newest)) = newest {
            return Ok(newest);
        }
        let words = format!("worker '{worker}' has published no records of session '{session}'");
        let names: Vec<&str> = found.keys().map(WorkerName::as_str).collect();
        Err(Failure::new(Exit::No, words).hint(match names.as_slice() {
            [] => format!("no worker has published any through {}", self.claims_remote()),
            names => format!("workers with records: {}", names.join(", ")),
        }))
    }

    /// The tasks that workers have. A remote without claims is asked one question, and every remote gets only a short
    /// time to answer.
    fn list_in_work(&self, plan: &Plan, cancel: &Cancel) -> Result<Vec<TaskId>, CoordinationError> {
        let silence = self.network.silence.min(REMOTE_TIMEOUT);
        let network = Network { silence, cancel: cancel.clone() };
        if !RemoteView::has_claims(&self.repository, &self.options, &network)? {
            return Ok(Vec::new());
        }
        let view = RemoteView::load(&self.repository, &self.options, &network)?;
        Ok(view.list_in_work((self.options.clock)(), plan))
    }

    /// Asks workers to stop or to drain: one, or all. Returns those that have a task.
    pub fn ask(
        &self,
        request: WorkRequest,
        worker: Option<&WorkerName>,
    ) -> Result<BTreeSet<WorkerName>, CoordinationError> {
        RemoteWork::ask(&self.repository, &self.options, &self.network, request, worker)
    }

    /// Removes the claims of failed tasks, so that workers try them again. Returns the tasks.
    pub fn retry_failed(&self) -> Result<Vec<TaskId>, CoordinationError> {
        RemoteWork::forget_failed(&self.repository, &self.options, &self.network)
    }

    /// Starts to work with others.
    pub fn join(&self) -> Result<Arc<RemoteWork>, CoordinationError> {
        RemoteWork::join(&self.repository, self.options.clone(), self.network.clone())
    }

    /// Moves the branch here to where the remote has it. Returns whether it was elsewhere.
    pub fn follow(&self, work: &RemoteWork) -> Result<bool, Failure> {
        let run = &self.options.run;
        let Some(there) = work.catch_up()?.target else {
            let (remote, branch) = (self.remote(), run.clone());
            return Err(CoordinationError::NoTarget { remote, branch }.into());
        };
        let target = Target::new(&self.repository, run);
        let here = target.require()?.tip();
        if here != there && self.repository.is_ancestor(there, here)? {
            return Err(CoordinationError::Ahead { remote: self.remote(), branch: run.clone() }.into());
        }
        target.follow(there).map_err(|error| error.at_remote(&self.remote()))?;
        Ok(here != there)
    }
}

impl OpenRun {
    /// Shares the plan with other workers. Returns false if this worker has something to record and another one lands,
    /// so that it has to wait: then the run has to be opened again.
    pub fn share(&mut self, work: Arc<RemoteWork>, run: &Run) -> Result<bool, Failure> {
        let session = self.session(run).clone();
        if run.start.is_none() || self.request.accept_changes {
            // Only the worker that may land may start the run or change its plan.
            if !work.begin_landing()? {
                return Ok(false);
            }
            if work.catch_up()?.target != Some(self.head) {
                work.end_landing()?;
                return Ok(false);
            }
        }
        work.publish_session(&session);
        self.remote_work = Some(work);
        Ok(true)
    }

    /// Refuses to work alone on a plan that workers on other machines work on. This clone may not have fetched what they
    /// did, so each remote that has the branch is asked. A remote that does not answer is named, and the run continues.
    pub(super) fn refuse_beside_workers(
        &self,
        plan: &Plan,
        run: &Run,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        if self.remote_work.is_some() || self.has_no_task_left {
            return Ok(());
        }
        let remotes = match run.is_shared() {
            false if !self.has_remotes => Vec::new(),
            true => self.repository.list_remotes()?,
            false => self.repository.find_remotes_of(&self.branch, DEFAULT_REMOTE)?,
        };
        let find = |remote: &String| SharedWork::find(&self.repository, &self.settings, remote, self.clock);
        // The plan of a workspace is never shared.
        let mut found: Vec<SharedWork> = remotes.iter().filter_map(|remote| find(remote).ok()).collect();
        found.dedup_by(|a, b| a.options.claims_at() == b.options.claims_at());
        let replies: Vec<_> = thread::scope(|scope| {
            let ask = |shared| scope.spawn(move || SharedWork::list_in_work(shared, plan, &self.cancel));
            let threads: Vec<_> = found.iter().map(ask).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        for (shared, tasks) in found.iter().zip(replies) {
            match tasks {
                Ok(tasks) if tasks.is_empty() => {}
                Ok(tasks) => return Err(self.shared_with(shared, &tasks)),
                Err(error) => {
                    let words = format!("could not find out whether workers share this plan: {error}");
                    match run.is_shared() {
                        true => listener.warn_of_failure(&words),
                        false => listener.remark(&words),
                    }
                }
            }
        }
        Ok(())
    }

    fn shared_with(&self, shared: &SharedWork, tasks: &[TaskId]) -> Failure {
        let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        let (branch, through) = (&self.branch, shared.claims_remote());
        let words =
            format!("workers share the run on '{branch}' through {through}, and have {}", names.join(", "));
        let option = match shared.options.remote.as_str() {
            DEFAULT_REMOTE => String::new(),
            other => format!(" --remote {}", shell_word(other)),
        };
        Failure::new(Exit::Locked, words).hint(format!(
            "work with them: git arborist work{option}\nto work alone, end them first: git arborist work stop{option}"
        ))
    }

    /// Publishes the commit that starts the run, or another one that was recorded before the first task.
    pub(super) fn publish_start(&self, head: crate::name::Oid) -> Result<(), Failure> {
        let Some(remote_work) = &self.remote_work else { return Ok(()) };
        let landed = if head == self.head {
            SharedLanding::Done
        } else {
            remote_work.begin_landing()?;
            let (base, tip) = (self.head, head);
            remote_work.land(&PublishedLanding { base, tip, tasks: &[], gate_results: &[] })?
        };
        remote_work.end_landing()?;
        match landed {
            SharedLanding::Done => Ok(()),
            SharedLanding::TargetChanged(_) | SharedLanding::OtherWorkerLands => {
                Err(CoordinationError::MovedAtStart {
                    remote: remote_work.remote(),
                    branch: self.branch.clone(),
                }
                .into())
            }
        }
    }
}
