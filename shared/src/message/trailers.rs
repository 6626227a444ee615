//! The trailers of a sound message, and their legal values: a closed grammar for each key.

use std::{collections::BTreeMap, fmt, ops::Range};

use super::{Key, Step};
use crate::name::{Attempt, Oid, RepoName, SessionId};

/// Our trailers in order, each key at most once, each value legal. All values are stored in one text, because ten
/// thousand commits are read at a time.
#[derive(Debug, Clone, Default)]
pub struct Trailers {
    text: String,
    entries: Vec<(Key, Range<u32>)>,
}

impl PartialEq for Trailers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Trailers {}

impl Trailers {
    /// An empty list with this capacity.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), entries: Vec::with_capacity(count) }
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&str> {
        self.entries.iter().find(|(k, _)| *k == key).map(|(_, place)| self.at(place))
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &str)> {
        self.entries.iter().map(|(key, place)| (*key, self.at(place)))
    }

    fn at(&self, place: &Range<u32>) -> &str {
        &self.text[place.start as usize..place.end as usize]
    }

    /// The end of the text. Values are short and each key occurs once, so the number cannot overflow.
    fn end(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }

    /// Adds or replaces a trailer. `Err` says what is expected if the value is illegal.
    pub fn set(&mut self, key: Key, value: impl AsRef<str>) -> Result<(), &'static str> {
        let value = value.as_ref();
        key.check(value)?;
        self.entries.retain(|(k, _)| *k != key);
        let from = self.end();
        self.text.push_str(value);
        self.entries.push((key, from..self.end()));
        Ok(())
    }

    /// The attempt, if the status has one.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.get(Key::Retry)?.parse().ok().map(Attempt)
    }

    /// The version of the format of the run's commits.
    #[must_use]
    pub fn format(&self) -> u32 {
        self.get(Key::Format).and_then(|format| format.parse().ok()).unwrap_or(1)
    }

    /// The session of the run.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.get(Key::Session)?.parse().ok()
    }

    /// The frozen plan, if there is one.
    #[must_use]
    pub fn plan(&self) -> Option<PlanRef> {
        PlanRef::parse(self.get(Key::Plan)?)
    }

    /// What landed in other repositories.
    #[must_use]
    pub fn landed_in(&self) -> OtherLandings {
        self.get(Key::LandedIn).and_then(OtherLandings::parse).unwrap_or_default()
    }

    /// The commit that was landed.
    #[must_use]
    pub fn source(&self) -> Option<Oid> {
        self.get(Key::Source)?.parse().ok()
    }
}

const LONGEST_TRAILER: usize = 1024;
/// A name and a commit for each repository of a task.
const LONGEST_LIST: usize = 16 * 1024;

/// The plan that a run was frozen with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRef {
    /// The path that it was read from, relative to the top.
    pub path: String,
    /// The blob with its content.
    pub blob: Oid,
}

impl PlanRef {
    /// Parses `path@blob`. A path may contain `@` itself.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let (path, blob) = value.rsplit_once('@')?;
        is_path(path).then_some(())?;
        Some(Self { path: path.to_owned(), blob: blob.parse().ok()? })
    }
}

impl fmt::Display for PlanRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.path, self.blob)
    }
}

/// What a landing brought to other repositories of the workspace: the commit that each of them has to contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherLandings(pub BTreeMap<RepoName, Oid>);

impl OtherLandings {
    /// Parses `name@commit, name@commit`.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let one = |landing: &str| {
            let (name, commit) = landing.split_once('@')?;
            Some((name.parse().ok()?, commit.parse().ok()?))
        };
        value.split(", ").map(one).collect::<Option<BTreeMap<RepoName, Oid>>>().map(Self)
    }
}

impl fmt::Display for OtherLandings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|(name, commit)| format!("{name}@{commit}")).collect();
        f.write_str(&all.join(", "))
    }
}

