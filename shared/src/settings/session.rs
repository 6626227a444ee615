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
        about: "Whether a run works on a branch of its own, in a worktree beside your checkout, instead of on the branch that is checked out.",
    },
    Setting {
        key: "session.transcripts",
        variable: Some("ARBORIST_SESSION_TRANSCRIPTS"),
        kind: ValueKind::Choice(&["local", "push", "off"]),
        expected: "local, push or off",
        default: "local",
        about: "Whether what agents say and what their tools answer is kept with the session's records, redacted: in this repository only, also where it is pushed to, or not at all.",
    },
    Setting {
        key: "session.commit-message",
        variable: Some("ARBORIST_SESSION_COMMIT_MESSAGE"),
        kind: ValueKind::Choice(&["agent", "model", "plain"]),
        expected: "agent, model or plain",
        default: "agent; model once there is a steps.commit-message.runner",
        about: "Where the message of a turn's commit comes from: the agent's own words, the runner of the step commit-message, which is shown the change, or only the names of the files.",
    },
    Setting {
        key: "timeouts.commit-message",
        variable: Some("ARBORIST_TIMEOUTS_COMMIT_MESSAGE"),
        kind: ValueKind::Count,
        expected: "a number of seconds",
        default: "30",
        about: "How long the runner of the step commit-message may take; then the agent's own words are taken.",
    },
];
