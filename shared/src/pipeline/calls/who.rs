//! Who works: an agent that is called, or one whose turns are played again.

use std::time::Duration;

use crate::{
    agent::{EventFormat, RunnerKind, provider_of},
    pipeline::{StepRunner, turns::message::TurnMessage},
    session::{Turn, value_of},
};

/// Turns in which an agent only talks are not looked at more often than this.
const PAUSE: Duration = Duration::from_millis(50);

/// Who works.
#[derive(Debug)]
pub struct Who {
    pub(in crate::pipeline) runner: String,
    program: String,
    provider: Option<String>,
    pub(in crate::pipeline) model: Option<String>,
    /// How it speaks.
    pub(in crate::pipeline) events: EventFormat,
    /// Turns in which it only talks are not looked at more often than this.
    pub(in crate::pipeline) pause: Duration,
    /// What the commit of its turn said when it was first written.
    pub(in crate::pipeline) message: Option<TurnMessage>,
}

impl Default for Who {
    fn default() -> Self {
        Self {
            runner: String::new(),
            program: String::new(),
            provider: None,
            model: None,
            events: EventFormat::Text,
            pause: PAUSE,
            message: None,
        }
    }
}

impl Who {
    /// Somebody who is called.
    pub(in crate::pipeline) fn called(step_runner: &StepRunner) -> Self {
        let (program, events) = match &step_runner.runner {
            RunnerKind::Program(runner) => (runner.program(), runner.events),
            RunnerKind::Shell | RunnerKind::Demo => (step_runner.name.as_str(), EventFormat::Text),
        };
        let (runner, program, model) =
            (step_runner.name.clone(), program.to_owned(), step_runner.model.clone());
        Self { runner, program, model, events, ..Self::default() }
    }

    /// Somebody whose turn is played again. Each of its turns counts, as fast as it is played.
    pub(in crate::pipeline) fn recorded(turn: &Turn, events: EventFormat) -> Self {
        let known = |word: &String| Some(word.clone()).filter(|word| *word != value_of(None));
        Self {
            runner: turn.runner.clone(),
            provider: known(&turn.provider),
            model: known(&turn.model),
            events,
            pause: Duration::ZERO,
            message: turn.message.as_deref().map(TurnMessage::repeated),
            ..Self::default()
        }
    }

    /// Whether its words come in pieces.
    pub(in crate::pipeline) fn speaks_in_pieces(&self) -> bool {
        self.events == EventFormat::Gemini
    }

    /// Who serves the model that it works with.
    pub(in crate::pipeline) fn provider_of(&self, model: Option<&str>) -> Option<String> {
        self.provider.clone().or_else(|| provider_of(&self.program, model))
    }
}
