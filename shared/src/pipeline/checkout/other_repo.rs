//! Other repositories that a task works in. Work there is committed there, on the session's branch or in a lane, with
//! the same messages and turn numbers. Only the repository with the plan decides about the state of the task.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    event::EventKind,
    git::{GitError, HiddenMarks, OtherWriters, Repository, TreeChange},
    history::{CommitSource, HistoryError, Run, RunScope, WorkBase},
    name::{Attempt, BranchName, Oid, RepoName, TaskId},
    pipeline::{
        IgnoredFiles, NamedCommand, PreCommit, SessionRepo, TaskContext, TaskRun,
        checkout::{branch, test_guard::FilesBeforeTest},
        steps::review_diff::{RepoDiff, diff_command},
    },
    plan::Task,
    process::FileLock,
    record::{RunIdentity, RunRecorder, Tip, UnfinishedAttempt},
};

/// A checkout of another repository: on the session's branch there, or a lane of one task.
#[derive(Debug)]
pub struct OtherRepo {
    /// The configured name of the repository.
    pub name: RepoName,
    /// The repository, opened from that checkout.
    pub repository: Repository,
    /// The run that commits are made for.
    pub identity: RunIdentity,
    /// The branch that is checked out there, and its commit.
    pub tip: Tip,
    /// Whether the user's pre-commit hook there must accept the work.
    pub hook: PreCommit,
    /// The ignored files there, which stay from task to task.
    pub ignored: IgnoredFiles,
    /// The state that the task's work there is compared with.
    pub base: WorkBase,
    /// Tells other runs of that repository that this run works there.
    pub lock: Arc<FileLock>,
}

/// A repository of a task, and what the task has committed there so far.
pub(in crate::pipeline) struct TaskRepo<'a> {
    /// Its name in messages; `None` for the one with the plan.
    pub(in crate::pipeline) name: Option<&'a RepoName>,
    pub(in crate::pipeline) repository: &'a Repository,
    /// The run's or the session's branch there.
    pub(in crate::pipeline) run: &'a BranchName,
    pub(in crate::pipeline) tip: &'a Tip,
    /// The tree that the task's work there is compared with.
    pub(in crate::pipeline) base: Oid,
}

impl TaskRun<'_, '_, '_> {
    /// The repositories that the task works in. The first is the one with the plan.
    pub(in crate::pipeline) fn repos(&self) -> Vec<TaskRepo<'_>> {
        let recorder = &self.recorder;
        let plans = TaskRepo {
            name: None,
            repository: recorder.repository(),
            run: recorder.run_branch(),
            tip: recorder.tip(),
            base: self.base.tree,
        };
        std::iter::once(plans).chain(self.context.other_repos.iter().map(OtherRepo::of_task)).collect()
    }
}

impl TaskRepo<'_> {
    /// What the task has changed there so far, for the reviewer.
    pub(in crate::pipeline) fn diff(&self) -> Result<RepoDiff, GitError> {
        let Self { name, repository, tip, base, .. } = self;
        let options = name.map(|_| format!("-C '{}' ", repository.top().display())).unwrap_or_default();
        Ok(RepoDiff {
            repository: name.map(ToString::to_string),
            difference: repository.difference(*base, tip.tree)?,
            command: diff_command(&options, *base, tip.head),
        })
    }
}

impl OtherRepo {
    fn of_task(&self) -> TaskRepo<'_> {
        let Self { name, repository, identity, tip, base, .. } = self;
        TaskRepo { name: Some(name), repository, run: &identity.run_branch, tip, base: base.tree }
    }

    /// Finds the state that the task's work there is compared with, which may be far back in history.
    pub fn find_base(&mut self, task: &TaskId) -> Result<(), HistoryError> {
        let scope = RunScope { branch: self.identity.run_branch.clone(), tip: Some(self.tip.head) };
        let run = Run::scan(&self.repository, scope, CommitSource::Fresh)?;
        let found = run.find_base(&self.repository, task, self.tip.head)?;
        self.base = found.unwrap_or_else(|| WorkBase::fresh(self.tip.head, self.tip.tree));
        Ok(())
    }

    /// This repository, as the session's records name it.
    #[must_use]
    pub fn for_session(&self) -> SessionRepo {
        let (repository, branch) = (self.repository.clone(), self.tip.branch.clone());
        SessionRepo { name: self.name.to_string(), repository, branch }
    }

    pub(in crate::pipeline) fn recorder(&self) -> RunRecorder<'_> {
        RunRecorder::at(&self.repository, self.identity.clone(), self.tip.clone())
    }

    /// Makes the checkout equal to its branch, and returns a message about what was not. Only the run works
    /// there, so anything else was left by tests, or by a child of a task that does not work in this repository. It is
    /// saved.
    fn tidy(&self, task: &TaskId, attempt: Attempt) -> Result<Option<String>, GitError> {
        let (recorder, repository) = (self.recorder(), &self.repository);
        let mark = UnfinishedAttempt::name_of(recorder.branch(), task, attempt);
        repository.clear_locks(recorder.branch());
        let mut found = branch::quit_operations(repository, &mark)?;
        if !branch::is_untouched(&recorder)? {
            found.extend(branch::restore_branch_at(&recorder, &mark, recorder.head())?);
        }
        let removed = repository.remove_special(&[])?;
        found.extend(removed.iter().map(|path| format!("{} was not a regular file", path.display())));
        repository.make_index_known(HiddenMarks::Kept)?;
        if !repository.is_known_clean(recorder.tree()) && !repository.is_clean()? {
            found.extend(self.put_back_all(&recorder, &mark)?);
        }
        Ok((!found.is_empty()).then(|| format!("in {}: {}", self.name, found.join("; "))))
    }

    fn put_back_all(&self, recorder: &RunRecorder<'_>, mark: &str) -> Result<Option<String>, GitError> {
        let repository = &self.repository;
        let now = repository.take_snapshot()?.tree;
        let changes = repository.changes(recorder.tree(), now)?;
        let changes: Vec<TreeChange> =
            changes.into_iter().filter(|change| !change.concerns_gitlink()).collect();
        let mut words = None;
        if !changes.is_empty() {
            let kept = branch::save_tree(repository, mark, now, recorder.head())?;
            repository.restore_paths(recorder.tree(), &changes)?;
            let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
            let paths = paths.join(", ");
            words = Some(format!(
                "files that were not changed by a task were restored; the changed versions are kept in {kept}: {paths}"
            ));
        }
        repository.stage_tree(recorder.tree())?;
        Ok(words)
    }
}

