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
    message::Key,
    name::{Attempt, Oid, RepoName, TaskId},
    pipeline::{
        IgnoredFiles, NamedCommand, PipelineError, PreCommit, ProtectedChanges, Protection, RunContext,
        SessionRepo, TaskContext,
        checkout::{
            attempt::{
                AttemptCheckout, AttemptWork, TurnSnapshots, WatchedFrom, begin_attempt, changes_of_turn,
                end_attempt,
            },
            branch,
            guarded::FilesBeforeTest,
            hook, leftovers,
            protected_files::TaskProtection,
        },
        steps::prompt::{RepoDiff, diff_command},
        turns::{committer::CommittedTurns, message::TurnMessage},
    },
    plan::Task,
    process::FileLock,
    record::{
        IndexUpdate, Prepared, RecordError, RunIdentity, RunRecorder, StagedCommit, TaskEvent, Tip,
        Unfinished,
    },
    session::OtherCommit,
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

/// Another repository during an attempt.
pub(in crate::pipeline) struct RepoAttempt<'a> {
    name: &'a RepoName,
    hook: PreCommit,
    recorder: RunRecorder<'a>,
    begun: AttemptCheckout,
    base: WorkBase,
}

impl OtherRepo {
    /// What the task has changed there so far, for the reviewer.
    pub(in crate::pipeline) fn section(&self) -> Result<RepoDiff, GitError> {
        let place = self.repository.top().display();
        Ok(RepoDiff {
            repository: Some(self.name.to_string()),
            difference: self.repository.difference(self.base.tree, self.tip.tree)?,
            command: diff_command(&format!("-C '{place}' "), self.base.tree, self.tip.head),
        })
    }

    /// Finds the state that the task's work there is compared with, which may be far back in history.
    pub fn find_base(&mut self, task: &TaskId) -> Result<(), HistoryError> {
        let scope = RunScope { branch: self.identity.run.clone(), tip: Some(self.tip.head) };
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

    fn recorder(&self) -> RunRecorder<'_> {
        RunRecorder::at(&self.repository, self.identity.clone(), self.tip.clone())
    }

    /// Makes the checkout equal to its branch, and returns a message about what was not. Only the run works
    /// there, so anything else was left by tests, or by a child of a task that does not work in this repository. It is
    /// saved.
    fn tidy(&self, task: &TaskId, attempt: Attempt) -> Result<Option<String>, GitError> {
        let (recorder, repository) = (self.recorder(), &self.repository);
        let mark = Unfinished::name_of(recorder.branch(), task, attempt);
        repository.clear_locks(recorder.branch());
        let mut found = branch::quit_operations(repository, &mark)?;
        if !branch::is_untouched(&recorder)? {
            found.extend(branch::put_back_at(&recorder, &mark, recorder.head())?);
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
            let kept = branch::save_tree(repository, mark, (now, recorder.head()))?;
            repository.put_back(recorder.tree(), &changes)?;
            let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
            let paths = paths.join(", ");
            words = Some(format!(
                "files that were not changed by a task were restored; the changed versions are kept in {kept}: {paths}"
            ));
        }
        repository.stage_tree(recorder.tree())?;
        Ok(words)
    }

    fn enter(
        &self,
        (task, protection): (&Task, &Protection),
        attempt: Attempt,
        home: &AttemptCheckout,
    ) -> Result<RepoAttempt<'_>, GitError> {
        let recorder = self.recorder();
        let begun = begin_attempt(&recorder, WatchedFrom::Plan(home), &task.id, attempt)?;
        let begun = begun.searched_for(home.file_secrets.clone());
        let begun = begun.protected_by(TaskProtection::new(protection, task, self.base.tree));
        Ok(RepoAttempt { name: &self.name, hook: self.hook, recorder, begun, base: self.base })
    }
}

