//! Verifies that tasks changed protected files only with permission.

use super::{Verifier, VerifyCheck, VerifyError, list_paths, steps::FinalSteps};
use crate::{
    history::{Event, Run, TaskHistory},
    pipeline::{CHANGED_WITH_PERMISSION, Protection},
    settings::Settings,
};

impl Verifier<'_> {
    /// What was protected when a run started: what the repository's configuration listed then, and what this machine
    /// lists.
    pub(super) fn protection_of(&mut self, run: &Run) -> Option<Protection> {
        let start = run.start.as_ref()?.commit;
        match Settings::load_at(self.repository, self.config, start) {
            Ok(settings) => Some(Protection::new(&settings, &[])),
            Err(error) => {
                let why = format!("the settings of the run cannot be read: {error}");
                self.result.unchecked(VerifyCheck::Protected, None, why);
                None
            }
        }
    }

    /// Compares the implementation with the state before the task. The commit of the implementation lists the protected
    /// files that were changed with permission.
    pub(super) fn check_protected(
        &mut self,
        (run, protection): (&Run, &Protection),
        task: &TaskHistory,
    ) -> Result<(), VerifyError> {
        let Some(steps) = FinalSteps::find(task) else { return Ok(()) };
        let implemented = steps.implement.commit;
        let Some(base) = run.find_base(self.repository, &task.id, implemented)? else {
            let why = "it is not known at which commit the task began";
            self.result.unchecked(VerifyCheck::Protected, Some(&task.id), why);
            return Ok(());
        };
        let trees = (base.tree, self.repository.tree_of(implemented)?);
        let changes = protection.find_changes(self.repository, trees, &[])?;
        let allowed: Vec<String> = task.events.iter().flat_map(changed_with_permission).collect();
        let mut refused: Vec<String> = changes.refused.iter().map(ToString::to_string).collect();
        refused.retain(|change| !allowed.contains(change));
        if !refused.is_empty() {
            let words = format!("protected files were changed without permission: {}", list_paths(&refused));
            self.result.problem(VerifyCheck::Protected, Some(&task.id), Some(implemented), words);
        }
        Ok(())
    }
}

/// The protected files that a commit lists as changed with permission.
fn changed_with_permission(event: &Event) -> Vec<String> {
    let body = event.body();
    let sections = body.sections.iter().filter(|section| section.heading == CHANGED_WITH_PERMISSION);
    sections.flat_map(|section| section.text.lines()).map(str::to_owned).collect()
}
