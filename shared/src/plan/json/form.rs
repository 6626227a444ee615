//! The tree file as it is written. Its JSON Schema is made from these types.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::plan::{Mark, Plan, Task, TestCommand, TestKind};

/// A plan: a tree of tasks with their dependencies.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "git arborist: task tree")]
pub struct TreeDocument {
    /// Every task and every phase, by its id.
    #[schemars(with = "std::collections::BTreeMap<String, NodeDocument>")]
    nodes: Map<String, Value>,
    /// The nodes without a parent, in order.
    root_ids: Vec<String>,
    /// The tasks to work on, in an order that respects every dependency.
    execution_order: Vec<String>,
    /// The files that the plan was made from.
    spec_files: Vec<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    extra: Map<String, Value>,
}

/// A task, or a phase if it has children.
#[derive(Debug, Serialize, JsonSchema)]
struct NodeDocument {
    /// The id, the same as the key.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    id: String,
    /// One line.
    name: String,
    /// The description.
    description: String,
    /// The phase that it belongs to; null for a root.
    parent: Option<String>,
    /// What belongs to it, in order.
    children: Vec<String>,
    /// What it waits for. A phase stands for all its tasks.
    depends_on: Vec<String>,
    /// How it is tested; on a phase, what runs when its last task is done.
    test_commands: Vec<TestDocument>,
    /// The file that it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_file: Option<String>,
    /// Its line there, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_line: Option<usize>,
    /// Whether it may run beside its neighbours.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    parallel: bool,
    /// Whether it writes tests that must fail until a later task makes them pass.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    red: bool,
    /// Protected paths that it may change, as pathspecs; `fewer-tests` if fewer tests may run after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<OneOrMore>,
    /// Whether it is skipped.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    skipped: bool,
    /// What the plan says about its progress; without it, `todo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<Mark>,
    /// Labels, such as the user story.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    tags: Vec<String>,
    /// Paths that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    files: Vec<String>,
    /// The runner, if not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<String>,
    /// The model, if not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The repository or repositories of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    repo: Option<OneOrMore>,
    /// What the `shell` runner runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    extra: Map<String, Value>,
}

/// One text, or a list of them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn of(texts: &[String]) -> Option<Self> {
        match texts {
            [] => None,
            [one] => Some(Self::One(one.clone())),
            more => Some(Self::More(more.to_vec())),
        }
    }
}

/// A test command.
#[derive(Debug, Serialize, JsonSchema)]
struct TestDocument {
    /// What it covers.
    #[serde(rename = "type")]
    kind: TestKind,
    /// The command line, for a shell.
    command: String,
    /// The test framework, such as `pytest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    framework: Option<String>,
    /// Time limit in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    #[serde(flatten)]
    #[schemars(skip)]
    extra: Map<String, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn texts<'a, T: ToString + 'a>(items: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    items.into_iter().map(ToString::to_string).collect()
}

impl From<&Plan> for TreeDocument {
    fn from(plan: &Plan) -> Self {
        let node = |task: &Task| serde_json::to_value(NodeDocument::from(task)).unwrap_or_default();
        Self {
            nodes: plan.tasks.iter().map(|task| (task.id.to_string(), node(task))).collect(),
            root_ids: texts(plan.roots().map(|task| &task.id)),
            execution_order: texts(plan.order().iter().map(|task| &task.id)),
            spec_files: plan.spec_files.clone(),
            extra: plan.extra.clone(),
        }
    }
}

impl From<&Task> for NodeDocument {
    fn from(task: &Task) -> Self {
        let mark = Some(task.mark).filter(|mark| !matches!(mark, Mark::Todo | Mark::Skipped));
        Self {
            id: task.id.to_string(),
            name: task.name.clone(),
            description: task.description.clone(),
            parent: task.parent.as_ref().map(ToString::to_string),
            children: texts(&task.children),
            depends_on: texts(&task.depends_on),
            test_commands: task.test_commands.iter().map(TestDocument::from).collect(),
            source_file: task.source.as_ref().map(|source| source.file.clone()),
            source_line: task.source.as_ref().map(|source| source.line),
            parallel: task.parallel,
            red: task.red,
            allow: OneOrMore::of(&task.allow),
            skipped: task.mark == Mark::Skipped,
            mark,
            tags: task.tags.clone(),
            files: task.files.clone(),
            runner: task.runner.clone(),
            model: task.model.clone(),
            repo: OneOrMore::of(&task.repos),
            command: task.command.clone(),
            extra: task.extra.clone(),
        }
    }
}

impl From<&TestCommand> for TestDocument {
    fn from(test: &TestCommand) -> Self {
        Self {
            kind: test.kind,
            command: test.command.clone(),
            framework: test.framework.clone(),
            timeout: test.timeout,
            extra: test.extra.clone(),
        }
    }
}
