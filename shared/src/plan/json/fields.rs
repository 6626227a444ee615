//! Typed access to JSON values. What has the wrong type is noted with its place and read as absent.

use std::collections::HashMap;

use jsonc_parser::{
    ast::{Object, Value},
    common::Ranged,
};
use serde_json::Map;

use crate::{
    message::{misspelt, nearest},
    name::TaskId,
    plan::{
        Problem,
        assemble::SourcePlace,
        text::{Offset, SpecFile},
    },
};

/// Objects with more keys than this are looked up by hash.
const SMALL: usize = 32;

/// An id with the place where it is written.
pub(super) type PlacedId = (TaskId, SourcePlace);

/// The keys that an object may have.
pub(super) struct Keys {
    pub(super) known: &'static [&'static str],
    /// What other programs call some of them, without case, `_` and `-`.
    pub(super) foreign: &'static [(&'static str, &'static str)],
}

impl Keys {
    fn meant_by(&self, key: &str) -> Option<&'static str> {
        if self.known.contains(&key) {
            return None;
        }
        let plain = key.to_lowercase().replace(['_', '-'], "");
        let foreign = self.foreign.iter().find(|(name, _)| *name == plain).map(|(_, meant)| *meant);
        foreign.or_else(|| misspelt(key, self.known.iter().copied()))
    }
}

