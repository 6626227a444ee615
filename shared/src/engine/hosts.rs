//! Starts workers at places that are reached one by one, as hosts are by SSH.
//!
//! Every place is looked at first: it needs git and this version of the suite. If the suite is missing there and the
//! platform is the same, its programs are copied. No worker is started before all places are ready.

use std::{
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use super::{COMMAND_TIMEOUT, EngineError, Submission, run_command};
use crate::{
    message::one_line,
    process::{Cancel, shell_word},
    workspace::map_parallel,
};

/// How long it may take to copy a program.
const COPYING: Duration = Duration::from_secs(900);
/// The programs of the suite that a worker needs.
const PROGRAMS: [&str; 3] = ["git-arborist", "git-arborist-work", "git-arborist-tools"];
/// Where copies of the suite are, in the home folder.
const COPIES: &str = ".cache/git-arborist/bin";
/// The version of the suite, as its first program prints it.
const VERSION: &str = concat!("git-arborist ", env!("CARGO_PKG_VERSION"));

impl Submission<'_> {
    /// How many workers each place gets.
    pub(super) fn placed_workers(&self) -> impl Iterator<Item = (&str, usize)> {
        let places = &self.engine.places;
        let (each, rest) = (self.workers / places.len(), self.workers % places.len());
        let count = move |number: usize| each + usize::from(number < rest);
        let placed = places.iter().enumerate().map(move |(number, place)| (place.as_str(), count(number)));
        placed.filter(|(_, count)| *count > 0)
    }

    /// Starts the workers at all places. Returns their jobs.
    pub(super) fn start_at_places(&self, cancel: &Cancel) -> Result<Vec<String>, EngineError> {
        let placed: Vec<(&str, usize)> = self.placed_workers().collect();
        let paths = map_parallel(&placed, |(place, _)| self.make_ready(place, cancel));
        let paths: Vec<String> = paths.into_iter().collect::<Result<_, _>>()?;
        let ready: Vec<(&str, usize, String)> =
            placed.into_iter().zip(paths).map(|((place, count), path)| (place, count, path)).collect();
        let started = map_parallel(&ready, |(place, count, path)| self.start_at(place, *count, path, cancel));
        let is_started = |started: &&Result<Vec<String>, EngineError>| started.is_ok();
        let jobs: Vec<String> = started.iter().filter(is_started).flatten().flatten().cloned().collect();
        match started.into_iter().find_map(Result::err) {
            Some(EngineError::NotStarted { place, why, .. }) => {
                Err(EngineError::NotStarted { place, why, started: jobs })
            }
            Some(other) => Err(other),
            None => Ok(jobs),
        }
    }

    /// Runs a shell command at a place.
    fn run_at(
        &self,
        place: &str,
        command: &str,
        input: &[u8],
        cancel: &Cancel,
    ) -> Result<String, EngineError> {
        let text = self.fill_submit(Some((place, command)))?;
        run_command(&self.engine.name, "submit", &text, input, COMMAND_TIMEOUT, cancel)
            .map_err(|error| at_place(place, error))
    }

    /// Makes sure that a place has git and the suite. Returns the line that puts the suite on `PATH` there.
    fn make_ready(&self, place: &str, cancel: &Cancel) -> Result<String, EngineError> {
        let unusable = |why: String| EngineError::Unusable { place: place.to_owned(), why: one_line(&why) };
        let missing = |error: std::io::Error| unusable(format!("the programs here cannot be read: {error}"));
        let key = copy_key(&self.order.suite).map_err(missing)?;
        let copy = format!("\"$HOME\"/{COPIES}/{key}");
        let probe = format!(
            "uname -sm; command -v git >/dev/null && echo git; PATH={copy}:$PATH; \
             command -v git-arborist-work >/dev/null && git-arborist --version; true"
        );
        let output = self.run_at(place, &probe, b"", cancel)?;
        let mut lines = output.lines().map(str::trim);
        let platform = lines.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = lines.collect();
        if !rest.contains(&"git") {
            return Err(unusable("there is no git".into()));
        }
        let path = format!("PATH={copy}:$PATH");
        if rest.contains(&VERSION) {
            return Ok(path);
        }
        let own = run_command(&self.engine.name, "submit", "uname -sm", b"", COMMAND_TIMEOUT, cancel)?;
        if own.trim() != platform {
            let why = format!("{VERSION} is not installed there, and its platform ({platform}) is not ours");
            return Err(unusable(why));
        }
        for name in PROGRAMS {
            let command = format!(
                "umask 077; mkdir -p {copy} && cd {copy} && cat >{name}.$$ && chmod 700 {name}.$$ && mv -f {name}.$$ {name}"
            );
            let file = self.order.suite.join(name).display().to_string();
            let text = format!("(\n{}\n) <{}", self.fill_submit(Some((place, &command)))?, shell_word(&file));
            run_command(&self.engine.name, "submit", &text, b"", COPYING, cancel)
                .map_err(|error| at_place(place, error))?;
        }
        let output = self.run_at(place, &format!("{path} git-arborist --version"), b"", cancel);
        match output {
            Ok(output) if output.trim() == VERSION => Ok(path),
            Ok(output) => Err(unusable(format!("the copy of {VERSION} says: {output}"))),
            Err(error) => Err(unusable(format!("the copy of {VERSION} does not run there: {error}"))),
        }
    }

    /// The command that starts workers at a place, and its standard input.
    pub(super) fn start_command(
        &self,
        place: &str,
        count: usize,
        path: &str,
    ) -> Result<(String, String), EngineError> {
        let folder = format!("{}/{}", self.engine.folder(), shell_word(&self.name));
        // 'nohup' lets them survive the end of the connection. Nothing of them may hold it open.
        let command = format!(
            "umask 077; mkdir -p {folder} && cd {folder} && cat >worker.sh && \
             for n in $(seq {count}); do nohup sh ./worker.sh >/dev/null 2>&1 </dev/null & echo $!; done"
        );
        Ok((self.fill_submit(Some((place, &command)))?, self.script(place, path)))
    }

    /// Starts workers at a place. Returns their jobs.
    fn start_at(
        &self,
        place: &str,
        count: usize,
        path: &str,
        cancel: &Cancel,
    ) -> Result<Vec<String>, EngineError> {
        let (text, script) = self.start_command(place, count, path)?;
        let output =
            run_command(&self.engine.name, "submit", &text, script.as_bytes(), COMMAND_TIMEOUT, cancel);
        let output = output.map_err(|error| match error {
            EngineError::Failed { why, .. } => {
                EngineError::NotStarted { place: place.to_owned(), why, started: Vec::new() }
            }
            other => other,
        })?;
        Ok(output.lines().map(|process| format!("{place}/{}", process.trim())).collect())
    }
}

/// Names the place of a failure.
fn at_place(place: &str, error: EngineError) -> EngineError {
    match error {
        EngineError::Failed { why, .. } => EngineError::Unusable { place: place.to_owned(), why },
        other => other,
    }
}

/// Names the copy of these programs: their version, and what tells two builds of one version apart.
fn copy_key(suite: &Path) -> std::io::Result<String> {
    let facts = std::fs::metadata(suite.join(PROGRAMS[1]))?;
    let changed = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Ok(format!("{}-{}-{}", env!("CARGO_PKG_VERSION"), facts.len(), changed.as_secs()))
}
