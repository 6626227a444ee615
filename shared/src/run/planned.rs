//! The plan of a run: the frozen one, the file as it is now, or the user's own words.

use std::path::{Component, PathBuf};

use super::{OpenRun, RunRequest};
use crate::{
    failure::{Exit, Failure},
    gardener::{Drift, GardenerError, PlanFile, start, start::FrozenPlan},
    git::Repository,
    history::Run,
    message::PlanRef,
    name::{PipelineName, digest},
    plan::{Plan, find_plans},
    safe_files,
    settings::Settings,
};

/// The plan of a run, and whether the run has begun.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    pub(super) file: Option<PlanFile>,
    /// What the run has frozen, or has to freeze although the file is different by now.
    frozen: Option<PlanRef>,
    /// Whether the run uses a plan and has frozen none.
    pub(super) is_first_use: bool,
    /// Where it was read when the run began.
    path: Option<String>,
}

impl Planned {
    /// What its run is called.
    pub(super) fn pipeline(&self) -> PipelineName {
        PipelineName::of_plan(self.path.as_deref())
    }

    /// A plan of one task, whose id is made from its words, so that the same words go on with the same task.
    fn of_words(words: &str) -> Result<Self, Failure> {
        if words.trim().is_empty() {
            let failure = Failure::new(Exit::Usage, "the task after -m has no words");
            return Err(failure.hint("say what is to be done: git arborist garden -m 'add a login form'"));
        }
        let id = id_of_words(words);
        let name = words.lines().next().unwrap_or(words);
        let tree = serde_json::json!({
            "nodes": { (id.as_str()): { "id": id, "name": name, "description": words } },
            "root_ids": [id],
        });
        let plan = Plan::read("the words of -m", tree.to_string().as_bytes())?;
        Ok(Self { plan, file: None, frozen: None, is_first_use: false, path: None })
    }

    /// What a `plan` commit freezes. A task in the user's own words has no plan, but its run may have one.
    pub(super) fn freeze(&self, accepts: bool) -> FrozenPlan<'_> {
        match (&self.file, &self.frozen) {
            (Some(file), None) => FrozenPlan::File(file),
            (Some(file), Some(_)) if accepts => FrozenPlan::File(file),
            (_, Some(frozen)) => FrozenPlan::Kept(frozen),
            (None, None) => FrozenPlan::Nothing,
        }
    }
}

/// Words that an id cannot hold as a whole end in a hash, so that other words have another id.
fn id_of_words(words: &str) -> String {
    const LONGEST: usize = 40;
    let parts = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut id = parts.collect::<Vec<_>>().join("-").to_lowercase();
    if id.len() <= LONGEST && words.is_ascii() && !id.is_empty() {
        return id;
    }
    let hash = &digest(words.as_bytes())[..8];
    id.truncate(LONGEST - hash.len() - 1);
    let start = id.trim_end_matches('-');
    format!("{}-{hash}", if start.is_empty() { "task" } else { start })
}

impl OpenRun {
    /// The plan of one task in the user's own words. What the run has frozen holds all the same.
    pub fn plan_of_words(&self, run: &Run, words: &str) -> Result<Planned, Failure> {
        let frozen =
            run.start.as_ref().filter(|_| !self.request.new_run).and_then(|start| start.plan.clone());
        self.refuse_changed_settings(run)?;
        Ok(Planned { frozen, ..Planned::of_words(words)? })
    }

    /// The plan that holds: the frozen one if a run goes on, else the file.
    pub fn plan(&self, run: &Run) -> Result<Planned, Failure> {
        let file = self.plan_file(run)?;
        let now = file.as_ref().map(|file| Plan::read(&file.path, &file.bytes)).transpose();
        let now = now.map_err(|error| match file.as_ref().filter(|_| !self.request.new_run) {
            Some(file) => self.with_way_back(error.into(), run, &file.path),
            None => error.into(),
        })?;
        let first = match &file {
            Some(file) => start::find_first_plan(&self.repository, run, &file.path)?,
            None => None,
        };
        let is_first_use = run.start.as_ref().is_some_and(|start| start.plan.is_none()) && file.is_some();
        let kept = run.start.as_ref().and_then(|start| start.plan.clone()).or(first);
        if self.request.new_run || run.start.is_none() {
            let plan = now.ok_or(GardenerError::NoPlan)?;
            if let Some(file) = file.as_ref().filter(|_| !self.request.new_run && !self.is_apart) {
                start::refuse_merged(&self.repository, run, &file.path)?;
            }
            let path = file.as_ref().map(|file| file.path.clone());
            return Ok(Planned { plan, file, frozen: None, is_first_use: false, path });
        }
        let frozen = kept.as_ref().map(|kept| self.frozen(kept)).transpose()?;
        if !self.request.accept_changes {
            let before = kept.as_ref().map(|kept| kept.path.as_str()).zip(frozen.as_ref());
            start::require_unchanged(&self.repository, run, before, now.as_ref())?;
        }
        let plan = if self.request.accept_changes { now.or(frozen) } else { frozen.or(now) };
        let path = file.as_ref().map(|file| file.path.clone()).or_else(|| frozen_path(run));
        Ok(Planned { plan: plan.ok_or(GardenerError::NoPlan)?, file, frozen: kept, is_first_use, path })
    }

