//! What the programs of a run find in their environment.

use std::fs;

use arborist_testkit::TestRepo;

/// Notes what it finds, and works.
const AGENT: &str = r#"
case "$prompt" in
  "Review"*) env > "$ROOT/review.env"; echo APPROVED ;;
  *) env > "$ROOT/agent.env"; echo done > done.txt ;;
esac
"#;

fn repo() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "## Phase 1: All\n\n- [ ] T001 the only one\n", AGENT);
    for (key, program) in
        [("test-command", "test"), ("worktree.setup", "setup"), ("merge.gates.g.command", "gate")]
    {
        let note = format!("env > '{}/{program}.env'", repo.root().display());
        repo.git(["config", &format!("arborist.{key}"), &note]).succeeds();
    }
    repo
}

/// A variable of a program of the run.
fn variable(repo: &TestRepo, program: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(repo.root().join(format!("{program}.env"))).unwrap();
    let start = format!("ARBORIST_{name}=");
    text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}

fn session(repo: &TestRepo) -> String {
    let trailer = "--format=%(trailers:key=Arborist-Session,valueonly)";
    repo.git(["log", "-1", "--grep=run started", trailer]).answer().trim().to_owned()
}

#[test]
fn all_programs_of_a_run_in_the_checkout_get_the_arborist_variables() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    let top = repo.path("").canonicalize().unwrap().display().to_string();
    for program in ["agent", "test", "review"] {
        let told = |name: &str| variable(&repo, program, name).unwrap_or_default();
        assert_eq!(told("REPO"), "repo", "{program}");
        assert_eq!(told("BRANCH"), "main", "{program}");
        assert_eq!(told("TASK"), "T001", "{program}");
        assert_eq!(told("SESSION"), session(&repo), "{program}");
        let place = if program == "review" {
            format!("{}.arborist/review-1", top.trim_end_matches('/'))
        } else {
            top.clone()
        };
        assert_eq!(told("WORKTREE").trim_end_matches('/'), place.trim_end_matches('/'), "{program}");
    }
}

#[test]
fn all_programs_of_a_run_in_lanes_get_the_arborist_variables() {
    let repo = repo();
    repo.arborist(["gardener", "--isolate"]).succeeds();
    let lane = repo.root().canonicalize().unwrap().join("repo.arborist/lane-1").display().to_string();
    for program in ["agent", "test", "review", "setup", "gate"] {
        let told = |name: &str| variable(&repo, program, name).unwrap_or_default();
        assert_eq!(told("REPO"), "repo", "{program}");
        assert_eq!(told("BRANCH"), "main", "{program}");
        assert_eq!(told("SESSION"), session(&repo), "{program}");
        assert!(!told("WORKTREE").is_empty(), "{program}");
        // A gate looks at what several tasks would come to, and has its worktree set up for that.
        let is_common = ["gate", "setup"].contains(&program);
        assert_eq!(told("TASK"), if is_common { String::new() } else { "T001".into() }, "{program}");
    }
    assert_eq!(variable(&repo, "agent", "WORKTREE").unwrap(), lane);
}

#[test]
fn gardener_is_refused_if_core_bare_is_set_for_the_command() {
    let repo = repo();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    let bare = ["-c", "core.bare=true", "arborist", "gardener", "--jobs", "2"];
    repo.git(bare).exits(1).err("core.bare is set for this command");
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), head);
    repo.git(["-c", "core.bare=false", "arborist", "gardener", "--jobs", "2"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}
