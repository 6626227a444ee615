//! The sandbox: it limits where agents, reviewers, tests, gates and set-up commands can change files, whatever they
//! try. The driver itself commits and moves refs, so none of them needs to write to the git directory.
//!
//! A child may write to the checkouts that it works in, to the folders in which its program keeps its own state, to
//! caches of package managers, to `sandbox.write` and to a folder for temporary files that is removed afterwards.
//!
//! Landlock rules only add rights. If a child works in the user's own checkout, it can write to the `.git` in it. With
//! bubblewrap it cannot; `sandbox.deny-read` and `sandbox.network` need bubblewrap as well.

mod check;
mod denials;
mod folders;
mod git_dirs;

use std::path::{Path, PathBuf};

pub use check::{CheckedRule, RuleIntent, RuleOutcome};
pub use denials::describe_denials;
pub use folders::{ProgramFolder, find_folder};
use git_dirs::find_git_dirs;

use crate::{
    failure::{Exit, Explain},
    process::{Confinement, ConfinementBackend},
    safe_files,
    settings::Settings,
};

/// How children are limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// By the strongest means that the system has, or not at all if it has none.
    #[default]
    Auto,
    /// By Landlock. Nothing is started if the system does not support it.
    Landlock,
    /// By bubblewrap. Nothing is started if it does not work.
    Bwrap,
    /// Not at all.
    Off,
}

impl SandboxMode {
    fn of(settings: &Settings, key: &str) -> Option<Self> {
        match settings.text(key)? {
            "landlock" => Some(Self::Landlock),
            "bwrap" => Some(Self::Bwrap),
            "off" => Some(Self::Off),
            _ => Some(Self::Auto),
        }
    }

    /// The value of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::Off => "off",
        }
    }

    /// What enforces the limits; `None` if nothing does. A backend that was chosen explicitly may not work here.
    #[must_use]
    pub fn backend(self) -> Option<ConfinementBackend> {
        match self {
            Self::Auto => {
                let strongest_first = [ConfinementBackend::Bwrap, ConfinementBackend::Landlock];
                strongest_first.into_iter().find(|backend| backend.works())
            }
            Self::Landlock => Some(ConfinementBackend::Landlock),
            Self::Bwrap => Some(ConfinementBackend::Bwrap),
            Self::Off => None,
        }
    }
}

/// Why a sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Landlock was chosen, but does not work here.
    #[error("sandbox.mode is landlock, but this system does not support Landlock")]
    NoLandlock,
    /// Bubblewrap was chosen, but does not work here.
    #[error("sandbox.mode is bwrap, but bubblewrap (bwrap) is not installed or does not work here")]
    NoBwrap,
    /// The network cannot be taken away.
    #[error("{key} is none, but only bubblewrap (bwrap) can enforce this, and it is not used here")]
    Network {
        /// The key.
        key: String,
    },
}

impl Explain for SandboxError {
    fn exit(&self) -> Exit {
        Exit::Fatal
    }

    fn hint(&self) -> Option<String> {
        let needs = match self {
            Self::NoLandlock => "Linux 5.19 or newer supports it",
            Self::NoBwrap => "install bubblewrap, and allow user namespaces",
            Self::Network { .. } => "install bubblewrap, and set sandbox.mode to auto or bwrap",
        };
        Some(format!("{needs}; 'git arborist sandbox check' shows what works here"))
    }
}

/// Folders and files that look empty in the sandbox if `sandbox.deny-read` is not set.
const DENIED: [&str; 4] = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.netrc"];

/// Those of them that set-up commands may read, because they fetch private dependencies.
const NEEDED_BY_SETUP: [&str; 2] = ["~/.ssh", "~/.netrc"];

/// The limits of all children of a run, as configured.
#[derive(Debug, Clone)]
pub struct Sandbox {
    settings: Settings,
    caches: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// Checkouts of all repositories of the run. Their git directories stay closed.
    repositories: Vec<PathBuf>,
    /// The git directories that the driver uses. They may have any name.
    git_dirs: Vec<PathBuf>,
}

/// What runs in the sandbox.
#[derive(Debug, Clone, Default)]
pub struct SandboxedChild<'c> {
    /// The step: `implement`, `review`, `resolve`, `plan`, `commit-message`, `test`, `gate` or `setup`.
    pub step: &'c str,
    /// The name of the runner, for agents.
    pub runner: Option<&'c str>,
    /// Folders and files in which its program keeps its own state.
    pub state: Vec<ProgramFolder>,
    /// The folders that it works in.
    pub places: Vec<PathBuf>,
    /// Whether its program limits itself. In the mode `auto` it is left to that.
    pub has_own_sandbox: bool,
}

