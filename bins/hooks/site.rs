//! What exists where our hook could be: files, settings, and programs that manage hooks. Looking runs nothing.

use std::{
    io,
    path::{Path, PathBuf},
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, DirPlace, GitVersion, HooksDir, Repository, husky_folder},
    process::is_executable,
    safe_files,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    event::{HookEvent, Quoted, is_marked},
    plan,
};

/// The suffix of a hook that we set aside.
const KEPT: &str = ".pre-arborist";
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

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Who wrote a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookContent {
    /// There is none.
    Absent,
    /// Exactly what we write, with this path of the binary.
    Ours(Quoted),
    /// Ours, but edited by hand.
    Edited,
    /// Of another program.
    Foreign,
}

impl HookContent {
    pub(super) fn of(text: Option<&str>, render: impl Fn(&Quoted) -> String) -> Self {
        let Some(text) = text else {
            return Self::Absent;
        };
        match Quoted::find_in(text) {
            Some(binary) if render(&binary) == text => Self::Ours(binary),
            _ if is_marked(text) => Self::Edited,
            _ => Self::Foreign,
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }

    /// The program that this text names by its path.
    pub(super) fn binary(&self) -> Option<Binary> {
        let Self::Ours(word) = self else {
            return None;
        };
        let path = word.unquoted();
        (!path.is_empty()).then(|| Binary { is_there: is_executable(Path::new(&path)), path })
    }
}

/// The program that our text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binary {
    pub path: String,
    pub is_there: bool,
}

/// A file that could have our hook.
#[derive(Debug, Clone)]
pub(super) struct HookFile {
    pub path: PathBuf,
    pub bytes: Option<Vec<u8>>,
    pub is_executable: bool,
    pub content: HookContent,
}

impl HookFile {
    fn load(path: PathBuf, judge: impl Fn(Option<&str>) -> HookContent) -> Result<Self, Failure> {
        let bytes = match safe_files::read_users(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if is_absence(&error) && !path.is_symlink() => None,
            Err(error) => {
                return Err(Failure::new(
                    Exit::Fatal,
                    format!("could not read '{}': {error}", path.display()),
                ));
            }
        };
        let text = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes));
        let content = judge(text.as_deref());
        Ok(Self { is_executable: is_executable(&path), path, bytes, content })
    }

    /// Whether it is a file of others with a line that runs our check.
    pub(super) fn calls_ours(&self, event: HookEvent) -> bool {
        let call = format!("git-arborist-hooks run {}", event.as_str());
        let text = String::from_utf8_lossy(self.bytes.as_deref().unwrap_or_default());
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        self.content == HookContent::Foreign && lines.any(|line| line.contains(&call))
    }

    pub(super) fn script(path: PathBuf, event: HookEvent) -> Result<Self, Failure> {
        Self::load(path, |text| HookContent::of(text, |binary| event.script(binary)))
    }

    pub(super) fn block(path: PathBuf, event: HookEvent) -> Result<Self, Failure> {
        Self::load(path, |text| match text.map(|text| plan::find_block(text).ok_or(text)) {
            Some(Err(text)) if !is_marked(text) => HookContent::Foreign,
            Some(Err(_)) => HookContent::Edited,
            found => HookContent::of(found.and_then(Result::ok), |binary| {
                event.block(binary).trim_end_matches('\n').to_owned()
            }),
        })
    }
}

/// Whether an error means that the file does not exist. That includes paths below `/dev/null`.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A program that manages hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Manager {
    /// <https://typicode.github.io/husky>
    Husky,
    /// <https://lefthook.dev>
    Lefthook,
    /// <https://pre-commit.com>
    PreCommit,
}

impl Manager {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Husky => "husky",
            Self::Lefthook => "lefthook",
            Self::PreCommit => "pre-commit",
        }
    }

    /// The manager that generated a hook file, recognised by what all of its versions write.
    fn of_script(script: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(script);
        if text.contains("File generated by pre-commit") {
            Some(Self::PreCommit)
        } else if text.contains("call_lefthook") {
            Some(Self::Lefthook)
        } else {
            None
        }
    }

    /// What to add to its configuration, so that ours still runs after it has regenerated its hooks.
    pub(super) fn lasting(self, event: HookEvent) -> Option<String> {
        let name = event.as_str();
        match (self, event) {
            (Self::Lefthook, HookEvent::CommitMsg | HookEvent::PrePush) => Some(format!(
                "lefthook rewrites its hooks when its configuration changes; to keep this one, add to lefthook.yml:\n\
                 {name}:\n  commands:\n    arborist:\n      run: git-arborist-hooks run {name} {}",
                if event == HookEvent::PrePush { "{1} {2}\n      use_stdin: true" } else { "{1}" },
            )),
            (Self::PreCommit, HookEvent::CommitMsg) => Some(format!(
                "to have pre-commit itself run it, add to the repos of .pre-commit-config.yaml:\n\
                 - repo: local\n  hooks:\n    - id: arborist-{name}\n      name: git arborist {name}\n\
                 \x20     entry: git-arborist-hooks run {name}\n      language: system\n      stages: [{name}]",
            )),
            _ => None,
        }
    }
}
