//! Deletes branches of remotes that have landed there, if they are where they were last seen.

use std::collections::{HashMap, HashSet};

use super::{CleanupOutcome, Execution};
use crate::{
    cleanup::{
        CandidatePlace, CleanupError, CleanupPlan, CleanupVerdict, Commits, Save, Sweep,
        survey::{Refs, SessionBranchProof},
    },
    git::RemoteError,
    name::Oid,
    session::SessionReader,
};

/// The branches of a remote, or why it could not be reached.
pub(super) type RemoteBranches = Result<Vec<(String, Oid)>, String>;

impl Sweep<'_> {
    /// Lists the branches of each remote that is cleaned.
    pub(super) fn ask_remotes(
        &self,
        plan: &CleanupPlan,
    ) -> Result<HashMap<String, RemoteBranches>, CleanupError> {
        let mut answers = HashMap::new();
        for item in plan.items.iter().filter(|item| matches!(item.verdict, CleanupVerdict::Remove(..))) {
            let CandidatePlace::Remote { remote, .. } = &item.candidate.place else { continue };
            if answers.contains_key(remote) {
                continue;
            }
            let answer = match self.repository.list_remote_refs(
                remote.as_str(),
                ["refs/heads/*"].as_slice(),
                &self.options.network,
            ) {
                Ok(branches) => Ok(branches),
                Err(RemoteError::Unreached { why, .. }) => Err(why),
                Err(RemoteError::Git(error)) => return Err(error.into()),
            };
            answers.insert(remote.clone(), answer);
        }
        Ok(answers)
    }
}

impl Execution<'_> {
    pub(super) fn remove_remotes(&mut self) -> Result<(), CleanupError> {
        let open = self.open(|item| matches!(item.candidate.place, CandidatePlace::Remote { .. }));
        for (remote, answer) in std::mem::take(&mut self.remotes) {
            let is_there = |at: &usize| matches!(&self.items[*at].candidate.place, CandidatePlace::Remote { remote: own, .. } if *own == remote);
            let of_remote: Vec<usize> = open.iter().copied().filter(is_there).collect();
            self.remove_of_remote(&remote, answer, of_remote)?;
        }
        Ok(())
    }

    fn remove_of_remote(
        &mut self,
        remote: &str,
        answer: RemoteBranches,
        mut open: Vec<usize>,
    ) -> Result<(), CleanupError> {
        let now = match answer {
            Ok(now) => now,
            Err(why) => {
                let outcome = CleanupOutcome::Failed(format!("'{remote}' could not be reached: {why}"));
                open.iter().for_each(|at| self.outcomes[*at] = Some(outcome.clone()));
                return Ok(());
            }
        };
        let landed = self.landed_there(remote, &now, &open)?;
        open.retain(|at| {
            let outcome = self.look_at_remote(*at, &now, &landed);
            let is_open = outcome.is_none();
            if !is_open {
                self.outcomes[*at] = outcome;
            }
            is_open
        });
        let mut saved = Vec::new();
        for at in &open {
            saved.push(self.save_remote(*at)?);
        }
        let branches: Vec<(String, Oid)> = open.iter().filter_map(|at| self.remote_tip(*at)).collect();
        let outcomes = self.delete_at(remote, &branches)?;
        for ((at, refused), saved) in open.iter().zip(outcomes).zip(saved) {
            self.outcomes[*at] = Some(match refused {
                None => CleanupOutcome::Removed { saved },
                Some(why) => CleanupOutcome::Failed(format!("'{remote}' refused: {why}")),
            });
        }
        Ok(())
    }

    fn delete_at(
        &self,
        remote: &str,
        branches: &[(String, Oid)],
    ) -> Result<Vec<Option<String>>, CleanupError> {
        let Sweep { repository, options, .. } = self.sweep;
        Ok(repository.delete_remote_branches(remote, branches, &options.network)?)
    }

    fn remote_tip(&self, at: usize) -> Option<(String, Oid)> {
        match &self.items[at].candidate.place {
            CandidatePlace::Remote { name, tip, .. } => Some((name.clone(), *tip)),
            _ => None,
        }
    }

    /// The tips that are reachable from branches which the remote has right now, at the commits that we know.
    fn landed_there(
        &self,
        remote: &str,
        now: &[(String, Oid)],
        open: &[usize],
    ) -> Result<HashSet<Oid>, CleanupError> {
        let repository = self.sweep.repository;
        let session_list = SessionReader::new(repository).list()?;
        let refs = Refs::new(
            repository.start_surveying_refs().finish()?,
            &self.sweep.sessions(&session_list),
            SessionBranchProof { repository },
        );
        let prefix = format!("refs/remotes/{remote}/");
        let is_so = |name: &str, tip: Oid| {
            let there = name.strip_prefix(&prefix).map(|name| format!("refs/heads/{name}"));
            now.iter().any(|(name, target)| Some(name) == there.as_ref() && *target == tip)
        };
        let kept = refs.kept_at(remote);
        let kept: Vec<Oid> = kept
            .iter()
            .filter(|found| is_so(&found.name, found.target))
            .filter_map(|found| found.commit)
            .collect();
        let tips: Vec<Oid> = open.iter().filter_map(|at| self.remote_tip(*at)).map(|(_, tip)| tip).collect();
        let loose = repository.loose_commits(&tips, &kept)?;
        let is_landed = |tip: &Oid| !loose.contains_key(tip);
        Ok(tips.into_iter().filter(is_landed).collect())
    }

    /// Why a branch of a remote stays after all.
    fn look_at_remote(
        &self,
        at: usize,
        now: &[(String, Oid)],
        landed: &HashSet<Oid>,
    ) -> Option<CleanupOutcome> {
        let item = &self.items[at];
        let (name, tip) = self.remote_tip(at)?;
        if let Some(why) = self.refuse_run(item) {
            return Some(CleanupOutcome::Kept(why));
        }
        match now.iter().find(|(found, _)| *found == name) {
            None => return Some(CleanupOutcome::Removed { saved: Vec::new() }),
            Some((_, target)) if *target != tip => {
                return Some(CleanupOutcome::Kept("it has moved there: fetch first".into()));
            }
            Some(_) => {}
        }
        let is_proved = matches!(item.candidate.commits, Commits::Landed { .. });
        if !landed.contains(&tip) && !is_proved {
            return Some(CleanupOutcome::Kept("its target has moved there: fetch first".into()));
        }
        None
    }

    fn save_remote(&self, at: usize) -> Result<Vec<String>, CleanupError> {
        let item = &self.items[at];
        let (CleanupVerdict::Remove(_, Save { commits: true, .. }), Some((_, tip))) =
            (&item.verdict, self.remote_tip(at))
        else {
            return Ok(Vec::new());
        };
        let name = self.save_name(&item.candidate, tip);
        self.sweep.repository.save_commit(&name, tip)?;
        Ok(vec![name])
    }
}
