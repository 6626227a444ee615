//! What must be so before anything is made or run: programs that are there, repositories that are known, and the user's
//! consent to all that files of the repository want, asked for at once.

use arborist_core::{
    consent,
    enclosure::InnerPath,
    failure::{Exit, Failure},
    gardener::approval,
    pipeline::require_programs,
};

use super::{GardeningArgs, Opened, Planned, Source};

impl Opened {
    /// Refuses what cannot be run and what the user has not seen.
    pub(crate) fn approve(
        &self,
        args: &GardeningArgs,
        planned: &Planned,
        lanes: Option<usize>,
    ) -> Result<(), Failure> {
        self.require_repositories(planned)?;
        if let Some(path) = planned.file.as_ref().map(|file| &file.path) {
            path.parse::<InnerPath>().map_err(|error| {
                Failure::new(Exit::Fatal, format!("the plan {error}")).hint(
                    "a run writes its plan down by the path from the top of the repository: put it there",
                )
            })?;
        }
        if args.source == Source::Agents {
            require_programs(&self.options.staff.chains(&planned.plan)?)?;
        }
        let mut commands = approval::foreign_commands(&planned.plan, &self.options, &self.settings)?;
        if lanes.is_some() || self.move_in.is_some() {
            commands.extend(self.worktree_options().foreign_commands());
        }
        if lanes.is_some() {
            commands.extend(self.queue_options(planned)?.foreign_commands());
        }
        commands.extend(self.workspace.foreign_wishes());
        commands.extend(self.foreign_tools(planned)?);
        commands.extend(self.named_tools(planned));
        Ok(consent::require(&commands, args.consent())?)
    }
}
