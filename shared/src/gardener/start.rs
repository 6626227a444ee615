//! The start of a run: the plan and the configuration are frozen in the first commit, and later compared with it.

use std::{fs, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    gardener::{
        GardenerError,
        changed_settings::{has_same_settings, settings_difference},
    },
    git::{GitError, Repository, TreeChange, plain_path},
    history::{Run, RunStart},
    message::{self, Body, Key, MessageReading, PlanRef, Status, Trailers, one_line},
    name::{Oid, SessionId, TaskId, WorkerName, digest},
    plan::{Plan, PlanError, Task},
    record::{RunRecorder, RunWideEvent},
    safe_files,
    settings::{TRACKED_FILES, read_tracked},
};

/// The current file of a plan.
#[derive(Debug)]
pub struct PlanFile {
    /// Relative to the top of the repository.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A new session id.
#[must_use]
pub fn new_session(head: Oid) -> SessionId {
    let nanos = jiff::Timestamp::now().as_nanosecond();
    let seed = format!("{head} {nanos} {}", std::process::id());
    let id: String = digest(seed.as_bytes()).chars().take(8).collect();
    id.parse().unwrap_or_else(|_| unreachable!("hexadecimal digits are a session id"))
}

/// The plan that a commit freezes.
#[derive(Debug, Clone, Copy)]
pub enum FrozenPlan<'a> {
    /// The current file. It is committed too unless the tree has it already.
    File(&'a PlanFile),
    /// This content, whatever the file holds now. Agents may have edited the file.
    Kept(&'a PlanRef),
    /// There is no plan.
    Nothing,
}

impl<'a> From<Option<&'a PlanFile>> for FrozenPlan<'a> {
    fn from(file: Option<&'a PlanFile>) -> Self {
        file.map_or(Self::Nothing, Self::File)
    }
}

/// Writes the commit that starts a run, with the known results of its tests. It names the worker if the plan is shared.
/// A plan or configuration that is not tracked yet is committed with it; the paths are returned.
pub fn write_start(
    recorder: &mut RunRecorder<'_>,
    plan: Option<&PlanFile>,
    worker: Option<&WorkerName>,
    is_sandbox_missing: bool,
    body: Body,
) -> Result<Vec<String>, GardenerError> {
    let mut trailers = Trailers::default();
    if is_sandbox_missing {
        let _ = trailers.set(Key::Sandbox, "none");
    }
    if let Some(worker) = worker {
        let _ = trailers.set(Key::Worker, worker.as_str());
    }
    write_first(recorder, plan.into(), &trailers, body)
}

/// Writes the commit that starts a run which continues the work of another session. It names that session, because the base of a
/// task's work is then looked for there as well.
pub fn write_start_of(
    recorder: &mut RunRecorder<'_>,
    plan: FrozenPlan<'_>,
    replays: Option<&SessionId>,
) -> Result<Vec<String>, GardenerError> {
    let mut trailers = Trailers::default();
    if let Some(session) = replays {
        let _ = trailers.set(Key::Replays, session.as_str());
    }
    write_first(recorder, plan, &trailers, Body::default())
}

fn write_first(
    recorder: &mut RunRecorder<'_>,
    plan: FrozenPlan<'_>,
    more: &Trailers,
    body: Body,
) -> Result<Vec<String>, GardenerError> {
    let base = recorder.head();
    let (mut trailers, tree, added) = freeze(recorder, plan)?;
    let _ = trailers.set(Key::Base, base.to_string());
    let _ = trailers.set(Key::Format, RunStart::FORMAT.to_string());
    for (key, value) in more.iter() {
        let _ = trailers.set(key, value);
    }
    recorder.record_run_staged(
        RunWideEvent { status: Status::RunStart, words: "", body, trailers },
        tree,
        &added,
    )?;
    Ok(added.iter().map(TreeChange::shown).collect())
}

/// Records the plan and configuration in force from now on, because they were accepted or are used for the first time.
/// Returns the paths that were committed with it.
pub fn write_change(
    recorder: &mut RunRecorder<'_>,
    plan: FrozenPlan<'_>,
    words: &str,
    body: Body,
) -> Result<Vec<String>, GardenerError> {
    let (trailers, tree, added) = freeze(recorder, plan)?;
    recorder.record_run_staged(RunWideEvent { status: Status::Plan, words, body, trailers }, tree, &added)?;
    Ok(added.iter().map(TreeChange::shown).collect())
}

/// The content of a plan that a run uses for the first time, if it differs from the file. A run that started without a
/// plan has frozen none, and its agents may have edited the file since; then the version at the start of the run is
/// used.
pub fn find_first_plan(
    repository: &Repository,
    run: &Run,
    path: &str,
) -> Result<Option<PlanRef>, GardenerError> {
    let Some(start) = run.start.as_ref().filter(|start| start.plan.is_none()) else {
        return Ok(None);
    };
    let Some(blob) = repository.find_path(start.accepted, path)? else {
        return Ok(None);
    };
    let is_edited = match run.scope.tip {
        Some(tip) => UnacceptedChange::is_edited_by_run(repository, (start.accepted, tip), path)?,
        None => false,
    };
    Ok(is_edited.then(|| PlanRef { path: path.to_owned(), blob }))
}

fn freeze(
    recorder: &RunRecorder<'_>,
    plan: FrozenPlan<'_>,
) -> Result<(Trailers, Oid, Vec<TreeChange>), GardenerError> {
    let repository = recorder.repository();
    let mut added = Vec::new();
    let mut trailers = Trailers::default();
    let frozen = match plan {
        FrozenPlan::File(PlanFile { path, bytes }) => {
            let blob = repository.write_blob(bytes)?;
            add_plan_if_new(repository, recorder.head(), (path, blob), &mut added)?;
            PlanRef { path: path.clone(), blob }.to_string()
        }
        // Git deletes a blob that no tree names, so put the plan into the tree if it is not there.
        FrozenPlan::Kept(PlanRef { path, blob }) => {
            if repository.find_path(recorder.head(), path)?.is_none() {
                add_plan_if_new(repository, recorder.head(), (path, *blob), &mut added)?;
            }
            PlanRef { path: path.clone(), blob: *blob }.to_string()
        }
        FrozenPlan::Nothing => "none".into(),
    };
    let _ = trailers.set(Key::Plan, frozen);
    for path in TRACKED_FILES {
        if let Some((_, bytes)) = read_tracked(repository, path)? {
            let blob = repository.write_blob(&bytes)?;
            add_if_new(repository, recorder.head(), (path, blob), &mut added)?;
        }
    }
    let tree =
        if added.is_empty() { recorder.tree() } else { repository.tree_with(recorder.tree(), &added)? };
    Ok((trailers, tree, added))
}

/// The plan can be a link, which stays one.
fn add_plan_if_new(
    repository: &Repository,
    head: Oid,
    file: (&str, Oid),
    added: &mut Vec<TreeChange>,
) -> Result<(), GardenerError> {
    let (path, blob) = file;
    if let Some(link) = repository.worktree.as_ref().and_then(|top| fs::read_link(top.join(path)).ok()) {
        return require_committed_link(repository, head, path, &link, blob);
    }
    add_if_new(repository, head, file, added)
}

fn add_if_new(
    repository: &Repository,
    head: Oid,
    (path, blob): (&str, Oid),
    added: &mut Vec<TreeChange>,
) -> Result<(), GardenerError> {
    if repository.find_path(head, path)? != Some(blob) {
        added.push(TreeChange {
            path: path.as_bytes().to_vec(),
            before: None,
            after: Some((0o100_644, blob)),
        });
    }
    Ok(())
}

/// Refuses a link that is not committed, or whose target is not committed with this content: a commit of the content would
/// replace the link by a file.
fn require_committed_link(
    repository: &Repository,
    head: Oid,
    path: &str,
    link: &Path,
    blob: Oid,
) -> Result<(), GardenerError> {
    let link_blob = repository.write_blob(link.as_os_str().as_bytes())?;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let target = plain_path(&folder.join(link)).to_string_lossy().into_owned();
    let is_committed = repository.find_path(head, path)? == Some(link_blob)
        && repository.find_path(head, &target)? == Some(blob);
    if is_committed {
        return Ok(());
    }
    Err(PlanError::UncommittedLink { file: path.to_owned(), target }.into())
}

/// Refuses to continue if the plan or the configuration has changed since the run started. Ticked boxes do not count.
pub fn require_unchanged(
    repository: &Repository,
    run: &Run,
    frozen: Option<(&str, &Plan)>,
    now: Option<&Plan>,
) -> Result<(), GardenerError> {
    let Some(start) = &run.start else {
        return Ok(());
    };
    if let (Some((path, frozen)), Some(now)) = (frozen, now) {
        let difference = difference(frozen, now);
        if !difference.is_empty() {
            let change = UnacceptedChange::find(repository, run, path)?.map(Box::new);
            return Err(GardenerError::PlanChanged { path: path.to_owned(), difference, change });
        }
    }
    for path in TRACKED_FILES {
        if let Some(difference) = settings_difference(repository, start, path)? {
            let change = UnacceptedChange::find(repository, run, path)?.map(Box::new);
            return Err(GardenerError::ConfigChanged { path, difference, change });
        }
    }
    Ok(())
}

/// Whether two versions of a plan or a file of settings mean the same. Ticked boxes and comments do not count.
fn is_same_version(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    if TRACKED_FILES.contains(&path) {
        return has_same_settings(path, before, after);
    }
    let plan = |bytes: Option<&[u8]>| bytes.and_then(|bytes| Plan::read(path, bytes).ok());
    plan(before).zip(plan(after)).is_some_and(|(before, after)| difference(&before, &after).is_empty())
}

/// The differences between two plans, one line each.
#[must_use]
pub fn difference(before: &Plan, after: &Plan) -> String {
    let mut lines = Vec::new();
    for task in &before.tasks {
        match after.find(&task.id) {
            None => lines.push(format!("  - {} {}", task.id, one_line(&task.name))),
            Some(now) if facts(now) != facts(task) => {
                lines.push(format!("  ~ {} {} ({})", now.id, one_line(&now.name), what_changed(task, now)));
                lines.extend(added_powers(Some(task), now).map(|added| format!("      added: {added}")));
            }
            Some(_) => {}
        }
    }
    for task in after.tasks.iter().filter(|task| before.find(&task.id).is_none()) {
        lines.push(format!("  + {} {}", task.id, one_line(&task.name)));
        lines.extend(added_powers(None, task).map(|added| format!("      added: {added}")));
    }
    lines.join("\n")
}

/// The permissions and commands of `after` that `before` does not have, one line each.
#[must_use]
pub fn list_added_powers(before: &Plan, after: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for task in &after.tasks {
        let added = added_powers(before.find(&task.id), task);
        lines.extend(added.map(|added| format!("the plan adds to {}: {added}", task.id)));
    }
    lines
}

/// The permissions and commands that a task has now and did not have before.
fn added_powers<'t>(before: Option<&'t Task>, now: &'t Task) -> impl Iterator<Item = String> + 't {
    let had = move |allowed: &&String| before.is_some_and(|before| before.allow.contains(allowed));
    let allowed = now.allow.iter().filter(move |allowed| !had(allowed));
    let commands_of =
        |task: &'t Task| task.test_commands.iter().map(|test| &test.command).chain(&task.command);
    let commands = commands_of(now)
        .filter(move |command| !before.is_some_and(|before| commands_of(before).any(|old| old == *command)));
    let allowed = allowed.map(|allowed| one_line(&format!("[allow:{allowed}]")));
    allowed.chain(commands.map(|command| one_line(&format!("the command '{command}'"))))
}

/// Which facts of a task differ, in words.
fn what_changed(before: &Task, now: &Task) -> String {
    let mut changed = Vec::new();
    if before.name != now.name {
        changed.push(format!("was: {}", one_line(&before.name)));
    }
    let has_other_description = before.description != now.description && before.description != before.name;
    let facts = [
        ("description", has_other_description),
        ("phase", before.parent != now.parent),
        ("dependencies", before.depends_on != now.depends_on),
        ("test commands", before.test_commands != now.test_commands),
        ("runner", (&before.runner, &before.model) != (&now.runner, &now.model)),
        ("command", before.command != now.command),
        ("repository", before.repos != now.repos),
        ("marks", (before.red, &before.allow) != (now.red, &now.allow)),
    ];
    let names: Vec<&str> = facts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if !names.is_empty() {
        changed.push(format!("changed: {}", names.join(", ")));
    }
    changed.join("; ")
}

/// Everything of a task that counts as a change, in one text. Its checkbox and its line number do not.
fn facts(task: &Task) -> String {
    let tests: Vec<_> =
        task.test_commands.iter().map(|test| (test.kind.as_str(), &test.command, test.timeout)).collect();
    format!(
        "{:?}",
        (
            &task.name, &task.description, &task.parent, &task.depends_on, tests, &task.runner, &task.model,
            &task.command, &task.repos, task.red, &task.allow
        )
    )
}

/// A commit that changed a file, and its task.
type TaskChange = (Oid, Option<TaskId>);

/// A file that has changed since a run accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnacceptedChange {
    path: String,
    /// The commit with the accepted version; `None` if the file did not exist.
    accepted: Option<Oid>,
    /// The run's last commit that changed it, and that commit's task.
    by: Option<TaskChange>,
    /// How many commits of the run changed it.
    changes: usize,
    /// Whether the newest commit has the file.
    is_tracked: bool,
    /// Whether the checkout has another version than the newest commit.
    is_uncommitted: bool,
}

