//! From prose to tokens, so far as sentences about order need them: ids, phases, stories, words, lists and arrows.

use super::{Offset, PlanLine, ids, lines::LineKind};

/// Words that go before the label of a phase.
const PHASES: [&str; 26] = [
    "phase", "phases", "fase", "fases", "阶段", "階段", "フェーズ", "faza", "fazy", "fazie", "fazą", "etap",
    "etapu", "etapie", "etapy", "etapa", "etapas", "étape", "фаза", "фазы", "фазе", "фазу", "этап", "этапа",
    "этапу", "этапе",
];

/// Words of Chinese and Japanese that sentences about order are made of. These languages write no spaces, so a run
/// of their characters is cut at these words; longer ones come first.
const CJK_WORDS: [&str; 93] = [
    "所有期望的用户故事",
    "所有期望的用戶故事",
    "所有期望的使用者故事",
    "所有需要的用户故事",
    "所有需要的用戶故事",
    "所有需要的使用者故事",
    "所有用户故事",
    "所有使用者故事",
    "全部用户故事",
    "すべてのユーザーストーリー",
    "ユーザーストーリー",
    "用户故事",
    "使用者故事",
    "独立于",
    "獨立於",
    "所有用戶故事",
    "用戶故事",
    "不相依",
    "相依於",
    "相依于",
    "依赖于",
    "依賴於",
    "无依赖",
    "無依賴",
    "不依赖",
    "不依賴",
    "に依存",
    "フェーズ",
    "完了後",
    "完成后",
    "完成後",
    "完成之后",
    "后端",
    "後端",
    "后台",
    "後台",
    "后续",
    "後續",
    "必须在",
    "依赖关系",
    "依賴關係",
    "依赖项",
    "依存関係",
    "依赖任务",
    "依賴任務",
    "前置任务",
    "前置任務",
    "同时",
    "同時",
    "并行",
    "並行",
    "並列",
    "平行",
    "が必要",
    "を前提",
    "を待",
    "をブロック",
    "より前",
    "不需要",
    "需要",
    "等待",
    "基于",
    "基於",
    "前提",
    "前置條件",
    "前置条件",
    "先決條件",
    "先决条件",
    "前置",
    "的",
    "與",
    "依赖",
    "依賴",
    "依存",
    "之后",
    "之後",
    "の後",
    "之前",
    "以前",
    "阻塞",
    "阶段",
    "階段",
    "故事",
    "和",
    "与",
    "及",
    "至",
    "到",
    "と",
    "后",
    "後",
    "前",
    "在",
];

/// A token with the place where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) at: Offset,
    pub(super) what: Piece<'a>,
}

impl<'a> Token<'a> {
    /// The word that it is.
    pub(super) fn word(&self) -> Option<&'a str> {
        match self.what {
            Piece::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether it names a task, a phase or a story.
    pub(super) fn is_name(&self) -> bool {
        matches!(self.what, Piece::Id(_) | Piece::Phase(_) | Piece::Story(_))
    }

    /// Whether it is one of these words, in any case.
    pub(super) fn is_word(&self, words: &[&str]) -> bool {
        self.word().is_some_and(|word| is_one_of(word, words))
    }
}

/// What is at a position of a clause.
pub(super) fn piece_at<'a>(clause: &[Token<'a>], at: usize) -> Option<Piece<'a>> {
    clause.get(at).map(|token| token.what)
}

/// The word at a position of a clause.
pub(super) fn word_at<'a>(clause: &[Token<'a>], at: usize) -> Option<&'a str> {
    clause.get(at).and_then(Token::word)
}

