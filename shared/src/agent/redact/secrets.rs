//! What is secret: values of environment variables in all forms in which they may be printed, and tokens of well-known formats.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    sync::Arc,
};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use super::{
    redactor::View,
    shape::{LOOKAHEAD, SHAPES, SecretShape},
};
use crate::failure::{Exit, Explain, Explanation};

/// Words in the name of a variable that make its value a secret.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Last words of names whose values are addresses. Many of them are public.
const ADDRESS_WORDS: [&str; 3] = ["URL", "URI", "DSN"];

/// Shorter values would also remove innocent words.
const SHORTEST_SECRET: usize = 8;

/// Longer values are searched for in pieces of this length.
const LONGEST_PIECE: usize = 1024;

/// Secrets that could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("could not prepare the redaction of secrets: {0}")]
pub struct SecretsError(#[from] BuildError);

impl Explain for SecretsError {
    fn explain(&self) -> Explanation {
        Exit::Fatal.into()
    }
}

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
    if value.len() < SHORTEST_SECRET || value.starts_with(b"-----") {
        return;
    }
    let forms = [value.to_vec(), View::cleaned(value).bytes.into_owned()];
    for form in encoded(value).into_iter().chain(forms).filter(|form| form.len() >= SHORTEST_SECRET) {
        add_pieces(&form, name, known);
    }
}

/// Splits a long value. A last piece that would be too short overlaps the one before it.
fn add_pieces(value: &[u8], name: &str, known: &mut BTreeMap<Vec<u8>, String>) {
    for start in (0..value.len()).step_by(LONGEST_PIECE) {
        let end = value.len().min(start + LONGEST_PIECE);
        let start = if end - start < SHORTEST_SECRET { end - SHORTEST_SECRET } else { start };
        known.entry(value[start..end].to_vec()).or_insert_with(|| name.to_owned());
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// All encoded forms of a value.
fn encoded(value: &[u8]) -> Vec<Vec<u8>> {
    let standard: Vec<Vec<u8>> = (0..3).map(|before| base64(value, before)).collect();
    let url_safe = standard.iter().map(|text| {
        let letter = |byte: &u8| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        };
        text.iter().map(letter).collect()
    });
    let lower: Vec<u8> = value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let mut forms: Vec<Vec<u8>> = url_safe.collect();
    forms.extend(standard);
    forms.push(lower.to_ascii_uppercase());
    forms.push(lower);
    // `encodeURIComponent` leaves more characters as they are than RFC 3986, and `quote` of Python keeps slashes.
    for kept in ["-_.~", "-_.~/", "-_.~!*'()"] {
        let upper = percent(value, kept.as_bytes());
        forms.push(upper.replace("%20", "+").into_bytes());
        forms.push(lower_escapes(&upper).into_bytes());
        forms.push(upper.into_bytes());
    }
    // Some programs escape every byte.
    let upper: String = value.iter().map(|byte| format!("%{byte:02X}")).collect();
    forms.push(lower_escapes(&upper).into_bytes());
    forms.push(upper.into_bytes());
    forms.push(as_json(value));
    forms
}

/// The characters of the value in base64, if `before` other bytes (modulo 3) precede it. Characters that also depend on
/// neighbouring bytes are left out.
fn base64(value: &[u8], before: usize) -> Vec<u8> {
    let bits = value.len() * 8;
    let first = (6 - before * 8 % 6) % 6;
    let bit = |at: usize| value[at / 8] >> (7 - at % 8) & 1;
    let characters = (first..).step_by(6).take_while(|at| at + 6 <= bits);
    characters.map(|at| BASE64[usize::from((at..at + 6).fold(0, |sum, at| sum << 1 | bit(at)))]).collect()
}

fn percent(value: &[u8], kept: &[u8]) -> String {
    let mut text = String::new();
    for byte in value {
        if byte.is_ascii_alphanumeric() || kept.contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Percent-encoded text with lower-case digits in its escapes.
fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2);
        format!("{text}%{}{rest}", digits.to_ascii_lowercase())
    })
}

/// The value as it appears in a JSON string.
fn as_json(value: &[u8]) -> Vec<u8> {
    let quoted = serde_json::to_string(&String::from_utf8_lossy(value)).unwrap_or_default();
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(&quoted).as_bytes().to_vec()
}

/// Decodes as much base64 as there is; anything else ends it.
pub(super) fn decode_base64(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| {
        let byte = match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        BASE64.iter().position(|letter| *letter == byte)
    };
    let (mut bits, mut count, mut decoded) = (0_usize, 0, Vec::new());
    for value in text.iter().map_while(|byte| digit(*byte)) {
        (bits, count) = ((bits << 6 | value) & 0xffff, count + 6);
        if count >= 8 {
            count -= 8;
            decoded.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_at_every_offset_in_base64() {
        let value = b"hunter2secretvalue";
        // The value alone, behind one byte, and behind two: `printf xhunter2… | base64`.
        for (before, text) in [
            (0, "aHVudGVyMnNlY3JldHZhbHVl"),
            (1, "eGh1bnRlcjJzZWNyZXR2YWx1ZQ=="),
            (2, "eHhodW50ZXIyc2VjcmV0dmFsdWU="),
        ] {
            let form = String::from_utf8(base64(value, before)).unwrap();
            assert!(text.contains(&form) && form.len() > 20, "{form}");
        }
        assert_eq!(decode_base64(b"YWxpY2U6cGFzcw=="), b"alice:pass");
    }

    #[test]
    fn a_secret_is_percent_encoded_like_programs_do_it() {
        let forms: Vec<String> =
            encoded(b"a b/c(d)").into_iter().map(|form| String::from_utf8(form).unwrap()).collect();
        for form in [
            "a%20b%2Fc%28d%29",
            "a%20b%2fc%28d%29",
            "a+b%2Fc%28d%29",
            "a%20b/c%28d%29",
            "a%20b%2Fc(d)",
            "%61%20%62%2F%63%28%64%29",
            "%61%20%62%2f%63%28%64%29",
        ] {
            assert!(forms.iter().any(|found| found == form), "{form}: {forms:?}");
        }
    }
}
