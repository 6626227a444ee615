//! The command that continues a task. The state of a task and hints print it. The summary of a run knows what the user
//! has typed, also options that are not recorded, so `account` builds its own.

use std::{cell::OnceCell, collections::BTreeSet, path::PathBuf};

use super::{
    planned::id_of_words,
    recorded_options::{TEST, is_of_lanes, option_approvals, recorded_words},
    request::{garden_words, test_approval},
};
use crate::{
    consent,
    gardener::continue_in_lane,
    git::Repository,
    history::{Run, State},
    name::{BranchName, SessionId, TaskId},
    process::shell_word,
    progress::NodeProgress,
    queue::{LandingCommand, Ticket},
    session::{RecordedOptions, SessionReader},
};

/// The options that choose who works and who reviews.
const OF_AGENTS: [&str; 7] =
    ["runner", "model", "implement-runner", "implement-model", "review-runner", "review-model", "fallback"];

/// How the run of a task is continued from the current checkout.
#[derive(Debug)]
pub struct Continuation<'a> {
    repository: &'a Repository,
    run: &'a Run,
    /// The options of the run. They are read only if they are needed.
    options: OnceCell<RecordedOptions>,
    /// The run's branch, if another one is checked out.
    elsewhere: Option<&'a BranchName>,
    /// The worktree in which that branch is checked out, if it is. It is looked for only if it is needed.
    place: OnceCell<Option<PathBuf>>,
    /// The session, if that branch was created for it.
    session: Option<&'a SessionId>,
}

impl<'a> Continuation<'a> {
    /// How to continue `run` from the checkout of `repository`.
    #[must_use]
    pub fn of(repository: &'a Repository, run: &'a Run) -> Self {
        let branch = &run.scope.branch;
        let elsewhere = Some(branch).filter(|branch| repository.head.branch.as_ref() != Some(*branch));
        let session = run.start.as_ref().map(|start| &start.session);
        let session = session.filter(|_| elsewhere.is_some() && run.has_session_branch());
        Self { repository, run, options: OnceCell::new(), elsewhere, place: OnceCell::new(), session }
    }

    /// The option that selects the run if another branch is checked out, with a space before it, or empty.
    #[must_use]
    pub fn scope(&self) -> String {
        self.elsewhere.map(|branch| format!(" --scope {branch}")).unwrap_or_default()
    }

    /// The commands before another one that must run where the run's branch is checked out. git refuses to switch to a
    /// branch that another worktree has checked out.
    fn switch(&self) -> String {
        let Some(branch) = self.elsewhere else { return String::new() };
        let place = self.place.get_or_init(|| {
            let places = self.repository.checkouts_of(branch).unwrap_or_default();
            places.into_iter().next()
        });
        match place {
            Some(place) => format!("cd {} && ", shell_word(&place.to_string_lossy())),
            None => format!("git switch {branch} && "),
        }
    }

    /// The command for a task on which no run is working; `None` if nothing is left to do, or it waits for other tasks.
    #[must_use]
    pub fn next(&self, node: &NodeProgress<'_>, ticket: Option<&Ticket>) -> Option<String> {
        let is_of_words = is_of_words(node);
        if !node.is_leaf() || (node.is_stray && !is_of_words) {
            return None;
        }
        let task = node.id;
        let scope = self.scope();
        match node.state {
            State::Forked | State::Reverted => Some(format!("git arborist reset {task}{scope}")),
            State::Complete if node.is_unlanded() => {
                let command = ticket.map_or(LandingCommand::Land, |ticket| ticket.state.command());
                Some(command.text(task, &scope))
            }
            State::Failed => Some(self.run_again(node)),
            state if node.is_ready() || (is_of_words && !state.is_done()) => Some(self.run_again(node)),
            _ => None,
        }
    }

    fn run_again(&self, node: &NodeProgress<'_>) -> String {
        let task = node.id;
        let is_interrupted = node.needs_retry();
        let is_retry = is_interrupted || node.state == State::Failed;
        if let Some(command) = self.share(if is_retry { " --retry-failed" } else { "" }) {
            return command;
        }
        if let Some(session) = self.session {
            let retry = if is_interrupted { " -- --retry-failed" } else { "" };
            return format!("git arborist session resume {session}{retry}");
        }
        let retry = if is_retry { " --retry-failed" } else { "" };
        let is_unlanded = node.history.is_some_and(|history| !history.is_landed);
        let command = match is_unlanded {
            _ if is_of_words(node) => garden_words(node.name),
            true => continue_in_lane(self.run, task),
            false => format!("git arborist garden {task}"),
        };
        let switch = self.switch();
        format!("{switch}{command}{retry}{}", self.typed_options(|name| !is_of_lanes(name)))
    }

    /// The command that continues the whole run with its options, and with these switches.
    #[must_use]
    pub fn continue_run(&self, switches: &str) -> String {
        if let Some(command) = self.share(switches) {
            return command;
        }
        if let Some(session) = self.session {
            let switches = if switches.is_empty() { String::new() } else { format!(" --{switches}") };
            return format!("git arborist session resume {session}{switches}");
        }
        let switch = self.switch();
        format!("{switch}git arborist gardener{switches}{}", self.typed_options(|_| true))
    }

