//! From tokens to the names of tasks, phases and stories: "T001-T003 and Phase 2" is a list of a range and a phase.

pub(super) use super::names::{List, Name, PlacedName, is_of_tasks, same_names};
use super::{
    Offset,
    keywords::{ClauseVoice, keyword_at},
    node_index::NodeIndex,
    tokens::{Piece, Token, is_and, is_one_of, is_word_at, piece_at, word_at},
};

/// Reads names out of tokens; phases may be named by their titles.
pub(super) struct NameReader<'k> {
    pub(super) known: &'k NodeIndex,
    /// Whether titles of phases count. In the text of a task they are mere words.
    pub(super) reads_titles: bool,
}

impl NameReader<'_> {
    /// The list that begins at a position.
    pub(super) fn list_at<'a>(&self, clause: &[Token<'a>], at: usize) -> Option<List<'a>> {
        self.list_after(clause, at, None)
    }

    /// The list at a position where a bare number may go on with a name, as in "Section 4 depends on 1, 2".
    pub(super) fn list_after<'a>(
        &self,
        clause: &[Token<'a>],
        at: usize,
        before: Option<&Name<'a>>,
    ) -> Option<List<'a>> {
        let (member, end) = self.member_at(clause, at, before)?;
        let (last, (members, end)) = (at, self.whole_or_part(clause, at, member, end));
        let mut list = List { is_comma_list: true, ..List::new(members, last, end) };
        while let Some((next, is_comma)) = behind_joint(clause, list.end) {
            let before = list.members.last().map(|(name, _)| name.clone());
            let Some((member, end)) = self.member_at(clause, next, before.as_ref()) else { break };
            let (mut members, end) = self.whole_or_part(clause, next, member, end);
            if clause[list.end..next].iter().any(|token| token.what != Piece::Plus) {
                list.groups.push(list.members.len());
            }
            list.members.append(&mut members);
            list.is_comma_list &= is_comma;
            (list.last, list.end) = (next, end);
        }
        Some(list)
    }

    /// A phase or story, or the tasks of it that are meant.
    fn whole_or_part<'a>(
        &self,
        clause: &[Token<'a>],
        start: usize,
        member: PlacedName<'a>,
        end: usize,
    ) -> (Vec<PlacedName<'a>>, usize) {
        if let Some(tasks) = self.narrowed(clause, start, end) {
            return (tasks, end);
        }
        let is_story = matches!(member.0, Name::Story(_));
        self.possessed(clause, end)
            .filter(|_| is_story || is_possessive(clause, end))
            .unwrap_or_else(|| (vec![member], end))
    }

    /// "US1's request parser (T012)" speaks of T012, not of the whole story.
    fn possessed<'a>(&self, clause: &[Token<'a>], at: usize) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const MOST_WORDS: usize = 8;
        const MOST_PLAIN: usize = 6;
        let is_word = |at: usize| word_at(clause, at).is_some();
        let is_owned = is_possessive(clause, at);
        // "US1 backend (T017–T028)": a few words that say nothing about order, too.
        let is_plain = |at: usize| is_word(at) && keyword_at(clause, at, ClauseVoice::Section).is_none();
        if !is_owned && !is_plain(at) {
            return None;
        }
        let most = if is_owned { MOST_WORDS } else { MOST_PLAIN };
        let is_plus = |at: usize| clause.get(at).is_some_and(|token| token.what == Piece::Plus);
        let is_between = |at: usize| if is_owned { is_word(at) } else { is_plain(at) || is_plus(at) };
        let open = (at + 1..).take(most).find(|at| !is_between(*at))?;
        let end = behind_parenthesis(clause, open);
        if end == open {
            return None;
        }
        let list = self.list_at(&clause[..end], open + 1)?;
        list.members.iter().all(is_of_tasks).then_some((list.members, end))
    }

    /// "Phase 3 (specifically T008/T009)" speaks of these tasks, not of the whole phase.
    fn narrowed<'a>(&self, clause: &[Token<'a>], start: usize, end: usize) -> Option<Vec<PlacedName<'a>>> {
        let open = start + clause[start..end].iter().position(|token| token.what == Piece::Open)?;
        let is_exact = |at: usize| matches!(piece_at(clause, at), Some(Piece::Word(word)) if matches!(word.to_ascii_lowercase().as_str(), "specifically" | "namely" | "only" | "just"));
        let first = open + 1 + usize::from(is_exact(open + 1));
        let list = self.list_at(&clause[..end], first)?;
        // "Phase 3 (Issue #1)" speaks of that part of the phase.
        if list.members.iter().all(|(name, _)| matches!(name, Name::Group(_))) {
            return Some(list.members);
        }
        if first == open + 1 && !is_exact(list.end) {
            return None;
        }
        list.members.iter().all(is_of_tasks).then_some(list.members)
    }

    /// One member, with the parenthesis that explains it. A number continues the kind of name before it.
    fn member_at<'a>(
        &self,
        clause: &[Token<'a>],
        at: usize,
        before: Option<&Name<'a>>,
    ) -> Option<(PlacedName<'a>, usize)> {
        let token = clause.get(at)?;
        let place = token.at;
        let (name, end) = match token.what {
            Piece::Id(first) => match range_end(clause, at + 1) {
                Some((Piece::Id(last), end)) => (Name::Range(first, last), end),
                // "TSK-UI-001〜008".
                Some((Piece::Number(last), end)) if self.known.find_short_end(first, last).is_some() => {
                    (Name::Range(first, last), end)
                }
                _ => (Name::Task(first), at + 1),
            },
            Piece::Phase(label) => phase_from(clause, at, label),
            Piece::Story(number) => match story_from(clause, at, number) {
                Some(story) => story,
                None => {
                    return self.member_at(clause, at + 1 + usize::from(is_possessive(clause, at + 1)), None);
                }
            },
            Piece::Number(label) => match before? {
                Name::Phase(_) | Name::Phases(..) => phase_from(clause, at, label),
                Name::Part(word, _) | Name::Parts(word, ..) => self.part_from(clause, at, word)?,
                Name::Story(_) | Name::Stories(..) => story_from(clause, at, label)?,
                _ => return None,
            },
            Piece::Word(word) => return self.words_at(clause, at, word),
            _ => return None,
        };
        Some(((name, place), behind_parenthesis(clause, end)))
    }

    /// "all user stories", "all previous phases", "User Story 2", or the title of a phase.
    fn words_at<'a>(
        &self,
        clause: &[Token<'a>],
        at: usize,
        word: &'a str,
    ) -> Option<(PlacedName<'a>, usize)> {
        let place = clause[at].at;
        let next = |offset: usize| piece_at(clause, at + offset);
        let is = |offset: usize, wanted: &[&str]| matches!(next(offset), Some(Piece::Word(word)) if is_one_of(word, wanted));
        const BEFORE_LABEL: [&str; 12] = [
            "phase", "phases", "阶段", "階段", "fase", "faza", "フェーズ", "story", "stories", "用户故事",
            "用戶故事", "使用者故事",
        ];
        let names_group = |offset: usize| matches!(next(offset), Some(Piece::Phase(_) | Piece::Story(_)));
        if names_group(1) && is(0, &BEFORE_LABEL) {
            return self.member_at(clause, at + 1, None);
        }
        if names_group(2) && is(0, &["user"]) && is(1, &["story", "stories"]) {
            return self.member_at(clause, at + 2, None);
        }
        if matches!(next(1), Some(Piece::Id(_))) && is(0, &TASK_WORDS) {
            return self.member_at(clause, at + 1, None);
        }
        if let Some((name, place, end)) = self.numbered_id_at(clause, at, word) {
            return Some(((name, place), behind_parenthesis(clause, end)));
        }
        if !self.reads_titles {
            return None;
        }
        let counts = |label: &str| {
            let is_task = is_one_of(word, &TASK_WORDS);
            self.known.is_label_word(word) || is_task && self.known.has_phase(label)
        };
        if let Some((name, end)) = self.part_from(clause, at + 1, word) {
            return Some(((name, place), behind_parenthesis(clause, end)));
        }
        if let Some(Piece::Number(label) | Piece::Id(label)) = next(1)
            && let Some(group) = self.known.section_counted(word, label)
        {
            return Some(((Name::Group(group), place), behind_parenthesis(clause, at + 2)));
        }
        if matches!(next(1), Some(Piece::Number(label)) if counts(label)) {
            return self.member_at(clause, at + 1, Some(&Name::Phase(word)));
        }
        if let Some(Piece::Word(label)) = next(1)
            && label.len() == 1
            && label.starts_with(|c: char| c.is_ascii_uppercase())
            && counts(label)
        {
            return Some(((Name::Phase(label), place), behind_parenthesis(clause, at + 2)));
        }
        // "CSV2 depends on CSV1" where stories have such names.
        if self.known.is_story_name(word) {
            return Some(((Name::Story(word), place), behind_parenthesis(clause, at + 1)));
        }
        if let Some((name, end)) = priority_at(clause, at) {
            return Some(((name, place), behind_parenthesis(clause, end)));
        }
        if let Some((name, end)) = all_at(clause, at, word) {
            return Some(((name, place), behind_parenthesis(clause, end)));
        }
        if let Some((node, end)) = self.phase_called_at(clause, at) {
            return Some(((Name::Node(node), place), behind_parenthesis(clause, end)));
        }
        let (node, end) = self.known.title_at(clause, at)?;
        // Of several phases "Foundational", the brackets of "Foundational (Phase 2)" tell which is meant.
        let label = match clause.get(end..end + 3) {
            Some([open, _, Token { what: Piece::Phase(label), .. }]) if open.what == Piece::Open => {
                Some(*label)
            }
            _ => None,
        };
        let name = label.filter(|label| self.known.has_phase(label)).map_or(Name::Node(node), Name::Phase);
        Some(((name, place), behind_parenthesis(clause, end)))
    }

    /// `phase-1`, the id of a phase that is called "Phase 1", with its place and end.
    fn numbered_id_at<'a>(
        &self,
        clause: &[Token<'a>],
        at: usize,
        word: &str,
    ) -> Option<(Name<'a>, Offset, usize)> {
        let place = clause[at].at;
        if word != "phase" {
            return None;
        }
        if let Some((node, end)) = self.known.phase_id_at(clause, at) {
            return Some((Name::Node(node), place, end));
        }
        let [hyphen, Token { at: behind, what: Piece::Number(label) | Piece::Id(label) }] =
            clause.get(at + 1..at + 3)?
        else {
            return None;
        };
        let is_joined = hyphen.what == Piece::Dash && *behind == place + word.len() + 1;
        is_joined.then(|| (Name::Phase(label), *behind, at + 3))
    }

    /// The group of tasks whose name is at a position. Only objects of keywords are looked up: as the subject of a
    /// sentence, the name mostly comes before the tasks themselves.
    pub(super) fn group_at<'a>(&self, clause: &[Token<'a>], at: usize) -> Option<List<'a>> {
        let (group, end) = self.known.group_named_at(clause, at).filter(|_| self.reads_titles)?;
        Some(List::new(vec![(Name::Group(group), clause[at].at)], at, end))
    }

    /// "Module 2" or "Modules 2-4" of phases that are called "Phase 3: Module 2 - Physics". A phase that itself has the number
    /// goes before it.
    fn part_from<'a>(&self, clause: &[Token<'a>], at: usize, word: &'a str) -> Option<(Name<'a>, usize)> {
        let number = |at: usize| match piece_at(clause, at) {
            Some(Piece::Number(label) | Piece::Id(label)) => Some(label),
            _ => None,
        };
        let first = number(at).filter(|first| self.known.part(word, first).is_some())?;
        let last = match range_end(clause, at + 1) {
            Some((Piece::Number(last) | Piece::Id(last), end)) => Some((last, end)),
            _ => None,
        };
        Some(match last.filter(|(last, _)| self.known.part(word, last).is_some()) {
            Some((last, end)) => (Name::Parts(word, first, last), end),
            None => (Name::Part(word, first), at + 1),
        })
    }

    /// The lists in some tokens, one after the other.
    pub(super) fn lists<'a>(&self, tokens: &[Token<'a>]) -> Vec<List<'a>> {
        let mut lists = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let list = self.list_at(tokens, at);
            at = list.as_ref().map_or(at + 1, |list| list.end);
            lists.extend(list);
        }
        lists
    }

    /// Every task and phase that is named, wherever it is.
    pub(super) fn names<'a>(&self, tokens: &[Token<'a>]) -> Vec<PlacedName<'a>> {
        self.lists(tokens).into_iter().flat_map(|list| list.members).collect()
    }
}

