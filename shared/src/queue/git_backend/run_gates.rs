//! Runs gates in a scratch worktree at exactly the commit that is to land. Results are remembered by tree.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use serde::Serialize;

use super::{
    DrainMerge, GitQueue,
    other_repos::{GatePlace, absent},
};
use crate::{
    git::RefMove,
    message::last_chars,
    mutex::MutexExt,
    name::{Oid, TaskId},
    pipeline::{
        ConcurrentChildren, KnownRed, PipelineError, Redaction, TestObservation, TestTally, ran_no_tests,
    },
    process::{Ending, Limits, Program, Supervised, SupervisedEnd},
    queue::{
        Failing, GATES, Gate, GateFault, GateVerdict, QueueError, QueueEvent, RememberedResults, Ticket,
    },
    record::log_time,
    safe_files,
    sandbox::{SandboxedChild, describe_denials},
    worktree::{Scratch, take_uncopied_files},
};

/// How many results are kept in refs.
const MAX_RESULTS: usize = 500;
/// For how many seconds a failure on the target is assumed to persist.
const BELIEVED: i64 = 3600;
/// How many characters of each stream are kept in a record.
const TAIL: usize = 2000;
/// How many bytes of each stream are read for counts and names of tests, as for the test step of a task.
const READ: usize = 512 * 1024;

/// The result of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Green,
    Red,
    Broken,
}

/// One result of a gate. It is written into git. The queue never reads it from there; `verify` compares it with history.
#[derive(Debug, Clone, Serialize)]
pub(in crate::queue) struct GateRecord {
    pub(super) answer: Answer,
    /// How many tests ran.
    #[serde(skip)]
    pub(super) tally: TestTally,
    gate: Gate,
    commit: Oid,
    tree: Oid,
    why: String,
    #[serde(skip)]
    fault: GateFault,
    seconds: f64,
    time: i64,
    log: String,
    tail: String,
    /// What the sandbox refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<String>,
}

/// Results of gates in this process, by tree and gate, shared by all drains.
#[derive(Debug, Default)]
pub struct GateResults(Mutex<HashMap<(Oid, String), GateRecord>>);

impl GateResults {
    fn find(&self, tree: Oid, gate: &Gate) -> Option<GateRecord> {
        let results = self.0.hold();
        results.get(&(tree, gate.key())).cloned()
    }

    fn keep(&self, result: &GateRecord) {
        let mut results = self.0.hold();
        results.insert((result.tree, result.gate.key()), result.clone());
    }
}

