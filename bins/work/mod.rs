//! `git arborist work`: a worker that shares a plan with workers on other machines, through a remote.

mod logs;
mod submit;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use arborist_core::{
    coordination::{RemoteWork, WorkRequest},
    failure::{Exit, Failure},
    gardener::{self, Selection, refuse_reverted},
    git::{CloneDepth, Network, Repository},
    history::Run,
    name::{BranchName, TaskId, WorkerName},
    plan::Task,
    process::Cancel,
    progress::{PlanMarks, Progress},
    run::{DEFAULT_REMOTE, LaneRequest, Planned, RunRequest, SharedWork},
    safe_files,
};
use clap::{Args, Parser, Subcommand};

use crate::{
    catalog, clock,
    entry::{self, Outcome},
    gardening::{GardeningArgs, Reporter, approve_and_remember, open, watch_signals},
    numbers::positive,
    ui::Ui,
};
use submit::SubmitRequest;

const LONG_ABOUT: &str = "\
Work on the plan together with workers on other machines.

Start the same command in a clone on each machine. The workers share the plan
through a remote, 'origin' unless --remote names another one: no other service
is needed. A worker claims a task that is ready, works on it in its own worktree
as 'git arborist gardener --jobs' does, pushes the finished branch and takes the
next task. It ends when nothing is left to do. While all remaining tasks wait
for tasks of other workers, it waits, too.

A claim is a ref below refs/arborist/claims/ at the remote. It is created by a
push that fails if the ref exists, so a task has one worker. A worker renews
its claims. If a claim was not renewed for its time to live (setting
work.ttl), another worker takes the task over and starts it again. A worker
that lost its claim can publish nothing: its push is refused, and its work is
saved below refs/arborist/saved/ and named.

One worker lands at a time. It merges all finished tasks, runs the gates on
the result, and moves the branch at the remote with one atomic push, which
also publishes the results of the gates and its records. If the branch was
moved meanwhile, it merges and tests again. A task that cannot land, because a
gate fails or it conflicts, is marked as failed; the other tasks continue.

If you push a changed plan while it is shared, workers stop when they are
started again; start one with --accept-changes. 'git arborist gardener' does
not run a plan while workers have tasks of it.

--on starts workers on other machines instead, and ends. An engine does that:
'slurm' (a job array), 'ssh:HOST,HOST', 'kubernetes' (a Job, from the manifest
.arborist/engines/kubernetes.yaml), or one that the settings engines.* define.
The commands that workers may run are shown for approval here, and passed on to
them. If the engine is not available, the command fails.

A worker runs the commands of the plan and of the configuration only if they
are approved in its clone, as for 'git arborist gardener', or by the user who
started it with --on. It must be allowed to push to the branch, to
refs/heads/arborist/ and to refs/arborist/. While it runs, do not commit to
the branch in its clone: push commits from another clone.

The setting work.coordination names another remote for claims and finished
branches. Then only landings are pushed to the remote with the code, with the
results of gates and the records of workers.

'work stop' interrupts workers as Ctrl-C does. 'work drain' lets them finish
their tasks and take no more. Both reach a worker when it next looks at the
remote. 'work cancel' ends jobs of an engine, also those that have not begun.
'work logs' fetches what jobs of an engine have printed, stores it below the
folder for logs (log-dir), and prints the last lines.
'git arborist state --remote' shows who works on what.";

const EXAMPLES: &str = "\
EXIT STATUS
   1           A task failed or was not done.
   2           You must act; git-arborist-gardener(1) has examples.
   3           Another run is using this branch in this clone.
   130 or 143  This command was stopped by Ctrl-C or another signal.

