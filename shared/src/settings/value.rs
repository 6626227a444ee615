//! Values of settings, the kinds that they fit, and the types that fields of [`super::Settings`] have.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::Age;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// The path of a folder in the repository. Logs and reports are written by the driver, which is not in the sandbox.
    InnerPath,
    /// A text that is not blank.
    Name,
    /// A command for a shell. It is not empty: a shell reports success for an empty command, although nothing was checked.
    Command,
    /// A whole number.
    Count,
    /// A whole number of at least 1.
    Positive,
    /// A number that may have a fraction.
    Amount,
    /// True or false.
    Switch,
    /// A list of texts.
    Words,
    /// A whole number of at least 1, or `auto`.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An age.
    Age,
    /// A list of folders, absolute or in the home directory (`~/`).
    Folders,
    /// One pathspec or a list of them. Not all of them may be exclusions, which would mean everything else.
    Pathspecs,
}

impl ValueKind {
    /// Whether a value has several elements.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Words | Self::Folders | Self::Pathspecs)
    }

    /// The values that it accepts, in words, if they are the same for every key.
    pub(super) fn in_words(self) -> Option<String> {
        match self {
            Self::Switch => Some("true or false".to_owned()),
            Self::Choice([words @ .., last]) => Some(format!("{} or {last}", words.join(", "))),
            _ => None,
        }
    }

    /// Whether [`Self::in_words`] has words.
    pub(super) const fn has_words(self) -> bool {
        matches!(self, Self::Switch | Self::Choice(_))
    }
}

/// The value that a key has if nothing sets it. The manual and the fields of [`super::Settings`] have it from here.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A text.
    Text(&'static str),
    /// A number.
    Count(u64),
    /// True or false.
    Switch(bool),
    /// A list, and how the manual describes it.
    List(&'static [&'static str], &'static str),
    /// None. What happens then depends on something else, which the manual describes with these words.
    InWords(&'static str),
}

impl DefaultValue {
    /// Whether it is a value.
    pub(super) const fn is_value(self) -> bool {
        !matches!(self, Self::InWords(_))
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(number) => write!(f, "{number}"),
            Self::Switch(switch) => write!(f, "{switch}"),
            Self::Text(words) | Self::List(_, words) | Self::InWords(words) => f.write_str(words),
        }
    }
}

/// The source of a value: values that others can commit need the user's approval before they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user, or git's own configuration, which only the user writes.
    User,
    /// A file of the repository.
    Repository,
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Count(u64),
    Amount(f64),
    Switch(bool),
    Words(Vec<String>),
}

impl Value {
    fn of_default(default: DefaultValue) -> Option<Self> {
        match default {
            DefaultValue::Text(text) => Some(Self::Text(text.to_owned())),
            DefaultValue::Count(number) => Some(Self::Count(number)),
            DefaultValue::Switch(switch) => Some(Self::Switch(switch)),
            DefaultValue::List(words, _) => {
                Some(Self::Words(words.iter().map(|&word| word.to_owned()).collect()))
            }
            DefaultValue::InWords(_) => None,
        }
    }

    /// The value as one of this kind, if it fits. A number for a key that also accepts a word may be in quotes.
    pub(super) fn fit(self, kind: ValueKind) -> Option<Self> {
        match self {
            Self::Text(text) if matches!(kind, ValueKind::Size | ValueKind::Pathspecs) => {
                Self::parse(&text, kind)
            }
            value => Some(value).filter(|value| value.is_of(kind)),
        }
    }

