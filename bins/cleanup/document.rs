//! What `cleanup --json` and `cleanup saved --json` print.

use arborist_core::{
    cleanup::{
        CandidateKind, CandidatePlace, CleanupOutcome, CleanupVerdict, Commits, JudgedCandidate, SavedWork,
        UncommittedContent,
    },
    name::{RepoName, SAVED},
    settings::Age,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::sweep::Outcomes;
use crate::document::rfc3339;

/// The items that can be cleaned up, and the result for each.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CleanupDocument {
    /// Whether this was a dry run.
    dry_run: bool,
    /// The minimum age of items to remove, in seconds.
    older_than: i64,
    /// All items.
    items: Vec<ItemDocument>,
    /// What was deleted in worktrees that are kept, with `--reclaim`.
    reclaimed: Vec<ReclaimedDocument>,
    /// Totals.
    totals: TotalsDocument,
}

/// One item.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ItemDocument {
    /// The repository of the workspace that it is in.
    repo: String,
    /// Its kind.
    #[schemars(schema_with = "kinds")]
    kind: &'static str,
    /// Its name, for people.
    name: String,
    /// The ref, if it is one.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The remote that has the ref, if it is not this repository.
    remote: Option<String>,
    /// What the ref points at, or what is checked out.
    commit: Option<String>,
    /// The folder or file, if it is one.
    path: Option<String>,
    /// The repository that records its session, if it is another one.
    session_repo: Option<String>,
    /// What is to be done: `remove`, `save` (and remove then) or `keep`.
    #[schemars(schema_with = "verdicts")]
    verdict: &'static str,
    /// Why.
    reason: String,
    /// Where its commits are besides: `elsewhere`, `landed`, `nowhere`, or `reverted` if they were merged and
    /// their changes reverted; null if it has none.
    #[schemars(schema_with = "holdings")]
    commits: Option<&'static str>,
    /// Uncommitted paths, as far as they were examined.
    uncommitted: Vec<String>,
    /// Ignored paths that are removed with it, as far as they were examined.
    ignored: Vec<String>,
    /// Its size in bytes; null if not known.
    size: Option<u64>,
    /// When it was last changed, in RFC 3339.
    active: Option<String>,
    /// What became of it: `removed`, `trashed` if it is deleted in the background, `kept` or `failed`; null after a dry run.
    #[schemars(schema_with = "outcomes")]
    outcome: Option<&'static str>,
    /// Why it was kept or failed, if that differs from the reason above.
    why: Option<String>,
    /// The refs under which it was saved.
    saved: Vec<String>,
}

/// A folder or file that was deleted in a worktree that is kept.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ReclaimedDocument {
    /// The repository of the workspace that it is in.
    repo: String,
    /// The worktree.
    worktree: String,
    /// The folder or file.
    path: String,
    /// How many bytes it took.
    size: u64,
    /// Why it could not be deleted; null if it was.
    failed: Option<String>,
}

/// Totals over all items.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct TotalsDocument {
    /// How many were removed, or would be.
    pub(super) removed: usize,
    /// How many were moved to the trash, and are deleted in the background.
    pub(super) trashed: usize,
    /// How many are kept.
    pub(super) kept: usize,
    /// How many failed.
    pub(super) failed: usize,
    /// How many bytes were freed, or would be, as far as known.
    pub(super) bytes: u64,
    /// How many bytes are in what was moved to the trash.
    pub(super) trashed_bytes: u64,
}

/// All saved work.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SavedDocument {
    /// The saved items, newest first.
    saved: Vec<SavedWorkDocument>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SavedWorkDocument {
    /// The name to restore it by.
    name: String,
    /// The ref.
    #[serde(rename = "ref")]
    reference: String,
    /// `branch`, `worktree` or `commits`.
    #[schemars(schema_with = "parts")]
    kind: &'static str,
    /// Its commit.
    commit: String,
    /// When it was saved, in RFC 3339.
    time: Option<String>,
    /// The first line of its commit message.
    subject: String,
}

impl CleanupDocument {
    /// The document for the outcomes of all repositories.
    pub(super) fn new(all: &[Outcomes], older_than: Age) -> Self {
        let (mut items, mut reclaimed) = (Vec::new(), Vec::new());
        for outcomes in all {
            let fate = |at: usize| outcomes.fates.as_ref().and_then(|fates| fates.get(at));
            let found = outcomes.plan.items.iter().enumerate();
            items.extend(found.map(|(at, item)| ItemDocument::new(&outcomes.repo, item, fate(at))));
            reclaimed.extend(outcomes.reclaimed.iter().map(|one| ReclaimedDocument {
                repo: outcomes.repo.to_string(),
                worktree: one.worktree.clone(),
                path: one.path.display().to_string(),
                size: one.size,
                failed: one.failed.clone(),
            }));
        }
        Self {
            dry_run: all.iter().all(|outcomes| outcomes.fates.is_none()),
            older_than: older_than.0,
            items,
            reclaimed,
            totals: totals(all),
        }
    }
}

