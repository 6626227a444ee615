//! The little of roff that is needed beside what clap_mangen writes.

use std::sync::LazyLock;

use regex::Regex;

/// Begins every page.
pub(crate) const MARKER: &str = ".\\\" git-arborist asset: made from the definitions of its commands; changes are lost when it is installed again\n";

/// The line that titles a page, without a date, so that it depends on nothing but the source. Names of commands and
/// files are not hyphenated, as in git's own pages.
pub(crate) fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = plain(&name.to_uppercase());
    format!(".TH {name} {section} \"\" \"git\\-arborist {version}\" \"Git Arborist Manual\"\n.nh\n.ad l\n")
}

/// `text` so that roff takes nothing in it for an instruction, in ASCII.
pub(crate) fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line: String = line.chars().map(glyph).collect();
        if line.starts_with('.') { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn glyph(character: char) -> String {
    match character {
        '\\' => "\\e".to_owned(),
        '-' => "\\-".to_owned(),
        '\'' => "\\(aq".to_owned(),
        '`' => "\\(ga".to_owned(),
        '^' => "\\(ha".to_owned(),
        '~' => "\\(ti".to_owned(),
        character if character.is_ascii() => character.to_string(),
        character => format!("\\[u{:04X}]", u32::from(character)),
    }
}

/// A paragraph of Markdown: `code` and names of manual pages are bold.
pub(crate) fn inline(text: &str) -> String {
    static BOLD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"`([^`]+)`|\b(git[a-z-]*)(\([0-9]\))").expect("a pattern"));
    let mut roff = String::new();
    let mut end = 0;
    for found in BOLD.captures_iter(text) {
        let whole = found.get(0).expect("the match");
        let word = |number| found.get(number).map_or("", |part: regex::Match<'_>| part.as_str());
        roff += &plain(&text[end..whole.start()]);
        roff += &format!("\\fB{}{}\\fR{}", plain(word(1)), plain(word(2)), word(3));
        end = whole.end();
    }
    roff + &plain(&text[end..])
}

/// A term and what it means.
pub(crate) fn entry(term: &str, meaning: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), plain(meaning))
}

/// Lines as they are.
pub(crate) fn literal(lines: &str) -> String {
    format!(".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", plain(lines))
}
