//! Deletes refs: saves first, then deletes all in one transaction. If one of them was moved meanwhile, only that one
//! stays.

use std::collections::{HashMap, HashSet};

use super::{CleanupOutcome, Execution};
use crate::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupError, CleanupVerdict, Commits, Save,
        saved::{Part, message_of, name_of, staged_message},
        survey::{self, branch_of, find_going_on},
    },
    git::{GitError, RefFacts, RefMove, Repository, Signing, Worktree},
    name::{BranchName, Oid, SAVED, TASK_REFS},
    queue::TICKETS,
    worktree::WorktreeRemains,
};

impl Execution<'_> {
    /// The ref for the commits of a candidate.
    pub(super) fn save_name(&self, candidate: &Candidate, commit: Oid) -> String {
        let part = match candidate.what {
            CandidateKind::Branch | CandidateKind::RemoteBranch | CandidateKind::SessionBranch => {
                Part::Branch
            }
            _ => Part::Commits,
        };
        name_of(self.sweep.options.rules.now, &unit_of(candidate), part, commit)
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
        self.sweep.repository.save_commit(&under, commit)?;
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
                ..Worktree::default()
            }),
        };
        view.ok_or_else(|| GitError::Unknown(place.name(), "worktree"))
    }
}

/// The unit under which work is saved: the run and the task, the session, or the name.
fn unit_of(candidate: &Candidate) -> String {
    let of_task = |name: &str| name.strip_prefix(TASK_REFS).map(str::to_owned);
    let unit = match &candidate.place {
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

/// A ref that is about to be deleted.
struct RefDeletion {
    at: usize,
    name: String,
    tip: Oid,
    saved: Vec<String>,
    has_upstream: bool,
}

impl Execution<'_> {
    pub(super) fn remove_refs(&mut self) -> Result<(), CleanupError> {
        let open = self.open(|item| matches!(item.candidate.place, CandidatePlace::Ref { .. }));
        if open.is_empty() {
            return Ok(());
        }
        let mut deletions = self.look_again(open)?;
        self.save_all(&mut deletions)?;
        self.delete(&deletions);
        for one in deletions.iter().filter(|one| one.has_upstream) {
            if let (Some(branch), Some(CleanupOutcome::Removed { .. })) =
                (branch_of(&one.name), &self.outcomes[one.at])
            {
                let _ = self.sweep.repository.forget_branch_settings(branch.as_str());
            }
        }
        Ok(())
    }

    /// Checks every ref, every worktree and every reason again. What has changed is kept.
    fn look_again(&mut self, open: Vec<usize>) -> Result<Vec<RefDeletion>, CleanupError> {
        let repository = self.sweep.repository;
        let refs = repository.start_surveying_refs();
        let worktrees = repository.list_worktrees()?;
        let refs: HashMap<String, RefFacts> =
            refs.finish()?.into_iter().map(|found| (found.name.clone(), found)).collect();
        let mut used: HashSet<BranchName> = worktrees.iter().filter_map(|one| one.branch.clone()).collect();
        used.extend(find_going_on(&worktrees).into_iter().flat_map(|(_, going_on)| going_on.branches));
        let mut deletions = Vec::new();
        for at in open {
            let Some((name, tip)) = self.items[at].candidate.as_ref() else { continue };
            let Some(found) = refs.get(name) else {
                self.outcomes[at] = Some(CleanupOutcome::Removed { saved: Vec::new() });
                continue;
            };
            match self.refuse_ref(at, &refs, &used) {
                _ if found.target != tip => self.outcomes[at] = Some(CleanupOutcome::Kept(MOVED.into())),
                Some(why) => self.outcomes[at] = Some(CleanupOutcome::Kept(why)),
                None => {
                    let has_upstream = found.upstream.is_some();
                    deletions.push(RefDeletion {
                        at,
                        name: name.to_owned(),
                        tip,
                        saved: Vec::new(),
                        has_upstream,
                    });
                }
            }
        }
        self.keep_newly_loose(&mut deletions, &refs)?;
        Ok(deletions)
    }

    fn refuse_ref(
        &self,
        at: usize,
        refs: &HashMap<String, RefFacts>,
        used: &HashSet<BranchName>,
    ) -> Option<String> {
        let item = &self.items[at];
        let (name, _) = item.candidate.as_ref()?;
        if let Some(why) = self.refuse_run(item) {
            return Some(why);
        }
        if branch_of(name).is_some_and(|branch| used.contains(&branch)) {
            return Some("it is checked out".into());
        }
        let ticket = name.strip_prefix(TASK_REFS).map(|rest| format!("{TICKETS}{rest}"));
        ticket.filter(|ticket| refs.contains_key(ticket)).map(|_| "it was queued meanwhile".into())
    }

    /// Keeps refs whose commits were elsewhere and no longer are.
    fn keep_newly_loose(
        &mut self,
        deletions: &mut Vec<RefDeletion>,
        refs: &HashMap<String, RefFacts>,
    ) -> Result<(), CleanupError> {
        let is_held =
            |candidate: &Candidate| candidate.commits == Commits::Held && needs_proof(candidate.what);
        let is_session =
            |what: CandidateKind| matches!(what, CandidateKind::SessionBranch | CandidateKind::Record);
        let held: Vec<(CandidateKind, Oid)> = deletions
            .iter()
            .map(|one| (&self.items[one.at].candidate, one.tip))
            .filter(|(candidate, _)| is_held(candidate))
            .map(|(candidate, tip)| (candidate.what, tip))
            .collect();
        if held.is_empty() {
            return Ok(());
        }
        let session_list = crate::session::SessionReader::new(self.sweep.repository).list()?;
        let now = survey::Refs::new(
            refs.values().cloned().collect(),
            &self.sweep.sessions(&session_list),
            survey::SessionBranchProof { repository: self.sweep.repository },
        );
        let mut loose: HashSet<(bool, Oid)> = HashSet::new();
        for what in [CandidateKind::SessionBranch, CandidateKind::Branch] {
            let same_kind = held.iter().filter(|(known, _)| is_session(*known) == is_session(what));
            let same_kind: Vec<Oid> = same_kind.map(|(_, tip)| *tip).collect();
            let found = self.sweep.repository.loose_commits(&same_kind, &now.kept_for(what))?;
            loose.extend(found.into_keys().map(|commit| (is_session(what), commit)));
        }
        let (items, outcomes) = (self.items, &mut self.outcomes);
        deletions.retain(|one| {
            let candidate = &items[one.at].candidate;
            let is_loose = is_held(candidate) && loose.contains(&(is_session(candidate.what), one.tip));
            if is_loose {
                outcomes[one.at] =
                    Some(CleanupOutcome::Kept("no other ref contains its commits any longer".into()));
            }
            !is_loose
        });
        Ok(())
    }

    /// Saves commits, in one transaction.
    fn save_all(&self, deletions: &mut [RefDeletion]) -> Result<(), CleanupError> {
        let wants = |one: &&mut RefDeletion| {
            let save = match self.items[one.at].verdict {
                CleanupVerdict::Remove(_, save) => save,
                CleanupVerdict::Keep(_) => Save::NOTHING,
            };
            save.commits
        };
        let deletions: Vec<&mut RefDeletion> = deletions.iter_mut().filter(wants).collect();
        if deletions.is_empty() {
            return Ok(());
        }
        let repository = self.sweep.repository;
        let known = repository.list_refs(&[SAVED])?;
        let known: HashMap<String, Oid> = known.into_iter().map(|found| (found.name, found.target)).collect();
        let mut names = Vec::new();
        for one in deletions {
            let mut name = self.save_name(&self.items[one.at].candidate, one.tip);
            // The name has only a prefix of the id. If another commit has that name, use the whole id.
            if known.get(&name).is_some_and(|kept| *kept != one.tip) {
                name = format!("{name}-{}", one.tip);
            }
            one.saved.push(name.clone());
            names.push((name, one.tip));
        }
        names.sort();
        names.dedup();
        let moves: Vec<RefMove<'_>> = names
            .iter()
            .filter(|(name, tip)| known.get(name) != Some(tip))
            .map(|(name, tip)| RefMove { name, new: Some(*tip), old: None })
            .collect();
        if moves.is_empty() {
            return Ok(());
        }
        Ok(repository.move_refs(&moves, "arborist: save")?)
    }

    /// Deletes all of them at once. If that is refused, each half by itself, down to the one that is in the way.
    fn delete(&mut self, deletions: &[RefDeletion]) {
        if deletions.is_empty() {
            return;
        }
        let moves: Vec<RefMove<'_>> =
            deletions.iter().map(|one| RefMove { name: &one.name, new: None, old: Some(one.tip) }).collect();
        let repository = self.sweep.repository;
        let Err(error) = repository.move_refs(&moves, "arborist: cleanup") else {
            for one in deletions {
                self.outcomes[one.at] = Some(CleanupOutcome::Removed { saved: one.saved.clone() });
            }
            return;
        };
        if let [one] = deletions {
            self.outcomes[one.at] = Some(self.delete_alone(one, &error.to_string()));
            return;
        }
        let (left, right) = deletions.split_at(deletions.len() / 2);
        self.delete(left);
        self.delete(right);
    }

    /// Deletes one that could not be deleted with the others: it was moved, it is gone, or a killed git left its lock.
    fn delete_alone(&self, one: &RefDeletion, why: &str) -> CleanupOutcome {
        let repository = self.sweep.repository;
        match repository.find_ref(&one.name) {
            Ok(None) => return CleanupOutcome::Removed { saved: one.saved.clone() },
            Ok(Some(now)) if now != one.tip => return CleanupOutcome::Kept(MOVED.into()),
            _ => {}
        }
        if let Some(pool) = &self.sweep.pool {
            pool.clear_stale_lock(&one.name);
            pool.clear_stale_lock("packed-refs");
        }
        let moves = [RefMove { name: &one.name, new: None, old: Some(one.tip) }];
        match repository.move_refs(&moves, "arborist: cleanup") {
            Ok(()) => CleanupOutcome::Removed { saved: one.saved.clone() },
            Err(_) => CleanupOutcome::Failed(why.to_owned()),
        }
    }
}

const MOVED: &str = "it has moved meanwhile";

fn needs_proof(what: CandidateKind) -> bool {
    !matches!(what, CandidateKind::Claim | CandidateKind::Saved | CandidateKind::Cache)
}
