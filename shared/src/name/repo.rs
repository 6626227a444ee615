//! Names of repositories in a workspace, in plans and in the tools of agents.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Providers limit the names of tools to 64 characters, and this is only a part of one.
const LONGEST_REPO_NAME: usize = 23;

/// The name of a repository whose folder yields no valid name.
const NAMELESS: &str = "repo";

/// The name of a repository: letters, digits, `-` and single `_`, because `__` ends it in the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoName(String);

impl RepoName {
    /// The default name of a repository: the name of its folder, made valid.
    #[must_use]
    pub fn of_folder(folder: &Path) -> Self {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        let folder = folder.strip_suffix(".git").unwrap_or(&folder);
        let mut name = String::new();
        for c in folder.chars() {
            let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let is_first = name.is_empty() && !c.is_ascii_alphanumeric();
            let is_repeated = !c.is_ascii_alphanumeric() && name.ends_with(c);
            if !is_first && !is_repeated && name.len() < LONGEST_REPO_NAME {
                name.push(c);
            }
        }
        let name = name.trim_end_matches(['-', '_']);
        Self(if name.is_empty() { NAMELESS } else { name }.to_owned())
    }
}

/// Why `name` is no valid name of a repository or tool, if it is not.
fn fault(name: &str) -> Option<&'static str> {
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some("it must start with an ASCII letter or digit");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
        return Some("only ASCII letters, digits, '_' and '-' are allowed");
    }
    if name.contains("__") || name.ends_with('_') {
        return Some("it must not contain '__' or end in '_', which separate it from the name of a tool");
    }
    (name.len() > LONGEST_REPO_NAME).then_some("it is longer than 23 characters")
}

checked_name!(RepoName, "name of a repository", fault);

/// The tools that every repository has.
const TAKEN: [&str; 4] = ["read_file", "write_file", "edit_file", "search_code"];

/// The name of a repository's command. The alphabet is that of repository names; only the type differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

impl ToolName {
    /// The name that agents use: `NAME__TOOL`.
    #[must_use]
    pub fn of(&self, repo: &RepoName) -> String {
        format!("{repo}__{self}")
    }
}

/// Why `name` is no name of a tool, if it is not.
fn tool_fault(name: &str) -> Option<&'static str> {
    let taken = || TAKEN.contains(&name).then_some("every repository has a tool of this name");
    fault(name).or_else(taken)
}

checked_name!(ToolName, "name of a tool", tool_fault);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_repository_name_is_derived_from_its_folder() {
        let table = [
            ("/home/me/backend", "backend"),
            ("/srv/git/backend.git", "backend"),
            ("my app (2)", "my-app-2"),
            ("a__b", "a_b"),
            ("__init__", "init"),
            ("été", "t"),
            ("/", "repo"),
            ("日本", "repo"),
            ("a-name-that-is-longer-than-anybody-needs", "a-name-that-is-longer-t"),
        ];
        for (folder, name) in table {
            assert_eq!(RepoName::of_folder(Path::new(folder)).as_str(), name, "{folder}");
        }
    }

    #[test]
    fn ambiguous_repository_names_are_refused() {
        for name in ["", "-x", "a.b", "a b", "a__b", "a_", "é", "a:b", "a/b", &"x".repeat(24)] {
            assert!(name.parse::<RepoName>().is_err(), "{name}");
        }
        assert_eq!("back-end_2".parse::<RepoName>().unwrap().as_str(), "back-end_2");
    }

    proptest! {
        #[test]
        fn a_repository_name_derived_from_any_folder_is_valid(folder in ".{0,40}") {
            let name = RepoName::of_folder(Path::new(&folder));
            prop_assert_eq!(fault(name.as_str()), None, "{}", name);
        }
    }

    #[test]
    fn names_of_built_in_tools_are_reserved() {
        let repo = RepoName::of_folder("backend".as_ref());
        assert_eq!("run-tests".parse::<ToolName>().unwrap().of(&repo), "backend__run-tests");
        for name in ["read_file", "a b", "", "a__b", "a:b"] {
            assert!(name.parse::<ToolName>().is_err(), "{name}");
        }
    }
}
