//! Groups of tasks by the names that a plan gives them, and by headings that count.

use super::{
    super::tokens::{Token, word_at},
    MOST_GROUP_WORDS, NodeIndex,
};

impl NodeIndex {
    /// Lets what a heading counts stand for the tasks below it: "issue" and "1".
    pub(in super::super) fn name_section(
        &mut self,
        word: String,
        label: String,
        phase: Option<usize>,
        tasks: Vec<usize>,
    ) {
        let group = self.groups.len();
        self.groups.push(tasks);
        if let Some(phase) = phase {
            self.sections_within.entry((phase, word.clone())).or_default().push(group);
        }
        let known = self.counted_sections.entry((word, label));
        known.and_modify(|group| *group = None).or_insert(Some(group));
    }

    /// The tasks below a heading "Issue #1", for "Issue" and "1".
    pub(in super::super) fn section_counted(&self, word: &str, label: &str) -> Option<usize> {
        if self.counted_sections.is_empty() {
            return None;
        }
        let word = word.to_lowercase();
        let find = |word: &str| *self.counted_sections.get(&(word.to_owned(), label.to_lowercase()))?;
        find(&word).or_else(|| find(word.strip_suffix('s')?))
    }

    /// The sections of a phase whose headings count with a word.
    pub(in super::super) fn sections_within(&self, phase: usize, word: &str) -> &[usize] {
        if self.sections_within.is_empty() {
            return &[];
        }
        let word = word.to_lowercase();
        let find = |word: &str| self.sections_within.get(&(phase, word.to_owned()));
        find(&word).or_else(|| find(word.strip_suffix('s')?)).map_or(&[], Vec::as_slice)
    }

    /// Lets a name stand for tasks. One that stands for several groups is dropped.
    pub(in super::super) fn name_group(&mut self, name: Vec<String>, tasks: Vec<usize>) {
        match self.by_group_name.get(&name) {
            Some(known) if self.groups[*known] == tasks => {}
            Some(known) => self.groups[*known].clear(),
            None => {
                self.by_group_name.insert(name, self.groups.len());
                self.groups.push(tasks);
            }
        }
    }

    /// The name of a group of tasks at a position, the longest if there are several.
    pub(in super::super) fn group_named_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        if self.by_group_name.is_empty() {
            return None;
        }
        let word = |at: usize| word_at(clause, at).map(str::to_lowercase);
        (2..=MOST_GROUP_WORDS).rev().find_map(|length| {
            let words: Option<Vec<String>> = (at..at + length).map(word).collect();
            let group = *self.by_group_name.get(&words?)?;
            (!self.groups[group].is_empty()).then_some((group, at + length))
        })
    }
}
