//! Fetches the logs of workers from the machines on which they are.

use super::{
    COMMAND_TIMEOUT, Engine, EngineError,
    manifest::fill,
    script::{is_plain_name, job_file},
};
use crate::{
    message::one_line,
    process::{Cancel, Limits, Program, Supervised, shell_word},
};

/// How many characters of a log are fetched: its end.
const LONGEST_LOG: usize = 1_000_000;
/// How many jobs one job may consist of.
const MOST_JOBS: usize = 1_000;

/// The end of the log of a worker. Agents may have written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLog {
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether its beginning is missing.
    pub is_cut: bool,
}

impl Engine {
    /// Whether it has a command that prints logs.
    #[must_use]
    pub fn has_logs(&self) -> bool {
        self.logs.is_some()
    }

    /// Whether it can be asked about a job: not if the user has named other places.
    #[must_use]
    pub fn reaches(&self, job: &str) -> bool {
        let place = job.rsplit_once('/').map(|(place, _)| place);
        self.places.is_empty()
            || place.is_some_and(|place| self.places.iter().any(|known| known.as_str() == place))
    }

    /// The name of a log file for a job.
    #[must_use]
    pub fn log_name(job: &str) -> String {
        format!("{}.log", job_file(job))
    }

    /// The jobs that have a log each: the tasks of an array, the pods of a Job, or the job itself.
    pub fn list_jobs(&self, job: &str, cancel: &Cancel) -> Result<Vec<String>, EngineError> {
        let job = self.require_job(job)?;
        if self.logs.is_none() {
            return Err(EngineError::no_command(&self.name, "logs"));
        }
        let Some(template) = &self.jobs else { return Ok(vec![job]) };
        let printed = self.ask_about("jobs", template, &job, cancel)?;
        // The parts are at the place of the job. A part that names another one would choose the host that is called.
        let place = job.rsplit_once('/').filter(|_| !self.places.is_empty()).map(|(place, _)| place);
        let is_part = |part: &&str| is_plain_name(part) && (self.places.is_empty() || !part.contains('/'));
        let parts = printed.text.lines().map(str::trim).filter(is_part).take(MOST_JOBS);
        let placed = |part: &str| place.map_or_else(|| part.to_owned(), |place| format!("{place}/{part}"));
        let parts: Vec<String> = parts.map(placed).collect();
        Ok(if parts.is_empty() { vec![job] } else { parts })
    }

    /// Fetches the log of a job.
    pub fn fetch_log(&self, job: &str, cancel: &Cancel) -> Result<WorkerLog, EngineError> {
        let job = self.require_job(job)?;
        let template = self.logs.as_ref();
        let template = template.ok_or_else(|| EngineError::no_command(&self.name, "logs"))?;
        self.ask_about("logs", template, &job, cancel)
    }

    /// Runs a command about a job. Its output can be long, and the command can hang.
    fn ask_about(
        &self,
        key: &'static str,
        template: &str,
        job: &str,
        cancel: &Cancel,
    ) -> Result<WorkerLog, EngineError> {
        let (place, inner) = match self.places.is_empty() {
            true => (None, job),
            false => job.rsplit_once('/').map_or((None, job), |(place, inner)| (Some(place), inner)),
        };
        let text = fill(template, |name| match name {
            "job" => Some(shell_word(inner)),
            "place" => place.map(shell_word),
            "dir" => Some(self.folder()),
            "command" => Some(shell_word(&self.print_command(job))),
            _ => None,
        });
        let text = text.map_err(|error| self.unknown_placeholder(key, error))?;
        let limits = Limits { whole: Some(COMMAND_TIMEOUT), ..Limits::default() };
        let program = Program::located("sh").args(["-c", &text]);
        let ended = Supervised::new(program).limits(limits).until(cancel).tail(LONGEST_LOG).run(|_| ());
        if ended.ending.is_success() {
            return Ok(WorkerLog { text: ended.stdout.text, is_cut: ended.stdout.cut });
        }
        let last = ended.stderr.text.lines().map(str::trim).rfind(|line| !line.is_empty());
        let why = one_line(&last.map_or_else(|| ended.ending.to_string(), str::to_owned));
        Err(EngineError::NoAnswer { engine: self.name.clone(), key, job: job.to_owned(), why })
    }

    /// The shell command that prints the log of a job on the machine of its worker: the newest one of this name, because
    /// the names of processes are used again. Links are not followed.
    fn print_command(&self, job: &str) -> String {
        let name = job_file(job);
        let lines = [
            "log=".to_owned(),
            format!("for file in {}/*/{name}.log; do", self.folder()),
            "  if [ -f \"$file\" ] && [ ! -L \"$file\" ]; then".to_owned(),
            "    if [ -z \"$log\" ] || [ \"$file\" -nt \"$log\" ]; then log=$file; fi".to_owned(),
            "  fi".to_owned(),
            "done".to_owned(),
            format!("if [ -z \"$log\" ]; then echo 'there is no log of job {job}' >&2; exit 1; fi"),
            // A character has up to four bytes.
            format!("exec tail -c {} \"$log\"", 4 * LONGEST_LOG),
        ];
        lines.join("\n")
    }
}
