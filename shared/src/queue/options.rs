//! What the drains of a run share: the settings of the queue, what the plan says, and what earlier drains have learnt.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, OnceLock},
};

use super::{Brief, DrainRules, Gate, GateResults, Resolver, other_branches::repos_of_tasks};
use crate::{
    agent::{AgentError, redact::Secrets},
    coordination::RemoteWork,
    git::Signing,
    history::CommitCache,
    mutex::SharedSet,
    name::{Oid, RepoName, TaskId},
    pipeline::{ConfigGuard, Protection, RunnerTable, log_size},
    plan::{Mark, Plan, Task, TestCommand},
    process::Cancel,
    settings::{
        GateSettings, MergeSettings, NamedGroup, OnConflict, Origin, ReviewsIn, Settings, TranscriptMode,
    },
    workspace::RepoSection,
    worktree::WorktreeOptions,
};

/// What the plan says about tasks, their tests and their phases.
#[derive(Debug, Default)]
pub struct QueuePlan {
    /// What the resolver is told about each task.
    pub briefs: HashMap<TaskId, Brief>,
    /// The test commands of tasks that have their own.
    pub tests: HashMap<TaskId, Vec<Gate>>,
    /// The gates made from a phase's own tests, by the phase's id. They gate the landing of its last task.
    pub phases: HashMap<TaskId, Vec<Gate>>,
    /// The unfinished tasks of these phases, by the phase's id.
    pub leaves: HashMap<TaskId, Vec<TaskId>>,
    /// What tasks may do nevertheless: protected files that they may change, as pathspecs, and `fewer-tests`.
    pub allowed: HashMap<TaskId, Vec<String>>,
    /// The tasks that write failing tests, and those that have to make them pass.
    pub tests_first: Vec<(TaskId, Vec<TaskId>)>,
    /// The repositories of each task that works in another one than the plan's. Gates run there too.
    pub task_repos: HashMap<TaskId, Vec<RepoName>>,
}

/// What earlier drains of this process have learnt.
#[derive(Debug, Default)]
pub struct QueueMemory {
    /// Commits of the run that were read by earlier drains.
    pub commits: CommitCache,
    /// Results of gates in this process.
    pub results: GateResults,
    /// Tasks whose branches hold work that the run did not write. They do not land.
    pub distrusted: SharedSet<TaskId>,
    /// The resolutions that this process has accepted from a resolver or a person.
    pub resolutions: SharedSet<Oid>,
    /// Whether merge commits are signed, once known.
    pub signing: OnceLock<Signing>,
    /// Set once it is determined which untracked files the worktrees of gates get.
    pub files_settled: OnceLock<()>,
    /// Held while something tests in the session's worktrees of other repositories, or updates them.
    pub other_checkouts: Mutex<()>,
}

/// What the drains of a run share: settings, what the plan says, and what earlier drains have learnt.
#[derive(Debug)]
pub struct QueueOptions {
    /// What the plan says.
    pub plan: QueuePlan,
    /// What earlier drains have learnt.
    pub memory: QueueMemory,
    /// What is tested together, and what lands.
    pub rules: DrainRules,
    /// The settings of landings.
    pub merge: MergeSettings,
    /// Gates for everything that lands.
    pub gates: Vec<Gate>,
    /// Settings from files of the repository that let more land, as the user has to approve them.
    pub tracked_lines: BTreeSet<String>,
    /// The agent that resolves them, if there is one.
    pub resolver: Option<Resolver>,
    /// Why no agent resolves them, unless the user switched that off.
    pub no_resolver: Option<String>,
    /// Watches what resolvers and gates must not change, together with all other child processes.
    pub config_guard: ConfigGuard,
    /// Files that a resolution must not change.
    pub protection: Protection,
    /// Whether fewer tests may run after a landing than before it.
    pub allow_fewer: bool,
    /// Tasks that the command line of this process allows to land although they are not complete.
    pub forced: HashSet<TaskId>,
    /// The time limit of a task's or a phase's test that names none, in seconds.
    pub test_time: u64,
    /// The run's test command, if there is one. Without gates, every landing has to pass it.
    pub usual_test: Option<Gate>,
    /// The repositories of the workspace.
    pub sections: Vec<RepoSection>,
    /// The directory of task reports, from the top of the repository.
    pub report_dir: String,
    /// How worktrees for gates are set up.
    pub worktrees: WorktreeOptions,
    /// The directory of logs, from the top of the repository.
    pub log_dir: String,
    /// The largest size of a log, in bytes.
    pub log_size: u64,
    /// Secrets that must not be logged.
    pub secrets: Secrets,
    /// Whether transcripts of agents are kept.
    pub transcripts: TranscriptMode,
    /// Where the plan is shared with workers on other machines, if it is.
    pub remote_work: Option<Arc<RemoteWork>>,
    /// Cancelled when the user wants to stop.
    pub cancel: Cancel,
    /// The current time in seconds since 1970.
    pub clock: fn() -> i64,
}

