//! The keys of the merge queue.

use std::time::Duration;

use super::{
    DefaultValue, ValueKind,
    setting::{POSITIVE_SECONDS, SECONDS, choices, settings},
    value::{Size, Sourced},
};

/// How long a gate may take by default.
pub const GATE_SECONDS: u64 = 900;

choices! {
    /// What to do if a gate fails on the target too.
    RedTarget {
        /// Nothing lands until the target is fixed.
        #[default]
        Hold = "hold",
        /// Tickets land nevertheless.
        Land = "land",
    }
}

choices! {
    /// What to do about a conflict.
    OnConflict {
        /// An agent or a person resolves it.
        #[default]
        Resolve = "resolve",
        /// The task is done again, on top of what has landed meanwhile.
        Reimplement = "reimplement",
    }
}

settings! {
    /// How finished tasks land.
    MergeSettings in MERGE;

    auto: bool {
        key: "merge.auto",
        variable: "ARBORIST_MERGE_AUTO",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(true),
        about: "Whether 'git arborist gardener --jobs' lands finished tasks. If not, they are queued, and 'git arborist merge run' lands them.",
    }
    batch: Option<Size> {
        key: "merge.batch",
        variable: "ARBORIST_MERGE_BATCH",
        kind: ValueKind::Size,
        expected: "1 or more, or auto",
        default: DefaultValue::InWords("auto: fewer after failures"),
        about: "How many tasks are merged and tested together. If a gate fails for such a batch, the batch is halved until the bad tasks are found.",
    }
    keep: Vec<String> {
        key: "merge.keep",
        variable: "ARBORIST_MERGE_KEEP",
        kind: ValueKind::Words,
        expected: "a list of patterns in quotes",
        default: DefaultValue::List(&[], "none"),
        about: "Patterns of ignored files that are kept from one gate to the next, such as build caches. All others are removed before a gate runs, and the worktree is set up again.",
    }
    red_target: RedTarget {
        key: "merge.red-target",
        variable: "ARBORIST_MERGE_RED_TARGET",
        kind: ValueKind::Choice(RedTarget::WORDS),
        default: DefaultValue::Text("hold"),
        about: "What happens to tasks if a gate fails on the target too: hold lands nothing, land ignores that gate.",
    }
    assist: bool {
        key: "merge.assist",
        variable: "ARBORIST_MERGE_ASSIST",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(true),
        about: "Whether an agent, the runner of steps.resolve, tries to resolve conflicts first.",
    }
    resolve_attempts: u32 {
        key: "merge.resolve-attempts",
        variable: "ARBORIST_MERGE_RESOLVE_ATTEMPTS",
        kind: ValueKind::Count,
        expected: "a number of tries",
        default: DefaultValue::Count(2),
        about: "How often an agent tries to resolve one conflict before a person is asked.",
    }
    on_conflict: OnConflict {
        key: "merge.on-conflict",
        variable: "ARBORIST_MERGE_ON_CONFLICT",
        kind: ValueKind::Choice(OnConflict::WORDS),
        default: DefaultValue::Text("resolve"),
        about: "Whether a conflict is resolved, or the task is done again on top of the tasks that have landed.",
    }
    delete_branches: bool {
        key: "merge.delete-branches",
        variable: "ARBORIST_MERGE_DELETE_BRANCHES",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether to delete a task's branch when all of it is known to have landed.",
    }
    wait_limit: Duration {
        key: "merge.wait-limit",
        variable: "ARBORIST_MERGE_WAIT_LIMIT",
        kind: ValueKind::Count,
        expected: SECONDS,
        default: DefaultValue::Count(3600),
        about: "How long a task may be queued before 'git arborist merge status' exits with 1.",
    }
}

settings! {
    /// `merge.gates.NAME`: a gate, which every landing must pass.
    GateSettings in GATES;

    command: Option<Sourced<String>> {
        key: "merge.gates.*.command",
        kind: ValueKind::Command,
        expected: "a command for a shell, in quotes",
        default: DefaultValue::InWords("nothing"),
        about: "The command of a gate, which every landing must pass. In a file also as a list of tables, each with a name.",
    }
    timeout: Option<Sourced<u64>> {
        key: "merge.gates.*.timeout",
        kind: ValueKind::Positive,
        expected: POSITIVE_SECONDS,
        default: DefaultValue::Count(GATE_SECONDS),
        about: "How long a gate may take.",
    }
    when: Option<Sourced<String>> {
        key: "merge.gates.*.when",
        kind: ValueKind::Text,
        expected: "a pathspec, in quotes",
        default: DefaultValue::InWords("always"),
        about: "Run a gate only if a path that matches this pathspec has changed.",
    }
}
