//! A place that could hold our hook, and whose the text in it is.

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
    event::{Event, Quoted, is_marked},
};

/// Whose a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// There is none.
    Absent,
    /// Exactly what we write, with this path of the binary.
    Ours(Quoted),
    /// Ours, changed by somebody.
    Edited,
    /// Somebody else's.
    Foreign,
}

impl Content {
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

/// A file that could hold our hook.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub path: PathBuf,
    pub bytes: Option<Vec<u8>>,
    pub is_executable: bool,
    pub content: Content,
}

impl Spot {
    fn load(path: PathBuf, judge: impl Fn(Option<&str>) -> Content) -> Result<Self, Failure> {
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

    /// Whether it is somebody else's, with a line of theirs that runs our check.
    pub(super) fn calls_ours(&self, event: Event) -> bool {
        let call = format!("git-arborist-hooks run {}", event.as_str());
        let text = String::from_utf8_lossy(self.bytes.as_deref().unwrap_or_default());
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        self.content == Content::Foreign && lines.any(|line| line.contains(&call))
    }

    pub(super) fn script(path: PathBuf, event: Event) -> Result<Self, Failure> {
        Self::load(path, |text| Content::of(text, |binary| event.script(binary)))
    }

    pub(super) fn block(path: PathBuf, event: Event) -> Result<Self, Failure> {
        Self::load(path, |text| match text.map(|text| block::find(text).ok_or(text)) {
            Some(Err(text)) if !is_marked(text) => Content::Foreign,
            Some(Err(_)) => Content::Edited,
            found => Content::of(found.and_then(Result::ok), |binary| {
                event.block(binary).trim_end_matches('\n').to_owned()
            }),
        })
    }
}

/// Below `/dev/null` there is nothing either.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
