//! `git arborist work`: workers in several clones share a plan through a remote.

use std::{fs, process::Child};

use crate::shared_plan::{CLAIMS, HELD, SharedPlan, WORKER, read_until, signal, wait_for_output};
use arborist_testkit::Run;

/// Waits at its first task until another worker has begun one too.
const MEETING: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) pwd >> "$ROOT/did-$ARBORIST_TASK"
     until [ "$(ls "$ROOT" | grep -c '^did-')" -ge 2 ]; do sleep 0.05; done
     echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

#[test]
fn one_worker_completes_a_plan_and_lands_it_at_the_remote() {
    let shared = SharedPlan::of(
        "## Phase 1: Ground\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n\n## Phase 2: House\n\n- [ ] T003 build on it\n",
        1,
        WORKER,
    );
    shared.work(0, &["--jobs", "2"]).succeeds().out("3 completed");
    assert_eq!(shared.landings(), ["T001", "T002", "T003"]);
    assert_eq!(shared.left(), "", "no claim and no branch is left");
    let here = shared.repo.git_in(&shared.clone(0), ["rev-parse", "main"]).answer();
    assert_eq!(here, shared.at_origin(["rev-parse", "main"]), "the clone is up to date");
    assert_eq!(shared.repo.git_in(&shared.clone(0), ["status", "--porcelain"]).answer(), "");
    shared.work(0, &[]).succeeds().out("nothing is left to do");
    shared.repo.arborist_in(&shared.clone(0), ["verify"]).succeeds();
}

/// One push for the result and the claim on the next task, one for the claim to land, and one for the landing.
#[test]
fn a_task_costs_at_most_three_pushes() {
    use std::os::unix::fs::PermissionsExt;
    let shared = SharedPlan::new(6, 1, WORKER);
    let hook = shared.origin().join("hooks/post-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho x >> pushes\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    shared.work(0, &[]).succeeds().out("6 completed");
    let pushes = fs::read_to_string(shared.origin().join("pushes")).unwrap().lines().count();
    // The run-start, the first claim and the last records have pushes of their own.
    assert!(pushes <= 6 * 3 + 4, "{pushes} pushes");
    assert_eq!(shared.left(), "", "no claim and no branch is left");
}

#[test]
fn a_landing_that_the_server_accepts_and_then_undoes_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    for undo in ["git update-ref refs/heads/main $old", "git update-ref -d refs/heads/main"] {
        let shared = SharedPlan::new(1, 1, WORKER);
        let hook = shared.origin().join("hooks/post-receive");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        // The first commit of the run stays.
        let script = format!(
            "#!/bin/sh\nwhile read old new name; do\n  case $name in refs/heads/main)\n    git log --format=%s $old..$new | grep -q merge && {undo} ;;\n  esac\ndone\ntrue\n"
        );
        fs::write(&hook, script).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let words =
            "refused the push of refs/heads/main: it accepted the push, and does not have the commits";
        shared.work(0, &[]).exits(128).err(words).never("1 completed");
    }
}

#[test]
fn two_clones_share_a_plan_by_running_the_same_command() {
    let shared = SharedPlan::new(6, 2, MEETING);
    shared.set_ttl(30);
    let workers: Vec<Child> = (0..2).map(|number| shared.start(number, &[])).collect();
    for worker in workers {
        let (code, said) = wait_for_output(worker);
        assert_eq!(code, Some(0), "{said}");
    }
    let tasks: Vec<String> = (1..=6).map(|task| format!("T{task:03}")).collect();
    assert_eq!(shared.landings(), tasks, "every task lands once");
    for task in &tasks {
        assert_eq!(shared.places(task).len(), 1, "{task} is done once");
    }
    let starts = shared.at_origin(["log", "--first-parent", "--format=%s", "main"]);
    assert_eq!(starts.lines().filter(|line| line.contains("@run-start)")).count(), 1, "{starts}");
    assert_eq!(shared.left(), "");
    let mut clones: Vec<String> = tasks.iter().map(|task| shared.places(task)[0].clone()).collect();
    clones.sort();
    assert!(clones.first() != clones.last(), "both have worked: {clones:?}");
    shared.repo.git_in(&shared.clone(0), ["pull", "-q"]).succeeds();
    shared.repo.arborist_in(&shared.clone(0), ["state", "--exit-code"]).succeeds();
    shared.repo.arborist_in(&shared.clone(0), ["verify"]).succeeds();
}

