//! Who does a step. An explicit flag wins over the plan, the plan over the configuration.

use crate::{
    agent::{
        AgentError, NamedIn, Overrides, RunnerKind, ToolServer,
        limits::{Chain, Choice},
    },
    pipeline::{MessageBy, PipelineError},
    plan::{Mark, Plan, Task},
    settings::{Origin, Settings},
};

/// Who does a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRunner {
    /// How it is called.
    pub runner: RunnerKind,
    /// Its name.
    pub name: String,
    /// The model that it is asked to use.
    pub model: Option<String>,
    /// Whether it is given tools, if that was said; otherwise it is where there is more than one repository.
    pub tools: Option<bool>,
}

/// What agents are called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Post {
    /// To do the work.
    Implement,
    /// To decide on it.
    Review,
    /// To make a plan.
    Plan,
    /// To resolve a conflict.
    Resolve,
    /// To say what a turn's commit holds.
    CommitMessage,
}

impl Post {
    /// As in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Plan => "plan",
            Self::Resolve => "resolve",
            Self::CommitMessage => "commit-message",
        }
    }
}

/// Who is named somewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedRunner {
    /// The runner.
    pub runner: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// Who is named by flags.
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

/// Everybody who can be called, by flags, plan and configuration.
#[derive(Debug, Clone)]
pub struct RunnerTable {
    flags: RunnerFlags,
    settings: Settings,
}

/// Who works when nobody is named.
const DEFAULT: &str = "claude";

impl RunnerTable {
    /// As flags and configuration say.
    #[must_use]
    pub fn new(flags: &RunnerFlags, settings: &Settings) -> Self {
        Self { flags: flags.clone(), settings: settings.clone() }
    }

    /// What is configured.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Refuses names that nobody has, before there is a plan.
    pub fn check(&self) -> Result<(), AgentError> {
        self.reviewers()?;
        self.chain(Post::Implement, NamedRunner::default()).map(drop)
    }

    /// Who does the work of a task, and who does it instead.
    pub fn implementers(&self, task: &Task) -> Result<Chain<StepRunner>, AgentError> {
        let planned = NamedRunner { runner: task.runner.clone(), model: task.model.clone() };
        self.chain(Post::Implement, planned)
    }

    /// Who reviews, and who does it instead.
    pub fn reviewers(&self) -> Result<Chain<StepRunner>, AgentError> {
        let chain = self.chain(Post::Review, NamedRunner::default())?;
        match chain.first().runner {
            RunnerKind::Shell => Err(AgentError::ShellReviews),
            _ => Ok(chain),
        }
    }

    /// Whether the repository itself names the reviewer that approves everything. A contributor must not be able to switch the
    /// review off without a word.
    pub fn is_review_switched_off(&self) -> Result<bool, AgentError> {
        let is_foreign = |keys: [&str; 2]| {
            let named = keys.iter().find(|key| self.settings.origin(key).is_some());
            named.is_some_and(|key| self.settings.origin(key) == Some(Origin::Repository))
        };
        let is_asked = self.flags.review.runner.is_some() || self.flags.all.runner.is_some();
        let is_first_foreign = !is_asked && is_foreign(["steps.review.runner", "runner"]);
        let are_others_foreign =
            self.flags.fallback.is_empty() && is_foreign(["steps.review.fallback", "fallback"]);
        let reviewers = self.reviewers()?;
        let mut all = reviewers.iter().enumerate();
        Ok(all.any(|(number, step_runner)| {
            let is_named_here = if number == 0 { is_first_foreign } else { are_others_foreign };
            is_named_here && step_runner.runner == RunnerKind::Demo
        }))
    }

    /// Who makes a plan.
    pub fn planner(&self) -> Result<StepRunner, AgentError> {
        Ok(self.chain(Post::Plan, NamedRunner::default())?.first().clone())
    }

    /// Who resolves conflicts.
    pub fn resolver(&self) -> Result<StepRunner, AgentError> {
        Ok(self.chain(Post::Resolve, NamedRunner::default())?.first().clone())
    }

    /// Where the messages of turns come from.
    pub fn message_by(&self) -> Result<MessageBy, AgentError> {
        let has_runner = self.settings.text("steps.commit-message.runner").is_some();
        match self.settings.text("session.commit-message") {
            Some("plain") => Ok(MessageBy::Plain),
            Some("agent") => Ok(MessageBy::Agent),
            None if !has_runner => Ok(MessageBy::Agent),
            _ => {
                let chain = self.chain(Post::CommitMessage, NamedRunner::default())?;
                Ok(MessageBy::Model(Box::new(chain.first().clone())))
            }
        }
    }

    /// Everybody that a plan could need, a chain each.
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

    /// Refuses a plan of tasks for the shell of which none has a command.
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

    fn chain(&self, post: Post, planned: NamedRunner) -> Result<Chain<StepRunner>, AgentError> {
        let own = match post {
            Post::Implement => self.flags.implement.clone(),
            Post::Review => self.flags.review.clone(),
            Post::Plan | Post::Resolve | Post::CommitMessage => NamedRunner::default(),
        };
        let step = |key: &str| format!("steps.{}.{key}", post.as_str());
        let configured = |runner: &str, model: &str| NamedRunner {
            runner: self.settings.text(runner).map(str::to_owned),
            model: self.settings.text(model).map(str::to_owned),
        };
        let levels = [
            own,
            // Who works is not whom one asks for a line.
            if post == Post::CommitMessage { NamedRunner::default() } else { self.flags.all.clone() },
            planned,
            configured(&step("runner"), &step("model")),
            configured("runner", "model"),
        ];
        let first = self.step_runner(choose(&levels))?;
        let others = self.fallback(&step("fallback"))?;
        let others =
            others.into_iter().map(|choice| self.step_runner(choice)).collect::<Result<Vec<_>, _>>()?;
        Ok(Chain::new(first, others))
    }

