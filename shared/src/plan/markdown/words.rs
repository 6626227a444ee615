//! Prose as tokens, so far as sentences about order need them: ids, phases, words, lists, arrows, parentheses.

use super::{Line, Offset, ids, lines::Kind};

/// Words that go before the label of a phase.
const PHASES: [&str; 5] = ["phase", "phases", "fase", "阶段", "フェーズ"];

/// A token with the place where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) at: Offset,
    pub(super) what: Piece<'a>,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Id(&'a str),
    /// The label of a phase.
    Phase(&'a str),
    Word(&'a str),
    /// What parts the members of a list.
    Comma,
    /// What may join the ends of a range.
    Dash,
    Open,
    Close,
    Colon,
    /// An arrow; `true` if it points to the left.
    Arrow(bool),
    /// The end of a clause.
    Stop,
    Other,
}

/// Splits text into tokens. Numbers are ids only where `is_id` knows them.
pub(super) struct Tokenizer<'t> {
    pub(super) is_id: &'t dyn Fn(&str) -> bool,
}

impl Tokenizer<'_> {
    /// The tokens of some lines; each list item begins a clause.
    pub(super) fn lines<'l, 'a: 'l>(
        &self,
        lines: impl Iterator<Item = &'l Line<'a>>,
        tokens: &mut Vec<Token<'a>>,
    ) {
        for line in lines {
            if matches!(line.kind, Kind::Item(_) | Kind::Blank | Kind::Heading(_)) {
                tokens.push(Token { at: line.at, what: Piece::Stop });
            }
            if !matches!(line.kind, Kind::Comment | Kind::FrontMatter) {
                self.text(line.content(), line.offset_of(line.content()), tokens);
            }
        }
    }

    /// The tokens of a text that begins at `start`.
    pub(super) fn text<'a>(&self, text: &'a str, start: Offset, tokens: &mut Vec<Token<'a>>) {
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let rest = &text[at..];
            let (what, len) = if next.is_alphanumeric() {
                self.word(rest, tokens.last().map(|token| token.what))
            } else {
                mark(rest, next)
            };
            if let Some(what) = what {
                tokens.push(Token { at: start + at, what });
            }
            at += len;
        }
    }

    fn word<'a>(&self, rest: &'a str, before: Option<Piece<'_>>) -> (Option<Piece<'a>>, usize) {
        if let Some(id) = ids::lettered(rest) {
            return (Some(Piece::Id(id)), id.len());
        }
        let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if let Some(Piece::Word(word)) = before
            && PHASES.iter().any(|phase| word.eq_ignore_ascii_case(phase))
        {
            let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '.')).unwrap_or(rest.len());
            let label = rest[..len].trim_end_matches('.');
            return (Some(Piece::Phase(label)), label.len());
        }
        match ids::numeric(rest).filter(|id| (self.is_id)(id)) {
            Some(id) => (Some(Piece::Id(id)), id.len()),
            None => (Some(Piece::Word(&rest[..len])), len),
        }
    }
}

/// Everything that is no word. Emphasis and quotes vanish.
fn mark<'a>(rest: &str, next: char) -> (Option<Piece<'a>>, usize) {
    let len = next.len_utf8();
    let what = match next {
        '*' | '_' | '`' | '~' | '"' | '\'' => return (None, len),
        c if c.is_whitespace() => return (None, len),
        ',' | '，' | '、' | '+' | '&' | '/' | '║' => Piece::Comma,
        '(' | '[' | '（' => Piece::Open,
        ')' | ']' | '）' => Piece::Close,
        ':' | '：' => Piece::Colon,
        ';' | '；' | '。' => Piece::Stop,
        '.' if rest[1..].starts_with("..") => return (Some(Piece::Dash), 3),
        '.' if rest[1..].starts_with('.') => return (Some(Piece::Dash), 2),
        '.' if rest[1..].chars().next().is_none_or(char::is_whitespace) => Piece::Stop,
        '…' => Piece::Dash,
        _ => return stroke(rest).unwrap_or((Some(Piece::Other), len)),
    };
    (Some(what), len)
}

/// A run of dashes, box drawing and arrow heads: an arrow if it has a head, else perhaps a dash.
fn stroke<'a>(rest: &str) -> Option<(Option<Piece<'a>>, usize)> {
    let is_shaft = |c: char| matches!(c, '-' | '=' | '–' | '—' | '\u{2500}'..='\u{257f}');
    let is_right = |c: char| matches!(c, '>' | '→' | '⇒' | '➜' | '➔' | '▶' | '►' | '⟶' | '⟹');
    let is_left = |c: char| matches!(c, '<' | '←' | '⇐' | '◀' | '◄' | '⟵');
    let len = rest.find(|c: char| !(is_shaft(c) || is_right(c) || is_left(c))).unwrap_or(rest.len());
    let run = &rest[..len];
    let is_bare = run == ">" || run == "<";
    let piece = if run.contains(is_right) && !is_bare {
        Piece::Arrow(false)
    } else if run.contains(is_left) && !is_bare {
        Piece::Arrow(true)
    } else if matches!(run, "-" | "–" | "—" | "--") {
        Piece::Dash
    } else {
        Piece::Other
    };
    (len > 0).then_some((Some(piece), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece<'_>> {
        let mut tokens = Vec::new();
        Tokenizer { is_id: &|id| id == "1.2" }.text(text, 0, &mut tokens);
        tokens.into_iter().map(|token| token.what).collect()
    }

    #[test]
    fn sentences_fall_into_ids_words_and_marks() {
        use Piece::{Arrow, Comma, Dash, Id, Other, Phase, Stop, Word};
        for (text, wanted) in [
            ("T001–T003, T5.", vec![Id("T001"), Dash, Id("T003"), Comma, Id("T5"), Stop]),
            ("**T1** ──▶ T2 -> T3", vec![Id("T1"), Arrow(false), Id("T2"), Arrow(false), Id("T3")]),
            ("T1 ← T2", vec![Id("T1"), Arrow(true), Id("T2")]),
            ("a ──── b", vec![Word("a"), Other, Word("b")]),
            (
                "Phase 3.1: 1.2 and 1.3",
                vec![
                    Word("Phase"),
                    Phase("3.1"),
                    Piece::Colon,
                    Id("1.2"),
                    Word("and"),
                    Word("1"),
                    Other,
                    Word("3"),
                ],
            ),
            ("T1..T3", vec![Id("T1"), Dash, Id("T3")]),
        ] {
            assert_eq!(pieces(text), wanted, "{text}");
        }
    }
}
