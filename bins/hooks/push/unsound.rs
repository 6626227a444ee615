//! Finding commits that claim to be ours and are not sound.

use arborist_core::{
    git::{GitError, RawCommit, Repository},
    message::{Reading, could_claim, read},
    name::Oid,
};

use super::Objection;

/// How many commits are loaded at once.
const BATCH: usize = 256;

/// Looks at every commit that `revisions` select. Those that could claim are read again byte by byte, since
/// the stream leaves out white space and what follows a NUL.
pub(super) fn scan(revisions: &[String], repository: &Repository) -> Result<Vec<Objection>, GitError> {
    let mut suspects: Vec<Oid> = Vec::new();
    for commit in repository.stream_commits(revisions)? {
        let commit = commit?;
        if could_claim(commit.message()) || !commit.is_authentic() {
            suspects.push(commit.id);
        }
    }
    suspects.reverse();
    let mut objections = Vec::new();
    for batch in suspects.chunks(BATCH) {
        objections.extend(repository.load_commits(batch)?.iter().filter_map(objection));
    }
    Ok(objections)
}

fn objection(commit: &RawCommit) -> Option<Objection> {
    let Reading::Unsound(faults) = read(commit.message()) else {
        return None;
    };
    let fault = faults.into_iter().next()?;
    let text = String::from_utf8_lossy(commit.message());
    let line = text.lines().nth(fault.line.saturating_sub(1)).unwrap_or_default().to_owned();
    Some(Objection::Unsound { commit: commit.id, fault, text: line })
}
