//! Parents and children of the tree file are said twice, once from each side. Both sides must agree; where one
//! is silent the other counts.

use std::collections::HashMap;

use super::{
    fields::{Fields, PlacedId},
    node::Node,
};
use crate::name::TaskId;

/// Nodes by position in the file.
pub(super) type NodesByPosition = HashMap<TaskId, usize>;

/// The children of each node and the roots, all by position.
#[derive(Debug)]
pub(super) struct Kinship {
    pub(super) children: Vec<Vec<usize>>,
    pub(super) roots: Vec<usize>,
}

/// Settles who belongs to whom, and notes every contradiction.
pub(super) fn settle(fields: &mut Fields<'_>, nodes: &mut [Node], index: &NodesByPosition) -> Kinship {
    let mut children = vec![Vec::new(); nodes.len()];
    for at in 0..nodes.len() {
        for (child, place) in std::mem::take(&mut nodes[at].children) {
            let parent = nodes[at].task.id.clone();
            match index.get(&child) {
                Some(child) if claim(fields, nodes, *child, (parent, place)) => children[at].push(*child),
                Some(_) => {}
                None => unknown(fields, "children", &(child, place)),
            }
        }
    }
    children_that_only_say_so_themselves(fields, nodes, index, &mut children);
    let roots = (0..nodes.len()).filter(|at| nodes[*at].task.parent.is_none()).collect();
    Kinship { children, roots }
}

/// Lets a parent claim a child; false if the child has another parent, or this one already.
fn claim(fields: &mut Fields<'_>, nodes: &mut [Node], child: usize, (parent, place): PlacedId) -> bool {
    let node = &mut nodes[child];
    let id = &node.task.id;
    let what = match &node.task.parent {
        None => {
            node.task.parent = Some(parent);
            node.is_claimed = true;
            return true;
        }
        Some(own) if *own != parent => format!("'{parent}' lists the child '{id}', whose parent is '{own}'"),
        Some(_) if node.is_claimed => format!("'{parent}' lists the child '{id}' twice"),
        Some(_) => {
            node.is_claimed = true;
            return true;
        }
    };
    fields.wrong(place, what, "list each child under one parent, once");
    false
}

fn children_that_only_say_so_themselves(
    fields: &mut Fields<'_>,
    nodes: &mut [Node],
    index: &NodesByPosition,
    children: &mut [Vec<usize>],
) {
    for at in 0..nodes.len() {
        let Some((parent, place)) = nodes[at].parent.take().filter(|_| !nodes[at].is_claimed) else {
            continue;
        };
        let id = nodes[at].task.id.clone();
        match index.get(&parent) {
            None => unknown(fields, "parent", &(parent, place)),
            Some(above) if nodes[*above].lists_children => {
                let what = format!("'{id}' has the parent '{parent}', which does not list it as a child");
                fields.wrong(place, what, format!("add '{id}' to the children of '{parent}'"));
            }
            Some(above) => children[*above].push(at),
        }
    }
}

pub(super) fn unknown(fields: &mut Fields<'_>, key: &str, (id, place): &PlacedId) {
    let what = format!("'{key}' names '{id}', which is not in the plan");
    fields.wrong(*place, what, format!("add the task '{id}', or remove it here"));
}
