//! One task in detail: its state, its history, and its failures.

use std::path::Path;

use arborist_core::{
    git::Repository,
    history::{
        DENIED, EXCERPTS, Event, FAILED, FAILED_TESTS, HandMerge, INTERRUPTED, Run, State, TaskHistory,
    },
    message::{BodySection, Key, Status, Step, one_line, plain_line, plain_text, visible},
    name::{Oid, TaskId},
    pipeline::UNUSED_ANSWER,
    progress::{NodeProgress, RunTotals},
    queue::{GET_BACK, Ticket, UnparkWay},
    record::{LogLink, StepLog},
    safe_files,
    settings::Settings,
};
use unicode_width::UnicodeWidthStr;

use super::{
    StateView, remark,
    tree::{self, PhaseState},
};
use crate::{
    active_work::gerund,
    clock,
    ui::{Tone, Ui, wrapped},
};

/// How many lines of one part of a failure's output are shown.
const MOST_LINES: usize = 20;
/// How much shorter than its limit a text may be that was cut.
const CUT_SPACE: usize = 10;

pub(super) fn show(ui: &mut Ui, view: &StateView<'_>, task: &TaskId) {
    let Some(node) = view.progress.find(task) else {
        return;
    };
    tree::warn_of_ignored(ui, view);
    let (mark, tone) =
        if node.is_leaf() { tree::mark(ui, view, node) } else { tree::phase_mark(ui, view, node) };
    let name = plain_text(node.name);
    ui.line(&format!(
        "{} {} {}",
        ui.paint(tone, mark),
        ui.paint(Tone::Strong, task.as_str()),
        ui.paint(Tone::Strong, &name)
    ));
    for (label, value) in facts(view, node) {
        ui.text_line(&format!("  {label:<12} "), &value);
    }
    if let Some(task) = node
        .planned
        .filter(|task| !task.description.trim().is_empty() && task.description.trim() != task.name)
    {
        ui.line("");
        plain_text(&task.description).lines().for_each(|line| ui.line(format!("  {line}").trim_end()));
    }
    if let Some(history) = node.history {
        show_history(ui, view, history);
    }
}

fn facts(view: &StateView<'_>, node: &NodeProgress<'_>) -> Vec<(&'static str, String)> {
    let mut facts = vec![("state", state_words(view, node))];
    facts.extend(failure_facts(view, node));
    let unpark = unpark_way(view, node);
    let is_stashed = matches!(unpark, Some(UnparkWay::Stash { .. }));
    let next = unpark.map(|way| way.command()).or_else(|| next_command(view, node));
    facts.extend(next.map(|command| ("next", command)));
    facts.extend(is_stashed.then(|| ("", GET_BACK.to_owned())));
    let phase =
        node.planned.and_then(|task| task.parent.as_ref()).and_then(|parent| view.progress.find(parent));
    facts.extend(phase.map(|phase| ("phase", plain_text(phase.name))));
    let needs: Vec<String> =
        node.planned.iter().flat_map(|task| &task.depends_on).map(|id| need(view, id)).collect();
    if !needs.is_empty() {
        facts.push(("depends on", needs.join(", ")));
    }
    let children: Vec<String> =
        node.planned.iter().flat_map(|task| &task.children).map(|id| need(view, id)).collect();
    if !children.is_empty() {
        facts.push(("tasks", children.join(", ")));
    }
    if let Some(history) = node.history {
        facts.extend(history_facts(view, history));
    }
    let branches = view
        .branches
        .iter()
        .map(|(repo, branch)| ("branch", format!("{} in {repo}", visible(branch.as_str()))));
    facts.extend(branches);
    let unfinished = view.logs.unfinished.iter().filter(|unfinished| unfinished.step == Step::Review);
    facts.extend(unfinished.map(|review| ("review log", plain_text(&review.log))));
    facts.extend(view.logs.implement.iter().map(|log| ("agent log", plain_text(log))));
    facts
}

