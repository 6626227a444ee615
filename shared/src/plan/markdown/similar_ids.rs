//! Lines that begin with an id like those of the tasks and were not read as tasks, as "T009: Add the page" without a box: they are
//! reported, so that no task is lost unnoticed.

use std::collections::{BTreeSet, HashSet};

use super::{
    PlanLine,
    canonical_entries::CanonicalEntry,
    entry::{Form, Why},
    id_assignment::{id_shape, id_shapes},
    ids,
    lines::LineKind,
    outline::Outline,
    prose::forgotten_items,
    section::HeadingSection,
    table::cells,
    task_line::TaskLine,
    taskless_sections::is_repetition,
};
use crate::name::TaskId;

/// Notes these lines among the unread ones.
pub(super) fn note_similar_ids(
    lines: &[PlanLine<'_>],
    canonical: &CanonicalEntry,
    outline: &mut Outline<'_>,
) {
    let is_task = |at: &usize| canonical[*at].is_some();
    let tasks = (0..outline.entries.len()).filter(is_task).map(|at| &outline.entries[at]);
    let shapes = id_shapes(tasks.clone());
    let covered = covered_lines(lines.len(), tasks.clone().map(|entry| entry.lines.clone()));
    let has_rows = tasks.clone().any(|entry| entry.form == Form::Row);
    let has_prose = tasks.clone().any(|entry| !matches!(entry.form, Form::Box | Form::Plain | Form::Row));
    if tasks.clone().next().is_some() && !has_prose {
        let rows: BTreeSet<usize> = tasks.clone().map(|entry| entry.at).collect();
        let next = |at: usize| lines.get(at + 1).map_or(usize::MAX, |next| next.at);
        let has_row = |at: usize| rows.range(lines[at].at..next(at)).next().is_some();
        let is_task = |at: usize| covered[at] || has_row(at);
        let items = forgotten_items(lines, is_task, has_rows);
        outline.unread.extend(items.into_iter().map(|at| (lines[at].at, None, Why::Item)));
        outline.unread.sort_by_key(|(at, ..)| *at);
    }
    let is_task = |at: &usize| canonical[*at].is_some();
    let tasks = (0..outline.entries.len()).filter(is_task).map(|at| &outline.entries[at]);
    if shapes.is_empty() {
        return;
    }
    let open = lines.iter().zip(covered).filter(|(_, is_covered)| !is_covered).map(|(line, _)| line);
    let is_like = |id: &str| id_shape(id).is_some_and(|shape| shapes.contains(&shape));
    let alike: Vec<(&PlanLine<'_>, &str, Why)> = open
        .filter_map(|line| id_at(line).map(|(id, why)| (line, id, why)))
        .filter(|(_, id, _)| is_like(id))
        .collect();
    if alike.is_empty() {
        return;
    }
    let unread_ids =
        outline.unread.iter().filter_map(|(_, id, _)| id.as_ref()).map(|id| id.to_ascii_lowercase());
    let written = tasks.clone().filter_map(|entry| entry.written.as_ref());
    let ids = tasks.clone().map(|entry| &entry.id).chain(written).map(TaskId::folded);
    let mut known: HashSet<String> = unread_ids.chain(ids).collect();
    let with_tasks: HashSet<usize> = tasks.flat_map(|entry| outline.chain(entry.section)).collect();
    let mut section = 0;
    let mut found = Vec::new();
    for (line, id, why) in alike {
        while outline.sections.get(section).is_some_and(|next| next.at <= line.at) {
            section += 1;
        }
        let is_heading = matches!(line.kind, LineKind::Heading(_));
        let is_meant =
            |own: usize| !(is_about_others(outline, own) || is_heading && with_tasks.contains(&own));
        if section.checked_sub(1).is_none_or(is_meant) && known.insert(id.to_ascii_lowercase()) {
            found.push((line.at, Some(id.to_owned()), why));
        }
    }
    if !found.is_empty() {
        outline.unread.append(&mut found);
        outline.unread.sort_by_key(|(at, ..)| *at);
    }
}

/// Which lines belong to tasks.
fn covered_lines(count: usize, ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Vec<bool> {
    let mut covered = vec![false; count];
    let mut end = 0;
    for range in ranges {
        // Ranges are in the order of the file, so each line is looked at once.
        (range.start.max(end)..range.end).for_each(|at| covered[at] = true);
        end = end.max(range.end);
    }
    covered
}

/// Whether a section, or one around it, speaks of tasks that are listed elsewhere.
fn is_about_others(outline: &Outline<'_>, section: usize) -> bool {
    let is_aside = |section: &HeadingSection| {
        section.lists_dependencies
            || section.lists_parallel
            || section.level > 1 && is_repetition(&section.title)
    };
    let mut chain = outline.chain(Some(section));
    chain.any(|at| is_aside(&outline.sections[at]))
}

/// The id that a line begins with as a task does, and why it is none.
fn id_at<'a>(line: &PlanLine<'a>) -> Option<(&'a str, Why)> {
    let content = line.content();
    let start = content.trim_start_matches(|c: char| !c.is_alphanumeric());
    if !start.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    // "T001-T003" is no id of several parts.
    let head = |text: &'a str| match ids::lettered(start) {
        Some(_) => TaskLine::parse(text),
        None => TaskLine::parse_series(text),
    };
    let is_named = |head: &TaskLine<'_>| !head.title.is_empty();
    match line.kind {
        LineKind::Row => {
            let cells = cells(line.text);
            let head = head(cells.first()?).filter(|head| head.title.is_empty() && cells.len() > 1)?;
            Some((head.id, Why::Row))
        }
        LineKind::Heading(level) if level > 1 => Some((head(content).filter(is_named)?.id, Why::NoBox)),
        LineKind::Item(_) | LineKind::Text => {
            let head = head(content).filter(is_named)?;
            // "T005 and T006 are small" is a sentence, and so is "**M1 done when:** …".
            let behind = &content[content.find(head.id)? + head.id.len()..];
            let is_title =
                behind.starts_with("**") || behind.trim_start().starts_with([':', '：', '—', '–', '[']);
            is_title.then_some((head.id, Why::NoBox))
        }
        _ => None,
    }
}
