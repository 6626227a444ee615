//! The logs of one task: no trailer names the log of an implement step, nor that of a step without a result.

use std::{
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use arborist_core::{
    git::Repository,
    history::{Event, Run, TaskHistory},
    message::{Key, Status, Step, one_line},
    name::TaskId,
    record::{LogLink, StepLog},
    safe_files,
    settings::Settings,
};

/// How much of the end of a log is read to find its last line.
const TAIL: u64 = 4096;
/// How many characters of that line are shown.
const LONGEST: usize = 200;

/// The newest logs of a task.
#[derive(Debug, Default)]
pub(super) struct TaskLogs {
    /// The log of the last implement step.
    pub(super) implement: Option<String>,
    /// The last step, if it ended without a result, such as a reviewer that failed.
    pub(super) unfinished: Option<UnfinishedStep>,
}

/// A step of which only the log tells.
#[derive(Debug)]
pub(super) struct UnfinishedStep {
    pub(super) step: Step,
    pub(super) log: String,
    /// The last line of the log, if it is text.
    pub(super) said: Option<String>,
}

impl UnfinishedStep {
    /// Why the task did not continue.
    pub(super) fn words(&self) -> String {
        let who = if self.step == Step::Review { "the reviewer" } else { "the agent" };
        let said = self.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
        format!("the last call of {who} ended without a result{said}")
    }
}

impl TaskLogs {
    /// The logs of a task in the checkout that keeps them.
    pub(super) fn find(
        repository: &Repository,
        settings: &Settings,
        (home, run, task): (&Path, &Run, &TaskId),
    ) -> Self {
        let folder = settings.text("log-dir").unwrap_or("spec/logs");
        let head = repository.find_commit("HEAD").ok().flatten();
        let link = head.map(|head| LogLink::find_tracked(repository, (home, head), folder));
        if !matches!(link, None | Some(Ok(None))) {
            return Self::default();
        }
        let Ok(mut logs) =
            home.join(folder).canonicalize().and_then(|folder| StepLog::list(&folder, Some(task)))
        else {
            return Self::default();
        };
        // Runs of other branches write to the same folder.
        logs.retain(|log| log.session.as_ref().is_none_or(|session| run.has_work_of(session, task)));
        let name =
            |log: &StepLog| log.path.file_name().map(|name| format!("{folder}/{}", name.to_string_lossy()));
        let implement = logs.iter().rfind(|log| log.step == Step::Implement);
        let unfinished =
            logs.last().filter(|log| is_unfinished(repository, run, (task, log), name(log).as_deref()));
        let unfinished = unfinished.and_then(|log| {
            Some(UnfinishedStep { step: log.step, log: name(log)?, said: last_line(&log.path) })
        });
        let is_known = run.find(task).is_some() || unfinished.is_some();
        Self { implement: implement.filter(|_| is_known).and_then(name), unfinished }
    }
}

/// Whether no commit of the run tells how a step ended.
fn is_unfinished(
    repository: &Repository,
    run: &Run,
    (task, log): (&TaskId, &StepLog),
    name: Option<&str>,
) -> bool {
    let current = run.find(task).map(TaskHistory::current).unwrap_or_default();
    match (log.step, current.last().map(Event::status)) {
        (Step::Review, Some(Status::TestPass)) => {
            !current.iter().any(|event| event.trailers.get(Key::ReviewLog) == name)
        }
        (Step::Implement, Some(Status::TestFail | Status::ReviewRejected)) => true,
        // The log may be from an earlier run.
        (Step::Implement, None) => {
            let start = run.start.as_ref().map(|start| start.commit);
            let start = start.and_then(|start| repository.load_commits(&[start]).ok()?.pop());
            start
                .and_then(|start| Event::of(&start))
                .is_some_and(|start| log.started.as_second() >= start.time)
        }
        _ => false,
    }
}

/// The last line of a log that is text. Events of agents are not, nor are prompts and headings.
fn last_line(path: &Path) -> Option<String> {
    let mut file = safe_files::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rfind(|line| !line.trim().is_empty())?;
    let is_text = !["{", "===", "> "].iter().any(|start| last.starts_with(start));
    is_text.then(|| one_line(last).chars().take(LONGEST).collect())
}
