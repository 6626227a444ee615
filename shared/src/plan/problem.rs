//! What is wrong with a plan: always with a place, and with what would fix it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Exit, Explain, Explanation},
    message::{nearest, visible},
    process::shell_word,
};

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What would fix it.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, .. } = self;
        write!(f, "{file}:{line}:{column}: {what}")
    }
}

/// A plan that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Its file could not be opened.
    #[error("could not read '{file}': {why}")]
    Unreadable {
        /// The file, as it was named.
        file: String,
        /// What the system said.
        why: String,
    },
    /// It is a folder.
    #[error("'{file}' is a folder")]
    Folder {
        /// The folder, as it was named.
        file: String,
        /// A file in it that is probably meant.
        meant: Option<String>,
    },
    /// There is no such file.
    #[error("there is no file '{file}'")]
    Missing {
        /// The file, as it was named.
        file: String,
        /// A file beside it that was probably meant.
        meant: Option<String>,
        /// The folder that was searched.
        folder: String,
    },
    /// The user named a file that is not in the worktree.
    #[error("'{file}' is outside of the repository")]
    Outside {
        /// The full path of the file.
        file: String,
        /// The top of the worktree.
        top: PathBuf,
    },
    /// It is a symbolic link, and the link or its target has changes that are not committed.
    #[error("'{file}' is a symbolic link to '{target}', and the link or the file is not committed")]
    UncommittedLink {
        /// The link, relative to the top of the repository.
        file: String,
        /// Where it leads, as far as it is in the repository.
        target: String,
    },
    /// It was read and makes no sense. There is at least one problem, in the order of the file.
    #[error("{}", lines(.problems))]
    Wrong {
        /// What is wrong.
        problems: Vec<Problem>,
        /// What is doubtful besides.
        warnings: Vec<Problem>,
    },
}

impl PlanError {
    /// A plan with these problems, of which there is at least one.
    #[must_use]
    pub fn wrong(problems: Vec<Problem>) -> Self {
        Self::Wrong { problems, warnings: Vec::new() }
    }

    /// The error for a file that could not be opened. `file` is how it was named, and `path` leads to it.
    #[must_use]
    pub fn unreadable(file: &str, path: &Path, error: &io::Error) -> Self {
        if path.is_dir() {
            let file = if file.is_empty() { "." } else { file };
            let is_there = |name: &&str| path.join(name).is_file();
            let name = ["task-tree.json", "tasks.md"].into_iter().find(is_there);
            let meant = name.map(|name| Path::new(file).join(name));
            let meant = meant.map(|meant| meant.strip_prefix(".").unwrap_or(&meant).display().to_string());
            return Self::Folder { file: file.to_owned(), meant };
        }
        if error.kind() != io::ErrorKind::NotFound {
            return Self::Unreadable { file: file.to_owned(), why: error.to_string() };
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = folder.read_dir().into_iter().flatten().flatten();
        let names: Vec<String> =
            beside.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let meant = nearest(&name, names.iter().map(String::as_str));
        // The name, with the folder as it was typed.
        let meant = meant.map(|meant| file.strip_suffix(&*name).unwrap_or_default().to_owned() + meant);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).display().to_string();
        Self::Missing { file: file.to_owned(), meant, folder }
    }

    /// What is wrong, place by place.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. }
            | Self::Folder { .. }
            | Self::Missing { .. }
            | Self::Outside { .. }
            | Self::UncommittedLink { .. } => &[],
            Self::Wrong { problems, .. } => problems,
        }
    }
}

impl Problem {
    fn hint(&self) -> Option<String> {
        Some(self.fix.clone()).filter(|fix| !fix.is_empty())
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// How a plan gets into the repository, or where it must be.
fn advice_on_outside(file: &Path, top: &Path) -> String {
    let copy = file.file_name().map(|name| top.join(name));
    match copy.filter(|copy| file.is_file() && copy.symlink_metadata().is_err()) {
        Some(copy) => {
            let word = |path: &Path| shell_word(&path.to_string_lossy());
            format!("copy it into the repository and name the copy: cp {} {}", word(file), word(&copy))
        }
        None => format!("name a file in '{}'", visible(&top.to_string_lossy())),
    }
}

impl Explain for PlanError {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::UncommittedLink { file, target } => Some(format!(
                "commit both, or put the text into '{file}' itself: git add {file} {target} && git commit"
            )),
            Self::Folder { meant: Some(meant), .. } => {
                Some(format!("name the file with the plan: {}", shell_word(meant)))
            }
            Self::Folder { meant: None, .. } => Some("name the file with the plan".to_owned()),
            Self::Missing { meant: Some(meant), .. } => Some(format!("did you mean '{meant}'?")),
            Self::Missing { folder, .. } => Some(format!("looked for it in '{}'", visible(folder))),
            Self::Outside { file, top } => Some(advice_on_outside(Path::new(file), top)),
            _ => self.problems().first().and_then(Problem::hint),
        };
        Explanation { exit: Exit::No, hint }
    }

    fn messages(&self) -> Vec<(String, Option<String>)> {
        match self.problems() {
            [] => vec![(self.to_string(), self.hint())],
            problems => problems.iter().map(|problem| (problem.to_string(), problem.hint())).collect(),
        }
    }
}