fn state_words(view: &StateView<'_>, node: &NodeProgress<'_>) -> String {
    if let Some(doing) = view.work.doing(node) {
        let state = gerund(doing.step).unwrap_or(node.state.as_str());
        // The log of the agent has its own row.
        let has_row = view.logs.implement.iter().any(|log| *log == doing.log);
        let log = if has_row { String::new() } else { format!(", log {}", plain_line(&doing.log)) };
        return format!("{state}, {}{log}", remark::busy_words(&doing));
    }
    if view.work.has(node) {
        return format!("{}, a run is working on it", node.state.as_str());
    }
    let phase_state = || PhaseState::of(view, node);
    if !node.is_leaf() && (node.state.is_under_way() || phase_state() == PhaseState::Parked) {
        return phase_state().as_str().to_owned();
    }
    let is_in_review = |unfinished: &UnfinishedStep| unfinished.step == Step::Review && node.is_paused();
    // An interruption before the reviewer's last call says nothing about that call.
    let is_reviewed = view.logs.unfinished.as_ref().is_some_and(is_in_review);
    let mut words = match is_reviewed {
        true => format!("{}; tests passed, the review is next", node.word()),
        false => node.words(),
    };
    let is_told = !is_reviewed && node.is_interrupted();
    if view.work.has_cut_off(node) && !is_told {
        words.push_str(", the last attempt was interrupted");
    }
    words.extend(view.lost_words(node).map(|lost| format!(", {lost}")));
    if node.is_stray {
        words.push_str(", not in the plan");
    }
    let is_unlanded = node.history.is_some_and(|history| !history.is_landed);
    if is_unlanded && node.state != State::Complete {
        words = format!("on its own branch: {words}");
    } else if node.is_landed() && view.is_parked(node) {
        words.push_str(", not on the branch yet: the landing is waiting for your checkout");
    }
    words
}

/// Why it has not landed, or why the last attempt failed, and which tests did.
fn failure_facts(view: &StateView<'_>, node: &NodeProgress<'_>) -> Vec<(&'static str, String)> {
    if let Some(why) = view.find_ticket(node).and_then(Ticket::reason) {
        return vec![("why", plain_line(&why))];
    }
    let is_over = node.state.is_done() && node.state != State::Failed;
    if let Some(unfinished) = view.logs.unfinished.as_ref().filter(|_| !is_over && !view.work.has(node)) {
        return vec![("why", plain_text(&unfinished.words()))];
    }
    let Some(history) = node.history.filter(|_| !is_over && !view.work.has(node)) else {
        return Vec::new();
    };
    let Some(last) = history.last().filter(|last| last.is_failure()) else { return Vec::new() };
    let first_line = |event: &Event, heading: &str| {
        let sections = event.body().sections;
        let section = sections.into_iter().find(|section| section.heading == heading)?;
        Some(plain_line(section.text.lines().next()?))
    };
    let mut facts = Vec::new();
    // An interrupted step also names what was undone after it.
    let interruption = last.is_interruption().then(|| first_line(last, INTERRUPTED)).flatten();
    let why: Vec<String> = interruption.into_iter().chain(first_line(last, FAILED)).collect();
    facts.extend((!why.is_empty()).then(|| ("why", why.join("; "))));
    let failed_tests = history.current().iter().rev().find_map(|event| first_line(event, FAILED_TESTS));
    facts.extend(failed_tests.map(|test| ("failed test", test)));
    facts
}

/// The command that continues with this task; `None` if nothing is left to do, or a run is working on it.
fn next_command(view: &StateView<'_>, node: &NodeProgress<'_>) -> Option<String> {
    if view.work.has(node) {
        return None;
    }
    view.continuation.next(node, view.find_ticket(node))
}

/// How the parked landing is brought into the checkout, if that comes before anything else.
fn unpark_way(view: &StateView<'_>, node: &NodeProgress<'_>) -> Option<UnparkWay> {
    let is_next = || next_command(view, node).is_some() || view.is_parked(node);
    if view.parked.is_none() || view.work.has(node) || !is_next() {
        return None;
    }
    Some(match &view.obstacle {
        // To stash an unfinished merge would end it.
        Some(obstacle) if !obstacle.can_be_stashed() => {
            UnparkWay::Run(format!("git arborist merge run{}", view.continuation.scope()))
        }
        _ => UnparkWay::Stash { at: String::new(), branch: view.run.scope.branch.clone() },
    })
}

fn need(view: &StateView<'_>, id: &TaskId) -> String {
    let state = match view.progress.find(id) {
        Some(phase) if !phase.is_leaf() => PhaseState::of(view, phase).as_str(),
        Some(task) => task.word(),
        None => "unknown",
    };
    format!("{id} ({state})")
}

fn history_facts(view: &StateView<'_>, history: &TaskHistory) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !history.forks.is_empty() {
        let forks: Vec<String> = history.forks.iter().map(Oid::short).collect();
        facts.push(("forked", format!("no commit of {} is an ancestor of another", forks.join(", "))));
        facts.push((
            "to resolve it",
            format!("choose one of the results, or start over: git arborist reset {}", history.id),
        ));
    }
    let taken_back = history.merged_by_hand.as_ref().and_then(HandMerge::taken_back_words);
    facts.extend(taken_back.map(|words| ("note", words)));
    if let Some(reverted) = &history.reverted {
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
    // Logs stay on the machine where the task ran.
    let is_here = |path: &String| view.home.as_ref().is_some_and(|home| home.join(path).is_file());
    facts.extend(trailer(Key::TestLog).filter(is_here).map(|path| ("test log", path)));
    facts.extend(trailer(Key::ReviewLog).filter(is_here).map(|path| ("review log", path)));
    let spent: RunTotals = history.events.iter().chain(&history.cancelled).collect();
    facts.extend(spent.cost.map(|cost| ("cost", format!("${cost:.2}"))));
    facts
}

