//! What other commands do with a plan that workers share: `state`, `gardener` and `verify`, in the clones of workers and in
//! others.

use std::fs;

use crate::shared_plan::{CLAIMS, HELD, SharedPlan, WORKER, wait_for_output};
use arborist_testkit::Run;

/// A task tree with a phase that has its own tests.
const PHASE: &str = r#"{"nodes": {
  "P1": {"id": "P1", "name": "One", "children": ["T001", "T002"],
         "test_commands": [{"type": "integration", "command": "test -e T001.txt && test -e T002.txt"}]},
  "T001": {"id": "T001", "name": "a", "parent": "P1", "parallel": true, "test_commands": [{"command": "true"}]},
  "T002": {"id": "T002", "name": "b", "parent": "P1", "parallel": true, "test_commands": [{"command": "true"}]}},
 "root_ids": ["P1"]}"#;

fn shared_plan_from_json(tree: &str) -> SharedPlan {
    let shared = SharedPlan::new(1, 1, WORKER);
    let clone = shared.clone(0);
    shared.repo.git_in(&clone, ["rm", "-q", "tasks.md"]).succeeds();
    fs::write(clone.join("task-tree.json"), tree).unwrap();
    shared.repo.git_in(&clone, ["add", "."]).succeeds();
    shared.repo.git_in(&clone, ["commit", "-qm", "plan"]).succeeds();
    shared.repo.git_in(&clone, ["push", "-q", "origin", "main"]).succeeds();
    shared
}

#[test]
fn a_shared_phase_is_complete_if_its_tests_passed_as_gates_of_the_last_landing() {
    let shared = shared_plan_from_json(PHASE);
    shared.work(0, &["--yes"]).succeeds().out("2 completed");
    let state = shared.repo.arborist_in(&shared.clone(0), ["state", "--json", "--exit-code"]).succeeds();
    let state: serde_json::Value = serde_json::from_str(&state.stdout()).unwrap();
    let phase = state["tasks"].as_array().unwrap().iter().find(|task| task["id"] == "P1").unwrap();
    assert_eq!(phase["state"], "complete", "{phase}");
}

#[test]
fn a_local_run_is_refused_while_workers_have_tasks() {
    let shared = SharedPlan::new(2, 2, HELD);
    let worker = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001") || shared.exists("held-T002"));
    let other = shared.clone(1);
    shared.repo.git_in(&other, ["pull", "-q"]).succeeds();
    let calls = shared.repo.calls();
    for command in [&["gardener"][..], &["gardener", "--isolate"], &["garden"]] {
        let refused = shared.repo.arborist_in(&other, command.iter().copied()).exits(3);
        refused.err("workers share the run on 'main' through origin").err("git arborist work");
    }
    shared.repo.git_in(&other, ["remote", "rename", "origin", "up"]).succeeds();
    let refused = shared.repo.arborist_in(&other, ["gardener"]).exits(3);
    refused.err("through up").err("git arborist work --remote up");
    assert_eq!(shared.repo.calls(), calls);
    shared.touch("go");
    let (code, said) = wait_for_output(worker);
    assert_eq!(code, Some(0), "{said}");
    shared.repo.git_in(&other, ["pull", "-q"]).succeeds();
    shared.repo.arborist_in(&other, ["gardener"]).succeeds().out("nothing is left to do");
}

#[test]
fn a_local_run_in_a_clone_that_has_not_fetched_is_refused_while_workers_have_tasks() {
    let shared = SharedPlan::new(2, 2, HELD);
    let worker = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001") || shared.exists("held-T002"));
    let other = shared.clone(1);
    let (calls, head) = (shared.repo.calls(), shared.repo.git_in(&other, ["rev-parse", "HEAD"]).answer());
    for command in [&["gardener"][..], &["gardener", "--isolate"], &["garden"]] {
        let refused = shared.repo.arborist_in(&other, command.iter().copied()).exits(3);
        refused.err("workers share the run on 'main' through origin").err("git arborist work");
    }
    // Without an upstream, the branch is known to be at 'origin' because it was fetched.
    shared.repo.git_in(&other, ["branch", "-q", "--unset-upstream"]).succeeds();
    shared.repo.arborist_in(&other, ["gardener"]).exits(3).err("through origin");
    assert_eq!(shared.repo.git_in(&other, ["rev-parse", "HEAD"]).answer(), head);
    assert_eq!(shared.repo.calls(), calls);
    shared.touch("go");
    let (code, said) = wait_for_output(worker);
    assert_eq!(code, Some(0), "{said}");
}

/// A clone whose remote writes a line to `asked` for each question.
fn count_remote_requests(shared: &SharedPlan) -> impl Fn() -> usize {
    let asked = shared.repo.root().join("asked");
    let script = format!("#!/bin/sh\necho x >> '{}'\nexec git-upload-pack \"$@\"\n", asked.display());
    shared.repo.write_script("../upload-pack", &script);
    let program = format!("'{}'", shared.repo.root().join("upload-pack").display());
    shared.repo.git_in(&shared.clone(0), ["config", "remote.origin.uploadpack", &program]).succeeds();
    move || fs::read_to_string(&asked).unwrap_or_default().lines().count()
}

#[test]
fn a_local_run_queries_the_remote_for_workers_only_once() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let questions = count_remote_requests(&shared);
    let clone = shared.clone(0);
    shared.repo.arborist_in(&clone, ["gardener", "--dry-run"]).succeeds();
    assert_eq!(questions(), 0);
    shared.repo.arborist_in(&clone, ["gardener"]).succeeds().out("1 completed").never("could not");
    assert_eq!(questions(), 1);
    shared.repo.arborist_in(&clone, ["gardener"]).succeeds().out("nothing is left to do");
    assert_eq!(questions(), 1);
}