/// The word at a position of a clause with small ASCII letters; nothing if there is none.
pub(super) fn lower_word_at(clause: &[Token<'_>], at: usize) -> String {
    word_at(clause, at).map(str::to_ascii_lowercase).unwrap_or_default()
}

/// Whether a clause has one of these words at this position.
pub(super) fn is_word_at(clause: &[Token<'_>], at: usize, words: &[&str]) -> bool {
    clause.get(at).is_some_and(|token| token.is_word(words))
}

/// Whether a word is one of these, in any case.
pub(super) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Id(&'a str),
    /// The label of a phase.
    Phase(&'a str),
    /// The number of a user story.
    Story(&'a str),
    /// A number that may continue a list of phases or stories.
    Number(&'a str),
    Word(&'a str),
    /// Separates the members of a list.
    Comma,
    /// `+`, `/`, `&`: members that belong together.
    Plus,
    /// `∥`, `||`: members that run in parallel.
    Bars,
    /// What may join the ends of a range.
    Dash,
    /// A dash between two parts of a sentence, as in "depends on T012 — T016 does not".
    Pause,
    /// `(` and `)`.
    Open,
    Close,
    /// `[` and `]`.
    OpenSquare,
    CloseSquare,
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
        lines: impl IntoIterator<Item = &'l PlanLine<'a>>,
    ) -> Vec<Token<'a>> {
        let mut tokens = Vec::new();
        for line in lines {
            if matches!(line.kind, LineKind::Item(_) | LineKind::Blank | LineKind::Heading(_)) {
                tokens.push(Token { at: line.at, what: Piece::Stop });
            }
            if !matches!(line.kind, LineKind::Comment | LineKind::FrontMatter) {
                self.add_text(line.content(), line.offset_of(line.content()), &mut tokens);
            }
        }
        tokens
    }

    /// The tokens of a line; a list item begins a clause.
    pub(super) fn line<'a>(&self, line: &PlanLine<'a>) -> Vec<Token<'a>> {
        self.lines([line])
    }

    /// The tokens of what a line holds after its marker.
    pub(super) fn content<'a>(&self, line: &PlanLine<'a>) -> Vec<Token<'a>> {
        self.text(line.content(), line.offset_of(line.content()))
    }

    /// The tokens of a text that begins at `start`.
    pub(super) fn text<'a>(&self, text: &'a str, start: Offset) -> Vec<Token<'a>> {
        let mut tokens = Vec::new();
        self.add_text(text, start, &mut tokens);
        tokens
    }

    fn add_text<'a>(&self, text: &'a str, start: Offset, tokens: &mut Vec<Token<'a>>) {
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let rest = &text[at..];
            if next == ' ' {
                at += 1;
                continue;
            }
            // Most words begin with a small letter; no id, label or number does.
            if next.is_ascii_lowercase() {
                let len = word_len(rest);
                tokens.push(Token { at: start + at, what: Piece::Word(&rest[..len]) });
                at += len;
                continue;
            }
            let (what, len) = if next.is_alphanumeric() { self.word(rest, tokens) } else { mark(rest, next) };
            let is_tilde =
                matches!(next, '~' | '～' | '〜') && joins_numbers(&text[..at], &rest[next.len_utf8()..]);
            let what = if is_tilde { Some(Piece::Dash) } else { what };
            let is_apart = || {
                text[..at].ends_with(' ') && text[at + len..].chars().next().is_none_or(char::is_whitespace)
            };
            // An em dash with spaces around it joins no range; an en dash may.
            let is_pause = what == Some(Piece::Dash) && matches!(&rest[..len], "—" | "--") && is_apart();
            let what = if is_pause { Some(Piece::Pause) } else { what };
            if let Some(what) = what {
                tokens.push(Token { at: start + at, what });
            }
            at += len;
        }
    }

    fn word<'a>(&self, rest: &'a str, before: &[Token<'a>]) -> (Option<Piece<'a>>, usize) {
        if let Some(id) = ids::lettered(rest) {
            return (Some(Piece::Id(id)), id.len());
        }
        let named = ids::named(rest).filter(|id| (self.is_id)(id));
        if let Some(id) = named.or_else(|| ids::family(rest).filter(|id| (self.is_id)(id))) {
            return (Some(Piece::Id(id)), id.len());
        }
        if let Some((number, len)) = story_at(rest) {
            return (Some(Piece::Story(number)), len);
        }
        let len = word_len(rest);
        let word = &rest[..len];
        match before {
            [.., Token { what: Piece::Word(last), .. }] if is_phase_word(last) => {
                let label = label_at(rest);
                if !label.is_empty() && is_label(label) {
                    return (Some(Piece::Phase(label)), label.len());
                }
            }
            [.., Token { what: Piece::Word(last), .. }] if is_story_word(last) => {
                let number = ids::numeric(rest).filter(|number| number.len() <= 3);
                let is_name = |word: &&str| counting_letter(word).is_some() || is_story_name(word);
                if let Some(number) = number.or(Some(word).filter(is_name)) {
                    return (Some(Piece::Story(number)), number.len());
                }
            }
            _ => {}
        }
        match ids::numeric(rest) {
            Some(id) if (self.is_id)(id) => (Some(Piece::Id(id)), id.len()),
            Some(number) if number.len() <= 4 => (Some(Piece::Number(number)), number.len()),
            _ if is_lettered_number(word) || is_next_letter(word, before) => (Some(Piece::Number(word)), len),
            _ => (Some(Piece::Word(word)), len),
        }
    }
}

