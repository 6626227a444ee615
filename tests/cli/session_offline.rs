//! `git arborist session replay --offline`: what agents printed is read again, and nobody is called.

use std::fs;

use crate::{
    session_repo::{json, sessions, turns},
    turn_scripts::repo,
};
use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

/// Reads, writes twice, and says something at the end. What it writes is new in every call.
const WORK: &str = r#"
opens
calls 1 "Let me read."; reads 1
calls 2 "I'll add a file"; echo "$ARBORIST_TASK $n" >> "$ARBORIST_TASK.txt"; answers 2
calls 3 "I'll write again"; echo "again $n" >> shared.txt; chmod +x shared.txt; answers 3
ends "All is done."
"#;

/// Rejects the first work on T001.
const JUDGE: &str = r#"prompt=$(cat)
case "$prompt" in *T001*) if [ ! -e "$HOME/seen" ]; then touch "$HOME/seen"; echo 'REJECTED: no'; exit; fi;; esac
echo 'It is as it should be.'; echo APPROVED
"#;

/// The only session.
fn session(repo: &TestRepo) -> String {
    let all = sessions(repo);
    assert_eq!(all.len(), 1);
    all[0]["id"].as_str().unwrap().to_owned()
}

/// Nobody can be called from now on.
fn disable_runners(repo: &TestRepo) {
    let config =
        "runner = \"robot\"\ntest-command = \"true\"\n[runners.robot]\ncommand = [\"nobody-is-called-so\"]\n";
    fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
    fs::remove_file(repo.root().join("agent.sh")).unwrap();
    fs::remove_file(repo.root().join("judge.sh")).unwrap();
}

/// What happened on a branch to tasks, oldest first, without its name.
fn story(repo: &TestRepo, branch: &str) -> Vec<String> {
    let log = repo.git(["log", "--reverse", "--format=%s", branch]).answer();
    let own = |line: &str| Some(line.strip_prefix(&format!("task({branch}@"))?.to_owned());
    log.lines().filter_map(own).filter(|line| !line.starts_with('@')).collect()
}

/// The trees of a branch's turns, without reports, which tell of the session.
fn trees(repo: &TestRepo, branch: &str) -> Vec<String> {
    let log =
        repo.git(["log", "--reverse", "--format=%H", "--grep", &format!("task({branch}@.*@turn)"), branch]);
    let files = |commit: &str| repo.git(["ls-tree", "-r", commit]).answer();
    let kept = |files: String| {
        let own: Vec<&str> = files.lines().filter(|line| !line.contains("spec/reports/")).collect();
        own.join("\n")
    };
    log.answer().lines().map(|commit| kept(files(commit))).collect()
}

fn refs_of(repo: &TestRepo, id: &str) -> Vec<String> {
    let all = repo.git(["for-each-ref"]).answer();
    all.lines().filter(|line| line.contains(id) || line.ends_with("/main")).map(str::to_owned).collect()
}

/// Two tasks, of which the first needs two attempts.
fn worked() -> (TestRepo, String) {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 the work\n- [ ] T002 more (after T001)\n");
    repo.commit("two tasks\n");
    crate::turn_scripts::judge(&repo, JUDGE);
    repo.arborist(["gardener"]).succeeds();
    let id = session(&repo);
    (repo, id)
}

