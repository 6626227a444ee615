//! Why settings cannot be read.

use super::{
    SETTINGS, ValueKind,
    general::{AGENT_STEPS, COMMAND_STEPS},
};
use crate::{
    failure::{Exit, Explain, Explanation},
    git::GitError,
    message::{misspelt, nearest},
    name::NameError,
    process::shell_word,
    safe_files::EnclosureError,
};

/// A setting that cannot be used, and its location.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No such key.
    #[error("{place}: unknown key '{section}{key}'")]
    UnknownKey {
        /// File and line, or where git says that it is.
        place: String,
        /// What git's configuration has before the key: `arborist.`; empty in our own files.
        section: &'static str,
        /// As written.
        key: String,
    },
    /// No such step.
    #[error("{place}: there is no step '{step}'")]
    UnknownStep {
        /// File and line, or where git says that it is.
        place: String,
        /// As written.
        step: String,
    },
    /// An agent is set for a step that calls none.
    #[error("{place}: the step '{step}' calls no agent, so '{key}' has no effect")]
    NoAgentStep {
        /// File and line, or where git says that it is.
        place: String,
        /// The step.
        step: String,
        /// The key.
        key: String,
    },
    /// No such variable.
    #[error("unknown environment variable '{name}'")]
    UnknownVariable {
        /// As it is set.
        name: String,
        /// The variable that is probably meant.
        meant: &'static str,
    },
    /// A gate that is not written as one.
    #[error("{place}: {what}")]
    WrongGate {
        /// File and line, or where git says that it is.
        place: String,
        /// What is wrong.
        what: String,
        /// Whether it is in git's configuration.
        in_git: bool,
    },
    /// A table in a list of tables that has only a name, and so sets nothing.
    #[error("{place}: a table of '{key}' has only a name")]
    OnlyName {
        /// File and line.
        place: String,
        /// The key of the list.
        key: String,
    },
    /// A key that only git's configuration can set.
    #[error("{place}: '{key}' can only be set in git's configuration")]
    GitOnly {
        /// File and line.
        place: String,
        /// The key.
        key: String,
    },
    /// The value has the wrong kind for the key.
    #[error("{place}: '{key}' must be {}, but it is {found}", without_quotes(.place, .key, .expected))]
    WrongValue {
        /// File and line.
        place: String,
        /// The key.
        key: String,
        /// The value as written, shortened.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// A folder that must be in the repository, and is not.
    #[error("{place}: '{key}' cannot be used: {source}")]
    WrongFolder {
        /// File and line, or where git says that it is.
        place: String,
        /// The key.
        key: String,
        /// Why.
        source: EnclosureError,
    },
    /// A name in the key is not allowed.
    #[error("{place}: {source}")]
    WrongName {
        /// File and line.
        place: String,
        /// Why.
        source: NameError,
    },
    /// The file is not valid TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// File and line.
        place: String,
        /// What the parser says.
        what: String,
    },
    /// Git was told that the repository is bare, although its own configuration does not say so.
    #[error(
        "{place}: core.bare is set for this command, and git would not see the checkouts of the repository"
    )]
    FalseBare {
        /// Where git says that it is.
        place: String,
    },
    /// The file exists and cannot be read.
    #[error("could not read '{file}': {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// What a value must be. Only a file in TOML has its texts in quotes, not git's configuration or a variable.
fn without_quotes(place: &str, key: &str, expected: &str) -> String {
    let is_toml =
        !key.starts_with("arborist.") && !place.starts_with("ARBORIST_") && !place.starts_with("--");
    if is_toml {
        return expected.to_owned();
    }
    // git's configuration has no lists.
    let expected = expected.replace(", such as [\"robot\", \"{prompt}\"]", ", one on each line");
    expected.replace(", in quotes", "").replace(" in quotes", "")
}

impl Explain for SettingsError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Unreadable { .. } => Exit::Fatal.into(),
            _ => Explanation { exit: Exit::No, hint: self.advice() },
        }
    }
}

