//! The tools that run a command of the repository.

use std::{path::PathBuf, time::Duration};

use arborist_core::{
    agent::redact::Secrets,
    consent::{self, Consent},
    failure::Explain,
    pipeline::Redaction,
    process::{Cancel, Ending, Limits, Program, Supervised, SupervisedEnd},
    workspace::Tool,
};

use super::{files::ToolOutput, root::Root};

/// How many characters of each stream are shown.
const SHOWN: usize = 16_000;

/// The limits of every command.
pub(super) struct CommandLimits {
    /// The git directory of the repository whose files define commands.
    pub(super) home: PathBuf,
    /// The time limit.
    pub(super) timeout: Duration,
    /// Secrets that must not be shown.
    pub(super) secrets: Secrets,
}

/// Runs a command in the repository's directory until none of its processes is left.
pub(super) fn run(root: &Root, tool: &Tool, bounds: &CommandLimits, stops: &[&Cancel]) -> ToolOutput {
    consent::require(&bounds.home, &tool.approval_line().into_iter().collect(), Consent::None).map_err(
        |error| {
            let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            format!("{error}{hint}")
        },
    )?;
    let program = Program::located("sh")
        .args(["-c", &tool.command])
        .dir(&root.path)
        .env("ARBORIST_REPO", root.name.as_str())
        .env("ARBORIST_WORKTREE", &root.path);
    let program = root.run.iter().fold(program, |program, run| program.env("ARBORIST_BRANCH", run.as_str()));
    let limits = Limits { whole: Some(bounds.timeout), ..Limits::default() };
    let supervised =
        Supervised::new(program).limits(limits).tail(SHOWN).filter(Redaction::new(&bounds.secrets));
    let supervised = stops.iter().fold(supervised, |supervised, stop| supervised.until(stop));
    let ended = supervised.run(|_| {});
    let report = report(&tool.command, &ended);
    if let Some(planted) = root.take_planted() {
        return Err(format!("{report}\n\n{planted}"));
    }
    if ended.ending.is_success() { Ok(vec![report]) } else { Err(report) }
}

fn report(command: &str, ended: &SupervisedEnd) -> String {
    let mut report = format!("'{command}' {}", ended.ending);
    if !matches!(ended.ending, Ending::TimedOut { .. }) {
        report += &format!(" after {:.1} s", ended.took.as_secs_f64());
    }
    for (stream, text) in [("stdout", &ended.stdout.text), ("stderr", &ended.stderr.text)] {
        if !text.trim().is_empty() {
            report += &format!("\n\n{stream} (last {SHOWN} characters):\n{}", text.trim_end());
        }
    }
    report
}
