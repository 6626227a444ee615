//! The files of a repository that configure its runs: the configuration itself, and the templates of prompts.

use std::{ffi::OsStr, io::ErrorKind};

use super::{
    DefaultValue, Origin, Settings, SettingsError, Sources, ValueKind, require_key,
    setting::{choices, settings},
    value::Sourced,
};
use crate::{
    git::{Config, Repository},
    name::Oid,
    safe_files,
};

/// The configuration file, relative to the top of the repository.
pub(super) const FILE: &str = ".arborist/config.toml";

/// The folder with the templates of prompts.
const FOLDER: &str = ".arborist/prompts";

/// The templates: the file, and the key that it sets.
const TEMPLATES: [(&str, &str); 2] = [
    (".arborist/prompts/implement.md", "prompts.implement"),
    (".arborist/prompts/review.md", "prompts.review"),
];

/// All files of a repository that configure its runs. A run freezes them when it begins.
pub const TRACKED_FILES: [&str; 3] = [FILE, TEMPLATES[0].0, TEMPLATES[1].0];

const EXPECTED: &str = "the text of a prompt, in quotes";

choices! {
    /// Where reviewers work.
    ReviewsIn {
        /// In a worktree of the commit under review, which is reset before each review.
        #[default]
        Scratch = "scratch",
        /// In the task's own checkout, with everything that is installed there.
        Checkout = "checkout",
    }
}

choices! {
    /// What happens if an agent writes a secret into a file that is committed.
    SecretFiles {
        /// The run warns.
        #[default]
        Warn = "warn",
        /// The file is put back, and the attempt fails.
        Refuse = "refuse",
        /// Nothing; files are not searched.
        Ignore = "off",
    }
}

settings! {
    /// How work is reviewed, and searched for secrets.
    ReviewerSettings in REVIEW;

    place: ReviewsIn {
        key: "steps.review.place",
        variable: None,
        kind: ValueKind::Choice(ReviewsIn::WORDS),
        expected: "\"scratch\" or \"checkout\"",
        default: DefaultValue::Text("scratch"),
        about: "Where reviewers work: in a separate worktree of the commit under review (scratch), or in the task's own checkout (checkout), for reviewers that need the dependencies installed there.",
    }
    diff_limit: usize {
        key: "review.diff-limit",
        variable: Some("ARBORIST_REVIEW_DIFF_LIMIT"),
        kind: ValueKind::Count,
        expected: "a number of characters",
        default: DefaultValue::Count(8000),
        about: "Maximum length of the diff in the reviewer's prompt, in characters. A longer diff is cut; the prompt then has the number of changed lines of each file and a command that shows the whole diff.",
    }
    redact_files: SecretFiles {
        key: "redact.files",
        variable: Some("ARBORIST_REDACT_FILES"),
        kind: ValueKind::Choice(SecretFiles::WORDS),
        default: DefaultValue::Text("warn"),
        about: "What happens if an agent writes a secret into a file that is committed: the value of a secret variable of the environment, a token of a well-known provider or a private key. warn: the run names the file and the secret. refuse: the file is restored, and the attempt fails. off: files are not searched.",
    }
}

settings! {
    /// What agents are told.
    PromptSettings in PROMPTS;

    context: Vec<String> {
        key: "context",
        variable: Some("ARBORIST_CONTEXT"),
        kind: ValueKind::Words,
        expected: "a list of paths in quotes",
        default: DefaultValue::List(&[], "nothing"),
        about: "Files that agents and reviewers are asked to read first, relative to the top of the repository. Those that do not exist are left out.",
    }
    implement: Option<Sourced<String>> {
        key: "prompts.implement",
        variable: None,
        kind: ValueKind::Text,
        expected: EXPECTED,
        default: DefaultValue::InWords("the built-in prompt"),
        about: "The prompt of agents. The file .arborist/prompts/implement.md sets it too. In it, {prompt} stands for the built-in prompt, and {task}, {name}, {description}, {phase}, {dependencies}, {documents}, {context}, {rules} and {feedback} for its parts; {{name}} stands for {name} itself. Rules and feedback are appended if the text does not place them. See the result with --dry-run --verbose.",
    }
    review: Option<Sourced<String>> {
        key: "prompts.review",
        variable: None,
        kind: ValueKind::Text,
        expected: EXPECTED,
        default: DefaultValue::InWords("the built-in prompt"),
        about: "The prompt of reviewers, as prompts.implement, with {diff} instead of {dependencies} and {feedback}. The file .arborist/prompts/review.md sets it too.",
    }
}

