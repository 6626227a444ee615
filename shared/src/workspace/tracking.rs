//! Our own remote-tracking refs, below `refs/arborist/remote/`. Git's own would not do: a remote may be a plain URL,
//! for which git has no tracking refs, and git tracks no session records.

use super::{RepoSection, WorkspaceError};
use crate::{
    git::{GitError, Push, Ref, RefMove, Repository},
    name::{Oid, RepoName},
};

/// The prefix of the tracking refs of one repository of the workspace.
pub(super) fn prefix(name: &RepoName) -> String {
    format!("refs/arborist/remote/{name}/")
}

/// The tracking ref for the remote's ref `name`.
pub(super) fn ref_name(section: &RepoSection, name: &str) -> String {
    format!("{}{}", prefix(&section.name), name.strip_prefix("refs/").unwrap_or(name))
}

/// The refspec that fetches a ref, or a pattern of refs, into the tracking refs.
pub(super) fn refspec(section: &RepoSection, name: &str) -> String {
    format!("+{name}:{}", ref_name(section, name))
}

/// The refs of the remote when we last fetched or pushed, by their names at the remote.
pub(super) fn list(repository: &Repository, section: &RepoSection) -> Result<Vec<Ref>, GitError> {
    let prefix = prefix(&section.name);
    let refs = repository.list_refs(&[prefix.trim_end_matches('/')])?.into_iter();
    let there =
        |found: Ref| Some(Ref { name: format!("refs/{}", found.name.strip_prefix(&prefix)?), ..found });
    Ok(refs.filter_map(there).collect())
}

/// Updates the tracking refs after a push.
pub(super) fn remember(
    repository: &Repository,
    section: &RepoSection,
    pushed: &[Push],
) -> Result<(), GitError> {
    let names: Vec<String> = pushed.iter().map(|push| ref_name(section, &push.name)).collect();
    let known = list(repository, section)?;
    let old = |push: &Push| known.iter().find(|found| found.name == push.name).map(|found| found.target);
    let moves: Vec<RefMove<'_>> = names
        .iter()
        .zip(pushed)
        .map(|(name, push)| RefMove { name, new: Some(push.target), old: old(push) })
        .filter(|moved| moved.new != moved.old)
        .collect();
    if moves.is_empty() { Ok(()) } else { repository.move_refs(&moves, "arborist: pushed") }
}

/// Counts the commits reachable from `tips` that the remote did not have when we last fetched or pushed.
pub(super) fn count_unpushed(
    repository: &Repository,
    section: &RepoSection,
    tips: &[Oid],
) -> Result<u64, WorkspaceError> {
    if tips.is_empty() {
        return Ok(0);
    }
    let remotes = match &section.remote {
        Some(remote) => repository.find_remote(remote)?.unwrap_or_else(|| remote.clone()),
        None => "origin".into(),
    };
    let command = repository.git("rev-list").arg("--count").args(tips.iter().map(ToString::to_string));
    // Only tracked branches count, not records: records have commits of branches as parents, and would hide commits
    // that are on no branch of the remote.
    let tracked = [format!("{}heads/", prefix(&section.name)), format!("refs/remotes/{remotes}/")];
    let command = command.arg("--not").args(tracked.iter().map(|prefix| format!("--glob={prefix}*")));
    let printed = command.stdout().or_else(|_| {
        let is_tracked = |name: &str| tracked.iter().any(|prefix| name.starts_with(prefix.as_str()));
        repository.list_unheld(&["--count"], tips, is_tracked)
    })?;
    let text = String::from_utf8_lossy(&printed);
    let strange = || GitError::UnexpectedOutput { command: "rev-list".into(), what: text.trim().to_owned() };
    text.trim().parse().map_err(|_| strange().into())
}
