//! The summary of a run, as lines that can be pasted into a message.

use arborist_core::{
    event::{
        FailedTask, ForeignCommit, LeftTask, LeftTaskKind, RepoBranch, ResolvedConflict, RunAccount,
        UnlandedTask,
    },
    message::{counted, visible},
    name::Oid,
    progress::RunTotals,
};
use unicode_width::UnicodeWidthStr;

use crate::{clock::duration, ui::wrapped};

/// How many ids are listed in the first line.
const MOST_IDS: usize = 10;
/// How many tasks of a kind have their own line.
const MOST_LINES: usize = 3;
/// How many characters of a name or a reason are shown. A text that is only a little longer is shown whole.
const LONGEST_REASON: usize = 100;
const A_LITTLE: usize = 20;
/// The width of the labels, unless one is longer.
const NARROWEST_LABEL: usize = 7;
/// The narrowest column for texts.
const NARROWEST_TEXT: usize = 20;

/// The summary for a person. On a terminal, lines that are too long for its width are wrapped.
pub(super) fn lines(account: &RunAccount, width: Option<usize>) -> Vec<String> {
    let entries = entries(account);
    let labels = entries.iter().map(|entry| entry.label.len() + 1).max().unwrap_or(0).max(NARROWEST_LABEL);
    let mut lines = vec![headline(account)];
    lines.extend(entries.iter().flat_map(|entry| entry.lines(labels, width)));
    lines
}

/// A line of the summary: a label and its text.
struct SummaryEntry {
    label: &'static str,
    words: String,
}

impl SummaryEntry {
    /// Its lines. A command stays whole: it gets its own line, and if that is too long, the terminal breaks it, because
    /// then it can still be copied.
    fn lines(&self, labels: usize, width: Option<usize>) -> Vec<String> {
        let before = format!("  {:<labels$}", self.label);
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(before.len()).max(NARROWEST_TEXT));
        let (text, command) = match self.words.find(": git ") {
            Some(at) if self.words.width() > room => self.words.split_at(at + 2),
            _ if self.words.starts_with("git ") => ("", self.words.as_str()),
            _ => (self.words.as_str(), ""),
        };
        let mut parts = wrapped(text.trim_end(), room);
        parts.extend((!command.is_empty()).then(|| command.to_owned()));
        let indent = " ".repeat(before.len());
        let lines = parts.iter().enumerate();
        lines.map(|(at, part)| format!("{}{part}", if at == 0 { &before } else { &indent })).collect()
    }
}

fn entries(account: &RunAccount) -> Vec<SummaryEntry> {
    let mut lines = Vec::new();
    let is_well = account.failed.is_empty() && account.left.is_empty() && account.unlanded.is_empty();
    if account.from == account.to && is_well && account.parked.is_none() {
        lines.extend(unpushed_line(account));
        lines.extend(lines_on_others(account));
        lines.extend(merge_lines(account));
        lines.extend(account.next.as_ref().map(|next| entry("next", next)));
        return lines;
    }
    if !account.unchanged.is_empty() {
        let ids: Vec<&str> = account.unchanged.iter().map(String::as_str).collect();
        let are = if ids.len() == 1 { "is" } else { "are" };
        let words = format!(
            "{} {are} complete, but no file was changed for {}",
            list(&ids),
            if ids.len() == 1 { "it" } else { "them" }
        );
        lines.push(entry("note", &words));
    }
    lines.extend(some("failed", &account.failed, |failed| failed_words(failed, account)));
    let (failed_earlier, left) = split_left(account);
    lines.extend(some("failed", &failed_earlier, |left| failed_earlier_words(left, account)));
    let remaining: Vec<&FailedTask> = account.failed.iter().filter(|failed| failed.drop.is_some()).collect();
    lines.extend(some("kept", &remaining, |failed| remaining_words(failed, &account.branch)));
    lines.extend(some("not landed", &account.unlanded, unlanded_words));
    lines.extend(some("resolved", &account.resolved, resolved_words));
    lines.extend(some("left", &left, |left| left_words(left)));
    if account.parked.is_some() {
        let (branch, why) = (&account.branch, account.parked_because.as_deref().unwrap_or_default());
        let words = format!(
            "{branch}: not updated yet, {}; see what to do with: git arborist merge status",
            short(why)
        );
        lines.push(entry("parked", &words));
    }
    lines.extend(unpushed_line(account));
    lines.extend(lines_on_others(account));
    if account.lacked_sandbox {
        lines.push(entry("note", LACKED_SANDBOX));
    } else if account.git_was_writable {
        lines.push(entry("sandbox", GIT_WAS_WRITABLE));
    }
    lines.push(entry("run", &run_words(account)));
    if account.from != account.to {
        let range = format!("git log {}..{}", shortened(&account.from), shortened(&account.to));
        lines.push(entry("log", &range));
    }
    lines.extend(account.worktree.as_ref().map(|worktree| entry("work", &visible(worktree))));
    lines.extend(merge_lines(account));
    lines.extend(account.next.as_ref().map(|next| entry("next", next)));
    lines.extend(account.get_back.as_ref().map(|back| entry("then", back)));
    lines
}

