//! Calling an agent for a step of a task: the first of a chain of runners that can work. What keeps one from working (it is
//! not installed, its provider refuses it, its limit is used up) is no failure of the work: the next one is asked.

use std::{path::Path, time::Duration};

use jiff::Timestamp;

use crate::{
    agent::{
        CallOutcome, EventFormat, FailureKind, Request, RetryWait, RunnerKind, ToolServer,
        limits::{Chain, RunnerSetback},
    },
    event::{EventKind, RunEvent},
    git::{HandedFiles, Repository},
    message::Step,
    pipeline::{
        Expense, OtherRepo, PipelineError, ReviewPlace, Sessions, StepRunner, TaskContext, Who,
        calls::call::{AtLimit, Call, CallReply, Caller, Follower, lend},
        context::with_environment,
    },
    plan::Task,
    process::{Limits, Program},
};

/// What an agent is called for.
#[derive(Debug, Clone, Copy)]
pub struct AgentCall<'a> {
    /// Who, and who instead.
    pub chain: &'a Chain<StepRunner>,
    /// How much time there is for it in all, if that is limited.
    pub time_left: Option<Duration>,
    /// Whether it goes on with the session of the last call for this task.
    pub session: Sessions,
    /// For which task.
    pub task: &'a Task,
    /// For which step of it.
    pub step: Step,
    /// Where it works.
    pub place: &'a Repository,
    /// Where it works in other repositories.
    pub other_repos: &'a [OtherRepo],
    /// The place that it is given instead of the task's own, if it is.
    pub apart: Option<&'a ReviewPlace>,
    /// What it is told.
    pub prompt: &'a str,
    /// Where its output goes.
    pub log: &'a Path,
}

/// An request that was run.
#[derive(Debug)]
pub struct Called {
    /// What all calls for it have spent, whatever came of them.
    pub expense: Expense,
    /// What came of the last.
    pub result: Result<CallReply, PipelineError>,
    /// Whether that alone decides, also where no file was changed: a command of the plan passes by its exit code.
    pub is_decided: bool,
}

impl Called {
    /// Whether it has spent something that must be written down, although nothing came of it.
    #[must_use]
    pub fn is_worth_counting(&self) -> bool {
        let has_tokens = self.expense.usage.is_some_and(|usage| usage.tokens_in + usage.tokens_out > 0);
        let is_over = matches!(self.result, Err(PipelineError::Budget(_)));
        has_tokens || (is_over && !self.expense.time.is_zero())
    }
}

/// Why somebody cannot work, in words, and until when if that is known.
struct Miss {
    setback: RunnerSetback,
    why: String,
    until: Option<Timestamp>,
}

impl TaskContext<'_> {
    /// Who would be called now.
    #[must_use]
    pub fn choose<'c>(&self, chain: &'c Chain<StepRunner>) -> &'c StepRunner {
        self.memory.choose(chain, Timestamp::now())
    }

    /// What the one who would be called now is called.
    pub(in crate::pipeline) fn name_of_next(&self, chain: &Chain<StepRunner>) -> String {
        if self.run.playback.is_some() { "what was recorded".into() } else { self.choose(chain).name.clone() }
    }

    /// Calls an agent for a task, as [`Caller::call`] does, and the next one of its chain if it cannot work.
    pub fn call(&mut self, request: AgentCall<'_>, mut follower: Option<&mut (dyn Follower + '_)>) -> Called {
        if let Some(playback) = self.run.playback.clone() {
            return self.play(&playback, request, follower);
        }
        let mut expense = Expense::default();
        let mut step_runner = self.choose(request.chain);
        loop {
            let result = self.call_runner(request, step_runner, &mut expense, lend(&mut follower));
            let Some(Miss { setback, why, until }) = miss(&result) else {
                return Called { expense, result, is_decided: step_runner.runner == RunnerKind::Shell };
            };
            let Some(next) = request.chain.find_next(step_runner, setback) else {
                let result = result.and_then(|reply| admitted(reply, step_runner));
                return Called { expense, result, is_decided: false };
            };
            self.memory.miss(step_runner, until);
            let words = format!("{} cannot do it: {why}; {} is asked instead", step_runner.name, next.name);
            self.tell(&request.task.id, EventKind::note(words));
            step_runner = next;
        }
    }

    /// A call is ended when the time for it is over, whosever time that is.
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
        mut follower: Option<&mut (dyn Follower + '_)>,
    ) -> Result<CallReply, PipelineError> {
        step_runner.require_program()?;
        if let Some(follower) = &mut follower {
            follower.begins(Who::called(step_runner));
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
        let tools = step_runner.is_given(&self.tools).then(|| self.tools.moved(&own, &dir));
        let tools = tools.as_ref();
        let on_event = &mut self.on_event;
        let mut tell = |kind| on_event(RunEvent::of(&request.task.id, kind));
        let mut caller = Caller {
            runner: &step_runner.name,
            limits,
            backoff: self.run.options.backoff,
            secrets: &self.run.secrets,
            cancel: &self.run.cancel,
            orphan_lock: Some(&mut self.orphan_lock),
            on_event: &mut tell,
            follower: lend(&mut follower),
            expense: *expense,
            retold: session.as_ref().and_then(|session| session.usage),
        };
        let is_last =
            request.chain.find_next(step_runner, RunnerSetback::Failure(FailureKind::Limit)).is_none();
        let at_limit = if is_last { AtLimit::Wait } else { AtLimit::Leave };
        let id = session.as_ref().map(|session| session.id.as_str());
        let result = caller.call(at_limit, || {
            let call = prepare(request, (step_runner, id, tools), &dir, demo)?;
            Ok(Call { program: with_environment(call.program, environment), ..call })
        });
        *expense = caller.expense;
        if session.is_some() && result.as_ref().is_ok_and(is_session_lost) && !self.run.cancel.is_cancelled()
        {
            // On another machine, or after its program has cleaned up, the session is gone. That says nothing about the work.
            // It is forgotten, so this happens once.
            self.memory.forget_session();
            let words = format!(
                "  {}: {} has lost its session and is called without it",
                request.task.id, step_runner.name
            );
            self.tell(&request.task.id, EventKind::note(words));
            return self.call_runner(request, step_runner, expense, follower);
        }
        if let (Ok(reply), Sessions::Resumed) = (&result, request.session) {
            self.memory.keep_session(&request.task.id, step_runner, &reply.outcome);
        }
        result
    }
}

