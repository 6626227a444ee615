//! Text as a word of a shell command.

/// A value as one word of a shell command. Plain words stay as they are, so that they can be read, and so that they can
/// stand inside of quotes.
#[must_use]
pub fn shell_word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}
