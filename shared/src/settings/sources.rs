//! The sources of settings: files, git's configuration and the environment.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use super::{
    Origin, SETTINGS, SIGN, Setting, SettingsError, ValueKind,
    file::{SettingLine, flatten},
    general::{AGENT_STEPS, COMMAND_STEPS},
    value::{Assigned, Value, find_assigned},
    workspace::PREFIX,
};
use crate::{
    git::{Config, ConfigEntry},
    message::nearest,
    name::RepoName,
    safe_files::InnerPath,
};

/// Variables with our prefix that are not settings: set by users for one command, by engines for workers, or by us for
/// agents, tests, gates, hooks and set-up commands.
const NON_SETTING_VARIABLES: [&str; 15] = [
    "ARBORIST_TRUST",
    "ARBORIST_APPROVED",
    "ARBORIST_ENGINE",
    "ARBORIST_JOB",
    "ARBORIST_DRIVER",
    "ARBORIST_PROCESS",
    "ARBORIST_TASK",
    "ARBORIST_WORKTREE",
    "ARBORIST_REPO",
    "ARBORIST_REPOSITORY",
    "ARBORIST_BRANCH",
    "ARBORIST_SESSION",
    "ARBORIST_GATE",
    "ARBORIST_PORT",
    "ARBORIST_PORTS",
];

/// How the variables of settings begin.
const PREFIX_OF_VARIABLES: &str = "ARBORIST_";

/// How much of a wrong value a message shows.
const MAX_SHOWN: usize = 60;

/// Where a value is set.
pub(super) struct Source {
    /// File and line, the location in git's configuration, the variable or the flag.
    pub(super) place: String,
    pub(super) origin: Origin,
}

/// What the sources of settings say, the lowest precedence first.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) assigned: Vec<Assigned>,
    /// Folders with tracked files that files of the repository name.
    pub(super) tracked_folders: BTreeSet<String>,
}

impl Sources {
    pub(super) fn add_file(
        &mut self,
        file: &Path,
        read: io::Result<Vec<u8>>,
        origin: Origin,
    ) -> Result<(), SettingsError> {
        let label = file.display().to_string();
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8");
        let text = match read.and_then(|bytes| String::from_utf8(bytes).map_err(invalid)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(SettingsError::Unreadable { file: label, source }),
        };
        self.add_text(&label, &text, origin)
    }

    /// Refuses a gate in the repository's files that no source gives a command: it would pass unseen.
    pub(super) fn refuse_gate_without_command(&self) -> Result<(), SettingsError> {
        let is_tracked = |assigned: &&Assigned| assigned.origin == Origin::Repository;
        for assigned in self.assigned.iter().filter(is_tracked) {
            let Some((name, _)) =
                assigned.key.strip_prefix("merge.gates.").and_then(|gate| gate.rsplit_once('.'))
            else {
                continue;
            };
            if find_assigned(&self.assigned, &format!("merge.gates.{name}.command")).is_none() {
                let (place, what) = (assigned.place.clone(), format!("the gate '{name}' has no command"));
                return Err(SettingsError::WrongGate { place, what, in_git: false });
            }
        }
        Ok(())
    }

