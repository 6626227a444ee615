//! One ref that a push changes.

use std::str::FromStr;

use arborist_core::{
    failure::{Exit, Failure},
    name::{NameError, Oid},
};

/// A ref of the receiver with its old and new value; `None` is no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hooks) struct RefUpdate {
    pub name: String,
    pub old: Option<Oid>,
    pub new: Option<Oid>,
}

/// Refs that come and go while a run works: tickets, claims, parked landings. Their commits are also elsewhere.
const WORKING: [&str; 3] = ["refs/arborist/queue/", "refs/arborist/claims/", "refs/arborist/landing/"];

impl RefUpdate {
    pub(in crate::hooks) fn new(name: &str, old: Option<Oid>, new: Option<Oid>) -> Self {
        Self { name: pattern(name), old, new }
    }

    /// Whether it is one of our own refs, which only grow.
    pub(super) fn is_ours(&self) -> bool {
        let is_below = |prefixes: &[&str]| prefixes.iter().any(|prefix| self.name.starts_with(prefix));
        is_below(&["refs/heads/arborist/", "refs/arborist/"]) && !is_below(&WORKING)
    }

    /// Whether something may be lost with it.
    pub(super) fn is_guarded(&self) -> bool {
        self.is_ours() || self.name.starts_with("refs/heads/")
    }
}

/// The name of a ref in which bytes that are not UTF-8 are replaced by `*`, which no name contains.
pub(super) fn pattern(name: &str) -> String {
    name.replace(char::REPLACEMENT_CHARACTER, "*")
}

/// The value of a ref: an id of either hash; all zeros means none.
#[derive(Debug, Clone, Copy)]
pub(in crate::hooks) struct PushedValue(pub Option<Oid>);

impl FromStr for PushedValue {
    type Err = NameError;

    fn from_str(hex: &str) -> Result<Self, NameError> {
        let id: Oid = hex.parse()?;
        Ok(Self((!id.is_zero()).then_some(id)))
    }
}

/// Parses lines `<local name> <local id> <remote name> <remote id>`. Only the local name may contain spaces.
pub(super) fn parse_lines(input: &str) -> Result<Vec<RefUpdate>, Failure> {
    input.lines().filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<RefUpdate, Failure> {
    let strange = || {
        Failure::new(
            Exit::Fatal,
            format!("a line that git does not give to pre-push: '{}'", line.escape_debug()),
        )
        .hint("git writes: <local name> <local id> <remote name> <remote id>")
    };
    let mut words = line.rsplitn(4, ' ');
    let (Some(old), Some(name), Some(new), Some(_)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(strange());
    };
    let id = |hex: &str| hex.parse::<PushedValue>().map_err(|_| strange());
    Ok(RefUpdate::new(name, id(old)?.0, id(new)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_either_hash_are_read_and_odd_ones_are_refused() {
        for length in [40, 64] {
            let (zero, one) = ("0".repeat(length), "1".repeat(length));
            let lines = format!("(delete) {zero} refs/heads/a {one}\n\n:/fix it {one} refs/heads/b {zero}\n");
            let updates = parse_lines(&lines).unwrap();
            assert_eq!(updates[0], RefUpdate::new("refs/heads/a", one.parse().ok(), None));
            assert_eq!(updates[1], RefUpdate::new("refs/heads/b", None, one.parse().ok()));
        }
        assert!(parse_lines("a b c\n").is_err());
        assert!(parse_lines("a b c d\n").is_err());
    }

    #[test]
    fn arborists_refs_are_told_from_names_that_only_look_alike() {
        let ours = |name: &str| RefUpdate::new(name, None, None).is_ours();
        assert!(ours("refs/heads/arborist/task/main/T1") && ours("refs/arborist/saved/x"));
        assert!(!ours("refs/arborist/queue/tickets/main/T1") && !ours("refs/arborist/landing/main"));
        assert!(
            !ours("refs/heads/arborist")
                && !ours("refs/heads/my/arborist/x")
                && !ours("refs/tags/arborist/x")
        );
    }
}
