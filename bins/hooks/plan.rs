//! The changes that install or remove a hook. They are planned from what exists before anything is touched.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{DirPlace, GitVersion, Repository},
    process::shell_word,
    safe_files,
};

use crate::hooks::{
    agent::leads_out,
    event::{HookEvent, Quoted},
    site::{HookContent, HookFile, HookSite},
    status,
};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookChange {
    /// Set a key of the repository's configuration.
    Set { key: String, value: String },
    /// Remove a key of the repository's configuration.
    Unset { key: String },
    /// Keep a hook under another name, which must be free. The next change takes its own name.
    SetAside { from: PathBuf, to: PathBuf },
    /// Give a hook that was set aside its own name again, replacing ours.
    Restore { from: PathBuf, to: PathBuf },
    /// Write a hook file of ours.
    Place { path: PathBuf, bytes: Vec<u8> },
    /// Change a hook file of others, which keeps its permissions.
    Edit { path: PathBuf, bytes: Vec<u8> },
    /// Remove a file.
    Remove { path: PathBuf },
}

impl HookChange {
    /// A description of the change.
    pub(super) fn done(&self) -> String {
        let words = self.to_string();
        let (verb, rest) = words.split_once(' ').unwrap_or((&words, ""));
        let past = match verb {
            "rename" => "renamed",
            "remove" => "removed",
            "write" => "wrote",
            other => other,
        };
        format!("{past} {rest}")
    }
}

impl fmt::Display for HookChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { key, .. } => write!(f, "set {key} in the repository's configuration"),
            Self::Unset { key } => write!(f, "unset {key} in the repository's configuration"),
            Self::SetAside { from, to } | Self::Restore { from, to } => {
                write!(f, "rename '{}' to '{}'", from.display(), to.display())
            }
            Self::Place { path, .. } | Self::Edit { path, .. } => write!(f, "write '{}'", path.display()),
            Self::Remove { path } => write!(f, "remove '{}'", path.display()),
        }
    }
}

/// The changes for one hook, and notes for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookPlan {
    pub event: HookEvent,
    pub steps: Vec<HookChange>,
    pub notes: Vec<String>,
    /// What is not touched although it was asked for, and why.
    pub left: Vec<String>,
}

impl HookPlan {
    fn new(event: HookEvent, steps: Vec<HookChange>) -> Self {
        Self { event, steps, notes: Vec::new(), left: Vec::new() }
    }
}

/// How to install a hook whose script finds the binary at `binary`.
pub(super) fn plan_install(site: &HookSite, binary: &Quoted) -> Result<HookPlan, Failure> {
    let plan = |steps| Ok(HookPlan::new(site.event, steps));
    if status::is_firing(site) && carried(site).is_none_or(|old| old == binary || *old == Quoted::none()) {
        return plan(Vec::new());
    }
    if site.git >= GitVersion::CONFIG_HOOKS && !site.script.content.is_ours() {
        return plan(config_steps(site, binary)?);
    }
    match &site.husky {
        Some(_) if site.event.is_for_receivers() => Err(Failure::new(
            Exit::Person,
            "husky runs no pre-receive hook: it belongs into the repository that is pushed to",
        )),
        Some(_) if let Some(link) = &site.husky_link => Err(leads_out(link)),
        Some(file) => plan(block_steps(site.event, file)?),
        None if site.dir.reach == DirPlace::Worktree => script_plan(site, &Quoted::none()),
        None => script_plan(site, binary),
    }
}

/// The path of the binary in the installed hook.
fn carried(site: &HookSite) -> Option<&Quoted> {
    let script = site.husky.as_ref().unwrap_or(&site.script);
    [&site.config, &script.content].into_iter().find_map(|content| match content {
        HookContent::Ours(binary) => Some(binary),
        _ => None,
    })
}

fn config_steps(site: &HookSite, binary: &Quoted) -> Result<Vec<HookChange>, Failure> {
    let section = site.event.config_section();
    if site.config == HookContent::Edited {
        return Err(edited(&format!("'{section}.command' in the repository's configuration")));
    }
    Ok(vec![
        HookChange::Set { key: format!("{section}.command"), value: site.event.check(binary) },
        HookChange::Set { key: format!("{section}.event"), value: site.event.as_str().into() },
    ])
}

