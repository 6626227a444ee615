//! A value of a setting, and which kinds it suits.

use super::{Age, Kind};

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
    /// The value as one of this kind, if it is one. A number that may also be a word may stand in quotes.
    pub(super) fn fit(self, kind: Kind) -> Option<Self> {
        match self {
            Self::Text(text) if kind == Kind::Size => Self::parse(&text, kind),
            value => Some(value).filter(|value| value.is_of(kind)),
        }
    }

    fn is_of(&self, kind: Kind) -> bool {
        if let (Self::Text(text), Kind::Choice(words)) = (self, kind) {
            return words.contains(&text.as_str());
        }
        matches!(
            (self, kind),
            (Self::Text(_), Kind::Text)
                | (Self::Count(_), Kind::Count | Kind::Amount | Kind::Size)
                | (Self::Count(1..), Kind::Positive)
                | (Self::Amount(_), Kind::Amount)
                | (Self::Switch(_), Kind::Switch)
                | (Self::Words(_), Kind::Words)
        ) || matches!((self, kind), (Self::Text(text), Kind::Age) if text.parse::<Age>().is_ok())
    }

    /// From places that know only text. A list is one word for each line.
    pub(super) fn parse(text: &str, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Text => Some(Self::Text(text.to_owned())),
            Kind::Count => text.trim().parse().ok().map(Self::Count),
            Kind::Positive => text.trim().parse().ok().filter(|number| *number > 0).map(Self::Count),
            Kind::Amount => amount(text).map(Self::Amount),
            Kind::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(Self::Switch(true)),
                "false" | "no" | "off" | "0" | "" => Some(Self::Switch(false)),
                _ => None,
            },
            Kind::Size if text.trim() == "auto" => Some(Self::Text("auto".into())),
            Kind::Size => text.trim().parse().ok().map(Self::Count),
            Kind::Age => text.parse::<Age>().ok().map(|_| Self::Text(text.to_owned())),
            Kind::Words => Some(Self::Words(text.lines().map(str::to_owned).collect())),
            Kind::Choice(words) => words.contains(&text).then(|| Self::Text(text.to_owned())),
        }
    }
}

/// A number that is none below nothing.
pub(super) fn amount(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}
