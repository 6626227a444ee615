//! The keys of the merge queue.

use super::{Kind, Setting, table::SECONDS};

/// What `git arborist merge` is told.
pub(super) const LANDING: &[Setting] = &[
    Setting {
        key: "merge.gates.*.command",
        variable: None,
        kind: Kind::Text,
        expected: "a command for a shell, in quotes",
        default: "nothing",
        about: "What a landing has to pass, by the name of the gate. In a file also as a list of tables, each with a name.",
    },
    Setting {
        key: "merge.gates.*.timeout",
        variable: None,
        kind: Kind::Count,
        expected: SECONDS,
        default: "900",
        about: "How long a gate may take.",
    },
    Setting {
        key: "merge.gates.*.when",
        variable: None,
        kind: Kind::Text,
        expected: "a pathspec, in quotes",
        default: "always",
        about: "Ask a gate only where a path that this pathspec names is changed.",
    },
    Setting {
        key: "merge.batch",
        variable: Some("ARBORIST_MERGE_BATCH"),
        kind: Kind::Size,
        expected: "a number of tasks, or auto",
        default: "auto: the more has failed of late, the fewer",
        about: "How many tasks are tested at once before they land. If that is red they are halved until the bad ones stand alone.",
    },
    Setting {
        key: "merge.red-target",
        variable: Some("ARBORIST_MERGE_RED_TARGET"),
        kind: Kind::Text,
        expected: "hold or land",
        default: "hold",
        about: "What becomes of tasks when a gate is red on the target too: nothing lands, or it keeps nobody back.",
    },
    Setting {
        key: "merge.assist",
        variable: Some("ARBORIST_MERGE_ASSIST"),
        kind: Kind::Switch,
        expected: "true or false",
        default: "true",
        about: "Let an agent, the runner of steps.resolve, resolve conflicts before a person is asked.",
    },
    Setting {
        key: "merge.resolve-attempts",
        variable: Some("ARBORIST_MERGE_RESOLVE_ATTEMPTS"),
        kind: Kind::Count,
        expected: "a number of tries",
        default: "2",
        about: "How often an agent tries to resolve one conflict before a person is asked.",
    },
    Setting {
        key: "merge.on-conflict",
        variable: Some("ARBORIST_MERGE_ON_CONFLICT"),
        kind: Kind::Text,
        expected: "resolve or reimplement",
        default: "resolve",
        about: "Whether a conflict is resolved, or the task done anew on what has landed meanwhile.",
    },
    Setting {
        key: "merge.delete-branches",
        variable: Some("ARBORIST_MERGE_DELETE_BRANCHES"),
        kind: Kind::Switch,
        expected: "true or false",
        default: "false",
        about: "Delete a task's branch once it is proved that all of it has landed.",
    },
    Setting {
        key: "merge.wait-limit",
        variable: Some("ARBORIST_MERGE_WAIT_LIMIT"),
        kind: Kind::Count,
        expected: SECONDS,
        default: "3600",
        about: "How long something may be queued before 'git arborist merge status' exits with 1.",
    },
];
