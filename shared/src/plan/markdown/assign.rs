//! Ids for boxes that have none: `T001`, `T002`, or on from the largest that the file has.

use super::{Line, entry::Form, head::checkbox, lines, outline, settle};
use crate::{
    name::TaskId,
    plan::{Edit, PlanError, text::SpecFile},
};

/// The insertions that give an id to every task that has a box and no id. Steps of tasks and check lists stay as they are.
pub fn plan_ids(label: &str, bytes: &[u8]) -> Result<Vec<Edit>, PlanError> {
    let file = SpecFile::new(label, bytes)?;
    let (lines, _) = lines::scan(file.text, file.content_start());
    let mut outline = outline::outline(&file, &lines);
    let standing = settle::settle(&file, &mut outline);
    let tasks = outline.entries.iter().zip(&standing).filter(|(_, found)| found.is_some());
    let tasks: Vec<_> = tasks.map(|(entry, _)| entry).collect();
    let without = tasks.iter().filter(|entry| entry.form == Form::Plain);
    let boxes = without.map(|entry| &lines[entry.lines.start]);
    let (mut number, width) = last_number(tasks.iter().map(|entry| &entry.id));
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
