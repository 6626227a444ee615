//! `git arborist init`: a commented configuration with what was found here.

use std::{fs, path::Path};

use arborist_core::{
    agent::Preset,
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::Repository,
    plan::propose_test,
    process::find_program,
    settings::{Kind, SETTINGS, Setting},
};
use clap::Parser;

use crate::{catalog, entry::Outcome, ui::Ui};

const FILE: &str = ".arborist/config.toml";

const EXAMPLES: &str = "\
EXAMPLES
   Write .arborist/config.toml with the agents and the test command that are found
       git arborist init

   Look at it first
       git arborist init --dry-run";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-init", bin_name = "git arborist init", about = catalog::about("init"), after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct InitArgs {
    /// Print the file instead of writing it
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: InitArgs, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let top = repository.worktree.as_deref().ok_or(GardenerError::Bare)?;
    let agents = installed();
    let text = configuration(top, agents.first().copied());
    if args.dry_run {
        ui.out(&text);
        return Ok(Exit::Done);
    }
    write(&top.join(FILE), &text)?;
    ui.line(&format!("wrote {FILE}"));
    ui.line(&match agents.as_slice() {
        [] => "no agent program was found on PATH; 'demo' needs none".to_owned(),
        found => format!("agents on PATH: {}", found.join(", ")),
    });
    ui.hint("look it over, then guard the record with: git arborist hooks install");
    Ok(Exit::Done)
}

/// The agent programs that are on `PATH`, in the order in which they are known.
fn installed() -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |preset: &&Preset| find_program(preset.program(), &path).is_some();
    Preset::ALL.iter().filter(is_there).map(|preset| preset.name).collect()
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if file.exists() {
        return Err(Failure::new(Exit::No, format!("'{FILE}' is there already"))
            .hint("see what would be written with: git arborist init --dry-run"));
    }
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| Failure::new(Exit::Fatal, format!("could not write '{}': {error}", file.display())))
}

/// Every key with what it does; those that were found out stand, the others are commented.
fn configuration(top: &Path, agent: Option<&str>) -> String {
    let test = propose_test(|name| fs::read_to_string(top.join(name)).ok());
    let mut text =
        "# Configuration of git arborist. It is tracked: everybody who clones this repository has it.\n"
            .to_owned();
    for setting in SETTINGS.iter().filter(|setting| !setting.key.contains('.')) {
        let found = match setting.key {
            "runner" => agent.map(str::to_owned),
            "test-command" => test.as_ref().map(|proposal| proposal.test.command.clone()),
            _ => None,
        };
        text += &entry(setting, found.as_deref());
    }
    text + "\n# Any program can be a runner:\n# [runners.robot]\n# command = [\"robot\", \"--model\", \"{model}\", \"{prompt}\"]\n"
}

fn entry(setting: &Setting, found: Option<&str>) -> String {
    let Setting { key, about, default, kind, .. } = setting;
    let comment = format!("\n# {about}\n# Default: {default}.\n");
    match (found, kind) {
        (Some(value), _) => format!("{comment}{key} = {}\n", serde_json::Value::from(value)),
        (None, Kind::Count) => format!("{comment}# {key} = 5\n"),
        (None, Kind::Switch) => format!("{comment}# {key} = false\n"),
        (None, _) => format!("{comment}# {key} = \"…\"\n"),
    }
}
