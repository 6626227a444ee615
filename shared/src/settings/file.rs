//! Flattens a TOML file into a list of dotted keys with their lines.

use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue},
};

use super::{
    SETTINGS, SettingsError,
    error::is_section,
    value::{Value, amount},
};

/// One value of a file.
pub(super) struct SettingLine {
    pub(super) key: String,
    /// File and line.
    pub(super) place: String,
    /// The value, if a setting can have such a value.
    pub(super) value: Option<Value>,
    /// The value as written.
    pub(super) text: String,
}

pub(super) fn flatten(label: &str, text: &str) -> Result<Vec<SettingLine>, SettingsError> {
    let place =
        |offset: usize| format!("{label}:{}", 1 + text[..offset.min(text.len())].matches('\n').count());
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let what = find_key_without_value(text, at)
            .or_else(|| find_unquoted_text(text, at, error.message()))
            .or_else(|| find_duplicate(text, at, error.message()))
            .unwrap_or_else(|| in_plain_words(error.message()));
        SettingsError::Syntax { place: place(at), what }
    })?;
    let mut lines = Vec::new();
    let mut open = vec![(String::new(), table.into_inner())];
    while let Some((prefix, table)) = open.pop() {
        for (key, value) in table {
            let (offset, key) = (key.span().start, format!("{prefix}{}", key.into_inner()));
            let written = text.get(value.span()).unwrap_or_default().to_owned();
            match value.into_inner() {
                DeValue::Table(inner) => open.push((format!("{key}."), inner)),
                DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
                    if !is_section(&key) && !SETTINGS.iter().any(|setting| setting.is(&key)) {
                        return Err(SettingsError::UnknownKey { place: place(offset), section: "", key });
                    }
                    // Nothing would be left of such a table.
                    let has_only_name = |item: &&Spanned<DeValue<'_>>| {
                        let table = item.get_ref().as_table();
                        table.is_some_and(|table| table.keys().all(|key| key.get_ref() == "name"))
                    };
                    if let Some(item) = items.iter().find(has_only_name) {
                        let place = place(item.span().start);
                        return Err(SettingsError::OnlyName { place, key });
                    }
                    open.extend(named_tables(&key, items).into_iter().rev());
                }
                other => {
                    lines.push(SettingLine {
                        key,
                        place: place(offset),
                        value: value_of(other),
                        text: written,
                    });
                }
            }
        }
    }
    Ok(lines)
}

/// The parser's message, without the terms of TOML's grammar where a newcomer would not know them.
fn in_plain_words(message: &str) -> String {
    match message {
        "invalid basic string, expected `\"`" => "this text has no closing quote (`\"`)".to_owned(),
        "invalid literal string, expected `'`" => "this text has no closing quote (`'`)".to_owned(),
        "unclosed table, expected `]`" => "the name of this table has no closing bracket (`]`)".to_owned(),
        other => other.to_owned(),
    }
}

/// That the value of a key is text without quotes. The parser names the grammar rules that it tried.
fn find_unquoted_text(text: &str, at: usize, message: &str) -> Option<String> {
    let begin = text.get(..at.min(text.len()))?.rfind('\n').map_or(0, |end| end + 1);
    let (key, value) = text.get(begin..)?.lines().next()?.split_once('=')?;
    // A text that begins like a number, such as './test.sh', is taken for one.
    let is_path = value.trim_start().starts_with(['.', '/', '~', '$']);
    let is_unquoted = message.starts_with("string values must be quoted") || is_path;
    is_unquoted.then(|| format!("the value of '{}' must be in quotes", key.trim()))
}

/// That a key is set twice in one table, and where it was set first.
fn find_duplicate(text: &str, at: usize, message: &str) -> Option<String> {
    if message != "duplicate key" {
        return None;
    }
    let begin = text.get(..at.min(text.len()))?.rfind('\n').map_or(0, |end| end + 1);
    let key_of = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let key = key_of(text.get(begin..)?.lines().next()?)?;
    let before: Vec<&str> = text.get(..begin)?.lines().collect();
    let table = before.iter().rposition(|line| line.trim_start().starts_with('[')).map_or(0, |at| at + 1);
    let first = before[table..].iter().position(|line| key_of(line).as_deref() == Some(key.as_str()));
    let first = first.map(|first| format!(" (first on line {})", table + first + 1)).unwrap_or_default();
    Some(format!("'{key}' is set twice{first}"))
}

/// That a line ends after its `=`. The parser takes that for a string without quotes.
fn find_key_without_value(text: &str, at: usize) -> Option<String> {
    let at = at.min(text.len());
    let begin = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(begin..)?.lines().next()?;
    let key = line.split('#').next()?.trim().strip_suffix('=')?.trim();
    Some(format!("'{key}' has no value"))
}

/// A list of tables is treated as tables named by their `name`, or by their numbers.
fn named_tables<'a>(key: &str, items: DeArray<'a>) -> Vec<(String, DeTable<'a>)> {
    let mut tables = Vec::new();
    for (n, item) in items.into_iter().enumerate() {
        if let DeValue::Table(mut table) = item.into_inner() {
            let name = match table.remove("name").map(Spanned::into_inner) {
                Some(DeValue::String(name)) => name.into_owned(),
                _ => (n + 1).to_string(),
            };
            tables.push((format!("{key}.{name}."), table));
        }
    }
    tables
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
