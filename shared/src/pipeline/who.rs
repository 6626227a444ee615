//! Who works: an agent that is called, or one whose turns are played again.

use std::time::Duration;

use super::{StepRunner, turn_words::TurnMessage};
use crate::{
    agent::{EventFormat, RunnerKind, provider_of},
    session::{Turn, value_of},
};

/// Turns in which an agent only talks are not looked at more often than this.
const PAUSE: Duration = Duration::from_millis(50);

/// Who works.
#[derive(Debug)]
pub struct Who {
    pub(super) runner: String,
    program: String,
    provider: Option<String>,
    pub(super) model: Option<String>,
    /// How it speaks.
    pub(super) events: EventFormat,
    /// Turns in which it only talks are not looked at more often than this.
    pub(super) pause: Duration,
    /// What the commit of its turn said when it was first written.
    pub(super) message: Option<TurnMessage>,
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
    pub(super) fn called(step_runner: &StepRunner) -> Self {
        let (program, events) = match &step_runner.runner {
            RunnerKind::Program(runner) => (runner.program(), runner.events),
            RunnerKind::Shell | RunnerKind::Demo => (step_runner.name.as_str(), EventFormat::Text),
        };
        let (runner, program, model) =
            (step_runner.name.clone(), program.to_owned(), step_runner.model.clone());
        Self { runner, program, model, events, ..Self::default() }
    }

    /// Somebody whose turn is played again. Each of its turns counts, as fast as it is played.
    pub(super) fn recorded(turn: &Turn, events: EventFormat) -> Self {
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
    pub(super) fn speaks_in_pieces(&self) -> bool {
        self.events == EventFormat::Gemini
    }

    /// Who serves the model that it works with.
    pub(super) fn provider_of(&self, model: Option<&str>) -> Option<String> {
        self.provider.clone().or_else(|| provider_of(&self.program, model))
    }
}
