//! Configuration: one table of keys, and one order of sources. Highest precedence first: a flag (handled by the
//! commands), `ARBORIST_*` in the environment, `git config arborist.*`, the repository's `.arborist/config.toml`, the
//! user's `git-arborist/config.toml`, the built-in default.

mod age;
mod approval;
mod error;
mod file;
mod general;
mod merge;
mod protect;
mod sandbox;
mod setting;
mod tracked;
mod value;
mod work;
mod workspace;
mod worktree;

pub use age::{AGES, Age, AgeError};
pub use error::SettingsError;
pub use general::{GeneralSettings, RunnerSettings, StepSettings, TimeoutSettings};
pub use merge::{GATE_SECONDS, GateSettings, MergeSettings};
pub use protect::{TEST_FILES, TestSettings};
pub use sandbox::{SandboxGit, SandboxLayers, SandboxMode, SandboxNetwork, SandboxSettings};
pub use setting::{SETTINGS, Setting};
pub use tracked::{PromptSettings, ReviewerSettings, ReviewsIn, SecretFiles, TRACKED_FILES, read_tracked};
pub use value::{DefaultValue, NamedGroup, NamedSettings, Origin, Size, Sourced, ValueKind};
pub use work::{BudgetSettings, EngineSettings, SessionSettings, TranscriptMode, TurnMessages, WorkSettings};
pub use workspace::{PushPolicy, RepoSettings};
pub use worktree::{CleanupSettings, WorktreeSettings};

use value::{Assigned, Value, amount, find_assigned};

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    git::{Config, ConfigEntry, Repository},
    name::RepoName,
    safe_files,
};

/// The key that signs commits and records. `git` reads it itself, so that it is set where the signing key is.
pub const SIGN: &str = "sign";

/// How much of a wrong value a message shows.
const MAX_SHOWN: usize = 60;

/// The settings in effect, without flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What a run works on, with which agent and test command.
    pub general: GeneralSettings,
    /// `steps.NAME`.
    pub steps: NamedSettings<StepSettings>,
    /// `runners.NAME`.
    pub runners: NamedSettings<RunnerSettings>,
    /// `timeouts`.
    pub timeouts: TimeoutSettings,
    /// `test` and `protect`.
    pub tests: TestSettings,
    /// `review` and `redact`, and where reviewers work.
    pub review: ReviewerSettings,
    /// `prompts` and `context`.
    pub prompts: PromptSettings,
    /// `worktree`.
    pub worktree: WorktreeSettings,
    /// `sandbox`, also of steps and runners.
    pub sandbox: SandboxLayers,
    /// `merge`.
    pub merge: MergeSettings,
    /// `merge.gates.NAME`.
    pub gates: NamedSettings<GateSettings>,
    /// `budget`.
    pub budget: BudgetSettings,
    /// `session`.
    pub session: SessionSettings,
    /// `work`.
    pub work: WorkSettings,
    /// `engines.NAME`.
    pub engines: NamedSettings<EngineSettings>,
    /// `workspace.repos.NAME`.
    pub repos: NamedSettings<RepoSettings>,
    /// `cleanup`.
    pub cleanup: CleanupSettings,
    /// What the fields were read from. Approvals name keys and values.
    assigned: Vec<Assigned>,
    /// Folders with tracked files that files of the repository name.
    tracked_folders: BTreeSet<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(Sources::default())
    }
}

impl Settings {
    /// Reads all sources. An unknown key in any of them is an error.
    pub fn load(repository: &Repository, config: &Config) -> Result<Self, SettingsError> {
        Self::load_with(config, |sources| {
            sources.add_tracked(|path| read_tracked(repository, path), &[tracked::FILE])?;
            sources.find_tracked_folders(repository, repository.head.commit)
        })
    }

    /// Reads all sources; `add_tracked` adds the repository's own files.
    fn load_with(
        config: &Config,
        add_tracked: impl FnOnce(&mut Sources) -> Result<(), SettingsError>,
    ) -> Result<Self, SettingsError> {
        let mut sources = Sources::default();
        if let Some(file) = user_file() {
            sources.add_file(&file, safe_files::read_users(&file), Origin::User)?;
        }
        add_tracked(&mut sources)?;
        sources.add_git(config)?;
        sources.add_environment()?;
        sources.refuse_gate_without_command()?;
        Ok(Self::of(sources))
    }