#[test]
fn a_task_of_a_killed_worker_is_taken_over_when_its_claim_expires() {
    let shared = SharedPlan::new(2, 2, HELD);
    shared.set_ttl(3);
    let killed = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    signal(&killed, "KILL");
    let _ = wait_for_output(killed);
    shared.touch("go");
    shared.work(1, &[]).succeeds().out("2 completed");
    assert_eq!(shared.landings(), ["T001", "T002"]);
    let places = shared.places("T001");
    assert!(places.len() == 2 && places[1].contains("clone1"), "{places:?}");
    assert_eq!(shared.left(), "");
    shared.work(0, &[]).succeeds().out("nothing is left to do");
}

#[test]
fn a_worker_suspended_past_its_claim_cannot_publish_and_its_work_is_saved() {
    let shared = SharedPlan::new(1, 2, HELD);
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
    let at = said.find("refs/arborist/saved/").expect("the saved work is named");
    let name: String = said[at..].chars().take_while(|c| !c.is_whitespace()).collect();
    let saved = shared.repo.git_in(&shared.clone(0), ["show", &format!("{name}:T001.txt")]).answer();
    assert_eq!(saved, "T001");
    assert_eq!(shared.at_origin(["rev-parse", "main"]), landed, "it has published nothing");
    assert_eq!((shared.landings(), shared.left()), (vec!["T001".to_owned()], String::new()));
}

#[test]
fn only_one_of_many_racing_workers_gets_a_task() {
    let rounds = std::env::var("WORK_CLAIM_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    for round in 0..rounds {
        let shared = SharedPlan::new(1, 8, WORKER);
        shared.set_ttl(30);
        let workers: Vec<Child> = (0..8).map(|number| shared.start(number, &[])).collect();
        for worker in workers {
            let (code, said) = wait_for_output(worker);
            assert_eq!(code, Some(0), "round {round}: {said}");
        }
        assert_eq!(shared.places("T001").len(), 1, "round {round}");
        assert_eq!((shared.landings(), shared.left()), (vec!["T001".to_owned()], String::new()));
    }
}

#[test]
fn a_target_that_moves_during_a_landing_is_merged_again() {
    let shared = SharedPlan::new(1, 2, WORKER);
    let root = shared.repo.root().display().to_string();
    let gate = format!(
        "if mkdir '{root}/moved' 2>/dev/null; then cd '{root}/clone1' && env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE sh -c 'git pull -q && echo x > x && git add x && git commit -qm theirs && git push -q'; fi"
    );
    shared.repo.git(["config", "--global", "arborist.merge.gates.check.command", &gate]).succeeds();
    shared.work(0, &[]).succeeds().out("1 completed");
    assert!(shared.exists("moved"));
    let log = shared.at_origin(["log", "--first-parent", "--format=%s", "main"]);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains("@merge)") && lines[1] == "theirs", "{log}");
    assert_eq!(shared.landings(), ["T001"]);
}

#[test]
fn a_task_with_a_failing_gate_does_not_land_but_the_rest_of_the_batch_does() {
    let shared = SharedPlan::new(3, 2, WORKER);
    shared.set_ttl(30);
    let gate = "test ! -e T002.txt";
    shared.repo.git(["config", "--global", "arborist.merge.gates.check.command", gate]).succeeds();
    let said = shared.work(0, &["--jobs", "3"]);
    assert_eq!(said.code(), 1, "{}", said.report());
    assert_eq!(shared.landings(), ["T001", "T003"]);
    assert_eq!(
        shared.left().split(' ').count(),
        2,
        "the claim of T002 says that it failed: {}",
        shared.left()
    );
    let calls = shared.repo.calls();
    shared.work(1, &[]).exits(1);
    assert_eq!(shared.repo.calls(), calls, "no other worker does it again");
}

#[test]
fn a_failed_task_is_not_tried_by_other_workers() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) [ "$ARBORIST_TASK" != T001 ] || exit 1; echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let shared = SharedPlan::new(2, 2, agent);
    shared.work(0, &["--max-retries", "1"]).exits(1);
    assert_eq!(shared.landings(), ["T002"]);
    let calls = shared.repo.calls();
    shared.work(1, &[]).exits(1);
    assert_eq!(shared.repo.calls(), calls);
}

