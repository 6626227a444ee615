//! `git arborist worktree run` and `restore`.

use std::{ffi::OsString, os::unix::process::ExitStatusExt, process::ExitStatus, thread, time::Duration};

use arborist_core::{
    failure::{Exit, Failure},
    git::SettingsChange,
    name::TaskId,
    pipeline::ConfigGuard,
    process::{Cancel, Program},
    worktree::{Lease, Saver, WorktreeError},
};
use clap::Args;

use super::{
    open::{WorktreeScopeArgs, open},
    show::absent,
};
use crate::{entry::Outcome, gardening::watch_signals, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct WorktreeRunArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<OsString>,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct WorktreeRestoreArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: TaskId,
    #[command(flatten)]
    scope: WorktreeScopeArgs,
}

/// Runs the command with our own standard streams. Its work is saved periodically.
pub(super) fn run(args: &WorktreeRunArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let lease = opened.pool.lease_existing(&args.task).map_err(|error| match error {
        WorktreeError::Absent(_) => absent(&opened, &args.task),
        other => other.into(),
    })?;
    // The command can change the configuration, and a save must not run programs that it names then.
    lease.repository.freeze_settings(SettingsChange::Accepted)?;
    let mut saver = Saver::new(&lease.repository, opened.pool.run(), &args.task)?;
    let program = program(&args.command, &lease)?;
    let _signals = watch_signals();
    let done = Cancel::new();
    let (status, trespass) = ConfigGuard::default().guard(&lease.repository, || {
        thread::scope(|scope| {
            let keeper = scope.spawn(|| keep_saving(&mut saver, &done, opened.options.save_every()));
            let status = program.run_to_end();
            done.cancel();
            let kept = keeper.join();
            (status, kept)
        })
    });
    if let (_, Ok(Err(error))) = &status {
        ui.warn(&format!("the files in the worktree could not be saved: {error}"));
    }
    let exit = code_of(status.0?);
    match trespass {
        Some(trespass) => {
            ui.warn(&format!("the command changed the git directory: {trespass}"));
            Ok(if exit == Exit::Child(0) { Exit::No } else { exit })
        }
        None => Ok(exit),
    }
}

/// Saves until the command ends, and once more after it. A failed save is retried later.
fn keep_saving(
    saver: &mut Saver<'_>,
    done: &Cancel,
    every: Duration,
) -> Result<(), arborist_core::git::GitError> {
    while !done.wait(every) {
        let _ = saver.save(done);
    }
    saver.save(&Cancel::new()).map(drop)
}

fn program(command: &[OsString], lease: &Lease) -> Result<Program, Failure> {
    let (name, args) = command.split_first().ok_or_else(|| Failure::new(Exit::Usage, "no command"))?;
    let program = Program::new(name).args(args).dir(&lease.path);
    let program = lease.environment.iter().fold(program, |program, (name, value)| program.env(name, value));
    Ok(program.in_guarded_environment())
}

fn code_of(status: ExitStatus) -> Exit {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Exit::Child(u8::try_from(code).unwrap_or(1))
}

pub(super) fn run_restore(args: &WorktreeRestoreArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.scope, ui)?;
    let restored = opened.pool.restore(&args.task)?;
    restored.notes.iter().for_each(|note| ui.note(&note.to_string()));
    for change in &restored.changes {
        ui.line(&change.shown());
    }
    let from = restored.from.short();
    ui.err(&match restored.changes.len() {
        0 => format!("the files are already as saved in {from}\n"),
        count => format!("restored from {from}: {count} paths\n"),
    });
    Ok(Exit::Done)
}
