//! What a run that continues takes over from its session's records: how it is tested, and what it may spend.

use super::{
    CallSource, OpenRun, Planned,
    request::{TEST, inherit_budgets, test_wish, typed},
};
use crate::{
    failure::{Exit, Failure},
    history::Run,
    name::SessionId,
    pipeline::RunOptions,
    session::{Asked, SessionReader},
};

/// What was taken over.
#[derive(Debug, Clone, Default)]
pub struct InheritedOptions {
    /// The test command, as it is approved: a record may come from anywhere.
    pub(super) test: Option<String>,
    /// All of it, as it would be typed.
    pub(super) words: String,
}

impl OpenRun {
    /// A run that continues is tested and limited as before, unless the user says something else now. Without that, what
    /// failed its tests would be complete as soon as nobody names them.
    pub fn inherit_options(&mut self, planned: &Planned, run: &Run) -> Result<(), Failure> {
        if self.request.new_run || self.request.source == CallSource::Records {
            return Ok(());
        }
        let session = self.session(run).clone();
        let session_reader = SessionReader::new(&self.repository);
        let Some(newest) = session_reader.newest(&session)? else {
            return Ok(());
        };
        let before = session_reader.asked_of(&newest)?;
        let flags = &mut self.request.flags;
        let options = inherit_budgets(&mut flags.budgets, &before.options);
        let mut taken = Asked { options, withheld: Vec::new() };
        // An option of the session goes before the configuration, as it did when it was given.
        let needs_command = planned.plan.leaves().any(|task| task.test_commands.is_empty());
        if flags.test_command.is_none() && needs_command {
            if before.withheld.iter().any(|name| name == TEST) {
                return Err(withheld(&session));
            }
            if let Some(command) = before.options.get(TEST) {
                flags.test_command = Some(command.clone());
                self.inherited.test = Some(test_wish(&self.repository, command));
                taken.options.insert(TEST.to_owned(), command.clone());
            }
        }
        self.inherited.words = typed(&taken);
        self.options = RunOptions::new(&self.request.flags, &self.settings)?;
        Ok(())
    }
}

/// What was not recorded cannot be taken over, and is not left out in silence.
fn withheld(session: &SessionId) -> Failure {
    let words =
        format!("session '{session}' was given a --{TEST} that holds a secret, so it was not recorded");
    Failure::new(Exit::Person, words).hint(format!("give it again: --{TEST} <the same as before>"))
}
