//! What is secret: values of environment variables, and tokens of well-known formats.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    sync::Arc,
};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use super::{
    encoding::encoded,
    shape::{LOOKAHEAD, SHAPES, SecretShape},
    view::View,
};
use crate::failure::Explain;

/// Words in the name of a variable that make its value a secret.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Last words of names whose values are addresses. Many of them are public.
const ADDRESS_WORDS: [&str; 3] = ["URL", "URI", "DSN"];

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
    /// For each pattern that is a value, the variable that it comes from; the token formats follow the values.
    variables: Arc<[String]>,
    longest: usize,
}

impl std::fmt::Debug for Secrets {
    /// Never shows a value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("values", &self.variables.len()).finish_non_exhaustive()
    }
}

/// A match.
pub(super) enum SecretMatch {
    Value { length: usize },
    Opening(&'static SecretShape),
}

impl Secrets {
    /// Searches for the values of variables whose names sound secret, for their encoded forms, and for all token
    /// formats. Values are searched for line by line; the first and last line of a key block are left to its format.
    pub fn of_environment<I, K, V>(variables: I) -> Result<Self, SecretsError>
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let mut known: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for (name, value) in variables {
            let (name, value) = (name.as_ref().to_string_lossy(), value.as_ref().as_bytes());
            for part in secret_parts(&name, value) {
                for line in part.split(|byte| matches!(byte, b'\n' | b'\r')) {
                    add_forms(line.trim_ascii(), &name, &mut known);
                }
            }
        }
        let longest = known.keys().map(Vec::len).max().unwrap_or(0).max(LOOKAHEAD + 16);
        let openings = SHAPES.iter().map(|shape| shape.opening.as_bytes());
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(known.keys().map(Vec::as_slice).chain(openings))?;
        Ok(Self { finder, variables: known.into_values().collect(), longest })
    }

    /// The secrets that a file contains, in words: variables by their names, and tokens by their formats.
    #[must_use]
    pub fn describe_in(&self, content: &[u8]) -> BTreeSet<String> {
        let mut described = BTreeSet::new();
        for found in self.finder.find_iter(content) {
            let (pattern, start) = (found.pattern().as_usize(), found.start());
            described.extend(match self.variables.get(pattern) {
                Some(variable) => Some(format!("the value of {variable}")),
                None => SHAPES[pattern - self.variables.len()].describe_in_file(content, start),
            });
        }
        described
    }

    /// How many bytes after a position decide whether a secret begins there.
    pub(super) fn reach(&self) -> usize {
        self.longest
    }

    /// The first match at or after `from`.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, SecretMatch)> {
        let found = self.finder.find(aho_corasick::Input::new(text).range(from..))?;
        let pattern = found.pattern().as_usize();
        let what = match pattern.checked_sub(self.variables.len()) {
            Some(shape) => SecretMatch::Opening(&SHAPES[shape]),
            None => SecretMatch::Value { length: found.len() },
        };
        Some((found.start(), what))
    }
}

/// The parts of a variable's value that are secret.
fn secret_parts<'v>(name: &str, value: &'v [u8]) -> Vec<&'v [u8]> {
    let name = name.to_ascii_uppercase();
    let mut words = name.split('_');
    let is_password = |word: &str| word.starts_with("PASS");
    if SECRET_WORDS.iter().any(|word| name.contains(word)) || name.ends_with("_PWD") || words.any(is_password)
    {
        return vec![value];
    }
    let is_address = name.rsplit('_').next().is_some_and(|last| ADDRESS_WORDS.contains(&last));
    if is_address { address_parts(value) } else { Vec::new() }
}

/// The secret parts of an address: all of it if it has a name, a query or something random in its path, and its
/// password.
fn address_parts(value: &[u8]) -> Vec<&[u8]> {
    let rest = find(value, b"://").map_or(value, |at| &value[at + 3..]);
    let host = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host);
    let userinfo = authority.iter().rposition(|byte| *byte == b'@').map(|end| &authority[..end]);
    let password = userinfo.and_then(|user| Some(&user[user.iter().position(|byte| *byte == b':')? + 1..]));
    let is_secret =
        userinfo.is_some() || path.contains(&b'?') || path.split(|byte| *byte == b'/').any(is_random);
    is_secret.then_some(value).into_iter().chain(password).collect()
}

/// Whether a part of a path looks like a token, as in the address of a webhook.
fn is_random(part: &[u8]) -> bool {
    part.len() >= 16 && part.iter().any(u8::is_ascii_digit) && part.iter().any(u8::is_ascii_alphabetic)
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// Adds a value in all forms in which it may be printed.
fn add_forms(value: &[u8], name: &str, known: &mut BTreeMap<Vec<u8>, String>) {
    if value.len() < SHORTEST || value.starts_with(b"-----") {
        return;
    }
    let forms = [value.to_vec(), View::cleaned(value).bytes.into_owned()];
    for form in encoded(value).into_iter().chain(forms).filter(|form| form.len() >= SHORTEST) {
        add_pieces(&form, name, known);
    }
}

/// Splits a long value. A last piece that would be too short overlaps the one before it.
fn add_pieces(value: &[u8], name: &str, known: &mut BTreeMap<Vec<u8>, String>) {
    for start in (0..value.len()).step_by(LONGEST) {
        let end = value.len().min(start + LONGEST);
        let start = if end - start < SHORTEST { end - SHORTEST } else { start };
        known.entry(value[start..end].to_vec()).or_insert_with(|| name.to_owned());
    }
}
