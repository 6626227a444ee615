//! What people can do if a run cannot start or continue: the hints of [`GardenerError`](super::GardenerError).

use super::{LostBranch, RedCause, TypedOptions, UntriedOutside};
use crate::{
    history::{Run, State, TaskHistory},
    name::{BranchName, SessionId, TaskId},
    process::shell_word,
    queue::{LandingCommand, ParkingObstacle, advice_to_commit_resolved, advice_to_unpark, bring_back},
};

pub(super) fn advice_on_lost_branch(LostBranch { branch, tip, .. }: &LostBranch) -> String {
    match tip {
        Some(tip) => bring_back(branch, *tip),
        None => format!("find its last commit there, then: git branch '{branch}' <commit>"),
    }
}

pub(super) fn advice_on_other_plan(path: &str) -> String {
    let path = shell_word(path);
    format!(
        "continue the run without --tree, or start a new one: git arborist gardener --new-run --tree {path}\nif the plan was moved there, accept it with --accept-changes"
    )
}

pub(super) fn advice_to_run_all(has_failed: bool, options: &TypedOptions) -> String {
    let TypedOptions { common, lanes, .. } = options;
    match has_failed {
        true => format!(
            "to try failed tasks again and run all others in order: git arborist gardener --retry-failed{common}{lanes}"
        ),
        false => format!("to run all tasks in order: git arborist gardener{common}{lanes}"),
    }
}

pub(super) fn advice_on_finished_tasks(path: Option<&str>) -> String {
    let Some(path) = path else { return "to do all tasks again, use --new-run".to_owned() };
    format!(
        "to skip finished tasks, run: git arborist plan --tick {path} && git commit -m 'Tick finished tasks' {path}\nto do all tasks again, use --new-run"
    )
}

pub(super) fn advice_on_parked(
    branch: &BranchName,
    obstacle: Option<&ParkingObstacle>,
    options: &TypedOptions,
) -> String {
    let advice = advice_to_unpark(branch, obstacle, "git arborist merge run");
    let (selection, common) = (&options.selection, &options.common);
    format!(
        "{advice}\nor leave the landing parked, and run: git arborist gardener --isolate{selection}{common}"
    )
}

/// The command that continues a task on its own branch: together with the others that have one, if there are any.
#[must_use]
pub fn continue_in_lane(run: &Run, task: &TaskId) -> String {
    let is_begun = |history: &&TaskHistory| !history.is_landed && history.state() != State::Complete;
    match run.tasks.iter().filter(is_begun).count() {
        0 | 1 => format!("git arborist gardener --isolate --only {task}"),
        jobs => format!("git arborist gardener --jobs {jobs}"),
    }
}

/// What to do if only the sandbox makes the tests fail.
const LEAVE_SANDBOX: &str = "allow what the tests need, or run them without the sandbox: git config arborist.steps.test.sandbox.mode off";
/// The command that turns the sandbox off for the tests.
const WITHOUT_SANDBOX: &str = "git config arborist.steps.test.sandbox.mode off";

/// How to find out whether only the sandbox makes the tests fail, and what to do then.
fn advice_to_try_outside((untried, command): (&UntriedOutside, &str)) -> String {
    let command = shell_word(command);
    let denials: String = untried.denials.iter().map(|note| format!("\n{note}")).collect();
    format!(
        "{denials}\nthe tests were not tried outside of the sandbox, because {}\nto see what they do without a sandbox, run them yourself: sh -c {command}\nif only the sandbox makes them fail, {LEAVE_SANDBOX}",
        untried.reason
    )
}

/// What to do while git is in the middle of something in the checkout.
pub(super) const ADVICE_ON_OPERATION: &str =
    "finish or cancel it, as 'git status' says\nor give the run its own branch: --session-branch";

/// Which of several plans to name.
pub(super) fn advice_on_several_plans(plans: &[String]) -> String {
    let first = plans.first().map(|plan| shell_word(plan)).unwrap_or_default();
    format!("name one of them, for example with: --tree {first}")
}

