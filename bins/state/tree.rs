//! The tree view: a line for each task under its phase, and the totals.

use std::collections::BTreeSet;

use arborist_core::{
    gardener::GardenerError,
    history::{Event, State},
    message::{Status, plain_line, visible},
    name::TaskId,
    plan::usual_places,
    process::shell_word,
    progress::{NodeProgress, RestingState, Share},
    queue::advice_to_unpark,
    record::StepStatus,
};
use unicode_width::UnicodeWidthStr;

use super::{
    StateView,
    remark::{busy_words, remark},
    source::{Freshness, Shown},
};
use crate::{
    active_work::gerund,
    clock,
    ui::{Tone, Ui, shortened, wrapped},
};

/// Names wider than this push the following columns to the right.
const WIDEST_NAME: usize = 56;
const NARROWEST_NAME: usize = 16;
/// The width of the other columns: mark, state, and a usual remark.
const REST: usize = 42;
/// The width that an id leaves to the other columns, or it gets its own line: mark, a narrow name, state, and an age.
const BESIDE_ID: usize = 44;
/// A remark that does not fit into fewer columns than this gets its own line.
const NARROWEST_REMARK: usize = 20;
/// The width of the longest state.
const STATE: usize = 13;
const BAR: usize = 24;
/// How many completions without a review are named.
const MOST_COMPLETIONS: usize = 5;
/// The width of the columns before the text of an event: commit, age, attempt and status.
const BEFORE_WORDS: usize = 6 + 11 + 9 + 4 + 17;

pub(super) fn show(ui: &mut Ui, view: &StateView<'_>) {
    warn_of_ignored(ui, view);
    show_heading(ui, view);
    let selected: Vec<&NodeProgress<'_>> = view.selected().collect();
    if selected.is_empty() {
        ui.line(&nothing(view));
        match &view.plan {
            Shown::Nothing if !view.args.ready => ui.hint(&match view.is_bare {
                true => "this repository is bare, so plans are found only in a clone of it".to_owned(),
                false => {
                    let places = usual_places(Some(&view.run.scope.branch)).join(", ");
                    format!("name a plan with --tree, or create one of these files: {places}")
                }
            }),
            Shown::Several(plans) => ui.hint(&format!(
                "name one of them: git arborist state --tree {}",
                shell_word(plans.first().map_or("FILE", String::as_str))
            )),
            _ => {}
        }
        return hint_at_other(ui, view);
    }
    let width = ui.width();
    let lengths = selected.iter().filter(|s| s.is_leaf()).map(|s| (s.id.as_str().len(), 2 * s.depth));
    let fits = |(id, indent): &(usize, usize)| width.is_none_or(|width| id + indent + BESIDE_ID <= width);
    let ids = lengths.filter(fits).map(|(id, _)| id).max().unwrap_or(0);
    let room = width.map_or(WIDEST_NAME, |width| width.saturating_sub(ids + REST).max(NARROWEST_NAME));
    let names = selected.iter().map(|s| s.name.width() + 2 * s.depth).max().unwrap_or(0).min(room);
    let columns = Columns { ids, names, width };
    for node in selected {
        if node.is_leaf() {
            show_task(ui, view, node, &columns);
        } else {
            show_phase(ui, view, node);
        }
        if view.args.history {
            node.history.iter().flat_map(|history| &history.events).for_each(|event| show_event(ui, event));
        }
    }
    if view.run.start.is_none() {
        hint_at_other(ui, view);
    }
    for (repo, commits) in &view.unpushed {
        ui.line(&ui.paint(Tone::Busy, &format!("{repo}: unpushed by {commits}")));
    }
}

/// The widths of ids and names, and of a line; longer text is cut.
struct Columns {
    ids: usize,
    names: usize,
    width: Option<usize>,
}

fn nothing(view: &StateView<'_>) -> String {
    let branch = &view.run.scope.branch;
    let no_run = match view.run.start {
        Some(_) => format!("the run of '{branch}' has no tasks yet"),
        None => format!("'{branch}' has no run yet"),
    };
    match (view.args.ready, &view.plan) {
        (_, Shown::Several(plans)) => {
            format!("{}; {no_run}", GardenerError::SeveralPlans(plans.clone()))
        }
        (true, _) => match &view.due_phase {
            Some(phase) => format!("nothing is ready: the next run starts with the tests of {phase}"),
            None => "nothing is ready".into(),
        },
        (false, Shown::Nothing) => format!("there is no plan here, and {no_run}"),
        (false, _) => "the plan has no tasks".into(),
    }
}

