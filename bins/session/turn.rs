//! `git arborist session turn`: another driver commits what an agent did in a turn, and records it.

use std::{collections::HashSet, path::PathBuf};

use arborist_core::{
    agent::provider_of,
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{Change, Repository},
    message::Body,
    name::{Attempt, Oid, TaskId},
    pipeline::describe_changes,
    process::FileLock,
    record::{Delivery, Recorder, settle},
    session::{Chronicle, TokenCount, Turn, TurnCommit, TurnDraft, value_of},
};
use clap::Args;

use super::{
    document::TurnDocument,
    open::{JsonArgs, open},
    paths::{is_below, named_paths},
    plumbing::{SessionArg, chronicle, place},
};
use crate::{clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct TurnArgs {
    #[command(flatten)]
    session: SessionArg,
    #[command(flatten)]
    told: Told,
    /// The number that the turn must have; it is refused if the session has another
    #[arg(long, value_name = "NUMBER")]
    turn: Option<u32>,
    /// Commit only these paths: read from a file, or from standard input with -, one on each line or separated by NUL
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArgs,
}

/// What a driver tells of a turn.
#[derive(Debug, Args)]
pub(super) struct Told {
    /// The task
    #[arg(long, value_name = "TASK")]
    pub(super) node: TaskId,
    /// The model
    #[arg(long, value_name = "MODEL")]
    pub(super) model: String,
    /// Who serves the model
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The agent program
    #[arg(long, value_name = "NAME")]
    pub(super) runner: Option<String>,
    /// What the turn did; the first line becomes the subject
    #[arg(short, long, value_name = "WORDS")]
    pub(super) message: Option<String>,
    /// Tokens that the agent read
    #[arg(long, value_name = "NUMBER")]
    pub(super) tokens_in: Option<u64>,
    /// Tokens that the agent wrote
    #[arg(long, value_name = "NUMBER")]
    pub(super) tokens_out: Option<u64>,
    /// What it cost, in US dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(super) cost: Option<f64>,
    /// The agent's own session, by which it can be continued
    #[arg(long, value_name = "ID")]
    pub(super) agent_session: Option<String>,
}

pub(super) fn run(args: &TurnArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let chronicle = chronicle(&opened, &args.session)?;
    let paths = args.files_from.as_deref().map(|file| named_paths(&opened.repository, file)).transpose()?;
    if let Some(number) = args.turn {
        let next = chronicle.newest().record.totals.turns.saturating_add(1);
        if number != next {
            let words = format!("the next turn of session '{}' is {next}, not {number}", chronicle.session());
            return Err(Failure::new(Exit::No, words).hint("leave --turn out to take the next number"));
        }
    }
    let meant = paths.map_or(Meant::All, Meant::Paths);
    keep(&opened.repository, &chronicle, &args.told, &meant)?;
    let turn = chronicle.newest();
    if let (true, Some(told)) = (args.json.json, turn.record.turn()) {
        let (session, record) = (chronicle.session().to_string(), turn.commit.to_string());
        return document::print(ui, &TurnDocument { session, record, turn: told.clone(), patch: None });
    }
    let commit = turn.record.turn().and_then(|turn| turn.commit);
    ui.line(&commit.map_or_else(|| "-".to_owned(), |commit| commit.to_string()));
    Ok(Exit::Done)
}

/// What of a worktree belongs to a turn.
pub(super) enum Meant {
    /// All that is not committed.
    All,
    /// What is at these paths or below them.
    Paths(Vec<PathBuf>),
    /// What has changed since the worktree was this tree; not what was changed before that already.
    Since(Oid),
}

impl Meant {
    /// What of `snapshot` is to be committed on top of `branch`, and whether that is all that differs.
    fn choose(
        &self,
        repository: &Repository,
        branch: Oid,
        snapshot: Oid,
    ) -> Result<(Vec<Change>, bool), Failure> {
        let all = repository.changes(branch, snapshot)?;
        let count = all.len();
        let earlier: HashSet<Vec<u8>> = match self {
            Self::Since(before) => {
                repository.changes(branch, *before)?.into_iter().map(|change| change.path).collect()
            }
            _ => HashSet::new(),
        };
        let is_meant = |change: &Change| {
            !change.is_gitlink()
                && match self {
                    Self::All => true,
                    Self::Paths(paths) => is_below(change, paths),
                    Self::Since(_) => !earlier.contains(&change.path),
                }
        };
        let chosen: Vec<Change> = all.into_iter().filter(is_meant).collect();
        let is_all = chosen.len() == count;
        Ok((chosen, is_all))
    }
}

/// Commits what belongs to a turn, and records it. Gives what lay in the worktree.
pub(super) fn keep(
    repository: &Repository,
    chronicle: &Chronicle,
    told: &Told,
    meant: &Meant,
) -> Result<Oid, Failure> {
    let (branch, head) = place(repository)?;
    let locked = FileLock::try_take(&repository.run_lock(&branch), "git arborist session turn");
    let _lock = locked.map_err(|source| GardenerError::Locked { branch: branch.clone(), source })?;
    settle(repository, &branch, head)?;
    let mut recorder = Recorder::new(repository, branch, chronicle.session().clone(), head)?;
    let snapshot = repository.snapshot()?;
    let (changes, is_all) = meant.choose(repository, recorder.tree(), snapshot)?;
    let tree = match is_all {
        _ if changes.is_empty() => recorder.tree(),
        true => snapshot,
        false => repository.tree_with(recorder.tree(), &changes)?,
    };
    let delivery = Delivery { tree, tip: head, changes: &changes };
    let pipeline = chronicle.newest().record.context.pipeline;
    let draft = |_| TurnDraft {
        entry: (!changes.is_empty()).then(|| commit_of(told, &pipeline, &changes).entry()),
        turn: turn_of(told, &changes),
        transcript: None,
    };
    chronicle.deliver_turn(&mut recorder, delivery, clock::now(), draft)?;
    Ok(snapshot)
}

fn provider(told: &Told) -> Option<String> {
    let program = told.runner.as_deref().unwrap_or_default();
    told.provider.clone().or_else(|| provider_of(program, Some(&told.model)))
}

fn words_of(told: &Told, changes: &[Change]) -> (String, String) {
    let message = told.message.as_deref().unwrap_or_default();
    let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
    let subject = match subject.trim() {
        "" => describe_changes(changes),
        subject => subject.to_owned(),
    };
    (subject, rest.trim().to_owned())
}

fn commit_of<'a>(told: &'a Told, pipeline: &'a str, changes: &[Change]) -> Worded<'a> {
    let (subject, rest) = words_of(told, changes);
    Worded { told, pipeline, subject, rest, provider: provider(told) }
}

/// A commit's words, held while the commit is made of them.
struct Worded<'a> {
    told: &'a Told,
    pipeline: &'a str,
    subject: String,
    rest: String,
    provider: Option<String>,
}

