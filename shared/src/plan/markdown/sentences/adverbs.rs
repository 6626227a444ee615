//! From adverbs to the way in which tasks run: "T008-T011 run sequentially", "T012 and T013 can run in parallel".

use super::{
    super::{
        keywords::{ClauseVoice, is_denied, is_independent_word, is_parallel_word, keyword_at},
        name_reader::{List, Name, PlacedName, behind_parenthesis, is_of_tasks},
        tokens::{Piece, Token, is_one_of, is_word_at, lower_word_at, piece_at, word_at},
    },
    ClauseReader, Force, OrderClaim, is_permission,
};

/// How far from a word the tasks may be that it is about.
const NEARBY: usize = 14;

/// Whether a line heads a list that only recommends a way to go: "Sequential Implementation (for a solo developer):",
/// "Parallel Team Strategy:".
pub(in super::super) fn heads_advice(clause: &[Token<'_>]) -> bool {
    let says = |token: &Token<'_>| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "solo" | "recommended" | "suggested" | "developer" | "developers" | "dev" | "devs" | "team" | "strategy" | "staffed"
        ))
    };
    clause.last().is_some_and(|token| token.what == Piece::Colon) && clause.iter().any(says)
}

/// How one person would go about it is no dependency: "Sequential (solo developer): Phase 1 → 2 → 3".
pub(super) fn is_advice(clause: &[Token<'_>]) -> bool {
    let word = |at: usize| lower_word_at(clause, at);
    let is_order = |at: usize| matches!(word(at).as_str(), "order" | "sequence");
    if (0..clause.len()).any(|at| matches!(word(at).as_str(), "priority" | "preferred") && is_order(at + 1)) {
        return true;
    }
    // "或按优先级顺序 …" is "or in order of priority …".
    if word(0).starts_with('或') {
        return true;
    }
    // "Dev 1: Phase 1 → Phase 2", "All devs: Phase 10".
    if matches!((word(0).as_str(), word(1).as_str()), ("dev", _) | ("all", "devs" | "developers")) {
        return true;
    }
    clause.iter().any(|token| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "solo" | "recommended" | "suggested" | "recommend" | "developer" | "developers" | "example" | "staffed"
        ))
    })
}

/// Whether a word of Chinese, Japanese or Korean says that things have nothing to do with each other.
fn says_mutually_independent(word: &str) -> bool {
    const WORDS: [&str; 9] = [
        "相互独立", "互相独立", "彼此独立", "相互獨立", "互相獨立", "互不影响", "互不干扰", "互いに独立",
        "독립적",
    ];
    !word.is_ascii() && WORDS.iter().any(|known| word.contains(known))
}

