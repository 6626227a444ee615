//! Tables of tasks: a row for each, the columns known by their headings.

use std::collections::HashSet;

use super::{
    Offset, PlanLine, ids,
    keywords::is_needs_label,
    status::{is_status_label, status_mark},
    task_line::{Checkbox, TaskLine, checkbox},
    tokens::is_phase_word,
};
use crate::plan::Mark;

/// A row whose first or second cell is an id.
#[derive(Debug)]
pub(super) struct TaskRow<'a> {
    pub(super) head: TaskLine<'a>,
    pub(super) at: Offset,
    pub(super) mark: Mark,
    pub(super) mark_at: Option<Offset>,
    /// Everything that the other cells say, `heading: cell` each.
    pub(super) text: String,
    /// Whether only its id tells that it is a task: the table has no column for a status or for dependencies.
    pub(super) is_listed: bool,
    /// Whether it is a phase: the table counts phases.
    pub(super) is_phase: bool,
}

/// A cell of a table that names dependencies.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    /// Another cell of its row, which names whose dependencies these are; empty if it is a task's own.
    pub(super) who: &'a str,
    pub(super) who_at: Offset,
    /// The task below whose heading the table stands, as a position among the entries, if these are its dependencies.
    pub(super) entry: Option<usize>,
    pub(super) needs: &'a str,
    pub(super) at: Offset,
    pub(super) kind: CellKind,
}

/// What a cell says of the tasks or phases that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    /// They are waited for.
    Needs,
    /// They wait, as below "Blocks".
    Blocks,
    /// They may run at the same time, as below "Can parallel with".
    Beside,
}

/// A row of a table of waves.
#[derive(Debug)]
pub(super) struct WaveRow<'a> {
    /// The cell that names the wave, and its number there.
    pub(super) label: &'a str,
    pub(super) number: &'a str,
    /// The cell that names its tasks or phases.
    pub(super) names: &'a str,
    pub(super) at: Offset,
    /// The cell that tells which waves come before it, where the table has such a column.
    pub(super) needs: Option<&'a str>,
}

/// A table: the rows that are tasks, and the cells that name dependencies.
#[derive(Debug, Default)]
pub(super) struct TaskTable<'a> {
    pub(super) rows: Vec<TaskRow<'a>>,
    /// The rows of a table of waves; else empty.
    pub(super) waves: Vec<WaveRow<'a>>,
    pub(super) cells: Vec<Cell<'a>>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Needs,
    Blocks,
    Status,
    Parallel,
    Beside,
    Other,
}

/// Reads a table. `lines` are all of it, its heading first.
pub(super) fn rows<'a>(lines: &[PlanLine<'a>]) -> TaskTable<'a> {
    let [heading, rule, body @ ..] = lines else { return TaskTable::default() };
    if !is_rule(rule.text) {
        return TaskTable::default();
    }
    let titles = cells(heading.text);
    let columns: Vec<Column> = titles.iter().map(|title| column(title)).collect();
    let says_tasks = columns.iter().any(|column| matches!(column, Column::Needs | Column::Status));
    let counting = titles.first().is_some_and(|title| is_number_column(title));
    let series = (says_tasks || counting) && is_series(body, counting);
    let ids = Ids { numbers: says_tasks && counting, series };
    let is_listed = |row: &TaskRow<'_>| !says_tasks && ids::lettered(row.head.id).is_none();
    let is_phase =
        counting && titles.iter().any(|title| is_phase_word(&title.trim_matches(['*', ' ']).to_lowercase()));
    let rows = body.iter().filter_map(|line| row(line, &titles, ids));
    TaskTable {
        rows: rows.map(|row| TaskRow { is_listed: is_listed(&row), is_phase, ..row }).collect(),
        waves: waves(body, &titles, &columns),
        cells: body.iter().flat_map(|line| needs(line, &columns, &titles)).collect(),
    }
}

