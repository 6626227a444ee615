//! Asking gates: in a scratch worktree at exactly the commit that is to land. What a gate said to a tree is remembered.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::Serialize;

use super::{GitQueue, abroad::absent};
use crate::{
    git::{RefMove, Signing},
    name::Oid,
    pipeline::{Neighbours, Observed, PipelineError, Redaction},
    process::{Ending, Limits, Program, Supervised, SupervisedEnd},
    queue::{Asking, Failing, Gate, GateVerdict, QueueError, counting::ran_no_tests},
    safe_files,
    worktree::{Pool, Scratch, take_left_out},
};

const GATES: &str = "refs/arborist/gates/";
/// So many results are remembered.
const MOST: usize = 500;
/// For how many seconds a target that was red is believed to be.
const BELIEVED: i64 = 3600;
/// How many characters of each stream are kept in a record.
const TAIL: usize = 2000;
/// How much of each stream is read for counts and the names of tests.
const READ: usize = 64 * 1024;

/// How a gate answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Green,
    Red,
    Broken,
}

/// What a gate said once. It is written into git as it is, and never read from there.
#[derive(Debug, Clone, Serialize)]
pub(in crate::queue) struct GateRecord {
    answer: Answer,
    gate: Gate,
    commit: Oid,
    tree: Oid,
    why: String,
    seconds: f64,
    time: i64,
    log: String,
    tail: String,
}

/// What gates said in this process, by tree and gate, from one drain to the next.
#[derive(Debug, Default)]
pub struct GateResults(Mutex<HashMap<(Oid, String), GateRecord>>);

impl GateResults {
    fn find(&self, tree: Oid, gate: &Gate) -> Option<GateRecord> {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.get(&(tree, gate.key())).cloned()
    }

    fn keep(&self, said: &GateRecord) {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.insert((said.tree, said.gate.key()), said.clone());
    }
}

