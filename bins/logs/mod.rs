//! `git arborist logs`: shows what agents said and what tests printed, as text.

mod printer;

pub(crate) use printer::print_utterance;

use std::{
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use arborist_core::{
    failure::{Exit, Failure},
    git::Repository,
    history::{CommitSource, Run},
    message::Step,
    name::{Attempt, BranchName, TaskId},
    plan::Plan,
    process::Cancel,
    record::{LogLink, StepLog, StepStatus},
    settings::Settings,
    workspace::Workspace,
};
use clap::{
    Parser,
    builder::{PossibleValuesParser, TypedValueParser},
};

use self::printer::LogPrinter;
use crate::{
    catalog,
    entry::{self, Outcome},
    scope,
    ui::Ui,
};

const LONG_ABOUT: &str = "\
Read what agents said and what tests printed.

Each step of a task writes a log: 'implement' and 'review' have the prompt,
what the agent said, the tools that it called and their output; 'test' has
what the test command printed. Logs are files, and agents write them in
different formats. This command finds the right files and prints them as text.

A task that failed or was rejected has another attempt, with its own logs. The
newest attempt is shown, unless --attempt names another one. With --follow, new
output is printed while the agent works.

Runs of several branches may have the same task. The logs are those of the run
of the branch that is checked out, unless --scope names another branch. If this
run has none, the newest ones are shown, with a note.

'git arborist state TASK' gives the short answer to why a task failed. Read the
logs if you need to know what the agent did.";

const EXAMPLES: &str = "\
EXAMPLES
   The last attempt of a task: prompts, what the agent said and did, its tests
       git arborist logs T001

   What the tests of the second attempt printed
       git arborist logs T001 --step test --attempt 2

   The same task in the run of another branch
       git arborist logs T001 --scope feature/login

   Watch the task that is being worked on
       git arborist logs -f

NOTES
   Logs are files in the log folder (log-dir) of the checkout in which the run
   was started. They are not part of the state, and 'git arborist cleanup'
   removes old ones. The turns of a session are recorded in git as well:
       git arborist session show SESSION --turn 1 --transcript

EXIT STATUS
   1  There is no such log.";

/// How often a log is read again while a step is running.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Parser)]
#[command(name = "git-arborist-logs", bin_name = "git arborist logs", about = catalog::about("logs"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct LogsArgs {
    /// The task [default: the one with the newest log]
    #[arg(value_name = "TASK")]
    task: Option<TaskId>,
    /// Show only this step
    #[arg(long, value_name = "STEP", value_parser = logged_steps())]
    step: Option<Step>,
    /// Show this attempt; the first is 1 [default: the newest]
    #[arg(long, value_name = "NUMBER", value_parser = crate::numbers::positive::<u32>)]
    attempt: Option<u32>,
    /// Use the run that commits to this branch [default: the current branch]
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
    /// Print new output until the task ends
    #[arg(short, long)]
    follow: bool,
}

fn logged_steps() -> impl TypedValueParser<Value = Step> {
    PossibleValuesParser::new(["implement", "test", "review"])
        .try_map(|name| Step::of_word(&name).ok_or("no such step"))
}

/// The logs that are asked for.
struct Selection {
    step: Option<Step>,
    attempt: Option<Attempt>,
}

impl Selection {
    fn has(&self, log: &StepLog) -> bool {
        self.step.is_none_or(|step| log.step == step)
            && self.attempt.is_none_or(|attempt| log.attempt == Some(attempt))
    }

    /// The selected logs of the selected or newest attempt. An attempt may have begun several times: after an
    /// interruption, or after a reset. The last time counts.
    fn pick(&self, logs: &[StepLog]) -> Vec<StepLog> {
        let Some(newest) = logs.iter().rfind(|log| self.has(log)) else { return Vec::new() };
        let is_same = |log: &&StepLog| log.attempt == newest.attempt;
        let is_begin =
            |log: &StepLog| is_same(&log) && log.step == Step::Implement && log.started <= newest.started;
        let begin = logs.iter().rposition(is_begin).or_else(|| logs.iter().position(|log| log == newest));
        let attempt = logs[begin.unwrap_or(0)..].iter().filter(is_same);
        attempt.filter(|log| self.has(log)).cloned().collect()
    }
}

