//! `git arborist demo`: a throw-away repository, a small plan and the built-in agent, to try everything out.

mod agent;

use std::path::{Path, PathBuf};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::GitCommand,
    process::shell_word,
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    ui::{Tone, Ui},
};

const PLAN: &str = include_str!("plan.json");

const EXAMPLES: &str = "\
EXAMPLES
   See a whole run in a few seconds, without a network
       git arborist demo

   Keep the repository in a folder of your choice
       git arborist demo --into garden";

const LONG_ABOUT: &str = "\
See a whole run in a temporary repository.

The demo creates a repository with a plan of five tasks in two phases, and runs
it with a built-in agent. It takes a few seconds and needs no network, no
account and no configuration. Each command is printed before it runs, so you
can repeat it: the run itself, the state of all tasks, the history of one task,
and the commits.

The demo's reviewer rejects the first attempt at task T003, to show how a
second attempt gets the review in its prompt.

The agent is also a runner called 'demo'. Use it to try a plan of your own
before you pay for a model: it writes a small file for each task and approves
every review.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-demo", bin_name = "git arborist demo", about = catalog::about("demo"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct DemoArgs {
    /// Where to create the repository [default: a new folder for temporary files]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Act as the agent: read a prompt from standard input and follow it
    #[arg(long, hide = true)]
    agent: bool,
}

/// Runs the command.
pub fn run(args: DemoArgs, ui: &mut Ui) -> Outcome {
    if args.agent {
        return agent::run(ui);
    }
    let folder = args
        .into
        .unwrap_or_else(|| std::env::temp_dir().join(format!("arborist-demo-{}", std::process::id())));
    prepare(&folder)?;
    let shown = folder.display().to_string();
    ui.line(&format!("A repository with a plan of five tasks is in {shown}.\n"));
    let repository = shell_word(&shown);
    let removal = format!("rm -rf {repository} {}", shell_word(&format!("{shown}.arborist")));
    let steps: [&[&str]; 4] = [
        &["arborist", "gardener", "--runner", "demo", "--yes"],
        &["arborist", "state"],
        &["arborist", "state", "T003"],
        // Long subjects are wrapped.
        &["--no-pager", "log", "--reverse", "--format=%w(79,0,8)%h %s"],
    ];
    for step in steps {
        ui.out(&ui.paint(Tone::Strong, &format!("$ git {}\n", typed(step))));
        ui.err("");
        git(step[0], &folder).args(&step[1..]).run_to_end().map_err(|_| stopped(step, &removal))?;
        ui.line("");
    }
    ui.line(&format!("Look around:\n    cd {repository} && git log -p"));
    ui.line(&format!("The repository and its worktrees stay until you remove them:\n    {removal}"));
    Ok(Exit::Done)
}

/// The command line for people.
fn typed(step: &[&str]) -> String {
    let quoted = |arg: &&str| if arg.contains([' ', '%']) { format!("'{arg}'") } else { (*arg).to_owned() };
    step.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The error for a step that failed. It has printed why.
fn stopped(step: &[&str], removal: &str) -> Failure {
    Failure::new(Exit::Fatal, format!("the demo stopped, because this command failed: git {}", typed(step)))
        .hint(format!("remove its repository with: {removal}"))
}

/// A command in the demo's repository, without the user's own settings: their test command and runners are for other
/// repositories.
fn git(name: &str, folder: &Path) -> GitCommand {
    let command = GitCommand::watched(name, folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("XDG_CONFIG_HOME", folder.join(".git/no-settings"));
    ["AUTHOR", "COMMITTER"].iter().fold(command, |command, who| {
        command.env(&format!("GIT_{who}_NAME"), "Demo").env(&format!("GIT_{who}_EMAIL"), "demo@example.com")
    })
}

fn prepare(folder: &Path) -> Result<(), Failure> {
    let shown = folder.display().to_string();
    if folder.exists() {
        return Err(Failure::new(Exit::Fatal, format!("'{shown}' already exists"))
            .hint("name another folder with --into"));
    }
    std::fs::create_dir_all(folder).with_context(|| format!("could not create '{shown}'"))?;
    for (name, text) in [("task-tree.json", PLAN), ("README.md", "# A garden\n")] {
        std::fs::write(folder.join(name), text).with_context(|| format!("could not write '{name}'"))?;
    }
    for args in [["init", "-q", "-b", "main"].as_slice(), &["add", "-A"], &["commit", "-q", "-m", "begin"]] {
        git(args[0], folder).args(&args[1..]).stdout()?;
    }
    Ok(())
}
