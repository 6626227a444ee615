//! What exists where our hook could be. Looking runs nothing.

use std::path::{Path, PathBuf};

use arborist_core::{
    failure::Failure,
    git::{Config, DirPlace, GitVersion, HooksDir, Repository, husky_folder},
    safe_files,
};

use super::{
    event::HookEvent,
    manager::Manager,
    spot::{HookContent, HookFile},
};

/// The suffix of a hook that we set aside.
pub(super) const KEPT: &str = ".pre-arborist";
/// The suffixes that pre-commit and lefthook give to hooks that they set aside.
const MOVED: [&str; 2] = [".legacy", ".old"];

/// Everything that decides about one hook.
#[derive(Debug, Clone)]
pub(super) struct HookSite {
    pub event: HookEvent,
    pub git: GitVersion,
    pub dir: HooksDir,
    /// Our command in the repository's own configuration.
    pub config: HookContent,
    /// False if the configuration disables our command.
    pub is_enabled: bool,
    /// The hook file that git would run.
    pub script: HookFile,
    /// The manager that wrote that file, or the one that we set aside.
    pub manager: Option<Manager>,
    /// The hook that we set aside.
    pub kept: HookFile,
    /// Our hook, set aside by another program.
    pub moved: Option<HookFile>,
    /// The user's file that husky runs.
    pub husky: Option<HookFile>,
    /// A link in the place of that file that leads out of the repository.
    pub husky_link: Option<PathBuf>,
    /// Ours in the default directory and the hook that we set aside there, if `core.hooksPath` points elsewhere.
    pub elsewhere: Option<(HookFile, HookFile)>,
}

impl HookSite {
    pub(super) fn load(event: HookEvent, repository: &Repository, config: &Config) -> Result<Self, Failure> {
        let dir = repository.hooks_dir(config)?;
        let file = dir.path.join(event.as_str());
        let script = HookFile::script(file.clone(), event)?;
        let husky = husky_folder(&dir.path).map(|folder| folder.join(event.as_str()));
        let husky = husky.map(|path| HookFile::block(path, event)).transpose()?;
        let kept = HookFile::script(with_suffix(&file, KEPT), event)?;
        let manager =
            [&script, &kept].into_iter().find_map(|spot| Manager::of_script(spot.bytes.as_deref()?));
        Ok(Self {
            event,
            git: repository.version,
            config: config_content(event, config),
            is_enabled: is_enabled(event, config),
            manager: if husky.is_some() { Some(Manager::Husky) } else { manager },
            kept,
            moved: find_ours(MOVED.map(|suffix| with_suffix(&file, suffix)), event)?,
            elsewhere: match repository.default_hooks_dir() {
                default if default == dir.path => None,
                default => find_pair(&default.join(event.as_str()), event)?,
            },
            script,
            husky_link: husky.as_ref().and_then(|file| find_link_out(repository, &dir, &file.path)),
            husky,
            dir,
        })
    }
}

/// The link through which the file that husky runs leads out of the repository. The user may have chosen a folder outside.
fn find_link_out(repository: &Repository, dir: &HooksDir, file: &Path) -> Option<PathBuf> {
    let main = repository.common_dir.parent();
    let tops = [repository.worktree.as_deref(), main].into_iter().flatten();
    let mut tops = tops.filter(|top| dir.reach == DirPlace::Worktree && file.starts_with(top));
    tops.next().and_then(|top| safe_files::find_link_out(top, file))
}

fn config_content(event: HookEvent, config: &Config) -> HookContent {
    let key = format!("{}.command", event.config_section());
    let command = config.find(&key).filter(|entry| entry.scope == "local");
    match command.and_then(|entry| entry.value.as_deref()) {
        Some(text) => match HookContent::of(Some(text), |binary| event.check(binary)) {
            HookContent::Ours(binary) => HookContent::Ours(binary),
            _ => HookContent::Edited,
        },
        None => HookContent::Absent,
    }
}

fn is_enabled(event: HookEvent, config: &Config) -> bool {
    let setting = config.find(&format!("{}.enabled", event.config_section()));
    let value = setting.and_then(|entry| entry.value.as_ref()).map(|value| value.to_ascii_lowercase());
    !value.is_some_and(|value| matches!(value.as_str(), "false" | "no" | "off" | "0" | ""))
}

fn find_ours<const N: usize>(paths: [PathBuf; N], event: HookEvent) -> Result<Option<HookFile>, Failure> {
    for path in paths {
        let spot = HookFile::script(path, event)?;
        if spot.content.is_ours() {
            return Ok(Some(spot));
        }
    }
    Ok(None)
}

fn find_pair(file: &Path, event: HookEvent) -> Result<Option<(HookFile, HookFile)>, Failure> {
    let found = find_ours([file.to_owned()], event)?;
    found.map(|script| Ok((script, HookFile::script(with_suffix(file, KEPT), event)?))).transpose()
}

pub(super) fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
