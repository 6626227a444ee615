//! Which tasks could get into each other's way: those that may run at once and name the same file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Plan, Problem, Task};
use crate::name::TaskId;

/// Tasks of one wave that name the same file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SharedFile {
    /// The file, as the tasks name it.
    pub file: String,
    /// The tasks, in the order of the plan; at least two.
    pub tasks: Vec<TaskId>,
}

impl Plan {
    /// What to expect when each wave runs at once. Whole folders, which many tasks name, are left out.
    #[must_use]
    pub fn conflicts(&self) -> Vec<SharedFile> {
        let waves = self.waves(|task| task.mark.is_settled());
        waves.iter().flat_map(|wave| conflicts_of(wave)).collect()
    }

    /// The conflicts as complaints, at the second of the tasks.
    #[must_use]
    pub fn conflict_warnings(&self) -> Vec<Problem> {
        self.conflicts().iter().map(|conflict| self.conflict_warning(conflict)).collect()
    }

    /// At the last of the tasks whose place is known. A tree file need not say where its tasks were written down.
    fn conflict_warning(&self, SharedFile { file, tasks }: &SharedFile) -> Problem {
        let ids: Vec<String> = tasks.iter().map(|id| format!("'{id}'")).collect();
        let source = tasks.iter().rev().find_map(|id| self.find(id)?.source.as_ref());
        let unknown = || self.spec_files.first().cloned().unwrap_or_else(|| "the plan".into());
        Problem {
            file: source.map_or_else(unknown, |source| source.file.clone()),
            line: source.map_or(1, |source| source.line),
            column: 1,
            what: format!("{} may run at the same time, but name the same file '{file}'", ids.join(" and ")),
            fix: "make one depend on the other, or remove [P] from one".into(),
        }
    }
}

fn conflicts_of(wave: &[&Task]) -> Vec<SharedFile> {
    let mut by_file: BTreeMap<&str, Vec<TaskId>> = BTreeMap::new();
    for task in wave {
        for file in task.files.iter().filter(|file| !file.ends_with('/')) {
            by_file.entry(file).or_default().push(task.id.clone());
        }
    }
    let shared = by_file.into_iter().filter(|(_, tasks)| tasks.len() > 1);
    shared.map(|(file, tasks)| SharedFile { file: file.to_owned(), tasks }).collect()
}
