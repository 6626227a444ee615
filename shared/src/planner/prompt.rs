//! The prompts of the planner.

use std::fmt::Write;

use crate::plan::Problem;

/// The schema of the reply.
const SCHEMA: &str = include_str!("../../../schemas/task-tree.schema.json");

/// The prompt that asks for the tree of these specifications.
pub(super) fn task(specs: &[(&str, &[u8])]) -> String {
    let mut prompt = format!(
        "Make a plan from the specification below: a tree of tasks for coding agents, each small enough for one \
         change that can be tested and reviewed by itself.\n\
         \n\
         Read the files in the current directory where it helps, but do not change any file.\n\
         Reply with one JSON object and nothing else, by this JSON Schema:\n\
         \n\
         ```json\n{}\n```\n\
         \n\
         - Keep task ids that the specification gives; otherwise use T001, T002 and so on.\n\
         - A phase is a node with children. Only nodes without children are worked on.\n\
         - 'depends_on' names what must be done first, and nothing else: tasks without a path between them may run \
         at once. There must be no cycle.\n\
         - 'description' has everything an agent needs to know that sees only this task.\n\
         - 'test_commands' has commands that work in this repository and fail until the task is done.\n\
         - 'files' has the paths that a task will change, as far as they can be foreseen.\n",
        SCHEMA.trim_end()
    );
    for (name, content) in specs {
        let content = String::from_utf8_lossy(content);
        let _ = write!(
            prompt,
            "\n--- specification: {name} ---\n{}\n--- end of {name} ---\n",
            content.trim_end()
        );
    }
    prompt
}

/// The prompt that reports problems of the last reply.
pub(super) fn correction(object: Option<&str>, problems: &[Problem]) -> String {
    let mut prompt = String::new();
    if let Some(object) = object {
        let _ = write!(prompt, "\nYour last reply had this tree:\n\n```json\n{object}\n```\n");
    }
    prompt.push_str(
        "\nYour last reply cannot be used. What is wrong, with line and column ('reply' is the tree):\n\n",
    );
    for problem in problems {
        let _ = writeln!(prompt, "- {problem}");
        if !problem.fix.is_empty() {
            let _ = writeln!(prompt, "  to fix it: {}", problem.fix);
        }
    }
    prompt.push_str("\nReply with the whole corrected tree.\n");
    prompt
}
