//! Errors of a runner before it is started.

use std::path::{Path, PathBuf};

use super::{EventFormat, Placeholder, Preset, limits::ChoiceError};
use crate::{
    failure::{Exit, Explain, Explanation},
    message::nearest,
    process::shell_word,
};

/// A runner that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No preset and no configured runner has this name.
    #[error("unknown runner '{name}'")]
    UnknownRunner {
        /// As written.
        name: String,
        /// Where.
        place: NamedIn,
        /// The runners that the settings define.
        configured: Vec<String>,
    },
    /// The template contains an unknown placeholder.
    #[error("runner '{runner}' uses the unknown placeholder '{{{name}}}'")]
    UnknownPlaceholder {
        /// The runner.
        runner: String,
        /// As written, without braces.
        name: String,
    },
    /// The template of a prompt contains an unknown placeholder.
    #[error("{message}")]
    PromptTemplate {
        /// What is wrong with it.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The model begins with a dash, so that a program would read it as an option.
    #[error("the model '{model}' of runner '{runner}' begins with '-', so it would be read as an option")]
    ModelIsOption {
        /// The runner.
        runner: String,
        /// As written.
        model: String,
    },
    /// The template has no program, or a placeholder in its place.
    #[error("the command of runner '{runner}' does not start with a program")]
    NoProgram {
        /// The runner.
        runner: String,
    },
    /// The template is a whole command in one word.
    #[error("the command of runner '{runner}' must be a list of words, but it is one text: '{word}'")]
    OneWord {
        /// The runner.
        runner: String,
        /// As written.
        word: String,
    },
    /// There is no such event format.
    #[error("unknown event format '{name}'")]
    UnknownFormat {
        /// As written.
        name: String,
    },
    /// A fallback cannot be parsed.
    #[error("fallback {0}")]
    Fallback(#[from] ChoiceError),
    /// The program is not on `PATH`.
    #[error("'{program}' is not installed")]
    NotInstalled {
        /// The runner.
        runner: String,
        /// The program.
        program: String,
        /// How to install it, if we know.
        install: Option<String>,
    },
    /// The file of the program cannot be started.
    #[error("the runner '{runner}' cannot start: {}", .why.of(file))]
    CannotStart {
        /// The runner.
        runner: String,
        /// The file of its program.
        file: PathBuf,
        /// The key of its command, and where it is set.
        location: Option<String>,
        /// Why.
        why: NoStart,
    },
    /// None of the programs of a runner and its fallbacks is on `PATH`.
    #[error("none of these programs is installed: {}", programs.join(", "))]
    NoneInstalled {
        /// The programs, in the order in which they would be called.
        programs: Vec<String>,
        /// How to install those of which we know it.
        installs: Vec<String>,
    },
    /// The program is only in a folder of `PATH` that agents can change.
    #[error("'{program}' was found only in '{}', where agents could replace it", file.parent().unwrap_or(file).display())]
    InCheckout {
        /// The runner.
        runner: String,
        /// The program.
        program: String,
        /// Its file.
        file: PathBuf,
    },
    /// The runner `shell` cannot review: the command of a task cannot judge its own result.
    #[error("'shell' cannot review, because it only runs the command of a task")]
    ShellReviews,
}

/// Why a file cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoStart {
    /// There is no such file.
    Missing,
    /// It has no execute permission, or is a folder.
    NotExecutable,
    /// It is a script, and its interpreter does not exist.
    NoInterpreter(String),
}

impl NoStart {
    fn of(&self, file: &Path) -> String {
        let file = file.display();
        match self {
            Self::Missing => format!("there is no file '{file}'"),
            Self::NotExecutable => format!("'{file}' is not executable"),
            Self::NoInterpreter(name) => {
                format!("the interpreter '{}' of '{file}' does not exist", name.escape_default())
            }
        }
    }
}

/// Where a runner is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedIn {
    /// In an option of the command.
    Flag,
    /// In the plan or the configuration.
    File,
}

impl AgentError {
    /// One error for a runner and its fallbacks that all cannot be called: it names all programs that are missing.
    pub(crate) fn for_all(first: Self, others: &[Self]) -> Self {
        let missing = |error: &Self| match error {
            Self::NotInstalled { program, install, .. } => Some((program.clone(), install.clone())),
            _ => None,
        };
        let all: Option<Vec<_>> = std::iter::once(&first).chain(others).map(missing).collect();
        let (mut programs, mut installs) = (Vec::new(), Vec::new());
        for (program, install) in all.unwrap_or_default() {
            if !programs.contains(&program) {
                programs.push(program);
                installs.extend(install);
            }
        }
        if programs.len() > 1 { Self::NoneInstalled { programs, installs } } else { first }
    }
}

/// The runners that can be named: those of the settings, then the built-in ones.
fn list_runners(configured: &[String]) -> Vec<&str> {
    let mut known: Vec<&str> = configured.iter().map(String::as_str).collect();
    for preset in Preset::names() {
        if !known.contains(&preset) {
            known.push(preset);
        }
    }
    known
}

impl Explain for AgentError {
    fn explain(&self) -> Explanation {
        let exit = match self {
            Self::UnknownRunner { place: NamedIn::Flag, .. } => Exit::Usage,
            _ => Exit::No,
        };
        Explanation { exit, hint: self.advice() }
    }
}

