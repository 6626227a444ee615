//! The options of a run as they were typed: the one type that the command line, the session's records and the run
//! share.
//!
//! A session records its options by name ([`RunRequest::recorded`]), so that a resumed session, here or in another
//! clone, uses the same tests and limits. `recorded_options` lists these names once, for writing and for reading.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use crate::{
    agent::{limits::Budget, redact::Secrets},
    consent::{self, Consent},
    failure::{Exit, Failure},
    gardener::{Selection, TypedOptions},
    git::Repository,
    name::TaskId,
    pipeline::{Budgets, Flags},
    process::shell_word,
    queue::LandingPolicy,
    run::{
        DEFAULT_REMOTE,
        recorded_options::{
            ALLOW, OptionArgument, TEST, is_of_lanes, option_approvals, recorded_words, typed_option,
        },
    },
    session::RecordedOptions,
    settings::{Settings, Size},
};

/// The options of a run. Which recorded options apply to a run that continues a session depends on the command:
///
/// - The same command again takes the test command, the budgets and `--allow` ([`OpenRun::inherit_options`](super::OpenRun)).
///   Everything else is what the user types now.
/// - `session resume` and `session replay` take all that are recorded, as if they had been typed. The user types nothing but what
///   differs.
///
/// An option that is neither typed nor taken has the value of the configuration.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The path of the plan, from the top of the repository.
    pub tree: Option<PathBuf>,
    /// Options that apply to each task.
    pub flags: Flags,
    /// How many tasks are worked on at once, and where.
    pub lanes: LaneRequest,
    /// The remote through which the plan is shared with workers on other machines, if it is. Then tasks have worktrees,
    /// and a failure does not stop the others.
    pub shared_through: Option<String>,
    /// Which tasks are wanted. This is not recorded.
    pub selection: Selection,
    /// Start although there are uncommitted changes.
    pub allow_dirty: bool,
    /// Start a new run instead of continuing the last one.
    pub new_run: bool,
    /// Work on a session branch.
    pub session_branch: bool,
    /// Continue although the plan or the configuration has changed.
    pub accept_changes: bool,
    /// Whether commands that are not approved yet may be run.
    pub consent: Consent,
    /// Whether agents are called.
    pub source: CallSource,
    /// Whether the run works on the user's branch and gives it back at its end.
    pub has_borrowed_branch: bool,
    /// Whether `session resume` started the run. It has no options of the run before `--`.
    pub is_resumed: bool,
    /// The task, if only one is run.
    pub single: Option<SingleTask>,
}

/// The task of a command that runs only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SingleTask {
    /// A task of the plan.
    Planned(TaskId),
    /// A task that was given as text on the command line, so that no plan is used.
    Words(String),
}

/// How many tasks are worked on at once, and which of them land.
#[derive(Debug, Clone, Default)]
pub struct LaneRequest {
    /// A number, or `auto`.
    pub jobs: Option<String>,
    /// Use a lane even for one task at a time.
    pub isolate: bool,
    /// Which finished tasks land.
    pub policy: LandingPolicy,
}

/// Whether agents are called or replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallSource {
    /// They are called.
    #[default]
    Agents,
    /// Their recorded output is replayed from the session that this one was forked from.
    Records,
}

impl LaneRequest {
    /// The number of lanes; `None` if tasks run one after the other in the run's checkout.
    pub fn count(&self, settings: &Settings) -> Result<Option<usize>, Failure> {
        let jobs = match self.jobs.as_deref() {
            None => settings.general.jobs,
            Some("auto") => Size::Auto,
            Some(number) => {
                Size::Number(number.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
                    Failure::new(Exit::Usage, format!("'{number}' is not a number of jobs"))
                        .hint("give 1 or more, or 'auto' for one job per core")
                })?)
            }
        };
        let count = match jobs {
            Size::Auto => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            Size::Number(count) => count,
        };
        Ok((count > 1 || self.isolate).then_some(count))
    }
}

impl RunRequest {
    /// The options as a session records them. Records are pushed, so for an option that holds a secret only the name is
    /// recorded.
    pub fn recorded(&self) -> Result<RecordedOptions, Failure> {
        Ok(RecordedOptions::without_secrets(self.named_options(), &secrets()?))
    }