#[test]
fn invalid_claims_are_reported_and_delay_only_their_tasks() {
    let shared = SharedPlan::new(3, 1, WORKER);
    let tree = shared.at_origin(["mktree", "--missing"].map(|word| word));
    let origin = shared.origin();
    let commit = |message: &str| {
        let mut command = shared.repo.command("git", &origin);
        Run::of(command.args(["commit-tree", &tree]), message.as_bytes()).answer()
    };
    let put = |name: &str, commit: &str| {
        shared.repo.git_in(&origin, ["update-ref", name, commit]).succeeds();
    };
    // A name that no task has, a ref in the way of a task's claim, contents that are huge or hostile.
    put(&format!("{CLAIMS}a b").replace(' ', "\u{202e}"), &commit("x"));
    put(&format!("{CLAIMS}T001/in-the-way"), &commit("x"));
    put(&format!("{CLAIMS}T002"), &commit(&format!("claim\n\n{}\n", "x".repeat(1 << 20))));
    let hostile = r#"{"worker":"w","host":"\u001b[2Jh","process":1,"place":"p","nonce":"n","task":"T009","state":"finished","source":null,"since":0,"renewed":0,"renewals":0,"ttl":99999999}"#;
    put(&format!("{CLAIMS}T009"), &commit(&format!("claim\n\n{hostile}\n")));
    let mut worker = shared.start(0, &[]);
    SharedPlan::until("T003", || shared.landings() == ["T003"]);
    assert!(worker.try_wait().unwrap().is_none(), "it waits for the claim of T002");
    signal(&worker, "INT");
    let (_, said) = wait_for_output(worker);
    assert!(said.contains("warning: T001: the task cannot be claimed: "), "{said}");
    assert!(
        said.contains("not a claim: ") && !said.contains('\u{202e}') && !said.contains("\u{1b}[2J"),
        "{said}"
    );
}

#[test]
fn a_server_without_atomic_pushes_is_refused() {
    let shared = SharedPlan::new(1, 1, WORKER);
    shared.repo.git_in(&shared.origin(), ["config", "receive.advertiseAtomic", "false"]).succeeds();
    shared.work(0, &[]).exits(128).matches_snapshot();
    assert_eq!(shared.repo.calls(), 0);
}

#[test]
fn workers_end_after_a_drain_or_stop_request() {
    let shared = SharedPlan::new(2, 2, HELD);
    shared.set_ttl(30);
    let mut drained = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    shared
        .repo
        .arborist_in(&shared.clone(1), ["work", "drain"])
        .succeeds()
        .out("asked all workers of 'main' to drain");
    let _open = read_until(&mut drained, "asked to drain");
    shared.touch("go");
    let (code, said) = wait_for_output(drained);
    assert_eq!((code, shared.landings()), (Some(1), vec!["T001".to_owned()]), "{said}");
    fs::remove_file(shared.repo.root().join("go")).unwrap();
    let stopped = shared.start(1, &[]);
    SharedPlan::until("the second task", || shared.exists("held-T002"));
    shared.repo.arborist_in(&shared.clone(0), ["work", "stop"]).succeeds();
    let (code, said) = wait_for_output(stopped);
    assert!(code != Some(0) && shared.landings() == ["T001"], "{code:?} {said}");
    assert_eq!(shared.left(), "", "what it had claimed is free");
    shared.touch("go");
    shared.work(0, &[]).succeeds();
    assert_eq!(shared.landings(), ["T001", "T002"]);
}

#[test]
fn a_worker_refuses_a_branch_with_unpushed_commits() {
    let shared = SharedPlan::new(1, 1, WORKER);
    fs::write(shared.clone(0).join("mine"), "x").unwrap();
    shared.repo.git_in(&shared.clone(0), ["add", "mine"]).succeeds();
    shared.repo.git_in(&shared.clone(0), ["commit", "-qm", "mine"]).succeeds();
    shared.work(0, &[]).exits(2).matches_snapshot();
}

#[test]
fn a_worker_creates_a_clone_if_it_has_none() {
    let shared = SharedPlan::new(1, 0, WORKER);
    let folder = shared.repo.root().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let url = shared.origin().display().to_string();
    let mut command = shared.repo.command("git-arborist-work", &folder);
    let said = Run::of(command.args(["--clone", &url]), b"").succeeds().out("1 completed");
    said.never("remote-tracking refs were changed");
    assert_eq!(shared.landings(), ["T001"]);
    assert!(folder.join("origin/T001.txt").exists());
}

