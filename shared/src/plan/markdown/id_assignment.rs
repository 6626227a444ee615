//! Ids that a file does not write as such: finds out which of its numbers and letters are ids ("A1", "1."), and makes ids for boxes and
//! phases that have none: "- [ ] Add the table" becomes `add-the-table`.

use std::collections::{HashMap, HashSet};

use super::{
    Offset, PlanLine, canonical_entries,
    entry::{Form, TaskEntry},
    ids,
    lines::{self, LineKind},
    outline,
    section::slug,
    task_line::{TaskLine, checkbox},
};
use crate::{
    name::TaskId,
    plan::{Edit, PlanError, text::SpecFile},
};

/// The ids that are in use, and new ones beside them. Ids that differ only in case are the same.
#[derive(Debug, Default)]
pub(super) struct UniqueIds {
    used: HashSet<String>,
    next: HashMap<String, usize>,
}

impl UniqueIds {
    /// Starts with some ids in use.
    pub(super) fn with_taken<'a>(ids: impl Iterator<Item = &'a TaskId>) -> Self {
        let ids: Vec<&TaskId> = ids.collect();
        Self { used: ids.into_iter().map(TaskId::folded).collect(), next: HashMap::new() }
    }

    /// The first free id among `wanted`, `wanted-2`, `wanted-3` …
    pub(super) fn name(&mut self, wanted: &str) -> Option<TaskId> {
        let next = self.next.entry(wanted.to_owned()).or_insert(1);
        loop {
            let name = if *next == 1 { wanted.to_owned() } else { format!("{wanted}-{next}") };
            *next += 1;
            if self.used.insert(name.to_ascii_lowercase()) {
                return name.parse().ok();
            }
        }
    }
}

/// An id made from a text, which stays the same when other lines are inserted. Texts without ASCII words are hashed.
pub(super) fn virtual_id(text: &str) -> String {
    const SHORTEST: usize = 3;
    let plain = text.split(['(', '—']).next().filter(|start| start.trim().len() > SHORTEST).unwrap_or(text);
    let slug = slug(plain);
    let is_mostly_ascii = text.chars().filter(char::is_ascii_alphanumeric).count() * 2
        >= text.chars().filter(|c| c.is_alphanumeric()).count();
    if slug.len() >= SHORTEST && is_mostly_ascii {
        return slug;
    }
    format!("task-{:08x}", stable_hash(text))
}

/// FNV-1a: ids must be the same with every build.
pub(super) fn stable_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `3.1` and `5a` are fit for an id as they are; other scripts have no slug.
pub(super) fn slug_label(label: &str) -> String {
    let ascii: String = label.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    ascii.trim_matches('.').replace("..", ".")
}

/// The first paragraph on one line, cut at a word where it gets long.
pub(super) fn name_of(entry: &TaskEntry) -> String {
    const LONGEST: usize = 120;
    let ends = |line: &&str| !(line.is_empty() || line.starts_with(['-', '*', '+', '|', '>', '`', '#']));
    let mut lines = entry.text.lines().skip_while(|line| line.is_empty());
    let first = lines.next().unwrap_or(entry.id.as_str());
    let paragraph: Vec<&str> = std::iter::once(first).chain(lines.take_while(ends)).map(str::trim).collect();
    let name = paragraph.join(" ");
    let Some((cut, _)) = name.char_indices().nth(LONGEST) else { return name };
    let cut = name[..cut].rfind(' ').unwrap_or(cut);
    format!("{}…", &name[..cut])
}

