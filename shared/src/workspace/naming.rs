//! Names of repositories in plans and on the command line: what is wrong with one that there is not, and what was meant.

use super::{Workspace, WorkspaceError};
use crate::{message::nearest, plan::Task};

/// What tags are called that name repositories, and what people write instead.
const TAG: &str = "repo";
const MISTAKEN: [&str; 4] = [TAG, "repos", "repository", "repositories"];

/// A task that would work in the wrong repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// What is wrong.
    pub what: String,
    /// What would mend it.
    pub fix: String,
}

impl Workspace {
    /// Why a task would work in the wrong repository, if it would: it names one that there is not, or a tag of it is
    /// mistyped.
    #[must_use]
    pub fn find_misplaced(&self, task: &Task) -> Option<Misplaced> {
        if let Some(unknown) = task.repos.iter().find(|name| self.find(name).is_none()) {
            let what = format!(
                "{} names the repository '{unknown}', and the workspace has none of that name",
                task.id
            );
            let fix = match self.meant_by(unknown) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!(
                    "it has {}\nsay where another is: [workspace.repos.{unknown}] in .arborist/config.toml",
                    self.names()
                ),
            };
            return Some(Misplaced { what, fix });
        }
        task.tags.iter().find_map(|tag| {
            let (key, names) = tag.split_once(':')?;
            // Tags are free: one is mistyped only if it speaks of repositories that there are.
            names.split(',').find_map(|name| self.find(name.trim()))?;
            nearest(key.trim(), MISTAKEN)?;
            let what = format!("{} has the tag '[{tag}]', which names no repository", task.id);
            Some(Misplaced { what, fix: format!("did you mean '[{TAG}:{}]'?", names.trim()) })
        })
    }

    /// That there is no repository of this name, and which there are.
    #[must_use]
    pub fn unknown(&self, name: &str) -> WorkspaceError {
        let hint = match self.meant_by(name) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!("it has {}", self.names()),
        };
        WorkspaceError::Unknown { name: name.to_owned(), hint }
    }

    fn meant_by(&self, name: &str) -> Option<&str> {
        nearest(name, self.sections.iter().map(|section| section.name.as_str()))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.sections.iter().map(|section| format!("'{}'", section.name)).collect();
        names.join(", ")
    }
}
