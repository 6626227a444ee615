//! Parses JSON with bounds: long strings are cut and long lists are dropped, so that a hostile line costs little more
//! memory than it has bytes.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// How many values of one line are kept.
const MAX_VALUES: usize = 20_000;

/// The longest string that is kept.
const LONGEST_STRING: usize = 1024 * 1024;

/// The JSON object on a line, if there is one.
pub(super) fn skim(line: &[u8]) -> Option<Value> {
    let room = Cell::new(MAX_VALUES);
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = Skim(&room).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    value.is_object().then_some(value)
}

#[derive(Clone, Copy)]
struct Skim<'r>(&'r Cell<usize>);

impl Skim<'_> {
    fn has_room(self) -> bool {
        let room = self.0.get();
        self.0.set(room.saturating_sub(1));
        room > 0
    }
}

impl<'de> DeserializeSeed<'de> for Skim<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skim<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        let mut end = text.len().min(LONGEST_STRING);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Ok(text[..end].into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while self.has_room() {
            match list.next_element_seed(self)? {
                Some(value) => kept.push(value),
                None => return Ok(kept.into()),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while self.has_room() {
            match map.next_key::<String>()? {
                Some(key) => kept.insert(key, map.next_value_seed(self)?),
                None => return Ok(kept.into()),
            };
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_within_the_bounds_is_read_unchanged_and_the_rest_is_cut() {
        let whole = r#"{"a":[1,-2,2.5,"ü",null,true,{"b":{}}]}"#;
        assert_eq!(skim(whole.as_bytes()).unwrap(), serde_json::from_str::<Value>(whole).unwrap());
        let long = format!("{{\"a\":[{}1],\"type\":\"x\"}}", "1,".repeat(MAX_VALUES * 2));
        assert_eq!(skim(long.as_bytes()).unwrap()["a"].as_array().unwrap().len(), MAX_VALUES - 1);
        let long = format!("{{\"a\":\"{}\",\"type\":\"x\"}}", "ü".repeat(LONGEST_STRING));
        let read = skim(long.as_bytes()).unwrap();
        assert_eq!((read["a"].as_str().unwrap().len(), read["type"].as_str()), (LONGEST_STRING, Some("x")));
        for broken in ["", "{", "[1]", "{} {}", "{\"a\":}", "\"x\""] {
            assert_eq!(skim(broken.as_bytes()), None, "{broken}");
        }
        let deep = "{\"a\":".repeat(5000);
        assert_eq!(skim(deep.as_bytes()), None);
    }
}
