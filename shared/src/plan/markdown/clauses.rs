//! Sentences that say what waits for what: "T005 depends on T001-T003", "T007 blocks T008", "(after T002)",
//! and arrows, whose direction only the whole file can tell.

use super::{
    Offset,
    words::{Piece, Token},
};

/// A task or a phase, as a sentence names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Task(&'a str),
    /// From one task to another, both included.
    Range(&'a str, &'a str),
    Phase(&'a str),
}

/// A name with its place.
pub(super) type Placed<'a> = (Name<'a>, Offset);

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
    /// It speaks of order in general, as "tests before implementation" does.
    Loose,
}

/// Where a sentence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// In a task, about itself.
    Task,
    /// In a section that lists dependencies.
    Section,
}

/// What tokens say about order.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) claims: Vec<Claim<'a>>,
    /// Left and right of each arrow.
    pub(super) arrows: Vec<(Vec<Placed<'a>>, Vec<Placed<'a>>)>,
}

/// Which side of a keyword waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    /// The subject waits for the object.
    Waits,
    /// The object waits for the subject.
    Blocks,
    /// The same, said of a whole group.
    Precedes,
}

/// How far behind a keyword its object may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Near,
    Far,
}

pub(super) fn read<'a>(tokens: &[Token<'a>], voice: Voice) -> Said<'a> {
    let mut said = Said::default();
    for clause in tokens.split(|token| token.what == Piece::Stop) {
        let before = said.arrows.len();
        if voice == Voice::Section {
            arrows(clause, &mut said.arrows);
        }
        if said.arrows.len() == before {
            clause_claims(clause, voice, &mut said.claims);
        }
    }
    said
}

fn clause_claims<'a>(clause: &[Token<'a>], voice: Voice, claims: &mut Vec<Claim<'a>>) {
    let mut subject: Vec<Placed<'a>> = Vec::new();
    let mut last: (Vec<Placed<'a>>, usize) = (Vec::new(), usize::MAX);
    let mut at = 0;
    while at < clause.len() {
        if let Some(List { members: list, end, .. }) = list_at(clause, at) {
            if subject.is_empty() && voice == Voice::Section {
                subject.clone_from(&list);
            }
            last = (list, end);
            at = end;
            continue;
        }
        let Some((sense, reach, end)) = keyword_at(clause, at, voice) else {
            at += 1;
            continue;
        };
        if !is_denied(clause, at)
            && let Some((object, next)) = object_at(clause, (end, reach), voice)
        {
            let is_adjacent = last.1 == at;
            let who = if is_adjacent { last.0.clone() } else { subject.clone() };
            last = (object.clone(), next);
            push_claim(claims, sense, who, object);
            at = next;
            continue;
        }
        at = end;
    }
    if voice == Voice::Section {
        claims.retain(|claim| !claim.who.is_empty() && !claim.on.is_empty());
    }
}

fn push_claim<'a>(claims: &mut Vec<Claim<'a>>, sense: Sense, who: Vec<Placed<'a>>, object: Vec<Placed<'a>>) {
    claims.push(match sense {
        Sense::Waits => Claim { who, on: object, force: Force::Firm },
        Sense::Blocks => Claim { who: object, on: who, force: Force::Firm },
        Sense::Precedes => Claim { who: object, on: who, force: Force::Loose },
    });
}

