//! What was left: by an attempt that a crash interrupted, which is told from what lay there before and recorded, and by a
//! task that begins anew, which is taken out of the tree.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::{
    gardener::GardenerError,
    git::{HiddenMarks, RefMove, Repository, TreeChange},
    history::{Conflicts, Event, Run, TaskWork, WorkBase},
    message::{Status, Wording},
    name::{Attempt, BranchName, Oid, TaskId},
    pipeline::{ChangedPaths, Sorted, mark_interrupted, place::quit_operations},
    plan::Plan,
    record::{RunRecorder, StagedCommit, TaskEvent, Unfinished, settle},
};

/// What is known of tasks when attempts are found that nobody ended.
pub(super) struct TaskFacts<'a> {
    /// The events that a task's attempts are counted from.
    pub(super) events: &'a dyn Fn(&TaskId) -> &'a [Event],
    /// A task's name.
    pub(super) name: &'a dyn Fn(&TaskId) -> Option<&'a str>,
    /// How many attempts a task has.
    pub(super) max: u32,
    /// Why they did not end, if that is known: a process that crashed could not say.
    pub(super) why: Option<&'a str>,
}

/// So many files are named.
const NAMED: usize = 5;

/// An attempt that nobody ended, now that it is written down.
#[derive(Debug)]
pub struct Recovered {
    attempt: Unfinished,
    pub(super) event: Event,
    /// What was committed: what lay there. Whose it was cannot be told.
    files: Vec<String>,
    /// What of that was staged in the user's own index.
    staged: Vec<String>,
    /// Repositories, which no commit can hold.
    inner: Vec<String>,
}

impl Recovered {
    /// Whether files were left that are committed now.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// What is said of it.
    #[must_use]
    pub fn words(&self) -> String {
        let Unfinished { task, attempt, .. } = &self.attempt;
        let mut words = format!("attempt {} of {task} was interrupted; ", attempt.ordinal());
        words += &match self.files.len() {
            0 => "it left nothing that is not committed".to_owned(),
            _ => format!("what it left is committed: {}", named(&self.files)),
        };
        if !self.staged.is_empty() {
            words += &format!("; of that was staged: {}", named(&self.staged));
        }
        if !self.inner.is_empty() {
            words +=
                &format!("; a repository inside the repository was left as it is: {}", named(&self.inner));
        }
        words
    }
}

