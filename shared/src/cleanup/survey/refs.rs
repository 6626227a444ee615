//! All refs of a repository, and which of them stay in every cleanup.

use std::collections::{HashMap, HashSet};

use super::{CleanupFacts, sessions::SessionBranchProof};
use crate::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupError, InUse, homes::KnownSession, saved::SaveTimes,
    },
    coordination::CLAIMS,
    git::RefFacts,
    name::{Attempt, BranchName, LANDINGS, Oid, SAVED, SessionId, unescaped},
    record::UnfinishedAttempt,
};

/// All refs, by their names.
pub(in crate::cleanup) struct Refs {
    all: Vec<RefFacts>,
    places: HashMap<String, usize>,
    kept: Vec<Oid>,
    copies: Vec<Oid>,
    /// The local branches that were created for sessions.
    sessions: HashMap<String, SessionId>,
    /// The branch that was created for each session.
    branches: HashMap<String, String>,
    /// The names of session branches according to records.
    recorded_names: HashSet<String>,
}

/// Refs that are ours or may be deleted at any time. They do not count as a place where commits are kept.
const VOLATILE: [&str; 9] = [
    "refs/arborist/",
    "refs/heads/arborist/",
    "refs/stash",
    "refs/bisect/",
    "refs/worktree/",
    "refs/rewritten/",
    "refs/notes/",
    "refs/replace/",
    "refs/prefetch/",
];

/// Branches that work usually lands on, apart from that of the run.
const USUAL: [&str; 2] = ["refs/heads/main", "refs/heads/master"];

impl Refs {
    pub(in crate::cleanup) fn new(
        mut all: Vec<RefFacts>,
        known: &[KnownSession],
        session_branch_proof: SessionBranchProof<'_>,
    ) -> Self {
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let places: HashMap<String, usize> =
            all.iter().enumerate().map(|(at, found)| (found.name.clone(), at)).collect();
        let (mut sessions, mut recorded_names) = (HashMap::new(), HashSet::new());
        for session in known {
            let Some(name) = session.own_branch() else { continue };
            recorded_names.insert(name.clone());
            if let Some(at) = places.get(&name)
                // A branch that cannot be read stays.
                && session_branch_proof.has_made(&all[*at], session.id()).unwrap_or(false)
            {
                sessions.insert(name, session.id().clone());
            }
        }
        let stays = |found: &&RefFacts| {
            is_kept(&found.name)
                && !sessions.contains_key(&found.name)
                && !is_copy(&recorded_names, &found.name)
        };
        let (copies, kept): (Vec<&RefFacts>, Vec<&RefFacts>) =
            all.iter().filter(stays).partition(|found| found.name.starts_with("refs/remotes/"));
        let commits = |found: Vec<&RefFacts>| -> Vec<Oid> {
            let commits: HashSet<Oid> = found.into_iter().filter_map(|found| found.commit).collect();
            commits.into_iter().collect()
        };
        let (kept, copies) = (commits(kept), commits(copies));
        let branches = sessions.iter().map(|(name, session)| (session.to_string(), name.clone())).collect();
        Self { all, places, kept, copies, sessions, branches, recorded_names }
    }

    /// The commits of the refs that stay.
    pub(super) fn kept(&self) -> &[Oid] {
        &self.kept
    }

    /// The commits that keep what a candidate has. Session branches keep everything except themselves and their
    /// records: they stay, or are saved before they are deleted.
    pub(in crate::cleanup) fn kept_for(&self, what: CandidateKind) -> Vec<Oid> {
        let mut kept = self.kept.clone();
        if !matches!(what, CandidateKind::SessionBranch | CandidateKind::Record) {
            kept.extend(self.sessions.keys().filter_map(|name| self.find(name)?.commit));
        }
        kept
    }

    /// The commits of remote-tracking refs, which `fetch --prune` may delete.
    pub(super) fn copies(&self) -> &[Oid] {
        &self.copies
    }

    pub(in crate::cleanup) fn find(&self, name: &str) -> Option<&RefFacts> {
        self.places.get(name).map(|at| &self.all[*at])
    }

