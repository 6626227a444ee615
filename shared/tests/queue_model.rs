//! The merge queue against a world of plain maps: whatever is added, moved, killed, red or in conflict, everything lands
//! once, in order, tested, or is still queued.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arborist_core::{
    git::{Conflict, ConflictKind},
    name::{BranchName, Oid, TaskId},
    queue::{
        Asking, Batch, Closing, Drain, Failing, Gate, Ground, Merged, News, Outcome, Parking, Published,
        QueueError, RedTarget, Report, Resolution, Rules, Standing, Step, Ticket, Verdict, View,
    },
    settings::Origin,
};
use proptest::prelude::*;

const TASKS: usize = 6;

/// What a task is like.
#[derive(Debug, Clone, Default)]
struct Nature {
    is_bad: bool,
    /// Red the first time that it is tested.
    is_flaky: bool,
    /// Good alone, red together with this one.
    bad_with: Option<usize>,
    /// In conflict once this one has landed.
    clashes_with: Option<usize>,
    is_resolvable: bool,
    needs: Vec<usize>,
}

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

struct World {
    natures: Vec<Nature>,
    parents: HashMap<Oid, (Option<Oid>, Option<TaskId>)>,
    count: u64,
    branch: Oid,
    parked: Option<Oid>,
    tickets: BTreeMap<TaskId, Ticket>,
    landed_log: Vec<TaskId>,
    said: HashMap<BTreeSet<TaskId>, Verdict>,
    tested: HashSet<Oid>,
    asked: HashSet<usize>,
    is_in_the_way: bool,
    is_broken: bool,
    is_about_to_move: bool,
    fuel: Option<usize>,
}

fn task(n: usize) -> TaskId {
    format!("T{n}").parse().unwrap()
}

fn number(task: &TaskId) -> usize {
    task.as_str()[1..].parse().unwrap()
}

fn gate() -> Gate {
    Gate::new("check", "true", Origin::User)
}

impl World {
    fn new(natures: Vec<Nature>) -> Self {
        let start: Oid = format!("{:040x}", 1).parse().unwrap();
        Self {
            natures,
            parents: HashMap::from([(start, (None, None))]),
            count: 1,
            branch: start,
            parked: None,
            tickets: BTreeMap::new(),
            landed_log: Vec::new(),
            said: HashMap::new(),
            tested: HashSet::new(),
            asked: HashSet::new(),
            is_in_the_way: false,
            is_broken: false,
            is_about_to_move: false,
            fuel: None,
        }
    }

    fn commit(&mut self, parent: Oid, task: Option<TaskId>) -> Oid {
        self.count += 1;
        let id: Oid = format!("{:040x}", self.count).parse().unwrap();
        self.parents.insert(id, (Some(parent), task));
        id
    }

    /// The tasks up to a commit, oldest first.
    fn tasks(&self, tip: Oid) -> Vec<TaskId> {
        let mut found = Vec::new();
        let mut next = Some(tip);
        while let Some(commit) = next {
            let (parent, task) = &self.parents[&commit];
            found.extend(task.clone());
            next = *parent;
        }
        found.reverse();
        found
    }

    fn find(&self, tip: Oid, wanted: &TaskId) -> Option<Oid> {
        let mut next = Some(tip);
        while let Some(commit) = next {
            let (parent, task) = &self.parents[&commit];
            if task.as_ref() == Some(wanted) {
                return Some(commit);
            }
            next = *parent;
        }
        None
    }

    fn follows(&self, tip: Oid, base: Oid) -> bool {
        let mut next = Some(tip);
        while let Some(commit) = next {
            if commit == base {
                return true;
            }
            next = self.parents[&commit].0;
        }
        false
    }

    fn top(&self) -> Oid {
        self.parked.unwrap_or(self.branch)
    }

