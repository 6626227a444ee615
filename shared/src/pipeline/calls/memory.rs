//! What is remembered between calls: runners that are not available at the moment, the last session of an agent
//! program, and what an earlier process had begun.

use jiff::Timestamp;

use crate::{
    agent::{CallOutcome, Usage, limits::Chain},
    name::TaskId,
    pipeline::{Sessions, StepRunner, TaskContext},
    session::ResumeContext,
};

/// What earlier calls have taught.
#[derive(Debug, Clone, Default)]
pub struct CallMemory {
    unavailable: Vec<UnavailableRunner>,
    session: Option<Session>,
    /// What an earlier process recorded, until it is used.
    resume_contexts: Vec<ResumeContext>,
}

/// A session of an agent program.
#[derive(Debug, Clone)]
pub struct Session {
    task: TaskId,
    step_runner: StepRunner,
    /// The id that the program uses.
    pub id: String,
    /// What it has cost so far.
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone)]
struct UnavailableRunner {
    step_runner: StepRunner,
    /// `None` means until this process ends.
    until: Option<Timestamp>,
}

impl CallMemory {
    /// Starts with what an earlier process recorded.
    #[must_use]
    pub fn with_resume_contexts(resume_contexts: Vec<ResumeContext>) -> Self {
        Self { resume_contexts, ..Self::default() }
    }

    /// Removes and returns what an earlier process recorded about a task.
    pub(in crate::pipeline) fn take_resume_context(&mut self, task: &TaskId) -> Option<ResumeContext> {
        let at = self.resume_contexts.iter().position(|resume_context| resume_context.node == *task)?;
        Some(self.resume_contexts.swap_remove(at))
    }

    /// Makes the next call of this runner for the task resume an agent session.
    pub(in crate::pipeline) fn resume_session(
        &mut self,
        task: &TaskId,
        step_runner: &StepRunner,
        id: String,
    ) {
        self.session =
            Some(Session { task: task.clone(), step_runner: step_runner.clone(), id, usage: None });
    }

    /// The first runner of a chain that is available; the last one if none is.
    #[must_use]
    pub fn choose<'c>(&self, chain: &'c Chain<StepRunner>, now: Timestamp) -> &'c StepRunner {
        let is_unavailable = |step_runner: &StepRunner| {
            let of_runner = self.unavailable.iter().filter(|entry| entry.step_runner == *step_runner);
            of_runner.into_iter().any(|entry| entry.until.is_none_or(|until| until > now))
        };
        let last = chain.iter().last().unwrap_or(chain.first());
        chain.iter().find(|step_runner| !is_unavailable(step_runner)).unwrap_or(last)
    }

    /// Remembers that a runner is not available, and until when if that is known.
    pub fn mark_unavailable(&mut self, step_runner: &StepRunner, until: Option<Timestamp>) {
        self.unavailable.push(UnavailableRunner { step_runner: step_runner.clone(), until });
    }

    /// The agent session of the runner's last call for a task.
    #[must_use]
    pub fn session(&self, task: &TaskId, step_runner: &StepRunner) -> Option<&Session> {
        self.session.as_ref().filter(|session| session.task == *task && session.step_runner == *step_runner)
    }

    /// Forgets the agent session.
    pub(in crate::pipeline) fn forget_session(&mut self) {
        self.session = None;
    }

    /// Remembers the agent session of a call. If it reported none, the next call starts a new one.
    pub fn remember_session(&mut self, task: &TaskId, step_runner: &StepRunner, outcome: &CallOutcome) {
        let (CallOutcome::Success { session, usage, .. }
        | CallOutcome::Limited { session, usage, .. }
        | CallOutcome::Failed { session, usage, .. }) = outcome;
        let (task, step_runner) = (task.clone(), step_runner.clone());
        self.session = session.clone().map(|id| Session { task, step_runner, id, usage: *usage });
    }
}

impl TaskContext<'_> {
    /// Adds to the prompt of an interrupted task what was done before, and decides whether the agent session is
    /// resumed. Both happen only once: this process itself knows about everything after that.
    pub(in crate::pipeline) fn recall(
        &mut self,
        task: &TaskId,
        chain: &Chain<StepRunner>,
        prompt: String,
    ) -> (String, Sessions) {
        let usual = self.run.options.sessions;
        let Some(resume_context) = self.memory.take_resume_context(task) else {
            return (prompt, usual);
        };
        let prompt = with_work_so_far(prompt, &resume_context);
        let step_runner = self.choose(chain).clone();
        match resume_context.agent_session {
            Some(id) if resume_context.runner == step_runner.name => {
                self.memory.resume_session(task, &step_runner, id);
                (prompt, Sessions::Resumed)
            }
            _ => (prompt, usual),
        }
    }
}

fn with_work_so_far(prompt: String, resume_context: &ResumeContext) -> String {
    if resume_context.so_far.is_empty() {
        return prompt;
    }
    let lines: Vec<String> = resume_context.so_far.iter().map(|line| format!("- {line}")).collect();
    format!(
        "{prompt}\n\nThis work was started before and interrupted. Done so far (in the files, unless undone since):\n{}\n",
        lines.join("\n")
    )
}