    /// A task in the user's own words has no plan to compare, but the configuration of its run is frozen as well.
    fn refuse_changed_settings(&self, run: &Run) -> Result<(), Failure> {
        if self.request.new_run || self.request.accept_changes {
            return Ok(());
        }
        Ok(start::require_unchanged(&self.repository, run, None, None)?)
    }

    /// What an agent made of the plan keeps the run from going on, so it is said whose work that is.
    fn with_way_back(&self, failure: Failure, run: &Run, path: &str) -> Failure {
        let is_frozen = frozen_path(run).as_deref() == Some(path);
        match Drift::find(&self.repository, run, path) {
            Ok(Some(drift)) if is_frozen => failure.hint(drift.words()),
            _ => failure,
        }
    }

    /// The frozen plan. The file is no substitute for one that cannot be read: agents may have edited it.
    fn frozen(&self, frozen: &PlanRef) -> Result<Plan, Failure> {
        let bytes = self.repository.find_blob(frozen.blob)?.ok_or_else(|| {
            Failure::new(Exit::Fatal, format!("the frozen plan '{frozen}' is not in this repository"))
                .hint("fetch it: git fetch --refetch, or begin again with --new-run")
        })?;
        Ok(Plan::read(&frozen.path, &bytes)?)
    }

    fn plan_file(&self, run: &Run) -> Result<Option<PlanFile>, Failure> {
        let named = named_plan(&self.request, &self.settings);
        let is_named = named.is_some();
        let usual = || usual_plan(&self.repository);
        // A new run looks for its plan as the first one did.
        let path = match named {
            None if self.request.new_run => usual().or_else(|| frozen_path(run)),
            named => named.or_else(|| frozen_path(run)).or_else(usual),
        };
        let Some(path) = path else {
            return Ok(None);
        };
        match safe_files::read_beneath(self.repository.top(), &path) {
            Ok(bytes) => Ok(Some(PlanFile { path, bytes })),
            // Where the user is need not have the plan of a run that works elsewhere.
            Err(_) if !is_named && self.move_in.is_some() => Ok(None),
            Err(error) => {
                let failure = Failure::new(Exit::Fatal, format!("could not read the plan '{path}': {error}"));
                Err(if self.request.new_run { failure } else { self.with_way_back(failure, run, &path) })
            }
        }
    }
}

/// Where the plan of a new run is, from the top; none for a task in the user's own words.
#[must_use]
pub fn find_plan(repository: &Repository, request: &RunRequest, settings: &Settings) -> Option<String> {
    if request.is_unplanned {
        return None;
    }
    named_plan(request, settings).or_else(|| usual_plan(repository))
}

fn named_plan(request: &RunRequest, settings: &Settings) -> Option<String> {
    let named = request.tree.clone().or_else(|| settings.tree().map(PathBuf::from))?;
    // Spelled in one way: a session is found by the path of its plan.
    let plain: PathBuf = named.components().filter(|part| *part != Component::CurDir).collect();
    Some(plain.display().to_string())
}

fn frozen_path(run: &Run) -> Option<String> {
    run.start.as_ref().and_then(|start| start.plan.as_ref()).map(|plan| plan.path.clone())
}

fn usual_plan(repository: &Repository) -> Option<String> {
    let branch = repository.head.branch.as_ref();
    // Several plans are none: the user has to name one.
    let mut plans = find_plans(repository.top(), branch);
    if plans.len() == 1 { plans.pop() } else { None }
}