impl SettingsError {
    /// What to try next.
    fn advice(&self) -> Option<String> {
        match self {
            Self::UnknownKey { key, section, .. } => self.hint_about_key(key, section),
            Self::UnknownStep { step, .. } => {
                let steps = || AGENT_STEPS.into_iter().chain(COMMAND_STEPS);
                Some(match nearest(step, steps()) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("known steps: {}", steps().collect::<Vec<_>>().join(", ")),
                })
            }
            Self::NoAgentStep { .. } => Some(format!("steps that call an agent: {}", AGENT_STEPS.join(", "))),
            Self::UnknownVariable { meant, .. } => Some(format!("did you mean '{meant}'?")),
            Self::WrongGate { in_git, .. } => Some(example_of_gate(*in_git)),
            Self::OnlyName { key, .. } => match key.as_str() {
                "merge.gates" => Some(example_of_gate(false)),
                "workspace.repos" => Some(
                    "write a repository as three lines: [[workspace.repos]], then name = \"api\", then path = \"../api\""
                        .to_owned(),
                ),
                _ => None,
            },
            Self::GitOnly { key, .. } => Some(format!("set it with: git config arborist.{key} true")),
            Self::FalseBare { .. } => {
                Some("remove it from 'git -c' and from the variables GIT_CONFIG_*".into())
            }
            Self::Syntax { what, .. } => {
                let is_about_quotes = what.contains(" quote") || what.ends_with("has no value");
                let words = "write a setting as: runner = \"claude\"; text is in quotes, numbers are not";
                is_about_quotes.then(|| words.to_owned())
            }
            Self::WrongFolder { key, .. } => {
                let bare = key.strip_prefix("arborist.").unwrap_or(key);
                let setting = SETTINGS.iter().find(|setting| setting.is(bare))?;
                Some(format!("name a folder from the top of the repository, such as {}", setting.default))
            }
            Self::WrongValue { key, place, .. }
                if in_git(key) && is_kind(key, ValueKind::Words) && key.ends_with(".command") =>
            {
                let file = option_for(place);
                Some(format!(
                    "for example: git config{file} --replace-all {} \"$(printf '%s\\n' robot '{{prompt}}')\"",
                    shell_word(key)
                ))
            }
            Self::WrongValue { key, found, .. } if found.starts_with('[') => {
                let words: Vec<String> = serde_json::from_str(found).unwrap_or_default();
                let typed: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
                let command = serde_json::Value::from(typed.join(" "));
                let is_list = is_kind(key, ValueKind::Command) && !words.is_empty();
                is_list.then(|| format!("write the command as one text: {key} = {command}"))
            }
            Self::WrongValue { key, .. } => {
                let words = "an empty command checks nothing; name a command, or remove the key";
                is_kind(key, ValueKind::Command).then(|| words.to_owned())
            }
            _ => None,
        }
    }

    /// The key that is probably meant instead of this one, or the known ones.
    fn hint_about_key(&self, key: &str, prefix: &str) -> Option<String> {
        if let Some(bare) = key.strip_prefix("arborist.").filter(|_| prefix.is_empty())
            && SETTINGS.iter().any(|setting| with_names_of(bare, setting.key) == bare)
        {
            return Some(format!("leave out 'arborist.', which only git's configuration needs: {bare}"));
        }
        let step = key.strip_prefix("steps.").and_then(|rest| rest.split('.').next());
        let is_command_step = step.is_some_and(|step| COMMAND_STEPS.contains(&step));
        // A step without an agent has only these.
        let is_usable = |known: &str| {
            !is_command_step || !known.starts_with("steps.*.") || known.starts_with("steps.*.sandbox.")
        };
        let usable = SETTINGS.iter().filter(|setting| is_usable(setting.key));
        let keys: Vec<String> = usable.map(|setting| with_names_of(key, setting.key)).collect();
        // The value may be a table.
        let below: Vec<&str> = keys
            .iter()
            .map(String::as_str)
            .filter(|known| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
            .collect();
        if let Some(command) = below.iter().find(|known| known.ends_with(".command")) {
            return Some(format!("did you mean '{prefix}{command}'?"));
        }
        let list = |keys: &[&str]| {
            keys.iter().map(|known| format!("{prefix}{known}")).collect::<Vec<_>>().join(", ")
        };
        if !below.is_empty() {
            return Some(format!("known keys: {}", list(&below)));
        }
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let is_beside =
            |known: &&String| known.rsplit_once('.').map_or("", |(section, _)| section) == section;
        let beside: Vec<&str> = keys.iter().filter(is_beside).map(String::as_str).collect();
        let names = beside.iter().map(|known| known.rsplit_once('.').map_or(*known, |(_, name)| name));
        // Tables beside it, such as `merge.gates`.
        let in_section =
            |known: &&'static str| known.strip_prefix(section)?.strip_prefix('.')?.split_once('.');
        let tables = SETTINGS.iter().filter_map(|setting| in_section(&setting.key)).map(|(table, _)| table);
        let tables = tables.filter(|table| *table != "*");
        // `repositories` has too many letters more than `repos` to be a slip.
        let is_short_for = |table: &&str| table.len() > 3 && name.starts_with(*table);
        let short = tables.clone().find(is_short_for);
        if let Some(meant) = nearest(name, names.chain(tables)).or(short) {
            let dot = if section.is_empty() { "" } else { "." };
            return Some(format!("did you mean '{prefix}{section}{dot}{meant}'?"));
        }
        if let Some(meant) = misspelt(key, keys.iter().map(String::as_str)) {
            return Some(format!("did you mean '{prefix}{meant}'?"));
        }
        // `gates.lint.command` lacks the section that it belongs to.
        let inner = |known: &str| {
            let (section, rest) = known.split_once('.')?;
            (with_names_of(key, rest) == key).then(|| format!("{section}.{key}"))
        };
        if let Some(meant) = SETTINGS.iter().find_map(|setting| inner(setting.key)) {
            return Some(format!("did you mean '{prefix}{meant}'?"));
        }
        if is_command_step {
            let of_step = format!("steps.{}.", step.unwrap_or_default());
            let known: Vec<&str> =
                keys.iter().map(String::as_str).filter(|known| known.starts_with(&of_step)).collect();
            return Some(format!("known keys: {}", known.join(", ")));
        }
        if let Self::UnknownKey { place, section: "arborist.", .. } = self
            && beside.is_empty()
            && !place.starts_with("command line")
        {
            let full_key = shell_word(&format!("{prefix}{key}"));
            let file = option_for(place);
            return Some(format!("remove it with: git config{file} --unset-all {full_key}"));
        }
        if section.is_empty() || beside.is_empty() {
            return Some("see all keys with: git arborist init --dry-run".into());
        }
        let section = format!("{section}.");
        let inside: Vec<&str> =
            keys.iter().map(String::as_str).filter(|known| known.starts_with(&section)).collect();
        Some(format!("known keys: {}", list(&inside)))
    }
}

