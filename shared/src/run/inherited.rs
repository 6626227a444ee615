//! Options that a continued run takes from its session's records: the test command, the budgets, and which protected
//! files may be changed.

use super::{
    CallSource, OpenRun, Planned,
    request::{ALLOW, TEST, inherit_budgets, option_approvals, test_approval, typed},
};
use crate::{
    consent,
    failure::{Exit, Failure},
    history::Run,
    name::SessionId,
    pipeline::RunOptions,
    session::{Asked, SessionReader},
};

/// Options that were taken from the session's records.
#[derive(Debug, Clone, Default)]
pub struct InheritedOptions {
    /// The test command, in the form that is approved, because records may come from anywhere.
    pub(super) test: Option<String>,
    /// All of them as command-line options.
    pub(super) words: String,
}

impl OpenRun {
    /// Uses the recorded test command and limits unless the user gives others. Otherwise a task that failed its tests
    /// would be complete as soon as the test command is omitted.
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
        // A recorded option takes precedence over the configuration, as it did when it was given.
        let needs_command = planned.plan.leaves().any(|task| task.test_commands.is_empty());
        if flags.test_command.is_none() && needs_command {
            if before.withheld.iter().any(|name| name == TEST) {
                return Err(withheld(&session));
            }
            if let Some(command) = before.options.get(TEST) {
                flags.test_command = Some(command.clone());
                self.inherited.test = Some(test_approval(&self.repository, command));
                taken.options.insert(TEST.to_owned(), command.clone());
            }
        }
        // Records may come from anywhere, so only what the user has allowed in this repository is allowed again.
        let allowed = before.options.get_key_value(ALLOW).filter(|_| flags.allow.is_empty());
        if let Some((name, paths)) = allowed
            && consent::unseen(&self.repository.common_dir, &option_approvals([(name, paths)].into_iter()))
                .is_empty()
        {
            flags.allow = paths.lines().map(str::to_owned).collect();
            taken.options.insert(name.clone(), paths.clone());
        }
        self.inherited.words = typed(&taken);
        let sandbox = self.options.sandbox.clone();
        self.options = RunOptions { sandbox, ..RunOptions::new(&self.request.flags, &self.settings)? };
        Ok(())
    }
}

/// An option that was not recorded cannot be inherited, and must not be dropped silently.
fn withheld(session: &SessionId) -> Failure {
    let words = format!("the --{TEST} of session '{session}' contains a secret, so it was not recorded");
    Failure::new(Exit::Person, words).hint(format!("give it again with: --{TEST} <the same as before>"))
}
