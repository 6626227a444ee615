//! Calls an agent for a step of a task: the first runner of a chain that can work. A runner that is not installed, is
//! refused by its provider or has reached its usage limit is not a failure of the work; the next runner is called
//! instead.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    agent::{
        CallOutcome, EventFormat, FailureKind, Request, RetryWait, Runner, RunnerKind, ToolServer,
        limits::{Chain, RunnerSetback},
    },
    event::{EventKind, RunEvent},
    git::{ChildInputFiles, PrivateGit, Repository},
    message::Step,
    pipeline::{
        ActiveRunner, Expense, OtherRepo, PipelineError, ReviewPlace, Sessions, StepRunner, TaskContext,
        calls::{
            caller::{AtLimit, Call, CallObserver, CallReply, Caller, reborrow},
            gemini_home,
        },
        context::with_environment,
    },
    plan::Task,
    process::{Limits, Program},
    safe_files::{self, FileKind},
};

/// A request to call an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentCall<'a> {
    /// The runner, followed by its fallbacks.
    pub chain: &'a Chain<StepRunner>,
    /// How much time is left for all calls together, if that is limited.
    pub time_left: Option<Duration>,
    /// Whether to resume the agent session of the last call for this task.
    pub session: Sessions,
    /// The task that it works on.
    pub task: &'a Task,
    /// The step of the task.
    pub step: Step,
    /// The repository that it works in.
    pub place: &'a Repository,
    /// Checkouts of other repositories that it works in.
    pub other_repos: &'a [OtherRepo],
    /// A private git directory, for runners that get one.
    pub private_git: Option<&'a PrivateGit>,
    /// A separate worktree to use instead of the task's own, for reviewers.
    pub apart: Option<&'a ReviewPlace>,
    /// The prompt.
    pub prompt: &'a str,
    /// The file that its output is appended to.
    pub log: &'a Path,
}

/// The result of an [`AgentCall`].
#[derive(Debug)]
pub struct FinishedCall {
    /// What all calls for it have cost, including failed ones.
    pub expense: Expense,
    /// The result of the last call.
    pub result: Result<CallReply, PipelineError>,
    /// Whether the result decides alone, even if no file was changed. So a command of the plan passes by its exit code.
    pub is_conclusive: bool,
}

impl FinishedCall {
    /// Whether the call has cost something that must be recorded although it achieved nothing.
    #[must_use]
    pub fn is_worth_counting(&self) -> bool {
        let has_tokens = self.expense.usage.is_some_and(|usage| usage.tokens_in + usage.tokens_out > 0);
        let is_over = matches!(self.result, Err(PipelineError::Budget(_)));
        has_tokens || (is_over && !self.expense.time.is_zero())
    }
}

/// Why a runner cannot work, and until when if that is known.
struct Unavailability {
    setback: RunnerSetback,
    why: String,
    until: Option<Timestamp>,
}

