//! The texts for events of a run.

use arborist_core::{
    agent::limits::Chosen,
    event::{EventKind, RunEvent},
    message::{Status, one_line, plain_text, visible},
    name::TaskId,
};

use crate::{
    clock,
    ui::{TextStyle, Tone},
};

/// The line for an event with `--verbose`; `None` for events that only the live view shows.
pub(super) fn line(style: TextStyle, event: &RunEvent) -> Option<String> {
    match &event.kind {
        EventKind::StepBegins { name, attempt, step, by, .. } => {
            let attempt =
                if attempt.0 == 0 { String::new() } else { format!(", attempt {}", attempt.ordinal()) };
            let task = style.paint(Tone::Strong, event.task.as_ref().map_or("", TaskId::as_str));
            Some(format!("{task} {} \"{}\" ({}{attempt})", step.as_str(), one_line(name), one_line(by)))
        }
        EventKind::Recorded { status, commit, why, changes, .. } => {
            let tone = if why.is_some() || *status == Status::Failed { Tone::Bad } else { Tone::Good };
            let why = why.as_ref().map(|why| format!(": {}", without_status(*status, &why.line())));
            let why = why.unwrap_or_default();
            let files = match changes.files {
                None => String::new(),
                Some(1) => " (1 file)".to_owned(),
                Some(files) => format!(" ({files} files)"),
            };
            let task = event.task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
            let commit = style.paint(Tone::Dim, &commit.short());
            Some(format!("  {commit} {task}{}{files}{why}", style.paint(tone, status.as_str())))
        }
        EventKind::Waits { seconds, chosen_by } => {
            let task = event.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
            Some(format!("  {task}{}", waiting(*seconds, *chosen_by)))
        }
        EventKind::TurnCommitted { turn, repo, commit, words } => {
            let place = repo.as_ref().map(|repo| format!(" in {repo}")).unwrap_or_default();
            let task = event.task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
            let commit = style.paint(Tone::Dim, &commit.short());
            Some(format!("  {commit} {task}turn {turn}{place}: {}", one_line(words)))
        }
        EventKind::Note { words, is_of_step, .. } => {
            let indent = if *is_of_step { "  " } else { "" };
            let task = event.task.as_ref().filter(|_| *is_of_step);
            Some(format!("{indent}{}", plain_text(&with_task(task, words))))
        }
        EventKind::ForeignCommits { words, .. } | EventKind::RefMoved { words } => Some(plain_text(words)),
        EventKind::Conflict { paths, target, .. } => {
            let task = event.task.as_ref().map_or("", TaskId::as_str);
            Some(format!(
                "{task} did not land: it conflicts with {target} in {}",
                one_line(&paths.join(", "))
            ))
        }
        EventKind::Escalated { .. } => {
            let task = event.task.as_ref().map_or("", TaskId::as_str);
            Some(format!("{task} has a conflict that you must resolve"))
        }
        EventKind::Merged { resolved_by: Some(_), resolution, .. } => {
            let task = event.task.as_ref().map_or("", TaskId::as_str);
            Some(format!("  the conflict of {task} was resolved by {}", one_line(resolution)))
        }
        EventKind::Cloned { repo, remote } => Some(format!("cloned '{repo}' from {remote}")),
        EventKind::Fetched { repo, remote } => Some(format!("fetched '{repo}' from {remote}")),
        EventKind::BranchCreated { repo, branch, base } => {
            Some(format!("created branch '{branch}' at {} in repository '{repo}'", base.short()))
        }
        EventKind::WorktreeCreated { repo: Some(_), path, branch, .. } if event.task.is_none() => {
            Some(format!("created its worktree {}", visible(&path.to_string_lossy())))
        }
        EventKind::Pushed { repo, remote, refs } => {
            let short = |name: &String| visible(name.trim_start_matches("refs/heads/"));
            let names: Vec<String> = refs.iter().map(short).collect();
            Some(format!("  pushed {repo}: {} to {remote}", names.join(", ")))
        }
        EventKind::Said { .. }
        | EventKind::TurnEnded
        | EventKind::Checkpoint { .. }
        | EventKind::WorktreeCreated { .. }
        | EventKind::RunBegins(_)
        | EventKind::RunEnds
        | EventKind::RunEnded { .. }
        | EventKind::TaskEnded { .. }
        | EventKind::PushFailed { .. }
        | EventKind::Merged { resolved_by: None, .. } => None,
    }
}

/// A message with the task that it is about.
pub(super) fn with_task(task: Option<&TaskId>, words: &str) -> String {
    task.map_or_else(|| words.to_owned(), |task| format!("{task}: {words}"))
}

/// A reviewer's reason without the word that the status has already.
pub(super) fn without_status(status: Status, why: &str) -> &str {
    let rest = why.strip_prefix("REJECTED:").map(str::trim_start);
    rest.filter(|rest| status == Status::ReviewRejected && !rest.is_empty()).unwrap_or(why)
}

/// Why the run waits.
pub(super) fn waiting(seconds: u64, chosen: Chosen) -> String {
    match chosen {
        Chosen::ByProvider => {
            let at = clock::time_in(seconds);
            format!(
                "the provider asks to wait for {seconds} s; the run continues at {at}, and no attempt is used up"
            )
        }
        Chosen::ByUs => {
            format!(
                "the provider is overloaded or its usage limit is reached; retrying in {seconds} s, and no attempt is used up"
            )
        }
    }
}
