//! Words after the names that they are about, as in Japanese and Chinese: `T001に依存`, `Phase 2完成后`.

use super::{
    super::{
        keywords::{Keyword, is_wish},
        name_reader::List,
        tokens::{Piece, piece_at},
    },
    ClauseReader, Force, OrderClaim,
};

impl<'a> ClauseReader<'_, 'a> {
    /// `T003はT001に依存`, `Phase 2完成后`: what was named last is waited for.
    pub(super) fn postfix(&mut self, at: usize, keyword: Keyword) -> usize {
        /// How far before the keyword a wish may be: the names are between them.
        const FAR: usize = 12;
        // In "US4: the base 完成後" the base is waited for, whatever it is, and not the story.
        let is_near = |list: &List<'a>| {
            at - list.end <= 2 && !self.clause[list.end..at].iter().any(|token| token.what == Piece::Colon)
        };
        let Some(object) = self.last.take().filter(is_near) else { return keyword.end };
        // `US2 与 US3 可以在 Phase 2 完成后并行`: what follows is about the first names again.
        self.last = self.last_but_one.take().map(|list| List { end: keyword.end, ..list });
        let subject = self.subject.clone().filter(|subject| *subject != object.members);
        // `T008はT007に依存しない`.
        let is_denied = matches!(piece_at(self.clause, keyword.end), Some(Piece::Word(word)) if word.starts_with("しな") || word.starts_with("せず"));
        if let Some(who) = subject.clone().filter(|_| is_denied) {
            self.stated.denied.push((who.clone(), object.members.clone()));
            self.stated.unrelated.push((who, object.members));
            return keyword.end;
        }
        // `T008とT009は互いに依存しない`.
        if is_denied && self.says_mutual(at) {
            self.note_parallel_list(&object);
            return keyword.end;
        }
        // `T012はT007のみに依存する`.
        let is_only = at
            .checked_sub(1)
            .is_some_and(|before| matches!(self.clause[before].what, Piece::Word("のみ" | "だけ")));
        if let Some(who) = subject.clone().filter(|_| is_only) {
            self.stated.only.push((who, object.members.clone()));
        }
        let force = if is_wish(self.clause, at, FAR) { Force::Loose } else { Force::Firm };
        match subject {
            Some(who) => self.stated.claims.push(OrderClaim { who, on: object.members, force }),
            None if self.voice.is_own() => {
                self.stated.claims.push(OrderClaim { who: Vec::new(), on: object.members, force });
            }
            None => {
                self.subject = None;
                // `Phase 2完成后US1…`: here the subject may follow at once.
                self.waited_for = Some((object.members, 0, None));
            }
        }
        keyword.end
    }

    /// `US2: US3、US4 的前置條件`: what was named last waits for the subject.
    pub(super) fn postfix_blocks(&mut self, at: usize, keyword: Keyword) -> usize {
        const NEAR: usize = 2;
        let who = self.last.take().filter(|list| at - list.end <= NEAR).map(|list| list.members);
        // `US2 的前置条件：US1`.
        let on = self.named_behind_colon(keyword.end);
        if let Some(who) = who.clone().filter(|_| !on.is_empty()) {
            self.stated.claims.push(OrderClaim { who, on, force: Force::Firm });
            return keyword.end;
        }
        let on = self.subject.clone().filter(|subject| who.as_ref() != Some(subject));
        if let (Some(who), Some(on)) = (who, on) {
            self.stated.claims.push(OrderClaim { who, on, force: Force::Blocking });
        }
        keyword.end
    }
}
