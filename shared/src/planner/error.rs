//! Why an agent made no plan.

use std::path::PathBuf;

use crate::{
    failure::{Exit, Explain},
    pipeline::PipelineError,
    plan::Problem,
};

/// There is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The agent could not be called, or the user asked to stop.
    #[error(transparent)]
    Call(#[from] PipelineError),
    /// The runner is not one that is told anything.
    #[error("the runner '{runner}' cannot make a plan")]
    NoPlanner {
        /// Its name.
        runner: String,
    },
    /// The agent failed.
    #[error("'{runner}' made no plan: {said}")]
    Failed {
        /// Its name.
        runner: String,
        /// Why, in its words.
        said: String,
        /// Where its output is.
        log: PathBuf,
    },
    /// The agent gave no valid tree, as often as it was asked.
    #[error("'{runner}' gave no valid tree:\n{}", lines(.problems))]
    Wrong {
        /// Its name.
        runner: String,
        /// What is wrong with the last one.
        problems: Vec<Problem>,
        /// Where its last output is.
        log: PathBuf,
    },
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl Explain for PlannerError {
    fn exit(&self) -> Exit {
        match self {
            Self::Call(error) => error.exit(),
            Self::NoPlanner { .. } => Exit::Fatal,
            Self::Failed { .. } | Self::Wrong { .. } => Exit::No,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Call(error) => error.hint(),
            Self::NoPlanner { .. } => Some("name an agent program with --runner".into()),
            Self::Failed { log, .. } | Self::Wrong { log, .. } => {
                Some(format!("all that it printed is in {}", log.display()))
            }
        }
    }
}
