//! The steps of a task, and the parts that they share: prompts, test counts, known failures, verdicts.

pub(super) mod counts;
pub(super) mod failing;
pub(super) mod implement;
pub(super) mod known_red;
pub(super) mod prompt;
pub(super) mod report;
pub(super) mod review;
pub(super) mod test;
pub(super) mod verdict;
