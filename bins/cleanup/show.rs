//! The output for people: a row for each item, and totals.

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupOutcome, CleanupVerdict, InUse, JudgedCandidate,
        KeepReason,
    },
    message::visible,
    name::unescaped,
    session::SessionState,
};

use super::{document::totals, sweep::Outcomes};
use crate::{
    clock,
    ui::{Fit, Table, Tone, Ui},
};

/// Kind, name, reason, size and age.
type Row = [String; 5];

/// Up to this many files of one kind and reason have their own rows; more are joined in one row.
const FILES: usize = 3;
/// How many ignored files are named.
const IGNORED: usize = 3;
/// The column of the reason.
const REASON: usize = 2;
/// The width of a page or a terminal.
const USUAL_WIDTH: usize = 80;
/// A name is cut before its reason, down to this width.
const FITS: [Fit; 5] = [Fit::Whole, Fit::Middle(18), Fit::End(0), Fit::Number, Fit::Number];

/// A heading with its rows, and the saved refs below each.
struct Section<'a> {
    heading: &'a str,
    tone: Tone,
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    item: &'a JudgedCandidate,
    why: String,
    saved: &'a [String],
    /// Whether the items are deleted, or would be.
    goes: bool,
}

/// Shows the outcomes of all repositories, each under its name if there are several.
pub(super) fn show(ui: &mut Ui, all: &[Outcomes]) {
    let is_full = |outcomes: &&Outcomes| !outcomes.plan.items.is_empty() || !outcomes.reclaimed.is_empty();
    if !all.iter().any(|outcomes| is_full(&outcomes)) {
        ui.line("nothing to clean up");
        return;
    }
    for (at, outcomes) in all.iter().filter(is_full).enumerate() {
        if all.len() > 1 {
            if at > 0 {
                ui.line("");
            }
            ui.line(&format!("In {}:", outcomes.repo));
        }
        show_repository(ui, outcomes);
    }
    ui.line("");
    ui.line(&summary(all));
}

fn show_repository(ui: &mut Ui, outcomes: &Outcomes) {
    for section in sections(outcomes).iter().filter(|section| !section.entries.is_empty()) {
        let heading = ui.paint(section.tone, section.heading);
        ui.line(&heading);
        show_entries(ui, &section.entries);
    }
    show_reclaimed(ui, outcomes);
}

/// Prints hints about what is kept, and about deleted saved work.
pub(super) fn hint(ui: &mut Ui, all: &[Outcomes], is_forced: bool, is_named: bool) {
    let items: Vec<&JudgedCandidate> = all.iter().flat_map(|outcomes| &outcomes.plan.items).collect();
    let is_kept = |suits: &dyn Fn(CandidateKind, &KeepReason) -> bool| {
        items
            .iter()
            .any(|item| matches!(&item.verdict, CleanupVerdict::Keep(why) if suits(item.candidate.what, why)))
    };
    if !is_forced && is_kept(&|_, why| matches!(why, KeepReason::Loose(_) | KeepReason::Unsaved(_))) {
        ui.hint("to remove unmerged work too (it is saved first), add --force");
    }
    let limit = all.first().map(|outcomes| outcomes.older_than).filter(|limit| limit.0 > 0);
    let is_young = |what: CandidateKind, why: &KeepReason| {
        limit.is_some_and(|limit| *why == KeepReason::Young(limit))
            && !matches!(what, CandidateKind::Saved | CandidateKind::Record)
    };
    if (is_forced || is_named) && is_kept(&is_young) {
        ui.hint("use --older-than 0 to also remove newer items");
    }
    let is_only_saved = items.iter().all(|item| item.candidate.what == CandidateKind::Saved);
    if !is_forced && is_only_saved && is_kept(&|_, why| matches!(why, KeepReason::Young(_))) {
        ui.hint("to remove saved work before it expires, run: git arborist cleanup --force --only saved --older-than <age>");
    }
    let failed = items
        .iter()
        .find(|item| matches!(item.verdict, CleanupVerdict::Keep(KeepReason::InUse(InUse::Failed))));
    if let Some(task) = failed.and_then(|item| item.candidate.owners.first()) {
        let task = visible(task);
        ui.hint(&format!(
            "a run would do a failed task again if its branch was removed; to remove it, name it: git arborist cleanup --force {task}"
        ));
    }
    if is_kept(&|_, why| matches!(why, KeepReason::InUse(InUse::Moved(_)))) {
        ui.hint("to reconnect a worktree that was moved, run: git arborist worktree repair");
    }
    if let Some(session) = resting(&items).filter(|_| is_forced || is_named) {
        ui.hint(&format!(
            "the branches of an unfinished session are kept; if you do not want to continue it, run: git arborist session end --session {session}"
        ));
    }
    let queued = items.iter().find(|item| {
        let is_queued = matches!(item.verdict, CleanupVerdict::Keep(KeepReason::InUse(InUse::Queued)));
        is_queued && item.candidate.what == CandidateKind::Branch
    });
    if let Some((branch, task)) = queued.and_then(|item| item.candidate.name.rsplit_once('/'))
        && (is_forced || is_named)
    {
        let branch = visible(branch);
        ui.hint(&format!(
            "a queued branch is kept; if you do not want to land it, run: git arborist merge drop {task} --scope {branch}"
        ));
    }
    let mut gone = all.iter().flat_map(|outcomes| outcomes.fates.iter().flatten().zip(&outcomes.plan.items));
    let is_saved = |(fate, item): (&CleanupOutcome, &JudgedCandidate)| {
        matches!(fate, CleanupOutcome::Removed { .. }) && item.candidate.what == CandidateKind::Saved
    };
    if gone.any(is_saved) {
        ui.hint("until git deletes the objects, removed saved work can be restored with: git update-ref <ref> <object>");
    }
}

