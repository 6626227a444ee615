//! The plan of a run: the frozen one, the file as it is now, or the user's own words.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{GardenerError, PlanFile, start},
    history::Run,
    name::{PipelineName, digest},
    plan::{Plan, usual_places},
};

use super::{GardeningArgs, Opened};

/// The plan of a run, and whether the run has begun.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(super) file: Option<PlanFile>,
}

impl Planned {
    /// What its run is called.
    pub(super) fn pipeline(&self) -> PipelineName {
        PipelineName::of_plan(self.file.as_ref().map(|file| file.path.as_str()))
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
        Ok(Self { plan: Plan::read("the words of -m", tree.to_string().as_bytes())?, file: None })
    }
}

impl Opened {
    /// The plan that holds: the frozen one if a run goes on, else the file.
    pub(crate) fn plan(&self, args: &GardeningArgs, run: &Run) -> Result<Planned, Failure> {
        let file = self.plan_file(args, run)?;
        let now = file.as_ref().map(|file| Plan::read(&file.path, &file.bytes)).transpose()?;
        let frozen = self.frozen(run)?;
        if args.new_run || run.start.is_none() {
            let plan = now.ok_or(GardenerError::NoPlan)?;
            return Ok(Planned { plan, file });
        }
        if !args.accept_changes {
            start::require_unchanged(&self.repository, run, frozen.as_ref(), now.as_ref())?;
        }
        let plan = if args.accept_changes { now.or(frozen) } else { frozen.or(now) };
        Ok(Planned { plan: plan.ok_or(GardenerError::NoPlan)?, file })
    }

    fn frozen(&self, run: &Run) -> Result<Option<Plan>, Failure> {
        let Some(frozen) = run.start.as_ref().and_then(|start| start.plan.as_ref()) else {
            return Ok(None);
        };
        let bytes = self.repository.find_blob(frozen.blob)?;
        Ok(bytes.map(|bytes| Plan::read(&frozen.path, &bytes)).transpose()?)
    }

    fn plan_file(&self, args: &GardeningArgs, run: &Run) -> Result<Option<PlanFile>, Failure> {
        let top = self.repository.top();
        let named = args.tree.as_ref().map(|file| file.display().to_string());
        let frozen = run.start.as_ref().and_then(|start| start.plan.as_ref()).map(|plan| plan.path.clone());
        let path = named.or_else(|| self.settings.tree().map(str::to_owned)).or(frozen);
        let found = path
            .or_else(|| usual_places(Some(&self.branch)).into_iter().find(|name| top.join(name).is_file()));
        let Some(path) = found else {
            return Ok(None);
        };
        match std::fs::read(top.join(&path)) {
            Ok(bytes) => Ok(Some(PlanFile { path, bytes })),
            Err(error) => {
                Err(Failure::new(Exit::Fatal, format!("could not read the plan '{path}': {error}")))
            }
        }
    }
}
