//! Builds the command line of the MCP server that gives agents of a run their tools.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{RepoSection, Tool, Workspace};
use crate::{
    agent::ToolServer,
    name::{BranchName, RepoName},
    settings::Origin,
};

/// How the server is started. Everything is passed as arguments, so that no file that agents can edit has an influence.
#[derive(Debug, Clone)]
pub struct Toolbox {
    program: PathBuf,
    sections: Vec<RepoSection>,
    timeout: Duration,
}

/// A worktree of a task that the tools may access.
#[derive(Debug, Clone, Copy)]
pub struct ToolRoot<'a> {
    /// The repository of the worktree.
    pub name: &'a RepoName,
    /// The path of the worktree.
    pub path: &'a Path,
    /// The run's branch in that repository.
    pub run: &'a BranchName,
}

impl Tool {
    /// The line for the user to approve, if a file of the repository defines the command.
    #[must_use]
    pub fn approval_line(&self) -> Option<String> {
        (self.origin == Origin::Repository).then(|| format!("tool: {}", self.command))
    }
}

impl RepoSection {
    /// Finds the tool of this repository that a test command of the form `NAME:TOOL` names.
    #[must_use]
    pub fn find_tool(&self, command: &str) -> Option<&Tool> {
        let (name, tool) = command.split_once(':')?;
        if self.name.as_str() == name { self.tools.get(tool) } else { None }
    }
}

impl Workspace {
    /// The tool commands that come from files of repositories, as lines for the user to approve.
    #[must_use]
    pub fn tool_commands_to_approve(&self) -> BTreeSet<String> {
        self.sections
            .iter()
            .flat_map(|section| section.tools.values())
            .filter_map(Tool::approval_line)
            .collect()
    }
}

impl Toolbox {
    /// The tools of a workspace. Each tool command may run for `timeout`.
    #[must_use]
    pub fn new(program: PathBuf, workspace: &Workspace, timeout: Duration) -> Self {
        Self { program, sections: workspace.sections.clone(), timeout }
    }

    /// The repository that has the plan.
    #[must_use]
    pub fn main(&self) -> &RepoName {
        &self.sections[0].name
    }

    /// The server for a task with these worktrees.
    #[must_use]
    pub fn server(&self, roots: &[ToolRoot<'_>], env: &[(String, String)]) -> ToolServer {
        let mut args = Vec::new();
        let default_branch =
            env.iter().rev().find(|(name, _)| name == "ARBORIST_BRANCH").map(|(_, run)| run.as_str());
        for ToolRoot { name, path, run } in roots {
            args.extend(["--root".to_owned(), format!("{name}={}", path.display())]);
            if default_branch != Some(run.as_str()) {
                args.extend(["--branch".to_owned(), format!("{name}={run}")]);
            }
            let section = self.sections.iter().find(|section| section.name == **name);
            for (tool, command) in section.iter().flat_map(|section| &section.tools) {
                args.extend(["--command".to_owned(), format!("{name}:{tool}={}", command.command)]);
            }
        }
        args.extend(["--timeout".to_owned(), self.timeout.as_secs().max(1).to_string()]);
        ToolServer {
            program: self.program.to_string_lossy().into_owned(),
            args,
            env: env.to_vec(),
            patience: self.timeout.as_secs().max(1),
            repositories: roots.len(),
            file: None,
            home: None,
        }
    }
}