impl QueuePlan {
    /// `test_time` is the time limit of tests that name none, in seconds.
    fn new(plan: &Plan, sections: &[RepoSection], test_time: u64) -> Self {
        let brief = |task: &Task| {
            let brief = Brief { name: task.name.clone(), description: task.description.clone() };
            (task.id.clone(), brief)
        };
        let gate = |test: &TestCommand| {
            let name = format!("{} test", test.kind.as_str());
            Gate::of_test(&name, test, Origin::Repository, test_time)
        };
        let tests = |task: &Task| (task.id.clone(), task.test_commands.iter().map(gate).collect());
        let tested = plan.leaves().filter(|task| !task.test_commands.is_empty());
        let phases: HashMap<TaskId, Vec<Gate>> =
            plan.tasks.iter().filter_map(|phase| phase_gates(phase, test_time)).collect();
        let leaves = |phase: &TaskId| {
            let open = plan.leaves_of(phase).filter(|leaf| !matches!(leaf.mark, Mark::Done | Mark::Skipped));
            (phase.clone(), open.map(|leaf| leaf.id.clone()).collect())
        };
        Self {
            briefs: plan.tasks.iter().map(brief).collect(),
            tests: tested.map(tests).collect(),
            leaves: phases.keys().map(leaves).collect(),
            phases,
            allowed: plan.leaves().map(|task| (task.id.clone(), task.allow.clone())).collect(),
            tests_first: plan.tests_first(),
            task_repos: repos_of_tasks(sections, plan),
        }
    }
}

impl QueueOptions {
    /// Reads the settings. The runner table says which agent resolves conflicts.
    pub fn new(
        runners: &RunnerTable,
        secrets: Secrets,
        cancel: &Cancel,
        clock: fn() -> i64,
    ) -> Result<Self, AgentError> {
        let settings = runners.settings();
        let config_guard = ConfigGuard::default();
        let mut worktrees = WorktreeOptions::new(settings, cancel);
        worktrees.config_guard = config_guard.clone();
        let (resolver, no_resolver) = Resolver::find(runners)?;
        let reviewer = resolver.as_ref().and_then(|resolver| resolver.reviewer.program()).cloned();
        config_guard.watch_reviewers(reviewer.iter(), ReviewsIn::Scratch);
        Ok(Self {
            plan: QueuePlan::default(),
            memory: QueueMemory::default(),
            rules: DrainRules::new(&settings.merge),
            merge: settings.merge.clone(),
            gates: gates(settings),
            tracked_lines: settings.tracked_lines(),
            resolver,
            no_resolver,
            config_guard,
            protection: Protection::new(settings, &[]).with_reviewers(reviewer.iter()),
            allow_fewer: settings.tests.allow_fewer,
            forced: HashSet::new(),
            test_time: test_time(settings),
            usual_test: usual_test(settings),
            sections: Vec::new(),
            report_dir: settings.general.report_dir.clone(),
            worktrees,
            log_dir: settings.general.log_dir.clone(),
            log_size: log_size(settings),
            secrets,
            transcripts: settings.session.transcripts,
            remote_work: None,
            cancel: cancel.clone(),
            clock,
        })
    }

