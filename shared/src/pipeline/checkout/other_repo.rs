//! Other repositories that a task works in. What it does there is committed there, on the session's branch, with the same
//! messages and turn numbers; where the task stands is told only by the repository that has the plan.

use std::path::Path;

use crate::{
    event::EventKind,
    git::{GitError, HiddenMarks, OtherWriters, Repository, TrackedFiles, TreeChange},
    history::{CommitSource, HistoryError, Run, RunScope, WorkBase},
    message::Key,
    name::{Attempt, Oid, RepoName, TaskId},
    pipeline::{
        IgnoredFiles, NamedCommand, PipelineError, PreCommit, SessionRepo, TaskContext,
        checkout::{
            guarded, hook, leftovers,
            place::{self, AttemptCheckout, AttemptWork, Looker, WatchedFrom},
        },
        steps::prompt::RepoDiff,
        turns::{keeper::CommittedTurns, message::TurnMessage},
    },
    plan::Task,
    process::{Cancel, FileLock},
    record::{
        IndexUpdate, Prepared, RecordError, RunIdentity, RunRecorder, StagedCommit, TaskEvent, Tip,
        Unfinished,
    },
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
    /// What git ignores there. It stays from task to task.
    pub ignored: IgnoredFiles,
    /// What the work of the task there is compared with.
    pub base: WorkBase,
    /// Tells other runs of that repository that this one is at work there.
    pub lock: FileLock,
}

/// Another repository in which an attempt is under way.
pub(in crate::pipeline) struct RepoAttempt<'a> {
    name: &'a RepoName,
    hook: PreCommit,
    recorder: RunRecorder<'a>,
    begun: AttemptCheckout,
    base: WorkBase,
}

impl OtherRepo {
    /// What the task has changed there so far.
    pub(in crate::pipeline) fn section(&self) -> Result<RepoDiff, GitError> {
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

    fn recorder(&self) -> RunRecorder<'_> {
        RunRecorder::at(&self.repository, self.identity.clone(), self.tip.clone())
    }

    /// Makes the place hold what the session's branch holds, and says what did not. Nobody but the run has business there, so
    /// anything else was left by tests, or by a child process of a task that does not work in this repository. It is kept.
    fn tidy(&self, task: &TaskId, attempt: Attempt) -> Result<Option<String>, GitError> {
        let (recorder, repository) = (self.recorder(), &self.repository);
        let mark = Unfinished::name_of(recorder.branch(), task, attempt);
        repository.clear_locks(recorder.branch());
        let mut found = place::quit_operations(repository, &mark)?;
        if !place::is_untouched(&recorder)? {
            found.extend(place::put_back_at(&recorder, &mark, recorder.head())?);
        }
        let removed = repository.remove_special(&[])?;
        found.extend(removed.iter().map(|path| format!("{} was no plain file", path.display())));
        repository.settle_index(HiddenMarks::Kept)?;
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
            let kept = place::save_tree(repository, mark, (now, recorder.head()))?;
            repository.put_back(recorder.tree(), &changes)?;
            let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
            let paths = paths.join(", ");
            words = Some(format!(
                "files that no task had left there were put back and are kept in {kept}: {paths}"
            ));
        }
        repository.stage_tree(recorder.tree())?;
        Ok(words)
    }

    fn enter(
        &self,
        task: &Task,
        attempt: Attempt,
        home: &AttemptCheckout,
    ) -> Result<RepoAttempt<'_>, GitError> {
        let recorder = self.recorder();
        let begun = place::begin(&recorder, WatchedFrom::Home(home), &task.id, attempt)?;
        Ok(RepoAttempt { name: &self.name, hook: self.hook, recorder, begun, base: self.base })
    }
}

/// All annexes of a task, while an attempt is under way.
pub(in crate::pipeline) fn enter<'a>(
    other_repos: &'a [OtherRepo],
    task: &Task,
    attempt: Attempt,
    home: &AttemptCheckout,
) -> Result<Vec<RepoAttempt<'a>>, GitError> {
    other_repos.iter().map(|other_repo| other_repo.enter(task, attempt, home)).collect()
}

