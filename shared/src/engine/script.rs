//! The script that is a worker, and what a worker knows about the engine that has started it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{
    EngineError, Submission,
    manifest::{UnknownPlaceholder, fill},
};
use crate::{
    consent::{APPROVED, MOST_APPROVED, passed_digest},
    name::{BranchName, digest},
    process::{Cancel, Limits, ProcessId, Program, Supervised, shell_word},
};

/// A new submission: what tells it from others, and the name of its jobs. The name is also a name for Kubernetes.
pub(super) fn new_names(branch: &BranchName) -> (String, String) {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let process = ProcessId::ours();
    let id: String =
        digest(format!("{time} {} {}", process.pid, process.machine()).as_bytes()).chars().take(8).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let branch: String = branch.as_str().chars().map(plain).take(30).collect();
    let name = format!("arborist-{}-{id}", branch.trim_matches('-'));
    (id, name)
}

impl Submission<'_> {
    /// Refuses what cannot be passed to workers.
    pub fn require_passable(&self) -> Result<(), EngineError> {
        match self.order.approved.len() {
            count if count > MOST_APPROVED => Err(EngineError::TooMany(count)),
            _ => Ok(()),
        }
    }

    /// Adds to the commands that workers may run.
    pub fn approve(&mut self, commands: &std::collections::BTreeSet<String>) {
        self.order.approved.extend(commands.iter().cloned());
    }

    /// The script of a worker at `place`, which is empty if the engine has no places. `path` is a line that changes
    /// `PATH`.
    pub(super) fn script(&self, place: &str, path: &str) -> String {
        let engine = self.engine;
        let started = StartedBy {
            engine: engine.name.clone(),
            submission: self.id.clone(),
            places: engine.places.clone(),
            alive: engine.alive.clone(),
            job: String::new(),
        };
        let started = serde_json::to_string(&started).unwrap_or_default();
        let approved: Vec<String> = self.order.approved.iter().map(|text| passed_digest(text)).collect();
        // Own engines name the job themselves, or it is the process.
        let job = engine.preset.map_or("$$", |preset| preset.job);
        let job = if place.is_empty() { job.to_owned() } else { format!("{}/{job}", shell_word(place)) };
        let mut lines = vec![
            "#!/bin/sh".to_owned(),
            format!("# A worker of git-arborist. 'git arborist work --on {}' made this.", engine.name),
            "set -eu".to_owned(),
            format!("{APPROVED}={}", shell_word(&approved.join(" "))),
            format!("{ENGINE}={}", shell_word(&started)),
            format!(": \"${{{JOB}:={job}}}\""),
            format!("export {APPROVED} {ENGINE} {JOB}"),
            path.to_owned(),
            format!(
                "folder={}/{}/$(printf %s \"${JOB}\" | tr -c 'A-Za-z0-9._-' _)",
                engine.folder(),
                self.name
            ),
            "mkdir -p \"$folder\"".to_owned(),
            "cd \"$folder\"".to_owned(),
        ];
        if let Some(url) = &self.order.coordination {
            lines.push(format!("export ARBORIST_WORK_COORDINATION={}", shell_word(url)));
        }
        // Otherwise the output of workers at places would be lost.
        if engine.preset.map_or(!place.is_empty(), |preset| preset.writes_log) {
            lines.push("exec >>\"$folder.log\" 2>&1".to_owned());
        }
        let options = self.order.options.iter().map(|option| format!(" {}", shell_word(option)));
        lines.push(format!(
            "exec git-arborist-work --clone={} --branch={}{} </dev/null",
            shell_word(&self.order.url),
            shell_word(self.order.branch.as_str()),
            options.collect::<String>()
        ));
        lines.join("\n") + "\n"
    }
}

/// The variable with the content of [`StartedBy`] as JSON.
const ENGINE: &str = "ARBORIST_ENGINE";
/// The variable with the name of the worker's job.
pub(super) const JOB: &str = "ARBORIST_JOB";
/// How long an engine may take to say whether a job is alive.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest name of a job or a place.
const LONGEST_JOB_NAME: usize = 128;

/// A worker's job, as its claims name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineJob {
    /// The name of the engine.
    pub engine: String,
    /// The submission that it belongs to.
    pub submission: String,
    /// The name of the job. For engines with places: the place, a slash and the name there.
    pub job: String,
}

impl EngineJob {
    /// Whether its names can be used. They come from a remote that many can write to.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        [&self.engine, &self.submission, &self.job].into_iter().all(|name| is_plain_name(name))
    }
}