impl Key {
    /// The legal values of the key, in words. None may be empty.
    #[must_use]
    pub fn expected(self) -> &'static str {
        self.check("").err().unwrap_or_default()
    }

    /// `Err` says what is expected if `value` is illegal for this key.
    pub(super) fn check(self, value: &str) -> Result<(), &'static str> {
        let (legal, expected) = match self {
            Self::Step => (
                Step::of_word(value).is_some(),
                "run-start, plan, implement, test, review, complete, merge or reset",
            ),
            Self::Result | Self::Test => (matches!(value, "pass" | "fail"), "pass or fail"),
            Self::Review => (matches!(value, "approved" | "rejected"), "approved or rejected"),
            Self::Retry => (is_count(value, u64::from(u32::MAX - 1)), "the attempt as a number, from 0"),
            Self::Turn
            | Self::TestPassed
            | Self::TestFailed
            | Self::TestSkipped
            | Self::TokensIn
            | Self::TokensOut => (is_count(value, u64::MAX), "a whole number"),
            Self::Format => (value != "0" && is_count(value, u64::from(u32::MAX)), "a whole number, from 1"),
            Self::TestRuntime | Self::Runtime => (is_decimal(value), "seconds, such as 3.2"),
            Self::Cost => (is_decimal(value), "US dollars, such as 0.05"),
            Self::Base | Self::Source => (value.parse::<Oid>().is_ok(), "a full commit id"),
            Self::Plan => (value == "none" || PlanRef::parse(value).is_some(), "path@blob-id, or none"),
            Self::Session | Self::Replays | Self::Worker => {
                (SessionId::is_valid(value), "an id of letters, digits, dots, underscores and dashes")
            }
            Self::Sandbox => (value == "none", "none"),
            Self::TestType => (is_test_types(value), "unit, integration or e2e, several joined by a comma"),
            Self::Report | Self::TestLog | Self::ReviewLog => {
                (is_path(value), "a path relative to the top of the repository, with '/'")
            }
            Self::LandedIn => {
                (OtherLandings::parse(value).is_some(), "name@commit-id, several joined by a comma")
            }
            Self::ResolvedBy => (
                value == "person" || value.strip_prefix("agent ").is_some_and(is_line),
                "person, or agent and its name",
            ),
            Self::Model | Self::Provider | Self::Node | Self::Pipeline | Self::Gate | Self::Interrupted => {
                (is_line(value), "one line of printable text")
            }
        };
        let longest = if self == Self::LandedIn { LONGEST_LIST } else { LONGEST_TRAILER };
        if legal && value.len() <= longest { Ok(()) } else { Err(expected) }
    }
}

/// Decimal digits as we write them: no sign, no leading zero.
fn is_count(value: &str, most: u64) -> bool {
    let canonical = value == "0" || !value.starts_with('0');
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    canonical && digits && value.parse::<u64>().is_ok_and(|number| number <= most)
}

fn is_decimal(value: &str) -> bool {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    is_count(whole, u64::MAX)
        && !fraction.is_empty()
        && fraction.len() <= 9
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

fn is_test_types(value: &str) -> bool {
    value.split(',').all(|kind| matches!(kind.trim(), "unit" | "integration" | "e2e"))
}

/// Whether there is a control character in `text`.
pub(super) fn has_control(text: &str) -> bool {
    if text.is_ascii() {
        return text.bytes().fold(false, |found, b| found | b.is_ascii_control());
    }
    text.contains(char::is_control)
}

fn is_line(value: &str) -> bool {
    !value.is_empty() && value.trim() == value && !has_control(value)
}

/// A path that stays below the top of the repository.
fn is_path(value: &str) -> bool {
    is_line(value) && !value.contains('\\') && value.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_trailer_values_are_accepted_and_all_others_refused() {
        let oid = "0123456789012345678901234567890123456789";
        let plan = format!("a b/t@sks.md@{oid}");
        let landed = format!("api@{oid}, web@{oid}");
        let table: [(Key, &[&str], &[&str]); 14] = [
            (Key::Step, &["implement", "run-start"], &["Implement", "done", ""]),
            (Key::Result, &["pass", "fail"], &["passed", "PASS", "pass ", ""]),
            (Key::Review, &["approved"], &["pass", "APPROVED"]),
            (Key::Retry, &["0", "4"], &["-1", "00", "1.0", "", "4294967295", "+1"]),
            (Key::TestRuntime, &["3.2", "0", "12"], &["3.", ".2", "-3", "3,2", "1e3"]),
            (Key::Base, &[oid], &["HEAD", &oid[1..]]),
            (Key::Plan, &["none", &plan], &["tasks.md", "x@none", &format!("../x@{oid}")]),
            (Key::Session, &["s1", "2025-ab"], &["", "a b", "a/b"]),
            (Key::TestType, &["unit", "unit,e2e"], &["smoke", "unit,"]),
            (Key::Report, &["spec/reports/T1.json"], &["/etc/passwd", "a/../b", "a//b", "a\\b", ""]),
            (Key::Gate, &["none", "test, lint"], &["", " x", "a\tb"]),
            (Key::LandedIn, &[&landed], &["", "api", "api@HEAD", &format!("{landed}, ")]),
            (Key::Worker, &["host-1a2b3c"], &["", "a b", "a/b"]),
            (Key::ResolvedBy, &["person", "agent claude"], &["", "agent", "agent ", "claude"]),
        ];
        for (key, legal, illegal) in table {
            for value in legal {
                assert_eq!(key.check(value), Ok(()), "{key:?} {value}");
            }
            for value in illegal {
                assert!(key.check(value).is_err(), "{key:?} {value}");
            }
        }
    }
}
