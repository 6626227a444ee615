//! Clauses that say less than their keyword: they leave open what comes first ("after US1 or in parallel"), speak of a part ("route
//! integration depends on US1"), or name what the plan does not know ("the parser depends on the schema").

use super::{
    super::{
        keywords::{ClauseVoice, Keyword, Sense, is_none_word},
        name_reader::{List, PlacedName, same_names},
        tokens::{Piece, Token, is_one_of, is_word_at, lower_word_at, word_at},
    },
    ClauseReader, is_of_tasks,
};

impl<'a> ClauseReader<'_, 'a> {
    /// "can proceed after US1 or in parallel", "after Phase 2, or after US1": one way of two is no dependency.
    pub(super) fn leaves_open(&self, at: usize, end: Option<usize>) -> bool {
        const MOST_WORDS: usize = 3;
        let is = |at: usize, wanted: &[&str]| is_word_at(self.clause, at, wanted);
        let is_second = at > 0 && is(at - 1, &["or"]) && is(at, &["after", "once"]);
        let is_word = |at: &usize| word_at(self.clause, *at).is_some();
        let is_parallel = |or: usize| {
            is(or + 1, &["in"]) && is(or + 2, &["parallel"])
                || is(or + 1, &["concurrently", "simultaneously"])
        };
        let is_first = end.is_some_and(|end| {
            // "… after at least one P2 story completes or in parallel".
            let or = (end..=end + MOST_WORDS).take_while(is_word).find(|at| is(*at, &["or"]));
            or.is_some_and(is_parallel)
        });
        is_second || is_first
    }

    /// "US3: independent — may start the US3 dialog after US2", "US5: independent but needs US1 data": what the item is about
    /// does not wait as a whole.
    pub(super) fn is_about_a_part(&self, at: usize, topic: Option<&[PlacedName<'a>]>) -> bool {
        const NEEDS: [&str; 4] = ["needs", "need", "requires", "require"];
        const WHOLE: [&str; 10] =
            ["implementation", "work", "story", "phase", "tasks", "starts", "start", "begins", "runs", "is"];
        let word = |at: usize| lower_word_at(self.clause, at);
        // "(independent of the handlers) — only requires Phase A" tells what the item does not wait for.
        let says_independent = self.independent_at.is_some_and(|independent| independent < at);
        if says_independent && NEEDS.contains(&word(at).as_str()) {
            return true;
        }
        let is_topic = |list: &List<'a>| topic.is_some_and(|topic| same_names(topic, &list.members));
        let is_again =
            self.last.as_ref().is_some_and(|list| is_topic(list) && list.end + 1 == at && list.last > 0);
        is_again
            && self.last_but_one.is_some()
            && matches!(word(at).as_str(), "after" | "once")
            && !WHOLE.contains(&word(at - 1).as_str())
    }

    /// "US3: depends on Phase 2; route integration depends on US1": what the item waits for has been said, and a part of it waits for
    /// more.
    pub(super) fn is_about_another_part(&self, at: usize, topic: Option<&[PlacedName<'a>]>) -> bool {
        const PARTS: usize = 2;
        const SAME: [&str; 10] =
            ["it", "this", "that", "which", "also", "and", "but", "story", "phase", "implementation"];
        let was_stated = |topic: &[PlacedName<'a>]| {
            self.stated.claims.last().is_some_and(|claim| same_names(&claim.who, topic))
        };
        let is_other = |token: &Token<'_>| matches!(token.what, Piece::Word(word) if !is_one_of(word, &SAME));
        let is_depends = self.clause[at].is_word(&["depends", "depend"]);
        is_depends
            && at >= PARTS
            && self.clause[at - PARTS..at].iter().all(is_other)
            && topic.is_some_and(was_stated)
    }

    /// "US2 builds on US1 but is independently testable" is no dependency, nor is "can start after Phase 2 but builds on US1" or "logically
    /// follows US1 but technically independent".
    pub(super) fn is_mere_use(&self, at: usize) -> bool {
        const SHORTLY: usize = 24;
        const VAGUE: [&str; 6] = ["builds", "build", "relies", "rely", "follows", "follow"];
        let is = |token: &Token<'_>, wanted: &[&str]| token.is_word(wanted);
        let says = |tokens: &[Token<'a>], wanted: &[&str]| tokens.iter().any(|token| is(token, wanted));
        let behind = &self.clause[at..self.clause.len().min(at + SHORTLY)];
        let before = &self.clause[at.saturating_sub(SHORTLY)..at];
        is(&self.clause[at], &VAGUE)
            && (says(behind, &["independent", "independently", "standalone"])
                || says(before, &["can"]) && says(before, &["start", "begin"]) && says(before, &["but"]))
    }

    /// "US1: independent of US2 for the code, but needs US2 for the tests": what the item does not wait for as a whole.
    pub(super) fn is_denied_before(
        &self,
        object: Option<&[PlacedName<'a>]>,
        keyword: Keyword,
        topic: Option<&[PlacedName<'a>]>,
    ) -> bool {
        let (Some(object), Some(topic)) = (object, topic) else { return false };
        let has =
            |list: &[PlacedName<'a>], name: &PlacedName<'a>| list.iter().any(|(other, _)| *other == name.0);
        let is_denied = |(who, others): &(Vec<PlacedName<'a>>, Vec<PlacedName<'a>>)| {
            same_names(who, topic) && object.iter().all(|name| has(others, name))
        };
        keyword.sense == Sense::Waits
            && self.voice == ClauseVoice::Section
            && self.stated.unrelated.iter().any(is_denied)
    }

    /// "Phase 4 depends on Phase 3 because the report requires its facts": a reason for what was said.
    pub(super) fn explains(&self, at: usize) -> bool {
        const SHORTLY: usize = 16;
        let is_because = |token: &Token<'_>| token.is_word(&["because"]);
        self.clause[at.saturating_sub(SHORTLY)..at].iter().any(is_because)
    }

    /// Whether a keyword without an object that can be read surely states an order, which is then reported.
    pub(super) fn states_unread_order(&self, at: usize, keyword: Keyword) -> bool {
        let Piece::Word(word) = self.clause[at].what else { return false };
        let is = |known: &[&str]| is_one_of(word, known);
        // "depending on the flag" is a condition.
        if !keyword.is_certain || is(&["depending"]) || self.says_none(at) {
            return false;
        }
        if self.voice == ClauseVoice::Section {
            return true;
        }
        let is_stated = self.voice == ClauseVoice::Phase || is(&["depends", "depend", "blocked"]);
        is(&["depends"]) && self.is_about_itself(at) || is_stated && self.is_separate(at)
    }

    /// "The parser depends on the schema", in a task: as its title this states an order that cannot be read, further down it
    /// speaks of a thing.
    pub(super) fn is_ambiguous_dependency(&self, at: usize, keyword: Keyword) -> bool {
        const BEFORE: [&str; 6] = ["that", "what", "anything", "everything", "who", "longer"];
        let is = |at: usize, known: &[&str]| self.clause.get(at).is_some_and(|token| token.is_word(known));
        self.voice == ClauseVoice::Task
            && keyword.is_certain
            && is(at, &["depends"])
            && !at.checked_sub(1).is_some_and(|before| is(before, &BEFORE))
            && !self.says_none(at)
    }

    /// "US3: starts after Foundational; depends on stable primitives": what it waits for has been said. "T021-T024 depend on all
    /// component tasks": these come before them.
    pub(super) fn is_already_stated(&self, who: &[PlacedName<'a>], keyword: Keyword) -> bool {
        let is_all = is_word_at(self.clause, keyword.end, &["all"]);
        let was_stated = self.stated.claims.last().is_some_and(|claim| same_names(&claim.who, who));
        !who.is_empty() && (was_stated || is_all && who.iter().all(is_of_tasks))
    }

    /// "Depends on: (none — can start at once)".
    pub(super) fn says_none(&self, at: usize) -> bool {
        const SHORTLY: usize = 6;
        let end = self.clause.len().min(at + SHORTLY);
        // "no" and "n" mean much else in a sentence.
        let is_none = |word: &str| word.len() > 2 && is_none_word(word);
        self.clause[at..end].iter().any(|token| matches!(token.what, Piece::Word(word) if is_none(word)))
    }

    /// "(depends on the schema)", "…; depends on the schema": apart from the title of the task.
    pub(super) fn is_separate(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.clause.get(before));
        before.is_none_or(|token| {
            matches!(
                token.what,
                Piece::Open | Piece::OpenSquare | Piece::Dash | Piece::Pause | Piece::Comma | Piece::Colon
            )
        })
    }

    /// "…, which depends on the schema", "this task depends on the schema": what a task or phase says of itself. "`api` depends on
    /// postgres" speaks of something else.
    pub(super) fn is_about_itself(&self, at: usize) -> bool {
        const BEFORE: [&str; 12] =
            ["which", "it", "this", "and", "but", "also", "task", "phase", "story", "step", "only", "still"];
        let before = at.checked_sub(1).and_then(|before| self.clause.get(before));
        before.is_some_and(|token| token.is_word(&BEFORE))
    }

    /// In the text of a task, "behaves the same after the T030 extraction" tells about something else than "(after T030)"
    /// does: it counts only so far as it follows the order of the file.
    pub(super) fn is_incidental(&self, at: usize, keyword: Keyword) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.clause.get(before));
        let begins = before.is_none_or(|token| !matches!(token.what, Piece::Word(_) | Piece::Id(_)));
        let is_once = self.clause[at].is_word(&["once"]);
        self.voice == ClauseVoice::Task
            && !keyword.is_certain
            && keyword.sense == Sense::Waits
            && !begins
            && !is_once
    }
}