    fn fallback(&self, key: &str) -> Result<Vec<Choice>, AgentError> {
        if !self.flags.fallback.is_empty() {
            return Ok(self.flags.fallback.clone());
        }
        let words = self.settings.words(key).or_else(|| self.settings.words("fallback")).unwrap_or_default();
        words.iter().map(|word| Ok(word.parse()?)).collect()
    }

    fn step_runner(&self, choice: Choice) -> Result<StepRunner, AgentError> {
        let Choice { runner: name, model } = choice;
        if let Some(model) = model.as_ref().filter(|model| model.starts_with('-')) {
            return Err(AgentError::ModelIsOption { runner: name, model: model.clone() });
        }
        let settings = &self.settings;
        let key = |field: &str| format!("runners.{name}.{field}");
        let env =
            settings.below(&key("env.")).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let events = match settings.text(&key("events")) {
            Some(format) => Some(format.parse()?),
            None => None,
        };
        let own = Overrides {
            command: settings.words(&key("command")).map(<[String]>::to_vec),
            resume: settings.words(&key("resume")).map(<[String]>::to_vec),
            events,
            env,
        };
        let tools = settings.switch(&key("tools")).or_else(|| settings.switch("tools"));
        let tools = self.flags.tools.or(tools);
        let resolved = RunnerKind::resolve(&name, &own);
        let runner = resolved.map_err(|error| match error {
            AgentError::UnknownRunner { name, .. } if self.flags.name(&name) => {
                AgentError::UnknownRunner { name, place: NamedIn::Flag }
            }
            other => other,
        })?;
        Ok(StepRunner { runner, name, model, tools })
    }
}

/// The runner that is named first. A model is meant for the runner that holds where it is named: one that a more
/// important place has put aside takes its model with it.
fn choose(levels: &[NamedRunner]) -> Choice {
    let named_from = |at: usize| levels[at..].iter().find_map(|level| level.runner.as_deref());
    let runner = named_from(0).unwrap_or(DEFAULT);
    let mut models = levels.iter().enumerate().filter_map(|(at, level)| Some((at, level.model.as_ref()?)));
    let model = models.find(|(at, _)| named_from(*at).is_none_or(|named| named == runner));
    Choice { runner: runner.to_owned(), model: model.map(|(_, model)| model.clone()) }
}

impl StepRunner {
    /// Looks whether its program is there, without running it. What is built in always is.
    pub fn require_program(&self) -> Result<(), AgentError> {
        if let RunnerKind::Program(runner) = &self.runner {
            runner.require_program(&std::env::var_os("PATH").unwrap_or_default())?;
        }
        Ok(())
    }

    /// What a repository brought along of its runner, a line each: its calls, and what is set in its environment, which
    /// can make any program run another.
    #[must_use]
    pub fn foreign_lines(&self, settings: &Settings) -> Vec<String> {
        let key = |field: &str| format!("runners.{}.{field}", self.name);
        let is_foreign = |key: &str| settings.origin(key) == Some(Origin::Repository);
        let calls = [key("command"), key("resume")];
        let foreign = calls.iter().filter(|call| is_foreign(call)).filter_map(|call| settings.words(call));
        let mut lines: Vec<String> =
            foreign.map(|words| format!("runner {}: {}", self.name, words.join(" "))).collect();
        let env = key("env.");
        for (name, value) in settings.below(&env).filter(|(name, _)| is_foreign(&format!("{env}{name}"))) {
            lines.push(format!("runner {}: {name}={value}", self.name));
        }
        lines
    }

    /// Whether it is given the tools of this server.
    #[must_use]
    pub fn is_given(&self, server: &ToolServer) -> bool {
        self.tools.unwrap_or(server.repositories > 1)
    }

    /// Whether tools that it should be given would not reach it.
    #[must_use]
    pub fn misses_tools(&self) -> bool {
        let takes_tools = match &self.runner {
            RunnerKind::Program(runner) => runner.takes_tools(),
            RunnerKind::Shell | RunnerKind::Demo => true,
        };
        self.tools == Some(true) && !takes_tools
    }

    /// How to be let in by its provider, if we know.
    #[must_use]
    pub fn login(&self) -> Option<&'static str> {
        match &self.runner {
            RunnerKind::Program(runner) => runner.login(),
            RunnerKind::Shell | RunnerKind::Demo => None,
        }
    }
}

/// Refuses a chain of which nobody is there; the complaint is about the one that was wanted.
pub fn require_programs(chains: &[Chain<StepRunner>]) -> Result<(), AgentError> {
    let is_there =
        |chain: &&Chain<StepRunner>| chain.iter().any(|step_runner| step_runner.require_program().is_ok());
    match chains.iter().find(|chain| !is_there(chain)) {
        Some(chain) => chain.first().require_program(),
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
    fn a_model_belongs_to_the_runner_that_holds_where_it_is_named() {
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
