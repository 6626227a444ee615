//! The trailer keys: each spelling exists once, here.

use std::str::FromStr;

macro_rules! keys {
    ($(#[doc = $doc:literal] $variant:ident = $spelling:literal,)*) => {
        /// The key of one of our trailers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key {
            $(#[doc = $doc] $variant,)*
        }

        impl Key {
            /// Every key, in the order in which optional ones are written.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The key as written in a message.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("Arborist-", $spelling),)*
                }
            }

            fn find(spelling: &str) -> Option<Self> {
                match spelling {
                    $(concat!("Arborist-", $spelling) => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// What the trailer says, in one sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $doc.trim_ascii(),)*
                }
            }
        }
    };
}

keys! {
    /// Which step of the pipeline a commit belongs to.
    Step = "Step",
    /// How an implement, complete or merge step ended.
    Result = "Result",
    /// How the tests ended.
    Test = "Test",
    /// What the reviewer decided.
    Review = "Review",
    /// The number of the attempt, from 0.
    Retry = "Retry",
    /// The version of the format of the run's commits. A run without it has format 1.
    Format = "Format",
    /// The commit at which the run started.
    Base = "Base",
    /// The session that a replay started from.
    Replays = "Replays",
    /// What limits agents and tests of the run, if that is nothing because the system has no sandbox.
    Sandbox = "Sandbox",
    /// The plan as it was frozen: `path@blob` or `none`.
    Plan = "Plan",
    /// The model that wrote a turn.
    Model = "Model",
    /// The provider of the model.
    Provider = "Provider",
    /// The node of the pipeline that a turn belongs to.
    Node = "Node",
    /// The pipeline that a turn belongs to.
    Pipeline = "Pipeline",
    /// The session of the run.
    Session = "Session",
    /// The number of a turn.
    Turn = "Turn",
    /// The commit that landed.
    Source = "Source",
    /// The gates that a landing passed, or `none`.
    Gate = "Gate",
    /// What landed with it in other repositories: `name@commit`, several joined by a comma.
    LandedIn = "Landed-In",
    /// Who resolved the conflict of a landing: `person`, or `agent` and its name.
    ResolvedBy = "Resolved-By",
    /// The worker that started the run or landed the task, if workers on several machines share the plan.
    Worker = "Worker",
    /// Where the report of a completed task is.
    Report = "Report",
    /// Which kinds of tests were run.
    TestType = "Test-Type",
    /// How many tests passed.
    TestPassed = "Test-Passed",
    /// How many tests failed.
    TestFailed = "Test-Failed",
    /// How many tests were skipped.
    TestSkipped = "Test-Skipped",
    /// How long the tests took, in seconds.
    TestRuntime = "Test-Runtime",
    /// Where the output of failed tests is.
    TestLog = "Test-Log",
    /// Where the reviewer's output is.
    ReviewLog = "Review-Log",
    /// Input tokens of the agent.
    TokensIn = "Tokens-In",
    /// Output tokens of the agent.
    TokensOut = "Tokens-Out",
    /// What the agent cost, in US dollars.
    Cost = "Cost",
    /// How long the agent worked, in seconds.
    Runtime = "Runtime",
    /// Why an attempt was interrupted. It does not count; the next one has the same number.
    Interrupted = "Interrupted",
}

impl FromStr for Key {
    type Err = ();

    fn from_str(spelling: &str) -> Result<Self, ()> {
        Self::find(spelling).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trailer_key_is_parsed_only_from_its_own_spelling() {
        for key in Key::ALL {
            assert_eq!(key.as_str().parse(), Ok(*key));
            assert_eq!(key.as_str().to_lowercase().parse::<Key>(), Err(()));
        }
    }
}
