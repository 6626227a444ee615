//! Explicit dependencies: every claim of a file, resolved to tasks and phases that are there.

use std::{cell::OnceCell, collections::HashMap};

use super::{
    Offset,
    ids::{SortKey, sort_key},
    lists::{Name, Placed},
    tree::Role,
};
use crate::{
    name::TaskId,
    plan::assemble::{Draft, Place, unknown_fix},
};

/// The nodes of a plan, by every name that a sentence may use.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_id: HashMap<TaskId, usize>,
    /// Tasks in the order of their ids; made when the first range asks for it.
    by_order: OnceCell<Vec<(SortKey, usize)>>,
    is_task: Vec<bool>,
    /// Phases by label; `None` where two have the same.
    by_label: HashMap<String, Option<usize>>,
}

/// Nodes by position, each with the place where it is named.
pub(super) type Named = Vec<(usize, Offset)>;

/// An id that is not in the plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum Missing<'a> {
    Task(&'a str),
    EndOfRange(&'a str),
}

/// That a node, by position, waits for another, and where that is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    pub(super) who: usize,
    pub(super) on: usize,
    pub(super) place: Place,
}

impl Known {
    pub(super) fn new(drafts: &[Draft], roles: &[Role]) -> Self {
        let is_task = roles.iter().map(|role| *role == Role::Task).collect();
        let mut known = Self { is_task, ..Self::default() };
        for (at, (draft, role)) in drafts.iter().zip(roles).enumerate() {
            known.by_id.entry(draft.task.id.clone()).or_insert(at);
            if let Role::Phase { label: Some(label), .. } = role {
                known.by_label.entry(label.clone()).and_modify(|found| *found = None).or_insert(Some(at));
            }
        }
        known
    }

    pub(super) fn position(&self, id: &TaskId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(&id.parse().ok()?).copied()
    }

    /// The nodes that a name stands for, and what it names that is not there. A range takes what there is.
    fn resolve<'n>(&self, name: &Name<'n>) -> (Vec<usize>, Option<Missing<'n>>) {
        match name {
            Name::Phase(label) => {
                let found = self.by_label.get(&label.to_lowercase()).copied().flatten();
                (found.into_iter().collect(), None)
            }
            Name::Task(id) => match self.find(id).map(|at| vec![at]).or_else(|| self.short_range(id)) {
                Some(found) => (found, None),
                None => (Vec::new(), Some(Missing::Task(id))),
            },
            Name::Range(first, last) => {
                let missing = [first, last].into_iter().find(|id| self.find(id).is_none());
                (self.range(first, last), missing.map(|id| Missing::EndOfRange(id)))
            }
        }
    }

    fn range(&self, first: &str, last: &str) -> Vec<usize> {
        let (first, last) = (sort_key(first), sort_key(last));
        if first > last {
            return Vec::new();
        }
        let all = self.by_order.get_or_init(|| {
            let tasks = self.by_id.iter().filter(|(_, at)| self.is_task[**at]);
            let mut all: Vec<_> = tasks.map(|(id, at)| (sort_key(id.as_str()), *at)).collect();
            all.sort();
            all
        });
        let start = all.partition_point(|(key, _)| *key < first);
        all[start..].iter().take_while(|(key, _)| *key <= last).map(|(_, at)| *at).collect()
    }

    /// `T004-007` or `T004-7` for `T004` to `T007`.
    fn short_range(&self, id: &str) -> Option<Vec<usize>> {
        let (first, last) = id.rsplit_once('-')?;
        self.find(first)?;
        let digits = first.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let width = first.len() - digits;
        let last = format!("{}{:0>width$}", &first[..digits], last.trim_start_matches('0'));
        self.find(&last)?;
        Some(self.range(first, &last))
    }

    /// What to do about an id that is not there.
    pub(super) fn fix_for(&self, id: &str, told: usize) -> String {
        unknown_fix(id, &self.by_id, told)
    }

    /// All of these names, and those that are not there.
    pub(super) fn resolve_all<'n>(&self, names: &[Placed<'n>]) -> (Named, Vec<(Missing<'n>, Offset)>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (name, place) in names {
            let (nodes, lacking) = self.resolve(name);
            found.extend(nodes.into_iter().map(|node| (node, *place)));
            missing.extend(lacking.map(|lacking| (lacking, *place)));
        }
        (found, missing)
    }
}

impl Known {
    /// Whether one of two nodes is the other or inside it.
    pub(super) fn are_kin(&self, drafts: &[Draft], need: Need) -> bool {
        let parent = |at: &usize| drafts[*at].task.parent.as_ref().and_then(|id| self.by_id.get(id).copied());
        let is_above =
            |top: usize, below: usize| std::iter::successors(Some(below), parent).any(|at| at == top);
        is_above(need.who, need.on) || is_above(need.on, need.who)
    }
}
