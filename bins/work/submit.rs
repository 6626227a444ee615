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
pub(super) fn submit(asked: &SubmitRequest<'_>, ui: &mut Ui) -> Outcome {
    let cancel = watch_signals();
    let (repository, config, settings) = entry::open_with_settings(ui)?;
    let engine = Engine::find(&settings, asked.on)?;
    let shared = SharedWork::find(&repository, &settings, asked.remote, clock::now)?;
    let planned = shared.plan_submission(&asked.run, &config, (asked.workers, suite()?))?;
    let (mut submission, manifest) = engine.prepare(repository.top(), planned.order)?;
    let mut commands = planned.commands.clone();
    commands.extend(engine.foreign_commands().iter().cloned());
    commands.extend(manifest);
    approval::require(&repository, &commands, asked.run.consent, ui)?;
    submission.approve(&planned.commands);
    submission.require_passable()?;
    if asked.is_dry_run {
        for (command, input) in submission.commands()? {
            ui.line(&command);
            ui.line(&input);
        }
        return Ok(Exit::Done);
    }
    if asked.retries_failed {
        super::retry_failed(&shared, ui)?;
    }
    let submitted = submission.submit(&cancel)?;
    tell(asked, &engine, &submitted, ui);
    Ok(Exit::Done)
}

/// Says what was submitted, and how to watch and end it.
fn tell(asked: &SubmitRequest<'_>, engine: &Engine, submitted: &SubmittedWorkers, ui: &mut Ui) {
    let SubmittedWorkers { workers, jobs } = submitted;
    let noun = if *workers == 1 { "worker" } else { "workers" };
    let words = if jobs.is_empty() { String::new() } else { format!(": {}", jobs.join(" ")) };
    ui.line(&format!("submitted {workers} {noun} to {}{words}", engine.name()));
    let (to, of) = match asked.remote {
        DEFAULT_REMOTE => (String::new(), String::new()),
        other => (format!(" {other}"), format!(" --remote {other}")),
    };
    ui.line(&format!("  watch   git arborist state --remote{to}"));
    if engine.has_logs() {
        let words = if jobs.is_empty() { of.clone() } else { format!(" {}", jobs.join(" ")) };
        ui.line(&format!("  logs    git arborist work logs --on {}{words}", asked.on));
    }
    ui.line(&format!("  drain   git arborist work drain{of}"));
    ui.line(&format!("  stop    git arborist work stop{of}"));
    if !jobs.is_empty() {
        ui.line(&format!("  cancel  git arborist work cancel --on {} {}", asked.on, jobs.join(" ")));
    }
}

/// Ends jobs of an engine.
pub(super) fn cancel(on: &str, jobs: &[String], yes: bool, ui: &mut Ui) -> Outcome {
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let engine = Engine::find(&settings, on)?;
    approval::require(&repository, engine.foreign_commands(), approval::consent(yes), ui)?;
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