/// Makes places hold what the session's branches there hold, and says what did not.
pub(in crate::pipeline) fn tidy<'o>(
    other_repos: impl Iterator<Item = &'o OtherRepo>,
    task: &TaskId,
    attempt: Attempt,
) -> Result<Vec<String>, GitError> {
    let found: Result<Vec<Option<String>>, GitError> =
        other_repos.map(|other_repo| other_repo.tidy(task, attempt)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// The tracked files of places in other repositories before a test.
pub(in crate::pipeline) struct TestedFiles(Vec<TrackedFiles>);

impl TestedFiles {
    pub(in crate::pipeline) fn look<'o>(
        other_repos: impl Iterator<Item = &'o OtherRepo>,
        company: OtherWriters,
    ) -> Result<Self, GitError> {
        let files = other_repos.map(|other| other.repository.look_at_tracked(other.tip.tree, company));
        Ok(Self(files.collect::<Result<_, _>>()?))
    }

    /// Puts back what is not as it was in the same places, and says what that is.
    pub(in crate::pipeline) fn put_back<'o>(
        &self,
        other_repos: impl Iterator<Item = &'o OtherRepo>,
        company: OtherWriters,
        (task, attempt): (&TaskId, Attempt),
    ) -> Result<Vec<String>, GitError> {
        let mut found = Vec::new();
        for (other_repo, before) in other_repos.zip(&self.0) {
            let recorder = other_repo.recorder();
            let mark = Unfinished::name_of(recorder.branch(), task, attempt);
            let words = guarded::put_back_tracked(&recorder, (before, company), &mark)?;
            found.extend(words.map(|words| format!("in {}: {words}", other_repo.name)));
        }
        Ok(found)
    }
}

