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
        "What a run may cost, as far as agents tell. A run that has cost as much stops, and goes on with a higher limit.",
    ),
    limit("budget.tokens", "ARBORIST_MAX_TOKENS", TOKENS, "How many tokens a run may use, read and written."),
    limit(
        "budget.time",
        "ARBORIST_MAX_TIME",
        SECONDS,
        "How long the agents of a run may be at work, all together.",
    ),
    limit("budget.task-cost", "ARBORIST_MAX_TASK_COST", DOLLARS, "What each task may cost."),
    limit("budget.task-tokens", "ARBORIST_MAX_TASK_TOKENS", TOKENS, "How many tokens each task may use."),
    limit(
        "budget.task-time",
        "ARBORIST_MAX_TASK_TIME",
        SECONDS,
        "How long agents may be at work on each task.",
    ),
];