/// What an agent could do without a sandbox.
const LACKED_SANDBOX: &str = "agents, or tests of their code, ran without a sandbox: they could change .git and every file of your account";
/// What an agent could do in the user's checkout.
const GIT_WAS_WRITABLE: &str = "agents could write to .git in your checkout; to prevent that, use --isolate";

fn merge_lines(account: &RunAccount) -> Vec<SummaryEntry> {
    let other =
        |RepoBranch { repo, branch }: &RepoBranch| entry("merge", &format!("in {repo}: git merge {branch}"));
    let own = account.merge.iter().map(|merge| entry("merge", merge));
    own.chain(account.others.iter().map(other)).collect()
}

/// Lines about commits and refs that others changed meanwhile.
fn lines_on_others(account: &RunAccount) -> Vec<SummaryEntry> {
    let words = |ForeignCommit { commit, subject }: &ForeignCommit| {
        format!("not made by this run: {} {}", shortened(commit), short(subject))
    };
    let foreign: Vec<String> = account.foreign_commits.iter().map(words).collect();
    let mut lines = Vec::new();
    for (word, all) in [("others", &foreign), ("refs", &account.moved_refs)] {
        lines.extend(all.iter().take(MOST_IDS).map(|words| entry(word, words)));
        let more = all.len().saturating_sub(MOST_IDS);
        lines.extend((more > 0).then(|| entry(word, &format!("and {more} more"))));
    }
    lines
}

fn unpushed_line(account: &RunAccount) -> Option<SummaryEntry> {
    let repos = &account.unpushed;
    (!repos.is_empty()).then(|| entry("unpushed", &format!("{}: the last push failed", repos.join(", "))))
}

fn headline(account: &RunAccount) -> String {
    let failed: Vec<&str> = account.failed.iter().map(|failed| failed.task.as_str()).collect();
    let (failed_earlier, left) = split_left(account);
    let completed: Vec<&str> = account.completed.iter().map(String::as_str).collect();
    let unlanded: Vec<&str> = account.unlanded.iter().map(|unlanded| unlanded.task.as_str()).collect();
    let kinds = [
        ("completed", completed),
        ("failed", failed),
        ("failed earlier", ids_of(&failed_earlier)),
        ("did not land", unlanded),
        ("left", ids_of(&left)),
    ];
    let listed_kinds = kinds.iter().filter(|(_, ids)| !ids.is_empty());
    let parts: Vec<String> =
        listed_kinds.map(|(word, ids)| format!("{} {word} ({})", ids.len(), list(ids))).collect();
    match (parts.is_empty(), &account.stopped) {
        (true, None) if account.parked.is_some() => "nothing to run, but a landing is parked".to_owned(),
        (true, None) if account.not_selected > 0 => {
            let others = counted(account.not_selected, "other task");
            let are = if account.not_selected == 1 { "is" } else { "are" };
            format!("nothing is left to do for the selected tasks; {others} {are} not done")
        }
        (true, None) => "nothing is left to do".to_owned(),
        (true, Some(_)) => "stopped before a task was completed".to_owned(),
        (false, _) => parts.join(", "),
    }
}

fn list(ids: &[&str]) -> String {
    let mut shown: Vec<String> = ids.iter().take(MOST_IDS).map(ToString::to_string).collect();
    shown.extend((ids.len() > MOST_IDS).then(|| format!("and {} more", ids.len() - MOST_IDS)));
    shown.join(", ")
}

fn some<T>(word: &'static str, all: &[T], words: impl Fn(&T) -> String) -> Vec<SummaryEntry> {
    // A line for one more task has room for the task itself.
    let most = if all.len() == MOST_LINES + 1 { all.len() } else { MOST_LINES };
    let mut lines: Vec<SummaryEntry> = all.iter().take(most).map(|one| entry(word, &words(one))).collect();
    lines.extend((all.len() > most).then(|| entry(word, &format!("and {} more", all.len() - most))));
    lines
}

fn entry(label: &'static str, words: &str) -> SummaryEntry {
    SummaryEntry { label, words: words.to_owned() }
}

