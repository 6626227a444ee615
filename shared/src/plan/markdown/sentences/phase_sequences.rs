//! Phases and stories that run one after the other, as labels and sentences about all of them say it: "Stories must be done in
//! order: US1, US2", "Phases run sequentially".

use super::{
    super::{
        keywords::{ClauseVoice, has_any, is_parallel_word},
        name_reader::{List, is_of_tasks},
        tokens::{Piece, Token},
    },
    ClauseReader,
};

impl<'a> ClauseReader<'_, 'a> {
    /// "Stories must be done in order: US1, US2, US3": what a label says of the list after it.
    pub(super) fn note_ordered_label(&mut self) {
        const IN_ORDER: [&str; 4] = ["order", "sequence", "sequentially", "sequential"];
        if self.voice != ClauseVoice::Section {
            return;
        }
        let clause = self.clause;
        let Some(colon) = clause.iter().position(|token| token.what == Piece::Colon) else { return };
        let is = |at: usize, words: &[&str]| clause[at].is_word(words);
        let says_order = colon > 0 && is(colon - 1, &IN_ORDER);
        let is_open = (0..colon).any(|at| is(at, &["any", "priority", "not", "no", "parallel"]));
        if !says_order || is_open {
            return;
        }
        let list = self.name_reader.list_at(clause, colon + 1);
        let is_meant =
            |list: &List<'a>| list.is_comma_list && list.members.len() > 1 && list.end == clause.len();
        self.stated.sequences.extend(list.filter(is_meant).map(|list| list.members));
    }

    /// "Phases 3-5: stories are executed in priority order": a statement about the phases before a colon. Where that is only one of two
    /// ways, it says nothing.
    pub(super) fn note_phases_in_order(&mut self, all: &[Token<'a>]) {
        /// Longer items are not looked through for each of their sentences.
        const LONGEST: usize = 400;
        const CHOICE: [&str; 9] =
            ["or", "if", "either", "staffed", "any", "recommended", "suggested", "developer", "solo"];
        let is = |token: &Token<'_>, words: &[&str]| token.is_word(words);
        let clause = self.clause;
        let Some(colon) = clause.iter().position(|token| token.what == Piece::Colon) else { return };
        let is_order = |part: &[Token<'a>]| is(&part[0], &["priority"]) && is(&part[1], &["order"]);
        let says_order = clause[colon..].windows(2).any(is_order);
        let is_open = all.len() > LONGEST
            || all.iter().any(|token| is(token, &CHOICE))
            || clause.iter().any(|token| is(token, &["not", "parallel", "recommended"]));
        if self.voice != ClauseVoice::Section || !says_order || is_open {
            return;
        }
        let list = self
            .name_reader
            .list_at(&clause[..colon], 0)
            .or_else(|| self.name_reader.list_at(&clause[..colon], 1));
        let is_whole = |list: &List<'a>| list.end == colon && !list.members.iter().any(is_of_tasks);
        self.stated.sequences.extend(list.filter(is_whole).map(|list| list.members));
    }

    /// "Phases run sequentially", "El orden de ejecución es secuencial": a statement about all phases. Where it is about some, or is
    /// only one of two ways, it says nothing.
    pub(super) fn note_all_in_order(&mut self) {
        const ALL: [&str; 10] = [
            "phases", "stories", "fases", "historias", "histórias", "phasen", "фазы", "阶段", "階段",
            "フェーズ",
        ];
        const ORDER: [&str; 5] = ["order", "orden", "ordem", "ordre", "reihenfolge"];
        const RUN: [&str; 5] = ["execution", "ejecución", "execução", "exécution", "ausführung"];
        const OPEN: [&str; 19] = [
            "within", "each", "every", "or", "can", "may", "could", "if", "not", "most", "mostly", "some",
            "any", "priority", "tasks", "dentro", "cada", "o", "ou",
        ];
        if self.voice != ClauseVoice::Section || self.is_remark {
            return;
        }
        // The text in brackets only explains it.
        let open = self.clause.iter().position(|token| token.what == Piece::Open);
        let clause = &self.clause[..open.unwrap_or(self.clause.len())];
        let is_open = |token: &Token<'_>| match token.what {
            Piece::Word(word) => token.is_word(&OPEN) || is_parallel_word(word),
            piece => matches!(piece, Piece::Id(_) | Piece::Phase(_) | Piece::Story(_) | Piece::Arrow(_)),
        };
        // "in order", "in strict order".
        let is_in = |part: &[Token<'_>]| {
            has_any(&part[..1], &["in", "en", "em"])
                && has_any(&part[1..], &["order", "sequence", "orden", "ordem"])
        };
        let is_sequential =
            |token: &Token<'_>| matches!(token.what, Piece::Word(word) if is_sequential(word));
        let says_order =
            clause.iter().any(is_sequential) || clause.windows(2).chain(clause.windows(3)).any(is_in);
        let is_of_all = has_any(clause, &ALL) || has_any(clause, &ORDER) && has_any(clause, &RUN);
        self.stated.is_in_order |= says_order && is_of_all && !clause.iter().any(is_open);
    }
}

/// Whether a word says that things run one after the other, in the languages that people use.
fn is_sequential(word: &str) -> bool {
    const STEMS: [&str; 6] =
        ["sequential", "secuencial", "sequencial", "séquentiel", "sequenziell", "последовательн"];
    const CJK: [&str; 5] = ["按顺序", "按順序", "依次", "顺序执行", "順序執行"];
    let lower = word.to_lowercase();
    STEMS.iter().any(|stem| lower.starts_with(stem)) || CJK.iter().any(|known| lower.contains(known))
}
