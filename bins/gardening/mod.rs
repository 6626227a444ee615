//! What `garden` and `gardener` have in common: options, opening a run, and telling what happens.

pub mod account;
mod apart;
mod approve;
mod asked;
mod baseline;
mod budget;
mod caveats;
mod checkout;
mod elsewhere;
pub mod event;
mod forecast;
mod guest;
mod inherited_options;
mod lanes;
mod open;
mod other_repos;
mod planned;
mod record;
mod reporter;
mod runner_flags;
mod toolbox;

pub(crate) use apart::bring;
pub(crate) use approve::Brought;
pub(crate) use asked::{SWITCHES, require_given, test_wish};
pub(crate) use budget::dollars;
pub(crate) use forecast::tell as foretell;
pub(crate) use guest::{give_back, give_back_here};
pub(crate) use lanes::CLEAN_UP;
pub(crate) use open::{OpenRun, open, watch_signals};
pub(crate) use planned::{Planned, find_plan};
pub(crate) use record::only_played;
pub(crate) use reporter::Reporter;

use std::{collections::BTreeMap, path::PathBuf};

use arborist_core::{consent::Consent, pipeline::Flags};
use clap::Args;

use budget::BudgetArgs;
use inherited_options::InheritedOptions;
use runner_flags::RunnerArgs;

use crate::approval;

/// Options of every command that drives agents.
#[derive(Debug, Args)]
pub(crate) struct GardeningArgs {
    /// The plan: a tree file or a task list in Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) tree: Option<PathBuf>,
    #[command(flatten)]
    step_runner: RunnerArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// How many attempts a task has
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_retries: Option<u32>,
    /// How a task is tested that has no test commands of its own
    #[arg(long, value_name = "COMMAND")]
    test_command: Option<String>,
    /// Begin although the tests fail before the first task; only newly red tests count
    #[arg(long)]
    allow_red: bool,
    /// How many characters of a change the reviewer sees
    #[arg(long, value_name = "NUMBER")]
    diff_limit: Option<usize>,
    /// Where reports are committed
    #[arg(long, value_name = "DIR")]
    report_dir: Option<String>,
    /// Where logs are kept
    #[arg(long, value_name = "DIR")]
    log_dir: Option<String>,
    /// Begin although something is not committed; it stays as it is
    #[arg(long)]
    allow_dirty: bool,
    /// Begin a new run instead of going on with the last one
    #[arg(long)]
    new_run: bool,
    /// Work on a branch of the run's own, in a worktree beside this checkout, which is left alone; the branch stays when the
    /// run ends
    #[arg(long)]
    session_branch: bool,
    /// Go on with a plan or a configuration that has changed since the run began
    #[arg(long)]
    accept_changes: bool,
    /// Approve the commands that files of the repository bring along
    #[arg(long)]
    yes: bool,
    /// Show what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Say only what went wrong
    #[arg(short, long)]
    quiet: bool,
    /// Print what happens as JSON, an object on each line
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
    /// What is played again instead of calling anybody
    #[arg(skip)]
    pub(crate) source: CallSource,
    /// What a command has beside these, for the session's records
    #[arg(skip)]
    pub(crate) more: BTreeMap<String, String>,
    /// Which tasks are wanted, by the names of options; that holds for this call only
    #[arg(skip)]
    pub(crate) choice: Vec<(&'static str, String)>,
    /// Whether the branch is the user's, who wants it back when the run ends
    #[arg(skip)]
    pub(crate) is_guest: bool,
    /// Whether the task is the user's own words, whatever plan there is
    #[arg(skip)]
    pub(crate) is_unplanned: bool,
    /// What the session was asked for before, and still is
    #[arg(skip)]
    inherited: InheritedOptions,
    /// Whether nothing is left to do, so that nothing is asked for
    #[arg(skip)]
    pub(crate) is_idle: bool,
}

/// Where what agents do comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CallSource {
    /// They are called.
    #[default]
    Agents,
    /// They were called in the session that this one was forked from.
    Records,
}

impl GardeningArgs {
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            step_runner: self.step_runner.flags(),
            max_retries: self.max_retries,
            test_command: self.test_command.clone(),
            allow_red: self.allow_red,
            report_dir: self.report_dir.clone(),
            log_dir: self.log_dir.clone(),
            budgets: self.budget.budgets(),
            diff_limit: self.diff_limit,
        }
    }

    fn consent(&self) -> Consent {
        approval::consent(self.yes)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}
