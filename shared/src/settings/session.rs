//! The keys of sessions.

use super::{Setting, ValueKind};

/// In the order of the manual.
pub(super) const SESSION: &[Setting] = &[
    Setting {
        key: "session.branch",
        variable: Some("ARBORIST_SESSION_BRANCH"),
        kind: ValueKind::Switch,
        expected: "true or false",
        default: "true where a workspace is configured, else false",
        about: "Whether a run works on its own branch, in a worktree beside your checkout, instead of on the branch that is checked out.",
    },
    Setting {
        key: "session.transcripts",
        variable: Some("ARBORIST_SESSION_TRANSCRIPTS"),
        kind: ValueKind::Choice(&["local", "push", "off"]),
        expected: "local, push or off",
        default: "local",
        about: "Whether the replies of agents and the output of their tools are recorded with the session, redacted: only in this repository (local), also at its remote (push), or not at all (off).",
    },
    Setting {
        key: "session.commit-message",
        variable: Some("ARBORIST_SESSION_COMMIT_MESSAGE"),
        kind: ValueKind::Choice(&["agent", "model", "plain"]),
        expected: "agent, model or plain",
        default: "agent; model if steps.commit-message.runner is set",
        about: "Where the commit message of a turn comes from: the agent's own words (agent), the runner of the step commit-message (model), or the names of the files (plain).",
    },
    Setting {
        key: "timeouts.commit-message",
        variable: Some("ARBORIST_TIMEOUTS_COMMIT_MESSAGE"),
        kind: ValueKind::Count,
        expected: "a number of seconds",
        default: "30",
        about: "How long the runner of the step commit-message may take; after that the agent's own words are used.",
    },
];
