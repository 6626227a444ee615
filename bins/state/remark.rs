//! Remarks about a task besides its state: the process at work, the last failure, what it waits for.

use arborist_core::{
    history::{Event, FAILED, HandMerge, RevertedMerge, State},
    message::{Status, plain_line},
    name::Oid,
    progress::NodeProgress,
    queue::TicketState,
    record::StepStatus,
};

use super::StateView;
use crate::clock;

/// The step in progress, its attempt, and since when.
pub(super) fn busy_words(doing: &StepStatus) -> String {
    let by = plain_line(&doing.by);
    format!("attempt {}, {by}, started {}", doing.attempt.ordinal(), clock::ago(doing.since))
}

/// The remark: attempt, age, what it waits for; and why the task failed.
pub(super) fn remark(view: &StateView<'_>, node: &NodeProgress<'_>) -> (String, Option<String>) {
    let mut parts = Vec::new();
    let pause = node.pause().filter(|_| !view.work.has(node));
    let is_told = pause.is_some() && node.is_interrupted();
    if view.work.has_cut_off(node) && !is_told {
        parts.push("interrupted".into());
    }
    parts.extend(view.lost_words(node));
    if node.is_undone() {
        parts.push("reverted".into());
    }
    if node.state == State::Reverted {
        let reverted = node.history.and_then(|history| history.reverted.as_ref());
        parts.extend(reverted.map(RevertedMerge::words));
    }
    let hand_merge = node.history.and_then(|history| history.merged_by_hand.as_ref());
    parts.extend(hand_merge.and_then(HandMerge::taken_back_words));
    let last = node.history.and_then(|history| history.last());
    match (pause, node.attempt().filter(|attempt| attempt.0 > 0)) {
        (Some(pause), _) => parts.push(pause),
        (None, Some(attempt)) => parts.push(format!("attempt {}", attempt.ordinal())),
        (None, None) => {}
    }
    if node.is_unlanded() {
        let ticket = view.find_ticket(node).filter(|ticket| ticket.state != TicketState::Waiting);
        let why = ticket.map(|ticket| format!(" ({})", ticket.state.word())).unwrap_or_default();
        parts.push(format!("not landed{why}"));
    }
    if node.is_landed() && view.is_parked(node) {
        parts.push("not on the branch yet (parked)".into());
    }
    if node.history.is_some_and(|history| history.is_unverified) {
        parts.push("landing unverified".into());
    }
    if let Some(last) = node.history.and_then(|history| history.last()) {
        let what = if last.status() == Status::Reset { "reset " } else { "" };
        parts.push(format!("{what}{}", clock::ago(last.time)));
    }
    if node.is_stray {
        parts.push("not in the plan".into());
    }
    if let Some(history) = node.history.filter(|history| !history.forks.is_empty()) {
        parts.push(format!(
            "between {}",
            list(&history.forks.iter().map(Oid::short).collect::<Vec<_>>(), " and ")
        ));
    }
    if !node.waits_for.is_empty() && !node.state.is_done() {
        parts.push(format!("waits for {}", list(&node.waits_for, ", ")));
    }
    (parts.join(", "), last.filter(|_| node.state == State::Failed).and_then(reason))
}

/// Why a task failed, in one line.
fn reason(last: &Event) -> Option<String> {
    let sections = last.body().sections;
    let why = sections.into_iter().find(|section| section.heading == FAILED)?;
    Some(plain_line(why.text.lines().next()?))
}

/// The first three, and how many more.
fn list<T: ToString>(items: &[T], separator: &str) -> String {
    let shown: Vec<String> = items.iter().take(3).map(ToString::to_string).collect();
    match items.len().saturating_sub(3) {
        0 => shown.join(separator),
        more => format!("{}{separator}{more} more", shown.join(separator)),
    }
}
