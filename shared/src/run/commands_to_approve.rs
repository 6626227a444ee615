//! Checks before anything is created or run: programs must be installed, names must be known, and the user must approve
//! all commands that come from files of the repository. All approvals are asked for at once.

use std::{collections::BTreeSet, path::Path};

use super::{
    CallSource, OpenRun, Planned, RunRequest,
    opening::require_sandbox,
    request::{require_given, secrets},
};
use crate::{
    agent::{AgentError, limits::Chain},
    failure::{Exit, Failure},
    pipeline::{MessageOrigin, RunOptions, require_programs},
    plan::Plan,
    process::Cancel,
    queue::{Gate, QueueOptions},
    safe_files::InnerPath,
    settings::{Origin, Settings},
    workspace::{NamingMistake, Toolbox, Workspace},
};

/// Finds the commands of a run that come from files of the repository.
struct ForeignCommands<'a> {
    settings: &'a Settings,
    options: &'a RunOptions,
    workspace: &'a Workspace,
    plan: &'a Plan,
}

impl ForeignCommands<'_> {
    /// All of them and all settings that need approval, one line each; with lanes also those that lanes and gates need.
    fn list(&self, lanes: Option<usize>) -> Result<BTreeSet<String>, Failure> {
        let mut commands = self.of_plan_and_runners()?;
        let mut gates = Vec::new();
        if lanes.is_some() {
            // Only the commands are needed, so the clock is never read.
            let queue = QueueOptions::new(&self.options.runners, secrets()?, &Cancel::new(), || 0)?;
            commands.extend(queue.worktrees.commands_to_approve());
            commands.extend(queue.commands_to_approve());
            gates = queue.gates;
        }
        commands.extend(self.workspace.required_approvals());
        commands.extend(self.tool_commands_to_approve()?);
        commands.extend(self.named_tools(&gates));
        Ok(commands)
    }

    /// The commands of the plan's tasks, of the configuration's tests and of the runners.
    fn of_plan_and_runners(&self) -> Result<BTreeSet<String>, AgentError> {
        let Self { settings, options, plan, .. } = self;
        let mut commands = BTreeSet::new();
        for task in &plan.tasks {
            commands.extend(task.test_commands.iter().map(|test| format!("test: {}", test.command)));
            commands.extend(task.command.iter().map(|command| format!("shell: {command}")));
        }
        if let (Some(command), Origin::Repository) = (&options.test_command, options.test_command_origin) {
            commands.insert(format!("test: {command}"));
        }
        for chain in options.runners.chains(plan)? {
            commands.extend(chain.iter().flat_map(|step_runner| step_runner.lines_from_repository(settings)));
        }
        if options.runners.is_review_switched_off()? {
            commands.insert("review: demo (it approves everything)".to_owned());
        }
        if let MessageOrigin::Model(step_runner) = &options.message_by {
            commands.extend(step_runner.lines_from_repository(settings));
        }
        commands.extend(settings.tracked_lines());
        Ok(commands)
    }

    /// The tool commands, if agents are given tools.
    fn tool_commands_to_approve(&self) -> Result<BTreeSet<String>, AgentError> {
        let chains = self.options.runners.chains(self.plan)?;
        let is_given_tools = self.workspace.sections.len() > 1
            || chains.iter().flat_map(Chain::iter).any(|step_runner| step_runner.tools == Some(true));
        Ok(if is_given_tools { self.workspace.tool_commands_to_approve() } else { BTreeSet::new() })
    }

    /// The tool commands, if tests or gates name any.
    fn named_tools(&self, gates: &[Gate]) -> BTreeSet<String> {
        let tests = self.plan.tasks.iter().flat_map(|task| &task.test_commands);
        let tests = tests.map(|test| &test.command).chain(&self.options.test_command);
        let mut tests = tests.chain(gates.iter().map(|gate| &gate.command));
        let sections = &self.workspace.sections;
        let is_tool = |test: &String| sections.iter().any(|section| section.find_tool(test).is_some());
        if tests.any(is_tool) { self.workspace.tool_commands_to_approve() } else { BTreeSet::new() }
    }
}