    /// The value as a configuration file writes it. Only line breaks are kept, because prompts have many lines.
    pub(super) fn shown(&self) -> String {
        let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        match self {
            Self::Text(text) => quoted(text),
            Self::Count(number) => number.to_string(),
            Self::Amount(number) => format!("{number:?}"),
            Self::Switch(switch) => switch.to_string(),
            Self::Words(words) => format!("[{}]", words.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        }
    }

    fn is_of(&self, kind: ValueKind) -> bool {
        if let (Self::Text(text), ValueKind::Choice(words)) = (self, kind) {
            return words.contains(&text.as_str());
        }
        if let (Self::Words(words), ValueKind::Folders) = (self, kind) {
            return words.iter().all(|word| word.starts_with('/') || word.starts_with("~/"));
        }
        if let (Self::Words(words), ValueKind::Pathspecs) = (self, kind) {
            let is_something = words.is_empty() || words.iter().any(|word| !is_exclusion(word));
            return is_something && words.iter().all(|word| !word.trim().is_empty());
        }
        if let (Self::Amount(amount), ValueKind::Amount) = (self, kind) {
            return *amount > 0.0;
        }
        if let (Self::Text(text), ValueKind::Command | ValueKind::Name) = (self, kind) {
            return !text.trim().is_empty();
        }
        matches!(
            (self, kind),
            (Self::Text(_), ValueKind::Text | ValueKind::InnerPath)
                | (Self::Count(_), ValueKind::Count)
                | (Self::Count(1..), ValueKind::Positive | ValueKind::Size | ValueKind::Amount)
                | (Self::Switch(_), ValueKind::Switch)
                | (Self::Words(_), ValueKind::Words)
        ) || matches!((self, kind), (Self::Text(text), ValueKind::Age) if text.parse::<Age>().is_ok())
    }

    /// Parses a value from a source that knows only text. A list has one word per line.
    pub(super) fn parse(text: &str, kind: ValueKind) -> Option<Self> {
        match kind {
            ValueKind::Text | ValueKind::InnerPath => Some(Self::Text(text.to_owned())),
            ValueKind::Command | ValueKind::Name => {
                Some(Self::Text(text.to_owned())).filter(|value| value.is_of(kind))
            }
            ValueKind::Count => text.trim().parse().ok().map(Self::Count),
            ValueKind::Amount => amount(text).map(Self::Amount).filter(|value| value.is_of(kind)),
            ValueKind::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(Self::Switch(true)),
                "false" | "no" | "off" | "0" | "" => Some(Self::Switch(false)),
                _ => None,
            },
            ValueKind::Size if text.trim() == "auto" => Some(Self::Text("auto".into())),
            ValueKind::Positive | ValueKind::Size => {
                text.trim().parse().ok().filter(|number| *number > 0).map(Self::Count)
            }
            ValueKind::Age => text.parse::<Age>().ok().map(|_| Self::Text(text.to_owned())),
            ValueKind::Words => Some(Self::Words(text.lines().map(str::to_owned).collect())),
            ValueKind::Folders | ValueKind::Pathspecs => {
                Self::parse(text, ValueKind::Words).filter(|value| value.is_of(kind))
            }
            ValueKind::Choice(words) => words.contains(&text).then(|| Self::Text(text.to_owned())),
        }
    }
}

/// Whether a pathspec excludes paths: `:!x`, `:^x` or `:(exclude)x`.
fn is_exclusion(pathspec: &str) -> bool {
    let Some(magic) = pathspec.strip_prefix(':') else { return false };
    match magic.strip_prefix('(') {
        Some(long) => long.split(')').next().unwrap_or_default().split(',').any(|word| word == "exclude"),
        None => magic.starts_with(['!', '^']),
    }
}

/// A number that is not negative.
pub(super) fn amount(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// A key that a source sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assigned {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// File and line, or the location in git's configuration or the environment.
    pub(super) place: String,
}

/// All keys that are set; later ones override earlier ones.
pub(super) type Assignments = [Assigned];

pub(super) fn find_assigned<'a>(assigned: &'a Assignments, key: &str) -> Option<&'a Assigned> {
    assigned.iter().rev().find(|assigned| assigned.key == key)
}

/// A value together with the key and the source that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The full key.
    pub key: String,
    /// Who set it.
    pub origin: Origin,
    /// The location: file and line.
    pub place: String,
}

/// A key and where it is set, for people.
pub(super) fn location(key: &str, place: &str) -> String {
    let is_file = place.rsplit_once(':').is_some_and(|(file, _)| file.ends_with(".toml"));
    match place {
        _ if is_file => format!("{key} in {place}"),
        variable if variable.starts_with("ARBORIST_") => variable.to_owned(),
        _ => format!("arborist.{key} in {place}"),
    }
}

impl<T> Sourced<T> {
    /// The key and where it is set, for people.
    #[must_use]
    pub fn location(&self) -> String {
        location(&self.key, &self.place)
    }

    /// Whether a file of the repository sets it.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.origin == Origin::Repository
    }
}

/// The settings of all names below one key, in the order in which they are first named.
#[derive(Debug, Clone)]
pub struct NamedSettings<T>(Vec<NamedGroup<T>>);

/// The settings of one name.
#[derive(Debug, Clone)]
pub struct NamedGroup<T> {
    /// The name.
    pub name: String,
    /// Where it is first named.
    pub place: String,
    /// Its settings.
    pub settings: T,
}

impl<T> NamedSettings<T> {
    /// The settings of a name, if any are set.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|group| group.name == name).map(|group| &group.settings)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, NamedGroup<T>> {
        self.0.iter()
    }

    /// Reads the settings of every name between `prefix` and `suffix`.
    pub(super) fn read(assigned: &Assignments, prefix: &str, suffix: &str, read: impl Fn(&str) -> T) -> Self {
        let mut groups: Vec<NamedGroup<T>> = Vec::new();
        for Assigned { key, place, .. } in assigned {
            let name = key.strip_prefix(prefix).and_then(|rest| rest.split_once('.'));
            let Some((name, rest)) = name else { continue };
            if rest.starts_with(suffix) && groups.iter().all(|group| group.name != name) {
                groups.push(NamedGroup { name: name.to_owned(), place: place.clone(), settings: read(name) });
            }
        }
        Self(groups)
    }
}

