//! Tasks as the outline meets them: items with boxes, with ids only, and rows of tables.

use super::{
    Offset,
    entry::{Entry, Form, Lead, Why},
    head::{Checkbox, Head},
    naming::virtual_id,
    outline::Builder,
    prose::{ProseTask, tick_at},
    table,
};
use crate::plan::Mark;

/// What people write before a task that is done, where there is no box.
pub(super) const TICKS: [char; 5] = ['✅', '✔', '✓', '☑', '🗹'];

impl<'a> Builder<'_, 'a> {
    /// An item without a box that begins with an id: a task only in files that have nothing else.
    pub(super) fn bullet(&mut self, at: usize, head: Head<'a>) {
        let (line, id) = (self.lines[at], head.id.to_owned());
        self.outline.unread.push((line.at, Some(id), Why::NoBox));
        let is_ticked = line.content().starts_with(TICKS);
        if let Some(entry) = self.entry(Form::Bullet, at, head) {
            if is_ticked {
                self.outline.entries[entry].mark = Mark::Done;
            }
            self.owner = Some(entry);
            self.open.push((line.indent + 2, entry));
        }
    }

    pub(super) fn boxed(&mut self, at: usize, (checkbox, rest): (Checkbox<'a>, &'a str), column: usize) {
        let line = self.lines[at];
        self.close_items(line.indent);
        let Some(head) = self.head(rest) else {
            return self.box_without_id(at, (checkbox, rest), column);
        };
        let parent = self.open.last().map(|(_, entry)| *entry);
        let id = head.id;
        let Some(entry) = self.entry(Form::Box, at, head) else { return };
        self.outline.entries[entry].parent = parent;
        match checkbox {
            Checkbox::Marked(mark) => self.mark(entry, mark, line.offset_of(mark)),
            Checkbox::Malformed => {
                let what = format!("the box of '{id}' does not hold one character; it is read as to do");
                self.warn(line.offset_of(line.content()), what, "write '[ ]' or '[x]'");
            }
        }
        self.open.push((column, entry));
        self.owner = Some(entry);
    }

    /// A box without an id is a step of the task that it belongs to, else a task or a check: the whole file tells.
    fn box_without_id(&mut self, at: usize, (checkbox, rest): (Checkbox<'a>, &'a str), column: usize) {
        let line = self.lines[at];
        let Checkbox::Marked(place) = checkbox else { return self.prose(at) };
        let Some(mark) = place.chars().next().and_then(Mark::from_box) else { return self.prose(at) };
        let Some(owner) = self.owner else {
            return self.plain_box(at, (place, rest), column);
        };
        let steps = &mut self.outline.entries[owner].steps;
        *steps = (steps.0 + usize::from(mark.is_settled()), steps.1 + 1);
        self.outline.unread.push((line.at, None, Why::Step));
        self.say(at, line.text.trim_end());
    }

    fn plain_box(&mut self, at: usize, (mark, rest): (&'a str, &'a str), column: usize) {
        let line = self.lines[at];
        let head = Head::plain(rest);
        let Some(id) = self.virtual_names.name(&virtual_id(&head.title)) else { return self.prose(at) };
        let mut entry = Entry::new(Form::Plain, id, head, line.offset_of(line.content()));
        (entry.lines, entry.section, entry.lead) = (at..at + 1, self.section, self.lead);
        self.outline.entries.push(entry);
        let entry = self.outline.entries.len() - 1;
        self.mark(entry, mark, line.offset_of(mark));
        self.open.push((column, entry));
        self.owner = Some(entry);
    }

    /// A step of a plan that has neither boxes nor ids.
    pub(super) fn prose_item(&mut self, at: usize, column: usize, task: ProseTask) {
        let line = self.lines[at];
        self.leave();
        let text = tick_at(line.content()).map_or(line.content(), |(_, rest)| rest);
        let form = if task.number.is_some() { Form::Bullet } else { Form::Plain };
        if let Some(entry) = self.prose_entry(form, at, Head::plain(text), task) {
            self.open.push((column, entry));
            self.owner = Some(entry);
        } else {
            self.prose(at);
        }
    }

    /// The same for a heading such as "Step 2: Add the table".
    pub(super) fn prose_heading(&mut self, at: usize, title: &'a str, mut task: ProseTask) -> Option<usize> {
        let is_ticked = title.trim_start().starts_with(TICKS) || title.trim_end().ends_with(TICKS);
        if is_ticked {
            task.mark = Mark::Done;
        }
        self.prose_entry(Form::Heading, at, Head::plain(title), task)
    }

    fn prose_entry(&mut self, form: Form, at: usize, head: Head<'a>, task: ProseTask) -> Option<usize> {
        let line = self.lines[at];
        let id = match &task.number {
            Some(number) => number.parse().ok()?,
            None => self.virtual_names.name(&virtual_id(&head.title))?,
        };
        let mut entry = Entry::new(form, id, head, line.offset_of(line.content()));
        (entry.lines, entry.section) = (at..at + 1, self.section);
        if entry.mark != Mark::Skipped {
            entry.mark = task.mark;
        }
        self.outline.entries.push(entry);
        Some(self.outline.entries.len() - 1)
    }

    pub(super) fn row(&mut self, at: usize, row: table::Row<'a>) {
        let (id, place) = (row.head.id.to_owned(), row.at);
        self.outline.unread.push((place, Some(id), Why::Row));
        if let Some(entry) = self.entry(Form::Row, at, row.head) {
            let entry = &mut self.outline.entries[entry];
            (entry.at, entry.mark, entry.mark_at, entry.lines) = (place, row.mark, row.mark_at, 0..0);
            entry.say("");
            entry.say(&row.text);
        }
    }

    pub(super) fn entry(&mut self, form: Form, at: usize, head: Head<'_>) -> Option<usize> {
        let line = self.lines[at];
        let id = match head.id.parse() {
            Ok(id) => id,
            Err(error) => {
                let error: crate::name::NameError = error;
                self.problem(line.at, error.to_string(), "give the task a shorter id");
                return None;
            }
        };
        self.lead = Lead::None;
        let mut entry = Entry::new(form, id, head, line.offset_of(line.content()));
        entry.lines = at..at + 1;
        entry.section = self.section;
        self.outline.entries.push(entry);
        Some(self.outline.entries.len() - 1)
    }

    pub(super) fn mark(&mut self, entry: usize, mark: &str, at: Offset) {
        let id = self.outline.entries[entry].id.clone();
        match mark.chars().next().and_then(Mark::from_box) {
            None => {
                let what = format!("'{mark}' is no known mark; the box of '{id}' is read as to do");
                // A tick replaces one byte, which a longer character does not fit.
                self.outline.entries[entry].mark_at = (mark.len() == 1).then_some(at);
                self.warn(at, what, "use ' ' todo, 'x' done, '-' skipped, '~' partial or '!' blocked");
            }
            Some(mark) => {
                let entry = &mut self.outline.entries[entry];
                entry.mark_at = Some(at);
                if mark != Mark::Todo || entry.mark != Mark::Skipped {
                    entry.mark = mark;
                }
            }
        }
    }

    fn warn(&mut self, at: Offset, what: String, fix: &str) {
        self.outline.warnings.push(self.file.problem(at, what, fix));
    }

    fn problem(&mut self, at: Offset, what: String, fix: &str) {
        self.outline.problems.push(self.file.problem(at, what, fix));
    }
}
