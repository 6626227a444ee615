//! The options of `session resume` and `session replay`: all recorded ones, unless the user gives others. `RunRequest` in the
//! core says what other commands take from the records.

use std::{collections::BTreeSet, ffi::OsString};

use arborist_core::{
    consent::Consent,
    failure::{Exit, Failure},
    message::plain_text,
    run::{OptionArgument, OptionKind, RecordedOption, RunRequest, TEST, option_approvals, test_approval},
    safe_files::InnerPath,
    session::{OF_RUNNER, RecordedOptions, StoredRecord},
};
use clap::{Args, Parser};

use super::open::OpenSessions;
use crate::{approval, gardener::GardenerArgs};

/// How the run continues.
#[derive(Debug, Args)]
pub(super) struct ContinueArgs {
    /// Approve commands and settings that come from the plan or from .arborist/
    #[arg(long)]
    pub(super) yes: bool,
    /// Print events as JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Options for the continued run, as for git arborist gardener
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

impl ContinueArgs {
    /// What the user has approved. `--yes` also counts among the options of the run.
    pub(super) fn consent(&self) -> Consent {
        approval::consent(self.yes || self.gives("yes"))
    }

    fn gives(&self, name: &str) -> bool {
        let flag = format!("--{name}");
        let with_value = format!("--{name}=");
        let is_it = |given: &str| given == flag || given.starts_with(&with_value);
        self.options.iter().any(|given| given.to_str().is_some_and(is_it))
    }

    /// The recorded options, unless the user gives others. A record may come from anywhere, so a command in it is used
    /// only if the user has given it in this repository.
    pub(super) fn recorded(
        &self,
        opened: &OpenSessions,
        newest: &StoredRecord,
    ) -> Result<ResumeOptions<'_>, Failure> {
        let recorded = opened.session_reader().recorded_options_of(newest)?;
        let is_replaced =
            |name: &str| self.gives(name) || (self.gives("runner") && OF_RUNNER.contains(&name));
        let mut resume_options = self.alone();
        if let Some(name) = recorded.withheld.iter().find(|name| !is_replaced(name)) {
            return Err(withheld(name, newest));
        }
        for (name, value) in recorded.options.iter().filter(|(name, _)| !is_replaced(name)) {
            refuse_option(name, value)?;
            let typed = OptionArgument::of_recorded(name, value).into_iter();
            match RecordedOption::find(name).map(|option| option.kind) {
                None => {}
                Some(OptionKind::Folder) if !is_inner(value) => {}
                Some(OptionKind::Switch) if value != "true" => {}
                Some(_) => resume_options.options.extend(typed.map(|option| option.argument().into())),
            }
        }
        let test = recorded.options.get(TEST).filter(|_| !is_replaced(TEST));
        resume_options.test = test.map(|command| test_approval(&opened.repository, command));
        resume_options.approvals =
            option_approvals(recorded.options.iter().filter(|(name, _)| !is_replaced(name)));
        // Parse them before anything is written.
        resume_options.read()?;
        Ok(resume_options)
    }

    /// Only the options that the user gives now.
    pub(super) fn alone(&self) -> ResumeOptions<'_> {
        ResumeOptions { continue_args: self, options: Vec::new(), test: None, approvals: BTreeSet::new() }
    }
}

/// Refuses a value that starts with a dash: the program that gets it would take it for an option.
fn refuse_option(name: &str, value: &str) -> Result<(), Failure> {
    let is_option = name != TEST && value.split(',').any(|part| part.starts_with('-'));
    if !is_option {
        return Ok(());
    }
    let words = format!("the record of the session has '{}' as the value of --{name}", plain_text(value));
    Err(Failure::new(Exit::Person, words)
        .hint(format!("give another value at the end of the command: -- --{name}=<value>")))
}

/// The error for an option that was not recorded.
fn withheld(name: &str, newest: &StoredRecord) -> Failure {
    let session = &newest.record.session;
    let words = format!("the --{name} of session '{session}' contains a secret, so it was not recorded");
    Failure::new(Exit::Person, words)
        .hint(format!("give it again at the end of the command: -- --{name}=<value>"))
}

/// Whether a recorded directory is inside of the repository.
fn is_inner(folder: &str) -> bool {
    folder.trim_end_matches('/').parse::<InnerPath>().is_ok()
}

/// The options of a continued run.
pub(super) struct ResumeOptions<'a> {
    continue_args: &'a ContinueArgs,
    options: Vec<OsString>,
    /// The recorded test command, in the form that is approved.
    pub(super) test: Option<String>,
    /// The other recorded options, in the form that is approved.
    pub(super) approvals: BTreeSet<String>,
}

impl ResumeOptions<'_> {
    pub(super) fn consent(&self) -> Consent {
        self.continue_args.consent()
    }

    /// Adds an option without a value, at most once.
    pub(super) fn switch(&mut self, name: &str) {
        let option = OsString::from(format!("--{name}"));
        if !self.continue_args.gives(name) && !self.options.contains(&option) {
            self.options.push(option);
        }
    }

    /// Replays without calling agents.
    pub(super) fn without_agents(&mut self) {
        let is_kept = |option: &str| {
            let name = option.trim_start_matches("--").split('=').next().unwrap_or_default();
            RecordedOption::find(name).is_some_and(|option| option.is_replayed)
        };
        self.options.retain(|option| option.to_str().is_some_and(is_kept));
    }

    pub(super) fn into_options(mut self) -> Vec<OsString> {
        if self.continue_args.yes {
            self.switch("yes");
        }
        if self.continue_args.json {
            self.switch("json");
        }
        self.options.extend(self.continue_args.options.iter().cloned());
        self.options
    }

    /// The options to record, if they differ from those before.
    pub(super) fn changed_options(
        &self,
        opened: &OpenSessions,
        newest: &StoredRecord,
    ) -> Result<Option<RecordedOptions>, Failure> {
        let now = self.read()?.recorded()?;
        Ok(Some(now)
            .filter(|now| opened.session_reader().recorded_options_of(newest).ok().as_ref() != Some(now)))
    }

    /// Parses them as the run will.
    pub(super) fn read(&self) -> Result<RunRequest, Failure> {
        let name = OsString::from("git-arborist-gardener");
        let all = [&name].into_iter().chain(&self.options).chain(&self.continue_args.options);
        let args = GardenerArgs::try_parse_from(all).map_err(|error| {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            let words = first.strip_prefix("error: ").unwrap_or(first);
            Failure::new(Exit::Usage, words).hint("see the options of a run: git arborist gardener -h")
        })?;
        Ok(args.request())
    }
}
