//! One task in detail: its state, its history, and its failures.

use arborist_core::{
    history::{EXCERPTS, Event, FAILED, FAILED_TESTS, State, TaskHistory},
    message::{Key, plain_text},
    name::{Oid, TaskId},
    progress::{NodeProgress, RunTotals},
};

use super::{StateView, remark, tree};
use crate::{
    clock,
    ui::{Tone, Ui},
    work::gerund,
};

/// How many lines of one part of a failure's output are shown.
const MOST_LINES: usize = 20;

pub(super) fn show(ui: &mut Ui, view: &StateView<'_>, task: &TaskId) {
    let Some(standing) = view.progress.find(task) else {
        return;
    };
    tree::warn_of_ignored(ui, view);
    let (mark, tone) = tree::mark(ui, view, standing);
    let name = plain_text(standing.name);
    ui.line(&format!(
        "{} {} {}",
        ui.paint(tone, mark),
        ui.paint(Tone::Strong, task.as_str()),
        ui.paint(Tone::Strong, &name)
    ));
    for (label, value) in facts(view, standing) {
        ui.line(&format!("  {label:<12} {value}"));
    }
    if let Some(task) = standing
        .planned
        .filter(|task| !task.description.trim().is_empty() && task.description.trim() != task.name)
    {
        ui.line("");
        plain_text(&task.description).lines().for_each(|line| ui.line(format!("  {line}").trim_end()));
    }
    if let Some(history) = standing.history {
        show_history(ui, history);
    }
}

fn facts(view: &StateView<'_>, standing: &NodeProgress<'_>) -> Vec<(&'static str, String)> {
    let mut facts = vec![("state", state_words(view, standing))];
    facts.extend(failure_facts(view, standing));
    facts.extend(next_command(view, standing).map(|command| ("next", command)));
    let phase =
        standing.planned.and_then(|task| task.parent.as_ref()).and_then(|parent| view.progress.find(parent));
    facts.extend(phase.map(|phase| ("phase", plain_text(phase.name))));
    let needs: Vec<String> =
        standing.planned.iter().flat_map(|task| &task.depends_on).map(|id| need(view, id)).collect();
    if !needs.is_empty() {
        facts.push(("depends on", needs.join(", ")));
    }
    let children: Vec<String> =
        standing.planned.iter().flat_map(|task| &task.children).map(|id| need(view, id)).collect();
    if !children.is_empty() {
        facts.push(("tasks", children.join(", ")));
    }
    if let Some(history) = standing.history {
        facts.extend(history_facts(history));
    }
    facts.extend(view.log.clone().map(|log| ("agent log", plain_text(&log))));
    facts
}

fn state_words(view: &StateView<'_>, standing: &NodeProgress<'_>) -> String {
    if let Some(doing) = view.work.doing(standing) {
        let state = gerund(&doing.step).unwrap_or(standing.state.as_str());
        return format!("{state}, {}, log {}", remark::busy_words(&doing), tree::one_line(&doing.log));
    }
    let mut words = standing.state.as_str().to_owned();
    if tree::is_paused(view, standing) {
        words.push_str(", paused");
    }
    if let Some(attempt) = standing.attempt() {
        words.push_str(&format!(", attempt {}", attempt.ordinal()));
    }
    words.extend(view.lost_words(standing).map(|lost| format!(", {lost}")));
    if standing.is_stray {
        words.push_str(", not in the plan");
    }
    if view.work.has(standing) {
        words.push_str(", a run is working on it");
    }
    if view.work.has_cut_off(standing) {
        words.push_str(", the last attempt was interrupted");
    }
    if standing.history.and_then(TaskHistory::last).is_some_and(Event::is_interruption) {
        words.push_str(", interrupted");
    }
    if standing.is_ready {
        words.push_str(", ready to start");
    }
    if standing.history.is_some_and(|history| !history.is_landed) {
        words.push_str(", not landed");
    } else if standing.is_landed() && view.is_parked(standing) {
        words.push_str(", not on the branch yet: the landing is waiting for your checkout");
    }
    words
}

/// Why the last attempt failed, and which tests did.
fn failure_facts(view: &StateView<'_>, standing: &NodeProgress<'_>) -> Vec<(&'static str, String)> {
    let is_over = standing.state.is_settled() && standing.state != State::Failed;
    let Some(history) = standing.history.filter(|_| !is_over && !view.work.has(standing)) else {
        return Vec::new();
    };
    let Some(last) = history.last().filter(|last| last.is_failure()) else { return Vec::new() };
    let first_line = |event: &Event, heading: &str| {
        let sections = event.body().sections;
        let section = sections.into_iter().find(|section| section.heading == heading)?;
        Some(tree::one_line(section.text.lines().next()?))
    };
    let mut facts = Vec::new();
    facts.extend(first_line(last, FAILED).map(|why| ("why", why)));
    let failed_tests = history.current().iter().rev().find_map(|event| first_line(event, FAILED_TESTS));
    facts.extend(failed_tests.map(|test| ("failed test", test)));
    facts
}

