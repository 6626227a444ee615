//! What is secret: values of environment variables, and tokens of well-known formats.

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use super::shape::{LOOKAHEAD, SHAPES, SecretShape};
use crate::failure::Explain;

/// Words in the name of a variable that make its value a secret.
const SECRET_WORDS: [&str; 5] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Shorter values would also remove innocent words.
const SHORTEST: usize = 8;

/// Longer values are searched for in pieces of this length.
const LONGEST: usize = 1024;

/// Secrets that could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("could not prepare the redaction of secrets: {0}")]
pub struct SecretsError(#[from] BuildError);

impl Explain for SecretsError {}

/// Everything that must not be shown, ready to be searched for.
#[derive(Clone)]
pub struct Secrets {
    finder: AhoCorasick,
    /// How many patterns are values; the token formats follow them.
    values: usize,
    longest: usize,
}

impl std::fmt::Debug for Secrets {
    /// Never shows a value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("values", &self.values).finish_non_exhaustive()
    }
}

/// A match.
pub(super) enum SecretMatch {
    Value { length: usize },
    Opening(&'static SecretShape),
}

impl Secrets {
    /// Searches for these values and all token formats. Values are searched for line by line, and as JSON escapes them;
    /// the first and last line of a key block are left to its format.
    pub fn new<I: IntoIterator<Item = S>, S: AsRef<[u8]>>(values: I) -> Result<Self, SecretsError> {
        let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
        for value in values {
            for line in value.as_ref().split(|byte| matches!(byte, b'\n' | b'\r')) {
                let line = line.trim_ascii();
                if line.len() >= SHORTEST && !line.starts_with(b"-----") {
                    add_pieces(line, &mut known);
                    add_pieces(&as_json(line), &mut known);
                }
            }
        }
        let longest = known.iter().map(Vec::len).max().unwrap_or(0).max(LOOKAHEAD + 16);
        let values = known.len();
        let openings = SHAPES.iter().map(|shape| shape.opening.as_bytes().to_vec());
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(known.into_iter().chain(openings))?;
        Ok(Self { finder, values, longest })
    }

    /// Searches for the values of variables whose names sound secret.
    pub fn of_environment<I, K, V>(variables: I) -> Result<Self, SecretsError>
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let secret = variables.into_iter().filter(|(name, _)| is_secret_name(name.as_ref()));
        Self::new(secret.map(|(_, value)| value.as_ref().as_bytes().to_vec()))
    }

    /// How many bytes after a position decide whether a secret begins there.
    pub(super) fn reach(&self) -> usize {
        self.longest
    }

    /// The first match at or after `from`.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, SecretMatch)> {
        let found = self.finder.find(aho_corasick::Input::new(text).range(from..))?;
        let pattern = found.pattern().as_usize();
        let what = match pattern.checked_sub(self.values) {
            Some(shape) => SecretMatch::Opening(&SHAPES[shape]),
            None => SecretMatch::Value { length: found.len() },
        };
        Some((found.start(), what))
    }
}

fn is_secret_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Splits a long value. A last piece that would be too short overlaps the one before it.
fn add_pieces(value: &[u8], known: &mut BTreeSet<Vec<u8>>) {
    for start in (0..value.len()).step_by(LONGEST) {
        let end = value.len().min(start + LONGEST);
        let start = if end - start < SHORTEST { end - SHORTEST } else { start };
        known.insert(value[start..end].to_vec());
    }
}

/// The value as it appears in a JSON string.
fn as_json(value: &[u8]) -> Vec<u8> {
    let quoted = serde_json::to_string(&String::from_utf8_lossy(value)).unwrap_or_default();
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(&quoted).as_bytes().to_vec()
}
