//! The plan as a picture: text for Mermaid and for Graphviz.

use std::{collections::HashMap, fmt::Write};

use arborist_core::{
    message::plain_line,
    name::TaskId,
    plan::{Plan, Task},
};

/// Nodes by number, because ids may hold what the languages of pictures do not take.
struct Numbers<'a>(HashMap<&'a TaskId, usize>);

impl<'a> Numbers<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self(plan.tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect())
    }

    fn of(&self, id: &TaskId) -> usize {
        self.0.get(id).copied().unwrap_or_default()
    }
}

/// A step of a walk through the tree.
enum Step<'a> {
    Enter(&'a Task),
    Leave,
}

/// Goes through the tree; phases are entered and left, leaves only entered.
fn walk<'a>(plan: &'a Plan, mut visit: impl FnMut(&Step<'a>, usize)) {
    let mut open: Vec<(Step<'a>, usize)> = plan.roots().map(|task| (Step::Enter(task), 1)).collect();
    open.reverse();
    while let Some((step, depth)) = open.pop() {
        visit(&step, depth);
        let Step::Enter(task) = step else { continue };
        if !task.is_leaf() {
            open.push((Step::Leave, depth));
        }
        let children = task.children.iter().rev().filter_map(|id| plan.find(id));
        open.extend(children.map(|child| (Step::Enter(child), depth + 1)));
    }
}

fn label(task: &Task) -> String {
    let name: String = task.name.chars().take(60).collect();
    let text = if task.is_leaf() { format!("{} {name}", task.id) } else { name };
    plain_line(&text)
}

/// A flowchart for Mermaid.
pub(super) fn mermaid(plan: &Plan) -> String {
    let numbers = Numbers::new(plan);
    let escaped = |task: &Task| label(task).replace('"', "#quot;").replace(['<', '>'], "'");
    let mut text = String::from("flowchart TD\n");
    walk(plan, |step, depth| {
        let indent = "  ".repeat(depth);
        let _ = match step {
            Step::Enter(task) if task.is_leaf() => {
                let class = if task.mark.is_settled() { ":::settled" } else { "" };
                writeln!(text, "{indent}n{}[\"{}\"]{class}", numbers.of(&task.id), escaped(task))
            }
            Step::Enter(task) => {
                writeln!(text, "{indent}subgraph n{}[\"{}\"]", numbers.of(&task.id), escaped(task))
            }
            Step::Leave => writeln!(text, "{indent}end"),
        };
    });
    for task in &plan.tasks {
        for need in &task.depends_on {
            let _ = writeln!(text, "  n{} --> n{}", numbers.of(need), numbers.of(&task.id));
        }
    }
    text.push_str("  classDef settled opacity:0.5\n");
    text
}

/// A graph for Graphviz.
pub(super) fn dot(plan: &Plan) -> String {
    let numbers = Numbers::new(plan);
    let escaped = |task: &Task| label(task).replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::from("digraph plan {\n  compound=true;\n  node [shape=box];\n");
    walk(plan, |step, depth| {
        let indent = "  ".repeat(depth);
        let _ = match step {
            Step::Enter(task) if task.is_leaf() => {
                let style = if task.mark.is_settled() { ", style=dashed" } else { "" };
                writeln!(text, "{indent}n{} [label=\"{}\"{style}];", numbers.of(&task.id), escaped(task))
            }
            Step::Enter(task) => {
                let number = numbers.of(&task.id);
                writeln!(
                    text,
                    "{indent}subgraph cluster_n{number} {{\n{indent}  label=\"{}\";",
                    escaped(task)
                )
            }
            Step::Leave => writeln!(text, "{indent}}}"),
        };
    });
    for task in &plan.tasks {
        for need in task.depends_on.iter().filter_map(|id| plan.find(id)) {
            let _ = writeln!(text, "  {};", dot_edge(plan, &numbers, need, task));
        }
    }
    text.push_str("}\n");
    text
}

/// Graphviz draws edges between leaves only; the frame of a phase cuts them off.
fn dot_edge(plan: &Plan, numbers: &Numbers<'_>, from: &Task, to: &Task) -> String {
    let frame = |key: &str, task: &Task| {
        if task.is_leaf() { String::new() } else { format!("{key}=cluster_n{}", numbers.of(&task.id)) }
    };
    let (tail, head) = (last_leaf(plan, from), first_leaf(plan, to));
    let frames: Vec<String> =
        [frame("ltail", from), frame("lhead", to)].into_iter().filter(|frame| !frame.is_empty()).collect();
    let edge = format!("n{} -> n{}", numbers.of(&tail.id), numbers.of(&head.id));
    if frames.is_empty() { edge } else { format!("{edge} [{}]", frames.join(", ")) }
}

fn first_leaf<'a>(plan: &'a Plan, task: &'a Task) -> &'a Task {
    let down = |task: &&'a Task| plan.find(task.children.first()?);
    std::iter::successors(Some(task), down).last().unwrap_or(task)
}

fn last_leaf<'a>(plan: &'a Plan, task: &'a Task) -> &'a Task {
    let down = |task: &&'a Task| plan.find(task.children.last()?);
    std::iter::successors(Some(task), down).last().unwrap_or(task)
}
