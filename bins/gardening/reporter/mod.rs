//! What a run says, and to whom: lines for a person, a live view on a terminal, or an event a line for a program.

mod events;
mod pushes;
mod story;
mod summary;
mod view;
mod words;

pub(crate) use story::RunOpening;

use std::collections::BTreeSet;

use arborist_core::{
    failure::{Explain, Failure},
    gardener::{GardenerError, Summary},
    pipeline::{PipelineError, PipelineEvent, PipelineEventKind},
    workspace::Pusher,
};

use self::{story::Story, summary::Account, view::LiveView};
use super::{
    GardeningArgs, OpenRun, Planned,
    event::{NoteLevel, RunEvent},
};
use crate::{
    clock,
    document::rfc3339,
    entry::Outcome,
    ui::{Live, Ui},
};

/// How a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// In lines, and live where the terminal can.
    Lines,
    /// Only what went wrong.
    Quiet,
    /// In events.
    Events,
}

/// Everything that a run says passes here, so that nothing tears what is shown and nothing else is on standard output.
pub(crate) struct Reporter<'u> {
    ui: &'u mut Ui,
    manner: Manner,
    story: Story,
    live: Option<Live<PipelineEvent>>,
    pusher: Option<Pusher>,
    /// The repositories whose last push failed.
    unpushed: BTreeSet<String>,
    /// What was advised for remotes.
    hinted: BTreeSet<&'static str>,
}

impl<'u> Reporter<'u> {
    pub(crate) fn new(args: &GardeningArgs, ui: &'u mut Ui) -> Self {
        let manner = match (args.json, args.quiet) {
            (true, _) => Manner::Events,
            (_, true) => Manner::Quiet,
            _ => Manner::Lines,
        };
        Self { manner, ..Self::plain(ui) }
    }

    /// For what is no run: lines only.
    pub(crate) fn plain(ui: &'u mut Ui) -> Self {
        Self {
            ui,
            manner: Manner::Lines,
            story: Story::default(),
            live: None,
            pusher: None,
            unpushed: BTreeSet::new(),
            hinted: BTreeSet::new(),
        }
    }

    /// Something that may be wrong.
    pub(crate) fn warn(&mut self, words: &str) {
        match self.manner {
            Manner::Events => self.note(NoteLevel::Warning, words),
            Manner::Lines | Manner::Quiet => self.ui.warn(words),
        }
    }

    /// What to try.
    pub(crate) fn hint(&mut self, words: &str) {
        match self.manner {
            Manner::Events => self.note(NoteLevel::Hint, words),
            Manner::Lines | Manner::Quiet => self.ui.hint(words),
        }
    }

    /// What is good to know.
    pub(crate) fn remark(&mut self, words: &str) {
        match self.manner {
            Manner::Events => self.note(NoteLevel::Note, words),
            Manner::Lines => self.ui.err(&format!("{words}\n")),
            Manner::Quiet => {}
        }
    }

    /// The answer, where nothing had to be run for it.
    pub(crate) fn answer(&mut self, words: &str) {
        match self.manner {
            Manner::Events => self.note(NoteLevel::Note, words),
            Manner::Lines | Manner::Quiet => self.ui.line(words),
        }
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, begun: RunOpening) {
        match self.manner {
            Manner::Events => self.event(&events::begins(&begun)),
            Manner::Lines => self.live = self.ui.watch(LiveView::new(&begun, self.ui.err_brush())),
            Manner::Quiet => {}
        }
        self.story.begin(begun);
    }

    /// Who is told by a run what happens.
    pub(crate) fn listener<'a>(&'a mut self) -> Box<dyn FnMut(PipelineEvent) + Send + 'a> {
        Box::new(move |event| self.tell(event))
    }

    /// Tells what has happened.
    pub(crate) fn tell(&mut self, event: PipelineEvent) {
        self.story.hear(&event);
        self.note_checkpoint(&event);
        let is_trouble = matches!(event.kind, PipelineEventKind::Recorded { why: Some(_), .. });
        match self.manner {
            Manner::Events => events::of(&event).iter().for_each(|event| self.event(event)),
            Manner::Quiet if !is_trouble => {}
            Manner::Lines | Manner::Quiet => {
                if let Some(line) = words::line(self.ui.err_brush(), &event) {
                    self.ui.err(&format!("{line}\n"));
                }
            }
        }
        if let Some(live) = &self.live {
            live.tell(event);
        }
        self.tell_pushes();
    }

    /// The run has ended: tells what it came to.
    pub(crate) fn end(
        mut self,
        opened: &OpenRun,
        planned: &Planned,
        ended: Result<Summary, GardenerError>,
    ) -> Outcome {
        self.live = None;
        if let Err(failure) = opened.close_session(&ended, self.story.share()) {
            self.warn(&format!("the session could not be written down: {}", failure.message));
        }
        let is_cut_short = self.close_pushes(opened, &ended);
        let summary = match ended {
            Ok(summary) => summary,
            Err(error) => {
                let so_far = Summary { raise: error.raise(), ..self.story.so_far() };
                let mut failure = Failure::from(error);
                if let Some(begun) = self.story.begun().filter(|_| opened.session_worktree().is_some()) {
                    name_session(&mut failure.hints, begun, opened.last_turn());
                }
                let _ = self.summarize(opened, planned, &so_far, Some(&failure.message));
                return Err(failure);
            }
        };
        self.summarize(opened, planned, &summary, None)?;
        Ok(if is_cut_short { PipelineError::stopped(&opened.cancel).exit() } else { summary.exit() })
    }

    fn summarize(
        &mut self,
        opened: &OpenRun,
        planned: &Planned,
        summary: &Summary,
        stopped: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(begun) = self.story.begun() else { return Ok(()) };
        let (tip, run) = opened.scan_now()?;
        let (story, plan) = (&self.story, &planned.plan);
        let session_worktree = opened.session_worktree();
        let (others, unpushed) = (opened.branches_of_others(planned), &self.unpushed);
        let document = Account {
            begun,
            story,
            plan,
            tip,
            run: &run,
            summary,
            stopped,
            session_worktree,
            others,
            unpushed,
        }
        .document();
        let is_well = summary.is_well();
        match self.manner {
            Manner::Events => self.event(&RunEvent::RunEnded { time: now(), summary: Box::new(document) }),
            Manner::Quiet if is_well => {}
            _ if stopped.is_some() && self.story.is_empty() => {}
            Manner::Lines | Manner::Quiet => {
                summary::lines(&document).iter().for_each(|line| self.ui.line(line));
            }
        }
        Ok(())
    }

    fn note(&mut self, level: NoteLevel, words: &str) {
        self.event(&events::note(level, words));
    }

    fn event(&mut self, event: &RunEvent) {
        if let Ok(line) = serde_json::to_string(event) {
            self.ui.line_now(&line);
        }
    }
}

/// The same command need not go on with a session that has a branch of its own; its name does.
fn name_session(hints: &mut [String], begun: &RunOpening, last: u32) {
    let session = &begun.session;
    let (verb, option) = match begun.offline {
        true => ("replay", format!(" --turn {last}")),
        false => ("resume", String::new()),
    };
    for hint in hints {
        let command = format!("run 'git arborist session {verb} {session}{option}'");
        *hint = hint.replace("run the same command again", &command).replace("<session>", session.as_str());
        *hint = hint.replace("<last>", &last.to_string());
    }
}

fn now() -> String {
    rfc3339(clock::now())
}
