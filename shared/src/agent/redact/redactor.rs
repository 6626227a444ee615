//! Redacts one stream. Each byte is looked at a bounded number of times, and a bounded piece is held back.

use std::borrow::Cow;

use memchr::memchr;

use super::{
    REDACTED, Secrets,
    secrets::SecretMatch,
    shape::{Alphabet, Rest, is_pem},
};
use crate::message::hidden_length_in_json;

/// A text without control characters, escape sequences and invisible marks.
pub(super) struct View<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// For each byte, where it is in the original, and at the end the length of the original. Empty if nothing was
    /// removed.
    places: Vec<usize>,
}

impl<'a> View<'a> {
    /// The text itself.
    fn unchanged(text: &'a [u8]) -> Self {
        Self { bytes: Cow::Borrowed(text), places: Vec::new() }
    }

    /// The text that remains if everything hidden is removed, also carriage returns: a terminal continues the line after
    /// them, and a commit message loses them.
    pub(super) fn cleaned(text: &'a [u8]) -> Self {
        let may_hide = |byte: &u8| !matches!(byte, b' '..=b'[' | b']'..=b'~' | b'\n' | b'\t');
        let Some(first) = text.iter().position(may_hide) else {
            return Self::unchanged(text);
        };
        let (mut bytes, mut places): (Vec<u8>, Vec<usize>) = (text[..first].to_vec(), (0..first).collect());
        let mut at = first;
        while at < text.len() {
            let hidden = if may_hide(&text[at]) { hidden_length(&text[at..]) } else { 0 };
            if hidden > 0 {
                at += hidden;
                continue;
            }
            // All slashes of an escape are shown if one is: the second of them must not begin another escape.
            let slashes = text[at..].iter().take_while(|byte| **byte == b'\\').count();
            for _ in 0..slashes.max(1) {
                bytes.push(text[at]);
                places.push(at);
                at += 1;
            }
        }
        if bytes.len() == text.len() {
            return Self::unchanged(text);
        }
        places.push(text.len());
        Self { bytes: Cow::Owned(bytes), places }
    }

    /// Whether something was removed.
    fn hides(&self) -> bool {
        !self.places.is_empty()
    }

    /// Where the byte `at` is in the original.
    fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(at)
    }

    /// Where the byte before `at` ends in the original.
    pub(super) fn end(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |last| self.place(last) + 1)
    }
}

/// The length of what is hidden at the beginning of a text. In JSON, a carriage return is an escape.
fn hidden_length(text: &[u8]) -> usize {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    match text.get(slashes) {
        Some(b'\r') if slashes == 0 => 1,
        Some(b'r') if slashes > 0 => slashes + 1,
        _ => hidden_length_in_json(text),
    }
}

/// A longer line is not held back until its end.
const WINDOW: usize = 64 * 1024;

/// In the second pass, which gets long lines in large pieces, a line longer than this is not held back until its end.
const CLEANED_WINDOW: usize = 8 * 1024;

/// The longest private key; text after this many bytes is shown again.
const LONGEST_PEM: usize = 64 * 1024;

/// Removes the secrets from one stream.
#[derive(Clone)]
pub struct Redactor {
    secrets: Secrets,
    /// Searches the text as it is.
    plain: Pass,
    /// Searches what the first pass lets through, without control characters.
    cleaned: Pass,
}

impl std::fmt::Debug for Redactor {
    /// Never shows what is held back.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("mode", &self.plain.mode).finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor at the beginning of a stream.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        let (plain, cleaned) = (
            Pass::new(WINDOW, |text| View::unchanged(text)),
            Pass::new(CLEANED_WINDOW, |text| View::cleaned(text)),
        );
        Self { secrets: secrets.clone(), plain, cleaned }
    }

    /// Redacts a whole text.
    #[must_use]
    pub fn redact(secrets: &Secrets, text: &str) -> String {
        let mut redactor = Self::new(secrets);
        let mut shown = redactor.feed(text.as_bytes());
        shown.extend(redactor.finish());
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Adds bytes, and returns what can be shown.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let passed = self.plain.feed(&self.secrets, bytes);
        self.cleaned.feed(&self.secrets, &passed)
    }

    /// Ends the stream, and returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let passed = self.plain.finish(&self.secrets);
        let mut shown = self.cleaned.feed(&self.secrets, &passed);
        shown.extend(self.cleaned.finish(&self.secrets));
        shown
    }
}

/// The state at the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Text that is shown.
    Open,
    /// The rest of a token.
    Token(Alphabet),
    /// Inside of a private key: bytes so far, dashes in a row, and rows of five dashes.
    Pem { length: usize, dashes: u8, rows: u8 },
}

/// How much of the buffer can be decided about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// The complete lines.
    Lines,
    /// All but what a secret may need.
    LongLine,
    /// Everything, because the stream has ended.
    All,
}

/// One search through a stream.
#[derive(Clone)]
struct Pass {
    /// How much of a line is held back at most.
    window: usize,
    view: fn(&[u8]) -> View<'_>,
    mode: Mode,
    /// The last two bytes before the buffer, as they are seen.
    before: [u8; 2],
    buffer: Vec<u8>,
}

impl Pass {
    fn new(window: usize, view: fn(&[u8]) -> View<'_>) -> Self {
        Self { window, view, mode: Mode::Open, before: *b"\n\n", buffer: Vec::new() }
    }