/// git's option for a file of its configuration.
fn option_for(place: &str) -> String {
    match place.ends_with(".git/config") || place.starts_with("command line") {
        true => String::new(),
        false => format!(" --file {}", shell_word(place)),
    }
}

/// Whether a key is named as in git's configuration.
fn in_git(key: &str) -> bool {
    key.starts_with("arborist.")
}

/// Whether the values of a key are of this kind.
fn is_kind(key: &str, kind: ValueKind) -> bool {
    let key = key.strip_prefix("arborist.").unwrap_or(key);
    SETTINGS.iter().any(|setting| setting.is(key) && setting.kind == kind)
}

fn example_of_gate(in_git: bool) -> String {
    if in_git {
        return "to add a gate with the name 'test', run: git config arborist.merge.gates.test.command 'npm test'"
            .to_owned();
    }
    "write a gate as three lines: [[merge.gates]], then name = \"test\", then command = \"npm test\""
        .to_owned()
}

impl SettingsError {
    /// Names the key as git's configuration does, with `arborist.` before it.
    pub(super) fn of_git(self) -> Self {
        match self {
            Self::UnknownKey { place, key, .. } => Self::UnknownKey { place, section: "arborist.", key },
            Self::WrongValue { place, key, found, expected } => {
                Self::WrongValue { place, key: format!("arborist.{key}"), found, expected }
            }
            Self::WrongFolder { place, key, source } => {
                Self::WrongFolder { place, key: format!("arborist.{key}"), source }
            }
            Self::WrongGate { place, what, .. } => Self::WrongGate { place, what, in_git: true },
            other => other,
        }
    }
}

/// Whether settings are below this key.
pub(super) fn is_section(key: &str) -> bool {
    let below = format!("{key}.");
    SETTINGS.iter().any(|setting| with_names_of(key, setting.key).starts_with(&below))
}

/// A known key, in which each `*` is replaced by the name in the mistyped key.
fn with_names_of(mistyped: &str, known: &str) -> String {
    let mut given = mistyped.split('.');
    let parts = known.split('.').map(|part| match given.next() {
        Some(name) if part == "*" => name,
        _ => part,
    });
    parts.collect::<Vec<_>>().join(".")
}