EXAMPLES
   On each machine, in a clone
       git arborist work

   On a machine without a clone, two tasks at once
       git arborist work --clone git@example.com:team/app.git --jobs 2

   40 workers in a Slurm cluster, or one on each of two hosts
       git arborist work --on slurm --workers 40
       git arborist work --on ssh:build1,build2

   See who works on what, and what the workers of an engine have printed
       git arborist state --remote
       git arborist work logs --on slurm 1234

   Let all workers end after their current tasks
       git arborist work drain";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-work", bin_name = "git arborist work", about = catalog::about("work"), long_about = LONG_ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct WorkArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The plan: a task list in Markdown, or a task-tree.json
    #[arg(value_name = "PLAN", conflicts_with = "tree")]
    plan: Option<PathBuf>,
    /// The remote through which the plan is shared
    #[arg(long, value_name = "NAME", default_value = DEFAULT_REMOTE)]
    remote: String,
    /// How many tasks to run at once, each in its own worktree: a number, or auto
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<String>,
    /// Clone this repository into the current folder first, unless that was done before
    #[arg(long, value_name = "URL")]
    clone: Option<String>,
    /// The branch to clone [default: that of the remote]
    #[arg(long, value_name = "NAME", requires = "clone")]
    branch: Option<BranchName>,
    /// Try failed tasks again
    #[arg(long)]
    retry_failed: bool,
    /// Start workers on other machines: slurm, ssh:HOST,HOST, kubernetes, or one of engines.*
    #[arg(long, value_name = "ENGINE", conflicts_with = "clone")]
    on: Option<String>,
    /// How many workers to start [default: 1, or one for each host]
    #[arg(long, value_name = "NUMBER", requires = "on", value_parser = positive::<usize>)]
    workers: Option<usize>,
    #[command(flatten)]
    common: GardeningArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Interrupt a worker, or all workers of this branch
    Stop(RequestArgs),
    /// Let a worker, or all workers of this branch, end after their current tasks
    Drain(RequestArgs),
    /// End jobs of an engine, also those that have not begun
    Cancel(CancelArgs),
    /// Fetch the logs of workers that an engine has started
    Logs(LogsArgs),
}

#[derive(Debug, Args)]
struct RequestArgs {
    /// Only this worker, as 'git arborist state --remote' names it
    #[arg(value_name = "WORKER")]
    worker: Option<WorkerName>,
    /// The remote through which the plan is shared
    #[arg(long, value_name = "NAME", default_value = DEFAULT_REMOTE)]
    remote: String,
}

