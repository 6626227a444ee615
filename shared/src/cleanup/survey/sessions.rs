//! Sessions. Those that are not over keep what belongs to them; of the others, the branch and, much later, the records
//! are deleted.

use super::{
    CleanupFacts, branch_of,
    branches::{OURS, UNPROVED},
    reflog_time,
};
use crate::{
    cleanup::{Active, Candidate, CandidatePlace, What},
    git::{RefFacts, Repository},
    name::{BranchName, SessionId, TASK_REFS},
    session::{SESSIONS, SessionList, SessionState, StoredRecord, TRANSCRIPTS},
};

/// The unknown fact about a session whose records are in another repository of its workspace.
pub(super) const ELSEWHERE: &str = "whether its session is over: it is recorded in another repository";

impl CleanupFacts<'_> {
    pub(super) fn sessions(&self) -> Vec<Candidate> {
        let branches = self.session_list.sessions.iter().filter_map(|stored| self.session_branch(stored));
        let mut found: Vec<Candidate> = branches.collect();
        let elsewhere = self.refs.below(OURS).filter(|found| self.is_recorded_elsewhere(found));
        found.extend(elsewhere.map(unrecorded));
        for prefix in [SESSIONS, TRANSCRIPTS] {
            found.extend(self.refs.below(prefix).map(|found| self.record(prefix, found)));
        }
        found
    }

    fn session_branch(&self, stored: &StoredRecord) -> Option<Candidate> {
        let found = self.refs.branch_of_session(&stored.record.session)?;
        let (name, session) = (found.name.clone(), stored.record.session.to_string());
        let spot = CandidatePlace::Ref { name: name.clone(), tip: found.target };
        let branch = branch_of(&name)?;
        let mut candidate = Candidate::new(What::SessionBranch, spot, branch.to_string());
        candidate.owners = vec![session, branch.to_string()];
        candidate.run = Some(branch.component());
        let written = reflog_time(&self.sweep.repository.common_dir, &name);
        candidate.time = Some(stored.record.time).max(found.time).max(written);
        self.tell_standing(&mut candidate, stored);
        let going_on = self.going_on.iter().find(|(_, going_on)| going_on.branches.contains(&branch));
        candidate.active.extend(going_on.map(|(_, going_on)| Active::OperationInProgress(going_on.what)));
        if self.unpushed.contains(&name) {
            let upstream = found.upstream.clone().unwrap_or_default();
            candidate.active.push(Active::Unpushed(upstream.trim_start_matches("refs/remotes/").to_owned()));
        }
        self.tell_run(&mut candidate);
        Some(candidate)
    }

    /// Whether this is the branch of a session that is recorded in another repository: its commits say so, and there is
    /// no record here.
    pub(super) fn is_recorded_elsewhere(&self, found: &RefFacts) -> bool {
        let branch = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name);
        let is_task = found.name.starts_with(TASK_REFS);
        !is_task
            && !self.refs.is_session_branch(&found.name)
            && found.subject.starts_with(&format!("task({branch}@"))
    }

    /// Whether a session that works or worked on this branch is recorded here.
    pub(super) fn is_recorded_here(&self, branch: &BranchName) -> bool {
        self.session_list.sessions.iter().any(|stored| stored.record.context.branch == *branch)
    }

    /// The session branches of a remote.
    pub(super) fn remote_sessions(&self, remote: &str) -> Vec<Candidate> {
        let there = |stored: &StoredRecord| {
            let name = self.sweep.session_branch_proof().name_for(stored)?;
            let branch = branch_of(&name)?;
            let found = self.refs.find(&format!("refs/remotes/{remote}/{branch}"))?;
            let begins = self.sweep.session_branch_proof().begins_on(found, &branch, &stored.record.session);
            let spot = CandidatePlace::Remote { remote: remote.to_owned(), name, tip: found.target };
            let mut candidate = Candidate::new(What::RemoteBranch, spot, format!("{remote}/{branch}"));
            candidate.owners = vec![stored.record.session.to_string(), branch.to_string()];
            candidate.run = Some(branch.component());
            candidate.time = Some(stored.record.time).max(found.time);
            match begins {
                Ok(true) => {}
                Ok(false) => candidate.active.push(Active::Foreign(UNPROVED.into())),
                Err(error) => candidate.unknown.push(format!("who made it: {error}")),
            }
            self.tell_standing(&mut candidate, stored);
            self.tell_run(&mut candidate);
            Some(candidate)
        };
        self.session_list.sessions.iter().filter_map(there).collect()
    }

    fn record(&self, prefix: &str, found: &RefFacts) -> Candidate {
        let session = found.name.strip_prefix(prefix).unwrap_or(&found.name).to_owned();
        let kind = if prefix == SESSIONS { "records" } else { "transcript" };
        let spot = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = Candidate::new(What::Record, spot, format!("{session} ({kind})"));
        candidate.time = found.time;
        self.tell_session(&mut candidate, &session);
        let id = session.parse::<SessionId>().ok();
        if id.is_some_and(|session| self.refs.branch_of_session(&session).is_some()) {
            candidate.active.push(Active::Branched);
        }
        candidate.owners = vec![session];
        candidate
    }

    /// Adds whether a session is not over; then everything that belongs to it stays.
    fn tell_standing(&self, candidate: &mut Candidate, stored: &StoredRecord) {
        let open = self.open_sessions.iter().find(|open| open.session == stored.record.session);
        candidate.active.extend(open.map(|open| Active::Session(open.session.clone(), open.standing)));
    }

    /// The same for a candidate that names its session. A session without records has ended; one whose records cannot
    /// be read may continue.
    pub(super) fn tell_session(&self, candidate: &mut Candidate, session: &str) {
        match self.session_list.sessions.iter().find(|stored| stored.record.session.as_str() == session) {
            Some(stored) => self.tell_standing(candidate, stored),
            None if self.refs.find(&format!("{SESSIONS}{session}")).is_some() => {
                candidate.unknown.push("whether its session is over".into());
            }
            None => {}
        }
    }

    /// The same for a candidate that belongs to the run of a session.
    pub(super) fn tell_sessions(&self, candidate: &mut Candidate) {
        let Some(run) = candidate.run.as_deref().filter(|_| !self.open_sessions.is_empty()) else { return };
        let of_run = self.open_sessions.iter().filter(|open| open.run == run);
        candidate.active.extend(of_run.map(|open| Active::Session(open.session.clone(), open.standing)));
    }
}

/// A session branch about which only another repository knows more.
fn unrecorded(found: &RefFacts) -> Candidate {
    let name = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name).to_owned();
    let spot = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
    let mut candidate = Candidate::new(What::SessionBranch, spot, name.clone());
    candidate.owners = name.rsplit('/').next().map(str::to_owned).into_iter().chain([name.clone()]).collect();
    candidate.time = found.time;
    candidate.unknown.push(ELSEWHERE.into());
    candidate
}

/// A session that is not over.
pub(super) struct OpenSession {
    session: SessionId,
    run: String,
    standing: SessionState,
}

/// The sessions that are not over.
pub(super) fn find_open(repository: &Repository, session_list: &SessionList) -> Vec<OpenSession> {
    let open = |stored: &StoredRecord| {
        let standing = session_list.standing(repository, stored);
        let is_open = matches!(standing, SessionState::Running | SessionState::Open | SessionState::Paused);
        let (session, run) = (stored.record.session.clone(), stored.record.context.branch.component());
        is_open.then_some(OpenSession { session, run, standing })
    };
    session_list.sessions.iter().filter_map(open).collect()
}