fn failed_words(failed: &FailedTask, account: &RunAccount) -> String {
    let FailedTask { task, name, attempts, why, .. } = failed;
    let see = |why: &String| match why.ends_with("...") {
        true => format!("; see all of it with: git arborist state {task}{}", scope_option(account)),
        false => String::new(),
    };
    let why = why.as_deref().map(short);
    let why = why.map(|why| format!(": {why}{}", see(&why))).unwrap_or_default();
    format!("{task} \"{}\" after {}{why}", short(name), counted(*attempts as usize, "attempt"))
}

fn remaining_words(FailedTask { task, drop, .. }: &FailedTask, branch: &str) -> String {
    let command = drop.as_deref().unwrap_or_default();
    format!("{task}'s changes on {branch}; to remove them: {command}")
}

fn unlanded_words(unlanded: &UnlandedTask) -> String {
    format!("{}: {}", unlanded.task, short(&unlanded.why))
}

fn resolved_words(resolved: &ResolvedConflict) -> String {
    let ResolvedConflict { task, by, commit } = resolved;
    format!("conflict of {task} by {by}: git show {}", shortened(commit))
}

/// The tasks that were not run: those that had failed in an earlier call, and the others.
fn split_left(account: &RunAccount) -> (Vec<&LeftTask>, Vec<&LeftTask>) {
    account.left.iter().partition(|left| matches!(left.kind, LeftTaskKind::FailedEarlier { .. }))
}

fn ids_of<'a>(left: &[&'a LeftTask]) -> Vec<&'a str> {
    left.iter().map(|left| left.task.as_str()).collect()
}

fn failed_earlier_words(left: &LeftTask, account: &RunAccount) -> String {
    let LeftTask { task, name, kind, .. } = left;
    let after = match kind {
        LeftTaskKind::FailedEarlier { attempts } => {
            format!(", after {}", counted(usize::try_from(*attempts).unwrap_or(usize::MAX), "attempt"))
        }
        LeftTaskKind::Ready | LeftTaskKind::Other => String::new(),
    };
    let scope = scope_option(account);
    format!("{task} \"{}\" earlier{after}; see why with: git arborist state {task}{scope}", short(name))
}

/// The option that selects the run from the user's checkout.
fn scope_option(account: &RunAccount) -> String {
    account.worktree.as_ref().map(|_| format!(" --scope {}", account.branch)).unwrap_or_default()
}

fn left_words(left: &LeftTask) -> String {
    let LeftTask { task, name, words, waits_for, kind, .. } = left;
    let why = match waits_for.as_slice() {
        [] if *kind == LeftTaskKind::Ready => "ready, not started".to_owned(),
        [] => words.clone(),
        needs => format!("waits for {}", list(&needs.iter().map(String::as_str).collect::<Vec<_>>())),
    };
    format!("{task} \"{}\": {why}", short(name))
}

fn run_words(account: &RunAccount) -> String {
    let RunAccount { branch, done, total, attempts, seconds, .. } = account;
    let parked = if account.parked.is_some() { " (parked landings do not count)" } else { "" };
    let attempts = counted(*attempts, "attempt");
    let spent = match account.offline {
        true => ", offline: no model was called".to_owned(),
        false => spent_words(&account.spent),
    };
    format!("{branch}, {done} of {total} done{parked}, {attempts} in {}{spent}", duration(*seconds))
}

fn spent_words(spent: &RunTotals) -> String {
    let tokens = match (spent.tokens_in, spent.tokens_out) {
        (None, None) => String::new(),
        (read, written) => {
            format!(", {} tokens in, {} out", thousands(read.unwrap_or(0)), thousands(written.unwrap_or(0)))
        }
    };
    tokens + &spent.cost.map(|cost| format!(", ${cost:.2}")).unwrap_or_default()
}

fn thousands(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST_REASON + A_LITTLE {
        return text.to_owned();
    }
    let most: String = text.chars().take(LONGEST_REASON + A_LITTLE).collect();
    // So is a clause.
    let clauses = most.rsplit_once("; ").map(|(clauses, _)| clauses);
    if let Some(clauses) = clauses.filter(|clauses| clauses.chars().count() > LONGEST_REASON) {
        return format!("{clauses}; ...");
    }
    let begin: String = text.chars().take(LONGEST_REASON).collect();
    // A word is left out as a whole, unless it is very long.
    let words =
        begin.rsplit_once(' ').map(|(words, _)| words).filter(|words| words.len() > LONGEST_REASON / 2);
    format!("{}...", words.unwrap_or(&begin).trim_end())
}

fn shortened(commit: &str) -> String {
    commit.parse::<Oid>().map_or_else(|_| commit.to_owned(), |commit| commit.short())
}
