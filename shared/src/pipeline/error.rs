//! What stops a pipeline. What an agent or a test does wrong is no error: it is a failed attempt.

use crate::{
    agent::AgentError,
    failure::{Exit, Explain},
    git::GitError,
    record::RecordError,
};

/// Why a task could not be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// It could not be written down.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The runner cannot be used.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A file could not be written.
    #[error("could not write '{path}': {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The user asked to stop.
    #[error("stopped")]
    Stopped,
    /// Something of an agent lives on and cannot be ended.
    #[error("processes of the agent could not be ended: {0}")]
    Survivors(String),
    /// The task cannot be run by this runner.
    #[error("task '{task}' has no command for the runner 'shell' to run")]
    NoCommand {
        /// The task.
        task: String,
    },
}

impl Explain for PipelineError {
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::Record(error) => error.exit(),
            Self::Agent(error) => error.exit(),
            Self::Stopped => Exit::Child(130),
            Self::Survivors(_) => Exit::Person,
            Self::File { .. } | Self::NoCommand { .. } => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Record(error) => error.hint(),
            Self::Agent(error) => error.hint(),
            Self::Stopped => Some("run the same command again to go on".into()),
            Self::Survivors(_) => Some("end them by hand, then run the same command again".into()),
            Self::NoCommand { .. } => {
                Some("give the task a \"command\" in the plan, or choose another runner".into())
            }
            Self::File { .. } => None,
        }
    }
}
