//! Reports a run: as lines for a person, as a live view on a terminal, or as events for a program.

mod summary;
mod task_lines;
mod view;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    event::{EventKind, NoteLevel, RunEvent},
    message::Status,
    name::TaskId,
    run::{EndedRun, RunListener},
};

use self::{task_lines::TaskLines, view::LiveView};
use super::GardeningArgs;
use crate::{
    clock,
    document::rfc3339,
    entry::Outcome,
    ui::{Live, Ui, wrapped},
};

/// How a run is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// One line for each finished task and each failed attempt, with a live view if the terminal supports it.
    Lines,
    /// Like [`Self::Lines`], with a line for each step and each commit too.
    Verbose,
    /// Only problems.
    Quiet,
    /// As JSON events.
    Events,
}

/// All output of a run goes through this type, so that lines do not tear the live view and standard output has nothing
/// else.
pub(crate) struct Reporter<'u> {
    ui: &'u mut Ui,
    manner: Manner,
    live: Option<Live<RunEvent>>,
    task_lines: TaskLines,
    /// Hints about remotes that were printed already.
    hinted: BTreeSet<String>,
    /// The last note about each task: a landing that is tried again may fail for the same reason.
    noted: BTreeMap<TaskId, String>,
}

impl<'u> Reporter<'u> {
    pub(crate) fn new(args: &GardeningArgs, ui: &'u mut Ui) -> Self {
        let manner = match (args.json, args.quiet) {
            (true, _) => Manner::Events,
            (_, true) => Manner::Quiet,
            _ if args.verbose => Manner::Verbose,
            _ => Manner::Lines,
        };
        Self { manner, ..Self::plain(ui) }
    }

    /// A reporter for something other than a run: lines only.
    pub(crate) fn plain(ui: &'u mut Ui) -> Self {
        Self {
            ui,
            manner: Manner::Lines,
            live: None,
            task_lines: TaskLines::default(),
            hinted: BTreeSet::new(),
            noted: BTreeMap::new(),
        }
    }

    /// Prints an answer for which nothing had to be run.
    pub(crate) fn answer(&mut self, words: &str) {
        match self.manner {
            Manner::Events => self.print(&RunEvent::of_run(EventKind::note(words))),
            Manner::Lines | Manner::Verbose | Manner::Quiet => self.ui.line(words),
        }
    }

    /// Reports the end of the run.
    pub(crate) fn end(mut self, ended: EndedRun) -> Outcome {
        let is_stopped_early = ended.account.stopped.is_some() && !ended.has_commits;
        match self.manner {
            Manner::Events => {
                let summary = Box::new(ended.account);
                self.print(&RunEvent::of_run(EventKind::RunEnded { summary }));
            }
            Manner::Quiet if ended.is_well => {}
            _ if is_stopped_early => {}
            Manner::Lines | Manner::Verbose | Manner::Quiet => {
                summary::lines(&ended.account, self.ui.width()).iter().for_each(|line| self.ui.line(line));
            }
        }
        ended.result
    }

    fn print(&mut self, event: &RunEvent) {
        if let Some(line) = event.line(&rfc3339(clock::now())) {
            self.ui.line_now(&line);
        }
    }

    /// A line in several ones, if it is wider than the terminal. Lines with their own breaks and commands stay as they are.
    fn folded(&self, line: String) -> String {
        match self.ui.err_width() {
            Some(width) if !line.contains('\n') && !line.starts_with(' ') && !line.contains(": git ") => {
                wrapped(&line, width.saturating_sub(2)).join("\n  ")
            }
            _ => line,
        }
    }

    /// Prints an event for a person. The quiet mode prints only failures.
    fn say(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::Note { level: NoteLevel::Warning | NoteLevel::Hint, is_failure: false, .. }
                if self.manner == Manner::Quiet => {}
            EventKind::Note { level: NoteLevel::Warning, words, .. } => {
                self.ui.warn(&words::with_task(event.task.as_ref(), words));
            }
            EventKind::Note { level: NoteLevel::Hint, words, .. } => self.ui.hint(words),
            EventKind::PushFailed { repo, why } => {
                self.ui.warn(&format!("'{repo}' was not pushed: {why}"));
            }
            kind => {
                // A task for which no file had to be changed has not failed.
                let is_trouble = matches!(kind, EventKind::Recorded { why: Some(_), status, .. } if *status != Status::ImplementPass);
                let style = self.ui.err_style();
                let line = match self.manner {
                    Manner::Verbose => words::line(style, event),
                    _ => self.task_lines.line(style, event),
                };
                if let Some(line) = line.filter(|_| self.manner != Manner::Quiet || is_trouble) {
                    self.ui.err(&format!("{}\n", self.folded(line)));
                }
            }
        }
    }
}

impl RunListener for Reporter<'_> {
    fn report(&mut self, event: RunEvent) {
        // Several remotes may cause the same hint.
        if let EventKind::Note { words, once: true, .. } = &event.kind
            && !self.hinted.insert(words.clone())
        {
            return;
        }
        if let (EventKind::Note { words, .. }, Some(task)) = (&event.kind, &event.task)
            && self.manner != Manner::Events
            && self.noted.insert(task.clone(), words.clone()).as_ref() == Some(words)
        {
            return;
        }
        match self.manner {
            Manner::Events => {
                self.print(&event);
                event.end_of_task().iter().for_each(|end| self.print(end));
            }
            Manner::Lines | Manner::Verbose | Manner::Quiet => self.say(&event),
        }
        match &event.kind {
            EventKind::RunBegins(opening) if matches!(self.manner, Manner::Lines | Manner::Verbose) => {
                self.live = self.ui.watch(LiveView::new(opening, self.ui.err_style()));
            }
            EventKind::RunEnds => self.live = None,
            _ => self.live.iter().for_each(|live| live.send(event.clone())),
        }
    }
}
