//! Headings: which of them are phases, stories or lists of dependencies, in the languages that people use.

use super::Offset;
use crate::plan::markdown::tokens::is_one_of;

/// A heading and everything below it, up to the next heading of its level.
#[derive(Debug)]
pub(super) struct HeadingSection {
    pub(super) level: usize,
    pub(super) title: String,
    pub(super) at: Offset,
    pub(super) parent: Option<usize>,
    /// The task that the heading itself is.
    pub(super) task: Option<usize>,
    /// Whether it, or a section around it, lists dependencies.
    pub(super) lists_dependencies: bool,
    /// Whether it, or a section around it, tells what can run at once.
    pub(super) lists_parallel: bool,
    /// What is said in it outside of tasks.
    pub(super) text: String,
}

/// Words that begin the heading of a phase.
const PHASE_WORDS: [&str; 26] = [
    "phase", "fase", "etapa", "étape", "stage", "milestone", "sprint", "iteration", "step", "schritt",
    "этап", "фаза", "阶段", "階段", "フェーズ", "단계", "페이즈", "giai đoạn", "faza", "etap", "krok",
    "paso", "passo", "шаг", "aşama", "ステップ",
];

/// Words that tell that a heading speaks of a user story.
const STORY_WORDS: [&str; 11] = [
    "user story",
    "user stories",
    "story",
    "用戶故事",
    "用户故事",
    "使用者故事",
    "ユーザーストーリー",
    "사용자 스토리",
    "historia de usuario",
    "história de usuário",
    "récit utilisateur",
];

/// Words that tell that a heading opens a list of dependencies.
const DEPENDENCY_WORDS: [&str; 36] = [
    "dependenc",
    "execution order",
    "implementation order",
    "ordem de execução",
    "ordem de implementação",
    "orden de ejecución",
    "orden de implementación",
    "ordre d'exécution",
    "zależnoś",
    "závislost",
    "залежност",
    "bağımlılık",
    "afhankelijk",
    "beroenden",
    "kolejność",
    "порядок",
    "执行顺序",
    "執行順序",
    "実行順序",
    "実装順序",
    "实施顺序",
    "开发顺序",
    "實作順序",
    "실행 순서",
    "dependênc",
    "dépendance",
    "abhängigkeit",
    "abhaengigkeit",
    "dipendenz",
    "зависимост",
    "依赖",
    "依賴",
    "依存",
    "相依",
    "의존",
    "phụ thuộc",
];

/// The label of a phase, if `title` begins as one: `3.1` of "Phase 3.1: Setup".
pub(super) fn phase_label(title: &str) -> Option<String> {
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    if let Some(rest) = title.strip_prefix('第') {
        let (label, behind) = rest.split_once(['阶', '階', '段', 'フ'])?;
        return (label.chars().count() <= 4 && !behind.is_empty()).then(|| label.trim().to_owned());
    }
    let rest = PHASE_WORDS.iter().find_map(|word| title.strip_prefix(word))?;
    let label = rest.trim_start_matches([' ', '\t', '-', '#', ':', '：']);
    let len = label.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '-')).unwrap_or(label.len());
    let label = label[..len].trim_end_matches(['.', '-']);
    let is_whole_word = !rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_label = label.chars().count() <= 6 && is_whole_word;
    (is_label && !label.is_empty()).then(|| label.to_owned())
}

/// Whether a heading counts steps. Below a phase they are parts of it, with numbers of their own.
pub(super) fn is_step(title: &str) -> bool {
    begins_with(title, &["step", "schritt", "étape", "krok", "paso", "passo", "шаг", "ステップ"])
}