fn is_possessive(clause: &[Token<'_>], at: usize) -> bool {
    matches!(piece_at(clause, at), Some(Piece::Word("s")))
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
    let is_word =
        |at: usize, wanted: &str| matches!(piece_at(clause, at), Some(Piece::Word(word)) if word == wanted);
    let behind = at + 1 + usize::from(is_word(at + 1, "s"));
    if matches!(piece_at(clause, behind), Some(Piece::Id(_))) {
        return None;
    }
    Some(match range_end(clause, at + 1) {
        Some((Piece::Number(last) | Piece::Story(last), end)) => (Name::Stories(number, last), end),
        _ => (Name::Story(number), at + 1),
    })
}

/// A `+` that nothing follows, as in "Phase 3+".
fn is_open_end(clause: &[Token<'_>], at: usize) -> bool {
    let what = |at: usize| piece_at(clause, at);
    what(at) == Some(Piece::Plus)
        && !matches!(what(at + 1), Some(Piece::Id(_) | Piece::Story(_) | Piece::Number(_) | Piece::Word(_)))
}

/// Words that may come before the id of a task.
const TASK_WORDS: [&str; 16] = [
    "step", "steps", "task", "tasks", "issue", "issues", "ticket", "tickets", "tarefa", "tarefas", "tarea",
    "tareas", "tâche", "tâches", "aufgabe", "aufgaben",
];

/// "P1 stories", "all P1 user stories", "the core stories (P1)".
fn priority_at<'a>(clause: &[Token<'a>], at: usize) -> Option<(Name<'a>, usize)> {
    /// How many words may come before "stories (P1)" and in it.
    const MOST_WORDS: usize = 4;
    let word = |at: usize| word_at(clause, at).unwrap_or_default();
    let is = |at: usize, wanted: &[&str]| is_one_of(word(at), wanted);
    let start = at + usize::from(is(at, &["all", "every", "both"]));
    let is_priority =
        |word: &str| word.len() == 2 && word.starts_with('P') && word.ends_with(|c: char| c.is_ascii_digit());
    let end = start + 1 + usize::from(is(start + 1, &["user"]));
    if is_priority(word(start)) {
        return is(end, &["stories", "story"]).then_some((Name::Priority(word(start)), end + 1));
    }
    let stories = start + (0..MOST_WORDS).find(|offset| is(start + offset, &["stories"]))?;
    let is_plain = |at: usize| !word(at).is_empty() && keyword_at(clause, at, ClauseVoice::Section).is_none();
    let is_bracketed = matches!(
        clause.get(stories + 1..stories + 4),
        Some([Token { what: Piece::Open, .. }, _, Token { what: Piece::Close, .. }])
    );
    let is_meant = is_bracketed && is_priority(word(stories + 2)) && (start..stories).all(is_plain);
    is_meant.then(|| (Name::Priority(word(stories + 2)), stories + 4))
}