/// The level of headings that are numbered through all sections, "### 1. …" to "### 17. …", below headings that speak of
/// tasks. Where numbers start again in each section, or in a text about something else, they only count its parts.
pub(super) fn counted_level(lines: &[PlanLine<'_>]) -> Option<usize> {
    const FEWEST: usize = 3;
    (3..=4).find(|level| {
        let (mut count, mut parents, mut is_about_tasks) = (0, HashSet::new(), false);
        let mut parent = 0;
        for (at, line) in lines.iter().enumerate() {
            let LineKind::Heading(own) = line.kind else { continue };
            if own < *level {
                parent = at;
                is_about_tasks |= speaks_of_tasks(line.content());
            } else if own == *level {
                let number = ids::numeric(line.content()).filter(|id| is_point(&line.content()[id.len()..]));
                let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { continue };
                if number != count + 1 {
                    return false;
                }
                count = number;
                parents.insert(parent);
            }
        }
        count >= FEWEST && parents.len() > 1 && is_about_tasks
    })
}

/// Whether a title speaks of tasks, in the languages that people use.
pub(super) fn speaks_of_tasks(title: &str) -> bool {
    const WORDS: [&str; 14] = [
        "task", "step", "phase", "任务", "任務", "タスク", "阶段", "작업", "tarefa", "tarea", "tâche",
        "aufgabe", "zadani", "задач",
    ];
    let lower = title.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// What ids that count together share: the capital letters that they begin with, and how many digits they end with.
pub(super) type IdShape<'a> = (&'a str, usize);

/// The shape of an id with letters.
pub(super) fn id_shape(id: &str) -> Option<IdShape<'_>> {
    let letters = &id[..id.bytes().take_while(u8::is_ascii_uppercase).count()];
    let digits = id.bytes().rev().take_while(u8::is_ascii_digit).count();
    (!letters.is_empty() && digits > 0).then_some((letters, digits))
}

/// The shapes that at least two of some tasks have.
pub(super) fn id_shapes<'e>(tasks: impl Iterator<Item = &'e TaskEntry>) -> HashSet<IdShape<'e>> {
    const FEWEST: usize = 2;
    let mut count: HashMap<IdShape<'e>, usize> = HashMap::new();
    let named = tasks.filter(|entry| !entry.is_unnamed);
    named
        .filter_map(|entry| id_shape(entry.id.as_str()))
        .for_each(|shape| *count.entry(shape).or_default() += 1);
    count.into_iter().filter(|(_, count)| *count >= FEWEST).map(|(shape, _)| shape).collect()
}

/// What words such as `A1` or `DB-1` are at the beginning of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyIds {
    /// Ids: at least half of the boxes of the file begin so, each with another.
    Read,
    /// Words, although other boxes of the file have ids.
    Doubtful,
    /// Words.
    Words,
}

