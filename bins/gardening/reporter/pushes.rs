//! What is told of pushes: they go on beside the run, and it hears of them now and then.

use std::{path::Path, time::Duration};

use arborist_core::{
    gardener::{GardenerError, Summary},
    git::shown_url,
    message::visible,
    name::{BranchName, Oid},
    pipeline::{PipelineEvent, PipelineEventKind},
    workspace::{Close, Notice, PushResult, Pusher, RepoSection, Supply},
};

use super::{Manner, Reporter, now};
use crate::gardening::{OpenRun, event::RunEvent, other_repos::words_on};

/// How long a run that was asked to stop waits for its pushes.
const HURRY: Duration = Duration::from_secs(10);

impl Reporter<'_> {
    /// How a repository of the workspace came to be as it is.
    pub(in crate::gardening) fn tell_supply(
        &mut self,
        section: &RepoSection,
        supply: &Supply,
        base: Option<Oid>,
    ) {
        let (time, repo) = (now(), section.name.to_string());
        let (event, words) = match supply {
            Supply::Local => return,
            Supply::Offline { trouble, .. } => {
                words_on(section, supply, base).iter().for_each(|words| self.warn(&visible(words)));
                self.hint_once(trouble.hint());
                return;
            }
            Supply::Cloned { remote } => {
                let remote = shown_url(remote);
                let words = format!("cloned '{repo}' from {remote}");
                (RunEvent::Cloned { time, repo, remote }, words)
            }
            Supply::Fetched { remote } => {
                let remote = shown_url(remote);
                let words = format!("fetched '{repo}' from {remote}");
                (RunEvent::Fetched { time, repo, remote }, words)
            }
        };
        self.tell_event(&event, &words);
    }

    /// A session has a branch in a repository.
    pub(in crate::gardening) fn tell_branch(
        &mut self,
        section: &RepoSection,
        branch: &BranchName,
        base: Oid,
    ) {
        let words = format!("'{branch}' begins at {} in '{}'", base.short(), section.name);
        let (repo, branch, base) = (section.name.to_string(), branch.to_string(), base.to_string());
        self.tell_event(&RunEvent::BranchCreated { time: now(), repo, branch, base }, &words);
    }

    /// A session has a worktree in a repository.
    pub(in crate::gardening) fn tell_worktree(
        &mut self,
        section: &RepoSection,
        path: &Path,
        branch: &BranchName,
    ) {
        let words = format!("'{branch}' is checked out in {}", visible(&path.to_string_lossy()));
        let event = RunEvent::WorktreeCreated {
            time: now(),
            task: None,
            repo: Some(section.name.to_string()),
            path: path.display().to_string(),
            branch: branch.to_string(),
            recycled: false,
        };
        self.tell_event(&event, &words);
    }

    fn tell_event(&mut self, event: &RunEvent, words: &str) {
        match self.manner {
            Manner::Events => self.event(event),
            Manner::Lines => self.ui.err(&format!("{words}\n")),
            Manner::Quiet => {}
        }
    }

    /// Who pushes what the run commits.
    pub(in crate::gardening) fn set_pusher(&mut self, pusher: Option<Pusher>) {
        self.pusher = pusher;
    }

    pub(super) fn note_checkpoint(&self, event: &PipelineEvent) {
        let is_commit =
            matches!(event.kind, PipelineEventKind::Recorded { .. } | PipelineEventKind::Committed { .. });
        if let (true, Some(pusher)) = (is_commit, &self.pusher) {
            pusher.checkpoint();
        }
    }

    pub(super) fn tell_pushes(&mut self) {
        let notices = self.pusher.as_ref().map(Pusher::notices).unwrap_or_default();
        notices.iter().for_each(|notice| self.tell_push(notice));
    }

    /// The run is over: what is to be pushed then is pushed, and waited for. Tells whether somebody cut that short.
    pub(super) fn close_pushes(&mut self, opened: &OpenRun, ended: &Result<Summary, GardenerError>) -> bool {
        let Some(pusher) = self.pusher.take() else { return false };
        let was_stopped = opened.cancel.is_cancelled();
        let is_well = ended.as_ref().is_ok_and(Summary::is_well);
        let close = if is_well { Close::Succeeded } else { Close::Failed };
        let notices = pusher.close(close, (&opened.cancel, HURRY));
        notices.iter().for_each(|notice| self.tell_push(notice));
        !was_stopped && opened.cancel.is_cancelled() && !self.unpushed.is_empty()
    }

    fn tell_push(&mut self, notice: &Notice) {
        match &notice.result {
            Ok(delivery) => self.tell_delivery(notice, delivery),
            Err(why) => {
                self.tell_failure(notice, why);
                self.hint_once(notice.hint);
            }
        }
    }

    fn tell_delivery(&mut self, notice: &Notice, delivery: &PushResult) {
        let (repo, remote) = (notice.repo.to_string(), shown_url(&delivery.remote));
        self.unpushed.remove(&repo);
        let refs: Vec<String> = delivery.pushed.iter().map(|push| push.name.clone()).collect();
        if self.manner == Manner::Events && !refs.is_empty() {
            self.event(&RunEvent::Pushed { time: now(), repo, remote, refs });
        } else if self.manner == Manner::Lines && !refs.is_empty() {
            let short = |name: &String| visible(name.trim_start_matches("refs/heads/"));
            let names: Vec<String> = refs.iter().map(short).collect();
            self.ui.err(&format!("  pushed {repo}: {} to {remote}\n", names.join(", ")));
        }
        for row in &delivery.refused {
            let why = row.refused.clone().unwrap_or_default();
            let words = format!("{} was refused: {}", visible(&row.name), row.reason());
            if !notice.known.contains(&(row.name.clone(), why)) {
                self.tell_failure(notice, &words);
            }
            self.unpushed.insert(notice.repo.to_string());
        }
    }

    /// Several remotes may want the same.
    fn hint_once(&mut self, hint: Option<&'static str>) {
        if let Some(hint) = hint.filter(|hint| self.hinted.insert(hint)) {
            self.hint(hint);
        }
    }

    fn tell_failure(&mut self, notice: &Notice, why: &str) {
        let repo = notice.repo.to_string();
        self.unpushed.insert(repo.clone());
        match self.manner {
            Manner::Events => self.event(&RunEvent::PushFailed { time: now(), repo, why: why.to_owned() }),
            Manner::Lines | Manner::Quiet => self.ui.warn(&format!("'{repo}' was not pushed: {why}")),
        }
    }
}
