//! What is wrong with a plan: always with a place, and with what would fix it.

use std::fmt;

use crate::failure::{Exit, Explain};

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What would fix it.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, .. } = self;
        write!(f, "{file}:{line}:{column}: {what}")
    }
}

/// A plan that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Its file could not be opened.
    #[error("could not read '{file}': {why}")]
    Unreadable {
        /// The file, as it was named.
        file: String,
        /// What the system said.
        why: String,
    },
    /// It was read and makes no sense. There is at least one problem, in the order of the file.
    #[error("{}", lines(.problems))]
    Wrong {
        /// What is wrong.
        problems: Vec<Problem>,
        /// What is doubtful besides.
        warnings: Vec<Problem>,
    },
}

impl PlanError {
    /// A plan with these problems, of which there is at least one.
    #[must_use]
    pub fn wrong(problems: Vec<Problem>) -> Self {
        Self::Wrong { problems, warnings: Vec::new() }
    }

    /// What is wrong, place by place.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Wrong { problems, .. } => problems,
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl Explain for PlanError {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hint(&self) -> Option<String> {
        self.problems().first().map(|problem| problem.fix.clone()).filter(|fix| !fix.is_empty())
    }
}
