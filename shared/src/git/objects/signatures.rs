//! Decides which commits are signed, and verifies signatures. git itself signs and verifies, with the user's own
//! configuration (`gpg.format`, `user.signingKey`, `gpg.ssh.allowedSignersFile`).

use std::sync::{Arc, OnceLock};

use crate::{
    git::{GitError, Repository, Signing, command::without_prefix},
    name::Oid,
};

/// How many commits are verified by one git process. All of them are arguments.
const MOST_AT_ONCE: usize = 500;

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SigningSettings {
    /// Task commits and landings.
    commits: Signing,
    /// Records of sessions and of the queue.
    records: Signing,
}

/// The settings, once they were read. Clones share them, so that a run asks git once.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct KnownSigning(Arc<OnceLock<SigningSettings>>);

impl Repository {
    /// Whether task commits are signed: with `arborist.sign`, or if the user's commits are.
    pub fn signing(&self) -> Result<Signing, GitError> {
        Ok(self.signing_settings()?.commits)
    }

    /// Whether records are signed: with `arborist.sign`.
    pub fn record_signing(&self) -> Result<Signing, GitError> {
        Ok(self.signing_settings()?.records)
    }

    fn signing_settings(&self) -> Result<SigningSettings, GitError> {
        if let Some(known) = self.signing.0.get() {
            return Ok(*known);
        }
        let printed = match self.lacks_frozen_settings(&["commit.gpgsign", "arborist.sign"]) {
            true => None,
            false => {
                let keys = r"^(commit\.gpgsign|arborist\.sign)$";
                self.git("config").args(["--type=bool", "--get-regexp", keys]).answer()?
            }
        };
        let text = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
        // The last value of a key has the highest precedence.
        let is_on = |key: &str| {
            let mut values = text.lines().filter_map(|line| line.split_once(' '));
            values.rfind(|(known, _)| *known == key).is_some_and(|(_, value)| value == "true")
        };
        let chosen = |is_signed: bool| if is_signed { Signing::AsConfigured } else { Signing::No };
        let records = is_on("arborist.sign");
        let read =
            SigningSettings { commits: chosen(records || is_on("commit.gpgsign")), records: chosen(records) };
        Ok(*self.signing.0.get_or_init(|| read))
    }

    /// The commits that `git verify-commit` does not accept, with the reason.
    pub fn find_unsigned(&self, commits: &[Oid]) -> Result<Vec<(Oid, String)>, GitError> {
        let mut unsigned = Vec::new();
        for commits in commits.chunks(MOST_AT_ONCE) {
            if self.verify_commits(commits)?.is_none() {
                continue;
            }
            for commit in commits {
                if let Some(complaint) = self.verify_commits(&[*commit])? {
                    unsigned.push((*commit, self.describe_signature(*commit, &complaint)?));
                }
            }
        }
        Ok(unsigned)
    }

    /// git's complaint if it does not accept all of these signatures.
    fn verify_commits(&self, commits: &[Oid]) -> Result<Option<String>, GitError> {
        let ended = self.git("verify-commit").args(commits.iter().map(ToString::to_string)).finish()?;
        Ok((!ended.status.success()).then(|| ended.complaint()))
    }

    fn describe_signature(&self, commit: Oid, complaint: &str) -> Result<String, GitError> {
        let loaded = self.load_commits(&[commit])?;
        let is_signed = loaded.iter().any(|commit| {
            let mut lines = commit.header().split(|byte| *byte == b'\n');
            lines.any(|line| line.starts_with(b"gpgsig"))
        });
        if !is_signed {
            return Ok("it is not signed".into());
        }
        let reason = without_prefix(complaint).replace('\n', "; ");
        Ok(format!("its signature is not accepted: {reason}"))
    }
}
