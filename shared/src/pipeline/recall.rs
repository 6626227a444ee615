//! Going on with what an earlier process began: the agent's own conversation where its program can, and words about it.

use super::{Sessions, StepRunner, TaskContext};
use crate::{agent::limits::Chain, name::TaskId, session::ResumeContext};

impl TaskContext<'_> {
    /// The prompt for a task that goes on, and whether its agent continues its conversation. Both only once: what comes
    /// after that is known to this process.
    pub(super) fn recall(
        &mut self,
        task: &TaskId,
        chain: &Chain<StepRunner>,
        prompt: String,
    ) -> (String, Sessions) {
        let usual = self.options.sessions;
        let Some(recollection) = self.memory.take_recollection(task) else {
            return (prompt, usual);
        };
        let prompt = told(prompt, &recollection);
        let step_runner = self.choose(chain).clone();
        match recollection.agent_session {
            Some(id) if recollection.runner == step_runner.name => {
                self.memory.go_on(task, &step_runner, id);
                (prompt, Sessions::Resumed)
            }
            _ => (prompt, usual),
        }
    }
}

fn told(prompt: String, recollection: &ResumeContext) -> String {
    if recollection.so_far.is_empty() {
        return prompt;
    }
    let lines: Vec<String> = recollection.so_far.iter().map(|line| format!("- {line}")).collect();
    format!(
        "{prompt}\n\nThis work was begun before and interrupted. What was done so far, and is in the files unless it was taken back:\n{}\n",
        lines.join("\n")
    )
}
