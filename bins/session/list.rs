//! `git arborist session list`.

use arborist_core::{
    failure::{Exit, Failure},
    process::shell_word,
    session::{DamagedRecord, Record, StoredRecord},
};
use clap::Args;

use super::{
    document::{SessionDocument, SessionListDocument},
    open::{JsonArgs, OpenSessions, open},
    words::{cost_of, plan_of, tokens_of, tone_of},
};
use crate::{
    clock, document,
    entry::Outcome,
    ui::{Fit, Table, Tone, Ui},
};

#[derive(Debug, Args)]
pub(super) struct SessionListArgs {
    #[command(flatten)]
    json: JsonArgs,
}

/// How many sessions of the same second are compared.
const NEIGHBOURS: usize = 8;
const FITS: [Fit; 8] =
    [Fit::Id(8), Fit::Whole, Fit::Whole, Fit::Whole, Fit::Whole, Fit::Whole, Fit::Middle(24), Fit::End(8)];
const HEADINGS: [&str; 8] = ["session", "state", "turns", "tokens", "cost", "last active", "branch", "plan"];

pub(super) fn run(args: &SessionListArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let sessions = in_order(&opened)?;
    if args.json.json {
        let sessions = sessions.into_iter().map(|stored| SessionDocument::new(&opened, stored)).collect();
        let damaged = DamagedRecord::list().into_iter().map(Into::into).collect();
        return document::print(ui, &SessionListDocument { sessions, damaged });
    }
    let states: Vec<_> = sessions.iter().map(|stored| opened.state_of(stored)).collect();
    let mut rows: Vec<[String; 8]> = sessions
        .iter()
        .zip(&states)
        .map(|(stored, state)| {
            let Record { session, totals, context, time, .. } = &stored.record;
            [
                session.to_string(),
                state.as_str().to_owned(),
                totals.turns.to_string(),
                tokens_of(*totals),
                cost_of(totals.cost),
                clock::ago(*time),
                context.branch.to_string(),
                plan_of(context.plan.as_deref()),
            ]
        })
        .collect();
    let damaged = DamagedRecord::list();
    let nothing = String::new;
    rows.extend(damaged.iter().map(|damaged| {
        let (session, state) = (damaged.session.to_string(), "damaged".to_owned());
        [session, state, nothing(), nothing(), nothing(), nothing(), nothing(), nothing()]
    }));
    let tone = |row: usize| states.get(row).map_or(Tone::Bad, |state| tone_of(*state));
    Table::new(HEADINGS, FITS).show(ui, &rows, |row, column| (column == 1).then(|| tone(row)));
    damaged.iter().for_each(|damaged| ui.hint(&damaged.advice()));
    if rows.is_empty() {
        ui.err("no session is recorded in this repository\n");
        ui.hint(&hint(&opened.repository.list_remotes()?));
    }
    Ok(Exit::Done)
}

/// Newest first. Of sessions on the same branch that were written in the same second, the one that contains the commits
/// of the other is newer.
fn in_order(opened: &OpenSessions) -> Result<Vec<&StoredRecord>, Failure> {
    let mut found: Vec<&StoredRecord> = Vec::new();
    for stored in &opened.session_list.sessions {
        let (time, context) = (stored.record.time, &stored.record.context);
        let mut place = found.len();
        for (at, other) in found.iter().enumerate().rev().take(NEIGHBOURS) {
            let (before, earlier) = (&other.record.context, other.record.time);
            if earlier != time {
                break;
            }
            let may_tell = before.branch == context.branch && before.tip != context.tip;
            if may_tell && opened.repository.is_ancestor(before.tip, context.tip)? {
                place = at;
            }
        }
        found.insert(place, stored);
    }
    Ok(found)
}

/// How to get the records of sessions from a remote.
pub(super) fn fetch_records(remote: &str) -> String {
    let remote = shell_word(remote);
    format!(
        "if its sessions were pushed to '{remote}', fetch them: git fetch {remote} 'refs/arborist/sessions/*:refs/arborist/sessions/*'"
    )
}

/// A fresh clone has no sessions until they are fetched.
fn hint(remotes: &[String]) -> String {
    let own = "each run of git arborist gardener is a session";
    let Some(remote) = remotes.iter().find(|name| *name == "origin").or(remotes.first()) else {
        return own.to_owned();
    };
    format!(
        "{own}\n{}\nto continue the run of this branch, run the command again that started it",
        fetch_records(remote)
    )
}
