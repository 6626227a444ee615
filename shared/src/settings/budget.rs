//! The keys of budgets.

use super::{Setting, ValueKind};

/// The unit of a limit.
#[derive(Clone, Copy)]
struct Unit {
    kind: ValueKind,
    expected: &'static str,
}

const DOLLARS: Unit = Unit { kind: ValueKind::Amount, expected: "US dollars, such as 2.50" };
const TOKENS: Unit = Unit { kind: ValueKind::Count, expected: "a number of tokens" };
const SECONDS: Unit = Unit { kind: ValueKind::Count, expected: "a number of seconds" };

const fn limit(key: &'static str, variable: &'static str, unit: Unit, about: &'static str) -> Setting {
    let Unit { kind, expected } = unit;
    Setting { key, variable: Some(variable), kind, expected, default: "no limit", about }
}

pub(super) const BUDGET: [Setting; 6] = [
    limit(
        "budget.cost",
        "ARBORIST_MAX_COST",
        DOLLARS,
        "Maximum cost of a run in US dollars, as reported by the agents. The run then stops; continue it with a higher limit.",
    ),
    limit(
        "budget.tokens",
        "ARBORIST_MAX_TOKENS",
        TOKENS,
        "Maximum number of tokens that a run may use, input and output together.",
    ),
    limit(
        "budget.time",
        "ARBORIST_MAX_TIME",
        SECONDS,
        "Maximum total time that the agents of a run may work.",
    ),
    limit("budget.task-cost", "ARBORIST_MAX_TASK_COST", DOLLARS, "Maximum cost of each task in US dollars."),
    limit(
        "budget.task-tokens",
        "ARBORIST_MAX_TASK_TOKENS",
        TOKENS,
        "Maximum number of tokens that each task may use.",
    ),
    limit(
        "budget.task-time",
        "ARBORIST_MAX_TASK_TIME",
        SECONDS,
        "Maximum total time that agents may work on each task.",
    ),
];