fn hint_at_other(ui: &mut Ui, view: &StateView<'_>) {
    if let Some(other) = view.run.others.first() {
        ui.hint(&format!(
            "the run of '{other}' is not shown here; to see it, run: git arborist state --scope {other}"
        ));
    }
}

/// Warns about everything that is ignored.
pub(super) fn warn_of_ignored(ui: &mut Ui, view: &StateView<'_>) {
    let run = view.run;
    warn_of_unproven(ui, view);
    let (Some(tip), count @ 1..) = (run.scope.tip, run.ignored.saturating_sub(run.unproven.len())) else {
        return;
    };
    ui.warn(&match count {
        1 => "1 commit looks like a task commit but is not a valid one, and is ignored".to_owned(),
        count => format!("{count} commits look like task commits but are not valid, and are ignored"),
    });
    let range =
        run.start.as_ref().map_or(tip.short(), |start| format!("{}..{}", start.commit.short(), tip.short()));
    ui.hint(&format!("to see the problems, run: git arborist trailers check {range}"));
}

/// Warns about landings and completions that do not count. They are valid commits, so `trailers check` accepts them.
fn warn_of_unproven(ui: &mut Ui, view: &StateView<'_>) {
    let (landings, completions): (Vec<&Event>, Vec<&Event>) =
        view.run.unproven.iter().partition(|event| event.status() == Status::Merge);
    let is_left = |event: &&&Event| event.task().is_some_and(|task| view.progress.is_left(task));
    let landed: BTreeSet<&TaskId> =
        landings.iter().filter(is_left).filter_map(|event| event.task()).collect();
    if !landed.is_empty() {
        let count = if landed.len() == 1 { "counts" } else { "count" };
        let names: Vec<&str> = landed.iter().map(|task| task.as_str()).collect();
        ui.warn(&format!("{} landed without an approved review, and {count} as not done", names.join(", ")));
        let landed: Vec<&TaskId> = landed.into_iter().collect();
        view.continuation.accept_by_plan(&landed).iter().for_each(|hint| ui.hint(hint));
    }
    for event in completions.iter().take(MOST_COMPLETIONS) {
        let task = event.task().map(ToString::to_string).unwrap_or_default();
        ui.warn(&format!(
            "commit {} does not complete {task}: no approved review comes before it",
            event.commit.short()
        ));
    }
}

/// The whole run in one line.
pub(super) fn show_line(ui: &mut Ui, view: &StateView<'_>) {
    if view.progress.leaves().next().is_some() {
        ui.line(&summary(view));
    } else {
        ui.line(&nothing(view));
    }
}

fn summary(view: &StateView<'_>) -> String {
    let Share { done, total } = view.share();
    let mut parts = vec![format!("{done} of {total} done")];
    let running = view.progress.counted().filter(|s| view.work.has(s)).count();
    let paused = view.progress.counted().filter(|s| is_paused(view, s)).count();
    let ready = view.progress.count_ready();
    let (unqueued, waiting): (Vec<&NodeProgress<'_>>, Vec<&NodeProgress<'_>>) =
        view.progress.counted().filter(|s| s.is_unlanded()).partition(|s| view.is_unqueued(s));
    // Nothing lands them until a person acts.
    let is_stuck =
        |s: &&&NodeProgress<'_>| view.find_ticket(s).is_some_and(|ticket| ticket.reason().is_some());
    let stuck = waiting.iter().filter(is_stuck).count();
    let counts = [
        (waiting.len() - stuck, "waiting to land"),
        (stuck, "did not land"),
        (unqueued.len(), "not landed"),
        (running, "running"),
        (paused, "paused"),
        (view.count(State::Failed), "failed"),
        (view.count(State::Forked), "forked"),
        (view.count(State::Reverted), "merged and reverted"),
        (view.count(State::Skipped), "skipped"),
        (ready, "ready to start"),
    ];
    if view.parked.is_some() {
        let parked = view.progress.counted().filter(|s| s.is_landed() && view.is_parked(s)).count();
        parts.push(if parked == 0 { "parked".into() } else { format!("{parked} parked") });
    }
    parts
        .extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
    format!("{}: {}", visible(view.run.scope.branch.as_str()), parts.join(", "))
}