#[test]
fn state_shows_the_tasks_of_all_workers_and_the_remaining_tasks() {
    let shared = SharedPlan::new(3, 2, HELD);
    let worker = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    let said = shared.repo.arborist_in(&shared.clone(1), ["state", "--remote"]).succeeds();
    let said = said.out("'main' at origin: 0 of 3 tasks are done");
    let said = said.out("1 being worked on, 0 waiting to land, 0 failed, 2 not begun");
    assert!(said.stdout().lines().any(|line| line.starts_with("T001  working")), "{}", said.stdout());
    let json = shared.repo.arborist_in(&shared.clone(1), ["state", "--remote", "--json"]).answer();
    crate::schemas::validate("state-remote", &json);
    let state: serde_json::Value = serde_json::from_str(&json).unwrap();
    let claim = &state["claims"][0];
    assert_eq!((&claim["task"], &claim["state"]), (&"T001".into(), &"working".into()), "{json}");
    let name = claim["worker"].as_str().unwrap().to_owned();
    shared
        .repo
        .arborist_in(&shared.clone(1), ["work", "stop", "nobody"])
        .succeeds()
        .err("no worker 'nobody' has a task at the moment")
        .err(&format!("workers that have a task: {name}"));
    shared.repo.arborist_in(&shared.clone(1), ["work", "stop", &name]).succeeds().out(&name);
    let (code, said) = wait_for_output(worker);
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(shared.left(), "");
}

#[test]
fn a_worker_that_was_killed_continues_in_its_clone_without_waiting() {
    let shared = SharedPlan::new(2, 1, HELD);
    shared.set_ttl(600);
    let killed = shared.start(0, &[]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    signal(&killed, "KILL");
    let _ = wait_for_output(killed);
    shared.touch("go");
    shared.work(0, &[]).succeeds().out("2 completed");
    assert_eq!(
        (shared.landings(), shared.left()),
        (vec!["T001".to_owned(), "T002".to_owned()], String::new())
    );
}

#[test]
fn a_server_that_rejects_claims_is_reported() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let hook = "#!/bin/sh\ncase $1 in refs/arborist/*) echo 'only branches here'; exit 1 ;; esac\n";
    shared.repo.write_script("../origin.git/hooks/update", hook);
    shared.work(0, &[]).exits(128).matches_snapshot();
    assert_eq!(shared.repo.calls(), 0);
}

#[test]
fn a_worker_waits_for_a_remote_that_is_out_of_reach_for_a_while() {
    let shared = SharedPlan::new(1, 1, HELD);
    let mut worker = shared.start(0, &[]);
    SharedPlan::until("the task", || shared.exists("held-T001"));
    let away = shared.repo.root().join("away.git");
    fs::rename(shared.origin(), &away).unwrap();
    shared.touch("go");
    let (line, _open) = read_until(&mut worker, "could not be reached");
    assert!(line.contains("trying again"), "{line}");
    fs::rename(&away, shared.origin()).unwrap();
    let (code, said) = wait_for_output(worker);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((shared.landings(), shared.left()), (vec!["T001".to_owned()], String::new()));
}

#[test]
fn failed_tasks_are_tried_again_on_request() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) [ -e "$ROOT/works" ] || exit 1; echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let shared = SharedPlan::new(2, 2, agent);
    shared.work(0, &["--max-retries", "1"]).exits(1);
    shared.touch("works");
    shared.work(0, &[]).exits(1);
    assert_eq!(shared.landings(), [] as [&str; 0]);
    shared.work(0, &["--retry-failed"]).succeeds().out("2 completed").err("T001, T002");
    assert_eq!((shared.landings().len(), shared.left()), (2, String::new()));
    let target = shared.at_origin(["rev-parse", "main"]);
    shared.work(1, &["--retry-failed"]).succeeds().out("nothing is left to do");
    assert_eq!(shared.at_origin(["rev-parse", "main"]), target);
    shared.repo.arborist_in(&shared.clone(0), ["verify"]).succeeds();
}

#[test]
fn state_shows_how_fast_tasks_land_and_what_they_cost() {
    let shared = SharedPlan::new(3, 2, HELD);
    let worker = shared.start(0, &["--max-retries", "1"]);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    signal(&worker, "INT");
    let _ = wait_for_output(worker);
    shared.repo.wait(1800);
    shared.touch("go");
    shared.work(0, &[]).succeeds();
    let said = shared.repo.arborist_in(&shared.clone(1), ["state", "--remote"]).succeeds();
    let said = said.out("3 of 3 tasks are done").out("6.0 tasks landed per hour");
    drop(said);
    let json = shared.repo.arborist_in(&shared.clone(1), ["state", "--remote", "--json"]).answer();
    crate::schemas::validate("state-remote", &json);
    let state: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&state["per_hour"], &state["seconds_left"]), (&6.0.into(), &0.into()), "{json}");
}

