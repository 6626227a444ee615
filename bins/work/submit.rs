//! `git arborist work --on`: starts workers on other machines, and ends their jobs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use arborist_core::{
    engine::{Engine, SubmittedWorkers},
    failure::{Exit, Failure},
    process::Cancel,
    run::{DEFAULT_REMOTE, RunRequest, SharedWork},
};

use crate::{
    approval, clock,
    entry::{self, Outcome},
    gardening::watch_signals,
    ui::Ui,
};

/// What is asked for.
pub(super) struct SubmitRequest<'a> {
    /// The engine, with its places.
    pub(super) on: &'a str,
    pub(super) workers: Option<usize>,
    pub(super) remote: &'a str,
    pub(super) retries_failed: bool,
    pub(super) is_dry_run: bool,
    pub(super) run: RunRequest,
}

/// Starts workers on other machines.
pub(super) fn submit(request: &SubmitRequest<'_>, ui: &mut Ui) -> Outcome {
    let cancel = watch_signals();
    let (repository, config, settings) = entry::open_with_settings(ui)?;
    let engine = Engine::find(&settings, request.on)?;
    let shared = SharedWork::find(&repository, &settings, request.remote, clock::now)?;
    let planned = shared.plan_submission(&request.run, &config, request.workers, suite()?)?;
    let (mut submission, manifest) = engine.prepare(repository.top(), planned.order)?;
    let mut commands = planned.commands.clone();
    commands.extend(engine.commands_to_approve.iter().cloned());
    commands.extend(manifest);
    approval::require(&repository, &commands, request.run.consent, ui)?;
    submission.approve(&planned.commands);
    submission.require_passable()?;
    if request.is_dry_run {
        for (command, input) in submission.commands()? {
            ui.line(&command);
            ui.line(&input);
        }
        return Ok(Exit::Done);
    }
    if request.retries_failed {
        super::retry_failed(&shared, ui)?;
    }
    let submitted = submission.submit(&cancel)?;
    report(request, &engine, &submitted, ui);
    Ok(Exit::Done)
}

/// Says what was submitted, and how to watch and end it.
fn report(request: &SubmitRequest<'_>, engine: &Engine, submitted: &SubmittedWorkers, ui: &mut Ui) {
    let SubmittedWorkers { workers, jobs } = submitted;
    let noun = if *workers == 1 { "worker" } else { "workers" };
    let words = if jobs.is_empty() { String::new() } else { format!(": {}", jobs.join(" ")) };
    ui.line(&format!("submitted {workers} {noun} to {}{words}", engine.name));
    let (to, of) = match request.remote {
        DEFAULT_REMOTE => (String::new(), String::new()),
        other => (format!(" {other}"), format!(" --remote {other}")),
    };
    ui.line(&format!("  watch   git arborist state --remote{to}"));
    if engine.has_logs() {
        let words = if jobs.is_empty() { of.clone() } else { format!(" {}", jobs.join(" ")) };
        ui.line(&format!("  logs    git arborist work logs --on {}{words}", request.on));
    }
    ui.line(&format!("  drain   git arborist work drain{of}"));
    ui.line(&format!("  stop    git arborist work stop{of}"));
    if !jobs.is_empty() {
        ui.line(&format!("  cancel  git arborist work cancel --on {} {}", request.on, jobs.join(" ")));
    }
}

/// Ends jobs of an engine.
pub(super) fn cancel(on: &str, jobs: &[String], yes: bool, ui: &mut Ui) -> Outcome {
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let engine = Engine::find(&settings, on)?;
    approval::require(&repository, &engine.commands_to_approve, approval::consent(yes), ui)?;
    for job in jobs {
        engine.cancel(job, &Cancel::new())?;
        ui.line(&format!("cancelled {job}"));
    }
    Ok(Exit::Done)
}

/// The folder with the programs of the suite.
fn suite() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().context("could not find the path of this program")?;
    Ok(program.parent().unwrap_or(Path::new("/")).to_owned())
}
