//! Values of settings, and the kinds that they fit.

use super::{Age, ValueKind, protect::is_exclusion};

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
        matches!(
            (self, kind),
            (Self::Text(_), ValueKind::Text)
                | (Self::Count(_), ValueKind::Count | ValueKind::Amount)
                | (Self::Count(1..), ValueKind::Positive | ValueKind::Size)
                | (Self::Amount(_), ValueKind::Amount)
                | (Self::Switch(_), ValueKind::Switch)
                | (Self::Words(_), ValueKind::Words)
        ) || matches!((self, kind), (Self::Text(text), ValueKind::Age) if text.parse::<Age>().is_ok())
    }

    /// Parses a value from a source that knows only text. A list has one word per line.
    pub(super) fn parse(text: &str, kind: ValueKind) -> Option<Self> {
        match kind {
            ValueKind::Text => Some(Self::Text(text.to_owned())),
            ValueKind::Count => text.trim().parse().ok().map(Self::Count),
            ValueKind::Amount => amount(text).map(Self::Amount),
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

/// A number that is not negative.
pub(super) fn amount(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}
