//! The little of roff that is needed beside what clap_mangen writes.

/// Begins every page.
pub(crate) const MARKER: &str = ".\\\" git-arborist asset: made from the definitions of its commands; changes are lost when it is installed again\n";

/// The line that titles a page. There is no date in it, so that it depends on nothing but the source.
pub(crate) fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = plain(&name.to_uppercase());
    format!(".TH {name} {section} \"\" \"git\\-arborist {version}\" \"Git Arborist Manual\"\n")
}

/// `text` so that roff takes nothing in it for an instruction.
pub(crate) fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
        if line.starts_with('.') { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A term and what it means.
pub(crate) fn entry(term: &str, meaning: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), plain(meaning))
}

/// Lines as they are.
pub(crate) fn literal(lines: &str) -> String {
    format!(".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", plain(lines))
}
