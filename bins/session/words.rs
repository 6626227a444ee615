//! Texts for sessions and turns.

use arborist_core::{
    message::visible,
    name::Oid,
    session::{SessionState, SessionTotals, TokenCount, Turn, UNKNOWN},
};

pub(super) use crate::ui::table;
use crate::ui::{Tone, shortened};

pub(super) fn tone_of(state: SessionState) -> Tone {
    match state {
        SessionState::Complete => Tone::Good,
        SessionState::Failed | SessionState::Crashed => Tone::Bad,
        SessionState::Running | SessionState::Open | SessionState::Paused => Tone::Busy,
    }
}

/// The path of a plan, without the blob that it was frozen as.
pub(super) fn plan_of(plan: Option<&str>) -> String {
    plan.map(|plan| visible(plan.rsplit_once('@').map_or(plan, |(path, _)| path))).unwrap_or_default()
}

pub(super) fn cost_of(cost: Option<f64>) -> String {
    cost.map(|cost| format!("${cost:.2}")).unwrap_or_default()
}

/// Tokens in and out, if any were reported.
pub(super) fn tokens_of(totals: SessionTotals) -> String {
    if totals.tokens_in + totals.tokens_out == 0 {
        return String::new();
    }
    format!("{} in, {} out", short(totals.tokens_in), short(totals.tokens_out))
}

fn tokens_of_turn(tokens: Option<TokenCount>) -> String {
    tokens
        .map(|tokens| format!("{} in, {} out", short(tokens.read), short(tokens.written)))
        .unwrap_or_default()
}

/// A number in at most five characters or so: `950`, `12k`, `3.4M`.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// How many columns a turn has in a list.
pub(super) const TURN_COLUMNS: usize = 8;

/// The headings of a list of turns.
pub(super) const TURN_HEADINGS: [&str; TURN_COLUMNS] =
    ["turn", "task", "step", "model", "commit", "tokens", "cost", "what it did"];

/// Number, task, step, model, commit, tokens, cost, words.
pub(super) fn turn_cells(turn: &Turn) -> [String; TURN_COLUMNS] {
    [
        turn.number.to_string(),
        turn.node.to_string(),
        format!("{} #{}", visible(&turn.step), turn.attempt.ordinal()),
        if turn.model == UNKNOWN { "-".to_owned() } else { visible(&turn.model) },
        commits_of(turn),
        tokens_of_turn(turn.tokens),
        cost_of(turn.cost),
        words_of_turn(turn),
    ]
}

/// The commit of a turn, and those in other repositories as `NAME:COMMIT`.
fn commits_of(turn: &Turn) -> String {
    let others =
        turn.others.iter().map(|other| format!("{}:{}", visible(&other.repository), other.commit.short()));
    let all: Vec<String> = turn.commit.iter().map(Oid::short).chain(others).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" ") }
}

/// The line of a session that went back to one of its turns.
pub(super) fn resumed_cells(turn: u32) -> [String; TURN_COLUMNS] {
    let mut cells: [String; TURN_COLUMNS] = std::array::from_fn(|_| String::new());
    (cells[0], cells[2]) = ("-".into(), "resumed".into());
    cells[TURN_COLUMNS - 1] = format!("went back to turn {turn}");
    cells
}

/// What a turn did: the first line of its message, or its last words, such as a verdict, or its tools.
fn words_of_turn(turn: &Turn) -> String {
    let message = turn.message.as_deref().and_then(|message| message.lines().next());
    let message = message.or(turn.said.as_deref());
    let tools = || turn.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>().join(", ");
    let words = message.map(str::to_owned).filter(|line| !line.is_empty()).unwrap_or_else(tools);
    let words = visible(&words);
    match (turn.interrupted, words.is_empty()) {
        (false, _) => shortened(&words, 73),
        (true, true) => "(interrupted)".to_owned(),
        (true, false) => shortened(&format!("(interrupted) {words}"), 73),
    }
}
