//! `work.coordination`: claims and finished branches at another remote than the code.

use std::process::Child;

use crate::shared_plan::{CLAIMS, HELD, SharedPlan, WORKER, signal, wait_for_output};

/// A plan whose claims are at `claims.git`.
fn with_separate_coordination(tasks: usize, clones: usize, agent: &str) -> SharedPlan {
    let shared = SharedPlan::new(tasks, clones, agent);
    shared.repo.git_in(shared.repo.root(), ["init", "-q", "--bare", "claims.git"]).succeeds();
    let url = shared.repo.root().join("claims.git").display().to_string();
    shared.repo.git(["config", "--global", "arborist.work.coordination", &url]).succeeds();
    shared
}

/// What is left of claims and branches of tasks at `claims.git`.
fn remaining_coordination_refs(shared: &SharedPlan) -> String {
    let folder = shared.repo.root().join("claims.git");
    let refs = ["for-each-ref", "--format=%(refname)", CLAIMS, "refs/heads"];
    shared.repo.git_in(&folder, refs).answer().replace('\n', " ")
}

#[test]
fn the_code_remote_receives_only_landings_and_records() {
    let shared = with_separate_coordination(4, 2, WORKER);
    let hook = "#!/bin/sh\ncase $1 in refs/heads/main|refs/arborist/claims/%work/main/records/*) ;; *) exit 1 ;; esac\n";
    shared.repo.write_script("../origin.git/hooks/update", hook);
    let workers: Vec<Child> = (0..2).map(|number| shared.start(number, &[])).collect();
    for worker in workers {
        let (code, said) = wait_for_output(worker);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(shared.landings(), ["T001", "T002", "T003", "T004"], "every task lands once");
    assert_eq!((remaining_coordination_refs(&shared), shared.left()), (String::new(), String::new()));
    shared.repo.git_in(&shared.clone(0), ["pull", "-q"]).succeeds();
    shared.repo.arborist_in(&shared.clone(0), ["verify"]).succeeds();
}

#[test]
fn every_clone_can_verify_gates_and_records_without_the_coordination_remote() {
    let shared = with_separate_coordination(4, 2, WORKER);
    let run = ["--test-command", "test -e tasks.md"];
    let workers: Vec<Child> = (0..2).map(|number| shared.start(number, &run)).collect();
    for worker in workers {
        let (code, said) = wait_for_output(worker);
        assert_eq!(code, Some(0), "{said}");
    }
    shared.repo.git(["config", "--global", "--unset", "arborist.work.coordination"]).succeeds();
    shared.verify_in_fresh_clone().out("verified 4 tasks");
}

#[test]
fn a_local_run_checks_the_coordination_remote_for_workers() {
    let shared = with_separate_coordination(2, 2, HELD);
    let worker = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001") || shared.exists("held-T002"));
    let refused = shared.repo.arborist_in(&shared.clone(1), ["gardener"]).exits(3);
    refused.err("through").err("claims.git").err("git arborist work");
    shared.touch("go");
    let (code, said) = wait_for_output(worker);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_worker_that_lost_its_claim_at_the_coordination_remote_cannot_publish() {
    let shared = with_separate_coordination(1, 2, HELD);
    shared.set_ttl(2);
    let stopped = shared.start(0, &[]);
    SharedPlan::until("the task", || shared.exists("held-T001"));
    signal(&stopped, "STOP");
    shared.work(1, &[]).succeeds().out("1 completed");
    let landed = shared.at_origin(["rev-parse", "main"]);
    shared.touch("go");
    signal(&stopped, "CONT");
    let (code, said) = wait_for_output(stopped);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("so another worker has taken the task over"), "{said}");
    assert_eq!(
        (shared.at_origin(["rev-parse", "main"]), remaining_coordination_refs(&shared)),
        (landed, String::new())
    );
}

#[test]
fn a_landed_task_whose_claim_could_not_be_removed_does_not_land_again() {
    let shared = with_separate_coordination(2, 2, WORKER);
    shared.set_ttl(2);
    let zeros = "0".repeat(40);
    let hook = format!("#!/bin/sh\n[ $3 != {zeros} ] || [ -e ../open ]\n");
    shared.repo.write_script("../claims.git/hooks/update", &hook);
    shared.work(0, &["--jobs", "2"]).succeeds().out("2 completed");
    assert_eq!(shared.landings(), ["T001", "T002"]);
    assert_ne!(remaining_coordination_refs(&shared), "");
    shared.touch("open");
    shared.work(1, &[]).succeeds().out("nothing is left to do");
    assert_eq!(
        (shared.landings(), remaining_coordination_refs(&shared)),
        (vec!["T001".into(), "T002".into()], String::new())
    );
}

#[test]
fn state_and_work_stop_use_the_claims_of_the_coordination_remote() {
    let shared = with_separate_coordination(2, 2, HELD);
    let worker = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    let said = shared.repo.arborist_in(&shared.clone(1), ["state", "--remote"]).succeeds();
    said.out("1 being worked on, 0 waiting to land, 0 failed, 1 not begun");
    shared.repo.arborist_in(&shared.clone(1), ["work", "stop"]).succeeds().out("claims.git");
    let (code, said) = wait_for_output(worker);
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(remaining_coordination_refs(&shared), "");
}

#[test]
fn workers_started_by_an_engine_get_the_coordination_remote() {
    let shared = with_separate_coordination(1, 1, WORKER);
    shared.repo.git(["config", "--global", "arborist.engines.own.submit", "sh -s"]).succeeds();
    let said = shared.work(0, &["--on", "own", "--dry-run"]).succeeds().stdout();
    assert!(said.contains("export ARBORIST_WORK_COORDINATION=") && said.contains("claims.git"), "{said}");
    shared
        .repo
        .git(["config", "--global", "arborist.work.coordination", "https://me:secret@h/x.git"])
        .succeeds();
    let refused = shared.work(0, &["--on", "own", "--dry-run"]);
    assert!(refused.code() != 0 && !refused.report().contains("secret"), "{}", refused.report());
}

/// A push renews other claims too. The server lets go of one of them with each try to publish a task.
const FORGETS: &str = r#"#!/bin/sh
R=$(cd .. && pwd)
lines=$(cat)
tasks=$(printf '%s\n' "$lines" | grep -o 'tasks/T00[0-9]' | sort -u | tr '\n' ' ')
case "$lines" in
  *refs/heads/arborist*) ;;
  *"0000000000000000000000000000000000000000 "*) exit 0 ;;
  *) [ -z "$tasks" ] || [ -e "$R/go" ] || { touch "$R/due"; exit 1; }; exit 0 ;;
