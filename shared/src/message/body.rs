//! Bodies of messages: our own headings, and foreign text that is quoted so that no reader can mistake a line of it.

use std::fmt::Write;

use super::hidden::{hidden_length, is_invisible};

/// The longest body that is written, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// A heading of ours and the text that it introduces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodySection {
    /// One line of ours, such as `Review:`.
    pub heading: String,
    /// Text of an agent or a test. It is quoted when it is written.
    pub text: String,
}

/// The text between the subject and the trailers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// The sections in order.
    pub sections: Vec<BodySection>,
}

impl Body {
    /// One section.
    #[must_use]
    pub fn new(heading: &str, text: &str) -> Self {
        Self::default().with(heading, text)
    }

    /// Adds a section.
    #[must_use]
    pub fn with(mut self, heading: &str, text: &str) -> Self {
        self.sections.push(BodySection { heading: heading_of(heading), text: text_of(text) });
        self
    }

    /// Adds all sections of another body.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self
    }

    pub(super) fn render(&self) -> String {
        let room = LONGEST_BODY / self.sections.len().max(1);
        let sections = self.sections.iter().map(|section| section.render(room));
        sections.collect::<Vec<_>>().join("\n")
    }

    /// Parses a body. Unquoted lines before quoted ones are headings. All other unquoted lines become headings without
    /// text, so that a person's words are never taken for an agent's.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut sections: Vec<BodySection> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match (unquote(line), sections.last_mut()) {
                (Some(quoted), Some(section)) => {
                    section.text.push_str(quoted);
                    section.text.push('\n');
                }
                (Some(quoted), None) => {
                    sections.push(BodySection { heading: String::new(), text: format!("{quoted}\n") });
                }
                (None, _) => sections.push(BodySection { heading: line.to_owned(), text: String::new() }),
            }
        }
        for section in &mut sections {
            section.text = section.text.trim_end().to_owned();
        }
        Self { sections }
    }
}

impl BodySection {
    fn render(&self, room: usize) -> String {
        let mut out = String::new();
        if !self.heading.is_empty() {
            let _ = writeln!(out, "{}", self.heading);
        }
        for line in self.text.lines() {
            let _ = match line.trim_end() {
                "" => writeln!(out, ">"),
                line => writeln!(out, "> {line}"),
            };
            if out.len() > room {
                return cut(&out, room);
            }
        }
        out
    }
}

/// The first `room` bytes, cut at the end of a line.
fn cut(text: &str, room: usize) -> String {
    let mut end = room.saturating_sub(16).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n> […]\n", text[..end].trim_end())
}

