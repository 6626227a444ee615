//! Which keys a file of the repository may set without the user's approval. All others are shown for approval, so a new
//! key needs approval until it is listed here.

use std::collections::BTreeSet;

use super::{
    Origin, Settings, SettingsError,
    setting::is_key,
    sources::Sources,
    value::{Assigned, Value, find_assigned},
};
use crate::{git::Repository, name::Oid, safe_files::InnerPath};

/// The values that need no approval.
#[derive(Debug, Clone, Copy)]
enum HarmlessValues {
    /// All.
    Any,
    /// These.
    Only(&'static [&'static str]),
    /// Folders inside the repository that have no tracked files, or that belong to us.
    EmptyFolders,
    /// All, because what they run or reach is shown where it is used, as a command or a repository.
    ShownInUse,
}

use HarmlessValues::{Any, EmptyFolders, Only, ShownInUse};

/// The keys that need no approval: those that cannot weaken a test, a review or the sandbox, run a command, give access
/// to anything, or delete files. A stricter value is listed, and not the default: the user may have chosen a stricter
/// value than the default, and a tracked file takes precedence over the user's own file.
const HARMLESS: &[(&str, HarmlessValues)] = &[
    // What is worked on, and how long.
    ("tree", Any),
    ("jobs", Any),
    ("max-retries", Any),
    ("resume", Any),
    ("allow-dirty", Only(&["false"])),
    ("test.allow-red", Only(&["false"])),
    ("test.clean", Only(&["true"])),
    ("test.allow-fewer", Only(&["false"])),
    // It only adds to what the user protects.
    ("protect", Any),
    ("steps.review.place", Only(&["scratch"])),
    ("timeouts.runner", Any),
    ("timeouts.silence", Any),
    ("timeouts.test", Any),
    ("timeouts.setup", Any),
    ("timeouts.limit", Any),
    ("timeouts.network", Any),
    ("timeouts.commit-message", Any),
    // Logs, reports and records. Their folders are always in the repository.
    ("log-dir", Any),
    ("log-limit", Any),
    ("report-dir", Any),
    ("session.branch", Only(&["true"])),
    ("session.transcripts", Only(&["local", "off"])),
    ("session.commit-message", Any),
    ("redact.files", Only(&["refuse"])),
    // Commands.
    ("test-command", ShownInUse),
    ("runners.*.command", ShownInUse),
    ("runners.*.resume", ShownInUse),
    ("runners.*.env.*", ShownInUse),
    ("worktree.setup", ShownInUse),
    ("merge.gates.*.command", ShownInUse),
    ("engines.*.submit", ShownInUse),
    ("engines.*.alive", ShownInUse),
    ("engines.*.cancel", ShownInUse),
    ("engines.*.jobs", ShownInUse),
    ("engines.*.logs", ShownInUse),
    ("engines.*.dir", ShownInUse),
    ("engines.*.manifest", ShownInUse),
    // The sandbox.
    ("sandbox.mode", Only(&["bwrap"])),
    ("sandbox.network", Only(&["none"])),
    // A private directory opens nothing.
    ("sandbox.git", Any),
    ("runners.*.sandbox.git", Any),
    // The user's own limits count as well.
    ("sandbox.max-file-size", Any),
    ("sandbox.max-processes", Any),
    ("steps.*.sandbox.max-file-size", Any),
    ("steps.*.sandbox.max-processes", Any),
    ("runners.*.sandbox.max-file-size", Any),
    ("runners.*.sandbox.max-processes", Any),
    ("steps.*.sandbox.mode", Only(&["bwrap"])),
    ("steps.*.sandbox.network", Only(&["none"])),
    ("runners.*.sandbox.mode", Only(&["bwrap"])),
    ("runners.*.sandbox.network", Only(&["none"])),
    // Worktrees. The tracked file .worktreeinclude adds to worktree.copy, too.
    ("worktree.base", EmptyFolders),
    ("worktree.copy", Any),
    ("worktree.lfs", Only(&["true"])),
    ("worktree.max", Any),
    ("worktree.min-free", Any),
    ("worktree.save-every", Any),
    ("worktree.sync-cooldown", Any),
    // Landings.
    ("merge.assist", Only(&["false"])),
    ("merge.auto", Only(&["false"])),
    ("merge.batch", Any),
    ("merge.delete-branches", Only(&["false"])),
    ("merge.gates.*.timeout", Any),
    ("merge.on-conflict", Any),
    ("merge.red-target", Only(&["hold"])),
    ("merge.resolve-attempts", Any),
    ("merge.wait-limit", Any),
    // Workspaces.
    ("workspace.repos.*.path", ShownInUse),
    ("workspace.repos.*.remote", ShownInUse),
    ("workspace.repos.*.branch-prefix", ShownInUse),
    ("workspace.repos.*.default-branch", ShownInUse),
    ("workspace.repos.*.push", ShownInUse),
    ("workspace.repos.*.tools.*", ShownInUse),
    ("workspace.repos.*.clone-depth", Any),
    // When other commands mention the cleanup.
    ("cleanup.warn-free", Any),
    ("cleanup.warn-worktrees", Any),
];

/// The folder of the repository that belongs to us.
const OWN_FOLDER: &str = ".arborist/";

/// The keys that only `git arborist cleanup` obeys.
const CLEANUP: &str = "cleanup.";
/// The key that names the caches which `git arborist cleanup --reclaim` deletes.
const RECLAIM: &str = "cleanup.reclaim";