impl Worded<'_> {
    fn entry(&self) -> arborist_core::record::Entry<'static> {
        let body = if self.rest.is_empty() { Body::default() } else { Body::new("", &self.rest) };
        let commit = TurnCommit {
            node: &self.told.node,
            attempt: Attempt(0),
            model: Some(&self.told.model),
            provider: self.provider.as_deref(),
            pipeline: self.pipeline,
            subject: &self.subject,
            body,
        };
        commit.entry()
    }
}

fn turn_of(told: &Told, changes: &[Change]) -> Turn {
    let tokens = (told.tokens_in.is_some() || told.tokens_out.is_some())
        .then(|| TokenCount { read: told.tokens_in.unwrap_or(0), written: told.tokens_out.unwrap_or(0) });
    let (subject, rest) = words_of(told, changes);
    let message = format!("{subject}\n\n{rest}");
    let now = clock::now();
    Turn {
        number: 0,
        node: told.node.clone(),
        step: "implement".into(),
        attempt: Attempt(0),
        model: value_of(Some(&told.model)),
        provider: value_of(provider(told).as_deref()),
        runner: value_of(told.runner.as_deref()),
        files: changes.iter().map(Change::shown).collect(),
        tools: Vec::new(),
        tokens,
        cost: told.cost,
        commit: None,
        message: (!changes.is_empty() || told.message.is_some()).then(|| message.trim().to_owned()),
        agent_session: told.agent_session.clone(),
        started: now,
        ended: now,
    }
}
