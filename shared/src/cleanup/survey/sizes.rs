//! How much space things take, as far as that can be found out quickly.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::cleanup::Candidate;

/// Nobody waits longer than this to be told how large everything is.
const PATIENCE: Duration = Duration::from_millis(800);
/// So many folders are looked at side by side.
const HANDS: usize = 4;

/// Measures what lies on the disk. What takes too long has no size.
pub(in crate::cleanup) fn measure(candidates: &mut [Candidate]) {
    let end = Instant::now() + PATIENCE;
    let next = AtomicUsize::new(0);
    let shared: &[Candidate] = candidates;
    let identity = || {
        let mut sizes = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(candidate) = shared.get(at) else { return sizes };
            let path = candidate.path().filter(|_| candidate.size.is_none());
            sizes.extend(path.and_then(|path| size_until(path, Some(end))).map(|size| (at, size)));
        }
    };
    let sizes: Vec<(usize, u64)> = thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(identity)).collect();
        hands.into_iter().filter_map(|identity| identity.join().ok()).flatten().collect()
    });
    for (at, size) in sizes {
        candidates[at].size = Some(size);
    }
}

/// The bytes at and below a path. Links are not followed.
pub(in crate::cleanup) fn size_of(path: &Path) -> u64 {
    size_until(path, None).unwrap_or(0)
}

fn size_until(path: &Path, end: Option<Instant>) -> Option<u64> {
    let found = path.symlink_metadata().ok()?;
    if !found.is_dir() {
        return Some(found.len());
    }
    let mut sum = 0;
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        if end.is_some_and(|end| Instant::now() >= end) {
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
