//! The repositories of a task during an attempt. They are one list, and the first is the one with the plan. All of them
//! begin, are guarded, judged and ended by the same code. At the end of a step they are committed in turn, the plan's last: its history says
//! what the state of the task is, so only its commit ends the attempt.

use std::sync::Arc;

use crate::{
    git::{GitError, NewCommit, PrivateGit, Signing, TreeChange},
    history::WorkBase,
    name::{Attempt, Oid, RepoName},
    pipeline::{
        FileSecrets, IgnoredFiles, OtherRepo, PipelineError, PreCommit, ProtectedChanges, TaskRun,
        UsersIgnoredFiles,
        checkout::{
            attempt::{AttemptCheckout, AttemptRules, AttemptWork, WatchedFrom, begin_attempt, end_attempt},
            folded_commits::folded_message,
            protected_files::TaskProtection,
            violations::Violations,
        },
        turns::turn_repo::{RepoTurns, TurnRepo},
    },
    record::{IndexUpdate, RunRecorder, TaskEvent},
    session::OtherCommit,
};

/// A repository that a task works in, during one attempt.
pub(in crate::pipeline) struct RepoAttempt<'k, 'r> {
    /// Its name in messages; `None` for the one with the plan.
    pub(in crate::pipeline) name: Option<&'k RepoName>,
    /// Whether the user's pre-commit hook there must accept the work.
    hook: PreCommit,
    pub(in crate::pipeline) recorder: &'k mut RunRecorder<'r>,
    pub(in crate::pipeline) checkout: AttemptCheckout,
    /// What the task started from.
    base: WorkBase,
    /// What was done there. Nothing until the attempt has ended.
    pub(in crate::pipeline) work: AttemptWork,
}

impl TaskRun<'_, '_, '_> {
    /// Begins an attempt in all repositories of the task. `recorders` has the plan's first, then those of the others.
    pub(in crate::pipeline) fn begin_in_repos<'k, 'r>(
        &self,
        attempt: Attempt,
        other_repos: &'k [OtherRepo],
        recorders: &'k mut [RunRecorder<'r>],
    ) -> Result<Vec<RepoAttempt<'k, 'r>>, GitError> {
        let run = self.context.run;
        let file_secrets = FileSecrets::new(run.options.secret_files, &run.secrets);
        let others = other_repos.iter().map(Some);
        let mut repos: Vec<RepoAttempt<'k, 'r>> = Vec::new();
        for (other, recorder) in std::iter::once(None).chain(others).zip(recorders) {
            let base = other.map_or(self.base, |other| other.base);
            let watched_from = match repos.first() {
                Some(plans) => WatchedFrom::Plan(&plans.checkout),
                None => WatchedFrom::Here(&run.config_guard),
            };
            let rules = AttemptRules {
                // Only the plan's repository can be worked on in the user's checkout.
                users_ignored: if other.is_none() { self.users_ignored() } else { Arc::default() },
                file_secrets: file_secrets.clone(),
                protection: TaskProtection::new(&run.options.protection, self.task, base.tree),
            };
            let checkout = begin_attempt(recorder, watched_from, &self.task.id, attempt, rules)?;
            let (name, hook) = (other.map(|other| &other.name), other.map_or(run.hook, |other| other.hook));
            let work = AttemptWork::nothing(recorder);
            repos.push(RepoAttempt { name, hook, recorder, checkout, base, work });
        }
        Ok(repos)
    }

    fn users_ignored(&self) -> Arc<UsersIgnoredFiles> {
        self.context.ignored.as_ref().map(IgnoredFiles::users_files).unwrap_or_default()
    }
}

/// What was done without permission in any of these repositories.
pub(in crate::pipeline) fn find_violations(repos: &[RepoAttempt<'_, '_>]) -> Violations {
    repos.iter().flat_map(|repo| repo.work.violations.clone()).collect()
}

