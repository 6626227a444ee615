//! Titles of sections that hold no tasks: "Acceptance criteria", "Summary", "Change log", "Out of scope".

use super::section::{counted_label, is_dependencies, phase_label, without_brackets};

/// Words that only a list of checks is called by.
const CHECK_LISTS: [&str; 51] = [
    "legend",
    "图例",
    "凡例",
    "checklist",
    "checklists",
    "check list",
    "acceptance",
    "criteria",
    "definition of done",
    "done when",
    "exit condition",
    "exit conditions",
    "quality gate",
    "quality gates",
    "验收",
    "驗收",
    "清单",
    "受け入れ基準",
    "受入基準",
    "完了条件",
    "인수 기준",
    "완료 기준",
    "critères",
    "criterios",
    "critérios",
    "验证标准",
    "驗證標準",
    "完成标准",
    "完成標準",
    "成功标准",
    "成功標準",
    "质量标准",
    "通过标准",
    "退出标准",
    "成功基準",
    "完了基準",
    "検証基準",
    "критерии",
    "чек-лист",
    "чеклист",
    "kryteria",
    "criteri",
    "kriterien",
    "akzeptanzkriterien",
    "abnahmekriterien",
    "checkliste",
    "lista de verificación",
    "lista de verificação",
    "lista kontrolna",
    "liste de vérification",
    "清單",
];

/// Words that a list of checks may be called by, and a phase of work too.
const CHECKS: [&str; 18] = [
    "validation", "validations", "verification", "sign-off", "signoff", "success", "checkpoint", "review",
    "code review", "final review", "gate", "gates", "readiness", "requirements", "notes", "检查", "チェック",
    "체크",
];

/// Whether a text has one of some words, as whole words where a script has such.
pub(super) fn has_word(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    words.iter().any(|word| {
        lower.match_indices(word).any(|(at, found)| {
            !found.is_ascii()
                || is_end(lower[..at].chars().next_back()) && is_end(lower[at + found.len()..].chars().next())
        })
    })
}

/// Whether a heading opens a list of checks. "Phase 5: Validation" and "4. Validation" are phases of work.
pub(super) fn is_check_list(title: &str) -> bool {
    let is_counted = phase_label(title).is_some() || counted_label(title).is_some();
    let is_work = is_counted || has_word(title, &["task", "tasks"]);
    has_word(title, &CHECK_LISTS) || !is_work && has_word(without_brackets(title), &CHECKS)
}

/// Whether a heading can only mean a list of checks.
pub(super) fn is_only_checks(title: &str) -> bool {
    has_word(title, &CHECK_LISTS)
}

/// Whether a heading opens a list of work that is called a check list, as "Migration checklist". Beside a longer list of tasks it is
/// one of checks all the same.
pub(super) fn is_work_list(title: &str) -> bool {
    const LISTS: [&str; 8] = [
        "checklist",
        "checklists",
        "check list",
        "checkliste",
        "清单",
        "清單",
        "チェックリスト",
        "체크리스트",
    ];
    const WORK: [&str; 21] = [
        "implementation", "migration", "development", "execution", "refactoring", "build", "task", "tasks",
        "todo", "任务", "任務", "待办", "迁移", "实施", "開發", "开发", "实现", "実装", "移行", "작업",
        "구현",
    ];
    has_word(title, &LISTS) && has_word(title, &WORK)
}

/// Whether the text of a box only tells what its mark means, as "[~] In progress" in a legend.
pub(super) fn is_of_legend(text: &str) -> bool {
    const STATES: [&str; 26] = [
        "not started", "not done", "to do", "todo", "open", "pending", "planned", "in progress",
        "in-progress", "ongoing", "partial", "partially done", "partially complete", "done", "complete",
        "completed", "finished", "blocked", "skipped", "cancelled", "canceled", "deferred", "incomplete",
        "task not started", "未开始", "已完成",
    ];
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let text = text.split(['(', '—', '–', ':', '/']).next().unwrap_or_default();
    let text = text.split(" - ").next().unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric());
    STATES.contains(&text)
}

