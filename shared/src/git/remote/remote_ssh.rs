//! Chooses the ssh command: the user's, with options so that it never asks on the terminal.

use std::sync::{Arc, OnceLock};

use crate::git::{GitCommand, GitError, Repository};

/// No password prompt, no question about a host key, and a limit for hosts that do not answer.
const BATCH_OPTIONS: &str = "-o BatchMode=yes -o ConnectTimeout=20";

/// The command, once it was determined. Clones share it, so that a run asks git once.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct KnownSshCommand(Arc<OnceLock<Option<String>>>);

/// The value for `GIT_SSH_COMMAND`; `None` leaves the user's command unchanged, because it is not OpenSSH.
pub(in crate::git) fn command(repository: Option<&Repository>) -> Result<Option<String>, GitError> {
    let Some(repository) = repository else { return find_command(None) };
    if let Some(known) = repository.ssh_command.0.get() {
        return Ok(known.clone());
    }
    let found = find_command(Some(repository))?;
    Ok(repository.ssh_command.0.get_or_init(|| found).clone())
}

fn find_command(repository: Option<&Repository>) -> Result<Option<String>, GitError> {
    // A value that is not UTF-8 still counts as set. It matches no known name, so it stays unchanged.
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    };
    let variant = match variable("GIT_SSH_VARIANT") {
        Some(variant) => Some(variant),
        None => setting(repository, "ssh.variant")?,
    };
    if variant.is_some_and(|variant| !["ssh", "auto"].contains(&variant.as_str())) {
        return Ok(None);
    }
    let command = match variable("GIT_SSH_COMMAND") {
        Some(command) => Some(command),
        None => setting(repository, "core.sshCommand")?,
    };
    Ok(match (command, variable("GIT_SSH")) {
        (Some(command), _) => is_openssh(&command).then(|| format!("{command} {BATCH_OPTIONS}")),
        (None, Some(_)) => None,
        (None, None) => Some(format!("ssh {BATCH_OPTIONS}")),
    })
}

fn setting(repository: Option<&Repository>, key: &str) -> Result<Option<String>, GitError> {
    let command = match repository {
        Some(repository) => repository.git("config"),
        None => GitCommand::reading("config", std::path::Path::new("/")),
    };
    let printed = command.args(["--get", key]).answer()?;
    Ok(printed
        .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
        .filter(|text| !text.is_empty()))
}

/// Whether options can be appended: only ssh itself may read them, not a pipe, a list or another program.
pub(in crate::git) fn is_openssh(command: &str) -> bool {
    let is_plain = !command.contains([';', '|', '&', '`', '(', '#', '\n', char::REPLACEMENT_CHARACTER]);
    let program = command.split_whitespace().next().unwrap_or_default();
    let name = program.trim_matches(['\'', '"']).rsplit('/').next().unwrap_or_default();
    is_plain && name == "ssh"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_options_are_added_only_to_openssh() {
        for command in ["ssh", "ssh -i key", "/usr/bin/ssh -p 22", "'/usr/bin/ssh' -v"] {
            assert!(is_openssh(command), "{command}");
        }
        for command in ["plink", "my-ssh", "ssh a; b", "sh -c ssh", "wrap ssh", ""] {
            assert!(!is_openssh(command), "{command}");
        }
    }
}
