//! The runner of the current turn: one that is called, or one whose recorded turns are replayed.

use std::time::Duration;

use crate::{
    agent::{EventFormat, RunnerKind, SHELL, provider_of},
    pipeline::{StepRunner, turns::message::TurnMessage},
    session::{Turn, value_of},
};

/// The shortest pause between two looks at the worktree during turns without tool calls.
const PAUSE: Duration = Duration::from_millis(50);

/// The runner of the current turn.
#[derive(Debug)]
pub struct ActiveRunner {
    pub(in crate::pipeline) runner: String,
    program: String,
    provider: Option<String>,
    pub(in crate::pipeline) model: Option<String>,
    /// The format of its output.
    pub(in crate::pipeline) events: EventFormat,
    /// Whether it is an agent, and not the task's own command.
    pub(in crate::pipeline) is_agent: bool,
    /// The shortest pause between two looks at the worktree during turns without tool calls.
    pub(in crate::pipeline) pause: Duration,
    /// The message of the turn's original commit, if the turn is replayed.
    pub(in crate::pipeline) message: Option<TurnMessage>,
}

impl Default for ActiveRunner {
    fn default() -> Self {
        Self {
            runner: String::new(),
            program: String::new(),
            provider: None,
            model: None,
            events: EventFormat::Text,
            is_agent: true,
            pause: PAUSE,
            message: None,
        }
    }
}

impl ActiveRunner {
    /// A runner that is called.
    pub(in crate::pipeline) fn calling(step_runner: &StepRunner) -> Self {
        let (program, events) = match &step_runner.runner {
            RunnerKind::Program(runner) => (runner.program(), runner.events),
            RunnerKind::Shell | RunnerKind::Demo => (step_runner.name.as_str(), EventFormat::Text),
        };
        let (runner, program, model) =
            (step_runner.name.clone(), program.to_owned(), step_runner.model.clone());
        let is_agent = step_runner.runner != RunnerKind::Shell;
        Self { runner, program, model, events, is_agent, ..Self::default() }
    }

    /// The runner of a replayed turn. Every recorded turn counts, however fast it is replayed.
    pub(in crate::pipeline) fn recorded(turn: &Turn, events: EventFormat) -> Self {
        let known = |word: &String| Some(word.clone()).filter(|word| *word != value_of(None));
        Self {
            runner: turn.runner.clone(),
            provider: known(&turn.provider),
            model: known(&turn.model),
            events,
            is_agent: turn.runner != SHELL,
            pause: Duration::ZERO,
            message: turn.message.as_deref().map(TurnMessage::repeated),
            ..Self::default()
        }
    }

    /// Whether it sends its text in fragments.
    pub(in crate::pipeline) fn streams_fragments(&self) -> bool {
        self.events == EventFormat::Gemini
    }

    /// The provider that serves `model` for it.
    pub(in crate::pipeline) fn provider_of(&self, model: Option<&str>) -> Option<String> {
        self.provider.clone().or_else(|| provider_of(&self.program, model))
    }
}
