//! The words that say that something waits: "depends on", "after", "blocks", and where their object stands.

use super::{
    lists::{List, Placed, list_at},
    words::{Piece, Token},
};

/// Where a sentence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// In a task, about itself.
    Task,
    /// In a section that lists dependencies.
    Section,
}

/// Which side of a keyword waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// The subject waits for the object.
    Waits,
    /// The object waits for the subject.
    Blocks,
    /// The same, said of a whole group.
    Precedes,
}

/// How far behind a keyword its object may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Near,
    Far,
}

/// The keyword at a position: what it means, how far its object may be, and where it ends.
pub(super) fn keyword_at(clause: &[Token<'_>], at: usize, voice: Voice) -> Option<(Sense, Reach, usize)> {
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
pub(super) fn is_denied(clause: &[Token<'_>], at: usize) -> bool {
    clause[at.saturating_sub(2)..at].iter().any(|token| {
        matches!(token.what, Piece::Word(word) if matches!(
            word.to_ascii_lowercase().as_str(),
            "not" | "no" | "without" | "never" | "doesn" | "don" | "t" | "cannot"
        ))
    })
}

/// The list that a keyword speaks of, and where it ends.
pub(super) fn object_at<'a>(
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
