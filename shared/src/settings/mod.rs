//! Configuration: one table of keys, and one order of places. Highest first: a flag (the commands' own affair),
//! `ARBORIST_*` in the environment, `git config arborist.*`, the repository's `.arborist/config.toml`, the user's
//! `git-arborist/config.toml`, built in.

mod file;
mod table;

pub use table::{SETTINGS, Setting};

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::Explain,
    git::{Config, Repository},
    message::nearest,
};

/// A setting that cannot be used, and where it stands.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No such key.
    #[error("{place}: unknown key '{key}'")]
    UnknownKey {
        /// File and line, or where git says that it is.
        place: String,
        /// As written.
        key: String,
    },
    /// The value is not of the kind that the key wants.
    #[error("{place}: '{key}' must be {expected}")]
    WrongValue {
        /// File and line.
        place: String,
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The file is no TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// File and line.
        place: String,
        /// What the parser says.
        what: String,
    },
    /// The file is there and cannot be read.
    #[error("could not read '{file}': {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Explain for SettingsError {
    fn hint(&self) -> Option<String> {
        let Self::UnknownKey { key, .. } = self else {
            return None;
        };
        let keys = SETTINGS.iter().map(|setting| setting.key);
        Some(match nearest(key, keys.clone()) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!("known keys: {}", keys.collect::<Vec<_>>().join(", ")),
        })
    }
}

/// A value with the place that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    key: &'static str,
    value: String,
}

/// The settings that hold, flags aside.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    found: Vec<Found>,
}

impl Settings {
    /// Reads all places. An unknown key in any of them is an error, whoever asks.
    pub fn load(repository: &Repository, config: &Config) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        if let Some(file) = user_file() {
            settings.add_file(&file)?;
        }
        if let Some(top) = &repository.worktree {
            settings.add_file(&top.join(".arborist/config.toml"))?;
        }
        settings.add_git(config)?;
        settings.add_environment();
        Ok(settings)
    }

    /// Where the plan is.
    #[must_use]
    pub fn tree(&self) -> Option<&str> {
        self.text("tree")
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.found.iter().rev().find(|found| found.key == key).map(|found| found.value.as_str())
    }

    fn add_file(&mut self, file: &Path) -> Result<(), SettingsError> {
        let label = file.display().to_string();
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(SettingsError::Unreadable { file: label, source }),
        };
        for line in file::flatten(&label, &text)? {
            let key = require_key(&line.key, &line.place)?;
            let value = line.text.ok_or(SettingsError::WrongValue {
                place: line.place,
                key: line.key,
                expected: key.expected,
            })?;
            self.found.push(Found { key: key.key, value });
        }
        Ok(())
    }

    fn add_git(&mut self, config: &Config) -> Result<(), SettingsError> {
        for entry in config.section("arborist.") {
            let key = require_key(entry.key.trim_start_matches("arborist."), &entry.origin)?;
            let value = entry.value.clone().ok_or_else(|| SettingsError::WrongValue {
                place: entry.origin.clone(),
                key: entry.key.clone(),
                expected: key.expected,
            })?;
            self.found.push(Found { key: key.key, value });
        }
        Ok(())
    }

    fn add_environment(&mut self) {
        for setting in SETTINGS {
            if let Some(value) = std::env::var(setting.variable).ok().filter(|value| !value.is_empty()) {
                self.found.push(Found { key: setting.key, value });
            }
        }
    }
}

fn require_key(key: &str, place: &str) -> Result<&'static Setting, SettingsError> {
    SETTINGS
        .iter()
        .find(|setting| setting.key == key)
        .ok_or_else(|| SettingsError::UnknownKey { place: place.to_owned(), key: key.to_owned() })
}

/// The user's own file, where the base directory specification puts it.
fn user_file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git-arborist/config.toml"))
}
