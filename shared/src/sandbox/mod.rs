//! The sandbox: it limits where agents, reviewers, tests, gates and set-up commands can change files, whatever they
//! try. The driver itself commits and moves refs, so none of them needs to write to the git directory.
//!
//! A child may write to the checkouts that it works in, to the folders in which its program keeps its own state, to
//! caches of package managers, to `sandbox.write` and to a folder for temporary files that is removed afterwards.
//!
//! Landlock rules only add rights. If a child works in the user's own checkout, it can write to the `.git` in it.

mod denials;
mod folders;

use std::path::{Path, PathBuf};

pub use denials::describe_denials;
pub use folders::{ProgramFolder, find_folder};

use crate::{
    failure::{Exit, Explain},
    process::Confinement,
    safe_files,
    settings::{Origin, Settings},
};

/// How children are limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// By the strongest means that the system has, or not at all if it has none.
    #[default]
    Auto,
    /// By Landlock. Nothing is started if the system does not support it.
    Landlock,
    /// Not at all.
    Off,
}

impl SandboxMode {
    fn of(settings: &Settings, key: &str) -> Option<Self> {
        match settings.text(key)? {
            "landlock" => Some(Self::Landlock),
            "off" => Some(Self::Off),
            _ => Some(Self::Auto),
        }
    }
}

/// Why a sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The configured one does not work here.
    #[error("sandbox.mode is landlock, but this system does not support Landlock")]
    Unsupported,
}

impl Explain for SandboxError {
    fn exit(&self) -> Exit {
        Exit::Fatal
    }

    fn hint(&self) -> Option<String> {
        Some("Linux 5.19 or newer supports it; 'git arborist sandbox check' shows what works here".into())
    }
}

/// The limits of all children of a run, as configured.
#[derive(Debug, Clone)]
pub struct Sandbox {
    settings: Settings,
    caches: Vec<PathBuf>,
    files: Vec<PathBuf>,
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
        Self { settings: settings.clone(), caches, files }
    }

    /// Refuses a configuration that this system cannot enforce.
    pub fn require_supported(&self) -> Result<(), SandboxError> {
        let keys = self.settings.keys_below("").filter(|key| key.ends_with("sandbox.mode"));
        let mut modes = keys.filter_map(|key| SandboxMode::of(&self.settings, key));
        if modes.any(|mode| mode == SandboxMode::Landlock) && !Confinement::is_enforced() {
            return Err(SandboxError::Unsupported);
        }
        Ok(())
    }

    /// Whether children should be limited, but cannot be on this system.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.mode(None, None) != SandboxMode::Off && !Confinement::is_enforced()
    }

    /// The lines that a user has to approve because a file of the repository widens the limits.
    #[must_use]
    pub fn foreign_lines(settings: &Settings) -> Vec<String> {
        let keys = settings.keys_below("").filter(|key| settings.origin(key) == Some(Origin::Repository));
        keys.filter_map(|key| match settings.text(key) {
            Some(mode) if key.ends_with("sandbox.mode") && mode == "off" => Some(format!("{key}: {mode}")),
            _ if key.ends_with("sandbox.write") => {
                let folders = settings.words(key).unwrap_or_default();
                Some(format!("{key}: {}", folders.join(", ")))
            }
            _ => None,
        })
        .collect()
    }

    /// The limits of a child; `None` if it has none.
    #[must_use]
    pub fn confine(&self, child: &SandboxedChild<'_>) -> Option<Confinement> {
        let mode = self.mode(Some(child.step), child.runner);
        if mode == SandboxMode::Off || (mode == SandboxMode::Auto && child.has_own_sandbox) {
            return None;
        }
        let mut confinement = Confinement::new(child.places.iter().cloned()).with_private_temp();
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
        Some(match mode {
            SandboxMode::Landlock => confinement.required(),
            SandboxMode::Auto | SandboxMode::Off => confinement,
        })
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
