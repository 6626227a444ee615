//! The tree file: `nodes` by id, `root_ids`, `execution_order`, `spec_files`.

use jsonc_parser::ast::{Object, Value};
use serde_json::Map;

use super::{
    fields::{Fields, Keys, PlacedId},
    kinship::{self, Kinship, NodesByPosition},
    node::Node,
};
use crate::name::TaskId;
use crate::plan::{
    Mark, Plan, PlanError,
    assemble::{DraftNeed, DraftNode, PlanDraft, assemble, wrong},
    text::{Offset, SpecFile},
};

const KEYS: Keys = Keys { known: &["nodes", "root_ids", "execution_order", "spec_files"], foreign: &[] };

/// Everything besides the nodes.
#[derive(Default)]
struct Frame {
    nodes: Vec<Node>,
    roots: Option<Vec<PlacedId>>,
    order: Vec<PlacedId>,
    spec_files: Option<Vec<String>>,
    extra: Map<String, serde_json::Value>,
}

pub(super) fn read<'a>(file: SpecFile<'a>, value: &Value<'a>, start: Offset) -> Result<Plan, PlanError> {
    let mut fields = Fields::new(file, start);
    let mut frame = Frame::default();
    match value.as_object() {
        Some(object) => read_frame(&mut fields, object, &mut frame),
        None => {
            let place = fields.place(value);
            fields.wrong(place, "the plan must be a JSON object", "write it as {\"nodes\": {…}}");
        }
    }
    let index = index_of(&mut fields, &frame.nodes);
    check_ids(&mut fields, &frame, &index);
    let mut kinship = kinship::settle(&mut fields, &mut frame.nodes, &index);
    check_roots(&mut fields, &frame, &index, &mut kinship);
    let order = walk(&mut fields, &frame.nodes, &kinship);
    let Fields { file, problems, mistakes, .. } = fields;
    let files = [file];
    if !problems.is_empty() {
        return Err(wrong(&files, problems, Vec::new()));
    }
    if frame.nodes.is_empty() {
        let problem = files[0].problem(start, "no tasks were found", "add a task to 'nodes'");
        return Err(wrong(&files, vec![problem], Vec::new()));
    }
    let drafts = drafts(frame.nodes, &order);
    let mut plan = assemble(&files, PlanDraft { drafts, ..PlanDraft::default() })?;
    plan.extra = frame.extra;
    plan.mistakes = mistakes;
    plan.spec_files = frame.spec_files.unwrap_or_default();
    Ok(plan)
}

fn read_frame<'a>(fields: &mut Fields<'a>, object: &Object<'a>, frame: &mut Frame) {
    let mut has_nodes = false;
    for (key, value) in fields.pairs(object) {
        match key {
            "nodes" => {
                has_nodes = true;
                frame.nodes = nodes(fields, value);
            }
            "root_ids" => frame.roots = Some(fields.ids(key, value)),
            "execution_order" => frame.order = fields.ids(key, value),
            "spec_files" => frame.spec_files = Some(fields.texts(key, value)),
            _ => fields.keep(&mut frame.extra, key, value, &KEYS),
        }
    }
    if !has_nodes {
        let place = fields.place(object);
        fields.wrong(place, "the plan has no 'nodes'", "add 'nodes': an object with a task for each id");
    }
}

/// Every node, also those with duplicate ids: [`assemble`] reports ids that clash.
fn nodes<'a>(fields: &mut Fields<'a>, value: &Value<'a>) -> Vec<Node> {
    let Some(object) = fields.object("nodes", value) else { return Vec::new() };
    let mut nodes = Vec::with_capacity(object.properties.len());
    for property in &object.properties {
        let place = fields.place(property);
        match property.name.as_str().parse() {
            Ok(id) => {
                nodes.extend(Node::read(fields, (id, place), &property.value));
                fields.node = None;
            }
            Err(error) => {
                let error: crate::name::NameError = error;
                fields.wrong(place, error.to_string(), "use letters, digits, '.', '_' and '-'");
            }
        }
    }
    nodes
}