impl GitQueue<'_> {
    /// Runs the gates in order, up to the first that does not pass.
    pub(super) fn run_gates(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        remembered: RememberedResults,
    ) -> Result<GateVerdict, QueueError> {
        for gate in gates {
            let Some(result) = self.result_of(gate, commit, remembered)? else {
                return Ok(GateVerdict::Broken(absent(gate, commit)));
            };
            let failing = result.failing(gate, commit);
            match result.answer {
                Answer::Green => {
                    if let Some(denied) = &result.denied
                        && let Some(DrainMerge { denials, .. }) = self.merges.get_mut(&commit)
                    {
                        let words = format!("the gate '{}': {denied}", gate.name);
                        denials.extend((!denials.contains(&words)).then_some(words));
                    }
                    if let Some(why) = self.find_fewer_tests(gate, gates, commit, result.tally)? {
                        let tail = format!("{why}\n{}", failing.tail);
                        return Ok(GateVerdict::Red(Failing { why, tail, ran_fewer: true, ..failing }));
                    }
                }
                Answer::Red => return Ok(GateVerdict::Red(failing)),
                Answer::Broken => return Ok(GateVerdict::Broken(failing)),
            }
        }
        Ok(GateVerdict::Green)
    }

    /// The result of a gate for a commit. `None` if its repository is not here.
    pub(super) fn result_of(
        &mut self,
        gate: &Gate,
        commit: Oid,
        remembered: RememberedResults,
    ) -> Result<Option<GateRecord>, QueueError> {
        let Some(place) = self.find_gate_place(gate, commit)? else { return Ok(None) };
        let key = (place.tree, gate.key());
        let known = match self.results.get(&key).cloned() {
            Some(result) => Some(result),
            None => self.remembered(gate, place.tree),
        };
        let result = match known {
            Some(result) if result.answer == Answer::Green || remembered == RememberedResults::Any => result,
            _ => {
                self.gate_runs += 1;
                self.run_gate(gate, &place)?
            }
        };
        self.results.insert(key, result.clone());
        Ok(Some(result))
    }

    /// Whether a gate failed on this tree in this drain, or recently in another drain of this process.
    pub(super) fn is_known_to_fail_on_target(
        &mut self,
        commit: Oid,
        gate: &Gate,
    ) -> Result<bool, QueueError> {
        let Some(GatePlace { tree, .. }) = self.find_gate_place(gate, commit)? else { return Ok(false) };
        let since = (self.options.clock)() - BELIEVED;
        Ok(match self.results.get(&(tree, gate.key())) {
            Some(result) => result.answer == Answer::Red,
            None => {
                let result = self.options.memory.results.find(tree, gate);
                result.is_some_and(|result| result.answer == Answer::Red && result.time > since)
            }
        })
    }

    /// The result of an earlier drain of this process. Only passes are reused: a failure may have been fixed. Results
    /// in refs are for people and are never read, because anyone who can write a ref could have written them.
    fn remembered(&self, gate: &Gate, tree: Oid) -> Option<GateRecord> {
        self.options.memory.results.find(tree, gate).filter(|result| result.answer == Answer::Green)
    }

    /// Describes a commit for people: which tasks are merged into what.
    fn describe_tested(&self, gate: &Gate, commit: Oid) -> Result<String, QueueError> {
        let short = commit.short();
        if let Some(repo) = &gate.repo {
            return Ok(format!("{short} in '{repo}'"));
        }
        // `tip` may itself run gates, on a parked landing.
        let tip = match &self.seen {
            Some(seen) => Some(seen.position.tip()),
            None => self.repository.find_branch(self.into)?,
        };
        let merges = self.merges_below(commit).take_while(|(at, _)| Some(*at) != tip);
        let mut merges: Vec<&DrainMerge> = merges.map(|(_, merge)| merge).collect();
        let base = merges.last().map_or(commit, |merge| merge.onto);
        merges.reverse();
        let tasks: Vec<&str> = merges.iter().map(|merge| merge.task.as_str()).collect();
        let tasks = match tasks.split_last() {
            None if Some(base) == tip => return Ok(format!("{} ({short})", self.into)),
            None => return Ok(format!("{} at {short}", self.into)),
            Some((last, [])) => (*last).to_owned(),
            Some((last, more)) => format!("{} and {last}", more.join(", ")),
        };
        // Tasks are merged into an earlier commit of the target to find out which of them is the cause of a failure.
        Ok(match Some(base) == tip {
            true => format!("{tasks} merged into {} ({short})", self.into),
            false => {
                let since = base.short();
                format!("{tasks} on {} as it was at {since}, before later landings ({short})", self.into)
            }
        })
    }

    fn run_gate(&mut self, gate: &Gate, gate_place: &GatePlace) -> Result<GateRecord, QueueError> {
        let GatePlace { other, commit, tree } = gate_place;
        let (pool, commit, tree) = (self.gate_pool(gate_place)?, *commit, *tree);
        let tested = self.describe_tested(gate, commit)?;
        // A gate that failed runs a second time on the same files before a task is blamed.
        let is_repeated = self.results.contains_key(&(tree, gate.key()));
        let again = if is_repeated { " again, to be sure" } else { "" };
        let words = format!("testing {tested} with gate '{}'{again}", gate.name);
        (self.on_event)(QueueEvent::Progress { task: None, words });
        let log = self.new_log(&format!("gate-{}", gate.name))?;
        let file = safe_files::open_log(&self.repository.top().join(&log))
            .map_err(|source| QueueError::File { path: log.clone(), source })?;
        let mut scratch = pool.scratch("gate", commit)?;
        pool.refresh(&scratch, commit, &self.options.merge.keep)?;
        for note in take_uncopied_files() {
            (self.on_event)(QueueEvent::note(note.to_string()));
        }
        let place = scratch.repository.clone();
        // Changes by the user's own set-up commands are intended, so look only now.
        let concurrent_children = ConcurrentChildren::count(&place);
        let before = scratch.repository.read_tracked(tree, concurrent_children.at_start())?;
        let program = Program::located("sh")
            .args(["-c", &gate.command])
            .dir(&scratch.path)
            .env("ARBORIST_GATE", &gate.name);
        let child =
            SandboxedChild { step: "gate", places: vec![scratch.path.clone()], ..SandboxedChild::default() };
        let confinement = self.options.worktrees.sandbox.confine(&child);
        let program = program.confined_if(confinement.clone());
        let program = self.for_run(program, other.as_ref(), &scratch.path);
        let config_guard = self.options.config_guard.clone();
        let (ended, violation) =
            config_guard.guard(&place, || self.supervise(gate, program, &mut scratch, file));
        pool.remember_kept(&place, &self.options.merge.keep);
        // Reported now, because the gate may have been interrupted, or may pass on its second run.
        if let Some(violation) = &violation {
            let words = format!("the result of the gate '{}' does not count: {violation}", gate.name);
            (self.on_event)(QueueEvent::note(words));
        }
        if matches!(ended.ending, Ending::Cancelled) {
            return Err(PipelineError::stopped(&self.options.cancel).into());
        }
        let denied = describe_denials(&ended.words(), confinement.as_ref());
        if let Some(words) = &denied {
            self.append_to_log(&log, &format!("=== {words} ===\n"))?;
        }
        if let Some(words) = denied.clone().filter(|_| !ended.ending.is_success()) {
            (self.on_event)(QueueEvent::note(words));
        }
        if let Some(error) = &ended.log_error {
            let words = format!("the log of the gate '{}' is incomplete: {error}", gate.name);
            (self.on_event)(QueueEvent::note(words));
        }
        let (answer, why) = match violation {
            Some(violation) => (Answer::Red, format!("'{}': {violation}", gate.command)),
            None => judge(gate, &ended),
        };
        let touched = match answer {
            Answer::Green => place
                .look_again(&before, concurrent_children.since_start(ConcurrentChildren::ONE_WATCH))?
                .shown(),
            Answer::Red | Answer::Broken => Vec::new(),
        };
        let (answer, why) = if touched.is_empty() { (answer, why) } else { inconclusive(gate, &touched) };
        let is_passed = answer == Answer::Green;
        let why = match &denied {
            Some(denied) if !is_passed => format!("{why}; {denied}"),
            _ => why,
        };
        let result = GateRecord {
            answer,
            tally: TestObservation::of(&ended).tally,
            gate: gate.clone(),
            commit,
            tree,
            why,
            fault: find_fault(&ended.ending),
            seconds: ended.took.as_secs_f64(),
            time: (self.options.clock)(),
            log,
            tail: [&ended.stdout.text, &ended.stderr.text].map(|text| last_chars(text, TAIL)).concat(),
            denied,
        };
        self.remember(&result)?;
        Ok(result)
    }

    /// Writes a line of ours into a log.
    fn append_to_log(&self, log: &str, words: &str) -> Result<(), QueueError> {
        let write = |path: &Path| safe_files::open_log(path)?.write_all(words.as_bytes());
        write(&self.repository.top().join(log))
            .map_err(|source| QueueError::File { path: log.to_owned(), source })
    }

    fn supervise(
        &self,
        gate: &Gate,
        program: Program,
        scratch: &mut Scratch,
        log: std::fs::File,
    ) -> SupervisedEnd {
        let whole = Some(Duration::from_secs(gate.timeout));
        Supervised::new(program)
            .limits(Limits { whole, log_size: self.options.log_size, ..Limits::default() })
            .until(&self.options.cancel)
            .log(log)
            .tail(READ)
            .filter(Redaction::new(&self.options.secrets))
            .with_orphan_lock(&mut scratch.orphan_lock)
            .run(|_| {})
    }

    /// Stores a result in a ref, on top of the previous one, so that a flaky gate can be recognised.
    fn remember(&self, result: &GateRecord) -> Result<(), QueueError> {
        self.options.memory.results.keep(result);
        let name = ref_of(&result.gate, result.tree);
        let old = self.repository.find_ref(&name)?;
        let word = match result.answer {
            Answer::Green => "green",
            Answer::Red => "red",
            Answer::Broken => "broken",
        };
        let subject = format!("gate: {} is {word}", result.gate.name);
        let parents: Vec<Oid> = old.into_iter().collect();
        let signing = self.repository.record_signing()?;
        let commit = self.repository.write_json_commit(&subject, &[result], &parents, signing)?;
        let keep = RefMove { name: &name, new: Some(commit), old };
        Ok(self.repository.move_refs(&[keep], "arborist: gate")?)
    }

    /// Deletes the oldest results if there are too many.
    pub(in crate::queue) fn forget_old_results(&self) -> Result<(), QueueError> {
        let refs = self.repository.list_refs_by_age(GATES)?;
        let old: Vec<RefMove<'_>> = refs
            .iter()
            .skip(MAX_RESULTS)
            .map(|found| RefMove { name: &found.name, new: None, old: Some(found.target) })
            .collect();
        if old.is_empty() {
            return Ok(());
        }
        Ok(self.repository.move_refs(&old, "arborist: forget")?)
    }

    /// A path for a new log, relative to the top. The directory is hidden from `git status`.
    pub(super) fn new_log(&self, what: &str) -> Result<String, QueueError> {
        let folder = self.options.log_dir.trim_matches('/').to_owned();
        self.repository.exclude_logs(&folder)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let what: String = what.chars().map(plain).collect();
        let stem = format!("{folder}/{what}_{}", log_time((self.options.clock)()));
        let path = |n: usize| if n == 1 { format!("{stem}.log") } else { format!("{stem}-{n}.log") };
        let is_free = |path: &String| !PathBuf::from(self.repository.top()).join(path).exists();
        Ok((1..).map(path).find(is_free).unwrap_or(stem))
    }
}