#[test]
fn a_new_clone_of_a_worker_checks_out_the_given_branch() {
    let shared = SharedPlan::new(1, 1, WORKER);
    shared.repo.git_in(&shared.clone(0), ["push", "-q", "origin", "main:other"]).succeeds();
    let folder = shared.repo.root().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let url = shared.origin().display().to_string();
    let run = |branch: &str| {
        let mut command = shared.repo.command("git-arborist-work", &folder);
        Run::of(command.args(["--clone", &url, "--branch", branch]), b"")
    };
    run("other").succeeds().out("1 completed");
    assert_eq!(shared.landings(), [] as [&str; 0], "the default branch is left alone");
    assert!(shared.at_origin(["log", "--format=%s", "other"]).contains("T001@merge"));
    run("main").exits(2).err("does not have the branch 'main' checked out");
}

#[test]
fn the_records_of_a_worker_are_shown_in_every_clone() {
    let shared = SharedPlan::new(2, 2, WORKER);
    shared.work(0, &[]).succeeds().out("2 completed");
    let json = shared.repo.arborist_in(&shared.clone(0), ["session", "list", "--json"]).answer();
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    let session = list["sessions"][0]["id"].as_str().unwrap().to_owned();
    let names = shared.at_origin([
        "for-each-ref",
        "--format=%(refname:lstrip=-1)",
        "refs/arborist/claims/%work/main/records",
    ]);
    let other = shared.clone(1);
    let said = shared.repo.arborist_in(&other, ["session", "show", &session, "--worker", &names]).succeeds();
    said.out(&session).out("turns      4");
    let turns =
        shared.repo.arborist_in(&other, ["session", "turns", &session, "--worker", &names]).succeeds();
    turns.out("T001").out("T002");
    shared.repo.arborist_in(&other, ["session", "show", &session, "--worker", "x"]).exits(1).err(&names);
}

#[test]
fn a_finished_claim_whose_branch_cannot_land_is_reported_and_taken_over_on_expiry() {
    // A commit that does not complete the task, one that is missing, one without a branch, and one with other history.
    for case in ["unsound", "missing", "no-branch", "unrelated"] {
        let shared = SharedPlan::new(2, 1, WORKER);
        shared.set_ttl(2);
        let origin = shared.origin();
        let commit = |parents: &[&str], message: &str| {
            let mut command = shared.repo.command("git", &origin);
            Run::of(command.args(["commit-tree", "main^{tree}"]).args(parents), message.as_bytes()).answer()
        };
        let source = match case {
            "missing" => "1234567890".repeat(4),
            "unrelated" => commit(&[], "task(main@T001@complete): do it\n"),
            _ => commit(&["-p", "main"], "task(main@T001@complete): do it\n"),
        };
        let claim = format!(
            r#"{{"worker":"w","host":"h","process":1,"place":"p","nonce":"n","task":"T001","state":"finished","source":"{source}","since":1,"renewed":1,"renewals":1,"ttl":3}}"#
        );
        let claim = commit(&[], &format!("claim: T001 by w\n\n{claim}\n"));
        shared.at_origin(["update-ref", &format!("{CLAIMS}T001"), &claim]);
        if ["unsound", "unrelated"].contains(&case) {
            shared.at_origin(["update-ref", "refs/heads/arborist/task/main/T001", &source]);
        }
        let ended = shared.work(0, &[]);
        let said = ended.report();
        ended.succeeds().out("2 completed");
        let named = "the claim on T001 says that it is finished";
        assert_eq!(said.matches(named).count(), 1, "{case}: {said}");
        assert_eq!(shared.landings(), ["T001", "T002"], "{case}");
        assert_eq!(shared.places("T001").len(), 1, "{case}");
        assert_eq!(shared.left(), "", "{case}");
    }
}

#[test]
fn claims_that_a_killed_server_left_after_a_landing_are_removed() {
    let shared = SharedPlan::new(1, 2, WORKER);
    let log = shared.repo.root().join("updates").display().to_string();
    let hook = format!("#!/bin/sh\necho \"$1 $2 $3\" >> '{log}'\n");
    shared.repo.write_script("../origin.git/hooks/update", &hook);
    shared.work(0, &[]).succeeds();
    assert_eq!(shared.left(), "");
    // A server deletes one ref after the other.
    let updates = fs::read_to_string(log).unwrap();
    let deleted = updates.lines().filter_map(|line| line.strip_suffix(&format!(" {}", "0".repeat(40))));
    let deleted: Vec<_> = deleted.filter_map(|line| line.rsplit_once(' ')).collect();
    assert!(deleted.iter().any(|(name, _)| name.ends_with("/tasks/T001")), "{updates}");
    for (name, value) in deleted.iter().filter(|(name, _)| name.ends_with("T001")) {
        shared.at_origin(["update-ref", name, value]);
    }
    shared.work(1, &[]).succeeds();
    assert_eq!(shared.left(), "");
}
