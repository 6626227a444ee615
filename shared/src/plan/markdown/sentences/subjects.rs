//! The subject of a clause: the names before a colon, in brackets or right before a keyword, as in "US2: depends on US1".

use super::{
    super::{
        keywords::{Sense, has_any, keyword_at},
        name_reader::{List, Name, PlacedName},
        tokens::{Piece, Token, is_and},
    },
    ClauseReader, is_of_tasks, is_permission,
};

/// Words that may come between tasks and the statement about them.
const AUXILIARIES: [&str; 10] =
    ["should", "must", "can", "may", "will", "need", "to", "only", "also", "start"];

impl<'a> ClauseReader<'_, 'a> {
    /// In "**US2 (Phase 4)**: P2. Depends on US1." the item is about what comes before the colon.
    pub(super) fn topic(&self, topic: &mut Option<Vec<PlacedName<'a>>>) {
        if topic.is_some() || self.voice.is_own() {
            return;
        }
        let colon = self.clause.iter().position(|token| token.what == Piece::Colon);
        let dash = self.clause.iter().position(|token| matches!(token.what, Piece::Dash | Piece::Pause));
        let Some(end) = colon.or(dash) else { return };
        let head = &self.clause[..end];
        if (0..end).any(|at| keyword_at(head, at, self.voice).is_some()) {
            return;
        }
        let first = (0..end).find_map(|at| self.name_reader.list_at(head, at));
        *topic = first.map(|list| list.members).or_else(|| Some(vec![self.title_of(head)?]));
    }

    /// The one phase whose title has all the words of a head outside of brackets.
    fn title_of(&self, head: &[Token<'a>]) -> Option<PlacedName<'a>> {
        const MOST_WORDS: usize = 6;
        const LONG: usize = 4;
        let outside = head.iter().take_while(|token| !matches!(token.what, Piece::Open | Piece::OpenSquare));
        let words: Vec<String> = outside
            .filter_map(|token| match token.what {
                Piece::Word(word) if !word.eq_ignore_ascii_case("and") => Some(word.to_lowercase()),
                _ => None,
            })
            .collect();
        let is_telling = words.len() <= MOST_WORDS && words.iter().any(|word| word.len() >= LONG);
        let node = is_telling.then(|| self.name_reader.known.phase_with_words(&words)).flatten()?;
        Some((Name::Node(node), head.first()?.at))
    }

    /// "Types (T016) and API (T017) before pages": the text in several brackets right before a keyword is one list.
    pub(super) fn join_named(&mut self, at: usize) {
        const SHORTLY: usize = 40;
        let named = std::mem::take(&mut self.named);
        let near = &self.clause[at.saturating_sub(SHORTLY)..at];
        let is_joint = |pair: &[Token<'a>]| {
            pair[0].what == Piece::Close
                && match pair[1].what {
                    Piece::Word(word) => is_and(word),
                    piece => matches!(piece, Piece::Comma | Piece::Plus),
                }
        };
        let is_last = self.last.as_ref().is_some_and(|last| last.end == at);
        if named.len() > 1 && is_last && near.windows(2).any(is_joint) {
            self.last.iter_mut().for_each(|last| last.members = named.concat());
        }
    }

    /// The list right before the keyword, else the subject of the clause, else what the item is about.
    pub(super) fn subject_of(
        &self,
        at: usize,
        sense: Sense,
        topic: Option<&[PlacedName<'a>]>,
    ) -> Vec<PlacedName<'a>> {
        if let Some(named) = self.named_before_which(at).filter(|_| sense == Sense::Waits) {
            return named;
        }
        let is_near = |list: &List<'a>| match sense {
            Sense::Then => true,
            // "T037 can run in parallel with T038".
            Sense::Unrelated => list.end <= at && is_permission(&self.clause[list.end..at]),
            // "T004 and T005 both depend on T003"; after "US3: shares files, so" also "T004 should wait for T003".
            _ => {
                const MAX_WORDS_BETWEEN: usize = 3;
                let between = self.clause.get(list.end..at).unwrap_or_default();
                let is_of_tasks = list.members.iter().all(is_of_tasks);
                // The bracket of "services (T002) before endpoints".
                let is_between = |token: &Token<'_>| {
                    matches!(token.what, Piece::Word("both" | "all" | "each") | Piece::Close)
                        || is_of_tasks && token.is_word(&AUXILIARIES)
                };
                list.end <= at && between.len() <= MAX_WORDS_BETWEEN && between.iter().all(is_between)
            }
        };
        let last = self.last.as_ref().filter(|list| is_near(list));
        let last = last.map(|list| list.members.clone()).or_else(|| self.meant_by_pronoun(at));
        let last = self.comes_first.clone().filter(|_| sense == Sense::Then).or(last);
        let subject = last.or_else(|| self.subject.clone()).unwrap_or_default();
        if subject.is_empty() && !self.is_remark {
            return topic.unwrap_or_default().to_vec();
        }
        subject
    }

    /// In "T003 depends on T002, which depends on T001" the second is about what comes before "which".
    fn named_before_which(&self, at: usize) -> Option<Vec<PlacedName<'a>>> {
        let which = at.checked_sub(1).filter(|at| has_any(&self.clause[*at..=*at], &["which", "that"]))?;
        let is_comma = |at: &usize| self.clause[*at].what == Piece::Comma;
        let end = which.checked_sub(1).filter(is_comma).unwrap_or(which);
        let is_named = |list: &&List<'a>| list.end == end && list.members.iter().all(is_of_tasks);
        self.last.as_ref().filter(is_named).map(|list| list.members.clone())
    }
}
