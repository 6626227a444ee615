//! From clauses to what waits for nothing, or for nothing else: "no dependencies", "can start immediately", "can run at any time",
//! "depends only on Phase 2".

use super::{
    super::{
        keywords::{ClauseVoice, Sense, is_denied, is_parallel_token},
        name_reader::{List, PlacedName},
        tokens::{Piece, Token, is_one_of, is_word_at, piece_at, word_at},
    },
    ClauseReader, is_of_tasks,
};

impl<'a> ClauseReader<'_, 'a> {
    /// "Setup (Phase 1): no dependencies", "can start immediately".
    pub(super) fn note_independence(&mut self, topic: Option<&[PlacedName<'a>]>) {
        if self.voice == ClauseVoice::Task || self.is_remark {
            return;
        }
        let word = |at: usize| word_at(self.clause, at).map(str::to_lowercase).unwrap_or_default();
        let says = |first: &[&str], second: &[&str]| {
            (0..self.clause.len()).any(|at| {
                first.contains(&word(at).as_str())
                    && second.contains(&word(at + 1).as_str())
                    && !matches!(word(at + 2).as_str(), "on" | "between" | "after" | "once")
            })
        };
        let is_free = says(&["no", "zero"], &["dependencies", "deps", "dependency", "prerequisites"])
            || says(&["start", "starts", "begin"], &["immediately"])
            || (0..self.clause.len()).any(|at| matches!(word(at).as_str(), "无依赖" | "無依賴"))
            || says(&["fully", "completely", "totally"], &["independent"])
            || self.says_independent();
        let has_keyword = (0..self.clause.len()).any(|at| {
            self.keyword_at(at).is_some_and(|k| k.sense != Sense::Unrelated) && !is_denied(self.clause, at)
        });
        if self.speaks_of_rest() && (is_free || self.clause.iter().any(is_parallel_token)) {
            self.stated.is_rest_free = true;
            return;
        }
        if !is_free || has_keyword {
            return;
        }
        self.stated.is_free = true;
        // What the clause itself names goes before what the item is about.
        let own = self.name_reader.list_at(self.clause, 0).filter(|_| self.voice == ClauseVoice::Section);
        let names = own.map(|list| list.members).or_else(|| topic.map(<[_]>::to_vec)).unwrap_or_default();
        if self.any_time().is_some() {
            self.stated.any_time.extend(names.iter().cloned());
        }
        self.stated.free.extend(names);
    }

    /// "Tasks not listed here have no dependencies", "Unlisted tasks can run in parallel".
    fn speaks_of_rest(&self) -> bool {
        const NEAR: usize = 3;
        const LISTED: [&str; 8] =
            ["listed", "shown", "mentioned", "named", "noted", "explicit", "stated", "declared"];
        let is = |at: usize, wanted: &[&str]| self.clause[at].is_word(wanted);
        let speaks_of_tasks = (0..self.clause.len()).any(|at| is(at, &["task", "tasks"]));
        let is_rest = |at: usize| {
            let near = at + 1..self.clause.len().min(at + 1 + NEAR);
            is(at, &["unlisted"]) || is(at, &["not", "without"]) && near.into_iter().any(|at| is(at, &LISTED))
        };
        self.voice == ClauseVoice::Section && speaks_of_tasks && (0..self.clause.len()).any(is_rest)
    }

    /// "T017–T026 follow their noted deps": they wait for nothing else.
    pub(super) fn note_as_stated(&mut self, list: &List<'a>) {
        const FAR: usize = 8;
        let behind = &self.clause[list.end..self.clause.len().min(list.end + FAR)];
        let position = |wanted: &[&str]| {
            let is_among = |word: &str| is_one_of(word, wanted);
            behind.iter().position(|token| matches!(token.what, Piece::Word(word) if is_among(word)))
        };
        let verb = position(&["follow", "follows", "respect", "per", "according"]);
        let owner = position(&["their", "its", "noted", "listed", "stated", "declared", "explicit"]);
        let needs = position(&["deps", "dependencies", "dependency", "prerequisites"]);
        let is_meant = verb.is_some() && verb < owner && owner < needs;
        if is_meant && self.voice == ClauseVoice::Section && list.members.iter().all(is_of_tasks) {
            self.stated.as_stated.extend(list.members.iter().cloned());
        }
    }

    /// "Write the docs (can be done anytime)": what a task says about itself is separate from its title, so "users can cancel at
    /// any time" is none. "any time after T003" counts only if what comes first can be read.
    pub(super) fn note_any_time(&mut self) {
        const MODALS: [&str; 3] = ["can", "may", "could"];
        const WORDS: [&str; 26] = [
            "at", "be", "done", "run", "start", "started", "begin", "executed", "implemented", "written",
            "happen", "worked", "on", "in", "parallel", "also", "this", "it", "task", "safely", "and",
            "independent", "independently", "any", "time", "proceed",
        ];
        let Some((at, end)) = self.any_time().filter(|_| self.voice == ClauseVoice::Task) else { return };
        let word = |at: usize| match self.clause[at].what {
            Piece::Word(word) => Some(word),
            _ => None,
        };
        let is_among = |at: usize, words: &[&str]| word(at).is_some_and(|word| is_one_of(word, words));
        let start = (0..at)
            .rev()
            .take_while(|at| is_among(*at, &WORDS) || is_among(*at, &MODALS))
            .last()
            .unwrap_or(at);
        let is_bracketed = start
            .checked_sub(1)
            .is_some_and(|before| matches!(self.clause[before].what, Piece::Open | Piece::OpenSquare));
        let says_can = (start..at).any(|at| is_among(at, &MODALS))
            || is_bracketed
            || word(at).is_some_and(|word| !word.is_ascii());
        let is_end = match piece_at(self.clause, end) {
            Some(Piece::Word(word)) => match self.keyword_at(end) {
                Some(keyword) => self.object_at(keyword, None).is_some(),
                None => matches!(word, "in" | "and" | "independently" | "as" | "since" | "because"),
            },
            Some(Piece::Id(_)) => false,
            _ => true,
        };
        if says_can && is_end && self.is_separate(start) {
            self.stated.is_any_time = true;
        }
    }

    /// Where "anytime", "any time" or "any point" is, and where it ends.
    fn any_time(&self) -> Option<(usize, usize)> {
        const CJK: [&str; 3] = ["随时", "隨時", "いつでも"];
        let is = |at: usize, wanted: &[&str]| is_word_at(self.clause, at, wanted);
        (0..self.clause.len()).find_map(|at| match self.clause[at].what {
            Piece::Word(word)
                if word.eq_ignore_ascii_case("anytime")
                    || !word.is_ascii() && CJK.iter().any(|known| word.contains(known)) =>
            {
                Some((at, at + 1))
            }
            Piece::Word(_) if is(at, &["any"]) && is(at + 1, &["time", "point"]) => Some((at, at + 2)),
            _ => None,
        })
    }

    /// "Phase 10: independent, can run anytime", "T009 — fully independent", "T022 — standalone", "T015 — independent check".
    pub(super) fn says_independent(&self) -> bool {
        const WORDS: [&str; 3] = ["independent", "independently", "standalone"];
        const KINDS: [&str; 8] = ["task", "tasks", "check", "checks", "script", "work", "phase", "step"];
        let what = |at: usize| piece_at(self.clause, at);
        let is = |at: usize, wanted: &[&str]| matches!(what(at), Some(Piece::Word(word)) if is_one_of(word, wanted));
        let is_predicate = |at: usize| {
            let is_stressed = at > 0 && is(at - 1, &["fully", "completely", "totally"]);
            let before = at.checked_sub(1 + usize::from(is_stressed));
            matches!(
                before.and_then(what),
                None | Some(
                    Piece::Colon | Piece::Dash | Piece::Pause | Piece::Other | Piece::Open | Piece::Arrow(_)
                )
            )
        };
        let is_end = |at: usize| {
            matches!(
                what(at),
                None | Some(Piece::Dash | Piece::Pause | Piece::Open | Piece::Close | Piece::Comma)
            ) || is(at, &["can", "and", "start"])
        };
        // "T002, T015 — independent verification tasks".
        let is_kind = |at: usize| {
            let end = at + usize::from(!is(at, &KINDS));
            is(end, &KINDS) && is_end(end + 1)
        };
        (0..self.clause.len())
            .any(|at| is(at, &WORDS) && is_predicate(at) && (is_end(at + 1) || is_kind(at + 1)))
            || self.any_time().is_some()
    }

    /// "depends on Foundational only", "depends only on Phase 2", "only requires Phase 1".
    pub(super) fn says_only(&self, at: usize, behind: usize, end: usize) -> bool {
        let is = |at: usize| self.clause.get(at).is_some_and(is_only);
        at.checked_sub(1).is_some_and(is) || is(behind - 1) || is(behind) || is(end)
    }

    /// "T033 can start immediately after T030": nothing else holds it up.
    pub(super) fn starts_immediately(
        &self,
        keyword: usize,
        who: &[PlacedName<'a>],
        object: &[PlacedName<'a>],
    ) -> bool {
        const STARTS: [&str; 4] = ["start", "begin", "run", "proceed"];
        let is = |back: usize, words: &[&str]| {
            let token = keyword.checked_sub(back).map(|at| self.clause[at].what);
            matches!(token, Some(Piece::Word(word)) if is_one_of(word, words))
        };
        // "as soon as T030 is done".
        let is_soon = is(0, &["soon"]) && is(1, &["as"]);
        let was_stated = (is_soon || is(1, &["immediately", "right", "directly", "straight"]))
            && is(2, &STARTS)
            && is(3, &["can", "may", "could"]);
        was_stated && self.voice == ClauseVoice::Section && who.iter().chain(object).all(is_of_tasks)
    }

    /// "US5 can proceed independently after Foundation".
    pub(super) fn starts_independently(&self, keyword: usize) -> bool {
        let before = keyword.checked_sub(1).map(|before| self.clause[before].what);
        matches!(before, Some(Piece::Word(word)) if is_one_of(word, &["independent", "independently"]))
    }
}

/// Whether a word says that there is nothing else.
pub(super) fn is_only(token: &Token<'_>) -> bool {
    matches!(token.what, Piece::Word(word) if word.eq_ignore_ascii_case("only") || matches!(word, "仅" | "僅" | "只"))
}