/// Shows the commits of a task. Of earlier failures, the output of programs is left out, unless it is asked for.
fn show_history(ui: &mut Ui, view: &StateView<'_>, history: &TaskHistory) {
    ui.line("");
    // The commit that records the end of the task comes after its last attempt.
    let last = history.events.iter().rposition(|event| event.is_failure() && event.attempt().is_some());
    let mut is_cut = false;
    for (at, event) in history.events.iter().enumerate() {
        tree::show_event(ui, event);
        show_tests(ui, event);
        let is_whole = view.args.history || last.is_none_or(|last| at >= last);
        if event.is_failure() && is_whole {
            show_words(ui, event, |_| true);
        } else if event.is_failure() {
            let sections = event.body().sections;
            // If the failed tests are known, the output is not shown anyway.
            let has_tests = sections.iter().any(|section| section.heading == FAILED_TESTS);
            is_cut |= !has_tests && sections.iter().any(|section| is_output(&section.heading));
            show_words(ui, event, |heading| !is_output(heading));
        } else {
            show_words(ui, event, |heading| heading == DENIED);
        }
    }
    if is_cut {
        ui.hint(&format!(
            "to see the output of earlier attempts too, run: git arborist state {}{} --history",
            history.id,
            view.continuation.scope()
        ));
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
        event.trailers.get(Key::TestRuntime).map(|seconds| format!("took {seconds} s")),
    ];
    let parts: Vec<String> = counts.into_iter().flatten().collect();
    if !parts.is_empty() {
        ui.line(&format!("          {}", parts.join(", ")));
    }
}

/// The heading of a part of a commit message for people. Those in commits have a fixed form, which names the limit even if
/// nothing was cut.
fn heading(section: &BodySection) -> String {
    let heading = plain_text(&section.heading);
    let (name, limit) = match heading.strip_suffix(" chars):").and_then(|start| start.rsplit_once(" (")) {
        Some((name, limit)) => (name, limit.rsplit(' ').next().and_then(|limit| limit.parse::<usize>().ok())),
        None => return heading,
    };
    let tests = name.strip_prefix("Test (").and_then(|rest| rest.split_once(") "));
    let name = match tests {
        Some(("unit", stream)) => format!("Output of the tests ({stream})"),
        Some((kind, stream)) => format!("Output of the {kind} tests ({stream})"),
        None if name == "Runner output" => "Output of the agent".to_owned(),
        None => name.to_owned(),
    };
    let length = section.text.chars().count();
    // A cut may end in white space, which is not kept.
    match limit.filter(|limit| length + CUT_SPACE >= *limit) {
        Some(limit) => format!("{name} (cut to {limit} characters):"),
        None => format!("{name}:"),
    }
}

fn is_test_output(heading: &str) -> bool {
    heading.starts_with("Test (") && heading.ends_with("chars):")
}

/// Whether a part of a failure is the output of a program, not the reason.
fn is_output(heading: &str) -> bool {
    heading == EXCERPTS || is_test_output(heading) || heading.starts_with("Runner output (")
}

/// The output of a failure. It is foreign text, and stays marked as such. If the failed tests are known, the rest of
/// the output of the tests is left out; otherwise only the end of each part is shown. The logs have all of it.
fn show_words(ui: &mut Ui, event: &Event, is_shown: fn(&str) -> bool) {
    let sections = event.body().sections;
    let has_tests = sections.iter().any(|section| section.heading == FAILED_TESTS);
    let is_output = |heading: &str| heading == EXCERPTS || is_test_output(heading);
    let has_excerpts = sections.iter().any(|section| section.heading == EXCERPTS);
    for section in sections.into_iter().filter(|section| is_shown(&section.heading)) {
        let is_repeated = has_tests || (has_excerpts && section.heading != EXCERPTS);
        if section.text.trim().is_empty() || (is_repeated && is_output(&section.heading)) {
            continue;
        }
        ui.line(&ui.paint(Tone::Dim, &format!("          {}", heading(&section))));
        let text = plain_text(&section.text);
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(MOST_LINES);
        if hidden > 0 {
            ui.line(&ui.paint(Tone::Dim, &format!("          [{hidden} lines are left out]")));
        }
        for line in &lines[hidden..] {
            let room = ui.width().map_or(usize::MAX, |width| width.saturating_sub(12).max(20));
            let lines = if line.width() <= room { vec![(*line).to_owned()] } else { wrapped(line, room) };
            lines.iter().for_each(|line| ui.line(format!("          > {line}").trim_end()));
        }
    }
}

