//! Lists of tasks and phases in prose: "T001, T003-T005 (the tests) and Phase 2".

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

/// A list of tasks and phases.
pub(super) struct List<'a> {
    pub(super) members: Vec<Placed<'a>>,
    /// Where its last member begins.
    pub(super) last: usize,
    pub(super) end: usize,
}

/// The list that begins at a position.
pub(super) fn list_at<'a>(clause: &[Token<'a>], at: usize) -> Option<List<'a>> {
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
