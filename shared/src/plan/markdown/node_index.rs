//! The nodes of a plan by every name that a sentence may use: ids, ranges, labels, stories and titles.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use super::{
    Offset,
    ids::{SortKey, sort_key},
    mentions::{Name, Placed},
    tokens::{Piece, Token},
    tree::{NodeKind, Role},
};
use crate::{
    name::TaskId,
    plan::assemble::{Draft, unknown_fix},
};

/// The nodes of a plan, by every name that a sentence may use.
#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    by_id: HashMap<TaskId, usize>,
    /// Tasks in the order of their ids; made when the first range asks for it.
    by_order: OnceCell<Vec<(SortKey, usize)>>,
    is_task: Vec<bool>,
    ids: Vec<TaskId>,
    /// Phases by label; `None` where two have the same.
    by_label: HashMap<String, Option<usize>>,
    /// The phases of each story.
    by_story: BTreeMap<String, Vec<usize>>,
    /// Titles of phases, as lower-case words, by the first word.
    by_title: HashMap<String, Vec<(Vec<String>, usize)>>,
    /// Phases that are no tasks, in the order of the file, with their labels.
    phases: Vec<(usize, Option<String>)>,
    stories: Vec<usize>,
}

/// Nodes by position, each with the place where it is named.
pub(super) type Named = Vec<(usize, Offset)>;

