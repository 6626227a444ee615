//! Names and list of saved work.

use jiff::{Timestamp, tz::TimeZone};

use super::{CleanupError, survey::reflog_time};
use crate::{git::Repository, name::Oid};

/// The prefix of the refs of saved work.
pub(super) const SAVED: &str = "refs/arborist/saved/";

/// Something that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedWork {
    /// Its name, below `refs/arborist/saved/`.
    pub name: String,
    /// Its commit.
    pub commit: Oid,
    /// What was saved.
    pub part: Part,
    /// When it was saved, in seconds since 1970, if that is known.
    pub time: Option<i64>,
    /// The subject of its commit.
    pub subject: String,
}

/// The kind of saved work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The tip of a branch.
    Branch,
    /// The files of a worktree.
    Worktree,
    /// Commits that were on no branch.
    Commits,
}

impl Part {
    /// The name of the kind.
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
    /// What it belongs to: its name without the last component.
    #[must_use]
    pub fn unit(&self) -> &str {
        self.name.rsplit_once('/').map_or(&self.name, |(unit, _)| unit)
    }
}

/// The ref for a part of `unit` that is saved now.
pub(super) fn name_of(now: i64, unit: &str, part: Part, commit: Oid) -> String {
    let moment = Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC);
    let kind = match part {
        Part::Branch => "branch",
        Part::Worktree => "worktree",
        Part::Commits => "head",
    };
    format!("{SAVED}{}/{unit}/{kind}-{}", moment.strftime("%Y-%m-%d"), commit.short())
}

/// Lists all saved work, newest first.
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