impl<'a> RepoAttempt<'a> {
    /// Its part in the turns of the attempt.
    pub(in crate::pipeline) fn beside<'k>(&'k mut self) -> Beside<'k, 'a> {
        Beside::new(self.name, &mut self.recorder, &self.begun)
    }

    /// What the agent left there.
    pub(in crate::pipeline) fn end(&mut self, kept: CommittedTurns) -> Result<AttemptWork, PipelineError> {
        let mut work = place::end(&self.recorder, &self.begun, kept.noticed, self.base.tree)?;
        work.folded.splice(..0, kept.folded);
        if kept.index == IndexUpdate::Behind {
            self.recorder.catch_up(self.begun.tree)?;
        }
        Ok(work)
    }

    /// Whether nothing was changed there.
    pub(in crate::pipeline) fn is_untouched(&self, work: &AttemptWork) -> bool {
        work.changes.is_empty() && work.tip == self.begun.head && work.trespass.is_none()
    }

    /// Whether the task has added nothing there, in this attempt or an earlier one.
    pub(in crate::pipeline) fn adds_nothing(&self, work: &AttemptWork) -> bool {
        work.tree == self.base.tree
    }

    /// What is to be said of commits that were folded in there.
    pub(in crate::pipeline) fn words_on_folded(&self, work: &AttemptWork) -> Option<String> {
        leftovers::words_of(&work.folded).map(|words| format!("in {}: {words}", self.name))
    }

    /// Whether its hook is asked about this work.
    pub(in crate::pipeline) fn is_asked(&self, work: &AttemptWork) -> bool {
        self.hook == PreCommit::Asked && work.trespass.is_none() && work.tree != self.begun.tree
    }

    pub(in crate::pipeline) fn ask_hook(
        &self,
        work: &mut AttemptWork,
        cancel: &Cancel,
    ) -> Result<Option<String>, PipelineError> {
        hook::ask_hook(&self.recorder, (self.hook, cancel), &self.begun, work)
    }

    /// Commits what the attempt left, if it left anything. Gives where the branch is, and that commit, if it changes a file.
    pub(in crate::pipeline) fn keep(
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
    /// The places in other repositories that tests of the task are run with.
    pub(in crate::pipeline) fn tested_elsewhere(&self) -> impl Iterator<Item = &OtherRepo> {
        self.other_repos.iter().chain(&self.lent)
    }

    /// A child process of another task may have written where this one is about to work or to be tested.
    pub(in crate::pipeline) fn tidy_elsewhere(
        &mut self,
        task: &TaskId,
        attempt: Attempt,
    ) -> Result<(), GitError> {
        for words in tidy(self.tested_elsewhere(), task, attempt)? {
            self.tell(task, EventKind::note(format!("  {task}: {words}")));
        }
        Ok(())
    }

    /// Where an agent is started and tests run: in the first repository that the task names.
    pub(in crate::pipeline) fn place_of(&self, task: &Task) -> &Path {
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
    pub(in crate::pipeline) fn find_tool(&self, command: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|known| known.name == command)
    }

    /// What an agent is told of the repositories of its task, where there is more than its own directory.
    pub(in crate::pipeline) fn words_on_places(&self, task: &Task) -> String {
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

/// What lay in a worktree before and after a turn; nothing where that is the same.
pub(in crate::pipeline) type Trees = Option<(Oid, Oid)>;

/// Another repository while an agent works in it.
pub(in crate::pipeline) struct Beside<'k, 'a> {
    name: &'k RepoName,
    recorder: &'k mut RunRecorder<'a>,
    begun: &'k AttemptCheckout,
    looker: Option<Looker<'a>>,
    pub(in crate::pipeline) kept: CommittedTurns,
}

/// What a turn changed there, on the way to its commit.
pub(in crate::pipeline) struct Pending {
    /// Which of the other repositories it is.
    pub(in crate::pipeline) at: usize,
    pub(in crate::pipeline) work: AttemptWork,
    pub(in crate::pipeline) message: TurnMessage,
    /// Its commit, which the branch does not hold yet.
    pub(in crate::pipeline) prepared: Option<Result<Prepared, RecordError>>,
}

impl Pending {
    /// Writes the commit, so that the record of the turn can name it.
    pub(in crate::pipeline) fn prepare(
        &mut self,
        beside: &Beside<'_, '_>,
        entry: Option<TaskEvent<'_>>,
        number: u32,
    ) -> Option<OtherCommit> {
        let mut entry = entry?;
        let _ = entry.trailers.set(Key::Turn, number.to_string());
        let prepared = beside.recorder.prepare(entry, self.work.tree);
        let commit = prepared.as_ref().ok().map(|prepared| prepared.commit);
        self.prepared = Some(prepared);
        Some(OtherCommit {
            repository: beside.name.to_string(),
            commit: commit?,
            files: self.work.changes.iter().map(TreeChange::shown).collect(),
        })
    }
}

impl<'k, 'a> Beside<'k, 'a> {
    pub(in crate::pipeline) fn new(
        name: &'k RepoName,
        recorder: &'k mut RunRecorder<'a>,
        begun: &'k AttemptCheckout,
    ) -> Self {
        Self { name, recorder, begun, looker: None, kept: CommittedTurns::default() }
    }

    /// What lay in its worktree before and what lies there now, if that is not the same.
    pub(in crate::pipeline) fn look(&mut self) -> Result<Trees, RecordError> {
        self.begun.look_again(&mut self.kept.noticed);
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => none.insert(Looker::new(self.recorder.repository(), self.begun)?),
        };
        Ok(looker.look()?)
    }

    /// What is to be committed here, where `after` lay in the worktree when the turn ended.
    pub(in crate::pipeline) fn find_work(&self, after: Oid) -> Result<Option<AttemptWork>, RecordError> {
        Ok(place::turn(self.recorder, self.begun, after)?)
    }

    /// The branch takes in what the turn of this number changed here.
    pub(in crate::pipeline) fn keep(
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

/// What has changed here and in other repositories, as a patch and in a few words.
pub(in crate::pipeline) fn diff(
    here: (&Repository, Trees),
    others: &[Beside<'_, '_>],
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
