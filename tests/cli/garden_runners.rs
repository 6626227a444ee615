//! Who does a step of `git arborist garden`: flags, plan and configuration, and who is asked instead.

use arborist_testkit::TestRepo;

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "a"NODE}}, "root_ids": ["T1"]}"#;

/// Approves of everything, and writes down who it was and with which model. `$1` is its name, `$2` its model.
const WORKER: &str = r#"
echo "$1:$2" >> "$ROOT/who"
case "$prompt" in "Review"*) echo APPROVED ;; *) date +%N >> done.txt; echo done ;; esac
"#;

/// Tells in claude's words that the key of `broken` is refused, or that its limit is used up, and works as others do.
const TROUBLED: &str = r#"
echo "$1:$2" >> "$ROOT/who"
say() { printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"result":"%s"}\n' "$1" "$2" "$3"; }
case "$1 $prompt" in
  "broken "*) DEED ;;
  *"Review"*) say false null APPROVED ;;
  *) echo "$1" >> done.txt; say false null done ;;
esac
"#;

/// A repository with three runners, of whom nobody works unless he is named. An agent that says results speaks as claude.
fn repo(node: &str, agent: &str, settings: &str) -> TestRepo {
    let repo = TestRepo::planned("task-tree.json", &PLAN.replace("NODE", node), agent);
    let script = repo.root().join("agent.sh").display().to_string();
    let events = if agent.contains("\"result\"") { "events = \"claude\"\n" } else { "" };
    let mut config = format!("{settings}\n");
    for name in ["first", "second", "broken"] {
        config += &format!(
            "[runners.{name}]\ncommand = [\"sh\", \"{script}\", \"{name}\", \"{{model}}\"]\n{events}"
        );
    }
    config += "[runners.absent]\ncommand = [\"no-such-program\"]\n";
    std::fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
    repo
}

