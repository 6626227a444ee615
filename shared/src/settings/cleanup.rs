//! The keys of `git arborist cleanup`.

use super::{Setting, ValueKind};

const AGE: &str = "an age such as 12h, 7d or 2w, in quotes";

/// The keys of `git arborist cleanup`, and when other commands mention it.
pub(super) const CLEANUP: &[Setting] = &[
    Setting {
        key: "cleanup.older-than",
        variable: Some("ARBORIST_CLEANUP_OLDER_THAN"),
        kind: ValueKind::Age,
        expected: AGE,
        default: "7d",
        about: "The minimum age of items that are removed.",
    },
    Setting {
        key: "cleanup.keep-saved",
        variable: Some("ARBORIST_CLEANUP_KEEP_SAVED"),
        kind: ValueKind::Age,
        expected: AGE,
        default: "90d",
        about: "How long saved work is kept, from when it was saved.",
    },
    Setting {
        key: "cleanup.keep-records",
        variable: Some("ARBORIST_CLEANUP_KEEP_RECORDS"),
        kind: ValueKind::Age,
        expected: AGE,
        default: "90d",
        about: "How long the records of a finished session are kept. After that they become saved work.",
    },
    Setting {
        key: "cleanup.reclaim",
        variable: Some("ARBORIST_CLEANUP_RECLAIM"),
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: "target/ and node_modules/",
        about: "Ignored folders that --reclaim deletes in worktrees that are kept, as patterns of .gitignore.",
    },
    Setting {
        key: "cleanup.warn-worktrees",
        variable: Some("ARBORIST_CLEANUP_WARN_WORKTREES"),
        kind: ValueKind::Count,
        expected: "a number of worktrees",
        default: "12, or more than the lanes of the run",
        about: "The number of worktrees from which 'gardener' and 'worktree' suggest a cleanup; 0 for never.",
    },
    Setting {
        key: "cleanup.warn-free",
        variable: Some("ARBORIST_CLEANUP_WARN_FREE"),
        kind: ValueKind::Count,
        expected: "a number of megabytes",
        default: "1000",
        about: "If fewer megabytes than this are free, 'gardener' and 'worktree' suggest a cleanup.",
    },
];