    /// The command that runs one task in the checkout, with the options of the run. A failed one is tried again.
    #[must_use]
    pub fn run_task(&self, task: &TaskId) -> String {
        let reset = self.reset_forked(&[task]);
        if let Some(command) = self.share(" --retry-failed") {
            return reset + &command;
        }
        let switch = self.switch();
        let has_failed = self.run.state_of(task) == State::Failed;
        let retry = if has_failed { " --retry-failed" } else { "" };
        let options = self.typed_options(|name| !is_of_lanes(name));
        format!("{reset}{switch}git arborist garden {task}{retry}{options}")
    }

    /// The command before another one that refuses a forked task: the forked ones of these tasks start over.
    fn reset_forked(&self, tasks: &[&TaskId]) -> String {
        let is_forked = |task: &&&TaskId| self.run.state_of(task) == State::Forked;
        let forked: Vec<&str> = tasks.iter().filter(is_forked).map(|task| task.as_str()).collect();
        if forked.is_empty() {
            return String::new();
        }
        format!("git arborist reset {}{} && ", forked.join(" "), self.scope())
    }

    /// How to let a run take these tasks for settled, whose work was landed without a review. A tick in the plan only
    /// counts for a task without history: a task that failed or was reset after its box was ticked has to be done
    /// again. It can be left out.
    #[must_use]
    pub fn accept_by_plan(&self, tasks: &[&TaskId]) -> Vec<String> {
        let has_history =
            |task: &&TaskId| self.run.find(task).is_some_and(|history| history.state.commit.is_some());
        let (begun, untouched): (Vec<&TaskId>, Vec<&TaskId>) = tasks.iter().copied().partition(has_history);
        // A run that has started uses its frozen plan.
        let accept = match self.run.start {
            Some(_) => {
                let reset = self.reset_forked(tasks);
                format!(", then run: {reset}{}", self.continue_run(" --accept-changes"))
            }
            None => String::new(),
        };
        let is_mixed = !begun.is_empty() && !untouched.is_empty();
        let words = |tasks: &[&TaskId], (one, many): (&str, &str)| {
            let them = if tasks.len() == 1 { one } else { many };
            let names: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
            let names = if is_mixed { format!("{}: ", names.join(", ")) } else { String::new() };
            (!tasks.is_empty()).then(|| format!("{names}{them} in the plan{accept}"))
        };
        let tick = ("to count it as done, tick its box", "to count them as done, tick their boxes");
        let cross = (
            "to leave it as it is, change its box to [-]",
            "to leave them as they are, change their boxes to [-]",
        );
        let hints = [words(&untouched, tick), words(&begun, cross)];
        hints.into_iter().flatten().collect()
    }

    /// The command that runs one task in its own worktree, with the options of the run and with these switches.
    #[must_use]
    pub fn run_in_lane(&self, task: &TaskId, switches: &str) -> String {
        if let Some(command) = self.share(switches) {
            return command;
        }
        let options = self.typed_options(|name| !is_of_lanes(name));
        format!("{}git arborist gardener --isolate --only {task}{switches}{options}", self.switch())
    }

    /// The command that continues the run, with these switches, if its plan is shared with workers on other machines.
    fn share(&self, switches: &str) -> Option<String> {
        let switch = self.switch();
        let options = || self.typed_options(|name| name == "jobs" || !is_of_lanes(name));
        self.run.is_shared().then(|| format!("{switch}git arborist work{switches}{}", options()))
    }

    /// The options of the run that the user gave in this repository, as they are typed.
    fn typed_options(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut asked = self.options.get_or_init(|| self.find_given_options().unwrap_or_default()).clone();
        asked.options.retain(|name, _| is_wanted(name));
        asked.withheld.retain(|name| is_wanted(name));
        recorded_words(&asked)
    }

    /// The options of the run that the user gave in this repository. Any process can write the record of a session, so
    /// the values of others are not proposed.
    fn find_given_options(&self) -> Option<RecordedOptions> {
        let session_reader = SessionReader::new(self.repository);
        let newest = session_reader.newest(&self.run.start.as_ref()?.session).ok()??;
        let mut asked: RecordedOptions = session_reader.recorded_options_of(&newest).ok()?;
        let recorded: Vec<String> = asked.options.keys().cloned().collect();
        asked.options.retain(|name, value| {
            let approvals = match name.as_str() {
                TEST => BTreeSet::from([test_approval(self.repository, value)]),
                _ => option_approvals([(name, &*value)].into_iter()),
            };
            consent::unseen(&self.repository.common_dir, &approvals).is_empty()
        });
        // Without the options that choose an agent, the command would silently use another one.
        let is_dropped =
            |name: &String| OF_AGENTS.contains(&name.as_str()) && !asked.options.contains_key(name);
        asked.withheld.extend(recorded.into_iter().filter(is_dropped));
        Some(asked)
    }
}

/// Whether the task was given as the text that history has as its name, so that the same text continues it.
fn is_of_words(node: &NodeProgress<'_>) -> bool {
    node.is_stray && id_of_words(node.name) == node.id.as_str()
}
