//! What a run was asked for, as its session writes it down.

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    consent::{self, Consent},
    failure::{Exit, Failure},
    git::Repository,
    session::Asked,
};

use super::{GardeningArgs, open::secrets};

/// Options without a value.
pub(crate) const SWITCHES: [&str; 3] = ["isolate", "keep-going", "tools"];
pub(super) const TEST: &str = "test-command";

impl GardeningArgs {
    /// What was asked for, as far as it may be written down.
    pub(crate) fn asked(&self) -> Result<Asked, Failure> {
        Ok(Asked::without_secrets(self.told(), &secrets()?))
    }

    /// Whoever gives a test command here need not approve it to go on; where that cannot be kept, it is asked for then. What
    /// is trusted this once was never shown, and what is not written down cannot be taken up.
    pub(super) fn remember_test(&self, repository: &Repository) -> Result<(), Failure> {
        let is_given = self.inherited.test.is_none() && self.consent() != Consent::Trusted;
        let asked = self.asked()?;
        if let Some(command) = asked.options.get(TEST).filter(|_| is_given) {
            let wish = BTreeSet::from([test_wish(repository, command)]);
            let _ = consent::require(&repository.common_dir, &wish, Consent::Given);
        }
        Ok(())
    }

    /// The same by the names of options, secrets and all.
    fn told(&self) -> BTreeMap<String, String> {
        let mut told = self.more.clone();
        let mut tell = |name: &str, value: Option<String>| {
            told.extend(value.map(|value| (name.to_owned(), value)));
        };
        let flags = self.flags();
        let step_runner = flags.step_runner;
        for (step, named) in
            [("", step_runner.all), ("implement-", step_runner.implement), ("review-", step_runner.review)]
        {
            tell(&format!("{step}runner"), named.runner);
            tell(&format!("{step}model"), named.model);
        }
        let fallback: Vec<String> = step_runner.fallback.iter().map(ToString::to_string).collect();
        tell("fallback", Some(fallback.join(",")).filter(|names| !names.is_empty()));
        tell("tools", step_runner.tools.filter(|is_on| *is_on).map(|_| "true".to_owned()));
        tell(TEST, flags.test_command);
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

impl GardeningArgs {
    /// Which tasks are wanted, to be typed again.
    pub(super) fn typed_choice(&self) -> String {
        self.choice.iter().map(|(name, value)| typed_option(name, value)).collect()
    }

    /// What else has to be typed again in the same checkout.
    pub(super) fn typed_here(&self) -> String {
        let tree = self.tree.iter().map(|tree| typed_option("tree", &tree.display().to_string()));
        let changed_paths = self.allow_dirty.then(|| " --allow-dirty".to_owned());
        tree.chain(changed_paths).chain([self.typed_choice()]).collect()
    }
}

/// Options as they are typed into a shell, each with a space before it.
pub(super) fn typed(asked: &Asked) -> String {
    let option = |(name, value): (&String, &String)| match name.as_str() {
        name if SWITCHES.contains(&name) => format!(" --{name}"),
        "fallback" => value.split(',').map(|one| typed_option(name, one)).collect(),
        name => typed_option(name, value),
    };
    asked.options.iter().map(option).collect::<String>() + &typed_again(asked)
}

/// The same of those that hold a secret: a person has to fill them in.
pub(super) fn typed_again(asked: &Asked) -> String {
    asked.withheld.iter().map(|name| format!(" --{name} <the same as before>")).collect()
}

pub(super) fn typed_option(name: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    let between = if value.starts_with('-') { '=' } else { ' ' };
    if !value.is_empty() && value.chars().all(is_plain) {
        format!(" --{name}{between}{value}")
    } else {
        format!(" --{name}{between}'{}'", value.replace('\'', r"'\''"))
    }
}

/// Refuses a test command that only a session's record knows. Records are refs, and whoever can write a ref could have
/// written it: neither `--yes` nor the environment can approve it, only the user, by giving it on a command line here.
pub(crate) fn require_given(repository: &Repository, test: Option<&String>) -> Result<(), Failure> {
    let Some(test) = test else { return Ok(()) };
    let wish = BTreeSet::from([test.clone()]);
    if consent::unseen(&repository.common_dir, &wish).is_empty() {
        return Ok(());
    }
    let command = test.lines().next().unwrap_or_default();
    let words = format!(
        "the session's record names a test command that was never given in this repository:\n{}",
        consent::shown(&[&command.to_owned()])
    );
    Err(Failure::new(Exit::Person, words)
        .hint("look at it, then give it yourself: --test-command <command> (after '--' with session resume)"))
}

/// What is approved of a test command that stands in a session's record: the text, for this repository.
pub(crate) fn test_wish(repository: &Repository, command: &str) -> String {
    format!("{command}\n(the test command of a session in {})", repository.common_dir.display())
}
