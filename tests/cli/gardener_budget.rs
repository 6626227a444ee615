//! A budget of a run of several jobs: what one spends counts for the others at once.

use arborist_testkit::TestRepo;

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n";

/// Each call costs 50 cents. T001 works until T002 has begun, and T002 until T001 has landed.
const SPENDER: &str = r#"
say() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.5,"usage":{"input_tokens":100,"output_tokens":50}}\n' "$1"; }
case "$prompt" in
  "Review"*) say APPROVED ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt"
     : > "$ROOT/began-$ARBORIST_TASK"
     [ $ARBORIST_TASK != T001 ] || until [ -e "$ROOT/began-T002" ]; do sleep 0.02; done
     [ $ARBORIST_TASK != T002 ] || until git -C "$ROOT/repo" log --format=%s main | grep -q '@T001@merge'; do sleep 0.02; done
     say done ;;
esac
"#;

#[test]
fn no_job_calls_an_agent_once_the_budget_of_the_run_is_used_up() {
    for (flag, low, high, sentence) in [
        ("--max-cost", "0.8", "9", "the run has cost $1.00, and its limit is $0.80"),
        ("--max-tokens", "300", "9000", "the run has used 300 tokens, and its limit is 300"),
    ] {
        let repo = TestRepo::init();
        repo.write("tasks.md", PLAN);
        repo.commit("a plan\n");
        repo.agent(SPENDER);
        let file = repo.home().join(".config/git-arborist/config.toml");
        let known = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{known}events = \"claude\"\n")).unwrap();
        repo.arborist(["gardener", "--jobs", "2", flag, low])
            .exits(1)
            .err(&format!("error: {sentence}"))
            .err("hint: to continue, raise the limit (this uses up no attempt): git arborist gardener --jobs 2")
            .err(&format!(" {flag} "));
        assert_eq!(repo.calls(), 3, "T001 twice, T002 once, T003 never");
        let log = repo.git(["log", "--format=%s", "--all"]).answer();
        assert!(log.contains("@T002@test-pass)") && !log.contains("@T002@review"), "{log}");
        repo.arborist(["gardener", "--jobs", "2", flag, high]).succeeds().out("2 completed");
        assert_eq!(repo.calls(), 6, "nothing is done twice");
    }
}
