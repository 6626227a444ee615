//! A TOML file as a list of dotted keys, each with its line.

use toml::de::{DeTable, DeValue};

use super::{SettingsError, Value, amount};

/// One value of a file.
pub(super) struct Line {
    pub(super) key: String,
    /// File and line.
    pub(super) place: String,
    /// The value, if it is of a kind that a setting can have.
    pub(super) value: Option<Value>,
}

pub(super) fn flatten(label: &str, text: &str) -> Result<Vec<Line>, SettingsError> {
    let place =
        |offset: usize| format!("{label}:{}", 1 + text[..offset.min(text.len())].matches('\n').count());
    let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        place: place(error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
    let mut lines = Vec::new();
    let mut open = vec![(String::new(), table.into_inner())];
    while let Some((prefix, table)) = open.pop() {
        for (key, value) in table {
            let (offset, key) = (key.span().start, format!("{prefix}{}", key.into_inner()));
            match value.into_inner() {
                DeValue::Table(inner) => open.push((format!("{key}."), inner)),
                other => lines.push(Line { key, place: place(offset), value: value_of(other) }),
            }
        }
    }
    Ok(lines)
}

fn value_of(value: DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::Text(text.into_owned())),
        DeValue::Boolean(switch) => Some(Value::Switch(switch)),
        DeValue::Integer(number) => number.as_str().parse().ok().map(Value::Count),
        DeValue::Float(number) => amount(number.as_str()).map(Value::Amount),
        DeValue::Array(items) => {
            let words = items.into_iter().map(|item| match item.into_inner() {
                DeValue::String(text) => Some(text.into_owned()),
                _ => None,
            });
            words.collect::<Option<Vec<String>>>().map(Value::Words)
        }
        _ => None,
    }
}
