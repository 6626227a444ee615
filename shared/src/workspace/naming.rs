//! Detects mistakes in the names of repositories and tools, in plans and on the command line, and suggests corrections.

use super::{Workspace, WorkspaceError};
use crate::{
    message::{is_mistyped, nearest},
    name::ToolName,
    plan::Task,
};

/// The key of tags that name repositories, as in `[repo:api]`.
const TAG: &str = "repo";
/// Keys that people write instead of [`TAG`].
const MISTAKEN: [&str; 2] = ["repository", "repositories"];

/// A wrong name of a repository or a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamingMistake {
    /// What is wrong.
    pub what: String,
    /// How to correct it.
    pub fix: String,
}

impl Workspace {
    /// Finds out whether a task would work in the wrong repository: because it names an unknown one, or because a tag
    /// is mistyped. Also finds test commands that name an unknown tool.
    #[must_use]
    pub fn find_naming_mistake(&self, task: &Task) -> Option<NamingMistake> {
        if let Some(unknown) = task.repos.iter().find(|name| self.find(name).is_none()) {
            let what = format!("{} names the repository '{unknown}', which is not in the workspace", task.id);
            let fix = match self.meant_by(unknown) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!(
                    "use one of: {}\nor add [workspace.repos.{unknown}] to .arborist/config.toml",
                    self.names()
                ),
            };
            return Some(NamingMistake { what, fix });
        }
        let mistyped = task.tags.iter().find_map(|tag| {
            let (key, names) = tag.split_once(':')?;
            // Tags are free text. One counts as mistyped only if its key is close to `repo` and it names a known
            // repository.
            names.split(',').find_map(|name| self.find(name.trim()))?;
            let key = key.trim().to_lowercase();
            if !is_mistyped(&key, TAG) && !MISTAKEN.contains(&key.as_str()) {
                return None;
            }
            let what = format!("{} has the tag '[{tag}]', which is not the name of a repository", task.id);
            Some(NamingMistake { what, fix: format!("did you mean '[{TAG}:{}]'?", names.trim()) })
        });
        mistyped.or_else(|| {
            task.test_commands
                .iter()
                .find_map(|test| self.find_missing_tool("the test command", &test.command))
        })
    }

    /// Finds out whether the command of a test or gate has the form `NAME:TOOL` but names a tool that the repository
    /// does not have.
    #[must_use]
    pub fn find_missing_tool(&self, whose: &str, command: &str) -> Option<NamingMistake> {
        let (name, tool) = command.split_once(':')?;
        let section = self.find(name)?;
        // Anything that is not a valid tool name is an ordinary shell command.
        if section.tools.contains_key(tool) || tool.parse::<ToolName>().is_err() {
            return None;
        }
        let what = format!("{whose} '{command}' names a tool that the repository '{name}' does not have");
        let tools: Vec<String> = section.tools.keys().map(|tool| format!("'{name}:{tool}'")).collect();
        let fix = match (nearest(tool, section.tools.keys().map(String::as_str)), tools.is_empty()) {
            (Some(meant), _) => format!("did you mean '{name}:{meant}'? it has {}", tools.join(", ")),
            (None, false) => format!("it has {}", tools.join(", ")),
            (None, true) => {
                format!(
                    "it has none\nto define it, set workspace.repos.{name}.tools.{tool} in .arborist/config.toml"
                )
            }
        };
        Some(NamingMistake { what, fix })
    }

    /// The error for an unknown repository name, with a suggestion or the known names.
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
