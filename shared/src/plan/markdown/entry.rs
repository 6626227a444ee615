//! What an outline is made of: tasks as they stand in the file, and lines that only look like tasks.

use super::{Offset, head::Head};
use crate::{name::TaskId, plan::Mark};

/// How a task is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A list item with a box.
    Box,
    /// A heading.
    Heading,
    /// A row of a table.
    Row,
    /// A list item without a box.
    Bullet,
    /// A list item with a box and without an id. Its id is made from its text.
    Plain,
}

/// A task as it stands in a file.
#[derive(Debug)]
pub(super) struct Entry {
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
    /// What stands between it and the task before it.
    pub(super) lead: Lead,
}

/// What introduces a list of boxes without ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Lead {
    #[default]
    None,
    /// A paragraph.
    Text,
    /// A paragraph such as "Acceptance criteria:".
    Checks,
}

impl Entry {
    pub(super) fn new(form: Form, id: TaskId, head: Head<'_>, at: Offset) -> Self {
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
            lead: Lead::None,
        }
    }

    /// An id without letters, such as `1.2`. In a file whose ids have letters it is just a number.
    pub(super) fn is_numeric(&self) -> bool {
        self.id.as_str().starts_with(|c: char| c.is_ascii_digit())
    }

    /// Adds a line to what is said about it.
    pub(super) fn say(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }
}

/// Why a line that looks like a task is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// A box without an id that belongs to a task, and is told to who works on it.
    Step,
    /// Boxes without ids that are a check list.
    Check,
    /// A list item with an id that is not in the plan, and without a box.
    NoBox,
    /// It stands in a code fence.
    InCode,
    /// It stands in a comment.
    InComment,
    /// It stands in a quotation.
    Quoted,
    /// A row of a table, in a file whose tasks are boxes or headings.
    Row,
    /// Its id is only a number, in a file whose ids have letters.
    Number,
}

impl Why {
    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::Step,
        Self::Check,
        Self::NoBox,
        Self::InCode,
        Self::InComment,
        Self::Quoted,
        Self::Row,
        Self::Number,
    ];

    /// The reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Step => "a step of a task",
            Self::Check => "boxes taken as checks",
            Self::NoBox => "an id without a box",
            Self::InCode => "it stands in a code fence",
            Self::InComment => "it stands in a comment",
            Self::Quoted => "it stands in a quotation",
            Self::Row => "a table row beside tasks with boxes",
            Self::Number => "only a number for an id",
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
            Self::Quoted => "take away the '>', if it is meant as a task",
            Self::Row => "write it as '- [ ]' with its id, if it is meant as a task",
            Self::Number => "give it an id like the other tasks have",
        }
    }
}