/// Begins an attempt in all other repositories of a task.
pub(in crate::pipeline) fn enter<'a>(
    other_repos: &'a [OtherRepo],
    task: (&Task, &Protection),
    attempt: Attempt,
    home: &AttemptCheckout,
) -> Result<Vec<RepoAttempt<'a>>, GitError> {
    other_repos.iter().map(|other_repo| other_repo.enter(task, attempt, home)).collect()
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
            .map(|other| FilesBeforeTest::read(&other.repository, other.tip.tree, (&users, other_writers)));
        Ok(Self(files.collect::<Result<_, _>>()?))
    }

    /// Restores changed files in the same checkouts, and returns messages about them.
    pub(in crate::pipeline) fn put_back<'o>(
        &self,
        other_repos: impl Iterator<Item = &'o OtherRepo>,
        other_writers: OtherWriters,
        (task, attempt): (&TaskId, Attempt),
    ) -> Result<Vec<String>, GitError> {
        let mut found = Vec::new();
        for (other_repo, before) in other_repos.zip(&self.0) {
            let recorder = other_repo.recorder();
            let mark = Unfinished::name_of(recorder.branch(), task, attempt);
            let words = before.put_back(&recorder, other_writers, &mark)?;
            let words = words.in_one_line();
            found.extend(words.map(|words| format!("in {}: {words}", other_repo.name)));
        }
        Ok(found)
    }
}