    /// Every effect may be the last of a process.
    fn effect(&mut self) -> Result<(), QueueError> {
        match &mut self.fuel {
            Some(0) => Err(QueueError::Resolver("killed".into())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn is_red(&self, tasks: &[TaskId]) -> bool {
        let there: HashSet<usize> = tasks.iter().map(number).collect();
        there.iter().any(|n| {
            let nature = &self.natures[*n];
            nature.is_bad || nature.bad_with.is_some_and(|other| there.contains(&other))
        })
    }

    fn add(&mut self, n: usize) {
        let id = task(n);
        if self.tickets.contains_key(&id) || self.find(self.top(), &id).is_some() {
            return;
        }
        let scope: BranchName = "main".parse().unwrap();
        let source = self.commit(self.branch, None);
        let needs = self.natures[n].needs.iter().map(|need| task(*need)).collect();
        let ticket = Ticket { needs, ..Ticket::new(scope, id.clone(), source, self.count as i64) };
        self.tickets.insert(id, ticket);
    }

    fn drain(&mut self) -> Result<Report, QueueError> {
        self.said.clear();
        if !self.is_in_the_way
            && let Some(parked) = self.parked.take()
        {
            self.branch = parked;
        }
        let rules = Rules {
            batch: Batch::Auto,
            red_target: RedTarget::Hold,
            resolve_attempts: 2,
            ..Rules::default()
        };
        Drain::new(self, rules).run()
    }

    fn check(&self) {
        let mut seen = HashSet::new();
        for (position, id) in self.tasks(self.top()).iter().enumerate() {
            assert!(seen.insert(id.clone()), "{id} landed twice");
            let before = &self.tasks(self.top())[..position];
            let needs = self.natures[number(id)].needs.iter().map(|need| task(*need));
            assert!(needs.into_iter().all(|need| before.contains(&need)), "{id} before what it needs");
        }
        assert!(!self.is_red(&self.tasks(self.branch)), "the target is red");
        let is_ours = self.parents[&self.branch].1.is_some();
        assert!(!is_ours || self.tested.contains(&self.branch), "the target was not tested");
    }
}

impl Ground for World {
    fn view(&mut self) -> Result<View, QueueError> {
        self.effect()?;
        if self.parked.is_some_and(|parked| !self.follows(parked, self.branch)) {
            self.parked = None;
        }
        let mut view = View::default();
        for (id, ticket) in self.tickets.clone() {
            if let Some(commit) = self.find(self.branch, &id) {
                self.effect()?;
                self.landed_log.push(id.clone());
                self.tickets.remove(&id);
                view.done.push((ticket, commit));
                continue;
            }
            let parked = self.parked.and_then(|parked| self.find(parked, &id));
            let standing = match (parked, &ticket.standing) {
                (Some(commit), _) => Standing::Parked { commit },
                (None, Standing::Parked { .. }) => Standing::Waiting,
                (None, other) => other.clone(),
            };
            let ticket = Ticket { standing, ..ticket };
            self.tickets.insert(id, ticket.clone());
            view.tickets.push(ticket);
        }
        view.landed = self.tasks(self.top()).into_iter().collect();
        view.tip = Some(self.top());
        view.is_gated = true;
        Ok(view)
    }

    fn tip(&mut self) -> Result<Oid, QueueError> {
        Ok(self.top())
    }

    fn merge(&mut self, onto: Oid, ticket: &Ticket) -> Result<Merged, QueueError> {
        self.effect()?;
        let clash = self.natures[number(&ticket.task)].clashes_with.map(task);
        if ticket.resolved.is_none() && clash.is_some_and(|clash| self.find(onto, &clash).is_some()) {
            let conflict = Conflict {
                kind: ConflictKind::Content,
                paths: vec!["a".into()],
                message: String::new(),
                base: None,
                ours: None,
                theirs: None,
            };
            return Ok(Merged::Conflict(vec![conflict]));
        }
        let commit = self.commit(onto, Some(ticket.task.clone()));
        Ok(Merged::Clean(Box::new(Step { ticket: ticket.clone(), commit, gates: vec![gate()] })))
    }

    fn excuse(&mut self, onto: Oid, step: &Step, red: &[Gate]) -> Result<Step, QueueError> {
        let gates = step.gates.iter().filter(|gate| !red.contains(gate)).cloned().collect();
        Ok(Step { commit: self.commit(onto, Some(step.ticket.task.clone())), gates, ..step.clone() })
    }

    fn ask(&mut self, commit: Oid, gates: &[Gate], asking: Asking) -> Result<(Verdict, usize), QueueError> {
        assert!(!gates.is_empty());
        let tasks = self.tasks(commit);
        let tree: BTreeSet<TaskId> = tasks.iter().cloned().collect();
        let failing =
            || Failing { gate: gate(), commit, why: String::new(), log: String::new(), tail: String::new() };
        let known = self.said.get(&tree).cloned();
        let known = known.filter(|said| *said == Verdict::Green || asking == Asking::Once);
        let runs = usize::from(known.is_none());
        let verdict = match known {
            Some(verdict) => verdict,
            None => {
                self.effect()?;
                let flaky: Vec<usize> = tasks
                    .iter()
                    .map(number)
                    .filter(|n| self.natures[*n].is_flaky && !self.asked.contains(n))
                    .collect();
                self.asked.extend(&flaky);
                match (self.is_broken, self.is_red(&tasks) || !flaky.is_empty()) {
                    (true, _) => Verdict::Broken(failing()),
                    (false, true) => Verdict::Red(failing()),
                    (false, false) => Verdict::Green,
                }
            }
        };
        if verdict == Verdict::Green {
            self.tested.insert(commit);
        }
        self.said.insert(tree, verdict.clone());
        Ok((verdict, runs))
    }

    fn is_known_red(&mut self, commit: Oid, _: &Gate) -> Result<bool, QueueError> {
        let tree: BTreeSet<TaskId> = self.tasks(commit).into_iter().collect();
        Ok(matches!(self.said.get(&tree), Some(Verdict::Red(_))))
    }

    fn publish(&mut self, base: Oid, steps: &[Step]) -> Result<Published, QueueError> {
        self.effect()?;
        if std::mem::take(&mut self.is_about_to_move) {
            self.branch = self.commit(self.branch, None);
            self.parked = None;
        }
        if self.top() != base {
            return Ok(Published::Moved);
        }
        let last = steps.last().unwrap().commit;
        if self.is_in_the_way {
            self.parked = Some(last);
            self.effect()?;
            for step in steps {
                self.note(&step.ticket, Standing::Parked { commit: step.commit })?;
            }
            return Ok(Published::Parked(Parking { why: String::new(), command: String::new() }));
        }
        self.branch = last;
        self.parked = None;
        self.effect()?;
        for step in steps {
            self.landed_log.push(step.ticket.task.clone());
            self.tickets.remove(&step.ticket.task);
        }
        Ok(Published::Landed)
    }

    fn note(&mut self, ticket: &Ticket, standing: Standing) -> Result<(), QueueError> {
        self.effect()?;
        self.tickets.insert(ticket.task.clone(), Ticket { standing, ..ticket.clone() });
        Ok(())
    }

    fn close(&mut self, ticket: &Ticket, _: Closing) -> Result<(), QueueError> {
        self.tickets.remove(&ticket.task);
        Ok(())
    }

    fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError> {
        let mut tried = ticket.clone();
        tried.tries.push("tried".into());
        self.note(&tried, tried.standing.clone())?;
        self.effect()?;
        if !self.natures[number(&ticket.task)].is_resolvable {
            return Ok(Resolution::Failed(Box::new(tried)));
        }
        tried.resolved = Some(ticket.source);
        tried.standing = Standing::Waiting;
        self.note(&tried, Standing::Waiting)?;
        Ok(Resolution::Resolved(Box::new(tried)))
    }

    fn tell(&mut self, _: News) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    fn now(&self) -> i64 {
        self.count as i64
    }
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
    fn meet(&mut self, event: &Event) {
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
                self.view().unwrap();
            }
            Event::Checkout { is_in_the_way } => self.is_in_the_way = *is_in_the_way,
            Event::Gate { is_broken } => self.is_broken = *is_broken,
            Event::Retry => {
                for ticket in self.tickets.values_mut() {
                    if !matches!(ticket.standing, Standing::Parked { .. }) {
                        ticket.standing = Standing::Waiting;
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
    fn everything_lands_once_tested_and_in_order_or_is_still_queued(
        natures in natures(),
        events in proptest::collection::vec(event(), 1..30),
    ) {
        let mut world = World::new(natures);
        let mut added: BTreeSet<usize> = BTreeSet::new();
        for event in &events {
            if let Event::Add(n) = event {
                added.insert(*n);
            }
            world.meet(event);
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
        let landed = |report: &Report| {
            report.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Landed { .. })).count()
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
            prop_assert!(!is_good || ticket.standing != Standing::Waiting, "{} waits for nothing", id);
        }
    }
}
