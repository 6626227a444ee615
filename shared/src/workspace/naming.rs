//! Names of repositories in plans and on the command line: what is wrong with one that there is not, and what was meant.

use super::{Workspace, WorkspaceError};
use crate::{
    message::{is_mistyped, nearest},
    name::ToolName,
    plan::Task,
};

/// What tags are called that name repositories, and what people write instead.
const TAG: &str = "repo";
const MISTAKEN: [&str; 2] = ["repository", "repositories"];

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
        let mistyped = task.tags.iter().find_map(|tag| {
            let (key, names) = tag.split_once(':')?;
            // Tags are free: one is mistyped only if it is all but the right one, and speaks of repositories that there are.
            names.split(',').find_map(|name| self.find(name.trim()))?;
            let key = key.trim().to_lowercase();
            if !is_mistyped(&key, TAG) && !MISTAKEN.contains(&key.as_str()) {
                return None;
            }
            let what = format!("{} has the tag '[{tag}]', which names no repository", task.id);
            Some(Misplaced { what, fix: format!("did you mean '[{TAG}:{}]'?", names.trim()) })
        });
        mistyped.or_else(|| {
            task.test_commands
                .iter()
                .find_map(|test| self.find_missing_tool("the test command", &test.command))
        })
    }

    /// Why the command of a test or a gate would not be found, if it names a tool, as `NAME:TOOL`, that this repository
    /// has not.
    #[must_use]
    pub fn find_missing_tool(&self, whose: &str, command: &str) -> Option<Misplaced> {
        let (name, tool) = command.split_once(':')?;
        let section = self.find(name)?;
        // Whatever is no name of a tool is a command for a shell.
        if section.tools.contains_key(tool) || tool.parse::<ToolName>().is_err() {
            return None;
        }
        let what = format!("{whose} '{command}' names a tool that the repository '{name}' has not");
        let tools: Vec<String> = section.tools.keys().map(|tool| format!("'{name}:{tool}'")).collect();
        let fix = match (nearest(tool, section.tools.keys().map(String::as_str)), tools.is_empty()) {
            (Some(meant), _) => format!("did you mean '{name}:{meant}'? it has {}", tools.join(", ")),
            (None, false) => format!("it has {}", tools.join(", ")),
            (None, true) => {
                format!(
                    "it has none\nsay what it is: workspace.repos.{name}.tools.{tool} in .arborist/config.toml"
                )
            }
        };
        Some(Misplaced { what, fix })
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
