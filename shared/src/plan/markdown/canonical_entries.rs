//! From the outline of a file to its tasks: decides which entries are tasks, and joins those that speak of the same one. Of a heading
//! "### T001: Add the table" and a box "- [ ] T001 Add the table", one becomes the canonical entry and takes over what the other says.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    entry::{Form, ListIntro, TaskEntry, Why},
    id_assignment::{UniqueIds, stable_hash, virtual_id},
    ids,
    mixed_forms::{classify_bullets, classify_rows, counted_sections},
    outline::{Checks, Outline},
    section::{HeadingSection, is_dependencies, phase_label},
    status::{is_status_label, status_mark},
    task_line::ALLOW,
    taskless_sections::{
        has_word, is_check_list, is_for_later, is_history, is_of_legend, is_only_checks, is_summary,
        is_work_list,
    },
};
use crate::{
    message::is_mistyped,
    name::TaskId,
    plan::{Mark, text::SpecFile},
};

/// For each entry, the entry that stands for its task; `None` if it is no task.
pub(super) type CanonicalEntry = Vec<Option<usize>>;

/// Decides which entries are tasks, gives every task an id of its own, and drops from the unread lines what only
/// repeats a task.
pub(super) fn find_canonical(file: &SpecFile<'_>, outline: &mut Outline<'_>) -> CanonicalEntry {
    let form = main_form(outline);
    let groups = headings_that_count_groups(file, outline);
    let mut is_task = main_entries(file, outline, form);
    groups.into_iter().for_each(|at| is_task[at] = false);
    name_equal_boxes(outline, &is_task);
    let mut canonical: CanonicalEntry = vec![None; outline.entries.len()];
    let mut first: HashMap<String, usize> = HashMap::with_capacity(outline.entries.len());
    let mut names: Option<UniqueIds> = None;
    for at in 0..outline.entries.len() {
        if !is_task[at] {
            continue;
        }
        let found = *first.entry(outline.entries[at].id.folded()).or_insert(at);
        canonical[at] = Some(found);
        if found != at && !is_reference(outline, found, at) {
            canonical[at] = Some(at);
            let names = names
                .get_or_insert_with(|| UniqueIds::with_taken(outline.entries.iter().map(|entry| &entry.id)));
            if let Some(renamed) = names.name(outline.entries[at].id.as_str()) {
                first.insert(renamed.folded(), at);
                rename_duplicate(file, outline, found, at, renamed);
            }
        }
    }
    for (at, found) in canonical.iter().enumerate() {
        if let Some(found) = found.filter(|found| *found != at) {
            is_task[at] = false;
            merge(outline, found, at);
        }
    }
    take_listed_marks(outline, &is_task, &first);
    if !outline.unread.is_empty() {
        let ids: HashSet<TaskId> =
            canonical.iter().flatten().map(|found| outline.entries[*found].id.clone()).collect();
        forget_repetitions(outline, form, &ids);
    }
    outline.entries.iter_mut().for_each(mark_by_text);
    warn_of_mistyped_permits(file, outline, &is_task);
    canonical
}

/// Tags are free text. Only one that is close to `[allow:PATH]` is a mistake: the task would not get what it needs.
fn warn_of_mistyped_permits(file: &SpecFile<'_>, outline: &mut Outline<'_>, is_task: &[bool]) {
    let key = ALLOW.trim_end_matches(':');
    let tasks = outline.entries.iter().zip(is_task).filter(|(_, is_task)| **is_task);
    let mistyped = tasks.flat_map(|(entry, _)| {
        let last = marks_at_end(entry.text.lines().next().unwrap_or_default());
        let tags = entry.tags.iter().map(String::as_str).chain(last);
        tags.filter_map(move |tag| {
            let (typed, path) = tag.split_once(':')?;
            let typed = typed.trim().to_lowercase();
            let is_permit = typed != key && is_mistyped(&typed, key);
            let is_need = typed == "dependson";
            let meant = if is_permit { key } else { "depends" };
            (is_permit || is_need).then(|| {
                let what = format!("the tag '[{tag}]' of '{}' has no meaning", entry.id);
                file.problem(entry.at, what, format!("did you mean '[{meant}:{}]'?", path.trim()))
            })
        })
    });
    let mistyped: Vec<_> = mistyped.collect();
    outline.warnings.extend(mistyped);
}

/// What is in the brackets at the end of a line.
fn marks_at_end(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (before, mark) = rest.trim_end().strip_suffix(']')?.rsplit_once('[')?;
        rest = before;
        Some(mark)
    })
}

