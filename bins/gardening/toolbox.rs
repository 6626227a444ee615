//! Tools that the agents of a run are given: which commands are among them, and who cannot have them.

use std::{collections::BTreeSet, path::Path};

use arborist_core::{
    agent::{AgentError, limits::Chain},
    queue::Gate,
    workspace::Toolbox,
};

use super::{Brought, OpenRun, Planned, Reporter};

impl OpenRun {
    /// The tools of this run's repositories; their server stands beside `program`.
    pub(super) fn toolbox(&self, program: &Path) -> Toolbox {
        let server = program.with_file_name("git-arborist-tools");
        Toolbox::new(server, &self.workspace, self.options.test_time)
    }

    /// Whoever is to be given tools and does not take them works without.
    pub(super) fn tell_of_missing_tools(
        &self,
        planned: &Planned,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), AgentError> {
        let chains = self.options.runners.chains(&planned.plan)?;
        let without: BTreeSet<&str> = chains
            .iter()
            .flat_map(Chain::iter)
            .filter(|step_runner| step_runner.misses_tools())
            .map(|step_runner| step_runner.name.as_str())
            .collect();
        for name in without {
            reporter.warn(&format!("'{name}' cannot be given tools, and works without them"));
            reporter.hint(&format!(
                "put {{tools}} or {{tools-file}} where runners.{name}.command takes a list of MCP servers"
            ));
        }
        Ok(())
    }
}

impl Brought<'_> {
    /// The commands that agents are offered and that a repository brought along.
    pub(super) fn foreign_tools(&self) -> Result<BTreeSet<String>, AgentError> {
        let chains = self.options.runners.chains(self.plan)?;
        let is_given = self.workspace.sections.len() > 1
            || chains.iter().flat_map(Chain::iter).any(|step_runner| step_runner.tools == Some(true));
        Ok(if is_given { self.workspace.foreign_tools() } else { BTreeSet::new() })
    }

    /// The same for commands that tests and gates name.
    pub(super) fn named_tools(&self, gates: &[Gate]) -> BTreeSet<String> {
        let tests = self.plan.tasks.iter().flat_map(|task| &task.test_commands);
        let tests = tests.map(|test| &test.command).chain(&self.options.test_command);
        let mut tests = tests.chain(gates.iter().map(|gate| &gate.command));
        let sections = &self.workspace.sections;
        let is_tool = |test: &String| sections.iter().any(|section| section.find_tool(test).is_some());
        if tests.any(is_tool) { self.workspace.foreign_tools() } else { BTreeSet::new() }
    }
}
