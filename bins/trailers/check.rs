//! `trailers check`: what is wrong with messages that claim to be ours.

use std::path::PathBuf;

use arborist_core::{
    failure::{Exit, Failure},
    message::{self, Fault, MessageReading, plain_line, read_to_check},
};
use clap::Args;

use super::source::MessageSource;
use crate::{
    entry::Outcome,
    hooks::fault::more_than,
    ui::{Tone, Ui},
};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A range such as main..HEAD, a revision, a file, or - for standard input (the default)
    #[arg(value_name = "RANGE|REVISION|FILE")]
    source: Option<String>,
    /// Read the message from this file, whatever its name
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    file: Option<PathBuf>,
    /// Print nothing if all messages are valid
    #[arg(short, long)]
    quiet: bool,
}

/// How many faults of one message are shown.
const MAX_FAULTS: usize = 8;

/// The number of messages.
#[derive(Default)]
struct Tally {
    seen: usize,
    sound: usize,
    unsound: usize,
}

pub(super) fn run(args: &CheckArgs, ui: &mut Ui) -> Outcome {
    let mut tally = Tally::default();
    match MessageSource::resolve(args.source.as_deref(), args.file.as_deref())? {
        MessageSource::Text { label, message } if message.trim_ascii().is_empty() => {
            return Err(Failure::new(Exit::Usage, format!("{label} is empty: there is no message to check"))
                .hint("name a commit or a range to check, for example: git arborist trailers check HEAD"));
        }
        MessageSource::Text { label, message } => tally.check(ui, &label, &message),
        MessageSource::Commit(commit) => tally.check(ui, &commit.id.short(), commit.message()),
        MessageSource::Range { repository, range } => {
            for commit in repository.stream_commits(&[range.revision])? {
                let commit = commit?;
                let commit = if message::claims_to_be_ours(commit.message()) {
                    repository.exact(commit)?
                } else {
                    commit
                };
                tally.check(ui, &commit.id.short(), commit.message());
            }
        }
    }
    if tally.unsound > 0 || !args.quiet {
        ui.err(&format!("{}\n", tally.summary()));
    }
    Ok(if tally.unsound > 0 { Exit::No } else { Exit::Done })
}

impl Tally {
    fn check(&mut self, ui: &mut Ui, label: &str, text: &[u8]) {
        self.seen += 1;
        match read_to_check(text) {
            MessageReading::Foreign => {}
            MessageReading::WellFormed(_) => self.sound += 1,
            MessageReading::Malformed(faults) => {
                self.unsound += 1;
                show(ui, label, text, &faults);
            }
        }
    }

    fn summary(&self) -> String {
        let Self { seen, sound, unsound } = self;
        let messages = if *seen == 1 { "message" } else { "messages" };
        let commits = |count: usize| {
            if count == 1 { "1 task commit".to_owned() } else { format!("{count} task commits") }
        };
        match unsound {
            0 => format!("{seen} {messages} checked, {} among them, all valid", commits(*sound)),
            1 => format!("{seen} {messages} checked, {} valid, 1 not valid", commits(*sound)),
            _ => format!("{seen} {messages} checked, {} valid, {unsound} not valid", commits(*sound)),
        }
    }
}

fn show(ui: &mut Ui, label: &str, text: &[u8], faults: &[Fault]) {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.split('\n').collect();
    for fault in faults.iter().take(MAX_FAULTS) {
        let line = lines.get(fault.line - 1).copied().unwrap_or_default();
        ui.line(&format!("{label}:{}: {}", fault.line, ui.paint(Tone::Bad, &fault.what)));
        ui.line(&format!("    | {}", short(line)));
        ui.line(&format!("    = {}", fault.fix.replace('\n', "\n    ")));
    }
    if let Some(rest) = more_than(MAX_FAULTS, faults) {
        ui.line(&format!("{label}: and {rest}"));
    }
}

fn short(line: &str) -> String {
    plain_line(line).chars().take(100).collect()
}