/// Headings whose ids count groups of boxes, while the boxes count tasks with the same ids: "### T002: Environment" beside the box
/// `T002` below "### T001: Structure". Such headings become plain sections; what a sentence calls `T002` is the box.
fn headings_that_count_groups(file: &SpecFile<'_>, outline: &mut Outline<'_>) -> Vec<usize> {
    const FEWEST: usize = 2;
    let of_form = |form: Form| outline.entries.iter().filter(move |entry| entry.form == form);
    let headings: HashSet<&TaskId> = of_form(Form::Heading).map(|entry| &entry.id).collect();
    let heading_above = |entry: &TaskEntry| {
        let mut chain = outline.chain(entry.section);
        chain.find_map(|at| outline.sections[at].task)
    };
    let is_below_another =
        |entry: &&TaskEntry| heading_above(entry).is_some_and(|at| outline.entries[at].id != entry.id);
    let clashes = of_form(Form::Box).filter(|entry| headings.contains(&entry.id)).filter(is_below_another);
    if clashes.count() < FEWEST {
        return Vec::new();
    }
    let groups: Vec<usize> =
        (0..outline.entries.len()).filter(|at| outline.entries[*at].form == Form::Heading).collect();
    for section in &mut outline.sections {
        if let Some(task) = section.task.take() {
            section.text.insert_str(0, &outline.entries[task].text);
        }
    }
    let what = "headings and boxes have the same ids for different tasks; the boxes are taken as the tasks";
    let fix = "give the headings names without ids";
    outline.warnings.extend(groups.first().map(|at| file.problem(outline.entries[*at].at, what, fix)));
    groups
}

/// Boxes with ids and headings go before rows, rows before boxes and items of which only one has what a task needs.
fn main_form(outline: &Outline<'_>) -> Form {
    let count = |form: Form| outline.entries.iter().filter(|entry| entry.form == form).count();
    if count(Form::Box) + count(Form::Heading) > 0 {
        Form::Box
    } else if count(Form::Row) > 0 && !(is_overview(outline) && count(Form::Plain) > count(Form::Row)) {
        Form::Row
    } else if count(Form::Plain) > 0 && count(Form::Plain) >= count(Form::Bullet) {
        Form::Plain
    } else {
        Form::Bullet
    }
}

/// Whether no row has an id like `T001`. Beside a longer list of boxes, a table of numbers or of ids like `A1` only gives an overview.
fn is_overview(outline: &Outline<'_>) -> bool {
    let mut rows = outline.entries.iter().filter(|entry| entry.form == Form::Row);
    rows.all(|entry| ids::lettered(entry.id.as_str()).is_none())
}

/// Which entries are tasks by their form. Notes the others as numbers or checks.
fn main_entries(file: &SpecFile<'_>, outline: &mut Outline<'_>, form: Form) -> Vec<bool> {
    let is_main = |entry: &TaskEntry| entry.form == form || form == Form::Box && entry.form == Form::Heading;
    let has_letters =
        outline.entries.iter().any(|entry| is_main(entry) && !entry.is_unnamed && !entry.is_numeric());
    let counted = counted_sections(outline, is_main);
    let is_number = |entry: &TaskEntry| {
        let is_counted = entry.parent.is_none() && counted.contains(&entry.section);
        has_letters && !entry.is_unnamed && entry.is_numeric() && !is_counted
    };
    let mut is_task: Vec<bool> =
        outline.entries.iter().map(|entry| is_main(entry) && !is_number(entry)).collect();
    let numbers: Vec<_> = outline.entries.iter().filter(|entry| is_main(entry) && is_number(entry)).collect();
    let numbers: Vec<_> = numbers.iter().map(|entry| (entry.at, None, Why::Number)).collect();
    outline.unread.extend(numbers);
    classify_plain_boxes(file, outline, form, &mut is_task);
    classify_bullets(outline, form, &mut is_task);
    classify_rows(outline, form, &mut is_task);
    is_task
}

/// What a box without an id is. In doubt it is reported once for each section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Meaning {
    Task,
    /// A task in a section without ids beside sections with ids: who wrote it may have forgotten the ids.
    LikelyTask,
    Check,
    /// Nothing says that it is a check, but it is not where tasks are either.
    LikelyCheck,
}

impl Meaning {
    fn is_task(self) -> bool {
        matches!(self, Self::Task | Self::LikelyTask)
    }
}

/// Tells tasks from checks among the boxes without ids.
struct PlainBoxes<'o, 'a> {
    outline: &'o Outline<'a>,
    form: Form,
    /// Sections that hold boxes with ids.
    with_ids: HashSet<Option<usize>>,
    /// Sections that hold tasks with ids, in themselves or below.
    with_tasks: HashSet<usize>,
    /// Sections that tell what at least two marks mean.
    legends: HashSet<Option<usize>>,
    /// Whether "Migration checklist" is a list of tasks.
    reads_work_lists: bool,
}

