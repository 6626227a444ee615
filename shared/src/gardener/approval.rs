//! Consent to commands that come from files of the repository: given once for a text, kept with the user.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::GardenerError;
use crate::{
    name::digest,
    pipeline::{Crew, Options},
    plan::Plan,
    settings::{Origin, Settings},
};

/// What the user says to commands that are not approved yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Yes, and remember it (`--yes`).
    Given,
    /// Yes, this once (`ARBORIST_TRUST`).
    Trusted,
    /// Nothing.
    None,
}

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

/// Refuses commands that the user has not seen.
pub fn require(commands: &BTreeSet<String>, consent: Consent) -> Result<(), GardenerError> {
    let unseen: Vec<&String> =
        commands.iter().filter(|command| !file_of(command).is_some_and(|file| file.is_file())).collect();
    match consent {
        _ if unseen.is_empty() => Ok(()),
        Consent::Trusted => Ok(()),
        Consent::None => {
            let lines: Vec<String> = unseen.iter().map(|command| format!("  {command}")).collect();
            Err(GardenerError::Unapproved(lines.join("\n")))
        }
        Consent::Given => unseen.into_iter().try_for_each(|command| remember(command)),
    }
}

fn remember(command: &str) -> Result<(), GardenerError> {
    let Some(file) = file_of(command) else {
        return Ok(());
    };
    let write = || {
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        fs::write(&file, format!("{command}\n"))
    };
    write().map_err(|source| GardenerError::Approval { path: file.display().to_string(), source })
}

/// One file for each text, in the user's own state.
fn file_of(command: &str) -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("git-arborist/approved").join(digest(command.as_bytes())))
}
