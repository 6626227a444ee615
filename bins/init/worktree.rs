//! Detects what a worktree needs besides committed files: installed dependencies, and local files.

use std::path::Path;

use arborist_core::{failure::Failure, git::Repository};

/// Lock files, the file that must be next to them, and the command that installs exactly what they name. The first of a
/// kind counts.
const INSTALLERS: [(&str, &[(&str, &str)]); 5] = [
    (
        "package.json",
        &[
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            (".yarnrc.yml", "yarn install --immutable"),
            ("yarn.lock", "yarn install --frozen-lockfile"),
            ("bun.lock", "bun install --frozen-lockfile"),
            ("bun.lockb", "bun install --frozen-lockfile"),
            ("package-lock.json", "npm ci"),
            ("npm-shrinkwrap.json", "npm ci"),
            ("package.json", "npm install"),
        ],
    ),
    ("pyproject.toml", &[("uv.lock", "uv sync --frozen"), ("poetry.lock", "poetry install")]),
    ("Pipfile", &[("Pipfile.lock", "pipenv sync --dev")]),
    ("Gemfile", &[("Gemfile.lock", "bundle install")]),
    ("composer.json", &[("composer.lock", "composer install")]),
];

/// For a virtual environment that exists here and would be missing in a worktree.
const VENV: &str = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt";

/// What is proposed for `worktree.setup` and `worktree.copy`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WorktreeProposal {
    pub(super) setup: Vec<String>,
    pub(super) copy: Vec<String>,
}

impl WorktreeProposal {
    /// Detects it from the files at the top of the checkout.
    pub(super) fn find(repository: &Repository, top: &Path) -> Result<Self, Failure> {
        let has = |name: &str| top.join(name).is_file();
        let of_kind = |(project, locks): &(&str, &[(&str, &str)])| {
            let lock = locks.iter().find(|(lock, _)| has(project) && has(lock))?;
            Some(lock.1.to_owned())
        };
        let mut setup: Vec<String> = INSTALLERS.iter().filter_map(of_kind).collect();
        if has("requirements.txt") && top.join(".venv").is_dir() && !has("uv.lock") {
            setup.push(VENV.to_owned());
        }
        let mut copy = Vec::new();
        for name in local_files(top) {
            let tracked = repository.head.commit.map(|head| repository.find_path(head, &name)).transpose()?;
            if tracked.flatten().is_none() {
                copy.push(name);
            }
        }
        Ok(Self { setup, copy })
    }
}

/// `.env` and similar files, without samples.
fn local_files(top: &Path) -> Vec<String> {
    let is_local = |name: &String| {
        let is_sample = ["example", "sample", "template", "dist"].iter().any(|word| name.contains(word));
        (name == ".env" || name.starts_with(".env.")) && !is_sample
    };
    let entries = std::fs::read_dir(top).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(is_local);
    names.sort();
    names
}
