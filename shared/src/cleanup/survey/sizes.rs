//! Measures the size of candidates, as far as that is fast.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::cleanup::Candidate;

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
pub(in crate::cleanup) fn size_of(path: &Path) -> u64 {
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
