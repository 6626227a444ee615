//! Sections that a sentence lets run in parallel by words of their titles: "Services, hooks and components can be tested in
//! parallel".

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    PlanLine,
    keywords::{is_independent_word, is_parallel_word},
    lines::LineKind,
    section::without_brackets,
    tree::TreeBuilder,
};
use crate::name::TaskId;

impl TreeBuilder<'_, '_> {
    /// Subsections of one phase that a sentence names by their titles: "Services, hooks and components can be tested in
    /// parallel".
    pub(super) fn independent_sections(&self, section_ids: &[Option<TaskId>]) -> HashSet<usize> {
        let title_words: Vec<Vec<String>> =
            self.lines_about_order().filter_map(named_in_parallel).take(100).collect();
        let kinds: BTreeSet<usize> =
            self.lines_about_order().filter_map(|line| kind_in_parallel(line.text)).collect();
        let mut apart = HashSet::new();
        for kind in kinds {
            self.add_sections_of_kind(kind, section_ids, &mut apart);
        }
        if title_words.is_empty() {
            return apart;
        }
        let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, section) in
            self.outline.sections.iter().enumerate().filter(|(at, _)| section_ids[*at].is_none())
        {
            for word in telling_words(without_brackets(&section.title)) {
                by_word.entry(word).or_default().push(at);
            }
        }
        for words in title_words {
            // For each phase, what each word names there; a word that two titles have tells nothing.
            let mut named: HashMap<Option<usize>, BTreeMap<&String, Vec<usize>>> = HashMap::new();
            for word in &words {
                for at in by_word.get(word).into_iter().flatten() {
                    let parent = self.outline.sections[*at].parent;
                    named.entry(parent).or_default().entry(word).or_default().push(*at);
                }
            }
            // "Backend and frontend foundations" means those of the phase that has all of these words.
            let most = named.values().map(BTreeMap::len).max().unwrap_or_default();
            for sections in named.into_values().filter(|sections| sections.len() == most) {
                let one_each = sections.values().filter(|sections| sections.len() == 1).flatten();
                let sections: BTreeSet<usize> = one_each.copied().collect();
                apart.extend(sections.iter().filter(|_| sections.len() > 1));
            }
        }
        apart
    }

    /// The sections of a phase that are named after a kind of part, as "Module A" and "Module B". The first of them still waits for
    /// the section before it.
    fn add_sections_of_kind(&self, kind: usize, section_ids: &[Option<TaskId>], apart: &mut HashSet<usize>) {
        let mut by_phase: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (at, section) in self.outline.sections.iter().enumerate() {
            let mut words = section.title.split(|c: char| !c.is_alphanumeric());
            if section_ids[at].is_none() && words.any(|word| is_of_kind(word, kind)) {
                by_phase.entry(section.parent).or_default().push(at);
            }
        }
        apart.extend(by_phase.into_values().flat_map(|sections| sections.into_iter().skip(1)));
    }

    fn lines_about_order(&self) -> impl Iterator<Item = &PlanLine<'_>> {
        let blocks = self.outline.dependencies.iter().flat_map(|block| &block.lines);
        blocks.chain(&self.outline.parallel_lines)
    }
}

/// The words of things that a line lets run in parallel, as "services and hooks in parallel", "assets in parallel with
/// content" or "assets alongside content"; `None` for a line about marks or ids.
pub(super) fn named_in_parallel(line: &PlanLine<'_>) -> Option<Vec<String>> {
    const MANNERS: [&str; 6] =
        ["in parallel", "concurrently", "simultaneously", "at the same time", "side by side", "alongside"];
    let text = match line.kind {
        // In code, only a comment is a sentence.
        LineKind::Code => line.text.trim_start().strip_prefix('#')?,
        _ => line.text,
    };
    let (manner, at) = MANNERS.iter().find_map(|manner| Some((*manner, text.find(manner)?)))?;
    let (before, behind) = (&text[..at], text[at + manner.len()..].trim_start());
    let others = match manner {
        "alongside" => Some(behind),
        _ => behind.strip_prefix("with ").or_else(|| behind.strip_prefix("as ")),
    };
    let others =
        others.map(|others| others.split(['.', ';', ':', '(', ')', ',', '—']).next().unwrap_or_default());
    let is_about_marks = |text: &str| {
        text.contains("[P]") || text.contains("marked") || text.contains(|c: char| c.is_ascii_digit())
    };
    let is_list = before.contains(',') || before.contains(" and ") || others.is_some();
    let others = others.unwrap_or_default();
    let mut words = telling_words(before);
    words.extend(telling_words(others));
    words.sort();
    words.dedup();
    (is_list && !is_about_marks(before) && !is_about_marks(others) && words.len() > 1).then_some(words)
}