impl PlainBoxes<'_, '_> {
    fn chain(&self, section: Option<usize>) -> impl Iterator<Item = &HeadingSection> {
        self.outline.sections_around(section)
    }

    /// In a file without ids every box is a task that no check list holds. Beside tasks with ids, it is a task in their
    /// list, in a phase of its own, and in any other section that is not about something else.
    fn meaning(&self, entry: &TaskEntry) -> Meaning {
        let is_check =
            entry.lead == ListIntro::Checks || self.is_in_checks(entry.section) || self.is_of_legend(entry);
        match self.form {
            Form::Plain if is_check => Meaning::Check,
            Form::Plain => Meaning::Task,
            _ if is_check || self.chain(entry.section).any(|section| section.task.is_some()) => {
                Meaning::Check
            }
            Form::Box => self.beside_ids(entry),
            _ => Meaning::LikelyCheck,
        }
    }

    /// Whether a section is a list of checks, or is in one. "UI verification" below "Verification tasks" is none.
    fn is_in_checks(&self, section: Option<usize>) -> bool {
        for section in self.chain(section) {
            if self.reads_work_lists && is_work_list(&section.title) {
                return false;
            }
            if is_only_checks(&section.title) {
                return true;
            }
            if has_word(&section.title, &["task", "tasks"]) {
                return false;
            }
        }
        self.chain(section).any(|section| is_check_list(&section.title))
    }

    /// A legend names at least two states.
    fn is_of_legend(&self, entry: &TaskEntry) -> bool {
        is_of_legend(&entry.text) && self.legends.contains(&entry.section)
    }

    fn is_in_work_list(&self, entry: &TaskEntry) -> bool {
        self.chain(entry.section).any(|section| is_work_list(&section.title))
    }

    fn beside_ids(&self, entry: &TaskEntry) -> Meaning {
        let is_aside = |section: &HeadingSection| {
            is_summary(&section.title) || is_history(&section.title) || is_for_later(&section.title)
        };
        if self.with_ids.contains(&entry.section) {
            return if entry.lead == ListIntro::None { Meaning::Task } else { Meaning::LikelyCheck };
        }
        if entry.section.is_some_and(|at| self.with_tasks.contains(&at)) {
            return Meaning::LikelyCheck;
        }
        if entry.section.is_some_and(|at| phase_label(&self.outline.sections[at].title).is_some()) {
            return Meaning::Task;
        }
        // "External dependencies" lists what must be there.
        if self.chain(entry.section).any(|section| is_dependencies(&section.title)) {
            return Meaning::Check;
        }
        if self.chain(entry.section).any(is_aside) { Meaning::LikelyCheck } else { Meaning::LikelyTask }
    }
}

fn classify_plain_boxes(file: &SpecFile<'_>, outline: &mut Outline<'_>, form: Form, is_task: &mut [bool]) {
    let tasks = || outline.entries.iter().zip(&*is_task).filter(|(_, is_task)| **is_task);
    let mut boxes = PlainBoxes {
        outline,
        form,
        with_ids: tasks()
            .filter(|(entry, _)| entry.form == Form::Box)
            .map(|(entry, _)| entry.section)
            .collect(),
        with_tasks: tasks().flat_map(|(entry, _)| outline.chain(entry.section)).collect(),
        legends: legends(outline),
        reads_work_lists: false,
    };
    let plain = (0..outline.entries.len()).filter(|at| outline.entries[*at].form == Form::Plain);
    let plain: Vec<usize> = plain.collect();
    let meanings = |boxes: &PlainBoxes<'_, '_>| -> Vec<(usize, Meaning)> {
        plain.iter().map(|at| (*at, boxes.meaning(&outline.entries[*at]))).collect()
    };
    let mut meant = meanings(&boxes);
    let others = meant.iter().filter(|(_, meaning)| meaning.is_task()).count();
    let listed = plain.iter().filter(|at| boxes.is_in_work_list(&outline.entries[**at])).count();
    if form == Form::Plain && listed > others {
        boxes.reads_work_lists = true;
        meant = meanings(&boxes);
    }
    // A file that is nothing but check lists is a plan all the same.
    if form == Form::Plain && !meant.iter().any(|(_, meaning)| meaning.is_task()) {
        meant.iter_mut().for_each(|(_, meaning)| *meaning = Meaning::Task);
    }
    for (at, meaning) in &meant {
        is_task[*at] = meaning.is_task();
        if !meaning.is_task() {
            note_check(outline, *at);
        }
    }
    warn_of_guesses(file, outline, &meant);
}

