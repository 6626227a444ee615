//! What the real shells offer when a command line is completed.

use std::{collections::BTreeSet, path::Path};

use crate::{Run, TestRepo};

/// Relative, because bash-completion before 2.12 finds nothing in a home that has a space in its name.
const BASH_FOLDER: &str = "../home/.local/share/bash-completion";

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// With bash-completion and git's own completion.
    Bash,
    /// With its own completion of git.
    Zsh,
    /// With its own completion of git.
    Fish,
}

impl Shell {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    fn program(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// What is offered for `line` in the test's repository, without descriptions. `None`, said aloud, where
    /// the shell or what it needs is not installed. zsh looks for functions where `install-assets` puts them.
    #[must_use]
    pub fn offers(self, repo: &TestRepo, line: &str) -> Option<BTreeSet<String>> {
        let functions = repo.home().join(".local/share/zsh/site-functions");
        let mut command = repo.command(self.program(), &repo.path(""));
        match self {
            Self::Bash => command
                .args(["--norc", "-c", include_str!("complete.bash"), "bash", line])
                .env("BASH_COMPLETION_USER_DIR", BASH_FOLDER),
            Self::Zsh => command.args(["-f", "-c", include_str!("complete.zsh"), "zsh", line]).arg(functions),
            Self::Fish => command.args(["-c", "complete -C $argv[1]", line]).env("LC_ALL", "C.UTF-8"),
        };
        let run = is_installed(self.program()).then(|| Run::of(&mut command, b""));
        let Some(run) = run.filter(|run| run.code() != 77) else {
            eprintln!("skipped: completion of {} is not installed here", self.program());
            return None;
        };
        let first = |line: &str| line.split('\t').next().unwrap_or_default().trim().to_owned();
        Some(run.stdout().lines().map(first).filter(|word| !word.is_empty()).collect())
    }
}

/// Whether `program` is on `PATH`.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir: std::path::PathBuf| Path::is_file(&dir.join(program)))
}
