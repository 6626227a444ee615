//! `--ai`: an agent makes the plan. It works in the checkout and is to change nothing there; what it says is only read.

use arborist_core::{
    agent::redact::Secrets,
    event::RunEvent,
    failure::{Exit, Failure},
    git::{Config, HiddenMarks, Repository, SavedCheckout, SavedCheckouts},
    pipeline::{
        Caller, ConfigGuard, Expense, NamedRunner, RunnerFlags, RunnerTable, StepRunner, backoff, call_limits,
    },
    plan::{Plan, Problem},
    planner::{Planner, require_runner},
    run::RunListener,
    sandbox::Sandbox,
    settings::Settings,
};
use clap::Args;

use super::{Strictness, check, sources::PlanSources};
use crate::{
    approval, clock,
    gardening::{Reporter, watch_signals},
    ui::Ui,
};

/// Options for plans that an agent makes.
#[derive(Debug, Args)]
pub(super) struct AiArgs {
    /// Let an agent make the plan from the spec, with up to three calls to correct it
    #[arg(long, conflicts_with_all = ["check", "tick", "assign_ids"])]
    pub(super) ai: bool,
    /// The agent program that makes the plan: claude, codex, gemini or another built-in agent, or a runner of your own
    #[arg(long, value_name = "NAME", requires = "ai")]
    runner: Option<String>,
    /// The model that the agent uses
    #[arg(long, value_name = "MODEL", requires = "ai")]
    model: Option<String>,
    /// Approve the runner that .arborist/ defines
    #[arg(long, requires = "ai")]
    yes: bool,
}

impl AiArgs {
    fn flags(&self) -> RunnerFlags {
        RunnerFlags {
            all: NamedRunner { runner: self.runner.clone(), model: self.model.clone() },
            ..RunnerFlags::default()
        }
    }
}

/// Asks an agent for the plan of the sources.
pub(super) fn plan(
    ui: &mut Ui,
    sources: &PlanSources,
    args: &AiArgs,
    strictness: Strictness,
) -> Result<Plan, Failure> {
    let repository = sources.repository.as_ref().filter(|repository| repository.worktree.is_some());
    let repository = repository.ok_or_else(|| {
        Failure::new(Exit::Fatal, "an agent needs a checkout to work in, and this is not one")
            .hint("run this inside a repository")
    })?;
    let settings = Settings::load(repository, &Config::load(repository)?)?;
    let step_runner = RunnerTable::new(&args.flags(), &settings).planner()?;
    require_runner(&step_runner)?;
    let mut brought = settings.tracked_lines();
    brought.extend(step_runner.lines_from_repository(&settings));
    approval::require(repository, &brought, approval::consent(args.yes), ui)?;
    step_runner.require_program()?;
    // What the agent writes into the index is not believed afterwards.
    repository.make_index_known(HiddenMarks::Kept)?;
    let before = repository.snapshot()?;
    let saved = save_uncommitted(ui, repository);
    let config_guard = ConfigGuard::default();
    config_guard.protect(&step_runner.protected(), repository);
    let (made, trespass) =
        config_guard.guard(repository, || ask(ui, sources, repository, &settings, &step_runner, strictness));
    warn_of_changes(ui, repository, before)?;
    saved.iter().filter_map(SavedCheckout::compare).for_each(|words| ui.warn(&words));
    if let Some(trespass) = trespass {
        return Err(Failure::new(Exit::No, format!("the agent changed what it must not change: {trespass}"))
            .hint("the plan of this agent is not used; see what the agent changed in your files with: git status"));
    }
    let mut plan = made?;
    plan.spec_files = sources.documents.iter().map(|document| document.label.clone()).collect();
    Ok(plan)
}

fn ask(
    ui: &mut Ui,
    sources: &PlanSources,
    repository: &Repository,
    settings: &Settings,
    step_runner: &StepRunner,
    strictness: Strictness,
) -> Result<Plan, Failure> {
    let secrets = Secrets::of_environment(std::env::vars_os())?;
    let log =
        repository.common_dir.join(format!("arborist/logs/plan-{}-{}", clock::now(), std::process::id()));
    let doubts = |plan: &Plan| -> Vec<Problem> {
        if strictness == Strictness::Strict { check::findings(plan, None) } else { Vec::new() }
    };
    let mut reporter = Reporter::plain(ui);
    let mut planner = Planner {
        runner: require_runner(step_runner)?,
        model: step_runner.model.as_deref(),
        dir: repository.top(),
        log: &log,
        caller: Caller {
            runner: &step_runner.name,
            limits: call_limits(settings),
            backoff: backoff(settings),
            secrets: &secrets,
            cancel: &watch_signals(),
            orphan_lock: None,
            on_event: &mut |kind| reporter.report(RunEvent::of_run(kind)),
            observer: None,
            expense: Expense::default(),
            // A planner only reads.
            confinement: Sandbox::new(settings).confine(&step_runner.sandboxed("plan", Vec::new())),
            prior_usage: None,
        },
    };
    Ok(planner.plan(&sources.named(), doubts)?)
}

/// Saves the user's uncommitted files. The plan does not depend on it, so an error is a warning.
fn save_uncommitted(ui: &mut Ui, repository: &Repository) -> Vec<SavedCheckout> {
    // Without a commit there is nothing that a ref could be compared with.
    if repository.head.commit.is_none() {
        return Vec::new();
    }
    let SavedCheckouts { checkouts, failures } = repository.save_uncommitted("your checkout");
    failures.iter().for_each(|words| ui.warn(words));
    checkouts
}

/// A planner has no business in the worktree. What it changed stays, for the user to judge.
fn warn_of_changes(
    ui: &mut Ui,
    repository: &Repository,
    before: arborist_core::name::Oid,
) -> Result<(), Failure> {
    let changes = repository.changes(before, repository.snapshot()?)?;
    if !changes.is_empty() {
        let paths: Vec<String> = changes.iter().map(arborist_core::git::TreeChange::shown).collect();
        ui.warn(&format!("the agent must not change files, but it changed: {}", paths.join(", ")));
    }
    let now = Repository::discover_from(repository.top())?;
    if (&now.head.branch, now.head.commit) != (&repository.head.branch, repository.head.commit) {
        ui.warn("the agent must not change anything, but it moved HEAD");
    }
    Ok(())
}
