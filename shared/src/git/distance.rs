//! Counts how many commits branches are ahead of and behind another commit.

use super::{GitError, GitVersion, Ref, Repository};
use crate::name::Oid;

/// How many commits each side has that the other lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Commits that only the branch has.
    pub ahead: u64,
    /// Commits that it lacks.
    pub behind: u64,
}

impl Repository {
    /// The refs below `prefix`, and the distance of each from `other`.
    pub fn distances(&self, prefix: &str, other: Oid) -> Result<Vec<(Ref, Distance)>, GitError> {
        if self.version < GitVersion::AHEAD_BEHIND {
            let refs = self.list_refs(&[prefix])?.into_iter();
            let with_distance = |found: Ref| self.distance(found.target, other).map(|far| (found, far));
            return refs.map(with_distance).collect();
        }
        let format = format!("--format=%(ahead-behind:{other}) %(objectname) %(refname)");
        let printed = self.git("for-each-ref").arg(format).arg(prefix).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| parse_line(line).ok_or_else(|| unexpected("for-each-ref", line))).collect()
    }

    /// The distance of `tip` from `other`.
    pub fn distance(&self, tip: Oid, other: Oid) -> Result<Distance, GitError> {
        let command = self.git("rev-list").args(["--left-right", "--count"]);
        let printed = command.arg(format!("{tip}...{other}")).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        parse(text.split_ascii_whitespace()).ok_or_else(|| unexpected("rev-list", &text))
    }
}

fn parse_line(line: &str) -> Option<(Ref, Distance)> {
    let mut words = line.splitn(4, ' ');
    let distance = parse(words.by_ref().take(2))?;
    let target = words.next()?.parse().ok()?;
    Some((Ref { name: words.next()?.to_owned(), target }, distance))
}

fn parse<'a>(mut numbers: impl Iterator<Item = &'a str>) -> Option<Distance> {
    let mut next = || numbers.next()?.parse().ok();
    Some(Distance { ahead: next()?, behind: next()? })
}

fn unexpected(command: &str, what: &str) -> GitError {
    GitError::UnexpectedOutput { command: command.into(), what: what.trim().to_owned() }
}
