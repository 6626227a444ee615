//! From lines to entries, which may become tasks: `- [ ] T001 Add the table` (a box), `- T001 Add it` (an id only), rows of tables, and
//! steps of prose. Also the lines that only look like tasks.

use super::{
    Offset,
    id_assignment::{FamilyIds, virtual_id},
    ids,
    outline_builder::Builder,
    prose::{ProseTask, tick_at},
    table,
    task_line::{Checkbox, TaskLine, is_starred},
    taskless_sections::is_summary,
};
use crate::{name::TaskId, plan::Mark, process::shell_word, words::words};

/// How a task is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A list item with a box.
    Box,
    /// A heading.
    Heading,
    /// A row of a table.
    Row,
    /// A row of a table that only lists ids. It is a task beside others whose ids look the same.
    ListedRow,
    /// A list item without a box.
    Bullet,
    /// A list item with a box and without an id. Its id is made from its text.
    Plain,
}

/// A task as written in a file.
#[derive(Debug)]
pub(super) struct TaskEntry {
    pub(super) form: Form,
    pub(super) id: TaskId,
    pub(super) at: Offset,
    pub(super) mark: Mark,
    pub(super) mark_at: Option<Offset>,
    pub(super) tags: Vec<String>,
    pub(super) is_parallel: bool,
    /// Everything that is said about it; the first paragraph is its name.
    pub(super) text: String,
    /// The lines that it takes up, as positions in the outline's list.
    pub(super) lines: std::ops::Range<usize>,
    pub(super) section: Option<usize>,
    /// The task that it is nested in.
    pub(super) parent: Option<usize>,
    /// Boxes without an id that belong to it: how many are ticked, how many there are.
    pub(super) steps: (usize, usize),
    /// What is between it and the task before it.
    pub(super) lead: ListIntro,
    /// Whether its id is made from its text.
    pub(super) is_unnamed: bool,
    /// What its heading calls it, where a field below that tells its id.
    pub(super) written: Option<TaskId>,
    /// The number of the phase that it is, where a table has a row for each phase.
    pub(super) phase_label: Option<String>,
    /// Whether a star after its box marks it as optional.
    pub(super) is_optional: bool,
}

/// What introduces a list of boxes without ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ListIntro {
    #[default]
    None,
    /// A paragraph.
    Text,
    /// A paragraph such as "Acceptance criteria:".
    Checks,
}

impl TaskEntry {
    pub(super) fn new(form: Form, id: TaskId, head: TaskLine<'_>, at: Offset) -> Self {
        Self {
            form,
            id,
            at,
            mark: if head.is_struck { Mark::Skipped } else { Mark::Todo },
            mark_at: None,
            tags: head.tags,
            is_parallel: head.is_parallel,
            text: head.title,
            lines: 0..0,
            section: None,
            parent: None,
            steps: (0, 0),
            lead: ListIntro::None,
            is_unnamed: form == Form::Plain,
            written: None,
            phase_label: None,
            is_optional: false,
        }
    }

    /// Whether lines below its title tell what to do, and not only which requirements it meets.
    pub(super) fn lists_work(&self) -> bool {
        let mut lines = self.text.lines().skip(1).map(|line| line.trim_start_matches(['-', '*', '+', ' ']));
        lines.any(|line| line.starts_with(char::is_alphanumeric))
    }

    /// An id without letters, such as `1.2`. In a file whose ids have letters it is just a number.
    pub(super) fn is_numeric(&self) -> bool {
        self.id.as_str().starts_with(|c: char| c.is_ascii_digit())
    }

    /// Adds a line to what is said about it.
    pub(super) fn append_line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }
}

words! {
    /// Why a line that looks like a task is none.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Why {
        /// A box without an id that belongs to a task, and is passed on to the agent that works on it.
        Step = "a step of a task",
        /// Boxes without ids that are a check list.
        Check = "boxes taken as checks",
        /// A list item with an id that is not in the plan, and without a box.
        NoBox = "an id without a box",
        /// It is in a code fence.
        InCode = "it is in a code fence",
        /// It is in a comment.
        InComment = "it is in a comment",
        /// It is in a quotation.
        Quoted = "it is in a quotation",
        /// A row of a table, in a file whose tasks are boxes or headings.
        Row = "a table row beside tasks with boxes",
        /// Its id is only a number, in a file whose ids have letters.
        Number = "only a number for an id",
        /// An item of a list of things to do, without box and id, in a file whose tasks have them.
        Item = "a list item without a box",
    }
}

impl Why {
    /// What became of this many lines.
    #[must_use]
    pub fn words(self, count: usize) -> String {
        match (self, count) {
            (Self::Step, 1) => "1 line looks like a task but was read as a step of a task".to_owned(),
            (Self::Step, _) => format!("{count} lines look like tasks but were read as steps of tasks"),
            (_, 1) => format!("1 line looks like a task but was not read as a task: {}", self.as_str()),
            _ => format!("{count} lines look like tasks but were not read as tasks: {}", self.as_str()),
        }
    }

