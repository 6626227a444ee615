//! What a run came to, in lines that can be pasted into a message.

use std::{collections::BTreeSet, path::Path};

use arborist_core::{
    gardener::{Needs, Summary, Unlanded},
    history::{Run, State},
    message::visible,
    name::{Attempt, BranchName, Oid, TaskId},
    plan::Plan,
    progress::{Boxes, NodeProgress, Progress},
};

use super::{RunOpening, story::Story, words::one_line};
use crate::{
    clock::duration,
    gardening::account::{
        FailedDocument, LeftDocument, OtherBranchDocument, ResolvedDocument, SpentDocument, SummaryDocument,
        UnlandedDocument,
    },
};

/// How many ids of a kind are listed in the first line.
const MOST_IDS: usize = 10;
/// How many tasks of a kind have a line of their own.
const MOST_LINES: usize = 3;
/// How many characters of a name or a reason are told.
const LONGEST: usize = 100;

/// What a summary is made from: what is written down now, and what was heard.
pub(super) struct Account<'a> {
    pub(super) begun: &'a RunOpening,
    pub(super) story: &'a Story,
    pub(super) plan: &'a Plan,
    pub(super) tip: Oid,
    pub(super) run: &'a Run,
    pub(super) summary: &'a Summary,
    pub(super) stopped: Option<&'a str>,
    /// The worktree of a run that has a branch of its own.
    pub(super) session_worktree: Option<&'a Path>,
    /// The branches of the run in other repositories, by their names.
    pub(super) others: Vec<(String, BranchName)>,
    /// The repositories whose last push failed.
    pub(super) unpushed: &'a BTreeSet<String>,
}

impl Account<'_> {
    pub(super) fn document(&self) -> SummaryDocument {
        let Self { begun, story, summary, .. } = self;
        let progress = Progress::new(Some(self.plan), self.run, Boxes::Count);
        let share = progress.share();
        let standings = |ids: &[TaskId]| ids.iter().filter_map(|id| progress.find(id)).collect::<Vec<_>>();
        let (failed, left) = (standings(&summary.failed), standings(&summary.left));
        let is_done = summary.is_well() && self.stopped.is_none();
        // A run that was stopped may not have landed what its agents completed.
        let is_landed = |task: &&TaskId| {
            self.stopped.is_none() || progress.find(task).is_some_and(NodeProgress::is_landed)
        };
        let (completed, pending): (Vec<&TaskId>, Vec<&TaskId>) =
            summary.completed.iter().partition(is_landed);
        SummaryDocument {
            branch: begun.branch.to_string(),
            session: begun.session.to_string(),
            from: begun.head.to_string(),
            to: self.tip.to_string(),
            total: share.total,
            done: share.done,
            completed: completed.iter().map(ToString::to_string).collect(),
            unchanged: completed
                .iter()
                .filter(|task| story.has_changed_nothing(task))
                .map(ToString::to_string)
                .collect(),
            failed: failed.iter().map(|standing| self.failure(standing)).collect(),
            left: left.iter().map(|standing| remainder(standing)).collect(),
            unlanded: summary.unlanded.iter().map(unlanded).chain(pending.into_iter().map(stopped)).collect(),
            resolved: story.resolved.clone(),
            parked: summary.parked.clone(),
            attempts: story.attempts,
            spent: story.spent,
            offline: begun.offline,
            seconds: story.seconds(),
            stopped: self.stopped.map(one_line),
            next: self.next(&progress),
            worktree: self.session_worktree.map(|session_worktree| session_worktree.display().to_string()),
            merge: self.session_worktree.filter(|_| is_done).map(|_| format!("git merge {}", begun.branch)),
            others: if is_done { self.others.iter().map(other).collect() } else { Vec::new() },
            unpushed: self.unpushed.iter().cloned().collect(),
        }
    }

    fn failure(&self, standing: &NodeProgress<'_>) -> FailedDocument {
        FailedDocument {
            task: standing.id.to_string(),
            name: one_line(standing.name),
            // One that a killed run had used up is told of by history alone.
            attempts: self.story.attempts_of(standing.id).max(standing.attempt().map_or(0, Attempt::ordinal)),
            why: self.story.reason(standing.id).map(str::to_owned),
        }
    }

    /// What has failed stands in the way until it is begun anew.
    fn next(&self, progress: &Progress<'_>) -> Option<String> {
        if let Some(command) = &self.summary.parked {
            return Some(command.clone());
        }
        if self.summary.is_well() && self.stopped.is_none() {
            return (!self.unpushed.is_empty()).then(|| "git arborist workspace push".to_owned());
        }
        if let Some(unlanded) = self.summary.unlanded.first() {
            let scope =
                self.session_worktree.map(|_| format!(" --scope {}", self.begun.branch)).unwrap_or_default();
            if unlanded.needs == Needs::Word {
                return Some(format!("git arborist merge run{scope}"));
            }
            return Some(format!("git arborist merge status {}{scope}", unlanded.task));
        }
        if self.begun.offline {
            return None;
        }
        let has_failed = progress.count(State::Failed) > 0;
        let (options, again) = (self.raised(&self.begun.options), self.raised(&self.begun.again));
        Some(match (self.session_worktree, has_failed) {
            (Some(_), _) if again.is_empty() => {
                format!("git arborist session resume {}", self.begun.session)
            }
            (Some(_), _) => format!("git arborist session resume {} --{again}", self.begun.session),
            (None, false) => format!("git arborist gardener{options}"),
            (None, true) => format!("git arborist gardener --retry-failed{options}"),
        })
    }

    /// The same limit would stop the run at once: as much again is proposed.
    fn raised(&self, options: &str) -> String {
        let Some((name, value)) = &self.summary.raise else { return options.to_owned() };
        let kept = match options.split_once(&format!(" {name} ")) {
            Some((before, after)) => format!("{before}{}", after.find(' ').map_or("", |end| &after[end..])),
            None => options.to_owned(),
        };
        format!("{kept} {name} {value}")
    }
}

