//! Where a remote's refs were when we last heard of them: refs of our own below `refs/arborist/remote/`, because a remote
//! may be a URL that git keeps no such refs for, and because git keeps none for records.

use super::{RepoSection, WorkspaceError};
use crate::{
    git::{GitError, Push, Ref, RefMove, Repository},
    name::{Oid, RepoName},
};

/// Where they stand, for one repository of the workspace.
pub(super) fn prefix(name: &RepoName) -> String {
    format!("refs/arborist/remote/{name}/")
}

/// The ref that tells where `name` is at the remote.
pub(super) fn here(section: &RepoSection, name: &str) -> String {
    format!("{}{}", prefix(&section.name), name.strip_prefix("refs/").unwrap_or(name))
}

/// How a ref, or a pattern of refs, is fetched to where we remember it.
pub(super) fn refspec(section: &RepoSection, name: &str) -> String {
    format!("+{name}:{}", here(section, name))
}

/// What the remote had when we last heard of it, by the remote's own names.
pub(super) fn list(repository: &Repository, section: &RepoSection) -> Result<Vec<Ref>, GitError> {
    let prefix = prefix(&section.name);
    let refs = repository.list_refs(&[prefix.trim_end_matches('/')])?.into_iter();
    let there =
        |found: Ref| Some(Ref { name: format!("refs/{}", found.name.strip_prefix(&prefix)?), ..found });
    Ok(refs.filter_map(there).collect())
}

/// Remembers what was pushed.
pub(super) fn remember(
    repository: &Repository,
    section: &RepoSection,
    pushed: &[Push],
) -> Result<(), GitError> {
    let names: Vec<String> = pushed.iter().map(|push| here(section, &push.name)).collect();
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

/// How many commits of `tips` the remote has not, as far as we have heard.
pub(super) fn count_unknown(
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
    // Records have the commits of branches as parents: what only they hold is on no branch of the remote.
    let command = command.arg("--not").arg(format!("--glob={}heads/*", prefix(&section.name)));
    let printed = command.arg(format!("--glob=refs/remotes/{remotes}/*")).stdout()?;
    let text = String::from_utf8_lossy(&printed);
    let strange = || GitError::Strange { command: "rev-list".into(), what: text.trim().to_owned() };
    text.trim().parse().map_err(|_| strange().into())
}
