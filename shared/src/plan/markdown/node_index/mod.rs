//! The nodes of a plan by every name that a sentence may use: ids, ranges, labels, stories and titles.

mod groups;

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use super::{
    Offset,
    ids::{SortKey, sort_key},
    name_reader::{Name, PlacedName},
    tokens::{Piece, Token, word_at},
    tree::{NodeKind, Role},
};
use crate::{
    name::TaskId,
    plan::assemble::{DraftNode, unknown_fix},
};

/// How many words the name of a group of tasks has at most.
pub(super) const MOST_GROUP_WORDS: usize = 4;

/// The nodes of a plan, by every name that a sentence may use.
#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    by_id: HashMap<TaskId, usize>,
    /// Tasks in the order of their ids; made when the first range asks for it.
    by_order: OnceCell<Vec<(SortKey, usize)>>,
    is_task: Vec<bool>,
    /// Tasks in a section about tests.
    is_test: Vec<bool>,
    ids: Vec<TaskId>,
    /// Phases by label; `None` where two have the same.
    by_label: HashMap<String, Option<usize>>,
    /// The phases of each story.
    by_story: BTreeMap<String, Vec<usize>>,
    /// Words that headings count with, such as "group" in "Group 3", and "section" where they only have numbers.
    label_words: HashSet<String>,
    /// Phases by what their titles count, as "module" and "2" of "Phase 3: Module 2 - Physics".
    parts: HashMap<(String, String), usize>,
    /// Names that stand for tasks, as "program fixes" in "Program fixes (T010-T016) …", with these tasks.
    groups: Vec<Vec<usize>>,
    by_group_name: HashMap<Vec<String>, usize>,
    /// The groups of tasks in sections that are no phases, by what their headings count, as "issue" and "1" of "#### Issue #1:
    /// Access"; `None` where two have the same.
    counted_sections: HashMap<(String, String), Option<usize>>,
    /// The groups of tasks in sections that are no phases, by the phase around them and the word that their headings count with.
    sections_within: HashMap<(usize, String), Vec<usize>>,
    by_priority: HashMap<String, Vec<usize>>,
    /// The phases whose titles have a word.
    by_word: HashMap<String, Vec<usize>>,
    /// Phases by their titles, as lower-case words; the last one where several have the same.
    by_title: HashMap<Vec<String>, usize>,
    /// How many words the titles have that begin with a word.
    title_lengths: HashMap<String, BTreeSet<usize>>,
    /// Phases that are no tasks, in the order of the file, with their labels.
    phases: Vec<(usize, Option<String>)>,
    stories: Vec<usize>,
    /// Nodes that are said to wait for everything before them.
    waits_for_all: RefCell<BTreeSet<usize>>,
    /// Nodes for which, according to the plan, everything after them waits.
    blocks_all: RefCell<BTreeSet<usize>>,
}

/// Nodes by position, each with the place where it is named.
pub(super) type NamedNodes = Vec<(usize, Offset)>;

