//! What `garden` and `gardener` share: their options, opening a run in this checkout, and reporting.

mod borrowed_branch;
mod forecast;
mod options;
mod reporter;

pub(crate) use borrowed_branch::{release_branch, release_branch_here};
pub(crate) use forecast::{print_forecast, print_phase_forecast, print_prompts};
pub(crate) use reporter::Reporter;

use std::{collections::BTreeSet, path::PathBuf};

use arborist_core::{
    failure::Failure,
    gardener::Selection,
    pipeline::Flags,
    process::{Cancel, interrupt},
    run::{CallSource, LaneRequest, OpenRun, RunHost, RunRequest},
};
use clap::Args;

use options::{BudgetArgs, RunnerArgs};

use crate::{
    approval, clock,
    numbers::{positive, whole},
    ui::{self, Ui},
};

/// Options of every command that drives agents.
#[derive(Debug, Args)]
pub(crate) struct GardeningArgs {
    /// The plan: a task list in Markdown, or a task-tree.json. The path is relative to the top of the repository, or to
    /// the current directory if it begins with ./ or ../ or exists only there
    #[arg(long, value_name = "FILE")]
    pub(crate) tree: Option<PathBuf>,
    #[command(flatten)]
    step_runner: RunnerArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Number of attempts for each task: the first one and its retries [default: 5]
    #[arg(long, value_name = "NUMBER", value_parser = positive::<u32>)]
    max_retries: Option<u32>,
    /// Test command for tasks without their own test commands; '' runs no tests
    #[arg(long, value_name = "COMMAND")]
    test_command: Option<String>,
    /// Start although tests fail before the first task. A task then fails only if it breaks a test that passed before.
    /// If the output does not name the failed tests, each task fails until the test command succeeds
    #[arg(long)]
    allow_red: bool,
    /// Let tasks change this path although the setting 'protect' names it. --allow fewer-tests accepts a task whose
    /// test command runs fewer tests than before
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
    /// Maximum length of the diff in the reviewer's prompt, in characters; a longer diff is cut and summarized
    /// [default: 8000]
    #[arg(long, value_name = "NUMBER", value_parser = whole::<usize>)]
    diff_limit: Option<usize>,
    /// The sandbox of agents and tests. auto: on Linux, bubblewrap (bwrap) if it works, otherwise Landlock; on macOS,
    /// sandbox-exec. landlock or bwrap: use this one, and do not start if it does not work. off: no sandbox [default:
    /// auto]
    #[arg(long, value_name = "MODE", value_parser = ["auto", "landlock", "bwrap", "off"])]
    sandbox: Option<String>,
    /// The folder in the repository in which reports are committed. The path is relative to the top of the
    /// repository [default: spec/reports]
    #[arg(long, value_name = "DIR")]
    report_dir: Option<String>,
    /// The folder in the repository for the logs of steps, which are not committed. The path is relative to the top of the
    /// repository [default: spec/logs]
    #[arg(long, value_name = "DIR")]
    log_dir: Option<String>,
    /// Start even if there are uncommitted changes. They stay uncommitted, except changes to the plan and the
    /// configuration. Not needed with '--session-branch', 'gardener --jobs' or '--isolate'
    #[arg(long)]
    allow_dirty: bool,
    /// Start a new run instead of continuing the last one
    #[arg(long)]
    new_run: bool,
    /// Run on a separate branch, in a worktree beside this checkout
    #[arg(long)]
    session_branch: bool,
    /// Accept changes to the plan or the configuration since the run started
    #[arg(long)]
    accept_changes: bool,
    /// Approve commands and settings that come from the plan or from .arborist/
    #[arg(long)]
    yes: bool,
    /// Show what would run without running it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also print a line for each step and each commit; with --dry-run, the prompts
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print only failures, the summary of a run that did not succeed, and the commands that --yes approves
    #[arg(short, long)]
    quiet: bool,
    /// Print events as JSON, one object per line
    #[arg(long, conflicts_with_all = ["dry_run", "quiet"])]
    json: bool,
}

impl GardeningArgs {
    /// The options that both commands have, as a request.
    pub(crate) fn request(&self) -> RunRequest {
        RunRequest {
            tree: self.tree.clone(),
            flags: Flags {
                step_runner: self.step_runner.flags(),
                max_retries: self.max_retries,
                test_command: self.test_command.clone(),
                allow_red: self.allow_red,
                allow: self.allow.clone(),
                report_dir: self.report_dir.clone(),
                log_dir: self.log_dir.clone(),
                budgets: self.budget.budgets(),
                diff_limit: self.diff_limit,
                sandbox: self.sandbox.clone(),
            },
            lanes: LaneRequest::default(),
            shared_through: None,
            selection: Selection::default(),
            allow_dirty: self.allow_dirty,
            new_run: self.new_run,
            session_branch: self.session_branch,
            accept_changes: self.accept_changes,
            consent: approval::consent(self.yes),
            source: CallSource::Agents,
            has_borrowed_branch: false,
            is_resumed: false,
            single: None,
        }
    }
}

/// Opens a run in the current repository.
pub(crate) fn open(request: RunRequest, cancel: Cancel, ui: &mut Ui) -> Result<OpenRun, Failure> {
    let (repository, config) = crate::entry::open_repository(ui)?;
    OpenRun::open(request, RunHost { repository, config, cancel, clock: clock::now })
}

/// Asks the user to approve the commands that come from files of the repository, and remembers the options as approved.
pub(crate) fn approve_and_remember(
    opened: &OpenRun,
    commands: &BTreeSet<String>,
    ui: &mut Ui,
) -> Result<(), Failure> {
    approval::require(&opened.repository, commands, opened.request.consent, ui)?;
    opened.remember_options()
}

/// A token that the first signal cancels. The second signal ends this process. If signals cannot be watched, the first one
/// ends it, as it does in any program; the next command then repairs what is left.
pub(crate) fn watch_signals() -> Cancel {
    interrupt::watch(|signal| {
        ui::leave();
        std::process::exit(128 + signal)
    })
    .unwrap_or_default()
}
