//! What must be so before anything is made or run: programs that are there, repositories that are known, and the user's
//! consent to all that files of the repository want, asked for at once.

use std::collections::BTreeSet;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::approval::foreign_commands,
    pipeline::{RunOptions, require_programs},
    plan::Plan,
    process::Cancel,
    queue,
    safe_files::InnerPath,
    settings::Settings,
    workspace::Workspace,
};

use super::{CallSource, GardeningArgs, OpenRun, Planned, asked::require_given, open::secrets};
use crate::{approval, clock, ui::Ui};

/// What files of the repository may bring along for a run.
pub(crate) struct Brought<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) options: &'a RunOptions,
    pub(crate) workspace: &'a Workspace,
    pub(crate) plan: &'a Plan,
}

impl Brought<'_> {
    /// All that could be run of it, and where, a line each; with lanes also what is needed for these.
    pub(crate) fn commands(&self, lanes: Option<usize>) -> Result<BTreeSet<String>, Failure> {
        let mut commands = foreign_commands(self.plan, self.options, self.settings)?;
        let mut gates = Vec::new();
        if lanes.is_some() {
            let (runners, cancel) = (&self.options.runners, Cancel::new());
            let queue = queue::QueueOptions::new(runners, secrets()?, &cancel, clock::now)?;
            commands.extend(queue.worktrees.foreign_commands());
            commands.extend(queue.foreign_commands());
            gates = queue.gates;
        }
        commands.extend(self.workspace.foreign_wishes());
        commands.extend(self.foreign_tools()?);
        commands.extend(self.named_tools(&gates));
        Ok(commands)
    }
}

impl OpenRun {
    /// Refuses what cannot be run and what the user has not seen.
    pub(crate) fn approve(
        &self,
        args: &GardeningArgs,
        planned: &Planned,
        lanes: Option<usize>,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        self.require_repositories(planned)?;
        if let Some(path) = planned.file.as_ref().map(|file| &file.path) {
            path.parse::<InnerPath>().map_err(|error| {
                Failure::new(Exit::Fatal, format!("the plan {error}")).hint(
                    "a run writes its plan down by the path from the top of the repository: put it there",
                )
            })?;
        }
        if args.source == CallSource::Agents {
            let runners = &self.options.runners;
            require_programs(&runners.chains(&planned.plan)?)?;
            runners.require_commands(&planned.plan)?;
        }
        let (settings, options, workspace) = (&self.settings, &self.options, &self.workspace);
        let brought = Brought { settings, options, workspace, plan: &planned.plan };
        let mut commands = brought.commands(lanes)?;
        if self.move_in.is_some() || self.options.tests_clean {
            commands.extend(self.worktree_options().foreign_commands());
        }
        require_given(&self.repository, args.inherited.test.as_ref())?;
        approval::require(&self.repository, &commands, args.consent(), ui)?;
        args.remember_test(&self.repository)
    }
}
