//! Sentences that say what waits for what: "T005 depends on T001-T003", "US3 depends on US1", "(after T002)",
//! and arrows, whose direction only the whole section can tell.

mod adverbs;
mod ambiguous_clauses;
mod arrows;
mod independence;
mod objects;
mod parallel;
mod parentheticals;
mod permission;
mod phase_sequences;
mod postfix;
mod pronouns;
mod subjects;

pub(super) use self::{adverbs::heads_advice, parallel::names_line_of_work};

use std::cell::OnceCell;

use self::{adverbs::is_advice, permission::is_permission};
use super::{
    Offset,
    keywords::{
        ClauseVoice, Keyword, Sense, has_any, is_denied, is_of_some_part, is_permitted_before, is_wish,
        keyword_at,
    },
    name_reader::{List, Name, NameReader, PlacedName, behind_parenthesis, is_of_tasks},
    tokens::{Piece, Token, is_word_at, piece_at},
};

/// That some wait for others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrderClaim<'a> {
    /// Empty for the task that the sentence is in.
    pub(super) who: Vec<PlacedName<'a>>,
    pub(super) on: Vec<PlacedName<'a>>,
    pub(super) force: Force,
}

/// How much a sentence can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// It says what waits for what.
    Firm,
    /// It says what others wait for: "Phase 1 blocks everything". That tells nothing about what else they wait for.
    Blocking,
    /// A remark in brackets, or a wish such as "best done after US1".
    Loose,
}

/// Left and right of an arrow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArrowClaim<'a> {
    pub(super) left: Vec<PlacedName<'a>>,
    pub(super) right: Vec<PlacedName<'a>>,
}

/// What tokens say about order.
#[derive(Debug, Default)]
pub(super) struct StatedOrder<'a> {
    pub(super) claims: Vec<OrderClaim<'a>>,
    pub(super) arrows: Vec<ArrowClaim<'a>>,
    /// What is said to run in parallel with others, or to be independent of them.
    pub(super) unrelated: Vec<(Vec<PlacedName<'a>>, Vec<PlacedName<'a>>)>,
    /// What is said not to depend on others, whatever a drawing shows.
    pub(super) denied: Vec<(Vec<PlacedName<'a>>, Vec<PlacedName<'a>>)>,
    /// Lists of tasks that are said to run one after the other, in the order of the file.
    pub(super) sequences: Vec<Vec<PlacedName<'a>>>,
    /// Lists of which each member is said to run in parallel with the others.
    pub(super) parallel_lists: Vec<Vec<PlacedName<'a>>>,
    /// Lists of which the tasks with the mark `[P]` are said to run in parallel.
    pub(super) parallel_marked: Vec<Vec<PlacedName<'a>>>,
    /// Phases whose tasks are said to run in parallel, and those of their tasks that come before the others.
    pub(super) parallel_phases: Vec<(PlacedName<'a>, Vec<PlacedName<'a>>)>,
    /// Tasks that are said to run in parallel with the other tasks of a phase.
    pub(super) parallel_with_rest: Vec<(Vec<PlacedName<'a>>, Vec<PlacedName<'a>>)>,
    /// Names of what is said to wait for nothing.
    pub(super) free: Vec<PlacedName<'a>>,
    /// Whether anything is.
    pub(super) is_free: bool,
    /// Names of what is said to run at any time.
    pub(super) any_time: Vec<PlacedName<'a>>,
    /// Whether that applies to the phase or task that contains the sentence.
    pub(super) is_any_time: bool,
    /// What is said to wait for some others only.
    pub(super) only: Vec<(Vec<PlacedName<'a>>, Vec<PlacedName<'a>>)>,
    /// Names of what is said to wait only for what is stated of it.
    pub(super) as_stated: Vec<PlacedName<'a>>,
    /// Whether all phases are said to run one after the other.
    pub(super) is_in_order: bool,
    /// Whether all tasks of which nothing is stated are said to wait for nothing.
    pub(super) is_rest_free: bool,
    /// Sentences that surely speak of order and cannot be read.
    pub(super) unread: Vec<Offset>,
    /// Sentences in a task that may speak of the task or of a thing: "the parser depends on the schema".
    pub(super) ambiguous: Vec<Offset>,
}

