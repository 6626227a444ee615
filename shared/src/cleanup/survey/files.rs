//! Files without work in them: logs, uncommitted reports, caches.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use super::CleanupFacts;
use crate::{
    cleanup::{Candidate, CandidateKind, CandidatePlace, CleanupError},
    git::RefFacts,
    workspace::PLAN_HINTS,
};

const GATES: &str = "refs/arborist/gates/";
/// The suffixes of logs, and of the files next to them.
const LOGS: [&str; 3] = [".log", ".prompt", ".tools"];

impl CleanupFacts<'_> {
    pub(super) fn logs(&self) -> Result<Vec<Candidate>, CleanupError> {
        let options = &self.sweep.options;
        let common = self.sweep.repository.common_dir.join("arborist/logs");
        let mut found = files_in(&common, CandidateKind::Log, |name| name.starts_with("plan-"));
        if let Some(main) = self.worktrees.first().filter(|main| !main.is_bare) {
            let folders =
                [(CandidateKind::Log, &options.log_dir), (CandidateKind::Report, &options.report_dir)];
            for (what, folder) in folders {
                found.extend(self.files_of_checkout(&main.path, what, folder)?);
            }
        }
        match self.find_writer() {
            Ok(None) => {}
            Ok(Some(active)) => {
                found.iter_mut().for_each(|candidate| candidate.in_use.push(active.clone()));
            }
            Err(why) => found.iter_mut().for_each(|candidate| candidate.unknown.push(why.clone())),
        }
        Ok(found)
    }

    /// Untracked files with our names. A directory that leads outside of the checkout is skipped. A directory may have
    /// many names, so the canonical one is used for git and for listing.
    fn files_of_checkout(
        &self,
        top: &Path,
        what: CandidateKind,
        folder: &str,
    ) -> Result<Vec<Candidate>, CleanupError> {
        let (Ok(path), Ok(top)) = (top.join(folder.trim_matches('/')).canonicalize(), top.canonicalize())
        else {
            return Ok(Vec::new());
        };
        if !path.starts_with(top) {
            return Ok(Vec::new());
        }
        // If git cannot tell, as inside of its own directory, everything may be tracked.
        let Ok(tracked) = self.sweep.repository.list_tracked(&path) else { return Ok(Vec::new()) };
        let tracked: HashSet<PathBuf> = tracked.into_iter().map(|name| path.join(name)).collect();
        let mut found = files_in(&path, what, |name| is_named_by_us(what, name));
        found.retain(|candidate| candidate.path().is_some_and(|path| !tracked.contains(path)));
        Ok(found)
    }

    /// Results of gates and caches of histories, which can be computed again.
    pub(super) fn caches(&self) -> Vec<Candidate> {
        let gate = |found: &RefFacts| {
            let place = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
            let name = found.name.strip_prefix("refs/arborist/").unwrap_or(&found.name);
            let mut candidate = Candidate::new(CandidateKind::Cache, place, name.to_owned());
            candidate.time = found.time;
            candidate
        };
        let mut found: Vec<Candidate> = self.refs.below(GATES).map(gate).collect();
        let common_dir = &self.sweep.repository.common_dir;
        let mut open = vec![common_dir.join("arborist/cache")];
        while let Some(folder) = open.pop() {
            found.extend(files_in(&folder, CandidateKind::Cache, |_| true));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let folders = folders.map(|entry| entry.path());
            open.extend(folders.filter(|folder| *folder != common_dir.join(PLAN_HINTS)));
        }
        found
    }
}

/// The plain files of a directory whose names match, with age and size.
fn files_in(folder: &Path, what: CandidateKind, suits: impl Fn(&str) -> bool) -> Vec<Candidate> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(file) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
        if !suits(&name) {
            continue;
        }
        let written = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mut candidate = Candidate::new(what, CandidatePlace::Path(entry.path()), name.clone());
        candidate.owners = vec![task_of(&name).to_owned()];
        candidate.time = written.and_then(|time| i64::try_from(time.as_secs()).ok());
        candidate.size = Some(file.len());
        found.push(candidate);
    }
    found
}

/// The task in the name of a log or a report. It may contain `_`, unlike the step and the time.
fn task_of(name: &str) -> &str {
    let mut parts = name.rsplitn(3, '_');
    parts.nth(2).unwrap_or_else(|| name.split('_').next().unwrap_or(name))
}