fn index_of(fields: &mut Fields<'_>, nodes: &[Node]) -> NodesByPosition {
    let mut index = NodesByPosition::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        if let Some(first) = index.insert(node.task.id.clone(), at) {
            let line = fields.file.line_of(nodes[first].place.at);
            let what = format!("the id '{}' is already used on line {line}", node.task.id);
            fields.wrong(node.place, what, "give one of the two another id");
        }
    }
    index
}

fn check_ids(fields: &mut Fields<'_>, frame: &Frame, index: &NodesByPosition) {
    let roots = frame.roots.iter().flatten().map(|placed| ("root_ids", placed));
    let order = frame.order.iter().map(|placed| ("execution_order", placed));
    for (key, placed) in roots.chain(order).filter(|(_, (id, _))| !index.contains_key(id)) {
        kinship::unknown(fields, key, placed);
    }
}

/// `root_ids` gives the roots their order, and must be exactly the nodes without a parent.
fn check_roots(fields: &mut Fields<'_>, frame: &Frame, index: &NodesByPosition, kinship: &mut Kinship) {
    let Some(listed) = &frame.roots else { return };
    let mut roots = Vec::with_capacity(listed.len());
    let mut is_listed = vec![false; frame.nodes.len()];
    for (id, place) in listed {
        let Some(at) = index.get(id) else { continue };
        if let Some(parent) = &frame.nodes[*at].task.parent {
            if parent == id {
                let place = frame.nodes[*at].place;
                fields.wrong(place, format!("'{id}' is its own ancestor"), fix_for_itself(id));
                continue;
            }
            let what = format!("'root_ids' names '{id}', whose parent is '{parent}'");
            fields.wrong(*place, what, "list only nodes without a parent");
        } else if std::mem::replace(&mut is_listed[*at], true) {
            fields.wrong(*place, format!("'root_ids' names '{id}' twice"), "keep one of them");
        } else {
            roots.push(*at);
        }
    }
    for at in kinship.roots.iter().filter(|at| !is_listed[**at]) {
        let node = &frame.nodes[*at];
        let what = format!("'{}' has no parent and is not in 'root_ids'", node.task.id);
        fields.wrong(node.place, what, format!("give it a parent, or add '{}' to 'root_ids'", node.task.id));
    }
    kinship.roots = roots;
}

/// Positions in the order of the tree. What cannot be reached from a root is its own ancestor.
fn walk(fields: &mut Fields<'_>, nodes: &[Node], kinship: &Kinship) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut is_reached = vec![false; nodes.len()];
    let mut open: Vec<usize> = kinship.roots.iter().rev().copied().collect();
    while let Some(at) = open.pop() {
        is_reached[at] = true;
        order.push(at);
        open.extend(kinship.children[at].iter().rev());
    }
    if fields.problems.is_empty()
        && let Some(lost) = (0..nodes.len()).find(|at| !is_reached[*at])
    {
        let id = &nodes[lost].task.id;
        let fix = match &nodes[lost].task.parent {
            Some(parent) if parent == id => fix_for_itself(id),
            _ => "remove one 'parent', or one of the 'children', from the cycle".to_owned(),
        };
        fields.wrong(nodes[lost].place, format!("'{id}' is its own ancestor"), fix);
    }
    order
}

/// What to do about a node that is its own parent.
fn fix_for_itself(id: &TaskId) -> String {
    format!("remove '{id}' from its own 'children' and 'parent'")
}

/// In order of the tree. A phase that is skipped is skipped with all that belongs to it.
fn drafts(nodes: Vec<Node>, order: &[usize]) -> Vec<DraftNode> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut skipped = std::collections::HashSet::new();
    let mut drafts = Vec::with_capacity(order.len());
    for Node { mut task, place, needs, .. } in order.iter().filter_map(|at| nodes[*at].take()) {
        if task.parent.as_ref().is_some_and(|parent| skipped.contains(parent)) {
            task.mark = Mark::Skipped;
        }
        if task.mark == Mark::Skipped {
            skipped.insert(task.id.clone());
        }
        drafts.push(DraftNode { task, place, needs: needs.into_iter().map(DraftNeed::stated).collect() });
    }
    drafts
}