/// The word and the number by which sentences speak of a section, as its heading writes them: `group` and `3` of
/// "Group 3 — Auth". A heading that only counts, as "3. Auth", is spoken of as a section.
pub(super) fn counted_label(title: &str) -> Option<(String, String)> {
    const LONGEST_WORD: usize = 16;
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let len = title.find(|c: char| !c.is_alphabetic()).unwrap_or(title.len());
    let (word, rest) = title.split_at(len);
    if word.len() > LONGEST_WORD || !word.is_empty() && !rest.starts_with([' ', '-', '#']) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '-', '#']);
    let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
    let label = rest[..len].trim_end_matches('.');
    let behind = rest[label.len()..].trim_start_matches([' ', '*']);
    let is_letter = !word.is_empty() && label.len() == 1 && label.chars().all(|c| c.is_ascii_alphabetic());
    let is_label = label.starts_with(|c: char| c.is_ascii_digit()) && label.len() <= 5 || is_letter;
    let is_apart = behind.is_empty() || behind.starts_with(['.', ')', ':', '：', '—', '–', '-', '(', '|']);
    let word = if word.is_empty() { "section" } else { word };
    (is_label && is_apart).then(|| (word.to_owned(), label.to_owned()))
}

/// The word and the number that a heading counts with after the label of its phase: `module` and `2` of "Phase 3: Module 2 -
/// Physics". Stories have names of their own.
pub(super) fn counted_part(title: &str) -> Option<(String, String)> {
    phase_label(title)?;
    let (_, rest) = title.split_once([':', '：', '—', '–', '-'])?;
    counted_label(rest).filter(|(word, _)| !matches!(word.as_str(), "section" | "us" | "story" | "p"))
}

/// The priority that a heading states: `P1` of "User Story 1 - Login (Priority: P1)".
pub(super) fn priority(title: &str) -> Option<&str> {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    title.match_indices('P').find_map(|(at, _)| {
        let digit = title[at + 1..].chars().next().filter(char::is_ascii_digit)?;
        let end = at + 1 + digit.len_utf8();
        let is_word = is_end(title[..at].chars().next_back()) && is_end(title[end..].chars().next());
        is_word.then(|| &title[at..end])
    })
}

/// The words of a title in lower case, without label and brackets.
pub(super) fn title_words(title: &str) -> Vec<String> {
    let words = bare_title(title).split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn bare_title(title: &str) -> &str {
    let name = without_brackets(title);
    match phase_label(name) {
        Some(_) => name.split_once([':', '：', '—', '–', '-']).map_or("", |(_, bare)| bare),
        None => name,
    }
}

/// The numbers of the user stories that a heading names: `1` of "Phase 3: User Story 1 - Login (P1)".
pub(super) fn story_numbers(title: &str) -> Vec<String> {
    let lower = title.to_lowercase();
    let mut numbers = Vec::new();
    for word in STORY_WORDS {
        for (at, _) in lower.match_indices(word) {
            numbers_behind(&lower[at + word.len()..], &mut numbers);
        }
    }
    for (at, _) in title.match_indices("US") {
        let is_word = !title[..at].ends_with(|c: char| c.is_alphanumeric());
        let behind = &title[at + 2..];
        let is_lettered = behind.starts_with('-') && lettered_number(&behind[1..]).is_some();
        if is_word
            && (is_lettered || behind.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()))
        {
            numbers_behind(&behind.to_lowercase(), &mut numbers);
        }
    }
    numbers
}

/// The numbers in a line "**Story**: US2 (Priority P1)" below the heading of a phase.
pub(super) fn story_numbers_of_line(text: &str) -> Vec<String> {
    const FIRST_LINES: usize = 8;
    let label = |line: &str| -> Option<Vec<String>> {
        let line = line.trim_start_matches(['>', '*', '_', '-', ' ']);
        let (label, story) = line.split_once(':')?;
        let label = label.trim_end_matches(['*', '_', ' ']);
        let is_label = is_one_of(label, &["story", "stories", "user story"]);
        is_label.then(|| story_numbers(story)).filter(|numbers| !numbers.is_empty())
    };
    text.lines().take(FIRST_LINES).find_map(label).unwrap_or_default()
}

/// `A1`, `A-1` or `CSV1` at the start of a text, as the number of a story: `a1`, `csv1`.
fn lettered_number(text: &str) -> Option<String> {
    const MOST_LETTERS: usize = 10;
    const MOST_DIGITS: usize = 2;
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at(letters);
    if !(1..=MOST_LETTERS).contains(&letters) {
        return None;
    }
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_end = !rest[digits..].starts_with(|c: char| c.is_alphanumeric());
    (is_end && (1..=MOST_DIGITS).contains(&digits))
        .then(|| format!("{}{}", name.to_ascii_lowercase(), &rest[..digits]))
}

