//! Approval of commands that come from files of a repository. It is given once for each text in each repository and
//! stored with the user. The same text in another repository is not approved: it may run a different script there.

use std::{
    collections::BTreeSet,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Exit, Explain, Explanation},
    message::visible,
    name::digest,
    safe_files,
};

/// The user's answer about commands that are not approved yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Yes, and remember it (`--yes`).
    Given,
    /// Yes, this once (`ARBORIST_TRUST`).
    Trusted,
    /// No answer.
    None,
}

/// Why commands may not be run.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// They are not approved.
    #[error("these {} come from {}, and you have not approved them:\n{commands}", .origin.what(), .origin.place())]
    Unapproved {
        /// The commands, one per line.
        commands: String,
        /// Where they come from.
        origin: ConsentOrigin,
        /// Whether some of them were approved by an earlier version, for all repositories.
        is_old: bool,
    },
    /// The approval could not be stored.
    #[error("could not store the approval in '{path}': {source}")]
    Unkept {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// How the text of a recorded option ends, by which it is approved.
pub const RECORDED_OPTION: &str = " (an option recorded with the session)";

/// Where texts that need approval come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentOrigin {
    /// Files of the repository.
    Files,
    /// The records of a session. The user may have typed these options, or someone else.
    Records,
    /// Both.
    Both,
}

impl ConsentOrigin {
    /// Where these texts come from.
    #[must_use]
    pub fn of(commands: &[&String]) -> Self {
        // A command of a plan may end in anything, but none is listed with dashes before it.
        let is_option = |command: &&&String| command.starts_with("--") && command.ends_with(RECORDED_OPTION);
        match commands.iter().filter(is_option).count() {
            0 => Self::Files,
            count if count == commands.len() => Self::Records,
            _ => Self::Both,
        }
    }

    /// What is approved.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Files => "commands and settings",
            Self::Records => "options",
            Self::Both => "commands, settings and options",
        }
    }

    /// The place in words.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::Files => "files in the repository",
            Self::Records => "the records of the session",
            Self::Both => "files in the repository and the records of the session",
        }
    }
}

impl Explain for ConsentError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Unapproved { is_old, origin, .. } => {
                let old = if *is_old { format!("{OLD_APPROVALS}\n") } else { String::new() };
                let read = match origin {
                    ConsentOrigin::Records => "to approve them",
                    _ => "read them; to approve them",
                };
                Exit::Person.hint(format!(
                    "{old}{read}, run the same command again with --yes (in CI: ARBORIST_TRUST=1)"
                ))
            }
            Self::Unkept { .. } => Exit::Fatal.into(),
        }
    }
}

/// The variable with the approvals of the user who has started this process on another machine: digests of texts,
/// separated by spaces.
pub const APPROVED: &str = "ARBORIST_APPROVED";

/// How many approvals fit into the variable: the system limits it to 128 KiB.
pub const MOST_APPROVED: usize = 3500;

/// The digest by which an approved text is passed to other machines. Texts may contain secrets, and the variable is short.
#[must_use]
pub fn passed_digest(command: &str) -> String {
    digest(command.as_bytes()).chars().take(32).collect()
}

/// Whether the user who has started this process has approved the command.
fn is_passed(command: &str) -> bool {
    let own = passed_digest(command);
    std::env::var(APPROVED).is_ok_and(|passed| passed.split(' ').any(|digest| digest == own))
}

/// Refuses commands that the user has not approved in the repository with this git directory.
pub fn require(common_dir: &Path, commands: &BTreeSet<String>, consent: Consent) -> Result<(), ConsentError> {
    let unseen = unseen(common_dir, commands);
    match consent {
        _ if unseen.is_empty() => Ok(()),
        Consent::Trusted => Ok(()),
        Consent::None => {
            let is_old = was_approved_before(&unseen);
            let origin = ConsentOrigin::of(&unseen);
            Err(ConsentError::Unapproved { commands: shown(&unseen), origin, is_old })
        }
        Consent::Given => unseen.into_iter().try_for_each(|command| remember(common_dir, command)),
    }
}

/// The commands that are not approved yet in the repository with this git directory.
#[must_use]
pub fn unseen<'c>(common_dir: &Path, commands: &'c BTreeSet<String>) -> Vec<&'c String> {
    let is_seen = |command: &String| {
        file_of(common_dir, command).is_some_and(|file| file.is_file()) || is_passed(command)
    };
    commands.iter().filter(|command| !is_seen(command)).collect()
}

/// Why a command is asked for again that an earlier version has approved.
pub const OLD_APPROVALS: &str =
    "you approved some of them before, for all repositories; an approval now holds for one repository";

/// Whether an earlier version has approved one of these: for its text alone, which may run another script here.
#[must_use]
pub fn was_approved_before(commands: &[&String]) -> bool {
    let is_old = |command: &&String| old_file_of(command).is_some_and(|file| file.is_file());
    commands.iter().any(is_old)
}

/// Commands for display: no character can hide a part of one, and later lines of a command cannot be taken for another
/// command.
#[must_use]
pub fn shown(commands: &[&String]) -> String {
    let shown = |command: &&String| {
        // The last line break of a quoted text is not shown.
        let command = match command.strip_suffix("\n\"") {
            Some(text) => format!("{text}\""),
            None => (*command).clone(),
        };
        let lines: Vec<String> = command.split('\n').map(visible).collect();
        format!("  {}", lines.join("\n      "))
    };
    commands.iter().map(shown).collect::<Vec<_>>().join("\n")
}

fn remember(common_dir: &Path, command: &str) -> Result<(), ConsentError> {
    let Some(file) = file_of(common_dir, command) else {
        return Ok(());
    };
    // The name of the file is enough. The text may contain secrets and is not stored.
    safe_files::write_with_mode(&safe_files::resolved(&file), b"", 0o600)
        .map_err(|source| ConsentError::Unkept { path: file.display().to_string(), source })
}

/// One file for each text and repository, named by the digest of both, in the user's state directory.
fn file_of(common_dir: &Path, command: &str) -> Option<PathBuf> {
    let both = [common_dir.as_os_str().as_bytes(), b"\0", command.as_bytes()].concat();
    Some(folder()?.join(digest(&both)))
}

/// The file of earlier versions, named by the digest of the text.
fn old_file_of(command: &str) -> Option<PathBuf> {
    Some(folder()?.join(digest(command.as_bytes())))
}

fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("git-arborist/approved"))
}
