//! Finds what a terminal does not show: control characters, escape sequences, and marks that hide or reorder text.

/// The number of bytes at the beginning of `text` that are not shown: one escape sequence or one character. 0 if the
/// first character is shown, or if it separates words or lines.
pub(super) fn hidden_length(text: &[u8]) -> usize {
    match text.first() {
        Some(0x1b) => 1 + sequence_length(&text[1..], &[0x07, 0x1b, b'\n']),
        // Tabs and line ends are shown as spaces and line ends.
        Some(b'\t'..=b'\r') | None => 0,
        Some(0..=0x1f | 0x7f) => 1,
        Some(0x80..) => first_char(text).filter(|c| is_hidden(*c)).map_or(0, char::len_utf8),
        _ => 0,
    }
}

/// Like [`hidden_length`], but for text that may be part of a JSON document, or of one inside of another: escapes such as `\u001b` count as
/// the characters that they stand for.
#[must_use]
pub fn hidden_length_in_json(text: &[u8]) -> usize {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    if slashes == 0 {
        return hidden_length(text);
    }
    let rest = &text[slashes..];
    if rest.first() == Some(&b'b') {
        return slashes + 1;
    }
    let digits = rest.strip_prefix(b"u").and_then(|rest| std::str::from_utf8(rest.get(..4)?).ok());
    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
    match code {
        Some('\u{1b}') => slashes + 5 + sequence_length(&rest[5..], b"\\\"\n"),
        Some(c) if is_hidden(c) => slashes + 5,
        _ => 0,
    }
}

/// Marks that reorder or hide text in a terminal.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Whether a character is neither shown nor the end of a line.
fn is_hidden(c: char) -> bool {
    let is_space = matches!(c, '\t'..='\r' | '\u{85}');
    (c.is_control() && !is_space) || is_invisible(c)
}

fn first_char(text: &[u8]) -> Option<char> {
    let text = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(text) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next()
}

/// The length of an escape sequence without its first byte: CSI to its final byte, OSC to one of `ends`.
fn sequence_length(text: &[u8], ends: &[u8]) -> usize {
    match text.first() {
        Some(b'[') => {
            let end = 1 + text[1..].iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
            end + usize::from(text.get(end).is_some_and(|byte| matches!(byte, 0x40..=0x7e)))
        }
        Some(b']') => text.iter().take_while(|byte| !ends.contains(byte)).count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_escape_sequences_and_hidden_characters_are_measured() {
        for (text, length) in [
            ("a", 0),
            ("", 0),
            ("\n", 0),
            ("\t", 0),
            ("\u{1b}[31mred", 5),
            ("\u{1b}]0;title\u{7}x", 9),
            ("\u{8}x", 1),
            ("\u{200b}x", 3),
            ("\u{85}x", 0),
            ("ü", 0),
        ] {
            assert_eq!(hidden_length(text.as_bytes()), length, "{text:?}");
        }
        for (text, length) in [
            (r"\u001b[31mred", 10),
            (r"\\u001b[31mred", 11),
            (r"\u001b]0;title\u0007x", 14),
            (r"\u200bx", 6),
            (r"\n", 0),
            (r"\u000a", 0),
            (r"\u00", 0),
            (r"\bx", 2),
        ] {
            assert_eq!(hidden_length_in_json(text.as_bytes()), length, "{text:?}");
        }
    }
}
