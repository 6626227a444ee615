//! Headings: which of them are phases, stories or lists of dependencies, in the languages that people use.

use super::Offset;

/// A heading and what stands below it, up to the next heading of its level.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) level: usize,
    pub(super) title: String,
    pub(super) at: Offset,
    pub(super) parent: Option<usize>,
    /// The task that the heading itself is.
    pub(super) task: Option<usize>,
    /// Whether it, or a section around it, lists dependencies.
    pub(super) lists_dependencies: bool,
    /// What is said in it outside of tasks.
    pub(super) text: String,
}

/// Words that begin the heading of a phase.
const PHASE_WORDS: [&str; 18] = [
    "phase",
    "fase",
    "etapa",
    "étape",
    "stage",
    "milestone",
    "sprint",
    "iteration",
    "step",
    "schritt",
    "этап",
    "фаза",
    "阶段",
    "階段",
    "フェーズ",
    "단계",
    "페이즈",
    "giai đoạn",
];

/// Words that tell that a heading speaks of a user story.
const STORY_WORDS: [&str; 9] = [
    "user story",
    "user stories",
    "用户故事",
    "使用者故事",
    "ユーザーストーリー",
    "사용자 스토리",
    "historia de usuario",
    "história de usuário",
    "récit utilisateur",
];

/// Words that tell that a heading opens a list of dependencies.
const DEPENDENCY_WORDS: [&str; 12] = [
    "dependenc",
    "execution order",
    "dependênc",
    "dépendance",
    "abhängigkeit",
    "dipendenz",
    "зависимост",
    "依赖",
    "依賴",
    "依存",
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

/// Whether a heading speaks of a user story.
pub(super) fn is_story(title: &str) -> bool {
    let lower = title.to_lowercase();
    STORY_WORDS.iter().any(|word| lower.contains(word)) || names_story(title)
}

/// `US1`, `US-1`, as a word.
fn names_story(title: &str) -> bool {
    title.split(|c: char| !(c.is_alphanumeric() || c == '-')).any(|word| {
        let number = word.strip_prefix("US").map(|rest| rest.trim_start_matches('-'));
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Whether a heading opens a list of dependencies. One that is a phase does not.
pub(super) fn is_dependencies(title: &str) -> bool {
    let lower = title.to_lowercase();
    phase_label(title).is_none() && DEPENDENCY_WORDS.iter().any(|word| lower.contains(word))
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
    fn phases_are_known_in_every_spelling() {
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
    fn stories_and_dependencies_are_known_by_their_words() {
        assert!(
            is_story("Phase 3: User Story 1 - X (Priority: P1)") && is_story("Phase 1: 인증 (US-1, M-01)")
        );
        assert!(!is_story("Phase 1: Setup") && !is_story("Focus on users"));
        assert!(is_dependencies("Dependencies & Execution Order") && is_dependencies("依赖关系"));
        assert!(!is_dependencies("Phase 2: Dependencies") && !is_dependencies("Notes"));
    }

    #[test]
    fn a_slug_is_fit_for_an_id() {
        for (title, wanted) in [("1. Project, Test", "1-project-test"), ("阶段", ""), ("A..b/C", "a-b-c")] {
            assert_eq!(slug(title), wanted);
        }
    }
}
