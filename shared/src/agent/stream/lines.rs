//! Reads lines of bytes and the JSON in them, in bounded memory.

use std::{cell::Cell, fmt};

use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::super::EventFormat;

// Splits bytes into lines, in bounded memory. Where a long line is cut depends on the line alone, never on how it
// arrived.

/// The longest piece of plain text.
const PIECE: usize = 64 * 1024;

/// The longest line that is parsed as JSON. Programs put whole files and images on one line.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// A line, without its end.
pub(super) enum StreamLine<'a> {
    /// Text: a line, or a piece of a very long one.
    Words(String),
    /// A line that begins like a JSON object.
    Json(&'a [u8]),
    /// A line that begins like a JSON object and is too long to be parsed.
    TooLong(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unclear,
    Words,
    Json,
}

/// The unfinished line.
#[derive(Debug)]
pub(super) struct LineBuffer {
    is_text: bool,
    kind: Kind,
    buffer: Vec<u8>,
    /// The number of bytes of an overlong line that were dropped.
    dropped: usize,
}

impl LineBuffer {
    pub(super) fn new(format: EventFormat) -> Self {
        let is_text = format == EventFormat::Text;
        Self { is_text, kind: Kind::Unclear, buffer: Vec::new(), dropped: 0 }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], mut give: impl FnMut(StreamLine<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.add(&bytes[..end], &mut give);
            self.end(&mut give);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes, &mut give);
    }

    /// Passes on a last line without a line end.
    pub(super) fn finish(&mut self, mut give: impl FnMut(StreamLine<'_>)) {
        if !self.buffer.is_empty() || self.dropped > 0 {
            self.end(&mut give);
        }
    }

    fn add(&mut self, bytes: &[u8], give: &mut impl FnMut(StreamLine<'_>)) {
        for part in bytes.chunks(PIECE) {
            self.add_part(part, give);
        }
    }

    /// Leading white space is dropped, because it would change where a line is cut.
    fn add_part(&mut self, mut bytes: &[u8], give: &mut impl FnMut(StreamLine<'_>)) {
        if self.kind == Kind::Unclear {
            self.kind = self.kind_of(bytes);
            bytes = if self.is_text { bytes } else { bytes.trim_ascii_start() };
        }
        if self.dropped > 0 {
            self.dropped = self.dropped.saturating_add(bytes.len());
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.kind != Kind::Json {
            while self.buffer.len() > PIECE {
                let cut = char_start(&self.buffer, PIECE);
                give(StreamLine::Words(String::from_utf8_lossy(&self.buffer[..cut]).into_owned()));
                self.buffer.drain(..cut);
            }
        } else if self.buffer.len() > LONGEST_LINE {
            self.dropped = self.buffer.len();
            self.buffer = Vec::new();
        }
    }

    /// The first byte that is no white space decides. The format `text` has no JSON.
    fn kind_of(&self, bytes: &[u8]) -> Kind {
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            _ if self.is_text => Kind::Words,
            None => Kind::Unclear,
            Some(b'{') => Kind::Json,
            Some(_) => Kind::Words,
        }
    }

    fn end(&mut self, give: &mut impl FnMut(StreamLine<'_>)) {
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        match self.kind {
            Kind::Json if self.dropped > 0 => give(StreamLine::TooLong(self.dropped)),
            Kind::Json => give(StreamLine::Json(line)),
            _ => give(StreamLine::Words(String::from_utf8_lossy(line).into_owned())),
        }
        self.buffer.clear();
        self.buffer.shrink_to(PIECE);
        (self.kind, self.dropped) = (Kind::Unclear, 0);
    }
}

/// A line as text, in pieces of bounded length.
pub(super) fn pieces(line: &[u8]) -> impl Iterator<Item = String> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let cut = if rest.len() > PIECE { char_start(rest, PIECE) } else { rest.len() };
        let (piece, after) = rest.split_at(cut);
        rest = after;
        (!piece.is_empty()).then(|| String::from_utf8_lossy(piece).into_owned())
    })
}

/// The last position at or before `at` where a character begins; `at` itself if the bytes are not UTF-8.
fn char_start(bytes: &[u8], at: usize) -> usize {
    (at - 3..=at).rev().find(|place| bytes[*place] & 0xc0 != 0x80).unwrap_or(at)
}

// Parses JSON with bounds: long strings are cut and long lists are dropped, so that a hostile line costs little more
// memory than it has bytes.

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
    fn what_fits_is_read_as_it_is_and_the_rest_is_let_go() {
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