fn legends(outline: &Outline<'_>) -> HashSet<Option<usize>> {
    let mut count: HashMap<Option<usize>, usize> = HashMap::new();
    let states =
        outline.entries.iter().filter(|entry| entry.form == Form::Plain && is_of_legend(&entry.text));
    states.for_each(|entry| *count.entry(entry.section).or_default() += 1);
    count.into_iter().filter(|(_, count)| *count > 1).map(|(section, _)| section).collect()
}

/// Tells once for each section what its boxes were taken for, where that is a guess.
fn warn_of_guesses(file: &SpecFile<'_>, outline: &mut Outline<'_>, meant: &[(usize, Meaning)]) {
    let mut doubts: BTreeMap<(Option<usize>, bool), (usize, usize)> = BTreeMap::new();
    for (at, meaning) in meant {
        if matches!(meaning, Meaning::LikelyTask | Meaning::LikelyCheck) {
            let section = outline.entries[*at].section;
            doubts.entry((section, meaning.is_task())).or_insert((*at, 0)).1 += 1;
        }
    }
    for ((section, is_task), (first, count)) in doubts {
        let title = section.map_or("the top", |at| outline.sections[at].title.as_str());
        let boxes = if count == 1 { "1 box".to_owned() } else { format!("{count} boxes") };
        let kind = if is_task { "tasks" } else { "checks" };
        let what = format!("{boxes} without ids under '{title}' taken as {kind}");
        let fix = if is_task {
            "give them ids, or call the section a checklist"
        } else {
            "give them ids, if they are meant as tasks"
        };
        outline.warnings.push(file.problem(outline.entries[first].at, what, fix));
    }
}

/// A check is kept as a note of its section, and counted.
fn note_check(outline: &mut Outline<'_>, at: usize) {
    let entry = &outline.entries[at];
    let (section, place) = (entry.section, entry.at);
    let line = format!("- [{}] {}\n", if entry.mark.is_settled() { 'x' } else { ' ' }, entry.text);
    if let Some(section) = section {
        outline.sections[section].text.push_str(&line);
    }
    match outline.checks.last_mut().filter(|checks| checks.section == section) {
        Some(checks) => checks.count += 1,
        None => outline.checks.push(Checks { section, at: place, count: 1 }),
    }
}

/// Boxes get ids from their texts if they have none, or numbers that start over in each section. Where several have the
/// same text, each id also depends on the text around its box: else the second would take the id of the first when that is
/// edited, and with it all that was done for it.
fn name_equal_boxes(outline: &mut Outline<'_>, is_task: &[bool]) {
    let mut numbers: HashMap<TaskId, usize> = HashMap::new();
    let is_number = |entry: &TaskEntry| entry.form == Form::Box && entry.is_numeric();
    for (entry, _) in
        outline.entries.iter().zip(is_task).filter(|(entry, is_task)| **is_task && is_number(entry))
    {
        *numbers.entry(entry.id.clone()).or_default() += 1;
    }
    let is_repeated =
        |entry: &TaskEntry| is_number(entry) && numbers.get(&entry.id).is_some_and(|count| *count > 1);
    let wanted = |entry: &TaskEntry| {
        let is_named_by_text = entry.form == Form::Plain || is_repeated(entry);
        is_named_by_text.then(|| virtual_id(entry.text.lines().next().unwrap_or_default()))
    };
    let wanted: Vec<Option<String>> = outline.entries.iter().map(wanted).collect();
    let mut count: HashMap<&String, usize> = HashMap::new();
    wanted.iter().flatten().for_each(|wanted| *count.entry(wanted).or_default() += 1);
    if wanted.iter().all(Option::is_none) {
        return;
    }
    let others = outline.entries.iter().zip(&wanted).filter(|(_, wanted)| wanted.is_none());
    let mut names = UniqueIds::with_taken(others.map(|(entry, _)| &entry.id));
    for (at, wanted) in wanted.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        let name = if count[wanted] > 1 {
            format!("{wanted}-{:04x}", surroundings(outline, at))
        } else {
            wanted.clone()
        };
        if let Some(id) = names.name(&name) {
            outline.entries[at].id = id;
        }
    }
}

/// A number for the heading above a box and the box before it.
fn surroundings(outline: &Outline<'_>, at: usize) -> u32 {
    let section = outline.entries[at].section;
    let title = section.map_or("", |section| outline.sections[section].title.as_str());
    let before = at.checked_sub(1).map(|before| &outline.entries[before]);
    let before = before.filter(|before| before.section == section).map_or("", |before| before.text.as_str());
    let hash = stable_hash(&format!("{title}\n{}", before.lines().next().unwrap_or_default()));
    (hash ^ hash >> 16) & 0xffff
}

