//! News as events for a program.

use arborist_core::{
    message::{Status, plain_text},
    pipeline::{Chosen, PipelineEvent, PipelineEventKind},
};

use super::{RunOpening, now, words::one_line};
use crate::gardening::{
    account::SpentDocument,
    event::{Chooser, EndState, NoteLevel, RunEvent},
};

/// How many characters of an agent's words are told at once.
const LONGEST: usize = 500;

pub(super) fn begins(begun: &RunOpening) -> RunEvent {
    RunEvent::RunBegins {
        time: now(),
        branch: begun.branch.to_string(),
        session: begun.session.to_string(),
        head: begun.head.to_string(),
        total: begun.share.total,
        done: begun.share.done,
        failed: begun.failed,
        max_attempts: begun.max_attempts,
        spent: begun.spent.into(),
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
                spent: expense.usage.map(SpentDocument::from),
            };
            let ended = end_state(*status).map(|state| RunEvent::TaskEnded { time, task, state });
            return std::iter::once(recorded).chain(ended).collect();
        }
        PipelineEventKind::Placed { path, branch, is_new } => RunEvent::WorktreeCreated {
            time,
            task,
            repo: None,
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