impl TaskContext<'_> {
    /// The runner that would be called now.
    #[must_use]
    pub fn choose<'c>(&self, chain: &'c Chain<StepRunner>) -> &'c StepRunner {
        self.memory.choose(chain, Timestamp::now())
    }

    /// The name of the runner that would be called now, for display.
    pub(in crate::pipeline) fn next_runner_name(&self, chain: &Chain<StepRunner>) -> String {
        if self.run.playback.is_some() { "what was recorded".into() } else { self.choose(chain).name.clone() }
    }

    /// Calls an agent for a task, as [`Caller::call`] does, and the next runner of its chain if the first cannot work.
    pub fn call(
        &mut self,
        request: AgentCall<'_>,
        mut observer: Option<&mut (dyn CallObserver + '_)>,
    ) -> FinishedCall {
        if let Some(playback) = self.run.playback.clone() {
            return self.play(&playback, request, observer);
        }
        let mut expense = Expense::default();
        let mut step_runner = self.choose(request.chain);
        loop {
            let result = self.call_runner(request, step_runner, &mut expense, reborrow(&mut observer));
            let Some(Unavailability { setback, why, until }) = find_unavailability(&result) else {
                return FinishedCall {
                    expense,
                    result,
                    is_conclusive: step_runner.runner == RunnerKind::Shell,
                };
            };
            let Some(next) = request.chain.find_next(step_runner, setback) else {
                let result = result.and_then(|reply| require_admitted(reply, step_runner));
                return FinishedCall { expense, result, is_conclusive: false };
            };
            self.memory.mark_unavailable(step_runner, until);
            let words = format!("{} failed: {why}; calling {} instead", step_runner.name, next.name);
            self.emit(&request.task.id, EventKind::note(words));
            step_runner = next;
        }
    }

    /// The limits of one call: it also ends when the time of the budget is used up.
    fn limits(&self, time_left: Option<Duration>, expense: Expense) -> Limits {
        let left = time_left.map(|left| left.saturating_sub(expense.time));
        let whole = self.run.options.call_limits.whole.into_iter().chain(left).min();
        Limits { whole, ..self.run.options.call_limits }
    }

    fn call_runner(
        &mut self,
        request: AgentCall<'_>,
        step_runner: &StepRunner,
        expense: &mut Expense,
        mut observer: Option<&mut (dyn CallObserver + '_)>,
    ) -> Result<CallReply, PipelineError> {
        step_runner.require_program()?;
        if let Some(observer) = &mut observer {
            observer.on_begin(ActiveRunner::calling(step_runner), request.prompt);
        }
        let limits = self.limits(request.time_left, *expense);
        let session = match request.session {
            Sessions::Resumed => self.memory.session(&request.task.id, step_runner).cloned(),
            Sessions::Fresh => None,
        };
        let own = self.place_of(request.task).to_owned();
        let dir = request.apart.map_or(own.clone(), |apart| apart.repository.top().to_owned());
        let mut environment = self.environment.clone();
        environment.extend(request.apart.iter().flat_map(|apart| apart.environment.clone()));
        let (demo, environment) = (&self.run.demo, &environment);
        let tools = step_runner.is_given_tools(&self.tools).then(|| self.tools.moved(&own, &dir));
        let tools = tools.as_ref();
        let mut places = vec![dir.clone()];
        if request.apart.is_none() {
            places.extend(self.task_places());
        }
        let mut child = step_runner.sandboxed(request.step.as_str(), places);
        // A reviewer compares what the task changed in other repositories, and tools answer from all of theirs.
        child.reads.extend(self.task_places());
        child.reads.extend(tools.iter().flat_map(|tools| tools.roots()));
        if request.apart.is_none() {
            let others = request.other_repos.iter().map(|other_repo| &other_repo.repository);
            let scripts = std::iter::once(request.place).chain(others);
            let scripts = scripts.flat_map(|place| self.run.config_guard.list_scripts(place));
            let is_file = |path: &PathBuf| safe_files::kind_of(path) == Some(FileKind::File);
            child.protected.extend(scripts.filter(is_file));
        }
        let mut confinement = self.run.options.sandbox.confine(&child);
        if let (Some(private), true) = (request.private_git, self.run.options.sandbox.has_private_git(&child))
        {
            confinement.iter_mut().for_each(|confinement| private.grant(confinement));
        }
        let reads_home = |runner: &Runner| runner.wants_tools_home().is_some();
        if tools.is_some() && step_runner.program().is_some_and(reads_home) {
            // It is in the git directory, which is closed by now.
            confinement.iter_mut().for_each(|confinement| confinement.add(tools_home(request)));
        }
        let on_event = &mut self.on_event;
        let mut report = |kind| on_event(RunEvent::of(&request.task.id, kind));
        let mut caller = Caller {
            runner: &step_runner.name,
            limits,
            backoff: self.run.options.backoff,
            secrets: &self.run.secrets,
            cancel: &self.run.cancel,
            orphan_lock: Some(&mut self.orphan_lock),
            on_event: &mut report,
            observer: reborrow(&mut observer),
            expense: *expense,
            confinement,
            prior_usage: session.as_ref().and_then(|session| session.usage),
        };
        let is_last =
            request.chain.find_next(step_runner, RunnerSetback::Failure(FailureKind::Limit)).is_none();
        let at_limit = if is_last { AtLimit::Wait } else { AtLimit::Leave };
        let id = session.as_ref().map(|session| session.id.as_str());
        let result = caller.call(at_limit, || {
            let call = prepare(request, step_runner, id, tools, &dir, demo)?;
            Ok(Call { program: with_environment(call.program, environment), ..call })
        });
        *expense = caller.expense;
        if session.is_some() && result.as_ref().is_ok_and(is_session_lost) && !self.run.cancel.is_cancelled()
        {
            // On another machine, or after the program has deleted old data, the session is gone. That says nothing
            // about the work. The session is forgotten, so that this happens only once.
            self.memory.forget_session();
            let words = format!("the session of {} is lost; it is called without it", step_runner.name);
            self.emit(&request.task.id, EventKind::step_note(words));
            return self.call_runner(request, step_runner, expense, observer);
        }
        if let (Ok(reply), Sessions::Resumed) = (&result, request.session) {
            self.memory.remember_session(&request.task.id, step_runner, &reply.outcome);
        }
        result
    }
}

/// Whether a call failed because the session that it was to continue does not exist.
fn is_session_lost(reply: &CallReply) -> bool {
    let has_failed = matches!(reply.outcome, CallOutcome::Failed { kind: FailureKind::Other, .. });
    has_failed && reply.has_no_session
}

/// Whether the called runner cannot work at all, and why.
fn find_unavailability(result: &Result<CallReply, PipelineError>) -> Option<Unavailability> {
    match result {
        Err(PipelineError::Agent(error)) => {
            Some(Unavailability { setback: RunnerSetback::NotInstalled, why: error.to_string(), until: None })
        }
        Err(_) => None,
        Ok(reply) => match &reply.outcome {
            CallOutcome::Failed { kind: FailureKind::Auth, message, .. } => Some(Unavailability {
                setback: RunnerSetback::Failure(FailureKind::Auth),
                why: format!("its provider refused the login: {message}"),
                until: None,
            }),
            CallOutcome::Limited { until, message, .. } => Some(Unavailability {
                setback: RunnerSetback::Failure(FailureKind::Limit),
                why: format!("its limit is used up: {message}"),
                until: Some(limit_end(*until)),
            }),
            CallOutcome::Success { .. } | CallOutcome::Failed { .. } => None,
        },
    }
}

/// When a usage limit ends. If the provider names no time, the runner is tried again soon.
fn limit_end(wait: RetryWait) -> Timestamp {
    const SOON: Duration = Duration::from_secs(300);
    let now = Timestamp::now();
    match wait {
        RetryWait::Until(moment) => moment,
        RetryWait::For(span) => now.checked_add(span).unwrap_or(now),
        RetryWait::Unknown => now.checked_add(SOON).unwrap_or(now),
    }
}

/// A rejected login is not a failure of the work but an error: the user has to fix it.
fn require_admitted(reply: CallReply, step_runner: &StepRunner) -> Result<CallReply, PipelineError> {
    match reply.outcome {
        CallOutcome::Failed { kind: FailureKind::Auth, message: said, .. } => {
            Err(PipelineError::Refused { runner: step_runner.name.clone(), said, login: step_runner.login() })
        }
        outcome => Ok(CallReply { outcome, ..reply }),
    }
}

/// The private home directory of a program that reads its tools there. Each step has its own, because a reviewer must
/// not obey what the implementer put there.
fn tools_home(request: AgentCall<'_>) -> PathBuf {
    let homes = request.place.common_dir.join("arborist/homes");
    homes.join(request.task.id.as_str()).join(request.step.as_str())
}

fn prepare(
    request: AgentCall<'_>,
    step_runner: &StepRunner,
    session: Option<&str>,
    tools: Option<&ToolServer>,
    dir: &Path,
    demo: &Path,
) -> Result<Call, PipelineError> {
    let AgentCall { task, prompt, log, .. } = request;
    let built_in = |program: Program, prompt: &str, stdin: &str| Call {
        program: program.dir(dir),
        prompt: prompt.to_owned(),
        stdin: stdin.into(),
        format: EventFormat::Text,
        log: log.to_owned(),
        has_provider: false,
        handed: ChildInputFiles::default(),
    };
    let mut call = match &step_runner.runner {
        RunnerKind::Shell => {
            let command = task.command.as_deref();
            let command = command.ok_or_else(|| PipelineError::NoCommand { task: task.id.to_string() })?;
            built_in(Program::located("sh").args(["-c", command]), command, "")
        }
        RunnerKind::Demo => built_in(Program::new(demo).arg("--agent"), prompt, prompt),
        RunnerKind::Program(runner) => {
            let model = step_runner.model.as_deref();
            let tools = tools.map(|server| ToolServer {
                home: Some(tools_home(request)),
                ..server.clone().for_task(&task.id)
            });
            if request.step == Step::Review {
                gemini_home::remove(&tools_home(request))?;
            }
            let tools = tools.as_ref();
            let request = Request { prompt, model, dir, session, prompt_file: None, tools };
            Call::of_runner(runner, request, log)?
        }
    };
    call.program = call.program.env("ARBORIST_TASK", task.id.as_str());
    if request.step == Step::Review {
        // Claude would read notes that an agent of the same repository wrote.
        call.program = call.program.env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1");
    }
    Ok(call)
}
