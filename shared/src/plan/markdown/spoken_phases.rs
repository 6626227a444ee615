//! Phases by words of their titles, as sentences speak of them.

use super::{
    mentions::Mentions,
    tokens::{Piece, Token, is_phase_word},
};

impl Mentions<'_> {
    /// "the API phase", "la fase de API": a phase by words that only its title has.
    pub(super) fn phase_called_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        const MOST_WORDS: usize = 3;
        const FIRST: [&str; 5] = ["fase", "etapa", "faza", "фаза", "этап"];
        const OF: [&str; 7] = ["de", "del", "da", "do", "des", "du", "von"];
        const NO_NAMES: [&str; 24] = [
            "this", "that", "each", "every", "any", "the", "previous", "prior", "next", "same", "first",
            "last", "current", "later", "earlier", "other", "another", "one", "a", "an", "per", "all",
            "both", "phase",
        ];
        let word = |at: usize| match clause.get(at).map(|token| token.what) {
            Some(Piece::Word(word)) => Some(word.to_lowercase()),
            _ => None,
        };
        let is = |at: usize, words: &[&str]| word(at).is_some_and(|word| words.contains(&word.as_str()));
        let is_labelled = |at: usize| matches!(clause.get(at).map(|token| token.what), Some(Piece::Phase(_)));
        let names = |start: usize, len: usize| -> Option<usize> {
            let words: Vec<String> = (start..start + len).map(word).collect::<Option<_>>()?;
            let is_name = |word: &String| !NO_NAMES.contains(&word.as_str()) && !is_phase_word(word);
            words.iter().all(is_name).then(|| self.known.phase_with_words(&words)).flatten()
        };
        if is(at, &FIRST) {
            let start = at + 1 + usize::from(is(at + 1, &OF));
            return (1..=MOST_WORDS).rev().find_map(|len| Some((names(start, len)?, start + len)));
        }
        let noun = (1..=MOST_WORDS).find(|len| word(at + len).is_some_and(|word| is_phase_word(&word)))?;
        let node = names(at, noun).filter(|_| !is_labelled(at + noun + 1))?;
        Some((node, at + noun + 1))
    }
}