impl AgentError {
    /// What to try next.
    fn advice(&self) -> Option<String> {
        match self {
            Self::UnknownRunner { name, configured, .. } if name.trim().is_empty() => {
                Some(format!("name a runner; known runners: {}", list_runners(configured).join(", ")))
            }
            Self::UnknownRunner { name, .. } if name.contains(['/', '.']) => Some(format!(
                "a runner is a name, not a path; to define one, run: git config arborist.runners.NAME.command {}",
                shell_word(name)
            )),
            Self::UnknownRunner { name, configured, .. } => {
                let known = list_runners(configured);
                if let Some((runner, model)) =
                    name.split_once(':').filter(|(runner, _)| known.contains(runner))
                {
                    let (runner, model) = (shell_word(runner), shell_word(model));
                    return Some(format!("to choose a model: --runner {runner} --model {model}"));
                }
                let others = format!(
                    "known runners: {}\nto define your own runner, name its program: git config arborist.runners.{}.command my-program",
                    known.join(", "),
                    shell_word(name)
                );
                Some(proposal(name, known, &others))
            }
            Self::UnknownPlaceholder { name, .. } => {
                let known: Vec<String> =
                    Placeholder::ALL.iter().map(|known| format!("{{{}}}", known.as_str())).collect();
                let names = Placeholder::ALL.iter().map(|known| known.as_str());
                Some(proposal(name, names, &format!("known placeholders: {}", known.join(", "))))
            }
            Self::PromptTemplate { hint, .. } => Some(hint.clone()),
            Self::ModelIsOption { .. } => Some(
                "correct 'model' in the plan or in the configuration, or name another one with --model"
                    .into(),
            ),
            Self::NoProgram { .. } => {
                Some("put the program first: command = [\"robot\", \"{prompt}\"]".into())
            }
            Self::OneWord { runner, word } => Some(separate_words(runner, word)),
            Self::UnknownFormat { name } => {
                let names = || EventFormat::ALL.iter().map(|format| format.as_str());
                let all = format!("known formats: {}", names().collect::<Vec<_>>().join(", "));
                Some(proposal(name, names(), &all))
            }
            Self::Fallback(_) => Some("write it as \"codex\", or as \"claude:haiku\"".into()),
            Self::ShellReviews => {
                Some("name another reviewer with --review-runner, or set steps.review.runner".into())
            }
            Self::InCheckout { runner, file, .. } => Some(format!(
                "install it elsewhere, or allow this one by its full path as the first word of runners.{runner}.command: {}",
                file.display()
            )),
            Self::CannotStart { file, why: NoStart::NotExecutable, .. } if file.is_file() => {
                Some(format!("make it executable with: chmod +x {}", shell_word(&file.display().to_string())))
            }
            Self::CannotStart { why: NoStart::NoInterpreter(_), .. } => {
                Some("correct the first line of the script".into())
            }
            Self::CannotStart { location, .. } => {
                location.as_ref().map(|location| format!("correct {location}"))
            }
            Self::NoneInstalled { installs, .. } => Some(match installs.as_slice() {
                [] => "put one of them on PATH, or choose another runner".into(),
                installs => format!("install one of them with: {}", installs.join("\nor with: ")),
            }),
            Self::NotInstalled { runner, program, install } => Some(match install {
                Some(install) => format!("install it with: {install}"),
                None if program.starts_with('[') => {
                    values_in_git(runner, &words_in_brackets(program).unwrap_or_else(example))
                }
                None if program.contains(' ') => separate_words(runner, program),
                None => format!("put '{program}' on PATH, or choose another runner"),
            }),
        }
    }
}

/// How to write a command that was given as one text: the words that a shell would read in it, as separate values.
fn separate_words(runner: &str, command: &str) -> String {
    // The words of a command with an open quotation mark are unknown.
    let words = words_in_brackets(command).or_else(|| shlex::split(command)).unwrap_or_else(example);
    // A string in JSON is one in TOML too.
    let quoted: Vec<String> =
        words.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
    format!(
        "write each word of the command as a separate value: command = [{}]\nor {}",
        quoted.join(", "),
        values_in_git(runner, &words)
    )
}

/// The words of a list that was written as one text, with or without quotation marks.
fn words_in_brackets(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let bare = |word: &str| word.trim().trim_matches(['"', '\'']).to_owned();
    let words = || inner.split(',').map(bare).filter(|word| !word.is_empty()).collect();
    Some(serde_json::from_str(text).unwrap_or_else(|_| words()))
}

/// How to write a command in git's configuration, which has no lists.
fn values_in_git(runner: &str, words: &[String]) -> String {
    let typed: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    format!(
        "in git's configuration, a line for each word: git config --replace-all arborist.runners.{runner}.command \"$(printf '%s\\n' {})\"",
        typed.join(" ")
    )
}

/// A command to show how one is written.
fn example() -> Vec<String> {
    vec!["robot".into(), "{prompt}".into()]
}

/// A hint with the nearest known word, or `otherwise`.
fn proposal<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    match nearest(word, known) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => otherwise.to_owned(),
    }
}