/// Decides it for a file.
pub(super) fn family_ids(lines: &[PlanLine<'_>]) -> FamilyIds {
    const FEWEST: usize = 2;
    let is_outer = |line: &&PlanLine<'_>| matches!(line.kind, LineKind::Item(_)) && line.indent == 0;
    let boxes = lines.iter().filter(is_outer).filter_map(|line| checkbox(line.content()));
    let (mut count, mut with_ids, mut ids, mut has_others) = (0, 0, HashSet::new(), false);
    for (_, rest) in boxes {
        count += 1;
        if begins_with_id(rest) || TaskLine::parse(rest).is_some() {
            has_others = true;
        } else if let Some(head) = TaskLine::parse_family(rest) {
            with_ids += 1;
            ids.insert(head.id);
        }
    }
    match ids.len() >= FEWEST && ids.len() == with_ids && with_ids * 2 >= count {
        true => FamilyIds::Read,
        false if has_others => FamilyIds::Doubtful,
        false => FamilyIds::Words,
    }
}

/// The lines of boxes that begin with ids such as `R1` in sections whose boxes all do, with the same letters. If the plan
/// also has boxes with other ids, these sections have their own numbering.
pub(super) fn family_boxes(lines: &[PlanLine<'_>]) -> HashSet<usize> {
    const FEWEST: usize = 2;
    let (mut found, mut boxes) = (HashSet::new(), Vec::new());
    let mut close = |boxes: &mut Vec<(usize, Option<&str>)>| {
        let ids: Option<HashSet<&str>> = boxes.iter().map(|(_, id)| *id).collect();
        let letters: HashSet<Option<&str>> =
            boxes.iter().map(|(_, id)| id_shape((*id)?).map(|(letters, _)| letters)).collect();
        if ids.is_some_and(|ids| ids.len() >= FEWEST && ids.len() == boxes.len()) && letters.len() == 1 {
            found.extend(boxes.iter().map(|(at, _)| *at));
        }
        boxes.clear();
    };
    for (at, line) in lines.iter().enumerate() {
        match line.kind {
            LineKind::Heading(_) => close(&mut boxes),
            LineKind::Item(_) if line.indent == 0 => {
                let Some((_, rest)) = checkbox(line.content()) else { continue };
                let is_other = begins_with_id(rest) || TaskLine::parse(rest).is_some();
                let head = TaskLine::parse_family(rest).filter(|head| !is_other && !head.title.is_empty());
                boxes.push((at, head.map(|head| head.id)));
            }
            _ => {}
        }
    }
    close(&mut boxes);
    found
}

/// Whether a text begins with an id and a tag or a word with a capital, as nearly all tasks do. That is soon told.
fn begins_with_id(rest: &str) -> bool {
    let rest = rest.trim_start();
    let behind = ids::lettered(rest).and_then(|id| rest[id.len()..].strip_prefix(' '));
    behind.is_some_and(|behind| behind.starts_with(|c: char| c == '[' || c.is_ascii_uppercase()))
}

/// Whether a point or a bracket parts a number from its title.
fn is_point(behind: &str) -> bool {
    behind.starts_with(['.', ')', '、'])
}

/// A file of a plan whose boxes get ids.
struct IdPage<'a> {
    file: &'a SpecFile<'a>,
    lines: Vec<PlanLine<'a>>,
    /// The ids that its tasks have.
    ids: Vec<TaskId>,
    /// The lines of its tasks that have a box and no id.
    boxes: Vec<usize>,
}

/// The changes that give an id to every task that has a box and no id, in files that are one plan. Steps of tasks and
/// check lists stay as they are. An id that the plan already names, for example in a dependency, means another task.
pub fn plan_ids(documents: &[(&str, &[u8])]) -> Result<Vec<Edit>, PlanError> {
    let files = documents.iter().map(|(label, bytes)| SpecFile::new(label, bytes));
    let files: Vec<SpecFile<'_>> = files.collect::<Result<_, _>>()?;
    let pages: Vec<IdPage<'_>> = files.iter().map(id_page).collect();
    let ids = || pages.iter().flat_map(|page| &page.ids);
    let (mut number, width) = last_number(ids());
    let named: HashSet<u64> = files.iter().flat_map(|file| named_numbers(file.text)).collect();
    let mut used: HashSet<String> = ids().map(TaskId::folded).collect();
    let mut edits = Vec::new();
    for page in &pages {
        for line in page.boxes.iter().map(|at| &page.lines[*at]) {
            let Some((_, rest)) = checkbox(line.content()) else { continue };
            let at = line.offset_of(rest.trim_start());
            if let Some(id) = ids::lower_case(rest.trim_start()).filter(|id| used.insert((*id).to_owned())) {
                edits.extend(edit(page.file, at, 1, &id.to_ascii_uppercase(), "T"));
                continue;
            }
            number += 1;
            while named.contains(&number) {
                number += 1;
            }
            let id = format!("T{number:0width$}");
            let put = if rest.trim().is_empty() { format!(" {id}") } else { format!("{id} ") };
            edits.extend(edit(page.file, at, 0, &id, &put));
        }
    }
    Ok(edits)
}

fn id_page<'a>(file: &'a SpecFile<'a>) -> IdPage<'a> {
    let (lines, _) = lines::scan(file.text, file.content_start());
    let mut outline = outline::outline(file, &lines);
    let canonical = canonical_entries::find_canonical(file, &mut outline);
    let tasks = || {
        outline.entries.iter().zip(&canonical).filter(|(_, found)| found.is_some()).map(|(entry, _)| entry)
    };
    let ids = tasks().map(|entry| entry.id.clone()).collect();
    let boxes = tasks().filter(|entry| entry.form == Form::Plain).map(|entry| entry.lines.start).collect();
    IdPage { file, lines, ids, boxes }
}

/// The change of `cut` bytes at a place after a box.
fn edit(file: &SpecFile<'_>, at: Offset, cut: usize, id: &str, put: &str) -> Option<Edit> {
    Some(Edit {
        task: id.parse().ok()?,
        file: file.label.to_owned(),
        line: file.line_of(at),
        at,
        cut,
        put: put.to_owned(),
    })
}

/// The numbers of all words such as `T012` or `t012a` in a text.
fn named_numbers(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(|word| {
        let digits = word.strip_prefix(['T', 't'])?;
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        digits[..len].parse().ok()
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