/// Which ids other than `T001` the first column of a table may hold.
#[derive(Debug, Clone, Copy)]
struct Ids {
    numbers: bool,
    /// `A1`, `DB-1`, alone or before the title of the task.
    series: bool,
}

/// Whether every row begins with an id such as `A1`, each with another: alone in a column of ids, or as "**A1: Schema**".
fn is_series(body: &[PlanLine<'_>], counting: bool) -> bool {
    const FEWEST: usize = 2;
    let id = |line: &PlanLine<'_>| {
        let head = TaskLine::parse_series(cells(line.text).first()?)?;
        (counting || !head.title.is_empty()).then(|| head.id.to_owned())
    };
    let ids: Option<HashSet<String>> = body.iter().map(id).collect();
    ids.is_some_and(|ids| ids.len() >= FEWEST && ids.len() == body.len())
}

/// Whether a column holds the numbers of tasks.
fn is_number_column(title: &str) -> bool {
    const TITLES: [&str; 14] = [
        "#", "id", "no", "no.", "nr", "nr.", "№", "step", "task", "task #", "module", "编号", "序号", "項目",
    ];
    TITLES.contains(&title.trim_matches(['*', ' ']).to_lowercase().as_str())
}

/// Whether a column counts waves: its numbers are no tasks.
fn is_wave_column(title: &str) -> bool {
    const WAVES: [&str; 10] =
        ["wave", "batch", "sprint", "week", "day", "round", "level", "tier", "波次", "批次"];
    let title = title.to_lowercase();
    WAVES.iter().any(|wave| title.contains(wave))
}

/// The rows of a table "| Wave | Tasks |". A week or a sprint only tells when something is planned.
fn waves<'a>(body: &[PlanLine<'a>], titles: &[&str], columns: &[Column]) -> Vec<WaveRow<'a>> {
    const WAVES: [&str; 6] = ["wave", "batch", "round", "波次", "批次", "轮次"];
    const NAMES: [&str; 7] = ["task", "phase", "item", "stories", "任务", "任務", "阶段"];
    let has = |title: &str, words: &[&str]| words.iter().any(|word| title.to_lowercase().contains(word));
    let names_at = titles.iter().skip(1).position(|title| has(title, &NAMES)).map(|at| at + 1);
    let Some(names_at) = names_at.filter(|_| has(titles[0], &WAVES)) else { return Vec::new() };
    let needs_at = columns.iter().position(|column| *column == Column::Needs);
    let wave = |line: &PlanLine<'a>| {
        let cells = cells(line.text);
        let label = *cells.first()?;
        let number = label.trim_matches(|c: char| !c.is_ascii_digit());
        let names = *cells.get(names_at)?;
        let needs = needs_at.and_then(|at| cells.get(at).copied());
        Some(WaveRow { label, number, names, at: line.offset_of(names), needs })
    };
    body.iter().filter_map(wave).collect()
}

/// The cells of a row that name dependencies. The first cell says whose.
fn needs<'a>(line: &PlanLine<'a>, columns: &[Column], titles: &[&str]) -> Vec<Cell<'a>> {
    let cells = cells(line.text);
    let is_wave = titles.first().is_some_and(|title| is_wave_column(title));
    let is_number = cells.first().is_some_and(|cell| cell.bytes().all(|byte| byte.is_ascii_digit()));
    if is_wave && is_number {
        return Vec::new();
    }
    let is_need =
        |at: usize| matches!(columns.get(at), Some(Column::Needs | Column::Blocks | Column::Beside));
    let has_id = |at: &usize| id_cell(cells[*at]).is_some();
    let subject = (0..cells.len().min(2)).find(has_id).unwrap_or(0);
    let needs = (0..cells.len()).filter(|at| *at != subject && is_need(*at) && !cells[*at].is_empty());
    needs
        .map(|at| Cell {
            who: cells[subject],
            who_at: line.offset_of(cells[subject]),
            entry: None,
            needs: cells[at],
            at: line.offset_of(cells[at]),
            kind: match columns[at] {
                Column::Blocks => CellKind::Blocks,
                Column::Beside => CellKind::Beside,
                _ => CellKind::Needs,
            },
        })
        .collect()
}