fn block_steps(event: HookEvent, file: &HookFile) -> Result<Vec<HookChange>, Failure> {
    match file.content {
        HookContent::Edited => Err(edited(&format!("'{}'", file.path.display()))),
        HookContent::Ours(_) => Ok(Vec::new()),
        HookContent::Absent | HookContent::Foreign => {
            let bytes = with_block(file.bytes.as_deref(), &event.block(&Quoted::none()));
            Ok(vec![HookChange::Edit { path: file.path.clone(), bytes }])
        }
    }
}

fn script_plan(site: &HookSite, binary: &Quoted) -> Result<HookPlan, Failure> {
    let path = site.script.path.clone();
    let place = HookChange::Place { path: path.clone(), bytes: site.event.script(binary).into_bytes() };
    match &site.script.content {
        HookContent::Edited => Err(edited(&format!("'{}'", path.display()))),
        HookContent::Absent | HookContent::Ours(_) => Ok(HookPlan::new(site.event, vec![place])),
        HookContent::Foreign if site.kept.bytes.is_some() && site.kept.bytes != site.script.bytes => {
            Err(Failure::new(
                Exit::Person,
                format!(
                    "'{}' cannot be moved to '{}', because that file exists already",
                    path.display(),
                    site.kept.path.display()
                ),
            )
            .hint("compare the two files, delete the one that is not needed, and install again"))
        }
        HookContent::Foreign => {
            let aside = HookChange::SetAside { from: path, to: site.kept.path.clone() };
            let mut plan = HookPlan::new(site.event, vec![aside, place]);
            plan.notes.extend(site.manager.and_then(|manager| manager.lasting(site.event)));
            Ok(plan)
        }
    }
}

fn edited(what: &str) -> Failure {
    Failure::new(Exit::Person, format!("{what} was edited, so it is left as it is"))
        .hint("undo the edit, or remove it by hand, and install again")
}

/// Refuses to write outside the repository, and names the lines that are to be added there for all missing hooks.
pub(super) fn refuse_outside(sites: &[HookSite]) -> Result<(), Failure> {
    let is_outside = |site: &&HookSite| {
        let goes_to_config = site.git >= GitVersion::CONFIG_HOOKS && !site.script.content.is_ours();
        site.dir.reach == DirPlace::Outside && !goes_to_config && !status::is_firing(site)
    };
    let sites: Vec<&HookSite> = sites.iter().filter(is_outside).collect();
    let Some(HookSite { dir, .. }) = sites.first() else { return Ok(()) };
    if dir.path.starts_with("/dev/null") {
        return Err(Failure::new(Exit::Person, "hooks are switched off here: core.hooksPath is '/dev/null'")
            .hint("see where that is set: git config --show-origin core.hooksPath"));
    }
    let (path, setting) = (dir.path.display(), dir.setting.as_ref());
    let from = setting
        .map_or_else(String::new, |setting| format!(" (core.hooksPath, {} configuration)", setting.scope));
    let mut failure = Failure::new(
        Exit::Person,
        format!("git reads hooks from '{path}'{from}, outside this repository; nothing was written there"),
    );
    let is_missing = !dir.path.exists();
    if is_missing {
        let folder = shell_word(&path.to_string());
        failure = failure.hint(format!("this folder does not exist; to create it: mkdir -p {folder}"));
    }
    for site in sites {
        let name = site.event.as_str();
        let file = shell_word(&site.script.path.display().to_string());
        let line = format!("git-arborist-hooks run {name} \"$@\" || exit");
        failure = failure.hint(match site.script.bytes {
            Some(_) => format!("add this line to {file}: {line}"),
            None => format!(
                "to create the {name} hook: printf '#!/bin/sh\\n%s\\n' '{line}' >{file} && chmod +x {file}"
            ),
        });
    }
    if is_missing {
        let use_own = match setting.is_some_and(|setting| setting.scope == "local") {
            true => "git config --unset core.hooksPath",
            false => {
                "git config core.hooksPath \"$(git rev-parse --path-format=absolute --git-common-dir)/hooks\""
            }
        };
        failure = failure
            .hint(format!("or use the hooks of this repository: {use_own} && git arborist hooks install"));
    }
    Err(failure)
}