impl Sandbox {
    /// Reads the settings, and finds the caches that exist.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let (caches, files) = folders::caches();
        Self { settings: settings.clone(), caches, files, repositories: Vec::new(), git_dirs: Vec::new() }
    }

    /// Closes these git directories and those of these checkouts, too. A `.git` in a folder that a child works in is
    /// always closed.
    #[must_use]
    pub fn closing(self, repositories: Vec<PathBuf>, git_dirs: &[&Path]) -> Self {
        let git_dirs = git_dirs.iter().map(|git_dir| safe_files::resolved(git_dir)).collect();
        Self { repositories, git_dirs, ..self }
    }

    /// Refuses a configuration that this system cannot enforce.
    pub fn require_supported(&self) -> Result<(), SandboxError> {
        for key in self.settings.keys_below("") {
            if key.ends_with("sandbox.mode") {
                match SandboxMode::of(&self.settings, key) {
                    Some(SandboxMode::Landlock) if !ConfinementBackend::Landlock.works() => {
                        return Err(SandboxError::NoLandlock);
                    }
                    Some(SandboxMode::Bwrap) if !ConfinementBackend::Bwrap.works() => {
                        return Err(SandboxError::NoBwrap);
                    }
                    _ => {}
                }
            }
            if key.ends_with("sandbox.network") && self.settings.text(key) == Some("none") {
                let mode = match key.split('.').collect::<Vec<_>>()[..] {
                    ["steps", step, ..] => self.mode(Some(step), None),
                    ["runners", runner, ..] => self.mode(None, Some(runner)),
                    _ => self.mode(None, None),
                };
                if mode != SandboxMode::Off && mode.backend() != Some(ConfinementBackend::Bwrap) {
                    return Err(SandboxError::Network { key: key.to_owned() });
                }
            }
        }
        Ok(())
    }

    /// Whether children should be limited, but cannot be on this system.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let mode = self.mode(None, None);
        mode != SandboxMode::Off && mode.backend().is_none()
    }

    /// The limits of a child; `None` if it has none.
    #[must_use]
    pub fn confine(&self, child: &SandboxedChild<'_>) -> Option<Confinement> {
        let mode = self.mode_of(child);
        let is_offline = self.is_offline(child);
        // The sandbox of another program is not known to take the network away.
        let is_left_alone = mode == SandboxMode::Auto && child.has_own_sandbox && !is_offline;
        if mode == SandboxMode::Off || is_left_alone {
            return None;
        }
        let backend = mode.backend().unwrap_or_default();
        let mut confinement =
            Confinement::new(child.places.iter().cloned()).with_private_temp().enforced_by(backend);
        for state in &child.state {
            match state {
                ProgramFolder::Folder(folder) => {
                    // The program could not make it. If it cannot be made, it is not granted either.
                    let _ = safe_files::make_folders(folder);
                    confinement.add(folder.clone());
                }
                ProgramFolder::File(file) => confinement.add_file(file.clone()),
            }
        }
        // A cache that contains the checkout would open everything beside it: the git directory and other lanes.
        let is_apart = |folder: &&PathBuf| !child.places.iter().any(|place| place.starts_with(folder));
        self.caches.iter().filter(is_apart).for_each(|folder| confinement.add(folder.clone()));
        self.files.iter().for_each(|file| confinement.add_file(file.clone()));
        self.folders(child).into_iter().for_each(|folder| confinement.add(folder));
        let checkouts = child.places.iter().chain(&self.repositories);
        checkouts.flat_map(|checkout| find_git_dirs(checkout)).for_each(|path| confinement.close(path));
        self.git_dirs.iter().for_each(|git_dir| confinement.close(git_dir.clone()));
        self.denied(child).into_iter().for_each(|path| confinement.hide(path));
        let confinement = if is_offline { confinement.offline() } else { confinement };
        Some(match mode {
            SandboxMode::Landlock => confinement.required(),
            SandboxMode::Auto | SandboxMode::Bwrap | SandboxMode::Off => confinement,
        })
    }

    /// How a child is limited.
    #[must_use]
    pub fn mode_of(&self, child: &SandboxedChild<'_>) -> SandboxMode {
        self.mode(Some(child.step), child.runner)
    }

    fn mode(&self, step: Option<&str>, runner: Option<&str>) -> SandboxMode {
        let keys = own_keys(step, runner, "mode");
        keys.iter().find_map(|key| SandboxMode::of(&self.settings, key)).unwrap_or_default()
    }

    /// The folders of `sandbox.write`, of the runner and of the step.
    fn folders(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let keys = own_keys(Some(child.step), child.runner, "write");
        let words = keys.iter().filter_map(|key| self.settings.words(key)).flatten();
        words.filter_map(|word| in_home(word)).map(|folder| safe_files::resolved(&folder)).collect()
    }

    /// The folders and files of `sandbox.deny-read`. The most specific list replaces the others.
    fn denied(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let [own, others @ ..] = &own_keys(Some(child.step), child.runner, "deny-read")[..] else {
            return Vec::new();
        };
        let usual = || DENIED.map(str::to_owned).to_vec();
        let words = self.settings.words(own).map(<[String]>::to_vec).unwrap_or_else(|| {
            let mut words =
                others.iter().find_map(|key| self.settings.words(key)).map_or_else(usual, <[String]>::to_vec);
            words.retain(|word| child.step != "setup" || !NEEDED_BY_SETUP.contains(&word.as_str()));
            words
        });
        words.iter().filter_map(|word| in_home(word)).map(|path| safe_files::resolved(&path)).collect()
    }

    fn is_offline(&self, child: &SandboxedChild<'_>) -> bool {
        let keys = own_keys(Some(child.step), child.runner, "network");
        keys.iter().find_map(|key| self.settings.text(key)) == Some("none")
    }
}

/// The keys that apply to a step and a runner, the most specific first.
fn own_keys(step: Option<&str>, runner: Option<&str>, what: &str) -> Vec<String> {
    let step = step.map(|step| format!("steps.{step}.sandbox.{what}"));
    let runner = runner.map(|runner| format!("runners.{runner}.sandbox.{what}"));
    step.into_iter().chain(runner).chain([format!("sandbox.{what}")]).collect()
}

/// An absolute path, or one in the home directory.
fn in_home(word: &str) -> Option<PathBuf> {
    match word.strip_prefix("~/") {
        Some(rest) => Some(folders::home()?.join(rest)),
        None => Some(Path::new(word).to_owned()).filter(|path| path.is_absolute()),
    }
}