    pub(super) fn add_text(&mut self, label: &str, text: &str, origin: Origin) -> Result<(), SettingsError> {
        // The parser sorts keys by name. The error that comes first in the file is reported.
        let mut first: Option<(usize, SettingsError)> = None;
        for line in flatten(label, text)? {
            let number = line.place.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            if let Err(error) = self.add_line(line, origin)
                && first.as_ref().is_none_or(|(before, _)| number < *before)
            {
                first = Some((number, error));
            }
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn add_line(&mut self, line: SettingLine, origin: Origin) -> Result<(), SettingsError> {
        let setting = require_key(&line.key, &line.place)?;
        if setting.key == SIGN {
            return Err(SettingsError::GitOnly { place: line.place, key: line.key });
        }
        let value = line.value.and_then(|value| value.fit(setting.kind)).ok_or(line.text);
        self.add(setting, line.key, value, Source { place: line.place, origin })
    }

    pub(super) fn add_key(&mut self, key: &str, text: &str, source: Source) -> Result<(), SettingsError> {
        let setting = require_key(key, &source.place)?;
        let value = Value::parse(text, setting.kind).ok_or_else(|| quoted(text));
        self.add(setting, key.to_owned(), value, source)
    }

    pub(super) fn add_git(&mut self, config: &Config) -> Result<(), SettingsError> {
        refuse_false_bare(config)?;
        let entries: Vec<&ConfigEntry> = config.section("arborist.").collect();
        for (index, &entry) in entries.iter().enumerate() {
            let key = entry.key.trim_start_matches("arborist.");
            let place = place_of(&entry.origin);
            let setting = require_key(key, &place).map_err(SettingsError::of_git)?;
            let text = if setting.kind.is_list() {
                // All values of one scope are one list, which is added at the place of the last.
                let is_same = |other: &ConfigEntry| other.key == entry.key && other.scope == entry.scope;
                if entries[index + 1..].iter().any(|&later| is_same(later)) {
                    continue;
                }
                let values = entries.iter().filter(|&&other| is_same(other));
                list_text(values.map(|same| same.value.as_deref()))
            } else {
                let bare = (setting.kind == ValueKind::Switch).then_some("true");
                entry.value.as_deref().or(bare).unwrap_or_default().to_owned()
            };
            let value = Value::parse(&text, setting.kind).ok_or_else(|| quoted(&text));
            let added = self.add(setting, key.to_owned(), value, Source { place, origin: Origin::User });
            added.map_err(SettingsError::of_git)?;
        }
        Ok(())
    }

    pub(super) fn add_environment(&mut self) -> Result<(), SettingsError> {
        refuse_mistyped_variable()?;
        for setting in SETTINGS {
            let Some(variable) = setting.variable else { continue };
            if let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) {
                let value = text.to_str().and_then(|text| Value::parse(text, setting.kind));
                let value = value.ok_or_else(|| quoted(&text.to_string_lossy()));
                let source = Source { place: variable.to_owned(), origin: Origin::User };
                self.add(setting, setting.key.to_owned(), value, source)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        setting: &Setting,
        key: String,
        value: Result<Value, String>,
        Source { place, origin }: Source,
    ) -> Result<(), SettingsError> {
        let value = match value {
            Ok(Value::Text(path)) if setting.kind == ValueKind::InnerPath => {
                if let Err(source) = path.trim_end_matches('/').parse::<InnerPath>() {
                    return Err(SettingsError::WrongFolder { place, key, source });
                }
                Value::Text(path)
            }
            // A program is needed.
            Ok(Value::Words(words)) if words.is_empty() && setting.key == "runners.*.command" => {
                let expected = setting.expected();
                return Err(SettingsError::WrongValue { place, key, found: "empty".to_owned(), expected });
            }
            Ok(value) => value,
            Err(found) => {
                let found = found.chars().take(MAX_SHOWN).collect();
                return Err(SettingsError::WrongValue { place, key, found, expected: setting.expected() });
            }
        };
        self.assigned.push(Assigned { key, value, origin, place });
        Ok(())
    }
}

/// The text of a list that has several values in git's configuration (`git config --add`). As in git, an empty value
/// removes those before it.
fn list_text<'a>(values: impl Iterator<Item = Option<&'a str>>) -> String {
    let values: Vec<&str> = values.map(Option::unwrap_or_default).collect();
    let after_empty = values.iter().rposition(|value| value.is_empty()).map_or(0, |at| at + 1);
    values[after_empty..].join("\n")
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

pub(super) fn require_key(key: &str, place: &str) -> Result<&'static Setting, SettingsError> {
    let repo = key.strip_prefix(PREFIX).map(|rest| rest.split('.').next().unwrap_or(rest));
    if let Some(Err(source)) = repo.map(str::parse::<RepoName>) {
        return Err(SettingsError::WrongName { place: place.to_owned(), source });
    }
    let place = || place.to_owned();
    let step = key.strip_prefix("steps.").map(|rest| rest.split('.').next().unwrap_or(rest));
    if let Some(step) = step.filter(|step| !AGENT_STEPS.contains(step) && !COMMAND_STEPS.contains(step)) {
        return Err(SettingsError::UnknownStep { place: place(), step: step.to_owned() });
    }
    let Some(setting) = SETTINGS.iter().find(|setting| setting.is(key)) else {
        if is_incomplete_gate_key(key) {
            let what = format!("'{key}' is not a gate with a name and a command");
            return Err(SettingsError::WrongGate { place: place(), what, in_git: false });
        }
        return Err(SettingsError::UnknownKey { place: place(), section: "", key: key.to_owned() });
    };
    if let Some(step) = step.filter(|step| COMMAND_STEPS.contains(step))
        && !setting.key.starts_with("steps.*.sandbox.")
    {
        return Err(SettingsError::NoAgentStep {
            place: place(),
            step: step.to_owned(),
            key: key.to_owned(),
        });
    }
    Ok(setting)
}

/// Whether a key is `merge.gates` or `merge.gates.NAME`, and so lacks the setting of a gate.
fn is_incomplete_gate_key(key: &str) -> bool {
    let mut names = key.split('.');
    (names.next(), names.next()) == (Some("merge"), Some("gates")) && names.count() < 2
}

/// Refuses a variable whose name looks like a mistyped one of ours. Others with our prefix may belong to another program:
/// Kubernetes sets ARBORIST_SERVICE_HOST in every pod beside a service of the name 'arborist'.
fn refuse_mistyped_variable() -> Result<(), SettingsError> {
    let variables = || SETTINGS.iter().filter_map(|setting| setting.variable);
    let own = |name: &str| NON_SETTING_VARIABLES.contains(&name) || variables().any(|known| known == name);
    let find_meant = |name: &str| {
        let words = variables().filter_map(|known| known.strip_prefix(PREFIX_OF_VARIABLES));
        let meant = nearest(name.strip_prefix(PREFIX_OF_VARIABLES)?, words)?;
        variables().find(|known| known.strip_prefix(PREFIX_OF_VARIABLES) == Some(meant))
    };
    let mistyped = std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| !own(name))
        .filter_map(|name| find_meant(&name).map(|meant| (name, meant)));
    // The environment has no order; the smallest makes the error the same each time.
    mistyped.min().map_or(Ok(()), |(name, meant)| Err(SettingsError::UnknownVariable { name, meant }))
}

/// Refuses `core.bare` from the command line or the environment. Git then finds the worktree all the same, but lists no
/// checkout of the repository, so that a landing would move the branch and leave its files behind.
fn refuse_false_bare(config: &Config) -> Result<(), SettingsError> {
    let is_true =
        |value: &str| Value::parse(value, ValueKind::Switch) != Value::parse("false", ValueKind::Switch);
    match config.find("core.bare").filter(|entry| entry.scope == "command") {
        Some(entry) if entry.value.as_deref().is_none_or(is_true) => {
            Err(SettingsError::FalseBare { place: place_of(&entry.origin) })
        }
        _ => Ok(()),
    }
}

/// The location of a setting for people, from git's description. It contains no lines.
fn place_of(origin: &str) -> String {
    match origin.split_once(':') {
        Some(("file", path)) => path.to_owned(),
        Some(("command line", _)) => "command line (git -c)".into(),
        _ => origin.to_owned(),
    }
}

/// The user's own file, according to the XDG base directory specification.
pub(super) fn find_user_file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git-arborist/config.toml"))
}
