//! Saved work: its names, when it was saved, and its list.

use std::{collections::HashMap, path::Path};

use jiff::tz::TimeZone;

use super::CleanupError;
use crate::{
    git::{GitError, RefFacts, Repository},
    name::{Oid, SAVED, dated_saved_ref, split_day},
    safe_files,
    words::words,
};

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

words! {
    /// The kind of saved work.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Part {
        /// The tip of a branch.
        Branch = "branch",
        /// The files of a worktree.
        Worktree = "worktree",
        /// Commits that were on no branch.
        Commits = "commits",
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
    let kind = match part {
        Part::Branch => "branch",
        Part::Worktree => "worktree",
        Part::Commits => "head",
    };
    dated_saved_ref(now, unit, kind, commit)
}

/// The message of the commit with the files of a worktree.
pub(super) fn message_of(name: &str) -> String {
    format!("files in {name}\n")
}

/// The message of the commit with the staged files.
pub(super) fn staged_message(name: &str) -> String {
    format!("staged files in {name}\n")
}

/// Lists all saved work, newest first.
pub fn list_saved(repository: &Repository, now: i64) -> Result<Vec<SavedWork>, CleanupError> {
    let refs = repository.start_surveying_refs().finish()?;
    let refs: Vec<RefFacts> = refs.into_iter().filter(|found| found.name.starts_with(SAVED)).collect();
    let times = SaveTimes::find(repository, now, &refs)?;
    let mut found: Vec<SavedWork> = refs
        .into_iter()
        .filter_map(|found| {
            let name = found.name.strip_prefix(SAVED)?.to_owned();
            let time = times.saved_time(&found);
            Some(SavedWork {
                commit: found.commit?,
                part: part_of(&name),
                time,
                subject: found.subject,
                name,
            })
        })
        .collect();
    found.sort_by(|a, b| (b.time, &a.name).cmp(&(a.time, &b.name)));
    Ok(found)
}

/// What was saved under a name.
fn part_of(name: &str) -> Part {
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once('-').map(|(kind, _)| kind) {
        Some("worktree") => Part::Worktree,
        Some("branch") => Part::Branch,
        _ => Part::Commits,
    }
}

/// When saved work was saved. `cleanup saved` shows these times, and `cleanup` deletes by them.
pub(super) struct SaveTimes {
    now: i64,
    /// When each ref was written, according to its reflog.
    written: HashMap<String, i64>,
}

impl SaveTimes {
    /// Reads the reflogs of these refs.
    pub(super) fn find<'a>(
        repository: &Repository,
        now: i64,
        refs: impl IntoIterator<Item = &'a RefFacts>,
    ) -> Result<Self, GitError> {
        let mut written = HashMap::new();
        let mut is_complete = true;
        for found in refs {
            match reflog_time(&repository.common_dir, &found.name) {
                Some(time) => drop(written.insert(found.name.clone(), time)),
                None => is_complete = false,
            }
        }
        // With the reftable format, reflogs are not in files of their own.
        if !is_complete {
            written.extend(repository.written_below(SAVED)?);
        }
        Ok(Self { now, written })
    }

    /// When this was saved, in seconds since 1970, and never after now. Without a reflog (the ref was fetched, or its
    /// reflog expired) it is the end of the day in its name, so that nothing is taken for older than it is.
    pub(super) fn saved_time(&self, found: &RefFacts) -> Option<i64> {
        let name = found.name.strip_prefix(SAVED)?;
        let written = self.written.get(&found.name).copied();
        // The commit with the files of a worktree is made when they are saved. Other commits may be much older.
        let committed = || found.time.filter(|_| part_of(name) == Part::Worktree);
        let time = written.or_else(|| end_of_day(name)).or_else(committed);
        time.map(|time| time.min(self.now))
    }
}

/// The end of the day with which a name begins, in seconds since 1970.
fn end_of_day(name: &str) -> Option<i64> {
    let end = split_day(name).0?.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp().as_second())
}

/// How many bytes of the end of a reflog are read.
const TAIL: u64 = 1024;

/// When a ref was last written, according to its reflog, if git keeps that in a file. This can only make a candidate
/// younger.
pub(super) fn reflog_time(common_dir: &Path, name: &str) -> Option<i64> {
    let tail = safe_files::read_tail(&common_dir.join("logs").join(name), TAIL).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.lines().next_back()?;
    let head = line.split('\t').next()?;
    head.rsplit(' ').nth(1)?.parse().ok()
}
