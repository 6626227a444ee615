//! Other repositories that a task works in. What it does there is committed there, on the session's branch, with the same
//! messages; where the task stands is told only by the repository that has the plan.

use std::path::Path;

use super::{
    ConfigGuard, NamedCommand, PipelineError, PreCommit, SessionRepo, TaskContext,
    beside::Beside,
    folded,
    kept::CommittedTurns,
    place::{self, AttemptCheckout, AttemptWork},
    review_diff::RepoDiff,
};
use crate::{
    git::{GitError, Repository, TreeChange},
    history::{CommitSource, HistoryError, Run, RunScope, WorkBase},
    name::{Attempt, RepoName, TaskId},
    plan::Task,
    process::FileLock,
    record::{IndexUpdate, RunIdentity, RunRecorder, StagedCommit, TaskEvent, Tip},
    session::OtherCommit,
};

/// A place in another repository, on the session's branch there.
#[derive(Debug)]
pub struct OtherRepo {
    /// What the repository is called.
    pub name: RepoName,
    /// The repository, as it is seen from there.
    pub repository: Repository,
    /// For which run is written there.
    pub identity: RunIdentity,
    /// Where the branch stands.
    pub tip: Tip,
    /// Whether the user has a hook there to be asked.
    pub hook: PreCommit,
    /// Watches what agents share there.
    pub config_guard: ConfigGuard,
    /// What the work of the task there is compared with.
    pub base: WorkBase,
    /// Tells other runs of that repository that this one is at work there.
    pub lock: FileLock,
}

/// Another repository in which an attempt is under way.
pub(super) struct RepoAttempt<'a> {
    name: &'a RepoName,
    hook: PreCommit,
    recorder: RunRecorder<'a>,
    begun: AttemptCheckout,
    base: WorkBase,
}

impl OtherRepo {
    /// What the task has changed there so far.
    pub(super) fn section(&self) -> Result<RepoDiff, GitError> {
        let place = self.repository.top().display();
        Ok(RepoDiff {
            repository: Some(self.name.to_string()),
            difference: self.repository.difference(self.base.tree, self.tip.tree)?,
            command: format!("git -C '{place}' diff --text {} {}", self.base.tree, self.tip.head),
        })
    }

    /// Finds what the work of this task there is compared with. It may have begun long ago.
    pub fn find_base(&mut self, task: &TaskId) -> Result<(), HistoryError> {
        let scope = RunScope { branch: self.tip.branch.clone(), tip: Some(self.tip.head) };
        let run = Run::scan(&self.repository, scope, CommitSource::Fresh)?;
        let found = run.find_base(&self.repository, task, self.tip.head)?;
        self.base = found.unwrap_or_else(|| WorkBase::fresh(self.tip.head, self.tip.tree));
        Ok(())
    }

    /// This repository, for those who write the session down.
    #[must_use]
    pub fn for_session(&self) -> SessionRepo {
        let (repository, branch) = (self.repository.clone(), self.tip.branch.clone());
        SessionRepo { name: self.name.to_string(), repository, branch }
    }

    fn enter(&self, task: &Task, attempt: Attempt) -> Result<RepoAttempt<'_>, GitError> {
        let recorder = RunRecorder::at(&self.repository, self.identity.clone(), self.tip.clone());
        let begun = place::begin(&recorder, &self.config_guard, &task.id, attempt)?;
        Ok(RepoAttempt { name: &self.name, hook: self.hook, recorder, begun, base: self.base })
    }
}

/// All annexes of a task, while an attempt is under way.
pub(super) fn enter<'a>(
    other_repos: &'a [OtherRepo],
    task: &Task,
    attempt: Attempt,
) -> Result<Vec<RepoAttempt<'a>>, GitError> {
    other_repos.iter().map(|other_repo| other_repo.enter(task, attempt)).collect()
}

impl<'a> RepoAttempt<'a> {
    /// Its part in the turns of the attempt.
    pub(super) fn beside<'k>(&'k mut self) -> Beside<'k, 'a> {
        Beside::new(self.name, &mut self.recorder, &self.begun)
    }

    /// What the agent left there.
    pub(super) fn end(&mut self, kept: CommittedTurns) -> Result<AttemptWork, PipelineError> {
        let mut work = place::end(&self.recorder, &self.begun, kept.noticed, self.base.tree)?;
        work.folded.splice(..0, kept.folded);
        if kept.index == IndexUpdate::Behind {
            self.recorder.catch_up(self.begun.tree)?;
        }
        Ok(work)
    }

    /// Whether nothing was changed there.
    pub(super) fn is_untouched(&self, work: &AttemptWork) -> bool {
        work.changes.is_empty() && work.tip == self.begun.head && work.trespass.is_none()
    }

    /// Whether the task has added nothing there, in this attempt or an earlier one.
    pub(super) fn adds_nothing(&self, work: &AttemptWork) -> bool {
        work.tree == self.base.tree
    }

    /// What is to be said of commits that were folded in there.
    pub(super) fn words_on_folded(&self, work: &AttemptWork) -> Option<String> {
        folded::words_of(&work.folded).map(|words| format!("in {}: {words}", self.name))
    }

    pub(super) fn ask_hook(&self, work: &mut AttemptWork) -> Result<Option<String>, PipelineError> {
        place::ask_hook(&self.recorder, self.hook, &self.begun, work)
    }

    /// Commits what the attempt left, if it left anything. Gives where the branch is, and that commit, if it changes a file.
    pub(super) fn keep(
        mut self,
        entry: Option<TaskEvent<'_>>,
        work: &AttemptWork,
    ) -> Result<(Tip, Option<OtherCommit>), PipelineError> {
        let ended = [self.begun.unfinished.ended()];
        let Some(entry) = entry else {
            self.recorder.repository().move_refs(&ended, "arborist: nothing changed")?;
            return Ok((self.recorder.tip().clone(), None));
        };
        let delivery = StagedCommit { index: work.whole_index(), ..work.delivery() };
        self.recorder.deliver(entry, delivery, &ended)?;
        let commit = OtherCommit {
            repository: self.name.to_string(),
            commit: self.recorder.head(),
            files: work.changes.iter().map(TreeChange::shown).collect(),
        };
        Ok((self.recorder.tip().clone(), (!work.changes.is_empty()).then_some(commit)))
    }
}

impl TaskContext<'_> {
    /// Where an agent is started and tests run: in the first repository that the task names.
    pub(super) fn place_of(&self, task: &Task) -> &Path {
        match task.repos.first() {
            Some(name) => self.find_place(name).unwrap_or(self.dir),
            None => self.dir,
        }
    }

    fn find_place(&self, name: &str) -> Option<&Path> {
        let place = self.places.iter().find(|(known, _)| known.as_str() == name);
        place.map(|(_, path)| path.as_path())
    }

    /// What a test command names that names a tool of a repository, as `NAME:TOOL`.
    pub(super) fn find_tool(&self, command: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|known| known.name == command)
    }

    /// What an agent is told of the repositories of its task, where there is more than its own directory.
    pub(super) fn words_on_places(&self, task: &Task) -> String {
        if task.repos.is_empty() {
            return String::new();
        }
        let line = |name: &String| {
            let path = self.find_place(name).unwrap_or(self.dir);
            format!("- {name}: {}\n", path.display())
        };
        format!("\nThe repositories of this task are:\n{}", task.repos.iter().map(line).collect::<String>())
    }
}