    pub(super) fn below<'a, 'b>(
        &'a self,
        prefix: &'b str,
    ) -> impl Iterator<Item = &'a RefFacts> + use<'a, 'b> {
        let begin = self.all.partition_point(|found| found.name.as_str() < prefix);
        self.all[begin..].iter().take_while(move |found| found.name.starts_with(prefix))
    }

    pub(super) fn is_session_branch(&self, name: &str) -> bool {
        self.sessions.contains_key(name)
    }

    /// The local branch that was created for a session.
    pub(super) fn branch_of_session(&self, session: &SessionId) -> Option<&RefFacts> {
        self.find(self.branches.get(session.as_str())?)
    }

    pub(super) fn has_upstreams(&self) -> bool {
        let is_ours = |found: &&RefFacts| {
            found.name.starts_with("refs/heads/arborist/") || self.is_session_branch(&found.name)
        };
        self.all.iter().filter(is_ours).any(|found| found.upstream.is_some())
    }

    /// Whether there is a branch of this name, local or at a remote.
    fn has_run(&self, run: &str) -> bool {
        let there = || {
            let suffix = format!("/{run}");
            self.below("refs/remotes/").any(|found| found.name.ends_with(&suffix))
        };
        self.find(&format!("refs/heads/{run}")).is_some() || there()
    }

    /// The branches that the work of a candidate may have landed on, with their tips: that of its run, its upstream,
    /// and the usual ones. For a branch of a remote, only branches of that remote count.
    pub(super) fn targets(&self, candidate: &Candidate) -> Vec<(String, Oid)> {
        let run = candidate.run.as_deref().map(unescaped);
        let mut names: Vec<String> = Vec::new();
        match &candidate.place {
            CandidatePlace::Remote { remote, .. } => {
                names.extend(run.map(|run| format!("refs/remotes/{remote}/{run}")));
                names.extend(["main", "master"].map(|name| format!("refs/remotes/{remote}/{name}")));
            }
            _ => {
                names.extend(run.map(|run| format!("refs/heads/{run}")));
                let follow = |name: &String| self.find(name)?.upstream.clone();
                names.extend(names.iter().filter_map(follow).collect::<Vec<_>>());
                names.extend(USUAL.iter().map(|name| (*name).to_owned()));
                names.extend(USUAL.iter().filter_map(|name| self.find(name)?.upstream.clone()));
            }
        }
        let mut targets: Vec<(String, Oid)> = Vec::new();
        for name in names.iter().filter(|name| is_kept(name)) {
            let Some(tip) = self.find(name).and_then(|found| found.commit) else { continue };
            if !targets.iter().any(|(_, known)| *known == tip) {
                targets.push((short(name).to_owned(), tip));
            }
        }
        targets
    }

    /// The refs of one remote's branches that stay there.
    pub(in crate::cleanup) fn kept_at(&self, remote: &str) -> Vec<&RefFacts> {
        let prefix = format!("refs/remotes/{remote}/");
        let stays = |found: &&RefFacts| is_kept(&found.name) && !is_copy(&self.recorded_names, &found.name);
        let there = self.below(&prefix).filter(stays);
        there.collect()
    }
}

/// Whether this is the remote-tracking ref of a session's branch, according to records.
fn is_copy(recorded_names: &HashSet<String>, name: &str) -> bool {
    let Some(rest) = name.strip_prefix("refs/remotes/").filter(|_| !recorded_names.is_empty()) else {
        return false;
    };
    let mut ends = rest.match_indices('/').map(|(at, _)| &rest[at + 1..]);
    ends.any(|end| recorded_names.contains(&format!("refs/heads/{end}")))
}

fn is_kept(name: &str) -> bool {
    let is_copy = name.strip_prefix("refs/remotes/").is_some_and(|rest| rest.contains("/arborist/"));
    !is_copy && !VOLATILE.iter().any(|prefix| name.starts_with(prefix))
}

fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/remotes/")).unwrap_or(name)
}

