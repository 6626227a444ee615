//! `git arborist gardener`: every task that can be run, in order.

use arborist_core::{
    failure::Exit,
    gardener::{Failed, GardenerError, KeepGoing, Wish, wanted},
    history::State,
    name::TaskId,
    progress::{Boxes, Progress},
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    gardening::{GardeningArgs, Voice, open},
    ui::Ui,
};

const EXAMPLES: &str = "\
EXAMPLES
   Run the plan of this repository, or go on with it after a crash
       git arborist gardener

   Look first at what would be run
       git arborist gardener --dry-run

   With another agent and a test command
       git arborist gardener --runner codex --test-command 'cargo test'";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-gardener", bin_name = "git arborist gardener", about = catalog::about("gardener"), after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct GardenerArgs {
    #[command(flatten)]
    common: GardeningArgs,
    /// Only these tasks, or the tasks of these phases
    #[arg(long, value_name = "TASK")]
    only: Vec<TaskId>,
    /// Up to this task or phase, in the order of the plan, and nothing behind it
    #[arg(long, value_name = "TASK")]
    until: Option<TaskId>,
    /// Go on with other tasks when one fails
    #[arg(long)]
    keep_going: bool,
    /// Let tasks that have failed before begin anew
    #[arg(long)]
    retry_failed: bool,
}

impl GardenerArgs {
    fn wish(&self) -> Wish {
        Wish {
            only: self.only.clone(),
            until: self.until.clone(),
            keeps_going: if self.keep_going { KeepGoing::Yes } else { KeepGoing::No },
            failed: if self.retry_failed { Failed::Retry } else { Failed::Stay },
        }
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: GardenerArgs, ui: &mut Ui) -> Outcome {
    let opened = open(&args.common, ui)?;
    let run = opened.scan()?;
    let planned = opened.plan(&args.common, &run)?;
    let wish = args.wish();
    if let Some(unknown) = wish.unknown(&planned.plan) {
        return Err(GardenerError::NoTask(unknown.clone()).into());
    }
    if args.common.is_dry_run() {
        let progress = Progress::new(Some(&planned.plan), &run, Boxes::Count);
        for task in wanted(&planned.plan, &wish) {
            let state = progress.find(&task.id).map(|standing| standing.state);
            let is_due = match state {
                Some(State::Failed) => args.retry_failed,
                Some(state) => !state.is_settled(),
                None => false,
            };
            if is_due {
                ui.line(&format!("{} {}", task.id, task.name));
            }
        }
        return Ok(Exit::Done);
    }
    let mut voice = Voice::new(&args.common, ui);
    let ended = opened.begin(&args.common, &planned, &mut voice)?.run(&wish);
    voice.end(&opened, &planned, ended)
}