/// The session that is not over although no process is at work, or a placeholder if there are several.
fn resting(items: &[&JudgedCandidate]) -> Option<String> {
    let resting = |item: &&JudgedCandidate| match &item.verdict {
        CleanupVerdict::Keep(KeepReason::InUse(InUse::Session(
            id,
            SessionState::Paused | SessionState::Open,
        ))) => Some(id.to_string()),
        _ => None,
    };
    let ids: BTreeSet<String> = items.iter().filter_map(resting).collect();
    if ids.len() > 1 { Some("<id>".into()) } else { ids.into_iter().next() }
}

fn sections(outcomes: &Outcomes) -> [Section<'_>; 4] {
    let (mut gone, mut trashed, mut kept, mut failed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, item) in outcomes.plan.items.iter().enumerate() {
        let planned = match &item.verdict {
            CleanupVerdict::Remove(grounds, _) => grounds.to_string(),
            CleanupVerdict::Keep(reason) => reason.to_string(),
        };
        match outcomes.fates.as_ref().and_then(|fates| fates.get(at)) {
            Some(CleanupOutcome::Removed { saved }) => {
                gone.push(Entry { item, why: planned, saved, goes: true });
            }
            Some(CleanupOutcome::Trashed { saved }) => {
                trashed.push(Entry { item, why: planned, saved, goes: true });
            }
            Some(CleanupOutcome::Kept(why)) => {
                kept.push(Entry { item, why: why.clone(), saved: &[], goes: false });
            }
            Some(CleanupOutcome::Failed(why)) => {
                failed.push(Entry { item, why: why.clone(), saved: &[], goes: false });
            }
            None if matches!(item.verdict, CleanupVerdict::Remove(..)) => {
                gone.push(Entry { item, why: planned, saved: &[], goes: true });
            }
            None => kept.push(Entry { item, why: planned, saved: &[], goes: false }),
        }
    }
    let is_dry = outcomes.fates.is_none();
    [
        Section {
            heading: if is_dry { "Would remove:" } else { "Removed:" },
            tone: Tone::Strong,
            entries: gone,
        },
        Section {
            heading: "Moved to the trash, and being deleted in the background:",
            tone: Tone::Strong,
            entries: trashed,
        },
        Section { heading: if is_dry { "Would keep:" } else { "Kept:" }, tone: Tone::Strong, entries: kept },
        Section { heading: "Failed:", tone: Tone::Bad, entries: failed },
    ]
}

fn show_entries(ui: &mut Ui, entries: &[Entry<'_>]) {
    let (files, others): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) =
        entries.iter().partition(|entry| is_file(entry.item));
    let mut rows: Vec<(Row, Vec<String>)> =
        others.iter().map(|entry| (row(entry), lines_below(entry))).collect();
    let mut groups: BTreeMap<(CandidateKind, &str), Vec<&Entry<'_>>> = BTreeMap::new();
    for entry in files {
        groups.entry((entry.item.candidate.what, &entry.why)).or_default().push(entry);
    }
    for ((what, why), group) in groups {
        match group.len() {
            // List saved work one by one: it may have been the last copy.
            count if count <= FILES || what == CandidateKind::Saved => {
                rows.extend(group.iter().map(|entry| (row(entry), lines_below(entry))));
            }
            _ => rows.push((row_of_group(what, why, &group), Vec::new())),
        }
    }
    let (mut rows, mut below): (Vec<Row>, Vec<Vec<String>>) = rows.into_iter().unzip();
    // A terminal cuts what does not fit. Elsewhere nothing is cut, so long reasons have their own lines.
    if ui.width().is_none() && Table::bare(FITS, "  ").whole_width(&rows) > USUAL_WIDTH {
        for (row, below) in rows.iter_mut().zip(&mut below) {
            below.insert(0, std::mem::take(&mut row[REASON]));
        }
    }
    let below = |at: usize| below[at].iter().map(|line| format!("    {line}")).collect();
    Table::bare(FITS, "  ").show_with(ui, &rows, |_, _| None, below);
}

