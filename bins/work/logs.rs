//! `git arborist work logs`: fetches the logs of workers that an engine has started.

use std::path::{Path, PathBuf};

use anyhow::Context;
use arborist_core::{
    engine::{Engine, EngineError, WorkerLog},
    failure::{Exit, Explain, Failure},
    git::{Repository, escaped_pattern},
    message::{counted, plain_text},
    record::LogLink,
    run::SharedWork,
    safe_files,
    settings::Settings,
    workspace::map_parallel,
};

use super::LogsArgs;
use crate::{
    approval, clock,
    entry::{self, Outcome},
    gardening::watch_signals,
    logs::refuse_link,
    ui::Ui,
};

/// How many lines of a log are printed.
const SHOWN: usize = 10;

/// Fetches logs, stores them, and prints their last lines.
pub(super) fn logs(args: &LogsArgs, ui: &mut Ui) -> Outcome {
    let cancel = watch_signals();
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let engine = Engine::find(&settings, &args.on)?;
    let named = match args.jobs.as_slice() {
        [] => find_claiming_jobs(&repository, &settings, &engine, &args.remote)?,
        jobs => jobs.to_vec(),
    };
    // A folder outside of the repository needs approval if a file of the repository names it.
    let mut foreign = engine.commands_to_approve.clone();
    foreign.extend(settings.tracked_lines_of(&["log-dir"]));
    approval::require(&repository, &foreign, approval::consent(args.yes), ui)?;
    let folder = WorkerLogFolder::prepare(&repository, &settings, &engine)?;
    let listed = map_parallel(&named, |job| engine.list_jobs(job, &cancel));
    let jobs: Vec<String> =
        listed.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let fetched = map_parallel(&jobs, |job| engine.fetch_log(job, &cancel));
    let mut failed = Vec::new();
    for (job, log) in jobs.iter().zip(fetched) {
        match log {
            Ok(log) => show(&folder.store(job, &log)?, &log, ui),
            Err(error) => failed.push(error),
        }
    }
    if cancel.is_cancelled() {
        return Ok(Exit::Child(130));
    }
    summarize(failed)
}

/// The error of a command that has fetched some of the logs.
fn summarize(failed: Vec<EngineError>) -> Outcome {
    let mut failed = failed.into_iter();
    let Some(first) = failed.next() else { return Ok(Exit::Done) };
    let hint = first.hint();
    let mut failure = Failure::from(first);
    // They usually have the same cause, and so the same hint.
    failure.others.extend(
        failed.map(|error| (error.to_string(), error.hint().filter(|other| Some(other) != hint.as_ref()))),
    );
    Err(failure)
}

/// The jobs that have claims on tasks, if the user names none.
fn find_claiming_jobs(
    repository: &Repository,
    settings: &Settings,
    engine: &Engine,
    remote: &str,
) -> Result<Vec<String>, Failure> {
    let shared = SharedWork::find(repository, settings, remote, clock::now)?;
    let jobs = shared.list_jobs(engine)?;
    if jobs.is_empty() {
        let what = format!("no worker of '{}' has a claim on a task of '{}'", engine.name, shared.run());
        return Err(
            Failure::new(Exit::No, what).hint("name jobs as 'git arborist work --on' has printed them")
        );
    }
    Ok(jobs.into_iter().collect())
}

/// Prints where a log is, and its last lines.
fn show(path: &str, log: &WorkerLog, ui: &mut Ui) {
    let text = plain_text(&log.text);
    let lines: Vec<&str> = text.lines().collect();
    let cut = if log.is_cut { "; the beginning of the log is missing" } else { "" };
    ui.line(&match lines.len() {
        0 => format!("{path} (empty)"),
        count if count <= SHOWN => path.to_owned(),
        count => format!("{path} (the last {SHOWN} of {}{cut})", counted(count, "line")),
    });
    for line in &lines[lines.len().saturating_sub(SHOWN)..] {
        ui.line(&format!("  {line}"));
    }
}

/// The folder `workers/ENGINE` of the log folder.
struct WorkerLogFolder {
    path: PathBuf,
    /// Its path as the user knows it.
    name: String,
}

impl WorkerLogFolder {
    /// Finds it, and hides it from `git status`.
    fn prepare(repository: &Repository, settings: &Settings, engine: &Engine) -> Result<Self, Failure> {
        let log_dir = settings.general.log_dir.trim_end_matches('/');
        // Logs are in the main checkout, also those of other worktrees.
        let main = repository.list_worktrees()?.into_iter().next().filter(|main| !main.is_bare);
        let top = main.as_ref().map_or_else(|| repository.top().to_owned(), |main| main.path.clone());
        let head = main.and_then(|main| main.head);
        let link = head.map(|head| LogLink::find_tracked(repository, &top, head, log_dir)).transpose()?;
        refuse_link(link.flatten(), "written to")?;
        // The folder may be a link of the user to another disk.
        safe_files::allow_linked(&top.join(log_dir));
        let inner = log_dir.trim_start_matches('/');
        if inner == "spec/logs" {
            repository.exclude_logs(inner)?;
        } else {
            repository.exclude(&format!("/{}/workers/", escaped_pattern(inner)))?;
        }
        let name = format!("{log_dir}/workers/{}", engine.name);
        Ok(Self { path: top.join(&name), name })
    }

    /// Writes a log. An earlier one of the same job is replaced, also if that is a link.
    fn store(&self, job: &str, log: &WorkerLog) -> Result<String, Failure> {
        let file = Engine::log_name(job);
        let path = Path::new(&self.name).join(&file).display().to_string();
        safe_files::write(&self.path.join(&file), log.text.as_bytes())
            .with_context(|| format!("could not write '{path}'"))?;
        Ok(path)
    }
}
