//! Reads git's configuration, once.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{GitCommand, GitError, Repository, command::checked},
    process::RunningProgram,
};

/// One setting and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// `system`, `global`, `local`, `worktree` or `command`.
    pub scope: String,
    /// The file or command line that it is from, in git's words.
    pub origin: String,
    /// Section and variable in lower case, a subsection as written.
    pub key: String,
    /// `None` for a key without `=`, which git reads as true.
    pub value: Option<String>,
}

/// A running read of the configuration.
#[derive(Debug)]
pub struct ConfigReader(RunningProgram);

impl ConfigReader {
    /// Waits for the result.
    pub fn finish(self) -> Result<Config, GitError> {
        Config::parse(&checked("config", self.0.finish()?)?)
    }
}

/// All settings of a repository, lowest precedence first.
#[derive(Debug, Clone, Default)]
pub struct Config {
    entries: Vec<ConfigEntry>,
}

impl Config {
    /// Starts to read all settings, including include files and `git -c`, while the repository is being searched. No
    /// settings are pinned: listing settings runs no program, and pinned ones would appear in the list.
    pub fn start(dir: &Path) -> Result<ConfigReader, GitError> {
        // No thread waits for it: creating and waking one takes as long as git needs for most configurations.
        let (_, running) = list(GitCommand::acting("config", dir)).start()?;
        Ok(ConfigReader(running))
    }

    /// Reads all settings, including include files and `git -c`.
    pub fn load(repository: &Repository) -> Result<Self, GitError> {
        Self::parse(&list(repository.act("config")).stdout()?)
    }

    /// Reads one settings file and its include files.
    pub fn load_file(repository: &Repository, file: &Path) -> Result<Self, GitError> {
        let command = repository.act("config").arg("-f").arg(file).arg("--includes");
        Self::parse(&list(command).stdout()?)
    }

    /// The path that git makes of the value of a setting, such as `~user/file`.
    pub fn expand_path(repository: &Repository, value: &str) -> Result<PathBuf, GitError> {
        // A setting that exists nowhere, so that git converts the default value.
        let command = repository.act("config").args(["--type=path", "-z", "--default", value]);
        let printed = command.args(["--get", "arborist.expanded-path"]).stdout()?;
        Ok(PathBuf::from(OsStr::from_bytes(printed.strip_suffix(b"\0").unwrap_or(&printed))))
    }

    pub(super) fn parse(printed: &[u8]) -> Result<Self, GitError> {
        let text = String::from_utf8_lossy(printed);
        let mut fields = text.split_terminator('\0');
        let mut entries = Vec::new();
        while let Some(scope) = fields.next() {
            let (Some(origin), Some(setting)) = (fields.next(), fields.next()) else {
                return Err(GitError::unexpected("config", "a setting without a value"));
            };
            let (key, value) = match setting.split_once('\n') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (setting, None),
            };
            entries.push(ConfigEntry {
                scope: scope.to_owned(),
                origin: origin.to_owned(),
                key: key.to_owned(),
                value,
            });
        }
        Ok(Self { entries })
    }

    /// The value of `key` with the highest precedence.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&ConfigEntry> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    /// The setting with the highest precedence among `keys`, for keys that override each other.
    #[must_use]
    pub fn find_any(&self, keys: &[&str]) -> Option<&ConfigEntry> {
        self.entries.iter().rev().find(|entry| keys.contains(&entry.key.as_str()))
    }

    /// The text of `key`; empty for a key without a value.
    #[must_use]
    pub fn find_text(&self, key: &str) -> Option<&str> {
        self.find(key).map(|entry| entry.value.as_deref().unwrap_or_default())
    }

    /// All settings whose key begins with `prefix`, lowest precedence first.
    pub fn section<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a ConfigEntry> {
        self.entries.iter().filter(move |entry| entry.key.starts_with(prefix))
    }
}

fn list(command: GitCommand) -> GitCommand {
    command.args(["--list", "-z", "--show-scope", "--show-origin"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_git_setting_wins_and_a_bare_key_has_no_value() {
        let printed =
            b"global\0file:a\0color.ui\nfalse\0local\0file:b\0color.ui\nalways\0local\0file:b\0core.bare\0";
        let config = Config::parse(printed).unwrap();
        assert_eq!(config.find_text("color.ui"), Some("always"));
        assert_eq!(config.find("core.bare").unwrap().value, None);
        assert_eq!(config.section("color.").count(), 2);
        assert!(Config::parse(b"local\0file:b\0").is_err());
    }
}