/// The keyword at a position: what it means, how far its object may be, and where it ends.
fn keyword_at(clause: &[Token<'_>], at: usize, voice: Voice) -> Option<(Sense, Reach, usize)> {
    let Piece::Word(word) = clause[at].what else { return None };
    if !KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word)) {
        return None;
    }
    let follows = |wanted: &str| matches!(clause.get(at + 1).map(|t| t.what), Some(Piece::Word(next)) if next.eq_ignore_ascii_case(wanted));
    let is_label = clause.get(at + 1).is_some_and(|next| next.what == Piece::Colon);
    // A task's own text says "after" and "needs" about much else, a dependency section does not.
    let reach = if voice == Voice::Section { Reach::Far } else { Reach::Near };
    let found = match word.to_lowercase().as_str() {
        "depends" | "depend" | "dependent" | "depending" if follows("on") => (Sense::Waits, Reach::Far, 2),
        "depende" if follows("de") => (Sense::Waits, Reach::Far, 2),
        "blocked" if follows("by") => (Sense::Waits, Reach::Far, 2),
        "waits" | "wait" | "waiting" if follows("for") => (Sense::Waits, Reach::Far, 2),
        "after" => (Sense::Waits, reach, 1),
        "requires" | "require" | "needs" | "need" | "follows" => (Sense::Waits, Reach::Near, 1),
        "依赖" | "依赖于" | "依存" => (Sense::Waits, Reach::Near, 1),
        "dependencies" | "dependency" | "depends" | "deps" | "preconditions" | "precondition"
        | "prerequisites" | "prerequisite"
            if is_label =>
        {
            (Sense::Waits, Reach::Near, 2)
        }
        "blocks" | "block" | "unblocks" => (Sense::Blocks, Reach::Near, 1),
        "before" | "precedes" | "precede" if voice == Voice::Section => (Sense::Precedes, reach, 1),
        _ => return None,
    };
    Some((found.0, found.1, at + found.2))
}

/// First words of everything that [`keyword_at`] knows. Most words are none of them.
const KEYWORDS: [&str; 31] = [
    "depends",
    "depend",
    "dependent",
    "depending",
    "depende",
    "blocked",
    "waits",
    "wait",
    "waiting",
    "after",
    "requires",
    "require",
    "needs",
    "need",
    "follows",
    "dependencies",
    "dependency",
    "deps",
    "preconditions",
    "precondition",
    "prerequisites",
    "prerequisite",
    "blocks",
    "block",
    "unblocks",
    "before",
    "precedes",
    "precede",
    "依赖",
    "依赖于",
    "依存",
];

/// "not", "no" or "without" shortly before a keyword turns it round.
fn is_denied(clause: &[Token<'_>], at: usize) -> bool {
    clause[at.saturating_sub(2)..at].iter().any(|token| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "not" | "no" | "without" | "never" | "doesn" | "don" | "t" | "cannot"
        ))
    })
}

/// The list that a keyword speaks of, and where it ends.
fn object_at<'a>(
    clause: &[Token<'a>],
    (at, reach): (usize, Reach),
    voice: Voice,
) -> Option<(Vec<Placed<'a>>, usize)> {
    const FAR: usize = 14;
    const NEAR: usize = 4;
    let limit = if reach == Reach::Far { FAR } else { NEAR };
    for start in at..clause.len().min(at + limit) {
        if let Some(list) = list_at(clause, start) {
            return Some(list.without_next_subject(clause, voice));
        }
        let may_stand_between = match clause[start].what {
            Piece::Word(word) => reach == Reach::Far || is_filler(word),
            Piece::Colon | Piece::Other | Piece::Dash => true,
            _ => reach == Reach::Far,
        };
        if !may_stand_between {
            return None;
        }
    }
    None
}

fn is_filler(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    matches!(
        word.as_str(),
        "task" | "tasks" | "both" | "all" | "of" | "completing" | "completion" | "on" | "phase" | "phases"
    )
}

/// A list of tasks and phases.
struct List<'a> {
    members: Vec<Placed<'a>>,
    /// Where its last member begins.
    last: usize,
    end: usize,
}