/// Makes the checkouts equal to the session's branches there, and returns messages about what was not.
pub(in crate::pipeline) fn tidy<'o>(
    other_repos: impl Iterator<Item = &'o OtherRepo>,
    task: &TaskId,
    attempt: Attempt,
) -> Result<Vec<String>, GitError> {
    let found: Result<Vec<Option<String>>, GitError> =
        other_repos.map(|other_repo| other_repo.tidy(task, attempt)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// The tracked files of other repositories before a test.
pub(in crate::pipeline) struct TestedFiles(Vec<FilesBeforeTest>);

impl TestedFiles {
    pub(in crate::pipeline) fn look<'o>(
        other_repos: impl Iterator<Item = &'o OtherRepo>,
        other_writers: OtherWriters,
    ) -> Result<Self, GitError> {
        let users = Arc::default();
        let files = other_repos
            .map(|other| FilesBeforeTest::read(&other.repository, other.tip.tree, &users, other_writers));
        Ok(Self(files.collect::<Result<_, _>>()?))
    }

    /// Restores changed files in the same checkouts, and returns messages about them.
    pub(in crate::pipeline) fn restore<'o>(
        &self,
        other_repos: impl Iterator<Item = &'o OtherRepo>,
        other_writers: OtherWriters,
        task: &TaskId,
        attempt: Attempt,
    ) -> Result<Vec<String>, GitError> {
        let mut found = Vec::new();
        for (other_repo, before) in other_repos.zip(&self.0) {
            let recorder = other_repo.recorder();
            let mark = UnfinishedAttempt::name_of(recorder.branch(), task, attempt);
            let words = before.restore(&recorder, other_writers, &mark)?;
            let words = words.in_one_line();
            found.extend(words.map(|words| format!("in {}: {words}", other_repo.name)));
        }
        Ok(found)
    }
}

impl TaskContext<'_> {
    /// The checkouts of other repositories that the task's tests run with.
    pub(in crate::pipeline) fn other_test_repos(&self) -> impl Iterator<Item = &OtherRepo> {
        self.other_repos.iter().chain(&self.test_only_repos)
    }

    /// Tidies them, because a child of another task may have written there.
    pub(in crate::pipeline) fn tidy_other_repos(
        &mut self,
        task: &TaskId,
        attempt: Attempt,
    ) -> Result<(), GitError> {
        for words in tidy(self.other_test_repos(), task, attempt)? {
            self.emit(task, EventKind::step_note(words));
        }
        Ok(())
    }

    /// The directory in which agents and tests run: the first repository that the task names.
    pub(in crate::pipeline) fn place_of(&self, task: &Task) -> &Path {
        match task.repos.first() {
            Some(name) => self.find_place(name).unwrap_or(self.dir),
            None => self.dir,
        }
    }

    /// The checkouts that the task may change.
    pub(in crate::pipeline) fn task_places(&self) -> impl Iterator<Item = PathBuf> {
        let places = self.places.iter().map(|(_, path)| path.clone());
        std::iter::once(self.dir.to_owned()).chain(places)
    }

    fn find_place(&self, name: &str) -> Option<&Path> {
        let place = self.places.iter().find(|(known, _)| known.as_str() == name);
        place.map(|(_, path)| path.as_path())
    }

    /// Finds the command of a repository that a test refers to as `NAME:TOOL`.
    pub(in crate::pipeline) fn find_tool(&self, command: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|known| known.name == command)
    }

    /// The part of the prompt that lists the repositories of a task, if it names any.
    pub(in crate::pipeline) fn list_repositories(&self, task: &Task) -> String {
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
