//! Sentences that let sections run beside each other by words of their titles.

use super::{Line, lines::Kind};

/// The words before "in parallel", where a line says that of things that it names; `None` for a line about marks or ids.
pub(super) fn named_in_parallel(line: &Line<'_>) -> Option<Vec<String>> {
    let (before, _) = line.text.split_once("in parallel")?;
    let is_about_marks =
        before.contains("[P]") || before.contains("marked") || before.contains(|c: char| c.is_ascii_digit());
    let is_list = before.contains(',') || before.contains(" and ");
    let mut words = telling_words(before);
    words.sort();
    words.dedup();
    (is_list && !is_about_marks && line.kind != Kind::Code && words.len() > 1).then_some(words)
}

/// The words of a text that tell one section from another, in lower case and in the singular.
pub(super) fn telling_words(text: &str) -> Vec<String> {
    const GENERIC: [&str; 12] = [
        "test",
        "task",
        "core",
        "implementation",
        "user",
        "story",
        "storie",
        "phase",
        "setup",
        "different",
        "file",
        "with",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.map(|word| word.trim_end_matches('s').to_owned());
    words.filter(|word| word.len() > 2 && !GENERIC.contains(&word.as_str())).collect()
}
