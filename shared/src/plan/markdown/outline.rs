//! A Markdown file as an outline: sections, tasks with everything that belongs to them, and what is left over.

use std::collections::HashMap;

use super::{
    Offset, PlanLine,
    entry::{Form, ListIntro, TaskEntry, Why},
    id_assignment::counted_level,
    outline_builder::{Reading, outline_with},
    prose::{self, prose_tasks},
    section::{HeadingSection, phase_label},
    table::{Cell, WaveRow},
    task_line::checkbox,
    taskless_sections::is_check_list,
};
use crate::{
    name::TaskId,
    plan::{Problem, text::SpecFile},
};

/// What a file holds, in its order.
#[derive(Debug, Default)]
pub(super) struct Outline<'a> {
    pub(super) sections: Vec<HeadingSection>,
    pub(super) entries: Vec<TaskEntry>,
    /// Paragraphs, items and fences in sections that list dependencies.
    pub(super) dependencies: Vec<Block<'a>>,
    /// Lines of sections that tell what can run at once.
    pub(super) parallel_lines: Vec<PlanLine<'a>>,
    /// Lines of other sections that say that something depends on something, or is done sequentially.
    pub(super) order_remarks: Vec<PlanLine<'a>>,
    /// Headings, and lines below them that say what their section waits for.
    pub(super) phase_lines: Vec<(usize, PlanLine<'a>)>,
    /// Cells that name what a task or phase waits for.
    pub(super) cells: Vec<Cell<'a>>,
    /// Tables of waves.
    pub(super) wave_tables: Vec<Vec<WaveRow<'a>>>,
    /// Ids that several tasks have, with what the others are called and the line of each.
    pub(super) duplicates: HashMap<TaskId, Vec<(TaskId, usize)>>,
    /// Lines that look like tasks: the id that they name, if any, and why they were not taken.
    pub(super) unread: Vec<(Offset, Option<String>, Why)>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// Check lists: where each begins, and how many boxes it has.
    pub(super) checks: Vec<Checks>,
}

/// Boxes of one section that are no tasks.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) section: Option<usize>,
    pub(super) at: Offset,
    pub(super) count: usize,
}

/// A paragraph, an item or a fence of a section that lists dependencies.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) section: Option<usize>,
    /// At least one line.
    pub(super) lines: Vec<PlanLine<'a>>,
}

impl Outline<'_> {
    /// A section and those around it, innermost first.
    pub(super) fn chain(&self, section: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(section, |at| self.sections[*at].parent)
    }

    /// A section and those around it but the whole file, innermost first.
    pub(super) fn sections_around(&self, section: Option<usize>) -> impl Iterator<Item = &HeadingSection> {
        self.chain(section).map(|at| &self.sections[at]).filter(|section| section.level > 1)
    }
}

/// The outline of a file. Numbers alone make tasks only in a file that has no others: "### 1.2 Add the table".
pub(super) fn outline<'a>(file: &SpecFile<'a>, lines: &[PlanLine<'a>]) -> Outline<'a> {
    let outline = outline_with(file, lines, Reading::default());
    let is_check = |entry: &TaskEntry| {
        let mut chain = outline.chain(entry.section);
        entry.form == Form::Plain
            && (entry.lead == ListIntro::Checks || chain.any(|at| is_check_list(&outline.sections[at].title)))
    };
    // Steps of a numbered list may have boxes below them.
    let steps = prose::steps_with_boxes(lines);
    if !steps.is_empty() {
        return outline_with(file, lines, Reading { prose: steps, ..Reading::default() });
    }
    if !outline.entries.iter().all(is_check) {
        if !outline.entries.iter().all(|entry| entry.form == Form::Plain) {
            return outline;
        }
        let lists = prose::lists_of_phases_without_boxes(lines);
        if lists.is_empty() {
            return outline;
        }
        return outline_with(file, lines, Reading { prose: lists, ..Reading::default() });
    }
    let level = counted_level(lines);
    let is_empty = outline.entries.is_empty();
    if !is_empty && level.is_none() {
        // Boxes that are nothing but checks, beside phases told in prose: the phases are the plan.
        let phases = prose::phase_tasks(lines);
        let has_boxes = phases.keys().any(|at| checkbox(lines[*at].content()).is_some());
        if phases.len() < 2 || has_boxes {
            return outline;
        }
        return outline_with(file, lines, Reading { prose: phases, ..Reading::default() });
    }
    let outline = outline_with(
        file,
        lines,
        Reading { reads_numbers: true, counted_level: level, ..Reading::default() },
    );
    let is_in_phase = |entry: &TaskEntry| {
        let mut chain = outline.chain(entry.section);
        chain.any(|at| phase_label(&outline.sections[at].title).is_some())
    };
    // Where a plan has phases, numbers that only count its sections are no tasks.
    let has_phases =
        || is_empty && !outline.entries.iter().any(is_in_phase) && !prose::phase_tasks(lines).is_empty();
    if (!outline.entries.is_empty() || !is_empty) && !has_phases() {
        return outline;
    }
    let prose = prose_tasks(file.label, lines);
    if prose.is_empty() {
        outline
    } else {
        outline_with(file, lines, Reading { prose, ..Reading::default() })
    }
}