#[test]
fn an_offline_replay_repeats_all_trees_and_verdicts_and_calls_no_agent() {
    let (repo, id) = worked();
    disable_runners(&repo);
    let (before, calls) = (refs_of(&repo, &id), repo.calls());
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
    let new = said.stdout().lines().next().unwrap().to_owned();
    assert_eq!((refs_of(&repo, &id), repo.calls()), (before, calls), "the original is as it was");
    let branch = format!("arborist/tasks/{new}");
    let (old, again) = (story(&repo, "main"), story(&repo, &branch));
    assert!(old.iter().any(|line| line.starts_with("T001@review-rejected")), "{old:#?}");
    assert_eq!(again, old);
    let (old, again) = (trees(&repo, "main"), trees(&repo, &branch));
    assert_eq!((old.len(), again), (6, old));
    let strip = |turn: &Value| {
        let names = [
            "number", "node", "step", "attempt", "model", "provider", "runner", "files", "tools", "tokens",
            "message", "agent_session",
        ];
        names.map(|name| turn[name].clone())
    };
    let (old, again) = (turns(&repo, &id), turns(&repo, &new));
    assert_eq!(again.iter().map(strip).collect::<Vec<_>>(), old.iter().map(strip).collect::<Vec<_>>());
    let shown = json(&repo, &["session", "show", &new, "--json"]);
    assert_eq!(
        (&shown["forked_from"]["session"], &shown["session"]["state"]),
        (&id.into(), &"complete".into())
    );
    repo.arborist(["trailers", "check", &branch]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn an_offline_replay_from_a_turn_repeats_only_what_came_after_it() {
    let (repo, id) = worked();
    disable_runners(&repo);
    let of_second = |turn: &&Value| turn["node"] == "T002" && turn["commit"].is_string();
    let all = turns(&repo, &id);
    let first = all.iter().find(of_second).unwrap();
    let said = repo.arborist(["session", "replay", &id, "--offline", "--turn", &first["number"].to_string()]);
    let new = said.succeeds().stdout().lines().next().unwrap().to_owned();
    let branch = format!("arborist/tasks/{new}");
    let played = turns(&repo, &new);
    let numbers: Vec<&str> = played.iter().map(|turn| turn["node"].as_str().unwrap()).collect();
    assert!(numbers.iter().all(|node| *node == "T002") && !numbers.is_empty(), "{numbers:?}");
    let (old, again) = (trees(&repo, "main"), trees(&repo, &branch));
    assert_eq!(again, old[5..], "the last turn that wrote");
    assert!(story(&repo, &branch).last().unwrap().starts_with("T002@complete"));
    // After the last turn of the work only its review is played, and after that nothing.
    let last = all.iter().rfind(|turn| turn["step"] == "implement").unwrap()["number"].to_string();
    let said = repo.arborist(["session", "replay", &id, "--offline", "--turn", &last]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    let tree = |commit: &str| repo.git(["rev-parse", &format!("{commit}:shared.txt")]).answer();
    assert_eq!(tree(&branch), tree("main"));
    assert!(story(&repo, &branch).last().unwrap().starts_with("T002@complete"));
    let review = all.iter().rfind(|turn| turn["step"] == "review").unwrap()["number"].to_string();
    repo.arborist(["session", "replay", &id, "--offline", "--turn", &review])
        .exits(1)
        .err(&format!("recorded nothing after turn {review}"));
    // Within a later attempt, the earlier ones are known.
    let is_second = |turn: &&Value| turn["attempt"] == 1 && turn["node"] == "T001";
    let second = all.iter().find(is_second).unwrap()["number"].to_string();
    let said = repo.arborist(["session", "replay", &id, "--offline", "--turn", &second]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    let attempts = repo
        .git([
            "log",
            "--format=%(trailers:key=Arborist-Retry,valueonly)",
            "--grep=T001@review-approved)",
            &branch,
        ])
        .answer();
    assert_eq!(attempts.trim().lines().next(), Some("1"));
}

#[test]
fn an_offline_replay_reports_json_events() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let id = session(&repo);
    disable_runners(&repo);
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline", "--json"]).succeeds();
    let lines: Vec<Value> = said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "run-begins");
    assert_ne!(lines[0]["session"], id.as_str());
    let begins = lines.iter().filter(|line| line["event"] == "step-begins" && line["step"] != "test");
    assert!(begins.clone().count() == 2 && begins.clone().all(|line| line["by"] == "what was recorded"));
}

#[test]
fn an_offline_replay_without_transcripts_is_refused() {
    let off = repo("claude", WORK);
    off.git(["config", "arborist.session.transcripts", "off"]).succeeds();
    off.arborist(["gardener"]).succeeds();
    let gone = repo("claude", WORK);
    gone.arborist(["gardener"]).succeeds();
    gone.git(["update-ref", "-d", &format!("refs/arborist/transcripts/{}", session(&gone))]).succeeds();
    for repo in [off, gone] {
        let refs = repo.git(["for-each-ref"]).answer();
        let said = repo.arborist(["session", "replay", &session(&repo), "--turn", "1", "--offline"]);
        said.exits(1).matches_snapshot();
        assert_eq!(repo.git(["for-each-ref"]).answer(), refs);
    }
}

#[test]
fn an_offline_replay_does_not_count_an_interrupted_review_as_a_verdict() {
    let repo = repo("claude", WORK);
    let stops = "cat > /dev/null\necho 'Let me see.'\nif [ ! -e \"$HOME/seen\" ]; then touch \"$HOME/seen\"; kill -INT $PPID; sleep 60; fi\necho APPROVED\n";
    crate::turn_scripts::judge(&repo, stops);
    repo.arborist(["gardener"]).exits(130);
    repo.arborist(["gardener"]).succeeds();
    let id = session(&repo);
    disable_runners(&repo);
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    assert!(story(&repo, &branch).last().unwrap().starts_with("T001@complete"));
    assert!(!story(&repo, &branch).iter().any(|line| line.contains("review-rejected")));
}

#[test]
fn an_offline_replay_pauses_where_the_records_end() {
    let killed = "opens\ncalls 1 \"I'll add a\"; echo a > a; answers 1\nkill -9 $PPID\nexit 1\n";
    let repo = repo("claude", killed);
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
    let id = session(&repo);
    disable_runners(&repo);
    repo.arborist(["session", "replay", &id, "--turn", "1", "--offline"]).exits(1).matches_snapshot();
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).exits(1);
    let new = said.stdout().lines().next().unwrap().to_owned();
    said.err(&format!("session '{id}' has no record of the implement step of 'T001' at this point"))
        .err(&format!("git arborist session replay {new} --turn 1"));
    let played = sessions(&repo).into_iter().find(|session| session["id"] == new.as_str()).unwrap();
    assert_eq!((&played["state"], &played["commits"]), (&"paused".into(), &1.into()));
    assert_eq!(trees(&repo, &format!("arborist/tasks/{new}")).len(), 1);
}

#[test]
fn an_offline_replay_of_recorded_streams_gives_the_same_trees_for_every_program() {
    for program in ["claude", "codex", "gemini", "opencode"] {
        let repo = crate::turn_scripts::recorded(program);
        let id = session(&repo);
        disable_runners(&repo);
        let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
        let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
        assert_eq!(story(&repo, &branch), story(&repo, "main"), "{program}");
        let again = trees(&repo, &branch);
        assert_eq!((again.len(), again), (3, trees(&repo, "main")), "{program}");
    }
}

#[test]
fn an_offline_replay_works_for_a_session_branch() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    let old = sessions(&repo)[0].clone();
    disable_runners(&repo);
    let replay = ["session", "replay", old["id"].as_str().unwrap(), "--turn", "0", "--offline"];
    let said = repo.arborist(replay).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    let (old, again) = (story(&repo, old["branch"].as_str().unwrap()), story(&repo, &branch));
    assert!(old.last().unwrap().starts_with("T001@complete"), "{old:#?}");
    assert_eq!(again, old);
}