/// Whether a tilde is between the ends of a range, as in "Phase 3~6". Two of them strike a text out.
fn joins_numbers(before: &str, behind: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    before.trim_end().ends_with(is_digit)
        && behind.trim_start().starts_with(|c: char| is_digit(c) || c.is_ascii_uppercase())
}

/// `US1`, `US-1`, `US1.5`, `US5a`: the number and the length of the whole.
fn story_at(rest: &str) -> Option<(&str, usize)> {
    let number = rest.strip_prefix("US")?;
    // `US-A1` counts with a letter; `USB3` does not.
    let is_apart = number.starts_with('-');
    let number = number.strip_prefix(['-', ' ']).unwrap_or(number);
    let start = rest.len() - number.len();
    let len = number.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(number.len());
    let number = number[..len].trim_end_matches('.');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && number.len() <= 5;
    (is_number || is_apart && is_story_name(number)).then_some((number, start + number.len()))
}

/// `A1` or `CSV1`, as in "User Story CSV1" and `US-A1`.
fn is_story_name(word: &str) -> bool {
    const MAX_LENGTH: usize = 12;
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && digits.len() < word.len() && word.len() <= MAX_LENGTH
}

/// `5B`, as in "Phases 5A, 5B".
fn is_lettered_number(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && digits < 3 && word.len() == digits + 1 && word.as_bytes()[digits].is_ascii_alphabetic()
}

/// A capital letter that stands alone, as in "Phase B".
fn counting_letter(label: &str) -> Option<char> {
    label.chars().next().filter(|c| label.len() == 1 && c.is_ascii_uppercase())
}

/// The `C` of "Phases A, B and C" or "Stories A-C": a letter that counts on from the label of a phase or story.
fn is_next_letter(word: &str, before: &[Token<'_>]) -> bool {
    let Some(own) = counting_letter(word) else { return false };
    let is_joint = |token: &&Token<'_>| match token.what {
        Piece::Word(word) => is_and(word) || is_phase_word(word) || is_story_word(word),
        piece => matches!(piece, Piece::Comma | Piece::Plus | Piece::Dash),
    };
    let joints = before.iter().rev().take_while(is_joint).count();
    let last = before[..before.len() - joints].last().filter(|_| joints > 0);
    let last = last.and_then(|token| match token.what {
        Piece::Phase(label) | Piece::Story(label) | Piece::Number(label) => counting_letter(label),
        _ => None,
    });
    last.is_some_and(|last| last < own)
}

/// Whether a word joins the members of a list.
pub(super) fn is_and(word: &str) -> bool {
    const WORDS: [&str; 23] = [
        "and", "or", "plus", "und", "y", "e", "et", "i", "и", "ve", "та", "і", "og", "och", "dan", "và",
        "和", "与", "與", "及", "と", "과", "와",
    ];
    is_one_of(word, &WORDS) || word == "및"
}

pub(super) fn is_phase_word(word: &str) -> bool {
    is_one_of(word, &PHASES)
}

fn is_story_word(word: &str) -> bool {
    is_one_of(word, &["story", "stories", "用户故事", "用戶故事", "使用者故事", "故事", "ユーザーストーリー"])
}

/// `3`, `3.1`, `5a`, `N`; "Phase order" has no label.
fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_digit())
        || label.chars().count() <= 2 && label.chars().all(|c| c.is_uppercase() || c.is_numeric())
        || label.chars().all(|c| "零一二三四五六七八九十".contains(c))
}

fn label_at(rest: &str) -> &str {
    let len = rest.find(|c: char| !(c.is_alphanumeric() && !is_cjk(c) || c == '.')).unwrap_or(rest.len());
    let numerals = rest.find(|c: char| !"零一二三四五六七八九十".contains(c)).unwrap_or(rest.len());
    rest[..len.max(numerals)].trim_end_matches('.')
}

pub(super) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

fn word_len(rest: &str) -> usize {
    let first = rest.chars().next().unwrap_or(' ');
    if !is_cjk(first) {
        // Most words are ASCII, which needs no decoding.
        let ascii = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let is_part = |c: char| c.is_alphanumeric() && !is_cjk(c) || c == '_';
        let len = rest[ascii..].find(|c: char| !is_part(c)).map_or(rest.len(), |more| ascii + more);
        // The label "Depends-on:" is one word.
        let is_joined =
            |word: &str| word.eq_ignore_ascii_case("depends-on") || word.eq_ignore_ascii_case("blocked-by");
        let goes_on = rest[len..].starts_with('-') && rest.get(..len + 3).is_some_and(is_joined);
        return if goes_on { len + 3 } else { len };
    }
    if let Some(word) = CJK_WORDS.iter().find(|word| rest.starts_with(**word)) {
        return word.len();
    }
    let is_end = |(at, c): (usize, char)| {
        at > 0 && (!is_cjk(c) || CJK_WORDS.iter().any(|word| rest[at..].starts_with(word)))
    };
    rest.char_indices().find(|next| is_end(*next)).map_or(rest.len(), |(at, _)| at)
}