    /// Uses the guard of a run, which watches all of its repositories.
    #[must_use]
    pub fn with_guard(mut self, config_guard: &ConfigGuard) -> Self {
        self.config_guard = config_guard.clone();
        self.worktrees.config_guard = config_guard.clone();
        self
    }

    /// Adds what the plan says, and the repositories of a workspace.
    #[must_use]
    pub fn with_plan(self, plan: &Plan, sections: &[RepoSection]) -> Self {
        Self { plan: QueuePlan::new(plan, sections, self.test_time), sections: sections.to_vec(), ..self }
    }

    /// Whether every conflict is left to a person.
    #[must_use]
    pub fn leaves_conflicts(&self) -> bool {
        let assists = self.resolver.as_ref().is_some_and(|resolver| resolver.assists);
        self.merge.on_conflict == OnConflict::Resolve && !assists && self.no_resolver.is_none()
    }

    /// Finds a repository other than the plan's.
    pub(super) fn find_other(&self, name: &RepoName) -> Option<&RepoSection> {
        self.sections.iter().find(|section| !section.is_main && section.name == *name)
    }

    /// The repositories that a task works in, apart from the plan's.
    pub(super) fn others_of(&self, task: &TaskId) -> Vec<&RepoSection> {
        self.plan
            .task_repos
            .get(task)
            .into_iter()
            .flatten()
            .filter_map(|name| self.find_other(name))
            .collect()
    }

    /// A gate with its repository: that of the tool it names, or else `usual`.
    pub(super) fn placed(&self, gate: &Gate, usual: Option<&RepoName>) -> Gate {
        let named = |section: &RepoSection| {
            let command = section.find_tool(&gate.command)?.command.clone();
            Some(Gate { command, repo: (!section.is_main).then(|| section.name.clone()), ..gate.clone() })
        };
        match self.sections.iter().find_map(named) {
            Some(named) => named,
            None => Gate { repo: usual.cloned(), ..gate.clone() },
        }
    }

