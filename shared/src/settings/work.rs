//! The keys of workers that share a plan.

use super::{Setting, ValueKind, table::SECONDS};

/// In the order of the manual.
pub(super) const WORK: &[Setting] = &[
    Setting {
        key: "work.ttl",
        variable: Some("ARBORIST_WORK_TTL"),
        kind: ValueKind::Positive,
        expected: SECONDS,
        default: "600",
        about: "How long a claim of a worker is valid if it is not renewed. After that, another worker takes the task over. A short time finds dead workers sooner and costs more pushes.",
    },
    Setting {
        key: "work.coordination",
        variable: Some("ARBORIST_WORK_COORDINATION"),
        kind: ValueKind::Text,
        expected: "a remote or a URL",
        default: "the remote with the code",
        about: "Another remote for the claims and the branches of finished tasks, by its name or URL. Then only landings are pushed to the remote with the code, which may limit how often you push.",
    },
];
