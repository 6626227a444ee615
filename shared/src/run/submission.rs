//! What workers on other machines would do: the plan and the commands of the branch as the remote has it.

use std::{collections::BTreeSet, path::PathBuf};

use super::{RunRequest, SharedWork, find_plan};
use crate::{
    coordination::CoordinationError,
    engine::WorkerOrder,
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{Config, shown_url},
    history::{Run, RunScope},
    message::visible,
    name::Oid,
    plan::{Plan, typed_plan_path},
    process::Cancel,
    settings::Settings,
    workspace::Workspace,
};

/// What workers on other machines would do.
#[derive(Debug)]
pub struct PlannedSubmission {
    /// What they are started with. Their commands are not approved yet.
    pub order: WorkerOrder,
    /// The commands that they would run and that come from files of the repository.
    pub commands: BTreeSet<String>,
}

impl SharedWork {
    /// Finds out what workers on other machines would do. They clone the remote, so what is there counts, and commits
    /// that it does not have are refused.
    pub fn plan_submission(
        &self,
        request: &RunRequest,
        config: &Config,
        workers: Option<usize>,
        suite: PathBuf,
    ) -> Result<PlannedSubmission, Failure> {
        let target = self.require_pushed()?;
        let repository = &self.repository;
        let settings = Settings::load_at(repository, config, target)?;
        let workspace = Workspace::load(repository, &settings, &Cancel::new())?;
        // Workers are started in other directories.
        let tree = request.tree.as_ref().map(|typed| typed_plan_path(repository, typed));
        let request = &RunRequest { tree, ..request.clone() };
        let plan = self.plan_at(request, &settings, target)?;
        let commands = request.commands_to_approve(&settings, &workspace, &plan)?;
        let order = WorkerOrder {
            url: self.worker_url(&self.options.remote, config)?,
            coordination: self
                .options
                .coordination
                .as_ref()
                .map(|remote| self.worker_url(remote, config))
                .transpose()?,
            branch: self.run().clone(),
            options: request.worker_options()?,
            approved: BTreeSet::new(),
            workers,
            suite,
        };
        Ok(PlannedSubmission { order, commands })
    }

    /// The branch at the remote. It must have everything that is here.
    fn require_pushed(&self) -> Result<Oid, Failure> {
        let (remote, branch) = (self.remote(), self.run().clone());
        let Some(target) = self.view()?.target else {
            return Err(CoordinationError::NoTarget { remote, branch }.into());
        };
        let repository = &self.repository;
        let here = repository.head.commit.ok_or(GardenerError::NoPlan)?;
        if here != target && repository.is_ancestor(target, here)? {
            return Err(CoordinationError::Ahead { remote, branch }.into());
        }
        Ok(target)
    }

    /// The plan in force at a commit: the frozen one, or the file.
    fn plan_at(&self, request: &RunRequest, settings: &Settings, commit: Oid) -> Result<Plan, Failure> {
        let repository = &self.repository;
        let scope = RunScope { branch: self.run().clone(), tip: Some(commit) };
        let run = Run::scan_listed(repository, scope, None, Vec::new())?;
        let frozen = run.start.and_then(|start| start.plan);
        let (path, blob) = match frozen {
            Some(frozen) => (frozen.path, Some(frozen.blob)),
            None => {
                let path = find_plan(repository, request, settings).ok_or(GardenerError::NoPlan)?;
                let blob = repository.find_path(commit, &path)?;
                (path, blob)
            }
        };
        let bytes = blob.map(|blob| repository.find_blob(blob)).transpose()?.flatten();
        let bytes = bytes.ok_or_else(|| {
            let words = format!("'{}' has no plan '{}'", self.remote(), visible(&path));
            Failure::new(Exit::No, words).hint("commit the plan and push it first")
        })?;
        Ok(Plan::read(&path, &bytes)?)
    }

    /// The URL of a remote for workers. One with a password is refused: arguments can be seen by everyone.
    fn worker_url(&self, remote: &str, config: &Config) -> Result<String, Failure> {
        let url = config.find(&format!("remote.{remote}.url")).and_then(|entry| entry.value.clone());
        let url = url.unwrap_or_else(|| remote.to_owned());
        if shown_url(&url) != visible(&url) {
            let words = format!("the URL of '{}' contains a password or token", shown_url(remote));
            return Err(Failure::new(Exit::Usage, words)
                .hint("use a credential helper, and a URL without it: git remote set-url"));
        }
        let path = self.repository.top().join(&url);
        let is_path = !url.contains(':') && path.exists();
        Ok(if is_path { crate::git::plain_path(&path).display().to_string() } else { url })
    }
}
