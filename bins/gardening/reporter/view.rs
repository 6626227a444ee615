//! The live view: a row for each running task, and one for the whole run.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use arborist_core::{
    event::{EventKind, RunEvent, RunOpening},
    message::{Status, Step, one_line},
    name::TaskId,
    progress::RunTotals,
};
use unicode_width::UnicodeWidthStr;

use super::words;
use crate::{
    clock,
    ui::{LiveContent, StyledRow, TextStyle, Tone, cut},
};

/// How long a step that has ended is still shown: usually the next one starts at once.
const PAUSE: Duration = Duration::from_millis(500);
/// Below this width, only the essentials are shown.
const NARROW: usize = 60;
/// The maximal width of a task's id, and of its runner.
const WIDEST: usize = 16;
/// The maximal width of the bar.
const WIDEST_BAR: usize = 30;
/// How much of an agent's text is kept; no terminal is wider.
const LONGEST_WORDS: usize = 1000;

/// The state of the view.
#[derive(Debug)]
pub(super) struct LiveView {
    style: TextStyle,
    since: Instant,
    total: usize,
    done: usize,
    failed: usize,
    /// Landed tasks that wait for the user's checkout. They do not count as done.
    parked: HashSet<TaskId>,
    has_lanes: bool,
    max_attempts: u32,
    spent: RunTotals,
    running: Vec<Running>,
}

/// A running task.
#[derive(Debug)]
struct Running {
    task: TaskId,
    step: Step,
    attempt: u32,
    by: String,
    is_phase: bool,
    since: Instant,
    ended: Option<Instant>,
    words: String,
}

impl LiveView {
    pub(super) fn new(opening: &RunOpening, style: TextStyle) -> Self {
        Self {
            style,
            since: Instant::now(),
            total: opening.total,
            done: opening.done,
            failed: opening.failed,
            parked: HashSet::new(),
            has_lanes: opening.has_lanes,
            max_attempts: opening.max_attempts,
            spent: opening.spent,
            running: Vec::new(),
        }
    }

    fn begins(&mut self, running: Running) {
        match self.running.iter_mut().find(|known| known.task == running.task) {
            Some(known) => *known = running,
            None => self.running.push(running),
        }
    }

    fn says(&mut self, task: &TaskId, text: &str) {
        let last = text.lines().map(one_line).rfind(|line| !line.is_empty());
        if let (Some(running), Some(line)) = (self.running.iter_mut().find(|one| one.task == *task), last) {
            running.words = line.chars().take(LONGEST_WORDS).collect();
        }
    }

    fn recorded(&mut self, task: &TaskId, status: Status) {
        match status {
            Status::Complete if self.has_lanes => {}
            Status::Complete => self.done += 1,
            Status::Failed => self.failed += 1,
            Status::Reset => self.failed = self.failed.saturating_sub(1),
            // No step follows the tests of a phase.
            _ if self.running.iter().any(|running| running.task == *task && running.is_phase) => {}
            _ => {
                let running = self.running.iter_mut().find(|running| running.task == *task);
                running.into_iter().for_each(|running| running.ended = Some(Instant::now()));
                return;
            }
        }
        self.running.retain(|running| running.task != *task);
    }

    /// A landing that succeeds also brings those that were parked to the branch.
    fn landed(&mut self, task: TaskId, is_parked: bool) {
        self.parked.insert(task);
        if !is_parked {
            self.done += std::mem::take(&mut self.parked).len();
        }
    }

    fn shown(&self) -> Vec<&Running> {
        let is_shown = |running: &&Running| running.ended.is_none_or(|ended| ended.elapsed() < PAUSE);
        self.running.iter().filter(is_shown).collect()
    }

    /// The row for the whole run. The bar takes the width that the text leaves.
    fn whole(&self, columns: usize) -> StyledRow {
        let words = self.numbers();
        let width = columns.saturating_sub(words.width() + 2).min(WIDEST_BAR);
        let (full, empty) = if self.style.has_unicode() { ("━", "─") } else { ("#", "-") };
        let share = |count: usize| (width * count.min(self.total)).checked_div(self.total).unwrap_or(0);
        let (done, failed) = (share(self.done), share(self.failed).max(usize::from(self.failed > 0)));
        let failed = failed.min(width - done);
        let bar = StyledRow::default()
            .with(Tone::Good, format!(" {}", full.repeat(done)))
            .with(Tone::Bad, full.repeat(failed))
            .with(Tone::Dim, empty.repeat(width - done - failed));
        bar.followed_by(words)
    }

    fn numbers(&self) -> StyledRow {
        let mut row = StyledRow::default().with(None, format!(" {}/{} done", self.done, self.total));
        if self.failed > 0 {
            row = row.with(None, ", ").with(Tone::Bad, format!("{} failed", self.failed));
        }
        if let Some(cost) = self.spent.cost {
            row = row.with(None, format!(", ${cost:.2}"));
        }
        row.with(Tone::Dim, format!(" {}", clock::stopwatch(self.since.elapsed())))
    }

    fn task(&self, running: &Running, columns: usize, ids: usize) -> StyledRow {
        let mut row = StyledRow::default()
            .with(Tone::Strong, format!(" {}", padded(running.task.as_str(), ids)))
            .with(Tone::Busy, format!(" {:<9}", running.step.as_str()));
        if !running.is_phase {
            row = row.with(None, format!(" {}/{}", running.attempt, self.max_attempts));
        }
        if columns >= NARROW {
            row = row.with(None, format!(" {}", padded(&running.by, WIDEST.min(running.by.width()))));
        }
        row.with(Tone::Dim, format!(" {}", clock::stopwatch(running.since.elapsed())))
            .with(None, format!("  {}", running.words))
    }
}

fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    format!("{text}{}", " ".repeat(columns - text.width()))
}

impl LiveContent for LiveView {
    type News = RunEvent;

    fn handle_event(&mut self, event: RunEvent) {
        let Some(task) = event.task else { return };
        match event.kind {
            EventKind::StepBegins { attempt, step, by, is_phase, .. } => self.begins(Running {
                task,
                step,
                attempt: attempt.ordinal(),
                by: one_line(&by),
                is_phase,
                since: Instant::now(),
                ended: None,
                words: String::new(),
            }),
            EventKind::Merged { is_parked, .. } => self.landed(task, is_parked),
            EventKind::Said { words } => self.says(&task, &words),
            EventKind::Waits { seconds, chosen_by } => self.says(&task, &words::waiting(seconds, chosen_by)),
            EventKind::Recorded { status, spent, .. } => {
                self.spent = self.spent.plus(spent.totals);
                self.recorded(&task, status);
            }
            _ => {}
        }
    }

    fn rows(&self, columns: usize, most: usize) -> Vec<StyledRow> {
        let shown = self.shown();
        let room = most.saturating_sub(1);
        let listed = if shown.len() <= room { shown.len() } else { room.saturating_sub(1) };
        let ids = shown.iter().map(|running| running.task.as_str().width()).max().unwrap_or(0).min(WIDEST);
        let mut rows: Vec<StyledRow> =
            shown.iter().take(listed).map(|running| self.task(running, columns, ids)).collect();
        if listed < shown.len() && room > 0 {
            rows.push(StyledRow::default().with(Tone::Dim, format!(" and {} more", shown.len() - listed)));
        }
        rows.push(self.whole(columns));
        rows
    }
}
