//! Sentences that say what waits for what: "T005 depends on T001-T003", "US3 depends on US1", "(after T002)",
//! and arrows, whose direction only the whole section can tell.

use super::{
    Offset,
    keywords::{Keyword, Reach, Sense, Voice, is_denied, is_filler, is_of_last_step, is_wish, keyword_at},
    mentions::{List, Mentions, Name, Placed, behind_parenthesis},
    tokens::{Piece, Token},
};

/// That some wait for others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim<'a> {
    /// Empty for the task that the sentence stands in.
    pub(super) who: Vec<Placed<'a>>,
    pub(super) on: Vec<Placed<'a>>,
    pub(super) force: Force,
}

/// How much a sentence can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// It says what waits for what.
    Firm,
    /// A remark in brackets, or a wish such as "best done after US1".
    Loose,
}

/// Left and right of an arrow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArrowClaim<'a> {
    pub(super) left: Vec<Placed<'a>>,
    pub(super) right: Vec<Placed<'a>>,
}

/// What tokens say about order.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) claims: Vec<Claim<'a>>,
    pub(super) arrows: Vec<ArrowClaim<'a>>,
    /// What is said to run in parallel with others, or to be independent of them.
    pub(super) unrelated: Vec<(Vec<Placed<'a>>, Vec<Placed<'a>>)>,
    /// Lists of tasks that are said to run one behind the other, in the order of the file.
    pub(super) chains: Vec<Vec<Placed<'a>>>,
    /// Lists of which each member is said to run beside the others.
    pub(super) abreast: Vec<Vec<Placed<'a>>>,
    /// Names of what is said to wait for nothing.
    pub(super) free: Vec<Placed<'a>>,
    /// Sentences that surely speak of order and cannot be read.
    pub(super) unread: Vec<Offset>,
}

/// Reads the sentences of one paragraph, item or task.
pub(super) fn read<'a>(mentions: &Mentions<'_>, tokens: &[Token<'a>], voice: Voice) -> Said<'a> {
    let mut said = Said::default();
    let mut topic: Option<Vec<Placed<'a>>> = None;
    for clause in tokens.split(|token| token.what == Piece::Stop) {
        if voice == Voice::Section && is_advice(clause) {
            continue;
        }
        let mut reader = ClauseReader {
            mentions,
            clause,
            voice,
            said: &mut said,
            subject: None,
            last: None,
            waited_for: None,
            is_remark: false,
        };
        reader.topic(&mut topic);
        reader.read(topic.as_deref());
    }
    said
}

/// How one person would go about it is no dependency: "Sequential (solo developer): Phase 1 → 2 → 3".
fn is_advice(clause: &[Token<'_>]) -> bool {
    clause.iter().any(|token| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "solo" | "recommended" | "suggested" | "recommend" | "developer" | "developers" | "example" | "或按优先级顺序进行" | "staffed"
        ))
    })
}