    /// What would make it a task, or leave no doubt that it is none.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            Self::Step => "",
            Self::Check => "give them ids, if they are meant as tasks",
            Self::NoBox => "write '- [ ]' before the id to make it a task",
            Self::InCode => "close the fence before it, if it is meant as a task",
            Self::InComment => "end the comment before it, if it is meant as a task",
            Self::Quoted => "remove the '>', if it is meant as a task",
            Self::Row => "write it as '- [ ]' with its id, if it is meant as a task",
            Self::Number => "give it an id like the other tasks have",
            Self::Item => "write '- [ ]' before it to make it a task",
        }
    }
}

/// What people write before a task that is done, where there is no box.
pub(super) const TICKS: [char; 5] = ['✅', '✔', '✓', '☑', '🗹'];

impl<'a> Builder<'_, 'a> {
    /// An item without a box that begins with an id: a task only in files that have nothing else.
    pub(super) fn bullet(&mut self, at: usize, head: TaskLine<'a>) {
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

    pub(super) fn boxed(&mut self, at: usize, checkbox: Checkbox<'a>, rest: &'a str, column: usize) {
        let line = self.lines[at];
        self.close_items(line.indent);
        let Some(head) = self.head(at, rest) else {
            return self.box_without_id(at, checkbox, rest, column);
        };
        let parent = self.open.last().map(|(_, entry)| *entry);
        let id = head.id;
        let Some(entry) = self.entry(Form::Box, at, head) else { return };
        self.outline.entries[entry].parent = parent;
        self.outline.entries[entry].is_optional = is_starred(line.content());
        match checkbox {
            Checkbox::Marked(mark) => self.mark(entry, mark, line.offset_of(mark)),
            Checkbox::Malformed => {
                let what = format!(
                    "the box of '{id}' does not contain exactly one character; it is read as not done"
                );
                self.warn(line.offset_of(line.content()), what, "write '[ ]' or '[x]'");
            }
        }
        self.open.push((column, entry));
        self.owner = Some(entry);
    }

    /// A box without an id is a step of the task that it belongs to, else a task or a check: the whole file tells.
    fn box_without_id(&mut self, at: usize, checkbox: Checkbox<'a>, rest: &'a str, column: usize) {
        let line = self.lines[at];
        let Checkbox::Marked(place) = checkbox else { return self.prose(at) };
        // "[P] means parallel" and "[1] Smith et al." have labels, not boxes.
        let is_label = |mark: char| mark.is_uppercase() || mark.is_numeric();
        let mark = match place.chars().next().map(|mark| (Mark::from_box(mark), is_label(mark))) {
            Some((Some(mark), _)) => mark,
            Some((None, false)) => Mark::Todo,
            _ => return self.prose(at),
        };
        let Some(owner) = self.owner else {
            return self.plain_box(at, place, rest, column);
        };
        let steps = &mut self.outline.entries[owner].steps;
        *steps = (steps.0 + usize::from(mark.is_settled()), steps.1 + 1);
        self.outline.unread.push((line.at, None, Why::Step));
        self.append_to_task(at, line.text.trim_end());
    }

    fn plain_box(&mut self, at: usize, mark: &'a str, rest: &'a str, column: usize) {
        let line = self.lines[at];
        let head = TaskLine::plain(rest);
        if let Some(id) = ids::lower_case(&head.title) {
            let what = format!("'{id}' is not read as an id: ids begin with a capital 'T'");
            let meant = id.to_ascii_uppercase();
            let fix =
                format!("write '{meant}', unless another task has this id, or {}", self.advice_to_assign());
            self.warn(line.offset_of(rest.trim_start()), what, &fix);
        }
        let Some(id) = self.virtual_names.name(&virtual_id(&head.title)) else { return self.prose(at) };
        let family = TaskLine::parse_family(rest).filter(|_| self.family_ids == FamilyIds::Doubtful);
        if let Some(named) = family.filter(|named| !named.title.is_empty()) {
            let what = format!("'{}' is not read as an id, so the task is called '{id}'", named.id);
            let fix = format!("give it an id like the other tasks have, or {}", self.advice_to_assign());
            self.warn(line.offset_of(rest.trim_start()), what, &fix);
        }
        let mut entry = TaskEntry::new(Form::Plain, id, head, line.offset_of(line.content()));
        (entry.lines, entry.section, entry.lead) = (at..at + 1, self.section, self.lead);
        entry.is_optional = is_starred(line.content());
        self.outline.entries.push(entry);
        let entry = self.outline.entries.len() - 1;
        self.mark(entry, mark, line.offset_of(mark));
        self.open.push((column, entry));
        self.owner = Some(entry);
    }

    /// A heading with a box and without an id: "### [ ] Add the table".
    pub(super) fn boxed_heading(&mut self, at: usize, mark: &'a str, title: &'a str) -> Option<usize> {
        let task = ProseTask { number: None, mark: Mark::Todo };
        let entry = self.prose_entry(Form::Heading, at, TaskLine::plain(title), &task)?;
        self.mark(entry, mark, self.lines[at].offset_of(mark));
        Some(entry)
    }

    /// A step of a plan that has neither boxes nor ids.
    pub(super) fn prose_item(&mut self, at: usize, column: usize, task: &ProseTask) {
        let line = self.lines[at];
        self.close_open_items();
        let text = tick_at(line.content()).map_or(line.content(), |(_, rest)| rest);
        let form = if task.number.is_some() { Form::Bullet } else { Form::Plain };
        if let Some(entry) = self.prose_entry(form, at, TaskLine::plain(text), task) {
            self.open.push((column, entry));
            self.owner = Some(entry);
        } else {
            self.prose(at);
        }
    }

    /// A step of a plan that has neither boxes nor ids, if it is a heading such as "Step 2: Add the table".
    pub(super) fn prose_heading(&mut self, at: usize, title: &'a str, mut task: ProseTask) -> Option<usize> {
        let is_ticked = title.trim_start().starts_with(TICKS) || title.trim_end().ends_with(TICKS);
        if is_ticked {
            task.mark = Mark::Done;
        }
        self.prose_entry(Form::Heading, at, TaskLine::plain(title), &task)
    }

    fn prose_entry(&mut self, form: Form, at: usize, head: TaskLine<'a>, task: &ProseTask) -> Option<usize> {
        let line = self.lines[at];
        let id = match &task.number {
            Some(number) => number.parse().ok()?,
            None => self.virtual_names.name(&virtual_id(&head.title))?,
        };
        let mut entry = TaskEntry::new(form, id, head, line.offset_of(line.content()));
        (entry.lines, entry.section) = (at..at + 1, self.section);
        entry.is_unnamed |= task.number.is_none();
        if entry.mark != Mark::Skipped {
            entry.mark = task.mark;
        }
        self.outline.entries.push(entry);
        Some(self.outline.entries.len() - 1)
    }

    pub(super) fn row(&mut self, at: usize, row: table::TaskRow<'a>) {
        let (id, place) = (row.head.id.to_owned(), row.at);
        let form = if row.is_listed { Form::ListedRow } else { Form::Row };
        // Requirements and risks are listed so too. Lines that look like the tasks are noted when these are known.
        let is_number = ids::numeric(&id).is_some();
        let is_repeated =
            is_number && self.section.is_some_and(|at| is_summary(&self.outline.sections[at].title));
        if !row.is_listed && !is_repeated {
            self.outline.unread.push((place, Some(id), Why::Row));
        }
        if let Some(entry) = self.entry(form, at, row.head) {
            let entry = &mut self.outline.entries[entry];
            (entry.at, entry.mark, entry.mark_at, entry.lines) = (place, row.mark, row.mark_at, 0..0);
            entry.phase_label = row.is_phase.then(|| entry.id.as_str().to_lowercase());
            entry.append_line("");
            entry.append_line(&row.text);
        }
    }

    pub(super) fn entry(&mut self, form: Form, at: usize, head: TaskLine<'_>) -> Option<usize> {
        let line = self.lines[at];
        let id = match head.id.parse() {
            Ok(id) => id,
            Err(error) => {
                let error: crate::name::NameError = error;
                self.problem(line.at, error.to_string(), "give the task a shorter id");
                return None;
            }
        };
        self.lead = ListIntro::None;
        let mut entry = TaskEntry::new(form, id, head, line.offset_of(line.content()));
        entry.lines = at..at + 1;
        entry.section = self.section;
        self.outline.entries.push(entry);
        Some(self.outline.entries.len() - 1)
    }

    pub(super) fn mark(&mut self, entry: usize, mark: &str, at: Offset) {
        let id = self.outline.entries[entry].id.clone();
        match mark.chars().next().and_then(Mark::from_box) {
            None => {
                let what = format!("'{mark}' is not a known mark; the box of '{id}' is read as to do");
                // A tick replaces one byte, which a longer character does not fit.
                self.outline.entries[entry].mark_at = (mark.len() == 1).then_some(at);
                self.warn(
                    at,
                    what,
                    "write [ ] (to do), [x] (done), [-] (skipped), [~] (partly done) or [!] (blocked)",
                );
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

    fn advice_to_assign(&self) -> String {
        format!("run: git arborist plan --assign-ids {}", shell_word(self.file.label))
    }

    fn warn(&mut self, at: Offset, what: String, fix: &str) {
        self.outline.warnings.push(self.file.problem(at, what, fix));
    }

    fn problem(&mut self, at: Offset, what: String, fix: &str) {
        self.outline.problems.push(self.file.problem(at, what, fix));
    }
}
