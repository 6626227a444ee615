//! Shapes of single lines: labels in bold, fences, prose about order.

use super::{PlanLine, lines::LineKind, section::begins_with};

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
