//! From what a reader found to a plan: ids that are unique, dependencies that lead somewhere, no circles.

use std::collections::{HashMap, HashSet};

use super::{
    Basis, Plan, PlanError, Problem, Task, WaitReason,
    graph::{Flow, TreeShape},
    text::{Offset, SpecFile},
};
use crate::{message::nearest, name::TaskId};

/// A byte of one of the files of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourcePlace {
    pub(super) file: usize,
    pub(super) at: Offset,
}

/// A node as a reader found it.
#[derive(Debug)]
pub(super) struct DraftNode {
    pub(super) task: Task,
    pub(super) place: SourcePlace,
    /// What it waits for, and why. It becomes the task's `depends_on`.
    pub(super) needs: Vec<DraftNeed>,
}

/// That a node waits for another.
#[derive(Debug, Clone)]
pub(super) struct DraftNeed {
    pub(super) on: TaskId,
    /// Where that is said, or the place of the node that waits.
    pub(super) place: SourcePlace,
    pub(super) basis: Basis,
}

impl DraftNeed {
    /// What a file says in words or in a field.
    pub(super) fn stated((on, place): (TaskId, SourcePlace)) -> Self {
        Self { on, place, basis: Basis::Stated }
    }
}

/// Everything that a reader found. Drafts stand parents first, in the order of the tree, and every
/// `parent` among them is there.
#[derive(Debug, Default)]
pub(super) struct PlanDraft {
    pub(super) drafts: Vec<DraftNode>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

pub(super) fn assemble(files: &[SpecFile<'_>], found: PlanDraft) -> Result<Plan, PlanError> {
    let PlanDraft { mut drafts, mut problems, warnings } = found;
    let index = index_of(files, &drafts, &mut problems);
    check_needs(files, &drafts, &index, &mut problems);
    adopt_children(&mut drafts, &index);
    for draft in &mut drafts {
        draft.task.depends_on = once_each(&draft.needs);
    }
    match shape_of(&drafts, &index).sort() {
        Ok(flow) if problems.is_empty() => Ok(finish(files, drafts, index, flow, warnings)),
        Ok(_) => Err(wrong(files, problems, warnings)),
        Err(circle) => {
            problems.append(&mut circles(files, drafts, &index, circle));
            Err(wrong(files, problems, warnings))
        }
    }
}

/// The circles of a plan, each once: after the first, the others are looked for without the dependency that closes it.
fn circles(
    files: &[SpecFile<'_>],
    mut drafts: Vec<DraftNode>,
    index: &HashMap<TaskId, usize>,
    first: Vec<usize>,
) -> Vec<Problem> {
    /// Who has more of them sees the others with the next check; looking for each takes as long as reading the plan.
    const MAX_CYCLES: usize = 20;
    let mut found = Vec::new();
    let mut next = Some(first);
    while let Some(circle) = next.filter(|_| found.len() < MAX_CYCLES) {
        found.push(circular(files, &drafts, &circle));
        let ids: HashSet<TaskId> = circle.iter().map(|at| drafts[*at].task.id.clone()).collect();
        let before: usize = drafts.iter().map(|draft| draft.task.depends_on.len()).sum();
        for at in circle {
            drafts[at].task.depends_on.retain(|on| !ids.contains(on));
        }
        let after: usize = drafts.iter().map(|draft| draft.task.depends_on.len()).sum();
        next = if after < before { shape_of(&drafts, index).sort().err() } else { None };
    }
    found
}

fn finish(
    files: &[SpecFile<'_>],
    drafts: Vec<DraftNode>,
    index: HashMap<TaskId, usize>,
    flow: Flow,
    warnings: Vec<Problem>,
) -> Plan {
    Plan {
        reasons: drafts.iter().map(|draft| reasons(files, draft)).collect(),
        tasks: drafts.into_iter().map(|draft| draft.task).collect(),
        spec_files: files.iter().map(|file| file.label.to_owned()).collect(),
        warnings,
        mistakes: Vec::new(),
        unread: Vec::new(),
        red_proposals: Vec::new(),
        extra: serde_json::Map::new(),
        index,
        flow,
    }
}

pub(super) fn wrong(
    files: &[SpecFile<'_>],
    mut problems: Vec<Problem>,
    mut warnings: Vec<Problem>,
) -> PlanError {
    let rank = |problem: &Problem| files.iter().position(|file| file.label == problem.file);
    problems.sort_by_key(|problem| (rank(problem), problem.line, problem.column));
    warnings.sort_by_key(|problem| (rank(problem), problem.line, problem.column));
    PlanError::Wrong { problems, warnings }
}

fn once_each(needs: &[DraftNeed]) -> Vec<TaskId> {
    let mut seen = HashSet::new();
    needs.iter().map(|need| &need.on).filter(|id| needs.len() == 1 || seen.insert(*id)).cloned().collect()
}

/// Why a node waits for what: the first reason for each node that it waits for.
fn reasons(files: &[SpecFile<'_>], draft: &DraftNode) -> Vec<WaitReason> {
    let mut seen = HashSet::new();
    let first = draft.needs.iter().filter(|need| draft.needs.len() == 1 || seen.insert(&need.on));
    first
        .map(|DraftNeed { on, place, basis }| {
            let file = &files[place.file];
            let text = (*basis == Basis::Stated).then(|| file.excerpt(place.at));
            WaitReason { on: on.clone(), basis: *basis, file: place.file, line: file.line_of(place.at), text }
        })
        .collect()
}

fn index_of(
    files: &[SpecFile<'_>],
    drafts: &[DraftNode],
    problems: &mut Vec<Problem>,
) -> HashMap<TaskId, usize> {
    let mut index = HashMap::with_capacity(drafts.len());
    let mut folded: HashMap<String, usize> = HashMap::with_capacity(drafts.len());
    for (at, draft) in drafts.iter().enumerate() {
        let first = *folded.entry(draft.task.id.folded()).or_insert(at);
        if first != at {
            problems.push(clash(files, &drafts[first], draft));
        }
        index.entry(draft.task.id.clone()).or_insert(at);
    }
    index
}

fn clash(files: &[SpecFile<'_>], first: &DraftNode, second: &DraftNode) -> Problem {
    let (a, b) = (&first.task.id, &second.task.id);
    let there = spot(files, first.place);
    let what = if a == b {
        format!("the id '{b}' is already used, at {there}")
    } else {
        format!("the id '{b}' differs only in case from '{a}' at {there}")
    };
    files[second.place.file].problem(second.place.at, what, "give one of the two another id")
}

/// `file:line` of a place.
fn spot(files: &[SpecFile<'_>], place: SourcePlace) -> String {
    let file = &files[place.file];
    format!("{}:{}", file.label, file.line_of(place.at))
}

fn check_needs(
    files: &[SpecFile<'_>],
    drafts: &[DraftNode],
    index: &HashMap<TaskId, usize>,
    problems: &mut Vec<Problem>,
) {
    for draft in drafts {
        for DraftNeed { on: id, place, .. } in draft.needs.iter().filter(|need| !index.contains_key(&need.on))
        {
            let what = format!("'{}' depends on '{id}', which is not in the plan", draft.task.id);
            let fix = unknown_fix(id.as_str(), index, problems.len());
            problems.push(files[place.file].problem(place.at, what, fix));
        }
    }
}

/// What to do about an id that is not there. Only the first few are worth the search for what was meant.
pub(super) fn unknown_fix(id: &str, index: &HashMap<TaskId, usize>, reported: usize) -> String {
    const WORTH_IT: usize = 20;
    let mut known: Vec<&str> =
        index.keys().map(TaskId::as_str).take(if reported < WORTH_IT { 5000 } else { 0 }).collect();
    known.sort_unstable();
    // `T009` is not a misspelt `T001`, but `T1` may be one.
    let is_other_number = |known: &str| letters(known) == letters(id) && number(known) != number(id);
    match nearest(id, known.into_iter().filter(|known| !is_other_number(known))) {
        Some(meant) => {
            format!("did you mean '{meant}'? Otherwise add the task '{id}', or remove the dependency")
        }
        None => format!("add the task '{id}', or remove the dependency"),
    }
}

fn letters(id: &str) -> String {
    id.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().to_lowercase()
}

fn number(id: &str) -> String {
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    digits.trim_start_matches('0').to_owned()
}

fn adopt_children(drafts: &mut [DraftNode], index: &HashMap<TaskId, usize>) {
    for at in 0..drafts.len() {
        let child = drafts[at].task.id.clone();
        if let Some(parent) = drafts[at].task.parent.as_ref().and_then(|parent| index.get(parent)) {
            drafts[*parent].task.children.push(child);
        }
    }
}

fn shape_of(drafts: &[DraftNode], index: &HashMap<TaskId, usize>) -> TreeShape {
    let place = |id: &TaskId| index.get(id).copied();
    TreeShape {
        parents: drafts.iter().map(|draft| draft.task.parent.as_ref().and_then(place)).collect(),
        needs: drafts
            .iter()
            .enumerate()
            .flat_map(|(at, draft)| draft.task.depends_on.iter().filter_map(place).map(move |on| (at, on)))
            .collect(),
        leaves: drafts.iter().map(|draft| draft.task.is_leaf()).collect(),
    }
}

/// The circle as a path, each node with its place, told at the dependency that closes it.
fn circular(files: &[SpecFile<'_>], drafts: &[DraftNode], circle: &[usize]) -> Problem {
    let step = |at: &usize| format!("{} ({})", drafts[*at].task.id, spot(files, drafts[*at].place));
    let path: Vec<String> = circle.iter().chain(circle.first()).map(step).collect();
    let what = format!("tasks wait for each other: {}", path.join(" → "));
    let first = &drafts[circle.first().copied().unwrap_or_default()];
    let is_in_circle = |id: &TaskId| circle.iter().any(|at| drafts[*at].task.id == *id);
    let place = first.needs.iter().find(|need| is_in_circle(&need.on)).map_or(first.place, |need| need.place);
    files[place.file].problem(place.at, what, "remove one of these dependencies")
}