/// A whole number, or as many as there are cores or as suits best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// `auto`.
    Auto,
    /// This many.
    Number(usize),
}

impl Default for Size {
    fn default() -> Self {
        Self::Number(1)
    }
}

/// The type of one value.
pub(super) trait FromValue: Sized {
    /// The value; `None` if it has another kind, which a key's [`ValueKind`] rules out.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $value:pat => $read:expr,)*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $value => $read,
                    _ => None,
                }
            }
        })*
    };
}

from_value! {
    bool: Value::Switch(switch) => Some(*switch),
    u64: Value::Count(number) => Some(*number),
    u32: Value::Count(number) => Some(Self::try_from(*number).unwrap_or(Self::MAX)),
    usize: Value::Count(number) => Some(Self::try_from(*number).unwrap_or(Self::MAX)),
    Duration: Value::Count(number) => Some(Self::from_secs(*number)),
    String: Value::Text(text) => Some(text.clone()),
    Age: Value::Text(text) => text.parse().ok(),
    Vec<String>: Value::Words(words) => Some(words.clone()),
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Amount(number) => Some(*number),
            Value::Count(number) => amount(&number.to_string()),
            _ => None,
        }
    }
}

impl FromValue for Size {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(_) => Some(Self::Auto),
            other => usize::from_value(other).map(Self::Number),
        }
    }
}

/// The type of a field of the settings.
pub(super) trait SettingField: Sized {
    /// Whether it has a value even if nothing sets the key.
    const NEEDS_DEFAULT: bool = false;

    /// The value of a key.
    fn read(assigned: &Assignments, key: &str, default: DefaultValue) -> Self;
}

/// Whether a field of this type can have this default.
pub(super) const fn can_be<T: SettingField>(default: DefaultValue) -> bool {
    !T::NEEDS_DEFAULT || default.is_value()
}

impl<T: FromValue + Default> SettingField for T {
    const NEEDS_DEFAULT: bool = true;

    fn read(assigned: &Assignments, key: &str, default: DefaultValue) -> Self {
        let value = find_assigned(assigned, key).and_then(|assigned| T::from_value(&assigned.value));
        let default = || T::from_value(&Value::of_default(default)?);
        value.or_else(default).unwrap_or_default()
    }
}

impl<T: FromValue> SettingField for Option<T> {
    fn read(assigned: &Assignments, key: &str, _: DefaultValue) -> Self {
        T::from_value(&find_assigned(assigned, key)?.value)
    }
}

impl<T: FromValue> SettingField for Option<Sourced<T>> {
    fn read(assigned: &Assignments, key: &str, _: DefaultValue) -> Self {
        let Assigned { key, value, origin, place } = find_assigned(assigned, key)?.clone();
        Some(Sourced { value: T::from_value(&value)?, key, origin, place })
    }
}

/// The values of all keys that have a name in the place of the last `*`.
impl<T: FromValue> SettingField for BTreeMap<String, Sourced<T>> {
    fn read(assigned: &Assignments, key: &str, default: DefaultValue) -> Self {
        let prefix = key.trim_end_matches('*');
        let names = assigned.iter().filter_map(|assigned| assigned.key.strip_prefix(prefix));
        names
            .filter_map(|name| {
                let value = Option::<Sourced<T>>::read(assigned, &format!("{prefix}{name}"), default);
                value.map(|value| (name.to_owned(), value))
            })
            .collect()
    }
}

/// One list for each source: none of them overrides another.
impl SettingField for Vec<Vec<String>> {
    fn read(assigned: &Assignments, key: &str, _: DefaultValue) -> Self {
        let lists = assigned.iter().filter(|assigned| assigned.key == key);
        let lists = lists.filter_map(|assigned| Vec::from_value(&assigned.value));
        lists.filter(|list| !list.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::is_exclusion;

    #[test]
    fn exclusions_are_recognised_in_every_spelling() {
        for pathspec in [":!x", ":^x", ":(exclude)x", ":(glob,exclude)**/x"] {
            assert!(is_exclusion(pathspec), "{pathspec}");
        }
        for pathspec in ["x", "!x", ":(glob)x", ":/x", ":(literal)exclude"] {
            assert!(!is_exclusion(pathspec), "{pathspec}");
        }
    }
}
