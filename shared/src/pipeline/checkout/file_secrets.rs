//! Looks for secrets in the files that an agent changed, before they are committed. A file with a secret that must not
//! be committed is put back, so that the next attempt begins without it.

use std::collections::BTreeSet;

use crate::{
    agent::redact::{Redactor, Secrets},
    git::{GitError, Repository, TreeChange},
    name::Oid,
    pipeline::checkout::attempt::{AttemptCheckout, AttemptWork},
    record::RunRecorder,
    settings::SecretFiles,
};

/// A search for secrets in changed files.
#[derive(Debug, Clone)]
pub struct FileSecrets {
    /// What happens if one is found.
    mode: SecretFiles,
    secrets: Secrets,
}

/// A file with secrets.
struct SecretFile {
    change: TreeChange,
    /// Names the file and the secrets.
    message: String,
}

impl FileSecrets {
    /// A search for these secrets; `None` if the user does not want one.
    #[must_use]
    pub fn new(mode: SecretFiles, secrets: &Secrets) -> Option<Self> {
        (mode != SecretFiles::Ignore).then(|| Self { mode, secrets: secrets.clone() })
    }

    /// The changed files that contain secrets which they did not contain before. Only the changed files are
    /// read, and the old versions only of those in which something was found.
    fn find(&self, repository: &Repository, changes: &[TreeChange]) -> Result<Vec<SecretFile>, GitError> {
        let mut found = Vec::new();
        for change in changes {
            // The name is in the record of the session, too.
            let named = self.secrets.describe_in(&change.path);
            if change.before.is_none() && !named.is_empty() {
                let named: Vec<&str> = named.iter().map(String::as_str).collect();
                let shown = Redactor::redact(&self.secrets, &change.shown());
                let message =
                    format!("the agent wrote {} into the name of a file: {shown}", named.join(" and "));
                found.push(SecretFile { change: change.clone(), message });
                continue;
            }
            let after = self.describe(repository, change.after)?;
            if after.is_empty() {
                continue;
            }
            let before = self.describe(repository, change.before)?;
            let new: Vec<&str> = after.difference(&before).map(String::as_str).collect();
            if !new.is_empty() {
                let message = format!("the agent wrote {} into {}", new.join(" and "), change.shown());
                found.push(SecretFile { change: change.clone(), message });
            }
        }
        Ok(found)
    }

    fn describe(
        &self,
        repository: &Repository,
        side: Option<(u32, Oid)>,
    ) -> Result<BTreeSet<String>, GitError> {
        let Some((_, blob)) = side else { return Ok(BTreeSet::new()) };
        let mut content = repository.find_blob(blob)?.unwrap_or_default();
        let mut described = self.secrets.describe_in(&content);
        // In UTF-16, every other byte of plain text is zero.
        if memchr::memchr(0, &content).is_some() {
            content.retain(|byte| *byte != 0);
            described.extend(self.secrets.describe_in(&content));
        }
        Ok(described)
    }
}

impl AttemptCheckout {
    /// Whether there is a secret in one of these files and it must not be committed.
    pub(super) fn refuses(&self, repository: &Repository, changes: &[TreeChange]) -> Result<bool, GitError> {
        match self.rules.file_secrets.as_ref().filter(|search| search.mode == SecretFiles::Refuse) {
            Some(search) => Ok(!search.find(repository, changes)?.is_empty()),
            None => Ok(false),
        }
    }

    /// Warns about the files with secrets, or puts them back and makes the attempt fail.
    pub(super) fn search_for_secrets(
        &self,
        recorder: &RunRecorder<'_>,
        work: &mut AttemptWork,
    ) -> Result<(), GitError> {
        let Some(search) = &self.rules.file_secrets else { return Ok(()) };
        let repository = recorder.repository();
        if search.mode == SecretFiles::Warn {
            // Also what the turns of this attempt have committed.
            let changes = repository.changes(self.head_tree, work.commit_tree)?;
            work.warnings.extend(search.find(repository, &changes)?.into_iter().map(|file| file.message));
            return Ok(());
        }
        let found = search.find(repository, &work.changes)?;
        if found.is_empty() {
            return Ok(());
        }
        let (files, messages): (Vec<TreeChange>, Vec<String>) =
            found.into_iter().map(|file| (file.change, file.message)).unzip();
        repository.stage_as_in(&recorder.head().to_string(), &files)?;
        repository.restore_paths(recorder.tree(), &files)?;
        work.changes.retain(|change| !files.contains(change));
        work.commit_tree = repository.tree_with(recorder.tree(), &work.changes)?;
        repository.require_verified(recorder.tree(), work.commit_tree)?;
        work.whole_worktree = None;
        work.violations.extend(messages);
        Ok(())
    }
}
