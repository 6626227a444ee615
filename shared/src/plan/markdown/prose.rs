//! Plans without boxes and ids: lists of ticks, numbered steps, phases with lists, and lists below headings such as "Tasks".
//! They are looked for only in a file that has nothing else.

use std::collections::{BTreeMap, HashSet};

use super::{
    PlanLine,
    asides::{has_word, is_check_list, is_history, is_summary},
    entry::TICKS,
    head::{TaskLine, checkbox},
    lines::{LineKind, marker_number},
    section::{counted_label, is_step, phase_label, without_brackets},
};
use crate::plan::Mark;

/// What a line of prose is, as a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProseTask {
    /// The number that the file gives it.
    pub(super) number: Option<String>,
    pub(super) mark: Mark,
}

/// Tasks by the position of their line.
pub(super) type ProseTasks = BTreeMap<usize, ProseTask>;

/// What a heading or a label says about the list below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Title {
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

/// An item of a list that is nested in no other.
#[derive(Debug)]
struct Item {
    line: usize,
    /// The number before it, if its list is numbered.
    number: Option<u32>,
    /// What the mark before its text says.
    tick: Option<Mark>,
    /// The heading right above it, by position.
    heading: Option<usize>,
    /// What the nearest heading or label says that says anything.
    title: Title,
}

/// A heading, as far as lists need it.
#[derive(Debug)]
struct Heading {
    line: usize,
    level: usize,
    title: Title,
    /// The headings around it, innermost first.
    around: Vec<usize>,
    /// Whether a paragraph leads to its first list.
    is_told: bool,
}

