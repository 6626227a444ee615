//! Saved work: how its refs are called, and all of it.

use jiff::{Timestamp, tz::TimeZone};

use super::{CleanupError, survey::reflog_time};
use crate::{git::Repository, name::Oid};

/// Where saved work stands.
pub(super) const SAVED: &str = "refs/arborist/saved/";

/// Something that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedWork {
    /// Its name, below `refs/arborist/saved/`.
    pub name: String,
    /// Its commit.
    pub commit: Oid,
    /// What it is.
    pub part: Part,
    /// When it was saved, in seconds since 1970, as far as that can be told.
    pub time: Option<i64>,
    /// The first line of what its commit says.
    pub subject: String,
}

/// What was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The tip of a branch.
    Branch,
    /// What lay in a worktree.
    Worktree,
    /// Commits that were on no branch.
    Commits,
}

impl Part {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Worktree => "worktree",
            Self::Commits => "commits",
        }
    }
}

impl SavedWork {
    /// What it belongs to: its name without its last part.
    #[must_use]
    pub fn unit(&self) -> &str {
        self.name.rsplit_once('/').map_or(&self.name, |(unit, _)| unit)
    }
}

/// The ref for a part of what belongs to `unit`, saved now.
pub(super) fn name_of(now: i64, unit: &str, part: Part, commit: Oid) -> String {
    let moment = Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
    let kind = match part {
        Part::Branch => "branch",
        Part::Worktree => "worktree",
        Part::Commits => "head",
    };
    format!("{SAVED}{}/{unit}/{kind}-{}", moment.strftime("%Y-%m-%d"), commit.short())
}

/// All saved work, the last saved first.
pub fn list_saved(repository: &Repository) -> Result<Vec<SavedWork>, CleanupError> {
    let refs = repository.start_surveying_refs().finish()?;
    let mut found: Vec<SavedWork> = refs
        .into_iter()
        .filter_map(|found| {
            let name = found.name.strip_prefix(SAVED)?.to_owned();
            let last = name.rsplit('/').next().unwrap_or_default();
            let part = match last.split_once('-').map(|(kind, _)| kind) {
                Some("worktree") => Part::Worktree,
                Some("branch") => Part::Branch,
                _ => Part::Commits,
            };
            let time = reflog_time(&repository.common_dir, &found.name).or(found.time);
            Some(SavedWork { commit: found.commit?, part, time, subject: found.subject, name })
        })
        .collect();
    found.sort_by(|a, b| (b.time, &a.name).cmp(&(a.time, &b.name)));
    Ok(found)
}
