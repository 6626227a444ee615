//! What is named by other words: "both", "them", "each other", "tests".

use super::{
    super::{
        keywords::{ClauseVoice, Keyword, Sense, keyword_at},
        mentions::{List, Name, PlacedName, behind_parenthesis},
        tokens::{Piece, Token},
    },
    ClauseReader, Force, OrderClaim, is_of_tasks,
};

impl<'a> ClauseReader<'_, 'a> {
    /// What something waits for or runs beside, told in other words: "T010 and T011 in parallel; T012 is independent of both" means what the
    /// sentence before is about, "concurrently with the backend (T013, T018)" what stands in the brackets.
    pub(super) fn told_object(&self, keyword: Keyword) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const MOST_WORDS: usize = 5;
        let word = |at: usize| match self.clause.get(at).map(|token| token.what) {
            Some(Piece::Word(word)) => word,
            _ => "",
        };
        // "T003 depends on both", but not "… on both the page and the form".
        let is_whole = word(keyword.end + 1).is_empty() && keyword.sense == Sense::Waits;
        let meant = self.meant_by_pronoun(keyword.end + 1);
        if let Some(meant) = meant.filter(|_| is_whole || keyword.sense == Sense::Unrelated) {
            return Some((meant, keyword.end + 1));
        }
        if keyword.sense != Sense::Unrelated {
            return None;
        }
        if word(keyword.end).eq_ignore_ascii_case("tests") && word(keyword.end + 1).is_empty() {
            return Some((vec![(Name::Tests, self.clause[keyword.end].at)], keyword.end + 1));
        }
        let is_plain =
            |at: &usize| !word(*at).is_empty() && keyword_at(self.clause, *at, self.voice).is_none();
        let open = keyword.end + (keyword.end..).take(MOST_WORDS).take_while(is_plain).count();
        let is_open = self.clause.get(open).is_some_and(|token| token.what == Piece::Open);
        let tasks = self.bracketed_tasks(open).filter(|_| is_open)?;
        Some((tasks, behind_parenthesis(self.clause, open)))
    }

    /// What "both" and "they" right before a position stand for: "T023 and T024 (two files, both depend on T022)".
    pub(super) fn meant_by_pronoun(&self, at: usize) -> Option<Vec<PlacedName<'a>>> {
        const PRONOUNS: [&str; 5] = ["both", "they", "them", "these", "those"];
        let Piece::Word(word) = self.clause.get(at.checked_sub(1)?)?.what else { return None };
        let is_pronoun = PRONOUNS.iter().any(|known| word.eq_ignore_ascii_case(known));
        self.antecedent.clone().filter(|_| is_pronoun)
    }

    /// "US1 establishes the model, which US2 depends on": what a clause behind "which" needs is what the sentence is about.
    pub(super) fn note_relative(&mut self, at: usize, list: &List<'a>) {
        const VERBS: [&str; 12] = [
            "depend", "depends", "extend", "extends", "need", "needs", "require", "requires", "reuse",
            "reuses", "build", "builds",
        ];
        let word = |at: usize| match self.clause.get(at).map(|token| token.what) {
            Some(Piece::Word(word)) => word.to_ascii_lowercase(),
            _ => String::new(),
        };
        let is_relative =
            at.checked_sub(1).is_some_and(|before| matches!(word(before).as_str(), "which" | "that"));
        let end = list.end + 1 + usize::from(matches!(word(list.end + 1).as_str(), "on" | "upon"));
        let is_whole = VERBS.contains(&word(list.end).as_str()) && end == self.clause.len();
        let on = self.subject.clone().filter(|on| is_relative && is_whole && *on != list.members);
        if let Some(on) = on.filter(|_| self.voice == ClauseVoice::Section) {
            self.said.claims.push(OrderClaim { who: list.members.clone(), on, force: Force::Firm });
        }
    }

    /// "US1 must be complete before this phase", below the heading of the phase.
    pub(super) fn note_before_this(&mut self, list: &List<'a>) {
        const SHORTLY: usize = 8;
        let is = |token: &Token<'_>, wanted: &str| matches!(token.what, Piece::Word(word) if word.eq_ignore_ascii_case(wanted));
        let behind = &self.clause[list.end..self.clause.len().min(list.end + SHORTLY)];
        let before = behind.iter().position(|token| is(token, "before"));
        let is_this = before.is_some_and(|at| behind[at..].iter().any(|token| is(token, "this")));
        if is_this && self.voice == ClauseVoice::Phase {
            let on = list.members.clone();
            self.said.claims.push(OrderClaim { who: Vec::new(), on, force: Force::Firm });
        }
    }

    /// "T002 and T003 have no dependencies on each other": they run beside each other.
    pub(super) fn note_mutual_freedom(&mut self, keyword: Keyword) {
        let is_each = matches!(self.clause.get(keyword.end).map(|token| token.what), Some(Piece::Word(word)) if word.eq_ignore_ascii_case("each"));
        let list = self.last.clone().filter(|_| is_each && self.voice == ClauseVoice::Section);
        if let Some(list) = list {
            self.let_run_beside(&list);
        }
    }

    /// "T002 and T003 depend on each other": they run one behind the other.
    pub(super) fn is_mutual(
        &mut self,
        at: usize,
        keyword: Keyword,
        topic: Option<&[PlacedName<'a>]>,
    ) -> bool {
        let is = |at: usize, wanted: &str| matches!(self.clause.get(at).map(|token| token.what), Some(Piece::Word(word)) if word.eq_ignore_ascii_case(wanted));
        let is_mutual = is(keyword.end, "each") && is(keyword.end + 1, "other");
        if is_mutual && self.voice == ClauseVoice::Section && keyword.sense == Sense::Waits {
            let tasks = self.subject_of(at, keyword.sense, topic);
            self.said.chains.extend(Some(tasks).filter(|tasks| tasks.iter().all(is_of_tasks)));
        }
        is_mutual
    }
}
