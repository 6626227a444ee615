//! Configuration: one table of keys, and one order of sources. Highest precedence first: a flag (handled by the
//! commands), `ARBORIST_*` in the environment, `git config arborist.*`, the repository's `.arborist/config.toml`, the
//! user's `git-arborist/config.toml`, the built-in default.

mod age;
mod approval;
mod budget;
mod cleanup;
mod engines;
mod file;
mod landing;
mod protect;
mod sandbox;
mod session;
mod setting;
mod table;
mod tracked;
mod value;
mod work;
mod workspace;

pub use age::{AGES, Age, AgeError};
pub use protect::TEST_FILES;
pub use setting::{Setting, ValueKind};
pub use table::SETTINGS;
pub use tracked::{TRACKED_FILES, read_tracked, tracked_file};

use value::{Value, amount};

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Exit, Explain},
    git::{Config, ConfigEntry, GitError, Repository},
    message::{misspelt, nearest},
    name::{NameError, RepoName},
    safe_files,
};

/// The key that signs commits and records. `git` reads it itself, so that it is set where the signing key is.
pub const SIGN: &str = "sign";

/// How much of a wrong value a message shows.
const MAX_SHOWN: usize = 60;

/// A setting that cannot be used, and its location.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No such key.
    #[error("{place}: unknown key '{section}{key}'")]
    UnknownKey {
        /// File and line, or where git says that it is.
        place: String,
        /// What git's configuration has before the key: `arborist.`; empty in our own files.
        section: &'static str,
        /// As written.
        key: String,
    },
    /// A key that only git's configuration can set.
    #[error("{place}: '{key}' can only be set in git's configuration")]
    GitOnly {
        /// File and line.
        place: String,
        /// The key.
        key: String,
    },
    /// The value has the wrong kind for the key.
    #[error("{place}: '{key}' must be {expected}, but it is {found}")]
    WrongValue {
        /// File and line.
        place: String,
        /// The key.
        key: String,
        /// The value as written, shortened.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A name in the key is not allowed.
    #[error("{place}: {source}")]
    WrongName {
        /// File and line.
        place: String,
        /// Why.
        source: NameError,
    },
    /// The file is not valid TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// File and line.
        place: String,
        /// What the parser says.
        what: String,
    },
    /// Git was told that the repository is bare, although its own configuration does not say so.
    #[error(
        "{place}: core.bare is set for this command, and git would not see the checkouts of the repository"
    )]
    FalseBare {
        /// Where git says that it is.
        place: String,
    },
    /// The file exists and cannot be read.
    #[error("could not read '{file}': {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Explain for SettingsError {
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::Unreadable { .. } => Exit::Fatal,
            _ => Exit::No,
        }
    }

    fn hint(&self) -> Option<String> {
        let (key, prefix) = match self {
            Self::UnknownKey { key, section, .. } => (key, *section),
            Self::Git(error) => return error.hint(),
            Self::GitOnly { key, .. } => return Some(format!("set it with: git config arborist.{key} true")),
            Self::FalseBare { .. } => {
                return Some("remove it from 'git -c' and from the variables GIT_CONFIG_*".into());
            }
            Self::Syntax { what, .. } if !what.starts_with("duplicate") => {
                return Some(
                    "write a setting as: runner = \"claude\"; text is in quotes, numbers are not".into(),
                );
            }
            _ => return None,
        };
        let keys: Vec<String> = SETTINGS.iter().map(|setting| with_names_of(key, setting.key)).collect();
        // The value may be a table.
        let below: Vec<&str> = keys
            .iter()
            .map(String::as_str)
            .filter(|known| known.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.')))
            .collect();
        if let Some(command) = below.iter().find(|known| known.ends_with(".command")) {
            return Some(format!("did you mean '{prefix}{command}'?"));
        }
        if !below.is_empty() {
            return Some(format!("known keys: {}", below.join(", ")));
        }
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let is_beside =
            |known: &&String| known.rsplit_once('.').map_or("", |(section, _)| section) == section;
        let beside: Vec<&str> = keys.iter().filter(is_beside).map(String::as_str).collect();
        let names = beside.iter().map(|known| known.rsplit_once('.').map_or(*known, |(_, name)| name));
        if let Some(meant) = nearest(name, names) {
            let dot = if section.is_empty() { "" } else { "." };
            return Some(format!("did you mean '{prefix}{section}{dot}{meant}'?"));
        }
        if let Some(meant) = misspelt(key, keys.iter().map(String::as_str)) {
            return Some(format!("did you mean '{prefix}{meant}'?"));
        }
        // `gates.lint.command` lacks the section that it belongs to.
        let inner = |known: &str| {
            let (section, rest) = known.split_once('.')?;
            (with_names_of(key, rest) == *key).then(|| format!("{section}.{key}"))
        };
        if let Some(meant) = SETTINGS.iter().find_map(|setting| inner(setting.key)) {
            return Some(format!("did you mean '{prefix}{meant}'?"));
        }
        if beside.is_empty() {
            return Some("see all keys with: git arborist init --dry-run".into());
        }
        Some(format!("known keys: {}", beside.join(", ")))
    }
}

