//! Sections that a sentence lets run beside each other by words of their titles: "Services, hooks and components can be tested in
//! parallel".

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{PlanLine, lines::LineKind, section::without_brackets, tree::TreeBuilder};
use crate::name::TaskId;

impl TreeBuilder<'_, '_> {
    /// Subsections of one phase that a sentence names by their titles: "Services, hooks and components can be tested in
    /// parallel".
    pub(super) fn sections_told_apart(&self, section_ids: &[Option<TaskId>]) -> HashSet<usize> {
        let said: Vec<Vec<String>> =
            self.lines_about_order().filter_map(named_in_parallel).take(100).collect();
        if said.is_empty() {
            return HashSet::new();
        }
        let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, section) in
            self.outline.sections.iter().enumerate().filter(|(at, _)| section_ids[*at].is_none())
        {
            for word in telling_words(without_brackets(&section.title)) {
                by_word.entry(word).or_default().push(at);
            }
        }
        let mut apart = HashSet::new();
        for words in said {
            // For each phase, what each word names there; a word that two titles have tells nothing.
            let mut named: HashMap<Option<usize>, BTreeMap<&String, Vec<usize>>> = HashMap::new();
            for word in &words {
                for at in by_word.get(word).into_iter().flatten() {
                    let parent = self.outline.sections[*at].parent;
                    named.entry(parent).or_default().entry(word).or_default().push(*at);
                }
            }
            // "Backend and frontend foundations" means those of the phase that has all of these words.
            let most = named.values().map(BTreeMap::len).max().unwrap_or_default();
            for sections in named.into_values().filter(|sections| sections.len() == most) {
                let one_each = sections.values().filter(|sections| sections.len() == 1).flatten();
                let sections: BTreeSet<usize> = one_each.copied().collect();
                apart.extend(sections.iter().filter(|_| sections.len() > 1));
            }
        }
        apart
    }

    fn lines_about_order(&self) -> impl Iterator<Item = &PlanLine<'_>> {
        let blocks = self.outline.dependencies.iter().flat_map(|block| &block.lines);
        blocks.chain(&self.outline.parallel_lines)
    }
}

/// The words of things that a line lets run beside each other, as "services and hooks in parallel", "assets in parallel with
/// content" or "assets alongside content"; `None` for a line about marks or ids.
pub(super) fn named_in_parallel(line: &PlanLine<'_>) -> Option<Vec<String>> {
    const MANNERS: [&str; 6] =
        ["in parallel", "concurrently", "simultaneously", "at the same time", "side by side", "alongside"];
    let text = match line.kind {
        // In code, only a comment is a sentence.
        LineKind::Code => line.text.trim_start().strip_prefix('#')?,
        _ => line.text,
    };
    let (manner, at) = MANNERS.iter().find_map(|manner| Some((*manner, text.find(manner)?)))?;
    let (before, behind) = (&text[..at], text[at + manner.len()..].trim_start());
    let others = match manner {
        "alongside" => Some(behind),
        _ => behind.strip_prefix("with ").or_else(|| behind.strip_prefix("as ")),
    };
    let others =
        others.map(|others| others.split(['.', ';', ':', '(', ')', ',', '—']).next().unwrap_or_default());
    let is_about_marks = |text: &str| {
        text.contains("[P]") || text.contains("marked") || text.contains(|c: char| c.is_ascii_digit())
    };
    let is_list = before.contains(',') || before.contains(" and ") || others.is_some();
    let others = others.unwrap_or_default();
    let mut words = telling_words(before);
    words.extend(telling_words(others));
    words.sort();
    words.dedup();
    (is_list && !is_about_marks(before) && !is_about_marks(others) && words.len() > 1).then_some(words)
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
