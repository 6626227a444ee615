//! Refuses a configuration of the sandbox that this system cannot enforce.

use std::path::{Path, PathBuf};

use super::{Sandbox, SandboxUse, find_git_dirs, in_home};
use crate::{
    failure::{Exit, Explain, Explanation},
    process::ConfinementBackend,
    safe_files,
    settings::{SandboxGit, SandboxMode, SandboxNetwork, Sourced},
};

/// Why a sandbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Landlock was chosen, but does not work here.
    #[error("{key} is landlock, but this system does not support Landlock")]
    NoLandlock {
        /// The key.
        key: String,
    },
    /// Bubblewrap was chosen, but does not work here.
    #[error("{key} is bwrap, but bubblewrap (bwrap) is not installed or does not work here")]
    NoBwrap {
        /// The key.
        key: String,
    },
    /// A private git directory cannot be given.
    #[error("{key} is private, which needs bubblewrap (bwrap), but the sandbox does not use bubblewrap here")]
    Git {
        /// The key.
        key: String,
    },
    /// The network cannot be taken away.
    #[error("{key} is none, which needs bubblewrap (bwrap), but the sandbox does not use bubblewrap here")]
    Network {
        /// The key.
        key: String,
    },
    /// A whole git directory would be writable.
    #[error("{key} names '{folder}', which is a git directory and cannot be made writable as a whole")]
    GitDir {
        /// The key.
        key: String,
        /// The folder, as it was named.
        folder: String,
    },
    /// The network cannot be taken away, because nothing is limited.
    #[error("{key} is none, but {mode_key} is off, so nothing would take the network away")]
    NetworkWithoutSandbox {
        /// The key.
        key: String,
        /// The key that turns the sandbox off.
        mode_key: String,
    },
    /// Landlock was chosen, and could not close a git directory in a folder that is granted.
    #[error(
        "{key} names '{folder}', which contains the git directory '{git_dir}', and {mode_key} is landlock, which cannot close it there"
    )]
    GitDirInside {
        /// The key.
        key: String,
        /// The folder, as it was named.
        folder: String,
        /// The git directory in it.
        git_dir: String,
        /// The key that chooses Landlock.
        mode_key: String,
    },
    /// The network cannot be taken away, because of another setting.
    #[error("{key} is none, but {mode_key} is landlock, which cannot turn the network off")]
    NetworkByLandlock {
        /// The key.
        key: String,
        /// The key that chooses Landlock.
        mode_key: String,
    },
}

impl Explain for SandboxError {
    fn explain(&self) -> Explanation {
        let needs = match self {
            Self::NoLandlock { .. } => "Linux 5.19 or newer supports it",
            Self::NoBwrap { .. } => "install bubblewrap, and allow user namespaces",
            Self::Network { .. } | Self::Git { .. } => {
                "install bubblewrap, and set sandbox.mode to auto or bwrap"
            }
            Self::GitDir { folder, .. } => {
                return Exit::Fatal
                    .hint(format!("name only the folder in it that programs need, such as {folder}/lfs"));
            }
            Self::GitDirInside { mode_key, .. } => {
                return Exit::Fatal.hint(format!(
                    "name the folders in it that are needed, or set {mode_key} to auto or bwrap"
                ));
            }
            Self::NetworkByLandlock { key, mode_key } | Self::NetworkWithoutSandbox { key, mode_key } => {
                // The general key would allow it everywhere.
                let group = if key == "sandbox.network" { mode_key } else { key };
                let group = group.rsplit_once('.').map_or("sandbox", |(group, _)| group);
                return Exit::Fatal.hint(format!(
                    "set {mode_key} to auto or bwrap, or allow the network: {group}.network = \"all\""
                ));
            }
        };
        Exit::Fatal.hint(format!("{needs}; see what works here with: git arborist sandbox check"))
    }
}

impl Sandbox {
    /// Refuses a configuration that this system cannot enforce. The settings of runners that are not used do not count.
    pub fn require_supported(&self, uses: &[SandboxUse]) -> Result<(), SandboxError> {
        let is_used = |runner: Option<&str>| {
            runner.is_none() || uses.iter().any(|sandbox_use| sandbox_use.runner.as_deref() == runner)
        };
        for (step, runner, settings) in self.settings.all().filter(|(_, runner, _)| is_used(*runner)) {
            if let Some(mode) = &settings.mode {
                let key = mode.key.clone();
                match self.mode(step, runner) {
                    SandboxMode::Landlock if !ConfinementBackend::Landlock.works() => {
                        return Err(SandboxError::NoLandlock { key });
                    }
                    SandboxMode::Bwrap if !ConfinementBackend::Bwrap.works() => {
                        return Err(SandboxError::NoBwrap { key });
                    }
                    _ => {}
                }
            }
            if settings.mode.is_some() || settings.git.is_some() {
                self.require_private_git(runner)?;
            }
            let is_closed = |network: &Sourced<SandboxNetwork>| network.value == SandboxNetwork::None;
            let is_off = |mode: &Sourced<SandboxMode>| mode.value == SandboxMode::Off;
            if settings.network.as_ref().is_some_and(is_closed) || settings.mode.as_ref().is_some_and(is_off)
            {
                self.require_network_control(step, runner)?;
            }
        }
        Ok(())
    }

