//! The plan of a run: the frozen one, the file as it is now, or the user's own words.

use std::path::{Component, PathBuf};

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{Drift, GardenerError, PlanFile, start},
    git::Repository,
    history::Run,
    name::{PipelineName, digest},
    plan::{Plan, usual_places},
    settings::Settings,
};

use super::{GardeningArgs, Opened};

/// The plan of a run, and whether the run has begun.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(super) file: Option<PlanFile>,
    /// Where it was read when the run began.
    path: Option<String>,
}

impl Planned {
    /// What its run is called.
    pub(super) fn pipeline(&self) -> PipelineName {
        PipelineName::of_plan(self.path.as_deref())
    }

    /// A plan of one task, whose id is made from its words, so that the same words go on with the same task.
    pub(crate) fn of_words(words: &str) -> Result<Self, Failure> {
        let parts = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        let mut id = parts.collect::<Vec<_>>().join("-").to_lowercase();
        id.truncate(40);
        let id = if id.is_empty() { format!("task-{}", &digest(words.as_bytes())[..8]) } else { id };
        let id = id.trim_end_matches('-');
        let name = words.lines().next().unwrap_or(words);
        let tree = serde_json::json!({
            "nodes": { id: { "id": id, "name": name, "description": words } },
            "root_ids": [id],
        });
        let plan = Plan::read("the words of -m", tree.to_string().as_bytes())?;
        Ok(Self { plan, file: None, path: None })
    }
}

impl Opened {
    /// The plan that holds: the frozen one if a run goes on, else the file.
    pub(crate) fn plan(&self, args: &GardeningArgs, run: &Run) -> Result<Planned, Failure> {
        let file = self.plan_file(args, run)?;
        let now = file.as_ref().map(|file| Plan::read(&file.path, &file.bytes)).transpose();
        let now = now.map_err(|error| match file.as_ref().filter(|_| !args.new_run) {
            Some(file) => self.with_way_back(error.into(), run, &file.path),
            None => error.into(),
        })?;
        let frozen = self.frozen(run)?;
        if args.new_run || run.start.is_none() {
            let plan = now.ok_or(GardenerError::NoPlan)?;
            if let Some(file) = file.as_ref().filter(|_| !args.new_run && !self.is_apart) {
                start::refuse_merged(&self.repository, run, &file.path)?;
            }
            return Ok(Planned { plan, path: file.as_ref().map(|file| file.path.clone()), file });
        }
        if !args.accept_changes {
            start::require_unchanged(&self.repository, run, frozen.as_ref(), now.as_ref())?;
        }
        let plan = if args.accept_changes { now.or(frozen) } else { frozen.or(now) };
        let path = file.as_ref().map(|file| file.path.clone()).or_else(|| frozen_path(run));
        Ok(Planned { plan: plan.ok_or(GardenerError::NoPlan)?, file, path })
    }

    /// A task in the user's own words has no plan to compare, but the configuration of its run is frozen as well.
    pub(crate) fn refuse_changed_settings(&self, args: &GardeningArgs, run: &Run) -> Result<(), Failure> {
        if args.new_run || args.accept_changes {
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

    fn frozen(&self, run: &Run) -> Result<Option<Plan>, Failure> {
        let Some(frozen) = run.start.as_ref().and_then(|start| start.plan.as_ref()) else {
            return Ok(None);
        };
        let bytes = self.repository.find_blob(frozen.blob)?;
        Ok(bytes.map(|bytes| Plan::read(&frozen.path, &bytes)).transpose()?)
    }

    fn plan_file(&self, args: &GardeningArgs, run: &Run) -> Result<Option<PlanFile>, Failure> {
        let named = named_plan(args, &self.settings);
        let is_named = named.is_some();
        let usual = || usual_plan(&self.repository);
        // A new run looks for its plan as the first one did.
        let path = match named {
            None if args.new_run => usual().or_else(|| frozen_path(run)),
            named => named.or_else(|| frozen_path(run)).or_else(usual),
        };
        let Some(path) = path else {
            return Ok(None);
        };
        match std::fs::read(self.repository.top().join(&path)) {
            Ok(bytes) => Ok(Some(PlanFile { path, bytes })),
            // Where the user is need not have the plan of a run that works elsewhere.
            Err(_) if !is_named && self.move_in.is_some() => Ok(None),
            Err(error) => {
                let failure = Failure::new(Exit::Fatal, format!("could not read the plan '{path}': {error}"));
                Err(if args.new_run { failure } else { self.with_way_back(failure, run, &path) })
            }
        }
    }
}

/// Where the plan of a new run is, from the top; none for a task in the user's own words.
pub(crate) fn find_plan(
    repository: &Repository,
    args: &GardeningArgs,
    settings: &Settings,
) -> Option<String> {
    if args.is_unplanned {
        return None;
    }
    named_plan(args, settings).or_else(|| usual_plan(repository))
}

fn named_plan(args: &GardeningArgs, settings: &Settings) -> Option<String> {
    let named = args.tree.clone().or_else(|| settings.tree().map(PathBuf::from))?;
    // Spelled in one way: a session is found by the path of its plan.
    let plain: PathBuf = named.components().filter(|part| *part != Component::CurDir).collect();
    Some(plain.display().to_string())
}

fn frozen_path(run: &Run) -> Option<String> {
    run.start.as_ref().and_then(|start| start.plan.as_ref()).map(|plan| plan.path.clone())
}

fn usual_plan(repository: &Repository) -> Option<String> {
    let branch = repository.head.branch.as_ref();
    usual_places(branch).into_iter().find(|name| repository.top().join(name).is_file())
}
