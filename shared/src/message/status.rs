//! The statuses of task commits, and the trailers that each of them requires.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Key;
use crate::words::words;

words! {
    /// The step of the pipeline that a commit belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Step {
        /// A run begins.
        RunStart = "run-start",
        /// The plan of a run changes.
        Plan = "plan",
        /// The agent works.
        Implement = "implement",
        /// The tests run.
        Test = "test",
        /// The reviewer decides.
        Review = "review",
        /// The task ends, well or not.
        Complete = "complete",
        /// The task lands on the run's branch.
        Merge = "merge",
        /// The task is reset.
        Reset = "reset",
    }
}

words! {
    /// The status in a subject.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Status {
        /// A run begins; no task.
        RunStart = "run-start",
        /// The plan of a run changed; no task.
        Plan = "plan",
        /// One turn of an agent.
        Turn = "turn",
        /// The agent did its work.
        ImplementPass = "implement-pass",
        /// The agent failed.
        ImplementFail = "implement-fail",
        /// The tests passed.
        TestPass = "test-pass",
        /// The tests failed.
        TestFail = "test-fail",
        /// The reviewer approved.
        ReviewApproved = "review-approved",
        /// The reviewer rejected.
        ReviewRejected = "review-rejected",
        /// The task is done.
        Complete = "complete",
        /// The task used up its attempts.
        Failed = "failed",
        /// The task landed.
        Merge = "merge",
        /// The task is reset.
        Reset = "reset",
    }
}

impl Status {
    /// Whether the subject of this status names a task.
    #[must_use]
    pub fn names_task(self) -> bool {
        !matches!(self, Self::RunStart | Self::Plan)
    }

    /// The step that a commit of this status belongs to.
    #[must_use]
    pub fn step(self) -> Step {
        match self {
            Self::RunStart => Step::RunStart,
            Self::Plan => Step::Plan,
            Self::Turn | Self::ImplementPass | Self::ImplementFail => Step::Implement,
            Self::TestPass | Self::TestFail => Step::Test,
            Self::ReviewApproved | Self::ReviewRejected => Step::Review,
            Self::Complete | Self::Failed => Step::Complete,
            Self::Merge => Step::Merge,
            Self::Reset => Step::Reset,
        }
    }

    /// The trailer with the result of the step, and the value that agrees with this status.
    #[must_use]
    pub fn outcome(self) -> Option<(Key, &'static str)> {
        match self {
            Self::RunStart | Self::Plan | Self::Turn | Self::Reset => None,
            Self::ImplementPass | Self::Complete | Self::Merge => Some((Key::Result, "pass")),
            Self::ImplementFail | Self::Failed => Some((Key::Result, "fail")),
            Self::TestPass => Some((Key::Test, "pass")),
            Self::TestFail => Some((Key::Test, "fail")),
            Self::ReviewApproved => Some((Key::Review, "approved")),
            Self::ReviewRejected => Some((Key::Review, "rejected")),
        }
    }

    /// The required trailers, in the order in which they are written.
    #[must_use]
    pub fn required(self) -> &'static [Key] {
        use Key::{
            Base, Gate, Model, Node, Pipeline, Provider, Report, Result, Retry, Review, Session, Source,
            Step, Test, Turn,
        };
        match self {
            Self::RunStart => &[Step, Base, Key::Plan, Session],
            Self::Plan => &[Step, Key::Plan, Session],
            Self::Turn => &[Step, Retry, Model, Provider, Node, Pipeline, Session, Turn],
            Self::ImplementPass | Self::ImplementFail => &[Step, Result, Retry],
            Self::TestPass | Self::TestFail => &[Step, Test, Retry],
            Self::ReviewApproved | Self::ReviewRejected => &[Step, Review, Retry],
            Self::Complete => &[Step, Result, Report],
            Self::Failed => &[Step, Result],
            Self::Merge => &[Step, Result, Source, Gate],
            Self::Reset => &[Step],
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
