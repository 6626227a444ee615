//! Runs a blocking function for several items in parallel, so that a remote that hangs does not delay the others.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// The number of threads. Servers refuse clients that open too many connections at once.
const MAX_THREADS: usize = 8;

/// Calls `ask` for each item in parallel. Results are in the order of the items.
pub fn map_parallel<T: Sync, R: Send>(all: &[T], ask: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, all.get(n)?)));
        std::iter::from_fn(take).map(|(n, one)| (n, ask(one))).collect::<Vec<_>>()
    };
    let mut answers: Vec<(usize, R)> = thread::scope(|scope| {
        let asking: Vec<_> = (0..all.len().min(MAX_THREADS)).map(|_| scope.spawn(work)).collect();
        let join =
            |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|why| resume_unwind(why));
        asking.into_iter().flat_map(join).collect()
    });
    answers.sort_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn parallel_calls_run_at_once_and_return_results_in_order() {
        let all: Vec<usize> = (0..MAX_THREADS).collect();
        let met = Barrier::new(MAX_THREADS);
        let answers = map_parallel(&all, |n| {
            met.wait();
            n * 2
        });
        assert_eq!(answers, all.iter().map(|n| n * 2).collect::<Vec<_>>());
        let many: Vec<usize> = (0..5 * MAX_THREADS).collect();
        assert_eq!(map_parallel(&many, |n| *n), many);
        assert!(map_parallel(&[], |n: &usize| *n).is_empty());
    }
}