    /// All recorded options by their names, including secrets.
    fn named_options(&self) -> BTreeMap<String, String> {
        let mut named = BTreeMap::new();
        let mut name = |name: &str, value: Option<String>| {
            named.extend(value.map(|value| (name.to_owned(), value)));
        };
        let switched = |is_on: bool| is_on.then(|| "true".to_owned());
        let (flags, lanes) = (&self.flags, &self.lanes);
        let runners = &flags.step_runner;
        for (step, named) in
            [("", &runners.all), ("implement-", &runners.implement), ("review-", &runners.review)]
        {
            name(&format!("{step}runner"), named.runner.clone());
            name(&format!("{step}model"), named.model.clone());
        }
        let fallback: Vec<String> = runners.fallback.iter().map(ToString::to_string).collect();
        name("fallback", Some(fallback.join(",")).filter(|names| !names.is_empty()));
        name("tools", switched(runners.tools == Some(true)));
        name(TEST, flags.test_command.clone());
        let allowed: Vec<&str> =
            flags.allow.iter().map(String::as_str).filter(|path| !path.contains('\n')).collect();
        name(ALLOW, Some(allowed.join("\n")).filter(|paths| !paths.is_empty()));
        name("sandbox", flags.sandbox.clone());
        name("report-dir", flags.report_dir.clone());
        name("log-dir", flags.log_dir.clone());
        name("diff-limit", flags.diff_limit.map(|number| number.to_string()));
        name("max-retries", flags.max_retries.map(|number| number.to_string()));
        for (whose, budget) in [("", flags.budgets.run), ("task-", flags.budgets.task)] {
            name(&format!("max-{whose}cost"), budget.cost.map(|cost| cost.to_string()));
            name(&format!("max-{whose}tokens"), budget.tokens.map(|tokens| tokens.to_string()));
            name(&format!("max-{whose}time"), budget.time.map(|time| time.as_secs().to_string()));
        }
        name("jobs", lanes.jobs.clone());
        let is_alone = self.shared_through.is_none();
        name("isolate", switched(lanes.isolate && is_alone));
        name("policy", (lanes.policy != LandingPolicy::default()).then(|| lanes.policy.to_string()));
        name("keep-going", switched(self.selection.keep_going && is_alone));
        named
    }

    /// The options for workers on other machines. An option that holds a secret cannot be passed: arguments can be seen
    /// by everyone there.
    pub fn worker_options(&self) -> Result<Vec<String>, Failure> {
        let recorded_options = self.recorded()?;
        if let Some(name) = recorded_options.withheld.first() {
            let words =
                format!("--{name} contains a secret, which would be visible on the machines of workers");
            return Err(Failure::new(Exit::Usage, words)
                .hint("let the command read the secret from the environment or a file of the worker"));
        }
        let recorded = recorded_options.options.iter();
        let typed = recorded.flat_map(|(name, value)| OptionArgument::of_recorded(name, value));
        let mut options: Vec<String> = typed.map(OptionArgument::argument).collect();
        options.extend(self.tree.iter().map(|tree| format!("--tree={}", tree.display())));
        options.extend(self.multiline_allowed().map(|path| format!("--{ALLOW}={path}")));
        options.extend(self.flags.allow_red.then(|| "--allow-red".to_owned()));
        Ok(options)
    }

    /// The values of `--allow` that are not recorded: one of several lines would be read as several values.
    fn multiline_allowed(&self) -> impl Iterator<Item = &String> {
        self.flags.allow.iter().filter(|path| path.contains('\n'))
    }

    /// Whether the task was given as text on the command line.
    pub(super) fn is_unplanned(&self) -> bool {
        matches!(self.single, Some(SingleTask::Words(_)))
    }

    /// The command that was typed, without its options.
    #[must_use]
    pub fn typed_command(&self) -> String {
        match (&self.single, &self.shared_through) {
            (None, None) => "git arborist gardener".to_owned(),
            (None, Some(remote)) if remote == DEFAULT_REMOTE => "git arborist work".to_owned(),
            (None, Some(remote)) => format!("git arborist work{}", typed_option("remote", remote)),
            (Some(SingleTask::Planned(task)), _) => format!("git arborist garden {task}"),
            (Some(SingleTask::Words(words)), _) => garden_words(words),
        }
    }

    /// The options that select tasks, for the command line.
    pub(super) fn typed_selection(&self) -> String {
        let only = self.selection.only.iter().map(|task| typed_option("only", task.as_str()));
        let until = self.selection.until.iter().map(|task| typed_option("until", task.as_str()));
        only.chain(until).collect()
    }

    /// The options for the hints of an error of this command.
    #[must_use]
    pub fn typed_options(&self) -> TypedOptions {
        let all = self.recorded().unwrap_or_default();
        let (mut common, mut lanes) = (all.clone(), RecordedOptions { withheld: Vec::new(), ..all });
        common.options.retain(|name, _| !is_of_lanes(name));
        lanes.options.retain(|name, _| is_of_lanes(name));
        let unselected = RunRequest { selection: Selection::default(), ..self.clone() };
        TypedOptions {
            tree: self.typed_tree(),
            common: recorded_words(&common) + &unselected.options_not_recorded(),
            lanes: recorded_words(&lanes),
            selection: self.typed_selection(),
        }
    }

