//! Text in brackets: names of what was mentioned before ("Models (T001)"), remarks, and at the end of an item its predicate ("US2
//! (depends on US1)").

use super::{
    super::{
        keywords::{ClauseVoice, is_parallel_token, keyword_at},
        name_reader::{List, Name, PlacedName, behind_parenthesis},
        tokens::{Piece, Token},
    },
    ClauseReader, OrderClaim,
    independence::is_only,
    is_of_tasks,
};

impl<'a> ClauseReader<'_, 'a> {
    /// Brackets: what they say counts only if they name its subject too. In a task they are part of the sentence.
    pub(super) fn parenthetical(&mut self, at: usize) -> usize {
        let end = behind_parenthesis(self.clause, at);
        if self.voice.is_own() || end <= at + 1 {
            return at + 1;
        }
        let inner = &self.clause[at + 1..end - 1];
        // "US10 ← (depends on US8)": the arrow leads to what the brackets say.
        if at.checked_sub(1).is_some_and(|before| self.is_arrow(before)) && self.last.is_some() {
            let subject = self.last.as_ref().map(|list| list.members.clone());
            let mut reader = ClauseReader::new(self.name_reader, inner, self.voice, false, &mut *self.stated);
            reader.subject = subject;
            reader.read(None);
            return end;
        }
        if let Some(list) = self.name_reader.list_at(inner, 0) {
            if self.note_exception(at, inner, &list) {
                return end;
            }
            // "Stories run in order (US1 → US2 → US3)".
            if matches!(inner.get(list.end).map(|token| token.what), Some(Piece::Arrow(_))) {
                ClauseReader::new(self.name_reader, inner, self.voice, true, &mut *self.stated).read(None);
                return end;
            }
            let is_whole = list.end == inner.len();
            let is_first = self.subject.is_none();
            // "Tests (T004-T007) before implementation", "Registry/Docs (Phase 7): …".
            self.subject.get_or_insert_with(|| list.members.clone());
            if is_whole && list.members.iter().all(is_of_tasks) {
                // "US1: fixes (T008-T011) are sequential".
                self.named.push(list.members.clone());
                let list = List { end, last: at + 1, ..list };
                // "Entities (T001) → services (T002)".
                if self.is_arrow(end) {
                    return self.arrows(list);
                }
                self.last = Some(list);
                return end;
            }
            if is_first {
                return end;
            }
        }
        if self.is_predicate(at, end) {
            self.read_predicate(inner);
        } else {
            let antecedent = self.last.as_ref().map(|list| list.members.clone());
            let mut reader = ClauseReader::new(self.name_reader, inner, self.voice, true, &mut *self.stated);
            reader.antecedent = antecedent;
            reader.read(None);
        }
        end
    }

    /// "All tasks marked [P] can run in parallel (T002-T008, T009-T010 sequential)": only the last tasks run one after the other.
    fn note_exception(&mut self, open: usize, inner: &[Token<'a>], list: &List<'a>) -> bool {
        let is_sequential = matches!(inner[list.end..], [Token { what: Piece::Word(word), .. }] if word.to_ascii_lowercase().starts_with("sequential"));
        let says_parallel = self.clause[..open].iter().any(is_parallel_token);
        let Some((last, [_, ..])) = list.members.split_last() else { return false };
        let is_meant = is_sequential && says_parallel && list.is_comma_list;
        if is_meant && list.members.iter().all(is_of_tasks) {
            self.stated.sequences.push(vec![last.clone()]);
            return true;
        }
        false
    }

    /// "US2 - Browse (depends on US1)": where an item says nothing else about order, the brackets that end it are what it says.
    fn is_predicate(&self, open: usize, end: usize) -> bool {
        let says_order = |at: usize| self.is_arrow(at) || self.keyword_at(at).is_some();
        // The arrow of "├─→ Phase 7: US5 (depends on US4)" is drawn to the line and says nothing of its own.
        let start = self.clause[..open].iter().position(Token::is_name).unwrap_or_default();
        !self.is_remark
            && end == self.clause.len()
            && self.subject.is_some()
            && !(start..open).any(says_order)
    }

    fn read_predicate(&mut self, inner: &[Token<'a>]) {
        let (subject, first) = (self.subject.clone(), self.stated.claims.len());
        let antecedent = self.last.as_ref().map(|list| list.members.clone());
        let mut reader = ClauseReader::new(self.name_reader, inner, self.voice, false, &mut *self.stated);
        (reader.subject, reader.antecedent) = (subject, antecedent);
        reader.read(None);
        // "(needs all above)" speaks of the list that the item is in.
        let is_named = |claim: &OrderClaim<'a>| !claim.on.iter().any(|(name, _)| *name == Name::AllBefore);
        let said = self.stated.claims.split_off(first);
        self.stated.claims.extend(said.into_iter().filter(is_named));
    }

    /// "US2: T011 → T012 (depends only on T001)": the arrow tells that T012 waits for more, so the brackets speak of US2.
    pub(super) fn note_parenthetical_of_line(&mut self, last: &List<'a>) {
        let is_open = |at: &usize| self.clause[*at].what == Piece::Open;
        let open = (last.last..last.end).rev().find(is_open).filter(|_| last.end == self.clause.len());
        let Some(inner) = open.map(|open| &self.clause[open + 1..last.end - 1]) else { return };
        let is_phase = |names: &Vec<PlacedName<'a>>| !names.iter().any(is_of_tasks);
        if inner.iter().any(is_only) && self.subject.as_ref().is_some_and(is_phase) {
            self.read_predicate(inner);
        }
    }

    /// Brackets right after names say what these wait for: "T076-T087 (mobile, can start after T020)".
    pub(super) fn note_predicate(&mut self, at: usize, list: &List<'a>) {
        if self.voice != ClauseVoice::Section {
            return;
        }
        let clause = self.clause;
        let is_open = |at: &usize| clause[*at].what == Piece::Open;
        let Some(open) = (list.last..list.end).rev().find(is_open) else { return };
        let inner = &clause[open + 1..list.end - 1];
        // "Phase 8 (T009 → T010 → T011)" tells the order within the phase.
        if (open + 1..list.end - 1).any(|at| self.is_arrow(at)) {
            ClauseReader::new(self.name_reader, inner, self.voice, true, &mut *self.stated).read(None);
            return;
        }
        let speaks_of_order = (0..inner.len()).any(|at| keyword_at(inner, at, self.voice).is_some());
        if speaks_of_order && self.is_predicate(at, list.end) {
            self.read_predicate(inner);
        }
    }
}
