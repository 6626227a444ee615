//! The sandbox: it limits where agents, reviewers, tests, gates and set-up commands can change files, whatever they
//! try. The driver itself commits and moves refs, so none of them needs to write to the git directory.
//!
//! A child may write to the checkouts that it works in, to the folders in which its program keeps its own state, to
//! caches of package managers, to `sandbox.write` and to a folder for temporary files that is removed afterwards.
//!
//! It can read everything except `sandbox.deny-read`, git directories of other repositories and worktrees of other tasks.
//!
//! Landlock rules only add rights. If a child works in the user's own checkout, it can write to the `.git` in it. With
//! bubblewrap it cannot; `sandbox.network` needs bubblewrap as well.

mod backend;
mod beside;
mod check;
mod denials;
mod folders;
mod git_dirs;
mod hidden;
mod links;
mod support;

use std::path::{Path, PathBuf};

pub use check::{CheckedRule, RuleIntent, RuleOutcome};
pub use denials::{describe_denials, list_denials, names_closed_path};
use folders::CacheFolder;
pub use folders::{ProgramFolder, find_folder, find_path};
use git_dirs::find_git_dirs;
use links::WritableFolders;
pub use support::SandboxError;

use crate::{
    process::{
        Confinement, ConfinementBackend, InnerSandbox, ResourceLimits, is_in_checkout, list_unused_folders,
    },
    safe_files,
    settings::{SandboxLayers, SandboxMode, SandboxNetwork, SandboxSettings, Settings, Sourced},
};

/// The limits of all children of a run, as configured.
#[derive(Debug, Clone)]
pub struct Sandbox {
    settings: SandboxLayers,
    /// The part of them that no file of the repository sets.
    users: SandboxLayers,
    caches: Vec<CacheFolder>,
    files: Vec<CacheFolder>,
    /// Whether missing folders and files that programs need are made.
    makes_folders: bool,
    /// Checkouts of all repositories of the run. Their git directories stay closed.
    repositories: Vec<PathBuf>,
    /// The git directories that the driver uses. They may have any name.
    git_dirs: Vec<PathBuf>,
    /// A folder with worktrees besides those that are known to belong to the driver. The check makes one.
    worktree_folder: Option<PathBuf>,
}

/// A step that runs in the sandbox.
#[derive(Debug, Clone)]
pub struct SandboxUse {
    /// The name of the step.
    pub step: &'static str,
    /// The runner that is called in it; `None` for commands.
    pub runner: Option<String>,
}

impl SandboxUse {
    /// The steps without a runner.
    pub fn of_commands() -> impl Iterator<Item = Self> {
        ["test", "gate", "setup", "hook"].into_iter().map(|step| Self { step, runner: None })
    }
}

/// What runs in the sandbox.
#[derive(Debug, Clone, Default)]
pub struct SandboxedChild<'c> {
    /// The step: `implement`, `review`, `resolve`, `plan`, `commit-message`, `test`, `gate`, `setup` or `hook`.
    pub step: &'c str,
    /// The name of the runner, for agents.
    pub runner: Option<&'c str>,
    /// Folders and files in which its program keeps its own state.
    pub state: Vec<ProgramFolder>,
    /// Files in them that it must not change.
    pub protected: Vec<PathBuf>,
    /// Folders in them that are replaced by an empty folder for this child, where the sandbox can do that.
    pub private: Vec<PathBuf>,
    /// The folders that it works in.
    pub places: Vec<PathBuf>,
    /// Worktrees that it only reads. They and their git directories stay visible.
    pub reads: Vec<PathBuf>,
    /// Whether its program limits itself.
    pub has_own_sandbox: bool,
    /// The file of its program, for agents.
    pub program: Option<PathBuf>,
}