/// The words of a text that tell one section from another, in lower case and in the singular.
pub(super) fn telling_words(text: &str) -> Vec<String> {
    const GENERIC: [&str; 12] = [
        "test", "task", "core", "implementation", "user", "story", "storie", "phase", "setup", "different",
        "file", "with",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.map(|word| word.trim_end_matches('s').to_owned());
    words.filter(|word| word.len() > 2 && !GENERIC.contains(&word.as_str())).collect()
}

/// Kinds of parts that sections are named after, by the beginnings of their words.
const KINDS: [&[&str]; 8] = [
    &["modul", "módul", "moduł", "модул", "模块", "模組", "モジュール", "모듈"],
    &["component", "composant", "komponent", "компонент", "组件", "元件", "コンポーネント", "컴포넌트"],
    &["feature", "funcionalid", "fonctionnalit", "funktion", "funkcj", "функци", "功能", "機能", "기능"],
    &["servi", "dienst", "usług", "сервис", "服务", "服務", "サービス", "서비스"],
    &["package", "paket", "paquet", "pacote", "pakiet", "пакет", "パッケージ", "패키지"],
    &["page", "página", "seite", "stron", "страниц", "页面", "頁面", "ページ", "페이지"],
    &["area", "área", "bereich", "obszar", "област", "领域", "領域", "영역"],
    &[
        "section", "sección", "seção", "seções", "secciones", "abschnitt", "sekcj", "раздел", "セクション",
        "섹션",
    ],
];

fn is_of_kind(word: &str, kind: usize) -> bool {
    let lower = word.to_lowercase();
    KINDS[kind].iter().any(|stem| lower.starts_with(stem) || !is_spaced(stem) && lower.contains(stem))
}

/// Whether a language writes spaces between words, which Chinese and Japanese do not.
fn is_spaced(word: &str) -> bool {
    word.chars().all(|c| c < '\u{2e80}')
}

/// The kind of parts that a line lets run in parallel: "Different modules can be refactored in parallel", "No dependencies
/// between modules", in the languages that people use. A line about tasks or marks has none.
pub(super) fn kind_in_parallel(text: &str) -> Option<usize> {
    /// A word of every such line, so that others are soon told.
    const SHARED: [&str; 16] = [
        "paral",
        "concurren",
        "одновремен",
        "indépend",
        "unabh",
        "równoleg",
        "niezale",
        "паралл",
        "независ",
        "depend",
        "dépend",
        "abhäng",
        "завис",
        "zależ",
        "gleichzeitig",
        "simult",
    ];
    const LONGEST: usize = 300;
    let lower = text.to_lowercase();
    let is_shared = SHARED.iter().any(|part| lower.contains(part)) || !is_spaced(&lower);
    if !is_shared || lower.len() > LONGEST || lower.contains("[p]") {
        return None;
    }
    // In "Phase 4 (US2): modules can be built in parallel" the label tells where.
    let clauses = lower.split(['.', ';', ':', '：', '。', '；', '—', '(', '（', ')', '）']);
    clauses.filter(|clause| !clause.contains(|c: char| c.is_ascii_digit())).find_map(kind_of_clause)
}

fn kind_of_clause(clause: &str) -> Option<usize> {
    const BETWEEN: [&str; 10] =
        ["between", "among", "across", "entre", "zwischen", "между", "między", "之间", "之間", "間"];
    const NONE: [&str; 18] = [
        "no", "without", "não", "nao", "sem", "keine", "kein", "aucune", "pas", "sin", "нет", "brak", "nie",
        "无", "無", "没有", "ない", "없",
    ];
    const NEEDS: [&str; 10] =
        ["depend", "dépend", "abhäng", "завис", "zależ", "依赖", "依賴", "依存", "의존", "dipend"];
    let words: Vec<&str> =
        clause.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let kind_at = |word: &str| (0..KINDS.len()).find(|kind| is_of_kind(word, *kind));
    let (first, _) = words.iter().enumerate().find_map(|(at, word)| Some((at, kind_at(word)?)))?;
    // Of "feature modules" the last word counts.
    let (at, kind) = words[first..]
        .iter()
        .enumerate()
        .map_while(|(at, word)| Some((first + at, kind_at(word)?)))
        .last()?;
    let has = |known: &[&str]| words.iter().any(|word| known.iter().any(|known| is_word(word, known)));
    let has_part = |known: &[&str]| known.iter().any(|known| clause.contains(known));
    let has_none = has(&NONE);
    let is_denied = has_none || has(&["not", "cannot", "never", "nicht", "ne", "не", "nunca", "нельзя"]);
    // "모듈 간": the syllable is in many words.
    let is_between = has(&BETWEEN) || words.get(at + 1).is_some_and(|word| word.starts_with('간'));
    if has_none && has_part(&NEEDS) && is_between {
        return Some(kind);
    }
    let is_subject = is_of_all(&words[..first]) && is_head(&words[at..], kind);
    // "Each component can be tested independently" says nothing about order.
    let is_tested = ["test", "verif", "valid", "prüf", "prueb", "тест", "测试", "テスト", "테스트"];
    let is_independent = |word: &&str| is_independent(word) && !has_part(&is_tested);
    let says_so = words[at..].iter().any(|word| is_parallel_word(word) || is_independent(word));
    (is_subject && says_so && !is_denied && !clause.contains("不能") && !clause.contains("不可"))
        .then_some(kind)
}

/// Whether a word is a known one; in a language without spaces, whether it has that in it.
fn is_word(word: &str, known: &str) -> bool {
    word == known || !is_spaced(known) && word.contains(known)
}

fn is_independent(word: &str) -> bool {
    const ADVERBS: [&str; 4] = ["independently", "indépendamment", "independientemente", "independentemente"];
    is_independent_word(word)
        || ADVERBS.contains(&word)
        || word.contains("独立")
        || word.contains("獨立")
        || word.contains("독립")
}

/// Whether the words before a kind of parts let a sentence speak of all of them: "all modules", "tasks in different modules".
fn is_of_all(words: &[&str]) -> bool {
    const TASKS: [&str; 9] =
        ["tasks", "work", "aufgaben", "tâches", "tareas", "tarefas", "задачи", "zadania", "arbeiten"];
    const IN: [&str; 15] =
        ["in", "from", "of", "for", "on", "across", "aus", "an", "de", "des", "em", "en", "из", "в", "z"];
    const DIFFERENT: [&str; 13] = [
        "different", "separate", "distinct", "verschiedenen", "unterschiedlichen", "différents",
        "différentes", "diferentes", "distintos", "distintas", "разных", "различных", "różnych",
    ];
    match words {
        [tasks, place, between @ ..] if TASKS.contains(tasks) && IN.contains(place) => {
            !between.is_empty() && between.iter().all(|word| DIFFERENT.contains(word))
        }
        [verb, others @ ..] if ["implement", "build", "develop", "refactor"].contains(verb) => {
            others.iter().all(|word| is_determiner(word))
        }
        _ => words.iter().all(|word| is_determiner(word)),
    }
}

/// Words that may come before a kind of parts where a sentence is about all of them.
fn is_determiner(word: &str) -> bool {
    const WORDS: [&str; 58] = [
        "all",
        "the",
        "different",
        "each",
        "every",
        "distinct",
        "separate",
        "independent",
        "individual",
        "both",
        "these",
        "alle",
        "die",
        "verschiedene",
        "unterschiedliche",
        "einzelne",
        "unabhängige",
        "jedes",
        "tous",
        "les",
        "toutes",
        "différents",
        "différentes",
        "chaque",
        "ces",
        "todos",
        "todas",
        "los",
        "las",
        "os",
        "as",
        "diferentes",
        "distintos",
        "distintas",
        "cada",
        "estos",
        "estes",
        "все",
        "разные",
        "различные",
        "отдельные",
        "независимые",
        "каждый",
        "wszystkie",
        "różne",
        "poszczególne",
        "niezależne",
        "każdy",
        "不同的",
        "不同",
        "各个",
        "各個",
        "所有",
        "すべての",
        "異なる",
        "서로",
        "다른",
        "모든",
    ];
    WORDS.contains(&word)
}

/// Whether what begins with a word of a kind speaks of the parts themselves: "module tests can run in parallel" does not.
fn is_head(words: &[&str], kind: usize) -> bool {
    const NEXT: [&str; 47] = [
        "can",
        "may",
        "could",
        "are",
        "run",
        "should",
        "können",
        "kann",
        "dürfen",
        "sind",
        "werden",
        "lassen",
        "peuvent",
        "peut",
        "sont",
        "pueden",
        "puede",
        "son",
        "podem",
        "pode",
        "são",
        "могут",
        "может",
        "можно",
        "mogą",
        "może",
        "można",
        "są",
        "diferentes",
        "distintos",
        "distintas",
        "différents",
        "différentes",
        "independientes",
        "independentes",
        "indépendants",
        "независимы",
        "разные",
        "различные",
        "różne",
        "parallel",
        "in",
        "concurrently",
        "simultaneously",
        "independently",
        "independent",
        "wszystkie",
    ];
    let Some((first, rest)) = words.split_first() else { return false };
    if !is_spaced(first) {
        // "不同模块可以并行": what is before the noun tells which of them.
        let stem = KINDS[kind].iter().find_map(|stem| first.find(stem));
        return stem.is_some_and(|at| {
            let before = &first[..at];
            before.is_empty()
                || is_determiner(before)
                || matches!(before, "各" | "全" | "全部" | "全ての" | "각")
        });
    }
    rest.first().is_some_and(|next| NEXT.contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_allow_parallel_sections_are_recognised_in_every_language() {
        for text in [
            "- **Phase 4 (US2)**: Módulos diferentes podem ser refatorados em paralelo por desenvolvedores diferentes",
            "# - Não há dependência entre módulos (DAG)",
            "- Different modules can be refactored in parallel by different developers",
            "- There are no dependencies between modules",
            "- All modules are independent of each other",
            "- Verschiedene Module können parallel umgesetzt werden",
            "- Keine Abhängigkeiten zwischen den Modulen",
            "- Les modules peuvent être refactorisés en parallèle",
            "- Aucune dépendance entre les modules",
            "- Los módulos pueden refactorizarse en paralelo",
            "- No hay dependencias entre módulos",
            "- 不同模块可以并行开发",
            "- 模块之间没有依赖",
            "- 各モジュールは並行して実装できる",
            "- モジュール間に依存関係はない",
            "- 모든 모듈은 병렬로 진행할 수 있다",
            "- 모듈 간 의존성 없음",
            "- Разные модули можно делать параллельно",
            "- Между модулями нет зависимостей",
            "- Różne moduły można realizować równolegle",
            "- Brak zależności między modułami",
            "- Feature modules can be developed concurrently",
            "- Tasks in different modules can run in parallel",
            "- Implement all modules in parallel",
            "- Each module can be developed independently",
            "- Aufgaben aus verschiedenen Modulen können parallel laufen",
            "- Tareas de distintos módulos pueden ejecutarse en paralelo",
        ] {
            assert_eq!(kind_in_parallel(text), Some(0), "{text}");
        }
    }

    #[test]
    fn other_sentences_allow_no_parallel_sections() {
        for text in [
            "- Module tests can run in parallel",
            "- Tests of different modules can run in parallel",
            "- Modules cannot be built in parallel",
            "- Modules can not run in parallel",
            "- All [P] modules can run in parallel",
            "- The modules depend on the setup",
            "- Each module can be tested independently",
            "- Tasks of the module can run in parallel",
            "- Tasks within modules can run in parallel",
            "- 模块不能并行",
            "- Services within a story marked [P] can run in parallel",
            "- Different user stories can be worked on in parallel",
        ] {
            assert_eq!(kind_in_parallel(text), None, "{text}");
        }
    }
}
