//! What is named by other words: "both", "them", "each other", "the other tasks of Phase 3", "tests".

use super::{
    super::{
        keywords::{ClauseVoice, Keyword, Sense, has_any, is_denied},
        name_reader::{List, Name, PlacedName, behind_parenthesis, same_names},
        tokens::{Piece, Token, is_one_of, is_word_at, lower_word_at, word_at},
    },
    ClauseReader, Force, OrderClaim, is_of_tasks,
};

/// Words for what is left of a phase.
const OTHERS: [&str; 14] = [
    "other", "others", "rest", "remaining", "demás", "otras", "otros", "demais", "outras", "outros",
    "autres", "anderen", "übrigen", "restlichen",
];

impl<'a> ClauseReader<'_, 'a> {
    /// What something waits for or runs in parallel with, told in other words: "T010 and T011 in parallel; T012 is independent of both" means what the
    /// sentence before is about, "concurrently with the backend (T013, T018)" what is in the brackets.
    pub(super) fn implied_object(&self, keyword: Keyword) -> Option<(Vec<PlacedName<'a>>, usize)> {
        const MOST_WORDS: usize = 5;
        let word = |at: usize| word_at(self.clause, at).unwrap_or_default();
        // "T003 depends on both", but not "… on both the page and the form".
        let is_whole = word(keyword.end + 1).is_empty() && keyword.sense == Sense::Waits;
        let meant = self.meant_by_pronoun(keyword.end + 1);
        if let Some(meant) = meant.filter(|_| is_whole || keyword.sense == Sense::Unrelated) {
            return Some((meant, keyword.end + 1));
        }
        if keyword.sense != Sense::Unrelated {
            return None;
        }
        if word(keyword.end).eq_ignore_ascii_case("tests") && word(keyword.end + 1).is_empty() {
            return Some((vec![(Name::Tests, self.clause[keyword.end].at)], keyword.end + 1));
        }
        // "… with CI/CD (T030-T034)".
        let is_plus = |at: usize| self.clause.get(at).is_some_and(|token| token.what == Piece::Plus);
        let is_plain = |at: &usize| is_plus(*at) || !word(*at).is_empty() && self.keyword_at(*at).is_none();
        let open = keyword.end + (keyword.end..).take(MOST_WORDS).take_while(is_plain).count();
        let is_open = self.clause.get(open).is_some_and(|token| token.what == Piece::Open);
        let tasks = self.bracketed_tasks(open).filter(|_| is_open)?;
        Some((tasks, behind_parenthesis(self.clause, open)))
    }

    /// "T009 can run in parallel with the other tasks of Phase 3", "… with all other Phase 3 tasks": notes it and gives where it ends.
    pub(super) fn note_others_of_phase(
        &mut self,
        at: usize,
        keyword: Keyword,
        topic: Option<&[PlacedName<'a>]>,
    ) -> Option<usize> {
        const MOST_WORDS: usize = 7;
        const WORDS: [&str; 22] = [
            "the", "all", "any", "of", "in", "from", "within", "task", "tasks", "las", "los", "de", "la",
            "tareas", "as", "tarefas", "da", "les", "tâches", "den", "aufgaben", "von",
        ];
        let is = |at: usize, words: &[&str]| is_word_at(self.clause, at, words);
        let is_within = |at: &usize| is(*at, &OTHERS) || is(*at, &WORDS);
        let start = keyword.end;
        let end = start + (start..).take(MOST_WORDS).take_while(is_within).count();
        let list =
            self.name_reader.list_at(self.clause, end).filter(|_| (start..end).any(|at| is(at, &OTHERS)))?;
        let is_phase = matches!(list.members[..], [(Name::Phase(_) | Name::Story(_) | Name::Node(_), _)]);
        let tasks = self.subject_of(at, keyword.sense, topic);
        let is_meant = keyword.sense == Sense::Unrelated
            && self.voice == ClauseVoice::Section
            && !is_denied(self.clause, at)
            && is_phase
            && tasks.iter().all(is_of_tasks);
        is_meant.then(|| {
            self.stated.parallel_with_rest.push((tasks, list.members));
            list.end
        })
    }

    /// `T009 可與其他階段 3 任務平行`: at a word for "parallel", the tasks that run in parallel with the others of a phase.
    pub(super) fn note_parallel_with_rest(&mut self, at: usize) -> bool {
        const CJK: [&str; 8] = ["其他", "其它", "其余", "其餘", "他の", "他之", "다른", "나머지"];
        let (Some(phase), Some(tasks)) = (&self.last, &self.last_but_one) else { return false };
        let is_phase = matches!(phase.members[..], [(Name::Phase(_) | Name::Story(_) | Name::Node(_), _)]);
        let between = self.clause.get(tasks.end..at).unwrap_or_default();
        let is_other = |token: &Token<'_>| matches!(token.what, Piece::Word(word) if CJK.iter().any(|other| word.contains(other)));
        let is_word =
            |token: &Token<'_>| matches!(token.what, Piece::Word(_) | Piece::Phase(_) | Piece::Story(_));
        if !is_phase
            || !tasks.members.iter().all(is_of_tasks)
            || !between.iter().any(is_other)
            || !between.iter().all(is_word)
        {
            return false;
        }
        self.stated.parallel_with_rest.push((tasks.members.clone(), phase.members.clone()));
        true
    }

    /// What "both" and "they" right before a position stand for: "T023 and T024 (two files, both depend on T022)".
    pub(super) fn meant_by_pronoun(&self, at: usize) -> Option<Vec<PlacedName<'a>>> {
        const PRONOUNS: [&str; 5] = ["both", "they", "them", "these", "those"];
        let Piece::Word(word) = self.clause.get(at.checked_sub(1)?)?.what else { return None };
        let is_pronoun = is_one_of(word, &PRONOUNS);
        self.antecedent.clone().filter(|_| is_pronoun)
    }

    /// "US1 establishes the model, which US2 depends on": what a clause after "which" needs is what the sentence is about.
    pub(super) fn note_relative(&mut self, at: usize, list: &List<'a>) {
        const VERBS: [&str; 12] = [
            "depend", "depends", "extend", "extends", "need", "needs", "require", "requires", "reuse",
            "reuses", "build", "builds",
        ];
        let word = |at: usize| lower_word_at(self.clause, at);
        let is_relative =
            at.checked_sub(1).is_some_and(|before| matches!(word(before).as_str(), "which" | "that"));
        let end = list.end + 1 + usize::from(matches!(word(list.end + 1).as_str(), "on" | "upon"));
        let is_whole = VERBS.contains(&word(list.end).as_str()) && end == self.clause.len();
        let on = self.subject.clone().filter(|on| is_relative && is_whole && *on != list.members);
        if let Some(on) = on.filter(|_| self.voice == ClauseVoice::Section) {
            self.stated.claims.push(OrderClaim { who: list.members.clone(), on, force: Force::Firm });
        }
    }

    /// "US1 must be complete before this phase", below the heading of the phase.
    pub(super) fn note_before_this(&mut self, list: &List<'a>) {
        const SHORTLY: usize = 8;
        let is = |token: &Token<'_>, wanted: &str| token.is_word(&[wanted]);
        let behind = &self.clause[list.end..self.clause.len().min(list.end + SHORTLY)];
        let before = behind.iter().position(|token| is(token, "before"));
        let is_this = before.is_some_and(|at| behind[at..].iter().any(|token| is(token, "this")));
        if is_this && self.voice == ClauseVoice::Phase {
            let on = list.members.clone();
            self.stated.claims.push(OrderClaim { who: Vec::new(), on, force: Force::Firm });
        }
    }

    /// "T002 and T003 have no dependencies on each other", "T002 和 T003 互不依赖": they run in parallel.
    pub(super) fn note_mutual_independence(&mut self, at: usize, keyword: Keyword) {
        let is_each = is_word_at(self.clause, keyword.end, &["each"]);
        let is_meant = (is_each || self.says_mutual(at)) && self.voice == ClauseVoice::Section;
        if let Some(list) = self.last.clone().filter(|_| is_meant) {
            self.note_parallel_list(&list);
        }
    }

    /// Whether the word before a position says "each other" in a language that writes no spaces.
    pub(super) fn says_mutual(&self, at: usize) -> bool {
        const ENDS: [&str; 6] = ["互", "相互", "互相", "彼此", "之间", "互い"];
        let before = at.checked_sub(1).map(|before| self.clause[before].what);
        matches!(before, Some(Piece::Word(word)) if ENDS.iter().any(|end| word.ends_with(end)))
    }

    /// "T002 (the fixture) depends on this", in the text of a task: what is named waits for it. A test that comes first may be
    /// spoken of so too, so it counts only so far as it follows the order of the file.
    pub(super) fn note_depends_on_this(&mut self, at: usize, keyword: Keyword) -> bool {
        let is_this = is_word_at(self.clause, keyword.end, &["this"]);
        let is_meant = is_this && self.voice == ClauseVoice::Task && keyword.sense == Sense::Waits;
        let list = self.last.as_ref().filter(|list| is_meant && list.end == at);
        let Some(who) = list.map(|list| list.members.clone()) else { return false };
        self.stated.claims.push(OrderClaim { who, on: Vec::new(), force: Force::Loose });
        true
    }

    /// "US1: Foundational must be complete", and the same below the heading of a phase: what comes first.
    pub(super) fn note_must_be_done(&mut self, list: &List<'a>, topic: Option<&[PlacedName<'a>]>) {
        const SHORTLY: usize = 5;
        const MUST: [&str; 15] = [
            "must", "has", "have", "needs", "need", "debe", "deben", "deve", "devem", "doit", "doivent",
            "muss", "müssen", "musi", "muszą",
        ];
        const DONE: [&str; 14] = [
            "complete", "completed", "done", "finished", "completa", "completo", "completada", "concluída",
            "concluído", "terminée", "terminé", "abgeschlossen", "ukończona", "zakończona",
        ];
        let behind = &self.clause[list.end..];
        let is_must = behind.first().is_some_and(|first| first.is_word(&MUST));
        let is_done = has_any(&behind[..behind.len().min(SHORTLY)], &DONE);
        // "… must be complete before T010" tells what waits.
        let has_keyword = (list.end..self.clause.len()).any(|at| self.keyword_at(at).is_some());
        let is_same = topic.is_some_and(|topic| same_names(topic, &list.members));
        if !is_must || !is_done || has_keyword || is_same || self.voice == ClauseVoice::Task || self.is_remark
        {
            return;
        }
        let who = match self.voice {
            ClauseVoice::Section => topic.unwrap_or_default().to_vec(),
            _ => Vec::new(),
        };
        if self.voice.is_own() || !who.is_empty() {
            let on = list.members.clone();
            self.stated.claims.push(OrderClaim { who, on, force: Force::Firm });
        }
    }

    /// "T002 and T003 depend on each other": they run one after the other.
    pub(super) fn is_mutual(
        &mut self,
        at: usize,
        keyword: Keyword,
        topic: Option<&[PlacedName<'a>]>,
    ) -> bool {
        let is = |at: usize, wanted: &str| is_word_at(self.clause, at, &[wanted]);
        let is_mutual = is(keyword.end, "each") && is(keyword.end + 1, "other");
        if is_mutual && self.voice == ClauseVoice::Section && keyword.sense == Sense::Waits {
            let tasks = self.subject_of(at, keyword.sense, topic);
            self.stated.sequences.extend(Some(tasks).filter(|tasks| tasks.iter().all(is_of_tasks)));
        }
        is_mutual
    }
}
