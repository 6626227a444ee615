//! From lines to an outline: puts each line into its section and its task.

use std::{collections::HashSet, ops::Range};

use super::{
    PlanLine,
    entry::{Form, ListIntro, TICKS, Why},
    heading_ids::HeadingIds,
    id_assignment::{FamilyIds, UniqueIds, family_boxes, family_ids},
    ids,
    lines::LineKind,
    lines::{bold_label, bold_part, mentions_order, opens_fence, outdented},
    outline::{Block, Outline},
    prose::{ProseTask, ProseTasks},
    section::{HeadingSection, is_about_parallel, is_dependencies, phase_label, says_needs, says_when},
    table,
    task_line::{Checkbox, TaskLine, checkbox},
    taskless_sections::{is_history, leads_to_checks},
};
use crate::plan::{Mark, text::SpecFile};

/// The level of a line in bold that is no heading but opens a phase.
const BOLD_LEVEL: usize = 7;

/// What makes a task beside boxes and ids with letters.
#[derive(Default)]
pub(super) struct Reading {
    /// Whether `1.2` makes a task also where there is neither a box nor the word "Task".
    pub(super) reads_numbers: bool,
    /// The level of headings whose plain numbers make tasks.
    pub(super) counted_level: Option<usize>,
    /// Lines that are tasks in a file without boxes and ids.
    pub(super) prose: ProseTasks,
}

/// Goes through the lines from top to bottom.
pub(super) struct Builder<'f, 'a> {
    pub(super) file: &'f SpecFile<'a>,
    pub(super) lines: &'f [PlanLine<'a>],
    pub(super) outline: Outline<'a>,
    pub(super) section: Option<usize>,
    /// Open list items that are tasks, outermost first: the column of their content, and the task.
    pub(super) open: Vec<(usize, usize)>,
    /// The task that lines belong to: the innermost open item, or a heading.
    pub(super) owner: Option<usize>,
    is_after_blank: bool,
    /// Ids made for boxes that have none.
    pub(super) virtual_names: UniqueIds,
    /// The text between the last task and here.
    pub(super) lead: ListIntro,
    reading: Reading,
    /// Whether `A1` and `DB-1` are ids.
    pub(super) family_ids: FamilyIds,
    /// Boxes where they are ids all the same, by line.
    family_boxes: HashSet<usize>,
    heading_ids: HeadingIds<'a>,
}

