//! From titles to edges: "Dependencies: Intro Module", "Text, JSON and CSV output can be written in parallel".

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    super::{
        entry::Form,
        lines::{LineKind, PlanLine},
        parallel_sections::{named_in_parallel, telling_words},
        section::{title_words, without_brackets},
        tokens::{Token, is_one_of},
    },
    Scope, Weight,
    page_reader::PageReader,
};

/// What a line below a task calls its dependencies.
const LABELS: [&str; 16] = [
    "dependencies", "dependency", "depends on", "depends", "deps", "prerequisites", "prerequisite",
    "blocked by", "依赖", "依賴", "依赖关系", "前置", "依赖任务", "依賴任務", "前置任务", "의존성",
];

/// A title in the line of a task, as words, and where it is.
struct NamedTitle<'a> {
    task: usize,
    text: &'a str,
    at: usize,
}

/// The titles of tasks and phases as words, and which of them have each word.
#[derive(Default)]
struct Titles {
    words: HashMap<usize, Vec<String>>,
    by_word: HashMap<String, Vec<usize>>,
}

impl Titles {
    fn add(&mut self, node: usize, words: Vec<String>) {
        words.iter().for_each(|word| self.by_word.entry(word.clone()).or_default().push(node));
        self.words.insert(node, words);
    }

    /// The one title that is these words, else the one that has them: "Intro Module" means "Write the Intro Module".
    fn find(&self, words: &[String], own: usize) -> Option<usize> {
        /// A word in more titles than this tells nothing, and going through them would take time.
        const MAX_TITLES: usize = 64;
        let rarest = words
            .iter()
            .map(|word| self.by_word.get(word).map_or(&[][..], Vec::as_slice))
            .min_by_key(|nodes| nodes.len())?;
        let others = || rarest.iter().take(MAX_TITLES).filter(|node| **node != own);
        let only = |found: Vec<&usize>| match found[..] {
            [node] => Some(*node),
            _ => None,
        };
        let has = |node: &&usize| self.words[*node].windows(words.len()).any(|part| part == words);
        let is_whole = others().filter(|node| self.words[*node] == words).collect();
        only(is_whole).or_else(|| only(others().filter(has).collect()))
    }
}

impl<'a> PageReader<'_, '_, 'a> {
    /// "Dependencies: Intro Module": dependencies that are named by titles. Where some are found, the others are reported.
    pub(super) fn titles(&mut self) {
        let named = self.named_titles();
        if named.is_empty() {
            return;
        }
        let titles = self.all_titles();
        let find = |title: &NamedTitle<'_>| titles.find(&title_words(title.text), title.task);
        let (found, missing): (Vec<_>, Vec<_>) =
            named.iter().map(|title| (title, find(title))).partition(|(_, node)| node.is_some());
        for (title, node) in &found {
            if let Some(node) = node {
                self.statements.declared.insert(title.task);
                self.edge(title.task, *node, title.at, Weight::Task, Scope::Few);
            }
        }
        // "Dependencies: React, Zod" names libraries, in a plan that names no task so.
        for (title, _) in missing.iter().filter(|_| !found.is_empty()) {
            let what =
                format!("a dependency names '{}', which is not the title of one task or phase", title.text);
            self.found.warnings.push(self.page.file.1.problem(title.at, what, "name the task by its id"));
        }
    }

    /// What the lines of tasks name after such a label, where no id is among it.
    fn named_titles(&self) -> Vec<NamedTitle<'a>> {
        let mut named = Vec::new();
        for (entry, id) in self.page.outline.entries.iter().zip(&self.page.ids) {
            let Some(id) = id else { continue };
            for line in self.page.lines[entry.lines.clone()].iter().filter(|line| line.kind != LineKind::Code)
            {
                let Some(value) = labelled(line.content()).filter(|value| !self.has_names(value)) else {
                    continue;
                };
                let Some(task) = self.known.position(id) else { continue };
                let parts = value.split([',', ';', '、', '，']).map(|part| part.trim_matches(DRESS));
                let parts = parts.filter(|part| !part.is_empty() && !is_none(part));
                named.extend(parts.map(|text| NamedTitle { task, text, at: line.offset_of(text) }));
            }
        }
        named
    }

    fn has_names(&self, text: &'a str) -> bool {
        let tokens = self.tokenizer.text(text, 0);
        tokens.iter().any(Token::is_name)
    }

    fn all_titles(&self) -> Titles {
        /// Longer titles are sentences, by which no one names a task.
        const LONGEST: usize = 10;
        let mut titles = Titles::default();
        for (at, draft) in self.found.drafts.iter().enumerate() {
            let words = title_words(&draft.task.name);
            if (1..=LONGEST).contains(&words.len()) {
                titles.add(at, words);
            }
        }
        titles
    }

    /// "Text, JSON and CSV output can be written in parallel": each word that only one heading has names its task. The texts of
    /// boxes are sentences, whose words tell nothing.
    pub(super) fn titles_in_parallel(&mut self) {
        const MOST_LINES: usize = 100;
        let page = self.page;
        let blocks = page.outline.dependencies.iter().flat_map(|block| &block.lines);
        let lines: Vec<&PlanLine<'_>> = blocks.chain(&page.outline.parallel_lines).collect();
        let words_of_titles: Vec<Vec<String>> =
            lines.into_iter().filter_map(named_in_parallel).take(MOST_LINES).collect();
        if words_of_titles.is_empty() {
            return;
        }
        let mut by_word: HashMap<String, BTreeSet<usize>> = HashMap::new();
        let headings =
            page.outline.entries.iter().zip(&page.ids).filter(|(entry, _)| entry.form == Form::Heading);
        for at in headings.filter_map(|(_, id)| self.known.position(id.as_ref()?)) {
            for word in telling_words(without_brackets(&self.found.drafts[at].task.name)) {
                by_word.entry(word).or_default().insert(at);
            }
        }
        for words in words_of_titles {
            let mut tasks: BTreeMap<Option<usize>, BTreeSet<usize>> = BTreeMap::new();
            for named in words.iter().filter_map(|word| by_word.get(word)).filter(|named| named.len() == 1) {
                named.iter().for_each(|at| {
                    tasks.entry(self.hierarchy.parents[*at]).or_default().insert(*at);
                });
            }
            for tasks in tasks.into_values() {
                self.make_tasks_parallel(&tasks.into_iter().collect::<Vec<_>>());
            }
        }
    }
}

/// Emphasis and the like around a value.
const DRESS: [char; 7] = ['*', '_', '`', ' ', '"', '.', '\u{3002}'];

/// What comes after a label such as "**Dependencies**:".
fn labelled(content: &str) -> Option<&str> {
    // Most lines have no colon, which is soon told.
    if content.is_ascii() && !content.contains(':') {
        return None;
    }
    let (label, value) = content.split_once([':', '：'])?;
    let label = label.trim_matches(['-', '*', '_', '>', ' ', '`']);
    let is_label = is_one_of(label, &LABELS);
    is_label.then(|| value.trim_matches(DRESS)).filter(|value| !value.is_empty())
}

fn is_none(text: &str) -> bool {
    const NONE: [&str; 9] = ["none", "nothing", "n/a", "no", "-", "—", "无", "無", "없음"];
    is_one_of(text, &NONE)
}
