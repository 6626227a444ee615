//! The MCP server with tools for agents, restricted to the worktrees of a task.

mod command;
mod excerpt;
mod files;
mod offer;
mod root;
mod search;
mod server;

use std::time::Duration;

use arborist_core::process::interrupt;
use git_arborist::{
    entry::Outcome,
    tools::{BranchArg, ToolsArgs},
    ui::Ui,
};

use self::root::{Commands, ToolSite};

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub(super) fn run(args: ToolsArgs, ui: &mut Ui) -> Outcome {
    let cancel = interrupt::watch(|signal| std::process::exit(128 + signal)).unwrap_or_default();
    let ToolSite { mut roots, home, timeout } = if args.root.is_empty() {
        ToolSite::of_workspace(ui, &cancel)?
    } else {
        ToolSite::named(&args.root, &Commands::of(&args.command, &args.root)?)?
    };
    for BranchArg { name, branch } in args.branch {
        roots.iter_mut().filter(|root| root.name == name).for_each(|root| root.run = Some(branch.clone()));
    }
    let timeout = args.timeout.map_or(timeout, Duration::from_secs);
    server::serve(roots, home, timeout, &cancel)
}
