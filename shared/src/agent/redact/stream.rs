//! Redacts one stream. Each byte is looked at a bounded number of times, and a bounded piece is held back.

use memchr::memrchr;

use super::{
    REDACTED, Secrets,
    secrets::SecretMatch,
    shape::{Alphabet, Rest, is_pem},
};

/// A longer line is not held back until its end.
const WINDOW: usize = 64 * 1024;

/// The longest private key; text after this many bytes is shown again.
const LONGEST_PEM: usize = 64 * 1024;

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

/// Removes the secrets from one stream.
#[derive(Clone)]
pub struct Redactor {
    secrets: Secrets,
    mode: Mode,
    /// The byte before the buffer.
    before: Option<u8>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Redactor {
    /// Never shows what is held back.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor at the beginning of a stream.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self { secrets: secrets.clone(), mode: Mode::Open, before: None, buffer: Vec::new() }
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
        let mut shown = Vec::with_capacity(bytes.len());
        for part in bytes.chunks(WINDOW) {
            let lines = memrchr(b'\n', part).map_or(0, |end| self.buffer.len() + end + 1);
            self.buffer.extend_from_slice(part);
            let enough = self.buffer.len().saturating_sub(self.secrets.reach());
            let settled = if self.buffer.len() - lines > WINDOW { enough } else { lines };
            self.walk(settled, &mut shown);
        }
        shown
    }

    /// Ends the stream, and returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        self.walk(self.buffer.len(), &mut shown);
        shown
    }

    /// Decides about everything that begins before `limit`.
    fn walk(&mut self, limit: usize, shown: &mut Vec<u8>) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        while at < limit {
            at = match self.mode {
                Mode::Open => self.open(&buffer, at, limit, shown),
                Mode::Token(alphabet) => self.token(&buffer, at, alphabet),
                Mode::Pem { .. } => self.pem(&buffer, at),
            };
        }
        self.before = at.checked_sub(1).map(|last| buffer[last]).or(self.before);
        self.buffer = buffer;
        self.buffer.drain(..at);
    }

    /// Shows the text before the next secret, and skips its beginning.
    fn open(&mut self, buffer: &[u8], at: usize, limit: usize, shown: &mut Vec<u8>) -> usize {
        let mut from = at;
        while let Some((start, found)) = self.secrets.find(buffer, from).filter(|(start, _)| *start < limit) {
            if let Some((kept, length)) = self.judge(buffer, start, &found) {
                shown.extend_from_slice(&buffer[at..start + kept]);
                shown.extend_from_slice(REDACTED.as_bytes());
                return start + length;
            }
            from = start + 1;
        }
        shown.extend_from_slice(&buffer[at..limit]);
        limit
    }

    /// If the match is a secret, returns how much of it stays and how long it is, and sets the next state.
    fn judge(&mut self, buffer: &[u8], start: usize, found: &SecretMatch) -> Option<(usize, usize)> {
        let shape = match found {
            SecretMatch::Value { length } => return Some((0, *length)),
            SecretMatch::Opening(shape) => shape,
        };
        let before = start.checked_sub(1).map(|last| buffer[last]).or(self.before);
        let length = shape.measure(&buffer[start..]).filter(|_| shape.may_follow(before))?;
        self.mode = match shape.rest {
            Rest::Run(alphabet, _) => Mode::Token(alphabet),
            Rest::Pem => Mode::Pem { length: 0, dashes: 0, rows: 0 },
        };
        Some((shape.kept, length))
    }

    fn token(&mut self, buffer: &[u8], at: usize, alphabet: Alphabet) -> usize {
        let rest = &buffer[at..];
        let length = rest.iter().position(|byte| !alphabet.holds(*byte));
        if length.is_some() {
            self.mode = Mode::Open;
        }
        at + length.unwrap_or(rest.len())
    }

    /// Skips to the end of the line with the second row of dashes, or to a byte that cannot occur in a key.
    fn pem(&mut self, buffer: &[u8], at: usize) -> usize {
        let Mode::Pem { mut length, mut dashes, mut rows } = self.mode else {
            return at;
        };
        for (place, byte) in buffer.iter().enumerate().skip(at) {
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
        buffer.len()
    }
}
