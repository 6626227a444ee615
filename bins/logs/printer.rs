//! Prints one log as text. It can be called again while the log grows.

use std::{
    fs::File,
    io::{self, Read},
};

use arborist_core::{
    message::{Step, visible},
    record::{CallHeading, StepLog},
    safe_files,
    session::{ReadableStream, Speaker, Utterance},
};

use crate::ui::{Tone, Ui};

/// The longest unfinished line that is kept, in bytes. Longer ones are printed in parts.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// A log that is being printed.
pub(super) struct LogPrinter {
    file: File,
    part: Part,
    /// An unfinished line.
    rest: Vec<u8>,
    /// Whether the next line is the first one, which is a heading.
    is_at_heading: bool,
    /// Whether programs of agents wrote it.
    is_of_agent: bool,
}

/// The part of a log that is being read.
enum Part {
    /// Output of a test, or of an older version without headings.
    Plain,
    Prompt,
    Output(Box<ReadableStream>),
}

impl LogPrinter {
    /// Prints the title of a log. `name` is its path as the user knows it.
    pub(super) fn begin(log: &StepLog, name: &str, ui: &mut Ui) -> io::Result<Self> {
        let attempt = log.attempt.map(|attempt| format!(", attempt {}", attempt.ordinal()));
        let attempt = attempt.unwrap_or_default();
        let title = format!("=== {} {}{attempt}: {}", log.task, log.step.as_str(), visible(name));
        ui.line(&ui.paint(Tone::Strong, &title));
        Ok(Self {
            file: safe_files::open(&log.path)?,
            part: Part::Plain,
            rest: Vec::new(),
            is_at_heading: log.attempt.is_some(),
            is_of_agent: log.step != Step::Test,
        })
    }

    /// Prints everything that was written since the last call.
    pub(super) fn print_more(&mut self, ui: &mut Ui) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = self.file.read(&mut buffer)?;
            if count == 0 || ui.is_closed() {
                return Ok(());
            }
            for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                self.rest.extend_from_slice(piece);
                if piece.ends_with(b"\n") || self.rest.len() > LONGEST_LINE {
                    self.print_line(ui);
                }
            }
        }
    }

    /// Prints the last line if it has no line end.
    pub(super) fn finish(mut self, ui: &mut Ui) {
        if !self.rest.is_empty() {
            self.print_line(ui);
        }
        self.end_part(ui);
    }

    fn print_line(&mut self, ui: &mut Ui) {
        let bytes = std::mem::take(&mut self.rest);
        if std::mem::take(&mut self.is_at_heading) {
            return;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(heading) = CallHeading::parse(line).filter(|_| self.is_of_agent) {
            self.end_part(ui);
            ui.line(&ui.paint(Tone::Strong, &visible(line)));
            self.part = match heading {
                CallHeading::Prompt { .. } => Part::Prompt,
                CallHeading::Output { events, .. } => Part::Output(Box::new(ReadableStream::new(events))),
            };
            return;
        }
        match &mut self.part {
            Part::Plain => ui.line(&visible(line)),
            Part::Prompt => ui.line(&ui.paint(Tone::Dim, &visible(line))),
            Part::Output(stream) => {
                stream.feed(&bytes).iter().for_each(|utterance| print_utterance(ui, utterance));
            }
        }
    }

    fn end_part(&mut self, ui: &mut Ui) {
        if let Part::Output(stream) = &mut self.part {
            stream.finish().iter().for_each(|utterance| print_utterance(ui, utterance));
        }
        self.part = Part::Plain;
    }
}

/// Prints what somebody said: prompts quoted, calls of tools with a star, their answers indented.
pub(crate) fn print_utterance(ui: &mut Ui, utterance: &Utterance) {
    let (before, tone) = match utterance.speaker {
        Speaker::Prompt => ("> ", Some(Tone::Dim)),
        Speaker::Agent => ("", None),
        Speaker::Call => ("* ", Some(Tone::Busy)),
        Speaker::Tool => ("    ", Some(Tone::Dim)),
        Speaker::Stream => ("", Some(Tone::Dim)),
    };
    for line in utterance.text.lines() {
        let line = format!("{before}{}", visible(line));
        let line = line.trim_end();
        ui.line(&tone.map_or_else(|| line.to_owned(), |tone| ui.paint(tone, line)));
    }
}