    fn typed_tree(&self) -> String {
        self.tree.iter().map(|tree| typed_option("tree", &tree.display().to_string())).collect()
    }

    /// The options that are not recorded and have to be typed again in the same checkout.
    pub(super) fn options_not_recorded(&self) -> String {
        let dirt = if self.allow_dirty { " --allow-dirty" } else { "" };
        let red = if self.flags.allow_red { " --allow-red" } else { "" };
        format!("{}{dirt}{red}{}", self.typed_tree(), self.typed_selection())
    }

    /// Remembers that the user gave these options here, so that a continued run does not ask for approval. If that
    /// cannot be stored, the next run asks. Options that were only trusted for this call were never shown to the user,
    /// so they are not remembered; neither are those that were not recorded, nor a test command that comes from a
    /// record.
    pub(super) fn remember_options(
        &self,
        repository: &Repository,
        is_test_inherited: bool,
    ) -> Result<(), Failure> {
        if self.consent == Consent::Trusted {
            return Ok(());
        }
        let recorded_options = self.recorded()?;
        let mut approvals = option_approvals(recorded_options.options.iter());
        let test = recorded_options.options.get(TEST).filter(|_| !is_test_inherited);
        approvals.extend(test.map(|command| test_approval(repository, command)));
        let _ = consent::require(&repository.common_dir, &approvals, Consent::Given);
        Ok(())
    }
}

/// Uses the recorded limits for those that are not given now. Returns them by their names.
pub(super) fn inherit_budgets(
    budgets: &mut Budgets,
    before: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut taken = BTreeMap::new();
    for (whose, budget) in [("", &mut budgets.run), ("task-", &mut budgets.task)] {
        let Budget { cost, tokens, time } = budget;
        let mut take = |what: &str, fill: &mut dyn FnMut(&str) -> bool| {
            let name = format!("max-{whose}{what}");
            if let Some(text) = before.get(&name).filter(|text| fill(text)) {
                taken.insert(name, text.clone());
            }
        };
        take("cost", &mut |text| fill(cost, dollars(text).ok()));
        take("tokens", &mut |text| fill(tokens, text.parse().ok()));
        take("time", &mut |text| fill(time, text.parse().ok().map(Duration::from_secs)));
    }
    taken
}

/// Sets a limit that is not given. Returns whether it was set.
fn fill<T>(limit: &mut Option<T>, value: Option<T>) -> bool {
    if limit.is_some() || value.is_none() {
        return false;
    }
    *limit = value;
    true
}

/// Parses a sum of US dollars.
pub fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        Ok(number) if number.is_finite() => Err("must be more than 0".to_owned()),
        _ => Err("must be an amount in US dollars, such as 2.50".to_owned()),
    }
}

/// Secrets of the environment, which must not be recorded.
pub(super) fn secrets() -> Result<Secrets, Failure> {
    Ok(Secrets::of_environment(std::env::vars_os())?)
}

/// The command that runs a task given as text.
pub(super) fn garden_words(words: &str) -> String {
    let between = if words.starts_with('-') { "--message=" } else { "-m " };
    format!("git arborist garden {between}{}", shell_word(words))
}

/// Refuses a test command that comes only from a session's record. Records are refs, and anyone who can write a ref
/// could have written the command. So neither `--yes` nor the environment can approve it; the user has to give it on a
/// command line in this repository.
pub fn require_given(repository: &Repository, test: Option<&String>) -> Result<(), Failure> {
    let Some(test) = test else { return Ok(()) };
    let approval = BTreeSet::from([test.clone()]);
    if consent::unseen(&repository.common_dir, &approval).is_empty() {
        return Ok(());
    }
    let command = test.lines().next().unwrap_or_default();
    let words = format!(
        "the record of the session has a test command that you have not approved in this repository:\n{}",
        consent::shown(&[&command.to_owned()])
    );
    Err(Failure::new(Exit::Person, words)
        .hint("to approve the command, give it again: git arborist gardener --test-command <command>, or git arborist session resume <session> -- --test-command <command>"))
}

/// The text that is approved for a recorded test command: the command, in this repository.
#[must_use]
pub fn test_approval(repository: &Repository, command: &str) -> String {
    format!("{command}\n(the test command of a session in {})", repository.common_dir.display())
}
