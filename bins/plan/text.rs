//! The plan for people: the tree, the waves, and a few lines that sum it up.

use std::collections::BTreeMap;

use arborist_core::{
    failure::Exit,
    message::{counted, visible},
    name::TaskId,
    pipeline::find_permit_mistake,
    plan::{Mark, Plan, RedProposal, SharedFile, Task, Unread, Why},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::Format;
use crate::{
    document,
    entry::Outcome,
    ui::{Tone, Ui},
};

/// Prints the tree, in the order of the document.
pub(super) fn tree(ui: &mut Ui, plan: &Plan) {
    let mut open: Vec<(&Task, usize)> = plan.roots().map(|task| (task, 0)).collect();
    open.reverse();
    while let Some((task, depth)) = open.pop() {
        let line = if task.is_leaf() { leaf(ui, task) } else { phase(ui, task) };
        ui.line(&format!("{}{line}", "  ".repeat(depth)));
        let children = task.children.iter().rev().filter_map(|id| plan.find(id));
        open.extend(children.map(|child| (child, depth + 1)));
    }
}

fn phase(ui: &Ui, task: &Task) -> String {
    let name = ui.paint(Tone::Strong, &visible(&task.name));
    let allowed = visible(&permissions(task));
    format!("{name}{allowed} {}", ui.paint(Tone::Dim, &format!("({}{})", task.id, waits(task, ", "))))
}

fn leaf(ui: &Ui, task: &Task) -> String {
    let (mark, tone) = match task.mark {
        Mark::Todo => (" ", Tone::Strong),
        Mark::Done => ("x", Tone::Good),
        Mark::Skipped => ("-", Tone::Dim),
        Mark::Partial => ("~", Tone::Busy),
        Mark::Blocked => ("!", Tone::Bad),
    };
    let parallel = if task.parallel { " [P]" } else { "" };
    let head = ui.paint(
        tone,
        &format!("[{mark}] {}{parallel}{}{}", task.id, visible(&places(task)), visible(&permissions(task))),
    );
    let waits = match waits(task, "") {
        waits if waits.is_empty() => waits,
        waits => ui.paint(Tone::Dim, &format!("  ({waits})")),
    };
    format!("{head} {}{waits}", visible(&task.name))
}

/// The repositories that it works in, where it names any.
fn places(task: &Task) -> String {
    task.repos.iter().map(|repo| format!(" [repo:{repo}]")).collect()
}

/// What the plan permits it that other tasks may not do.
fn permissions(task: &Task) -> String {
    granted(task).map(|allowed| format!(" [allow:{allowed}]")).collect()
}

/// The permissions that a run does not refuse.
fn granted(task: &Task) -> impl Iterator<Item = &String> {
    task.allow.iter().filter(|allowed| find_permit_mistake(allowed).is_none())
}

/// The tasks that the plan permits more than others, one line each.
pub(super) fn permitted(plan: &Plan) -> Vec<String> {
    let allowed = plan.tasks.iter().filter(|task| granted(task).next().is_some());
    allowed.map(|task| visible(&format!("permitted for {}:{}", task.id, permissions(task)))).collect()
}

/// What a task waits for, after `separator`; empty if it waits for nothing.
fn waits(task: &Task, separator: &str) -> String {
    if task.depends_on.is_empty() {
        return String::new();
    }
    format!("{separator}waits for {}", joined(&task.depends_on))
}

/// Ids with commas between them, a long list cut short.
fn joined(ids: &[TaskId]) -> String {
    const MAX_IDS: usize = 8;
    let mut shown: Vec<String> = ids.iter().take(MAX_IDS).map(ToString::to_string).collect();
    if ids.len() > MAX_IDS {
        shown.push(format!("and {} more", ids.len() - MAX_IDS));
    }
    shown.join(", ")
}

/// What was read, what is done, and what looked like a task and was not taken.
pub(super) fn summary(plan: &Plan) -> Vec<String> {
    let count = |mark: Mark| plan.leaves().filter(|task| task.mark == mark).count();
    let tasks = plan.leaves().count();
    let phases = plan.tasks.len() - tasks;
    let list = |marks: &[(Mark, &str)]| -> Vec<String> {
        let counts = marks.iter().map(|(mark, word)| (count(*mark), word)).filter(|(count, _)| *count > 0);
        counts.map(|(count, word)| format!("{count} {word}")).collect()
    };
    let mut parts = list(&[(Mark::Done, "done"), (Mark::Skipped, "skipped")]);
    // Tasks with these boxes run like all others.
    let marked = list(&[(Mark::Partial, "marked partial"), (Mark::Blocked, "marked blocked")]);
    match count(Mark::Todo) + count(Mark::Partial) + count(Mark::Blocked) {
        0 => {}
        open if marked.is_empty() => parts.push(format!("{open} to do")),
        open => parts.push(format!("{open} to do ({})", marked.join(", "))),
    }
    let waves = plan.waves(|task| task.mark.is_settled()).len();
    let mut lines = vec![format!(
        "{}{}: {}{}",
        counted(tasks, "task"),
        if phases == 0 { String::new() } else { format!(" in {}", counted(phases, "phase")) },
        if parts.is_empty() { "nothing to do".into() } else { parts.join(", ") },
        match waves {
            0 => String::new(),
            1 if tasks == 1 => String::new(),
            waves => format!("; {} (the tasks of a wave can run at the same time)", counted(waves, "wave")),
        }
    )];
    lines.extend(unread(plan));
    lines
}

/// Tasks that may be meant as `[red]`, once for each place that says so.
pub(super) fn reds(plan: &Plan) -> Vec<String> {
    let mut places: BTreeMap<(&str, usize), Vec<TaskId>> = BTreeMap::new();
    for RedProposal { task, file, line } in &plan.red_proposals {
        places.entry((file, *line)).or_default().push(task.clone());
    }
    let line = |((file, line), tasks): ((&str, usize), Vec<TaskId>)| {
        format!(
            "suggested mark [red] for {}, because {file}:{line} says that their tests must fail first",
            joined(&tasks)
        )
    };
    let mut lines: Vec<String> = places.into_iter().map(line).collect();
    if let Some(RedProposal { task, .. }) = plan.red_proposals.first() {
        lines.push(format!("    {}", red_meaning(task)));
    }
    lines
}

/// What the mark does, and how it is set.
pub(super) fn red_meaning(task: &TaskId) -> String {
    format!(
        "a task marked '- [ ] {task} [red] ...' passes its test step only if its new tests fail; without the mark, nothing changes"
    )
}

/// One line for each reason, with the first place.
fn unread(plan: &Plan) -> Vec<String> {
    let mut reasons: BTreeMap<Why, (usize, String)> = BTreeMap::new();
    let checks = plan.unread.iter().filter(|unread| unread.why == Why::Check);
    let checks: Vec<String> =
        checks.map(|Unread { problem, .. }| format!("{}, line {}", problem.what, problem.line)).collect();
    for unread in plan.unread.iter().filter(|unread| unread.why != Why::Check) {
        let place = || format!("{}:{}", unread.problem.file, unread.problem.line);
        reasons.entry(unread.why).or_insert_with(|| (0, place())).0 += 1;
    }
    let line = |(why, (count, place)): (Why, (usize, String))| {
        if why == Why::Item {
            return items_without_box(plan);
        }
        format!("{}, first at {place}", why.words(count))
    };
    reasons.into_iter().map(line).chain(checks).collect()
}

/// The list items that are no tasks, with their lines.
fn items_without_box(plan: &Plan) -> String {
    const MOST: usize = 10;
    let items: Vec<&Unread> = plan.unread.iter().filter(|unread| unread.why == Why::Item).collect();
    let place = |unread: &&Unread| format!("{}:{}", unread.problem.file, unread.problem.line);
    let mut places: Vec<String> = items.iter().take(MOST).map(place).collect();
    let more = items.len().saturating_sub(MOST);
    places.extend((more > 0).then(|| format!("and {more} more")));
    format!("{} without a box are not tasks: {}", counted(items.len(), "list item"), places.join(", "))
}

/// The tasks that can run at once.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WavesDocument {
    /// The ids of each wave. It waits only for the waves before it.
    waves: Vec<Vec<TaskId>>,
    /// Tasks of one wave that name the same file.
    conflicts: Vec<SharedFile>,
}

/// Prints what can run at once.
pub(super) fn waves(ui: &mut Ui, plan: &Plan, format: Format) -> Outcome {
    let waves = plan.waves(|task| task.mark.is_settled());
    let conflicts = plan.conflicts();
    if format == Format::Json {
        let ids = |wave: &Vec<&Task>| wave.iter().map(|task| task.id.clone()).collect();
        return document::print(ui, &WavesDocument { waves: waves.iter().map(ids).collect(), conflicts });
    }
    for (at, wave) in waves.iter().enumerate() {
        ui.line(&ui.paint(Tone::Strong, &format!("wave {}, {}", at + 1, counted(wave.len(), "task"))));
        wave.iter().for_each(|task| ui.line(&format!("  {} {}", task.id, visible(&task.name))));
    }
    if waves.is_empty() {
        ui.line("nothing is left to do");
    }
    for conflict in conflicts {
        ui.warn(&format!(
            "{} may run at the same time, but name the same file '{}'",
            joined(&conflict.tasks),
            visible(&conflict.file)
        ));
    }
    Ok(Exit::Done)
}
