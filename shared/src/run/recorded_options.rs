//! The options that a session records ([`RECORDED`]): how each is typed, and where a recorded value may be used again.

use std::collections::BTreeSet;

use crate::{consent::RECORDED_OPTION, process::shell_word, session::RecordedOptions};

/// The option whose value is a command. A recorded value is used again only if the user has given it in this
/// repository.
pub const TEST: &str = "test-command";

/// The option that permits changes to protected files.
pub(super) const ALLOW: &str = "allow";

/// How an option is typed, and what its recorded value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// With one value.
    Value,
    /// Once for each value. The values are recorded with commas between them.
    List,
    /// Once for each value. The values may contain commas, so each is recorded on its own line.
    Lines,
    /// Without a value.
    Switch,
    /// With a directory, which is used only if it is below the top of the repository.
    Folder,
}

/// An option that a session records.
#[derive(Debug)]
pub struct RecordedOption {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// How it is typed.
    pub kind: OptionKind,
    /// Whether it selects worktrees and landings. Only `gardener` has such options.
    pub(super) is_of_lanes: bool,
    /// Whether it needs no approval, like the setting of the same meaning in a tracked file: it chooses neither who
    /// works or reviews, nor what a reviewer sees, nor how much may be spent. The test command is approved separately.
    is_harmless: bool,
    /// Whether it also applies if the records of a session are replayed without agents.
    pub is_replayed: bool,
}

/// The options that a session records, listed once for writing and for reading.
pub static RECORDED: [RecordedOption; 25] = [
    RecordedOption::new("runner", OptionKind::Value),
    RecordedOption::new("model", OptionKind::Value),
    RecordedOption::new("implement-runner", OptionKind::Value),
    RecordedOption::new("implement-model", OptionKind::Value),
    RecordedOption::new("review-runner", OptionKind::Value),
    RecordedOption::new("review-model", OptionKind::Value),
    RecordedOption::new("fallback", OptionKind::List),
    RecordedOption::new("tools", OptionKind::Switch),
    RecordedOption::new(TEST, OptionKind::Value).harmless().replayed(),
    RecordedOption::new(ALLOW, OptionKind::Lines).replayed(),
    RecordedOption::new("sandbox", OptionKind::Value),
    RecordedOption::new("report-dir", OptionKind::Folder).harmless(),
    RecordedOption::new("log-dir", OptionKind::Folder).harmless(),
    RecordedOption::new("diff-limit", OptionKind::Value),
    RecordedOption::new("max-retries", OptionKind::Value).harmless().replayed(),
    RecordedOption::new("max-cost", OptionKind::Value),
    RecordedOption::new("max-tokens", OptionKind::Value),
    RecordedOption::new("max-time", OptionKind::Value),
    RecordedOption::new("max-task-cost", OptionKind::Value),
    RecordedOption::new("max-task-tokens", OptionKind::Value),
    RecordedOption::new("max-task-time", OptionKind::Value),
    RecordedOption::new("jobs", OptionKind::Value).of_lanes().harmless().replayed(),
    RecordedOption::new("isolate", OptionKind::Switch).of_lanes().harmless().replayed(),
    RecordedOption::new("policy", OptionKind::Value).of_lanes().harmless(),
    RecordedOption::new("keep-going", OptionKind::Switch).of_lanes().harmless().replayed(),
];

impl RecordedOption {
    const fn new(name: &'static str, kind: OptionKind) -> Self {
        Self { name, kind, is_of_lanes: false, is_harmless: false, is_replayed: false }
    }

    const fn of_lanes(self) -> Self {
        Self { is_of_lanes: true, ..self }
    }

    const fn harmless(self) -> Self {
        Self { is_harmless: true, ..self }
    }

    const fn replayed(self) -> Self {
        Self { is_replayed: true, ..self }
    }

    /// The option with this name; `None` if it is not recorded.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        RECORDED.iter().find(|option| option.name == name)
    }
}

/// Whether this is the name of an option that only `gardener` has.
pub(super) fn is_of_lanes(name: &str) -> bool {
    RecordedOption::find(name).is_some_and(|option| option.is_of_lanes)
}

/// A recorded option as it is typed.
#[derive(Debug, Clone, Copy)]
pub struct OptionArgument<'a> {
    name: &'a str,
    /// `None` for a switch.
    value: Option<&'a str>,
}

impl<'a> OptionArgument<'a> {
    /// The options to type for what was recorded under a name. One that is not known has a value.
    #[must_use]
    pub fn of_recorded(name: &'a str, recorded: &'a str) -> Vec<Self> {
        let typed = |value| Self { name, value: Some(value) };
        match RecordedOption::find(name).map(|option| option.kind) {
            Some(OptionKind::Switch) => vec![Self { name, value: None }],
            Some(OptionKind::List) => recorded.split(',').map(typed).collect(),
            Some(OptionKind::Lines) => recorded.lines().map(typed).collect(),
            _ => vec![typed(recorded)],
        }
    }

    /// As one argument of a program.
    #[must_use]
    pub fn argument(self) -> String {
        let Self { name, value } = self;
        value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"))
    }

    /// For a shell command line, with a space before it.
    pub(super) fn words(self) -> String {
        self.value.map_or_else(|| format!(" --{}", self.name), |value| typed_option(self.name, value))
    }
}

/// An option with its value for a shell command line, with a space before it.
pub(super) fn typed_option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" --{name}{between}{}", shell_word(value))
}

/// Options for a shell command line, each preceded by a space.
pub(super) fn recorded_words(recorded_options: &RecordedOptions) -> String {
    let typed =
        recorded_options.options.iter().flat_map(|(name, value)| OptionArgument::of_recorded(name, value));
    typed.map(OptionArgument::words).collect::<String>() + &options_with_secrets(recorded_options)
}

/// The options that hold a secret, with a placeholder that the user has to fill in.
pub(super) fn options_with_secrets(recorded_options: &RecordedOptions) -> String {
    recorded_options.withheld.iter().map(|name| format!(" --{name} <the same as before>")).collect()
}

/// The texts that are approved for recorded options. Records are refs and may come from anywhere, and the run would use
/// their options as if the user had given them.
#[must_use]
pub fn option_approvals<'a>(options: impl Iterator<Item = (&'a String, &'a String)>) -> BTreeSet<String> {
    let words = |name: &str, value: &str| format!("--{name}={value}{RECORDED_OPTION}");
    options
        .flat_map(|(name, value)| match RecordedOption::find(name) {
            Some(option) if option.is_harmless => Vec::new(),
            Some(RecordedOption { kind: OptionKind::Lines, .. }) => {
                value.lines().map(|one| words(name, one)).collect()
            }
            _ => vec![words(name, value)],
        })
        .collect()
}
