//! Chains of arrows: "T001 → T002, T003 → T004". Their direction only the whole section can tell.

use super::{
    super::{
        keywords::{Sense, is_parallel_word},
        name_reader::{List, PlacedName},
        tokens::{Piece, Token, piece_at},
    },
    ArrowClaim, ClauseReader, Force, OrderClaim, is_of_tasks,
};

/// Whether a word tells what something is for or part of.
fn is_preposition(token: &Token<'_>) -> bool {
    const WORDS: [&str; 8] = ["for", "of", "from", "with", "in", "by", "para", "für"];
    token.is_word(&WORDS)
}

impl<'a> ClauseReader<'_, 'a> {
    /// A chain of arrows that begins with a list.
    pub(super) fn arrows(&mut self, first: List<'a>) -> usize {
        self.note_parallel_parenthetical(&first);
        let mut left = first;
        let mut at = self.behind_words(left.end);
        while let Some(Piece::Arrow(points_left)) = piece_at(self.clause, at) {
            let Some((right, is_worded)) = self.right_of(at + 1, points_left) else {
                at += 1;
                break;
            };
            if is_worded {
                // "Phase 4 → after Phase 2": the word says it, the arrow only leads to it.
                self.last = Some(left);
                return at + 1;
            }
            let right = self.without_topic(right);
            let end = right.end;
            self.note_parallel_parenthetical(&right);
            self.note_parenthetical_of_line(&right);
            let (pairs, rest) = self.split_pairs(right);
            if !self.is_result(end) {
                let (left, right) = (left.members.clone(), pairs);
                self.stated.arrows.push(if points_left {
                    ArrowClaim { left: right, right: left }
                } else {
                    ArrowClaim { left, right }
                });
            }
            left = rest;
            at = self.behind_words(end);
        }
        self.last = Some(left);
        at
    }

    /// "Add the index ← T009": what a task waits for.
    pub(super) fn arrow_to_need(&mut self, at: usize) -> usize {
        let list = self.name_reader.list_at(self.clause, at + 1);
        let Some(list) = list.filter(|list| list.members.iter().all(is_of_tasks)) else { return at + 1 };
        self.stated.claims.push(OrderClaim { who: Vec::new(), on: list.members, force: Force::Firm });
        list.end
    }

    /// What an arrow leads to, and whether a keyword comes before it. In "Phase 2 ← BLOCKER: all stories wait" and "US5 → better
    /// settings for all stories" the words after the arrow explain the phase.
    pub(super) fn right_of(&self, at: usize, points_left: bool) -> Option<(List<'a>, bool)> {
        const SHORTLY: usize = 6;
        for start in at..self.clause.len().min(at + SHORTLY) {
            let between = &self.clause[at..start];
            let has_words = between.iter().any(|token| matches!(token.what, Piece::Word(_)));
            let is_explained = has_words && (points_left || between.last().is_some_and(is_preposition));
            if let Some(list) = self.name_reader.list_at(self.clause, start).filter(|_| !is_explained) {
                // "Phase 3 → Phase 2 완료 후".
                let is_postfix = |at: &usize| {
                    let keyword = self.clause.get(*at).and_then(|_| self.keyword_at(*at));
                    keyword.is_some_and(|keyword| keyword.sense == Sense::Postfix)
                };
                // "T039 → 可與 US2 並行".
                let is_parallel = matches!(piece_at(self.clause, list.end), Some(Piece::Word(word)) if !word.is_ascii() && is_parallel_word(word));
                let is_worded = is_parallel || (list.end..list.end + 2).any(|at| is_postfix(&at));
                return Some((list, is_worded));
            }
            if self.keyword_at(start).is_some() {
                return Some((List::new(Vec::new(), start, start), true));
            }
            // "share a file → sequential, in order US1 → US2".
            let is_end = has_words && self.clause[start].what == Piece::Comma;
            if is_end || matches!(self.clause[start].what, Piece::Arrow(_)) {
                return None;
            }
            // An arrow may lead into brackets: "T001 → (T002, T003) → T004".
        }
        None
    }

    /// In `T010 → T011, T012는 T009와 병렬` the last member begins the next sentence.
    fn without_topic(&self, mut list: List<'a>) -> List<'a> {
        let behind = piece_at(self.clause, list.end);
        let is_topic = matches!(behind, Some(Piece::Word("는" | "은" | "は")));
        if is_topic && list.members.len() > 1 && list.is_comma_list {
            list.members.pop();
            list.end = list.last;
        }
        list
    }

    /// "T001 → T002, T003 → T004" is two pairs: the list between the arrows is cut in two.
    pub(super) fn split_pairs(&self, mut right: List<'a>) -> (Vec<PlacedName<'a>>, List<'a>) {
        let goes_on = self.is_arrow(self.behind_words(right.end));
        let is_grouped = right.last > 1
            && right.members.len() > 1
            && ((0..right.last)
                .rev()
                .take(4)
                .any(|at| matches!(self.clause[at].what, Piece::Open | Piece::OpenSquare))
                || self.is_parallel_mark(right.end));
        if goes_on && right.is_comma_list && right.members.len() == 2 && !is_grouped {
            let second = right.members.split_off(1);
            let rest = List { members: second, ..right.clone() };
            return (right.members, rest);
        }
        (right.members.clone(), right)
    }

    /// "T008 → T003 passes": the arrow leads to a result.
    pub(super) fn is_result(&self, at: usize) -> bool {
        matches!(piece_at(self.clause, at), Some(Piece::Word(word)) if matches!(word, "passes" | "pass" | "green" | "turns" | "fails"))
    }

    /// After the words that explain a member of a chain, if an arrow follows them.
    pub(super) fn behind_words(&self, at: usize) -> usize {
        const SHORTLY: usize = 10;
        for next in at..self.clause.len().min(at + SHORTLY) {
            match self.clause[next].what {
                Piece::Arrow(_) => return next,
                Piece::Word(_) if self.keyword_at(next).is_some() => return at,
                Piece::Id(_) | Piece::Comma | Piece::Open | Piece::Dash | Piece::Pause => return at,
                _ => {}
            }
        }
        at
    }
}