    fn feed(&mut self, secrets: &Secrets, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for part in bytes.chunks(self.window) {
            self.buffer.extend_from_slice(part);
            if memchr(b'\n', part).is_some() {
                self.walk(secrets, Settled::Lines, &mut shown);
            }
            if self.buffer.len() > self.window {
                self.walk(secrets, Settled::LongLine, &mut shown);
            }
        }
        shown
    }

    fn finish(&mut self, secrets: &Secrets) -> Vec<u8> {
        let mut shown = Vec::new();
        self.walk(secrets, Settled::All, &mut shown);
        shown
    }

    /// Decides about everything that begins in the settled part.
    fn walk(&mut self, secrets: &Secrets, settled: Settled, shown: &mut Vec<u8>) {
        let buffer = std::mem::take(&mut self.buffer);
        let view = (self.view)(&buffer);
        let seen = &*view.bytes;
        let limit = match settled {
            Settled::Lines => memchr::memrchr(b'\n', seen).map_or(0, |end| end + 1),
            Settled::LongLine => seen.len().saturating_sub(secrets.reach()),
            Settled::All => seen.len(),
        };
        // `from` is the place in the original up to which everything was shown or removed.
        let (mut at, mut from) = (0, 0);
        while at < limit {
            let next = match self.mode {
                Mode::Open => match self.find(secrets, seen, at, limit) {
                    Some(found) => {
                        let kept = found.start + found.kept;
                        shown.extend_from_slice(&buffer[from..view.place(kept)]);
                        shown.extend_from_slice(REDACTED.as_bytes());
                        found.start + found.length
                    }
                    None => {
                        shown.extend_from_slice(&buffer[from..view.end(limit)]);
                        limit
                    }
                },
                Mode::Token(alphabet) => self.token(seen, at, alphabet),
                Mode::Pem { .. } => self.pem(seen, at),
            };
            from = if next > at { view.end(next) } else { from };
            at = next;
        }
        // Hidden bytes at the end may be the beginning of a sequence, so they wait for the rest of it.
        let rest = if settled == Settled::All { buffer.len() } else { from };
        shown.extend_from_slice(&buffer[from..rest]);
        for byte in &seen[at.saturating_sub(2)..at] {
            self.before = [self.before[1], *byte];
        }
        // A line with more hidden than visible bytes is held back without the hidden ones.
        self.buffer = match buffer.len() - rest > self.window / 2 && view.hides() {
            true => seen[at..].to_vec(),
            false => buffer[rest..].to_vec(),
        };
    }

    /// Finds the next secret that begins in `at..limit`, and sets the mode after it.
    fn find(&mut self, secrets: &Secrets, seen: &[u8], at: usize, limit: usize) -> Option<Found> {
        let mut from = at;
        while let Some((start, found)) = secrets.find(seen, from).filter(|(start, _)| *start < limit) {
            if let Some(found) = self.judge(seen, start, &found) {
                return Some(found);
            }
            from = start + 1;
        }
        None
    }

    /// Decides whether a match is a secret, and sets the mode after it.
    fn judge(&mut self, seen: &[u8], start: usize, found: &SecretMatch) -> Option<Found> {
        let shape = match found {
            SecretMatch::Value { length } => return Some(Found { start, kept: 0, length: *length }),
            SecretMatch::Opening(shape) => shape,
        };
        let before = match start {
            0 => self.before,
            1 => [self.before[1], seen[0]],
            _ => [seen[start - 2], seen[start - 1]],
        };
        let length = shape.measure(&seen[start..]).filter(|_| shape.may_follow(before))?;
        self.mode = match shape.rest {
            Rest::Run(alphabet, _) => Mode::Token(alphabet),
            Rest::Jwt | Rest::Basic => Mode::Token(Alphabet::Token),
            Rest::Userinfo => Mode::Open,
            Rest::Pem => Mode::Pem { length: 0, dashes: 0, rows: 0 },
        };
        Some(Found { start, kept: shape.kept, length })
    }

    fn token(&mut self, seen: &[u8], at: usize, alphabet: Alphabet) -> usize {
        let rest = &seen[at..];
        let length = rest.iter().position(|byte| !alphabet.holds(*byte));
        if length.is_some() {
            self.mode = Mode::Open;
        }
        at + length.unwrap_or(rest.len())
    }

    /// Skips to the end of the line with the second row of dashes, or to a byte that cannot occur in a key.
    fn pem(&mut self, seen: &[u8], at: usize) -> usize {
        let Mode::Pem { mut length, mut dashes, mut rows } = self.mode else {
            return at;
        };
        for (place, byte) in seen.iter().enumerate().skip(at) {
            if rows == 2 || length == LONGEST_PEM || !is_pem(*byte) {
                self.mode = Mode::Open;
                return place;
            }
            length += 1;
            dashes = if *byte == b'-' { dashes + 1 } else { 0 };
            if dashes == 5 {
                (dashes, rows) = (0, rows + 1);
            }
        }
        self.mode = Mode::Pem { length, dashes, rows };
        seen.len()
    }
}

/// A secret in a text.
struct Found {
    start: usize,
    /// How much of its beginning stays.
    kept: usize,
    length: usize,
}
