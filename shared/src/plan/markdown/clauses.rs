//! Sentences that say what waits for what: "T005 depends on T001-T003", "T007 blocks T008", "(after T002)",
//! and arrows, whose direction only the whole file can tell.

use super::{
    keywords::{Sense, Voice, is_denied, keyword_at, object_at},
    lists::{List, Placed, list_at},
    words::{Piece, Token},
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
    /// It speaks of order in general, as "tests before implementation" does.
    Loose,
}

/// What tokens say about order.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) claims: Vec<Claim<'a>>,
    /// Left and right of each arrow.
    pub(super) arrows: Vec<(Vec<Placed<'a>>, Vec<Placed<'a>>)>,
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
            if voice == Voice::Task || !who.is_empty() {
                claims.push(claim(sense, who, object));
            }
            at = next;
            continue;
        }
        at = end;
    }
}

fn claim<'a>(sense: Sense, who: Vec<Placed<'a>>, object: Vec<Placed<'a>>) -> Claim<'a> {
    match sense {
        Sense::Waits => Claim { who, on: object, force: Force::Firm },
        Sense::Blocks => Claim { who: object, on: who, force: Force::Firm },
        Sense::Precedes => Claim { who: object, on: who, force: Force::Loose },
    }
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
        match clause[at].what {
            Piece::Arrow(is_left) => pointing = Some(is_left),
            // "Phase 4 → after Phase 2": the word says it, the arrow only leads to it.
            Piece::Word(_) if keyword_at(clause, at, Voice::Section).is_some() => pointing = None,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::markdown::{lists::Name, words::Tokenizer};

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
            ("**Phase 4 (US2)** → after Phase 2", &["phase 4 < phase 2"]),
            ("T003-T007 → must FAIL before T008+", &["T008 < T003..T007"]),
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
