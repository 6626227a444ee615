//! Limits how many task threads do the driver's own work at the same time.
//!
//! With many jobs, agents often end at about the same time. If all of their threads then worked at once, they would all
//! be done late, and the next agents would all start late. In turn, the first threads are done early, and their next
//! agents already run while the driver serves the other threads.
//!
//! A thread gives its slot up while it waits for a supervised child or for a provider. Waiting for a slot never blocks for
//! good: a thread that has waited too long works without one, so that a thread with a slot may wait for any lock. No thread
//! may hold a lock that others need when it takes a slot.

use std::{
    cell::Cell,
    collections::VecDeque,
    num::NonZero,
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::mutex::MutexExt;

/// Some of these threads wait for git or for the disk, so there are more slots than processors.
const SLOTS_PER_PROCESSOR: usize = 2;

/// Longer than the threads of many jobs usually need for their turn. It is reached if those with slots wait for this thread,
/// or fill large worktrees.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

static SLOTS: Slots = Slots { queue: Mutex::new(SlotQueue::new()), changed: Condvar::new() };

thread_local! {
    /// Whether this thread takes part, and whether it has a slot.
    static STATE: Cell<ThreadState> = const { Cell::new(ThreadState::Outside) };
}

/// What a thread has to do with slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    /// It works without a slot, as all threads do except those of tasks.
    Outside,
    /// It has a slot.
    HasSlot,
    /// It waited too long and works without one.
    WithoutSlot,
}

struct Slots {
    queue: Mutex<SlotQueue>,
    changed: Condvar,
}

/// How many slots are taken, and the threads that wait for one, first come, first served.
struct SlotQueue {
    taken: usize,
    next_ticket: u64,
    waiting: VecDeque<u64>,
}

impl SlotQueue {
    const fn new() -> Self {
        Self { taken: 0, next_ticket: 0, waiting: VecDeque::new() }
    }
}

/// Does `work` with a slot, except while it is in [`without_slot`].
pub fn with_slot<T>(work: impl FnOnce() -> T) -> T {
    enter();
    let _leave = AtEnd(|| leave(ThreadState::Outside));
    work()
}

/// Gives the slot of this thread up, if it has one, while it waits for something that may take long.
pub fn without_slot<T>(wait: impl FnOnce() -> T) -> T {
    let before = STATE.get();
    if before == ThreadState::Outside {
        return wait();
    }
    leave(ThreadState::Outside);
    // The slot is taken again also after a panic, because `with_slot` gives it back.
    let _again = AtEnd(enter);
    wait()
}

/// Calls a function when it is dropped, also after a panic.
struct AtEnd(fn());

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0();
    }
}

/// Waits for a slot of this thread.
fn enter() {
    STATE.set(if SLOTS.take(number_of_slots(), LONGEST_WAIT) {
        ThreadState::HasSlot
    } else {
        ThreadState::WithoutSlot
    });
}

fn leave(after: ThreadState) {
    if STATE.replace(after) == ThreadState::HasSlot {
        SLOTS.give_back();
    }
}

fn number_of_slots() -> usize {
    SLOTS_PER_PROCESSOR * thread::available_parallelism().map_or(1, NonZero::get)
}

impl Slots {
    /// Takes one of `count` slots. Returns false if none was free in `time`.
    fn take(&self, count: usize, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut queue = self.queue.hold();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back(ticket);
        loop {
            if queue.taken < count && queue.waiting.front() == Some(&ticket) {
                queue.waiting.pop_front();
                queue.taken += 1;
                break;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                queue.waiting.retain(|waiting| *waiting != ticket);
                // Another thread may be the first in the queue now.
                self.changed.notify_all();
                return false;
            }
            queue = self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // Two slots may have become free at once.
        self.changed.notify_all();
        true
    }

    fn give_back(&self) {
        self.queue.hold().taken -= 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    fn slots() -> Arc<Slots> {
        Arc::new(Slots { queue: Mutex::new(SlotQueue::new()), changed: Condvar::new() })
    }

    #[test]
    fn no_more_threads_than_slots_work_at_once_and_all_get_their_turn() {
        let slots = slots();
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let (slots, working, most) = (Arc::clone(&slots), Arc::clone(&working), Arc::clone(&most));
                thread::spawn(move || {
                    assert!(slots.take(3, Duration::from_secs(60)));
                    most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    working.fetch_sub(1, Ordering::SeqCst);
                    slots.give_back();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
    }

    #[test]
    fn a_thread_that_waits_too_long_goes_on_without_a_slot_and_leaves_the_queue() {
        let slots = slots();
        assert!(slots.take(1, Duration::ZERO));
        assert!(!slots.take(1, Duration::from_millis(1)));
        slots.give_back();
        assert!(slots.take(1, Duration::ZERO));
    }

    #[test]
    fn a_slot_is_given_up_while_its_thread_waits() {
        with_slot(|| {
            assert_eq!(STATE.get(), ThreadState::HasSlot);
            without_slot(|| assert_eq!(STATE.get(), ThreadState::Outside));
            assert_eq!(STATE.get(), ThreadState::HasSlot);
        });
        assert_eq!(STATE.get(), ThreadState::Outside);
        without_slot(|| assert_eq!(STATE.get(), ThreadState::Outside));
        assert_eq!(STATE.get(), ThreadState::Outside);
    }
}
