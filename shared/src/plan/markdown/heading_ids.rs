//! Headings that are tasks by ids such as `TSK-001`: in the title, as "### TSK-001: Add the table", or in a field below it, as
//! "### Task 1: Add the table" with "**ID**: T-1".

use std::collections::{HashMap, HashSet};

use super::{
    PlanLine,
    id_assignment::{id_shape, speaks_of_tasks},
    ids,
    lines::LineKind,
    section::{begins_with_story, phase_label},
    table::property,
    task_line::{TaskLine, checkbox},
};

/// Fewer ids of a kind may be names of something else.
const FEWEST: usize = 2;

/// The ids of headings, by line.
#[derive(Debug, Default)]
pub(super) struct HeadingIds<'a> {
    /// Headings that begin with such an id.
    titled: HashSet<usize>,
    /// The ids in fields below headings.
    fields: HashMap<usize, &'a str>,
    /// Boxes that begin with such ids, in a list that repeats headings.
    boxes: HashSet<usize>,
}

/// A heading that may be a task.
#[derive(Debug)]
struct Candidate<'a> {
    line: usize,
    level: usize,
    /// The id that it begins with.
    titled: Option<&'a str>,
    /// The id in a field below it.
    field: Option<&'a str>,
    /// Whether it is in a phase or in a section about tasks.
    is_among_tasks: bool,
    /// Whether a field below it names dependencies.
    has_needs: bool,
    /// Whether a box with an id is below it. Then the boxes are the tasks.
    has_boxes: bool,
}

impl<'a> HeadingIds<'a> {
    pub(super) fn find(lines: &[PlanLine<'a>]) -> Self {
        let mut found = candidates(lines);
        found.retain(|heading| !heading.has_boxes);
        let fields: HashMap<usize, &'a str> =
            found.iter().filter_map(|heading| Some((heading.line, heading.field?))).collect();
        let count = fields.values().collect::<HashSet<_>>().len();
        let is_told = count >= FEWEST && count == fields.len();
        let titled = titled(&found);
        let fields = if is_told { fields } else { HashMap::new() };
        let of_titles = found.iter().filter(|heading| titled.contains(&heading.line));
        let known: HashSet<&str> =
            of_titles.filter_map(|heading| heading.titled).chain(fields.values().copied()).collect();
        let boxes = if known.is_empty() { HashSet::new() } else { repeating_boxes(lines, &known) };
        Self { titled, fields, boxes }
    }

    /// Whether the box in a line begins with an id such as a heading has.
    pub(super) fn is_boxed(&self, line: usize) -> bool {
        self.boxes.contains(&line)
    }

    /// Whether the heading in a line is a task by the id that it begins with.
    pub(super) fn is_titled(&self, line: usize) -> bool {
        self.titled.contains(&line)
    }

    /// The id in a field below the heading in a line.
    pub(super) fn field(&self, line: usize) -> Option<&'a str> {
        self.fields.get(&line).copied()
    }
}

/// The headings whose titles begin with ids of tasks. Where some surely do, others with the same letters do as well, whatever section they
/// stand in.
fn titled(found: &[Candidate<'_>]) -> HashSet<usize> {
    const DIGITS: usize = 3;
    let is_sure = |heading: &&Candidate<'_>| {
        let digits = |id: &str| id.bytes().rev().take_while(u8::is_ascii_digit).count();
        let is_counted = heading.titled.is_some_and(|id| digits(id) >= DIGITS);
        heading.has_needs || heading.field.is_some() || heading.is_among_tasks && is_counted
    };
    let mut sure: HashMap<&str, usize> = HashMap::new();
    for id in found.iter().filter(is_sure).filter_map(|heading| heading.titled) {
        *sure.entry(letters(id)).or_default() += 1;
    }
    let all = sure.values().sum::<usize>();
    let is_meant = |heading: &&Candidate<'_>| {
        let known = heading.titled.and_then(|id| sure.get(letters(id)));
        all >= FEWEST && known.is_some_and(|count| *count >= FEWEST || is_sure(heading))
    };
    found.iter().filter(is_meant).map(|heading| heading.line).collect()
}

