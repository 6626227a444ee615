//! Which of the commands of a run a repository brought along.

use std::collections::BTreeSet;

use crate::{
    pipeline::{Crew, Options},
    plan::Plan,
    settings::{Origin, Settings},
};

/// The commands that a run could execute and that a repository brought along, one a line.
#[must_use]
pub fn foreign_commands(plan: Option<&Plan>, options: &Options, settings: &Settings) -> BTreeSet<String> {
    let mut commands = BTreeSet::new();
    for task in plan.iter().flat_map(|plan| &plan.tasks) {
        commands.extend(task.test_commands.iter().map(|test| format!("test: {}", test.command)));
        commands.extend(task.command.iter().map(|command| format!("shell: {command}")));
    }
    if let (Some(command), Origin::Repository) = (&options.test_command, options.test_origin) {
        commands.insert(format!("test: {command}"));
    }
    commands.extend(
        [&options.implement, &options.review].into_iter().flat_map(|crew| foreign_runner(crew, settings)),
    );
    commands
}

/// What a repository brought along of a runner, a line each: its call, and what is set in its environment, which can
/// make any program run another.
#[must_use]
pub fn foreign_runner(crew: &Crew, settings: &Settings) -> Vec<String> {
    let key = |field: &str| format!("runners.{}.{field}", crew.name);
    let is_foreign = |key: &str| settings.origin(key) == Some(Origin::Repository);
    let command = key("command");
    let call = is_foreign(&command).then(|| settings.words(&command).unwrap_or_default().join(" "));
    let mut lines: Vec<String> =
        call.map(|call| format!("runner {}: {call}", crew.name)).into_iter().collect();
    let env = key("env.");
    for (name, value) in settings.below(&env).filter(|(name, _)| is_foreign(&format!("{env}{name}"))) {
        lines.push(format!("runner {}: {name}={value}", crew.name));
    }
    lines
}
