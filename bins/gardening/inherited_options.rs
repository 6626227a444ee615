//! What a run that goes on takes up of what its session was asked for before: how it is tested, and what it may spend.

use arborist_core::{
    failure::{Exit, Failure},
    history::Run,
    name::SessionId,
    pipeline::RunOptions,
    session::{Asked, SessionReader},
};

use super::{
    CallSource, GardeningArgs, OpenRun, Planned,
    asked::{TEST, test_wish, typed},
};

/// What was taken up.
#[derive(Debug, Clone, Default)]
pub(crate) struct InheritedOptions {
    /// The test command, as it is approved: a record may come from anywhere.
    pub(super) test: Option<String>,
    /// All of it, as it would be typed.
    pub(super) words: String,
}

impl OpenRun {
    /// A run that goes on is tested and limited as before, unless the user says something else now. Without that, what failed
    /// its tests would be complete as soon as nobody names them.
    pub(crate) fn take_up(
        &mut self,
        args: &mut GardeningArgs,
        (planned, run): (&Planned, &Run),
    ) -> Result<(), Failure> {
        if args.new_run || args.source == CallSource::Records {
            return Ok(());
        }
        let session = self.session(args, run).clone();
        let session_reader = SessionReader::new(&self.repository);
        let Some(newest) = session_reader.newest(&session)? else {
            return Ok(());
        };
        let before = session_reader.asked_of(&newest)?;
        let mut taken = Asked { options: args.budget.take_up(&before.options), withheld: Vec::new() };
        // An option of the session goes before the configuration, as it did when it was given.
        let needs_command = planned.plan.leaves().any(|task| task.test_commands.is_empty());
        if args.test_command.is_none() && needs_command {
            if before.withheld.iter().any(|name| name == TEST) {
                return Err(withheld(&session));
            }
            if let Some(command) = before.options.get(TEST) {
                args.test_command = Some(command.clone());
                args.inherited.test = Some(test_wish(&self.repository, command));
                taken.options.insert(TEST.to_owned(), command.clone());
            }
        }
        args.inherited.words = typed(&taken);
        self.options = RunOptions::new(&args.flags(), &self.settings)?;
        Ok(())
    }
}

/// What nobody wrote down cannot be taken up, and is not left out in silence.
fn withheld(session: &SessionId) -> Failure {
    let words =
        format!("session '{session}' was given a --{TEST} that holds a secret, so it was not recorded");
    Failure::new(Exit::Person, words).hint(format!("give it again: --{TEST} <the same as before>"))
}
