//! The keys of worktrees and of cleanup.

use std::time::Duration;

use super::{
    Age, DefaultValue, ValueKind,
    setting::{PATH, SECONDS, settings},
    value::Sourced,
};

const AGE: &str = "an age such as 12h, 7d or 2w, in quotes";

settings! {
    /// Where worktrees are made, and what is in them.
    WorktreeSettings in WORKTREE;

    base: Option<String> {
        key: "worktree.base",
        variable: "ARBORIST_WORKTREE_BASE",
        kind: ValueKind::Text,
        expected: PATH,
        default: DefaultValue::InWords("../{repository}.arborist, or .arborist/worktrees where that cannot be written"),
        about: "Where worktrees are made, relative to the top of the main checkout; {repository} is the name of its folder.",
    }
    max: Option<usize> {
        key: "worktree.max",
        variable: "ARBORIST_WORKTREE_MAX",
        kind: ValueKind::Count,
        expected: "a number of worktrees",
        default: DefaultValue::InWords("16, or as many as the jobs of a run need"),
        about: "The maximum number of worktrees.",
    }
    min_free: u64 {
        key: "worktree.min-free",
        variable: "ARBORIST_WORKTREE_MIN_FREE",
        kind: ValueKind::Count,
        expected: "a number of megabytes",
        default: DefaultValue::Count(500),
        about: "How many megabytes must be free before a worktree is created.",
    }
    sync_cooldown: Duration {
        key: "worktree.sync-cooldown",
        variable: "ARBORIST_WORKTREE_SYNC_COOLDOWN",
        kind: ValueKind::Count,
        expected: SECONDS,
        default: DefaultValue::Count(60),
        about: "The minimum time between two merges of the run's branch into the branch of a task.",
    }
    setup: Option<Sourced<Vec<String>>> {
        key: "worktree.setup",
        variable: "ARBORIST_WORKTREE_SETUP",
        kind: ValueKind::Words,
        expected: "a list of commands in quotes",
        default: DefaultValue::InWords("nothing"),
        about: "Commands to run in a new worktree, each in a shell.",
    }
    copy: Vec<String> {
        key: "worktree.copy",
        variable: "ARBORIST_WORKTREE_COPY",
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: DefaultValue::List(&[], "nothing; the lines of .worktreeinclude are added"),
        about: "Ignored files of the main checkout that a new worktree gets too, such as .env or node_modules, as patterns of .gitignore.",
    }
    exclude: Vec<String> {
        key: "worktree.exclude",
        variable: "ARBORIST_WORKTREE_EXCLUDE",
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: DefaultValue::List(&[], "nothing, so that agents see their instruction files"),
        about: "Tracked files that are left out of worktrees, as patterns of a sparse checkout.",
    }
    keep: Vec<String> {
        key: "worktree.keep",
        variable: "ARBORIST_WORKTREE_KEEP",
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: DefaultValue::List(&["*"], "* (everything)"),
        about: "Ignored files that are kept when the next task gets the lane, such as build caches. With an empty list, all are removed.",
    }
    lfs: bool {
        key: "worktree.lfs",
        variable: "ARBORIST_WORKTREE_LFS",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(true),
        about: "Whether worktrees get the files of git LFS, or only their pointers.",
    }
    save_every: Duration {
        key: "worktree.save-every",
        variable: "ARBORIST_WORKTREE_SAVE_EVERY",
        kind: ValueKind::Count,
        expected: SECONDS,
        default: DefaultValue::Count(30),
        about: "How often unfinished work in a worktree is saved.",
    }
}

settings! {
    /// What `git arborist cleanup` deletes, and when other commands mention it.
    CleanupSettings in CLEANUP;

    older_than: Age {
        key: "cleanup.older-than",
        variable: "ARBORIST_CLEANUP_OLDER_THAN",
        kind: ValueKind::Age,
        expected: AGE,
        default: DefaultValue::Text("7d"),
        about: "The minimum age of items that are removed.",
    }
    keep_saved: Age {
        key: "cleanup.keep-saved",
        variable: "ARBORIST_CLEANUP_KEEP_SAVED",
        kind: ValueKind::Age,
        expected: AGE,
        default: DefaultValue::Text("90d"),
        about: "How long saved work is kept, from when it was saved.",
    }
    keep_records: Age {
        key: "cleanup.keep-records",
        variable: "ARBORIST_CLEANUP_KEEP_RECORDS",
        kind: ValueKind::Age,
        expected: AGE,
        default: DefaultValue::Text("90d"),
        about: "How long the records of a finished session are kept. After that they become saved work.",
    }
    reclaim: Vec<String> {
        key: "cleanup.reclaim",
        variable: "ARBORIST_CLEANUP_RECLAIM",
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: DefaultValue::List(&["target/", "node_modules/"], "target/ and node_modules/"),
        about: "Ignored folders that --reclaim deletes in worktrees that are kept, as patterns of .gitignore.",
    }
    warn_worktrees: Option<usize> {
        key: "cleanup.warn-worktrees",
        variable: "ARBORIST_CLEANUP_WARN_WORKTREES",
        kind: ValueKind::Count,
        expected: "a number of worktrees",
        default: DefaultValue::InWords("12, or more than the lanes of the run"),
        about: "The number of worktrees from which 'gardener' and 'worktree' suggest a cleanup; 0 for never.",
    }
    warn_free: u64 {
        key: "cleanup.warn-free",
        variable: "ARBORIST_CLEANUP_WARN_FREE",
        kind: ValueKind::Count,
        expected: "a number of megabytes",
        default: DefaultValue::Count(1000),
        about: "If fewer megabytes than this are free, 'gardener' and 'worktree' suggest a cleanup.",
    }
}
