//! task-master's `tasks.json`: a list of tasks with subtasks and statuses, perhaps one list for each tag.

use jsonc_parser::ast::{Object, Value};

use super::fields::{Fields, Keys, PlacedId};
use crate::plan::{
    Mark, Plan, PlanError, Task, TaskSource,
    assemble::{DraftNeed, DraftNode, PlanDraft, SourcePlace, assemble, wrong},
    text::{Offset, SpecFile},
};

/// The tag whose tasks are meant when a file has several and none is named.
const MAIN_TAG: &str = "master";

const KEYS: Keys = Keys {
    known: &[
        "id", "title", "description", "details", "testStrategy", "status", "dependencies", "subtasks",
        // These are task-master's too, and nothing follows from them here.
        "priority", "complexity", "effort", "assignee", "metadata",
    ],
    foreign: &[
        ("dependson", "dependencies"),
        ("depends", "dependencies"),
        ("blockedby", "dependencies"),
        ("name", "title"),
        ("children", "subtasks"),
    ],
};

/// The list of tasks in a file of this kind.
pub(super) fn find_list<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Value<'a>> {
    let object = value.as_object()?;
    let list = |object: &'v Object<'a>| object.get("tasks").map(|property| &property.value);
    list(object).filter(|list| list.as_array().is_some()).or_else(|| {
        let tags =
            object.properties.iter().filter_map(|tag| Some((tag.name.as_str(), tag.value.as_object()?)));
        let mut lists = tags.filter_map(|(name, tag)| Some((name, list(tag)?)));
        let first = lists.next()?;
        if first.0 == MAIN_TAG {
            return Some(first.1);
        }
        Some(lists.find(|(name, _)| *name == MAIN_TAG).unwrap_or(first).1)
    })
}

pub(super) fn read<'a>(file: SpecFile<'a>, list: &Value<'a>, start: Offset) -> Result<Plan, PlanError> {
    let mut reader = Reader { fields: Fields::new(file, start), drafts: Vec::new() };
    for item in reader.fields.list("tasks", list) {
        reader.item(item, None);
    }
    let Reader { fields: Fields { file, problems, mistakes, .. }, drafts } = reader;
    let files = [file];
    if !problems.is_empty() {
        return Err(wrong(&files, problems, Vec::new()));
    }
    if drafts.is_empty() {
        let problem = files[0].problem(start, "no tasks were found", "add a task to 'tasks'");
        return Err(wrong(&files, vec![problem], Vec::new()));
    }
    let mut plan = assemble(&files, PlanDraft { drafts, ..PlanDraft::default() })?;
    plan.mistakes = mistakes;
    Ok(plan)
}

struct Reader<'a> {
    fields: Fields<'a>,
    drafts: Vec<DraftNode>,
}

/// What one task says, before its id is known to be one.
#[derive(Default)]
struct Item<'v, 'a> {
    id: Option<PlacedId>,
    /// Whether there is an id, valid or not. An id that is not valid was reported already.
    has_id: bool,
    needs: Vec<PlacedId>,
    subtasks: &'v [Value<'a>],
}

impl<'a> Reader<'a> {
    /// Reads a task and its subtasks. Subtask 2 of task 5 has the id `5.2`.
    fn item(&mut self, value: &Value<'a>, parent: Option<&Task>) {
        let Some(object) = self.fields.object_named("a task", value) else { return };
        let prefix = parent.map(|parent| format!("{}.", parent.id)).unwrap_or_default();
        let Ok(mut task) = "0".parse().map(|id| Task::new(id, "")) else { return };
        let mut item = Item::default();
        for (key, value) in self.fields.pairs(object) {
            self.take(key, value, &mut task, &mut item, &prefix);
        }
        let Some((id, place)) = item.id else {
            if item.has_id {
                return;
            }
            let place = self.fields.place(object);
            return self.fields.wrong(place, "a task has no 'id'", "give it an id, such as 7 or T001");
        };
        task.id = id;
        if task.name.trim().is_empty() {
            let what = format!("the task '{}' has no title", task.id);
            self.fields.doubt(place, what, "give it a 'title'");
        }
        task.parent = parent.map(|parent| parent.id.clone());
        let line = self.fields.file.line_of(place.at);
        task.source = Some(TaskSource { file: self.fields.file.label.to_owned(), line, mark_at: None });
        self.drafts.push(DraftNode {
            task: task.clone(),
            place,
            needs: item.needs.into_iter().map(DraftNeed::stated).collect(),
        });
        item.subtasks.iter().for_each(|subtask| self.item(subtask, Some(&task)));
    }

    fn take<'v>(
        &mut self,
        key: &str,
        value: &'v Value<'a>,
        task: &mut Task,
        item: &mut Item<'v, 'a>,
        prefix: &str,
    ) {
        match key {
            "id" => (item.has_id, item.id) = (true, self.number(value, prefix)),
            "title" => task.name = self.fields.text(key, value).unwrap_or_default(),
            "description" | "details" | "testStrategy" => {
                let text = self.fields.text(key, value).unwrap_or_default();
                if !task.description.is_empty() && !text.is_empty() {
                    task.description.push_str("\n\n");
                }
                task.description.push_str(&text);
            }
            "status" => task.mark = status(&self.fields.text(key, value).unwrap_or_default()),
            "dependencies" => {
                let needs = self.fields.list(key, value).iter();
                item.needs = needs.filter_map(|need| self.number(need, prefix)).collect();
            }
            "subtasks" => item.subtasks = self.fields.list(key, value),
            _ => self.fields.keep(&mut task.extra, key, value, &KEYS),
        }
    }

    /// An id: a number, or a text; within subtasks a bare number means a sibling.
    fn number(&mut self, value: &Value<'_>, prefix: &str) -> Option<PlacedId> {
        let place: SourcePlace = self.fields.place(value);
        let text = match value {
            Value::NumberLit(number) => number.value.to_owned(),
            _ => self.fields.text("id", value)?,
        };
        let full = if text.contains('.') { text } else { format!("{prefix}{text}") };
        match full.parse() {
            Ok(id) => Some((id, place)),
            Err(error) => {
                let error: crate::name::NameError = error;
                self.fields.wrong(
                    place,
                    error.to_string(),
                    "use letters, digits, '.', '_' and '-', such as 7 or T001",
                );
                None
            }
        }
    }
}

fn status(word: &str) -> Mark {
    match word {
        "done" | "completed" => Mark::Done,
        "cancelled" | "deferred" => Mark::Skipped,
        "in-progress" | "review" => Mark::Partial,
        "blocked" => Mark::Blocked,
        _ => Mark::Todo,
    }
}