#[test]
fn a_local_run_on_an_unpublished_branch_does_not_query_the_remote() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let questions = count_remote_requests(&shared);
    let clone = shared.clone(0);
    shared.repo.git_in(&clone, ["switch", "-q", "--no-track", "-c", "mine"]).succeeds();
    shared.repo.arborist_in(&clone, ["gardener"]).succeeds().out("1 completed");
    assert_eq!(questions(), 0);
}

#[test]
fn an_unreachable_remote_is_reported_once_and_the_local_run_continues() {
    let shared = SharedPlan::new(1, 1, WORKER);
    fs::rename(shared.origin(), shared.repo.root().join("moved.git")).unwrap();
    let ended = shared.repo.arborist_in(&shared.clone(0), ["gardener"]).succeeds().out("1 completed");
    let said = ended.stderr();
    let words = "could not find out whether workers share this plan: 'origin' could not be reached";
    assert_eq!(said.matches(words).count(), 1, "{said}");
}

#[test]
fn a_shared_plan_without_active_workers_can_be_continued_by_a_local_run() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) [ -e "$ROOT/works" ] || exit 1; echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let shared = SharedPlan::new(1, 1, agent);
    shared.work(0, &["--max-retries", "1"]).exits(1);
    shared.touch("works");
    let clone = shared.clone(0);
    shared
        .repo
        .arborist_in(&clone, ["gardener", "--isolate", "--retry-failed"])
        .succeeds()
        .out("1 completed");
    fs::rename(shared.origin(), shared.repo.root().join("moved.git")).unwrap();
    fs::write(clone.join("tasks.md"), "- [ ] T001 [P] do it\n- [ ] T002 another\n").unwrap();
    let continued = shared.repo.arborist_in(&clone, ["gardener", "--isolate", "--accept-changes"]).succeeds();
    continued.err("could not find out whether workers share this plan").out("1 completed");
}

#[test]
fn claims_of_finished_tasks_block_a_local_run_only_if_its_plan_has_them() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let clone = shared.clone(0);
    for (task, code) in [("T001", 3), ("T009", 0)] {
        let claim = format!(
            r#"{{"worker":"w","host":"h","process":1,"place":"p","nonce":"n","task":"{task}","state":"finished","source":null,"since":1,"renewed":1,"renewals":1,"ttl":3}}"#
        );
        let message = format!("claim: {task} by w\n\n{claim}\n");
        let mut command = shared.repo.command("git", &shared.origin());
        let commit = Run::of(command.args(["commit-tree", "main^{tree}"]), message.as_bytes()).answer();
        let name = format!("{CLAIMS}{task}");
        shared.at_origin(["update-ref", &name, &commit]);
        let said = shared.repo.arborist_in(&clone, ["gardener"]);
        assert_eq!(said.code(), code, "{}", said.report());
        shared.at_origin(["update-ref", "-d", &name]);
    }
}

#[test]
fn the_proposed_next_command_for_a_shared_plan_starts_a_worker() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) [ -e "$ROOT/works" ] || exit 1; echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let shared = SharedPlan::new(1, 1, agent);
    shared
        .work(0, &["--max-retries", "1"])
        .exits(1)
        .out("next   git arborist work --retry-failed --max-retries 1\n");
    let state = shared.repo.arborist_in(&shared.clone(0), ["state", "T001"]).succeeds();
    state.out("git arborist work --retry-failed");
    shared.touch("works");
    shared.work(0, &["--retry-failed", "--max-retries", "1"]).succeeds().out("1 completed");
}

#[test]
fn a_worker_can_accept_a_changed_plan_for_all_workers() {
    let shared = SharedPlan::new(1, 2, WORKER);
    shared.work(0, &[]).succeeds().out("1 completed");
    let clone = shared.clone(1);
    shared.repo.git_in(&clone, ["pull", "-q"]).succeeds();
    let plan = fs::read_to_string(clone.join("tasks.md")).unwrap();
    fs::write(clone.join("tasks.md"), format!("{plan}- [ ] T002 another\n")).unwrap();
    shared.repo.git_in(&clone, ["commit", "-qam", "one more task"]).succeeds();
    shared.repo.git_in(&clone, ["push", "-q", "origin", "main"]).succeeds();
    shared.work(1, &[]).exits(2).err("--accept-changes");
    shared.work(1, &["--accept-changes"]).succeeds().out("1 completed");
    assert_eq!(shared.landings(), ["T001", "T002"]);
    shared.work(0, &[]).succeeds().out("nothing is left to do");
    shared.work(0, &["--accept-changes", "--on", "ssh:localhost"]).exits(129).err("--on");
}

#[test]
fn every_clone_can_verify_the_gates_and_records_of_workers() {
    let shared = SharedPlan::new(3, 2, WORKER);
    let run = ["--test-command", "test -e tasks.md"];
    let workers: Vec<_> = (0..2).map(|number| shared.start(number, &run)).collect();
    for worker in workers {
        let (code, said) = wait_for_output(worker);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(shared.landings(), ["T001", "T002", "T003"]);
    shared.verify_in_fresh_clone().out("verified 3 tasks");
}

#[test]
fn a_server_that_rejects_gate_results_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let shared = SharedPlan::new(1, 1, WORKER);
    let hook = shared.origin().join("hooks/update");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ncase $1 in refs/arborist/gates/*) exit 1 ;; esac\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = shared.work(0, &["--test-command", "test -e tasks.md"]).exits(128);
    refused.err("refused the push of refs/arborist/gates/").err("workers must be allowed to push");
    assert_eq!(shared.landings(), [] as [&str; 0]);
}
