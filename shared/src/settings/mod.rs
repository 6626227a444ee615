//! Configuration: one table of keys, and one order of sources. Highest precedence first: a flag (handled by the
//! commands), `ARBORIST_*` in the environment, `git config arborist.*`, the repository's `.arborist/config.toml`, the
//! user's `git-arborist/config.toml`, the built-in default.

mod age;
mod error;
mod file;
mod general;
mod harmless_keys;
mod merge;
mod protect;
mod review;
mod sandbox;
mod setting;
mod sources;
mod table;
mod tracked;
mod value;
mod work;
mod workspace;
mod worktree;

pub use age::{AGES, Age, AgeError};
pub use error::SettingsError;
pub use general::{GeneralSettings, RunnerSettings, StepSettings, TimeoutSettings};
pub use merge::{GATE_SECONDS, GateSettings, MergeSettings, OnConflict, RedTarget};
pub use protect::{TEST_FILES, TestSettings};
pub use review::{PromptSettings, ReviewerSettings, ReviewsIn, SecretFiles};
pub use sandbox::{SandboxGit, SandboxLayers, SandboxMode, SandboxNetwork, SandboxSettings};
pub use setting::Setting;
pub use table::SETTINGS;
pub use tracked::{TRACKED_FILES, read_tracked};
pub use value::{DefaultValue, NamedGroup, NamedSettings, Origin, Size, Sourced, ValueKind};
pub use work::{BudgetSettings, EngineSettings, SessionSettings, TranscriptMode, TurnMessages, WorkSettings};
pub use workspace::{PushPolicy, RepoSettings};
pub use worktree::{CleanupSettings, WorktreeSettings};

use sources::{Source, Sources, find_user_file};
use value::{Assigned, find_assigned, location};

use std::{collections::BTreeSet, time::Duration};

use crate::{
    git::{Config, Repository},
    safe_files,
};

/// The key that signs commits and records. `git` reads it itself, so that it is set where the signing key is.
pub const SIGN: &str = "sign";

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
        if let Some(file) = find_user_file() {
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
            steps: NamedSettings::read(all, "steps.", "", |name| StepSettings::read(all, "", name)),
            runners: NamedSettings::read(all, "runners.", "", |name| RunnerSettings::read(all, "", name)),
            timeouts: TimeoutSettings::read(all, "", ""),
            tests: TestSettings::read(all, "", ""),
            review: ReviewerSettings::read(all, "", ""),
            prompts: PromptSettings::read(all, "", ""),
            worktree: WorktreeSettings::read(all, "", ""),
            sandbox: SandboxLayers::read(all),
            merge: MergeSettings::read(all, "", ""),
            // A gate exists if it has a command.
            gates: NamedSettings::read(all, "merge.gates.", "command", |name| {
                GateSettings::read(all, "", name)
            }),
            budget: BudgetSettings::read(all, "", ""),
            session: SessionSettings::read(all, "", ""),
            work: WorkSettings::read(all, "", ""),
            engines: NamedSettings::read(all, "engines.", "", |name| EngineSettings::read(all, "", name)),
            repos: NamedSettings::read(all, workspace::PREFIX, "", |name| RepoSettings::read(all, "", name)),
            cleanup: CleanupSettings::read(all, "", ""),
            assigned,
            tracked_folders,
        }
    }

    /// A key and where it is set, for people; `None` if no source sets it.
    #[must_use]
    pub fn location_of(&self, key: &str) -> Option<String> {
        find_assigned(&self.assigned, key).map(|assigned| location(key, &assigned.place))
    }

    /// Sets `sandbox.mode` by `--sandbox`, which overrides every other source.
    pub fn set_sandbox_mode(&mut self, mode: &str) -> Result<(), SettingsError> {
        let Self { assigned, tracked_folders, .. } = std::mem::take(self);
        let mut sources = Sources { assigned, tracked_folders };
        let source = Source { place: "--sandbox".to_owned(), origin: Origin::User };
        sources.add_key("sandbox.mode", mode, source)?;
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

#[cfg(test)]
mod tests {
    use super::{Age, Settings};

    #[test]
    fn default_settings_have_the_values_of_the_table() {
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
