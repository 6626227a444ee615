//! Which of the commands of a run a repository brought along.

use std::collections::BTreeSet;

use crate::{
    agent::AgentError,
    pipeline::{MessageBy, RunOptions, StepRunner},
    plan::Plan,
    settings::{Origin, Settings, foreign_folders},
};

/// The commands that a run could execute and that a repository brought along, one a line.
pub fn foreign_commands(
    plan: &Plan,
    options: &RunOptions,
    settings: &Settings,
) -> Result<BTreeSet<String>, AgentError> {
    let mut commands = BTreeSet::new();
    for task in &plan.tasks {
        commands.extend(task.test_commands.iter().map(|test| format!("test: {}", test.command)));
        commands.extend(task.command.iter().map(|command| format!("shell: {command}")));
    }
    if let (Some(command), Origin::Repository) = (&options.test_command, options.test_origin) {
        commands.insert(format!("test: {command}"));
    }
    for chain in options.runners.chains(plan)? {
        commands.extend(chain.iter().flat_map(|step_runner| foreign_runner(step_runner, settings)));
    }
    if options.runners.is_review_switched_off()? {
        commands.insert("review: demo (it approves everything)".to_owned());
    }
    if let MessageBy::Model(step_runner) = &options.message_by {
        commands.extend(foreign_runner(step_runner, settings));
    }
    commands.extend(foreign_folders(settings, &["worktree.base", "log-dir", "report-dir"]));
    Ok(commands)
}

/// What a repository brought along of a runner, a line each: its call, and what is set in its environment, which can
/// make any program run another.
#[must_use]
pub fn foreign_runner(step_runner: &StepRunner, settings: &Settings) -> Vec<String> {
    step_runner.foreign_lines(settings)
}