impl<'r> RepoAttempt<'_, 'r> {
    /// This repository's part in the turns of the attempt.
    pub(in crate::pipeline) fn turns<'a>(
        &'a mut self,
        private_git: Option<&'a PrivateGit>,
    ) -> TurnRepo<'a, 'r> {
        TurnRepo::new(self.name, self.recorder, Some((&self.checkout, private_git)))
    }

    /// Ends the attempt here: from now on [`Self::work`] says what the agent left. Its commits are taken over from its
    /// private git directory, if it had one.
    pub(in crate::pipeline) fn end(
        &mut self,
        turns: RepoTurns,
        private_git: Option<&PrivateGit>,
    ) -> Result<(), PipelineError> {
        self.work =
            end_attempt(self.recorder, &self.checkout, turns.violations, self.base.tree, private_git)?;
        self.work.folded.splice(..0, turns.folded);
        if turns.index == IndexUpdate::Behind {
            self.recorder.catch_up_index(self.checkout.head_tree)?;
        }
        Ok(())
    }

    /// Whether the attempt has done nothing here.
    pub(in crate::pipeline) fn is_untouched(&self) -> bool {
        let AttemptWork { changes, tip, violations, .. } = &self.work;
        changes.is_empty() && *tip == self.checkout.head && violations.is_empty()
    }

    /// Whether the task has changed nothing here, in this attempt or an earlier one.
    pub(in crate::pipeline) fn adds_nothing(&self) -> bool {
        self.work.commit_tree == self.base.tree
    }

    /// Whether the pre-commit hook must accept this work. It is asked about everything that the task adds, also if this
    /// attempt changed nothing: what an earlier attempt left may be what the hook refused, or may never have been shown to
    /// it. It is not asked after a violation, which may be a change of the hook.
    pub(in crate::pipeline) fn needs_hook(&self) -> bool {
        self.hook == PreCommit::Present && self.work.violations.is_empty() && !self.adds_nothing()
    }

    /// The commit that the pre-commit hook sees as `HEAD`: the state without anything that the task added. Failed
    /// attempts are commits too, so a hook that compared with the newest one would not see what it refused before.
    pub(in crate::pipeline) fn commit_before_task(&self) -> Result<Oid, GitError> {
        let WorkBase { commit, tree } = self.base;
        if tree == self.checkout.head_tree {
            return Ok(self.checkout.head);
        }
        let repository = self.recorder.repository();
        if tree == repository.tree_of(commit)? {
            return Ok(commit);
        }
        // Commits of others lie between the attempts, so no commit has this tree.
        let message = "the state without the changes of a task\n";
        let made = NewCommit { tree, parent: commit, message, author: None };
        repository.write_commit(made, Signing::No)
    }

    /// The protected files that the task has changed here. Those without permission are restored.
    pub(in crate::pipeline) fn restore_protected(&mut self) -> Result<ProtectedChanges, GitError> {
        let found = self.checkout.restore_protected(self.recorder, &mut self.work)?;
        Ok(found.in_repo(self.name))
    }

    /// A message about commits that were folded in here.
    pub(in crate::pipeline) fn folded_message(&self) -> Option<String> {
        folded_message(&self.work.folded).map(|words| self.named(words))
    }

    /// Takes the warnings about this work.
    pub(in crate::pipeline) fn take_warnings(&mut self) -> Vec<String> {
        let warnings = std::mem::take(&mut self.work.warnings);
        warnings.into_iter().map(|words| self.named(words)).collect()
    }

    fn named(&self, words: String) -> String {
        match self.name {
            Some(name) => format!("in {name}: {words}"),
            None => words,
        }
    }

    /// Commits the work in another repository than the plan's. Returns the commit if it changes a file.
    pub(in crate::pipeline) fn commit(
        self,
        entry: TaskEvent<'_>,
    ) -> Result<Option<(OtherCommit, Vec<TreeChange>)>, PipelineError> {
        let Self { name, recorder, checkout, work, .. } = self;
        recorder.record_staged(entry, work.of_step(), &[checkout.unfinished.end_move()])?;
        let commit = other_commit(name, recorder.head(), &work.changes);
        Ok(commit.filter(|_| !work.changes.is_empty()).map(|commit| (commit, work.changes)))
    }

    /// Ends an attempt that left nothing to commit.
    pub(in crate::pipeline) fn forget(&self) -> Result<(), GitError> {
        let ended = [self.checkout.unfinished.end_move()];
        self.recorder.repository().move_refs(&ended, "arborist: nothing changed")
    }
}

/// A commit in another repository, as records name it; `None` for the one with the plan.
pub(in crate::pipeline) fn other_commit(
    name: Option<&RepoName>,
    commit: Oid,
    changes: &[TreeChange],
) -> Option<OtherCommit> {
    let files = changes.iter().map(TreeChange::shown).collect();
    Some(OtherCommit { repository: name?.to_string(), commit, files })
}