/// Reads the sentences of one paragraph, item or task.
pub(super) fn read<'a>(
    name_reader: &NameReader<'_>,
    tokens: &[Token<'a>],
    voice: ClauseVoice,
) -> StatedOrder<'a> {
    let mut stated = StatedOrder::default();
    let mut topic: Option<Vec<PlacedName<'a>>> = None;
    let mut before: Option<Vec<PlacedName<'a>>> = None;
    let mut meant: Option<Vec<PlacedName<'a>>> = None;
    for clause in tokens.split(|token| token.what == Piece::Stop) {
        if voice == ClauseVoice::Section && is_advice(clause) {
            let mut reader = ClauseReader::new(name_reader, clause, voice, false, &mut stated);
            reader.note_phases_in_order(tokens);
            // "Stories proceed sequentially in priority order (P1 → P2 → P3)".
            reader.note_priorities();
            continue;
        }
        let mut reader = ClauseReader::new(name_reader, clause, voice, false, &mut stated);
        reader.antecedent.clone_from(&meant);
        reader.topic(&mut topic);
        let about = topic.as_deref().or(before.as_deref().filter(|_| omits_subject(clause)));
        reader.read(about);
        // In "Phase 1: T001 and T002 are small; T003 depends on both" the label is not what is meant.
        let own = reader.subject.clone().filter(|subject| topic.as_ref() != Some(subject));
        meant = own.or_else(|| Some(reader.last.take()?.members)).or(meant);
        before = reader.subject.take().or(before.filter(|_| omits_subject(clause)));
    }
    stated
}