impl<'a> RepoAttempt<'a> {
    /// This repository's part in the turns of the attempt.
    pub(in crate::pipeline) fn beside<'k>(&'k mut self) -> TurnsElsewhere<'k, 'a> {
        TurnsElsewhere::new(self.name, &mut self.recorder, &self.begun)
    }

    /// Ends the attempt here, and returns what the agent left.
    pub(in crate::pipeline) fn end(&mut self, kept: CommittedTurns) -> Result<AttemptWork, PipelineError> {
        let mut work = end_attempt(&self.recorder, &self.begun, kept.violations, self.base.tree)?;
        work.folded.splice(..0, kept.folded);
        if kept.index == IndexUpdate::Behind {
            self.recorder.catch_up(self.begun.head_tree)?;
        }
        Ok(work)
    }

    /// Whether nothing was changed here.
    pub(in crate::pipeline) fn is_untouched(&self, work: &AttemptWork) -> bool {
        work.changes.is_empty() && work.tip == self.begun.head && work.violations.is_empty()
    }

    /// Whether the task has changed nothing here, in this attempt or an earlier one.
    pub(in crate::pipeline) fn adds_nothing(&self, work: &AttemptWork) -> bool {
        work.commit_tree == self.base.tree
    }

    /// The name of the repository.
    pub(in crate::pipeline) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The protected files that the task has changed here. Those without permission are restored.
    pub(in crate::pipeline) fn put_back_protected(
        &self,
        work: &mut AttemptWork,
    ) -> Result<ProtectedChanges, GitError> {
        self.begun.put_back_protected(&self.recorder, work)
    }

    /// A message about commits that were folded in here.
    pub(in crate::pipeline) fn folded_message(&self, work: &AttemptWork) -> Option<String> {
        leftovers::folded_message(&work.folded).map(|words| format!("in {}: {words}", self.name))
    }

    /// Takes the warnings about this work.
    pub(in crate::pipeline) fn take_warnings(&self, work: &mut AttemptWork) -> Vec<String> {
        let warnings = std::mem::take(&mut work.warnings);
        warnings.into_iter().map(|words| format!("in {}: {words}", self.name)).collect()
    }

    /// Whether the pre-commit hook must be asked about this work.
    pub(in crate::pipeline) fn is_asked(&self, work: &AttemptWork) -> bool {
        self.hook == PreCommit::Asked
            && work.violations.is_empty()
            && work.commit_tree != self.begun.head_tree
    }

    pub(in crate::pipeline) fn ask_hook(
        &self,
        work: &mut AttemptWork,
        run: &RunContext<'_>,
    ) -> Result<Option<String>, PipelineError> {
        hook::ask_hook(&self.recorder, (self.hook, run), &self.begun, work)
    }

    /// Commits what the attempt left, if there is an entry for it. Returns the tip of the branch, and the commit if it
    /// changes a file.
    pub(in crate::pipeline) fn commit(
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
            self.emit(task, EventKind::note(format!("  {task}: {words}")));
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

/// The trees of a worktree before and after a turn; `None` if they are equal.
pub(in crate::pipeline) type Trees = Option<(Oid, Oid)>;

/// Another repository while an agent works in it.
pub(in crate::pipeline) struct TurnsElsewhere<'k, 'a> {
    name: &'k RepoName,
    recorder: &'k mut RunRecorder<'a>,
    begun: &'k AttemptCheckout,
    snapshots: Option<TurnSnapshots<'a>>,
    pub(in crate::pipeline) kept: CommittedTurns,
}

/// What a turn changed in another repository, before it is committed.
pub(in crate::pipeline) struct Pending {
    /// The index of the repository in the list of other repositories.
    pub(in crate::pipeline) at: usize,
    pub(in crate::pipeline) work: AttemptWork,
    pub(in crate::pipeline) message: TurnMessage,
    /// The written commit, which the branch does not contain yet.
    pub(in crate::pipeline) prepared: Option<Result<Prepared, RecordError>>,
}

impl Pending {
    /// Writes the commit, so that the record of the turn can name it.
    pub(in crate::pipeline) fn prepare(
        &mut self,
        beside: &TurnsElsewhere<'_, '_>,
        entry: Option<TaskEvent<'_>>,
        number: u32,
    ) -> Option<OtherCommit> {
        let mut entry = entry?;
        let _ = entry.trailers.set(Key::Turn, number.to_string());
        let prepared = beside.recorder.prepare(entry, self.work.commit_tree);
        let commit = prepared.as_ref().ok().map(|prepared| prepared.commit);
        self.prepared = Some(prepared);
        Some(OtherCommit {
            repository: beside.name.to_string(),
            commit: commit?,
            files: self.work.changes.iter().map(TreeChange::shown).collect(),
        })
    }
}

impl<'k, 'a> TurnsElsewhere<'k, 'a> {
    pub(in crate::pipeline) fn new(
        name: &'k RepoName,
        recorder: &'k mut RunRecorder<'a>,
        begun: &'k AttemptCheckout,
    ) -> Self {
        Self { name, recorder, begun, snapshots: None, kept: CommittedTurns::default() }
    }

    /// Returns the trees of the worktree at the last look and now, if they differ.
    pub(in crate::pipeline) fn look(&mut self) -> Result<Trees, RecordError> {
        self.kept.violations.extend(self.begun.restore_while_running());
        let snapshots = match &mut self.snapshots {
            Some(snapshots) => snapshots,
            none => none.insert(TurnSnapshots::new(self.recorder.repository(), self.begun)?),
        };
        Ok(snapshots.look()?)
    }

    /// Returns what is to be committed here if the worktree had the tree `after` when the turn ended.
    pub(in crate::pipeline) fn find_work(&self, after: Oid) -> Result<Option<AttemptWork>, RecordError> {
        Ok(changes_of_turn(self.recorder, self.begun, after)?)
    }

    /// Moves the branch to the commit of this turn.
    pub(in crate::pipeline) fn commit(
        &mut self,
        pending: Pending,
        number: u32,
    ) -> Result<Option<EventKind>, RecordError> {
        let Pending { work, prepared: Some(prepared), .. } = pending else {
            return Ok(None);
        };
        let delivery = work.delivery();
        let (event, index) = self.recorder.deliver_turn(prepared?, delivery)?;
        if index == IndexUpdate::Behind {
            self.kept.index = index;
        }
        self.kept.folded.extend(work.folded);
        let (commit, words) = (event.commit, event.subject.text.clone());
        Ok(Some(EventKind::TurnCommitted {
            turn: number.into(),
            repo: Some(self.name.clone()),
            commit,
            words,
        }))
    }
}

/// The changes here and in other repositories, as a patch and as a short summary.
pub(in crate::pipeline) fn diff(
    here: (&Repository, Trees),
    others: &[TurnsElsewhere<'_, '_>],
    beside: &[Trees],
) -> Result<(String, String), GitError> {
    let others =
        others.iter().zip(beside).map(|(other, trees)| (other.recorder.repository() as &Repository, *trees));
    let (mut patch, mut stat) = (String::new(), String::new());
    for (repository, trees) in std::iter::once(here).chain(others) {
        if let Some((before, after)) = trees {
            let (more, short) = repository.diff(before, after)?;
            patch += &more;
            stat += &short;
        }
    }
    Ok((patch, stat))
}
