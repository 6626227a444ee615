//! `hooks install` and `hooks uninstall`: plan everything first, then show or apply the plan.

use std::path::PathBuf;

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository},
    message::visible,
    process::find_program,
};

use super::{
    Manner,
    agent::{self, SettingsRequest},
    chosen,
    event::{HookEvent, Quoted},
    plan::{self, HookChange, HookPlan, plan_install, plan_uninstall, refuse_outside},
    site::HookSite,
};
use crate::{entry::Outcome, ui::Ui};

const BINARY: &str = "git-arborist-hooks";

/// The options.
#[derive(Debug)]
pub(super) struct HookOptions {
    pub(super) names: Vec<HookEvent>,
    pub(super) manner: Manner,
}

pub(super) fn install(options: &HookOptions, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let config = Config::load(&repository)?;
    let binary = Quoted::path(&own_path(BINARY)?);
    let load = |event| HookSite::load(event, &repository, &config);
    if options.names.contains(&HookEvent::Update) {
        return Err(Failure::new(Exit::Usage, "the update hook was replaced by pre-receive")
            .hint("install that: git arborist hooks install pre-receive"));
    }
    let names = chosen(&options.names, &repository, &config);
    let sites = names.iter().copied().map(load).collect::<Result<Vec<_>, _>>()?;
    refuse_outside(&sites)?;
    let plans = sites.iter().map(|site| plan_install(site, &binary));
    let mut plans = plans.collect::<Result<Vec<_>, Failure>>()?;
    if names.contains(&HookEvent::PreReceive) {
        // An earlier version installed it, and pre-receive checks everything that it checked.
        let old = plan_uninstall(&load(HookEvent::Update)?);
        plans.extend((!old.steps.is_empty()).then_some(old));
    }
    carry_out(&plans, options, &repository, ui)?;
    if !options.manner.quiet {
        plans.iter().flat_map(|plan| &plan.notes).for_each(|note| ui.hint(note));
    }
    Ok(Exit::Done)
}

pub(super) fn uninstall(options: &HookOptions, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let config = Config::load(&repository)?;
    let plan = |event| Ok(plan_uninstall(&HookSite::load(event, &repository, &config)?));
    let is_named = |event: &HookEvent| options.names.is_empty() || options.names.contains(event);
    let names = HookEvent::ALL.into_iter().filter(is_named);
    let mut plans = names.map(plan).collect::<Result<Vec<_>, Failure>>()?;
    // Only an earlier version installed it.
    plans.retain(|plan| plan.event != HookEvent::Update || !plan.steps.is_empty() || !plan.left.is_empty());
    carry_out(&plans, options, &repository, ui)?;
    if options.names.is_empty() && repository.worktree.is_some() {
        let binary = Quoted::path(&own_path(agent::BINARY)?);
        if agent::plan(&repository, SettingsRequest::Uninstall, &binary)?.is_some() {
            change_agent(SettingsRequest::Uninstall, options, ui)?;
        } else if !options.manner.dry_run {
            agent::stop_hiding(&repository)?;
        }
    }
    let left: Vec<&str> = plans.iter().flat_map(|plan| &plan.left).map(String::as_str).collect();
    match left.as_slice() {
        [] => Ok(Exit::Done),
        left => Err(Failure::new(Exit::Person, format!("not removed: {}", left.join("; ")))
            .hint("look at it and delete it, then run the same command again; it restores the hook that was there before")),
    }
}

/// Installs or removes the hooks of an interactive agent.
pub(super) fn change_agent(wish: SettingsRequest, options: &HookOptions, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let binary = Quoted::path(&own_path(agent::BINARY)?);
    let step = agent::plan(&repository, wish, &binary)?;
    let is_dry_run = options.manner.dry_run;
    if let Some(step) = step.as_ref().filter(|_| !is_dry_run) {
        plan::apply(step, &repository)?;
        match (wish, step) {
            (SettingsRequest::Install, _) => agent::hide(&repository)?,
            (SettingsRequest::Uninstall, HookChange::Remove { .. }) => agent::remove_folder(&repository),
            (SettingsRequest::Uninstall, _) => {}
        }
    }
    if wish == SettingsRequest::Uninstall && !is_dry_run {
        agent::stop_hiding(&repository)?;
    }
    if options.manner.quiet {
        return Ok(Exit::Done);
    }
    let done = match &step {
        None => "nothing to do".to_owned(),
        Some(step) if is_dry_run => format!("would {step}"),
        Some(step) => step.done(),
    };
    ui.line(&visible(&format!("claude: {done}")));
    if wish == SettingsRequest::Install && step.is_some() {
        ui.hint("each turn that writes files is committed to the branch that is checked out");
    }
    Ok(Exit::Done)
}

fn carry_out(
    plans: &[HookPlan],
    options: &HookOptions,
    repository: &Repository,
    ui: &mut Ui,
) -> Result<(), Failure> {
    for plan in plans {
        let name = plan.event.as_str();
        let mut lines: Vec<String> = Vec::new();
        for step in &plan.steps {
            let what = if options.manner.dry_run {
                format!("would {step}")
            } else {
                plan::apply(step, repository)?;
                step.done()
            };
            lines.push(format!("{name}: {what}"));
        }
        if lines.is_empty() && plan.left.is_empty() {
            lines.push(format!("{name}: nothing to do"));
        }
        if !options.manner.quiet {
            lines.iter().for_each(|line| ui.line(&visible(line)));
        }
    }
    Ok(())
}

/// The path of one of our programs, next to this one. If `PATH` has the same file, that name is used, because it
/// survives updates.
fn own_path(binary: &str) -> Result<PathBuf, Failure> {
    let here =
        std::env::current_exe().context("could not find the path of this program")?.with_file_name(binary);
    let on_path = find_program(binary, &std::env::var_os("PATH").unwrap_or_default());
    let is_same = |path: &PathBuf| path.is_absolute() && path.canonicalize().ok() == here.canonicalize().ok();
    Ok(on_path.filter(is_same).unwrap_or(here))
}