impl GitQueue<'_> {
    /// Asks each gate in turn, up to the first that does not let the commit through.
    pub(super) fn ask_all(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        asking: Asking,
    ) -> Result<(GateVerdict, usize), QueueError> {
        let merged = self.tree_of(commit)?;
        let mut runs = 0;
        for gate in gates {
            let abroad = match &gate.repo {
                Some(repo) => match self.find_abroad(gate)? {
                    Some(abroad) => Some(abroad),
                    None => return Ok((GateVerdict::Broken(absent(gate, repo, commit)), runs)),
                },
                None => None,
            };
            let tree = abroad.as_ref().map_or(merged, |abroad| abroad.tree);
            let key = (tree, gate.key());
            let known = match self.said.get(&key).cloned() {
                Some(said) => Some(said),
                None => self.remembered(gate, tree),
            };
            let said = match known {
                Some(said) if said.answer == Answer::Green || asking == Asking::Once => said,
                _ => {
                    runs += 1;
                    match &abroad {
                        Some(abroad) => self.run_abroad(gate, abroad)?,
                        None => self.run(gate, commit, tree)?,
                    }
                }
            };
            let (answer, failing) = (said.answer, said.failing(gate, commit));
            self.said.insert(key, said);
            match answer {
                Answer::Green => {}
                Answer::Red => return Ok((GateVerdict::Red(failing), runs)),
                Answer::Broken => return Ok((GateVerdict::Broken(failing), runs)),
            }
        }
        Ok((GateVerdict::Green, runs))
    }

    /// Whether a gate was red on this tree in this drain, or in another of this process not long ago.
    pub(super) fn recalls_red(&mut self, commit: Oid, gate: &Gate) -> Result<bool, QueueError> {
        let tree = match (&gate.repo, self.find_abroad(gate)?) {
            (None, _) => self.tree_of(commit)?,
            (Some(_), Some(abroad)) => abroad.tree,
            (Some(_), None) => return Ok(false),
        };
        let since = (self.options.clock)() - BELIEVED;
        Ok(match self.said.get(&(tree, gate.key())) {
            Some(said) => said.answer == Answer::Red,
            None => {
                let said = self.options.results.find(tree, gate);
                said.is_some_and(|said| said.answer == Answer::Red && said.time > since)
            }
        })
    }

    /// A result of an earlier drain of this process. Only green ones hold: what was red or broken may have been mended.
    /// What stands in refs is for people: whoever can write a ref could have written it.
    fn remembered(&self, gate: &Gate, tree: Oid) -> Option<GateRecord> {
        self.options.results.find(tree, gate).filter(|said| said.answer == Answer::Green)
    }

    fn run(&mut self, gate: &Gate, commit: Oid, tree: Oid) -> Result<GateRecord, QueueError> {
        let pool = self.pool()?;
        self.run_in(&pool, gate, (commit, tree), Self::for_run)
    }

    pub(super) fn run_in(
        &mut self,
        pool: &Pool,
        gate: &Gate,
        (commit, tree): (Oid, Oid),
        dress: impl Fn(&Self, Program, &Path) -> Program,
    ) -> Result<GateRecord, QueueError> {
        (self.on_event)(crate::queue::QueueEvent::Gating { gate: gate.name.clone(), commit });
        let log = self.new_log(&format!("gate-{}", gate.name))?;
        let file = safe_files::open_log(&self.repository.top().join(&log))
            .map_err(|source| QueueError::File { path: log.clone(), source })?;
        let mut scratch = pool.scratch("gate", commit)?;
        pool.refresh(&scratch, commit, &self.options.keep)?;
        for note in take_left_out() {
            (self.on_event)(crate::queue::QueueEvent::Note { words: note.to_string() });
        }
        let place = scratch.repository.clone();
        // What the user's own set-up makes of tracked files is as they want it.
        let neighbours = Neighbours::count(&place);
        let before = scratch.repository.look_at_tracked(tree, neighbours.now())?;
        let program = Program::new("sh")
            .args(["-c", &gate.command])
            .dir(&scratch.path)
            .env("ARBORIST_GATE", &gate.name);
        let program = dress(self, program, &scratch.path);
        let config_guard = self.options.config_guard.clone();
        let (ended, trespass) =
            config_guard.guard(&place, || self.supervise(gate, program, &mut scratch, file));
        pool.remember_kept(&place, &self.options.keep);
        if matches!(ended.ending, Ending::Cancelled) {
            return Err(PipelineError::stopped(&self.options.cancel).into());
        }
        let (answer, why) = match trespass {
            Some(trespass) => (Answer::Red, format!("'{}': {trespass}", gate.command)),
            None => judge(gate, &ended),
        };
        let touched = match answer {
            Answer::Green => place.look_again(&before, neighbours.since(1))?.shown(),
            Answer::Red | Answer::Broken => Vec::new(),
        };
        let (answer, why) = if touched.is_empty() { (answer, why) } else { unsure(gate, &touched) };
        let said = GateRecord {
            answer,
            gate: gate.clone(),
            commit,
            tree,
            why,
            seconds: ended.took.as_secs_f64(),
            time: (self.options.clock)(),
            log,
            tail: [&ended.stdout.text, &ended.stderr.text].map(|text| last(text, TAIL)).concat(),
        };
        self.remember(&said)?;
        Ok(said)
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
            .limits(Limits { whole, ..Limits::default() })
            .until(&self.options.cancel)
            .log(log)
            .tail(READ)
            .filter(Redaction::new(&self.options.secrets))
            .with_orphan_lock(&mut scratch.orphan_lock)
            .run(|_| {})
    }

    /// Every result follows the one before, so that a gate that is red and then green is seen to be both.
    fn remember(&self, said: &GateRecord) -> Result<(), QueueError> {
        self.options.results.keep(said);
        let name = ref_of(&said.gate, said.tree);
        let old = self.repository.find_ref(&name)?;
        let json = serde_json::to_string(said)
            .map_err(|error| QueueError::Unreadable { name: name.clone(), why: error.to_string() })?;
        let word = match said.answer {
            Answer::Green => "green",
            Answer::Red => "red",
            Answer::Broken => "broken",
        };
        let message = format!("gate: {} is {word}\n\n{json}\n", said.gate.name);
        let tree = self.repository.empty_tree()?;
        let parents: Vec<Oid> = old.into_iter().collect();
        let commit = self.repository.write_joint(tree, &parents, &message, Signing::No)?;
        let keep = RefMove { name: &name, new: Some(commit), old };
        Ok(self.repository.move_refs(&[keep], "arborist: gate")?)
    }

    /// Forgets the oldest results where there are too many.
    pub(in crate::queue) fn forget_old_results(&self) -> Result<(), QueueError> {
        let refs = self.repository.list_refs_by_age(GATES)?;
        let old: Vec<RefMove<'_>> = refs
            .iter()
            .skip(MOST)
            .map(|found| RefMove { name: &found.name, new: None, old: Some(found.target) })
            .collect();
        if old.is_empty() {
            return Ok(());
        }
        Ok(self.repository.move_refs(&old, "arborist: forget")?)
    }

    /// A path for a log that is not there yet, relative to the top, and hidden from `git status`.
    pub(super) fn new_log(&self, what: &str) -> Result<String, QueueError> {
        let folder = self.options.log_dir.trim_matches('/').to_owned();
        self.repository.exclude(&format!("/{folder}/"))?;
        let now = Timestamp::from_second((self.options.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let what: String = what.chars().map(plain).collect();
        let stem = format!("{folder}/{what}_{}", now.strftime("%Y%m%dT%H%M%S"));
        let path = |n: usize| if n == 1 { format!("{stem}.log") } else { format!("{stem}-{n}.log") };
        let is_free = |path: &String| !PathBuf::from(self.repository.top()).join(path).exists();
        Ok((1..).map(path).find(is_free).unwrap_or(stem))
    }
}

impl GateRecord {
    /// What is remembered may have been said to another task: the gate is the one that is asked now.
    fn failing(&self, gate: &Gate, commit: Oid) -> Failing {
        Failing {
            gate: gate.clone(),
            commit,
            why: self.why.clone(),
            log: self.log.clone(),
            tail: self.tail.clone(),
        }
    }
}

fn ref_of(gate: &Gate, tree: Oid) -> String {
    format!("{GATES}{}/{tree}", gate.key())
}

/// Only a gate that ran, and tested something, can say yes or no.
fn judge(gate: &Gate, ended: &SupervisedEnd) -> (Answer, String) {
    let why = format!("'{}' {}", gate.command, ended.ending);
    let said = format!("{}\n{}", ended.stdout.text, ended.stderr.text);
    match ended.ending {
        _ if !ended.survivors.is_empty() => (Answer::Broken, format!("{why}, and left processes behind")),
        Ending::Exited(126 | 127) => (Answer::Broken, format!("{why}: is the command there?")),
        Ending::Exited(0) if gate.is_test => (Answer::Green, why),
        Ending::Exited(_) if gate.known_red.excuses(&Observed::of(ended)) => {
            (Answer::Green, format!("{why}, by nothing but tests that are known to fail"))
        }
        Ending::Exited(_) if ran_no_tests(&said) => (Answer::Broken, format!("{why}, but ran no tests")),
        Ending::Exited(0) => (Answer::Green, why),
        Ending::Exited(_) => (Answer::Red, why),
        _ => (Answer::Broken, why),
    }
}

/// A gate that let something else through than the commit has said nothing about the commit.
fn unsure(gate: &Gate, touched: &[String]) -> (Answer, String) {
    let why = format!(
        "'{}' does not count: tracked files were changed or written while it ran, by itself or by another process: {}",
        gate.command,
        touched.join(", ")
    );
    (Answer::Broken, why)
}

/// The last `count` characters.
fn last(text: &str, count: usize) -> &str {
    let skip = text.chars().count().saturating_sub(count);
    text.char_indices().nth(skip).map_or("", |(at, _)| &text[at..])
}