/// The boxes with such ids in sections that repeat headings as boxes, as a list of their status does.
fn repeating_boxes(lines: &[PlanLine<'_>], known: &HashSet<&str>) -> HashSet<usize> {
    let (mut found, mut boxes, mut repeated) = (HashSet::new(), Vec::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        if matches!(line.kind, LineKind::Heading(1 | 2)) {
            found.extend(boxes.drain(..).filter(|_| repeated >= FEWEST));
            repeated = 0;
        }
        if matches!(line.kind, LineKind::Item(_))
            && let Some((_, rest)) = checkbox(line.content())
            && let Some(head) = TaskLine::parse_series(rest).filter(|head| !head.title.is_empty())
        {
            boxes.push(at);
            repeated += usize::from(known.contains(head.id));
        }
    }
    found.extend(boxes.into_iter().filter(|_| repeated >= FEWEST));
    found
}

fn letters(id: &str) -> &str {
    id_shape(id).map_or(id, |(letters, _)| letters)
}

fn candidates<'a>(lines: &[PlanLine<'a>]) -> Vec<Candidate<'a>> {
    /// How far below a heading its fields may be.
    const FAR: usize = 40;
    let (mut found, mut tasks_level): (Vec<Candidate<'a>>, Option<usize>) = (Vec::new(), None);
    // The open headings, innermost last, and whether the last one is that of the lines that follow.
    let (mut open, mut is_own): (Vec<usize>, bool) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        match line.kind {
            LineKind::Heading(level) => {
                open.retain(|own| found[*own].level < level);
                let title = line.content();
                let is_phase = phase_label(title).is_some();
                tasks_level = tasks_level.filter(|own| *own < level);
                // "T001-T003" is no id of several parts.
                let is_series =
                    |head: &TaskLine<'_>| !head.title.is_empty() && ids::lettered(head.id).is_none();
                let head = TaskLine::parse_series(title).filter(is_series);
                is_own = level > 1 && !is_phase && !begins_with_story(title);
                if is_own {
                    let (titled, is_among_tasks) = (head.map(|head| head.id), tasks_level.is_some());
                    open.push(found.len());
                    found.push(Candidate {
                        line: at,
                        level,
                        titled,
                        field: None,
                        is_among_tasks,
                        has_needs: false,
                        has_boxes: false,
                    });
                }
                let holds_tasks = level > 1 && (is_phase || speaks_of_tasks(title));
                tasks_level = tasks_level.or(Some(level).filter(|_| holds_tasks));
            }
            LineKind::Item(_) | LineKind::Text | LineKind::Quote | LineKind::Row => {
                // Most boxes are below phases, and need not be looked at.
                let boxed = Some(line).filter(|_| !open.is_empty()).and_then(|line| checkbox(line.content()));
                if boxed.is_some_and(|(_, rest)| TaskLine::parse(rest).is_some()) {
                    open.drain(..).for_each(|own| found[own].has_boxes = true);
                }
                let own = found.last_mut().filter(|own| is_own && at - own.line <= FAR);
                if let Some((own, (label, value))) = own.and_then(|own| Some((own, field(line)?))) {
                    own.has_needs |= names_needs(label);
                    own.field = own.field.or_else(|| id_of(value).filter(|_| names_id(label)));
                }
            }
            _ => {}
        }
    }
    found
}

/// The label and the value of a line "- **Depends on**: T-1" or "| Depends on | T-1 |".
fn field<'a>(line: &PlanLine<'a>) -> Option<(&'a str, &'a str)> {
    const LONGEST: usize = 40;
    const DRESS: [char; 6] = ['*', '_', '`', '>', '-', ' '];
    let (label, value) = match line.kind {
        LineKind::Row => property(line.text)?,
        _ => line.content().split_once([':', '：'])?,
    };
    let label = label.trim_matches(DRESS);
    (label.len() <= LONGEST).then(|| (label, value.trim_matches(DRESS)))
}

/// Whether a field holds the id of a task.
fn names_id(label: &str) -> bool {
    const LABELS: [&str; 14] = [
        "id",
        "task id",
        "task-id",
        "ticket",
        "identifier",
        "identifiant",
        "identificador",
        "编号",
        "任务编号",
        "任务id",
        "任務id",
        "タスクid",
        "작업 id",
        "идентификатор",
    ];
    let label = label.to_lowercase();
    LABELS.contains(&label.as_str())
}

/// Whether a field names dependencies. Preconditions may be those of a test case.
fn names_needs(label: &str) -> bool {
    const STARTS: [&str; 13] = [
        "depend", "dépend", "dipend", "abhäng", "zależ", "завис", "залеж", "bağıml", "blocked by", "依赖",
        "依賴", "依存", "의존",
    ];
    let label = label.to_lowercase();
    STARTS.iter().any(|start| label.starts_with(start))
}

/// The id that a field holds, if nothing but a remark comes after it.
fn id_of(value: &str) -> Option<&str> {
    let id = ids::lettered(value).or_else(|| ids::named(value)).or_else(|| ids::series(value));
    let id = id.or_else(|| ids::numeric(value).filter(|id| id.contains('.')))?;
    let behind = value[id.len()..].trim_start_matches(['*', '_', '`', ' ']);
    (behind.is_empty() || behind.starts_with(['(', '（', '—', '|'])).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::{super::lines::scan, *};

    fn found(text: &str) -> Vec<(usize, Option<&str>)> {
        let (lines, _) = scan(text, 0);
        let ids = HeadingIds::find(&lines);
        let is_task = |line: &usize| ids.is_titled(*line) || ids.field(*line).is_some();
        (0..lines.len()).filter(is_task).map(|line| (line, ids.field(line))).collect()
    }

    #[test]
    fn headings_with_the_id_prefix_of_tasks_are_tasks_in_any_section() {
        let text =
            "## Phase 1\n### TSK-A-001: a\n### TSK-A-002: b\n## Review\n### TSK-B-001: c\n### ADR-001: d\n";
        assert_eq!(found(text), [(1, None), (2, None), (4, None)]);
        assert_eq!(found("## Risks\n### RSK-001: a\n### RSK-002: b\n"), []);
        let text = "## Work\n### DB-1: a\n- **Depends on**: none\n### DB-2: b\n| Dependencies | DB-1 |\n### DB-3: c\n";
        assert_eq!(found(text), [(1, None), (3, None), (5, None)]);
    }

    #[test]
    fn a_field_below_a_heading_gives_its_task_id() {
        let text = "## W\n### Task 1: a\n- **ID**: T-1\n### Task 2: b\n| **ID** | T-2 |\n";
        assert_eq!(found(text), [(1, Some("T-1")), (3, Some("T-2"))]);
        assert_eq!(found("## W\n### A\n**ID**: T-1\n### B\n**ID**: T-1\n"), []);
        assert_eq!(found("## W\n### A\n**ID**: X-1\n- [ ] T001 a\n### B\n**ID**: X-2\n- [ ] T002 a\n"), []);
    }
}