/// In "checks (T017, T018) → sequential flow (T019-T023)" the word is about what the arrow leads to.
fn has_arrow(between: &[Token<'_>]) -> bool {
    between.iter().any(|token| matches!(token.what, Piece::Arrow(_)))
}

/// "sequentially or in parallel" leaves it open.
pub(super) fn offers_choice(between: &[Token<'_>]) -> bool {
    between.iter().any(|token| matches!(token.what, Piece::Word("or" | "parallel")))
}

impl<'a> ClauseReader<'_, 'a> {
    /// "Sequential P1 → P2 → P3": the stories of each priority wait for those before. Where that is only one of two ways,
    /// it says nothing.
    pub(super) fn note_priorities(&mut self) {
        let word = |at: usize| word_at(self.clause, at).unwrap_or_default();
        let has = |words: &[&str]| (0..self.clause.len()).any(|at| is_one_of(word(at), words));
        if self.voice != ClauseVoice::Section
            || !has(&["sequential", "sequentially"])
            || has(&["or", "parallel", "may", "could", "if", "either", "should", "recommended", "suggested"])
        {
            return;
        }
        let is_priority = |word: &str| {
            word.len() == 2 && word.starts_with('P') && word.ends_with(|c: char| c.is_ascii_digit())
        };
        for at in 0..self.clause.len() {
            let is_arrow = matches!(piece_at(self.clause, at + 1), Some(Piece::Arrow(false)));
            if is_arrow && is_priority(word(at)) && is_priority(word(at + 2)) {
                let name = |at: usize| vec![(Name::Priority(word(at)), self.clause[at].at)];
                let claim = OrderClaim { who: name(at + 2), on: name(at), force: Force::Firm };
                self.stated.claims.push(claim);
            }
        }
    }

    /// "All library projects can be created in parallel (T009-T012)": the tasks that are meant are in brackets.
    pub(super) fn bracketed_tasks(&self, open: usize) -> Option<Vec<PlacedName<'a>>> {
        let end = behind_parenthesis(self.clause, open);
        if end <= open {
            return None;
        }
        let mut list = self.name_reader.list_at(&self.clause[..end], open + 1)?;
        // "(T002-T008, T009-T010 sequential)" excepts the last.
        if matches!(piece_at(self.clause, list.end), Some(Piece::Word("sequential" | "sequentially"))) {
            list.members.pop().filter(|_| !list.members.is_empty())?;
        }
        // "(T001-T003 marked [P])" says more about them, but nothing about their order.
        let is_plain = |at: usize| self.keyword_at(at).is_none();
        ((list.end..end).all(is_plain) && list.members.iter().all(is_of_tasks)).then_some(list.members)
    }

    /// The "same" of "at the same time", the "side" of "side by side", the "any" of "in any order", "together" at the end, and "song song"
    /// in Vietnamese.
    fn says_simultaneously(&self, at: usize) -> bool {
        let is = |at: usize, wanted: &str| is_word_at(self.clause, at, &[wanted]);
        let ends = |at: usize| word_at(self.clause, at).is_none();
        is(at, "same") && is(at + 1, "time") && ends(at + 2)
            || is(at, "side") && is(at + 1, "by") && is(at + 2, "side") && ends(at + 3)
            || is(at, "any") && is(at + 1, "order") && !(at..self.clause.len()).any(|at| is(at, "sequential"))
            || is(at, "together") && ends(at + 1)
            || is(at, "song") && is(at + 1, "song")
    }

    /// Whether nothing but "run" or "must be executed" is between several phases or stories and a word at the end of a clause.
    fn is_said_of_phases(&self, at: usize, list: &List<'a>) -> bool {
        const BETWEEN: [&str; 9] =
            ["run", "must", "are", "be", "executed", "done", "completed", "implemented", "proceed"];
        let is_phase = |(name, _): &PlacedName<'a>| {
            matches!(
                name,
                Name::Phase(_) | Name::Phases(..) | Name::Story(_) | Name::Stories(..) | Name::Node(_)
            )
        };
        let is_several =
            list.members.len() > 1 || matches!(list.members[..], [(Name::Phases(..) | Name::Stories(..), _)]);
        let ends = word_at(self.clause, at + 1).is_none();
        is_several
            && ends
            && list.members.iter().all(is_phase)
            && self.clause[list.end..at].iter().all(|token| token.is_word(&BETWEEN))
    }

    /// "T008 and T009 are independent", "Phases 1 and 2 are independent of each other", "T001 y T002 son independientes entre sí".
    fn is_of_each_other(&self, at: usize, list: &List<'a>) -> bool {
        const BETWEEN: [&str; 15] = [
            "are", "is", "both", "all", "fully", "completely", "mutually", "also", "tasks", "son", "são",
            "sont", "sono", "sind", "są",
        ];
        const MUTUAL: [&str; 7] = ["each", "one", "entre", "voneinander", "друг", "tra", "od"];
        let is_among = |token: &Token<'_>, words: &[&str]| token.is_word(words);
        let between = &self.clause[list.end..at];
        let behind = &self.clause[at + 1..];
        let is_mutual = behind.iter().take(2).any(|token| is_among(token, &MUTUAL));
        list.members.len() > 1
            && !between.is_empty()
            && between.iter().all(|token| is_among(token, &BETWEEN))
            && (is_mutual || !matches!(behind.first().map(|token| token.what), Some(Piece::Word(_))))
    }

    /// Whether "all", "are" or "mutually" comes right before a position.
    fn says_all_of(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| self.clause[before].what);
        matches!(before, Some(Piece::Word(word)) if is_one_of(word, &["all", "are", "mutually"]))
    }

    /// Whether "parallel" at a position applies to all of something that no id names.
    fn says_all(&self, at: usize) -> bool {
        const SHORTLY: usize = 16;
        let is = |at: usize, wanted: &[&str]| is_word_at(self.clause, at, wanted);
        // "**Phase 2**: All 7 tasks can run in parallel (T005-T011)": the label only tells where they are.
        let is_colon = |token: &Token<'_>| token.what == Piece::Colon;
        let near = at.saturating_sub(SHORTLY);
        let start = self.clause[near..at].iter().rposition(is_colon).map_or(0, |colon| near + colon + 1);
        self.voice == ClauseVoice::Section
            && self.last.as_ref().is_none_or(|list| list.end <= start)
            && is(at, &["parallel"])
            && at > 0
            && is(at - 1, &["in"])
            && is(start, &["all", "both"])
    }

    /// "Server (T010-T016) ∥ client (T017)": what is on one side of the bars runs in parallel with what is on the other. Where
    /// an arrow leads to a side or away from it, only what is next to the bars is meant.
    pub(super) fn note_bars(&mut self) {
        const MAX_SIDES: usize = 16;
        let is_bars = |token: &Token<'_>| token.what == Piece::Bars;
        if self.voice != ClauseVoice::Section || !self.clause.iter().any(is_bars) {
            return;
        }
        let is_arrow = |token: &Token<'_>| matches!(token.what, Piece::Arrow(_));
        let sides = self.clause.split(is_bars).enumerate().filter_map(|(number, side)| {
            let mut parts = side.split(is_arrow);
            let part = if number == 0 { parts.next_back()? } else { parts.next()? };
            let mut lists = self.name_reader.lists(part).into_iter();
            if number == 0 {
                return lists.next_back().map(|list| list.members);
            }
            // "T004-T005 ∥ after T003", "T004 ∥ (T005 after T004)": what states its own order runs in parallel with nothing here.
            let list = lists.next()?;
            let is_keyword = |at: usize| at < part.len() && keyword_at(part, at, self.voice).is_some();
            (!(0..list.last).any(is_keyword) && !is_keyword(list.end)).then_some(list.members)
        });
        let sides: Vec<_> = sides.collect();
        if sides.len() > MAX_SIDES {
            // A claim for each pair of sides would take too long.
            self.stated.parallel_lists.push(sides.concat());
        } else {
            self.note_parallel_groups(&sides);
        }
    }

    /// Groups of which none waits for a member of another.
    pub(super) fn note_parallel_groups(&mut self, groups: &[Vec<PlacedName<'a>>]) {
        for (at, group) in groups.iter().enumerate() {
            for other in &groups[at + 1..] {
                self.note_unrelated(group.clone(), other.clone());
            }
        }
    }

    /// "T188, T189, T190 (parallel)", "T188, T189 [P]": the brackets after a list say how its members run.
    pub(super) fn note_parallel_parenthetical(&mut self, list: &List<'a>) {
        const WORDS: [&str; 6] = ["in", "can", "run", "be", "done", "all"];
        /// What may follow upon "parallel" in languages that write no spaces.
        const POSSIBLE: [&str; 8] = ["可能", "可", "执行", "執行", "実行", "进行", "開発", "가능"];
        let is_close = |at: usize| self.clause.get(at).is_some_and(|token| token.what == Piece::Close);
        let is_several = list.members.len() > 1 || matches!(list.members[..], [(Name::Range(..), _)]);
        if self.voice != ClauseVoice::Section || !is_several || !list.members.iter().all(is_of_tasks) {
            return;
        }
        if self.is_parallel_mark(list.end) {
            self.stated.parallel_lists.push(list.members.clone());
        }
        if !is_close(list.end - 1) {
            return;
        }
        let open = (list.last..list.end).rev().find(|at| self.clause[*at].what == Piece::Open);
        let Some(inner) = open.map(|open| &self.clause[open + 1..list.end - 1]) else { return };
        let word = |token: &Token<'a>| match token.what {
            Piece::Word(word) => word.to_lowercase(),
            _ => String::new(),
        };
        let first = inner.iter().map(word).position(|word| !WORDS.contains(&word.as_str()));
        let is_parallel = |at: usize| is_parallel_word(&word(&inner[at]));
        let goes_on = |at: usize| match inner.get(at + 1).map(|token| token.what) {
            Some(Piece::Word(word)) => !POSSIBLE.iter().any(|known| word.starts_with(known)),
            _ => false,
        };
        if first.is_some_and(|at| is_parallel(at) && !goes_on(at)) {
            self.stated.parallel_lists.push(list.members.clone());
        }
    }

    /// Whether what comes after a list speaks of pairs that run in parallel.
    fn speaks_of_pairs(&self, at: usize) -> bool {
        const SHORTLY: usize = 20;
        let has = |words: &[&str]| {
            let is_among = |word: &str| is_one_of(word, words);
            self.clause[at..]
                .iter()
                .take(SHORTLY)
                .any(|token| matches!(token.what, Piece::Word(word) if is_among(word)))
        };
        has(&["pair", "pairs"]) && has(&["parallel"])
    }

    /// "Tests T012-T014 and content task T017 can run in parallel": a few words tell what the last task is.
    fn with_list_before(&self, list: &List<'a>) -> Option<Vec<PlacedName<'a>>> {
        const MOST_WORDS: usize = 4;
        let before = self.last_but_one.as_ref().filter(|before| before.end < list.last)?;
        let between = &self.clause[before.end..list.last];
        let is_joint = |token: &Token<'_>| token.is_word(&["and"]);
        let is_plain =
            |at: usize| matches!(self.clause[at].what, Piece::Word(_)) && self.keyword_at(at).is_none();
        let is_joined = list.members.len() == 1
            && (2..=MOST_WORDS).contains(&between.len())
            && between.first().is_some_and(is_joint)
            && (before.end..list.last).all(is_plain);
        let members = before.members.iter().chain(&list.members);
        (is_joined && members.clone().all(is_of_tasks)).then(|| members.cloned().collect())
    }

    /// "T019 and T029 edit one file. Run them sequentially."
    fn note_pronoun(&mut self, at: usize, word: &str) -> bool {
        if !word.eq_ignore_ascii_case("sequentially") {
            return false;
        }
        let behind = &self.clause[at..self.clause.len().min(at + NEARBY)];
        let meant = self.meant_by_pronoun(at).filter(|tasks| tasks.iter().all(is_of_tasks));
        let Some(tasks) = meant.filter(|_| !offers_choice(behind)) else { return false };
        self.stated.sequences.push(tasks);
        true
    }

    /// "T008–T011 edit one file and run sequentially", "T012 and T013 can run in parallel".
    #[expect(clippy::too_many_lines, reason = "one arm for each manner")]
    pub(super) fn note_adverb(&mut self, at: usize) {
        const MOST_NAMED: usize = 16;
        let Piece::Word(word) = self.clause[at].what else { return };
        if self.voice.is_own() {
            return;
        }
        if let Some(tasks) = self.bracketed_tasks(at + 1).filter(|_| self.says_all(at)) {
            self.stated.parallel_lists.push(tasks);
            return;
        }
        let is_beside_others = |reader: &mut Self| {
            is_parallel_word(word) && !is_denied(reader.clause, at) && reader.note_parallel_with_rest(at)
        };
        if self.note_pronoun(at, word) || is_beside_others(self) || self.note_whole_phase(at, word) {
            return;
        }
        if self.note_sections_of_phase(at, word) {
            return;
        }
        let is_near = |list: &&List<'a>| list.end <= at && at - list.end <= NEARBY;
        // In "T001/T002: directory setup can run in parallel" and "T016 and T017 — US2 test and page in parallel" the phase or story
        // only tells what the tasks are.
        let is_title = |list: &List<'a>| matches!(list.members[..], [(Name::Node(_) | Name::Story(_), _)]);
        let is_dash = |token: &Token<'_>| matches!(token.what, Piece::Dash | Piece::Pause | Piece::Colon);
        let head = self.last_but_one.as_ref().filter(|_| self.last.as_ref().is_some_and(is_title));
        let head = head.filter(|list| {
            list.members.iter().all(is_of_tasks) && self.clause.get(list.end).is_some_and(is_dash)
        });
        let Some(list) = head.or(self.last.as_ref()).filter(is_near) else { return };
        // "While T005 is done, T012/T013 can be done in parallel" says it of T005 and the two, not of the two.
        if is_denied(self.clause, at) || self.has_while {
            return;
        }
        if let Some(groups) = list.grouped().filter(|_| self.speaks_of_pairs(list.end)) {
            // "T008+T009, T010+T011 — each pair sequential, pairs parallel".
            self.last = None;
            self.note_parallel_groups(&groups);
            self.stated.sequences.extend(groups);
            return;
        }
        // "T001, T002 - parallel", "T001, T002: the models can run in parallel", "T001, T002 - two files, parallel",
        // "T001, T002: the models (two files) — run together".
        let is_plain = |at: usize| match self.clause[at].what {
            Piece::Word(_) => self.keyword_at(at).is_none(),
            piece => matches!(
                piece,
                Piece::Comma
                    | Piece::Plus
                    | Piece::Dash
                    | Piece::Pause
                    | Piece::Colon
                    | Piece::Story(_)
                    | Piece::Other
                    | Piece::Open
                    | Piece::Close
            ),
        };
        let is_of_tasks = list.members.iter().all(is_of_tasks);
        let is_explained =
            is_of_tasks && self.clause.get(list.end).is_some_and(is_dash) && (list.end..at).all(is_plain);
        // "T002 and T003 touch different files, so they can run in parallel".
        let is_they = |token: &Token<'_>| token.is_word(&["they"]);
        let they = self.clause[list.end..at].iter().rposition(is_they).filter(|_| is_of_tasks);
        let they = they.map(|they| list.end + they).filter(|they| (list.end..*they).all(is_plain));
        let between = match they {
            _ if is_explained => &[],
            Some(they) => &self.clause[they + 1..at],
            None => &self.clause[list.end..at],
        };
        let behind = &self.clause[at + 1..self.clause.len().min(at + 4)];
        // "T015、T016 可与 T017 并行", "T012는 T009와 병렬", "T012 可與 T010/T011 平行": the first run in parallel with the last.
        let is_joint = |at: usize| matches!(self.clause[at].what, Piece::Word("与" | "和" | "跟" | "與"));
        let is_behind = |at: usize| matches!(self.clause[at].what, Piece::Word("와" | "과" | "と"));
        let is_beside =
            list.first.checked_sub(1).is_some_and(is_joint) || list.end + 1 == at && is_behind(list.end);
        // In "US2: 僅需 Phase 2，可與 US1 並行" the comma parts the phase from what is said then.
        let is_next = |before: &&List<'a>| {
            self.clause.get(before.end..list.first).is_some_and(|between| {
                !between.iter().any(|token| matches!(token.what, Piece::Comma | Piece::Pause))
            })
        };
        let before = self.last_but_one.as_ref().filter(is_next);
        let first = before.map(|list| list.members.clone()).or_else(|| self.subject.clone());
        if let Some(first) = first.filter(|first| is_beside && *first != list.members)
            && is_parallel_word(word)
        {
            let others = list.members.clone();
            return self.note_unrelated(first, others);
        }
        match word.to_ascii_lowercase().as_str() {
            "sequential" | "sequentially" | "serialized" | "serialised" | "serially"
                if is_of_tasks
                    && !has_arrow(between)
                    && !offers_choice(between)
                    && !offers_choice(behind) =>
            {
                self.stated.sequences.push(list.members.clone());
            }
            // "Phases 3-5 run sequentially".
            "sequential" | "sequentially" if self.is_said_of_phases(at, list) => {
                self.stated.sequences.push(list.members.clone());
            }
            // "T001-T004 — all independent", "T001 + T002 — page and model are independent".
            word if is_independent_word(word)
                && is_explained
                && at + 1 == self.clause.len()
                && self.says_all_of(at) =>
            {
                self.stated.parallel_lists.push(list.members.clone());
            }
            // `T003、T004 相互独立`.
            word if says_mutually_independent(word) && is_permission(between) => {
                let list = list.clone();
                self.note_parallel_list(&list);
            }
            word if is_independent_word(word) && self.is_of_each_other(at, list) => {
                let list = list.clone();
                self.note_parallel_list(&list);
            }
            word if (is_parallel_word(word) && !self.is_adjective(at) || self.says_simultaneously(at))
                && is_permission(between) =>
            {
                self.in_parallel = is_of_tasks.then(|| (list.members.clone(), at + 1));
                if let Some(tasks) = self.with_list_before(list) {
                    self.stated.parallel_lists.push(tasks);
                    return;
                }
                if self.named.len() > MOST_NAMED {
                    // A claim for each pair of groups would take too long.
                    let groups = std::mem::take(&mut self.named);
                    self.stated.parallel_lists.push(groups.concat());
                    return;
                }
                if self.named.len() > 1 {
                    let groups = std::mem::take(&mut self.named);
                    self.note_parallel_groups(&groups);
                    let lists = groups.into_iter().filter(|group| group.len() > 1);
                    self.stated.parallel_lists.extend(lists);
                    return;
                }
                let list = list.clone();
                self.note_parallel_list(&list);
            }
            _ => {}
        }
    }
}