/// One of [`TRACKED_FILES`], and where it was read: the file in the worktree, or else in the commit that is checked out.
/// A sparse checkout or a bare repository does not have the file, but its gates must hold nevertheless.
pub fn read_tracked(repository: &Repository, path: &str) -> Result<Option<(String, Vec<u8>)>, SettingsError> {
    if let Some(top) = &repository.worktree {
        let label = top.join(path).display().to_string();
        match safe_files::read_beneath(top, path) {
            Ok(bytes) => return Ok(Some((label, bytes))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(SettingsError::Unreadable { file: label, source }),
        }
    }
    match repository.head.commit {
        Some(commit) => read_at(repository, commit, path),
        None => Ok(None),
    }
}

fn read_at(
    repository: &Repository,
    commit: Oid,
    path: &str,
) -> Result<Option<(String, Vec<u8>)>, SettingsError> {
    let blob = repository.find_path(commit, path)?;
    let bytes = blob.map(|blob| repository.find_blob(blob)).transpose()?.flatten();
    Ok(bytes.map(|bytes| (format!("{}:{path}", commit.short()), bytes)))
}

impl Settings {
    /// Reads all sources, with the templates of prompts, which only runs need.
    pub fn load_for_run(repository: &Repository, config: &Config) -> Result<Self, SettingsError> {
        refuse_unknown_templates(repository)?;
        Self::load_with(config, |sources| {
            sources.add_tracked(|path| read_tracked(repository, path), &TRACKED_FILES)?;
            sources.find_tracked_folders(repository, repository.head.commit)
        })
    }

    /// Reads all sources, with the repository's files as they are in a commit.
    pub fn load_at(repository: &Repository, config: &Config, commit: Oid) -> Result<Self, SettingsError> {
        Self::load_with(config, |sources| {
            sources.add_tracked(|path| read_at(repository, commit, path), &TRACKED_FILES)?;
            sources.find_tracked_folders(repository, Some(commit))
        })
    }
}

impl Sources {
    /// Adds the repository's own files.
    pub(super) fn add_tracked(
        &mut self,
        read: impl Fn(&str) -> Result<Option<(String, Vec<u8>)>, SettingsError>,
        paths: &[&str],
    ) -> Result<(), SettingsError> {
        for path in paths {
            let Some((label, bytes)) = read(path)? else { continue };
            let text = String::from_utf8_lossy(&bytes);
            match TEMPLATES.iter().find(|(file, _)| file == path) {
                Some((_, key)) => self.add_key(key, &text, (label, Origin::Repository))?,
                None => self.add_text(&label, &text, Origin::Repository)?,
            }
        }
        Ok(())
    }
}

/// Refuses a file in the folder of templates that no step uses: its name is probably mistyped.
fn refuse_unknown_templates(repository: &Repository) -> Result<(), SettingsError> {
    let Some(top) = &repository.worktree else { return Ok(()) };
    let Ok(entries) = safe_files::list(&top.join(FOLDER)) else { return Ok(()) };
    for entry in entries {
        let Some(name) = entry.path.file_name().and_then(OsStr::to_str) else { continue };
        let Some(step) = name.strip_suffix(".md") else { continue };
        require_key(&format!("prompts.{step}"), &format!("{FOLDER}/{name}"))?;
    }
    Ok(())
}