impl Settings {
    /// The settings of the repository's files that need approval before anything is run, one line each. Commands and
    /// repositories are listed elsewhere, where it is known which of them are used.
    #[must_use]
    pub fn tracked_lines(&self) -> BTreeSet<String> {
        self.lines_of(|key| !key.starts_with(CLEANUP))
    }

    /// Like [`Self::tracked_lines`], but for the settings that decide what `git arborist cleanup` deletes. The list of
    /// caches counts only if caches are deleted.
    #[must_use]
    pub fn tracked_cleanup_lines(&self, deletes_caches: bool) -> BTreeSet<String> {
        self.lines_of(|key| key.starts_with(CLEANUP) && (deletes_caches || key != RECLAIM))
    }

    /// Like [`Self::tracked_lines`], but only for these keys.
    #[must_use]
    pub fn tracked_lines_of(&self, keys: &[&str]) -> BTreeSet<String> {
        self.lines_of(|key| keys.contains(&key))
    }

    fn lines_of(&self, is_needed: impl Fn(&str) -> bool) -> BTreeSet<String> {
        // A value that another source overrides is not in effect.
        let in_effect = self
            .assigned
            .iter()
            .filter(|assigned| find_assigned(&self.assigned, &assigned.key) == Some(assigned));
        let tracked =
            in_effect.filter(|assigned| assigned.origin == Origin::Repository && is_needed(&assigned.key));
        tracked
            .filter(|assigned| self.needs_approval(assigned))
            .map(|assigned| format!("{} = {}", assigned.key, assigned.value.shown()))
            .collect()
    }

    fn needs_approval(&self, Assigned { key, value, .. }: &Assigned) -> bool {
        let is_inner = |folder: &str| folder.trim_end_matches('/').parse::<InnerPath>().is_ok();
        let listed = HARMLESS.iter().find(|(pattern, _)| is_key(pattern, key));
        let is_harmless = listed.is_some_and(|(_, values)| match (values, value) {
            (Any | ShownInUse, _) => true,
            (Only(words), Value::Text(text)) => words.contains(&text.as_str()),
            (Only(words), Value::Switch(switch)) => words.contains(&switch.to_string().as_str()),
            (EmptyFolders, Value::Text(folder)) => {
                is_inner(folder) && (folder.starts_with(OWN_FOLDER) || !self.tracked_folders.contains(folder))
            }
            _ => false,
        });
        !is_harmless
    }
}

impl Sources {
    /// Notes which folders that files of the repository name have tracked files. `{repository}` may stand for one.
    pub(super) fn find_tracked_folders(
        &mut self,
        repository: &Repository,
        commit: Option<Oid>,
    ) -> Result<(), SettingsError> {
        let is_concerned = |key: &str| {
            HARMLESS.iter().any(|(listed, values)| *listed == key && matches!(values, EmptyFolders))
        };
        let of_repository = self.assigned.iter().filter(|assigned| assigned.origin == Origin::Repository);
        for assigned in of_repository.filter(|assigned| is_concerned(&assigned.key)) {
            let Value::Text(folder) = &assigned.value else { continue };
            // git knows the path only without `./` and doubled slashes.
            let path = folder.trim_end_matches('/').parse::<InnerPath>().map(|path| path.to_string());
            let path = path.unwrap_or_else(|_| folder.clone());
            let tracked = commit.map(|commit| repository.find_path(commit, &path)).transpose()?.flatten();
            if tracked.is_some() || folder.contains('{') {
                self.tracked_folders.insert(folder.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::SETTINGS, HARMLESS};

    #[test]
    fn every_key_that_needs_no_approval_exists_and_is_listed_once() {
        for (n, (key, _)) in HARMLESS.iter().enumerate() {
            assert!(SETTINGS.iter().any(|setting| setting.key == *key), "{key}");
            assert!(HARMLESS[..n].iter().all(|(other, _)| other != key), "{key}");
        }
    }

    #[test]
    fn listed_keys_need_approval_for_any_value() {
        let is_listed = |key: &str| HARMLESS.iter().any(|(listed, _)| *listed == key);
        let asked: Vec<&str> =
            SETTINGS.iter().map(|setting| setting.key).filter(|key| !is_listed(key)).collect();
        assert_eq!(
            asked,
            [
                "runner",
                "model",
                "fallback",
                "tools",
                "sign",
                "steps.*.runner",
                "steps.*.model",
                "steps.*.fallback",
                "runners.*.events",
                "runners.*.tools",
                "review.diff-limit",
                "worktree.exclude",
                "worktree.keep",
                "context",
                "prompts.implement",
                "prompts.review",
                "sandbox.deny-read",
                "sandbox.write",
                "steps.*.sandbox.deny-read",
                "steps.*.sandbox.write",
                "runners.*.sandbox.deny-read",
                "runners.*.sandbox.write",
                "merge.gates.*.when",
                "merge.keep",
                "budget.cost",
                "budget.tokens",
                "budget.time",
                "budget.task-cost",
                "budget.task-tokens",
                "budget.task-time",
                "work.ttl",
                "work.coordination",
                "cleanup.older-than",
                "cleanup.keep-saved",
                "cleanup.keep-records",
                "cleanup.reclaim",
            ]
        );
    }
}
