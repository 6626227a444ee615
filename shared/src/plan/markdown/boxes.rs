//! Tasks as the outline meets them: items with boxes, with ids only, and rows of tables.

use super::{
    Offset,
    entry::{Entry, Form, Why},
    head::{Checkbox, Head},
    outline::Builder,
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
        let Some(head) = Head::parse(rest) else {
            return self.box_without_id(at, checkbox);
        };
        let Checkbox::Marked(mark) = checkbox else {
            let what = format!("the box of '{}' does not hold one character", head.id);
            return self.problem(line.offset_of(line.content()), what, "write '[ ]' or '[x]'");
        };
        let parent = self.open.last().map(|(_, entry)| *entry);
        let Some(entry) = self.entry(Form::Box, at, head) else { return };
        self.outline.entries[entry].parent = parent;
        self.mark(entry, mark, line.offset_of(mark));
        self.open.push((column, entry));
        self.owner = Some(entry);
    }

    fn box_without_id(&mut self, at: usize, checkbox: Checkbox<'_>) {
        let line = self.lines[at];
        let Checkbox::Marked(mark) = checkbox else { return self.prose(at) };
        let Some(mark) = mark.chars().next().and_then(Mark::from_box) else { return self.prose(at) };
        let Some(owner) = self.owner else {
            self.outline.unread.push((line.at, None, Why::NoId));
            return self.prose(at);
        };
        let steps = &mut self.outline.entries[owner].steps;
        *steps = (steps.0 + usize::from(mark.is_settled()), steps.1 + 1);
        self.outline.unread.push((line.at, None, Why::Step));
        self.say(at, line.text.trim_end());
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
                let what = format!("'{mark}' is no mark that the box of '{id}' can have");
                self.problem(at, what, "use ' ' todo, 'x' done, '-' skipped, '~' partial or '!' blocked");
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

    fn problem(&mut self, at: Offset, what: String, fix: &str) {
        self.outline.problems.push(self.file.problem(at, what, fix));
    }
}