impl RunRequest {
    /// The commands of such a run that come from files of the repository.
    pub fn commands_to_approve(
        &self,
        settings: &Settings,
        workspace: &Workspace,
        plan: &Plan,
    ) -> Result<BTreeSet<String>, Failure> {
        let options = &RunOptions::new(&self.flags, settings)?;
        ForeignCommands { settings, options, workspace, plan }.list(self.lanes.count(settings)?)
    }
}

impl OpenRun {
    /// Refuses pathspecs of protected files and of permissions that cannot be used.
    pub fn require_pathspecs(&self, planned: &Planned) -> Result<(), Failure> {
        match self.options.protection.find_mistake(&self.repository, planned.plan.leaves()) {
            Some(mistake) => {
                Err(Failure::new(Exit::No, mistake).hint("see 'git help glossary' about pathspecs"))
            }
            None => Ok(()),
        }
    }

    /// Refuses a run that cannot work. Returns the commands that the user has to approve.
    pub fn require_runnable(
        &self,
        planned: &Planned,
        lanes: Option<usize>,
    ) -> Result<BTreeSet<String>, Failure> {
        self.require_repositories(planned)?;
        if !self.has_no_task_left {
            self.repository.require_author()?;
        }
        self.require_pathspecs(planned)?;
        if let Some(path) = planned.file.as_ref().map(|file| &file.path) {
            path.parse::<InnerPath>().map_err(|error| {
                Failure::new(Exit::No, format!("the plan {error}"))
                    .hint("the plan must be inside the repository")
            })?;
        }
        // Without a task that is left, no agent is called.
        if self.request.source == CallSource::Agents && !self.has_no_task_left {
            let runners = &self.options.runners;
            let uses = runners.list_sandbox_uses_of(&planned.plan)?;
            require_sandbox(&uses, &self.options, &self.workspace, &self.repository)?;
            require_programs(&runners.chains(&planned.plan)?)?;
            runners.require_commands(&planned.plan)?;
        }
        let (settings, options, workspace) = (&self.settings, &self.options, &self.workspace);
        let foreign = ForeignCommands { settings, options, workspace, plan: &planned.plan };
        let mut commands = foreign.list(lanes)?;
        if self.pending_move.is_some() || self.options.tests_clean {
            commands.extend(self.worktree_options().commands_to_approve());
        }
        require_given(&self.repository, self.inherited.test.as_ref())?;
        Ok(commands)
    }

    /// Remembers that the user gave these options here, so that a continued run does not ask for approval.
    pub fn remember_options(&self) -> Result<(), Failure> {
        self.request.remember_options(&self.repository, self.inherited.test.is_some())
    }

    /// Refuses unknown names of repositories and tools. A task with an unknown repository would work in the wrong one;
    /// a test command or gate with an unknown tool would fail after each attempt.
    pub fn require_repositories(&self, planned: &Planned) -> Result<(), Failure> {
        for task in &planned.plan.tasks {
            if let Some(NamingMistake { what, fix }) = self.workspace.find_naming_mistake(task) {
                let place = task.source.as_ref().map(|source| format!("{}:{}: ", source.file, source.line));
                let words = format!("{}{what}", place.unwrap_or_default());
                return Err(Failure::new(Exit::No, words).hint(fix));
            }
        }
        let usual = self.options.test_command.as_deref().map(|command| ("the test command", command));
        let gates = self.settings.gates.iter().filter_map(|gate| gate.settings.command.as_ref());
        let gates = gates.map(|command| ("the gate", command.value.as_str()));
        let mut all = usual.into_iter().chain(gates);
        match all.find_map(|(whose, command)| self.workspace.find_missing_tool(whose, command)) {
            Some(NamingMistake { what, fix }) => Err(Failure::new(Exit::No, what).hint(fix)),
            None => Ok(()),
        }
    }

    /// The tools of this run's repositories. Their server is installed next to `program`.
    pub(super) fn toolbox(&self, program: &Path) -> Toolbox {
        let server = program.with_file_name("git-arborist-tools");
        Toolbox::new(server, &self.workspace, self.options.test_time)
    }
}
