//! The refs of saved work. `git arborist cleanup` lists and restores all of them, whichever command saved it.
//!
//! A name below [`SAVED`] has one of two layouts:
//!
//! | layout | written by | example |
//! |---|---|---|
//! | `DAY/UNIT/PART-COMMIT` | `cleanup`, before it deletes something | `2025-02-16/main/T001/branch-1a2b3c4d5e` |
//! | `UNIT/PART-COMMIT` or `UNIT/COMMIT` | whatever replaces something: runs, the queue, `reset`, `worktree` | `main/T001/ticket-1a2b3c4d5e` |
//!
//! `UNIT` says what the work belongs to: `RUN/TASK`, `RUN/LANE`, a session, a branch, or a fixed word such as `landing`,
//! `moved` and `checkout`. Branches are escaped as one component. `PART` says what was saved. For `cleanup restore`, a
//! part `worktree` is files and `branch` is the tip of a branch; everything else is commits. `COMMIT` is a short id.
//!
//! When the work was saved is in the reflog of the ref, which is always written. The day is for people.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{BranchName, Oid};

/// The prefix of the refs of saved work.
pub const SAVED: &str = "refs/arborist/saved/";

/// The ref for a commit that is replaced: `UNIT/PART-COMMIT`.
#[must_use]
pub fn saved_ref(unit: &str, part: &str, commit: Oid) -> String {
    format!("{SAVED}{unit}/{part}-{}", commit.short())
}

/// The ref for a commit that `cleanup` deletes at this time, in seconds since 1970: `DAY/UNIT/PART-COMMIT`.
#[must_use]
pub fn dated_saved_ref(now: i64, unit: &str, part: &str, commit: Oid) -> String {
    let moment = Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
    saved_ref(&format!("{}/{unit}", moment.strftime("%Y-%m-%d")), part, commit)
}

/// Separates the day from the rest of a name below [`SAVED`], if the name begins with one.
#[must_use]
pub fn split_day(name: &str) -> (Option<Date>, &str) {
    let dated = || {
        let (day, rest) = name.split_once('/')?;
        Some((Some(day.parse().ok()?), rest))
    };
    dated().unwrap_or((None, name))
}

impl BranchName {
    /// The prefix of the refs with work that was saved for this branch or its run, with a trailing slash.
    #[must_use]
    pub fn saved_refs(&self) -> String {
        format!("{SAVED}{}/", self.component())
    }

    /// The ref that saves a commit of this branch.
    #[must_use]
    pub fn saved_commit_ref(&self, commit: Oid) -> String {
        format!("{}{}", self.saved_refs(), commit.short())
    }

    /// The ref that saves a landing on this branch that did not become part of it.
    #[must_use]
    pub fn saved_landing_ref(&self, commit: Oid) -> String {
        format!("{SAVED}landing/{}/{}", self.component(), commit.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_of_saved_refs_are_written_and_read() {
        let commit: Oid = "1".repeat(40).parse().unwrap();
        let dated = dated_saved_ref(1_739_716_222, "main/T001", "branch", commit);
        assert_eq!(dated, format!("refs/arborist/saved/2025-02-16/main/T001/branch-{}", commit.short()));
        let (day, rest) = split_day(dated.strip_prefix(SAVED).unwrap());
        assert_eq!(day.map(|day| day.to_string()).as_deref(), Some("2025-02-16"));
        assert!(rest.starts_with("main/T001/branch-"), "{rest}");
        let undated = saved_ref("main/T001", "ticket", commit);
        let name = undated.strip_prefix(SAVED).unwrap();
        assert_eq!(split_day(name), (None, name));
        let branch: BranchName = "feature/x".parse().unwrap();
        assert!(branch.saved_commit_ref(commit).starts_with("refs/arborist/saved/feature%2Fx/"));
    }
}