/// Whether a call failed because the session that it was to continue does not exist.
fn is_session_lost(reply: &CallReply) -> bool {
    let has_failed = matches!(reply.outcome, CallOutcome::Failed { kind: FailureKind::Other, .. });
    has_failed && reply.has_no_session
}

/// Why the one who was called cannot work, if that is so.
fn miss(result: &Result<CallReply, PipelineError>) -> Option<Miss> {
    match result {
        Err(PipelineError::Agent(error)) => {
            Some(Miss { setback: RunnerSetback::NotInstalled, why: error.to_string(), until: None })
        }
        Err(_) => None,
        Ok(reply) => match &reply.outcome {
            CallOutcome::Failed { kind: FailureKind::Auth, message, .. } => Some(Miss {
                setback: RunnerSetback::Failure(FailureKind::Auth),
                why: format!("its provider does not let us in: {message}"),
                until: None,
            }),
            CallOutcome::Limited { until, message, .. } => Some(Miss {
                setback: RunnerSetback::Failure(FailureKind::Limit),
                why: format!("its limit is used up: {message}"),
                until: Some(end_of(*until)),
            }),
            CallOutcome::Success { .. } | CallOutcome::Failed { .. } => None,
        },
    }
}

/// A limit whose end nobody names is asked about again soon.
fn end_of(wait: RetryWait) -> Timestamp {
    const SOON: Duration = Duration::from_secs(300);
    let now = Timestamp::now();
    match wait {
        RetryWait::Until(moment) => moment,
        RetryWait::For(span) => now.checked_add(span).unwrap_or(now),
        RetryWait::Unknown => now.checked_add(SOON).unwrap_or(now),
    }
}

/// A provider that does not let us in is no failure of the work: a person must look at it.
fn admitted(reply: CallReply, step_runner: &StepRunner) -> Result<CallReply, PipelineError> {
    match reply.outcome {
        CallOutcome::Failed { kind: FailureKind::Auth, message: said, .. } => {
            Err(PipelineError::Refused { runner: step_runner.name.clone(), said, login: step_runner.login() })
        }
        outcome => Ok(CallReply { outcome, ..reply }),
    }
}

fn prepare(
    request: AgentCall<'_>,
    (step_runner, session, tools): (&StepRunner, Option<&str>, Option<&ToolServer>),
    dir: &Path,
    demo: &Path,
) -> Result<Call, PipelineError> {
    let AgentCall { task, prompt, log, .. } = request;
    let built_in = |program: Program, stdin: &str| Call {
        program: program.dir(dir),
        stdin: stdin.into(),
        format: EventFormat::Text,
        log: log.to_owned(),
        has_provider: false,
        handed: HandedFiles::default(),
    };
    let mut call = match &step_runner.runner {
        RunnerKind::Shell => {
            let command = task.command.as_deref();
            let command = command.ok_or_else(|| PipelineError::NoCommand { task: task.id.to_string() })?;
            built_in(Program::new("sh").args(["-c", command]), "")
        }
        RunnerKind::Demo => built_in(Program::new(demo).arg("--agent"), prompt),
        RunnerKind::Program(runner) => {
            let model = step_runner.model.as_deref();
            let tools = tools.map(|server| ToolServer {
                home: Some(request.place.common_dir.join("arborist/homes").join(task.id.as_str())),
                ..server.clone().for_task(&task.id)
            });
            let tools = tools.as_ref();
            let request = Request { prompt, model, dir, session, prompt_file: None, tools };
            Call::of_runner(runner, request, log)?
        }
    };
    call.program = call.program.env("ARBORIST_TASK", task.id.as_str());
    Ok(call)
}
