//! The steps of a task, and the parts that they share: prompts, test counts, known failures, verdicts.

pub(super) mod background;
pub(super) mod command_counts;
pub(super) mod count_readers;
pub(super) mod counts;
pub(super) mod excerpt;
pub(super) mod failed_tests;
pub(super) mod feedback;
pub(super) mod implement;
pub(super) mod known_red;
pub(super) mod observed;
pub(super) mod placed_test;
pub(super) mod prompt;
pub(super) mod protect;
pub(super) mod report;
pub(super) mod review;
pub(super) mod review_diff;
pub(super) mod template;
pub(super) mod test;
pub(super) mod unchanged;
pub(super) mod verdict;
