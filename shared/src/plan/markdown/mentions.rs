//! Tasks, phases and stories as sentences name them, and the nodes that they stand for.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use super::{
    Offset,
    ids::{SortKey, sort_key},
    tokens::{Piece, Token},
    tree::{NodeKind, Role},
};
use crate::{
    name::TaskId,
    plan::assemble::{Draft, unknown_fix},
};

/// A task, a phase or several of them, as a sentence names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Task(&'a str),
    /// From one task to another, both included.
    Range(&'a str, &'a str),
    Phase(&'a str),
    Phases(&'a str, &'a str),
    /// "Phase 3+".
    PhasesFrom(&'a str),
    Story(&'a str),
    Stories(&'a str, &'a str),
    AllStories,
    /// All phases before the one that the sentence is about.
    AllBefore,
    /// Everything behind the task or phase that the sentence is about.
    AllAfter,
    /// A phase by its title, by position.
    Node(usize),
}

/// A name with its place.
pub(super) type Placed<'a> = (Name<'a>, Offset);

/// A list of tasks and phases.
#[derive(Debug, Clone)]
pub(super) struct List<'a> {
    pub(super) members: Vec<Placed<'a>>,
    /// Where its last member begins.
    pub(super) last: usize,
    pub(super) end: usize,
    /// Whether its members are parted by commas only.
    pub(super) is_comma_list: bool,
}

/// Reads names out of tokens; phases may be named by their titles.
pub(super) struct Mentions<'k> {
    pub(super) known: &'k Known,
    /// Whether titles of phases count. In the text of a task they are mere words.
    pub(super) reads_titles: bool,
}

impl Mentions<'_> {
    /// The list that begins at a position.
    pub(super) fn list_at<'a>(&self, clause: &[Token<'a>], at: usize) -> Option<List<'a>> {
        let ((member, end), last) = (self.member_at(clause, at, None)?, at);
        let mut list = List { members: vec![member], last, end, is_comma_list: true };
        while let Some((next, is_comma)) = behind_joint(clause, list.end) {
            let before = list.members.last().map(|(name, _)| name.clone());
            let Some((member, end)) = self.member_at(clause, next, before.as_ref()) else { break };
            list.members.push(member);
            list.is_comma_list &= is_comma;
            (list.last, list.end) = (next, end);
        }
        Some(list)
    }

    /// One member, with the parenthesis that explains it. A number goes on with the kind of name before it.
    fn member_at<'a>(
        &self,
        clause: &[Token<'a>],
        at: usize,
        before: Option<&Name<'a>>,
    ) -> Option<(Placed<'a>, usize)> {
        let token = clause.get(at)?;
        let place = token.at;
        let (name, end) = match token.what {
            Piece::Id(first) => match range_end(clause, at + 1) {
                Some((Piece::Id(last), end)) => (Name::Range(first, last), end),
                _ => (Name::Task(first), at + 1),
            },
            Piece::Phase(label) => phase_from(clause, at, label),
            Piece::Story(number) => story_from(clause, at, number)?,
            Piece::Number(label) => match before? {
                Name::Phase(_) | Name::Phases(..) => phase_from(clause, at, label),
                Name::Story(_) | Name::Stories(..) => story_from(clause, at, label)?,
                _ => return None,
            },
            Piece::Word(word) => return self.words_at(clause, at, word),
            _ => return None,
        };
        Some(((name, place), behind_parenthesis(clause, end)))
    }

    /// "all user stories", "all previous phases", "User Story 2", or the title of a phase.
    fn words_at<'a>(&self, clause: &[Token<'a>], at: usize, word: &'a str) -> Option<(Placed<'a>, usize)> {
        let place = clause[at].at;
        let next = |offset: usize| clause.get(at + offset).map(|token| token.what);
        let is = |offset: usize, wanted: &[&str]| matches!(next(offset), Some(Piece::Word(word)) if wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)));
        let before_label = [
            (is(0, &["phase", "phases", "阶段", "階段", "fase", "faza", "フェーズ"]), 1),
            (is(0, &["user"]) && is(1, &["story", "stories"]), 2),
            (is(0, &["story", "stories", "用户故事", "使用者故事"]), 1),
        ];
        for (is_here, words) in before_label {
            if is_here && matches!(next(words), Some(Piece::Phase(_) | Piece::Story(_))) {
                return self.member_at(clause, at + words, None);
            }
        }
        if is(0, &["task", "tasks"]) && matches!(next(1), Some(Piece::Id(_))) {
            return self.member_at(clause, at + 1, None);
        }
        if !self.reads_titles {
            return None;
        }
        if let Some((name, end)) = all_at(clause, at, word) {
            return Some(((name, place), behind_parenthesis(clause, end)));
        }
        let (node, end) = self.known.title_at(clause, at)?;
        Some(((Name::Node(node), place), behind_parenthesis(clause, end)))
    }

    /// Every task and phase that is named, wherever it stands.
    pub(super) fn names<'a>(&self, tokens: &[Token<'a>]) -> Vec<Placed<'a>> {
        let mut names = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            match self.list_at(tokens, at) {
                Some(mut list) => {
                    names.append(&mut list.members);
                    at = list.end;
                }
                None => at += 1,
            }
        }
        names
    }
}

