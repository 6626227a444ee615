//! `git arborist tools`: its arguments. The server itself is only in its own program, so that no other one links it.

use std::{path::PathBuf, str::FromStr};

use arborist_core::name::{BranchName, NameError, RepoName, ToolName};
use clap::Parser;

use crate::catalog;

const LONG_ABOUT: &str = "\
Let agents use a task's files and your configured commands through MCP.

Agents use the tools of other programs through MCP (Model Context Protocol).
This command is an MCP server on standard input and output. Through it an
agent reads, writes, edits and searches the files of its task, and runs the
commands that you have named in the configuration.

The name of a tool begins with the name of a repository, as in
backend__read_file, so an agent can work in several repositories at once. The
tools reach only the worktrees that they are given.

A run starts this command by itself for agents that support MCP (claude, codex,
opencode, gemini), if a task works in more than one repository or if --tools is
given. You need it only to offer the same tools to an agent that you start
yourself.";

const EXAMPLES: &str = "\
EXAMPLES
   Let agents of a run work through the tools
       git arborist gardener --tools

   Give the tools to an agent that you start yourself
       claude mcp add arborist -- git arborist tools

   The tools of another repository, and a command in it
       git arborist tools --root api=../api --command 'api:test=make'

TOOLS
   For each repository, by its name
       NAME__read_file     path, offset, limit: lines of a file
       NAME__write_file    path, content: a whole file
       NAME__edit_file     path, old_string, new_string: replaces text that occurs exactly once
       NAME__search_code   pattern, glob, ignore_case, limit: lines that match a regular expression
       NAME__TOOL          the command of [workspace.repos.NAME.tools]

PLACES
   Without --root the tools are those of the repository, in the worktree that
   ARBORIST_WORKTREE names or that the command is started in, and of the other
   repositories of the workspace. Paths are relative to the top. The tools
   cannot read or write files outside it, follow no symbolic links, and cannot
   reach the files and hooks of git. Ignored files are not searched. If a
   command or a written file makes a folder look like a bare git repository,
   whose hooks git could run, the files that make it one are moved away.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-tools", bin_name = "git arborist tools", about = catalog::about("tools"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct ToolsArgs {
    /// Offer the tools of the repository NAME in the folder DIR; can be given several times
    #[arg(long, value_name = "NAME=DIR")]
    pub root: Vec<RootArg>,
    /// Offer a command as a tool of a repository instead of the configured ones; can be given several times
    #[arg(long, value_name = "NAME:TOOL=COMMAND", requires = "root")]
    pub command: Vec<CommandArg>,
    /// The branch of the run in a repository, if ARBORIST_BRANCH is that of another one
    #[arg(long, value_name = "NAME=BRANCH", requires = "root", hide = true)]
    pub branch: Vec<BranchArg>,
    /// Time limit of a command in seconds
    #[arg(long, value_name = "SECONDS", value_parser = crate::numbers::positive::<u64>)]
    pub timeout: Option<u64>,
}

/// `NAME=DIR`.
#[derive(Debug, Clone)]
pub struct RootArg {
    /// The repository.
    pub name: RepoName,
    /// The directory.
    pub path: PathBuf,
}

impl FromStr for RootArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) =
            text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("it must be NAME=DIR")?;
        let name = name.parse().map_err(|error: NameError| error.to_string())?;
        Ok(Self { name, path: path.into() })
    }
}

/// `NAME=BRANCH`.
#[derive(Debug, Clone)]
pub struct BranchArg {
    /// The repository.
    pub name: RepoName,
    /// The branch.
    pub branch: BranchName,
}

impl FromStr for BranchArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let message = |error: NameError| error.to_string();
        let (name, branch) = text.split_once('=').ok_or("it must be NAME=BRANCH")?;
        Ok(Self { name: name.parse().map_err(message)?, branch: branch.parse().map_err(message)? })
    }
}

/// `NAME:TOOL=COMMAND`.
#[derive(Debug, Clone)]
pub struct CommandArg {
    /// The repository.
    pub repo: RepoName,
    /// The name of the tool.
    pub tool: ToolName,
    /// The command, for a shell.
    pub command: String,
}

impl FromStr for CommandArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let message = |error: NameError| error.to_string();
        let (names, command) = text.split_once('=').ok_or("it must be NAME:TOOL=COMMAND")?;
        let (repo, tool) = names.split_once(':').ok_or("it must be NAME:TOOL=COMMAND")?;
        Ok(Self {
            repo: repo.parse().map_err(message)?,
            tool: tool.parse().map_err(message)?,
            command: command.to_owned(),
        })
    }
}
