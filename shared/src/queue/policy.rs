//! Pure decisions about the queue: the order of tickets, how many are tested together, and which of several land.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
    fmt,
    str::FromStr,
};

use super::{Priority, Ticket};
use crate::{name::TaskId, settings::Size};

/// Tickets in the order in which they are tried.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueOrder {
    /// The indexes of tickets that can land, each after everything that it needs.
    pub ready: Vec<usize>,
    /// Tickets that need something that has neither landed nor comes before them, and what they need.
    pub waiting: Vec<(usize, Vec<TaskId>)>,
}

/// Sort key: smaller ones come first.
type Rank<'a> = (Priority, i64, i64, &'a TaskId, usize);

fn rank(ticket: &Ticket, at: usize, now: i64) -> Rank<'_> {
    (ticket.priority.after(now - ticket.added), ticket.finished, ticket.added, &ticket.task, at)
}

/// Orders those of `tickets` for which `is_open` is true.
#[must_use]
pub fn arrange(
    tickets: &[Ticket],
    is_open: impl Fn(&Ticket) -> bool,
    landed: &HashSet<TaskId>,
    now: i64,
) -> QueueOrder {
    let open: Vec<usize> = (0..tickets.len()).filter(|at| is_open(&tickets[*at])).collect();
    let mut missing: HashMap<usize, HashSet<&TaskId>> = HashMap::new();
    let mut waiters: HashMap<&TaskId, Vec<usize>> = HashMap::new();
    let mut heap = BinaryHeap::new();
    for at in &open {
        let needs: HashSet<&TaskId> =
            tickets[*at].needs.iter().filter(|need| !landed.contains(*need)).collect();
        if needs.is_empty() {
            heap.push(Reverse(rank(&tickets[*at], *at, now)));
            continue;
        }
        needs.iter().for_each(|need| waiters.entry(need).or_default().push(*at));
        missing.insert(*at, needs);
    }
    let mut order = QueueOrder::default();
    while let Some(Reverse((.., at))) = heap.pop() {
        order.ready.push(at);
        for waiter in waiters.remove(&tickets[at].task).unwrap_or_default() {
            let Some(needs) = missing.get_mut(&waiter) else { continue };
            needs.remove(&tickets[at].task);
            if needs.is_empty() {
                missing.remove(&waiter);
                heap.push(Reverse(rank(&tickets[waiter], waiter, now)));
            }
        }
    }
    order.waiting = open
        .iter()
        .filter_map(|at| {
            let mut needs: Vec<TaskId> = missing.remove(at)?.into_iter().cloned().collect();
            needs.sort();
            Some((*at, needs))
        })
        .collect();
    order
}

/// How many tickets to stack, from the setting `merge.batch`, the number of recent tries and how many of them failed. A
/// stack is tested once, and halved if it fails; the rarer that is, the larger the stack may be. The bounds are those with
/// the fewest expected test runs.
pub(super) fn batch_size(setting: Option<Size>, tries: usize, reds: usize) -> usize {
    match setting {
        Some(Size::Number(size)) => size.max(1),
        _ if reds * 20 < tries || tries == 0 => 8,
        _ if reds * 20 < tries * 3 => 4,
        _ if reds * 5 <= tries => 2,
        _ => 1,
    }
}

/// Which of the wanted tasks land.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LandingPolicy {
    /// All that can.
    #[default]
    KeepClean,
    /// All of them at once, or none.
    AllOrNothing,
    /// The first `n` that can. The others are closed.
    Choose(usize),
}

impl LandingPolicy {
    /// How many tickets to stack and test next, given how many wanted ones have landed and the size of a batch. `None`
    /// if enough have landed.
    #[must_use]
    pub fn next_stack(self, landed: usize, size: usize) -> Option<usize> {
        match self {
            Self::KeepClean => Some(size),
            Self::AllOrNothing => Some(usize::MAX),
            Self::Choose(count) => (landed < count).then_some(1),
        }
    }

    /// Whether nothing of a stack lands if a ticket of it conflicts, waits or fails a gate.
    #[must_use]
    pub fn is_all_or_nothing(self) -> bool {
        self == Self::AllOrNothing
    }
}

impl fmt::Display for LandingPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepClean => f.pad("keep-clean"),
            Self::AllOrNothing => f.pad("all-or-nothing"),
            Self::Choose(count) => write!(f, "{count}"),
        }
    }
}

impl FromStr for LandingPolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "keep-clean" => Ok(Self::KeepClean),
            "all-or-nothing" => Ok(Self::AllOrNothing),
            "first" => Ok(Self::Choose(1)),
            count => match count.parse() {
                Ok(count) if count > 0 => Ok(Self::Choose(count)),
                _ => Err("it must be keep-clean, all-or-nothing, first, or a number, 1 or more"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automatic_batch_size_shrinks_with_the_failure_rate() {
        for (tries, reds, size) in
            [(0, 0, 8), (50, 0, 8), (50, 2, 8), (50, 3, 4), (50, 7, 4), (50, 8, 2), (50, 10, 2), (50, 11, 1)]
        {
            assert_eq!(batch_size(None, tries, reds), size, "{reds} of {tries}");
        }
        assert_eq!(batch_size(Some(Size::Number(3)), 50, 50), 3);
        assert_eq!(batch_size(Some(Size::Number(0)), 0, 0), 1);
    }

    #[test]
    fn each_queue_policy_decides_the_next_stack() {
        for (word, landed, next, is_all) in [
            ("keep-clean", 3, Some(8), false),
            ("all-or-nothing", 0, Some(usize::MAX), true),
            ("first", 0, Some(1), false),
            ("first", 1, None, false),
            ("2", 1, Some(1), false),
            ("2", 2, None, false),
        ] {
            let policy: LandingPolicy = word.parse().unwrap();
            assert_eq!(
                (policy.next_stack(landed, 8), policy.is_all_or_nothing()),
                (next, is_all),
                "{word} {landed}"
            );
        }
        assert!("0".parse::<LandingPolicy>().is_err() && "all".parse::<LandingPolicy>().is_err());
    }
}
