//! `hooks test`: proves that a hook fires by running it through git with something that it must refuse. The refusal is
//! recognised by a number that only this test and our own process know.

use std::{
    ffi::OsString,
    hash::{BuildHasher, Hasher},
    path::PathBuf,
};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{GitVersion, HookRun, Repository},
    name::ObjectFormat,
    safe_files,
};

use super::event::HookEvent;
use crate::{entry::Outcome, ui::Ui};

const VARIABLE: &str = "GIT_ARBORIST_PROBE";
/// A message that other hooks should accept.
const SAMPLE: &str = "chore: see whether the hook of git arborist fires\n\nArborist-Probe: refuse me\n";

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// Our hook ran and refused.
    Ours,
    /// Nothing refused.
    Nothing,
    /// Something else refused before ours ran, with this output.
    Other(String),
}

/// Called by a hook that has refused: signs the refusal if it was our test.
pub(super) fn sign(ui: &mut Ui) {
    if let Ok(nonce) = std::env::var(VARIABLE) {
        ui.err(&format!("{}\n", signature(&nonce)));
    }
}

/// What a hook does if there is nothing to push. Before git 2.40, a test cannot have input.
pub(super) fn answer_empty() -> Outcome {
    match std::env::var_os(VARIABLE) {
        Some(_) => Err(Failure::new(Exit::No, "fired without input")),
        None => Ok(Exit::Done),
    }
}

fn signature(nonce: &str) -> String {
    format!("arborist-probe: {nonce}")
}

/// Fires `event` in this worktree.
pub(super) fn fire(event: HookEvent, repository: &Repository) -> Result<ProbeResult, Failure> {
    let nonce = format!("{:016x}", std::hash::RandomState::new().build_hasher().finish());
    let scratch = Scratch::write(repository, &nonce, &sample(event, repository.format))?;
    let takes_input = event.reads_lines() && repository.version >= GitVersion::HOOK_STDIN;
    let fired = repository.run_hook(&HookRun {
        name: event.as_str(),
        arguments: &arguments(event, &scratch, repository.format),
        stdin: takes_input.then_some(scratch.0.as_path()),
        variable: (VARIABLE, &nonce),
    })?;
    let output = [fired.stdout.as_slice(), &fired.stderr].map(String::from_utf8_lossy).concat();
    Ok(match fired.status.success() {
        true => ProbeResult::Nothing,
        false if output.contains(&signature(&nonce)) => ProbeResult::Ours,
        false => ProbeResult::Other(output),
    })
}

fn sample(event: HookEvent, format: ObjectFormat) -> String {
    match event {
        HookEvent::PrePush => format!("(delete) {} {PROBED} {}\n", id(format, '0'), id(format, '1')),
        HookEvent::PreReceive => format!("{} {} {PROBED}\n", id(format, '1'), id(format, '0')),
        HookEvent::CommitMsg | HookEvent::Update => SAMPLE.into(),
    }
}

const PROBED: &str = "refs/heads/arborist/probe";

fn arguments(event: HookEvent, scratch: &Scratch, format: ObjectFormat) -> Vec<OsString> {
    match event {
        HookEvent::CommitMsg => vec![scratch.0.clone().into()],
        HookEvent::PrePush => vec!["arborist-probe".into(), "arborist-probe".into()],
        HookEvent::PreReceive => Vec::new(),
        HookEvent::Update => vec![PROBED.into(), id(format, '1').into(), id(format, '0').into()],
    }
}

fn id(format: ObjectFormat, digit: char) -> String {
    let length = if format == ObjectFormat::Sha1 { 40 } else { 64 };
    digit.to_string().repeat(length)
}

/// A file that is gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn write(repository: &Repository, nonce: &str, text: &str) -> Result<Self, Failure> {
        let dir = repository.common_dir.join("arborist");
        let file = dir.join(format!("probe-{nonce}"));
        safe_files::write_new(&file, text.as_bytes())
            .with_context(|| format!("could not write '{}'", file.display()))?;
        Ok(Self(file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = safe_files::remove(&self.0);
        if let Some(dir) = self.0.parent() {
            let _ = safe_files::remove_folder(dir);
        }
    }
}
