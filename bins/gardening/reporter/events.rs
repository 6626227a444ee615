//! News as events for a program.

use arborist_core::{
    message::{Status, one_line, plain_text},
    pipeline::{Chosen, PipelineEvent, PipelineEventKind, RunOpening},
};

use super::now;
use crate::gardening::event::{Chooser, EndState, NoteLevel, RunEvent};

/// How many characters of an agent's words are told at once.
const LONGEST: usize = 500;

fn begins(opening: &RunOpening) -> RunEvent {
    RunEvent::RunBegins {
        time: now(),
        branch: opening.branch.to_string(),
        session: opening.session.to_string(),
        head: opening.head.to_string(),
        total: opening.share.total,
        done: opening.share.done,
        failed: opening.failed,
        max_attempts: opening.max_attempts,
        spent: opening.spent,
    }
}

pub(super) fn note(level: NoteLevel, words: &str) -> RunEvent {
    RunEvent::Note { time: now(), task: None, level, words: plain_text(words) }
}

/// What has happened; where it ended a task, that too.
pub(super) fn of(event: &PipelineEvent) -> Vec<RunEvent> {
    let time = now();
    let task = event.task.as_ref().map(ToString::to_string);
    let event = match &event.kind {
        PipelineEventKind::Begins { name, attempt, step, by } => RunEvent::StepBegins {
            time,
            task,
            name: plain_text(name),
            step: (*step).to_owned(),
            attempt: attempt.0,
            by: plain_text(by),
        },
        PipelineEventKind::Said { words } => {
            let words = plain_text(words).trim().chars().take(LONGEST).collect();
            RunEvent::Said { time, task, words }
        }
        PipelineEventKind::Turned => RunEvent::TurnEnded { time, task },
        PipelineEventKind::Checkpoint { record, commit, snapshot } => RunEvent::Checkpoint {
            time,
            task,
            record: record.to_string(),
            commit: commit.to_string(),
            snapshot: snapshot.iter().map(|(repo, head)| (repo.clone(), head.to_string())).collect(),
        },
        PipelineEventKind::Committed { turn, repo, commit, words } => RunEvent::TurnCommitted {
            time,
            task,
            repo: repo.as_ref().map(ToString::to_string),
            turn: *turn,
            commit: commit.to_string(),
            words: one_line(words),
        },
        PipelineEventKind::Recorded { status, commit, why, expense, .. } => {
            let recorded = RunEvent::Recorded {
                time: time.clone(),
                task: task.clone(),
                status: status.to_string(),
                commit: commit.to_string(),
                why: why.as_deref().map(one_line),
                spent: expense.usage.map(|_| expense.spent().totals),
            };
            let ended = end_state(*status).map(|state| RunEvent::TaskEnded { time, task, state });
            return std::iter::once(recorded).chain(ended).collect();
        }
        PipelineEventKind::Placed { repo, path, branch, is_new } => RunEvent::WorktreeCreated {
            time,
            task,
            repo: repo.as_ref().map(ToString::to_string),
            path: path.display().to_string(),
            branch: branch.to_string(),
            recycled: !is_new,
        },
        PipelineEventKind::Merged { landing, commit, resolved } => RunEvent::Merged {
            time,
            task,
            branch: landing.branch.to_string(),
            target: landing.target.to_string(),
            commit: commit.to_string(),
            auto: resolved.is_none(),
            resolved_by: resolved.as_ref().map(|(by, _)| by.clone()),
        },
        PipelineEventKind::Conflicted { landing, paths, count, is_escalated } => {
            let (branch, target) = (landing.branch.to_string(), landing.target.to_string());
            let conflicts = *count;
            if *is_escalated {
                RunEvent::Escalated { time, task, branch, target, conflicts }
            } else {
                let paths = paths.iter().map(|path| plain_text(path)).collect();
                RunEvent::Conflict { time, task, branch, target, conflicts, paths }
            }
        }
        PipelineEventKind::Waits { seconds, chosen } => {
            let chosen_by = if *chosen == Chosen::ByUs { Chooser::Us } else { Chooser::Provider };
            RunEvent::Waits { time, task, seconds: *seconds, chosen_by }
        }
        PipelineEventKind::Note { words } => {
            RunEvent::Note { time, task, level: NoteLevel::Note, words: plain_text(words) }
        }
        PipelineEventKind::Warning { words } => note(NoteLevel::Warning, words),
        PipelineEventKind::Hint { words, .. } => note(NoteLevel::Hint, words),
        PipelineEventKind::RunBegins(opening) => begins(opening),
        // The last line is written when it is known what the run came to.
        PipelineEventKind::RunEnds => return Vec::new(),
        PipelineEventKind::Cloned { repo, remote } => {
            RunEvent::Cloned { time, repo: repo.to_string(), remote: remote.clone() }
        }
        PipelineEventKind::Fetched { repo, remote } => {
            RunEvent::Fetched { time, repo: repo.to_string(), remote: remote.clone() }
        }
        PipelineEventKind::BranchCreated { repo, branch, base } => RunEvent::BranchCreated {
            time,
            repo: repo.to_string(),
            branch: branch.to_string(),
            base: base.to_string(),
        },
        PipelineEventKind::Pushed { repo, remote, refs } => {
            RunEvent::Pushed { time, repo: repo.to_string(), remote: remote.clone(), refs: refs.clone() }
        }
        PipelineEventKind::PushFailed { repo, why } => {
            RunEvent::PushFailed { time, repo: repo.to_string(), why: why.clone() }
        }
    };
    vec![event]
}

fn end_state(status: Status) -> Option<EndState> {
    match status {
        Status::Complete => Some(EndState::Complete),
        Status::Failed => Some(EndState::Failed),
        _ => None,
    }
}