/// The tasks of a file that has neither boxes nor ids. Empty if nothing in it is surely a list of tasks.
pub(super) fn prose_tasks(label: &str, lines: &[PlanLine<'_>]) -> ProseTasks {
    let (headings, items) = survey(lines);
    let is_list =
        is_called(label, lines, &["todo", "to do", "to-do", "todos", "tasks", "task list", "待办", "任务"]);
    let is_plan = is_called(label, lines, &["implementation plan", "action plan", "plan"]);
    let found = [
        steps(lines, &headings, &items),
        phases(&headings, &items),
        ticked(&items),
        items_where(&items, |item| matches!(item.title, Title::Work | Title::Done)),
        if is_list || is_plan { numbered_headings(lines, &headings) } else { ProseTasks::new() },
        if is_list { listed(&headings, &items) } else { ProseTasks::new() },
        numbered_items(&headings, &items),
    ];
    found.into_iter().find(|tasks| tasks.len() > 1).unwrap_or_default()
}

/// The tasks of a file by its phases, if it has more than one.
pub(super) fn phase_tasks(lines: &[PlanLine<'_>]) -> ProseTasks {
    let (headings, items) = survey(lines);
    let found = phases(&headings, &items);
    if headings.iter().filter(|heading| heading.title == Title::Phase).count() > 1 {
        found
    } else {
        ProseTasks::new()
    }
}

/// The items of a numbered list whose boxes all stand below them and have no ids: these are steps of the items. Empty if
/// a file has any other box.
pub(super) fn steps_with_boxes(lines: &[PlanLine<'_>]) -> ProseTasks {
    let boxes = lines.iter().filter(|line| matches!(line.kind, LineKind::Item(_) | LineKind::Text));
    let mut boxes = boxes.filter_map(|line| Some((line, checkbox(line.content())?.1))).peekable();
    if boxes.peek().is_none() || !boxes.all(|(line, rest)| line.indent > 1 && TaskLine::parse(rest).is_none())
    {
        return ProseTasks::new();
    }
    let (_, items) = survey(lines);
    let has_title = |item: &Item| !matches!(item.title, Title::Aside);
    let tasks = items_where(&items, |item| item.number.is_some() && has_title(item));
    let is_counted = tasks.len() > 1 && tasks.values().all(|task| task.number.is_some());
    let is_whole = items.iter().filter(|item| has_title(item)).all(|item| item.number.is_some());
    if is_counted && is_whole { tasks } else { ProseTasks::new() }
}

/// What the mark at the start of a text says, and the text behind it. A cross stands before what is still to do.
pub(super) fn tick_at(text: &str) -> Option<(Mark, &str)> {
    const DONE: [char; 6] = ['✅', '✔', '✓', '☑', '🗹', '🟢'];
    const NOT_DONE: [char; 13] = ['❌', '✗', '✘', '☒', '⬜', '☐', '□', '🔲', '◻', '⭕', '🔴', '⚪', '🔳'];
    const PARTIAL: [char; 6] = ['🚧', '🔄', '⏳', '🟡', '🔶', '🏗'];
    let text = text.trim_start_matches(['*', '_']);
    let first = text.chars().next()?;
    let mark = match first {
        c if DONE.contains(&c) => Mark::Done,
        c if NOT_DONE.contains(&c) => Mark::Todo,
        c if PARTIAL.contains(&c) => Mark::Partial,
        _ => return None,
    };
    // Many of these signs are followed by a mark that makes them pictures.
    let rest = text[first.len_utf8()..].trim_start_matches(['\u{fe0e}', '\u{fe0f}', '*', '_']).trim_start();
    (!rest.is_empty()).then_some((mark, rest))
}

/// "Write the docs ✅".
fn tick_behind(text: &str) -> Option<Mark> {
    text.trim_end().ends_with(TICKS).then_some(Mark::Done)
}

/// Goes through a file once and notes its headings and outer list items.
fn survey(lines: &[PlanLine<'_>]) -> (Vec<Heading>, Vec<Item>) {
    let mut headings: Vec<Heading> = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut label: Option<Title> = None;
    let mut column: Option<usize> = None;
    let series = find_series(lines);
    for (at, line) in lines.iter().enumerate() {
        match line.kind {
            LineKind::Heading(level) => {
                let title = if series.contains(&at) { Title::Phase } else { title_of(line.content(), level) };
                open.retain(|own| headings[*own].level < level);
                let around = open.iter().rev().copied().collect();
                headings.push(Heading { line: at, level, title, around, is_told: false });
                open.push(headings.len() - 1);
                (label, column) = (None, None);
            }
            LineKind::Item(content) if column.is_none_or(|column| line.indent < column) => {
                items.push(item(at, line, (&headings, &open), label));
                column = Some(content);
            }
            // A line that begins with a tick is an item, with or without a bullet.
            LineKind::Text if line.indent < 4 && tick_at(line.content()).is_some() => {
                items.push(item(at, line, (&headings, &open), label));
            }
            LineKind::Text if column.is_none_or(|column| line.indent < column) => {
                if let Some(own) =
                    open.last().filter(|own| items.last().is_none_or(|item| item.heading != Some(**own)))
                {
                    headings[*own].is_told |=
                        label_of(line.content()).is_none_or(|title| title == Title::Other);
                }
                (label, column) = (label_of(line.content()).or(label), None);
            }
            _ => {}
        }
    }
    (headings, items)
}

/// Headings that count with letters and numbers, as "E0 — Install", "E1 — Demo", are phases where several of a level do.
fn find_series(lines: &[PlanLine<'_>]) -> HashSet<usize> {
    const FEWEST: usize = 3;
    let mut series: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let LineKind::Heading(level) = line.kind
            && let Some(letters) = series_letters(line.content())
        {
            series.entry((level, letters)).or_default().push(at);
        }
    }
    series.into_values().filter(|lines| lines.len() >= FEWEST).flatten().collect()
}

/// The letters before the number that a title begins with: `E` of "E0 — Install", `M` of "M1: Skeleton".
fn series_letters(title: &str) -> Option<&str> {
    const MOST: usize = 3;
    let letters = title.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = title[letters..].bytes().take_while(u8::is_ascii_digit).count();
    let behind = title[letters + digits..].trim_start_matches([' ', '*']);
    let is_apart = behind.starts_with(['—', '–', '-', ':', '：', '.', ')', '(']);
    let is_label = (1..=MOST).contains(&letters) && (1..=MOST).contains(&digits) && is_apart;
    is_label.then(|| &title[..letters])
}

fn item(
    at: usize,
    line: &PlanLine<'_>,
    (headings, open): (&[Heading], &[usize]),
    label: Option<Title>,
) -> Item {
    let around = open.iter().rev().map(|own| headings[*own].title);
    let mut titles = label.into_iter().chain(around);
    Item {
        line: at,
        number: marker_number(line.text.trim_start()).filter(|_| matches!(line.kind, LineKind::Item(_))),
        tick: tick_at(line.content()).map(|(mark, _)| mark).or_else(|| tick_behind(line.content())),
        heading: open.last().copied(),
        title: titles.find(|title| *title != Title::Other).unwrap_or(Title::Other),
    }
}

/// Words at the end of a heading whose lists are no tasks.
const ASIDE: [&str; 40] = [
    "goal",
    "goals",
    "non-goals",
    "objective",
    "objectives",
    "background",
    "context",
    "risk",
    "risks",
    "question",
    "questions",
    "reference",
    "references",
    "resources",
    "architecture",
    "design",
    "assumption",
    "assumptions",
    "scope",
    "constraint",
    "constraints",
    "prerequisite",
    "prerequisites",
    "deliverable",
    "deliverables",
    "files",
    "output",
    "outputs",
    "metrics",
    "stack",
    "structure",
    "features",
    "timeline",
    "rollback",
    "decision",
    "decisions",
    "benefits",
    "issues",
    "tests",
    "testing",
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
const DONE: [&str; 6] = ["done", "completed", "finished", "完成", "已完成", "完了"];

/// What a heading says. That of the whole file says nothing about a list: it names the file.
fn title_of(title: &str, level: usize) -> Title {
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

/// The same of languages that write no spaces.
const ASIDE_CJK: [&str; 20] = [
    "目标",
    "目標",
    "标准",
    "標準",
    "范围",
    "範圍",
    "背景",
    "风险",
    "風險",
    "产出",
    "產出",
    "交付物",
    "参考",
    "約束",
    "约束",
    "目的",
    "목표",
    "기준",
    "범위",
    "배경",
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
fn label_of(content: &str) -> Option<Title> {
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

/// Whether the name of a file or its first heading has one of some words.
fn is_called(label: &str, lines: &[PlanLine<'_>], names: &[&str]) -> bool {
    let name = label.rsplit(['/', '\\']).next().unwrap_or(label);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).replace(['_', '-'], " ");
    let first = lines.iter().find(|line| matches!(line.kind, LineKind::Heading(1)));
    has_word(&stem, names) || first.is_some_and(|line| has_word(line.content(), names))
}

/// Items with ticks and crosses, and the others of their lists.
fn ticked(items: &[Item]) -> ProseTasks {
    const FEWEST: usize = 2;
    let is_ticked = |item: &&Item| item.tick.is_some() && item.title != Title::Aside;
    if items.iter().filter(is_ticked).count() < FEWEST {
        return ProseTasks::new();
    }
    let with_ticks: Vec<Option<usize>> = items.iter().filter(is_ticked).map(|item| item.heading).collect();
    let belongs = |item: &Item| match item.title {
        Title::Aside => false,
        Title::Work | Title::Done => true,
        _ => item.tick.is_some() || with_ticks.binary_search(&item.heading).is_ok(),
    };
    unnumbered(items.iter().filter(|item| belongs(item)))
}

/// Headings "Step 1 …", unless a list of tasks stands below them.
fn steps(lines: &[PlanLine<'_>], headings: &[Heading], items: &[Item]) -> ProseTasks {
    let is_within = |item: &Item| {
        let own = item.heading.into_iter();
        let mut around = own.flat_map(|own| std::iter::once(own).chain(headings[own].around.iter().copied()));
        item.title == Title::Work && around.any(|own| headings[own].title == Title::Step)
    };
    if items.iter().any(is_within) {
        return ProseTasks::new();
    }
    let steps = headings.iter().filter(|heading| heading.title == Title::Step);
    let numbers: Vec<(usize, Option<String>)> =
        steps.map(|heading| (heading.line, phase_label(lines[heading.line].content()))).collect();
    with_numbers(numbers)
}

/// The lists below phases; a phase that has none is a task itself.
fn phases(headings: &[Heading], items: &[Item]) -> ProseTasks {
    // Below "Implementation order" the phases are named once more.
    let is_aside = |own: &usize| headings[*own].title == Title::Aside;
    let is_phase =
        |own: &usize| headings[*own].title == Title::Phase && !headings[*own].around.iter().any(is_aside);
    let phase_of = |item: &Item| {
        let own = item.heading?;
        std::iter::once(own).chain(headings[own].around.iter().copied()).find(is_phase)
    };
    // Where a phase has a list of tasks, its other lists are something else.
    let mut lists: BTreeMap<usize, (Vec<&Item>, Vec<&Item>)> = BTreeMap::new();
    for item in items {
        let Some(phase) = phase_of(item) else { continue };
        let (work, others) = lists.entry(phase).or_default();
        match item.title {
            Title::Work | Title::Done => work.push(item),
            Title::Aside => {}
            _ => others.push(item),
        }
    }
    let lists =
        lists.into_iter().map(|(phase, (work, others))| (phase, if work.is_empty() { others } else { work }));
    let lists: BTreeMap<usize, Vec<&Item>> = lists.filter(|(_, items)| !items.is_empty()).collect();
    let mut tasks = unnumbered(lists.values().flatten().copied());
    let parents: HashSet<usize> =
        headings.iter().filter(|own| own.title == Title::Phase).flat_map(|own| own.around.clone()).collect();
    for own in
        (0..headings.len()).filter(is_phase).filter(|own| !parents.contains(own) && !lists.contains_key(own))
    {
        tasks.insert(headings[own].line, ProseTask { number: None, mark: Mark::Todo });
    }
    tasks
}

/// Numbered lists, in a file that is little else: one list that is counted through, or a list in most sections.
fn numbered_items(headings: &[Heading], items: &[Item]) -> ProseTasks {
    let is_meant = |item: &Item| item.number.is_some() && item.title != Title::Aside;
    let of_lists: HashSet<Option<usize>> =
        items.iter().filter(|item| is_meant(item)).map(|item| item.heading).collect();
    let parents: HashSet<usize> = headings.iter().flat_map(|own| own.around.clone()).collect();
    let is_leaf = |own: &usize| !parents.contains(own) && headings[*own].title != Title::Aside;
    let leaves = (0..headings.len()).filter(is_leaf).count();
    let tasks = items_where(items, is_meant);
    let is_counted = tasks.values().all(|task| task.number.is_some());
    if is_counted || leaves > 0 && of_lists.len() * 2 > leaves { tasks } else { ProseTasks::new() }
}

/// The lists of a file of things to do. Where a section tells in words what is to be done, and lists where, it is one task.
fn listed(headings: &[Heading], items: &[Item]) -> ProseTasks {
    let is_told = |item: &Item| item.heading.filter(|own| headings[*own].is_told && headings[*own].level > 1);
    if items.iter().all(|item| is_told(item).is_none()) {
        return items_where(items, |item| item.title != Title::Aside);
    }
    let meant: Vec<&Item> = items.iter().filter(|item| item.title != Title::Aside).collect();
    let mut tasks = unnumbered(meant.iter().copied().filter(|item| is_told(item).is_none()));
    for own in meant.iter().filter_map(|item| is_told(item)) {
        tasks.insert(headings[own].line, ProseTask { number: None, mark: Mark::Todo });
    }
    tasks
}

/// "## 1. Create the table", "## 2. Fill it".
fn numbered_headings(lines: &[PlanLine<'_>], headings: &[Heading]) -> ProseTasks {
    const FEWEST: usize = 3;
    let numbered = headings.iter().filter(|heading| heading.level > 1 && heading.title != Title::Aside);
    let number = |heading: &Heading| {
        counted_label(lines[heading.line].content()).filter(|(word, _)| word == "section")
    };
    let numbers: Vec<(usize, Option<String>)> =
        numbered.filter_map(|heading| Some((heading.line, Some(number(heading)?.1)))).collect();
    if numbers.len() < FEWEST { ProseTasks::new() } else { with_numbers(numbers) }
}

/// The items that are meant, by their numbers where these count them through.
fn items_where(items: &[Item], is_meant: impl Fn(&Item) -> bool) -> ProseTasks {
    let meant: Vec<&Item> = items.iter().filter(|item| is_meant(item)).collect();
    let is_counted = meant.iter().enumerate().all(|(at, item)| item.number == u32::try_from(at + 1).ok());
    if is_counted {
        let mut tasks = unnumbered(meant.iter().copied());
        for item in meant {
            tasks
                .entry(item.line)
                .and_modify(|task| task.number = item.number.map(|number| number.to_string()));
        }
        return tasks;
    }
    unnumbered(meant.into_iter())
}

fn unnumbered<'i>(items: impl Iterator<Item = &'i Item>) -> ProseTasks {
    items
        .map(|item| {
            let of_title = if item.title == Title::Done { Mark::Done } else { Mark::Todo };
            (item.line, ProseTask { number: None, mark: item.tick.unwrap_or(of_title) })
        })
        .collect()
}

/// Tasks with numbers, if each has another.
fn with_numbers(numbers: Vec<(usize, Option<String>)>) -> ProseTasks {
    let mut seen = HashSet::new();
    let is_unique =
        numbers.iter().all(|(_, number)| number.as_ref().is_some_and(|number| seen.insert(number.clone())));
    let number = |number: Option<String>| number.filter(|_| is_unique);
    numbers
        .into_iter()
        .map(|(line, own)| (line, ProseTask { number: number(own), mark: Mark::Todo }))
        .collect()
}
