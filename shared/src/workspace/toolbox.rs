//! The tools that the agents of a run may be given: how their server is started for a task.

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

/// What the server is started with. All of it is told by arguments, so that no file that agents edit decides.
#[derive(Debug, Clone)]
pub struct Toolbox {
    program: PathBuf,
    sections: Vec<RepoSection>,
    patience: Duration,
}

/// A worktree of a task that it has tools for.
#[derive(Debug, Clone, Copy)]
pub struct ToolRoot<'a> {
    /// Its repository.
    pub name: &'a RepoName,
    /// Where it is.
    pub path: &'a Path,
    /// The branch of the run there.
    pub run: &'a BranchName,
}

impl Tool {
    /// The command as it has to be approved, if a repository brought it along.
    #[must_use]
    pub fn foreign_line(&self) -> Option<String> {
        (self.origin == Origin::Repository).then(|| format!("tool: {}", self.command))
    }
}

impl RepoSection {
    /// The tool of this repository that a test command names, as `NAME:TOOL`.
    #[must_use]
    pub fn find_tool(&self, command: &str) -> Option<&Tool> {
        let (name, tool) = command.split_once(':')?;
        if self.name.as_str() == name { self.tools.get(tool) } else { None }
    }
}

impl Workspace {
    /// The commands that agents could run as tools and that a repository brought along, one a line.
    #[must_use]
    pub fn foreign_tools(&self) -> BTreeSet<String> {
        self.sections
            .iter()
            .flat_map(|section| section.tools.values())
            .filter_map(Tool::foreign_line)
            .collect()
    }
}

impl Toolbox {
    /// The tools of a workspace. Each command may take so long.
    #[must_use]
    pub fn new(program: PathBuf, workspace: &Workspace, patience: Duration) -> Self {
        Self { program, sections: workspace.sections.clone(), patience }
    }

    /// The repository that has the plan.
    #[must_use]
    pub fn main(&self) -> &RepoName {
        &self.sections[0].name
    }

    /// The server for a task that has these worktrees.
    #[must_use]
    pub fn server(&self, roots: &[ToolRoot<'_>], env: &[(String, String)]) -> ToolServer {
        let mut args = Vec::new();
        let usual = env.iter().rev().find(|(name, _)| name == "ARBORIST_BRANCH").map(|(_, run)| run.as_str());
        for ToolRoot { name, path, run } in roots {
            args.extend(["--root".to_owned(), format!("{name}={}", path.display())]);
            if usual != Some(run.as_str()) {
                args.extend(["--branch".to_owned(), format!("{name}={run}")]);
            }
            let section = self.sections.iter().find(|section| section.name == **name);
            for (tool, command) in section.iter().flat_map(|section| &section.tools) {
                args.extend(["--command".to_owned(), format!("{name}:{tool}={}", command.command)]);
            }
        }
        args.extend(["--timeout".to_owned(), self.patience.as_secs().max(1).to_string()]);
        ToolServer {
            program: self.program.to_string_lossy().into_owned(),
            args,
            env: env.to_vec(),
            patience: self.patience.as_secs().max(1),
            repositories: roots.len(),
            file: None,
            home: None,
        }
    }
}
