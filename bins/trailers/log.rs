//! `trailers log`: the task commits of a history, by what their trailers say.

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository},
    history::Event,
    message::{MessageReading, Step, claims_to_be_ours, read},
    name::{SessionId, TaskId},
};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::source::{Range, require_commit};
use crate::{
    clock,
    document::{self, EventDocument},
    entry::Outcome,
    ui::{Tone, Ui, shortened},
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
    #[arg(long, value_name = "DATE", value_parser = date)]
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

/// The id of a task is not cut any further.
const SHORTEST_ID: usize = 8;

fn steps() -> impl TypedValueParser<Value = Step> {
    let names = Step::ALL.iter().map(|step| step.as_str());
    PossibleValuesParser::new(names).try_map(|name| Step::of_word(&name).ok_or("no such step"))
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

/// Words of dates, as git's `date.c` knows them. git takes any other word for now, and 'never' for 1970.
const WORDS_OF_DATES: &str = "january february march april may june july august september october november december \
    sunday monday tuesday wednesday thursday friday saturday yesterday today noon midnight tea now last \
    seconds minutes hours days weeks months years";

/// Refuses a text that git would not read as a date.
fn date(text: &str) -> Result<String, String> {
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() >= 3);
    let is_known = |word: &str| WORDS_OF_DATES.split_whitespace().any(|known| known.starts_with(word));
    match text.contains(|c: char| c.is_ascii_digit()) || words.any(is_known) {
        true => Ok(text.to_owned()),
        false => Err("it must be a date, such as 2026-01-31, yesterday or '2 weeks ago'".to_owned()),
    }
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
        if !claims_to_be_ours(commit.message()) {
            continue;
        }
        let commit = repository.exact(commit)?;
        if let MessageReading::WellFormed(message) = read(commit.message()) {
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
    let most = |text: &dyn Fn(&Event) -> String, least: usize| {
        events.iter().map(|event| text(event).width()).max().unwrap_or(0).max(least)
    };
    let (hashes, ages) = (most(&|event| event.commit.short(), 0), most(&|event| clock::age(event.time), 4));
    let (statuses, attempts) = (most(&|event| event.status().to_string(), 0), most(&attempt_of, 3));
    let spaces = 5;
    let others = hashes + ages + statuses + attempts + spaces;
    let ids = most(&|event| id_of(event).to_owned(), 0);
    // The text of a commit is cut before the id of its task.
    let ids = ui.width().map_or(ids, |width| ids.min(width.saturating_sub(others).max(SHORTEST_ID)));
    let room = ui.width().map_or(usize::MAX, |width| width.saturating_sub(others + ids));
    for event in events {
        let tone = if event.is_failure() { Tone::Bad } else { Tone::Good };
        let commit = ui.paint(Tone::Busy, &event.commit.short());
        let status = ui.paint(tone, &format!("{:<statuses$}", event.status()));
        let (id, age) = (shortened(id_of(event), ids), clock::age(event.time));
        let (attempt, text) = (attempt_of(event), shortened(&words_of(event), room));
        let line = format!("{commit} {age:>ages$} {id:<ids$} {status} {attempt:<attempts$} {text}");
        ui.line(line.trim_end());
    }
}

fn attempt_of(event: &Event) -> String {
    event.attempt().map_or(String::new(), |attempt| format!("#{}", attempt.ordinal()))
}

/// The subject without the words that repeat the status, which has its own column.
fn words_of(event: &Event) -> String {
    let subject = event.subject_for_people();
    let name = subject.find('"').filter(|_| event.has_name());
    name.map_or_else(|| subject.clone(), |at| subject[at..].to_owned())
}

fn id_of(event: &Event) -> &str {
    event.task().map_or("-", TaskId::as_str)
}