/// An id that is not in the plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum Missing<'a> {
    Task(&'a str),
    EndOfRange(&'a str),
}

impl NodeIndex {
    pub(super) fn new(drafts: &[Draft], roles: &[Role]) -> Self {
        let is_task = roles.iter().map(|role| role.kind == NodeKind::Task).collect();
        let ids = drafts.iter().map(|draft| draft.task.id.clone()).collect();
        let mut known = Self { is_task, ids, ..Self::default() };
        for (at, (draft, role)) in drafts.iter().zip(roles).enumerate() {
            known.by_id.entry(draft.task.id.clone()).or_insert(at);
            if role.kind == NodeKind::Task {
                continue;
            }
            if let Some(label) = &role.label {
                known.by_label.entry(label.clone()).and_modify(|found| *found = None).or_insert(Some(at));
            }
            for story in &role.stories {
                known.by_story.entry(story.clone()).or_default().push(at);
            }
            if role.kind == NodeKind::Story {
                known.stories.push(at);
            }
            for title in &role.titles {
                if let Some(first) = title.first() {
                    known.by_title.entry(first.clone()).or_default().push((title.clone(), at));
                }
            }
            known.phases.push((at, role.label.clone()));
        }
        known
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

    /// The phase whose title stands at a position, the longest if there are several.
    pub(super) fn title_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        let word = |at: usize| match clause.get(at).map(|token| token.what) {
            Some(Piece::Word(word)) => Some(word.to_lowercase()),
            _ => None,
        };
        let titles = self.by_title.get(&word(at)?)?;
        let fits = |title: &&(Vec<String>, usize)| {
            (0..title.0.len()).all(|offset| word(at + offset).as_ref() == Some(&title.0[offset]))
        };
        let (title, node) = titles.iter().filter(fits).max_by_key(|(title, _)| title.len())?;
        Some((*node, at + title.len()))
    }

    /// The nodes that a name stands for, and what it names that is not there. A range takes what there is.
    fn resolve<'n>(&self, name: &Name<'n>, subject: Option<usize>) -> (Vec<usize>, Option<Missing<'n>>) {
        let found = match name {
            Name::Node(node) => vec![*node],
            Name::Phase(label) => self.phase(label).into_iter().collect(),
            Name::Phases(first, last) => self.phases(first, last),
            Name::PhasesFrom(first) => self.phases_from(first),
            Name::Story(number) => self.story(number),
            Name::Stories(first, last) => self.stories_between(first, last),
            Name::AllStories => self.stories.clone(),
            Name::AllBefore => self.all_before(subject),
            Name::AllAfter => self.all_after(subject),
            Name::Task(id) => {
                let found = self.find(id).map(|at| vec![at]).or_else(|| self.short_range(id));
                match found.or_else(|| self.group(id)) {
                    Some(found) => found,
                    None => return (Vec::new(), Some(Missing::Task(id))),
                }
            }
            Name::Range(first, last) => {
                let is_there = |id: &str| self.find(id).is_some() || self.group(id).is_some();
                let missing = [first, last].into_iter().find(|id| !is_there(id));
                return (self.range(first, last), missing.map(|id| Missing::EndOfRange(id)));
            }
        };
        (found, None)
    }

    fn phase(&self, label: &str) -> Option<usize> {
        let label = label.to_lowercase();
        let found = self.by_label.get(&label).copied();
        found.or_else(|| self.by_label.get(label.strip_suffix(".0")?).copied()).flatten()
    }

    /// Phases from one label to another, as they stand in the file.
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

    fn stories_between(&self, first: &str, last: &str) -> Vec<usize> {
        let (Ok(first), Ok(last)) = (first.parse::<f32>(), last.parse::<f32>()) else {
            return [self.story(first), self.story(last)].concat();
        };
        let is_within = |number: &str| number.parse::<f32>().is_ok_and(|n| first <= n && n <= last);
        self.by_story.iter().filter(|(number, _)| is_within(number)).flat_map(|(_, at)| at.clone()).collect()
    }

    fn all_before(&self, subject: Option<usize>) -> Vec<usize> {
        let Some(subject) = subject else { return Vec::new() };
        self.phases.iter().map(|(at, _)| *at).filter(|at| *at < subject).collect()
    }

    /// The later tasks of its phase, and the later phases.
    fn all_after(&self, subject: Option<usize>) -> Vec<usize> {
        let Some(subject) = subject else { return Vec::new() };
        let next_phase =
            self.phases.iter().map(|(at, _)| *at).find(|at| *at > subject).unwrap_or(self.ids.len());
        let phases = self.phases.iter().map(|(at, _)| *at).filter(|at| *at > subject);
        (subject + 1..next_phase).filter(|at| self.is_task[*at]).chain(phases).collect()
    }

    fn range(&self, first: &str, last: &str) -> Vec<usize> {
        let (first, mut last) = (sort_key(first), sort_key(last));
        if first > last {
            return Vec::new();
        }
        // "T054–T056" takes in T056a and T056b where there is no T056.
        last.2.push_str(if last.2.is_empty() { "\u{10ffff}" } else { "-\u{10ffff}" });
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

    /// `T004-007` or `T004-7` for `T004` to `T007`.
    fn short_range(&self, id: &str) -> Option<Vec<usize>> {
        let (first, last) = id.rsplit_once('-')?;
        self.find(first)?;
        let digits = first.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let width = first.len() - digits;
        let last = format!("{}{:0>width$}", &first[..digits], last.trim_start_matches('0'));
        self.find(&last)?;
        Some(self.range(first, &last))
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
    pub(super) fn fix_for(&self, id: &str, told: usize) -> String {
        unknown_fix(id, &self.by_id, told)
    }

    /// The nodes that some names stand for.
    pub(super) fn nodes<'n>(&self, names: &[Placed<'n>]) -> Vec<usize> {
        names.iter().flat_map(|(name, _)| self.resolve(name, None).0).collect()
    }

    /// All of these names, and those that are not there.
    pub(super) fn resolve_all<'n>(
        &self,
        names: &[Placed<'n>],
        subject: Option<usize>,
    ) -> (Named, Vec<(Missing<'n>, Offset)>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (name, place) in names {
            let (nodes, lacking) = self.resolve(name, subject);
            found.extend(nodes.into_iter().map(|node| (node, *place)));
            missing.extend(lacking.map(|lacking| (lacking, *place)));
        }
        (found, missing)
    }
}
