//! Which git this is.

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

    /// Asks the git that is first on `PATH`.
    pub fn ask(dir: &Path) -> Result<Self, GitError> {
        let printed = GitCommand::reading("version", dir).stdout()?;
        let strange = || GitError::Strange { command: "version".into(), what: "its version".into() };
        Self::parse(&printed).ok_or_else(strange)
    }

    /// Reads what `git version` prints.
    #[must_use]
    pub fn parse(printed: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(printed).ok()?;
        let mut numbers = text.trim().strip_prefix("git version ")?.split(['.', ' ', '-']);
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
        assert!(GitVersion(2, 9) < GitVersion::OLDEST);
    }
}