impl<'a> List<'a> {
    /// In "T019 after T006, T020 after T015" the last member of the list already begins the next sentence.
    fn without_next_subject(mut self, clause: &[Token<'a>], voice: Voice) -> (Vec<Placed<'a>>, usize) {
        let goes_on = self.end < clause.len() && keyword_at(clause, self.end, voice).is_some();
        if goes_on && self.members.len() > 1 {
            self.members.pop();
            return (self.members, self.last);
        }
        (self.members, self.end)
    }
}

/// The list that begins at a position.
fn list_at<'a>(clause: &[Token<'a>], at: usize) -> Option<List<'a>> {
    let ((member, end), last) = (member_at(clause, at)?, at);
    let mut list = List { members: vec![member], last, end };
    while let Some(next) = behind_joint(clause, list.end)
        && let Some((member, end)) = member_at(clause, next)
    {
        list.members.push(member);
        (list.last, list.end) = (next, end);
    }
    Some(list)
}

/// One member, with the parenthesis that explains it.
fn member_at<'a>(clause: &[Token<'a>], at: usize) -> Option<(Placed<'a>, usize)> {
    let token = clause.get(at)?;
    let place = token.at;
    let (name, end) = match token.what {
        Piece::Id(first) => match range_end(clause, at + 1) {
            Some((last, end)) => (Name::Range(first, last), end),
            None => (Name::Task(first), at + 1),
        },
        Piece::Phase(label) => (Name::Phase(label), at + 1),
        _ => return None,
    };
    Some(((name, place), behind_parenthesis(clause, end)))
}

fn range_end<'a>(clause: &[Token<'a>], at: usize) -> Option<(&'a str, usize)> {
    let joins = match clause.get(at)?.what {
        Piece::Dash => true,
        Piece::Word(word) => {
            matches!(word.to_lowercase().as_str(), "through" | "to" | "thru" | "bis" | "至" | "到" | "až")
        }
        _ => false,
    };
    match clause.get(at + 1)?.what {
        Piece::Id(last) if joins => Some((last, at + 2)),
        _ => None,
    }
}

/// Behind a parenthesis that opens at `at`, if one does and it is closed.
fn behind_parenthesis(clause: &[Token<'_>], at: usize) -> usize {
    if clause.get(at).map(|token| token.what) != Some(Piece::Open) {
        return at;
    }
    const LONGEST: usize = 200;
    let mut depth = 0;
    for (end, token) in clause.iter().enumerate().skip(at).take(LONGEST) {
        match token.what {
            Piece::Open => depth += 1,
            Piece::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return end + 1;
        }
    }
    at
}

/// Behind the comma or "and" that goes before a further member.
fn behind_joint(clause: &[Token<'_>], at: usize) -> Option<usize> {
    let word = |at: usize| match clause.get(at).map(|token| token.what) {
        Some(Piece::Word(word)) => word.to_lowercase(),
        _ => String::new(),
    };
    let is_comma = |at: usize| clause.get(at).is_some_and(|token| token.what == Piece::Comma);
    let is_and = |at: usize| {
        matches!(
            word(at).as_str(),
            "and" | "or" | "plus" | "und" | "y" | "e" | "et" | "和" | "与" | "及" | "と"
        )
    };
    if !matches!(clause.get(at).map(|token| token.what), Some(Piece::Comma | Piece::Word(_))) {
        return None;
    }
    let mut end = at;
    while is_comma(end) || is_and(end) {
        end += 1;
    }
    if end == at {
        return None;
    }
    let is_kind = matches!(word(end).as_str(), "phase" | "phases" | "task" | "tasks");
    Some(end + usize::from(is_kind))
}

/// The lists left and right of every arrow of a clause.
fn arrows<'a>(clause: &[Token<'a>], arrows: &mut Vec<(Vec<Placed<'a>>, Vec<Placed<'a>>)>) {
    let mut left: Option<Vec<Placed<'a>>> = None;
    let mut pointing = None;
    let mut at = 0;
    while at < clause.len() {
        if let Some(List { members: list, end, .. }) = list_at(clause, at) {
            if let (Some(is_left), Some(before)) = (pointing.take(), left.take()) {
                arrows.push(if is_left { (list.clone(), before) } else { (before, list.clone()) });
            }
            left = Some(list);
            at = end;
            continue;
        }
        if let Piece::Arrow(is_left) = clause[at].what {
            pointing = Some(is_left);
        }
        at += 1;
    }
}

