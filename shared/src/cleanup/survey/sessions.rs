//! Sessions, recorded here or in another repository of their workspace. Those that are not over keep what belongs to them; of the others, the branch and, much later, the records
//! are deleted.

use std::{collections::HashSet, io::Read};

use super::{
    CleanupFacts, branch_of,
    branches::{OUR_PREFIX, OURS, UNPROVED},
};
use crate::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupError, InUse, homes::KnownSession,
        saved::reflog_time,
    },
    git::{RefFacts, Repository},
    history::Event,
    message::Status,
    name::{BranchName, SessionId, TASK_REFS},
    session::{SESSIONS, TRANSCRIPTS},
    workspace::RepoSection,
};

impl CleanupFacts<'_> {
    pub(super) fn sessions(&self) -> Vec<Candidate> {
        let mut named = HashSet::new();
        // A session may be recorded in two repositories.
        let once = self.sessions.iter().filter(|session| named.insert((session.id(), &session.branch)));
        let mut found: Vec<Candidate> = once.filter_map(|session| self.session_branch(session)).collect();
        let elsewhere = self.refs.below(OURS).filter(|found| self.is_recorded_elsewhere(found));
        found.extend(elsewhere.map(|found| self.unrecorded(found)));
        for prefix in [SESSIONS, TRANSCRIPTS] {
            found.extend(self.refs.below(prefix).map(|found| self.record(prefix, found)));
        }
        found
    }

    fn session_branch(&self, session: &KnownSession) -> Option<Candidate> {
        let found = self.refs.branch_of_session(session.id())?;
        let name = found.name.clone();
        let place = CandidatePlace::Ref { name: name.clone(), tip: found.target };
        let branch = branch_of(&name)?;
        let mut candidate = Candidate::new(CandidateKind::SessionBranch, place, branch.to_string());
        candidate.owners = vec![session.id().to_string(), branch.to_string()];
        candidate.run = Some(branch.component());
        candidate.home = session.home.clone();
        let written = reflog_time(&self.sweep.repository.common_dir, &name);
        candidate.time = Some(session.stored.record.time).max(found.time).max(written);
        self.add_session_state(&mut candidate, session.id());
        let going_on = self.going_on.iter().find(|(_, going_on)| going_on.branches.contains(&branch));
        candidate.in_use.extend(going_on.map(|(_, going_on)| InUse::OperationInProgress(going_on.what)));
        if self.unpushed.contains(&name) {
            let upstream = found.upstream.clone().unwrap_or_default();
            candidate.in_use.push(InUse::Unpushed(upstream.trim_start_matches("refs/remotes/").to_owned()));
        }
        self.add_run_facts(&mut candidate);
        Some(candidate)
    }

    /// Whether this is the branch of a session that no known repository has recorded: its commits say that it is one.
    pub(super) fn is_recorded_elsewhere(&self, found: &RefFacts) -> bool {
        let branch = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name);
        let is_task = found.name.starts_with(TASK_REFS);
        !is_task
            && !self.refs.is_session_branch(&found.name)
            && found.subject.starts_with(&format!("task({branch}@"))
    }

    /// Whether a session is known that works or worked on this branch.
    pub(super) fn is_recorded(&self, branch: &BranchName) -> bool {
        self.sessions.iter().any(|session| session.branch == *branch)
    }

    /// The session branches of a remote.
    pub(super) fn remote_sessions(&self, remote: &str) -> Vec<Candidate> {
        let proof = SessionBranchProof { repository: self.sweep.repository };
        let there = |session: &KnownSession| {
            let name = session.own_branch()?;
            let branch = session.branch.clone();
            let found = self.refs.find(&format!("refs/remotes/{remote}/{branch}"))?;
            let begins = proof.begins_on(found, &branch, session.id());
            let place = CandidatePlace::Remote { remote: remote.to_owned(), name, tip: found.target };
            let mut candidate =
                Candidate::new(CandidateKind::RemoteBranch, place, format!("{remote}/{branch}"));
            candidate.owners = vec![session.id().to_string(), branch.to_string()];
            candidate.run = Some(branch.component());
            candidate.home = session.home.clone();
            candidate.time = Some(session.stored.record.time).max(found.time);
            match begins {
                Ok(true) => {}
                Ok(false) => candidate.in_use.push(InUse::Foreign(UNPROVED.into())),
                Err(error) => candidate.unknown.push(format!("who made it: {error}")),
            }
            self.add_session_state(&mut candidate, session.id());
            self.add_run_facts(&mut candidate);
            Some(candidate)
        };
        let mut named = HashSet::new();
        let once = self.sessions.iter().filter(|session| named.insert((session.id(), &session.branch)));
        once.filter_map(there).collect()
    }

    fn record(&self, prefix: &str, found: &RefFacts) -> Candidate {
        let session = found.name.strip_prefix(prefix).unwrap_or(&found.name).to_owned();
        let kind = if prefix == SESSIONS { "records" } else { "transcript" };
        let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = Candidate::new(CandidateKind::Record, place, format!("{session} ({kind})"));
        candidate.time = found.time;
        self.keep_for_session(&mut candidate, &session);
        let is_branched = |session: SessionId| {
            self.refs.branch_of_session(&session).is_some() || self.branched_elsewhere.contains(&session)
        };
        if session.parse::<SessionId>().is_ok_and(is_branched) {
            candidate.in_use.push(InUse::Branched);
        }
        candidate.owners = vec![session];
        candidate
    }

    /// Adds whether a session is not over; then everything that belongs to it stays.
    fn add_session_state(&self, candidate: &mut Candidate, session: &SessionId) {
        let open = self.open_sessions().find(|open| open.id() == session);
        candidate.in_use.extend(open.map(|open| InUse::Session(open.id().clone(), open.state)));
    }

    fn open_sessions(&self) -> impl Iterator<Item = &KnownSession> {
        self.sessions.iter().filter(|session| session.is_open())
    }

    /// Keeps a candidate that names a session which is not over. A session without records has ended; one whose records cannot
    /// be read may continue.
    pub(super) fn keep_for_session(&self, candidate: &mut Candidate, session: &str) {
        match self.sessions.iter().find(|known| known.id().as_str() == session) {
            Some(known) => self.add_session_state(candidate, known.id()),
            None if self.refs.find(&format!("{SESSIONS}{session}")).is_some() => {
                candidate.unknown.push("whether its session is over".into());
            }
            None => {}
        }
    }

    /// Keeps a candidate that belongs to the run of a session which is not over.
    pub(super) fn keep_for_sessions(&self, candidate: &mut Candidate) {
        let Some(run) = candidate.run.clone() else { return };
        let of_run = self.open_sessions().filter(|open| open.branch.component() == run);
        candidate.in_use.extend(of_run.map(|open| InUse::Session(open.id().clone(), open.state)));
    }

    /// A session branch about which only another repository knows more.
    fn unrecorded(&self, found: &RefFacts) -> Candidate {
        let name = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name).to_owned();
        let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = Candidate::new(CandidateKind::SessionBranch, place, name.clone());
        candidate.owners =
            name.rsplit('/').next().map(str::to_owned).into_iter().chain([name.clone()]).collect();
        candidate.time = found.time;
        candidate.unknown.push(self.sweep.homes.unknown_words());
        candidate
    }
}