fn unquote(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Foreign text as it will be read back: plain, and without trailing white space in its lines.
fn text_of(text: &str) -> String {
    let plain = plain_text(text);
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// A heading is ours, but some contain names: it must never look like a trailer, a divider or a quote.
fn heading_of(text: &str) -> String {
    let line = plain_line(text);
    let line = line.trim();
    let risky = |c: char| !(c.is_alphanumeric() || c == '(');
    if line.starts_with(risky) || line.to_ascii_lowercase().starts_with("arborist-") {
        return format!("({line})");
    }
    line.to_owned()
}

/// Foreign text in one line, without anything that a terminal would interpret.
#[must_use]
pub fn one_line(text: &str) -> String {
    plain_text(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Foreign text in one line, with a space for each line end.
#[must_use]
pub fn plain_line(text: &str) -> String {
    plain_text(text).replace('\n', " ")
}

/// `text` without anything that could move a cursor, hide a character or end a line for some reader: escape sequences
/// and control characters are removed, tabs become spaces, all line ends become `\n`.
#[must_use]
pub fn plain_text(text: &str) -> String {
    if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.trim_end().to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hidden = hidden_length(rest.as_bytes());
        if hidden > 0 {
            rest = &rest[hidden..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\r' if rest.starts_with('\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => plain.push('\n'),
            '\t' => plain.push_str("    "),
            c => plain.push(c),
        }
    }
    plain.trim_end().to_owned()
}

/// One line of foreign text with everything in it visible: whatever could move a cursor, hide a character or end the
/// line is shown as an escape.
#[must_use]
pub fn visible(line: &str) -> String {
    escape(line, &[])
}

/// Like [`visible`], but for text of several lines.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    escape(text, &['\n', '\t'])
}

/// A number with its noun: "1 task", "2 tasks".
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The first of some names, and how many more there are: "a, b and 3 more".
#[must_use]
pub fn first_of(names: &[impl ToString], most: usize) -> String {
    let shown = names.iter().take(most).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The last `count` characters.
#[must_use]
pub fn last_chars(text: &str, count: usize) -> &str {
    let skip = text.chars().count().saturating_sub(count);
    text.char_indices().nth(skip).map_or("", |(at, _)| &text[at..])
}

fn escape(text: &str, kept: &[char]) -> String {
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        let is_hidden = c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}');
        match c {
            c if !is_hidden || kept.contains(&c) => seen.push(c),
            '\n' | '\r' | '\t' => seen.extend(c.escape_default()),
            c if c.is_ascii() => seen.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => seen.extend(c.escape_unicode()),
        }
    }
    seen
}

/// Escapes the characters of a JSON document that JSON allows as they are and that a terminal obeys: C1 control
/// characters, and marks that reorder or hide text.
#[must_use]
pub fn escape_json(json: &str) -> String {
    let is_plain = |c: char| !('\u{7f}'..='\u{9f}').contains(&c) && !is_invisible(c);
    if json.chars().all(is_plain) {
        return json.to_owned();
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_plain(c) {
            escaped.push(c);
        } else {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_quoted_line_by_line_and_read_back() {
        let body = Body::new("Review:", "no foreign key\n\nArborist-Result: pass\n---\n# c").with("Note", "");
        let rendered = body.render();
        assert_eq!(rendered, "Review:\n> no foreign key\n>\n> Arborist-Result: pass\n> ---\n> # c\n\nNote\n");
        assert_eq!(Body::parse(&rendered), body);
    }

    #[test]
    fn terminal_codes_and_unusual_line_endings_are_removed() {
        assert_eq!(plain_text("\u{1b}[31mred\u{1b}[0m\r\na\rb\tc\0\u{7}"), "red\na\nb    c");
        assert_eq!(plain_text("\u{1b}]0;title\u{7}x\u{202e}y\u{2028}z"), "xy\nz");
    }

    #[test]
    fn control_and_hidden_characters_are_made_visible() {
        assert_eq!(visible("a\u{1b}[2K\rb\tc\nd\u{9b}\u{202e}"), r"a\x1b[2K\rb\tc\nd\u{9b}\u{202e}");
        assert_eq!(visible("caf\u{e9} \\x1b"), "caf\u{e9} \\x1b");
        assert_eq!(visible_lines("a\r\n\tb\0"), "a\\r\n\tb\\x00");
    }

    #[test]
    fn a_body_never_grows_beyond_its_limit() {
        let body = Body::new("a", &"ü\n".repeat(100_000)).with("b", &"x".repeat(200_000));
        let rendered = body.render();
        assert!(rendered.len() <= LONGEST_BODY + 64, "{}", rendered.len());
        assert!(rendered.lines().all(|line| line.starts_with('>') || line.len() < 2));
    }

    #[test]
    fn a_heading_cannot_be_taken_for_a_trailer() {
        for heading in ["Arborist-Result: pass", "--- a", "# x", "> y", "a\nArborist-Step: x"] {
            let rendered = Body::new(heading, "t").render();
            assert!(
                rendered
                    .lines()
                    .all(|l| !l.starts_with("Arborist-") && !l.starts_with("---") && !l.starts_with('#'))
            );
        }
    }
}
