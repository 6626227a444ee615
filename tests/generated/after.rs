//! What stands after a command's help: a heading in capitals at the margin, below it captions, and deeper than
//! these the lines that are literal. Captions on lines one below the other are one paragraph. A caption that begins with
//! an exit code and two spaces is an entry of a list; deeper lines below it continue the entry.

use crate::roff::{entry, literal, plain};

/// One heading and what stands below it, as roff.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) body: String,
}

/// Captions are indented by less than this.
const LITERAL: usize = 5;

/// Literal lines begin here; deeper ones keep the difference.
const MARGIN: usize = 7;

/// The sections of a definition.
pub(crate) fn sections(command: &clap::Command) -> Vec<Section> {
    let text = command.get_after_help();
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut sections: Vec<Section> = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut is_within = false;
    let mut is_entry = false;
    for line in text.lines().chain([""]) {
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        if indent >= LITERAL && is_entry {
            if let Some(section) = sections.last_mut() {
                section.body += &format!("{}\n", plain(inner));
            }
            continue;
        }
        is_entry = false;
        if indent >= LITERAL {
            block.push(&line[indent.min(MARGIN)..]);
            is_within = false;
            continue;
        }
        if indent == 0 && !inner.is_empty() {
            is_within = false;
            sections.push(Section { heading: inner.to_owned(), body: String::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        if !block.is_empty() {
            section.body += &literal(&block.join("\n"));
            block.clear();
        }
        if let Some((code, meaning)) = exit_code(inner) {
            section.body += &entry(code, meaning);
            is_entry = true;
            is_within = false;
            continue;
        }
        if !inner.is_empty() {
            let break_before = if is_within { "" } else { ".PP\n" };
            section.body += &format!("{break_before}{}\n", plain(inner));
        }
        is_within = !inner.is_empty();
    }
    sections
}

/// The exit code and its meaning, of a line such as `1  There is no such log.`
fn exit_code(line: &str) -> Option<(&str, &str)> {
    let (code, meaning) = line.split_once("  ")?;
    code.starts_with(|first: char| first.is_ascii_digit()).then(|| (code, meaning.trim_start()))
}

/// As sections of a page.
pub(crate) fn top(sections: &[Section]) -> String {
    sections.iter().map(|Section { heading, body }| format!(".SH {}\n{body}", plain(heading))).collect()
}

/// As parts of a section, for a command of a command.
pub(crate) fn nested(sections: &[Section]) -> String {
    sections
        .iter()
        .map(|Section { heading, body }| format!(".PP\n\\fB{}\\fR\n{body}", plain(heading)))
        .collect()
}