/// Everything that is no word. Emphasis and quotes vanish.
fn mark<'a>(rest: &str, next: char) -> (Option<Piece<'a>>, usize) {
    let len = next.len_utf8();
    let what = match next {
        '*' | '_' | '`' | '~' | '"' | '\'' | '’' | '§' => return (None, len),
        // "#12" is how people write the number of an issue.
        '#' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => return (None, len),
        c if c.is_whitespace() => return (None, len),
        ',' | '，' | '、' => Piece::Comma,
        '+' | '&' | '/' | '·' | '・' => Piece::Plus,
        '║' | '‖' | '∥' | '↔' | '⟷' | '⇔' => Piece::Bars,
        '|' if rest.starts_with("||") => return (Some(Piece::Bars), 2),
        '(' | '（' => Piece::Open,
        ')' | '）' => Piece::Close,
        '[' | '【' => Piece::OpenSquare,
        ']' | '】' => Piece::CloseSquare,
        ':' | '：' => Piece::Colon,
        ';' | '；' | '。' => Piece::Stop,
        '.' if rest[1..].starts_with("..") => return (Some(Piece::Dash), 3),
        '.' if rest[1..].starts_with('.') => return (Some(Piece::Dash), 2),
        '.' if rest[1..].trim_start_matches(['*', '_']).chars().next().is_none_or(char::is_whitespace) => {
            Piece::Stop
        }
        '…' => Piece::Dash,
        '↓' | '⇓' | '▼' => Piece::Other,
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
    let is_bare = run == ">" || run == "<" || run == ">=" || run == "<=";
    let piece = if run.contains(is_right) && run.contains(is_left) {
        // "US1 ←→ US2" gives no order.
        Piece::Bars
    } else if run.contains(is_right) && !is_bare {
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
        let tokens = Tokenizer { is_id: &|id| id == "1.2" }.text(text, 0);
        tokens.into_iter().map(|token| token.what).collect()
    }

    #[test]
    fn sentences_are_split_into_ids_words_and_marks() {
        use Piece::{Arrow, Comma, Dash, Id, Number, Other, Phase, Plus, Stop, Story, Word};
        for (text, wanted) in [
            ("T001–T003, T5.", vec![Id("T001"), Dash, Id("T003"), Comma, Id("T5"), Stop]),
            ("**T1** ──▶ T2 -> T3", vec![Id("T1"), Arrow(false), Id("T2"), Arrow(false), Id("T3")]),
            ("T1 ← T2", vec![Id("T1"), Arrow(true), Id("T2")]),
            ("a ──── b", vec![Word("a"), Other, Word("b")]),
            (
                "Phase 3.1: 1.2 and 1.3",
                vec![Word("Phase"), Phase("3.1"), Piece::Colon, Id("1.2"), Word("and"), Number("1.3")],
            ),
            (
                "Phases B, C and D I",
                vec![Word("Phases"), Phase("B"), Comma, Number("C"), Word("and"), Number("D"), Word("I")],
            ),
            ("T1 – T3 — T4", vec![Id("T1"), Dash, Id("T3"), Piece::Pause, Id("T4")]),
            ("T1..T3", vec![Id("T1"), Dash, Id("T3")]),
            ("T1~T3 ~~T4~~", vec![Id("T1"), Dash, Id("T3"), Id("T4")]),
            ("T1·T2", vec![Id("T1"), Plus, Id("T2")]),
            ("US1+US-2", vec![Story("1"), Plus, Story("2")]),
            ("US-CSV1 USB3", vec![Story("CSV1"), Word("USB3")]),
            ("User Story 3", vec![Word("User"), Word("Story"), Story("3")]),
            ("依赖T031", vec![Word("依赖"), Id("T031")]),
            ("T3はT1に依存", vec![Id("T3"), Word("は"), Id("T1"), Word("に依存")]),
            (
                "所有用户故事依赖于Foundational阶段",
                vec![Word("所有用户故事"), Word("依赖于"), Word("Foundational"), Word("阶段")],
            ),
        ] {
            assert_eq!(pieces(text), wanted, "{text}");
        }
    }
}
