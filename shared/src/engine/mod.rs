//! Engines start workers on other machines: Slurm, SSH, Kubernetes, or commands of the user.
//!
//! An [`Engine`] has four commands: `submit` starts workers, `alive` says whether one is still there, `cancel` ends one,
//! `logs` prints what one has written.
//! A worker is a small script that runs `git arborist work --clone`. It is passed to `submit` on standard input, because
//! it has the digests of the commands that the submitter has approved. The worker finds in its environment who started
//! it ([`StartedBy`]), and names the engine and its job in its claims.

mod error;
mod hosts;
mod logs;
mod manifest;
mod preset;
mod script;

pub use error::EngineError;
pub use logs::WorkerLog;
pub use script::{EngineJob, StartedBy};

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use manifest::{UnknownPlaceholder, fill};
use preset::EnginePreset;

use crate::{
    message::one_line,
    name::BranchName,
    process::{Cancel, Ending, Program, shell_word, within},
    settings::{Settings, Sourced},
};

/// How long a command of an engine may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// Where workers make their clones, unless the user names another folder.
const FOLDER: &str = ".cache/git-arborist/workers";

/// An engine, and the places that the user has named for it.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Its name.
    pub name: String,
    places: Vec<String>,
    preset: Option<&'static EnginePreset>,
    submit: String,
    alive: Option<String>,
    cancel: Option<String>,
    /// Lists the jobs that a job consists of.
    jobs: Option<String>,
    logs: Option<String>,
    dir: Option<String>,
    manifest: Option<String>,
    /// The commands and settings that come from files of the repository, one line each: the user has to approve them.
    pub commands_to_approve: BTreeSet<String>,
}

/// What workers are started with.
#[derive(Debug, Clone)]
pub struct WorkerOrder {
    /// The repository that they clone.
    pub url: String,
    /// The URL of another remote that has the claims.
    pub coordination: Option<String>,
    /// The branch of the run.
    pub branch: BranchName,
    /// The options of `git arborist work`.
    pub options: Vec<String>,
    /// The commands that the submitter has approved.
    pub approved: BTreeSet<String>,
    /// How many are started; `None` for one at each place.
    pub workers: Option<usize>,
    /// The folder with the programs of the suite.
    pub suite: PathBuf,
}

/// Workers that an engine has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedWorkers {
    /// How many.
    pub workers: usize,
    /// The jobs as `cancel` takes them.
    pub jobs: Vec<String>,
}

/// A submission that can be looked at before it is made.
#[derive(Debug, Clone)]
pub struct Submission<'a> {
    engine: &'a Engine,
    /// Tells it from other submissions.
    id: String,
    /// The name of its jobs.
    name: String,
    workers: usize,
    order: WorkerOrder,
    /// What the manifest has around the script.
    manifest: Option<String>,
}

impl Engine {
    /// Finds an engine by `NAME` or `NAME:PLACE,PLACE`.
    pub fn find(settings: &Settings, named: &str) -> Result<Self, EngineError> {
        let (name, places) = named.split_once(':').unwrap_or((named, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(EngineError::unknown(name, settings));
        }
        let preset = EnginePreset::find(name);
        let own = settings.engines.find(name);
        let find = |own: Option<&Option<Sourced<String>>>, built_in: Option<&str>| {
            let own = own.and_then(Option::as_ref).map(|own| own.value.clone());
            own.or_else(|| built_in.map(str::to_owned))
        };
        let Some(submit) = find(own.map(|own| &own.submit), preset.map(|preset| preset.submit)) else {
            return Err(EngineError::unknown(name, settings));
        };
        let all = own
            .map(|own| [&own.submit, &own.alive, &own.cancel, &own.jobs, &own.logs, &own.dir, &own.manifest]);
        let foreign = all.into_iter().flatten().flatten().filter(|value| value.is_tracked());
        let commands_to_approve =
            foreign.map(|Sourced { key, value, .. }| format!("{key}: {value}")).collect();
        // Whatever starts workers at a place can also print their logs there.
        let logs = find(own.map(|own| &own.logs), preset.map(|preset| preset.logs))
            .or_else(|| Some(submit.clone()).filter(|submit| submit.contains("{place}")));
        let engine = Self {
            name: name.to_owned(),
            places: places.split(',').filter(|place| !place.is_empty()).map(str::to_owned).collect(),
            preset,
            submit,
            alive: find(own.map(|own| &own.alive), preset.map(|preset| preset.alive)),
            cancel: find(own.map(|own| &own.cancel), preset.map(|preset| preset.cancel)),
            jobs: find(own.map(|own| &own.jobs), preset.and_then(|preset| preset.jobs)),
            logs,
            dir: find(own.map(|own| &own.dir), None),
            manifest: find(own.map(|own| &own.manifest), preset.and_then(|preset| preset.manifest)),
            commands_to_approve,
        };
        engine.require_places()?;
        Ok(engine)
    }

    /// Refuses places that the engine does not take, misses, or could take for options.
    fn require_places(&self) -> Result<(), EngineError> {
        let is_placed = self.submit.contains("{place}");
        if is_placed && self.places.is_empty() {
            return Err(EngineError::NoPlaces(self.name.clone()));
        }
        if !is_placed && !self.places.is_empty() {
            return Err(EngineError::Places(self.name.clone()));
        }
        match self.places.iter().find(|place| !script::is_plain_name(place)) {
            Some(place) => Err(EngineError::Place(one_line(place))),
            None => Ok(()),
        }
    }

    /// Prepares a submission. Nothing is started, but a manifest that is missing may be written.
    pub fn prepare<'a>(
        &'a self,
        top: &Path,
        order: WorkerOrder,
    ) -> Result<(Submission<'a>, BTreeSet<String>), EngineError> {
        let (id, name) = script::new_names(&order.branch);
        let (manifest, foreign) = self.load_manifest(top)?;
        let workers = order.workers.unwrap_or(self.places.len().max(1));
        Ok((Submission { engine: self, id, name, workers, order, manifest }, foreign))
    }