/// A known id in another form, in a summary, or with the same words is the same task.
fn is_reference(outline: &Outline<'_>, first: usize, other: usize) -> bool {
    let (one, two) = (&outline.entries[first], &outline.entries[other]);
    let mut titles = outline.sections_around(two.section);
    let words = |entry: &TaskEntry| entry.text.lines().next().unwrap_or_default().trim().to_lowercase();
    one.id == two.id
        && (one.form != two.form
            || titles.any(|section| is_summary(&section.title))
            || words(one) == words(two))
}

/// Two tasks with one id: the second gets a suffix.
fn rename_duplicate(
    file: &SpecFile<'_>,
    outline: &mut Outline<'_>,
    first: usize,
    other: usize,
    renamed: TaskId,
) {
    let id = outline.entries[other].id.clone();
    let (line, place) = (file.line_of(outline.entries[other].at), outline.entries[other].at);
    let above = file.line_of(outline.entries[first].at);
    let what = format!("the id '{id}' is already used on line {above}; this task gets the id '{renamed}'");
    outline.warnings.push(file.problem(place, what, "give one of the two another id"));
    let others = outline.duplicates.entry(outline.entries[first].id.clone()).or_default();
    others.push((renamed.clone(), line));
    outline.entries[other].id = renamed;
}

/// A list of boxes beside headings that tell more: one task, told in two places.
fn merge(outline: &mut Outline<'_>, found: usize, other: usize) {
    let text = std::mem::take(&mut outline.entries[other].text);
    let (mark, mark_at, steps, form) = {
        let other = &outline.entries[other];
        (other.mark, other.mark_at, other.steps, other.form)
    };
    let entry = &mut outline.entries[found];
    if entry.mark_at.is_none() && mark_at.is_some() {
        (entry.mark, entry.mark_at) = (mark, mark_at);
    }
    if entry.form == form {
        return;
    }
    entry.steps = (entry.steps.0 + steps.0, entry.steps.1 + steps.1);
    if !entry.text.contains(&text) {
        entry.append_line(&text);
    }
}

/// Rows "| DB-1 | Model | Done |" and items "✅ DB-1" that repeat a heading tell how far its task is.
fn take_listed_marks(outline: &mut Outline<'_>, is_task: &[bool], first: &HashMap<String, usize>) {
    for at in (0..outline.entries.len()).filter(|at| !is_task[*at]) {
        let entry = &outline.entries[at];
        let is_list = matches!(entry.form, Form::Row | Form::ListedRow | Form::Bullet);
        let (mark, mark_at) = (entry.mark, entry.mark_at);
        let found = Some(entry).filter(|_| is_list).and_then(|entry| first.get(&entry.id.folded()));
        let Some(task) = found.map(|found| &mut outline.entries[*found]) else { continue };
        if task.form == Form::Heading && task.mark_at.is_none() && task.mark == Mark::Todo {
            (task.mark, task.mark_at) = (mark, mark_at);
        }
    }
}

fn forget_repetitions(outline: &mut Outline<'_>, form: Form, ids: &HashSet<TaskId>) {
    let is_known = |id: &str| id.parse::<TaskId>().is_ok_and(|id| ids.contains(&id));
    outline.unread.retain(|(_, id, why)| match (why, form) {
        (Why::Row, Form::Row) | (Why::NoBox, Form::Bullet) => false,
        _ => !id.as_deref().is_some_and(is_known),
    });
    outline.unread.sort_by_key(|(at, ..)| *at);
}

/// A heading has no box: a line "Status: ✅ DONE" or its boxes without ids tell how far it is.
fn mark_by_text(entry: &mut TaskEntry) {
    /// Longer labels are sentences.
    const LONGEST: usize = 24;
    if entry.form != Form::Heading || entry.mark_at.is_some() || entry.mark != Mark::Todo {
        return;
    }
    let status = entry.text.lines().find_map(|line| {
        let line = line.trim_start_matches(['*', '_', '-', '>', ' ']);
        let (label, status) = line.split_once([':', '：']).filter(|(label, _)| label.len() <= LONGEST)?;
        is_status_label(label).then(|| status.trim_matches(['*', '_', ' ']))
    });
    entry.mark = match (status, entry.steps) {
        (Some(status), _) => status_mark(status),
        (None, (0, _)) => Mark::Todo,
        (None, (done, all)) if done == all => Mark::Done,
        (None, _) => Mark::Partial,
    };
}
