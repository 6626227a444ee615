//! The version of git.

use std::{fmt, path::Path};

use super::{GitCommand, GitError};

/// A version of git, by its first two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion(pub u16, pub u16);

impl GitVersion {
    /// The first with `merge-tree --write-tree`.
    pub const OLDEST: Self = Self(2, 38);
    /// The first whose `hook run` can feed a hook's standard input.
    pub const HOOK_STDIN: Self = Self(2, 40);
    /// The first whose `for-each-ref` counts commits.
    pub const AHEAD_BEHIND: Self = Self(2, 41);
    /// The first that knows `core.commentString`.
    pub const COMMENT_STRING: Self = Self(2, 45);
    /// The first that runs hooks named in its configuration.
    pub const CONFIG_HOOKS: Self = Self(2, 54);

    /// The variable that makes git write its trace to standard error, and its value.
    pub(super) const TRACE: (&str, &str) = ("GIT_TRACE2_EVENT", "2");

    /// Asks the git that is first on `PATH`.
    pub fn ask(dir: &Path) -> Result<Self, GitError> {
        let printed = GitCommand::reading("version", dir).stdout()?;
        let unexpected = || GitError::unexpected("version", "its version");
        Self::parse(&printed).ok_or_else(unexpected)
    }

    /// Reads what `git version` prints.
    #[must_use]
    pub fn parse(printed: &[u8]) -> Option<Self> {
        Self::read(std::str::from_utf8(printed).ok()?.trim().strip_prefix("git version ")?)
    }

    /// Finds the version in the trace of any git command ([`TRACE`](Self::TRACE)): the first event contains it.
    pub(super) fn find_in_trace(trace: &[u8]) -> Option<Self> {
        let first = trace.split(|b| *b == b'\n').find(|line| line.starts_with(b"{\"event\":\"version\""))?;
        let (_, version) = std::str::from_utf8(first).ok()?.split_once("\"exe\":\"")?;
        Self::read(version)
    }

    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', ' ', '-']);
        Some(Self(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_vendor_are_read() {
        for (printed, version) in [
            ("git version 2.47.3\n", GitVersion(2, 47)),
            ("git version 2.39.5 (Apple Git-154)\n", GitVersion(2, 39)),
            ("git version 2.56.0-rc1\n", GitVersion(2, 56)),
            ("git version 2.30.GIT\n", GitVersion(2, 30)),
        ] {
            assert_eq!(GitVersion::parse(printed.as_bytes()), Some(version));
        }
        assert_eq!(GitVersion::parse(b"jj 0.1"), None);
        let trace = br#"warning: x
{"event":"version","sid":"1","line":57,"evt":"4","exe":"2.39.5 (Apple Git-154)"}
{"event":"start","argv":["git"]}"#;
        assert_eq!(GitVersion::find_in_trace(trace), Some(GitVersion(2, 39)));
        assert_eq!(GitVersion::find_in_trace(b"fatal: not a git repository\n"), None);
        assert!(GitVersion(2, 9) < GitVersion::OLDEST);
    }
}
