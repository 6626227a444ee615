//! A file or setting that could have our hook, and who wrote its text.

use std::{
    io,
    path::{Path, PathBuf},
};

use arborist_core::{
    failure::{Exit, Failure},
    process::is_executable,
    safe_files,
};

use super::{
    block,
    event::{HookEvent, Quoted, is_marked},
};

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
        Self::load(path, |text| match text.map(|text| block::find(text).ok_or(text)) {
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