    /// The gates that run in a repository if a task changes it; `None` means the plan's. A gate that names a tool of
    /// another repository runs only there. If no gates are configured, it is the run's test command, except where the
    /// task is tested anyway.
    pub(super) fn gates_in<'a>(
        &'a self,
        repo: Option<&'a RepoName>,
        task: &TaskId,
    ) -> impl Iterator<Item = Gate> + use<'a> {
        let is_tested = repo == self.tested_in(task);
        let is_usual = self.gates.is_empty() && !is_tested;
        let usual = self.usual_test.as_ref().filter(|usual| is_usual && !self.is_tool(usual));
        let placed = self.gates.iter().chain(usual).map(move |gate| self.placed(gate, repo));
        placed.filter(move |gate| gate.repo.as_ref() == repo)
    }

    /// The repository in which a task is tested: the first that it names.
    pub(super) fn tested_in(&self, task: &TaskId) -> Option<&RepoName> {
        let first = self.plan.task_repos.get(task)?.first()?;
        self.find_other(first).map(|section| &section.name)
    }

    /// Whether a gate's command is a tool of a repository.
    #[must_use]
    pub fn is_tool(&self, gate: &Gate) -> bool {
        self.sections.iter().any(|section| section.find_tool(&gate.command).is_some())
    }

    /// Sets the run's test command, which an option may give instead of the settings.
    #[must_use]
    pub fn with_test_command(self, command: Option<&str>, origin: Origin) -> Self {
        let gate = |command: &str| Gate::of_test_command(command, origin, self.test_time);
        Self { usual_test: command.filter(|command| !command.trim().is_empty()).map(gate), ..self }
    }

    /// The gates of a task's landing if none are configured: the run's test command, because only that sees what other
    /// tasks have changed meanwhile, and the task's own test commands.
    #[must_use]
    pub fn tests_of(&self, task: &TaskId) -> Vec<Gate> {
        if !self.gates.is_empty() {
            return Vec::new();
        }
        let own = self.plan.tests.get(task).into_iter().flatten();
        let is_other =
            |gate: &&Gate| self.usual_test.as_ref().is_none_or(|usual| usual.command != gate.command);
        self.usual_test.iter().chain(own.filter(is_other)).cloned().collect()
    }

    /// The phases with their own tests that are complete once a task has landed after others, sorted by id.
    #[must_use]
    pub fn phases_completed(&self, task: &TaskId, is_landed: impl Fn(&TaskId) -> bool) -> Vec<TaskId> {
        let is_done = |leaf: &TaskId| leaf == task || is_landed(leaf);
        let completed = self.plan.leaves.iter().filter(|(_, leaves)| leaves.contains(task));
        let completed = completed.filter(|(_, leaves)| leaves.iter().all(is_done));
        let mut phases: Vec<TaskId> = completed.map(|(phase, _)| phase.clone()).collect();
        phases.sort();
        phases
    }

    /// Whether any landing has a gate.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        !self.gates.is_empty() || self.usual_test.is_some() || !self.plan.tests.is_empty()
    }

    /// The commands and settings that come from files of the repository, for
    /// [`consent::require`](crate::consent::require).
    #[must_use]
    pub fn commands_to_approve(&self) -> BTreeSet<String> {
        let foreign = self.gates.iter().filter(|gate| gate.foreign);
        let mut commands: BTreeSet<String> = foreign.map(|gate| format!("gate: {}", gate.command)).collect();
        if self.is_gated() || self.resolver.is_some() {
            commands.extend(self.worktrees.commands_to_approve());
        }
        commands.extend(self.resolver.iter().flat_map(|resolver| resolver.foreign.clone()));
        commands.extend(self.tracked_lines.iter().cloned());
        commands
    }
}

/// The gates made from a phase's own tests, if it has any. `test_time` is the time limit of those that name none.
fn phase_gates(phase: &Task, test_time: u64) -> Option<(TaskId, Vec<Gate>)> {
    let gate = |test: &TestCommand| {
        let name = format!("{} of {}", test.kind.as_str(), phase.id);
        Gate::of_test(&name, test, Origin::Repository, test_time)
    };
    let gates: Vec<Gate> = phase.own_tests().map(gate).collect();
    (!gates.is_empty()).then(|| (phase.id.clone(), gates))
}

/// The configured gates, in the order in which they are first named.
fn gates(settings: &Settings) -> Vec<Gate> {
    let gate = |named: &NamedGroup<GateSettings>| {
        let GateSettings { command, timeout, when } = &named.settings;
        let command = command.as_ref()?;
        // A tracked file must not weaken a gate of the user's.
        let is_tracked_gate = command.is_tracked();
        let timeout = timeout.as_ref().filter(|timeout| is_tracked_gate || !timeout.is_tracked());
        let when = when.as_ref().filter(|when| is_tracked_gate || !when.is_tracked());
        let usual = Gate::new(&named.name, &command.value, command.origin);
        Some(Gate {
            timeout: timeout.map_or(usual.timeout, |timeout| timeout.value),
            when: when.map(|when| when.value.clone()).filter(|when| when != "always"),
            ..usual
        })
    };
    settings.gates.iter().filter_map(gate).collect()
}

fn test_time(settings: &Settings) -> u64 {
    settings.timeouts.test.as_secs()
}

fn usual_test(settings: &Settings) -> Option<Gate> {
    let command =
        settings.general.test_command.as_ref().filter(|command| !command.value.trim().is_empty())?;
    Some(Gate::of_test_command(&command.value, command.origin, test_time(settings)))
}