/// An id that is not in the plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum UnknownId<'a> {
    Task(&'a str),
    EndOfRange(&'a str),
}

/// Where the text of the token before a position ends.
fn text_end(clause: &[Token<'_>], at: usize) -> Offset {
    let Some(token) = at.checked_sub(1).and_then(|at| clause.get(at)) else { return 0 };
    match token.what {
        Piece::Word(text) | Piece::Number(text) | Piece::Id(text) | Piece::Phase(text) => {
            token.at + text.len()
        }
        _ => token.at,
    }
}

impl NodeIndex {
    pub(super) fn new(drafts: &[DraftNode], roles: &[Role]) -> Self {
        let is_task = roles.iter().map(|role| role.kind == NodeKind::Task).collect();
        let ids = drafts.iter().map(|draft| draft.task.id.clone()).collect();
        let is_test = roles.iter().map(|role| role.section.is_tests).collect();
        let by_id = HashMap::with_capacity(drafts.len());
        let mut known = Self { by_id, is_task, is_test, ids, ..Self::default() };
        let mut nested: HashMap<String, Option<usize>> = HashMap::new();
        for (at, (draft, role)) in drafts.iter().zip(roles).enumerate() {
            known.by_id.entry(draft.task.id.clone()).or_insert(at);
            if role.kind == NodeKind::Task {
                continue;
            }
            if let Some(label) = &role.label {
                // "Phase 2.5" inside "Phase 2" continues the outer number.
                let around = draft.task.parent.as_ref().and_then(|around| known.position(around));
                let around = around.and_then(|around| roles[around].label.as_ref());
                let goes_on =
                    |around: &String| label.strip_prefix(around).is_some_and(|rest| rest.starts_with('.'));
                let is_nested = around.is_some_and(|around| !goes_on(around));
                let by_label = if is_nested { &mut nested } else { &mut known.by_label };
                by_label.entry(label.clone()).and_modify(|found| *found = None).or_insert(Some(at));
            }
            for word in &role.words {
                let phases = known.by_word.entry(word.clone()).or_default();
                if phases.last() != Some(&at) {
                    phases.push(at);
                }
            }
            if let Some(part) = &role.part {
                known.parts.entry(part.clone()).or_insert(at);
            }
            if let Some(priority) = role.priority.clone().filter(|_| role.kind == NodeKind::Story) {
                known.by_priority.entry(priority).or_default().push(at);
            }
            for story in &role.stories {
                known.by_story.entry(story.clone()).or_default().push(at);
            }
            if role.kind == NodeKind::Story {
                known.stories.push(at);
            }
            for title in &role.titles {
                if let Some(first) = title.first() {
                    known.title_lengths.entry(first.clone()).or_default().insert(title.len());
                    known.by_title.insert(title.clone(), at);
                }
            }
            let counted = role.counted.as_ref().map(|(_, label)| label.clone());
            known.phases.push((at, role.label.clone().or(counted)));
        }
        // Where a part of "Phase 4" is called "Phase 1" too, "Phase 1" is not that part.
        for (label, at) in nested {
            known.by_label.entry(label).or_insert(at);
        }
        // "Phase 6: Settings (serves US1)" is no part of the story where "Phase 3: User Story 1" is the story itself.
        for phases in known.by_story.values_mut() {
            if phases.iter().any(|at| !roles[*at].is_annotated) {
                phases.retain(|at| !roles[*at].is_annotated);
            }
        }
        known.add_aliases(roles);
        known.add_counted(roles);
        // A table with a row for each phase makes "Phase 3" a task.
        for (at, role) in roles.iter().enumerate().filter(|(_, role)| role.kind == NodeKind::Task) {
            if let Some(label) = &role.label {
                known.by_label.entry(label.clone()).or_insert(Some(at));
            }
        }
        known
    }

    /// "### Task 4" with the field "ID: T-4" is known by its number too, unless another task has that for an id.
    pub(super) fn add_written(&mut self, written: Option<&TaskId>, id: Option<&TaskId>) {
        if let (Some(written), Some(at)) = (written, id.and_then(|id| self.position(id))) {
            self.by_id.entry(written.clone()).or_insert(at);
        }
    }

    /// "Test setup" is "setup" where no other phase is called so; the last one, as with titles.
    fn add_aliases(&mut self, roles: &[Role]) {
        for (at, role) in roles.iter().enumerate().rev() {
            for alias in &role.aliases {
                self.title_lengths.entry(alias[0].clone()).or_default().insert(alias.len());
                self.by_title.entry(alias.clone()).or_insert(at);
            }
        }
    }

    /// "Group 3" and "3. Auth" are known by their numbers too, unless "Phase 3" has that number.
    fn add_counted(&mut self, roles: &[Role]) {
        let mut counted: HashMap<String, Option<usize>> = HashMap::new();
        for (at, role) in roles.iter().enumerate().filter(|(_, role)| role.kind != NodeKind::Task) {
            // "Milestone 2" is a phase by its label and by its word.
            if let (Some(_), Some((word, _))) = (&role.label, &role.counted)
                && word != "section"
            {
                self.label_words.insert(word.clone());
            }
            if let (None, Some((word, label))) = (&role.label, &role.counted) {
                self.label_words.insert(word.clone());
                counted.entry(label.clone()).and_modify(|found| *found = None).or_insert(Some(at));
            }
        }
        for (label, at) in counted {
            self.by_label.entry(label).or_insert(at);
        }
    }

    /// Whether headings count with this word, in the singular or the plural.
    pub(super) fn is_label_word(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let singular = word.strip_suffix('s').unwrap_or(&word);
        self.label_words.contains(&word) || self.label_words.contains(singular)
    }

    /// The phase whose title counts "Module 2", for "Module" or "modules" and "2".
    pub(super) fn part(&self, word: &str, label: &str) -> Option<usize> {
        if self.parts.is_empty() {
            return None;
        }
        let word = word.to_lowercase();
        let find = |word: &str| self.parts.get(&(word.to_owned(), label.to_lowercase())).copied();
        find(&word).or_else(|| find(word.strip_suffix('s')?))
    }

    /// The one phase whose title has all these words: "Isolation/Parity" means "Isolation & Contract Parity".
    pub(super) fn phase_with_words(&self, words: &[String]) -> Option<usize> {
        /// A word in more titles than this tells nothing, and going through them would take time.
        const MAX_TITLES: usize = 32;
        let with: Option<Vec<&Vec<usize>>> = words.iter().map(|word| self.by_word.get(word)).collect();
        let with = with?;
        let rarest =
            with.iter().min_by_key(|phases| phases.len()).filter(|phases| phases.len() <= MAX_TITLES)?;
        let has_all = |at: &&usize| with.iter().all(|phases| phases.binary_search(at).is_ok());
        let mut found = rarest.iter().filter(has_all);
        found.next().copied().filter(|_| found.next().is_none())
    }

    pub(super) fn position(&self, id: &TaskId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(&id.parse().ok()?).copied()
    }

    pub(super) fn is_task(&self, at: usize) -> bool {
        self.is_task[at]
    }

    /// The phase whose id is at a position, as `plan` prints it, and where it ends; the longest if there are several.
    /// The parts of "phase-1" are separate tokens.
    pub(super) fn phase_id_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        const MOST_PARTS: usize = 12;
        let text = |at: usize| match clause.get(at).map(|token| (token.at, token.what)) {
            Some((place, Piece::Word(text) | Piece::Number(text) | Piece::Id(text) | Piece::Phase(text))) => {
                Some((place, text))
            }
            _ => None,
        };
        let is_hyphen = |at: usize, place: Offset| matches!(clause.get(at), Some(token) if token.what == Piece::Dash && token.at == place);
        let phase = |id: &str| self.find(id).filter(|at| !self.is_task[*at] && self.ids[*at].as_str() == id);
        let (place, first) = text(at)?;
        // "post-phase-1" is another word.
        if at > 0 && place > 0 && is_hyphen(at - 1, place - 1) {
            return None;
        }
        let (mut id, mut end) = (first.to_owned(), place + first.len());
        let mut found = phase(&id).map(|node| (node, at + 1));
        for next in (at + 1..).step_by(2).take(MOST_PARTS) {
            let Some((place, part)) =
                text(next + 1).filter(|(place, _)| is_hyphen(next, end) && *place == end + 1)
            else {
                break;
            };
            id = format!("{id}-{part}");
            end = place + part.len();
            found = phase(&id).map(|node| (node, next + 2)).or(found);
        }
        // Of "data-model" without such a phase, "data" is no name.
        found.filter(|(_, behind)| !is_hyphen(*behind, end) && text_end(clause, *behind) == end)
    }

    /// The phase whose title is at a position, the longest if there are several.
    pub(super) fn title_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        let word = |at: usize| word_at(clause, at).map(str::to_lowercase);
        let lengths = self.title_lengths.get(&word(at)?)?;
        lengths.iter().rev().find_map(|length| {
            let words: Option<Vec<String>> = (at..at + length).map(word).collect();
            Some((*self.by_title.get(&words?)?, at + length))
        })
    }

    /// The nodes that a name stands for, and what it names that is not there. A range takes what there is.
    fn resolve<'n>(&self, name: &Name<'n>, subject: Option<usize>) -> (Vec<usize>, Option<UnknownId<'n>>) {
        let found = match name {
            Name::Node(node) => vec![*node],
            Name::Part(word, label) => self.part(word, label).into_iter().collect(),
            Name::Parts(word, first, last) => match (self.part(word, first), self.part(word, last)) {
                (Some(first), Some(last)) => {
                    self.phases.iter().map(|(at, _)| *at).filter(|at| (first..=last).contains(at)).collect()
                }
                _ => Vec::new(),
            },
            Name::Group(group) => self.groups[*group].clone(),
            Name::Phase(label) => self.phase(label).into_iter().collect(),
            Name::Phases(first, last) => self.phases(first, last),
            Name::PhasesFrom(first) => self.phases_from(first),
            Name::Story(number) => self.story(number),
            Name::Stories(first, last) => self.stories_between(first, last),
            Name::AllStories => self.stories.clone(),
            Name::Priority(priority) => self.by_priority.get(*priority).cloned().unwrap_or_default(),
            Name::AllOthers => {
                self.phases.iter().map(|(at, _)| *at).filter(|at| Some(*at) != subject).collect()
            }
            Name::AllBefore => self.all_before(subject),
            Name::AllAfter => self.all_after(subject),
            Name::Tests => self.tests_beside(subject),
            Name::Task(id) => {
                let found = self.find(id).map(|at| vec![at]);
                match found.or_else(|| self.group(id)).or_else(|| self.short_range(id)) {
                    Some(found) => found,
                    None => return (Vec::new(), Some(UnknownId::Task(id))),
                }
            }
            Name::Range(first, last) => {
                if let Some(last) = self.find_short_end(first, last) {
                    return (self.range(first, &last), None);
                }
                // "T011-T14" means T014.
                let is_there = |id: &str| {
                    self.find(id).is_some() || self.group(id).is_some() || self.padded(id).is_some()
                };
                let missing = [first, last].into_iter().find(|id| !is_there(id));
                return (self.range(first, last), missing.map(|id| UnknownId::EndOfRange(id)));
            }
        };
        (found, None)
    }

    /// The last id of a range that gives only its number, as `TSK-UI-008` for `TSK-UI-001` and `008`.
    pub(super) fn find_short_end(&self, first: &str, last: &str) -> Option<String> {
        let digits = first.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (letters, number) = first.split_at(first.len() - digits);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !letters.starts_with(|c: char| c.is_ascii_alphabetic()) || !is_number(last) || last.len() > digits
        {
            return None;
        }
        let id = format!("{letters}{last:0>digits$}");
        let is_after = last.parse::<u64>().ok()? > number.parse().ok()?;
        self.find(&id).filter(|_| is_after && self.find(first).is_some()).map(|_| id)
    }

    /// "T001-003", which is not an id, from T001 to T003.
    fn short_range(&self, id: &str) -> Option<Vec<usize>> {
        let (first, last) = id.rsplit_once('-')?;
        Some(self.range(first, &self.find_short_end(first, last)?))
    }

    pub(super) fn has_phase(&self, label: &str) -> bool {
        self.phase(label).is_some()
    }

    fn phase(&self, label: &str) -> Option<usize> {
        let label = label.to_lowercase();
        let found = self.by_label.get(&label).copied();
        found.or_else(|| self.by_label.get(label.strip_suffix(".0")?).copied()).flatten()
    }

    /// Phases from one label to another, in the order of the file.
    fn phases(&self, first: &str, last: &str) -> Vec<usize> {
        let last = if last.starts_with('.') { format!("{first}{last}") } else { last.to_owned() };
        match (self.phase(first), self.phase(&last)) {
            (Some(first), Some(last)) => {
                self.phases.iter().map(|(at, _)| *at).filter(|at| (first..=last).contains(at)).collect()
            }
            (Some(first), None) => match last.parse::<f32>() {
                Ok(last) => self.phases_up_to(first, last),
                Err(_) => vec![first],
            },
            (None, last) => last.into_iter().collect(),
        }
    }

    fn phases_up_to(&self, first: usize, last: f32) -> Vec<usize> {
        let is_within = |(at, label): &&(usize, Option<String>)| {
            *at >= first
                && label.as_ref().is_some_and(|label| label.parse().is_ok_and(|label: f32| label <= last))
        };
        self.phases.iter().filter(is_within).map(|(at, _)| *at).collect()
    }

    /// "Phase 3+: User Stories" means the stories from there on, if there are any.
    fn phases_from(&self, first: &str) -> Vec<usize> {
        let Some(first) = self.phase(first) else { return Vec::new() };
        let stories: Vec<usize> = self.stories.iter().copied().filter(|at| *at >= first).collect();
        if stories.is_empty() {
            return self.phases.iter().map(|(at, _)| *at).filter(|at| *at >= first).collect();
        }
        stories
    }

    fn story(&self, number: &str) -> Vec<usize> {
        self.by_story.get(&number.to_lowercase()).cloned().unwrap_or_default()
    }

    /// Whether a word is the name of a story, as the `CSV1` of "User Story CSV1" or of the tag `[US-CSV1]`.
    pub(super) fn is_story_name(&self, word: &str) -> bool {
        let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(is_capital)
            && self.by_story.contains_key(&word.to_lowercase())
    }

    fn stories_between(&self, first: &str, last: &str) -> Vec<usize> {
        let (Ok(first), Ok(last)) = (first.parse::<f32>(), last.parse::<f32>()) else {
            let (first, last) = (first.to_lowercase(), last.to_lowercase());
            let is_letter = |text: &str| text.len() == 1 && text.chars().all(char::is_alphabetic);
            if !is_letter(&first) || !is_letter(&last) {
                return [self.story(&first), self.story(&last)].concat();
            }
            let is_within = |story: &String| is_letter(story) && first <= *story && *story <= last;
            let within = self.by_story.iter().filter(|(story, _)| is_within(story));
            return within.flat_map(|(_, at)| at.clone()).collect();
        };
        let is_within = |number: &str| number.parse::<f32>().is_ok_and(|n| first <= n && n <= last);
        self.by_story.iter().filter(|(number, _)| is_within(number)).flat_map(|(_, at)| at.clone()).collect()
    }

    /// The phases before a node, and before a task also what stands before it in its own phase.
    fn all_before(&self, subject: Option<usize>) -> Vec<usize> {
        let Some(subject) = subject else { return Vec::new() };
        // What already waits for all before it stands for all of that, so that many such sentences stay cheap.
        let since = self.waits_for_all.borrow().range(..subject).next_back().copied().unwrap_or(0);
        self.waits_for_all.borrow_mut().insert(subject);
        let own = self.phases.partition_point(|(at, _)| *at < subject);
        let first = self.phases.partition_point(|(at, _)| *at < since);
        let phases = self.phases[first..own].iter().map(|(at, _)| *at);
        if !self.is_task[subject] {
            return phases.collect();
        }
        let start = own.checked_sub(1).map_or(0, |own| self.phases[own].0 + 1).max(since);
        phases.chain((start..subject).filter(|at| self.is_task[*at])).collect()
    }

    /// The tasks in the sections about tests of the phase of a task.
    fn tests_beside(&self, subject: Option<usize>) -> Vec<usize> {
        let Some(subject) = subject else { return Vec::new() };
        let next = self.phases.partition_point(|(at, _)| *at <= subject);
        let start = next.checked_sub(1).map_or(0, |own| self.phases[own].0);
        let end = self.phases.get(next).map_or(self.ids.len(), |(at, _)| *at);
        (start..end).filter(|at| self.is_test[*at]).collect()
    }

    /// The later tasks of its phase, and the later phases.
    fn all_after(&self, subject: Option<usize>) -> Vec<usize> {
        let Some(subject) = subject else { return Vec::new() };
        // As above: what all after it waits for stands before all of that.
        let until = self.blocks_all.borrow().range(subject + 1..).next().copied().unwrap_or(self.ids.len());
        self.blocks_all.borrow_mut().insert(subject);
        let first = self.phases.partition_point(|(at, _)| *at <= subject);
        let last = self.phases.partition_point(|(at, _)| *at <= until);
        let next_phase = self.phases.get(first).map_or(self.ids.len(), |(at, _)| *at);
        let end = next_phase.min(until + 1).min(self.ids.len());
        let phases = self.phases[first..last].iter().map(|(at, _)| *at);
        (subject + 1..end).filter(|at| self.is_task[*at]).chain(phases).collect()
    }

    fn range(&self, first: &str, last: &str) -> Vec<usize> {
        let is_whole = self.find(last).is_some();
        let (first, mut last) = (sort_key(first), sort_key(last));
        if first > last {
            return Vec::new();
        }
        // "T054–T056" takes in T056a and T056b where there is no T056.
        if !is_whole {
            last.2.push_str(if last.2.is_empty() { "\u{10ffff}" } else { "-\u{10ffff}" });
        }
        let all = self.by_order();
        let start = all.partition_point(|(key, _)| *key < first);
        all[start..].iter().take_while(|(key, _)| *key <= last).map(|(_, at)| *at).collect()
    }

    fn by_order(&self) -> &[(SortKey, usize)] {
        self.by_order.get_or_init(|| {
            let tasks = self.by_id.iter().filter(|(_, at)| self.is_task[**at]);
            let mut all: Vec<_> = tasks.map(|(id, at)| (sort_key(id.as_str()), *at)).collect();
            all.sort();
            all
        })
    }

    /// `T21` for `T021`, if only one task has that number. A dependency on `T21` is told instead: it may be a slip.
    fn padded(&self, id: &str) -> Option<usize> {
        let key = sort_key(id);
        let all = self.by_order();
        let start = all.partition_point(|(other, _)| *other < key);
        let mut same = all[start..].iter().take_while(|(other, _)| *other == key);
        same.next().map(|(_, at)| *at).filter(|_| same.next().is_none())
    }

    /// A base id names its group: `T056` stands for `T056a` to `T056c`, `3` for `3.1` and `3.2`.
    fn group(&self, id: &str) -> Option<Vec<usize>> {
        let base = sort_key(id);
        if !base.2.is_empty() {
            return None;
        }
        let all = self.by_order();
        let start = all.partition_point(|(key, _)| *key < base);
        let is_same = |key: &SortKey| key.0 == base.0 && key.1 == base.1;
        let is_part = |at: &usize| self.ids[*at].as_str().starts_with(id);
        let group: Vec<usize> = all[start..]
            .iter()
            .take_while(|(key, _)| is_same(key))
            .map(|(_, at)| *at)
            .filter(is_part)
            .collect();
        (!group.is_empty()).then_some(group)
    }

    /// What to do about an id that is not there.
    pub(super) fn fix_for(&self, id: &str, reported: usize) -> String {
        unknown_fix(id, &self.by_id, reported)
    }

    /// The nodes that some names stand for.
    pub(super) fn nodes<'n>(&self, names: &[PlacedName<'n>]) -> Vec<usize> {
        let padded = |name: &Name<'_>| match name {
            Name::Task(id) => self.padded(id),
            _ => None,
        };
        let found = |name: &Name<'n>| match self.resolve(name, None).0 {
            found if found.is_empty() => padded(name).into_iter().collect(),
            found => found,
        };
        names.iter().flat_map(|(name, _)| found(name)).collect()
    }

    /// All of these names, and those that are not there.
    pub(super) fn resolve_all<'n>(
        &self,
        names: &[PlacedName<'n>],
        subject: Option<usize>,
    ) -> (NamedNodes, Vec<(UnknownId<'n>, Offset)>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (name, place) in names {
            let (nodes, lacking) = self.resolve(name, subject);
            found.extend(nodes.into_iter().map(|node| (node, *place)));
            missing.extend(lacking.map(|lacking| (lacking, *place)));
        }
        (found, missing)
    }
}
