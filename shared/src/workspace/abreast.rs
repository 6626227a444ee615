//! Asking several at once: one that hangs costs its own time, and nobody else's.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// So many are asked at a time: servers turn away who comes with more.
const MOST: usize = 8;

/// What `ask` gives for each, in their order.
pub fn abreast<T: Sync, R: Send>(all: &[T], ask: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, all.get(n)?)));
        std::iter::from_fn(take).map(|(n, one)| (n, ask(one))).collect::<Vec<_>>()
    };
    let mut answers: Vec<(usize, R)> = thread::scope(|scope| {
        let asking: Vec<_> = (0..all.len().min(MOST)).map(|_| scope.spawn(work)).collect();
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
    fn all_are_asked_at_once_and_answers_stand_in_order() {
        let all: Vec<usize> = (0..MOST).collect();
        let met = Barrier::new(MOST);
        let answers = abreast(&all, |n| {
            met.wait();
            n * 2
        });
        assert_eq!(answers, all.iter().map(|n| n * 2).collect::<Vec<_>>());
        let many: Vec<usize> = (0..5 * MOST).collect();
        assert_eq!(abreast(&many, |n| *n), many);
        assert!(abreast(&[], |n: &usize| *n).is_empty());
    }
}