/// What to do if the test command changed what it may not change.
pub(super) fn advice_on_meddling_tests(log: &str) -> String {
    format!(
        "the change was undone, and no agent was called; see the output of the test command with: cat {log}"
    )
}

/// What to do if the tests fail only in the sandbox, which refused this.
pub(super) fn advice_on_denials(denials: &[String]) -> String {
    if denials.is_empty() {
        return format!("the output of the tests does not say what the sandbox refused\n{LEAVE_SANDBOX}");
    }
    let notes: String = denials.iter().map(|note| format!("{note}\n")).collect();
    format!("{notes}or run the tests without the sandbox: {WITHOUT_SANDBOX}")
}

/// What to do if the tests fail before the first task.
pub(super) fn baseline_advice(
    is_elsewhere: bool,
    names_tests: bool,
    cause: RedCause,
    untried: Option<(&UntriedOutside, &str)>,
) -> String {
    let place = "\nif the tests pass in your checkout, the new worktree lacks a file or a package: see the settings worktree.copy and worktree.setup";
    let place = if is_elsewhere { place } else { "" };
    let advice = match cause {
        RedCause::NoProgram => {
            "install the program, or correct the test command\nif a task creates this program, add --allow-red"
        }
        RedCause::NoFile => {
            "create it, or correct the test command\nif a task creates this file, add --allow-red"
        }
        RedCause::TimeLimit => {
            "make the tests faster, or allow more seconds: git config arborist.timeouts.test 3600"
        }
        RedCause::Tests if names_tests => {
            "fix the tests or the command first\n--allow-red starts anyway; then a task fails only if it breaks a test that passed before"
        }
        RedCause::Tests => {
            "fix the tests or the command first\n--allow-red would not help, because the output does not name the failed tests: every task would fail until the command succeeds"
        }
    };
    let outside = untried.map(advice_to_try_outside).unwrap_or_default();
    format!("{advice}{place}{outside}")
}

/// How to land a task that is complete.
pub(super) fn advice_to_land((task, branch): (&TaskId, &BranchName), command: LandingCommand) -> String {
    // The branch of a session is usually not the one that is checked out.
    let run = branch.run_of_task_branch().filter(|run| run.as_str().starts_with("arborist/"));
    let scope = run.map(|run| format!(" --scope {run}")).unwrap_or_default();
    command.advice(task, &scope)
}

/// How to start a run with uncommitted changes.
pub(super) fn advice_to_commit(
    has_done: bool,
    needed: &[String],
    session: Option<&(SessionId, String)>,
) -> String {
    let place = session.map(|(_, place)| place);
    let own =
        if has_done || place.is_some() { "" } else { "\nor give the run its own branch: --session-branch" };
    let at = place.map(|place| format!(" -C {}", shell_word(place))).unwrap_or_default();
    let except: String =
        needed.iter().map(|path| format!(" {}", shell_word(&format!(":!/{path}")))).collect();
    let all = if needed.is_empty() { "" } else { " -- :/" };
    format!(
        "commit them, or stash them with: git{at} stash -u{all}{except}\nor start anyway with --allow-dirty, which leaves them uncommitted{own}"
    )
}

/// How to start a run in a checkout with unresolved conflicts.
pub(super) fn advice_to_resolve(
    files: &[String],
    has_done: bool,
    session: Option<&(SessionId, String)>,
) -> String {
    let place = session.map(|(_, place)| place);
    let own =
        if has_done || place.is_some() { "" } else { "\nor give the run its own branch: --session-branch" };
    let at = place.map(|place| format!(" -C {}", shell_word(place))).unwrap_or_default();
    format!("{}{own}", advice_to_commit_resolved(&at, files))
}

/// How to start a run beside an untracked repository.
pub(super) fn advice_to_ignore(path: &str) -> String {
    format!(
        "if agents may change it, let git ignore it: echo '/{path}/' >> .git/info/exclude\n\
         or give the run its own branch: --session-branch"
    )
}