/// Whether a word is a letter that counts, as in "Story A: Login" and "Stories A & B".
fn is_story_letter(word: &str, behind: &str) -> bool {
    const MARKS: [char; 12] = [':', '：', '(', '（', '—', '–', '-', '&', '+', ',', '/', '|'];
    // "M-01" is a number of something else.
    let is_joined = behind.starts_with('-');
    let behind = behind.trim_start_matches([' ', '*']);
    word.len() == 1
        && word.chars().all(|c| c.is_ascii_alphabetic())
        && !is_joined
        && (behind.is_empty() || behind.starts_with(MARKS) || behind.starts_with("and "))
}

/// `1`, `1 & 2`, `1-3`, `1, 2 and 3`, `A`, `A & B` at the start of a text.
fn numbers_behind(text: &str, numbers: &mut Vec<String>) {
    let mut rest = text.trim_start_matches([' ', '-', '#', ':', '：']);
    // "Story: a user logs in" counts nothing.
    let mut may_be_letter = !text[..text.len() - rest.len()].contains([':', '：', '#']);
    // Nor does "Story: OAuth2 for all".
    let is_named = |number: &String| may_be_letter || number.find(|c: char| c.is_ascii_digit()) == Some(1);
    if let Some(number) = lettered_number(rest).filter(is_named) {
        numbers.extend(Some(number).filter(|number| !numbers.contains(number)));
        return;
    }
    let mut from: Option<u32> = None;
    loop {
        let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
        let number = rest[..len].trim_end_matches('.');
        let is_letter = may_be_letter && is_story_letter(number, &rest[len..]);
        may_be_letter = is_letter;
        if !is_letter && !number.starts_with(|c: char| c.is_ascii_digit()) || number.len() > 4 {
            return;
        }
        if let (Some(from), Ok(to)) = (from.take(), number.parse::<u32>()) {
            numbers.extend((from + 1..to.min(from + 50)).map(|number| number.to_string()));
        }
        if !numbers.iter().any(|known| known == number) {
            numbers.push(number.to_owned());
        }
        let behind = &rest[len..];
        let joined = behind.trim_start();
        let range = joined.strip_prefix(['-', '–', '—']).filter(|_| !behind.starts_with(' '));
        from = range.and_then(|_| number.parse().ok());
        let next = range.or_else(|| {
            ["&", "+", ",", "/", "and ", "和", "与"].iter().find_map(|joint| joined.strip_prefix(joint))
        });
        let Some(next) = next else { return };
        rest = next.trim_start();
        rest = rest.strip_prefix("us").map_or(rest, |rest| rest.trim_start_matches('-'));
    }
}

/// Whether a heading begins with the name of a story: "User Story 2", "US2: …", "Story 2".
pub(super) fn begins_with_story(title: &str) -> bool {
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric());
    let lower = title.to_lowercase();
    let is_named = STORY_WORDS.iter().any(|word| lower.starts_with(word));
    let is_short = title
        .strip_prefix("US")
        .is_some_and(|rest| rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()));
    (is_named || is_short) && !story_numbers(title).is_empty()
}

/// What a phase is for, as its title says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// "Setup", "Foundational": comes before the stories, whatever its title says about them.
    First,
    /// "Polish": comes last.
    Last,
    Other,
}

/// What a phase is for. Only the title counts, without what is in brackets.
pub(super) fn purpose(title: &str) -> Purpose {
    const FIRST: [&str; 10] = [
        "setup", "set-up", "foundation", "prerequisite", "initialization", "基础", "基礎", "准备",
        "セットアップ", "設定",
    ];
    const LAST: [&str; 9] =
        ["polish", "cross-cutting", "cross cutting", "收尾", "打磨", "润色", "完善", "ポリッシュ", "仕上げ"];
    let name = without_brackets(title).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    // "User Story 7 - Repository Polish" is a story.
    let is_last = has(&LAST) || name.trim_end().ends_with("final");
    if is_last && !begins_with_story(bare_title(title)) {
        Purpose::Last
    } else if has(&FIRST) && story_numbers(without_brackets(title)).is_empty() {
        Purpose::First
    } else {
        Purpose::Other
    }
}

