//! Every key of the configuration that drives agents changes something that can be seen.

use arborist_core::settings::SETTINGS;
use arborist_testkit::TestRepo;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$1 $MODE" > done.txt; echo done ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned(
        "task-tree.json",
        r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#,
        WORKER,
    )
}

/// A repository whose user has these settings too.
fn with(settings: &str) -> TestRepo {
    let repo = repo();
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    let (top, tables) = known.split_once('[').unwrap();
    let (own_top, own_tables) =
        settings.split_once("\n[").map_or((settings, String::new()), |(top, rest)| (top, format!("[{rest}")));
    std::fs::write(&file, format!("{top}{own_top}\n[{tables}{own_tables}\n")).unwrap();
    repo
}

#[test]
fn max_retries_limits_the_number_of_attempts() {
    let repo = with("max-retries = 2\ntest-command = \"false\"");
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["garden"]).exits(1);
    assert_eq!(repo.calls(), 2);
}

#[test]
fn the_configured_test_command_is_run() {
    let repo = with("test-command = \"touch tested\"");
    repo.arborist(["garden"]).succeeds();
    assert!(repo.path("tested").exists());
    assert!(!repo.git(["log", "--format=%s"]).answer().contains("no test command"));
}

#[test]
fn report_dir_and_log_dir_set_the_folders_of_reports_and_logs() {
    let repo = with("report-dir = \"r\"\nlog-dir = \"l\"");
    repo.arborist(["garden"]).succeeds();
    assert!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer().contains("r/T1_run_"));
    assert!(repo.path("l").is_dir() && !repo.path("spec").exists());
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn the_allow_dirty_setting_permits_a_dirty_checkout() {
    let repo = with("allow-dirty = true");
    repo.write("mine", "mine");
    repo.arborist(["garden"]).succeeds();
}

#[test]
fn a_runner_gets_its_configured_model_and_environment() {
    let repo = repo();
    let file = repo.home().join(".config/git-arborist/config.toml");
    let script = repo.root().join("agent.sh");
    let config = format!(
        "runner = \"robot\"\nmodel = \"big\"\n[runners.robot]\ncommand = [\"sh\", \"{}\", \"{{model}}\"]\nevents = \"text\"\nenv = {{ MODE = \"batch\" }}\n",
        script.display()
    );
    std::fs::write(file, config).unwrap();
    repo.arborist(["garden"]).succeeds();
    assert_eq!(repo.read("done.txt"), "big batch\n");
}

#[test]
fn a_step_uses_its_configured_runner_and_model() {
    let repo = with("\n[steps.review]\nrunner = \"demo\"\nmodel = \"small\"");
    repo.arborist(["garden"]).succeeds().matches_snapshot();
    assert_eq!(repo.calls(), 1, "the demo agent reviewed");
}

#[test]
fn the_events_setting_of_a_runner_selects_how_its_output_is_read() {
    let repo = with("");
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}events = \"claude\"\n")).unwrap();
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).matches_snapshot();
    std::fs::write(&file, format!("{known}events = \"morse\"\n")).unwrap();
    repo.arborist(["garden"]).exits(1).matches_snapshot();
}

#[test]
fn configured_timeouts_end_agents_and_tests() {
    let repo = with("test-command = \"sleep 30\"\nmax-retries = 1\n[timeouts]\ntest = 1");
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["garden"]).exits(1).err("timed out after 1 s");
    let repo = with("max-retries = 1\n[timeouts]\nrunner = 1");
    repo.agent("sleep 30");
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}[timeouts]\nrunner = 1\n")).unwrap();
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).err("timed out after 1 s");
}