fn phase_from<'a>(clause: &[Token<'a>], at: usize, label: &'a str) -> (Name<'a>, usize) {
    match range_end(clause, at + 1) {
        Some((Piece::Number(last) | Piece::Phase(last), end)) => (Name::Phases(label, last), end),
        _ if is_open_end(clause, at + 1) => (Name::PhasesFrom(label), at + 2),
        _ => (Name::Phase(label), at + 1),
    }
}

/// `None` where ids follow: "US1 T008/T009" speaks of these two tasks of the story.
fn story_from<'a>(clause: &[Token<'a>], at: usize, number: &'a str) -> Option<(Name<'a>, usize)> {
    let is_word = |at: usize, wanted: &str| matches!(clause.get(at).map(|token| token.what), Some(Piece::Word(word)) if word == wanted);
    let behind = at + 1 + usize::from(is_word(at + 1, "s"));
    if matches!(clause.get(behind).map(|token| token.what), Some(Piece::Id(_))) {
        return None;
    }
    Some(match range_end(clause, at + 1) {
        Some((Piece::Number(last) | Piece::Story(last), end)) => (Name::Stories(number, last), end),
        _ => (Name::Story(number), at + 1),
    })
}

/// A `+` that nothing follows, as in "Phase 3+".
fn is_open_end(clause: &[Token<'_>], at: usize) -> bool {
    let what = |at: usize| clause.get(at).map(|token| token.what);
    what(at) == Some(Piece::Plus)
        && !matches!(what(at + 1), Some(Piece::Id(_) | Piece::Story(_) | Piece::Number(_) | Piece::Word(_)))
}

/// "all user stories", "every story", "all previous phases", "everything".
fn all_at<'a>(clause: &[Token<'a>], at: usize, word: &str) -> Option<(Name<'a>, usize)> {
    const LONGEST: usize = 6;
    if matches!(word, "所有用户故事" | "所有使用者故事" | "全部用户故事" | "すべてのユーザーストーリー")
    {
        return Some((Name::AllStories, at + 1));
    }
    let lower = word.to_lowercase();
    if lower == "everything" {
        let is_else = matches!(clause.get(at + 1).map(|t| t.what), Some(Piece::Word(word)) if word.eq_ignore_ascii_case("else"));
        return Some((Name::AllAfter, at + 1 + usize::from(is_else)));
    }
    let is_all = matches!(lower.as_str(), "all" | "every" | "each" | "toutes" | "todas" | "wszystkie");
    let is_previous = matches!(lower.as_str(), "previous" | "prior" | "earlier" | "preceding");
    // "P1 stories" and "P1 user stories" are some of them, and which ones cannot be read.
    let is_priority = |token: Option<&Token<'_>>| {
        matches!(token.map(|token| token.what), Some(Piece::Word("P0" | "P1" | "P2" | "P3" | "P4" | "P5")))
    };
    let is_stories = lower == "user" && !is_priority(at.checked_sub(1).and_then(|before| clause.get(before)));
    if !is_all && !is_previous && !is_stories {
        return None;
    }
    for end in at..clause.len().min(at + LONGEST) {
        let Piece::Word(word) = clause[end].what else { return None };
        if is_priority(clause.get(end)) {
            return None;
        }
        match word.to_lowercase().as_str() {
            "stories" => {
                let is_numbered = matches!(
                    clause.get(end + 1).map(|token| token.what),
                    Some(Piece::Story(_) | Piece::Open)
                );
                return (!is_numbered).then_some((Name::AllStories, end + 1));
            }
            "story" if is_all => {
                let ends = !matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Story(_)));
                let is_phases = matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Word(word)) if word.eq_ignore_ascii_case("phases"));
                let goes_on =
                    matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Word(_))) && !is_phases;
                return (ends && !goes_on).then_some((Name::AllStories, end + 1 + usize::from(is_phases)));
            }
            "us" if is_all => return Some((Name::AllStories, end + 1)),
            "phases" if !is_stories => {
                let is_labelled = matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Phase(_)));
                return (!is_labelled).then_some((Name::AllBefore, end + 1));
            }
            "phase" if is_previous => return Some((Name::AllBefore, end + 1)),
            "above" if is_all => return Some((Name::AllBefore, end + 1)),
            "tasks" => return None,
            _ => {}
        }
    }
    None
}

