//! A world of plain maps that a queue can stand on: tasks of every nature, a target that moves, gates that break.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arborist_core::{
    git::{ConflictKind, MergeConflict},
    name::{BranchName, Oid, TaskId},
    queue::{
        Drain, DrainRules, EarlierLanding, Failing, Gate, GateFault, GateVerdict, LandingStep, LoggedOutcome,
        Merged, Parking, Published, QueueBackend, QueueError, QueueEvent, QueueReport, QueueView,
        RememberedResults, Resolution, Ticket, TicketState, UnparkWay,
    },
    settings::{Origin, RedTarget},
};

pub(crate) const TASKS: usize = 6;

/// What a task is like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nature {
    pub(crate) is_bad: bool,
    /// Red the first time that it is tested.
    pub(crate) is_flaky: bool,
    /// Good alone, red together with this one.
    pub(crate) bad_with: Option<usize>,
    /// In conflict once this one has landed.
    pub(crate) clashes_with: Option<usize>,
    pub(crate) is_resolvable: bool,
    pub(crate) needs: Vec<usize>,
}

pub(crate) struct World {
    pub(crate) natures: Vec<Nature>,
    pub(crate) parents: HashMap<Oid, (Option<Oid>, Option<TaskId>)>,
    pub(crate) count: u64,
    pub(crate) branch: Oid,
    pub(crate) parked: Option<Oid>,
    pub(crate) tickets: BTreeMap<TaskId, Ticket>,
    pub(crate) landed_log: Vec<TaskId>,
    pub(crate) said: HashMap<BTreeSet<TaskId>, GateVerdict>,
    pub(crate) tested: HashSet<Oid>,
    pub(crate) asked: HashSet<usize>,
    pub(crate) gate_runs: usize,
    pub(crate) is_in_the_way: bool,
    pub(crate) is_broken: bool,
    pub(crate) is_about_to_move: bool,
    /// Somebody wants to stop it while a gate is asked.
    pub(crate) is_stopped_when_asked: bool,
    pub(crate) is_stopped: bool,
    pub(crate) fuel: Option<usize>,
}

pub(crate) fn task(n: usize) -> TaskId {
    format!("T{n}").parse().unwrap()
}

pub(crate) fn number(task: &TaskId) -> usize {
    task.as_str()[1..].parse().unwrap()
}

pub(crate) fn gate() -> Gate {
    Gate::new("check", "true", Origin::User)
}