fn who(repo: &TestRepo) -> Vec<String> {
    let text = std::fs::read_to_string(repo.root().join("who")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_flag_wins_over_the_plan_and_the_plan_over_the_configuration() {
    let settings = "runner = \"first\"\nmodel = \"big\"\n";
    let node = r#", "runner": "second", "model": "planned""#;
    let table: [(&str, &[&str], [&str; 2]); 7] = [
        ("", &[], ["first:big", "first:big"]),
        (node, &[], ["second:planned", "first:big"]),
        (r#", "runner": "second""#, &[], ["second:", "first:big"]),
        (r#", "model": "planned""#, &[], ["first:planned", "first:big"]),
        (node, &["--runner", "first", "--model", "m"], ["first:m", "first:m"]),
        (node, &["--implement-runner", "first", "--review-runner", "second"], ["first:big", "second:"]),
        (
            "",
            &["--runner", "second", "--implement-model", "i", "--review-model", "r"],
            ["second:i", "second:r"],
        ),
    ];
    for (node, flags, expected) in table {
        let repo = repo(node, WORKER, settings);
        repo.arborist(["garden"].iter().chain(flags)).succeeds();
        assert_eq!(who(&repo), expected, "{node} {flags:?}");
    }
}

#[test]
fn all_runners_that_the_plan_needs_are_checked_before_the_run_starts() {
    let planned = repo(r#", "runner": "codex""#, WORKER, "runner = \"first\"\n");
    let head = planned.git(["rev-parse", "HEAD"]).answer();
    planned.arborist(["gardener"]).exits(1).matches_snapshot();
    let unknown = repo(r#", "runner": "secnod""#, WORKER, "runner = \"first\"\n");
    unknown.arborist(["gardener"]).exits(1).matches_snapshot();
    for flag in ["--runner", "--implement-runner", "--review-runner", "--fallback"] {
        unknown.arborist(["gardener", flag, "nope"]).exits(129).matches_snapshot();
    }
    assert_eq!(planned.git(["rev-parse", "HEAD"]).answer(), head, "nothing has begun");
}

#[test]
fn the_fallback_runner_is_called_if_a_program_is_missing() {
    let repo = repo("", WORKER, "runner = \"absent\"\nfallback = [\"gemini\", \"second:small\"]\n");
    repo.arborist(["garden"]).succeeds().matches_snapshot();
    assert_eq!(who(&repo), ["second:small", "second:small"]);
    repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn all_missing_programs_are_listed_in_one_error() {
    let repo = repo("", WORKER, "runner = \"absent\"\nfallback = [\"gemini\", \"codex\", \"codex:small\"]\n");
    let said = repo.arborist(["garden"]).exits(1);
    said.err("none of these programs is installed: no-such-program, gemini, codex\n")
        .err("hint: install one");
}

#[test]
fn fallback_runners_can_be_set_by_option_and_for_each_step() {
    let settings = "runner = \"absent\"\nfallback = [\"first\"]\n[steps.review]\nfallback = [\"second\"]\n";
    let configured = repo("", WORKER, settings);
    configured.arborist(["garden"]).succeeds();
    assert_eq!(who(&configured), ["first:", "second:"]);
    let flagged = repo("", WORKER, settings);
    flagged.arborist(["garden", "--fallback", "gemini", "--fallback", "second:x"]).succeeds();
    assert_eq!(who(&flagged), ["second:x", "second:x"]);
    flagged.arborist(["garden", "--fallback", ":x"]).exits(129).matches_snapshot();
    let wrong = repo("", WORKER, "fallback = [\"first:\"]\nrunner = \"first\"\n");
    wrong.arborist(["garden"]).exits(1).matches_snapshot();
}

#[test]
fn the_fallback_runner_is_called_if_a_key_is_refused_or_a_limit_is_used_up() {
    for (deed, why) in [
        ("say true 401 'bad key'; exit 1", "its provider refused the login: bad key"),
        ("say true 429 'come back tomorrow'; exit 1", "its limit is used up: come back tomorrow"),
    ] {
        let agent = TROUBLED.replace("DEED", deed);
        let repo = repo("", &agent, "runner = \"broken\"\n");
        repo.arborist(["garden", "-v", "--fallback", "second"])
            .succeeds()
            .err(&format!("broken failed: {why}; calling second instead"))
            .err("T1 review \"a\" (second)");
        assert_eq!(who(&repo), ["broken:", "second:", "second:"], "he is not asked again for the review");
        repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
    }
}

#[test]
fn a_wrong_key_stops_the_run_and_uses_up_no_attempt() {
    let agent = TROUBLED.replace("DEED", "say true 401 'bad key'; exit 1");
    let repo = repo("", &agent, "runner = \"broken\"\n");
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    assert_eq!(who(&repo).len(), 1, "it is not tried again and again");
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("T1"), "nothing has failed: {log}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
    repo.arborist(["gardener", "--runner", "first"]).succeeds();
    repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn work_done_before_a_key_is_refused_is_kept_and_no_attempt_is_used_up() {
    let agent = TROUBLED.replace("DEED", "echo half > half.txt; say true 401 'bad key'; exit 1");
    let repo = repo("", &agent, "runner = \"broken\"\nmax-retries = 1\n");
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    assert_eq!(repo.git(["show", "HEAD:half.txt"]).answer(), "half");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.arborist(["gardener", "--runner", "first"]).succeeds();
    repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
    repo.arborist(["trailers", "check", "HEAD~4.."]).succeeds().matches_snapshot();
}

#[test]
fn a_refused_key_of_a_known_program_is_reported_with_the_way_to_log_in() {
    let repo = repo("", TROUBLED, "");
    repo.plant("claude", "#!/bin/sh\ncat >/dev/null\necho '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":401,\"result\":\"Invalid API key\"}'\nexit 1\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
}

#[test]
fn a_runner_from_a_tracked_file_needs_approval_even_as_a_fallback() {
    let repo = repo("", WORKER, "runner = \"first\"\nfallback = [\"evil\"]\n");
    repo.write(".arborist/config.toml", "[runners.evil]\ncommand = [\"touch\", \"../ran\"]\n");
    repo.commit("configuration\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    let planned = self::repo(r#", "runner": "evil""#, WORKER, "runner = \"first\"\n");
    planned.write(".arborist/config.toml", "[runners.evil]\ncommand = [\"touch\", \"../ran\"]\n");
    planned.commit("configuration\n");
    planned.arborist(["garden"]).exits(2).matches_snapshot();
}

/// Tells of a session, and keeps what it was called with. The first attempt leaves a test failing.
const TALKER: &str = r#"
echo "$*" >> "$ROOT/who"
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
case "$prompt" in "Review"*) said=APPROVED ;; *) echo more >> work.txt; said=done ;; esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s"}\n' "$said"
"#;

#[test]
fn the_next_attempt_resumes_the_session_of_the_agent_if_configured() {
    let another_call = "resume = [\"sh\", \"SCRIPT\", \"again\", \"{session}\"]\n";
    let table = [
        ("", "", ["", "", ""]),
        ("resume = true\n", "", ["", "s-1", ""]),
        ("resume = true\n", another_call, ["", "again s-1", ""]),
    ];
    for (settings, more, expected) in table {
        let repo = repo("", TALKER, "");
        let script = repo.root().join("agent.sh").display().to_string();
        let config = format!(
            "runner = \"talker\"\n{settings}[runners.talker]\ncommand = [\"sh\", \"{script}\", \"{{session}}\"]\nevents = \"claude\"\n{}",
            more.replace("SCRIPT", &script)
        );
        std::fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
        repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
        repo.arborist(["garden", "--test-command", "test $(wc -l < work.txt) = 2"]).succeeds();
        assert_eq!(who(&repo), expected, "a reviewer is always in a session of its own");
        repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
    }
}

/// Codex tells in every call what its whole session has used.
#[test]
fn tokens_of_a_resumed_agent_session_are_not_counted_twice() {
    let script = r#"
calls=$(wc -l < "$ROOT/calls" 2>/dev/null || echo 0); echo >> "$ROOT/calls"
case "$prompt" in "Review"*) said=APPROVED; used=7 ;; *) echo more >> work.txt; said=done; used=$((100 * (calls + 1))) ;; esac
echo '{"type":"thread.started","thread_id":"t-1"}'
printf '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"%s"}}\n' "$said"
printf '{"type":"turn.completed","usage":{"input_tokens":%s,"cached_input_tokens":0,"output_tokens":0}}\n' "$used"
"#;
    let repo = repo("", script, "");
    let file = repo.root().join("agent.sh").display().to_string();
    let config = format!(
        "runner = \"talker\"\nresume = true\n[runners.talker]\ncommand = [\"sh\", \"{file}\", \"{{session}}\"]\nevents = \"codex\"\n"
    );
    std::fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["garden", "--test-command", "test $(wc -l < work.txt) = 2"]).succeeds();
    let spent = repo
        .git(["log", "--reverse", "--format=%(trailers:key=Arborist-Tokens-In,valueonly,separator=)"])
        .answer();
    let spent: Vec<&str> = spent.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(spent, ["100", "100", "7"]);
}

#[test]
fn the_shell_runner_runs_the_command_of_a_task_and_needs_another_runner_for_the_review() {
    let plan = r#"{"nodes": {"T001": {"id": "T001", "name": "a", "command": "echo mown > lawn"}}, "root_ids": ["T001"]}"#;
    let repo = TestRepo::planned("task-tree.json", plan, arborist_testkit::WORKER);
    repo.arborist(["gardener", "--yes", "--runner", "shell"]).exits(1).matches_snapshot();
    repo.arborist(["gardener", "--yes", "--runner", "shell", "--review-runner", "robot"]).succeeds();
    assert_eq!(repo.read("lawn"), "mown\n");
}

#[test]
fn a_plan_without_commands_is_refused_with_the_shell_runner() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", arborist_testkit::WORKER);
    let before = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["gardener", "--implement-runner", "shell"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), before);
}
