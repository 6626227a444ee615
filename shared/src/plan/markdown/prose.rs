//! Plans without boxes and ids: lists of ticks, numbered steps, phases with lists, and lists below headings such as "Tasks".
//! They are looked for only in a file that has nothing else.

use std::collections::{BTreeMap, HashSet};

use super::{
    PlanLine,
    entry::TICKS,
    lines::{LineKind, marker_number},
    prose_titles::{DONE, Title, label_of, title_of},
    section::{counted_label, phase_label},
    task_line::{TaskLine, checkbox},
    taskless_sections::has_word,
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

/// What a file without boxes and ids consists of.
#[derive(Debug, Default)]
struct Survey {
    headings: Vec<Heading>,
    items: Vec<Item>,
    /// Lines in bold that act as headings, "**Step 0.1 — Add the table**", each with the heading above it.
    bold: Vec<(usize, usize)>,
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
    has_description: bool,
}

/// The tasks of a file that has neither boxes nor ids. Empty if nothing in it is surely a list of tasks.
pub(super) fn prose_tasks(label: &str, lines: &[PlanLine<'_>]) -> ProseTasks {
    let Survey { headings, items, bold } = survey(lines);
    let is_list =
        is_called(label, lines, &["todo", "to do", "to-do", "todos", "tasks", "task list", "待办", "任务"]);
    let is_plan = is_called(label, lines, &["implementation plan", "action plan", "plan"]);
    let found = [
        steps(lines, &headings, &items),
        phases(&headings, &items, &bold),
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
    let Survey { headings, items, bold } = survey(lines);
    let found = phases(&headings, &items, &bold);
    if headings.iter().filter(|heading| heading.title == Title::Phase).count() > 1 {
        found
    } else {
        ProseTasks::new()
    }
}

/// The lists of phases that have no box, in a plan that has boxes in other phases and nowhere else: who wrote it did not mean to
/// leave these phases out. A phase whose title tells that it is done is left alone.
pub(super) fn lists_of_phases_without_boxes(lines: &[PlanLine<'_>]) -> ProseTasks {
    const FEWEST: usize = 2;
    let Survey { headings, items, .. } = survey(lines);
    let phase_of = |item: &Item| {
        let own = item.heading?;
        let mut around = std::iter::once(own).chain(headings[own].around.iter().copied());
        around.find(|own| headings[*own].title == Title::Phase)
    };
    let is_box = |item: &&Item| checkbox(lines[item.line].content()).is_some() && item.title != Title::Aside;
    let with_boxes: HashSet<Option<usize>> = items.iter().filter(is_box).map(phase_of).collect();
    let is_done = |own: usize| {
        let title = lines[headings[own].line].content();
        title.contains(TICKS) || has_word(title, &DONE) || has_word(title, &["complete"])
    };
    if with_boxes.contains(&None) || with_boxes.is_empty() {
        return ProseTasks::new();
    }
    let is_meant = |item: &&Item| {
        let phase = phase_of(item);
        item.title != Title::Aside && !with_boxes.contains(&phase) && phase.is_some_and(|own| !is_done(own))
    };
    let meant: Vec<&Item> = items.iter().filter(is_meant).collect();
    let phases: HashSet<Option<usize>> = meant.iter().map(|item| phase_of(item)).collect();
    if phases.len() < FEWEST { ProseTasks::new() } else { unnumbered(meant.into_iter()) }
}

/// Items that their author may take for tasks, in a file whose tasks have boxes or are rows of a table: the lists of
/// sections for tasks that have no task, and numbered lists beside a table.
pub(super) fn forgotten_items(
    lines: &[PlanLine<'_>],
    is_task: impl Fn(usize) -> bool,
    has_rows: bool,
) -> Vec<usize> {
    const FEWEST: usize = 2;
    let Survey { headings, items, .. } = survey(lines);
    let end_of = |own: usize| {
        let level = headings[own].level;
        let next = headings[own + 1..].iter().find(|next| next.level <= level);
        next.map_or(lines.len(), |next| next.line)
    };
    let has_tasks: Vec<bool> =
        (0..headings.len()).map(|own| (headings[own].line..end_of(own)).any(&is_task)).collect();
    let is_for_tasks = |item: &Item| {
        let is_empty = item.heading.is_some_and(|own| !has_tasks[own] && headings[own].title == item.title);
        is_empty && item.title == Title::Work
    };
    let is_counted = |item: &Item| {
        has_rows
            && item.number.is_some()
            && item.title == Title::Other
            && item.heading.is_none_or(|own| headings[own].level == 1)
    };
    let found = items.iter().filter(|item| checkbox(lines[item.line].content()).is_none());
    let found = found.filter(|item| !is_task(item.line) && (is_for_tasks(item) || is_counted(item)));
    let found: Vec<usize> = found.map(|item| item.line).collect();
    if found.len() < FEWEST { Vec::new() } else { found }
}

/// The items of a numbered list whose boxes are all below them and have no ids: these are steps of the items. Empty if
/// a file has any other box.
pub(super) fn steps_with_boxes(lines: &[PlanLine<'_>]) -> ProseTasks {
    let boxes = lines.iter().filter(|line| matches!(line.kind, LineKind::Item(_) | LineKind::Text));
    let mut boxes = boxes.filter_map(|line| Some((line, checkbox(line.content())?.1))).peekable();
    if boxes.peek().is_none() || !boxes.all(|(line, rest)| line.indent > 1 && TaskLine::parse(rest).is_none())
    {
        return ProseTasks::new();
    }
    let items = survey(lines).items;
    let has_title = |item: &Item| !matches!(item.title, Title::Aside);
    let tasks = items_where(&items, |item| item.number.is_some() && has_title(item));
    let is_counted = tasks.len() > 1 && tasks.values().all(|task| task.number.is_some());
    let is_whole = items.iter().filter(|item| has_title(item)).all(|item| item.number.is_some());
    if is_counted && is_whole { tasks } else { ProseTasks::new() }
}

/// The mark at the start of a text, and the text after it. A cross marks what is still to do.
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
fn survey(lines: &[PlanLine<'_>]) -> Survey {
    let Survey { mut headings, mut items, mut bold } = Survey::default();
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
                headings.push(Heading { line: at, level, title, around, has_description: false });
                open.push(headings.len() - 1);
                (label, column) = (None, None);
            }
            LineKind::Item(content) if column.is_none_or(|column| line.indent < column) => {
                items.push(item(at, line, &headings, label));
                column = Some(content);
            }
            // A line that begins with a tick is an item, with or without a bullet.
            LineKind::Text if line.indent < 4 && tick_at(line.content()).is_some() => {
                items.push(item(at, line, &headings, label));
            }
            LineKind::Text if column.is_none_or(|column| line.indent < column) => {
                if is_bold_heading(line.content()) {
                    bold.extend(open.last().map(|own| (at, *own)));
                }
                if let Some(own) =
                    open.last().filter(|own| items.last().is_none_or(|item| item.heading != Some(**own)))
                {
                    headings[*own].has_description |=
                        label_of(line.content()).is_none_or(|title| title == Title::Other);
                }
                (label, column) = (label_of(line.content()).or(label), None);
            }
            _ => {}
        }
    }
    Survey { headings, items, bold }
}

/// Whether a line is nothing but bold, and no label of a list.
fn is_bold_heading(content: &str) -> bool {
    let bold = content.trim_end().strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
    bold.is_some_and(|title| {
        !title.contains("**") && !title.ends_with([':', '：']) && title_of(title, 2) != Title::Aside
    })
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
    const MAX_CHARACTERS: usize = 3;
    let letters = title.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = title[letters..].bytes().take_while(u8::is_ascii_digit).count();
    let behind = title[letters + digits..].trim_start_matches([' ', '*']);
    let is_apart = behind.starts_with(['—', '–', '-', ':', '：', '.', ')', '(']);
    let is_label =
        (1..=MAX_CHARACTERS).contains(&letters) && (1..=MAX_CHARACTERS).contains(&digits) && is_apart;
    is_label.then(|| &title[..letters])
}

fn item(at: usize, line: &PlanLine<'_>, headings: &[Heading], label: Option<Title>) -> Item {
    let around = headings.last().into_iter().flat_map(|own| &own.around).map(|up| headings[*up].title);
    let own = headings.last().map(|own| own.title);
    let mut titles = label.into_iter().chain(own).chain(around);
    Item {
        line: at,
        number: marker_number(line.text.trim_start()).filter(|_| matches!(line.kind, LineKind::Item(_))),
        tick: tick_at(line.content()).map(|(mark, _)| mark).or_else(|| tick_behind(line.content())),
        heading: headings.len().checked_sub(1),
        title: titles.find(|title| *title != Title::Other).unwrap_or(Title::Other),
    }
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

/// Headings "Step 1 …", unless there is a list of tasks below them.
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
/// Lines in bold part a phase as headings do.
fn phases(headings: &[Heading], items: &[Item], bold: &[(usize, usize)]) -> ProseTasks {
    // Below "Implementation order" the phases are named once more, unless that is the only place.
    let is_aside = |own: &usize| headings[*own].title == Title::Aside;
    let is_outside =
        |heading: &&Heading| heading.title == Title::Phase && !heading.around.iter().any(is_aside);
    let has_outside = headings.iter().any(|heading| is_outside(&heading));
    let is_phase = |own: &usize| {
        let heading = &headings[*own];
        if has_outside { is_outside(&heading) } else { heading.title == Title::Phase }
    };
    let phase_of = |own: Option<usize>| {
        let own = own?;
        std::iter::once(own).chain(headings[own].around.iter().copied()).find(is_phase)
    };
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    /// More lines in bold than this are no plan that a person wrote, and cost too much to read.
    const MOST_BOLD: usize = 1000;
    for (line, heading) in bold.iter().filter(|_| bold.len() <= MOST_BOLD) {
        parts.entry(phase_of(Some(*heading)).unwrap_or(usize::MAX)).or_default().push(*line);
    }
    parts.retain(|phase, lines| *phase != usize::MAX && lines.len() > 1);
    // Where a phase has a list of tasks, its other lists are something else.
    let mut lists: BTreeMap<usize, (Vec<&Item>, Vec<&Item>)> = BTreeMap::new();
    for item in items {
        let Some(phase) = phase_of(item.heading) else { continue };
        let (work, others) = lists.entry(phase).or_default();
        match item.title {
            Title::Work | Title::Done => work.push(item),
            Title::Aside => {}
            _ => others.push(item),
        }
    }
    let lists = lists.into_iter().map(|(phase, (work, others))| match work.is_empty() {
        true if parts.contains_key(&phase) => (phase, Vec::new()),
        true => (phase, others),
        false => (phase, work),
    });
    let lists: BTreeMap<usize, Vec<&Item>> = lists.filter(|(_, items)| !items.is_empty()).collect();
    let mut tasks = unnumbered(lists.values().flatten().copied());
    parts.retain(|phase, _| !lists.contains_key(phase));
    let todo = || ProseTask { number: None, mark: Mark::Todo };
    tasks.extend(parts.values().flatten().map(|line| (*line, todo())));
    let parents: HashSet<usize> =
        headings.iter().filter(|own| own.title == Title::Phase).flat_map(|own| own.around.clone()).collect();
    for own in (0..headings.len())
        .filter(is_phase)
        .filter(|own| !parents.contains(own) && !lists.contains_key(own) && !parts.contains_key(own))
    {
        tasks.insert(headings[own].line, todo());
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
    let described_heading =
        |item: &Item| item.heading.filter(|own| headings[*own].has_description && headings[*own].level > 1);
    if items.iter().all(|item| described_heading(item).is_none()) {
        return items_where(items, |item| item.title != Title::Aside);
    }
    let meant: Vec<&Item> = items.iter().filter(|item| item.title != Title::Aside).collect();
    let mut tasks = unnumbered(meant.iter().copied().filter(|item| described_heading(item).is_none()));
    for own in meant.iter().filter_map(|item| described_heading(item)) {
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