pub(super) fn without_brackets(title: &str) -> &str {
    title.split(['(', '（', '[']).next().unwrap_or(title)
}

/// The names by which sentences speak of a phase, as lower-case words: its title without label and brackets, and "setup" for one
/// that begins so; then the names that it has only if no other phase has them, as "setup" for "Test setup".
pub(super) fn spoken_names(title: &str) -> [Vec<Vec<String>>; 2] {
    const MOST_WORDS: usize = 5;
    let bare = bare_title(title);
    let (mut names, mut aliases) = (Vec::new(), Vec::new());
    let own = title_words(title);
    let is_generic = matches!(&own[..], [word] if matches!(word.as_str(), "tests" | "test" | "testing" | "implementation" | "core" | "tasks" | "models" | "all" | "user" | "the"));
    let is_story = begins_with_story(bare);
    if (1..=MOST_WORDS).contains(&own.len()) && !is_generic && !is_story && own.concat().len() > 3 {
        names.push(own.clone());
    }
    // "基礎建設 (Foundational)" is named by the text in the brackets.
    let bracketed = title.split_once(['(', '（']).map_or("", |(_, inner)| inner.trim_start()).to_lowercase();
    let lower = bare.to_lowercase();
    for (part, words) in [
        (
            "foundation",
            &["foundational", "foundation", "foundations", "fundação", "fundación", "fondation"][..],
        ),
        ("setup", &["setup"]),
        ("polish", &["polish"]),
    ] {
        let is_called =
            bracketed.starts_with(part) || own.first().is_some_and(|first| first.starts_with(part));
        if (is_called || lower.contains(part)) && !is_story {
            let names = if is_called { &mut names } else { &mut aliases };
            names.extend(words.iter().map(|word| vec![(*word).to_owned()]));
        }
    }
    names.sort();
    names.dedup();
    [names, aliases]
}

/// Whether a subsection is about tests that come first, or about the implementation, by the start of its title.
pub(super) fn begins_with(title: &str, words: &[&str]) -> bool {
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    words.iter().any(|word| title.starts_with(word))
}

/// Whether a section says that it need not wait for the one before it.
pub(super) fn is_declared_independent(text: &str) -> bool {
    const APART: [&str; 9] = [
        "in parallel with", "parallel to ", "independent of", "independent from", "any time", "anytime",
        "in any order", "独立于", "可并行",
    ];
    let text = text.to_lowercase();
    APART.iter().any(|words| text.contains(words))
}

