//! The merge queue against a world of plain maps: whatever is added, moved, killed, red or in conflict, everything lands
//! once, in order, tested, or is still queued.

use std::collections::BTreeSet;

use crate::queue_world::{Nature, TASKS, World, number, task};
use arborist_core::queue::{QueueBackend, QueueReport, TicketOutcome, TicketState};
use proptest::prelude::*;

/// What may happen.
#[derive(Debug, Clone)]
enum Event {
    Add(usize),
    Drain,
    /// A drain that dies at its n-th effect.
    Crash(usize),
    /// Somebody commits to the target, now or in the middle of the next landing.
    Move {
        is_late: bool,
    },
    Checkout {
        is_in_the_way: bool,
    },
    Gate {
        is_broken: bool,
    },
    Retry,
}

fn nature(n: usize) -> impl Strategy<Value = Nature> {
    let other = move || proptest::option::weighted(0.2, 0..TASKS);
    let needs = proptest::collection::vec(0..n.max(1), 0..=usize::from(n > 0));
    let flags = (proptest::bool::weighted(0.15), proptest::bool::weighted(0.1), any::<bool>());
    (flags, other(), other(), needs).prop_map(
        move |((is_bad, is_flaky, is_resolvable), bad_with, clashes_with, needs)| Nature {
            is_bad,
            is_flaky: is_flaky && !is_bad,
            is_resolvable,
            bad_with: bad_with.filter(|other| *other != n),
            clashes_with: clashes_with.filter(|other| *other != n),
            needs,
        },
    )
}

fn natures() -> impl Strategy<Value = Vec<Nature>> {
    (0..TASKS).map(nature).collect::<Vec<_>>()
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..TASKS).prop_map(Event::Add),
        2 => Just(Event::Drain),
        4 => (0..40_usize).prop_map(Event::Crash),
        2 => any::<bool>().prop_map(|is_late| Event::Move { is_late }),
        1 => any::<bool>().prop_map(|is_in_the_way| Event::Checkout { is_in_the_way }),
        1 => any::<bool>().prop_map(|is_broken| Event::Gate { is_broken }),
        1 => Just(Event::Retry),
    ]
}

impl World {
    fn apply_event(&mut self, event: &Event) {
        match event {
            Event::Add(n) => self.add(*n),
            Event::Drain => drop(self.drain().unwrap()),
            Event::Crash(fuel) => {
                self.fuel = Some(*fuel);
                let _ = self.drain();
                self.fuel = None;
            }
            Event::Move { is_late: true } => self.is_about_to_move = true,
            Event::Move { is_late: false } => {
                self.branch = self.commit(self.branch, None);
                self.repair_and_read().unwrap();
            }
            Event::Checkout { is_in_the_way } => self.is_in_the_way = *is_in_the_way,
            Event::Gate { is_broken } => self.is_broken = *is_broken,
            Event::Retry => {
                for ticket in self.tickets.values_mut() {
                    if !matches!(ticket.standing, TicketState::Parked { .. }) {
                        ticket.standing = TicketState::Waiting;
                        ticket.tries.clear();
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_ticket_lands_once_tested_and_in_order_or_stays_queued(
        natures in natures(),
        events in proptest::collection::vec(event(), 1..30),
    ) {
        let mut world = World::new(natures);
        let mut added: BTreeSet<usize> = BTreeSet::new();
        for event in &events {
            if let Event::Add(n) = event {
                added.insert(*n);
            }
            world.apply_event(event);
            world.check();
            for n in &added {
                let id = task(*n);
                let is_landed = world.find(world.top(), &id).is_some();
                prop_assert!(is_landed || world.tickets.contains_key(&id), "{} is lost", id);
            }
        }
        (world.is_in_the_way, world.is_broken, world.is_about_to_move) = (false, false, false);
        let report = world.drain().unwrap();
        world.check();
        prop_assert!(world.parked.is_none());
        let again = world.drain().unwrap();
        let landed = |report: &QueueReport| {
            report.outcomes.iter().filter(|(_, outcome)| matches!(outcome, TicketOutcome::Landed { .. })).count()
        };
        prop_assert_eq!(landed(&again), 0, "one drain does all that can be done: {:?}", report.outcomes);
        let mut log = world.landed_log.clone();
        log.sort();
        let mut tasks = world.tasks(world.branch);
        tasks.sort();
        prop_assert_eq!(log, tasks, "what is written down is what landed");
        for (id, ticket) in &world.tickets {
            let nature = &world.natures[number(id)];
            let has_all = nature.needs.iter().all(|need| world.find(world.branch, &task(*need)).is_some());
            let is_blameless = !nature.is_bad && nature.bad_with.is_none() && nature.clashes_with.is_none();
            let is_met = world.natures.iter().any(|other| other.bad_with == Some(number(id)));
            let is_good = is_blameless && !is_met && has_all;
            prop_assert!(!is_good || ticket.standing != TicketState::Waiting, "{} waits for nothing", id);
        }
    }
}

#[test]
fn nothing_lands_after_a_stop_request() {
    let mut world = World::new(vec![Nature::default(); TASKS]);
    world.apply_event(&Event::Add(0));
    world.is_stopped_when_asked = true;
    let report = world.drain().unwrap();
    assert!(report.is_stopped && report.gate_runs == 1);
    assert!(world.landed_log.is_empty() && world.tickets.contains_key(&task(0)));
}
