//! The files of a repository that configure its runs: the configuration itself, and the templates of prompts.

use std::{ffi::OsStr, io::ErrorKind};

use super::{
    Origin, Settings, SettingsError,
    sources::{Source, Sources, require_key},
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

    /// Reads all sources but the repository's files.
    pub fn load_own(config: &Config) -> Result<Self, SettingsError> {
        Self::load_with(config, |_| Ok(()))
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
                Some((_, key)) => {
                    self.add_key(key, &text, Source { place: label, origin: Origin::Repository })?;
                }
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