#[derive(Debug, Args)]
struct CancelArgs {
    /// The engine, as it was given to --on
    #[arg(long, value_name = "ENGINE", required = true)]
    on: String,
    /// The jobs, as they were printed; those of ssh as HOST/PROCESS
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
    /// Approve commands and settings in files of the repository
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct LogsArgs {
    /// The engine, as it was given to --on
    #[arg(long, value_name = "ENGINE", required = true)]
    on: String,
    /// The jobs, as they were printed [default: those that work on tasks]
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// The remote through which the plan is shared
    #[arg(long, value_name = "NAME", default_value = DEFAULT_REMOTE)]
    remote: String,
    /// Approve commands and settings in files of the repository
    #[arg(long)]
    yes: bool,
}

impl WorkArgs {
    fn request(&self) -> Result<RunRequest, Failure> {
        let mut request = self.common.request();
        let is_dry_run = self.common.dry_run && self.on.is_none();
        if request.new_run || request.session_branch || is_dry_run {
            let words = "--new-run, --session-branch and --dry-run are not for workers";
            return Err(Failure::new(Exit::Usage, words)
                .hint("use them with: git arborist gardener; then push the branch"));
        }
        if request.accept_changes && self.on.is_some() {
            return Err(Failure::new(Exit::Usage, "--accept-changes is not for --on")
                .hint("accept the changes with a worker here first: git arborist work --accept-changes"));
        }
        request.shared_through = Some(self.remote.clone());
        request.lanes = LaneRequest { jobs: self.jobs.clone(), isolate: true, ..LaneRequest::default() };
        request.selection =
            Selection { keep_going: true, retry_failed: self.retry_failed, ..Selection::default() };
        request.tree = request.tree.or_else(|| self.plan.clone());
        Ok(request)
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: WorkArgs, ui: &mut Ui) -> Outcome {
    match &args.verb {
        Some(Verb::Stop(asked)) => ask(WorkRequest::Stop, asked, ui),
        Some(Verb::Drain(asked)) => ask(WorkRequest::Drain, asked, ui),
        Some(Verb::Cancel(asked)) => submit::cancel(&asked.on, &asked.jobs, asked.yes, ui),
        Some(Verb::Logs(asked)) => logs::logs(asked, ui),
        None => match &args.on {
            Some(on) => submit::submit(
                &SubmitRequest {
                    on,
                    workers: args.workers,
                    remote: &args.remote,
                    retries_failed: args.retry_failed,
                    is_dry_run: args.common.dry_run,
                    run: args.request()?,
                },
                ui,
            ),
            None => work(&args, ui),
        },
    }
}

/// Asks workers to end.
fn ask(request: WorkRequest, args: &RequestArgs, ui: &mut Ui) -> Outcome {
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let shared = SharedWork::find(&repository, &settings, &args.remote, clock::now)?;
    let workers = shared.ask(request, args.worker.as_ref())?;
    let whom = args
        .worker
        .as_ref()
        .map_or_else(|| format!("all workers of '{}'", shared.run()), |worker| format!("worker '{worker}'"));
    ui.line(&format!("asked {whom} to {}, through {}", request.as_str(), shared.claims_remote()));
    if let Some(worker) = args.worker.as_ref().filter(|worker| !workers.contains(worker)) {
        ui.warn(&format!(
            "no worker '{worker}' has a task at the moment; the request takes effect when one has"
        ));
        let names: Vec<&str> = workers.iter().map(WorkerName::as_str).collect();
        if !names.is_empty() {
            ui.hint(&format!("workers that have a task: {}", names.join(", ")));
        }
    }
    Ok(Exit::Done)
}

fn work(args: &WorkArgs, ui: &mut Ui) -> Outcome {
    let request = args.request()?;
    refuse_unknown_command(args)?;
    let cancel = watch_signals();
    if let Some(url) = &args.clone {
        enter_clone(url, args.branch.as_ref(), &cancel, ui)?;
    }
    let mut joined = Joined::default();
    let outcome = loop {
        match try_work(args, &request, &cancel, &mut joined, ui) {
            Ok(Some(exit)) => break Ok(exit),
            // Another worker starts the run or lands.
            Ok(None) if cancel.wait(Duration::from_millis(500)) => break Ok(Exit::Child(130)),
            Ok(None) => {}
            Err(failure) => break Err(failure),
        }
    };
    if let Some(work) = &joined.work {
        work.leave();
    }
    outcome
}

/// Refuses a word that is neither a plan nor a command.
fn refuse_unknown_command(args: &WorkArgs) -> Result<(), Failure> {
    let Some(word) = args.plan.as_ref().and_then(|plan| plan.to_str()) else { return Ok(()) };
    let is_word = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if !is_word || args.clone.is_some() || Path::new(word).exists() {
        return Ok(());
    }
    let words = format!("'{word}' is neither a plan file nor a command of 'git arborist work'");
    let failure = Failure::new(Exit::No, words);
    Err(match word {
        "status" | "state" | "list" => failure.hint("see who works on what: git arborist state --remote"),
        _ => failure.hint("see the commands: git arborist work -h"),
    })
}

/// A worker that has joined the others.
#[derive(Default)]
struct Joined {
    work: Option<Arc<RemoteWork>>,
    /// Whether it was told that it waits for another worker.
    is_told: bool,
    /// Whether the claims of failed tasks are removed.
    has_retried: bool,
}

/// Removes the claims of failed tasks, so that they are tried again.
fn retry_failed(shared: &SharedWork, ui: &mut Ui) -> Result<(), Failure> {
    let tasks = shared.retry_failed()?;
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    if !names.is_empty() {
        ui.note(&format!("failed tasks that can be tried again: {}", names.join(", ")));
    }
    Ok(())
}

/// Works until nothing is left. `None` if the branch or the run has changed, so that everything has to be read again.
fn try_work(
    args: &WorkArgs,
    request: &RunRequest,
    cancel: &Cancel,
    joined: &mut Joined,
    ui: &mut Ui,
) -> Result<Option<Exit>, Failure> {
    let mut opened = open(request.clone(), cancel.clone(), ui)?;
    let shared = SharedWork::find(&opened.repository, &opened.settings, &args.remote, clock::now)?;
    if opened.branch != *shared.run() {
        let words =
            "workers share the branch that is checked out, but the configuration asks for a session branch";
        return Err(Failure::new(Exit::Usage, words).hint("set session.branch to false"));
    }
    let work = match &joined.work {
        Some(work) => Arc::clone(work),
        None => Arc::clone(joined.work.insert(shared.join()?)),
    };
    if args.retry_failed && !std::mem::replace(&mut joined.has_retried, true) {
        retry_failed(&shared, ui)?;
    }
    if shared.follow(&work)? {
        return Ok(None);
    }
    let run = opened.scan_recorded()?;
    let planned = opened.plan(&run)?;
    opened.refuse_merged(&planned)?;
    let jobs = opened.request.lanes.count(&opened.settings)?;
    opened.has_no_task_left = due(args, &planned, &run)?.is_empty();
    if !opened.has_no_task_left {
        opened.inherit_options(&planned, &run)?;
    }
    approve_and_remember(&opened, &opened.require_runnable(&planned, jobs)?, ui)?;
    if !opened.share(work, &run)? {
        if !std::mem::replace(&mut joined.is_told, true) {
            ui.note("waiting for another worker, which starts the run or lands tasks");
        }
        return Ok(None);
    }
    let selection = opened.request.selection.clone();
    let mut reporter = Reporter::new(&args.common, ui);
    let opened = opened.enter_workplace(&planned, &run, &mut reporter)?;
    let lanes = jobs.map(|jobs| opened.lanes(jobs, &planned, &run)).transpose()?;
    let ended = opened.drive(&planned, lanes.as_ref(), &selection, &mut reporter)?;
    reporter.end(ended).map(Some)
}

/// The tasks for which there is something to do.
fn due<'a>(args: &WorkArgs, planned: &'a Planned, run: &Run) -> Result<Vec<&'a Task>, Failure> {
    let progress = Progress::new(Some(&planned.plan), run, PlanMarks::Count);
    let selection = Selection { retry_failed: args.retry_failed, ..Selection::default() };
    let due = gardener::due(&planned.plan, &progress, &selection);
    refuse_reverted(&due, &progress)?;
    Ok(due)
}

