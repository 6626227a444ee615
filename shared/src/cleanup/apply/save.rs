//! Saves work that no other ref contains, before it is deleted.

use super::Execution;
use crate::{
    cleanup::{
        Candidate, CandidatePlace, What,
        saved::{Part, name_of},
        survey::branch_of,
    },
    git::{GitError, RefMove, Repository, Signing, Worktree},
    name::Oid,
    worktree::WorktreeRemains,
};

/// The message of the commit with the files of a worktree.
pub(in crate::cleanup) fn message_of(name: &str) -> String {
    format!("files in {name}\n")
}

/// The message of the commit with the staged files.
pub(in crate::cleanup) fn staged_message(name: &str) -> String {
    format!("staged files in {name}\n")
}

impl Execution<'_> {
    /// The ref for the commits of a candidate.
    pub(super) fn save_name(&self, candidate: &Candidate, commit: Oid) -> String {
        let part = match candidate.what {
            What::Branch | What::RemoteBranch | What::SessionBranch => Part::Branch,
            _ => Part::Commits,
        };
        name_of(self.sweep.options.rules.now, &unit_of(candidate), part, commit)
    }

    /// Saves a commit under a ref. If the ref exists, it must be at exactly this commit.
    pub(super) fn save_commit(&self, name: &str, commit: Oid) -> Result<(), GitError> {
        let repository = self.sweep.repository;
        if repository.find_ref(name)? == Some(commit) {
            return Ok(());
        }
        repository.move_refs(&[RefMove { name, new: Some(commit), old: None }], "arborist: save")
    }

    /// Saves the files of a worktree, and the staged files if they differ. Returns the ref.
    pub(super) fn save_content(
        &self,
        candidate: &Candidate,
        place: &WorktreeRemains,
    ) -> Result<String, GitError> {
        let view = self.view_of(place)?;
        let name = place.name();
        let head = view.head.commit;
        let tree = if place.is_missing { view.staged()? } else { view.snapshot()? };
        let mut parents: Vec<Oid> = head.into_iter().collect();
        let staged = place.worktree.as_ref().and_then(|_| view.staged().ok());
        if let (Some(staged), Some(head)) = (staged, head)
            && staged != tree
            && staged != view.tree_of(head)?
        {
            parents = vec![view.write_commit_with_parents(
                staged,
                &parents,
                &staged_message(&name),
                Signing::No,
            )?];
        }
        let commit = view.write_commit_with_parents(tree, &parents, &message_of(&name), Signing::No)?;
        let under = name_of(self.sweep.options.rules.now, &unit_of(candidate), Part::Worktree, commit);
        self.save_commit(&under, commit)?;
        Ok(under)
    }

    /// The repository as seen from a worktree, even from a directory that git no longer knows.
    fn view_of(&self, place: &WorktreeRemains) -> Result<Repository, GitError> {
        let repository = self.sweep.repository;
        let known = self.sweep.pool.as_ref().filter(|_| place.worktree.is_some());
        let view = match known {
            Some(pool) => pool.look_into(place),
            None => repository.linked(&Worktree {
                path: place.path.clone(),
                git_dir: Some(repository.common_dir.clone()),
                branch: None,
                head: None,
                lock: None,
                is_bare: false,
                is_unknown: false,
            }),
        };
        view.ok_or_else(|| GitError::Unknown(place.name(), "worktree"))
    }
}

/// The unit under which work is saved: the run and the task, the session, or the name.
fn unit_of(candidate: &Candidate) -> String {
    let of_task = |name: &str| name.strip_prefix("refs/heads/arborist/task/").map(str::to_owned);
    let unit = match &candidate.spot {
        CandidatePlace::Ref { name, .. } | CandidatePlace::Remote { name, .. } => {
            of_task(name).or_else(|| branch_of(name).map(|branch| branch.component()))
        }
        CandidatePlace::Worktree { branch: Some(branch), .. } => {
            of_task(&branch.to_ref()).or_else(|| Some(branch.component()))
        }
        _ => None,
    };
    unit.unwrap_or_else(|| {
        let rest = candidate.as_ref().and_then(|(name, _)| name.strip_prefix("refs/arborist/"));
        rest.unwrap_or(&candidate.name).to_owned()
    })
}