/// How much of the end of a log is read to find its last line.
const TAIL: u64 = 4096;
/// How many characters of that line are shown.
const LONGEST_LOG_LINE: usize = 200;

/// The newest logs of a task.
#[derive(Debug, Default)]
pub(super) struct TaskLogs {
    /// The log of the last implement step.
    implement: Option<String>,
    /// The last step, if it ended without a result, such as a reviewer that failed.
    unfinished: Option<UnfinishedStep>,
}

/// A step of which only the log tells.
#[derive(Debug)]
pub(super) struct UnfinishedStep {
    pub(super) step: Step,
    pub(super) log: String,
    /// The last line of the log, if it is text.
    last_line: Option<String>,
}

impl UnfinishedStep {
    /// Why the task did not continue.
    pub(super) fn words(&self) -> String {
        if let Some(last_line) =
            self.last_line.as_ref().filter(|last_line| last_line.starts_with(UNUSED_ANSWER))
        {
            return last_line.clone();
        }
        let who = if self.step == Step::Review { "the reviewer" } else { "the agent" };
        let last_line = self.last_line.as_ref().map(|last_line| format!(": {last_line}")).unwrap_or_default();
        format!("the last call of {who} ended without a result{last_line}")
    }
}

impl TaskLogs {
    /// The logs of a task in the checkout that keeps them.
    pub(super) fn find(
        repository: &Repository,
        settings: &Settings,
        home: &Path,
        run: &Run,
        task: &TaskId,
    ) -> Self {
        let folder = settings.general.log_dir.as_str();
        let head = repository.find_commit("HEAD").ok().flatten();
        let link = head.map(|head| LogLink::find_tracked(repository, home, head, folder));
        if !matches!(link, None | Some(Ok(None))) {
            return Self::default();
        }
        let Ok(mut logs) =
            home.join(folder).canonicalize().and_then(|folder| StepLog::list(&folder, Some(task)))
        else {
            return Self::default();
        };
        // Runs of other branches write to the same folder.
        logs.retain(|log| log.session.as_ref().is_none_or(|session| run.has_work_of(session, task)));
        let name =
            |log: &StepLog| log.path.file_name().map(|name| format!("{folder}/{}", name.to_string_lossy()));
        let implement = logs.iter().rfind(|log| log.step == Step::Implement);
        let unfinished =
            logs.last().filter(|log| is_unfinished(repository, run, task, log, name(log).as_deref()));
        let unfinished = unfinished.and_then(|log| {
            Some(UnfinishedStep { step: log.step, log: name(log)?, last_line: last_line(&log.path) })
        });
        let is_known = run.find(task).is_some() || unfinished.is_some();
        Self { implement: implement.filter(|_| is_known).and_then(name), unfinished }
    }
}

/// Whether no commit of the run tells how a step ended.
fn is_unfinished(
    repository: &Repository,
    run: &Run,
    task: &TaskId,
    log: &StepLog,
    name: Option<&str>,
) -> bool {
    let current = run.find(task).map(TaskHistory::current).unwrap_or_default();
    // An interruption is the end of the log that it cut off, but not of a review that was begun after it.
    let is_later =
        log.step == Step::Review && current.last().is_some_and(|last| log.started.as_second() > last.time);
    let is_cut_off = |event: &Event| event.is_interruption() && !is_later;
    if current.last().is_some_and(is_cut_off) {
        return false;
    }
    let last = current.iter().rfind(|event| !event.is_interruption());
    match (log.step, last.map(Event::status)) {
        (Step::Review, Some(Status::TestPass)) => {
            !current.iter().any(|event| event.trailers.get(Key::ReviewLog) == name)
        }
        (Step::Implement, Some(Status::TestFail | Status::ReviewRejected)) => true,
        // The log may be from before a reset, or from an earlier run.
        (Step::Implement, None) => {
            let last = run.find(task).and_then(|history| history.events.last());
            if last.is_some_and(|last| log.started.as_second() <= last.time) {
                return false;
            }
            let start = run.start.as_ref().map(|start| start.commit);
            let start = start.and_then(|start| repository.load_commits(&[start]).ok()?.pop());
            start
                .and_then(|start| Event::of(&start))
                .is_some_and(|start| log.started.as_second() >= start.time)
        }
        _ => false,
    }
}

/// The last line of a log that is text. Events of agents are not, nor are prompts and headings.
fn last_line(path: &Path) -> Option<String> {
    let bytes = safe_files::read_tail(path, TAIL).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rfind(|line| !line.trim().is_empty())?;
    let is_text = !["{", "===", "> "].iter().any(|start| last.starts_with(start));
    is_text.then(|| one_line(last).chars().take(LONGEST_LOG_LINE).collect())
}
