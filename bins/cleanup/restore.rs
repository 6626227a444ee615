//! `git arborist cleanup restore`.

use std::path::PathBuf;

use arborist_core::{
    cleanup::{CleanupError, RestoreRequest, restore},
    failure::{Exit, Failure},
    message::visible,
};
use clap::Args;

use super::open::open;
use crate::{clock, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct CleanupRestoreArgs {
    /// A name that 'cleanup saved' lists, or the end of one, such as a task, a branch or a session
    #[arg(value_name = "NAME")]
    name: String,
    /// Restore it as this branch [default: its old name]
    #[arg(long, value_name = "NEW-BRANCH")]
    branch: Option<String>,
    /// Create its worktree in this folder; also if only commits were saved
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(super) fn run(args: &CleanupRestoreArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let to = args.to.as_ref().map(std::path::absolute).transpose();
    let to = to.map_err(|error| Failure::new(Exit::Usage, format!("no path: {error}")))?;
    let wish = RestoreRequest { name: args.name.clone(), branch: args.branch.clone(), to, now: clock::now() };
    let restored = restore(&opened.repository, opened.pool.as_ref(), &wish).map_err(with_ages)?;
    for found in &restored.refs {
        let branch = found.name.strip_prefix("refs/heads/");
        let kind = if branch.is_some() { "branch " } else { "" };
        let known = if found.is_new { "" } else { " already" };
        let name = visible(branch.unwrap_or(&found.name));
        ui.line(&format!("{kind}'{name}' is at {}{known}", found.commit.short()));
    }
    if let Some((path, branch)) = &restored.worktree {
        let branch = match branch {
            Some(branch) => format!("'{}'", visible(branch.as_str())),
            None => "no branch".into(),
        };
        let path = visible(&path.to_string_lossy());
        ui.line(&format!("restored its files in {path}, with {branch} checked out"));
        return Ok(Exit::Done);
    }
    let branches = restored.refs.iter().filter(|found| found.is_new);
    for branch in branches.filter_map(|found| found.name.strip_prefix("refs/heads/")) {
        ui.hint(&format!("for a worktree of it, run: git worktree add DIR '{}'", visible(branch)));
    }
    Ok(Exit::Done)
}

/// Adds the age of each candidate to the error for an ambiguous name.
fn with_ages(error: CleanupError) -> Failure {
    let rows: Vec<String> = match &error {
        CleanupError::Ambiguous { found, .. } => {
            let age =
                |time: &Option<i64>| time.map(|time| format!("  {}", clock::ago(time))).unwrap_or_default();
            found.iter().map(|(name, time)| format!("  {}{}", visible(name), age(time))).collect()
        }
        _ => Vec::new(),
    };
    let mut failure = Failure::from(error);
    if !rows.is_empty() {
        failure.message = format!("{}:\n{}", failure.message, rows.join("\n"));
    }
    failure
}
