//! Reflogs of the user. Only they hold commits that were amended, reset or rebased away. If a reflog loses lines while a
//! run is at work, the commits that nothing else holds are saved.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    git::{
        Repository,
        command::checked,
        refs::{moved_refs::save, user_refs::RefSource},
        worktrees::worktree_git_dirs::is_own_git_dir,
    },
    name::{Oid, SAVED},
    safe_files::{self, ChangeStamp, FileKind},
};

/// More reflogs than this are compared only at the end of a run.
const MAX_LOGS: usize = 500;
/// How many commits are saved at once.
const MAX_SAVED: usize = 100;

/// The reflogs at the last comparison, by their files.
#[derive(Debug, Default)]
pub(in crate::git) struct Reflogs(BTreeMap<PathBuf, Reflog>);

/// The ids in a reflog, oldest first.
#[derive(Debug)]
struct Reflog {
    stamp: ChangeStamp,
    ids: Vec<Oid>,
}

impl Reflogs {
    /// Whether none are recorded.
    pub(in crate::git) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records the present reflogs, of which only those are read whose files have changed. Saves commits that a reflog
    /// has lost since the last call and that no ref holds, and returns a message about them.
    pub(in crate::git) fn compare(&mut self, repository: &Repository, source: RefSource) -> Option<String> {
        if source == RefSource::Files && self.0.len() > MAX_LOGS {
            return None;
        }
        let mut before = std::mem::take(&mut self.0);
        let mut shortened = Vec::new();
        for file in list_logs(repository) {
            let Some(stamp) = ChangeStamp::at(&file) else {
                continue;
            };
            let known = before.remove(&file);
            let log = match known {
                Some(known) if known.stamp == stamp => known,
                known => {
                    let log = Reflog { stamp, ids: read_ids(&file) };
                    shortened.extend(known.filter(|known| !log.ids.starts_with(&known.ids)));
                    log
                }
            };
            self.0.insert(file, log);
        }
        // All others have vanished.
        shortened.extend(before.into_values());
        let held: HashSet<Oid> = match shortened.is_empty() {
            true => return None,
            false => self.0.values().flat_map(|log| &log.ids).copied().collect(),
        };
        let lost = shortened.iter().flat_map(|log| &log.ids).copied();
        let lost: HashSet<Oid> = lost.filter(|id| !held.contains(id)).collect();
        save_lost(repository, &lost)
    }
}

/// Saves those of these commits that no ref holds, and returns a message about them.
fn save_lost(repository: &Repository, lost: &HashSet<Oid>) -> Option<String> {
    repository.relink_missing_objects(lost.iter().copied());
    let heads = find_unreachable(repository, lost);
    let saved = heads.iter().take(MAX_SAVED).filter(|head| save(repository, "reflog", **head).is_some());
    let saved = saved.count();
    let rest = match heads.len() - saved {
        0 => String::new(),
        rest => format!("; {rest} more could not be kept"),
    };
    (!heads.is_empty()).then(|| {
        format!(
            "reflogs lost entries during the run; commits that only these entries kept are saved below {SAVED}moved/ (reflog-*: {saved}){rest}"
        )
    })
}

/// Those of these commits that no ref and none of the others leads to.
fn find_unreachable(repository: &Repository, commits: &HashSet<Oid>) -> Vec<Oid> {
    if commits.is_empty() {
        return Vec::new();
    }
    let options = ["--topo-order", "--parents", "--ignore-missing"];
    let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
    let command = repository.git("rev-list").args(options);
    let ended = command.args(["--stdin", "--not", "--all"]).finish_with(&input.into_bytes());
    let printed = ended.and_then(|ended| checked("rev-list", ended)).or_else(|_| {
        let tips: Vec<Oid> = commits.iter().copied().collect();
        repository.list_unheld(&options, &tips, |_| true)
    });
    let printed = printed.unwrap_or_default();
    let text = String::from_utf8_lossy(&printed);
    let parents: HashSet<&str> = text.lines().flat_map(|line| line.split(' ').skip(1)).collect();
    let listed = text.lines().filter_map(|line| line.split(' ').next());
    let heads = listed.filter(|commit| !parents.contains(commit)).filter_map(|commit| commit.parse().ok());
    heads.filter(|commit| commits.contains(commit)).collect()
}

/// The reflogs of `HEAD` in the user's worktrees and of branches, except for those of runs.
fn list_logs(repository: &Repository) -> Vec<PathBuf> {
    let common_dir = &repository.common_dir;
    let mut logs = vec![common_dir.join("logs/HEAD")];
    for entry in safe_files::list_kinds(&common_dir.join("worktrees")).unwrap_or_default() {
        let log = entry.path.join("logs/HEAD");
        logs.extend((!is_own_git_dir(&entry.path)).then_some(log));
    }
    logs.retain(|log| safe_files::kind_of(log) == Some(FileKind::File));
    let runs = common_dir.join("logs/refs/heads/arborist");
    let mut open = vec![common_dir.join("logs/refs/heads")];
    while let Some(folder) = open.pop() {
        for entry in safe_files::list_kinds(&folder).unwrap_or_default() {
            match entry.kind {
                FileKind::Folder if entry.path != runs => open.push(entry.path),
                FileKind::File => logs.push(entry.path),
                _ => {}
            }
        }
    }
    logs
}

/// Each line has the previous id, the id, and more.
fn read_ids(file: &Path) -> Vec<Oid> {
    let log = safe_files::read(file).unwrap_or_default();
    let mut ids = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        for id in line.split(|byte| *byte == b' ').take(2).filter_map(Oid::from_hex) {
            if ids.last() != Some(&id) && id.as_bytes().iter().any(|byte| *byte != 0) {
                ids.push(id);
            }
        }
    }
    ids
}
