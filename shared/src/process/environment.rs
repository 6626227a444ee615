//! Removes variables from the environment that a supervised child must not see.
//!
//! Git sets variables for us that name *this* repository and *this* call. In an agent or a test they would redirect
//! every git command, in any directory, to this repository.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::Command,
};

/// What is meant for this process alone: the approval of the repository's commands, and what an engine tells a worker.
const PRIVATE: [&str; 4] = ["ARBORIST_TRUST", "ARBORIST_APPROVED", "ARBORIST_ENGINE", "ARBORIST_JOB"];

/// `git rev-parse --local-env-vars`, followed by other variables that belong to one call of git.
const LOCAL: [&str; 27] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_PAGER",
    "GIT_PAGER_IN_USE",
    "GIT_QUARANTINE_PATH",
    "GIT_SEQUENCE_EDITOR",
];

/// A setting for the gits of guarded children: they record no resolutions of conflicts. The guard removes recorded
/// ones, because git would use them for the user's next conflicts.
const NO_RERERE: [(&str, &str); 3] =
    [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "rerere.enabled"), ("GIT_CONFIG_VALUE_0", "false")];

/// The environment of a guarded child: like [`remove_git_variables`], and with [`NO_RERERE`].
pub(super) fn clean(command: &mut Command) {
    let has_settings = set_explicitly(command).iter().any(|name| name == "GIT_CONFIG_COUNT");
    remove_git_variables(command);
    if !has_settings {
        command.envs(NO_RERERE);
    }
}

fn set_explicitly(command: &Command) -> Vec<OsString> {
    command.get_envs().filter(|(_, value)| value.is_some()).map(|(name, _)| name.to_owned()).collect()
}

/// Removes these variables, keeps what the caller set explicitly, and sets `PWD` to the child's directory.
pub(super) fn remove_git_variables(command: &mut Command) {
    let wanted = set_explicitly(command);
    let numbered = env::vars_os().map(|(name, _)| name).filter(|name| is_numbered(name));
    for name in LOCAL.iter().map(OsString::from).chain(numbered) {
        if !wanted.contains(&name) {
            command.env_remove(name);
        }
    }
    remove_private(command);
    command.env_remove("OLDPWD");
    match directory(command) {
        Some(dir) => command.env("PWD", dir),
        None => command.env_remove("PWD"),
    };
}

/// Removes what is meant for this process alone.
pub(super) fn remove_private(command: &mut Command) {
    for name in PRIVATE {
        command.env_remove(name);
    }
}

fn is_numbered(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"].iter().any(|prefix| name.starts_with(prefix))
}

fn directory(command: &Command) -> Option<PathBuf> {
    match command.get_current_dir() {
        Some(dir) => std::path::absolute(dir).ok(),
        None => env::current_dir().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_variables_of_git_are_removed_and_variables_of_the_caller_kept() {
        let told = Command::new("git").args(["rev-parse", "--local-env-vars"]).output().unwrap();
        for name in String::from_utf8(told.stdout).unwrap().lines() {
            assert!(LOCAL.contains(&name), "{name}");
        }
        let mut command = Command::new("true");
        command.env("GIT_INDEX_FILE", "mine").env("ARBORIST_TRUST", "1").current_dir("/");
        clean(&mut command);
        let value = |name: &str| command.get_envs().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!(value("GIT_INDEX_FILE").unwrap(), "mine");
        assert_eq!(value("GIT_DIR"), None);
        for name in PRIVATE {
            assert_eq!(value(name), None, "{name}");
        }
        assert_eq!(value("PWD").unwrap(), "/");
    }
}
