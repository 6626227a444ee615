//! The prompts that a run would use for a task, for `--dry-run --verbose`.

use super::{OpenRun, Planned};
use crate::{
    failure::Failure,
    gardener::events_before_reset,
    history::Run,
    pipeline::{PromptFiles, PromptParts, TaskBackground, feedback},
    plan::Task,
};

/// The prompts of a task as they would be now.
#[derive(Debug)]
pub struct PromptPreview {
    /// For the agent.
    pub implement: String,
    /// For the reviewer. The changes are not known yet.
    pub review: String,
}

impl OpenRun {
    /// Makes the prompts of a task without calling anyone.
    pub fn preview_prompts(
        &self,
        planned: &Planned,
        run: &Run,
        task: &Task,
    ) -> Result<PromptPreview, Failure> {
        let top = self.repository.top();
        let options = &self.options;
        let background = TaskBackground::new((&planned.plan, planned.path()), run, task);
        let files = PromptFiles { exists: &|path| top.join(path).exists(), top: None };
        let mut parts = PromptParts::new(task.into(), &background, &files, &options.context);
        let events = run.find(&task.id).map(|history| history.events.as_slice()).unwrap_or_default();
        let earlier = match self.request.lanes.count(&self.settings)? {
            Some(_) => events_before_reset(&self.repository, run, &task.id)?,
            None => Vec::new(),
        };
        let feedback = feedback(earlier.iter().chain(events), |log| {
            let log = self.home.join(log);
            log.is_file().then(|| log.display().to_string())
        });
        let review = parts.review("[the changes of the task]", None, options.prompts.review.as_ref());
        parts.protection = options.protection.rule(task);
        parts.dependencies = background.describe_dependencies(&self.repository, &options.report_dir);
        let implement = parts.implement(&feedback, options.prompts.implement.as_ref());
        Ok(PromptPreview { implement, review })
    }
}
