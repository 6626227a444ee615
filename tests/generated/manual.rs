//! The part of a manual page that is written by hand, `docs/man/<command>.md`: examples, settings, files and other
//! pages. `tests/cli/docs.rs` runs the commands of the examples and compares their output.
//!
//! A section begins with `## HEADING`. It has paragraphs, items (`- \`term\`: meaning`) and fenced blocks. A setting
//! without a meaning, `- \`key\``, has the words of its definition. Its default is always added. Whatever
//! comes before the first section, and blocks below a comment `<!-- hidden -->`, only prepare the examples.

use std::fs;

use arborist_core::settings::{SETTINGS, Setting};

use crate::{
    after::Section,
    roff::{inline, literal, plain},
    top,
};

pub(crate) const EXAMPLES: &str = "EXAMPLES";
pub(crate) const CONFIGURATION: &str = "CONFIGURATION";
pub(crate) const FILES: &str = "FILES";
pub(crate) const SEE_ALSO: &str = "SEE ALSO";

/// Sections that each command must have.
const REQUIRED: [&str; 3] = [EXAMPLES, CONFIGURATION, FILES];

/// What one command's file says.
#[derive(Debug)]
pub(crate) struct Manual {
    sections: Vec<(String, Vec<Part>)>,
}

#[derive(Debug)]
enum Part {
    Paragraph(String),
    Item { term: String, meaning: String },
    Block(String),
}

impl Manual {
    /// The file of the command `git arborist <verb>`.
    pub(crate) fn of(verb: &str) -> Self {
        let path = top().join(format!("docs/man/{verb}.md"));
        let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("write {}", path.display()));
        Self::read(&text)
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut sections: Vec<(String, Vec<Part>)> = Vec::new();
        let mut is_hidden = false;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(heading) = line.strip_prefix("## ") {
                sections.push((heading.to_owned(), Vec::new()));
                continue;
            }
            if line.starts_with("```") {
                let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                if !std::mem::take(&mut is_hidden)
                    && let Some((_, parts)) = sections.last_mut()
                {
                    parts.push(Part::Block(block.join("\n")));
                }
                continue;
            }
            if let Some(comment) = line.strip_prefix("<!-- ") {
                is_hidden = comment.starts_with("hidden");
                continue;
            }
            if let Some((_, parts)) = sections.last_mut() {
                read_line(line, parts);
            }
        }
        Self { sections }
    }

    /// A section of the page, if the file has it.
    pub(crate) fn section(&self, heading: &str) -> Option<Section> {
        let body = self.parts(heading)?.iter().map(|part| part.to_roff(heading)).collect();
        Some(Section { heading: heading.to_owned(), body })
    }

    /// The terms of a section's items.
    fn terms(&self, heading: &str) -> impl Iterator<Item = &str> {
        self.parts(heading).unwrap_or_default().iter().filter_map(|part| match part {
            Part::Item { term, .. } => Some(term.as_str()),
            Part::Paragraph(_) | Part::Block(_) => None,
        })
    }

    fn parts(&self, heading: &str) -> Option<&[Part]> {
        self.sections.iter().find(|(name, _)| name == heading).map(|(_, parts)| parts.as_slice())
    }

    /// Checks that nothing is missing: the required sections, at least three examples, and settings that exist.
    pub(crate) fn check(&self, verb: &str) {
        for (heading, _) in &self.sections {
            let is_known = REQUIRED.contains(&heading.as_str()) || heading == SEE_ALSO;
            assert!(is_known, "docs/man/{verb}.md has a section '{heading}', which no page has");
        }
        for heading in REQUIRED {
            let is_filled = self.parts(heading).is_some_and(|parts| !parts.is_empty());
            assert!(is_filled, "docs/man/{verb}.md has no section '{heading}'");
        }
        let examples = self.parts(EXAMPLES).unwrap_or_default();
        let count = examples.iter().filter(|part| matches!(part, Part::Block(_))).count();
        assert!(count >= 3, "docs/man/{verb}.md has only {count} examples");
        for part in self.parts(CONFIGURATION).unwrap_or_default() {
            let Part::Item { term, meaning } = part else { continue };
            assert!(setting(term).is_some(), "docs/man/{verb}.md: there is no setting '{term}'");
            let has_default = meaning.contains("by default");
            assert!(!has_default, "docs/man/{verb}.md: '{term}' gets its default from the definition");
        }
    }

    /// The settings that the page describes.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static str> {
        self.terms(CONFIGURATION).filter_map(|term| Some(setting(term)?.key))
    }
}

/// A line outside of blocks continues the part before it, unless an empty line comes between or it begins an item.
fn read_line(line: &str, parts: &mut Vec<Part>) {
    if let Some(item) = line.strip_prefix("- ") {
        let (term, meaning) = item.split_once(": ").unwrap_or((item, ""));
        parts.push(Part::Item { term: term.replace('`', ""), meaning: meaning.to_owned() });
        return;
    }
    match (line.trim(), parts.last_mut()) {
        ("", Some(Part::Item { .. })) => parts.push(Part::Paragraph(String::new())),
        ("", Some(Part::Paragraph(text))) if !text.is_empty() => parts.push(Part::Paragraph(String::new())),
        ("", _) => {}
        (words, Some(Part::Paragraph(text) | Part::Item { meaning: text, .. })) => {
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(words);
        }
        (words, _) => parts.push(Part::Paragraph(words.to_owned())),
    }
}

impl Part {
    fn to_roff(&self, heading: &str) -> String {
        match self {
            Self::Paragraph(text) if text.is_empty() => String::new(),
            Self::Paragraph(text) => format!(".PP\n{}\n", inline(text)),
            Self::Block(lines) => literal(lines),
            Self::Item { term, .. } if heading == SEE_ALSO => format!("{},\n", inline(term)),
            Self::Item { term, meaning } => {
                let Some(setting) = setting(term).filter(|_| heading == CONFIGURATION) else {
                    return format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), inline(meaning));
                };
                let meaning = match meaning.as_str() {
                    "" => plain(&format!("{} Value: {}.", setting.about, setting.expected())),
                    meaning => inline(meaning),
                };
                let default = plain(&format!(" Default: {}.", setting.default));
                format!(".TP\n\\fB{}\\fR\n{meaning}{default}\n", plain(term))
            }
        }
    }
}

/// The setting that a key such as `steps.review.runner` means.
fn setting(key: &str) -> Option<&'static Setting> {
    let is_same = |setting: &&Setting| {
        let (pattern, key) = (setting.key.split('.'), key.split('.'));
        pattern.clone().count() == key.clone().count()
            && pattern.zip(key).all(|(pattern, word)| pattern == "*" || pattern == word)
    };
    SETTINGS.iter().find(|setting| setting.key == key).or_else(|| SETTINGS.iter().find(is_same))
}