/// `{task}_{step}_{time}.log` and `{task}_run_{time}.json`, with a time such as `20250216T143022` and an optional
/// number after it; next to a log also its prompt and its list of tools.
fn is_named_by_us(what: CandidateKind, name: &str) -> bool {
    let (stem, middle) = match what {
        CandidateKind::Report => (name.strip_suffix(".json"), "_run_"),
        _ => (LOGS.iter().find_map(|end| name.strip_suffix(end)), "_"),
    };
    let Some((head, time)) = stem.and_then(|stem| stem.rsplit_once('_')) else {
        return false;
    };
    let (time, number) = time.split_once(['-', '.']).unwrap_or((time, "0"));
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let is_time = time.split_once('T').is_some_and(|(day, clock)| digits(day, 8) && digits(clock, 6));
    let is_numbered = number.split(['-', '.']).all(|part| digits(part, part.len().max(1)));
    is_time && is_numbered && !head.is_empty() && format!("{head}_").ends_with(middle)
}

/// The total time for measuring.
const TIME_LIMIT: Duration = Duration::from_millis(800);
/// So many folders are measured however long that takes, so that a busy machine does not shorten a small measurement.
const ALWAYS_MEASURED: usize = 300;
/// The number of threads.
const THREADS: usize = 4;

/// Measures files and directories. Those that take too long have no size.
pub(in crate::cleanup) fn measure(candidates: &mut [Candidate]) {
    let limit = TimeLimit { end: Instant::now() + TIME_LIMIT, folders: AtomicUsize::new(0) };
    let next = AtomicUsize::new(0);
    let shared: &[Candidate] = candidates;
    let work = || {
        let mut sizes = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(candidate) = shared.get(at) else { return sizes };
            let path = candidate.path().filter(|_| candidate.size.is_none());
            sizes.extend(path.and_then(|path| size_until(path, Some(&limit))).map(|size| (at, size)));
        }
    };
    let sizes: Vec<(usize, u64)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    });
    for (at, size) in sizes {
        candidates[at].size = Some(size);
    }
}

/// The bytes at and below a path. Links are not followed.
pub fn size_of(path: &Path) -> u64 {
    size_until(path, None).unwrap_or(0)
}

/// When measuring ends.
struct TimeLimit {
    end: Instant,
    /// The number of folders that were measured.
    folders: AtomicUsize,
}

impl TimeLimit {
    /// Whether there is no time for one more folder.
    fn is_over(&self) -> bool {
        self.folders.fetch_add(1, Ordering::Relaxed) >= ALWAYS_MEASURED && Instant::now() >= self.end
    }
}

fn size_until(path: &Path, limit: Option<&TimeLimit>) -> Option<u64> {
    let found = path.symlink_metadata().ok()?;
    if !found.is_dir() {
        return Some(found.len());
    }
    let mut sum = 0;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        if limit.is_some_and(TimeLimit::is_over) {
            return None;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => sum += found.len(),
                Err(_) => {}
            }
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_with_an_underscore_is_read_from_a_log_name() {
        assert_eq!(task_of("T1_test_20250216T143022.log"), "T1");
        assert_eq!(task_of("add_the_form_test_20250216T143022-2.prompt"), "add_the_form");
        assert_eq!(task_of("a_b_commit-message_20250216T143022.log"), "a_b");
        assert_eq!(task_of("gate-x_20250216T143022.log"), "gate-x");
    }

    #[test]
    fn only_log_names_of_our_format_are_recognised() {
        for name in [
            "T1_test_20250216T143022.log",
            "gate-x_20250216T143022.log",
            "T1_a_20250216T143022-2.log",
            "T1_test_20250216T143022.1.log",
            "T1_implement_20250216T143022-2.prompt",
            "T1_implement_20250216T143022.tools",
        ] {
            assert!(is_named_by_us(CandidateKind::Log, name), "{name}");
        }
        for name in [
            "notes.log",
            "_20250216T143022.log",
            "T1_test_20250216.log",
            "T1_test_20250216T143022.txt",
            "T1_a_20250216T143022.mine.log",
        ] {
            assert!(!is_named_by_us(CandidateKind::Log, name), "{name}");
        }
        assert!(is_named_by_us(CandidateKind::Report, "T1_run_20250216T143022.json"));
        assert!(!is_named_by_us(CandidateKind::Report, "T1_20250216T143022.json"));
    }
}
