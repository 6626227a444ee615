//! Errors of the planner.

use std::path::PathBuf;

use crate::{
    failure::{Exit, Explain},
    pipeline::PipelineError,
    plan::Problem,
};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The agent could not be called, or the user asked to stop.
    #[error(transparent)]
    Call(#[from] PipelineError),
    /// The runner is not an agent program.
    #[error("the runner '{runner}' cannot make a plan")]
    NoPlanner {
        /// Its name.
        runner: String,
    },
    /// The agent failed.
    #[error("'{runner}' did not make a plan: {said}")]
    Failed {
        /// Its name.
        runner: String,
        /// The reason, in its words.
        said: String,
        /// The file of its output.
        log: PathBuf,
    },
    /// The agent gave no valid tree in any of its calls.
    #[error("'{runner}' did not return a valid tree:\n{}", lines(.problems))]
    Wrong {
        /// Its name.
        runner: String,
        /// What is wrong with the last one.
        problems: Vec<Problem>,
        /// The file of its last output.
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
            Self::NoPlanner { .. } | Self::Failed { .. } | Self::Wrong { .. } => Exit::No,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Call(error) => error.hint(),
            Self::NoPlanner { .. } => Some("name an agent program with --runner".into()),
            Self::Failed { log, .. } | Self::Wrong { log, .. } => {
                Some(format!("its output is in {}", log.display()))
            }
        }
    }
}