    /// Refuses to make whole git directories writable: those of checkouts, and others. A folder in one can be allowed.
    pub fn require_closed(
        &self,
        checkouts: &[PathBuf],
        git_dirs: &[&Path],
        uses: &[SandboxUse],
    ) -> Result<(), SandboxError> {
        let closed: Vec<PathBuf> = checkouts
            .iter()
            .flat_map(|checkout| find_git_dirs(checkout))
            .chain(git_dirs.iter().map(|git_dir| safe_files::resolved(git_dir)))
            .collect();
        for Sourced { key, value, .. } in
            self.settings.all().filter_map(|(.., settings)| settings.write.as_ref())
        {
            let is_closed = |word: &&String| {
                in_home(word).is_some_and(|path| closed.contains(&safe_files::resolved(&path)))
            };
            if let Some(folder) = value.iter().find(is_closed) {
                return Err(SandboxError::GitDir { key: key.clone(), folder: folder.clone() });
            }
        }
        self.require_closed_by_landlock(&closed, uses)
    }

    /// Refuses folders that contain one of these git directories, if Landlock was chosen for a program that may write there.
    fn require_closed_by_landlock(
        &self,
        closed: &[PathBuf],
        uses: &[SandboxUse],
    ) -> Result<(), SandboxError> {
        for SandboxUse { step, runner } in uses {
            let runner = runner.as_deref();
            let Some(mode_key) = self.find_landlock(step, runner) else { continue };
            let lists = self.settings.of(Some(step), runner).filter_map(|settings| settings.write.as_ref());
            for (write, folder) in lists.flat_map(|write| write.value.iter().map(move |it| (write, it))) {
                let Some(path) = in_home(folder).map(|path| safe_files::resolved(&path)) else { continue };
                if let Some(git_dir) = closed.iter().find(|git_dir| git_dir.starts_with(&path)) {
                    return Err(SandboxError::GitDirInside {
                        key: write.key.clone(),
                        folder: folder.clone(),
                        git_dir: git_dir.display().to_string(),
                        mode_key: mode_key.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The key that chooses Landlock for this step and this runner.
    fn find_landlock(&self, step: &str, runner: Option<&str>) -> Option<String> {
        if self.mode(Some(step), runner) != SandboxMode::Landlock {
            return None;
        }
        let mut modes = self.settings.of(Some(step), runner).filter_map(|settings| settings.mode.as_ref());
        Some(modes.next().map_or_else(|| "sandbox.mode".to_owned(), |mode| mode.key.clone()))
    }

    /// Refuses to take the network away where nothing can enforce that. The settings of a runner and of a step may
    /// contradict each other only if that runner is used for that step.
    pub fn require_network_control(
        &self,
        step: Option<&str>,
        runner: Option<&str>,
    ) -> Result<(), SandboxError> {
        let mode = self.mode(step, runner);
        let can_enforce = mode.backend().is_some_and(ConfinementBackend::can_take_away);
        let Some(key) = self.offline_by(step, runner).filter(|_| !can_enforce) else { return Ok(()) };
        let mut modes = self.settings.of(step, runner).filter_map(|settings| settings.mode.as_ref());
        let mode_key = modes.next().map(|mode| mode.key.clone());
        match mode_key {
            Some(mode_key) if mode == SandboxMode::Off => {
                Err(SandboxError::NetworkWithoutSandbox { key, mode_key })
            }
            Some(mode_key) if mode == SandboxMode::Landlock => {
                Err(SandboxError::NetworkByLandlock { key, mode_key })
            }
            _ => Err(SandboxError::Network { key }),
        }
    }

    /// Refuses a private git directory for an agent that is not in bubblewrap.
    fn require_private_git(&self, runner: Option<&str>) -> Result<(), SandboxError> {
        let Some(key) = self.find_private_git(runner) else { return Ok(()) };
        let mode = self.mode(Some("implement"), runner);
        let is_possible = mode.backend().is_some_and(ConfinementBackend::can_replace);
        if is_possible { Ok(()) } else { Err(SandboxError::Git { key }) }
    }

    /// The key that gives a runner a private git directory.
    pub(super) fn find_private_git(&self, runner: Option<&str>) -> Option<String> {
        let mut gits = self.settings.of(None, runner).filter_map(|settings| settings.git.as_ref());
        gits.next().filter(|git| git.value == SandboxGit::Private).map(|git| git.key.clone())
    }
}