/// The dependencies in a table of properties below a heading that is a task: `| Depends on | T002 |`, or one row below the labels.
pub(super) fn properties<'a>(lines: &[PlanLine<'a>], task: usize) -> Vec<Cell<'a>> {
    let cell = |line: &PlanLine<'a>, label: &str, needs: &'a str| {
        let kind = match column(label) {
            Column::Blocks => CellKind::Blocks,
            Column::Needs => CellKind::Needs,
            _ if is_needs_label(label) => CellKind::Needs,
            _ => return None,
        };
        let at = line.offset_of(needs);
        (!needs.is_empty()).then_some(Cell { who: "", who_at: at, entry: Some(task), needs, at, kind })
    };
    if let [heading, rule, row] = lines
        && is_rule(rule.text)
        && cells(row.text).iter().take(2).all(|cell| id_cell(cell).is_none())
        && cells(heading.text).len() > 2
    {
        let labels = cells(heading.text).into_iter().zip(cells(row.text));
        return labels.filter_map(|(label, value)| cell(row, label, value)).collect();
    }
    lines
        .iter()
        .filter_map(|line| property(line.text).and_then(|(label, value)| cell(line, label, value)))
        .collect()
}

/// The label and the value of a row with two cells.
pub(super) fn property(text: &str) -> Option<(&str, &str)> {
    match cells(text)[..] {
        [label, value] => Some((label, value)),
        _ => None,
    }
}

