//! Fallbacks: a chain of runners and models that are tried one after the other.

use std::{fmt, str::FromStr};

use super::super::FailureKind;

/// A runner and a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The runner's name.
    pub runner: String,
    /// The model, if not the runner's own choice.
    pub model: Option<String>,
}

/// A choice that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither RUNNER nor RUNNER:MODEL")]
pub struct ChoiceError(String);

impl FromStr for Choice {
    type Err = ChoiceError;

    /// Parses `runner` or `runner:model`. A model may contain `:` itself.
    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let (runner, model) = match text.split_once(':') {
            Some((runner, model)) => (runner, Some(model)),
            None => (text, None),
        };
        if runner.trim().is_empty() || model.is_some_and(|model| model.trim().is_empty()) {
            return Err(ChoiceError(text.to_owned()));
        }
        Ok(Self { runner: runner.trim().to_owned(), model: model.map(|model| model.trim().to_owned()) })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(f, "{}:{model}", self.runner),
            None => f.write_str(&self.runner),
        }
    }
}

/// Why a runner cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerSetback {
    /// The program is not installed.
    NotInstalled,
    /// It ran and failed in this way.
    Failure(FailureKind),
}

impl RunnerSetback {
    /// Whether another runner may succeed at once. An overload passes, and any other failure uses up an attempt.
    #[must_use]
    fn justifies_another(self) -> bool {
        matches!(self, Self::NotInstalled | Self::Failure(FailureKind::Auth | FailureKind::Limit))
    }
}

/// A runner followed by its fallbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain<T> {
    first: T,
    others: Vec<T>,
}

impl<T: PartialEq> Chain<T> {
    /// Creates a chain without duplicates.
    #[must_use]
    pub fn new(first: T, others: impl IntoIterator<Item = T>) -> Self {
        let mut chain = Self { first, others: Vec::new() };
        for other in others {
            if !chain.iter().any(|known| *known == other) {
                chain.others.push(other);
            }
        }
        chain
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The first choice.
    #[must_use]
    pub fn first(&self) -> &T {
        &self.first
    }

    /// The runner after `current`, if this setback justifies another one and there is one.
    #[must_use]
    pub fn find_next(&self, current: &T, setback: RunnerSetback) -> Option<&T> {
        let place = self.iter().position(|choice| choice == current)?;
        setback.justifies_another().then(|| self.iter().nth(place + 1)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        text.parse().unwrap()
    }

    #[test]
    fn runner_choices_survive_printing_and_parsing() {
        for text in ["claude", "claude:opus", "opencode:fake/m:free"] {
            assert_eq!(choice(text).to_string(), text);
        }
        for text in ["", ":m", "claude:", " "] {
            assert!(text.parse::<Choice>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_fallback_is_chosen_only_if_it_can_help() {
        let chain = Chain::new(choice("claude:opus"), [choice("codex"), choice("codex"), choice("gemini")]);
        let table = [
            ("claude:opus", RunnerSetback::NotInstalled, Some("codex")),
            ("claude:opus", RunnerSetback::Failure(FailureKind::Auth), Some("codex")),
            ("codex", RunnerSetback::Failure(FailureKind::Limit), Some("gemini")),
            ("gemini", RunnerSetback::Failure(FailureKind::Limit), None),
            ("codex", RunnerSetback::Failure(FailureKind::Overload), None),
            ("codex", RunnerSetback::Failure(FailureKind::Other), None),
            ("aider", RunnerSetback::NotInstalled, None),
        ];
        for (current, setback, expected) in table {
            let next = chain.find_next(&choice(current), setback).map(Choice::to_string);
            assert_eq!(next.as_deref(), expected, "{current} {setback:?}");
        }
    }
}
