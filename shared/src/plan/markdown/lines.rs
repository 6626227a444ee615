//! Markdown line by line: what each line is, and which lines are code, comment or front matter, where
//! everything only looks like a task. Fences and comments follow CommonMark.

use super::{
    Offset,
    section::{begins_with, counted_label, phase_label},
};

/// The number of an ordered list item, if a line begins as one.
pub(super) fn marker_number(text: &str) -> Option<u32> {
    let len = marker_len(text)?;
    text[..len].trim_end_matches(['.', ')']).parse().ok()
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    /// A heading of this level.
    Heading(usize),
    /// The first line of a list item, whose content begins at this column.
    Item(usize),
    /// A row of a table.
    Row,
    /// A thematic break.
    Rule,
    Quote,
    Text,
    /// In a fence, or a fence itself.
    Code,
    Comment,
    FrontMatter,
}

/// A line without its line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanLine<'a> {
    /// Where it begins in the file.
    pub(super) at: Offset,
    pub(super) text: &'a str,
    /// Columns of white space before the content.
    pub(super) indent: usize,
    pub(super) kind: LineKind,
}

impl<'a> PlanLine<'a> {
    /// The content: after white space, `#`s or list marker.
    pub(super) fn content(&self) -> &'a str {
        let text = self.text.trim_start_matches([' ', '\t', '\u{feff}']);
        match self.kind {
            LineKind::Heading(_) => heading_text(text),
            LineKind::Item(_) => text[marker_len(text).unwrap_or(0)..].trim_start(),
            _ => text,
        }
        .trim_end()
    }

    /// Where a part of this line begins in the file.
    pub(super) fn offset_of(&self, part: &str) -> Offset {
        self.at + (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len())
    }
}

/// A fence or comment that is never closed, and where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unclosed {
    pub(super) at: Offset,
    pub(super) what: &'static str,
}

#[derive(Debug, Clone, Copy)]
struct Fence {
    at: Offset,
    mark: u8,
    len: usize,
    /// A line left of this column ends the list item that the fence is in, and the fence with it.
    container: usize,
}

/// Goes through a text from top to bottom.
#[derive(Debug, Default)]
struct Scanner {
    fence: Option<Fence>,
    comment: Option<Offset>,
    /// Columns at which the content of the open list items begins.
    items: Vec<usize>,
}

/// All lines of `text` from `start` on, and the block that swallows the rest of the file, if one does.
pub(super) fn scan(text: &str, start: Offset) -> (Vec<PlanLine<'_>>, Option<Unclosed>) {
    let mut scanner = Scanner::default();
    let mut matter = front_matter_lines(&text[start..]);
    let mut lines = Vec::new();
    let mut at = start;
    for raw in text[start..].split_inclusive('\n') {
        let text = raw.strip_suffix('\n').unwrap_or(raw);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let indent = columns(text);
        let kind = if matter > 0 { LineKind::FrontMatter } else { scanner.classify(at, text, indent) };
        matter = matter.saturating_sub(1);
        underline(&mut lines, text, kind);
        lines.push(PlanLine { at, text, indent, kind });
        at += raw.len();
    }
    mark_plain_headings(&mut lines);
    (lines, scanner.unclosed())
}

/// Where no heading is a phase, "Phase 3 — Login" alone between empty lines heads what is below it. So do the short lines alone that follow,
/// as "Dependencies".
fn mark_plain_headings(lines: &mut [PlanLine<'_>]) {
    const FEWEST: usize = 2;
    const LONGEST: usize = 80;
    const ENDS: [char; 8] = ['.', ':', ';', ',', '!', '。', '：', '*'];
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.kind == LineKind::Blank);
    let is_alone = |at: &usize| {
        let line = &lines[*at];
        line.kind == LineKind::Text && line.indent == 0 && (*at == 0 || is_blank(at - 1)) && is_blank(at + 1)
    };
    let is_phase = |line: &PlanLine<'_>| {
        phase_label(line.content()).is_some() && counted_label(line.content()).is_some()
    };
    let is_heading = |line: &PlanLine<'_>| matches!(line.kind, LineKind::Heading(_));
    if lines.iter().any(|line| is_heading(line) && phase_label(line.content()).is_some()) {
        return;
    }
    let alone: Vec<usize> = (0..lines.len()).filter(is_alone).collect();
    let mut phases = alone.iter().filter(|at| is_phase(&lines[**at]));
    let Some(first) = phases.next().copied().filter(|_| phases.count() + 1 >= FEWEST) else { return };
    let is_title = |at: &usize| {
        let content = lines[*at].content();
        *at >= first && (is_phase(&lines[*at]) || content.len() <= LONGEST && !content.ends_with(ENDS))
    };
    let titles: Vec<usize> = alone.into_iter().filter(is_title).collect();
    titles.into_iter().for_each(|at| lines[at].kind = LineKind::Heading(2));
}