impl GateRecord {
    /// The failure for this gate. A remembered result may stem from the gate of another task.
    fn failing(&self, gate: &Gate, commit: Oid) -> Failing {
        Failing {
            gate: gate.clone(),
            commit,
            why: self.why.clone(),
            fault: self.fault,
            log: self.log.clone(),
            tail: self.tail.clone(),
            ran_fewer: false,
            denied: self.denied.clone(),
        }
    }
}

pub(super) fn ref_of(gate: &Gate, tree: Oid) -> String {
    format!("{GATES}{}/{tree}", gate.key())
}

/// The result of a gate. Only a gate that ran and tested something can pass or fail.
fn judge(gate: &Gate, ended: &SupervisedEnd) -> (Answer, String) {
    let why = format!("'{}' {}", gate.command, ended.ending);
    let output = format!("{}\n{}", ended.stdout.text, ended.stderr.text);
    match ended.ending {
        _ if !ended.survivors.is_empty() => (Answer::Broken, format!("{why}, and left processes behind")),
        Ending::Exited(126 | 127) => (Answer::Broken, why),
        Ending::Exited(0) if gate.is_test => (Answer::Green, why),
        Ending::Exited(_) if gate.known_red.excuses(&TestObservation::of(ended)) => {
            (Answer::Green, format!("{why}, but only because of tests that are known to fail"))
        }
        Ending::Exited(_) if ran_no_tests(&output) => (Answer::Broken, format!("{why}, but ran no tests")),
        Ending::Exited(0) => (Answer::Green, why),
        Ending::Exited(_) => (Answer::Red, why),
        _ => (Answer::Broken, why),
    }
}

