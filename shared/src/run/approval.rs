//! What must be so before anything is made or run: programs that are there, repositories that are known, and the user's
//! approval of all that files of the repository would run, asked for at once.

use std::{collections::BTreeSet, path::Path};

use super::{
    CallSource, OpenRun, Planned, RunRequest,
    request::{require_given, secrets},
};
use crate::{
    agent::{AgentError, limits::Chain},
    failure::{Exit, Failure},
    pipeline::{MessageBy, RunOptions, require_programs},
    plan::Plan,
    process::Cancel,
    queue::{Gate, QueueOptions},
    safe_files::InnerPath,
    settings::{Origin, Settings, foreign_folders},
    workspace::{Misplaced, Toolbox, Workspace},
};

/// Finds what a run could execute that files of the repository bring along.
struct ForeignCommands<'a> {
    settings: &'a Settings,
    options: &'a RunOptions,
    workspace: &'a Workspace,
    plan: &'a Plan,
}

impl ForeignCommands<'_> {
    /// All of them, and where they run, a line each; with lanes also what is needed for these.
    fn list(&self, lanes: Option<usize>) -> Result<BTreeSet<String>, Failure> {
        let mut commands = self.of_plan_and_runners()?;
        let mut gates = Vec::new();
        if lanes.is_some() {
            // Nothing lands here, so nobody asks for the time.
            let queue = QueueOptions::new(&self.options.runners, secrets()?, &Cancel::new(), || 0)?;
            commands.extend(queue.worktrees.foreign_commands());
            commands.extend(queue.foreign_commands());
            gates = queue.gates;
        }
        commands.extend(self.workspace.foreign_wishes());
        commands.extend(self.foreign_tools()?);
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
        if let (Some(command), Origin::Repository) = (&options.test_command, options.test_origin) {
            commands.insert(format!("test: {command}"));
        }
        for chain in options.runners.chains(plan)? {
            commands.extend(chain.iter().flat_map(|step_runner| step_runner.foreign_lines(settings)));
        }
        if options.runners.is_review_switched_off()? {
            commands.insert("review: demo (it approves everything)".to_owned());
        }
        if let MessageBy::Model(step_runner) = &options.message_by {
            commands.extend(step_runner.foreign_lines(settings));
        }
        commands.extend(foreign_folders(settings, &["worktree.base", "log-dir", "report-dir"]));
        Ok(commands)
    }

    /// The commands that agents are offered as tools.
    fn foreign_tools(&self) -> Result<BTreeSet<String>, AgentError> {
        let chains = self.options.runners.chains(self.plan)?;
        let is_given = self.workspace.sections.len() > 1
            || chains.iter().flat_map(Chain::iter).any(|step_runner| step_runner.tools == Some(true));
        Ok(if is_given { self.workspace.foreign_tools() } else { BTreeSet::new() })
    }

    /// The commands that tests and gates name.
    fn named_tools(&self, gates: &[Gate]) -> BTreeSet<String> {
        let tests = self.plan.tasks.iter().flat_map(|task| &task.test_commands);
        let tests = tests.map(|test| &test.command).chain(&self.options.test_command);
        let mut tests = tests.chain(gates.iter().map(|gate| &gate.command));
        let sections = &self.workspace.sections;
        let is_tool = |test: &String| sections.iter().any(|section| section.find_tool(test).is_some());
        if tests.any(is_tool) { self.workspace.foreign_tools() } else { BTreeSet::new() }
    }
}

impl RunRequest {
    /// What a run that is asked for like this could execute that files of the repository bring along.
    pub fn foreign_commands(
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
    /// Refuses what cannot be run. Returns what the user has to approve before anything is made or run.
    pub fn require_runnable(
        &self,
        planned: &Planned,
        lanes: Option<usize>,
    ) -> Result<BTreeSet<String>, Failure> {
        self.require_repositories(planned)?;
        if let Some(path) = planned.file.as_ref().map(|file| &file.path) {
            path.parse::<InnerPath>().map_err(|error| {
                Failure::new(Exit::Fatal, format!("the plan {error}")).hint(
                    "a run writes its plan down by the path from the top of the repository: put it there",
                )
            })?;
        }
        if self.request.source == CallSource::Agents {
            let runners = &self.options.runners;
            require_programs(&runners.chains(&planned.plan)?)?;
            runners.require_commands(&planned.plan)?;
        }
        let (settings, options, workspace) = (&self.settings, &self.options, &self.workspace);
        let foreign = ForeignCommands { settings, options, workspace, plan: &planned.plan };
        let mut commands = foreign.list(lanes)?;
        if self.move_in.is_some() || self.options.tests_clean {
            commands.extend(self.worktree_options().foreign_commands());
        }
        require_given(&self.repository, self.inherited.test.as_ref())?;
        Ok(commands)
    }

    /// Remembers that the user gave a test command here, so that whoever continues need not approve it.
    pub fn remember_test(&self) -> Result<(), Failure> {
        match &self.inherited.test {
            Some(_) => Ok(()),
            None => self.request.remember_test(&self.repository),
        }
    }

    /// A task that names a repository that there is not would work in the wrong one; a test command or a gate
    /// that names a tool that there is not would fail after each attempt.
    pub fn require_repositories(&self, planned: &Planned) -> Result<(), Failure> {
        for task in &planned.plan.tasks {
            if let Some(Misplaced { what, fix }) = self.workspace.find_misplaced(task) {
                let place = task.source.as_ref().map(|source| format!("{}:{}: ", source.file, source.line));
                let words = format!("{}{what}", place.unwrap_or_default());
                return Err(Failure::new(Exit::Fatal, words).hint(fix));
            }
        }
        let usual = self.options.test_command.as_deref().map(|command| ("the test command", command));
        let gates = self.settings.below("merge.gates.").filter(|(key, _)| key.ends_with(".command"));
        let gates = gates.filter_map(|(key, _)| self.settings.text(&format!("merge.gates.{key}")));
        let mut all = usual.into_iter().chain(gates.map(|command| ("the gate", command)));
        match all.find_map(|(whose, command)| self.workspace.find_missing_tool(whose, command)) {
            Some(Misplaced { what, fix }) => Err(Failure::new(Exit::Fatal, what).hint(fix)),
            None => Ok(()),
        }
    }

    /// The tools of this run's repositories; their server stands beside `program`.
    pub(super) fn toolbox(&self, program: &Path) -> Toolbox {
        let server = program.with_file_name("git-arborist-tools");
        Toolbox::new(server, &self.workspace, self.options.test_time)
    }
}
