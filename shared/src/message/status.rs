//! The statuses of task commits, and the trailers that each of them requires.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::Key;

/// The step of the pipeline that a commit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A run begins.
    RunStart,
    /// The plan of a run changes.
    Plan,
    /// The agent works.
    Implement,
    /// The tests run.
    Test,
    /// The reviewer decides.
    Review,
    /// The task ends, well or not.
    Complete,
    /// The task lands on the run's branch.
    Merge,
    /// The task is reset.
    Reset,
}

impl Step {
    /// Every step.
    pub const ALL: &[Self] = &[
        Self::RunStart,
        Self::Plan,
        Self::Implement,
        Self::Test,
        Self::Review,
        Self::Complete,
        Self::Merge,
        Self::Reset,
    ];

    /// The value of `Arborist-Step`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunStart => "run-start",
            Self::Plan => "plan",
            Self::Implement => "implement",
            Self::Test => "test",
            Self::Review => "review",
            Self::Complete => "complete",
            Self::Merge => "merge",
            Self::Reset => "reset",
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| D::Error::custom(format!("'{text}' is not a step")))
    }
}

impl FromStr for Step {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|step| step.as_str() == text).ok_or(())
    }
}

/// The status in a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// A run begins; no task.
    RunStart,
    /// The plan of a run changed; no task.
    Plan,
    /// One turn of an agent.
    Turn,
    /// The agent did its work.
    ImplementPass,
    /// The agent failed.
    ImplementFail,
    /// The tests passed.
    TestPass,
    /// The tests failed.
    TestFail,
    /// The reviewer approved.
    ReviewApproved,
    /// The reviewer rejected.
    ReviewRejected,
    /// The task is done.
    Complete,
    /// The task used up its attempts.
    Failed,
    /// The task landed.
    Merge,
    /// The task is reset.
    Reset,
}

impl Status {
    /// Every status.
    pub const ALL: &[Self] = &[
        Self::RunStart,
        Self::Plan,
        Self::Turn,
        Self::ImplementPass,
        Self::ImplementFail,
        Self::TestPass,
        Self::TestFail,
        Self::ReviewApproved,
        Self::ReviewRejected,
        Self::Complete,
        Self::Failed,
        Self::Merge,
        Self::Reset,
    ];

    /// The status as written in a subject.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunStart => "run-start",
            Self::Plan => "plan",
            Self::Turn => "turn",
            Self::ImplementPass => "implement-pass",
            Self::ImplementFail => "implement-fail",
            Self::TestPass => "test-pass",
            Self::TestFail => "test-fail",
            Self::ReviewApproved => "review-approved",
            Self::ReviewRejected => "review-rejected",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Merge => "merge",
            Self::Reset => "reset",
        }
    }

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

impl FromStr for Status {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text).ok_or(())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
