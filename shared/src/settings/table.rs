//! The table of all configuration keys, from which the manual is generated.

use super::{
    Setting,
    general::{GENERAL, RUNNER, STEPS, TIMEOUTS},
    merge::{GATES, MERGE},
    protect::TESTS,
    review::{PROMPTS, REVIEW},
    sandbox::{RUNNER_SANDBOX, SANDBOX, STEP_SANDBOX},
    work::{BUDGET, ENGINES, SESSION, WORK},
    workspace::REPOS,
    worktree::{CLEANUP, WORKTREE},
};

/// In a file, `[merge]` begins before `[[merge.gates]]`.
const MERGE_PARTS: (&[Setting], &[Setting]) = MERGE.split_at(1);

const PARTS: [&[Setting]; 20] = [
    GENERAL, STEPS, RUNNER, TIMEOUTS, TESTS, REVIEW, WORKTREE, PROMPTS, SANDBOX, STEP_SANDBOX,
    RUNNER_SANDBOX, MERGE_PARTS.0, GATES, MERGE_PARTS.1, BUDGET, SESSION, WORK, ENGINES, REPOS, CLEANUP,
];

/// All keys, in the order of the manual.
pub const SETTINGS: &[Setting] = &join();

const fn count() -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < PARTS.len() {
        sum += PARTS[part].len();
        part += 1;
    }
    sum
}

const fn join() -> [Setting; count()] {
    let mut all = [GENERAL[0]; count()];
    let (mut at, mut part, mut place) = (0, 0, 0);
    while at < all.len() {
        if place == PARTS[part].len() {
            (part, place) = (part + 1, 0);
        }
        all[at] = PARTS[part][place];
        assert!(
            all[at].expected.is_some() || all[at].kind.has_words(),
            "a key needs words for what it accepts"
        );
        (at, place) = (at + 1, place + 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::SETTINGS;

    #[test]
    fn a_star_in_a_setting_pattern_matches_one_name() {
        let key = |key: &str| SETTINGS.iter().find(|setting| setting.is(key)).map(|setting| setting.key);
        assert_eq!(key("steps.review.runner"), Some("steps.*.runner"));
        assert_eq!(key("runners.robot.env.MODE"), Some("runners.*.env.*"));
        assert_eq!(key("steps.runner"), None);
        assert_eq!(key("tree"), Some("tree"));
        assert_eq!(key("tree.x"), None);
    }
}