/// The log folders that may hold logs: of this checkout, and of the main one.
struct LogFolders {
    repository: Repository,
    settings: Settings,
    name: String,
    paths: Vec<PathBuf>,
}

/// Refuses a folder of logs that is a tracked symbolic link, because a commit would choose where it leads.
pub(crate) fn refuse_link(link: Option<LogLink>, deed: &str) -> Result<(), Failure> {
    let Some(LogLink { link, target }) = link else { return Ok(()) };
    let (link, target) = (link.display(), target.display());
    let words = format!("no log is {deed} '{target}': '{link}' is a tracked symbolic link");
    Err(Failure::new(Exit::No, words).hint("name another folder with: git config arborist.log-dir logs"))
}

impl LogFolders {
    fn open(repository: Repository, settings: Settings) -> Result<Self, Failure> {
        let name = settings.general.log_dir.clone();
        let main = repository.list_worktrees()?.into_iter().next();
        let main = main.map(|main| (main.path, main.head));
        let own = repository.worktree.clone().zip(Some(repository.find_commit("HEAD")?));
        let mut paths = Vec::new();
        for (top, head) in own.into_iter().chain(main) {
            let link = head.map(|head| LogLink::find_tracked(&repository, &top, head, &name)).transpose()?;
            refuse_link(link.flatten(), "read from")?;
            // The folder may be a link of the user to another disk.
            paths.extend(top.join(&name).canonicalize().ok());
        }
        paths.dedup();
        Ok(Self { repository, settings, name, paths })
    }

    fn list(&self, task: Option<&TaskId>) -> io::Result<Vec<StepLog>> {
        let mut logs = Vec::new();
        for path in &self.paths {
            logs.extend(StepLog::list(path, task)?);
        }
        logs.sort_by_key(|log| log.started);
        Ok(logs)
    }

