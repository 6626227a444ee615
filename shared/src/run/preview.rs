//! The prompts that a run would use for a task, for `--dry-run --verbose`.

use super::{OpenRun, Planned};
use crate::{
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
    #[must_use]
    pub fn preview_prompts(&self, planned: &Planned, run: &Run, task: &Task) -> PromptPreview {
        let top = self.repository.top();
        let options = &self.options;
        let background = TaskBackground::new((&planned.plan, planned.path()), run, task);
        let files = PromptFiles { exists: &|path| top.join(path).exists(), top: None };
        let mut parts = PromptParts::new(task.into(), &background, &files, &options.context);
        let events = run.find(&task.id).map(|history| history.events.as_slice()).unwrap_or_default();
        let feedback = feedback(events.iter(), |log| {
            let log = self.home.join(log);
            log.is_file().then(|| log.display().to_string())
        });
        let review = parts.review("[the changes of the task]", None, options.prompts.review.as_ref());
        parts.protection = options.protection.rule(task);
        parts.dependencies = background.describe_dependencies(&self.repository, &options.report_dir);
        let implement = parts.implement(&feedback, options.prompts.implement.as_ref());
        PromptPreview { implement, review }
    }
}
