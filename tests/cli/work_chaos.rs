//! Workers that are killed or stopped past their time to live, and a server whose connections are cut: every task lands
//! once, and only what the gate has tested.
//! `WORK_CHAOS=16,200,1 cargo test --test cli work_chaos` has 16 workers, 200 tasks and the seed 1.

use std::{
    collections::BTreeSet,
    fs,
    process::Child,
    time::{Duration, Instant},
};

use crate::{
    git_daemon::GitDaemon,
    shared_plan::{SharedPlan, WORKER, signal},
};

/// How long a claim lives, in seconds.
const TTL: u32 = 4;
/// A run that has not ended by then is stuck.
const LIMIT: Duration = Duration::from_secs(3600);

/// Random numbers that can be repeated (SplitMix64).
struct Random(u64);

impl Random {
    fn random_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A worker in a clone.
struct RunningWorker {
    number: usize,
    child: Child,
    /// When it will be continued, if it is stopped.
    stopped: Option<Instant>,
}

/// What happened to the workers and the server.
#[derive(Debug, Default)]
struct Mishaps {
    kills: usize,
    stops: usize,
    cuts: usize,
}

fn parameters() -> (usize, usize, u64) {
    let given = std::env::var("WORK_CHAOS").unwrap_or_else(|_| "2,4,1".into());
    let numbers: Vec<u64> = given.split(',').map(|number| number.trim().parse().unwrap()).collect();
    (numbers[0] as usize, numbers[1] as usize, numbers[2])
}

#[test]
fn every_task_lands_once_although_workers_are_killed_and_connections_cut() {
    let (workers, tasks, seed) = parameters();
    let agent = WORKER.replace("*) pwd", "*) sleep 0.$(($$ % 7)); pwd");
    let shared = SharedPlan::new(tasks, workers + 1, &agent);
    shared.set_ttl(TTL);
    let root = shared.repo.root().display().to_string();
    let gate = format!("git rev-parse HEAD^{{tree}} >> '{root}/gated'");
    shared.repo.git(["config", "--global", "arborist.merge.gates.check.command", &gate]).succeeds();
    let hook = format!("#!/bin/sh\n[ $1 != refs/heads/main ] || echo $3 >> '{root}/pushed'\n");
    shared.repo.write_script("../origin.git/hooks/update", &hook);
    let mut daemon = Some(GitDaemon::start(&shared.repo));
    let port = daemon.as_ref().unwrap().port();
    let url = daemon.as_ref().unwrap().url("origin");
    for number in 0..=workers {
        shared.repo.git_in(&shared.clone(number), ["remote", "set-url", "origin", &url]).succeeds();
    }
    let start = |number| RunningWorker { number, child: shared.start_silent(number), stopped: None };
    let mut random = Random(seed);
    let mut mishaps = Mishaps::default();
    let mut running: Vec<RunningWorker> = (0..workers).map(start).collect();
    let begun = Instant::now();
    while shared.landings().len() < tasks {
        assert!(begun.elapsed() < LIMIT, "{} of {tasks} have landed; {mishaps:?}", shared.landings().len());
        std::thread::sleep(Duration::from_millis(200 + random.random_below(400)));
        let victim = usize::try_from(random.random_below(workers as u64)).unwrap();
        let worker = &mut running[victim];
        match random.random_below(10) {
            0 | 1 if worker.stopped.is_none() => {
                signal(&worker.child, "KILL");
                mishaps.kills += 1;
            }
            2 if worker.stopped.is_none() => {
                signal(&worker.child, "STOP");
                worker.stopped = Some(Instant::now() + Duration::from_secs(u64::from(TTL) * 2));
                mishaps.stops += 1;
            }
            3 => {
                // The daemon's children lose their connections with it.
                drop(daemon.take());
                std::thread::sleep(Duration::from_millis(random.random_below(500)));
                daemon = std::iter::repeat_with(|| GitDaemon::at(&shared.repo, port)).flatten().next();
                mishaps.cuts += 1;
            }
            _ => {}
        }
        for worker in &mut running {
            if worker.stopped.is_some_and(|until| until <= Instant::now()) {
                signal(&worker.child, "CONT");
                worker.stopped = None;
            }
            if worker.child.try_wait().unwrap().is_some() {
                *worker = start(worker.number);
            }
        }
    }
    for mut worker in running {
        if worker.stopped.is_some() {
            signal(&worker.child, "CONT");
        }
        let _ = worker.child.wait();
    }
    shared.work(workers, &[]).succeeds();
    let expected: Vec<String> = (1..=tasks).map(|task| format!("T{task:03}")).collect();
    assert_eq!(shared.landings(), expected, "every task lands once; {mishaps:?}");
    assert_eq!(shared.left(), "", "no claim and no branch is left");
    require_gated(&shared);
    shared.repo.git_in(&shared.clone(workers), ["pull", "-q"]).succeeds();
    for task in &expected {
        assert_eq!(
            fs::read_to_string(shared.clone(workers).join(format!("{task}.txt"))).unwrap().trim(),
            task
        );
    }
    shared.repo.arborist_in(&shared.clone(workers), ["verify"]).succeeds();
    println!("{workers} workers, {tasks} tasks, {:.0} s: {mishaps:?}", begun.elapsed().as_secs_f64());
}

/// Every commit that the target was moved to has a tree that the gate has tested, except for the start of the run.
fn require_gated(shared: &SharedPlan) {
    let read = |name: &str| fs::read_to_string(shared.repo.root().join(name)).unwrap();
    let gated: BTreeSet<String> = read("gated").lines().map(str::to_owned).collect();
    for commit in read("pushed").lines() {
        let subject = shared.at_origin(["log", "-1", "--format=%s", commit]);
        let tree = shared.at_origin(["rev-parse", &format!("{commit}^{{tree}}")]);
        assert!(subject.contains("@run-start)") || gated.contains(&tree), "{commit} {subject}");
    }
}
