//! Tools that the agents of a run are given: which commands are among them, and who cannot have them.

use std::{collections::BTreeSet, path::Path};

use arborist_core::{
    agent::{AgentError, limits::Chain},
    pipeline::Crew,
    workspace::Toolbox,
};

use super::{Opened, Planned, Voice};

impl Opened {
    /// The tools of this run's repositories; their server stands beside `program`.
    pub(super) fn toolbox(&self, program: &Path) -> Toolbox {
        let server = program.with_file_name("git-arborist-tools");
        Toolbox::new(server, &self.workspace, self.options.test_time)
    }

    /// The commands that agents are offered and that a repository brought along.
    pub(super) fn foreign_tools(&self, planned: &Planned) -> Result<BTreeSet<String>, AgentError> {
        let is_given =
            self.workspace.sections.len() > 1 || self.any_crew(planned, |crew| crew.tools == Some(true))?;
        Ok(if is_given { self.workspace.foreign_tools() } else { BTreeSet::new() })
    }

    /// Whoever is to be given tools and does not take them works without.
    pub(super) fn tell_of_missing_tools(
        &self,
        planned: &Planned,
        voice: &mut Voice<'_>,
    ) -> Result<(), AgentError> {
        let chains = self.options.staff.chains(&planned.plan)?;
        let without: BTreeSet<&str> = chains
            .iter()
            .flat_map(Chain::iter)
            .filter(|crew| crew.misses_tools())
            .map(|crew| crew.name.as_str())
            .collect();
        for name in without {
            voice.warn(&format!("'{name}' cannot be given tools, and works without them"));
            voice.hint(&format!(
                "put {{tools}} or {{tools-file}} where runners.{name}.command takes a list of MCP servers"
            ));
        }
        Ok(())
    }

    fn any_crew(&self, planned: &Planned, is: impl Fn(&Crew) -> bool) -> Result<bool, AgentError> {
        Ok(self.options.staff.chains(&planned.plan)?.iter().any(|chain| chain.iter().any(&is)))
    }
}
