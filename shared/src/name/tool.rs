//! Names of tools: the configured commands of a repository.

use std::{fmt, str::FromStr};

use super::{NameError, RepoName, repo::fault};

const KIND: &str = "name of a tool";

/// The tools that every repository has.
const TAKEN: [&str; 4] = ["read_file", "write_file", "edit_file", "search_code"];

/// The name of a repository's command. The alphabet is that of repository names; only the type differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

impl ToolName {
    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that agents use: `NAME__TOOL`.
    #[must_use]
    pub fn of(&self, repo: &RepoName) -> String {
        format!("{repo}__{self}")
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let taken = TAKEN.contains(&name).then_some("every repository has a tool of this name");
        match fault(name).or(taken) {
            Some(why) => Err(NameError::new(name, KIND, why)),
            None => Ok(Self(name.to_owned())),
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_repository_offers_cannot_be_taken() {
        let repo = RepoName::of_folder("backend".as_ref());
        assert_eq!("run-tests".parse::<ToolName>().unwrap().of(&repo), "backend__run-tests");
        for name in ["read_file", "a b", "", "a__b", "a:b"] {
            assert!(name.parse::<ToolName>().is_err(), "{name}");
        }
    }
}
