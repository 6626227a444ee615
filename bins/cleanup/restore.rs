//! `git arborist cleanup restore`.

use std::path::PathBuf;

use arborist_core::{
    cleanup::{Wish, restore},
    failure::{Exit, Failure},
    message::visible,
};
use clap::Args;

use super::open::open;
use crate::{entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// What was saved: a name that 'cleanup saved' lists, or the end of one, such as a task
    #[arg(value_name = "NAME")]
    name: String,
    /// Restore it as this branch, not as the one that it was
    #[arg(long, value_name = "NEW-BRANCH")]
    branch: Option<String>,
    /// Make its worktree here, not among the others
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(super) fn run(args: &RestoreArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let to = args.to.as_ref().map(std::path::absolute).transpose();
    let to = to.map_err(|error| Failure::new(Exit::Usage, format!("no path: {error}")))?;
    let wish = Wish { name: args.name.clone(), branch: args.branch.clone(), to };
    let restored = restore(&opened.repository, opened.pool.as_ref(), &wish)?;
    for (name, commit) in &restored.refs {
        let name = name.strip_prefix("refs/heads/").unwrap_or(name);
        ui.line(&format!("'{}' is at {}", visible(name), commit.short()));
    }
    if let Some(path) = &restored.worktree {
        ui.line(&format!("its files are in {}", visible(&path.to_string_lossy())));
    }
    Ok(Exit::Done)
}