/// Clones a repository into a folder of the current one, unless that exists, and makes it the current one.
fn enter_clone(url: &str, branch: Option<&BranchName>, cancel: &Cancel, ui: &mut Ui) -> Result<(), Failure> {
    let name =
        url.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']).next().unwrap_or_default();
    if name.is_empty() || name.starts_with('.') || name.contains('\\') {
        return Err(Failure::new(
            Exit::Usage,
            "the folder cannot be named, because the URL does not end in the name of a repository",
        ));
    }
    let path = std::env::current_dir().context("could not find the current folder")?.join(name);
    if !path.join(".git").exists() {
        let network = Network { silence: Duration::from_secs(60), cancel: cancel.clone() };
        // A clone that was interrupted must not be taken for a whole one.
        let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
        network.clone_to(url, &draft, CloneDepth::Whole, branch)?;
        safe_files::rename(&draft, &path).context("could not name the clone")?;
        ui.note(&format!("cloned {} to {name}", arborist_core::git::shown_url(url)));
    }
    std::env::set_current_dir(&path).context("could not enter the clone")?;
    let found = branch.map(|_| Repository::discover()).transpose()?.and_then(|clone| clone.head.branch);
    match branch.filter(|branch| found.as_ref() != Some(branch)) {
        Some(branch) => {
            let words = format!("the clone '{name}' does not have the branch '{branch}' checked out");
            Err(Failure::new(Exit::Person, words).hint(format!("git -C {name} switch {branch}")))
        }
        None => Ok(()),
    }
}
