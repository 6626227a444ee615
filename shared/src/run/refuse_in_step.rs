//! Refuses commands that a step of a run starts. A command that starts a run, lands tasks or resets them would change
//! refs that the outer run is using, and would let the agent choose its own reviewer.

use crate::{
    failure::{Exit, Failure},
    git::Repository,
    process::may_be_in_step,
};

/// Refuses a writing command if this process was started by a step of a run of the same repository.
pub fn refuse_in_step(repository: &Repository) -> Result<(), Failure> {
    if !may_be_in_step() {
        return Ok(());
    }
    let Some(driver) = repository.find_outer_driver() else { return Ok(()) };
    // A process in another PID namespace may find only a lock without a name.
    let who = if driver.pid == 0 { "another process".into() } else { format!("process {}", driver.pid) };
    let what =
        format!("this command cannot run inside a step of a run ({who} is running in this repository)");
    Err(Failure::new(Exit::Person, what)
        .hint("a step can only read the state of the run, with: git arborist state"))
}

/// Like [`refuse_in_step`], but for a command that has not opened its repository yet. Outside of a repository there is nothing to refuse;
/// the command itself reports that.
pub fn refuse_here_in_step() -> Result<(), Failure> {
    if !may_be_in_step() {
        return Ok(());
    }
    match Repository::discover() {
        Ok(repository) => refuse_in_step(&repository),
        Err(_) => Ok(()),
    }
}