fn range_end<'a>(clause: &[Token<'a>], at: usize) -> Option<(Piece<'a>, usize)> {
    let joins = match clause.get(at)?.what {
        Piece::Dash => true,
        Piece::Word(word) => {
            matches!(
                word.to_lowercase().as_str(),
                "through" | "to" | "thru" | "bis" | "至" | "到" | "až" | "do" | "à" | "al" | "a"
            )
        }
        _ => false,
    };
    let is_kind = |at: usize| matches!(clause.get(at).map(|token| token.what), Some(Piece::Word(word)) if word.eq_ignore_ascii_case("phase"));
    let last = at + 1 + usize::from(is_kind(at + 1));
    match clause.get(last)?.what {
        end @ (Piece::Id(_) | Piece::Number(_) | Piece::Phase(_) | Piece::Story(_)) if joins => {
            Some((end, last + 1))
        }
        _ => None,
    }
}

/// Behind a parenthesis that opens at `at`, if one does and it is closed.
pub(super) fn behind_parenthesis(clause: &[Token<'_>], at: usize) -> usize {
    const LONGEST: usize = 200;
    if !matches!(clause.get(at).map(|token| token.what), Some(Piece::Open | Piece::OpenSquare)) {
        return at;
    }
    let mut depth = 0;
    for (end, token) in clause.iter().enumerate().skip(at).take(LONGEST) {
        match token.what {
            Piece::Open | Piece::OpenSquare => depth += 1,
            Piece::Close | Piece::CloseSquare => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return end + 1;
        }
    }
    at
}

/// Behind the comma or "and" that goes before a further member, and whether it is only a comma.
fn behind_joint(clause: &[Token<'_>], at: usize) -> Option<(usize, bool)> {
    let word = |at: usize| match clause.get(at).map(|token| token.what) {
        Some(Piece::Word(word)) => word,
        _ => "",
    };
    let is_comma = |at: usize| clause.get(at).is_some_and(|token| token.what == Piece::Comma);
    let is_plus = |at: usize| clause.get(at).is_some_and(|token| token.what == Piece::Plus);
    let is_and = |at: usize| {
        matches!(
            word(at).to_lowercase().as_str(),
            "and" | "or" | "plus" | "und" | "y" | "e" | "et" | "i" | "和" | "与" | "及" | "と"
        )
    };
    let (mut end, mut is_only_comma) = (at, true);
    while is_comma(end) || is_plus(end) || is_and(end) {
        is_only_comma &= is_comma(end);
        end += 1;
    }
    if end == at {
        return None;
    }
    if matches!(word(end).to_lowercase().as_str(), "also" | "then" | "on" | "the") {
        return None;
    }
    Some((end, is_only_comma))
}

/// The nodes of a plan, by every name that a sentence may use.
#[derive(Debug, Default)]
pub(super) struct Known {
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

impl Known {
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
    fn title_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
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