/// Every task and phase that is named, wherever it stands.
pub(super) fn names<'a>(tokens: &[Token<'a>]) -> Vec<Placed<'a>> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match list_at(tokens, at) {
            Some(mut list) => {
                names.append(&mut list.members);
                at = list.end;
            }
            None => at += 1,
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::markdown::words::Tokenizer;

    fn shown(list: &[Placed<'_>]) -> String {
        let name = |(name, _): &Placed<'_>| match name {
            Name::Task(id) => (*id).to_owned(),
            Name::Range(first, last) => format!("{first}..{last}"),
            Name::Phase(label) => format!("phase {label}"),
        };
        list.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// Every claim as `who < on`, every arrow as `left > right`.
    fn said(text: &str, voice: Voice) -> Vec<String> {
        let mut tokens = Vec::new();
        Tokenizer { is_id: &|_| false }.text(text, 0, &mut tokens);
        let said = read(&tokens, voice);
        let claims = said.claims.iter().map(|claim| format!("{} < {}", shown(&claim.who), shown(&claim.on)));
        let arrows = said.arrows.iter().map(|(left, right)| format!("{} > {}", shown(left), shown(right)));
        claims.chain(arrows).collect()
    }

    #[test]
    fn sentences_of_a_dependency_section_are_understood() {
        for (text, wanted) in [
            ("T012 and T013 depend on the decisions from T010 and T011.", &["T012 T013 < T010 T011"][..]),
            ("T041 through T049 depend on T035–T040", &["T041..T049 < T035..T040"]),
            ("T039 (gate) blocks T040.", &["T040 < T039"]),
            ("Tests (T004-T007) before implementation (T008-T014)", &["T008..T014 < T004..T007"]),
            ("T003, T004, and T005 can run in parallel after T001 and T002", &["T003 T004 T005 < T001 T002"]),
            ("T015 depends on T010 and must run before tasks T017", &["T015 < T010", "T017 < T015"]),
            ("T3 before T4 before T6", &["T4 < T3", "T6 < T4"]),
            ("T5, T8 are `[P]` (T019 after T006, T020 after T015)", &["T019 < T006", "T020 < T015"]),
            ("T005 (registry) ──── depends on T001 (x), T002", &["T005 < T001 T002"]),
            ("**US2 (Phase 4)**: Depends on Phase 2 + T007", &["phase 4 < phase 2 T007"]),
            ("T001 does not depend on T002; no dependency on T003", &[]),
            ("T001 (skeleton) → T003-T005 (tests) → T008", &["T001 > T003..T005", "T003..T005 > T008"]),
            ("T003 ← T001", &["T001 > T003"]),
            ("T021 → T022 ║ T023 (page first)", &["T021 > T022 T023"]),
            ("All [P] tasks after T007", &[]),
        ] {
            assert_eq!(said(text, Voice::Section), wanted, "{text}");
        }
    }

    #[test]
    fn sentences_of_a_task_speak_of_the_task_itself() {
        for (text, wanted) in [
            ("Implement it (depends on T012, T013)", &[" < T012 T013"][..]),
            ("do it after T001 through T003.", &[" < T001..T003"]),
            ("**Depends on**: T007 (accessor), T011 (binding)", &[" < T007 T011"]),
            ("**Preconditions**: T001 complete", &[" < T001"]),
            ("blocks T008", &["T008 < "]),
            ("read the example blocks the T006 guard reads", &[]),
            ("T009 depends on T004, so do this first", &["T009 < T004"]),
            ("must FAIL before T011", &[]),
            ("依赖 T003", &[" < T003"]),
        ] {
            assert_eq!(said(text, Voice::Task), wanted, "{text}");
        }
    }
}
