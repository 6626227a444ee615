//! The list of commands: what the dispatcher shows, and what manuals and completions are made from.

mod definitions;

pub use definitions::definitions;

/// A command as the overview shows it.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    /// What follows `git arborist`.
    pub name: &'static str,
    /// The heading under which it is listed.
    pub topic: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
}

const PLAN: &str = "plan the work";
const RUN: &str = "run tasks";
const MANAGE: &str = "manage worktrees and repositories";
const LOOK: &str = "look at a run";
const SET_UP: &str = "set up";

/// Every command of the suite, by topic.
pub const VERBS: &[Verb] = &[
    Verb { name: "plan", topic: PLAN, about: "Read a plan, check it and show the order of its tasks" },
    Verb { name: "gardener", topic: RUN, about: "Run all tasks of the plan, in order" },
    Verb { name: "garden", topic: RUN, about: "Run one task" },
    Verb { name: "work", topic: RUN, about: "Work on a plan together with other machines, through a remote" },
    Verb { name: "merge", topic: RUN, about: "Test finished tasks and merge (land) them into your branch" },
    Verb { name: "reset", topic: RUN, about: "Let a task start over" },
    Verb { name: "demo", topic: RUN, about: "Show a whole run in a temporary repository" },
    Verb { name: "worktree", topic: MANAGE, about: "Give each task its own worktree and branch" },
    Verb {
        name: "workspace",
        topic: MANAGE,
        about: "Fetch and push the repositories, if a plan has several",
    },
    Verb { name: "cleanup", topic: MANAGE, about: "Remove old worktrees, branches, sessions and logs" },
    Verb { name: "state", topic: LOOK, about: "Show which tasks are done, running, ready or failed" },
    Verb { name: "logs", topic: LOOK, about: "Read what agents said and what tests printed" },
    Verb { name: "session", topic: LOOK, about: "Show what agents did, turn by turn; resume, replay" },
    Verb { name: "verify", topic: LOOK, about: "Check that tasks were implemented, tested, reviewed" },
    Verb { name: "trailers", topic: LOOK, about: "Read, check and query the trailers that hold the state" },
    Verb { name: "init", topic: SET_UP, about: "Write a configuration for this repository" },
    Verb { name: "sandbox", topic: SET_UP, about: "Check what agents and tests can do on this machine" },
    Verb { name: "hooks", topic: SET_UP, about: "Install git hooks that check task commits and pushes" },
    Verb { name: "tools", topic: SET_UP, about: "Let agents edit files and run your commands over MCP" },
    Verb { name: "install-assets", topic: SET_UP, about: "Install manual pages and shell completions" },
];

/// The one-line description of the verb `name`, the same in the overview, the help and the manual.
#[must_use]
pub const fn about(name: &str) -> &'static str {
    let mut at = 0;
    while at < VERBS.len() {
        if same(VERBS[at].name, name) {
            return VERBS[at].about;
        }
        at += 1;
    }
    panic!("no such verb");
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