/// How to remove a hook, wherever it is. Files that were edited by hand are left.
pub(super) fn plan_uninstall(site: &HookSite) -> HookPlan {
    let mut plan = HookPlan::new(site.event, Vec::new());
    let section = site.event.config_section();
    match site.config {
        HookContent::Ours(_) => {
            plan.steps.extend(
                ["command", "event"].map(|key| HookChange::Unset { key: format!("{section}.{key}") }),
            );
        }
        HookContent::Edited => plan.left.push(format!("'{section}.command' was edited")),
        HookContent::Absent | HookContent::Foreign => {}
    }
    if site.dir.reach != DirPlace::Outside {
        match &site.husky {
            Some(file) => match &site.husky_link {
                Some(link) if file.content.is_ours() => {
                    plan.left
                        .push(format!("'{}' is a link that leads out of the repository", link.display()));
                }
                _ => remove_block(&mut plan, file),
            },
            None => remove_script(&mut plan, &site.script, &site.kept),
        }
        plan.steps.extend(site.moved.iter().map(|moved| HookChange::Remove { path: moved.path.clone() }));
    }
    if let Some((script, kept)) = &site.elsewhere {
        remove_script(&mut plan, script, kept);
    }
    plan
}

fn remove_block(plan: &mut HookPlan, file: &HookFile) {
    match (&file.content, &file.bytes) {
        (HookContent::Ours(binary), Some(bytes)) => {
            let path = file.path.clone();
            plan.steps.push(match without_block(bytes, &plan.event.block(binary)) {
                Some(bytes) => HookChange::Edit { path, bytes },
                None => HookChange::Remove { path },
            });
        }
        (HookContent::Edited, _) => {
            plan.left.push(format!("our lines in '{}' were edited", file.path.display()));
        }
        _ => {}
    }
}

fn remove_script(plan: &mut HookPlan, script: &HookFile, kept: &HookFile) {
    let restore = HookChange::Restore { from: kept.path.clone(), to: script.path.clone() };
    match script.content {
        HookContent::Ours(_) | HookContent::Absent if kept.bytes.is_some() => plan.steps.push(restore),
        HookContent::Ours(_) => plan.steps.push(HookChange::Remove { path: script.path.clone() }),
        HookContent::Edited => plan.left.push(format!("'{}' was edited", script.path.display())),
        // A manager has regenerated its hook, so the one that we set aside is only a copy.
        HookContent::Foreign if kept.bytes.is_some() && kept.bytes == script.bytes => {
            plan.steps.push(HookChange::Remove { path: kept.path.clone() });
        }
        HookContent::Foreign if kept.bytes.is_some() => plan.left.push(format!(
            "git arborist did not write '{}'; the earlier hook is still in '{}'",
            script.path.display(),
            kept.path.display()
        )),
        HookContent::Absent | HookContent::Foreign => {}
    }
}

/// Inserts our block. `None` is a file that does not exist yet.
///
/// If the file does not end in a newline, neither does the block: so it can be distinguished from a file that is
/// entirely ours.
fn with_block(file: Option<&[u8]>, block: &str) -> Vec<u8> {
    let block = block.as_bytes();
    let unended = block.strip_suffix(b"\n").unwrap_or(block);
    let Some(file) = file else {
        return block.to_vec();
    };
    if file.is_empty() {
        return unended.to_vec();
    }
    let first = file.iter().position(|b| *b == b'\n').map(|end| end + 1);
    match first {
        _ if !file.starts_with(b"#!") => [block, file].concat(),
        Some(end) => [&file[..end], block, &file[end..]].concat(),
        None => [file, b"\n", unended].concat(),
    }
}