/// How a name for all of something begins.
const ALL_WORDS: [&str; 11] =
    ["all", "any", "every", "each", "toutes", "todas", "las", "les", "wszystkie", "historias", "histórias"];

/// What "all user story …" may go on with and still mean all of them.
const STORY_WORK: [&str; 6] =
    ["entities", "work", "implementations", "implementation", "features", "components"];

const FEATURES_DONE: [&str; 12] = [
    "being", "are", "is", "to", "complete", "completed", "done", "finished", "deseadas", "desejadas",
    "souhaitées", "completas",
];

/// "all user stories", "every story", "all previous phases", "everything", and "all" alone.
fn all_at<'a>(clause: &[Token<'a>], at: usize, word: &str) -> Option<(Name<'a>, usize)> {
    const LONGEST: usize = 6;
    let is_cjk_all = (word.starts_with("所有") || word.starts_with("全部")) && word.ends_with("故事");
    if is_cjk_all || word == "すべてのユーザーストーリー" {
        return Some((Name::AllStories, at + 1));
    }
    // "所有目标用户故事".
    let is_cjk_story = matches!(
        piece_at(clause, at + 1),
        Some(Piece::Word("用户故事" | "用戶故事" | "使用者故事" | "ユーザーストーリー"))
    );
    if is_cjk_story && ["所有", "全部", "すべての"].iter().any(|all| word.starts_with(all)) {
        return Some((Name::AllStories, at + 2));
    }
    let lower = word.to_lowercase();
    if lower == "everything" {
        let is_else = is_word_at(clause, at + 1, &["else"]);
        return Some((Name::AllAfter, at + 1 + usize::from(is_else)));
    }
    let is_alone = !matches!(
        piece_at(clause, at + 1),
        Some(
            Piece::Word(_)
                | Piece::Id(_)
                | Piece::Phase(_)
                | Piece::Story(_)
                | Piece::Number(_)
                | Piece::Open
        )
    );
    if lower == "all" && is_alone {
        return Some((Name::AllBefore, at + 1));
    }
    let is_all = ALL_WORDS.contains(&lower.as_str());
    let is_previous = matches!(lower.as_str(), "previous" | "prior" | "earlier" | "preceding");
    // "P1 stories" and "P1 user stories" are some of them, and which ones cannot be read.
    let is_priority = |token: Option<&Token<'_>>| {
        matches!(token.map(|token| token.what), Some(Piece::Word("P0" | "P1" | "P2" | "P3" | "P4" | "P5")))
    };
    let is_stories = lower == "user" && !is_priority(at.checked_sub(1).and_then(|before| clause.get(before)));
    if !is_all && !is_previous && !is_stories {
        return None;
    }
    let mut has_previous = false;
    for end in at..clause.len().min(at + LONGEST) {
        // "every user-story phase".
        if clause[end].what == Piece::Dash {
            continue;
        }
        let Piece::Word(word) = clause[end].what else { return None };
        if is_priority(clause.get(end)) {
            return None;
        }
        match word.to_lowercase().as_str() {
            "stories" | "historias" | "histórias" | "histoires" => {
                let is_numbered = matches!(piece_at(clause, end + 1), Some(Piece::Story(_) | Piece::Open));
                return (!is_numbered && !are_listed(clause, end + 1)).then_some((Name::AllStories, end + 1));
            }
            "story" if is_all => {
                let ends = !matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Story(_)));
                let is_phases = is_word_at(clause, end + 1, &["phase", "phases"]);
                let is_work = is_word_at(clause, end + 1, &STORY_WORK);
                let goes_on = matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Word(_)))
                    && !is_phases
                    && !is_work;
                return (ends && !goes_on).then_some((Name::AllStories, end + 1 + usize::from(is_phases)));
            }
            // "all desired features being complete".
            "features" | "funcionalidades" | "fonctionnalités" if is_all => {
                let ends = match piece_at(clause, end + 1) {
                    Some(Piece::Word(word)) => is_one_of(word, &FEATURES_DONE),
                    what => {
                        !matches!(what, Some(Piece::Story(_) | Piece::Open | Piece::Id(_) | Piece::Phase(_)))
                    }
                };
                return ends.then_some((Name::AllStories, end + 1));
            }
            "us" if is_all => return Some((Name::AllStories, end + 1)),
            "phases" if !is_stories => {
                let is_labelled = matches!(clause.get(end + 1).map(|t| t.what), Some(Piece::Phase(_)));
                return (!is_labelled).then_some((Name::AllBefore, end + 1));
            }
            "phase" if is_previous || lower == "any" => return Some((Name::AllBefore, end + 1)),
            "above" if is_all => return Some((Name::AllBefore, end + 1)),
            "tasks" => return has_previous.then_some((Name::AllBefore, end + 1)),
            "previous" | "prior" | "earlier" | "preceding" => has_previous = true,
            _ => {}
        }
    }
    None
}

