//! Ids for boxes that have none: `T001`, `T002`, or on from the largest that the file has.

use std::collections::HashSet;

use super::{Line, Offset, entry::Why, head::checkbox, lines, outline, section::phase_label, settle};
use crate::{
    name::TaskId,
    plan::{Edit, PlanError, text::SpecFile},
};

/// The insertions that give every box an id. Steps of tasks stay steps. Where some boxes have ids already, only
/// boxes beside them or in phases are meant: a checklist elsewhere is none of ours.
pub fn plan_ids(label: &str, bytes: &[u8]) -> Result<Vec<Edit>, PlanError> {
    let file = SpecFile::new(label, bytes)?;
    let (lines, _) = lines::scan(file.text, file.content_start());
    let mut outline = outline::outline(&file, &lines);
    let standing = settle::settle(&mut outline);
    let tasks: Vec<_> = outline.entries.iter().zip(&standing).filter(|(_, found)| found.is_some()).collect();
    let shared: HashSet<Option<usize>> = tasks.iter().map(|(entry, _)| entry.section).collect();
    let is_meant = |line: &Line<'_>| {
        let section = outline.sections.partition_point(|section| section.at <= line.at).checked_sub(1);
        let is_shared = shared.contains(&section);
        let is_phase = section.is_some_and(|at| phase_label(&outline.sections[at].title).is_some());
        tasks.is_empty() || is_shared || is_phase
    };
    let without: Vec<Offset> =
        outline.unread.iter().filter(|(_, _, why)| *why == Why::NoId).map(|(at, ..)| *at).collect();
    let boxes =
        lines.iter().filter(|line| without.binary_search(&line.at).is_ok()).filter(|line| is_meant(line));
    let (mut number, width) = last_number(tasks.iter().map(|(entry, _)| &entry.id));
    let mut edits = Vec::new();
    for line in boxes {
        number += 1;
        edits.extend(edit(&file, line, &format!("T{number:0width$}")));
    }
    Ok(edits)
}

fn edit(file: &SpecFile<'_>, line: &Line<'_>, id: &str) -> Option<Edit> {
    let (_, rest) = checkbox(line.content())?;
    let at = line.offset_of(rest.trim_start());
    let put = if rest.trim().is_empty() { format!(" {id}") } else { format!("{id} ") };
    Some(Edit {
        task: id.parse().ok()?,
        file: file.label.to_owned(),
        line: file.line_of(at),
        at,
        cut: 0,
        put,
    })
}

/// The largest number of ids like `T012`, and how many digits they have.
fn last_number<'a>(ids: impl Iterator<Item = &'a TaskId>) -> (u64, usize) {
    let number = |id: &TaskId| {
        let digits = id.as_str().strip_prefix('T')?;
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        Some((digits[..len].parse::<u64>().ok()?, len))
    };
    ids.filter_map(number)
        .fold((0, 3), |(largest, width), (number, len)| (largest.max(number), width.max(len)))
}
