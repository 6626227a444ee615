//! Chooses the runners of each step. A flag takes precedence over the plan, and the plan over the configuration.

use std::path::PathBuf;

use crate::{
    agent::{
        AgentError, NamedIn, Overrides, ProtectedKind, ProtectedPath, Runner, RunnerKind, ToolServer,
        limits::{Chain, Choice},
    },
    pipeline::{MessageOrigin, PipelineError},
    plan::{Mark, Plan, Task},
    process::{Program, shell_word},
    sandbox::{SandboxUse, SandboxedChild},
    settings::{RunnerSettings, Settings, Sourced, StepSettings, TurnMessages},
    words::words,
};

/// A runner with the model and tools that it uses for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRunner {
    /// How the runner is called.
    pub runner: RunnerKind,
    /// Its name.
    pub name: String,
    /// The model that it is asked to use.
    pub model: Option<String>,
    /// Whether it is given MCP tools, if that was configured. By default it is if there is more than one repository.
    pub tools: Option<bool>,
}

impl StepRunner {
    /// Describes a call for the sandbox: what the agent may change besides its own state.
    #[must_use]
    pub fn sandboxed<'c>(&'c self, step: &'c str, places: Vec<PathBuf>) -> SandboxedChild<'c> {
        let (state, has_own_sandbox) = match &self.runner {
            RunnerKind::Program(runner) => (runner.state(), runner.has_own_sandbox()),
            RunnerKind::Shell | RunnerKind::Demo => (Vec::new(), false),
        };
        let protected = self.protected().into_iter();
        let is_written_by_program =
            |kind| matches!(kind, ProtectedKind::ClaudeCommands | ProtectedKind::CodexSettings);
        let protected = protected.filter(|file| !is_written_by_program(file.kind));
        let protected = protected.map(|file| file.path).collect();
        let private = self.program().and_then(Runner::private_folder).into_iter().collect();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = self.program().and_then(|runner| runner.require_program(&path).ok());
        let runner = Some(self.name.as_str());
        let reads = Vec::new();
        SandboxedChild { step, runner, state, protected, private, places, reads, has_own_sandbox, program }
    }

    /// How its program is called; `None` if it is built in.
    #[must_use]
    pub fn program(&self) -> Option<&Runner> {
        match &self.runner {
            RunnerKind::Program(runner) => Some(runner),
            RunnerKind::Shell | RunnerKind::Demo => None,
        }
    }

    /// The files of its program in which an agent must not change anything.
    #[must_use]
    pub fn protected(&self) -> Vec<ProtectedPath> {
        match &self.runner {
            RunnerKind::Program(runner) => runner.protected(),
            RunnerKind::Shell | RunnerKind::Demo => Vec::new(),
        }
    }
}

words! {
    /// The purposes that agents are called for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RunnerRole {
        /// Implementing a task.
        Implement = "implement",
        /// Reviewing a task.
        Review = "review",
        /// Writing a plan.
        Plan = "plan",
        /// Resolving a merge conflict.
        Resolve = "resolve",
        /// Writing the message of a turn's commit.
        CommitMessage = "commit-message",
    }
}

/// A runner and a model that are named in one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedRunner {
    /// The runner.
    pub runner: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// The runners and models that flags name.
#[derive(Debug, Clone, Default)]
pub struct RunnerFlags {
    /// `--runner` and `--model`.
    pub all: NamedRunner,
    /// `--implement-runner` and `--implement-model`.
    pub implement: NamedRunner,
    /// `--review-runner` and `--review-model`.
    pub review: NamedRunner,
    /// `--fallback`, in order.
    pub fallback: Vec<Choice>,
    /// `--tools`, if it was given.
    pub tools: Option<bool>,
}

impl RunnerFlags {
    /// Whether a flag names this runner.
    fn name(&self, runner: &str) -> bool {
        let named = [&self.all, &self.implement, &self.review].into_iter();
        named.filter_map(|named| named.runner.as_deref()).any(|named| named == runner)
            || self.fallback.iter().any(|choice| choice.runner == runner)
    }
}