fn other((repo, branch): &(String, BranchName)) -> OtherBranchDocument {
    OtherBranchDocument { repo: repo.clone(), branch: branch.to_string() }
}

fn remainder(standing: &NodeProgress<'_>) -> LeftDocument {
    LeftDocument {
        task: standing.id.to_string(),
        name: one_line(standing.name),
        state: standing.state.as_str().to_owned(),
        waits_for: standing.waits_for.iter().map(ToString::to_string).collect(),
    }
}

fn unlanded(unlanded: &Unlanded) -> UnlandedDocument {
    UnlandedDocument { task: unlanded.task.to_string(), why: one_line(&unlanded.why) }
}

/// What is complete, but was not landed when the run was stopped.
fn stopped(task: &TaskId) -> UnlandedDocument {
    UnlandedDocument { task: task.to_string(), why: "the run was stopped before it landed".to_owned() }
}

/// The same facts for a person.
pub(super) fn lines(document: &SummaryDocument) -> Vec<String> {
    let mut lines = vec![headline(document)];
    let is_well = document.failed.is_empty() && document.left.is_empty() && document.unlanded.is_empty();
    if document.from == document.to && is_well && document.parked.is_none() {
        lines.extend(unpushed_line(document));
        lines.extend(merge_lines(document));
        lines.extend(document.next.as_ref().map(|next| entry("next", next)));
        return lines;
    }
    if !document.unchanged.is_empty() {
        let ids: Vec<&str> = document.unchanged.iter().map(String::as_str).collect();
        lines.push(entry("empty", &format!("no file was changed for {}", list(&ids))));
    }
    lines.extend(some("failed", &document.failed, failed_words));
    lines.extend(some("queued", &document.unlanded, unlanded_words));
    lines.extend(some("resolved", &document.resolved, resolved_words));
    lines.extend(some("left", &document.left, left_words));
    if document.parked.is_some() {
        lines.push(entry(
            "parked",
            "landings wait for your checkout: stash what you changed there, or commit it and \
             take 'git arborist merge run'",
        ));
    }
    lines.extend(unpushed_line(document));
    lines.push(entry("run", &run_words(document)));
    if document.from != document.to {
        let range = format!("git log {}..{}", shortened(&document.from), shortened(&document.to));
        lines.push(entry("log", &range));
    }
    lines.extend(document.worktree.as_ref().map(|worktree| entry("work", &visible(worktree))));
    lines.extend(merge_lines(document));
    lines.extend(document.next.as_ref().map(|next| entry("next", next)));
    lines
}