esac
for task in T002 T003 T004; do
  case "$tasks" in
    *$task*) if [ ! -e "$R/go" ] && [ ! -e "$R/lost-$task" ]; then
      touch "$R/lost-$task"
      env -u GIT_QUARANTINE_PATH git update-ref -d "refs/arborist/claims/%work/main/tasks/$task"
      exit 1
    fi ;;
  esac
done
touch "$R/go"
echo "$tasks" >> "$R/published"
"#;

#[test]
fn a_finished_task_is_published_later_if_a_push_fails_because_of_other_claims() {
    let agent = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T001*) until [ -e "$ROOT/due" ]; do sleep 0.05; done; echo x > T001.txt ;;
  *) until [ -e "$ROOT/go" ]; do sleep 0.05; done; echo x > "$ARBORIST_TASK.txt" ;;
esac
"#;
    let shared = SharedPlan::new(4, 1, agent);
    shared.set_ttl(4);
    shared.repo.write_script("../origin.git/hooks/pre-receive", FORGETS);
    shared.work(0, &["--jobs", "4", "--test-command", "true"]).succeeds();
    let published = std::fs::read_to_string(shared.repo.root().join("published")).unwrap();
    assert!(published.contains("T001"), "{published}");
    assert_eq!(shared.landings(), ["T001", "T002", "T003", "T004"]);
}