/// What kept a gate from giving a result, if it gave none.
fn find_fault(ending: &Ending) -> GateFault {
    match ending {
        Ending::Exited(127) => GateFault::Missing,
        Ending::TimedOut { .. } => GateFault::TooSlow,
        _ => GateFault::Other,
    }
}

/// A gate that saw other files than the commit's says nothing about the commit.
fn inconclusive(gate: &Gate, touched: &[String]) -> (Answer, String) {
    let why = format!(
        "the result of '{}' does not count, because the command, or another process, wrote to tracked files: {}",
        gate.command,
        touched.join(", ")
    );
    (Answer::Broken, why)
}

impl GitQueue<'_> {
    /// The tests that are known to fail once a ticket is merged onto this commit.
    pub(super) fn known_red(&self, ticket: &Ticket, onto: Oid) -> Result<KnownRed, QueueError> {
        let Some(run) = self.history() else { return Ok(KnownRed::default()) };
        let mut known = KnownRed::before_run(self.repository, run)?;
        let mut there: HashSet<&TaskId> = self.merges_below(onto).map(|(_, merge)| &merge.task).collect();
        there.insert(&ticket.task);
        let is_there = |task: &TaskId| there.contains(task) || run.has_landed(task);
        for (red, fixers) in &self.options.plan.tests_first {
            let is_open = fixers.is_empty() || !fixers.iter().all(is_there);
            let own = KnownRed::of_task(run, red).filter(|_| is_there(red) && is_open);
            known = own.map_or(known.clone(), |own| known.join(&own));
        }
        Ok(known)
    }
}
