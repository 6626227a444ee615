//! One node of the tree file.

use jsonc_parser::ast::Value;

use super::fields::{Fields, Keys, PlacedId};
use crate::{
    name::TaskId,
    plan::{Mark, Task, TaskSource, TestCommand, TestKind, assemble::SourcePlace},
};

const KEYS: Keys = Keys {
    known: &[
        "id", "name", "description", "parent", "children", "depends_on", "test_commands", "source_file",
        "source_line", "skipped", "mark", "parallel", "red", "allow", "tags", "files", "runner", "model",
        "repo", "command",
    ],
    foreign: &[("dependencies", "depends_on"), ("depends", "depends_on"), ("title", "name")],
};

const TEST_KEYS: Keys =
    Keys { known: &["type", "command", "framework", "timeout"], foreign: &[("cmd", "command")] };

/// A node as written, before its kin is known.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) task: Task,
    pub(super) place: SourcePlace,
    pub(super) parent: Option<PlacedId>,
    pub(super) children: Vec<PlacedId>,
    /// Whether the key `children` is there; if not, the children's own `parent` tells.
    pub(super) lists_children: bool,
    /// Whether a parent has listed it.
    pub(super) is_claimed: bool,
    pub(super) needs: Vec<PlacedId>,
    source: (Option<String>, Option<u64>),
}

impl Node {
    pub(super) fn read<'a>(
        fields: &mut Fields<'a>,
        (id, place): PlacedId,
        value: &Value<'a>,
    ) -> Option<Self> {
        let object = fields.object(id.as_str(), value)?;
        fields.node = Some(id.clone());
        let task = Task::new(id, "");
        let mut node = Self {
            task,
            place,
            parent: None,
            children: Vec::new(),
            lists_children: false,
            is_claimed: false,
            needs: Vec::new(),
            source: (None, None),
        };
        for (key, value) in fields.pairs(object) {
            node.take(fields, key, value);
        }
        node.finish();
        Some(node)
    }

    fn take<'a>(&mut self, fields: &mut Fields<'a>, key: &str, value: &Value<'a>) {
        let task = &mut self.task;
        match key {
            "id" => check_id(fields, &task.id, value),
            "name" => task.name = fields.text(key, value).unwrap_or_default(),
            "description" => task.description = fields.text(key, value).unwrap_or_default(),
            "parent" if !matches!(value, Value::NullKeyword(_)) => self.parent = fields.id(key, value),
            "children" => {
                self.lists_children = true;
                self.children = fields.ids(key, value);
            }
            "depends_on" => self.needs = fields.ids(key, value),
            "test_commands" => task.test_commands = test_commands(fields, value),
            "source_file" => self.source.0 = fields.text(key, value),
            "source_line" => self.source.1 = fields.count(key, value),
            "skipped" if fields.flag(key, value) => task.mark = Mark::Skipped,
            "mark" => {
                task.mark = fields.word(key, value, Mark::ALL, Mark::as_str).unwrap_or(task.mark);
            }
            "parallel" => task.parallel = fields.flag(key, value),
            "red" => task.red = fields.flag(key, value),
            "allow" => task.allow = fields.text_or_texts(key, value),
            "tags" => task.tags = fields.texts(key, value),
            "files" => task.files = fields.texts(key, value),
            "runner" => task.runner = fields.text(key, value),
            "model" => task.model = fields.text(key, value),
            "repo" => task.repos = fields.text_or_texts(key, value),
            "command" => task.command = fields.text(key, value),
            "parent" | "skipped" => {}
            _ => fields.keep(&mut task.extra, key, value, &KEYS),
        }
    }

    fn finish(&mut self) {
        if self.task.name.is_empty() {
            self.task.name = self.task.id.to_string();
        }
        self.task.parent = self.parent.as_ref().map(|(id, _)| id.clone());
        if let (Some(file), line) = std::mem::take(&mut self.source) {
            let line = line.and_then(|line| usize::try_from(line).ok()).unwrap_or(1);
            self.task.source = Some(TaskSource { file, line, mark_at: None });
        }
    }
}

fn check_id(fields: &mut Fields<'_>, key: &TaskId, value: &Value<'_>) {
    if value.as_string_lit().is_some_and(|id| id.value == key.as_str()) {
        return;
    }
    if let Some((id, place)) = fields.id("id", value) {
        let what = format!("the node '{key}' says that its id is '{id}'");
        fields.wrong(place, what, "use the same text for the key and the id");
    }
}

fn test_commands<'a>(fields: &mut Fields<'a>, value: &Value<'a>) -> Vec<TestCommand> {
    let list = fields.list("test_commands", value);
    list.iter().filter_map(|item| test_command(fields, item)).collect()
}

fn test_command<'a>(fields: &mut Fields<'a>, value: &Value<'a>) -> Option<TestCommand> {
    let Some(object) = value.as_object() else {
        let place = fields.place(value);
        let what = format!("an item of 'test_commands'{} must be an object", fields.of_node());
        fields.wrong(place, what, "write it as {\"command\": \"npm test\"}");
        return None;
    };
    let mut test = TestCommand::default();
    for (key, value) in fields.pairs(object) {
        match key {
            "type" => {
                test.kind = fields.word(key, value, TestKind::ALL, TestKind::as_str).unwrap_or_default();
            }
            "command" => test.command = fields.text(key, value).unwrap_or_default(),
            "framework" => test.framework = fields.text(key, value),
            "timeout" => test.timeout = fields.count(key, value),
            _ => fields.keep(&mut test.extra, key, value, &TEST_KEYS),
        }
    }
    if test.command.trim().is_empty() {
        let place = fields.place(value);
        fields.wrong(place, "a test command has no 'command'", "give a command, or remove the entry");
    }
    Some(test)
}