#[test]
fn commands_in_a_tracked_configuration_need_approval() {
    let repo = repo();
    repo.write(".arborist/config.toml", "test-command = \"touch ../ran\"\n");
    repo.commit("configuration\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("ran").exists());
    let mut command = repo.command("git", &repo.path(""));
    arborist_testkit::Run::of(command.env("ARBORIST_TRUST", "1").args(["arborist", "garden"]), b"")
        .succeeds();
    assert!(repo.root().join("ran").exists());
}

#[test]
fn an_environment_in_a_tracked_configuration_for_a_runner_of_the_user_needs_approval() {
    let repo = repo();
    repo.write(".arborist/config.toml", "[runners.robot.env]\nLD_PRELOAD = \"./evil.so\"\n");
    repo.commit("configuration\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert_eq!(repo.calls(), 0);
}

#[test]
fn a_changed_configuration_stops_a_run_until_it_is_accepted() {
    let repo = repo();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#);
    repo.commit("two tasks\n");
    repo.arborist(["garden"]).succeeds();
    repo.write(".arborist/config.toml", "max-retries = 3\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    repo.arborist(["garden", "--accept-changes"]).succeeds();
}

/// The keys that tests are about: those above, in `gardener_jobs.rs` and `garden_limits.rs`, and where a comment says so.
const TESTED: &[&str] = &[
    "tree",
    "runner",
    "model",
    "fallback",
    "tools",
    "resume",
    "max-retries",
    "test-command",
    "allow-dirty",
    "report-dir",
    "log-dir",
    // tests/cli/logs.rs
    "log-limit",
    // tests/cli/verify.rs
    "sign",
    // tests/cli/gardener_jobs.rs
    "jobs",
    "steps.*.runner",
    "steps.*.model",
    "steps.*.fallback",
    "runners.*.command",
    "runners.*.resume",
    "runners.*.events",
    "runners.*.tools",
    "runners.*.env.*",
    "timeouts.runner",
    "timeouts.silence",
    "timeouts.test",
    "timeouts.limit",
    // tests/cli/worktree_settings.rs
    "timeouts.setup",
    // tests/cli/turns_messages.rs
    "timeouts.commit-message",
    // tests/cli/workspace*.rs
    "timeouts.network",
    // tests/cli/baseline.rs
    "test.allow-red",
    // tests/cli/clean_tests.rs
    "test.clean",
    // tests/cli/protect.rs and tests/cli/test_counts.rs
    "test.allow-fewer",
    "protect",
    // tests/cli/review_worktree.rs
    "steps.review.place",
    "review.diff-limit",
    // tests/cli/redaction.rs
    "redact.files",
    // tests/cli/worktree_settings.rs
    "worktree.base",
    "worktree.max",
    "worktree.min-free",
    // tests/cli/worktree_sync.rs
    "worktree.sync-cooldown",
    "worktree.setup",
    "worktree.copy",
    "worktree.exclude",
    "worktree.keep",
    "worktree.lfs",
    "worktree.save-every",
    // tests/cli/prompts.rs
    "context",
    "prompts.implement",
    "prompts.review",
    // tests/cli/sandbox.rs
    "sandbox.mode",
    "sandbox.deny-read",
    // tests/cli/sandbox_git.rs
    "sandbox.git",
    // tests/cli/sandbox_limits.rs
    "sandbox.max-file-size",
    "sandbox.max-processes",
    "sandbox.network",
    "sandbox.write",
    "steps.*.sandbox.mode",
    "steps.*.sandbox.deny-read",
    "steps.*.sandbox.max-file-size",
    "steps.*.sandbox.max-processes",
    "steps.*.sandbox.network",
    "steps.*.sandbox.write",
    "runners.*.sandbox.mode",
    "runners.*.sandbox.deny-read",
    "runners.*.sandbox.git",
    "runners.*.sandbox.max-file-size",
    "runners.*.sandbox.max-processes",
    "runners.*.sandbox.network",
    "runners.*.sandbox.write",
    // Those of `merge` are tested in tests/cli/merge*.rs.
    "merge.auto",
    "merge.gates.*.command",
    "merge.gates.*.timeout",
    "merge.gates.*.when",
    "merge.batch",
    "merge.keep",
    "merge.red-target",
    "merge.assist",
    "merge.resolve-attempts",
    "merge.on-conflict",
    "merge.delete-branches",
    "merge.wait-limit",
    // tests/cli/garden_limits.rs
    "budget.cost",
    "budget.tokens",
    "budget.time",
    "budget.task-cost",
    "budget.task-tokens",
    "budget.task-time",
    // tests/cli/workspace*.rs, tests/remote*.rs
    // tests/cli/session_branch.rs
    "session.branch",
    // tests/cli/turns_records.rs
    "session.transcripts",
    // tests/cli/turns_messages.rs
    "session.commit-message",
    // tests/cli/work.rs
    "work.ttl",
    "work.coordination",
    // tests/cli/engines.rs
    "engines.*.submit",
    "engines.*.alive",
    "engines.*.cancel",
    "engines.*.jobs",
    "engines.*.logs",
    "engines.*.dir",
    "engines.*.manifest",
    "workspace.repos.*.path",
    "workspace.repos.*.remote",
    "workspace.repos.*.branch-prefix",
    "workspace.repos.*.push",
    "workspace.repos.*.clone-depth",
    "workspace.repos.*.default-branch",
    "workspace.repos.*.tools.*",
    // tests/cli/cleanup*.rs
    "cleanup.older-than",
    "cleanup.keep-saved",
    "cleanup.keep-records",
    "cleanup.reclaim",
    "cleanup.warn-worktrees",
    "cleanup.warn-free",
];

#[test]
fn every_setting_is_listed_as_tested() {
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(keys, TESTED);
}

#[test]
fn a_report_or_log_folder_never_replaces_a_file() {
    for (option, folder) in
        [("--report-dir", "notes/x"), ("--log-dir", "notes/x"), ("--report-dir", "task-tree.json/x")]
    {
        let repo = with("");
        repo.write("notes", "precious");
        let before = repo.git(["rev-parse", "HEAD"]).answer();
        repo.arborist(["garden", "--allow-dirty", option, folder]).exits(1).matches_snapshot();
        assert_eq!(std::fs::read_to_string(repo.path("notes")).unwrap(), "precious", "{option}");
        assert_eq!(
            (repo.git(["rev-parse", "HEAD"]).answer(), repo.calls()),
            (before, 0),
            "no run is started"
        );
    }
}

#[test]
fn a_file_of_an_agent_in_place_of_the_report_folder_is_not_replaced() {
    let repo = with("");
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) rm -rf spec; echo mine > spec ;; esac");
    repo.write(".arborist/config.toml", "log-dir = \"l\"\n");
    repo.commit("logs\n");
    repo.arborist(["garden"]).exits(128);
    assert_eq!(repo.git(["show", "HEAD:spec"]).answer(), "mine");
}
