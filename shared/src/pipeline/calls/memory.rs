//! What is remembered between calls: which runners cannot work just now, in which session an agent program was, and what an
//! earlier process had begun.

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
    absent: Vec<Absence>,
    session: Option<Session>,
    /// What an earlier process wrote down, until it is made use of.
    recalled: Vec<ResumeContext>,
}

/// A session of an agent program.
#[derive(Debug, Clone)]
pub struct Session {
    task: TaskId,
    step_runner: StepRunner,
    /// As the program calls it.
    pub id: String,
    /// What it has spent so far.
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone)]
struct Absence {
    step_runner: StepRunner,
    /// `None`: for as long as this process lives.
    until: Option<Timestamp>,
}

impl CallMemory {
    /// With what an earlier process wrote down.
    #[must_use]
    pub fn recalling(recalled: Vec<ResumeContext>) -> Self {
        Self { recalled, ..Self::default() }
    }

    /// What is recalled of a task, once.
    pub(in crate::pipeline) fn take_resume_context(&mut self, task: &TaskId) -> Option<ResumeContext> {
        let at = self.recalled.iter().position(|resume_context| resume_context.node == *task)?;
        Some(self.recalled.swap_remove(at))
    }

    /// The next call of somebody for a task goes on with this session of theirs.
    pub(in crate::pipeline) fn go_on(&mut self, task: &TaskId, step_runner: &StepRunner, id: String) {
        self.session =
            Some(Session { task: task.clone(), step_runner: step_runner.clone(), id, usage: None });
    }

    /// The first of a chain who can work; the last, if nobody can.
    #[must_use]
    pub fn choose<'c>(&self, chain: &'c Chain<StepRunner>, now: Timestamp) -> &'c StepRunner {
        let is_absent = |step_runner: &StepRunner| {
            let of_runner = self.absent.iter().filter(|absence| absence.step_runner == *step_runner);
            of_runner.into_iter().any(|absence| absence.until.is_none_or(|until| until > now))
        };
        let last = chain.iter().last().unwrap_or(chain.first());
        chain.iter().find(|step_runner| !is_absent(step_runner)).unwrap_or(last)
    }

    /// Remembers that somebody cannot work, and until when if that is known.
    pub fn miss(&mut self, step_runner: &StepRunner, until: Option<Timestamp>) {
        self.absent.push(Absence { step_runner: step_runner.clone(), until });
    }

    /// The session that somebody was in when last called for a task.
    #[must_use]
    pub fn session(&self, task: &TaskId, step_runner: &StepRunner) -> Option<&Session> {
        self.session.as_ref().filter(|session| session.task == *task && session.step_runner == *step_runner)
    }

    /// Forgets the session that somebody was in.
    pub(in crate::pipeline) fn forget_session(&mut self) {
        self.session = None;
    }

    /// Remembers the session that a call was in; one that told of none is not gone on with.
    pub fn keep_session(&mut self, task: &TaskId, step_runner: &StepRunner, outcome: &CallOutcome) {
        let (CallOutcome::Success { session, usage, .. }
        | CallOutcome::Limited { session, usage, .. }
        | CallOutcome::Failed { session, usage, .. }) = outcome;
        let (task, step_runner) = (task.clone(), step_runner.clone());
        self.session = session.clone().map(|id| Session { task, step_runner, id, usage: *usage });
    }
}

impl TaskContext<'_> {
    /// The prompt for a task that goes on, and whether its agent continues its conversation. Both only once: what comes
    /// after that is known to this process.
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
        let prompt = told(prompt, &resume_context);
        let step_runner = self.choose(chain).clone();
        match resume_context.agent_session {
            Some(id) if resume_context.runner == step_runner.name => {
                self.memory.go_on(task, &step_runner, id);
                (prompt, Sessions::Resumed)
            }
            _ => (prompt, usual),
        }
    }
}

fn told(prompt: String, resume_context: &ResumeContext) -> String {
    if resume_context.so_far.is_empty() {
        return prompt;
    }
    let lines: Vec<String> = resume_context.so_far.iter().map(|line| format!("- {line}")).collect();
    format!(
        "{prompt}\n\nThis work was begun before and interrupted. What was done so far, and is in the files unless it was taken back:\n{}\n",
        lines.join("\n")
    )
}