    /// The path of a log as the user knows it.
    fn name_of(&self, log: &StepLog) -> String {
        let file = log.path.file_name().unwrap_or_default();
        Path::new(&self.name).join(file).display().to_string()
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: LogsArgs, ui: &mut Ui) -> Outcome {
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let folders = LogFolders::open(repository, settings)?;
    let selection = Selection { step: args.step, attempt: args.attempt.map(|ordinal| Attempt(ordinal - 1)) };
    let run = match &args.scope {
        Some(branch) => Some(require_run(&folders, branch)?),
        None => find_run(&folders),
    };
    let is_own = |log: &StepLog| is_of_run(log, run.as_ref());
    let is_candidate = |log: &StepLog| selection.has(log) && (args.scope.is_none() || is_own(log));
    let newest = match &args.task {
        Some(_) => None,
        None => Some(find_newest(&folders, is_candidate)?),
    };
    let task = args.task.or_else(|| newest.as_ref().map(|log| log.task.clone()));
    let task = task.unwrap_or_else(|| unreachable!("the newest log has a task"));
    let mut logs = folders.list(Some(&task)).map_err(|error| unreadable(&folders, &error))?;
    // Runs of several branches write to one folder. The logs of another run are shown only if there are no others, or
    // if no task was named and they are the newest.
    let foreign = match newest {
        Some(newest) => Some(newest).filter(|log| !is_own(log)),
        None if args.scope.is_some() || logs.iter().any(is_own) => None,
        None => logs.last().cloned(),
    };
    match &foreign {
        Some(foreign) => logs.retain(|log| log.session == foreign.session),
        None => logs.retain(is_own),
    }
    let picked = selection.pick(&logs);
    if picked.is_empty() {
        return Err(if logs.is_empty() {
            without_logs(&folders, &task, run.as_ref())?
        } else {
            not_selected(&task, &logs, &selection)
        });
    }
    if let Some(session) = foreign.and_then(|log| log.session) {
        let here = run.as_ref().map(|run| format!(", not of the run of '{}'", run.scope.branch));
        ui.note(&format!("the log is of session '{session}'{}", here.unwrap_or_default()));
    }
    show(&folders, &picked, args.follow.then_some(&selection), ui)
        .map_err(|error| unreadable(&folders, &error))?;
    Ok(Exit::Done)
}

fn unreadable(folders: &LogFolders, error: &io::Error) -> Failure {
    Failure::new(Exit::Fatal, format!("could not read the logs in '{}': {error}", folders.name))
}

/// Whether a log is of a run. A log of an earlier version does not name its session, and counts for every run.
fn is_of_run(log: &StepLog, run: Option<&Run>) -> bool {
    let Some(session) = &log.session else { return true };
    run.is_some_and(|run| run.has_work_of(session, &log.task))
}

/// The newest of the logs that are asked for.
fn find_newest(folders: &LogFolders, is_candidate: impl Fn(&StepLog) -> bool) -> Result<StepLog, Failure> {
    let logs = folders.list(None).map_err(|error| unreadable(folders, &error))?;
    let newest = logs.iter().rfind(|log| is_candidate(log));
    newest.cloned().ok_or_else(|| {
        if logs.is_empty() {
            let words = format!(
                "there are no logs in '{}': no task has run in this checkout, or its logs were removed",
                folders.name
            );
            return Failure::new(Exit::No, words).hint("see which tasks have run with: git arborist state");
        }
        Failure::new(Exit::No, format!("no log in '{}' matches these options", folders.name))
            .hint("see the recorded turns of agents with: git arborist session list")
    })
}

/// Prints logs, and with `follow` also what is added to them and to the next ones while a run works on the task.
fn show(folders: &LogFolders, logs: &[StepLog], follow: Option<&Selection>, ui: &mut Ui) -> io::Result<()> {
    let mut open: Option<(StepLog, LogPrinter)> = None;
    let mut queue = logs.to_vec();
    loop {
        // Asked first: what is written before the run ends is read below.
        let is_active = follow.is_some()
            && logs.first().is_some_and(|log| StepStatus::is_active(&folders.repository, &log.task));
        if let Some((_, printer)) = &mut open {
            printer.print_more(ui)?;
        }
        for log in queue.drain(..) {
            if let Some((_, last)) = open.take() {
                last.finish(ui);
                ui.line("");
            }
            let mut printer = LogPrinter::begin(&log, &folders.name_of(&log), ui)?;
            printer.print_more(ui)?;
            open = Some((log, printer));
        }
        ui.flush();
        let Some((log, _)) = open.as_ref().filter(|_| is_active && !ui.is_closed()) else { break };
        thread::sleep(PAUSE);
        let is_next = |next: &StepLog| {
            next.started > log.started
                && next.session == log.session
                && follow.is_some_and(|selection| selection.has(next))
        };
        queue = folders.list(Some(&log.task))?.into_iter().filter(is_next).collect();
    }
    if let Some((_, last)) = open {
        last.finish(ui);
    }
    Ok(())
}

/// The error for a task without logs: it has not begun, its logs are elsewhere, or the name is wrong.
fn without_logs(folders: &LogFolders, task: &TaskId, run: Option<&Run>) -> Result<Failure, Failure> {
    let logs = folders.list(None).map_err(|error| unreadable(folders, &error))?;
    let mut known = run.map(|run| tasks_of_run(&folders.repository, run)).unwrap_or_default();
    if let Some(run) = run.filter(|_| known.contains(task)) {
        let words = format!("task '{task}' has no log in '{}'", folders.name);
        let option = scope::option(&folders.repository, &run.scope.branch);
        return Ok(Failure::new(Exit::No, words)
            .hint(format!("see its state with: git arborist state {task}{option}")));
    }
    if known.is_empty() {
        if let Some(failure) = scope::not_in_plan(&folders.repository, &folders.settings, task) {
            return Ok(failure);
        }
        let words = format!("there is no log of '{task}', because it has not run yet");
        let hint = match run {
            Some(run) => {
                let again = "git arborist state";
                scope::hint_without_run(&folders.repository, &folders.settings, run, "", again)
            }
            None => "start a run with: git arborist gardener".to_owned(),
        };
        return Ok(Failure::new(Exit::No, words).hint(hint));
    }
    let later = run.and_then(|run| scope::added_later(&folders.repository, run, task));
    if let Some(failure) = later {
        return Ok(failure);
    }
    let is_planned = |run: &Run| scope::is_of_another_plan(&folders.repository, &folders.settings, run, task);
    if run.is_some_and(is_planned) {
        let words = format!("there is no log of '{task}', because it has not run yet");
        return Ok(Failure::new(Exit::No, words).hint(format!("run it with: git arborist garden {task}")));
    }
    known.extend(logs.into_iter().map(|log| log.task));
    let failure = Failure::new(Exit::No, format!("there is no task '{task}', and no log of it"));
    let known = known.iter().map(TaskId::as_str);
    Ok(failure.hint(scope::hint_nearest(task.as_str(), known, "see all tasks with: git arborist state")))
}

/// The run here, if it can be read: the logs of one that cannot be read are shown, too.
fn find_run(folders: &LogFolders) -> Option<Run> {
    let LogFolders { repository, settings, .. } = folders;
    let workspace = Workspace::load(repository, settings, &Cancel::new()).ok()?;
    let scope = scope::find_shown(&workspace, repository, settings, None).ok()?;
    let run = Run::scan(repository, scope, CommitSource::Cached).ok()?;
    if run.start.is_some() {
        return Some(run);
    }
    let merged = scope::find_merged(repository, settings, &run).ok().flatten();
    merged.and_then(|scope| Run::scan(repository, scope, CommitSource::Cached).ok()).or(Some(run))
}

/// The run of a branch that the user named.
fn require_run(folders: &LogFolders, branch: &BranchName) -> Result<Run, Failure> {
    let scope = scope::resolve(&folders.repository, Some(branch))?;
    scope::require(&folders.repository, &scope)?;
    Ok(Run::scan(&folders.repository, scope, CommitSource::Cached)?)
}

/// The tasks in the plan and the history of a run, as far as they can be read.
fn tasks_of_run(repository: &Repository, run: &Run) -> Vec<TaskId> {
    let plan = Plan::read_frozen(repository, run.frozen_plan()).ok().flatten().and_then(Result::ok);
    let planned = plan.into_iter().flat_map(|plan| plan.tasks).map(|task| task.id);
    run.tasks.iter().map(|task| task.id.clone()).chain(planned).collect()
}

/// The error if a task has logs, but not of this step or attempt.
fn not_selected(task: &TaskId, logs: &[StepLog], selection: &Selection) -> Failure {
    let step = selection.step.map(|step| format!("{} ", step.as_str())).unwrap_or_default();
    let attempt = selection.attempt.map(|attempt| format!(" of attempt {}", attempt.ordinal()));
    let words = format!("task '{task}' has no {step}log{}", attempt.unwrap_or_default());
    let mut there: Vec<String> = Vec::new();
    for log in logs {
        let attempt = log.attempt.map(|attempt| format!(" of attempt {}", attempt.ordinal()));
        let name = format!("{}{}", log.step.as_str(), attempt.unwrap_or_default());
        if !there.contains(&name) {
            there.push(name);
        }
    }
    Failure::new(Exit::No, words).hint(format!("it has these logs: {}", there.join(", ")))
}
