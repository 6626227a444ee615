//! From headings and labels of a plan without boxes to the meaning of the lists below them: "Tasks" lists work, "Risks" does not.

use super::{
    section::{is_step, phase_label, without_brackets},
    taskless_sections::{has_word, is_check_list, is_history, is_summary},
};

/// What a heading or a label says about the list below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Title {
    /// "Tasks", "Steps", "TODO".
    Work,
    /// "Done": a list of tasks that are.
    Done,
    /// "Goals", "Risks", "Acceptance criteria".
    Aside,
    /// "Step 2: …".
    Step,
    /// "Phase 2: …".
    Phase,
    Other,
}

/// Words at the end of a heading whose lists are no tasks.
const ASIDE: [&str; 40] = [
    "goal", "goals", "non-goals", "objective", "objectives", "background", "context", "risk", "risks",
    "question", "questions", "reference", "references", "resources", "architecture", "design", "assumption",
    "assumptions", "scope", "constraint", "constraints", "prerequisite", "prerequisites", "deliverable",
    "deliverables", "files", "output", "outputs", "metrics", "stack", "structure", "features", "timeline",
    "rollback", "decision", "decisions", "benefits", "issues", "tests", "testing",
];

/// Words of a heading whose lists are tasks.
const WORK: [&str; 36] = [
    "task",
    "tasks",
    "step",
    "steps",
    "todo",
    "todos",
    "to do",
    "to-do",
    "to-dos",
    "action items",
    "actions",
    "work items",
    "implementation plan",
    "action plan",
    "work plan",
    "execution plan",
    "development plan",
    "plan of action",
    "backlog",
    "open",
    "remaining",
    "in progress",
    "pending",
    "roadmap",
    "tarefas",
    "tareas",
    "pasos",
    "passos",
    "étapes",
    "aufgaben",
    "schritte",
    "任务",
    "待办",
    "步骤",
    "タスク",
    "手順",
];

/// Words of a heading whose lists are tasks that are done.
pub(super) const DONE: [&str; 6] = ["done", "completed", "finished", "完成", "已完成", "完了"];

/// What a heading says. That of the whole file says nothing about a list: it names the file.
pub(super) fn title_of(title: &str, level: usize) -> Title {
    if is_step(title)
        && phase_label(title).is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()))
    {
        Title::Step
    } else if phase_label(title).is_some_and(|label| label.chars().any(char::is_numeric) || label.len() == 1)
    {
        Title::Phase
    } else if level == 1 {
        Title::Other
    } else if is_check_list(title) || is_history(title) || is_summary(title) || ends_with_word(title, &ASIDE)
    {
        Title::Aside
    } else if has_word(title, &DONE) {
        Title::Done
    } else if has_word(title, &WORK) || title.trim().eq_ignore_ascii_case("plan") {
        Title::Work
    } else {
        Title::Other
    }
}

/// The words of [`ASIDE`], in languages that write no spaces.
const ASIDE_CJK: [&str; 20] = [
    "目标", "目標", "标准", "標準", "范围", "範圍", "背景", "风险", "風險", "产出", "產出", "交付物", "参考",
    "約束", "约束", "目的", "목표", "기준", "범위", "배경",
];

/// "Success metrics" ends with such a word, "Metrics port" does not. "Files to change" begins with one.
fn ends_with_word(title: &str, words: &[&str]) -> bool {
    let title = without_brackets(title).to_lowercase();
    let mut parts = title.split(|c: char| !(c.is_alphanumeric() || c == '-')).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    let last = parts.next_back().unwrap_or(first);
    words.contains(&last) || first == "files" || ASIDE_CJK.iter().any(|word| title.trim_end().ends_with(word))
}

/// What a line such as "**Tasks:**" or "Deliverables:" says about the list below it.
pub(super) fn label_of(content: &str) -> Option<Title> {
    const LONGEST: usize = 50;
    const MOST_WORDS: usize = 3;
    let is_bold = content.starts_with("**") && content.trim_end_matches(':').ends_with("**");
    let is_label = content.len() <= LONGEST && (is_bold || content.ends_with([':', '：']));
    // "Log all actions with:" is no name of a list.
    let is_short = content.split_whitespace().count() <= MOST_WORDS;
    is_label
        .then(|| title_of(content.trim_matches(['*', ':', '：', ' ']), 2))
        .filter(|title| is_short || *title == Title::Aside)
}
