//! `git arborist workspace foreach`.

use std::{ffi::OsString, os::unix::process::ExitStatusExt};

use arborist_core::{failure::Exit, message::visible, process::Program, workspace::WorkspaceError};
use clap::Args;

use super::open::{ChoiceArgs, ConsentArgs, open};
use crate::{entry::Outcome, ui::Ui};

/// The exit code of a shell that cannot start a program.
const NOT_FOUND: i32 = 127;

#[derive(Debug, Args)]
pub(super) struct ForeachArgs {
    /// A command for a shell, or a program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
    /// Continue with other repositories when the command fails in one
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// The command finds `ARBORIST_REPO` and `ARBORIST_WORKTREE` in its environment, as agents do.
pub(super) fn run(args: &ForeachArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    opened.require_consent(&args.consent, ui)?;
    let mut exit = Exit::Done;
    for section in opened.chosen(&args.choice)? {
        let there = opened.workspace.open(section);
        if let Err(error) = there.and_then(|there| there.ok_or_else(|| WorkspaceError::absent(section))) {
            ui.fail(&error.into());
            exit = Exit::No;
            continue;
        }
        ui.err(&format!("in {}\n", section.name));
        let program = match args.command.as_slice() {
            [script] => Program::new("sh").arg("-c").arg(script),
            [name, rest @ ..] => Program::new(name).args(rest),
            [] => return Ok(Exit::Usage),
        };
        let program = program.dir(&section.path).env("ARBORIST_REPO", section.name.as_str());
        let code = match program.env("ARBORIST_WORKTREE", &section.path).without_git_variables().run_to_end()
        {
            Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            Err(error) => {
                ui.fail(&error.into());
                NOT_FOUND
            }
        };
        if code != 0 {
            let shown: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
            ui.warn(&format!("'{}' failed in '{}'", visible(&shown.join(" ")), section.name));
            exit = Exit::Child(u8::try_from(code).unwrap_or(1));
            if !args.keep_going {
                return Ok(exit);
            }
        }
    }
    Ok(exit)
}