impl SettingsError {
    /// The same, for a key of git's configuration.
    fn of_git(self) -> Self {
        match self {
            Self::UnknownKey { place, key, .. } => Self::UnknownKey { place, section: "arborist.", key },
            Self::WrongValue { place, key, found, expected } => {
                Self::WrongValue { place, key: format!("arborist.{key}"), found, expected }
            }
            other => other,
        }
    }
}

/// A known key, in which each `*` is replaced by the name in the mistyped key.
fn with_names_of(mistyped: &str, known: &str) -> String {
    let mut given = mistyped.split('.');
    let parts = known.split('.').map(|part| match given.next() {
        Some(name) if part == "*" => name,
        _ => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The source of a value: values that others can commit need the user's approval before they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user, or git's own configuration, which only the user writes.
    User,
    /// A file of the repository.
    Repository,
}

#[derive(Debug, Clone, PartialEq)]
struct Found {
    key: String,
    value: Value,
    origin: Origin,
    /// File and line, or the location in git's configuration or the environment.
    place: String,
}

/// The settings in effect, without flags.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    found: Vec<Found>,
    /// Folders with tracked files that files of the repository name.
    tracked_folders: BTreeSet<String>,
}

impl Settings {
    /// Reads all sources. An unknown key in any of them is an error.
    pub fn load(repository: &Repository, config: &Config) -> Result<Self, SettingsError> {
        Self::load_with(config, |settings| {
            settings.add_tracked(|path| read_tracked(repository, path), &[tracked::FILE])?;
            settings.find_tracked_folders(repository, repository.head.commit)
        })
    }

    /// Reads all sources; `add_tracked` adds the repository's own files.
    fn load_with(
        config: &Config,
        add_tracked: impl FnOnce(&mut Self) -> Result<(), SettingsError>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        if let Some(file) = user_file() {
            settings.add_file(&file, safe_files::read_users(&file), Origin::User)?;
        }
        add_tracked(&mut settings)?;
        settings.add_git(config)?;
        settings.add_environment()?;
        Ok(settings)
    }

    /// Sets a key by a flag of the command line, which overrides every other source.
    pub fn set_flag(&mut self, key: &str, text: &str, flag: &str) -> Result<(), SettingsError> {
        self.add_key(key, text, (flag.to_owned(), Origin::User))
    }

    /// The path of the plan.
    #[must_use]
    pub fn tree(&self) -> Option<&str> {
        self.text("tree")
    }

    /// A text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.find(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<u64> {
        match self.find(key)?.value {
            Value::Count(number) => Some(number),
            _ => None,
        }
    }

    /// An age.
    #[must_use]
    pub fn age(&self, key: &str) -> Option<Age> {
        self.text(key)?.parse().ok()
    }

    /// A number that may have a fraction.
    #[must_use]
    pub fn amount(&self, key: &str) -> Option<f64> {
        match &self.find(key)?.value {
            Value::Amount(number) => Some(*number),
            Value::Count(number) => amount(&number.to_string()),
            _ => None,
        }
    }

    /// A switch.
    #[must_use]
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.find(key)?.value {
            Value::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    /// A list of texts.
    #[must_use]
    pub fn words(&self, key: &str) -> Option<&[String]> {
        match &self.find(key)?.value {
            Value::Words(words) => Some(words),
            _ => None,
        }
    }

    /// These settings without what files of the repository set.
    #[must_use]
    pub fn of_user(&self) -> Self {
        Self {
            found: self.found.iter().filter(|found| found.origin == Origin::User).cloned().collect(),
            ..Self::default()
        }
    }

    /// The source of the value of `key`.
    #[must_use]
    pub fn origin(&self, key: &str) -> Option<Origin> {
        self.find(key).map(|found| found.origin)
    }

    /// The location of the value of `key`: file and line.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<&str> {
        self.find(key).map(|found| found.place.as_str())
    }

    /// All keys that begin with `prefix`, by what follows it.
    pub fn keys_below(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(move |found| found.key.strip_prefix(prefix))
    }

    /// The texts whose keys begin with `prefix`, by what follows it.
    pub fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.found.iter().filter_map(move |found| match &found.value {
            Value::Text(text) => Some((found.key.strip_prefix(prefix)?, text.as_str())),
            _ => None,
        })
    }

    fn find(&self, key: &str) -> Option<&Found> {
        self.found.iter().rev().find(|found| found.key == key)
    }

    fn add_file(
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

    fn add_text(&mut self, label: &str, text: &str, origin: Origin) -> Result<(), SettingsError> {
        for line in file::flatten(label, text)? {
            let setting = require_key(&line.key, &line.place)?;
            if setting.key == SIGN {
                return Err(SettingsError::GitOnly { place: line.place, key: line.key });
            }
            let value = line.value.and_then(|value| value.fit(setting.kind)).ok_or(line.text);
            self.add(setting, line.key, (value, line.place), origin)?;
        }
        Ok(())
    }

    fn add_key(
        &mut self,
        key: &str,
        text: &str,
        (place, origin): (String, Origin),
    ) -> Result<(), SettingsError> {
        let setting = require_key(key, &place)?;
        let value = Value::parse(text, setting.kind).ok_or_else(|| quoted(text));
        self.add(setting, key.to_owned(), (value, place), origin)
    }

    fn add_git(&mut self, config: &Config) -> Result<(), SettingsError> {
        refuse_false_bare(config)?;
        let entries: Vec<&ConfigEntry> = config.section("arborist.").collect();
        for (at, entry) in entries.iter().enumerate() {
            let key = entry.key.trim_start_matches("arborist.");
            let place = place_of(&entry.origin);
            let setting = require_key(key, &place).map_err(SettingsError::of_git)?;
            let text = if setting.kind.is_list() {
                let is_same = |other: &&&ConfigEntry| other.key == entry.key && other.scope == entry.scope;
                if entries[at + 1..].iter().any(|other| is_same(&other)) {
                    continue;
                }
                list_text(entries[..=at].iter().filter(is_same).map(|entry| entry.value.as_deref()))
            } else {
                let bare = (setting.kind == ValueKind::Switch).then_some("true");
                entry.value.as_deref().or(bare).unwrap_or_default().to_owned()
            };
            let value = Value::parse(&text, setting.kind).ok_or_else(|| quoted(&text));
            let added = self.add(setting, key.to_owned(), (value, place), Origin::User);
            added.map_err(SettingsError::of_git)?;
        }
        Ok(())
    }

    fn add_environment(&mut self) -> Result<(), SettingsError> {
        for setting in SETTINGS {
            let Some(variable) = setting.variable else { continue };
            if let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) {
                let value = text.to_str().and_then(|text| Value::parse(text, setting.kind));
                let value = value.ok_or_else(|| quoted(&text.to_string_lossy()));
                self.add(setting, setting.key.to_owned(), (value, variable.to_owned()), Origin::User)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        setting: &Setting,
        key: String,
        (value, place): (Result<Value, String>, String),
        origin: Origin,
    ) -> Result<(), SettingsError> {
        let value = match value {
            Ok(value) => value,
            Err(found) => {
                let found = found.chars().take(MAX_SHOWN).collect();
                return Err(SettingsError::WrongValue { place, key, found, expected: setting.expected });
            }
        };
        self.found.push(Found { key, value, origin, place });
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

fn require_key(key: &str, place: &str) -> Result<&'static Setting, SettingsError> {
    let repo = key.strip_prefix(workspace::REPOS).map(|rest| rest.split('.').next().unwrap_or(rest));
    if let Some(Err(source)) = repo.map(str::parse::<RepoName>) {
        return Err(SettingsError::WrongName { place: place.to_owned(), source });
    }
    SETTINGS.iter().find(|setting| setting.is(key)).ok_or_else(|| SettingsError::UnknownKey {
        place: place.to_owned(),
        section: "",
        key: key.to_owned(),
    })
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
fn user_file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git-arborist/config.toml"))
}