impl ItemDocument {
    fn new(repo: &RepoName, item: &JudgedCandidate, fate: Option<&CleanupOutcome>) -> Self {
        let candidate = &item.candidate;
        let (reference, remote, commit) = match &candidate.place {
            CandidatePlace::Ref { name, tip } => (Some(name.clone()), None, Some(tip.to_string())),
            CandidatePlace::Remote { remote, name, tip } => {
                (Some(name.clone()), Some(remote.clone()), Some(tip.to_string()))
            }
            CandidatePlace::Worktree { head, .. } => (None, None, head.map(|head| head.to_string())),
            CandidatePlace::Path(_) => (None, None, None),
        };
        let (verdict, reason) = match &item.verdict {
            CleanupVerdict::Keep(reason) => ("keep", reason.to_string()),
            CleanupVerdict::Remove(grounds, save) if save.commits || save.content => {
                ("save", grounds.to_string())
            }
            CleanupVerdict::Remove(grounds, _) => ("remove", grounds.to_string()),
        };
        let (outcome, why, saved) = match fate {
            None => (None, None, Vec::new()),
            Some(CleanupOutcome::Removed { saved }) => (Some("removed"), None, saved.clone()),
            Some(CleanupOutcome::Trashed { saved }) => (Some("trashed"), None, saved.clone()),
            Some(CleanupOutcome::Kept(why)) => {
                (Some("kept"), Some(why.clone()).filter(|why| *why != reason), Vec::new())
            }
            Some(CleanupOutcome::Failed(why)) => (Some("failed"), Some(why.clone()), Vec::new()),
        };
        Self {
            repo: repo.to_string(),
            kind: candidate.what.as_str(),
            name: candidate.name.clone(),
            reference,
            remote,
            commit,
            path: candidate.path().map(|path| path.display().to_string()),
            session_repo: candidate.home.clone(),
            verdict,
            reason,
            commits: match candidate.commits {
                Commits::None => None,
                Commits::Held | Commits::Copied => Some("elsewhere"),
                Commits::Reverted(_) => Some("reverted"),
                Commits::Landed { .. } => Some("landed"),
                Commits::Loose(_) => Some("nowhere"),
            },
            uncommitted: match &candidate.content {
                UncommittedContent::Unsaved(paths) => paths.clone(),
                _ => Vec::new(),
            },
            ignored: candidate.ignored.clone(),
            size: candidate.size,
            active: candidate.time.filter(|_| candidate.what != CandidateKind::Trash).map(rfc3339),
            outcome,
            why,
            saved,
        }
    }
}

/// The totals of a cleanup of all repositories.
pub(super) fn totals(all: &[Outcomes]) -> TotalsDocument {
    let mut totals = TotalsDocument::default();
    all.iter().for_each(|outcomes| add_totals(&mut totals, outcomes));
    totals
}

fn add_totals(totals: &mut TotalsDocument, outcomes: &Outcomes) {
    for (at, item) in outcomes.plan.items.iter().enumerate() {
        let fate = outcomes.fates.as_ref().and_then(|fates| fates.get(at));
        let goes = match fate {
            Some(CleanupOutcome::Removed { .. }) => true,
            Some(CleanupOutcome::Trashed { .. }) => {
                totals.trashed += 1;
                totals.trashed_bytes += item.candidate.size.unwrap_or(0);
                continue;
            }
            Some(CleanupOutcome::Failed(_)) => {
                totals.failed += 1;
                continue;
            }
            Some(CleanupOutcome::Kept(_)) => false,
            None => matches!(item.verdict, CleanupVerdict::Remove(..)),
        };
        if goes {
            totals.removed += 1;
            totals.bytes += item.candidate.size.unwrap_or(0);
        } else {
            totals.kept += 1;
        }
    }
    for one in outcomes.reclaimed.iter().filter(|one| one.failed.is_none()) {
        if outcomes.fates.is_some() {
            totals.trashed += 1;
            totals.trashed_bytes += one.size;
        } else {
            totals.bytes += one.size;
        }
    }
    totals.failed += outcomes.reclaimed.iter().filter(|one| one.failed.is_some()).count();
}

impl SavedDocument {
    pub(super) fn new(saved: &[SavedWork]) -> Self {
        let document = |one: &SavedWork| SavedWorkDocument {
            name: one.name.clone(),
            reference: format!("{SAVED}{}", one.name),
            kind: one.part.as_str(),
            commit: one.commit.to_string(),
            time: one.time.map(rfc3339),
            subject: one.subject.clone(),
        };
        Self { saved: saved.iter().map(document).collect() }
    }
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = CandidateKind::ALL.iter().map(|kind| kind.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

fn verdicts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["remove", "save", "keep"] })
}

fn holdings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": ["elsewhere", "landed", "nowhere", "reverted", null] })
}

fn outcomes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": ["removed", "trashed", "kept", "failed", null] })
}

fn parts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["branch", "worktree", "commits"] })
}