    /// Ends a job.
    pub fn cancel(&self, job: &str, cancel: &Cancel) -> Result<(), EngineError> {
        let template = self.cancel.as_ref();
        let template = template.ok_or_else(|| EngineError::no_command(&self.name, "cancel"))?;
        let job = self.require_job(job)?;
        let text = script::fill_job(template, &job, !self.places.is_empty());
        let text = text.map_err(|error| self.unknown_placeholder("cancel", error))?;
        run_command(&self.name, "cancel", &text, b"", COMMAND_TIMEOUT, cancel).map(drop)
    }

    /// A job that can be used in a command, with its host.
    fn require_job(&self, job: &str) -> Result<String, EngineError> {
        match script::is_plain_name(job) {
            true => self.placed_job(job),
            false => Err(EngineError::Job(one_line(job))),
        }
    }

    /// A job with its host. A job that names none is at the only host, if there is only one.
    fn placed_job(&self, job: &str) -> Result<String, EngineError> {
        match self.places.as_slice() {
            [] => Ok(job.to_owned()),
            _ if job.contains('/') => Ok(job.to_owned()),
            [place] => Ok(format!("{place}/{job}")),
            [first, ..] => {
                Err(EngineError::NoHost { job: job.to_owned(), example: format!("{first}/{job}") })
            }
        }
    }

    fn unknown_placeholder(
        &self,
        key: &'static str,
        UnknownPlaceholder(name): UnknownPlaceholder,
    ) -> EngineError {
        EngineError::Placeholder { engine: self.name.clone(), key, name }
    }

    /// The folder of workers, as a word of a shell command.
    fn folder(&self) -> String {
        self.dir.as_deref().map_or_else(|| format!("\"$HOME\"/{FOLDER}"), shell_word)
    }
}

impl Submission<'_> {
    /// The commands that submit it, each with its standard input.
    pub fn commands(&self) -> Result<Vec<(String, String)>, EngineError> {
        if self.engine.places.is_empty() {
            return Ok(vec![self.command()?]);
        }
        self.placed_workers().map(|(place, count)| self.start_command(place, count, "")).collect()
    }

    fn command(&self) -> Result<(String, String), EngineError> {
        let input = match &self.manifest {
            Some(manifest) => self.fill_manifest(manifest, &self.script("", ""))?,
            // The other machines may have the same folders.
            None => self.script(
                "",
                &format!("PATH=\"$PATH\":{}", shell_word(&self.order.suite.display().to_string())),
            ),
        };
        Ok((self.fill_submit(None)?, input))
    }

    /// Starts the workers.
    pub fn submit(&self, cancel: &Cancel) -> Result<SubmittedWorkers, EngineError> {
        let jobs = if self.engine.places.is_empty() {
            let (text, input) = self.command()?;
            let printed =
                run_command(&self.engine.name, "submit", &text, input.as_bytes(), COMMAND_TIMEOUT, cancel)?;
            // Slurm prints 'JOB;CLUSTER' for a cluster in a federation.
            let jobs = printed.lines().filter_map(|line| line.trim().split(';').next());
            jobs.filter(|job| script::is_plain_name(job)).map(str::to_owned).collect()
        } else {
            self.start_at_places(cancel)?
        };
        Ok(SubmittedWorkers { workers: self.workers, jobs })
    }

    /// Fills the command that submits.
    fn fill_submit(&self, place: Option<(&str, &str)>) -> Result<String, EngineError> {
        let filled = fill(&self.engine.submit, |name| match name {
            "workers" => Some(self.workers.to_string()),
            "name" => Some(shell_word(&self.name)),
            "branch" => Some(shell_word(self.order.branch.as_str())),
            "place" => place.map(|(place, _)| shell_word(place)),
            "command" => place.map(|(_, command)| shell_word(&format!("sh -c {}", shell_word(command)))),
            _ => None,
        });
        filled.map_err(|error| self.engine.unknown_placeholder("submit", error))
    }
}

/// Runs a command of an engine to its end and returns its output. What it starts in the background stays.
fn run_command(
    engine: &str,
    key: &'static str,
    text: &str,
    input: &[u8],
    patience: Duration,
    cancel: &Cancel,
) -> Result<String, EngineError> {
    let program = Program::located("sh").args(["-c", text]).without_git_variables().writes_no_worktree();
    let failed = |why: String| EngineError::Failed { engine: engine.to_owned(), key, why: one_line(&why) };
    let ended = within(patience, cancel, || program.finish_with(input));
    let ended = ended.map_err(|error| failed(error.to_string()))?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let complaint = ended.complaint();
    let last = complaint.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(failed(last.map_or_else(|| Ending::from(ended.status).to_string(), str::to_owned)))
}
