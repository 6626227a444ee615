//! The tools of each repository, with their arguments.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};

use super::root::Root;

/// What a tool does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolAction {
    Read,
    Write,
    Edit,
    Search,
    /// Runs the command of this name.
    Run(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    pub(super) path: String,
    pub(super) offset: Option<usize>,
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    pub(super) path: String,
    pub(super) content: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArgs {
    pub(super) path: String,
    pub(super) old_string: String,
    pub(super) new_string: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    pub(super) pattern: String,
    pub(super) glob: Option<String>,
    #[serde(default)]
    pub(super) ignore_case: bool,
    pub(super) limit: Option<usize>,
}

/// Commands take nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArgs {}

/// The tool of this name, and what it does.
pub(super) struct Offered {
    pub(super) tool: Tool,
    pub(super) root: usize,
    pub(super) deed: ToolAction,
}

/// All tools of all repositories.
pub(super) fn offer(roots: &[Root]) -> Vec<Offered> {
    roots.iter().enumerate().flat_map(|(at, root)| tools_of(root, at)).collect()
}

fn tools_of(root: &Root, at: usize) -> Vec<Offered> {
    let name = &root.name;
    let own = |verb: &str| format!("{name}__{verb}");
    let path = json!({ "type": "string", "description": format!("Path of the file, relative to the top of {name}") });
    let text = |about: &str| json!({ "type": "string", "description": about });
    let number = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
    let reading = ToolAnnotations::new().read_only(true).open_world(false);
    let writing = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
    let replacing = writing.clone().destructive(true);
    let mut offered = Vec::new();
    let mut add = |name: String, about: String, schema: Value, annotations: &ToolAnnotations, deed| {
        let tool = Tool::new(name, about, schema_of(schema)).with_annotations(annotations.clone());
        offered.push(Offered { tool, root: at, deed });
    };
    add(
        own("read_file"),
        format!("Read a text file of the repository {name}, or some of its lines."),
        json!({ "properties": {
            "path": path,
            "offset": number("The first line to read, from 1"),
            "limit": number("How many lines to read"),
        }, "required": ["path"] }),
        &reading,
        ToolAction::Read,
    );
    add(
        own("write_file"),
        format!(
            "Write a whole file of the repository {name}, and create its folders. An existing file is replaced and keeps its mode and its line endings."
        ),
        json!({ "properties": { "path": path, "content": text("The whole content of the file") }, "required": ["path", "content"] }),
        &replacing,
        ToolAction::Write,
    );
    add(
        own("edit_file"),
        format!(
            "Replace text in a file of the repository {name}. The old text must occur in it exactly once."
        ),
        json!({ "properties": {
            "path": path,
            "old_string": text("The text to replace, exactly as in the file"),
            "new_string": text("The new text"),
        }, "required": ["path", "old_string", "new_string"] }),
        &writing,
        ToolAction::Edit,
    );
    add(
        own("search_code"),
        format!(
            "Search the files of the repository {name} with a regular expression. Ignored files are not searched."
        ),
        json!({ "properties": {
            "pattern": text("A regular expression, as in Rust and ripgrep"),
            "glob": text("Only files whose paths match, such as *.rs or src/**/*.ts"),
            "ignore_case": { "type": "boolean", "description": "Whether to ignore case" },
            "limit": number("The largest number of lines to show"),
        }, "required": ["pattern"] }),
        &reading,
        ToolAction::Search,
    );
    for (tool, command) in &root.tools {
        let about = format!(
            "Run '{}' in the repository {name}, and show its exit code and its output.",
            command.command
        );
        add(tool.of(name), about, json!({ "properties": {} }), &writing, ToolAction::Run(tool.to_string()));
    }
    offered
}

fn schema_of(mut schema: Value) -> Arc<JsonObject> {
    schema["type"] = "object".into();
    schema["additionalProperties"] = false.into();
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}
