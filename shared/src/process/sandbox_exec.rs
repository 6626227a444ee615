//! Runs a child with `sandbox-exec` on macOS. It has no namespaces: a child sees other processes, and its own are ended by
//! the driver.
//!
//! This has not been tried on macOS; the tests only check the profile. It is used only if a trial works.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{
    Program,
    mounts::{MountKind, Mounts, wrap_with},
};
use crate::safe_files;

const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Devices that programs may write to.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"];

/// A script that fails if the profile does not limit it.
const TRIAL: &str =
    "echo x > open/file && ! echo x 2>/dev/null > closed/file && ! cat hidden/file 2>/dev/null";

/// Whether a trial shows that it works here. This is tried once.
pub(super) fn works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| cfg!(target_os = "macos") && try_out().unwrap_or(false))
}

fn try_out() -> io::Result<bool> {
    let root = tempfile::Builder::new().prefix("git-arborist-").tempdir()?;
    let real = safe_files::resolved(root.path());
    let mounts = Mounts::for_trial(&real)?;
    let program = Program::new(SANDBOX_EXEC).args(options(&mounts)?).args(["/bin/sh", "-c", TRIAL]);
    Ok(program.dir(&real).writes_no_worktree().finish().is_ok_and(|ended| ended.status.success()))
}

/// The command that runs `command` with these limits. Its streams and its process group must be set afterwards.
pub(super) fn wrap(command: &Command, mounts: &Mounts) -> io::Result<Command> {
    let options = options(mounts)?;
    wrap_with(Path::new(SANDBOX_EXEC), command, |_| options)
}

/// The arguments of `sandbox-exec` up to the program.
fn options(mounts: &Mounts) -> io::Result<Vec<OsString>> {
    Ok(vec!["-p".into(), profile(mounts)?.into()])
}

/// The profile for some mounts. The last rule that matches decides, so the rule of a folder comes before the rules of what is in it.
fn profile(mounts: &Mounts) -> io::Result<String> {
    let mut rules =
        vec!["(version 1)".to_owned(), "(allow default)".to_owned(), "(deny file-write*)".to_owned()];
    for device in DEVICES {
        rules.push(format!("(allow file-write* (literal \"{device}\"))"));
    }
    let paths = mounts.sorted();
    for (path, kind) in &paths {
        let filter = format!("(subpath {})", quote(path)?);
        let is_in_hidden = |(other, kind): &(PathBuf, MountKind)| {
            *kind == MountKind::Hidden && path != other && path.starts_with(other)
        };
        if let Some((hidden, _)) =
            paths.iter().find(|other| *kind != MountKind::Hidden && is_in_hidden(other))
        {
            // The way to it must be found.
            rules.push(format!("(allow file-read-metadata (literal {}))", quote(hidden)?));
            rules.push(format!("(allow file-read* {filter})"));
        }
        rules.push(match kind {
            MountKind::Writable => format!("(allow file-write* {filter})"),
            // It cannot mount anything, so the folder stays as it is.
            MountKind::ReadOnly | MountKind::Private => format!("(deny file-write* {filter})"),
            MountKind::Hidden => format!("(deny file-read* file-write* {filter})"),
        });
    }
    if mounts.is_offline {
        rules.push("(deny network*)".to_owned());
    }
    rules.push("(deny signal)".to_owned());
    rules.push("(allow signal (target same-sandbox))".to_owned());
    Ok(rules.join("\n"))
}

/// A path as a string of the profile's language.
fn quote(path: &Path) -> io::Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\0']));
    let text = text.ok_or_else(|| io::Error::other(format!("the sandbox cannot name {}", path.display())))?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(paths: &[(&str, MountKind)]) -> Mounts {
        let paths = paths.iter().map(|(path, kind)| (PathBuf::from(path), *kind)).collect();
        Mounts { paths, ..Mounts::default() }
    }

    #[test]
    fn rules_for_inner_folders_come_after_those_of_outer_ones() {
        let profile = profile(&mounts(&[
            ("/app/.git", MountKind::ReadOnly),
            ("/home/ada/.ssh", MountKind::Hidden),
            ("/app", MountKind::Writable),
            ("/app/.git/info", MountKind::Writable),
        ]))
        .unwrap();
        let rules: Vec<&str> = profile.lines().filter(|rule| rule.contains("subpath")).collect();
        assert_eq!(
            rules,
            [
                "(allow file-write* (subpath \"/app\"))",
                "(deny file-write* (subpath \"/app/.git\"))",
                "(allow file-write* (subpath \"/app/.git/info\"))",
                "(deny file-read* file-write* (subpath \"/home/ada/.ssh\"))",
            ]
        );
    }

    #[test]
    fn a_worktree_inside_a_hidden_folder_can_be_read() {
        let profile =
            profile(&mounts(&[("/lanes", MountKind::Hidden), ("/lanes/own", MountKind::Writable)])).unwrap();
        let rules: Vec<&str> = profile.lines().filter(|rule| rule.contains("/lanes")).collect();
        assert_eq!(
            rules,
            [
                "(deny file-read* file-write* (subpath \"/lanes\"))",
                "(allow file-read-metadata (literal \"/lanes\"))",
                "(allow file-read* (subpath \"/lanes/own\"))",
                "(allow file-write* (subpath \"/lanes/own\"))",
            ]
        );
    }

    #[test]
    fn paths_cannot_break_out_of_their_string_in_the_profile() {
        let profile = profile(&mounts(&[("/a\") (allow default) (\"\\", MountKind::ReadOnly)])).unwrap();
        assert!(
            profile.contains(r#"(deny file-write* (subpath "/a\") (allow default) (\"\\"))"#),
            "{profile}"
        );
        assert!(super::profile(&mounts(&[("/a\nb", MountKind::Writable)])).is_err());
    }

    #[test]
    fn the_profile_denies_network_access_only_if_requested() {
        let mut mounts = mounts(&[]);
        assert!(!profile(&mounts).unwrap().contains("network"));
        mounts.is_offline = true;
        assert!(profile(&mounts).unwrap().contains("(deny network*)"));
    }
}
