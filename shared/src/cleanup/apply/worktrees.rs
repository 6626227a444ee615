//! Deletes worktrees: under their locks, if they have not changed, by a rename. Deletes logs, reports and caches, if they have
//! not changed since they were surveyed.

use std::{
    io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::{CleanupOutcome, Execution};
use crate::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupError, CleanupVerdict, InUse, JudgedCandidate, Save,
        UncommittedContent,
        survey::{content_of, find_going_on},
    },
    git::Worktree,
    process::{FileLock, Occupants},
    safe_files,
    worktree::{Pool, RemainsKind, WorktreeRemains},
};

impl Execution<'_> {
    /// Deletes worktrees. `gate` is the lock of the pool, if there is one.
    pub(super) fn remove_places(&mut self, gate: Option<&FileLock>) -> Result<(), CleanupError> {
        let (Some(pool), Some(gate)) = (&self.sweep.pool, gate) else { return Ok(()) };
        let open =
            self.open(|item| matches!(item.candidate.what, CandidateKind::Worktree | CandidateKind::Folder));
        if open.is_empty() {
            return Ok(());
        }
        let worktrees = self.sweep.repository.list_worktrees()?;
        let places = pool.list_places(&worktrees);
        for at in open {
            let item = &self.items[at];
            let Some(path) = item.candidate.path() else { continue };
            let place = places.iter().find(|place| place.path == *path);
            let outcome = match (place, self.refuse_run(item)) {
                (_, Some(why)) => CleanupOutcome::Kept(why),
                (None, _) => CleanupOutcome::Removed { saved: Vec::new() },
                (Some(place), None) => match self.remove_place(pool, gate, item, place, &worktrees) {
                    Ok((saved, None)) => CleanupOutcome::Removed { saved },
                    Ok((saved, Some(trash))) => {
                        self.trash.push(trash);
                        CleanupOutcome::Trashed { saved }
                    }
                    Err(outcome) => outcome,
                },
            };
            self.outcomes[at] = Some(outcome);
        }
        Ok(())
    }

    /// Deletes one worktree. Returns the saved refs, and the path to which it was renamed for deletion.
    fn remove_place(
        &self,
        pool: &Pool,
        gate: &FileLock,
        item: &JudgedCandidate,
        place: &WorktreeRemains,
        worktrees: &[Worktree],
    ) -> Result<(Vec<String>, Option<PathBuf>), CleanupOutcome> {
        let CleanupVerdict::Remove(_, save) = item.verdict else {
            return Err(CleanupOutcome::Kept(String::new()));
        };
        let _lock = pool.occupy(&place.path).map_err(|error| CleanupOutcome::Kept(error.to_string()))?;
        self.refuse_changed(pool, item, place, worktrees)?;
        let mut saved = Vec::new();
        let failed = |error: &dyn std::error::Error| CleanupOutcome::Failed(error.to_string());
        if place.kind != RemainsKind::Scratch {
            let (content, _) = content_of(pool, place).map_err(|error| failed(&error))?;
            match content {
                UncommittedContent::Nothing => {}
                UncommittedContent::Unsaved(_) if save.content => {
                    saved.push(self.save_content(&item.candidate, place).map_err(|error| failed(&error))?);
                }
                UncommittedContent::Unsaved(paths) => {
                    let what = paths.first().cloned().unwrap_or_default();
                    return Err(CleanupOutcome::Kept(format!("it now has uncommitted files: {what}")));
                }
                UncommittedContent::Stuck(why) => return Err(CleanupOutcome::Kept(why)),
            }
            saved.extend(self.save_head(item, save)?);
        }
        let trash = pool.throw_away(gate, place).map_err(|error| failed(&error))?;
        Ok((saved, trash))
    }

    /// Checks that it is still the same worktree, and that no process has entered it.
    fn refuse_changed(
        &self,
        pool: &Pool,
        item: &JudgedCandidate,
        place: &WorktreeRemains,
        worktrees: &[Worktree],
    ) -> Result<(), CleanupOutcome> {
        let kept = |why: &str| Err(CleanupOutcome::Kept(why.to_owned()));
        match Occupants::find() {
            None => return kept("it cannot be found out which processes are in it"),
            Some(occupants) => {
                if let Some(pid) = occupants.of(&place.path) {
                    return kept(&format!("process {pid} is in it"));
                }
            }
        }
        let CandidatePlace::Worktree { branch, head, .. } = &item.candidate.place else {
            return Ok(());
        };
        if let Some(moved) = place.worktree.as_ref().and_then(|worktree| pool.find_moved(worktree)) {
            return kept(&InUse::Moved(moved.display().to_string()).to_string());
        }
        let own: Vec<Worktree> = worktrees.iter().filter(|one| one.path == place.path).cloned().collect();
        if let Some((_, going_on)) = find_going_on(&own).first() {
            return kept(&InUse::OperationInProgress(going_on.what).to_string());
        }
        let now = pool.look_into(place).and_then(|view| {
            let branch = view.find_head_branch().ok()?;
            Some((branch, view.find_commit("HEAD").ok()?))
        });
        match now {
            Some(now) if now == (branch.clone(), *head) => Ok(()),
            _ => kept("something else is checked out in it now"),
        }
    }

    /// Saves commits that are on no branch and reachable only from this worktree.
    fn save_head(&self, item: &JudgedCandidate, save: Save) -> Result<Option<String>, CleanupOutcome> {
        let CandidatePlace::Worktree { branch: None, head: Some(head), .. } = &item.candidate.place else {
            return Ok(None);
        };
        if !save.commits {
            return Ok(None);
        }
        let name = self.save_name(&item.candidate, *head);
        match self.sweep.repository.save_commit(&name, *head) {
            Ok(_) => Ok(Some(name)),
            Err(error) => Err(CleanupOutcome::Failed(error.to_string())),
        }
    }
}

pub(super) fn remove(candidate: &Candidate, path: &Path) -> CleanupOutcome {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return gone(),
        Err(error) => return CleanupOutcome::Failed(error.to_string()),
    };
    let seconds = |time: SystemTime| i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok();
    let written = found.modified().ok().and_then(seconds);
    if !found.is_file() || written != candidate.time || Some(found.len()) != candidate.size {
        return CleanupOutcome::Kept("it has changed meanwhile".into());
    }
    match safe_files::remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => CleanupOutcome::Failed(error.to_string()),
        _ => gone(),
    }
}

fn gone() -> CleanupOutcome {
    CleanupOutcome::Removed { saved: Vec::new() }
}