impl UnacceptedChange {
    /// Finds out how a file changed since the run accepted it; `None` if no run has started.
    pub fn find(repository: &Repository, run: &Run, path: &str) -> Result<Option<Self>, GitError> {
        let Some(start) = &run.start else { return Ok(None) };
        let accepted = repository.find_path(start.accepted, path)?.map(|_| start.accepted);
        let (by, changes) = match run.scope.tip {
            Some(tip) => last_change(repository, start.accepted, tip, path)?,
            None => (None, 0),
        };
        let committed = run.scope.tip.map(|tip| repository.find_path(tip, path)).transpose()?.flatten();
        let bytes = committed.map(|blob| repository.find_blob(blob)).transpose()?.flatten();
        let now = repository.worktree.as_ref().and_then(|top| safe_files::read_beneath(top, path).ok());
        let is_uncommitted = now != bytes;
        Ok(Some(Self {
            path: path.to_owned(),
            accepted,
            by,
            changes,
            is_tracked: committed.is_some(),
            is_uncommitted,
        }))
    }

    /// Like [`Self::find`], if tasks have changed what the run accepted, some of it in this range.
    pub(crate) fn find_by_run(
        repository: &Repository,
        run: &Run,
        range: (Oid, Oid),
        path: &str,
    ) -> Result<Option<Self>, GitError> {
        let Some(start) = &run.start else { return Ok(None) };
        let [before, after] = [start.accepted, range.1].map(|commit| repository.find_path(commit, path));
        let (before, after) = (before?, after?);
        if before == after || !Self::is_edited_by_run(repository, range, path)? {
            return Ok(None);
        }
        let read = |blob: Option<Oid>| blob.map(|blob| repository.find_blob(blob)).transpose();
        let (before, after) = (read(before)?.flatten(), read(after)?.flatten());
        if is_same_version(path, before.as_deref(), after.as_deref()) {
            return Ok(None);
        }
        Self::find(repository, run, path)
    }

