//! What can be wrong with a runner before it is started.

use super::{EventFormat, Placeholder, Preset, limits::ChoiceError};
use crate::{
    failure::{Exit, Explain},
    message::nearest,
};

/// A runner that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No preset and no configured runner has this name.
    #[error("unknown runner '{name}'")]
    UnknownRunner {
        /// As written.
        name: String,
        /// Where.
        place: NamedIn,
    },
    /// The template names something that nobody fills in.
    #[error("runner '{runner}' uses the unknown placeholder '{{{name}}}'")]
    UnknownPlaceholder {
        /// The runner.
        runner: String,
        /// As written, without braces.
        name: String,
    },
    /// A program would take the model for an option.
    #[error("the model '{model}' of runner '{runner}' begins with '-', so it would be read as an option")]
    ModelIsOption {
        /// The runner.
        runner: String,
        /// As written.
        model: String,
    },
    /// The template has no program, or one that is to be filled in.
    #[error("the command of runner '{runner}' does not begin with a program")]
    NoProgram {
        /// The runner.
        runner: String,
    },
    /// No such event stream.
    #[error("unknown event format '{name}'")]
    UnknownFormat {
        /// As written.
        name: String,
    },
    /// Somebody to be asked instead cannot be read.
    #[error("fallback {0}")]
    Fallback(#[from] ChoiceError),
    /// The program is not on `PATH`.
    #[error("'{program}' is not installed")]
    NotInstalled {
        /// The program.
        program: String,
        /// How to get it, if we know.
        install: Option<String>,
    },
    /// A task's own command cannot judge what it did.
    #[error("'shell' runs the command of a task and cannot review it")]
    ShellReviews,
}

/// Where somebody is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedIn {
    /// By an option of the command.
    Flag,
    /// By the plan or the configuration.
    File,
}

impl Explain for AgentError {
    fn exit(&self) -> Exit {
        match self {
            Self::UnknownRunner { place: NamedIn::Flag, .. } => Exit::Usage,
            _ => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownRunner { name, .. } => {
                Some(proposal(name, Preset::names(), "a runner of your own is set up under [runners.<name>]"))
            }
            Self::UnknownPlaceholder { name, .. } => {
                let known: Vec<String> =
                    Placeholder::ALL.iter().map(|known| format!("{{{}}}", known.as_str())).collect();
                let names = Placeholder::ALL.iter().map(|known| known.as_str());
                Some(proposal(name, names, &format!("known are {}", known.join(", "))))
            }
            Self::ModelIsOption { .. } => Some(
                "correct 'model' in the plan or in the configuration, or name another one with --model"
                    .into(),
            ),
            Self::NoProgram { .. } => {
                Some("write the program first: command = [\"robot\", \"{prompt}\"]".into())
            }
            Self::UnknownFormat { name } => {
                let names = || EventFormat::ALL.iter().map(|format| format.as_str());
                let all = format!("known are {}", names().collect::<Vec<_>>().join(", "));
                Some(proposal(name, names(), &all))
            }
            Self::Fallback(_) => Some("write it as \"codex\", or as \"claude:haiku\"".into()),
            Self::ShellReviews => {
                Some("name who reviews with --review-runner, or as runner under [steps.review]".into())
            }
            Self::NotInstalled { program, install } => Some(match install {
                Some(install) => format!("install it with: {install}"),
                None => format!("put '{program}' on PATH, or choose another runner"),
            }),
        }
    }
}

/// The nearest known word, else a general word of help.
fn proposal<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    match nearest(word, known) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => otherwise.to_owned(),
    }
}