/// A line of `=` or `-` makes a heading of a paragraph that is the one line above it.
fn underline(lines: &mut [PlanLine<'_>], text: &str, kind: LineKind) {
    let is_run_of = |mark: char| text.len() > 1 && text.trim_end().chars().all(|c| c == mark);
    let level = match kind {
        LineKind::Text if is_run_of('=') => 1,
        LineKind::Rule if is_run_of('-') => 2,
        _ => return,
    };
    let is_alone = |before: Option<&PlanLine<'_>>| before.is_none_or(|line| line.kind == LineKind::Blank);
    if let Some((last, before)) = lines.split_last_mut()
        && last.kind == LineKind::Text
        && last.indent < 4
        && is_alone(before.last())
    {
        last.kind = LineKind::Heading(level);
    }
}

impl Scanner {
    fn unclosed(&self) -> Option<Unclosed> {
        let fence = self.fence.map(|fence| Unclosed { at: fence.at, what: "code fence" });
        fence.or_else(|| self.comment.map(|at| Unclosed { at, what: "comment" }))
    }

    fn classify(&mut self, at: Offset, text: &str, indent: usize) -> LineKind {
        let content = text.trim_start();
        if self.comment.is_some() {
            if content.contains("-->") {
                self.comment = None;
            }
            return LineKind::Comment;
        }
        if let Some(fence) = self.fence {
            if content.is_empty() || indent >= fence.container {
                if closes(fence, content) {
                    self.fence = None;
                }
                return LineKind::Code;
            }
            self.fence = None;
        }
        if content.is_empty() {
            return LineKind::Blank;
        }
        self.open(at, content, indent)
    }

    /// A line outside of fences and comments.
    fn open(&mut self, at: Offset, content: &str, indent: usize) -> LineKind {
        while self.items.last().is_some_and(|column| *column > indent) {
            self.items.pop();
        }
        let container = self.items.last().copied().unwrap_or(0);
        if let Some((mark, len)) = opens(content).filter(|_| indent - container < 4) {
            self.fence = Some(Fence { at, mark, len, container });
            return LineKind::Code;
        }
        if let Some(rest) = content.strip_prefix("<!--") {
            self.comment = (!rest.contains("-->")).then_some(at);
            return LineKind::Comment;
        }
        let kind = block_kind(content, indent);
        if let LineKind::Item(column) = kind {
            self.items.push(column);
        }
        kind
    }
}

fn closes(fence: Fence, content: &str) -> bool {
    let len = content.bytes().take_while(|byte| *byte == fence.mark).count();
    len >= fence.len && content[len..].trim().is_empty()
}

/// What a line outside of fences and comments is, by its first characters.
fn block_kind(content: &str, indent: usize) -> LineKind {
    if let Some(level) = heading_level(content) {
        return LineKind::Heading(level);
    }
    if is_rule(content) {
        return LineKind::Rule;
    }
    if let Some(len) = marker_len(content) {
        return LineKind::Item(indent + len + 1);
    }
    match content.as_bytes()[0] {
        b'|' => LineKind::Row,
        b'>' => LineKind::Quote,
        _ => LineKind::Text,
    }
}

/// Columns of leading white space; a tab leads to the next multiple of four.
fn columns(text: &str) -> usize {
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

fn opens(content: &str) -> Option<(u8, usize)> {
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

fn heading_text(content: &str) -> &str {
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
fn marker_len(content: &str) -> Option<usize> {
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
fn front_matter_lines(text: &str) -> usize {
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

/// Whether a line of prose may say what waits for what.
pub(super) fn mentions_order(line: &PlanLine<'_>) -> bool {
    const WORDS: [&str; 11] = [
        "depends on",
        "depend on",
        "sequential",
        "secuencial",
        "sequencial",
        "séquentiel",
        "sequenziell",
        "последовательн",
        "按顺序",
        "按順序",
        "依次",
    ];
    matches!(line.kind, LineKind::Text | LineKind::Item(_))
        && WORDS.iter().any(|words| line.text.contains(words))
}

/// The title in a line "**Tests**:" or "**Implementation:**", which parts a phase as a heading does.
pub(super) fn bold_part(content: &str) -> Option<&str> {
    bold_label(content).filter(|title| begins_with(title, &["tests", "implementation", "测试", "实现"]))
}

/// The title in a line that is a label in bold and nothing else.
pub(super) fn bold_label(content: &str) -> Option<&str> {
    const COLONS: [char; 2] = [':', '：'];
    let title = content.trim_end().trim_end_matches(COLONS).strip_prefix("**")?.strip_suffix("**")?;
    Some(title.trim_end_matches(COLONS)).filter(|title| !title.contains("**"))
}

/// The first line of a fence, which may also be the last of the one before.
pub(super) fn opens_fence(line: &PlanLine<'_>) -> bool {
    let text = line.text.trim();
    text.len() > 3 && (text.starts_with("```") || text.starts_with("~~~"))
}

/// A line without the white space up to a column.
pub(super) fn outdented(text: &str, column: usize) -> &str {
    let spaces = text.bytes().take(column).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[spaces..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<LineKind> {
        scan(text, 0).0.iter().map(|line| line.kind).collect()
    }

    #[test]
    fn fences_end_as_commonmark_says() {
        use LineKind::{Code, Item, Text};
        for (text, wanted) in [
            ("```\n- a\n```\n- b", vec![Code, Code, Code, Item(2)]),
            ("~~~\n```\n~~~\na", vec![Code, Code, Code, Text]),
            ("````\n```\n````\na", vec![Code, Code, Code, Text]),
            ("```a``` b\n- c", vec![Text, Item(2)]),
            ("- a\n  ```\n  x\n- b", vec![Item(2), Code, Code, Item(2)]),
            ("- a\n  ```\n  x\n  ```\n  b", vec![Item(2), Code, Code, Code, Text]),
        ] {
            assert_eq!(kinds(text), wanted, "{text}");
        }
        assert_eq!(scan("a\n```\nb", 0).1.map(|unclosed| unclosed.at), Some(2));
    }

    #[test]
    fn a_comment_counts_only_where_it_begins_a_block() {
        use LineKind::{Comment, Item};
        assert_eq!(kinds("<!-- a\n- b\n-->\n- c"), [Comment, Comment, Comment, Item(2)]);
        assert_eq!(kinds("- [ ] T001 strip `<!--`\n- b"), [Item(2), Item(2)]);
        assert_eq!(kinds("<!-- a -->\n- c"), [Comment, Item(2)]);
    }

    #[test]
    fn front_matter_is_skipped_and_a_horizontal_rule_is_no_front_matter() {
        assert_eq!(kinds("---\na: 1\n---\nb")[..3], [LineKind::FrontMatter; 3]);
        assert_eq!(kinds("---\nsome words\n---\n")[0], LineKind::Rule);
    }

    #[test]
    fn an_underlined_line_is_a_heading_but_a_rule_below_a_list_is_not() {
        use LineKind::{Blank, Heading, Item, Rule, Text};
        assert_eq!(kinds("A\n---\n\nB\n==\n"), [Heading(2), Rule, Blank, Heading(1), Text]);
        assert_eq!(kinds("- a\n---\nb\nc\n---"), [Item(2), Rule, Text, Text, Rule]);
    }

    #[test]
    fn the_content_of_a_line_excludes_its_markup() {
        for (text, wanted) in
            [("  12) x", "x"), ("## A ##", "A"), ("# C#", "C#"), ("*  y ", "y"), ("|a|", "|a|"), ("#", "")]
        {
            let (lines, _) = scan(text, 0);
            assert_eq!(lines[0].content(), wanted);
        }
    }
}
