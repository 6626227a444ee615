//! `git arborist session turn`: another driver commits and records an agent's turn.

use std::path::PathBuf;

use arborist_core::{
    agent::provider_of,
    failure::{Exit, Failure},
    git::{Repository, TreeChange},
    message::Body,
    name::{Attempt, TaskId},
    pipeline::describe_changes,
    run::dollars,
    session::{TokenCount, Turn, TurnCommit, value_of},
};
use clap::Args;

use super::{
    commit_turn::{Amid, TurnScope, commit_turn, lock},
    document::TurnDocument,
    external_driver::{SessionArg, session_writer},
    open::{JsonArgs, open},
    paths::named_paths,
};
use crate::{clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct TurnArgs {
    #[command(flatten)]
    session: SessionArg,
    #[command(flatten)]
    reported: ReportedTurn,
    /// The expected number of the turn; another number is refused
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u32>)]
    turn: Option<u32>,
    /// Commit only these paths, from a file or - for standard input, one per line or separated by NUL
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
}

/// The description of a turn.
#[derive(Debug, Args)]
pub(super) struct ReportedTurn {
    /// The task
    #[arg(long, value_name = "TASK")]
    pub(super) node: TaskId,
    /// The model
    #[arg(long, value_name = "MODEL")]
    pub(super) model: String,
    /// The provider of the model
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The agent program
    #[arg(long, value_name = "NAME")]
    pub(super) runner: Option<String>,
    /// What the turn did; the first line becomes the subject
    #[arg(short, long, value_name = "WORDS")]
    pub(super) message: Option<String>,
    /// Input tokens
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u64>)]
    pub(super) tokens_in: Option<u64>,
    /// Output tokens
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::whole::<u64>)]
    pub(super) tokens_out: Option<u64>,
    /// Cost in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(super) cost: Option<f64>,
    /// The agent's own session id, to continue it
    #[arg(long, value_name = "ID")]
    pub(super) agent_session: Option<String>,
}

pub(super) fn run(args: &TurnArgs, ui: &mut Ui) -> Outcome {
    let lock = lock(&Repository::discover()?)?;
    let opened = open(ui)?;
    let session_writer = session_writer(&opened, &args.session)?;
    let paths = args.files_from.as_deref().map(|file| named_paths(&opened.repository, file)).transpose()?;
    if let Some(number) = args.turn {
        let next = session_writer.newest().record.totals.turns.saturating_add(1);
        if number != next {
            let words =
                format!("the next turn of session '{}' is {next}, not {number}", session_writer.session());
            return Err(Failure::new(Exit::No, words).hint("leave --turn out to take the next number"));
        }
    }
    let meant = paths.map_or(TurnScope::Since, TurnScope::Paths);
    commit_turn(&lock, &opened.repository, &session_writer, &args.reported, &meant, Amid::Refused)?;
    let turn = session_writer.newest();
    if let (true, Some(reported)) = (args.json.json, turn.record.turn()) {
        let (session, record) = (session_writer.session().to_string(), turn.commit.to_string());
        return document::print(
            ui,
            &TurnDocument {
                session,
                record,
                turn: reported.clone(),
                patch: None,
                other_patches: Vec::new(),
                transcript: None,
            },
        );
    }
    let commit = turn.record.turn().and_then(|turn| turn.commit);
    ui.line(&commit.map_or_else(|| "-".to_owned(), |commit| commit.to_string()));
    Ok(Exit::Done)
}

fn provider(reported: &ReportedTurn) -> Option<String> {
    let program = reported.runner.as_deref().unwrap_or_default();
    reported.provider.clone().or_else(|| provider_of(program, Some(&reported.model)))
}

fn words_of(reported: &ReportedTurn, changes: &[TreeChange]) -> (String, String) {
    let message = reported.message.as_deref().unwrap_or_default();
    let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
    let subject = match subject.trim() {
        "" if changes.is_empty() => String::new(),
        "" => describe_changes(changes),
        subject => subject.to_owned(),
    };
    (subject, rest.trim().to_owned())
}

/// The commit of a turn.
pub(super) fn commit_of(
    reported: &ReportedTurn,
    pipeline: &str,
    changes: &[TreeChange],
) -> arborist_core::record::TaskEvent<'static> {
    let (subject, rest) = words_of(reported, changes);
    let provider = provider(reported);
    let commit = TurnCommit {
        node: &reported.node,
        attempt: Attempt(0),
        model: Some(&reported.model),
        provider: provider.as_deref(),
        pipeline,
        subject: &subject,
        body: if rest.is_empty() { Body::default() } else { Body::new("", &rest) },
    };
    commit.entry()
}

pub(super) fn turn_of(reported: &ReportedTurn, changes: &[TreeChange]) -> Turn {
    let tokens = (reported.tokens_in.is_some() || reported.tokens_out.is_some()).then(|| TokenCount {
        read: reported.tokens_in.unwrap_or(0),
        written: reported.tokens_out.unwrap_or(0),
    });
    let (subject, rest) = words_of(reported, changes);
    let message = format!("{subject}\n\n{rest}").trim().to_owned();
    let now = clock::now();
    Turn {
        number: 0,
        node: reported.node.clone(),
        step: "implement".into(),
        attempt: Attempt(0),
        model: value_of(Some(&reported.model)),
        provider: value_of(provider(reported).as_deref()),
        runner: value_of(reported.runner.as_deref()),
        files: changes.iter().map(TreeChange::shown).collect(),
        tools: Vec::new(),
        tokens,
        cost: reported.cost,
        commit: None,
        others: Vec::new(),
        not_committed: None,
        interrupted: false,
        message: (!message.is_empty()).then_some(message),
        said: None,
        agent_session: reported.agent_session.clone(),
        started: now,
        ended: now,
    }
}