impl CleanupFacts<'_> {
    fn small(&self, what: CandidateKind, prefix: &str, found: &RefFacts) -> Candidate {
        let rest = found.name.strip_prefix(prefix).unwrap_or(&found.name);
        let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = Candidate::new(what, place, rest.to_owned());
        candidate.owners = rest.split('/').map(str::to_owned).collect();
        candidate.time = found.time;
        candidate
    }

    /// Parked landings. One is obsolete once its branch contains it.
    pub(super) fn landings(&self) -> Vec<Candidate> {
        let landing = |found: &RefFacts| {
            let mut candidate = self.small(CandidateKind::Landing, LANDINGS, found);
            candidate.run = Some(candidate.name.clone());
            self.add_run_facts(&mut candidate);
            candidate
        };
        self.refs.below(LANDINGS).map(landing).collect()
    }

    pub(super) fn claims(&self) -> Vec<Candidate> {
        let claim = |found: &RefFacts| {
            let mut candidate = self.small(CandidateKind::Claim, CLAIMS, found);
            let target = candidate.name.clone();
            self.add_claim_facts(&mut candidate, &target);
            candidate
        };
        self.refs.below(CLAIMS).map(claim).collect()
    }

    /// Marks of attempts, from which a run continues after a crash, as long as its branch exists.
    pub(super) fn unfinished(&self) -> Vec<Candidate> {
        let mark = |found: &RefFacts| {
            let mut candidate = self.small(CandidateKind::UnfinishedAttempt, UnfinishedAttempt::REFS, found);
            let run = candidate.owners.first().cloned().unwrap_or_default();
            let session = session_of(&candidate.owners).map(str::to_owned);
            match session {
                Some(session) => self.keep_for_session(&mut candidate, &session),
                None if self.refs.has_run(&unescaped(&run)) => {
                    let branch: Option<BranchName> = unescaped(&run).parse().ok();
                    let of_task = branch.and_then(|branch| branch.run_of_task_branch());
                    let run = of_task.map_or_else(|| unescaped(&run), |run| run.to_string());
                    candidate.in_use.push(InUse::UnfinishedAttempt(run));
                }
                None => {}
            }
            candidate.name = words_on(&candidate.owners).unwrap_or(candidate.name);
            candidate.run = Some(run);
            self.add_run_facts(&mut candidate);
            candidate
        };
        self.refs.below(UnfinishedAttempt::REFS).map(mark).collect()
    }

    /// Saved work. Its age is the time of the save, not of what was saved.
    pub(super) fn saved(&self) -> Result<Vec<Candidate>, CleanupError> {
        let sweep = self.sweep;
        let times = SaveTimes::find(sweep.repository, sweep.options.rules.now, self.refs.below(SAVED))?;
        let candidate = |found: &RefFacts| {
            let mut candidate = self.small(CandidateKind::Saved, SAVED, found);
            candidate.time = times.saved_time(found);
            candidate
        };
        Ok(self.refs.below(SAVED).map(candidate).collect())
    }
}

/// The session of a mark: what was in its worktree when a turn started.
fn session_of(parts: &[String]) -> Option<&str> {
    match parts {
        [_, kind, session] if kind == "@session" => Some(session),
        _ => None,
    }
}

/// Describes a mark, after the word "unfinished". Its name is `{run}/{task}/{attempt}`, `{run}/{task}/tree`,
/// `{run}/@session/{session}` or `{run}/@staging/…`.
fn words_on(parts: &[String]) -> Option<String> {
    let [run, kind, rest @ ..] = parts else { return None };
    let (run, last) = (unescaped(run), rest.last()?);
    match kind.as_str() {
        "@session" => Some(format!("turn of session {last} on {run}")),
        "@checkout" => Some(format!("landing on {run} that was interrupted")),
        "@staging" => Some(format!("commit that may be missing from the index of {run}")),
        task if last == "tree" => Some(format!("work on {task} on {run}")),
        task => {
            let attempt = Attempt(last.parse().ok()?);
            Some(format!("attempt {} of {task} on {run}", attempt.ordinal()))
        }
    }
}
