//! Sentences that permit parallel work: "T001 and T002 can be written in parallel".

use super::{
    super::{
        keywords::{ClauseVoice, has_any, is_denied, keyword_at},
        tokens::{Piece, Token, is_cjk, is_one_of, word_at},
    },
    ClauseReader,
};

/// Words that permit something.
const MODALS: [&str; 22] = [
    "can", "may", "could", "podem", "pode", "pueden", "puede", "peuvent", "peut", "possono", "può", "können",
    "kann", "kunnen", "kan", "można", "mogą", "можно", "могут", "dapat", "bisa", "thể",
];

/// Whether a token is a word that permits something.
pub(super) fn is_modal(token: &Token<'_>) -> bool {
    token.is_word(&MODALS)
}

/// Whether a list and "parallel" are joined only by words like "can run in": what may be done with the tasks after a
/// word that permits it, and before that a few words that tell what they are.
pub(super) fn is_permission(between: &[Token<'_>]) -> bool {
    /// How many words may tell what the tasks are, and what may be done with them: "T001-T005 for the first page can be picked up in
    /// parallel".
    const MOST_WORDS: usize = 6;
    /// The words between them where nothing permits it.
    const WORDS: &[&str] = &[
        "start", "safe", "to", "son", "são", "sont", "sono", "sind", "begin", "proceed", "tasks", "tests",
        "all", "both", "run", "runs", "be", "execute", "executed", "done", "written", "developed", "worked",
        "created", "implemented", "launched", "in", "on", "also", "safely", "are", "then", "built",
        "content", "work", "development", "at", "the", "em", "en", "laufen", "có", "thể", "chạy", "可",
        "可以", "均可", "都可以", "可同时", "能", "は", "が", "は同時に", "任务", "タスクは", "tarefas",
        "tareas", "tâches",
    ];
    /// After these words, "parallel" is about something else: "T001 and T002 can share the parallel part".
    const LINKS: [&str; 9] = ["with", "for", "to", "by", "of", "that", "which", "share", "and"];
    const SURELY: [&str; 6] = ["safely", "fully", "easily", "completely", "entirely", "independently"];
    let is_among = |words: &[&str], word: &str| is_one_of(word, words);
    let is_plain = |at: usize| {
        matches!(between[at].what, Piece::Word(_))
            && keyword_at(between, at, ClauseVoice::Section).is_none()
            && !is_denied(between, at + 1)
    };
    let modal = between.iter().position(is_modal).filter(|at| *at <= MOST_WORDS && (0..*at).all(is_plain));
    if let Some(modal) = modal {
        // "can mostly run in parallel" leaves open which of them can.
        let is_hedge =
            |word: &str| word.ends_with("ly") && !is_among(&SURELY, word) || word.ends_with("mente");
        let is_link = |token: &Token<'_>| matches!(token.what, Piece::Word(word) if is_among(&LINKS, word) || is_hedge(word));
        return (modal..between.len()).all(is_plain)
            && between.len() - modal <= MOST_WORDS
            && !between[modal..].iter().any(is_link);
    }
    // Chinese, Japanese and Korean tell what the tasks are right after their ids. In "可与后端并行" they run in parallel with something else.
    let is_noun = |word: &str| {
        word.chars().all(is_cjk)
            && !word.starts_with(['不', '非', '无', '無', '没', '沒'])
            && !matches!(word, "与" | "與" | "和" | "跟")
    };
    between
        .iter()
        .all(|token| matches!(token.what, Piece::Word(word) if is_among(WORDS, word) || is_noun(word)))
}

impl ClauseReader<'_, '_> {
    /// The "parallel" of "T001 and T002 can unblock parallel work".
    pub(super) fn is_adjective(&self, at: usize) -> bool {
        const SHORTLY: usize = 6;
        let before = &self.clause[at.saturating_sub(SHORTLY)..at];
        let is_english = has_any(before, &["can", "may", "could"]);
        let is_adverb = before.last().is_some_and(|last| last.is_word(&["in", "run", "be"]));
        let goes_on = word_at(self.clause, at + 1).is_some() && self.keyword_at(at + 1).is_none();
        is_english && !is_adverb && goes_on && has_any(&self.clause[at..=at], &["parallel", "concurrent"])
    }
}