/// Finds runners by flags, plan and configuration.
#[derive(Debug, Clone)]
pub struct RunnerTable {
    flags: RunnerFlags,
    settings: Settings,
}

/// The runner if none is named.
const DEFAULT: &str = "claude";

impl RunnerTable {
    /// Uses these flags and settings.
    #[must_use]
    pub fn new(flags: &RunnerFlags, settings: &Settings) -> Self {
        Self { flags: flags.clone(), settings: settings.clone() }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Refuses unknown runners early, before the plan is read.
    pub fn check(&self) -> Result<(), AgentError> {
        self.reviewers()?;
        self.chain(RunnerRole::Implement, NamedRunner::default()).map(drop)
    }

    /// The runner that implements a task, and its fallbacks.
    pub fn implementers(&self, task: &Task) -> Result<Chain<StepRunner>, AgentError> {
        let planned = NamedRunner { runner: task.runner.clone(), model: task.model.clone() };
        self.chain(RunnerRole::Implement, planned)
    }

    /// The runner that reviews, and its fallbacks.
    pub fn reviewers(&self) -> Result<Chain<StepRunner>, AgentError> {
        let chain = self.chain(RunnerRole::Review, NamedRunner::default())?;
        // The command of a task must not judge the task, also not if all other reviewers fail.
        let has_shell = chain.iter().any(|reviewer| reviewer.runner == RunnerKind::Shell);
        if has_shell { Err(AgentError::ShellReviews) } else { Ok(chain) }
    }

    /// Whether the repository itself names the reviewer that approves everything. A contributor must not be able to
    /// disable reviews silently.
    pub fn is_review_switched_off(&self) -> Result<bool, AgentError> {
        let review = self.settings.steps.find(RunnerRole::Review.as_str());
        let general = &self.settings.general;
        let is_asked = self.flags.review.runner.is_some() || self.flags.all.runner.is_some();
        let is_first_foreign = !is_asked && {
            let runner = review.and_then(|review| review.runner.as_ref()).or(general.runner.as_ref());
            runner.is_some_and(Sourced::is_tracked)
        };
        let are_others_foreign = self.flags.fallback.is_empty() && {
            let fallback = review.and_then(|review| review.fallback.as_ref()).or(general.fallback.as_ref());
            fallback.is_some_and(Sourced::is_tracked)
        };
        let reviewers = self.reviewers()?;
        let mut all = reviewers.iter().enumerate();
        Ok(all.any(|(number, step_runner)| {
            let is_named_here = if number == 0 { is_first_foreign } else { are_others_foreign };
            is_named_here && step_runner.runner == RunnerKind::Demo
        }))
    }

    /// The runner that writes plans.
    pub fn planner(&self) -> Result<StepRunner, AgentError> {
        Ok(self.chain(RunnerRole::Plan, NamedRunner::default())?.first().clone())
    }

    /// The runner that resolves conflicts.
    pub fn resolver(&self) -> Result<StepRunner, AgentError> {
        Ok(self.chain(RunnerRole::Resolve, NamedRunner::default())?.first().clone())
    }

    /// The source of turn messages.
    pub fn message_by(&self) -> Result<MessageOrigin, AgentError> {
        let of_step = self.settings.steps.find(RunnerRole::CommitMessage.as_str());
        let has_runner = of_step.is_some_and(|step| step.runner.is_some());
        match self.settings.session.commit_message {
            Some(TurnMessages::Plain) => Ok(MessageOrigin::Plain),
            Some(TurnMessages::Agent) => Ok(MessageOrigin::Agent),
            None if !has_runner => Ok(MessageOrigin::Agent),
            _ => {
                let chain = self.chain(RunnerRole::CommitMessage, NamedRunner::default())?;
                Ok(MessageOrigin::Model(Box::new(chain.first().clone())))
            }
        }
    }

    /// Which runners are used for which purpose, whatever the plan says. Unknown runners are reported by others.
    #[must_use]
    pub fn list_uses(&self) -> Vec<(RunnerRole, String)> {
        let roles = [RunnerRole::Implement, RunnerRole::Review, RunnerRole::Resolve];
        let chains =
            roles.into_iter().filter_map(|role| Some((role, self.chain(role, NamedRunner::default()).ok()?)));
        let names = |(role, chain): (RunnerRole, Chain<StepRunner>)| {
            chain.iter().map(|step_runner| (role, step_runner.name.clone())).collect::<Vec<_>>()
        };
        chains.flat_map(names).collect()
    }

    /// What runs in the sandbox, whatever the plan says.
    #[must_use]
    pub fn list_sandbox_uses(&self) -> Vec<SandboxUse> {
        let agents = self.list_uses().into_iter();
        let agents = agents.map(|(role, name)| SandboxUse { step: role.as_str(), runner: Some(name) });
        SandboxUse::of_commands().chain(agents).collect()
    }

    /// What runs in the sandbox because of the plan.
    pub fn list_sandbox_uses_of(&self, plan: &Plan) -> Result<Vec<SandboxUse>, AgentError> {
        let mut uses = Vec::new();
        for task in plan.leaves().filter(|task| !matches!(task.mark, Mark::Done | Mark::Skipped)) {
            let chain = self.implementers(task)?;
            let step = RunnerRole::Implement.as_str();
            uses.extend(chain.iter().map(|it| SandboxUse { step, runner: Some(it.name.clone()) }));
        }
        Ok(uses)
    }

    /// All chains of runners that a plan could need.
    pub fn chains(&self, plan: &Plan) -> Result<Vec<Chain<StepRunner>>, AgentError> {
        let mut chains = vec![self.reviewers()?];
        for task in plan.leaves().filter(|task| !matches!(task.mark, Mark::Done | Mark::Skipped)) {
            let chain = self.implementers(task)?;
            if !chains.contains(&chain) {
                chains.push(chain);
            }
        }
        Ok(chains)
    }

    /// The files of all agent programs of a plan in which no child must change anything.
    pub fn protected(&self, plan: &Plan) -> Result<Vec<ProtectedPath>, AgentError> {
        let mut runners: Vec<StepRunner> = vec![self.resolver()?];
        runners.extend(self.chains(plan)?.iter().flat_map(Chain::iter).cloned());
        if let MessageOrigin::Model(step_runner) = self.message_by()? {
            runners.push(*step_runner);
        }
        let mut files: Vec<ProtectedPath> = Vec::new();
        for file in runners.iter().flat_map(StepRunner::protected) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Refuses a plan for the runner `shell` in which no task has a command.
    pub fn require_commands(&self, plan: &Plan) -> Result<(), PipelineError> {
        let mut lacking = None;
        for task in plan.leaves().filter(|task| !matches!(task.mark, Mark::Done | Mark::Skipped)) {
            if task.command.is_some() || self.implementers(task)?.first().runner != RunnerKind::Shell {
                return Ok(());
            }
            lacking = lacking.or(Some(task));
        }
        lacking.map_or(Ok(()), |task| Err(PipelineError::NoCommand { task: task.id.to_string() }))
    }

    fn chain(&self, role: RunnerRole, planned: NamedRunner) -> Result<Chain<StepRunner>, AgentError> {
        let own = match role {
            RunnerRole::Implement => self.flags.implement.clone(),
            RunnerRole::Review => self.flags.review.clone(),
            RunnerRole::Plan | RunnerRole::Resolve | RunnerRole::CommitMessage => NamedRunner::default(),
        };
        let step = self.settings.steps.find(role.as_str());
        let configured = |runner: &Option<Sourced<String>>, model: &Option<String>| NamedRunner {
            runner: runner.as_ref().map(|runner| runner.value.clone()),
            model: model.clone(),
        };
        let flags = self.flags.all.clone();
        let of_step = step.map(|step| configured(&step.runner, &step.model)).unwrap_or_default();
        let general = configured(&self.settings.general.runner, &self.settings.general.model);
        let levels = match role {
            // The runner that does the work is rarely the best one for a line of text, and no flag names the runner that
            // resolves conflicts. So what is configured for these steps comes first.
            RunnerRole::CommitMessage => [of_step, self.flags.implement.clone(), flags, planned, general],
            RunnerRole::Resolve => [own, planned, of_step, flags, general],
            _ => [own, flags, planned, of_step, general],
        };
        let first = self.step_runner(choose(&levels))?;
        let others = self.fallback(step)?;
        let others =
            others.into_iter().map(|choice| self.step_runner(choice)).collect::<Result<Vec<_>, _>>()?;
        Ok(Chain::new(first, others))
    }

    fn fallback(&self, step: Option<&StepSettings>) -> Result<Vec<Choice>, AgentError> {
        if !self.flags.fallback.is_empty() {
            return Ok(self.flags.fallback.clone());
        }
        let of_step = step.and_then(|step| step.fallback.as_ref());
        let fallback = of_step.or(self.settings.general.fallback.as_ref());
        fallback.into_iter().flat_map(|fallback| &fallback.value).map(|word| Ok(word.parse()?)).collect()
    }

    fn step_runner(&self, choice: Choice) -> Result<StepRunner, AgentError> {
        let Choice { runner: name, model } = choice;
        if let Some(model) = model.as_ref().filter(|model| model.starts_with('-')) {
            return Err(AgentError::ModelIsOption { runner: name, model: model.clone() });
        }
        let settings = self.settings.runners.find(&name);
        let own = settings.map(overrides).transpose()?.unwrap_or_default();
        let tools = settings.and_then(|settings| settings.tools).or(self.settings.general.tools);
        let tools = self.flags.tools.or(tools);
        let resolved = RunnerKind::resolve(&name, &own);
        let runner = resolved.map_err(|error| match error {
            AgentError::UnknownRunner { name, place, .. } => {
                let place = if self.flags.name(&name) { NamedIn::Flag } else { place };
                let configured =
                    self.settings.runners.iter().filter(|group| group.settings.command.is_some());
                let configured = configured.map(|group| group.name.clone()).collect();
                AgentError::UnknownRunner { name, place, configured }
            }
            other => other,
        })?;
        Ok(StepRunner { runner, name, model, tools })
    }
}

/// What the settings change in a runner.
fn overrides(settings: &RunnerSettings) -> Result<Overrides, AgentError> {
    let words = |list: &Option<Sourced<Vec<String>>>| list.as_ref().map(|list| list.value.clone());
    let env = settings.env.iter().map(|(name, value)| (name.clone(), value.value.clone()));
    Ok(Overrides {
        command: words(&settings.command),
        location: settings.command.as_ref().map(Sourced::location),
        resume: words(&settings.resume),
        events: settings.events.as_deref().map(str::parse).transpose()?,
        env: env.collect(),
    })
}

/// Chooses the first runner that is named. A model belongs to the runner in effect where the model is named: if a place
/// with higher precedence names another runner, the model is not used.
fn choose(levels: &[NamedRunner]) -> Choice {
    let named_from = |at: usize| levels[at..].iter().find_map(|level| level.runner.as_deref());
    let runner = named_from(0).unwrap_or(DEFAULT);
    let mut models = levels.iter().enumerate().filter_map(|(at, level)| Some((at, level.model.as_ref()?)));
    let model = models.find(|(at, _)| named_from(*at).is_none_or(|named| named == runner));
    Choice { runner: runner.to_owned(), model: model.map(|(_, model)| model.clone()) }
}

impl StepRunner {
    /// Checks that its program exists, without running it. Built-in runners always exist.
    pub fn require_program(&self) -> Result<(), AgentError> {
        if let RunnerKind::Program(runner) = &self.runner {
            runner.require_program(&std::env::var_os("PATH").unwrap_or_default())?;
        }
        Ok(())
    }

    /// The lines of a runner's definition that came with the repository and need approval: its commands, and
    /// environment variables, because a variable can make any program run another one.
    #[must_use]
    pub fn lines_from_repository(&self, settings: &Settings) -> Vec<String> {
        let Some(settings) = settings.runners.find(&self.name) else { return Vec::new() };
        let calls = [&settings.command, &settings.resume].into_iter().flatten();
        let foreign = calls.filter(|call| call.is_tracked()).map(|call| &call.value);
        let typed =
            |words: &[String]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let mut lines: Vec<String> =
            foreign.map(|words| format!("runner {}: {}", self.name, typed(words))).collect();
        for (name, value) in settings.env.iter().filter(|(_, value)| value.is_tracked()) {
            lines.push(format!("runner {}: {name}={}", self.name, value.value));
        }
        lines
    }

    /// Whether it is given the tools of this server.
    #[must_use]
    pub fn is_given_tools(&self, server: &ToolServer) -> bool {
        self.tools.unwrap_or(server.repositories > 1)
    }

    /// Whether the user asked for tools that it cannot use.
    #[must_use]
    pub fn misses_tools(&self) -> bool {
        let takes_tools = match &self.runner {
            RunnerKind::Program(runner) => runner.takes_tools(),
            RunnerKind::Shell | RunnerKind::Demo => true,
        };
        self.tools == Some(true) && !takes_tools
    }

    /// How to log in at its provider, if we know.
    #[must_use]
    pub fn login(&self) -> Option<&'static str> {
        match &self.runner {
            RunnerKind::Program(runner) => runner.login(),
            RunnerKind::Shell | RunnerKind::Demo => None,
        }
    }
}

/// Fails if no runner of a chain is installed; the error names all of them.
pub fn require_programs(chains: &[Chain<StepRunner>]) -> Result<(), AgentError> {
    // These are searched for now, before the first child can put others on PATH.
    for name in ["sh", "nice"] {
        let _ = Program::locate(name);
    }
    for step_runner in chains.iter().flat_map(Chain::iter) {
        let _ = step_runner.require_program();
    }
    let is_there =
        |chain: &&Chain<StepRunner>| chain.iter().any(|step_runner| step_runner.require_program().is_ok());
    match chains.iter().find(|chain| !is_there(chain)) {
        Some(chain) => {
            let mut errors = chain.iter().filter_map(|step_runner| step_runner.require_program().err());
            let Some(first) = errors.next() else { return Ok(()) };
            Err(AgentError::for_all(first, &errors.collect::<Vec<_>>()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(runner: &str, model: &str) -> NamedRunner {
        let word = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        NamedRunner { runner: word(runner), model: word(model) }
    }

    #[test]
    fn a_model_applies_only_to_the_runner_in_force_where_it_is_set() {
        let table: [(&[(&str, &str)], &str); 7] = [
            (&[("", ""), ("", "")], "claude"),
            (&[("", ""), ("codex", "big")], "codex:big"),
            (&[("codex", ""), ("claude", "opus")], "codex"),
            (&[("claude", ""), ("claude", "opus")], "claude:opus"),
            (&[("codex", ""), ("", "big")], "codex:big"),
            (&[("", "small"), ("codex", "big")], "codex:small"),
            (&[("", ""), ("codex", ""), ("", ""), ("claude", "opus"), ("codex", "big")], "codex:big"),
        ];
        for (levels, expected) in table {
            let levels: Vec<NamedRunner> =
                levels.iter().map(|(runner, model)| named(runner, model)).collect();
            assert_eq!(choose(&levels).to_string(), expected, "{levels:?}");
        }
    }
}