/// The outline of a file, read in one way.
pub(super) fn outline_with<'a>(file: &SpecFile<'a>, lines: &[PlanLine<'a>], reading: Reading) -> Outline<'a> {
    let family_ids = family_ids(lines);
    let family_boxes = if family_ids == FamilyIds::Doubtful { family_boxes(lines) } else { HashSet::new() };
    let mut builder = Builder {
        file,
        lines,
        outline: Outline::default(),
        section: None,
        open: Vec::new(),
        owner: None,
        is_after_blank: false,
        virtual_names: UniqueIds::default(),
        lead: ListIntro::None,
        reading,
        family_ids,
        family_boxes,
        heading_ids: HeadingIds::find(lines),
    };
    let mut at = 0;
    while at < lines.len() {
        at = builder.line(at);
    }
    builder.warn_of_prose();
    builder.outline
}

impl<'a> Builder<'_, 'a> {
    /// Takes the line at `at`, and gives the position of the next.
    fn line(&mut self, at: usize) -> usize {
        let line = self.lines[at];
        match line.kind {
            LineKind::FrontMatter => {}
            LineKind::Blank => self.blank(at),
            LineKind::Heading(level) => self.heading(at, level, line.content()),
            LineKind::Item(column) => self.item(at, column),
            LineKind::Row => return self.table(at),
            LineKind::Rule => self.close_open_items(),
            LineKind::Quote => self.nested_block(at, Why::Quoted),
            LineKind::Code => self.nested_block(at, Why::InCode),
            LineKind::Comment => self.note_unread_task(at, Why::InComment),
            LineKind::Text => self.text(at),
        }
        self.is_after_blank = line.kind == LineKind::Blank;
        at + 1
    }

    fn is_in_dependencies(&self) -> bool {
        self.section.is_some_and(|section| self.outline.sections[section].lists_dependencies)
    }

    fn is_in_parallel(&self) -> bool {
        self.section.is_some_and(|section| self.outline.sections[section].lists_parallel)
    }

    /// Ends the open items; lines then belong to the heading, if that is a task.
    pub(super) fn close_open_items(&mut self) {
        self.open.clear();
        self.owner = self.section.and_then(|section| self.outline.sections[section].task);
    }

    fn blank(&mut self, at: usize) {
        if self.owner.is_some() {
            self.append_to_task(at, "");
        }
    }

    fn heading(&mut self, at: usize, level: usize, title: &str) {
        while let Some(own) = self.section.filter(|own| self.outline.sections[*own].level >= level) {
            self.section = self.outline.sections[own].parent;
        }
        let parent = self.section;
        let line = self.lines[at];
        let lists_dependencies = self.is_in_dependencies() || is_dependencies(title);
        let lists_parallel = self.is_in_parallel() || is_about_parallel(title);
        self.outline.sections.push(HeadingSection {
            level,
            title: title.to_owned(),
            at: line.at,
            parent,
            task: None,
            lists_dependencies,
            lists_parallel,
            text: String::new(),
        });
        let own = self.outline.sections.len() - 1;
        self.section = Some(own);
        if !lists_dependencies {
            self.outline.phase_lines.push((own, line));
        }
        // "### Parallel group 2: the models (T004-T005)".
        if is_about_parallel(title) {
            self.outline.parallel_lines.push(line);
        }
        self.open.clear();
        self.owner = None;
        self.lead = ListIntro::None;
        let task = match self.prose_task(at) {
            Some(task) => self.prose_heading(at, line.content(), task),
            None if level > 1 => self.heading_task(at, line.content()),
            None => None,
        };
        if let Some(task) = task {
            self.outline.sections[own].task = Some(task);
            self.owner = Some(task);
        }
    }

    /// A heading that begins with an id is a task. A number alone only counts the sections.
    fn heading_task(&mut self, at: usize, content: &'a str) -> Option<usize> {
        // "### - [ ] T001 [P] text".
        let content = content.strip_prefix(['-', '*']).map_or(content, str::trim_start);
        let (boxed, rest) = match checkbox(content) {
            Some((Checkbox::Marked(mark), rest)) => (Some(mark), rest),
            _ => (None, content),
        };
        let is_counted =
            self.reading.counted_level.is_some_and(|level| self.lines[at].kind == LineKind::Heading(level));
        let is_id = |head: &TaskLine<'_>| head.is_worded || self.is_bare_id(head.id) || is_counted;
        let of_series = || TaskLine::parse_series(rest).filter(|_| self.heading_ids.is_titled(at));
        let head = TaskLine::parse(rest).filter(is_id).or_else(of_series);
        let field = self.heading_ids.field(at);
        let Some(mut head) = head.or_else(|| field.map(|_| TaskLine::plain(rest))) else {
            return boxed.and_then(|mark| self.boxed_heading(at, mark, rest));
        };
        // "### Task 4: …" with a field "ID: T-4".
        let written = field.and_then(|id| ids::parse(std::mem::replace(&mut head.id, id)));
        // "### 3. Add the table ✅" is done as well.
        let is_ticked = rest.trim_start().starts_with(TICKS) || rest.trim_end().ends_with(TICKS);
        let entry = self.entry(Form::Heading, at, head)?;
        self.outline.entries[entry].written = written;
        if is_ticked {
            self.outline.entries[entry].mark = Mark::Done;
        }
        if let Some(mark) = boxed {
            self.mark(entry, mark, self.lines[at].offset_of(mark));
        }
        Some(entry)
    }

    /// The text after a box, if it has an id.
    pub(super) fn head(&self, at: usize, rest: &'a str) -> Option<TaskLine<'a>> {
        let reads_families = self.family_ids == FamilyIds::Read || self.family_boxes.contains(&at);
        TaskLine::parse(rest)
            .or_else(|| TaskLine::parse_family(rest).filter(|_| reads_families))
            .or_else(|| TaskLine::parse_series(rest).filter(|_| self.heading_ids.is_boxed(at)))
    }

    /// Whether an id tells a task without a box or a word before it.
    fn is_bare_id(&self, id: &str) -> bool {
        ids::lettered(id).is_some() || self.reading.reads_numbers && id.contains('.')
    }

    fn item(&mut self, at: usize, column: usize) {
        let line = self.lines[at];
        let content = line.content();
        if let Some(task) = self.prose_task(at) {
            return self.prose_item(at, column, &task);
        }
        let is_nested = self.open.iter().any(|(column, _)| line.indent >= *column);
        if let Some((checkbox, rest)) = checkbox(content) {
            return self.boxed(at, checkbox, rest, column);
        }
        if is_nested {
            self.close_items(line.indent);
            return self.append_to_task(at, line.text.trim_end());
        }
        self.close_open_items();
        match TaskLine::parse(content).filter(|head| self.is_bare_id(head.id)) {
            Some(head) if self.owner.is_none() && !self.is_in_dependencies() => {
                // "- T002+T003, T004+T005: pairs in parallel" begins as a task does.
                if self.is_in_parallel() {
                    self.outline.parallel_lines.push(line);
                }
                self.bullet(at, head);
            }
            _ => self.prose(at),
        }
    }

    /// Ends the items that a line at this indent does not belong to.
    pub(super) fn close_items(&mut self, indent: usize) {
        while self.open.last().is_some_and(|(column, _)| *column > indent) {
            self.open.pop();
        }
        let heading = self.section.and_then(|section| self.outline.sections[section].task);
        self.owner = self.open.last().map(|(_, entry)| *entry).or(heading);
    }

    fn text(&mut self, at: usize) {
        let line = self.lines[at];
        let content = line.content();
        if let Some(task) = self.prose_task(at) {
            return self.prose_item(at, line.indent + 2, &task);
        }
        // `-[ ] T001` and `• [ ] T001` are no list items for Markdown, but for people they are.
        let bare = content.trim_start_matches(['-', '*', '+', '•', '–', '·', '◦', ' ']);
        if let Some((mark, rest)) = checkbox(bare).filter(|(_, rest)| self.head(at, rest).is_some()) {
            return self.boxed(at, mark, rest, line.indent + 2);
        }
        let bold = content.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
        if let Some(title) = bold.filter(|title| !title.contains("**") && phase_label(title).is_some()) {
            return self.heading(at, BOLD_LEVEL, title);
        }
        if let Some(title) = bold_part(content).filter(|_| self.section.is_some() && line.indent == 0) {
            return self.heading(at, BOLD_LEVEL, title);
        }
        if let Some(title) = bold_label(content).filter(|title| self.is_list_of_order(at, title)) {
            return self.heading(at, BOLD_LEVEL, title);
        }
        if self.reading.reads_numbers
            && line.indent == 0
            && !self.is_in_dependencies()
            && ids::numeric(content).is_some()
        {
            // A paragraph "1.2 **Add the table**".
            if let Some(head) = TaskLine::parse(content).filter(|head| self.is_bare_id(head.id)) {
                self.close_open_items();
                return self.bullet(at, head);
            }
        }
        let is_nested = self.open.iter().any(|(column, _)| line.indent >= *column);
        let is_lazy = !self.is_after_blank && !content.starts_with("**") && !self.open.is_empty();
        if is_nested || line.indent > 0 && !self.open.is_empty() || is_lazy {
            return self.append_to_task(at, line.text.trim_end());
        }
        self.close_open_items();
        self.prose(at);
    }

    /// "**Dependencies:**" in a section that is no task begins a separate list, unless a box follows below it.
    fn is_list_of_order(&self, at: usize, title: &str) -> bool {
        /// How many lines are looked at.
        const FAR: usize = 60;
        let is_plain = self.section.is_some_and(|own| self.outline.sections[own].task.is_none());
        let is_meant = is_dependencies(title) || is_about_parallel(title);
        if !is_plain || !is_meant || self.lines[at].indent > 0 || self.is_in_dependencies() {
            return false;
        }
        let below = self.lines[at + 1..].iter().take(FAR);
        let mut below = below.take_while(|line| !matches!(line.kind, LineKind::Heading(_)));
        !below.any(|line| checkbox(line.content()).is_some())
    }

    /// Code and quotations belong to the task that they are indented under.
    fn nested_block(&mut self, at: usize, why: Why) {
        let line = self.lines[at];
        self.note_unread_task(at, why);
        let is_nested = self.open.iter().any(|(column, _)| line.indent >= *column);
        if line.indent == 0 && !is_nested {
            self.close_open_items();
        }
        self.prose(at);
    }

    /// Notes a line that looks like a task where tasks do not count.
    fn note_unread_task(&mut self, at: usize, why: Why) {
        let line = self.lines[at];
        let content = line.text.trim_start_matches([' ', '\t', '>', '-', '*', '+']);
        let head = checkbox(content).and_then(|(_, rest)| TaskLine::parse(rest));
        if let Some(head) = head.filter(|head| ids::lettered(head.id).is_some()) {
            self.outline.unread.push((line.at, Some(head.id.to_owned()), why));
        }
    }

    fn table(&mut self, at: usize) -> usize {
        let is_row = |line: &PlanLine<'_>| line.kind == LineKind::Row;
        let end = at + self.lines[at..].iter().take_while(|line| is_row(line)).count();
        let table = table::rows(&self.lines[at..end]);
        let is_history =
            self.section.is_some_and(|section| is_history(&self.outline.sections[section].title));
        for row in table.rows.into_iter().filter(|_| !is_history) {
            self.row(at, row);
        }
        self.outline.cells.extend(table.cells);
        if !is_history && !table.waves.is_empty() {
            self.outline.wave_tables.push(table.waves);
        }
        if let Some(task) = self.section.and_then(|section| self.outline.sections[section].task) {
            self.outline.cells.extend(table::properties(&self.lines[at..end], task));
        }
        if self.lines[at].indent == 0 {
            self.close_open_items();
        }
        (at..end).for_each(|at| self.prose(at));
        end
    }

    /// A line that belongs to the open task.
    pub(super) fn append_to_task(&mut self, at: usize, text: &str) {
        let Some(owner) = self.owner else { return };
        let column = self.open.last().map_or(0, |(column, _)| *column);
        let entry = &mut self.outline.entries[owner];
        entry.append_line(outdented(text, column));
        entry.lines = extended(&entry.lines, at);
    }

    /// A line that belongs to the open task, or else to the section.
    pub(super) fn prose(&mut self, at: usize) {
        let line = self.lines[at];
        if self.is_in_dependencies() {
            self.dependency(line);
        }
        // Rows are no sentences of a list of dependencies, but may tell what can run at once.
        if self.is_in_parallel()
            && self.owner.is_none()
            && (!self.is_in_dependencies() || line.kind == LineKind::Row)
        {
            self.outline.parallel_lines.push(line);
        }
        if self.owner.is_some() {
            return self.append_to_task(at, line.text.trim_end());
        }
        self.lead = match line.kind {
            LineKind::Text | LineKind::Quote if leads_to_checks(line.content()) => ListIntro::Checks,
            LineKind::Text if self.lead == ListIntro::None => ListIntro::Text,
            _ => self.lead,
        };
        if !self.is_in_dependencies() && !self.is_in_parallel() && mentions_order(&line) {
            self.outline.order_remarks.push(line);
        }
        if let Some(section) = self.section {
            let says_order = says_needs(line.content()) || says_when(line.content());
            if says_order && !self.is_in_dependencies() {
                self.outline.phase_lines.push((section, line));
            }
            let text = &mut self.outline.sections[section].text;
            text.push_str(line.text.trim());
            text.push('\n');
        }
    }
}

impl<'a> Builder<'_, 'a> {
    fn prose_task(&self, at: usize) -> Option<ProseTask> {
        self.reading.prose.get(&at).cloned()
    }

    /// Tells once that a plan has neither boxes nor ids, and what is taken as its tasks.
    fn warn_of_prose(&mut self) {
        let Some(first) = self.reading.prose.keys().next() else { return };
        let count = self.reading.prose.len();
        let has_boxes = self.outline.entries.len() > count;
        let what = if has_boxes {
            format!("{count} steps without boxes are taken as tasks, beside boxes")
        } else {
            format!("no box and no id was found; {count} steps are taken as tasks")
        };
        let fix = "write them as '- [ ] text' to be sure";
        self.outline.warnings.push(self.file.problem(self.lines[*first].at, what, fix));
    }

    /// A line of a section that lists dependencies; plain text continues the line before it.
    fn dependency(&mut self, line: PlanLine<'a>) {
        if line.kind == LineKind::Row {
            return;
        }
        let goes_on = line.kind == LineKind::Text && !self.is_after_blank && !line.text.starts_with("**");
        let is_code = |block: &Block<'_>| block.lines.last().is_some_and(|last| last.kind == LineKind::Code);
        match self.outline.dependencies.last_mut() {
            Some(block) if block.section == self.section && goes_on && !is_code(block) => {
                block.lines.push(line);
            }
            Some(block)
                if block.section == self.section
                    && line.kind == LineKind::Code
                    && is_code(block)
                    && !opens_fence(&line) =>
            {
                block.lines.push(line);
            }
            _ => self.outline.dependencies.push(Block { section: self.section, lines: vec![line] }),
        }
    }
}

fn extended(lines: &Range<usize>, at: usize) -> Range<usize> {
    if lines.end == at || lines.is_empty() { lines.start..at + 1 } else { lines.clone() }
}
