//! Text as a reader sees it, with the places of its bytes in the original.

use std::borrow::Cow;

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
    pub(super) fn unchanged(text: &'a [u8]) -> Self {
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
    pub(super) fn hides(&self) -> bool {
        !self.places.is_empty()
    }

    /// Where the byte `at` is in the original.
    pub(super) fn place(&self, at: usize) -> usize {
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