/// The first few, and how many more there are.
fn named(files: &[String]) -> String {
    let first = files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Records unfinished attempts as interrupted. Gives the attempts.
pub fn recover(
    recorder: &mut RunRecorder<'_>,
    run: &Run,
    plan: &Plan,
    max: u32,
) -> Result<Vec<Recovered>, GardenerError> {
    let events = |task: &TaskId| run.find(task).map_or(&[][..], |history| history.current());
    let name = |task: &TaskId| {
        let planned = plan.find(task).map(|task| task.name.as_str());
        planned.or_else(|| run.find(task).and_then(|history| history.name()))
    };
    write_down(recorder, &TaskFacts { events: &events, name: &name, max, why: None })
}

/// The same where the branch that is written on is known to be the place that they were made in. Gives what was
/// written, too.
pub(super) fn write_down(
    recorder: &mut RunRecorder<'_>,
    known: &TaskFacts<'_>,
) -> Result<Vec<Recovered>, GardenerError> {
    let mut written = Vec::new();
    for attempt in Unfinished::find_all(recorder.repository(), recorder.branch())? {
        let events = (known.events)(&attempt.task);
        // Turns are a part of the attempt, not its end.
        let is_end =
            |event: &&Event| event.attempt() == Some(attempt.attempt) && event.status() != Status::Turn;
        let last = events.iter().rfind(is_end);
        let is_written = match last {
            Some(event) => !recorder.repository().is_ancestor(event.commit, attempt.before)?,
            None => false,
        };
        if is_written {
            recorder.repository().move_refs(&[attempt.ended()], "arborist: ended")?;
            continue;
        }
        written.push(write_one(recorder, attempt, known)?);
    }
    Ok(written)
}

fn write_one(
    recorder: &mut RunRecorder<'_>,
    attempt: Unfinished,
    known: &TaskFacts<'_>,
) -> Result<Recovered, GardenerError> {
    let repository = recorder.repository();
    let before = repository.tree_of(attempt.before)?;
    // The agent of that attempt could write the index, and nobody has looked at it since.
    repository.settle_index(HiddenMarks::Kept)?;
    // A file that git cannot take in stays where it is: it must not keep every later run from beginning.
    let after = repository.take_snapshot()?.tree;
    let branch = branch_before(recorder, &attempt)?;
    let staged_before = attempt.find_staged(repository)?;
    let changed_paths =
        ChangedPaths::of_checkout(repository, branch, (before, staged_before.unwrap_or(branch)))?;
    if let Some(staged) = staged_before {
        put_back_staged(repository, staged, [branch, before])?;
    }
    let touched = repository.changes(before, after)?;
    let Sorted { trespass, .. } = changed_paths.sort(repository, &attempt, (before, after), touched)?;
    let left = repository.changes(recorder.tree(), after)?;
    let left = left.into_iter().filter(|change| !changed_paths.holds(change));
    let (inner, changes): (Vec<TreeChange>, Vec<TreeChange>) = left.partition(TreeChange::is_gitlink);
    let staged = find_staged(recorder, &changes)?;
    let tree =
        if changes.is_empty() { recorder.tree() } else { repository.tree_with(recorder.tree(), &changes)? };
    let name = (known.name)(&attempt.task).unwrap_or(attempt.task.as_str()).to_owned();
    let wording = Wording { name: &name, attempt: attempt.attempt, max: known.max };
    let mut entry = TaskEvent::new(attempt.task.clone(), Status::ImplementFail, wording);
    let why = [known.why.unwrap_or("the run ended before the agent did").to_owned()].into_iter();
    let why = why.chain(trespass).chain(quit_operations(repository, &attempt.name)?);
    mark_interrupted(&mut entry, &why.collect::<Vec<_>>().join("; "));
    let delivery = StagedCommit { tree, tip: recorder.head(), changes: &changes, index: None };
    let event = recorder.deliver(entry, delivery, &[attempt.ended()])?;
    let [files, inner] = [&changes, &inner].map(|changes| changes.iter().map(TreeChange::shown).collect());
    Ok(Recovered { attempt, event, files, staged, inner })
}

/// Stages again what was staged when the attempt began and is in none of these trees: an agent may have unstaged it.
fn put_back_staged(repository: &Repository, staged: Oid, known: [Oid; 2]) -> Result<(), GardenerError> {
    // With a conflict in it, an index is no tree: somebody is at work on that.
    let Ok(now) = repository.staged() else { return Ok(()) };
    let mut lost = repository.changes(now, staged)?;
    for tree in known {
        let other = repository.changes(tree, staged)?;
        lost.retain(|change| other.iter().any(|other| other.path == change.path));
    }
    Ok(repository.enter(&lost)?)
}

/// Those of these changes that are staged. In a lane nobody but an agent can have done that.
fn find_staged(recorder: &RunRecorder<'_>, changes: &[TreeChange]) -> Result<Vec<String>, GardenerError> {
    if recorder.branch() != recorder.run() || changes.is_empty() {
        return Ok(Vec::new());
    }
    let staged = recorder.repository().staged_since(recorder.head())?;
    let is_staged = |change: &&TreeChange| staged.contains(&change.path);
    Ok(changes.iter().filter(is_staged).map(TreeChange::shown).collect())
}

/// What the branch held when the attempt began. The mark is on the branch's own commit then, or on one that follows it.
fn branch_before(recorder: &RunRecorder<'_>, attempt: &Unfinished) -> Result<Oid, GardenerError> {
    let repository = recorder.repository();
    if repository.is_ancestor(attempt.before, recorder.head())? {
        return Ok(repository.tree_of(attempt.before)?);
    }
    let commits = repository.load_commits(&[attempt.before])?;
    let parent = commits.first().and_then(|commit| commit.parents().next());
    Ok(repository.tree_of(parent.unwrap_or(recorder.head()))?)
}

/// What a task has added to a tree and is still there.
#[derive(Debug)]
pub struct Remains {
    /// The tree without it.
    pub tree: Oid,
    /// What takes it out.
    pub changes: Vec<TreeChange>,
    /// Files of these that others have changed again since, so that taking it out would undo their work.
    pub contested: Vec<String>,
}

impl Remains {
    /// Of a task, at the tip of a branch.
    pub fn find(repository: &Repository, run: &Run, task: &TaskId, tip: Oid) -> Result<Self, GardenerError> {
        let whole = repository.tree_of(tip)?;
        let (tree, conflicts) = match run.start_of_work(task) {
            Some((start, session)) => {
                let work = TaskWork { task, session: &session, start, tip };
                let (base, conflicts) = WorkBase::find_with_conflicts(repository, work)?;
                (base.tree, conflicts)
            }
            None => (whole, Conflicts::new()),
        };
        let changes = if tree == whole { Vec::new() } else { repository.changes(whole, tree)? };
        let contested = changes.iter().filter(|change| conflicts.contains(&change.path));
        let contested = contested.map(TreeChange::shown).collect();
        Ok(Self { tree, changes, contested })
    }

    /// The paths.
    #[must_use]
    pub fn shown(&self) -> String {
        self.changes.iter().map(TreeChange::shown).collect::<Vec<_>>().join(", ")
    }

    /// Takes it out of the tree, by a `reset` of the task. The commit that has it is saved first, under the ref that is given
    /// back. Files that are changed and not committed are never touched: they stop this before anything is done.
    pub fn take_out(
        &self,
        recorder: &mut RunRecorder<'_>,
        (task, name): (&TaskId, &str),
        checkout: Option<&Repository>,
    ) -> Result<(Oid, String), GardenerError> {
        let (branch, tip) = (recorder.branch().clone(), recorder.head());
        if !self.contested.is_empty() {
            return Err(GardenerError::Contested(task.clone(), self.contested.join(", ")));
        }
        if let Some(checkout) = checkout {
            settle(checkout, &branch, tip)?;
            self.refuse_overlap(checkout, recorder.tree())?;
        }
        let folder = format!("refs/arborist/saved/{}/{task}", branch.component());
        let saved = save(recorder.repository(), &format!("{folder}/dropped-{}", tip.short()), tip)?;
        // The files come first: killed behind this, the same command finds them as they shall be, and goes on.
        if let Some(checkout) = checkout {
            checkout.put_back(self.tree, &self.changes)?;
        }
        let entry =
            TaskEvent::new(task.clone(), Status::Reset, Wording { name, attempt: Attempt(0), max: 0 });
        let event = match checkout {
            Some(_) => {
                let delivery = StagedCommit { tree: self.tree, tip, changes: &self.changes, index: None };
                recorder.deliver(entry, delivery, &[])?
            }
            None => recorder.record(entry, self.tree)?,
        };
        Ok((event.commit, saved))
    }

    /// Refuses where a path that would be changed is neither as it is committed nor as it shall be, in the worktree or in the
    /// index.
    fn refuse_overlap(&self, checkout: &Repository, committed: Oid) -> Result<(), GardenerError> {
        let mut mine = Vec::new();
        for tree in [checkout.snapshot()?, checkout.staged()?] {
            mine.extend(checkout.changes(committed, tree)?);
        }
        let is_mine = |change: &&TreeChange| {
            let is_other = |other: &TreeChange| other.path == change.path && other.after != change.after;
            let is_ignored = change.before.is_none() && !mine.iter().any(|other| other.path == change.path);
            let path = checkout.top().join(OsStr::from_bytes(&change.path));
            mine.iter().any(is_other) || (is_ignored && path.symlink_metadata().is_ok())
        };
        let overlap: Vec<String> = self.changes.iter().filter(is_mine).map(TreeChange::shown).collect();
        if overlap.is_empty() { Ok(()) } else { Err(GardenerError::Overlap(overlap.join(", "))) }
    }
}

/// Saves the task's own branch, if it holds something that `tip` does not; the next run begins it anew. Gives the ref.
pub fn save_own_branch(
    repository: &Repository,
    run: &BranchName,
    (task, tip): (&TaskId, Oid),
) -> Result<Option<String>, GardenerError> {
    let branch = run.task_branch(task);
    let Some(own) = repository.find_branch(&branch)? else { return Ok(None) };
    if repository.is_ancestor(own, tip)? {
        return Ok(None);
    }
    let name = format!("refs/arborist/saved/{}/{}", branch.component(), own.short());
    save(repository, &name, own).map(Some)
}

fn save(repository: &Repository, name: &str, commit: Oid) -> Result<String, GardenerError> {
    if repository.find_ref(name)? != Some(commit) {
        repository.move_refs(&[RefMove { name, new: Some(commit), old: None }], "arborist: saved")?;
    }
    Ok(name.to_owned())
}