/// Whether a task was started, and no run is working on it now.
pub(super) fn is_paused(view: &StateView<'_>, node: &NodeProgress<'_>) -> bool {
    node.is_paused() && !view.work.has(node)
}

fn show_heading(ui: &mut Ui, view: &StateView<'_>) {
    if view.progress.leaves().next().is_none() {
        return;
    }
    let share = view.share();
    let percent = share.percent();
    ui.line(&ui.paint(Tone::Strong, &summary(view)));
    let filled = (share.done * BAR).checked_div(share.total).unwrap_or(BAR);
    let (full, empty) = if ui.has_unicode() { ("█", "░") } else { ("#", "-") };
    let bar = format!("{}{}", ui.paint(Tone::Good, &full.repeat(filled)), empty.repeat(BAR - filled));
    ui.line(&format!("[{bar}] {percent}%{}", spent(view)));
    if let Some(holder) = &view.work.holder {
        ui.line(&ui.paint(
            Tone::Busy,
            &format!(
                "{}: {}",
                if holder.is_landing() { "tasks are landing" } else { "a run is active" },
                holder.process_words()
            ),
        ));
    }
    if view.parked.is_some() {
        let branch = visible(view.run.scope.branch.as_str());
        let why = view.obstacle.as_ref().map(|obstacle| format!(": {obstacle}")).unwrap_or_default();
        ui.line(&ui.paint(Tone::Busy, &format!("a landing on {branch} is parked{why}")));
        let run = format!("git arborist merge run{}", view.continuation.scope());
        let advice = advice_to_unpark(&view.run.scope.branch, view.obstacle.as_ref(), &run);
        advice.lines().for_each(|line| ui.line(&ui.paint(Tone::Busy, &format!("  {line}"))));
    }
    if let Some(line) = origin(view) {
        let lines = wrapped(&line, ui.width().unwrap_or(usize::MAX));
        lines.iter().for_each(|line| ui.line(&ui.paint(Tone::Dim, line)));
    }
    ui.line("");
}

fn spent(view: &StateView<'_>) -> String {
    let mut text = String::new();
    if let (Some(read), Some(written)) = (view.totals.tokens_in, view.totals.tokens_out) {
        text.push_str(&format!("  {read} tokens in, {written} out"));
    }
    if let Some(cost) = view.totals.cost {
        text.push_str(&format!("  ${cost:.2}"));
    }
    text
}

fn origin(view: &StateView<'_>) -> Option<String> {
    let session = view.run.start.as_ref().map(|start| {
        let sandbox = if start.lacks_sandbox { ", without a sandbox" } else { "" };
        format!("session {}{sandbox}", start.session)
    });
    let plan = match &view.plan {
        Shown::Nothing | Shown::Several(_) => None,
        Shown::File(path) => Some(format!("plan {path}")),
        Shown::Frozen(frozen, Freshness::Same) => Some(format!("plan {}", frozen.path)),
        Shown::Frozen(frozen, Freshness::Changed) => {
            Some(format!("plan {} as the run uses it (the file has changed since)", frozen.path))
        }
    };
    let merged = view.merged_into.as_ref().map(|branch| format!("merged into {}", visible(branch.as_str())));
    let parts: Vec<String> = session.into_iter().chain(merged).chain(plan).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn show_phase(ui: &mut Ui, view: &StateView<'_>, node: &NodeProgress<'_>) {
    let (mark, tone) = phase_mark(ui, view, node);
    let state = if node.state == State::Pending && !has_work_below(view, node) {
        ""
    } else {
        PhaseState::of(view, node).as_str()
    };
    let indent = "  ".repeat(node.depth);
    let beside_name = indent.len() + 2 + node.id.as_str().len() + 1 + 2 + state.len();
    let room = ui.width().map(|width| width.saturating_sub(beside_name).max(NARROWEST_NAME));
    let whole_name = plain_line(node.name);
    let name = room.map_or_else(|| whole_name.clone(), |room| shortened(&whole_name, room));
    let id = ui.paint(Tone::Dim, node.id.as_str());
    let line = format!(
        "{indent}{} {id} {}  {}",
        ui.paint(tone, mark),
        ui.paint(Tone::Strong, &name),
        ui.paint(tone, state)
    );
    ui.line(line.trim_end());
}

/// The state of a phase. A phase is under way while any of its tasks is, so only its tasks tell whether something is
/// running.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseState {
    /// A run is working on a task of it.
    Running,
    /// Tasks of it are left.
    Started,
    /// A landing of a task of it is parked.
    Parked,
    WaitingToLand,
    /// The state as history has it.
    Recorded(State),
}

