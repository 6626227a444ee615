//! What was meant by the configuration, for everything that a queue does.

use std::collections::BTreeSet;

use super::{Afterwards, Batch, Gate, RedTarget};
use crate::{
    agent::redact::Secrets,
    failure::Explain,
    process::Cancel,
    settings::{Origin, Settings},
    worktree::WorktreeOptions,
};

/// A setting that is none.
#[derive(Debug, thiserror::Error)]
#[error("'{key}' is '{value}', but must be {expected}")]
pub struct OptionsError {
    /// The key.
    pub key: &'static str,
    /// As written.
    pub value: String,
    /// What it must be.
    pub expected: &'static str,
}

impl Explain for OptionsError {}

/// What a drain works with.
#[derive(Debug)]
pub struct Options {
    /// What has to be passed by everything that lands.
    pub gates: Vec<Gate>,
    /// How many are tested at once.
    pub batch: Batch,
    /// Whether what is red on the target too may land.
    pub red_target: RedTarget,
    /// Whether a task's branch goes when it has landed.
    pub afterwards: Afterwards,
    /// How worktrees for tests are made.
    pub worktrees: WorktreeOptions,
    /// Where logs are kept, relative to the top.
    pub log_dir: String,
    /// What must not be written down.
    pub secrets: Secrets,
    /// The wish to stop.
    pub cancel: Cancel,
    /// Seconds since 1970.
    pub clock: fn() -> i64,
}

impl Options {
    /// What these settings say.
    pub fn new(
        settings: &Settings,
        secrets: Secrets,
        cancel: &Cancel,
        clock: fn() -> i64,
    ) -> Result<Self, OptionsError> {
        let deletes = settings.switch("merge.delete-branches") == Some(true);
        Ok(Self {
            gates: gates(settings),
            batch: batch(settings),
            red_target: red_target(settings)?,
            afterwards: if deletes { Afterwards::Delete } else { Afterwards::Keep },
            worktrees: WorktreeOptions::new(settings, cancel),
            log_dir: settings.text("log-dir").unwrap_or("spec/logs").to_owned(),
            secrets,
            cancel: cancel.clone(),
            clock,
        })
    }

    /// The commands that a repository brought along, for [`consent::require`](crate::consent::require).
    #[must_use]
    pub fn foreign_commands(&self) -> BTreeSet<String> {
        let foreign = self.gates.iter().filter(|gate| gate.foreign);
        let mut commands: BTreeSet<String> = foreign.map(|gate| format!("gate: {}", gate.command)).collect();
        if !self.gates.is_empty() {
            commands.extend(self.worktrees.foreign_commands());
        }
        commands
    }
}

/// The gates in the order in which they are first named.
fn gates(settings: &Settings) -> Vec<Gate> {
    const FOLDER: &str = "merge.gates.";
    let mut names: Vec<&str> = Vec::new();
    for (key, _) in settings.below(FOLDER) {
        if let Some(name) = key.strip_suffix(".command").filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    let gate = |name: &str| {
        let key = |field: &str| format!("{FOLDER}{name}.{field}");
        let command = settings.text(&key("command"))?;
        let origin = settings.origin(&key("command")).unwrap_or(Origin::User);
        let usual = Gate::new(name, command, origin);
        Some(Gate {
            timeout: settings.count(&key("timeout")).unwrap_or(usual.timeout),
            when: settings.text(&key("when")).filter(|when| *when != "always").map(str::to_owned),
            ..usual
        })
    };
    names.into_iter().filter_map(gate).collect()
}

fn batch(settings: &Settings) -> Batch {
    let size = settings.count("merge.batch").map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    size.map_or(Batch::Auto, Batch::Size)
}

fn red_target(settings: &Settings) -> Result<RedTarget, OptionsError> {
    match settings.text("merge.red-target") {
        None | Some("hold") => Ok(RedTarget::Hold),
        Some("land") => Ok(RedTarget::Land),
        Some(other) => {
            Err(OptionsError { key: "merge.red-target", value: other.to_owned(), expected: "hold or land" })
        }
    }
}
