//! From labels and sentences about whole phases to what runs in parallel: "Parallel group 1: T001, T002", "All setup tasks can run in
//! parallel".

use super::{
    super::{
        keywords::{ClauseVoice, Sense, is_denied, is_parallel_token, is_parallel_word},
        name_reader::{List, Name, PlacedName, behind_parenthesis, is_of_tasks},
        tokens::{Piece, Token, is_one_of, word_at},
    },
    ClauseReader, is_permission,
};

/// Words for a line of work, whose tasks are done one after the other while other lines run in parallel with it.
const LINES_OF_WORK: [&str; 14] = [
    "track", "tracks", "stream", "streams", "lane", "lanes", "developer", "developers", "dev", "team",
    "week", "sequential", "workstream", "workstreams",
];

/// Whether a text names a line of work: "Parallel track A", "Developer B".
pub(in super::super) fn names_line_of_work(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| is_one_of(word, &LINES_OF_WORK))
}

impl<'a> ClauseReader<'_, 'a> {
    /// "Parallel group 1 (models): T008, T009": what a label says of the list after it.
    pub(super) fn note_parallel_label(&mut self) {
        if self.voice != ClauseVoice::Section || self.is_remark {
            return;
        }
        let Some(colon) = self.clause.iter().position(|token| token.what == Piece::Colon) else { return };
        let head = &self.clause[..colon];
        let says_parallel = |at: usize| matches!(head[at].what, Piece::Word(word) if is_parallel_word(word) || word.eq_ignore_ascii_case("together"));
        let is_line = |token: &Token<'_>| matches!(token.what, Piece::Word(word) if names_line_of_work(word));
        let is_label = (0..colon).any(|at| says_parallel(at) && !is_denied(head, at))
            && !head.iter().any(|token| is_line(token) || matches!(token.what, Piece::Id(_)));
        if !is_label {
            return;
        }
        // "Parallel group 2: the models (T004-T005)".
        let open = self.clause.iter().position(|token| token.what == Piece::Open).unwrap_or_default();
        let is_word = |token: &Token<'_>| matches!(token.what, Piece::Word(_) | Piece::Plus);
        let is_title = open > colon + 1
            && self.clause[colon + 1..open].iter().all(is_word)
            && behind_parenthesis(self.clause, open) == self.clause.len();
        if let Some(tasks) = self.bracketed_tasks(open).filter(|_| is_title) {
            self.stated.parallel_lists.push(tasks);
            return;
        }
        let list = self.name_reader.list_at(self.clause, colon + 1);
        let is_meant = |list: &List<'a>| list.members.iter().all(is_of_tasks) && self.ends_plainly(list.end);
        if let Some(list) = list.filter(is_meant) {
            self.note_parallel_list(&list);
        }
    }

    /// "The models marked [P] can run in parallel (T016-T027)", in any language: a statement about the tasks with the mark.
    pub(super) fn note_marked(&mut self) {
        const MARK: [Piece<'_>; 3] = [Piece::OpenSquare, Piece::Word("P"), Piece::CloseSquare];
        if self.voice != ClauseVoice::Section {
            return;
        }
        let clause = self.clause;
        let mut marks = clause.windows(MARK.len());
        let is_mark = |part: &[Token<'a>]| part.iter().map(|token| token.what).eq(MARK);
        let open = clause.iter().rposition(|token| token.what == Piece::Open);
        let Some(open) = open.filter(|_| marks.any(is_mark)) else { return };
        let has_ids = clause[..open].iter().any(|token| matches!(token.what, Piece::Id(_)));
        let says_parallel = clause[..open].iter().any(is_parallel_token);
        let tasks = self.bracketed_tasks(open).filter(|_| says_parallel && !has_ids);
        self.stated.parallel_marked.extend(tasks);
    }

    /// Whether nothing but an explanation follows, which names no task and says nothing about order.
    fn ends_plainly(&self, at: usize) -> bool {
        (at..self.clause.len()).all(|at| match self.clause[at].what {
            Piece::Word(_) => self.keyword_at(at).is_none(),
            Piece::Id(_) | Piece::Arrow(_) => false,
            _ => true,
        })
    }

    /// The members of a list run in parallel. "T007-T012, T013-T017" means that each range is worked through in its
    /// order, and so does "T007-T012 (form), T013 (page)".
    pub(super) fn note_parallel_list(&mut self, list: &List<'a>) {
        // "[all other stories can run in parallel]" does not tell which they are.
        let is_rest = |token: &Token<'_>| token.is_word(&["other", "others", "remaining"]);
        if self.clause[list.last..list.end].iter().any(is_rest) {
            return;
        }
        let is_range = |(name, _): &PlacedName<'a>| matches!(name, Name::Range(..) | Name::Group(_));
        let ranges = list.members.iter().filter(|name| is_range(name)).count();
        let has_names = (list.last..list.end).any(|at| self.clause[at].what == Piece::Open);
        // "T030 and T027–T029": one task beside a range.
        let is_of_two = list.members.len() == 2 && ranges == 1 && !list.is_comma_list;
        let is_of_ranges =
            list.members.len() > 1 && (ranges == list.members.len() || has_names && ranges > 1 || is_of_two);
        if is_of_ranges {
            let groups: Vec<_> = list.members.iter().map(|range| vec![range.clone()]).collect();
            self.note_parallel_groups(&groups);
        } else if let Some(groups) = list.grouped() {
            // "T003/T004 (US1) and T005/T006 (US2) can run in parallel".
            self.note_parallel_groups(&groups);
        } else {
            self.stated.parallel_lists.push(list.members.clone());
        }
    }

    /// "Phase 3 issue fixes can run in parallel", where the sections of Phase 3 are called "Issue #1" and "Issue #2": each is worked
    /// through in its order, in parallel with the others.
    pub(super) fn note_sections_of_phase(&mut self, at: usize, word: &str) -> bool {
        const FAR: usize = 10;
        let is_near = |list: &&List<'a>| (list.end..list.end + FAR).contains(&at);
        let Some(list) = self.last.as_ref().filter(is_near).filter(|_| !self.voice.is_own()) else {
            return false;
        };
        let [(Name::Phase(_) | Name::Node(_) | Name::Story(_), place)] = list.members[..] else {
            return false;
        };
        let [phase] = self.name_reader.known.nodes(&list.members)[..] else { return false };
        let between = &self.clause[list.end..at];
        let sections = between.iter().find_map(|token| match token.what {
            Piece::Word(word) => {
                Some(self.name_reader.known.sections_within(phase, word)).filter(|found| found.len() > 1)
            }
            _ => None,
        });
        let Some(sections) = sections else { return false };
        if !is_parallel_word(word) || is_denied(self.clause, at) || !is_permission(between) {
            return false;
        }
        let groups: Vec<_> = sections.iter().map(|group| vec![(Name::Group(*group), place)]).collect();
        self.note_parallel_groups(&groups);
        true
    }

    /// "All setup tasks can run in parallel", "Polish tasks can be done in parallel after T040": a phase whose tasks run in parallel with
    /// each other, after those that are named.
    pub(super) fn note_whole_phase(&mut self, at: usize, word: &str) -> bool {
        const TASKS: [&str; 6] = ["tasks", "tareas", "tarefas", "任务", "任務", "작업"];
        const FAR: usize = 10;
        let is_near = |list: &&List<'a>| (list.end..list.end + FAR).contains(&at);
        let Some(list) = self.last.as_ref().filter(is_near).filter(|_| !self.voice.is_own()) else {
            return false;
        };
        let [(name, place)] = &list.members[..] else { return false };
        let is_phase = matches!(name, Name::Node(_) | Name::Phase(_) | Name::Story(_));
        let names_tasks = self.clause[list.end].is_word(&TASKS);
        let is_meant = is_phase && names_tasks && is_permission(&self.clause[list.end..at]);
        if !is_meant || !is_parallel_word(word) || is_denied(self.clause, at) {
            return false;
        }
        // "Launch all setup tasks in parallel:" leads to a list of those that are meant, and "T002-T009: all setup tasks can run
        // in parallel" has named them.
        let is_colon = |at: usize| self.clause.get(at).is_some_and(|token| token.what == Piece::Colon);
        let names_these = |list: &List<'a>| is_colon(list.end) && list.members.iter().all(is_of_tasks);
        let has_list = self.last_but_one.as_ref().is_some_and(names_these);
        if has_list || is_colon(self.clause.len() - 1) {
            return false;
        }
        // "US1 tasks can be parallelized by platform" does not say it of all of them.
        let goes_on = word_at(self.clause, at + 1).is_some();
        let phase = (name.clone(), *place);
        let keyword = self.clause.get(at + 1).and_then(|_| self.keyword_at(at + 1));
        if goes_on && keyword.is_none() {
            return false;
        }
        // "… in parallel once the models are there (T007, T008)" names those that are meant.
        let open = (at + 1..self.clause.len()).find(|at| self.clause[*at].what == Piece::Open);
        if let Some(tasks) = open.and_then(|open| self.bracketed_tasks(open)) {
            self.stated.parallel_lists.push(tasks);
            return true;
        }
        let first = keyword.filter(|keyword| keyword.sense == Sense::Waits);
        let first = first.and_then(|keyword| self.name_reader.list_at(self.clause, keyword.end));
        let first = first.filter(|list| list.members.iter().all(is_of_tasks));
        let first = first.map(|list| list.members).unwrap_or_default();
        self.stated.parallel_phases.push((phase, first));
        true
    }
}