/// "**Depends on**: Phase 2", "> Prerequisites: Phase 1 complete".
pub(super) fn says_needs(content: &str) -> bool {
    const STARTS: [&str; 12] = [
        "depend", "prereq", "precond", "blocked by", "requires", "needs", "no depend", "no deps",
        "parallel with", "依赖", "依賴", "dépend",
    ];
    let content = content.trim_start_matches(|c: char| !c.is_alphanumeric());
    // "Independent Test: …" is none, "Independent — no dependencies" is.
    let is_apart = content.get(..11).is_some_and(|start| start.eq_ignore_ascii_case("independent"))
        && (!content[11..].trim_start().starts_with(char::is_alphabetic)
            || content[11..].starts_with(" of ")
            || content[11..].starts_with(" from "));
    if is_apart {
        return true;
    }
    STARTS
        .iter()
        .any(|start| content.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// Whether a line of prose says what a section waits for: "Can start after Phase 2", "This phase requires US1", "US1 must be complete before
/// this phase".
pub(super) fn says_when(content: &str) -> bool {
    const STARTS: [&str; 30] = [
        "after ", "after*", "after:", "start after", "starts after", "start only after", "can start",
        "can begin", "can only start", "can only begin", "cannot start", "cannot begin",
        "must be done after", "must start after", "must wait", "must follow", "should start after",
        "this phase ", "this story ", "前置", "前提", "依存", "의존", "선행", "зависи", "abhängig",
        "voraussetzung", "bağımlı", "requisitos", "pré-requis",
    ];
    const ENDS: [&str; 8] = [
        "before this phase",
        "before this story",
        "before starting this",
        "before beginning this",
        "must be complete",
        "must be done",
        "must be finished",
        "has to be complete",
    ];
    let lower = content.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    STARTS.iter().any(|start| lower.starts_with(start)) || ENDS.iter().any(|end| lower.contains(end))
}

/// Whether a heading says what its section waits for: "Group B — Mail (depends on 3.1)".
pub(super) fn states_needs(title: &str) -> bool {
    title.split(['(', '（', '[', '—', '–', ':', '：', ',', ';']).any(says_needs)
}

/// Whether a heading opens a list of dependencies. One that is a phase does not.
pub(super) fn is_dependencies(title: &str) -> bool {
    let lower = title.to_lowercase();
    phase_label(title).is_none() && DEPENDENCY_WORDS.iter().any(|word| lower.contains(word))
}

/// Whether a heading opens a list of what can run at once. One that is a phase does not.
pub(super) fn is_about_parallel(title: &str) -> bool {
    const PARALLEL: [&str; 10] =
        ["parallel", "paralel", "równoleg", "parallèl", "concurren", "并行", "並行", "並列", "平行", "병렬"];
    let lower = title.to_lowercase();
    phase_label(title).is_none() && PARALLEL.iter().any(|word| lower.contains(word))
}

/// A title as an id: lower-case ASCII words joined by dashes; empty if it has none.
pub(super) fn slug(title: &str) -> String {
    const LONGEST: usize = 40;
    let mut slug = String::new();
    for word in title.split(|c: char| !c.is_ascii_alphanumeric()) {
        let word = word.to_ascii_lowercase();
        if word.is_empty() || slug.len() + word.len() >= LONGEST {
            continue;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_recognised_in_every_spelling() {
        for (title, label) in [
            ("Phase 1: Setup", Some("1")),
            ("Phase 3.1: Setup", Some("3.1")),
            ("Phase 4.0 收尾", Some("4.0")),
            ("Phase 5A — X", Some("5a")),
            ("🚀 Phase N: X", Some("n")),
            ("Phase 3.5.c", Some("3.5.c")),
            ("Phase-2 X", Some("2")),
            ("**Phase 2**: X", Some("2")),
            ("Fase 1: X", Some("1")),
            ("阶段一：X", Some("一")),
            ("阶段 2", Some("2")),
            ("第1阶段：X", Some("1")),
            ("フェーズ1: X", Some("1")),
            ("Phase Dependencies", None),
            ("Phase order", Some("order")),
            ("Phases", None),
            ("Setup Phase", None),
            ("Notes", None),
            ("第一", None),
        ] {
            assert_eq!(phase_label(title).as_deref(), label, "{title}");
        }
    }

    #[test]
    fn story_and_dependency_sections_are_recognised_by_their_titles() {
        for (title, wanted) in [
            ("Phase 3: User Story 1 - X (Priority: P1)", &["1"][..]),
            ("Phase 1: 인증 (US-1, M-01)", &["1"]),
            ("Phase 8: US9+US10", &["9", "10"]),
            ("User Stories 1-3", &["1", "3", "2"]),
            ("US1 & US2 - Login", &["1", "2"]),
            ("Phase 1: Setup", &[]),
            ("Phase 2: Foundational (Blocks all user stories)", &[]),
            ("Focus on users", &[]),
            ("Phase 2: User Story A-1 — x", &["a1"]),
            ("Phase 2: x (US-B2)", &["b2"]),
            ("USB3 ports", &[]),
            ("Story A (P1): x", &["a"]),
            ("Phase 3: User Stories A & B - x", &["a", "b"]),
            ("User Story: A user logs in", &[]),
            ("Phase 3: User Story CSV1 - x", &["csv1"]),
            ("User Story: OAuth2 for all", &[]),
            ("Story A-team", &[]),
        ] {
            let (mut found, mut wanted) = (story_numbers(title), wanted.to_vec());
            found.sort();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{title}");
        }
        assert!(is_dependencies("Dependencies & Execution Order") && is_dependencies("依赖关系"));
        assert!(!is_dependencies("Phase 2: Dependencies") && !is_dependencies("Notes"));
    }

    #[test]
    fn a_slug_is_a_valid_id() {
        for (title, wanted) in [("1. Project, Test", "1-project-test"), ("阶段", ""), ("A..b/C", "a-b-c")] {
            assert_eq!(slug(title), wanted);
        }
    }
}