/// Makes the records name another commit as that of their first turn, and lead to it.
fn forge(repo: &TestRepo, id: &str, (old, new): (&str, &str)) {
    let name = format!("refs/arborist/sessions/{id}");
    let log = ["log", "--first-parent", "--reverse", "--format=%H", "--grep=^session ", &name];
    let empty = repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let mut last: Option<String> = None;
    let mut is_forged = false;
    for record in repo.git(log).answer().lines() {
        let message = repo.git(["log", "-1", "--format=%B", record]).answer();
        is_forged |= message.contains(old);
        last = Some(match last {
            Some(last) if is_forged => repo.commit_object(
                &empty,
                &[last, new.to_owned()],
                format!("{}\n", message.replace(old, new)),
            ),
            _ => record.to_owned(),
        });
    }
    repo.git(["update-ref", &name, &last.unwrap()]).succeeds();
}

#[test]
fn a_forged_record_deletes_nothing_behind_a_link() {
    let repo = repo("claude", "opens\ncalls 1 \"I'll add a\"; echo a > a; answers 1\nends \"done\"\n");
    fs::create_dir(repo.root().join("outside")).unwrap();
    repo.write("../outside/b", "precious\n");
    std::os::unix::fs::symlink(repo.root().join("outside"), repo.path("d")).unwrap();
    repo.commit("a link\n");
    repo.arborist(["gardener"]).succeeds();
    let id = session(&repo);
    let turn = repo.git(["log", "-1", "--format=%H", "--grep=@turn)"]).answer();
    // Its parent has a folder in the place of the link, and a file in it that it deletes.
    let blob = repo.git(["rev-parse", "main:a"]).answer();
    let tree = |name: &str, entry: &str| {
        let mut command = repo.command("git", &repo.path(""));
        Run::of(command.arg("mktree"), format!("{entry}\t{name}\n").as_bytes()).answer()
    };
    let folder = tree("b", &format!("100644 blob {blob}"));
    let before = repo.commit_object(&tree("d", &format!("040000 tree {folder}")), &[], "before\n");
    let after = repo.commit_object(&tree("a", &format!("100644 blob {blob}")), &[before], "after\n");
    forge(&repo, &id, (&turn, &after));
    let _ = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).report();
    assert_eq!(repo.read("../outside/b"), "precious\n");
    let branch = repo.git(["for-each-ref", "--format=%(refname)", "refs/heads/arborist/"]).answer();
    assert!(!branch.is_empty(), "it was played");
}

#[test]
fn an_offline_replay_does_not_restore_work_that_reset_dropped() {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 one\n",
        "case \"$prompt\" in Review*) echo 'REJECTED: no' ;; *) echo wrong >> wrong.txt; echo done ;; esac\n",
    );
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.arborist(["reset", "--drop", "T001"]).succeeds();
    repo.agent(arborist_testkit::WORKER);
    repo.arborist(["gardener"]).succeeds();
    let id = session(&repo);
    for turn in ["0", "1", "2", "3"] {
        repo.arborist(["session", "replay", &id, "--turn", turn, "--offline"]).succeeds();
        let newest = sessions(&repo)[0]["branch"].as_str().unwrap().to_owned();
        let files = repo.git(["ls-tree", "--name-only", &newest]).answer();
        assert_eq!(files, "T001.txt\nspec\ntasks.md", "from turn {turn}");
        repo.wait(5);
    }
}

#[test]
fn a_replay_can_be_replayed_with_the_same_trees() {
    let (repo, id) = worked();
    disable_runners(&repo);
    let replay = |id: &str| {
        repo.wait(60);
        let said = repo.arborist(["session", "replay", id, "--turn", "0", "--offline"]).succeeds();
        said.stdout().lines().next().unwrap().to_owned()
    };
    let first = replay(&id);
    let second = replay(&first);
    for branch in [first, second].map(|id| format!("arborist/tasks/{id}")) {
        assert_eq!(story(&repo, &branch), story(&repo, "main"));
        assert_eq!(trees(&repo, &branch), trees(&repo, "main"));
    }
}