impl Sandbox {
    /// Reads the settings, and finds the caches that exist.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let (caches, files) = folders::caches();
        let (settings, users) = (settings.sandbox.clone(), settings.of_user().sandbox);
        let (repositories, git_dirs) = (Vec::new(), Vec::new());
        let worktree_folder = None;
        Self { settings, users, caches, files, makes_folders: true, repositories, git_dirs, worktree_folder }
    }

    /// Closes these git directories and those of these checkouts, too. A `.git` in a folder that a child works in is
    /// always closed.
    #[must_use]
    pub fn closing(self, repositories: Vec<PathBuf>, git_dirs: &[&Path]) -> Self {
        let git_dirs = git_dirs.iter().map(|git_dir| safe_files::resolved(git_dir)).collect();
        Self { repositories, git_dirs, ..self }
    }

    /// The limits of a child; `None` if it has none.
    #[must_use]
    pub fn confine(&self, child: &SandboxedChild<'_>) -> Option<Confinement> {
        match self.confine_files(child) {
            Some(confinement) => Some(confinement.with_resources(self.resources(child))),
            None => self.limit_resources(child),
        }
    }

    /// The limits of a child outside of the sandbox; `None` if it has none.
    #[must_use]
    pub fn limit_resources(&self, child: &SandboxedChild<'_>) -> Option<Confinement> {
        let resources = self.resources(child);
        (!resources.is_none()).then(|| Confinement::open().with_resources(resources))
    }

    /// Whether a child may also be run outside of the sandbox: not if a backend was chosen explicitly.
    #[must_use]
    pub fn may_be_left(&self, child: &SandboxedChild<'_>) -> bool {
        self.mode_of(child) == SandboxMode::Auto
    }

    /// What a child may use. A file of the repository cannot raise the user's own limits.
    fn resources(&self, child: &SandboxedChild<'_>) -> ResourceLimits {
        let find = |what: fn(&SandboxSettings) -> Option<u64>| {
            let find = |layers: &SandboxLayers| layers.of(Some(child.step), child.runner).find_map(what);
            [find(&self.settings), find(&self.users)].into_iter().flatten().min()
        };
        ResourceLimits {
            processes: find(|settings| settings.max_processes),
            file_size: find(|settings| settings.max_file_size),
        }
    }

    /// Where a child may change files; `None` if it may change all.
    fn confine_files(&self, child: &SandboxedChild<'_>) -> Option<Confinement> {
        let mode = self.mode_of(child);
        if mode == SandboxMode::Off || self.is_left_alone(child) {
            return None;
        }
        // If no backend works here, the child starts without limits: only a mode that was chosen makes them required.
        let backend = mode.backend().unwrap_or_default();
        let mut confinement = Confinement::new(child.places.iter().cloned()).enforced_by(backend);
        confinement.is_required = mode == SandboxMode::Landlock;
        confinement.has_private_temp = true;
        confinement.inner = self.inner_sandbox(child);
        confinement.offline_by = self.offline_by(Some(child.step), child.runner);
        let writable = self.writable(child);
        let kept = self.list_kept(child, backend);
        let is_grantable = |folder: &PathBuf| is_grantable(child, folder);
        // In a checkout it would look like a change.
        let is_in_checkout =
            |path: &Path| child.places.iter().chain(&self.repositories).any(|top| path.starts_with(top));
        let is_made = |path: &Path, is_needed: bool| is_needed && self.makes_folders && !is_in_checkout(path);
        let mut grant = |folder: &Path, is_needed: bool| {
            if let Some(folder) = writable.resolve(folder).filter(is_grantable) {
                if is_made(&folder, is_needed) {
                    // The program could not make it. If it cannot be made, it is not granted either.
                    let _ = safe_files::make_folders(&folder);
                }
                kept.list_beside(folder).into_iter().for_each(|folder| confinement.add(folder));
            }
        };
        self.caches.iter().for_each(|cache| grant(&cache.path, cache.is_needed));
        let mut files = self.files.clone();
        for state in &child.state {
            match state {
                ProgramFolder::Folder(folder) => grant(folder, true),
                ProgramFolder::File(file) => {
                    files.push(CacheFolder { path: file.clone(), is_needed: false });
                }
            }
        }
        for file in files {
            let Some(path) = writable.resolve(&file.path) else { continue };
            if is_made(&path, file.is_needed) {
                let _ = safe_files::open_or_create(&path);
            }
            confinement.files.push(path);
        }
        for path in self.granted(child) {
            for path in kept.list_beside(path) {
                if path.is_file() {
                    confinement.files.push(path);
                } else {
                    confinement.add(path);
                }
            }
        }
        let git_dirs = self.list_git_dirs(child);
        confinement.closed.extend(git_dirs.iter().chain(&child.protected).cloned());
        for folder in &child.private {
            match writable.resolve(folder) {
                Some(folder) => {
                    if self.makes_folders && backend.can_take_away() {
                        // Otherwise the child would make it for everybody.
                        let _ = safe_files::make_folders(&folder);
                    }
                    confinement.private.push(folder);
                }
                None => confinement.closed.push(folder.clone()),
            }
        }
        if child.step != "setup" {
            confinement.closed.extend(self.program_folders(child));
        }
        // A folder in a git directory of a checkout that is writable was left out above, because it seemed to be allowed.
        let is_inside = |path: &Path, folder: &PathBuf| path != folder && path.starts_with(folder);
        let is_in_git = |path: &PathBuf| git_dirs.iter().any(|git_dir| is_inside(path, git_dir));
        self.granted(child)
            .into_iter()
            .filter(|path| path.is_dir() && is_in_git(path))
            .flat_map(|path| kept.list_beside(path))
            .for_each(|path| confinement.add(path));
        let (hidden, key) = self.hidden(child, backend);
        let reads = child.reads.iter().map(|folder| safe_files::resolved(folder));
        let is_hidden = |folder: &PathBuf| hidden.iter().any(|hidden| folder.starts_with(hidden));
        let is_own = |folder: &PathBuf| child.places.iter().any(|place| folder.starts_with(place));
        let shown = reads.filter(|folder| is_hidden(folder) && !is_own(folder));
        confinement.shown.extend(shown);
        confinement.hide(hidden, key);
        Some(confinement)
    }

    /// What happens to the sandbox of the child's own program. It keeps every git directory read-only, also a private one.
    #[must_use]
    pub fn inner_sandbox(&self, child: &SandboxedChild<'_>) -> InnerSandbox {
        let can_nest = || self.mode_of(child).backend().is_some_and(ConfinementBackend::can_nest);
        match child.has_own_sandbox {
            false => InnerSandbox::None,
            true if !self.has_private_git(child) && can_nest() => InnerSandbox::Nested,
            true => InnerSandbox::Off,
        }
    }

    /// Whether a child is left to the sandbox of its own program, because that does not work inside of ours. That sandbox
    /// is not known to take the network away. A program that a child can replace has none.
    #[must_use]
    pub fn is_left_alone(&self, child: &SandboxedChild<'_>) -> bool {
        self.mode_of(child) == SandboxMode::Auto
            && self.inner_sandbox(child) == InnerSandbox::Off
            && self.offline_by(Some(child.step), child.runner).is_none()
            && !self.has_private_git(child)
            && !child.program.as_ref().is_some_and(|program| self.is_writable(child, program))
    }

    /// The folders of `PATH` in checkouts. The user's own commands and later steps would find what a child puts there.
    fn program_folders(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let checkouts: Vec<PathBuf> =
            child.places.iter().chain(&self.repositories).map(|top| safe_files::resolved(top)).collect();
        let unused = list_unused_folders().into_iter();
        let folders = unused.flat_map(|folder| checkouts.iter().map(move |top| top.join(&folder)));
        let folders = folders.map(|folder| safe_files::resolved(&folder));
        let is_inside = |folder: &PathBuf| checkouts.iter().any(|top| folder.starts_with(top));
        let holds_checkout = |folder: &PathBuf| checkouts.iter().any(|top| top.starts_with(folder));
        folders.filter(|folder| is_inside(folder) && !holds_checkout(folder)).collect()
    }

    /// Whether a child of the run can replace this file.
    fn is_writable(&self, child: &SandboxedChild<'_>, file: &Path) -> bool {
        let real = safe_files::resolved(file);
        let configured = self.settings.all().filter_map(|(.., settings)| settings.write.as_ref());
        let configured = configured.flat_map(|words| &words.value);
        let state =
            child.state.iter().map(|(ProgramFolder::Folder(path) | ProgramFolder::File(path))| path.clone());
        let caches = self.caches.iter().map(|cache| cache.path.clone());
        let mut folders = configured.filter_map(|word| in_home(word)).chain(state).chain(caches);
        is_in_checkout(file) || folders.any(|folder| real.starts_with(safe_files::resolved(&folder)))
    }

    /// The folders and files of `sandbox.write`, of the runner and of the step.
    fn granted(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let lists = self.settings.of(Some(child.step), child.runner);
        let words = lists.filter_map(|settings| settings.write.as_ref()).flat_map(|words| &words.value);
        let writable = self.writable(child);
        words.filter_map(|word| in_home(word)).filter_map(|folder| writable.resolve(&folder)).collect()
    }

    /// Every folder that this child or another one may write to.
    fn writable(&self, child: &SandboxedChild<'_>) -> WritableFolders {
        let configured = self.settings.all().filter_map(|(.., settings)| settings.write.as_ref());
        let configured = configured.flat_map(|words| &words.value).filter_map(|word| in_home(word));
        let state = child.state.iter().filter_map(|state| match state {
            ProgramFolder::Folder(folder) => Some(folder.clone()),
            ProgramFolder::File(_) => None,
        });
        let caches = self.caches.iter().map(|cache| cache.path.clone());
        let caches = caches.filter(|cache| is_grantable(child, &safe_files::resolved(cache)));
        let places = child.places.iter().chain(&self.repositories).cloned();
        WritableFolders::new(configured.chain(state).chain(caches).chain(places))
    }

    /// Whether a child gets a private git directory.
    #[must_use]
    pub fn has_private_git(&self, child: &SandboxedChild<'_>) -> bool {
        child.step == "implement"
            && self.find_private_git(child.runner).is_some()
            && self.mode_of(child).backend().is_some_and(ConfinementBackend::can_replace)
    }

    /// The setting that takes the network away from a child.
    fn offline_by(&self, step: Option<&str>, runner: Option<&str>) -> Option<String> {
        let find =
            |layers: &SandboxLayers| layers.of(step, runner).find_map(|settings| settings.network.clone());
        let is_none = |network: &Sourced<SandboxNetwork>| network.value == SandboxNetwork::None;
        let network = find(&self.settings)?;
        let users = || find(&self.users).filter(|_| network.is_tracked());
        let network = if is_none(&network) { Some(network) } else { users().filter(is_none) };
        network.map(|network| network.key)
    }
}

/// Whether a folder may be granted: it contains neither the home directory nor a checkout of the child. Such a folder would open everything
/// beside it: the git directory and other lanes.
fn is_grantable(child: &SandboxedChild<'_>, folder: &Path) -> bool {
    let home = folders::home().map(|home| safe_files::resolved(&home));
    !child.places.iter().chain(&home).any(|place| place.starts_with(folder))
}

/// An absolute path, or one in the home directory.
fn in_home(word: &str) -> Option<PathBuf> {
    match word.strip_prefix("~/") {
        Some(rest) => Some(folders::home()?.join(rest)),
        None => Some(Path::new(word).to_owned()).filter(|path| path.is_absolute()),
    }
}