/// The engine that has started this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedBy {
    pub(super) engine: String,
    pub(super) submission: String,
    /// The places of the submission, if the engine has places.
    pub(super) places: Vec<String>,
    /// The command that says whether a job is alive.
    pub(super) alive: Option<String>,
    #[serde(skip)]
    pub(super) job: String,
}

impl StartedBy {
    /// Reads it from the environment. `None` if no engine has started this process.
    #[must_use]
    pub fn find() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let started: Self = serde_json::from_str(&variable(ENGINE)?).ok()?;
        let started = Self { job: variable(JOB)?, ..started };
        started.job().is_plain().then_some(started)
    }

    /// The job of this process.
    #[must_use]
    pub fn job(&self) -> EngineJob {
        EngineJob { engine: self.engine.clone(), submission: self.submission.clone(), job: self.job.clone() }
    }

    /// Whether the engine can be asked about a job: only about those of the same submission. An engine of the same name
    /// may be another one elsewhere, which would not know the job.
    #[must_use]
    pub fn knows(&self, other: &EngineJob) -> bool {
        let place = other.job.rsplit_once('/').map(|(place, _)| place);
        let is_placed = self.places.is_empty()
            || place.is_some_and(|place| self.places.iter().any(|known| known == place));
        other.is_plain() && other.engine == self.engine && other.submission == self.submission && is_placed
    }

    /// Whether the engine says that a job is gone. If it cannot be asked, or says anything else, this is false.
    #[must_use]
    pub fn is_gone(&self, other: &EngineJob, cancel: &Cancel) -> bool {
        // The engine has started this job again, so it has ended before.
        if self.job() == *other {
            return true;
        }
        let Some(template) = self.alive.as_ref().filter(|_| self.knows(other)) else { return false };
        let Ok(text) = fill_job(template, &other.job, !self.places.is_empty()) else { return false };
        let program = Program::located("sh").args(["-c", &text]);
        let limits = Limits { whole: Some(STATUS_TIMEOUT), ..Limits::default() };
        let ended = Supervised::new(program).limits(limits).until(cancel).run(|_| ());
        ended.ending.is_success() && ended.stdout.text.trim() == "gone"
    }
}

/// Fills a command that is about one job.
pub(super) fn fill_job(template: &str, job: &str, has_places: bool) -> Result<String, UnknownPlaceholder> {
    let (place, inner) = job.rsplit_once('/').filter(|_| has_places).unwrap_or(("", job));
    fill(template, |name| match name {
        "job" => Some(shell_word(inner)),
        "place" if has_places => Some(shell_word(place)),
        _ => None,
    })
}

/// The name of a job as part of a file name, as the script of a worker makes it.
pub(super) fn job_file(job: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    job.chars().map(plain).collect()
}

/// Whether a name of a job or place can be used in a command without being taken for something else.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
    !name.is_empty() && name.len() <= LONGEST_JOB_NAME && !name.starts_with('-') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_of_the_same_submission_are_queried_and_only_an_exact_gone_counts() {
        let started = |alive: &str, places: &[&str]| StartedBy {
            engine: "e".into(),
            submission: "s".into(),
            places: places.iter().map(|place| (*place).to_owned()).collect(),
            alive: Some(alive.to_owned()),
            job: "1".into(),
        };
        let job = |submission: &str, job: &str| EngineJob {
            engine: "e".into(),
            submission: submission.into(),
            job: job.into(),
        };
        let is_gone = |by: &StartedBy, job: &EngineJob| by.is_gone(job, &Cancel::new());
        assert!(is_gone(&started("test {job} = 2 && echo gone", &[]), &job("s", "2")));
        assert!(is_gone(&started("echo alive", &[]), &job("s", "1")), "it was started again");
        for (alive, submission, name) in [
            ("echo gone", "other", "2"),
            ("echo gone", "s", "-2"),
            ("echo gone", "s", "2;x"),
            ("echo gone; exit 1", "s", "2"),
            ("echo going", "s", "2"),
            ("no-such-program", "s", "2"),
        ] {
            assert!(!is_gone(&started(alive, &[]), &job(submission, name)), "{alive} {name}");
        }
        let placed = started("test {place}-{job} = a-2 && echo gone", &["a"]);
        assert!(is_gone(&placed, &job("s", "a/2")));
        assert!(!placed.knows(&job("s", "b/2")));
    }
}