/// Removes our block. Returns `None` if the file was entirely ours.
fn without_block(file: &[u8], block: &str) -> Option<Vec<u8>> {
    let block = block.strip_suffix('\n').unwrap_or(block).as_bytes();
    let Some(at) = file.windows(block.len()).position(|window| window == block) else {
        return Some(file.to_vec());
    };
    let (before, after) = (&file[..at], &file[at + block.len()..]);
    match after.strip_prefix(b"\n") {
        Some(b"") if before.is_empty() => None,
        Some(after) => Some([before, after].concat()),
        None => Some(before.strip_suffix(b"\n").unwrap_or(before).to_vec()),
    }
}

/// The block in the file, from its first to its last line.
pub(super) fn find_block(file: &str) -> Option<&str> {
    let start = file.find("# >>> git-arborist")?;
    let close = "# <<< git-arborist <<<";
    let end = start + file[start..].find(close)? + close.len();
    Some(&file[start..end])
}

pub(super) fn apply(step: &HookChange, repository: &Repository) -> Result<(), Failure> {
    let config = || repository.act("config").arg("--local");
    let (path, done) = match step {
        HookChange::Set { key, value } => return Ok(config().args([key, value]).stdout().map(drop)?),
        HookChange::Unset { key } => return Ok(config().args(["--unset-all", key]).stdout().map(drop)?),
        HookChange::SetAside { from, to } => (to, set_aside(&within(from), &within(to))),
        HookChange::Restore { from, to } => (to, safe_files::rename(&within(from), &within(to))),
        HookChange::Place { path, bytes } => (path, place(&within(path), bytes)),
        HookChange::Edit { path, bytes } => (path, edit(&within(path), bytes)),
        HookChange::Remove { path } => (path, safe_files::remove(&within(path))),
    };
    Ok(done.with_context(|| format!("could not change '{}'", path.display()))?)
}

/// The hooks directory may be a link, because the user chose it. Links inside of it are not followed.
fn within(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => safe_files::resolved(folder).join(name),
        _ => path.to_owned(),
    }
}

/// Gives a hook a second name, until ours takes the first one. It never replaces a file: of two concurrent
/// installations, the later one would otherwise replace the kept hook by our script.
fn set_aside(from: &Path, to: &Path) -> io::Result<()> {
    match safe_files::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => match to.symlink_metadata() {
            Err(_) => safe_files::rename(from, to),
            Ok(_) => Err(error),
        },
        Err(_) if safe_files::read(from)? == safe_files::read(to)? => Ok(()),
        linked => linked,
    }
}

/// Replaces the file atomically. If it is a link, the link itself is replaced.
fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    safe_files::write_with_mode(path, bytes, 0o755)
}

/// Edits the file. It keeps its permissions, and a link is followed: the user asked for this, and the file is theirs.
fn edit(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.canonicalize() {
        Ok(target) => safe_files::write(&target, bytes),
        Err(_) => place(path, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# >>> git-arborist >>>\ncheck\n# <<< git-arborist <<<\n";

    #[test]
    fn removing_the_block_restores_every_byte_of_the_file() {
        for file in [
            "",
            "\n",
            "npm test",
            "npm test\n",
            "#!/bin/sh",
            "#!/bin/sh\n",
            "#!/bin/sh\nnpm test\n",
            "#!/bin/sh\r\nx",
        ] {
            let with = with_block(Some(file.as_bytes()), BLOCK);
            assert_eq!(find_block(std::str::from_utf8(&with).unwrap()), BLOCK.strip_suffix('\n'));
            assert_eq!(without_block(&with, BLOCK).as_deref(), Some(file.as_bytes()), "{file:?}");
        }
        assert_eq!(without_block(&with_block(None, BLOCK), BLOCK), None);
    }

    #[test]
    fn the_block_is_inserted_below_the_shebang_line() {
        let with = with_block(Some(b"#!/bin/sh\nnpm test\n"), BLOCK);
        assert!(with.starts_with(b"#!/bin/sh\n# >>>") && with.ends_with(b"<<<\nnpm test\n"));
    }
}