fn merge_lines(document: &SummaryDocument) -> Vec<String> {
    let other = |OtherBranchDocument { repo, branch }: &OtherBranchDocument| {
        entry("merge", &format!("in {repo}: git merge {branch}"))
    };
    let own = document.merge.iter().map(|merge| entry("merge", merge));
    own.chain(document.others.iter().map(other)).collect()
}

fn unpushed_line(document: &SummaryDocument) -> Option<String> {
    let repos = &document.unpushed;
    (!repos.is_empty()).then(|| entry("unpushed", &format!("{}: the last push failed", repos.join(", "))))
}

fn headline(document: &SummaryDocument) -> String {
    let failed: Vec<&str> = document.failed.iter().map(|failed| failed.task.as_str()).collect();
    let left: Vec<&str> = document.left.iter().map(|left| left.task.as_str()).collect();
    let completed: Vec<&str> = document.completed.iter().map(String::as_str).collect();
    let unlanded: Vec<&str> = document.unlanded.iter().map(|unlanded| unlanded.task.as_str()).collect();
    let kinds = [("completed", completed), ("failed", failed), ("did not land", unlanded), ("left", left)];
    let told = kinds.iter().filter(|(_, ids)| !ids.is_empty());
    let parts: Vec<String> =
        told.map(|(word, ids)| format!("{} {word} ({})", ids.len(), list(ids))).collect();
    match (parts.is_empty(), &document.stopped) {
        (true, None) => "nothing was left to do".to_owned(),
        (true, Some(_)) => "stopped before a task was completed".to_owned(),
        (false, _) => parts.join(", "),
    }
}

fn list(ids: &[&str]) -> String {
    let mut shown: Vec<String> = ids.iter().take(MOST_IDS).map(ToString::to_string).collect();
    shown.extend((ids.len() > MOST_IDS).then(|| format!("and {} more", ids.len() - MOST_IDS)));
    shown.join(", ")
}

fn some<T>(word: &str, all: &[T], words: fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(MOST_LINES).map(|one| entry(word, &words(one))).collect();
    lines.extend(
        (all.len() > MOST_LINES).then(|| entry(word, &format!("and {} more", all.len() - MOST_LINES))),
    );
    lines
}

fn entry(word: &str, words: &str) -> String {
    format!("  {:<7}{words}", format!("{word} "))
}

fn failed_words(failed: &FailedDocument) -> String {
    let FailedDocument { task, name, attempts, why } = failed;
    let why = why.as_deref().map(|why| format!(": {}", short(why))).unwrap_or_default();
    format!("{task} \"{}\" after {}{why}", short(name), counted(*attempts as usize, "attempt"))
}

fn unlanded_words(unlanded: &UnlandedDocument) -> String {
    format!("{}: {}", unlanded.task, short(&unlanded.why))
}

fn resolved_words(resolved: &ResolvedDocument) -> String {
    let ResolvedDocument { task, by, commit } = resolved;
    format!("conflict of {task} by {by}: git show {}", shortened(commit))
}

fn left_words(left: &LeftDocument) -> String {
    let LeftDocument { task, name, state, waits_for } = left;
    let why = match waits_for.as_slice() {
        [] => state.clone(),
        needs => format!("waits for {}", list(&needs.iter().map(String::as_str).collect::<Vec<_>>())),
    };
    format!("{task} \"{}\": {why}", short(name))
}

fn run_words(document: &SummaryDocument) -> String {
    let SummaryDocument { branch, done, total, attempts, seconds, .. } = document;
    let attempts = counted(*attempts, "attempt");
    let spent = match document.offline {
        true => ", offline: no model was called".to_owned(),
        false => spent_words(&document.spent),
    };
    format!("{branch}, {done} of {total} done, {attempts} in {}{spent}", duration(*seconds))
}

fn spent_words(spent: &SpentDocument) -> String {
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

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        text.to_owned()
    } else {
        text.chars().take(LONGEST).collect::<String>() + "..."
    }
}

fn shortened(commit: &str) -> String {
    commit.parse::<Oid>().map_or_else(|_| commit.to_owned(), |commit| commit.short())
}