/// Reads values of one file, and collects what is wrong with them.
pub(super) struct Fields<'a> {
    pub(super) file: SpecFile<'a>,
    pub(super) problems: Vec<Problem>,
    /// What can be read, and is surely not meant so.
    pub(super) mistakes: Vec<Problem>,
    /// Where the JSON text begins in the file.
    start: Offset,
    /// The task that is read.
    pub(super) node: Option<TaskId>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(file: SpecFile<'a>, start: Offset) -> Self {
        Self { file, problems: Vec::new(), mistakes: Vec::new(), start, node: None }
    }

    pub(super) fn place(&self, value: &impl Ranged) -> SourcePlace {
        SourcePlace { file: 0, at: self.start + value.range().start }
    }

    pub(super) fn wrong(&mut self, place: SourcePlace, what: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(self.file.problem(place.at, what, fix));
    }

    pub(super) fn doubt(&mut self, place: SourcePlace, what: impl Into<String>, fix: impl Into<String>) {
        self.mistakes.push(self.file.problem(place.at, what, fix));
    }

    fn mistyped(&mut self, value: &Value<'_>, key: &str, wanted: &str) {
        self.mistyped_as(value, &format!("'{key}'"), wanted);
    }

    /// The node that is read, for messages, with a space before it.
    pub(super) fn of_node(&self) -> String {
        self.node.as_ref().map(|node| format!(" of {node}")).unwrap_or_default()
    }

    /// Reports a value of the wrong type by the name `what`: an item of a list is not its list.
    fn mistyped_as(&mut self, value: &Value<'_>, what: &str, wanted: &str) {
        let (of, place) = (self.of_node(), self.place(value));
        let fix =
            if wanted == "a list" { "put it in square brackets".into() } else { format!("make it {wanted}") };
        self.wrong(place, format!("{what}{of} must be {wanted}"), fix);
    }

    /// An object as key and value pairs; a duplicate key is an error.
    pub(super) fn pairs<'v>(&mut self, object: &'v Object<'a>) -> Vec<(&'v str, &'v Value<'a>)> {
        let mut seen: HashMap<&str, SourcePlace> = HashMap::new();
        let is_small = object.properties.len() <= SMALL;
        let mut pairs: Vec<(&'v str, &'v Value<'a>)> = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let name = property.name.as_str();
            // Most objects are nodes: to look through a few keys is cheaper than to hash them.
            let first = match is_small {
                true => pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| self.place(*value)),
                false => seen.insert(name, self.place(property)),
            };
            if let Some(first) = first {
                let line = self.file.line_of(first.at);
                let what = format!("the key '{name}' is already on line {line}");
                self.wrong(self.place(property), what, "keep one of them");
            }
            pairs.push((name, &property.value));
        }
        pairs
    }

    pub(super) fn object<'v>(&mut self, key: &str, value: &'v Value<'a>) -> Option<&'v Object<'a>> {
        self.object_named(&format!("'{key}'"), value)
    }

    /// The object in `value`, which problems name `what`: an item of a list has no key.
    pub(super) fn object_named<'v>(&mut self, what: &str, value: &'v Value<'a>) -> Option<&'v Object<'a>> {
        let object = value.as_object();
        if object.is_none() {
            self.mistyped_as(value, what, "an object");
        }
        object
    }

    pub(super) fn list<'v>(&mut self, key: &str, value: &'v Value<'a>) -> &'v [Value<'a>] {
        match value {
            Value::Array(array) => &array.elements,
            Value::NullKeyword(_) => &[],
            _ => {
                self.mistyped(value, key, "a list");
                &[]
            }
        }
    }

    pub(super) fn text(&mut self, key: &str, value: &Value<'_>) -> Option<String> {
        self.text_named(&format!("'{key}'"), value)
    }

    fn text_named(&mut self, what: &str, value: &Value<'_>) -> Option<String> {
        match value {
            Value::StringLit(text) => Some(text.value.to_string()),
            Value::NullKeyword(_) => None,
            _ => {
                self.mistyped_as(value, what, "a string");
                None
            }
        }
    }

    pub(super) fn texts(&mut self, key: &str, value: &Value<'a>) -> Vec<String> {
        let list = self.list(key, value);
        list.iter().filter_map(|item| self.text_named(&format!("an item of '{key}'"), item)).collect()
    }

    /// One text, or a list of them.
    pub(super) fn text_or_texts(&mut self, key: &str, value: &Value<'a>) -> Vec<String> {
        match value {
            Value::Array(_) => self.texts(key, value),
            _ => self.text(key, value).into_iter().collect(),
        }
    }

    pub(super) fn flag(&mut self, key: &str, value: &Value<'_>) -> bool {
        match value {
            Value::BooleanLit(flag) => flag.value,
            Value::NullKeyword(_) => false,
            _ => {
                self.mistyped(value, key, "true or false");
                false
            }
        }
    }

    pub(super) fn count(&mut self, key: &str, value: &Value<'_>) -> Option<u64> {
        let count = match value {
            Value::NumberLit(number) => number.value.parse().ok().filter(|count| *count > 0),
            Value::NullKeyword(_) => return None,
            _ => None,
        };
        if count.is_none() {
            self.mistyped(value, key, "a whole number above 0");
        }
        count
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &str,
        value: &Value<'_>,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Option<T> {
        let word = self.text(key, value)?;
        let read = all.iter().copied().find(|one| as_str(*one) == word);
        if read.is_none() {
            let known: Vec<&str> = all.iter().map(|one| as_str(*one)).collect();
            let fix = match nearest(&word, known.iter().copied()) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!("use one of: {}", known.join(", ")),
            };
            self.wrong(self.place(value), format!("'{word}' is not a known {key}"), fix);
        }
        read
    }

    pub(super) fn id(&mut self, key: &str, value: &Value<'_>) -> Option<PlacedId> {
        self.id_named(&format!("'{key}'"), value)
    }

    fn id_named(&mut self, what: &str, value: &Value<'_>) -> Option<PlacedId> {
        let place = self.place(value);
        let Value::StringLit(text) = value else {
            self.mistyped_as(value, what, "a string");
            return None;
        };
        match text.value.parse() {
            Ok(id) => Some((id, place)),
            Err(error) => {
                let error: crate::name::NameError = error;
                self.wrong(place, error.to_string(), "use letters, digits, '.', '_' and '-'");
                None
            }
        }
    }

    pub(super) fn ids(&mut self, key: &str, value: &Value<'a>) -> Vec<PlacedId> {
        let what = format!("an item of '{key}'");
        self.list(key, value).iter().filter_map(|item| self.id_named(&what, item)).collect()
    }

    /// A value that means nothing to us, as it is. A key that is nearly one of ours, or that others have for one of
    /// ours, is a mistake: what it says would be lost.
    pub(super) fn keep(
        &mut self,
        extra: &mut Map<String, serde_json::Value>,
        key: &str,
        value: &Value<'_>,
        known: &Keys,
    ) {
        if let Some(meant) = known.meant_by(key) {
            let what = format!("the key '{key}' is not known here and has no effect");
            self.doubt(self.place(value), what, format!("did you mean '{meant}'?"));
        }
        let range = value.range();
        let text = &self.file.text[self.start + range.start..self.start + range.end];
        if let Ok(value) = serde_json::from_str(text) {
            extra.insert(key.to_owned(), value);
        }
    }
}