/// "sequentially or in parallel" leaves it open.
fn offers_choice(between: &[Token<'_>]) -> bool {
    between.iter().any(|token| matches!(token.what, Piece::Word("or" | "parallel")))
}

/// Whether nothing stands between a list and "parallel" but words like "can run in". Tasks that may only start
/// together may still need each other's results.
fn is_permission(between: &[Token<'_>], is_of_tasks: bool) -> bool {
    const STARTS: [&str; 3] = ["start", "begin", "proceed"];
    const WORDS: [&str; 26] = [
        "tasks",
        "tests",
        "can",
        "may",
        "could",
        "all",
        "both",
        "run",
        "runs",
        "be",
        "execute",
        "executed",
        "done",
        "written",
        "developed",
        "worked",
        "created",
        "implemented",
        "launched",
        "in",
        "on",
        "also",
        "safely",
        "are",
        "then",
        "built",
    ];
    let is_word = |word: &str| WORDS.contains(&word) || !is_of_tasks && STARTS.contains(&word);
    between.iter().all(|token| matches!(token.what, Piece::Word(word) if is_word(word)))
}

struct ClauseReader<'c, 'a> {
    mentions: &'c Mentions<'c>,
    clause: &'c [Token<'a>],
    voice: Voice,
    said: &'c mut Said<'a>,
    subject: Option<Vec<Placed<'a>>>,
    /// The list that was named last.
    last: Option<List<'a>>,
    /// "After Phase 2, …": what the subject that is still to come waits for, and where that ends.
    waited_for: Option<(Vec<Placed<'a>>, usize)>,
    /// Whether the clause stands in brackets.
    is_remark: bool,
}

impl<'a> ClauseReader<'_, 'a> {
    fn read(&mut self, topic: Option<&[Placed<'a>]>) {
        self.note_freedom(topic);
        let mut at = 0;
        while at < self.clause.len() {
            at = self.step(at, topic);
        }
    }

    /// In "**US2 (Phase 4)**: P2. Depends on US1." the item is about what stands before the colon.
    fn topic(&self, topic: &mut Option<Vec<Placed<'a>>>) {
        if topic.is_some() || self.voice == Voice::Task {
            return;
        }
        let colon = self.clause.iter().position(|token| token.what == Piece::Colon);
        let dash = self.clause.iter().position(|token| token.what == Piece::Dash);
        let Some(end) = colon.or(dash) else { return };
        let head = &self.clause[..end];
        if (0..end).any(|at| keyword_at(head, at, self.voice).is_some()) {
            return;
        }
        let first = (0..end).find_map(|at| self.mentions.list_at(head, at));
        *topic = first.map(|list| list.members);
    }

    /// "Setup (Phase 1): no dependencies", "can start immediately".
    fn note_freedom(&mut self, topic: Option<&[Placed<'a>]>) {
        if self.voice == Voice::Task || self.is_remark {
            return;
        }
        let word = |at: usize| match self.clause.get(at).map(|token| token.what) {
            Some(Piece::Word(word)) => word.to_lowercase(),
            _ => String::new(),
        };
        let says = |first: &[&str], second: &[&str]| {
            (0..self.clause.len()).any(|at| {
                first.contains(&word(at).as_str())
                    && second.contains(&word(at + 1).as_str())
                    && !matches!(word(at + 2).as_str(), "on" | "between" | "after" | "once")
            })
        };
        let is_free = says(&["no", "zero"], &["dependencies", "deps", "dependency", "prerequisites"])
            || says(&["start", "starts", "begin"], &["immediately"])
            || (0..self.clause.len()).any(|at| matches!(word(at).as_str(), "无依赖" | "無依賴"));
        let has_keyword = (0..self.clause.len()).any(|at| {
            keyword_at(self.clause, at, self.voice).is_some_and(|k| k.sense != Sense::Unrelated)
                && !is_denied(self.clause, at)
        });
        if is_free && !has_keyword {
            self.said.free.extend(topic.unwrap_or_default().iter().cloned());
        }
    }

    /// Takes what stands at a position, and gives the next position.
    fn step(&mut self, at: usize, topic: Option<&[Placed<'a>]>) -> usize {
        match self.clause[at].what {
            Piece::Open => return self.remark(at),
            Piece::Word("with") if self.is_parallel_mark(at) => return self.parallel_with(at, topic),
            Piece::OpenSquare if self.voice == Voice::Section => {
                return behind_parenthesis(self.clause, at).max(at + 1);
            }
            _ => {}
        }
        if let Some(list) = self.mentions.list_at(self.clause, at) {
            return self.list(at, list);
        }
        match keyword_at(self.clause, at, self.voice) {
            Some(keyword) => self.keyword(at, keyword, topic),
            None => {
                self.note_manner(at);
                at + 1
            }
        }
    }

    /// "T008–T011 edit one file and run sequentially", "T012 and T013 can run in parallel".
    fn note_manner(&mut self, at: usize) {
        const SHORTLY: usize = 14;
        let Piece::Word(word) = self.clause[at].what else { return };
        let Some(list) = self.last.as_ref().filter(|list| list.end <= at && at - list.end <= SHORTLY) else {
            return;
        };
        if self.voice == Voice::Task || is_denied(self.clause, at) {
            return;
        }
        let between = &self.clause[list.end..at];
        let behind = &self.clause[at + 1..self.clause.len().min(at + 4)];
        let is_of_tasks =
            list.members.iter().all(|(name, _)| matches!(name, Name::Task(_) | Name::Range(..)));
        match word.to_ascii_lowercase().as_str() {
            "sequential" | "sequentially"
                if is_of_tasks && !offers_choice(between) && !offers_choice(behind) =>
            {
                self.said.chains.push(list.members.clone());
            }
            "parallel" | "simultaneously" | "concurrently" if is_permission(between, is_of_tasks) => {
                self.said.abreast.push(list.members.clone());
            }
            _ => {}
        }
    }

    fn list(&mut self, at: usize, list: List<'a>) -> usize {
        // In "after foundational setup" the second title goes on with the first; it is no subject.
        if let Some((on, _)) = self.waited_for.take_if(|(_, end)| *end < at) {
            let force = self.force();
            self.said.claims.push(Claim { who: list.members.clone(), on, force });
        }
        // "US1's build (T005) depends on …" is about T005, not about the story.
        let is_owner = matches!(self.clause.get(list.end).map(|token| token.what), Some(Piece::Word("s")));
        if self.subject.is_none() && self.voice == Voice::Section && !is_owner {
            self.subject = Some(list.members.clone());
        }
        let end = list.end;
        if self.voice == Voice::Section && self.is_arrow(self.behind_words(end)) {
            return self.arrows(list);
        }
        self.last = Some(list);
        end
    }

    /// The "with" of "T008 [P] with T005/T006".
    fn is_parallel_mark(&self, at: usize) -> bool {
        let mark = [Piece::OpenSquare, Piece::Word("P"), Piece::CloseSquare, Piece::Word("with")];
        let tokens = at.checked_sub(3).map(|start| &self.clause[start..=at]);
        self.voice == Voice::Section
            && tokens.is_some_and(|tokens| tokens.iter().map(|token| token.what).eq(mark))
    }

    fn parallel_with(&mut self, at: usize, topic: Option<&[Placed<'a>]>) -> usize {
        let Some(list) = self.mentions.list_at(self.clause, at + 1) else { return at + 1 };
        let who = self.subject_of(at, Sense::Unrelated, topic);
        self.said.unrelated.push((list.members.clone(), who.clone()));
        self.said.unrelated.push((who, list.members));
        list.end
    }

    fn force(&self) -> Force {
        if self.is_remark { Force::Loose } else { Force::Firm }
    }

    fn is_arrow(&self, at: usize) -> bool {
        matches!(self.clause.get(at).map(|token| token.what), Some(Piece::Arrow(_)))
    }

    /// Brackets: what they say counts only if they name its subject too. In a task they are part of the sentence.
    fn remark(&mut self, at: usize) -> usize {
        let end = behind_parenthesis(self.clause, at);
        if self.voice == Voice::Task || end <= at + 1 {
            return at + 1;
        }
        let inner = &self.clause[at + 1..end - 1];
        if self.subject.is_none()
            && let Some(list) = self.mentions.list_at(inner, 0)
        {
            // "Tests (T004-T007) before implementation", "Registry/Docs (Phase 7): …".
            self.subject = Some(list.members);
            return end;
        }
        let mut reader = ClauseReader {
            mentions: self.mentions,
            clause: inner,
            voice: self.voice,
            said: &mut *self.said,
            subject: None,
            last: None,
            waited_for: None,
            is_remark: true,
        };
        reader.read(None);
        end
    }

    fn keyword(&mut self, at: usize, keyword: Keyword, topic: Option<&[Placed<'a>]>) -> usize {
        if keyword.sense == Sense::Postfix {
            return self.postfix(at, keyword);
        }
        let object = self.object_at(keyword);
        if is_denied(self.clause, at) || keyword.sense == Sense::Unrelated {
            let Some((object, end)) = object else { return keyword.end };
            if self.voice == Voice::Section && !self.is_remark {
                let who = self.subject_of(at, keyword.sense, topic);
                if keyword.sense == Sense::Unrelated {
                    self.said.unrelated.push((object.clone(), who.clone()));
                }
                self.said.unrelated.push((who, object));
            }
            return end;
        }
        if keyword.sense == Sense::Waits && self.voice == Voice::Section && is_of_last_step(self.clause, at) {
            self.said.unread.push(self.clause[at].at);
            return object.map_or(keyword.end, |(_, end)| end);
        }
        let who = self.subject_of(at, keyword.sense, topic);
        let Some((object, end)) = object else {
            if keyword.is_certain && self.voice == Voice::Section && !self.is_remark && !who.is_empty() {
                self.said.unread.push(self.clause[at].at);
            }
            return keyword.end;
        };
        self.last = Some(List { members: object.clone(), last: at, end, is_comma_list: false });
        if self.voice == Voice::Task || !who.is_empty() {
            let force = if is_wish(self.clause, at) { Force::Loose } else { self.force() };
            self.said.claims.push(match keyword.sense {
                Sense::Waits | Sense::Postfix => Claim { who, on: object, force },
                _ => Claim { who: object, on: who, force },
            });
        } else if keyword.sense == Sense::Waits && !self.is_remark {
            self.waited_for = Some((object, end));
        }
        end
    }

    /// The list right before the keyword, else the subject of the clause, else what the item is about.
    fn subject_of(&self, at: usize, sense: Sense, topic: Option<&[Placed<'a>]>) -> Vec<Placed<'a>> {
        let last = self.last.as_ref().filter(|list| list.end == at || sense == Sense::Then);
        let last = last.map(|list| list.members.clone());
        let subject = last.or_else(|| self.subject.clone()).unwrap_or_default();
        if subject.is_empty() && !self.is_remark {
            return topic.unwrap_or_default().to_vec();
        }
        subject
    }

    /// `T003はT001に依存`, `Phase 2完成后`: what was named last is waited for.
    fn postfix(&mut self, at: usize, keyword: Keyword) -> usize {
        let Some(object) = self.last.take().filter(|list| at - list.end <= 2) else { return keyword.end };
        let subject = self.subject.clone().filter(|subject| *subject != object.members);
        match subject {
            Some(who) => self.said.claims.push(Claim { who, on: object.members, force: Force::Firm }),
            None if self.voice == Voice::Task => {
                self.said.claims.push(Claim { who: Vec::new(), on: object.members, force: Force::Firm });
            }
            None => {
                self.subject = None;
                // `Phase 2完成后US1…`: here the subject may follow at once.
                self.waited_for = Some((object.members, 0));
            }
        }
        keyword.end
    }

    /// The list that a keyword speaks of, and where it ends.
    fn object_at(&self, keyword: Keyword) -> Option<(Vec<Placed<'a>>, usize)> {
        const FAR: usize = 14;
        const NEAR: usize = 5;
        let limit = if keyword.reach == Reach::Far { FAR } else { NEAR };
        let first = keyword.end;
        for start in first..self.clause.len().min(first + limit) {
            if let Some(list) = self.mentions.list_at(self.clause, start) {
                return Some(self.without_next_subject(list));
            }
            if keyword_at(self.clause, start, self.voice).is_some() {
                return None;
            }
            let may_stand_between = match self.clause[start].what {
                Piece::Word(word) => keyword.reach == Reach::Far || is_filler(word),
                Piece::Colon | Piece::Other | Piece::Dash => true,
                Piece::Arrow(_) => false,
                _ => keyword.reach == Reach::Far,
            };
            if !may_stand_between {
                return None;
            }
        }
        None
    }

    /// In "T019 after T006, T020 after T015" the last member of the list already begins the next sentence.
    fn without_next_subject(&self, mut list: List<'a>) -> (Vec<Placed<'a>>, usize) {
        let goes_on = list.end < self.clause.len()
            && (keyword_at(self.clause, list.end, self.voice).is_some_and(|k| k.sense != Sense::Then)
                || self.is_arrow(list.end));
        if goes_on && list.members.len() > 1 && list.is_comma_list {
            list.members.pop();
            return (list.members, list.last);
        }
        (list.members, list.end)
    }

    /// A chain of arrows that begins with a list.
    fn arrows(&mut self, first: List<'a>) -> usize {
        let mut left = first;
        let mut at = self.behind_words(left.end);
        while let Some(Piece::Arrow(points_left)) = self.clause.get(at).map(|token| token.what) {
            let Some((right, is_worded)) = self.right_of(at + 1) else {
                at += 1;
                break;
            };
            if is_worded {
                // "Phase 4 → after Phase 2": the word says it, the arrow only leads to it.
                self.last = Some(left);
                return at + 1;
            }
            let end = right.end;
            let (pairs, rest) = self.split_pairs(right);
            if !self.is_result(end) {
                let (left, right) = (left.members.clone(), pairs);
                self.said.arrows.push(if points_left {
                    ArrowClaim { left: right, right: left }
                } else {
                    ArrowClaim { left, right }
                });
            }
            left = rest;
            at = self.behind_words(end);
        }
        self.last = Some(left);
        at
    }

    /// What an arrow leads to, and whether a keyword stands before it.
    fn right_of(&self, at: usize) -> Option<(List<'a>, bool)> {
        const SHORTLY: usize = 6;
        for start in at..self.clause.len().min(at + SHORTLY) {
            if let Some(list) = self.mentions.list_at(self.clause, start) {
                return Some((list, false));
            }
            if keyword_at(self.clause, start, self.voice).is_some() {
                let list = List { members: Vec::new(), last: start, end: start, is_comma_list: false };
                return Some((list, true));
            }
            if matches!(self.clause[start].what, Piece::Arrow(_)) {
                return None;
            }
            // An arrow may lead into brackets: "T001 → (T002, T003) → T004".
        }
        None
    }

    /// "T001 → T002, T003 → T004" is two pairs: the list between the arrows is cut in two.
    fn split_pairs(&self, mut right: List<'a>) -> (Vec<Placed<'a>>, List<'a>) {
        let goes_on = self.is_arrow(self.behind_words(right.end));
        let is_grouped = right.last > 1
            && right.members.len() > 1
            && (0..right.last)
                .rev()
                .take(4)
                .any(|at| matches!(self.clause[at].what, Piece::Open | Piece::OpenSquare));
        if goes_on && right.is_comma_list && right.members.len() == 2 && !is_grouped {
            let second = right.members.split_off(1);
            let rest = List { members: second, ..right.clone() };
            return (right.members, rest);
        }
        (right.members.clone(), right)
    }

    /// "T008 → T003 passes": the arrow leads to a result.
    fn is_result(&self, at: usize) -> bool {
        matches!(self.clause.get(at).map(|token| token.what), Some(Piece::Word(word)) if matches!(word, "passes" | "pass" | "green" | "turns" | "fails"))
    }

    /// Behind the words that explain a member of a chain, if an arrow follows them.
    fn behind_words(&self, at: usize) -> usize {
        const SHORTLY: usize = 10;
        for next in at..self.clause.len().min(at + SHORTLY) {
            match self.clause[next].what {
                Piece::Arrow(_) => return next,
                Piece::Word(_) if keyword_at(self.clause, next, self.voice).is_some() => return at,
                Piece::Id(_) | Piece::Comma | Piece::Open | Piece::Dash => return at,
                _ => {}
            }
        }
        at
    }
}
