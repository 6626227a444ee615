//! The object of a keyword: in "T005 depends on T001 and T002" the list after it; also in brackets, in other words or by bare numbers.

use super::{
    super::{
        keywords::{ClauseVoice, Keyword, ObjectReach, Sense, is_denied, is_filler},
        name_reader::{List, Name, PlacedName, behind_parenthesis},
        tokens::{Piece, Token, is_and, is_one_of, is_word_at, lower_word_at, piece_at, word_at},
    },
    ClauseReader,
    permission::is_modal,
};

/// After "all above", "all of the above", "all previous tasks", "everything above".
pub(super) fn behind_all_above(clause: &[Token<'_>], at: usize) -> Option<usize> {
    const LONGEST: usize = 5;
    let word = |at: usize| lower_word_at(clause, at);
    if !matches!(word(at).as_str(), "all" | "everything") {
        return None;
    }
    let is_before =
        |at: &usize| matches!(word(*at).as_str(), "above" | "previous" | "prior" | "preceding" | "earlier");
    let is_within = |at: &usize| matches!(word(*at).as_str(), "of" | "the" | "tasks" | "") || is_before(at);
    let end = (at + 1..at + LONGEST).take_while(is_within).find(is_before)? + 1;
    Some(end + usize::from(matches!(word(end).as_str(), "tasks" | "phases")))
}

/// Whether a token is a verb that goes before another, as in "can start" and `可以開始`.
fn is_auxiliary(token: &Token<'_>) -> bool {
    // `可靠` is no verb.
    matches!(token.what, Piece::Word("可" | "可以" | "能"))
        || is_modal(token)
        || token.is_word(&["must", "should", "will"])
}

impl<'a> ClauseReader<'_, 'a> {
    /// The list after a colon at a position.
    pub(super) fn named_behind_colon(&self, at: usize) -> Vec<PlacedName<'a>> {
        let is_colon = self.clause.get(at).is_some_and(|token| token.what == Piece::Colon);
        let list = self.name_reader.list_at(self.clause, at + 1).filter(|_| is_colon);
        list.map(|list| list.members).unwrap_or_default()
    }

    /// What a bare number means: a phase where the sentence is about one.
    pub(super) fn kind_of_numbers(&self, topic: Option<&[PlacedName<'a>]>) -> Option<Name<'a>> {
        if self.voice == ClauseVoice::Phase {
            return Some(Name::Phase(""));
        }
        let subject = self.subject.as_deref().or(topic).and_then(<[_]>::last)?;
        matches!(subject.0, Name::Phase(_) | Name::Phases(..) | Name::Story(_) | Name::Stories(..))
            .then(|| subject.0.clone())
    }

    /// The list at a position after a keyword. In "Phase 4 needs 3 new endpoints" the number is no name.
    pub(super) fn object_list(&self, at: usize, kind: Option<&Name<'a>>) -> Option<List<'a>> {
        if self.voice == ClauseVoice::Task
            && let Some(end) = behind_all_above(self.clause, at)
        {
            let members = vec![(Name::AllBefore, self.clause[at].at)];
            return Some(List::new(members, at, end));
        }
        let list = match self.clause[at].what {
            Piece::Number(_) => self.name_reader.list_after(self.clause, at, Some(kind?))?,
            // In "block after 5 failed attempts" the number counts, also where there is a task 5.
            Piece::Id(id) if id.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.name_reader.list_at(self.clause, at)?
            }
            _ => {
                let list = self.name_reader.list_at(self.clause, at);
                return list.or_else(|| self.name_reader.group_at(self.clause, at));
            }
        };
        (!self.is_counted(list.end)).then_some(list)
    }

    /// Whether a name is followed by a word that does not describe its state: then the number is a count, as in "3 new endpoints".
    pub(super) fn is_counted(&self, at: usize) -> bool {
        const PREDICATES: [&str; 22] = [
            "and", "or", "completion", "implementation", "tests", "merges", "ships", "works", "is", "are",
            "has", "have", "being", "to", "completes", "complete", "completed", "done", "finished", "lands",
            "first", "for",
        ];
        let Some(Piece::Word(word)) = piece_at(self.clause, at) else { return false };
        self.keyword_at(at).is_none() && !is_one_of(word, &PREDICATES)
    }

    /// "Recipe entity from US1" at a position: a few words, and where the thing that they name comes from.
    fn origin_at(&self, at: usize) -> Option<List<'a>> {
        const MOST_WORDS: usize = 6;
        const FROM: [&str; 8] = ["from", "of", "de", "da", "do", "du", "des", "von"];
        let word = |at: usize| match piece_at(self.clause, at) {
            Some(Piece::Word(word)) if self.keyword_at(at).is_none() => Some(word),
            _ => None,
        };
        // "… and Edge Function 4.1", "… + AccountMenu (T015)": the id comes right after the words.
        let what = |at: usize| piece_at(self.clause, at);
        let is_id = |at: usize| matches!(what(at), Some(Piece::Id(_)));
        let is_bracketed = |at: usize| what(at) == Some(Piece::Open) && is_id(at + 1);
        // "benefits from US3" and "separate from US2" wait for nothing.
        let is_apart = |word: &str| {
            is_one_of(word, &["benefit", "benefits", "separate", "different", "independent", "distinct"])
        };
        let end = (at + 1..=at + MOST_WORDS)
            .take_while(|at| word(at - 1).is_some_and(|word| !is_apart(word)))
            .find(|at| {
                is_id(*at) || is_bracketed(*at) || word(*at).is_some_and(|word| is_one_of(word, &FROM))
            })?;
        let list = self.name_reader.list_at(self.clause, end + usize::from(!is_id(end)))?;
        let is_closed = is_bracketed(end) && what(list.end) == Some(Piece::Close);
        Some(List { end: list.end + usize::from(is_closed), ..list })
    }

    /// After the words that tell which part of a member is needed, as in "US2 components (card, chip) and US1 shell".
    fn behind_thing(&self, at: usize) -> usize {
        const MOST_WORDS: usize = 3;
        let is_word = |at: &usize| match piece_at(self.clause, *at) {
            Some(Piece::Word(word)) => {
                !is_and(word) && !self.begins_sentence(*at) && self.keyword_at(*at).is_none()
            }
            _ => false,
        };
        let words = (at..at + MOST_WORDS).take_while(is_word).count();
        if words == 0 { at } else { behind_parenthesis(self.clause, at + words) }
    }

    /// Whether a word at a position is a verb, so that the words before it are a subject.
    fn begins_sentence(&self, at: usize) -> bool {
        const VERBS: [&str; 6] = ["is", "are", "has", "have", "but", "or"];
        self.clause.get(at).is_some_and(|token| {
            is_auxiliary(token) || token.is_word(&VERBS) || self.keyword_at(at).is_some()
        })
    }

    /// In "US2 can start after Phase 2, US3 can start after US1" each part has its own subject.
    pub(super) fn is_next_subject(&self, at: usize, list: &List<'a>) -> bool {
        const SHORTLY: usize = 3;
        let is_parted = match at.checked_sub(1).map(|before| self.clause[before].what) {
            Some(Piece::Comma) => true,
            Some(Piece::Word(word)) => is_and(word) || word.eq_ignore_ascii_case("but"),
            _ => false,
        };
        let is_word = |at: &usize| word_at(self.clause, *at).is_some();
        let has_verb = |at: usize| is_auxiliary(&self.clause[at]) || self.keyword_at(at).is_some();
        let is_topic = matches!(piece_at(self.clause, list.end), Some(Piece::Word("は" | "는" | "은")));
        is_parted && (is_topic || (list.end..list.end + SHORTLY).take_while(is_word).any(has_verb))
    }

    /// Adds what "… + Recipe entity from US1" or "… and on US1" names after a list.
    fn add_origins(&self, members: &mut Vec<PlacedName<'a>>, end: &mut usize) {
        const PREPOSITIONS: [&str; 9] = ["on", "upon", "de", "del", "da", "do", "von", "od", "от"];
        let what = |at: usize| piece_at(self.clause, at);
        loop {
            let joint = self.behind_thing(*end);
            let goes_on = match what(joint) {
                Some(Piece::Plus | Piece::Comma) => true,
                Some(Piece::Word(word)) => is_and(word),
                _ => false,
            };
            let says_again =
                matches!(what(joint + 1), Some(Piece::Word(word)) if is_one_of(word, &PREPOSITIONS));
            let start = joint + 1 + usize::from(says_again);
            let next = self.name_reader.list_at(self.clause, start);
            let next = next.filter(|list| (joint > *end || says_again) && !self.begins_sentence(list.end));
            let Some(list) = next.or_else(|| self.origin_at(start)).filter(|_| goes_on) else { return };
            *end = list.end;
            members.extend(list.members);
        }
    }

    /// "T026 depends on the runner being there (after Phase 3)": what cannot be read is said again in other words.
    pub(super) fn object_of_next(
        &self,
        keyword: Keyword,
        kind: Option<&Name<'a>>,
    ) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const SHORTLY: usize = 10;
        if keyword.sense != Sense::Waits || !keyword.is_certain {
            return None;
        }
        let next = (keyword.end..self.clause.len().min(keyword.end + SHORTLY))
            .find_map(|at| Some((at, self.keyword_at(at)?)))
            .filter(|(at, next)| next.sense == Sense::Waits && !is_denied(self.clause, *at));
        self.object_at(next?.1, kind)
    }

    /// "Polish depends on Integration": the one phase whose title has the words after a keyword, "Integration & Assembly".
    pub(super) fn phase_by_words(&self, keyword: Keyword) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const MOST_WORDS: usize = 3;
        const SHORTEST: usize = 4;
        if keyword.sense != Sense::Waits || !keyword.is_certain || self.voice == ClauseVoice::Task {
            return None;
        }
        let word = |at: usize| word_at(self.clause, at);
        let start = keyword.end + usize::from(word(keyword.end).is_some_and(is_filler));
        let is_name = |word: &str| word.len() >= SHORTEST && word.starts_with(char::is_uppercase);
        word(start).filter(|first| is_name(first))?;
        (1..=MOST_WORDS).rev().find_map(|len| {
            let words: Option<Vec<String>> =
                (start..start + len).map(|at| word(at).map(str::to_lowercase)).collect();
            let node = self.name_reader.known.phase_with_words(&words?)?;
            Some((vec![(Name::Node(node), self.clause[start].at)], start + len))
        })
    }

    /// The list that a keyword speaks of, and where it ends.
    pub(super) fn object_at(
        &self,
        keyword: Keyword,
        kind: Option<&Name<'a>>,
    ) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const FAR: usize = 14;
        const NEAR: usize = 5;
        let limit = if keyword.reach == ObjectReach::Far { FAR } else { NEAR };
        let first = keyword.end;
        if let Some(object) = self.phases_by_id(keyword) {
            return Some(object);
        }
        for start in first..self.clause.len().min(first + limit) {
            if let Some(list) = self.object_list(start, kind) {
                let is_bracketed = start > first && self.clause[start - 1].what == Piece::Open;
                let (mut members, mut end) = self.without_next_subject(list);
                self.add_ids(&mut members, &mut end);
                if is_bracketed {
                    self.add_bracketed(&mut members, &mut end);
                }
                if self.voice != ClauseVoice::Task && keyword.sense == Sense::Waits {
                    self.add_origins(&mut members, &mut end);
                }
                return Some((members, end));
            }
            if self.keyword_at(start).is_some() {
                return None;
            }
            let may_stand_between = match self.clause[start].what {
                Piece::Word(word) => keyword.reach == ObjectReach::Far || is_filler(word),
                Piece::Colon | Piece::Other | Piece::Dash | Piece::Pause => true,
                Piece::Arrow(_) => false,
                _ => keyword.reach == ObjectReach::Far,
            };
            if !may_stand_between {
                let origin = self.origin_at(start).filter(|_| self.voice != ClauseVoice::Task);
                return origin.map(|list| (list.members, list.end));
            }
        }
        None
    }

    /// "(depends on data, T003)", where `data` is the id of a phase. In the text of a task, most ids are ordinary words, so
    /// they count only if nothing follows them.
    fn phases_by_id(&self, keyword: Keyword) -> Option<(Vec<PlacedName<'a>>, usize)> {
        if self.voice != ClauseVoice::Task || keyword.sense != Sense::Waits || !keyword.is_certain {
            return None;
        }
        let what = |at: usize| piece_at(self.clause, at);
        let mut at = keyword.end + usize::from(what(keyword.end) == Some(Piece::Colon));
        let (mut members, mut has_id) = (Vec::new(), false);
        loop {
            if let Some((node, end)) = self.name_reader.known.phase_id_at(self.clause, at) {
                members.push((Name::Node(node), self.clause[at].at));
                (at, has_id) = (end, true);
            } else {
                let list = self.name_reader.list_at(self.clause, at)?;
                members.extend(list.members);
                at = list.end;
            }
            match what(at) {
                Some(Piece::Comma | Piece::Plus) => {
                    at += 1 + usize::from(matches!(what(at + 1), Some(Piece::Word(word)) if is_and(word)));
                }
                Some(Piece::Word(word)) if is_and(word) => at += 1,
                None | Some(Piece::Close) => return has_id.then_some((members, at)),
                _ => return None,
            }
        }
    }

    /// Adds the ids that only spaces part from a list, as in "depends on T001 T002 T003".
    fn add_ids(&self, members: &mut Vec<PlacedName<'a>>, end: &mut usize) {
        while matches!(piece_at(self.clause, *end), Some(Piece::Id(_))) {
            let next = self.name_reader.list_at(self.clause, *end);
            let Some(list) = next.filter(|list| !self.begins_sentence(list.end)) else { return };
            *end = list.end;
            members.extend(list.members);
        }
    }

    /// "the guard (Foundational) + at least one family (US1)": each thing is told by the name in brackets after it.
    pub(super) fn add_bracketed(&self, members: &mut Vec<PlacedName<'a>>, end: &mut usize) {
        const MOST_WORDS: usize = 8;
        let what = |at: usize| piece_at(self.clause, at);
        loop {
            let joint = *end + usize::from(what(*end) == Some(Piece::Close));
            let goes_on = matches!(what(joint), Some(Piece::Plus | Piece::Comma))
                || matches!(what(joint), Some(Piece::Word(word)) if is_one_of(word, &["and"]));
            let is_word =
                |at: &usize| matches!(what(*at), Some(Piece::Word(_))) && self.keyword_at(*at).is_none();
            let open = joint + 1 + (joint + 1..).take(MOST_WORDS).take_while(is_word).count();
            if !goes_on || what(open) != Some(Piece::Open) {
                return;
            }
            let Some(list) = self.name_reader.list_at(self.clause, open + 1) else { return };
            *end = list.end;
            members.extend(list.members);
        }
    }

    /// In "T019 after T006, T020 after T015" the last member of the list already begins the next sentence.
    pub(super) fn without_next_subject(&self, mut list: List<'a>) -> (Vec<PlacedName<'a>>, usize) {
        let goes_on = list.end < self.clause.len()
            && (self.keyword_at(list.end).is_some_and(|k| k.sense != Sense::Then) || self.is_arrow(list.end));
        let is_parted = list.last.checked_sub(1).is_some_and(|at| self.clause[at].what == Piece::Comma);
        if goes_on && list.members.len() > 1 && is_parted {
            list.members.pop();
            return (list.members, list.last);
        }
        // In "US2 can start after Phase 2, US3 and US4 can start after US1" it begins after the comma.
        let may = self.voice == ClauseVoice::Section && self.clause.get(list.end).is_some_and(is_auxiliary);
        let joint = may.then(|| self.last_joint(&list)).flatten();
        let before = joint
            .and_then(|joint| Some((self.name_reader.list_at(&self.clause[..joint], list.first)?, joint)));
        if let Some((before, joint)) = before {
            return (before.members, joint);
        }
        (list.members, list.end)
    }

    /// The last comma of a list that is in no brackets, else the last "and".
    fn last_joint(&self, list: &List<'a>) -> Option<usize> {
        let (mut depth, mut last_and) = (0_usize, None);
        for at in (list.first..list.last).rev() {
            match self.clause[at].what {
                Piece::Close => depth += 1,
                Piece::Open => depth = depth.saturating_sub(1),
                Piece::Comma if depth == 0 => return Some(at),
                Piece::Word(word) if depth == 0 && is_and(word) => last_and = last_and.or(Some(at)),
                _ => {}
            }
        }
        last_and
    }

    /// "After T009, T012 can start": at the start of a sentence, what is waited for ends at the comma if a verb of doing follows
    /// upon the list.
    pub(super) fn object_before_comma(
        &self,
        at: usize,
        keyword: Keyword,
    ) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const VERBS: [&str; 16] = [
            "can", "may", "must", "should", "could", "will", "start", "run", "puede", "pueden", "pode",
            "podem", "peut", "peuvent", "kann", "können",
        ];
        let is_start = match at.checked_sub(1).map(|before| self.clause[before].what) {
            None | Some(Piece::Colon | Piece::Pause | Piece::Dash | Piece::Other) => true,
            Some(_) => false,
        };
        let is_meant = is_start && keyword.sense == Sense::Waits && self.voice == ClauseVoice::Section;
        // "Upon completion of US1".
        let is_of = matches!(piece_at(self.clause, keyword.end), Some(Piece::Word(word)) if is_filler(word));
        let start = keyword.end + usize::from(is_of);
        let list = self.name_reader.list_at(self.clause, start).filter(|_| is_meant)?;
        let is_verb = is_word_at(self.clause, list.end, &VERBS);
        let comma = (start..list.end).find(|at| self.clause[*at].what == Piece::Comma)?;
        let first = self.name_reader.list_at(&self.clause[..comma], start).filter(|_| is_verb)?;
        Some((first.members, comma))
    }
}