/// The command that continues with this task; `None` if nothing is left to do, or a run is working on it.
fn next_command(view: &StateView<'_>, standing: &NodeProgress<'_>) -> Option<String> {
    let task = standing.id;
    match standing.state {
        _ if view.work.has(standing) || standing.planned.is_some_and(|node| !node.children.is_empty()) => {
            None
        }
        State::Failed => Some(format!("git arborist garden {task} --retry-failed")),
        State::Forked | State::Reverted => Some(format!("git arborist reset {task}")),
        State::Complete => standing.is_apart().then(|| format!("git arborist merge {task}")),
        State::Implementing | State::Testing | State::Reviewing => {
            Some(format!("git arborist garden {task}"))
        }
        State::Pending => standing.is_ready.then(|| format!("git arborist garden {task}")),
        State::Skipped => None,
    }
}

fn need(view: &StateView<'_>, id: &TaskId) -> String {
    let state = view.progress.find(id).map_or("unknown", |standing| standing.state.as_str());
    format!("{id} ({state})")
}

fn history_facts(history: &TaskHistory) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !history.forks.is_empty() {
        let forks: Vec<String> = history.forks.iter().map(Oid::short).collect();
        facts.push(("forked", format!("none of {} is an ancestor of another", forks.join(", "))));
        facts.push((
            "to resolve it",
            "make a commit on top of both, for example with: git arborist reset".into(),
        ));
    }
    if let Some(reverted) = history.reverted {
        facts.push(("why", reverted.words()));
        facts.extend(reverted.advice(&history.id).lines().map(|line| ("to resolve it", line.to_owned())));
    }
    if let Some(last) = history.last() {
        facts.push(("commit", format!("{}, {}", last.commit.short(), clock::ago(last.time))));
    }
    let trailer = |key: Key| {
        history.current().iter().rev().find_map(|event| event.trailers.get(key)).map(str::to_owned)
    };
    facts.extend(trailer(Key::Report).map(|path| ("report", path)));
    facts.extend(trailer(Key::TestLog).map(|path| ("test log", path)));
    facts.extend(trailer(Key::ReviewLog).map(|path| ("review log", path)));
    let spent: RunTotals = history.events.iter().chain(&history.cancelled).collect();
    facts.extend(spent.cost.map(|cost| ("cost", format!("${cost:.2}"))));
    facts
}

fn show_history(ui: &mut Ui, history: &TaskHistory) {
    ui.line("");
    for event in &history.events {
        tree::show_event(ui, event);
        show_tests(ui, event);
        if event.is_failure() {
            show_words(ui, event);
        }
    }
    if !history.cancelled.is_empty() {
        ui.line("");
        ui.line("  undone by reverts");
        history.cancelled.iter().for_each(|event| tree::show_event(ui, event));
    }
}

fn show_tests(ui: &mut Ui, event: &Event) {
    let count = |key, word: &str| event.count(key).map(|count| format!("{count} {word}"));
    let counts = [
        count(Key::TestPassed, "passed"),
        count(Key::TestFailed, "failed"),
        count(Key::TestSkipped, "skipped"),
        event.trailers.get(Key::TestRuntime).map(|seconds| format!("{seconds} s")),
    ];
    let told: Vec<String> = counts.into_iter().flatten().collect();
    if !told.is_empty() {
        ui.line(&format!("          {}", told.join(", ")));
    }
}

/// The output of a failure. It is foreign text, and stays marked as such. If the failed tests are known, the rest of
/// the output of the tests is left out; otherwise only the end of each part is shown. The logs have all of it.
fn show_words(ui: &mut Ui, event: &Event) {
    let sections = event.body().sections;
    let has_tests = sections.iter().any(|section| section.heading == FAILED_TESTS);
    let is_output = |heading: &str| {
        heading == EXCERPTS || (heading.starts_with("Test (") && heading.ends_with("chars):"))
    };
    let has_excerpts = sections.iter().any(|section| section.heading == EXCERPTS);
    for section in sections {
        let is_repeated = has_tests || (has_excerpts && section.heading != EXCERPTS);
        if is_repeated && is_output(&section.heading) {
            continue;
        }
        ui.line(&ui.paint(Tone::Dim, &format!("          {}", plain_text(&section.heading))));
        let text = plain_text(&section.text);
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(MOST_LINES);
        if hidden > 0 {
            ui.line(&ui.paint(Tone::Dim, &format!("          [{hidden} lines are left out]")));
        }
        for line in &lines[hidden..] {
            ui.line(format!("          > {line}").trim_end());
        }
    }
}