impl World {
    pub(crate) fn new(natures: Vec<Nature>) -> Self {
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
            gate_runs: 0,
            is_in_the_way: false,
            is_broken: false,
            is_about_to_move: false,
            is_stopped_when_asked: false,
            is_stopped: false,
            fuel: None,
        }
    }

    pub(crate) fn commit(&mut self, parent: Oid, task: Option<TaskId>) -> Oid {
        self.count += 1;
        let id: Oid = format!("{:040x}", self.count).parse().unwrap();
        self.parents.insert(id, (Some(parent), task));
        id
    }

    /// The tasks up to a commit, oldest first.
    pub(crate) fn tasks(&self, tip: Oid) -> Vec<TaskId> {
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

    pub(crate) fn find(&self, tip: Oid, wanted: &TaskId) -> Option<Oid> {
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

    pub(crate) fn follows(&self, tip: Oid, base: Oid) -> bool {
        let mut next = Some(tip);
        while let Some(commit) = next {
            if commit == base {
                return true;
            }
            next = self.parents[&commit].0;
        }
        false
    }

    pub(crate) fn top(&self) -> Oid {
        self.parked.unwrap_or(self.branch)
    }

    /// Every effect may be the last of a process.
    pub(crate) fn effect(&mut self) -> Result<(), QueueError> {
        match &mut self.fuel {
            Some(0) => Err(QueueError::Resolver("killed".into())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn is_red(&self, tasks: &[TaskId]) -> bool {
        let there: HashSet<usize> = tasks.iter().map(number).collect();
        there.iter().any(|n| {
            let nature = &self.natures[*n];
            nature.is_bad || nature.bad_with.is_some_and(|other| there.contains(&other))
        })
    }

    pub(crate) fn add(&mut self, n: usize) {
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

    pub(crate) fn drain(&mut self) -> Result<QueueReport, QueueError> {
        self.said.clear();
        self.gate_runs = 0;
        if !self.is_in_the_way
            && let Some(parked) = self.parked.take()
        {
            self.branch = parked;
        }
        let rules = DrainRules {
            batch: None,
            red_target: RedTarget::Hold,
            resolve_attempts: 2,
            ..DrainRules::default()
        };
        Drain::new(self, rules).run()
    }

    pub(crate) fn check(&self) {
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

impl QueueBackend for World {
    fn repair_and_read(&mut self) -> Result<QueueView, QueueError> {
        self.effect()?;
        if self.parked.is_some_and(|parked| !self.follows(parked, self.branch)) {
            self.parked = None;
        }
        let mut view = QueueView::default();
        for (id, ticket) in self.tickets.clone() {
            if let Some(commit) = self.find(self.branch, &id) {
                self.effect()?;
                self.landed_log.push(id.clone());
                self.tickets.remove(&id);
                view.done.push((ticket, commit));
                continue;
            }
            let parked = self.parked.and_then(|parked| self.find(parked, &id));
            let state = match (parked, &ticket.state) {
                (Some(commit), _) => TicketState::Parked { commit },
                (None, TicketState::Parked { .. }) => TicketState::Waiting,
                (None, other) => other.clone(),
            };
            let ticket = Ticket { state, ..ticket };
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
            let conflict = MergeConflict {
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
        Ok(Merged::Clean(Box::new(LandingStep { ticket: ticket.clone(), commit, gates: vec![gate()] })))
    }

    fn excuse(&mut self, onto: Oid, step: &LandingStep, red: &[Gate]) -> Result<LandingStep, QueueError> {
        let gates = step.gates.iter().filter(|gate| !red.contains(gate)).cloned().collect();
        Ok(LandingStep { commit: self.commit(onto, Some(step.ticket.task.clone())), gates, ..step.clone() })
    }

    fn run_gates(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        remembered: RememberedResults,
    ) -> Result<GateVerdict, QueueError> {
        assert!(!gates.is_empty());
        self.is_stopped |= self.is_stopped_when_asked;
        let tasks = self.tasks(commit);
        let tree: BTreeSet<TaskId> = tasks.iter().cloned().collect();
        let failing = || Failing {
            gate: gate(),
            commit,
            why: String::new(),
            fault: GateFault::Other,
            log: String::new(),
            tail: String::new(),
            ran_fewer: false,
            denied: None,
        };
        let known = self.said.get(&tree).cloned();
        let known = known.filter(|said| *said == GateVerdict::Green || remembered == RememberedResults::Any);
        let verdict = match known {
            Some(verdict) => verdict,
            None => {
                self.effect()?;
                self.gate_runs += 1;
                let flaky: Vec<usize> = tasks
                    .iter()
                    .map(number)
                    .filter(|n| self.natures[*n].is_flaky && !self.asked.contains(n))
                    .collect();
                self.asked.extend(&flaky);
                match (self.is_broken, self.is_red(&tasks) || !flaky.is_empty()) {
                    (true, _) => GateVerdict::Broken(failing()),
                    (false, true) => GateVerdict::Red(failing()),
                    (false, false) => GateVerdict::Green,
                }
            }
        };
        if verdict == GateVerdict::Green {
            self.tested.insert(commit);
        }
        self.said.insert(tree, verdict.clone());
        Ok(verdict)
    }

    fn take_gate_runs(&mut self) -> usize {
        std::mem::take(&mut self.gate_runs)
    }

    fn is_known_to_fail_on_target(&mut self, commit: Oid, _: &Gate) -> Result<bool, QueueError> {
        let tree: BTreeSet<TaskId> = self.tasks(commit).into_iter().collect();
        Ok(matches!(self.said.get(&tree), Some(GateVerdict::Red(_))))
    }

    fn landings_since(&mut self, ticket: &Ticket) -> Result<Vec<EarlierLanding>, QueueError> {
        let begun = self.parents[&ticket.source].0;
        let mut found = Vec::new();
        let mut next = Some(self.top());
        while let Some(commit) = next.filter(|commit| Some(*commit) != begun) {
            let (parent, task) = self.parents[&commit].clone();
            if let (Some(before), Some(task)) = (parent, task)
                && !ticket.needs.contains(&task)
            {
                found.push(EarlierLanding { task, before });
            }
            next = parent;
        }
        found.reverse();
        Ok(found)
    }

    fn publish(&mut self, base: Oid, steps: &[LandingStep]) -> Result<Published, QueueError> {
        self.effect()?;
        if std::mem::take(&mut self.is_about_to_move) {
            self.branch = self.commit(self.branch, None);
            self.parked = None;
        }
        if self.top() != base {
            return Ok(Published::TargetChanged);
        }
        let last = steps.last().unwrap().commit;
        if self.is_in_the_way {
            self.parked = Some(last);
            self.effect()?;
            for step in steps {
                self.set_state(&step.ticket, TicketState::Parked { commit: step.commit })?;
            }
            return Ok(Published::Parked(Parking {
                why: String::new(),
                way: UnparkWay::Run(String::new()),
                obstacle: None,
            }));
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

    fn set_state(&mut self, ticket: &Ticket, state: TicketState) -> Result<(), QueueError> {
        self.effect()?;
        self.tickets.insert(ticket.task.clone(), Ticket { state, ..ticket.clone() });
        Ok(())
    }

    fn close(&mut self, ticket: &Ticket, _: LoggedOutcome) -> Result<(), QueueError> {
        self.tickets.remove(&ticket.task);
        Ok(())
    }

    fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError> {
        let mut tried = ticket.clone();
        tried.tries.push("tried".into());
        self.set_state(&tried, tried.state.clone())?;
        self.effect()?;
        if !self.natures[number(&ticket.task)].is_resolvable {
            return Ok(Resolution::Failed);
        }
        tried.resolved = Some(ticket.source);
        self.set_state(&tried, TicketState::Waiting)?;
        Ok(Resolution::Resolved)
    }

    fn report(&mut self, _: QueueEvent) {}

    fn is_cancelled(&self) -> bool {
        self.is_stopped
    }

    fn now(&self) -> i64 {
        self.count as i64
    }
}
