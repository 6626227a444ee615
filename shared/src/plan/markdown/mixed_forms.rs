//! Tasks in another form than most of their file: a row "| T009 | Add the page |" or an item "- T009 Add the page" beside boxes, and
//! numbers beside ids with letters.

use std::collections::{HashMap, HashSet};

use super::{
    entry::{Form, TaskEntry},
    id_assignment::{id_shape, id_shapes},
    ids,
    outline::Outline,
    section::{HeadingSection, counted_label, phase_label},
    taskless_sections::{is_for_later, is_repetition, is_summary},
};

/// Sections without ids that have letters, in which numbers are ids all the same: phases, or any section if most ids of the file are
/// numbers.
pub(super) fn counted_sections(
    outline: &Outline<'_>,
    is_main: impl Fn(&TaskEntry) -> bool,
) -> HashSet<Option<usize>> {
    const FEWEST: usize = 2;
    let named = || outline.entries.iter().filter(|entry| is_main(entry) && !entry.is_unnamed);
    let lettered: HashSet<Option<usize>> =
        named().filter(|entry| !entry.is_numeric()).map(|entry| entry.section).collect();
    let mut count: HashMap<Option<usize>, usize> = HashMap::new();
    for entry in
        named().filter(|entry| entry.is_numeric() && entry.form == Form::Box && entry.parent.is_none())
    {
        *count.entry(entry.section).or_default() += 1;
    }
    count.retain(|section, count| *count >= FEWEST && !lettered.contains(section));
    let numbers: usize = count.values().sum();
    let is_most = numbers > named().filter(|entry| !entry.is_numeric()).count();
    let is_phase = |section: &Option<usize>| {
        section.is_some_and(|at| phase_label(&outline.sections[at].title).is_some())
    };
    count.into_keys().filter(|section| is_most || is_phase(section)).collect()
}

/// Beside boxes and headings, the rows of a section are tasks if all of them have new ids that look like those of the tasks.
pub(super) fn classify_rows(outline: &Outline<'_>, form: Form, is_task: &mut [bool]) {
    const FEWEST: usize = 2;
    let is_row = |entry: &TaskEntry| matches!(entry.form, Form::Row | Form::ListedRow);
    if form != Form::Box || !outline.entries.iter().any(is_row) {
        return;
    }
    let tasks = outline.entries.iter().zip(&*is_task).filter(|(_, is_task)| **is_task);
    let shapes = id_shapes(tasks.clone().map(|(entry, _)| entry));
    // "| 5.1 | … |" in a phase without boxes, beside boxes with such numbers.
    let depths: HashSet<usize> =
        tasks.clone().filter_map(|(entry, _)| number_depth(entry.id.as_str())).collect();
    let known: HashSet<String> = tasks.map(|(entry, _)| entry.id.folded()).collect();
    let mut rows: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (at, entry) in outline.entries.iter().enumerate().filter(|(_, entry)| is_row(entry)) {
        rows.entry(entry.section).or_default().push(at);
    }
    let is_aside = |section: &HeadingSection| is_repetition(&section.title) || is_for_later(&section.title);
    for (section, rows) in rows {
        let new: Vec<usize> =
            rows.iter().copied().filter(|at| !known.contains(&outline.entries[*at].id.folded())).collect();
        let mut around = outline.sections_around(section);
        let is_phase = section.is_some_and(|at| phase_label(&outline.sections[at].title).is_some());
        let is_alike = |at: &usize| {
            let id = outline.entries[*at].id.as_str();
            let is_number = is_phase && number_depth(id).is_some_and(|depth| depths.contains(&depth));
            is_number || id_shape(id).is_some_and(|shape| shapes.contains(&shape))
        };
        let is_whole = new.len() == rows.len() && new.len() >= FEWEST && new.iter().all(is_alike);
        if is_whole && !around.any(is_aside) {
            new.into_iter().for_each(|at| is_task[at] = true);
        }
    }
}

/// How many parts a number such as `5.1` has; `None` for a plain number and for other ids.
fn number_depth(id: &str) -> Option<usize> {
    let is_number = ids::numeric(id).is_some_and(|number| number.len() == id.len());
    (is_number && id.contains('.')).then(|| id.split('.').count())
}

/// Beside boxes, items with new ids and without boxes are tasks where a whole section is written so.
pub(super) fn classify_bullets(outline: &Outline<'_>, form: Form, is_task: &mut [bool]) {
    if form != Form::Box || outline.entries.iter().all(|entry| entry.form != Form::Bullet) {
        return;
    }
    let of = |entry: &TaskEntry| entry.section.filter(|_| entry.form == Form::Bullet);
    let with_boxes: HashSet<Option<usize>> = outline
        .entries
        .iter()
        .filter(|entry| matches!(entry.form, Form::Box | Form::Plain | Form::Heading))
        .map(|entry| entry.section)
        .collect();
    let known: HashSet<String> = outline
        .entries
        .iter()
        .zip(&*is_task)
        .filter(|(_, is_task)| **is_task)
        .map(|(entry, _)| entry.id.folded())
        .collect();
    let is_meant = |entry: &TaskEntry| {
        let mut titles = outline.sections_around(of(entry));
        of(entry).is_some()
            && !with_boxes.contains(&entry.section)
            && !known.contains(&entry.id.folded())
            && !titles.any(|section| is_summary(&section.title) && counted_label(&section.title).is_none())
    };
    let mut count: HashMap<Option<usize>, usize> = HashMap::new();
    outline
        .entries
        .iter()
        .filter(|entry| is_meant(entry))
        .for_each(|entry| *count.entry(entry.section).or_default() += 1);
    for (entry, is_task) in outline.entries.iter().zip(is_task) {
        *is_task |= count.get(&entry.section).is_some_and(|count| *count > 1) && is_meant(entry);
    }
}