    /// The only place where keys become fields.
    fn of(Sources { assigned, tracked_folders }: Sources) -> Self {
        let all = &*assigned;
        Self {
            general: GeneralSettings::read(all, "", ""),
            steps: NamedSettings::read(all, ("steps.", ""), |name| StepSettings::read(all, "", name)),
            runners: NamedSettings::read(all, ("runners.", ""), |name| RunnerSettings::read(all, "", name)),
            timeouts: TimeoutSettings::read(all, "", ""),
            tests: TestSettings::read(all, "", ""),
            review: ReviewerSettings::read(all, "", ""),
            prompts: PromptSettings::read(all, "", ""),
            worktree: WorktreeSettings::read(all, "", ""),
            sandbox: SandboxLayers::read(all),
            merge: MergeSettings::read(all, "", ""),
            // A gate exists if it has a command.
            gates: NamedSettings::read(all, ("merge.gates.", "command"), |name| {
                GateSettings::read(all, "", name)
            }),
            budget: BudgetSettings::read(all, "", ""),
            session: SessionSettings::read(all, "", ""),
            work: WorkSettings::read(all, "", ""),
            engines: NamedSettings::read(all, ("engines.", ""), |name| EngineSettings::read(all, "", name)),
            repos: NamedSettings::read(all, (workspace::PREFIX, ""), |name| {
                RepoSettings::read(all, "", name)
            }),
            cleanup: CleanupSettings::read(all, "", ""),
            assigned,
            tracked_folders,
        }
    }

    /// Sets a key by a flag of the command line, which overrides every other source.
    pub fn set_flag(&mut self, key: &str, text: &str, flag: &str) -> Result<(), SettingsError> {
        let Self { assigned, tracked_folders, .. } = std::mem::take(self);
        let mut sources = Sources { assigned, tracked_folders };
        sources.add_key(key, text, (flag.to_owned(), Origin::User))?;
        *self = Self::of(sources);
        Ok(())
    }

    /// How long a remote may be silent.
    #[must_use]
    pub fn network_silence(&self) -> Duration {
        self.timeouts.network.max(Duration::from_secs(1))
    }

    /// These settings without what files of the repository set.
    #[must_use]
    pub fn of_user(&self) -> Self {
        let users = self.assigned.iter().filter(|assigned| assigned.origin == Origin::User);
        Self::of(Sources { assigned: users.cloned().collect(), ..Sources::default() })
    }
}

/// What the sources of settings say, the lowest precedence first.
#[derive(Debug, Default)]
struct Sources {
    assigned: Vec<Assigned>,
    /// Folders with tracked files that files of the repository name.
    tracked_folders: BTreeSet<String>,
}

impl Sources {
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

    /// Refuses a gate in the repository's files that no source gives a command: it would pass unseen.
    fn refuse_gate_without_command(&self) -> Result<(), SettingsError> {
        let is_tracked = |assigned: &&Assigned| assigned.origin == Origin::Repository;
        for assigned in self.assigned.iter().filter(is_tracked) {
            let Some((name, _)) =
                assigned.key.strip_prefix("merge.gates.").and_then(|gate| gate.rsplit_once('.'))
            else {
                continue;
            };
            if find_assigned(&self.assigned, &format!("merge.gates.{name}.command")).is_none() {
                let (place, what) = (assigned.place.clone(), format!("the gate '{name}' has no command"));
                return Err(SettingsError::Syntax { place, what });
            }
        }
        Ok(())
    }

    fn add_text(&mut self, label: &str, text: &str, origin: Origin) -> Result<(), SettingsError> {
        // The parser sorts keys by name. The error that comes first in the file is reported.
        let mut first: Option<(usize, SettingsError)> = None;
        for line in file::flatten(label, text)? {
            let number = line.place.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            if let Err(error) = self.add_line(line, origin)
                && first.as_ref().is_none_or(|(before, _)| number < *before)
            {
                first = Some((number, error));
            }
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn add_line(&mut self, line: file::SettingLine, origin: Origin) -> Result<(), SettingsError> {
        let setting = require_key(&line.key, &line.place)?;
        if setting.key == SIGN {
            return Err(SettingsError::GitOnly { place: line.place, key: line.key });
        }
        let value = line.value.and_then(|value| value.fit(setting.kind)).ok_or(line.text);
        self.add(setting, line.key, (value, line.place), origin)
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

fn require_key(key: &str, place: &str) -> Result<&'static Setting, SettingsError> {
    let repo = key.strip_prefix(workspace::PREFIX).map(|rest| rest.split('.').next().unwrap_or(rest));
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

#[cfg(test)]
mod tests {
    use super::{Age, Settings};

    #[test]
    fn defaults_of_the_table_are_the_values_of_the_fields() {
        let Settings { general, timeouts, worktree, cleanup, merge, .. } = Settings::default();
        assert_eq!((general.max_retries, &*general.log_dir), (5, "spec/logs"));
        assert_eq!((timeouts.test.as_secs(), worktree.lfs), (300, true));
        assert_eq!(
            (worktree.keep, cleanup.reclaim),
            (vec!["*".to_owned()], vec!["target/".to_owned(), "node_modules/".to_owned()])
        );
        // A default that could not be read as an age would be 0, and everything would be old enough to be deleted.
        assert_eq!((cleanup.older_than, cleanup.keep_saved), (Age::days(7), Age::days(90)));
        assert_eq!((cleanup.keep_records, merge.assist), (Age::days(90), true));
    }
}