/// Whether a paragraph leads to a list of checks: "Acceptance criteria:", "**Checkpoint**: all of this works". A whole sentence such
/// as "Improve readiness." tells what a phase is for.
pub(super) fn leads_to_checks(text: &str) -> bool {
    const LONGEST: usize = 60;
    let head = text.split([':', '：', '。']).next().unwrap_or(text);
    head.len() <= LONGEST
        && !head.trim_end().ends_with('.')
        && (has_word(head, &CHECK_LISTS) || has_word(head, &CHECKS))
}

/// Whether a section is about what is left for another time.
pub(super) fn is_for_later(title: &str) -> bool {
    const LATER: [&str; 12] = [
        "next", "next steps", "future", "later", "out of scope", "backlog", "deferred", "nice to have",
        "nice-to-have", "stretch", "follow-up", "follow-ups",
    ];
    phase_label(title).is_none() && has_word(title, &LATER)
}

/// Whether a section repeats tasks that are listed elsewhere.
pub(super) fn is_summary(title: &str) -> bool {
    const SUMMARIES: [&str; 16] = [
        "summary", "overview", "progress", "status", "parallel", "example", "strategy", "mvp", "see above",
        "tracking", "notes", "coverage", "mapping", "recap", "总结", "概览",
    ];
    let lower = title.to_lowercase();
    phase_label(title).is_none()
        && (is_check_list(title)
            || is_dependencies(title)
            || SUMMARIES.iter().any(|word| lower.contains(word)))
}

/// Whether a section only tells again what is listed elsewhere. A review may have tasks.
pub(super) fn is_repetition(title: &str) -> bool {
    is_history(title) || is_summary(title) && !is_check_list(title)
}

/// Whether a section only tells how far the tasks are that are listed elsewhere.
pub(super) fn is_tracking(title: &str) -> bool {
    const WORDS: [&str; 22] = [
        "status", "progress", "tracking", "tracker", "overview", "summary", "fortschritt", "übersicht",
        "avancement", "suivi", "estado", "progreso", "progresso", "acompanhamento", "postęp", "статус",
        "прогресс", "进度", "状态", "進捗", "状況", "현황",
    ];
    let lower = title.to_lowercase();
    phase_label(title).is_none() && WORDS.iter().any(|word| lower.contains(word))
}

/// Whether a line says that optional tasks do not block the others: "Optional tasks (marked *) do not block the core tasks".
pub(super) fn lets_optional_wait(text: &str) -> bool {
    const OPTIONAL: [&str; 14] = [
        "optional",
        "starred",
        "*",
        "optionnel",
        "facultati",
        "opcional",
        "opcjonaln",
        "необязательн",
        "опциональн",
        "可选",
        "可選",
        "オプション",
        "任意",
        "선택",
    ];
    const NOT_BLOCKING: [&str; 38] = [
        "not block",
        "n't block",
        "never block",
        "non-blocking",
        "nonblocking",
        "nicht block",
        "blockieren nicht",
        "blockiert nicht",
        "blockieren keine",
        "ne bloque",
        "pas bloquant",
        "non bloquant",
        "no bloque",
        "não bloque",
        "nao bloque",
        "не блокир",
        "nie blokuj",
        "不阻塞",
        "不会阻塞",
        "不會阻塞",
        "不阻断",
        "ブロックしない",
        "ブロックしません",
        "妨げない",
        "차단하지 않",
        "막지 않",
        "블록하지 않",
        "블로킹하지 않",
        "not wait for optional",
        "not wait for starred",
        "not depend on optional",
        "not depend on starred",
        "without blocking",
        "ohne zu block",
        "sans bloquer",
        "sin bloquear",
        "sem bloquear",
        "не блоку",
    ];
    // Few lines have one of the second, and a plan may have 10,000 lines.
    if !["block", "bloq", "blok", "блок", "阻", "ブロ", "妨げ", "차단", "막지", "블", "wait for", "depend on"]
        .iter()
        .any(|part| text.contains(part))
    {
        return false;
    }
    let lower = text.to_lowercase();
    NOT_BLOCKING.iter().any(|words| lower.contains(words))
        && OPTIONAL.iter().any(|words| lower.contains(words))
}

/// Whether a section is a change log, whose rows are no tasks.
pub(super) fn is_history(title: &str) -> bool {
    const HISTORY: [&str; 9] = [
        "change log", "changelog", "change-log", "revision", "version history", "history", "release notes",
        "变更", "更新记录",
    ];
    let lower = title.to_lowercase();
    HISTORY.iter().any(|word| lower.contains(word))
}