/// Whether a clause leaves out its subject, as the second of "T023 depends on T021; can run in parallel with T022".
fn omits_subject(clause: &[Token<'_>]) -> bool {
    const WORDS: [&str; 8] = ["can", "may", "must", "also", "depends", "requires", "needs", "blocks"];
    clause.first().is_some_and(|token| token.is_word(&WORDS))
}

struct ClauseReader<'c, 'a> {
    name_reader: &'c NameReader<'c>,
    clause: &'c [Token<'a>],
    voice: ClauseVoice,
    stated: &'c mut StatedOrder<'a>,
    subject: Option<Vec<PlacedName<'a>>>,
    /// What is said to come first: "US1 and US2 must be completed first".
    comes_first: Option<Vec<PlacedName<'a>>>,
    /// What the clause before is about, which "both" and "them" stand for.
    antecedent: Option<Vec<PlacedName<'a>>>,
    /// The list that was named last, and the one before it.
    last: Option<List<'a>>,
    last_but_one: Option<List<'a>>,
    /// Lists in brackets after names, as in "Models (T001-T003) and pages (T004)".
    named: Vec<Vec<PlacedName<'a>>>,
    /// "After Phase 2, …": what the subject that is still to come waits for, where that ends, and where the keyword is
    /// if a sentence with it surely speaks of order.
    waited_for: Option<(Vec<PlacedName<'a>>, usize, Option<Offset>)>,
    /// Tasks that were just said to run in parallel, and where that ends: "T003, T004 in parallel after T001" continues with what
    /// they wait for.
    in_parallel: Option<(Vec<PlacedName<'a>>, usize)>,
    /// Whether the clause is in brackets.
    is_remark: bool,
    /// Whether it says "while" anywhere, or speaks of what belongs together. A clause may be as long as the file, so it is
    /// looked through once.
    has_while: bool,
    has_each: OnceCell<bool>,
    /// Where it first says "independent", without "of" or "from".
    independent_at: Option<usize>,
}

impl<'c, 'a> ClauseReader<'c, 'a> {
    fn new(
        name_reader: &'c NameReader<'c>,
        clause: &'c [Token<'a>],
        voice: ClauseVoice,
        is_remark: bool,
        stated: &'c mut StatedOrder<'a>,
    ) -> Self {
        // Only sections are asked for most of it, and a plan has many more tasks.
        let is_section = voice == ClauseVoice::Section;
        let has_while = is_section && has_any(clause, &["while"]);
        let independent_at = (0..clause.len()).filter(|_| is_section).find(|at| {
            is_word_at(clause, *at, &["independent"]) && !is_word_at(clause, at + 1, &["of", "from"])
        });
        Self {
            name_reader,
            clause,
            voice,
            stated,
            subject: None,
            comes_first: None,
            antecedent: None,
            last: None,
            last_but_one: None,
            named: Vec::new(),
            waited_for: None,
            in_parallel: None,
            is_remark,
            has_while,
            has_each: OnceCell::new(),
            independent_at,
        }
    }
}

impl<'a> ClauseReader<'_, 'a> {
    /// Whether the clause speaks of what belongs together, as "each test before its respective model".
    fn has_each(&self) -> bool {
        const EACH: [&str; 5] = ["paired", "respective", "respectively", "corresponding", "matching"];
        *self.has_each.get_or_init(|| has_any(self.clause, &EACH))
    }

    fn read(&mut self, topic: Option<&[PlacedName<'a>]>) {
        self.note_independence(topic);
        self.note_any_time();
        self.note_priorities();
        self.note_bare_needs(topic);
        self.note_bars();
        self.note_parallel_label();
        self.note_ordered_label();
        self.note_all_in_order();
        self.note_marked();
        let mut at = 0;
        while at < self.clause.len() {
            at = self.step(at, topic);
        }
        // "The API layer depends on T003": nothing that the plan knows waits for it.
        if let Some((_, _, Some(place))) = self.waited_for.take() {
            self.stated.unread.push(place);
        }
    }

    /// "**US3 (P1)**: Foundation + US2 - Progress": after the name, nothing but what it waits for.
    fn note_bare_needs(&mut self, topic: Option<&[PlacedName<'a>]>) {
        let Some(topic) = topic else { return };
        let Some(colon) = self.clause.iter().position(|token| token.what == Piece::Colon) else { return };
        // In "US1 ──┼── Phase 5: US4" the drawn line is between two names.
        let is_drawn = self.clause[..colon].iter().any(|token| token.what == Piece::Other);
        if self.voice != ClauseVoice::Section || self.is_remark || is_drawn {
            return;
        }
        let Some(list) = self.name_reader.list_at(self.clause, colon + 1) else { return };
        let is_phase = |(name, _): &PlacedName<'a>| !matches!(name, Name::Task(_) | Name::Range(..));
        let rest = &self.clause[list.end..];
        let ends = match rest.first().map(|token| token.what) {
            None | Some(Piece::Dash | Piece::Pause) => true,
            Some(Piece::Word(word)) => word.eq_ignore_ascii_case("only"),
            _ => false,
        };
        if ends && topic.iter().all(is_phase) && list.members.iter().all(is_phase) {
            let (who, on) = (topic.to_vec(), list.members);
            self.stated.claims.push(OrderClaim { who, on, force: Force::Firm });
        }
    }

    /// Takes what is at a position, and gives the next position.
    fn step(&mut self, at: usize, topic: Option<&[PlacedName<'a>]>) -> usize {
        match self.clause[at].what {
            Piece::Open => return self.parenthetical(at),
            Piece::Arrow(true) if self.voice == ClauseVoice::Task => return self.arrow_to_need(at),
            Piece::Word("with" | "vs") if self.is_parallel_mark(at) => return self.parallel_with(at, topic),
            Piece::OpenSquare if self.voice == ClauseVoice::Section => {
                return behind_parenthesis(self.clause, at).max(at + 1);
            }
            _ => {}
        }
        if let Some(list) = self.name_reader.list_at(self.clause, at) {
            self.note_must_be_done(&list, topic);
            return self.list(at, list);
        }
        match self.keyword_at(at) {
            Some(keyword) => self.keyword(at, keyword, topic),
            None => {
                self.note_adverb(at);
                self.note_first(at);
                at + 1
            }
        }
    }

    fn list(&mut self, at: usize, list: List<'a>) -> usize {
        if self.is_place(at, &list) {
            let end = list.end;
            self.last.iter_mut().for_each(|last| last.end = end);
            return end;
        }
        // In "after foundational setup" the second title continues the first; it is not a subject.
        if let Some((on, ..)) = self.waited_for.take_if(|(_, end, _)| *end < at) {
            let force = self.force();
            self.stated.claims.push(OrderClaim { who: list.members.clone(), on, force });
        }
        // "### API wiring (depends on T005)": in a heading, the brackets after the title belong to the sentence.
        if self.voice == ClauseVoice::Phase && self.clause[list.end - 1].what == Piece::Close {
            return (at + 1..list.end).find(|at| self.clause[*at].what == Piece::Open).unwrap_or(list.end);
        }
        // "US1's build (T005) depends on …" is about T005, not about the story.
        let is_owner = matches!(piece_at(self.clause, list.end), Some(Piece::Word("s")));
        let is_subject = self.subject.is_none() || self.is_next_subject(at, &list);
        if is_subject && self.voice == ClauseVoice::Section && !is_owner {
            self.subject = Some(list.members.clone());
        }
        let end = list.end;
        if self.voice == ClauseVoice::Section && self.is_arrow(self.behind_words(end)) {
            return self.arrows(list);
        }
        self.named.clear();
        self.note_relative(at, &list);
        self.note_parallel_parenthetical(&list);
        self.note_as_stated(&list);
        self.note_before_this(&list);
        self.note_predicate(at, &list);
        self.last_but_one = self.last.replace(list);
        end
    }

    /// In "T006-T020 in User Story 1 can run in parallel" the story only tells where the tasks are.
    fn is_place(&self, at: usize, list: &List<'a>) -> bool {
        const BEFORE: [&str; 4] = ["in", "within", "of", "from"];
        let is_before = |at: usize| self.clause[at].is_word(&BEFORE);
        let of_tasks = |last: &List<'a>| {
            last.members.iter().all(is_of_tasks) && last.end + 1 == at && is_before(last.end)
        };
        self.voice == ClauseVoice::Section
            && self.last.as_ref().is_some_and(of_tasks)
            && !list.members.iter().any(is_of_tasks)
    }

    /// The "with" of "T008 [P] with T005/T006", the "vs" of "T008 [P] vs T005".
    fn is_parallel_mark(&self, at: usize) -> bool {
        let mark = [Piece::OpenSquare, Piece::Word("P"), Piece::CloseSquare];
        let tokens = at.checked_sub(3).map(|start| &self.clause[start..at]);
        self.voice == ClauseVoice::Section
            && tokens.is_some_and(|tokens| tokens.iter().map(|token| token.what).eq(mark))
    }

    fn parallel_with(&mut self, at: usize, topic: Option<&[PlacedName<'a>]>) -> usize {
        let Some(list) = self.name_reader.list_at(self.clause, at + 1) else { return at + 1 };
        let who = self.subject_of(at, Sense::Unrelated, topic);
        self.note_unrelated(who, list.members);
        list.end
    }

    /// Notes that none of some needs to wait for one of the others, nor these for them.
    fn note_unrelated(&mut self, some: Vec<PlacedName<'a>>, others: Vec<PlacedName<'a>>) {
        self.stated.unrelated.push((some.clone(), others.clone()));
        self.stated.unrelated.push((others, some));
    }

    fn force(&self) -> Force {
        if self.is_remark { Force::Loose } else { Force::Firm }
    }

    fn keyword_at(&self, at: usize) -> Option<Keyword> {
        keyword_at(self.clause, at, self.voice)
    }

    fn is_arrow(&self, at: usize) -> bool {
        matches!(piece_at(self.clause, at), Some(Piece::Arrow(_)))
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each sense of a keyword")]
    fn keyword(&mut self, at: usize, keyword: Keyword, topic: Option<&[PlacedName<'a>]>) -> usize {
        match keyword.sense {
            Sense::Postfix => return self.postfix(at, keyword),
            Sense::PostfixBlocks => return self.postfix_blocks(at, keyword),
            _ => {}
        }
        self.join_named(at);
        let kind = self.kind_of_numbers(topic);
        let object = self.object_at(keyword, kind.as_ref()).or_else(|| self.implied_object(keyword));
        if let Some(end) = self.note_others_of_phase(at, keyword, topic) {
            return end;
        }
        if is_denied(self.clause, at) || keyword.sense == Sense::Unrelated {
            let Some((mut object, end)) = object else {
                self.note_mutual_independence(at, keyword);
                return keyword.end;
            };
            // In the text of a task, "does not need T001" is about much else; "(parallel with T001)" and "does not depend on T001"
            // are about the two.
            let is_depends = matches!(self.clause[at].what, Piece::Word(word) if word.starts_with("depend"));
            let is_of_both =
                keyword.sense == Sense::Unrelated || is_depends && object.iter().all(is_of_tasks);
            if (self.voice != ClauseVoice::Task || is_of_both) && !self.is_remark {
                let who = self.subject_of(at, keyword.sense, topic);
                // "parallel with all" means those after it too.
                object
                    .iter_mut()
                    .filter(|(name, _)| *name == Name::AllBefore)
                    .for_each(|(name, _)| *name = Name::AllOthers);
                if keyword.sense == Sense::Unrelated {
                    self.stated.unrelated.push((object.clone(), who.clone()));
                } else if keyword.sense == Sense::Waits {
                    self.stated.denied.push((who.clone(), object.clone()));
                }
                self.stated.unrelated.push((who, object));
            }
            return end;
        }
        if keyword.sense == Sense::Sequential {
            let Some((object, end)) = object else { return keyword.end };
            let who = self.subject_of(at, keyword.sense, topic);
            self.in_file_order(who, object);
            return end;
        }
        if self.is_mutual(at, keyword, topic)
            || self.is_mere_use(at)
            || object.is_none() && self.note_depends_on_this(at, keyword)
        {
            return keyword.end;
        }
        let has_name = self.last.as_ref().is_some_and(|list| list.end == at);
        let is_another = object.is_some() && self.is_about_another_part(at, topic);
        let is_of_part = !has_name && (is_another || is_of_some_part(self.clause, at));
        if keyword.sense == Sense::Waits && self.voice == ClauseVoice::Section && is_of_part {
            if !self.explains(at) {
                self.stated.unread.push(self.clause[at].at);
            }
            return object.map_or(keyword.end, |(_, end)| end);
        }
        if self.voice == ClauseVoice::Section && self.leaves_open(at, object.as_ref().map(|(_, end)| *end)) {
            return object.map_or(keyword.end, |(_, end)| end);
        }
        let of_tasks = object.as_ref().is_some_and(|(object, _)| object.iter().all(is_of_tasks));
        // "(corrected after US1 hit this)" in the text of a task tells a story.
        let is_narrative =
            !of_tasks && !keyword.is_certain && object.as_ref().is_some_and(|(_, end)| self.is_counted(*end));
        if self.voice == ClauseVoice::Task && is_narrative {
            return keyword.end;
        }
        if self.voice == ClauseVoice::Section && !of_tasks && self.is_about_a_part(at, topic) {
            self.stated.unread.push(self.clause[at].at);
            return object.map_or(keyword.end, |(_, end)| end);
        }
        if self.is_denied_before(object.as_ref().map(|(object, _)| &object[..]), keyword, topic) {
            return object.map_or(keyword.end, |(_, end)| end);
        }
        let in_parallel =
            self.in_parallel.take().filter(|(_, end)| *end == at && keyword.sense == Sense::Waits);
        let is_parallel = in_parallel.is_some();
        let who = in_parallel.map_or_else(|| self.subject_of(at, keyword.sense, topic), |(tasks, _)| tasks);
        let before_comma = self.object_before_comma(at, keyword);
        let who = if before_comma.is_some() { Vec::new() } else { who };
        let object = before_comma.or(object).or_else(|| self.object_of_next(keyword, kind.as_ref()));
        let object = object.or_else(|| self.phase_by_words(keyword));
        let Some((object, end)) = object else {
            let place = self.clause[at].at;
            if self.states_unread_order(at, keyword) && !self.is_already_stated(&who, keyword) {
                self.stated.unread.push(place);
            } else if self.is_ambiguous_dependency(at, keyword) {
                self.stated.ambiguous.push(place);
            }
            return keyword.end;
        };
        self.last = Some(List::new(object.clone(), at, end));
        // "US1 first, then US2, then US3": the second "then" follows upon US2.
        if keyword.sense == Sense::Then {
            self.comes_first = None;
        }
        // "Prerequisites for US2: US1".
        let who =
            if keyword.sense == Sense::Blocks && who.is_empty() { self.named_behind_colon(end) } else { who };
        if self.voice.is_own() || !who.is_empty() {
            // A long list of what runs in parallel after T013 may hold tasks that come before it.
            let is_permitted = keyword.sense == Sense::Blocks && is_permitted_before(self.clause, at);
            if is_permitted {
                self.stated.unrelated.push((who.clone(), object.clone()));
            }
            let is_loose =
                is_parallel || is_permitted || is_wish(self.clause, at, 3) || self.is_incidental(at, keyword);
            let force = match self.force() {
                _ if is_loose => Force::Loose,
                Force::Firm if keyword.sense == Sense::Blocks => Force::Blocking,
                force => force,
            };
            let says_only = self.says_only(at, keyword.end, end)
                || self.starts_independently(at)
                || self.starts_immediately(at, &who, &object)
                || is_parallel;
            if keyword.sense == Sense::Waits && says_only {
                self.stated.only.push((who.clone(), object.clone()));
            }
            let (who, on) = match keyword.sense {
                Sense::Waits | Sense::Postfix => (who, object),
                _ => (object, who),
            };
            // "Tests (T001, T003) before their paired implementation (T002, T004)": each waits for its own.
            if who.len() > 1 && who.len() == on.len() && self.has_each() {
                let pairs = who.into_iter().zip(on);
                let claims = pairs.map(|(who, on)| OrderClaim { who: vec![who], on: vec![on], force });
                self.stated.claims.extend(claims);
            } else {
                self.stated.claims.push(OrderClaim { who, on, force });
            }
        } else if keyword.sense == Sense::Waits && !self.is_remark {
            let place = keyword.is_certain.then(|| self.clause[at].at);
            self.waited_for = Some((object, end, place));
        }
        end
    }

    /// Notes that some wait for others or these for them: remarks count only so far as they follow the order of the file.
    fn in_file_order(&mut self, some: Vec<PlacedName<'a>>, others: Vec<PlacedName<'a>>) {
        if self.voice.is_own() || !some.is_empty() {
            let (who, on, force) = (some.clone(), others.clone(), Force::Loose);
            self.stated.claims.push(OrderClaim { who, on, force });
            self.stated.claims.push(OrderClaim { who: others, on: some, force });
        }
    }

    /// "US1 and US2 must be completed first as they are the foundation, then US3": what "then" follows upon.
    fn note_first(&mut self, at: usize) {
        const SHORTLY: usize = 4;
        let is_first = self.clause[at].is_word(&["first"]);
        let is_near = |list: &&List<'a>| list.end <= at && at - list.end <= SHORTLY;
        let list =
            self.last.as_ref().filter(is_near).filter(|_| is_first && self.voice == ClauseVoice::Section);
        self.comes_first = list.map(|list| list.members.clone()).or(self.comes_first.take());
    }
}