/// The lines below a row: the saved refs, and ignored files that are deleted with it.
fn lines_below(entry: &Entry<'_>) -> Vec<String> {
    let candidate = &entry.item.candidate;
    let mut lines = Vec::new();
    if entry.goes && !candidate.ignored.is_empty() {
        let (count, ignored) = (candidate.ignored.len(), &candidate.ignored);
        let names = ignored[..count.min(IGNORED)].join(", ");
        let more = if count > IGNORED { ", …" } else { "" };
        let files = if count == 1 { "file" } else { "files" };
        lines.push(format!("and {count} ignored {files}: {names}{more}"));
    }
    if let (true, CandidateKind::Saved, Some((name, tip))) = (entry.goes, candidate.what, candidate.as_ref())
    {
        lines.push(format!("{} at {tip}", visible(name)));
    }
    for name in entry.saved {
        lines.push(format!("saved as {}", visible(name)));
    }
    lines
}

fn is_file(item: &JudgedCandidate) -> bool {
    let small = [
        CandidateKind::Log,
        CandidateKind::Report,
        CandidateKind::Cache,
        CandidateKind::Saved,
        CandidateKind::Record,
        CandidateKind::Claim,
        CandidateKind::UnfinishedAttempt,
    ];
    small.contains(&item.candidate.what)
}

fn row(entry: &Entry<'_>) -> Row {
    let candidate = &entry.item.candidate;
    let age = candidate.time.filter(|_| candidate.what != CandidateKind::Trash).map(clock::ago);
    [
        candidate.what.as_str().to_owned(),
        match &candidate.home {
            Some(home) => format!("{} of {}", shown_name(candidate), visible(home)),
            None => shown_name(candidate),
        },
        visible(&entry.why),
        candidate.size.map(size).unwrap_or_default(),
        age.unwrap_or_default(),
    ]
}

/// The name for people. A cache is named after a branch, with its slashes escaped, or after digests.
fn shown_name(candidate: &Candidate) -> String {
    match candidate.what {
        CandidateKind::Cache if candidate.name.starts_with("gates/") => {
            let parts: Vec<String> = candidate.name.split('/').map(short_digest).collect();
            visible(&parts.join("/"))
        }
        CandidateKind::Cache => visible(&unescaped(&candidate.name)),
        // `main/T001` is the name of its task, not one that git knows.
        CandidateKind::Branch | CandidateKind::RemoteBranch => visible(&match &candidate.place {
            CandidatePlace::Ref { name, .. } => short_ref(name).to_owned(),
            CandidatePlace::Remote { remote, name, .. } => format!("{remote}/{}", short_ref(name)),
            _ => candidate.name.clone(),
        }),
        CandidateKind::Record => visible(&candidate.name.replace(" (records)", " (session)")),
        _ => visible(&candidate.name),
    }
}

fn short_ref(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// The beginning of a digest, and any other word as it is.
fn short_digest(word: &str) -> String {
    let is_digest = word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.chars().take(if is_digest { 8 } else { usize::MAX }).collect()
}

fn row_of_group(what: CandidateKind, why: &str, group: &[&Entry<'_>]) -> Row {
    let sum = group.iter().filter_map(|entry| entry.item.candidate.size).sum();
    let oldest = group.iter().filter_map(|entry| entry.item.candidate.time).min();
    let name = format!("{} entries", group.len());
    let each = if why.contains(" its ") { "each: " } else { "" };
    [
        what.as_str().to_owned(),
        name,
        format!("{each}{}", visible(why)),
        size(sum),
        oldest.map(clock::ago).unwrap_or_default(),
    ]
}

fn show_reclaimed(ui: &mut Ui, outcomes: &Outcomes) {
    if outcomes.reclaimed.is_empty() {
        return;
    }
    let heading = match outcomes.fates {
        None => "Would free:",
        Some(_) => "Moved to the trash, and being deleted in the background:",
    };
    ui.line(&ui.paint(Tone::Strong, heading));
    let row = |one: &arborist_core::cleanup::Reclaimed| {
        let name = one.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let why = one.failed.clone().unwrap_or_else(|| format!("in {}", one.worktree));
        ["ignored".to_owned(), visible(&name), visible(&why), size(one.size), String::new()]
    };
    let rows: Vec<Row> = outcomes.reclaimed.iter().map(row).collect();
    Table::bare(FITS, "  ").show(ui, &rows, |_, _| None);
}

fn summary(all: &[Outcomes]) -> String {
    let totals = totals(all);
    let is_dry = all.iter().all(|outcomes| outcomes.fates.is_none());
    let would = if is_dry { ("Would remove", "free") } else { ("Removed", "freed") };
    let mut words = format!("{} {}", would.0, totals.removed);
    words.push_str(&format!(", {} {}", if is_dry { "keep" } else { "kept" }, totals.kept));
    if totals.failed > 0 {
        words.push_str(&format!(", {} failed", totals.failed));
    }
    words = format!("{words}, {} {}", would.1, size(totals.bytes));
    let more = match totals.trashed {
        1 => "1 more is".to_owned(),
        count => format!("{count} more are"),
    };
    if totals.trashed > 0 {
        let bytes = size(totals.trashed_bytes);
        words.push_str(&format!(".\n{more} being deleted in the background, which will free {bytes}"));
    }
    format!("{words}.")
}

/// A size for people.
pub(super) fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_in_short_form() {
        let shown = [0, 999, 1_500, 12_340_000, 7_000_000_000].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1.5 kB", "12.3 MB", "7.0 GB"]);
    }
}
