//! What an agent cannot do to the process that drives it.

#![cfg(target_os = "linux")]

use std::fs;

use arborist_testkit::{TestRepo, WORKER, is_installed};

#[test]
fn an_agent_cannot_open_the_memory_of_the_driver() {
    // Root may open everything, unless it gives up its capabilities.
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !is_installed("setpriv") {
        eprintln!("skipped: setpriv is not installed");
        return;
    }
    let drop = if is_root { "setpriv --bounding-set -all --inh-caps -all" } else { "" };
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        "export ROOT; {drop} sh -c 'true < /proc/$$/mem && echo own >> \"$ROOT/opened\"'
for file in mem environ; do {drop} sh -c \"true < /proc/$PPID/$file && echo $file >> '$ROOT/opened'\"; done 2>/dev/null
{WORKER}"
    ));
    repo.arborist(["garden"]).succeeds();
    let opened = fs::read_to_string(repo.root().join("opened")).unwrap();
    assert!(opened.lines().all(|line| line == "own") && !opened.is_empty(), "{opened}");
}
