//! Small refs next to branches: parked landings, claims, marks of attempts, saved work.

use super::{CleanupFacts, readable, reflog_time};
use crate::{
    cleanup::{Active, Candidate, CandidatePlace, CleanupError, What, saved::SAVED},
    coordination::CLAIMS,
    git::RefFacts,
    name::{Attempt, BranchName, LANDINGS},
    record::Unfinished,
};

impl CleanupFacts<'_> {
    fn small(&self, what: What, prefix: &str, found: &RefFacts) -> Candidate {
        let rest = found.name.strip_prefix(prefix).unwrap_or(&found.name);
        let spot = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = Candidate::new(what, spot, rest.to_owned());
        candidate.owners = rest.split('/').map(str::to_owned).collect();
        candidate.time = found.time;
        candidate
    }

    /// Parked landings. One is obsolete once its branch contains it.
    pub(super) fn landings(&self) -> Vec<Candidate> {
        let landing = |found: &RefFacts| {
            let mut candidate = self.small(What::Landing, LANDINGS, found);
            candidate.run = Some(candidate.name.clone());
            self.tell_run(&mut candidate);
            candidate
        };
        self.refs.below(LANDINGS).map(landing).collect()
    }

    pub(super) fn claims(&self) -> Vec<Candidate> {
        let claim = |found: &RefFacts| {
            let mut candidate = self.small(What::Claim, CLAIMS, found);
            let target = candidate.name.clone();
            self.tell_claim(&mut candidate, &target);
            candidate
        };
        self.refs.below(CLAIMS).map(claim).collect()
    }

    /// Marks of attempts, from which a run continues after a crash, as long as its branch exists.
    pub(super) fn unfinished(&self) -> Vec<Candidate> {
        let mark = |found: &RefFacts| {
            let mut candidate = self.small(What::Unfinished, Unfinished::REFS, found);
            let run = candidate.owners.first().cloned().unwrap_or_default();
            let session = session_of(&candidate.owners).map(str::to_owned);
            match session {
                Some(session) => self.tell_session(&mut candidate, &session),
                None if self.refs.has_run(&readable(&run)) => {
                    let branch: Option<BranchName> = readable(&run).parse().ok();
                    let of_task = branch.and_then(|branch| branch.run_of_task_branch());
                    let run = of_task.map_or_else(|| readable(&run), |run| run.to_string());
                    candidate.active.push(Active::Unfinished(run));
                }
                None => {}
            }
            candidate.name = words_on(&candidate.owners).unwrap_or(candidate.name);
            candidate.run = Some(run);
            self.tell_run(&mut candidate);
            candidate
        };
        self.refs.below(Unfinished::REFS).map(mark).collect()
    }

    /// Saved work. Its age is the time of the save, not of what was saved.
    pub(super) fn saved(&self) -> Result<Vec<Candidate>, CleanupError> {
        let mut found: Vec<Candidate> =
            self.refs.below(SAVED).map(|found| self.small(What::Saved, SAVED, found)).collect();
        let repository = self.sweep.repository;
        for candidate in &mut found {
            let Some((name, _)) = candidate.as_ref() else { continue };
            let name = name.to_owned();
            let is_made_for_it = name.rsplit('/').next().is_some_and(|last| last.starts_with("worktree-"));
            let committed = candidate.time.filter(|_| is_made_for_it);
            let written = reflog_time(&repository.common_dir, &name).or_else(|| day_in(&candidate.name));
            candidate.time = match written.or(committed) {
                Some(time) => Some(time),
                None => repository.written_at(std::slice::from_ref(&name))?.remove(&name),
            };
        }
        Ok(found)
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
    let (run, last) = (readable(run), rest.last()?);
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

/// The end of the day with which a name starts, in seconds since 1970.
fn day_in(name: &str) -> Option<i64> {
    let date: jiff::civil::Date = name.split('/').next()?.parse().ok()?;
    let end = date.tomorrow().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(end.timestamp().as_second())
}