/// Whether brackets after a word or two tell which stories are meant, as in "User Stories rev.2 (Phase 9-12)".
fn are_listed(clause: &[Token<'_>], at: usize) -> bool {
    const MOST_WORDS: usize = 3;
    let what = |at: usize| piece_at(clause, at);
    let is_plain = |at: &usize| match what(*at) {
        Some(Piece::Word(_)) => keyword_at(clause, *at, ClauseVoice::Section).is_none(),
        piece => matches!(piece, Some(Piece::Number(_) | Piece::Id(_) | Piece::Other)),
    };
    let open = at + (at..at + MOST_WORDS).take_while(is_plain).count();
    what(open) == Some(Piece::Open) && matches!(what(open + 2), Some(Piece::Phase(_)))
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
    let is_kind = |at: usize| is_word_at(clause, at, &["phase"]);
    let last = at + 1 + usize::from(is_kind(at + 1));
    match clause.get(last)?.what {
        end @ (Piece::Id(_) | Piece::Number(_) | Piece::Phase(_) | Piece::Story(_)) if joins => {
            Some((end, last + 1))
        }
        _ => None,
    }
}

/// After a parenthesis that opens at `at`, if one does and it is closed.
pub(super) fn behind_parenthesis(clause: &[Token<'_>], at: usize) -> usize {
    const LONGEST: usize = 200;
    if !matches!(piece_at(clause, at), Some(Piece::Open | Piece::OpenSquare)) {
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

/// After the comma or "and" that goes before a further member, and whether it is only a comma.
fn behind_joint(clause: &[Token<'_>], at: usize) -> Option<(usize, bool)> {
    let word = |at: usize| word_at(clause, at).unwrap_or_default();
    let is_comma = |at: usize| clause.get(at).is_some_and(|token| token.what == Piece::Comma);
    let is_plus = |at: usize| matches!(piece_at(clause, at), Some(Piece::Plus | Piece::Bars));
    let is_and = |at: usize| is_and(word(at));
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
