//! The script that is a worker.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{
    EngineError, Submission,
    started::{ENGINE, JOB, StartedBy},
};
use crate::{
    consent::{APPROVED, MOST_APPROVED, passed_digest},
    name::{BranchName, digest},
    process::{ProcessId, shell_word},
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
        if engine.preset.is_some_and(|preset| preset.writes_log) {
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
