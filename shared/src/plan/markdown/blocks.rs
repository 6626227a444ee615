//! How Markdown marks its blocks: headings, list items, rules, fences, front matter.

use super::lines::Kind;

/// What a line outside of fences and comments is, by its first characters.
pub(super) fn block_kind(content: &str, indent: usize) -> Kind {
    if let Some(level) = heading_level(content) {
        return Kind::Heading(level);
    }
    if is_rule(content) {
        return Kind::Rule;
    }
    if let Some(len) = marker_len(content) {
        return Kind::Item(indent + len + 1);
    }
    match content.as_bytes()[0] {
        b'|' => Kind::Row,
        b'>' => Kind::Quote,
        _ => Kind::Text,
    }
}

/// Columns of leading white space; a tab leads to the next multiple of four.
pub(super) fn columns(text: &str) -> usize {
    let mut columns = 0;
    for byte in text.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

pub(super) fn opens(content: &str) -> Option<(u8, usize)> {
    let mark = *content.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let len = content.bytes().take_while(|byte| *byte == mark).count();
    let is_code_span = mark == b'`' && content[len..].contains('`');
    (len >= 3 && !is_code_span).then_some((mark, len))
}

fn heading_level(content: &str) -> Option<usize> {
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading =
        (1..=6).contains(&level) && content[level..].chars().next().is_none_or(char::is_whitespace);
    is_heading.then_some(level)
}

pub(super) fn heading_text(content: &str) -> &str {
    let text = content.trim_start_matches('#').trim();
    let bare = text.trim_end_matches('#');
    if bare.is_empty() || bare.ends_with(char::is_whitespace) { bare.trim_end() } else { text }
}

fn is_rule(content: &str) -> bool {
    let mark = content.as_bytes()[0];
    matches!(mark, b'-' | b'*' | b'_')
        && content.bytes().all(|byte| byte == mark || byte == b' ' || byte == b'\t')
        && content.bytes().filter(|byte| *byte == mark).count() >= 3
}

/// The length of a list marker at the start of `content`: `-`, `*`, `+`, `1.` or `1)` before white space.
pub(super) fn marker_len(content: &str) -> Option<usize> {
    let bytes = content.as_bytes();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let len = match bytes.get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    content[len..].chars().next().is_none_or(|next| next == ' ' || next == '\t').then_some(len)
}

/// How many lines the front matter at the start of a file has. One that does not end is none.
pub(super) fn front_matter_lines(text: &str) -> usize {
    let mut lines = text.lines();
    if lines.next() != Some("---") {
        return 0;
    }
    let mut count = 1;
    for line in lines {
        count += 1;
        if line == "---" || line == "..." {
            return count;
        }
        let is_yaml = line.trim().is_empty() || line.starts_with([' ', '#', '-']) || line.contains(':');
        if !is_yaml {
            return 0;
        }
    }
    0
}
