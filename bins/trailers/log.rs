//! `trailers log`: the task commits of a history, by what their trailers say.

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository},
    history::Event,
    message::{MessageReading, Step, claims, read},
    name::{SessionId, TaskId},
};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::source::{Range, require_commit};
use crate::{
    clock,
    document::{self, EventDocument},
    entry::Outcome,
    ui::{Tone, Ui},
};

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// A revision or a range
    #[arg(value_name = "REVISION", default_value = "HEAD")]
    revision: String,
    /// Only this task
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Only this step
    #[arg(long, value_name = "STEP", value_parser = steps())]
    step: Option<Step>,
    /// Only this result
    #[arg(long, value_name = "RESULT", value_parser = ["pass", "fail", "approved", "rejected"])]
    result: Option<String>,
    /// Only commits after this date, as git understands dates
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Only this session
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// The largest number of commits
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = crate::numbers::whole::<usize>)]
    max_count: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `trailers log --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LogDocument {
    /// The task commits, newest first.
    commits: Vec<EventDocument>,
}

fn steps() -> impl TypedValueParser<Value = Step> {
    let names = Step::ALL.iter().map(|step| step.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse().map_err(|()| "no such step"))
}

pub(super) fn run(args: &LogArgs, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    ui.configure(&Config::load(&repository)?);
    let events = find(args, &repository)?;
    if args.json {
        let document = LogDocument { commits: events.iter().map(EventDocument::from).collect() };
        return document::print(ui, &document);
    }
    show(ui, &events);
    Ok(Exit::Done)
}

fn find(args: &LogArgs, repository: &Repository) -> Result<Vec<Event>, Failure> {
    let mut revisions = Vec::new();
    revisions.extend(args.since.as_ref().map(|date| format!("--since={date}")));
    revisions.push(revision(repository, &args.revision)?);
    let mut events = Vec::new();
    if args.max_count == Some(0) {
        return Ok(events);
    }
    for commit in repository.stream_commits(&revisions)? {
        let commit = commit?;
        if !claims(commit.message()) {
            continue;
        }
        let commit = repository.exact(commit)?;
        if let MessageReading::Sound(message) = read(commit.message()) {
            let event = Event::new(&commit, *message);
            if args.wants(&event) {
                events.push(event);
            }
        }
        if args.max_count.is_some_and(|most| events.len() >= most) {
            break;
        }
    }
    Ok(events)
}

fn revision(repository: &Repository, named: &str) -> Result<String, Failure> {
    match Range::find(repository, named)? {
        Some(range) => Ok(range.revision),
        None => Ok(require_commit(repository, named)?.to_string()),
    }
}

impl LogArgs {
    fn wants(&self, event: &Event) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none_or(|wanted| Some(wanted) == found)
        }
        is(self.task.as_ref(), event.task())
            && is(self.step.as_ref(), Some(&event.status().step()))
            && is(self.session.as_ref(), event.session().as_ref())
            && self.result.as_deref().is_none_or(|wanted| event.outcome() == Some(wanted))
    }
}

fn show(ui: &mut Ui, events: &[Event]) {
    let width = |text: fn(&Event) -> String| events.iter().map(|event| text(event).len()).max().unwrap_or(0);
    let (tasks, statuses) =
        (width(|event| id_of(event).to_owned()), width(|event| event.status().to_string()));
    for event in events {
        let tone = if event.is_failure() { Tone::Bad } else { Tone::Good };
        let commit = ui.paint(Tone::Busy, &event.commit.short());
        let status = ui.paint(tone, &format!("{:<statuses$}", event.status()));
        let attempt = event.attempt().map_or(String::new(), |attempt| format!("#{}", attempt.ordinal()));
        let age = clock::age(event.time);
        let text = event.subject_for_people();
        ui.line(&format!("{commit} {age:>4} {:<tasks$} {status} {attempt:<3} {text}", id_of(event)));
    }
}

fn id_of(event: &Event) -> &str {
    event.task().map_or("-", TaskId::as_str)
}