/// The sessions that have a branch in one of the other repositories. Their records are still needed.
pub(super) fn find_branched(
    others: &[(RepoSection, Repository)],
    sessions: &[KnownSession],
) -> Result<HashSet<SessionId>, CleanupError> {
    let mut found = HashSet::new();
    for (section, repository) in others {
        let branches = repository.list_refs(&["refs/heads/"])?;
        let branches: Vec<BranchName> = branches.iter().filter_map(|found| branch_of(&found.name)).collect();
        let is_there = |session: &&KnownSession| {
            branches.iter().any(|branch| section.is_session_branch(branch, session.id()))
        };
        found.extend(sessions.iter().filter(is_there).map(|session| session.id().clone()));
    }
    Ok(found)
}

// Which branches were created for sessions. A record is no proof: any process can write one, and a fetch brings those
// of other users.

/// How many bytes of the start of a reflog are read.
const REFLOG_START: u64 = 4096;
/// How many starts of runs are examined.
const MAX_STARTS: usize = 10;

/// Tells which branches were created for sessions.
#[derive(Clone, Copy)]
pub(in crate::cleanup) struct SessionBranchProof<'a> {
    pub(in crate::cleanup) repository: &'a Repository,
}

impl SessionBranchProof<'_> {
    /// Whether a local branch was created for a session: its reflog starts with our entry, or the session starts on it.
    pub(super) fn has_made(&self, found: &RefFacts, session: &SessionId) -> Result<bool, CleanupError> {
        let Some(branch) = branch_of(&found.name) else { return Ok(false) };
        Ok(self.begins_log(&found.name)? || self.begins_on(found, &branch, session)?)
    }

    /// Whether a branch, local or not, has the start of the session's run.
    fn begins_on(
        &self,
        found: &RefFacts,
        branch: &BranchName,
        session: &SessionId,
    ) -> Result<bool, CleanupError> {
        let Some(tip) = found.commit else { return Ok(false) };
        let starts = self.repository.find_commits_by_message(
            tip,
            &format!("task({branch}@@run-start): "),
            MAX_STARTS,
        )?;
        let commits = self.repository.load_commits(&starts)?;
        let is_start = |event: Event| {
            event.status() == Status::RunStart
                && event.branch() == branch
                && event.session().as_ref() == Some(session)
        };
        Ok(commits.iter().filter_map(Event::of).any(is_start))
    }

    /// Whether the first entry of a ref's reflog is ours.
    fn begins_log(&self, name: &str) -> Result<bool, CleanupError> {
        let common = &self.repository.common_dir;
        if !self.repository.has_files_backend {
            let log = self.repository.read_reflog(name)?;
            return Ok(log.last().is_some_and(|message| message.starts_with(OUR_PREFIX)));
        }
        let Ok(file) = crate::safe_files::open(&common.join("logs").join(name)) else { return Ok(false) };
        let mut head = Vec::new();
        let _ = file.take(REFLOG_START).read_to_end(&mut head);
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().next().and_then(|line| line.split_once('\t'));
        Ok(first.is_some_and(|(_, message)| message.starts_with(OUR_PREFIX)))
    }
}
