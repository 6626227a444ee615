//! What a run was asked for, as its session writes it down.

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    consent::{self, Consent},
    failure::Failure,
    git::Repository,
    session::Asked,
};

use super::{GardeningArgs, open::secrets};

impl GardeningArgs {
    /// What was asked for. Whoever gave a test command need not approve it to go on; where that cannot be kept, it is asked
    /// for then.
    pub(crate) fn asked(&self, repository: &Repository) -> Result<Asked, Failure> {
        if let Some(command) = &self.test_command {
            let _ = consent::require(&BTreeSet::from([test_wish(repository, command)]), Consent::Given);
        }
        Ok(Asked::without_secrets(self.told(), &secrets()?))
    }

    /// The same by the names of options, secrets and all.
    fn told(&self) -> BTreeMap<String, String> {
        let mut told = self.more.clone();
        let mut tell = |name: &str, value: Option<String>| {
            told.extend(value.map(|value| (name.to_owned(), value)));
        };
        let flags = self.flags();
        let crew = flags.crew;
        for (step, named) in [("", crew.all), ("implement-", crew.implement), ("review-", crew.review)] {
            tell(&format!("{step}runner"), named.runner);
            tell(&format!("{step}model"), named.model);
        }
        let fallback: Vec<String> = crew.fallback.iter().map(ToString::to_string).collect();
        tell("fallback", Some(fallback.join(",")).filter(|names| !names.is_empty()));
        tell("tools", crew.tools.filter(|is_on| *is_on).map(|_| "true".to_owned()));
        tell("test-command", flags.test_command);
        tell("report-dir", flags.report_dir);
        tell("log-dir", flags.log_dir);
        tell("diff-limit", flags.diff_limit.map(|number| number.to_string()));
        tell("max-retries", self.max_retries.map(|number| number.to_string()));
        for (whose, budget) in [("", flags.budgets.run), ("task-", flags.budgets.task)] {
            tell(&format!("max-{whose}cost"), budget.cost.map(|cost| cost.to_string()));
            tell(&format!("max-{whose}tokens"), budget.tokens.map(|tokens| tokens.to_string()));
            tell(&format!("max-{whose}time"), budget.time.map(|time| time.as_secs().to_string()));
        }
        told
    }
}

/// Options as they are typed into a shell, each with a space before it.
pub(super) fn typed(asked: &Asked) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    let option = |(name, value): (&String, &String)| match value.as_str() {
        "true" if name != "test-command" => format!(" --{name}"),
        value if !value.is_empty() && value.chars().all(is_plain) => format!(" --{name} {value}"),
        value => format!(" --{name} '{}'", value.replace('\'', r"'\''")),
    };
    asked.options.iter().map(option).collect()
}

/// What is approved of a test command that stands in a session's record: the text, for this repository.
pub(crate) fn test_wish(repository: &Repository, command: &str) -> String {
    format!("{command}\n(the test command of a session in {})", repository.common_dir.display())
}
