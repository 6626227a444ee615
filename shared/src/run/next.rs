//! The command that continues a task. The state of a task, the summary of a run and hints all print it.

use crate::{
    gardener::continue_apart,
    git::Repository,
    history::{Run, State},
    name::{BranchName, SessionId},
    progress::NodeProgress,
    queue::{LandingCommand, Ticket},
};

/// How the run of a task is continued from the current checkout.
#[derive(Debug)]
pub struct Continuation<'a> {
    run: &'a Run,
    /// The run's branch, if another one is checked out.
    elsewhere: Option<&'a BranchName>,
    /// The session, if that branch was created for it.
    session: Option<&'a SessionId>,
}

impl<'a> Continuation<'a> {
    /// How to continue `run` from the checkout of `repository`.
    #[must_use]
    pub fn of(repository: &Repository, run: &'a Run) -> Self {
        let branch = &run.scope.branch;
        let elsewhere = Some(branch).filter(|branch| repository.head.branch.as_ref() != Some(*branch));
        let session = run.start.as_ref().map(|start| &start.session);
        let session = session.filter(|_| elsewhere.is_some() && run.has_session_branch());
        Self { run, elsewhere, session }
    }

    /// The command for a task on which no run is working; `None` if nothing is left to do, or it waits for other tasks.
    #[must_use]
    pub fn next(&self, standing: &NodeProgress<'_>, ticket: Option<&Ticket>) -> Option<String> {
        if !standing.is_leaf() || standing.is_stray {
            return None;
        }
        let task = standing.id;
        let scope = self.elsewhere.map(|branch| format!(" --scope {branch}")).unwrap_or_default();
        match standing.state {
            State::Forked | State::Reverted => Some(format!("git arborist reset {task}{scope}")),
            State::Complete if standing.is_apart() => {
                let command = ticket.map_or(LandingCommand::Land, |ticket| ticket.standing.command());
                Some(command.text(task, &scope))
            }
            State::Failed => Some(self.run_again(standing)),
            _ if standing.is_ready => Some(self.run_again(standing)),
            _ => None,
        }
    }

    fn run_again(&self, standing: &NodeProgress<'_>) -> String {
        let task = standing.id;
        let is_interrupted = standing.needs_retry();
        if let Some(session) = self.session {
            let retry = if is_interrupted { " -- --retry-failed" } else { "" };
            return format!("git arborist session resume {session}{retry}");
        }
        let retry = if is_interrupted || standing.state == State::Failed { " --retry-failed" } else { "" };
        let is_apart = standing.history.is_some_and(|history| !history.is_landed);
        let command = match is_apart {
            true => continue_apart(self.run, task),
            false => format!("git arborist garden {task}"),
        };
        let switch = self.elsewhere.map(|branch| format!("git switch {branch} && ")).unwrap_or_default();
        format!("{switch}{command}{retry}")
    }
}