impl PhaseState {
    pub(super) fn of(view: &StateView<'_>, phase: &NodeProgress<'_>) -> Self {
        let is_parked = || tasks_below(view, phase).into_iter().any(|task| view.is_parked(task));
        match phase.state {
            _ if has_work_below(view, phase) => Self::Running,
            state if state.is_under_way() && has_left_below(view, phase) => Self::Started,
            State::Complete if is_parked() => Self::Parked,
            State::Implementing => Self::WaitingToLand,
            state => Self::Recorded(state),
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Started => "started",
            Self::Parked => "parked",
            Self::WaitingToLand => "waiting to land",
            Self::Recorded(state) => state.as_str(),
        }
    }
}

pub(super) fn phase_mark(ui: &Ui, view: &StateView<'_>, node: &NodeProgress<'_>) -> (&'static str, Tone) {
    let (fancy, plain, tone) = match PhaseState::of(view, node) {
        PhaseState::Running | PhaseState::Parked => ("▶", ">", Tone::Busy),
        PhaseState::Started | PhaseState::WaitingToLand | PhaseState::Recorded(State::Pending) => {
            ("·", ".", Tone::Dim)
        }
        PhaseState::Recorded(_) => return mark(ui, view, node),
    };
    (if ui.has_unicode() { fancy } else { plain }, tone)
}

/// The tasks of a phase, and of the phases in it.
fn tasks_below<'v>(view: &'v StateView<'_>, phase: &NodeProgress<'_>) -> Vec<&'v NodeProgress<'v>> {
    let children = phase.planned.iter().flat_map(|task| &task.children);
    let children = children.filter_map(|id| view.progress.find(id));
    children.flat_map(|child| if child.is_leaf() { vec![child] } else { tasks_below(view, child) }).collect()
}

fn has_work_below(view: &StateView<'_>, phase: &NodeProgress<'_>) -> bool {
    tasks_below(view, phase).into_iter().any(|task| view.work.has(task))
}

/// Whether a task of the phase is not done. If all are, the tests of the phase are left.
fn has_left_below(view: &StateView<'_>, phase: &NodeProgress<'_>) -> bool {
    tasks_below(view, phase).into_iter().any(|task| !task.state.is_done())
}

fn show_task(ui: &mut Ui, view: &StateView<'_>, node: &NodeProgress<'_>, columns: &Columns) {
    let (mark, tone) = mark(ui, view, node);
    let mark = ui.paint(tone, mark);
    let indent = "  ".repeat(node.depth);
    let name_room = columns.names.saturating_sub(indent.len());
    let name = plain_line(node.name);
    let name = if columns.width.is_some() { shortened(&name, name_room) } else { name };
    let padding = name_room.saturating_sub(name.width());
    let doing = view.work.doing(node);
    let word = word_beside(view, node, doing.as_ref());
    let (remark, reason) = doing.map_or_else(|| remark(view, node), |doing| (busy_words(&doing), None));
    let before_remark = indent.len() + 2 + columns.ids + 1 + name.width() + padding + 2 + STATE + 1;
    let space = RemarkSpace { width: columns.width, before: before_remark, indent: indent.len() + 4 };
    let placed = space.place(&remark, reason.as_deref());
    // Without a remark, no spaces follow: colours would keep them from being removed.
    let state_width = if placed.beside.is_empty() { 0 } else { STATE };
    let state = ui.paint(tone, &format!("{word:<state_width$}"));
    let rest = format!("{name}{:padding$}  {state} {}", "", placed.beside);
    let (ids, id) = (columns.ids, node.id.as_str());
    // An id that leaves no room for the other columns is on its own line, so that it can be copied.
    if id.len() > ids {
        ui.line(&format!("{indent}{mark} {id}"));
        ui.line(format!("{indent}  {:ids$} {rest}", "").trim_end());
    } else {
        ui.line(format!("{indent}{mark} {id:<ids$} {rest}").trim_end());
    }
    placed.below.iter().for_each(|line| ui.line(&format!("{indent}    {line}")));
}

/// The word for the state of a task.
fn word_beside(view: &StateView<'_>, node: &NodeProgress<'_>, doing: Option<&StepStatus>) -> &'static str {
    match (doing, node.state) {
        (Some(doing), _) => gerund(doing.step).unwrap_or("begun"),
        (None, State::Pending) if view.work.has(node) => "begun",
        (None, state) if view.work.has(node) => state.as_str(),
        (None, _) => node.word(),
    }
}

