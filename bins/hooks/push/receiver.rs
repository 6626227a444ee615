//! The receiver of a push, its refs, and the updates of refs that it is asked for.

use std::{collections::HashSet, str::FromStr};

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, Ref, Repository},
    name::{NameError, Oid},
};

/// The owner of the refs that a push changes.
pub(super) enum Receiver {
    /// A remote, known by its remote-tracking refs.
    Remote(String),
    /// This repository.
    Here,
}

/// The refs whose commits count as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepingRefs {
    /// All but those that come and go while a run works.
    All,
    /// All but records and saved work: state is read from branches, and cleaning up removes the others.
    Branches,
}

impl Receiver {
    /// The refs of the receiver, without `HEAD`, which only repeats another ref.
    pub(super) fn load_refs(&self, repository: &Repository) -> Result<Vec<Ref>, GitError> {
        let root = self.root();
        let mut refs = repository.list_refs(&[&root])?;
        refs.retain(|found| found.name.strip_prefix(&root) != Some("/HEAD"));
        Ok(refs)
    }

    /// The commits of `refs` that the receiver keeps in any case, and those that it gets.
    pub(super) fn kept(&self, refs: &[Ref], changed: &[RefUpdate], keepers: KeepingRefs) -> Vec<Oid> {
        let names: HashSet<String> = changed.iter().map(|update| self.name_here(update)).collect();
        let is_keeper = |name: &str| match keepers {
            KeepingRefs::All => !is_working(name),
            KeepingRefs::Branches => !name.starts_with("refs/arborist/"),
        };
        let kept = refs.iter().filter(|found| !names.contains(&pattern(&found.name)));
        let kept = kept.filter(|found| is_keeper(&found.name)).map(|found| found.target);
        let new = changed.iter().filter(|update| is_keeper(&update.name)).filter_map(|update| update.new);
        distinct(kept.chain(new))
    }

    fn root(&self) -> String {
        match self {
            Self::Remote(name) => format!("refs/remotes/{}", name.replace(['*', '?', '['], "")),
            Self::Here => "refs".into(),
        }
    }

    fn name_here(&self, update: &RefUpdate) -> String {
        match (self, update.name.strip_prefix("refs/heads/")) {
            (Self::Remote(_), Some(branch)) => format!("{}/{branch}", self.root()),
            _ => update.name.clone(),
        }
    }
}

/// Removes duplicates.
pub(super) fn distinct(ids: impl Iterator<Item = Oid>) -> Vec<Oid> {
    let mut seen = HashSet::new();
    ids.filter(|id| seen.insert(*id)).collect()
}

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
        let is_below = |prefix: &&str| self.name.starts_with(*prefix);
        ["refs/heads/arborist/", "refs/arborist/"].iter().any(is_below) && !is_working(&self.name)
    }

    /// Whether it is a ref of the user: a branch, a tag or any other, because each may be the last one that keeps
    /// recorded state.
    pub(super) fn is_users_ref(&self) -> bool {
        self.is_guarded() && !self.is_ours()
    }

    /// Whether something may be lost with it.
    pub(super) fn is_guarded(&self) -> bool {
        !is_working(&self.name)
    }
}

/// Whether a ref comes and goes while a run works, and keeps nothing.
fn is_working(name: &str) -> bool {
    WORKING.iter().any(|prefix| name.starts_with(prefix))
}

/// The name of a ref in which bytes that are not UTF-8 are replaced by `*`, which no name contains.
fn pattern(name: &str) -> String {
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

/// Parses the lines of `pre-push`. Only the local name may contain spaces.
pub(super) fn parse_sent(input: &str) -> Result<Vec<RefUpdate>, Failure> {
    let parse = |line: &str| {
        let mut words = line.rsplitn(4, ' ');
        let (old, name, new) = (words.next()?, words.next()?, words.next()?);
        words.next()?;
        parse_update(name, old, new)
    };
    parse_lines(input, "pre-push", "<local name> <local id> <remote name> <remote id>", parse)
}

/// Parses the lines of `pre-receive`.
pub(super) fn parse_received(input: &str) -> Result<Vec<RefUpdate>, Failure> {
    let parse = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (old, new, name) = (words.next()?, words.next()?, words.next()?);
        parse_update(name, old, new)
    };
    parse_lines(input, "pre-receive", "<old id> <new id> <name>", parse)
}

fn parse_lines(
    input: &str,
    hook: &str,
    format: &str,
    parse: impl Fn(&str) -> Option<RefUpdate>,
) -> Result<Vec<RefUpdate>, Failure> {
    let strange = |line: &str| {
        let what = format!("a line that git does not give to {hook}: '{}'", line.escape_debug());
        Failure::new(Exit::Fatal, what).hint(format!("git writes: {format}"))
    };
    let lines = input.lines().filter(|line| !line.is_empty());
    lines.map(|line| parse(line).ok_or_else(|| strange(line))).collect()
}

fn parse_update(name: &str, old: &str, new: &str) -> Option<RefUpdate> {
    let id = |hex: &str| hex.parse::<PushedValue>().ok();
    Some(RefUpdate::new(name, id(old)?.0, id(new)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ref_update_lines_of_both_hash_lengths_are_parsed_and_invalid_ones_refused() {
        for length in [40, 64] {
            let (zero, one) = ("0".repeat(length), "1".repeat(length));
            let lines = format!("(delete) {zero} refs/heads/a {one}\n\n:/fix it {one} refs/heads/b {zero}\n");
            let received = format!("{one} {zero} refs/heads/a\n{zero} {one} refs/heads/b\n");
            for updates in [parse_sent(&lines).unwrap(), parse_received(&received).unwrap()] {
                assert_eq!(updates[0], RefUpdate::new("refs/heads/a", one.parse().ok(), None));
                assert_eq!(updates[1], RefUpdate::new("refs/heads/b", None, one.parse().ok()));
            }
        }
        for line in ["a b c\n", "a b c d\n"] {
            assert!(parse_sent(line).is_err() && parse_received(line).is_err());
        }
    }

    #[test]
    fn our_refs_are_distinguished_from_similar_names() {
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