fn is_rule(text: &str) -> bool {
    text.contains('-') && text.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// The cells of a row. A bar after a backslash or in a code span does not part two cells.
pub(super) fn cells(text: &str) -> Vec<&str> {
    let text = text.trim().trim_start_matches('|');
    let mut cells = Vec::new();
    let (mut start, mut is_code, mut is_escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            '`' if !is_escaped => is_code = !is_code,
            '|' if !is_escaped && !is_code => {
                cells.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    if !text[start..].trim().is_empty() {
        cells.push(text[start..].trim());
    }
    cells
}

fn column(title: &str) -> Column {
    let title = title.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
    if has(&["soft ", "optional"]) {
        // "Soft dependencies" are good to have, and nothing waits for them.
        Column::Other
    } else if has(&["blocked by", "depended on by"]) {
        if has(&["blocked by"]) { Column::Needs } else { Column::Blocks }
    } else if has(&["block", "dependents", "unblocks"]) {
        Column::Blocks
    } else if has(&[
        "depend", "dépend", "prereq", "after", "requires", "依赖", "依賴", "依存", "相依", "needs", "завис",
        "залеж", "zależ", "abhäng", "dipend", "bağıml", "의존", "선행", "phụ thuộc", "前置任务", "前置任務",
    ]) && !has(&["independent"])
    {
        Column::Needs
    } else if has(&["status", "state", "done", "✓", "✅", "fertig"]) || is_status_label(&title) {
        Column::Status
    } else if has(&["parallel with", "parallelize with", "parallelise with"]) {
        Column::Beside
    } else if has(&["parallel", "[p]"]) {
        Column::Parallel
    } else if has(&["task", "title", "name", "description", "what", "任务"]) {
        Column::Name
    } else {
        Column::Other
    }
}

fn row<'a>(line: &PlanLine<'a>, titles: &[&str], ids: Ids) -> Option<TaskRow<'a>> {
    let cells = cells(line.text);
    let first = *cells.first()?;
    let number = ids::numeric(first).filter(|id| ids.numbers && id.len() == first.len());
    let counted = match number {
        Some(id) => Some(TaskLine { id, ..TaskLine::default() }),
        None => TaskLine::parse_series(first).filter(|_| ids.series),
    };
    let own = (0..cells.len().min(2)).find_map(|at| Some((at, id_cell(cells[at])?)));
    let (id_at, (head, boxed)) = own.or(counted.map(|head| (0, (head, None))))?;
    let mut row = TaskRow {
        at: line.offset_of(cells[id_at]),
        mark: boxed.and_then(read_box).unwrap_or_default(),
        mark_at: boxed.map(|mark| line.offset_of(mark)),
        head,
        text: String::new(),
        is_listed: false,
        is_phase: false,
    };
    for (at, cell) in cells.iter().enumerate().filter(|(at, cell)| *at != id_at && !cell.is_empty()) {
        row.take(titles.get(at).copied().unwrap_or_default(), cell, line);
    }
    Some(row)
}

fn read_box(mark: &str) -> Option<Mark> {
    mark.chars().next().and_then(Mark::from_box)
}

/// A cell that is an id and nothing else, with its box if it has one.
fn id_cell(cell: &str) -> Option<(TaskLine<'_>, Option<&str>)> {
    let (boxed, rest) = match checkbox(cell) {
        Some((Checkbox::Marked(mark), rest)) => (Some(mark), rest),
        _ => (None, cell),
    };
    TaskLine::parse(rest).filter(|head| head.title.is_empty()).map(|head| (head, boxed))
}

impl<'a> TaskRow<'a> {
    fn take(&mut self, title: &str, cell: &'a str, line: &PlanLine<'a>) {
        match column(title) {
            Column::Status => self.take_status(cell, line),
            Column::Parallel => self.head.is_parallel |= !is_no(cell),
            Column::Name if self.head.title.is_empty() => self.head.title = cell.to_owned(),
            Column::Name | Column::Needs | Column::Blocks | Column::Beside | Column::Other => {}
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("{title}: {cell}"));
    }

    fn take_status(&mut self, cell: &'a str, line: &PlanLine<'a>) {
        if let Some((Checkbox::Marked(mark), _)) = checkbox(cell) {
            self.mark = read_box(mark).unwrap_or_default();
            self.mark_at = Some(line.offset_of(mark));
            return;
        }
        self.mark = status_mark(cell);
    }
}

fn is_no(cell: &str) -> bool {
    matches!(cell.to_lowercase().as_str(), "no" | "-" | "—" | "–" | "false" | "❌" | "n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::markdown::lines::scan;

    #[test]
    fn a_table_row_is_read_by_its_column_headings() {
        let text = "| ID | Task | Depends on | Status | Parallel | Path |\n|---|:-:|---|---|---|---|\n\
                    | **T001** | do \\| it `a|b` | - | done | yes | src/a.rs |\n| x | y | z |\n";
        let (lines, _) = scan(text, 0);
        let TaskTable { rows, cells, .. } = rows(&lines);
        assert_eq!(rows.len(), 1);
        assert_eq!((cells[0].who, cells[0].needs), ("**T001**", "-"));
        let row = &rows[0];
        assert_eq!((row.head.id, row.head.title.as_str()), ("T001", "do \\| it `a|b`"));
        assert_eq!((row.mark, row.head.is_parallel), (Mark::Done, true));
        assert!(row.text.contains("Path: src/a.rs"));
    }

    #[test]
    fn a_checkbox_in_a_table_cell_can_be_ticked() {
        let text = "| | ID | What |\n|-|-|-|\n| [ ] T001 | | x |\n";
        let (lines, _) = scan(text, 0);
        let row = &rows(&lines).rows[0];
        assert_eq!(row.mark_at.map(|at| &text[at - 1..at + 2]), Some("[ ]"));
    }

    #[test]
    fn rows_without_a_header_separator_are_no_table() {
        let (lines, _) = scan("| T001 | x |\n| T002 | y |\n", 0);
        assert!(rows(&lines).rows.is_empty());
    }
}