/// The space for the remark about a task.
struct RemarkSpace {
    /// The width of a line, if it is limited.
    width: Option<usize>,
    /// The width of the columns before the remark.
    before: usize,
    /// The indent of lines below.
    indent: usize,
}

/// A remark, beside the state and on the lines below.
struct PlacedRemark {
    beside: String,
    below: Vec<String>,
}

impl RemarkSpace {
    /// Places a remark with the reason of a failure. A reason of which only the start fits beside the state says nothing,
    /// so it is on a separate line.
    fn place(&self, remark: &str, reason: Option<&str>) -> PlacedRemark {
        let whole = reason.map_or_else(|| remark.to_owned(), |reason| format!("{remark}: {reason}"));
        let Some(width) = self.width else { return PlacedRemark { beside: whole, below: Vec::new() } };
        match reason {
            Some(reason) if self.before + whole.width() > width => {
                let mut placed = self.place_in(remark, width);
                placed.below.push(rest_of(reason, width, self.indent));
                placed
            }
            _ => self.place_in(&whole, width),
        }
    }

    /// Places a text in its column, or below the line if the column is too narrow for it.
    fn place_in(&self, text: &str, width: usize) -> PlacedRemark {
        let room = width.saturating_sub(self.before);
        if text.width() <= room || room >= NARROWEST_REMARK {
            return PlacedRemark { beside: shortened(text, room), below: Vec::new() };
        }
        PlacedRemark { beside: String::new(), below: vec![rest_of(text, width, self.indent)] }
    }
}

pub(super) fn mark(ui: &Ui, view: &StateView<'_>, node: &NodeProgress<'_>) -> (&'static str, Tone) {
    let (fancy, plain, tone) = match node.state {
        // It does not count as done yet.
        State::Complete if node.is_unlanded() || view.is_parked(node) => ("▶", ">", Tone::Busy),
        State::Complete => ("✔", "x", Tone::Good),
        State::Failed => ("✘", "!", Tone::Bad),
        State::Forked => ("⑂", "?", Tone::Bad),
        State::Reverted => ("↶", "<", Tone::Bad),
        State::Skipped => ("⊘", "-", Tone::Dim),
        State::Pending if view.work.has(node) => ("▶", ">", Tone::Busy),
        _ if node.resting_state() == RestingState::Ready => ("○", "o", Tone::Strong),
        State::Pending => ("·", ".", Tone::Dim),
        _ if node.history.and_then(|history| history.last()).is_some_and(Event::is_failure) => {
            ("▶", ">", Tone::Bad)
        }
        State::Implementing | State::Testing | State::Reviewing => ("▶", ">", Tone::Busy),
    };
    (if ui.has_unicode() { fancy } else { plain }, tone)
}

/// One commit of a task.
pub(super) fn show_event(ui: &mut Ui, event: &Event) {
    let tone = if event.is_failure() { Tone::Bad } else { Tone::Good };
    let attempt = event.attempt().map_or(String::new(), |attempt| format!("#{}", attempt.ordinal()));
    let words = words_of(event);
    let words = ui.width().map_or_else(|| words.clone(), |width| rest_of(&words, width, BEFORE_WORDS));
    let status = if words.is_empty() { 0 } else { 16 };
    let line = format!(
        "      {} {:>8} {attempt:<3} {} {words}",
        ui.paint(Tone::Busy, &event.commit.short()),
        clock::ago(event.time),
        ui.paint(tone, &format!("{:<status$}", status_word(event))),
    );
    ui.line(line.trim_end());
}

/// The status of a commit for people. An interrupted attempt is recorded like a failed one, but does not count.
fn status_word(event: &Event) -> String {
    if event.is_interruption() { "interrupted".to_owned() } else { event.status().to_string() }
}

/// What the subject of a commit adds to its status and the name of its task, which are shown elsewhere.
fn words_of(event: &Event) -> String {
    let subject = event.subject_for_people();
    let Some((_, more)) = subject.rsplit_once('"').filter(|_| event.has_name()) else { return subject };
    let more = more.trim();
    let more = more.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(more);
    more.strip_prefix("failed, ").unwrap_or(more).to_owned()
}

/// The part of `text` that fits.
fn rest_of(text: &str, width: usize, used: usize) -> String {
    shortened(text, width.saturating_sub(used))
}