    /// Whether a commit of a task in this range has changed the file. Such commits contain only agents' work.
    pub(super) fn is_edited_by_run(
        repository: &Repository,
        (from, tip): (Oid, Oid),
        path: &str,
    ) -> Result<bool, GitError> {
        let revisions = [tip.to_string(), format!("^{from}"), "--".into(), format!(":(top,literal){path}")];
        for commit in repository.stream_commits(&revisions)? {
            if let MessageReading::WellFormed(message) = message::read(commit?.message())
                && message.subject.task.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Who changed it and how to undo that, one line each.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { path, accepted, by, changes, is_tracked, is_uncommitted } = self;
        let shown = shown(path);
        // The plan that a session branch uses is copied from the user's checkout, where the change may be committed.
        let since = accepted.map_or_else(|| "HEAD".to_owned(), |accepted| accepted.short());
        let own = (*is_uncommitted && *is_tracked)
            .then(|| format!("see the changes to {shown} with: git diff {since} -- {shown}\n"));
        let who = by.as_ref().filter(|_| !is_uncommitted).map(|(commit, task)| {
            let whose = task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
            let commit = commit.short();
            if let (2.., Some(accepted)) = (changes, accepted) {
                let range = format!("{}..{commit}", accepted.short());
                return format!("{changes} commits changed {shown}: git log -p {range} -- {shown}\n");
            }
            let did = if accepted.is_some() && !is_tracked { "deleted" } else { "changed" };
            format!("commit {commit}{whose} {did} {shown}: git show {commit} -- {shown}\n")
        });
        let back = match (accepted, by) {
            (Some(accepted), None) => format!("git checkout {} -- {shown}", accepted.short()),
            (Some(accepted), Some(_)) => {
                let accepted = accepted.short();
                format!("git checkout {accepted} -- {shown} && git commit -m 'Restore {shown}' -- {shown}")
            }
            (None, _) if !is_tracked => format!("rm {shown}"),
            (None, _) => format!("git rm -f {shown} && git commit -m 'Remove {shown}' -- {shown}"),
        };
        let what = if accepted.is_some() { "restore" } else { "remove the new file" };
        format!("{}to {what} {shown}, run: {back}", own.or(who).unwrap_or_default())
    }
}

/// The last commit of a range that changed a file, with its task, and how many commits changed it.
fn last_change(
    repository: &Repository,
    from: Oid,
    tip: Oid,
    path: &str,
) -> Result<(Option<TaskChange>, usize), GitError> {
    let revisions = [tip.to_string(), format!("^{from}"), "--".into(), format!(":(top,literal){path}")];
    let mut commits = repository.stream_commits(&revisions)?;
    let Some(commit) = commits.next().transpose()? else { return Ok((None, 0)) };
    let task = match message::read(commit.message()) {
        MessageReading::WellFormed(message) => message.subject.task.clone(),
        _ => None,
    };
    let others = commits.filter(Result::is_ok).count();
    Ok((Some((commit.id, task)), others + 1))
}

/// A path quoted for a shell.
fn shown(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
