//! Every key there is. The manual is made from this table.

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// As in the files; `git config` puts `arborist.` before it.
    pub key: &'static str,
    /// The variable of the environment.
    pub variable: &'static str,
    /// What a value must be.
    pub expected: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// All keys.
pub const SETTINGS: &[Setting] = &[Setting {
    key: "tree",
    variable: "ARBORIST_TREE",
    expected: "a path, in quotes",
    default: "the first of task-tree.json, specs/<branch>/tasks.md, spec/tasks.md, tasks.md",
    about: "The plan: a tree file, relative to the top of the repository.",
}];
