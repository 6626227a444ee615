//! What agents and reviewers are told: the task, what is around it, and templates of the user's own.

use arborist_testkit::TestRepo;

const PLAN: &str = "\
# Tasks: Auth

## Phase 1: Setup

**Purpose**: Project initialization

- [ ] T001 Create the project

## Phase 2: User Story 1 - Login

**Goal**: Users can log in with a password

- [ ] T002 [US1] Create the model
- [ ] T003 [US1] Create the form (depends on T002)
";

const WORKER: &str = r#"
case "$prompt" in
  *APPROVED*) echo APPROVED ;;
  *) mkdir -p src; echo x > "src/$ARBORIST_TASK.rs"; echo done ;;
esac
"#;

fn repo() -> TestRepo {
    let repo = TestRepo::planned("specs/main/tasks.md", PLAN, WORKER);
    repo.write("specs/main/spec.md", "what\n");
    repo.write("specs/main/plan.md", "how\n");
    repo.write(".specify/memory/constitution.md", "rules\n");
    repo.commit("documents\n");
    repo
}

#[test]
fn a_prompt_names_the_phase_its_goal_the_dependencies_and_the_documents() {
    for mode in [[].as_slice(), &["--isolate"]] {
        let repo = repo();
        repo.arborist(["gardener"].iter().chain(mode)).succeeds();
        let prompt = repo.prompt(4);
        let expected = "Implement task T003: Create the form (depends on T002)\n\n\
            Phase: Phase 2: User Story 1 - Login\n**Goal**: Users can log in with a password\n\n\
            It builds on these tasks:\n- T002 Create the model (changed src/T002.rs)\n- T001 Create the project (changed src/T001.rs)\n\n\
            The task is from specs/main/tasks.md, line 14. These documents belong to it:\n\
            - specs/main/spec.md\n- specs/main/plan.md\n- .specify/memory/constitution.md\n\n\
            Work in the current directory.";
        assert!(prompt.starts_with(expected), "{mode:?}: {prompt}");
        let review = repo.prompt(5);
        assert!(
            review.contains("**Goal**: Users can log in") && review.contains("- specs/main/spec.md\n"),
            "{review}"
        );
    }
}

#[test]
fn the_prompt_of_a_task_given_as_a_message_names_no_plan() {
    let repo = TestRepo::init();
    repo.agent(WORKER);
    repo.arborist(["garden", "-m", "add a form"]).succeeds();
    assert!(
        repo.prompt(0).starts_with("Implement task add-a-form: add a form\n\nWork in"),
        "{}",
        repo.prompt(0)
    );
}

#[test]
fn configured_files_are_named_to_agents_and_reviewers() {
    let repo = repo();
    repo.write("docs/api.md", "api\n");
    repo.write(".arborist/config.toml", "context = [\"docs/api.md\", \"docs/none.md\"]\n");
    repo.commit("settings\n");
    repo.arborist(["garden", "--yes"]).succeeds();
    for call in [0, 1] {
        let prompt = repo.prompt(call);
        assert!(prompt.contains("\n\nRead these files first:\n- docs/api.md\n\n"), "{prompt}");
    }
}

#[test]
fn a_dry_run_prints_the_prompts() {
    let repo = repo();
    repo.arborist(["garden", "--dry-run", "-v"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--dry-run", "--verbose"])
        .succeeds()
        .out("Implement task T003: Create the form");
    assert_eq!(repo.calls(), 0);
    repo.arborist([
        "garden",
        "--test-command",
        "[ ! -e src ] || { echo no email; exit 1; }",
        "--max-retries",
        "1",
    ])
    .exits(1);
    let said = repo.arborist(["garden", "T001", "--retry-failed", "--dry-run", "-v"]).succeeds();
    said.out("no email");
}

#[test]
fn a_template_has_to_be_approved_and_changes_the_prompt() {
    let repo = repo();
    repo.write(
        ".arborist/prompts/implement.md",
        "Do {task}, {name}.\n\n{phase}\n\nUse {{tabs}} and { spaces }.\n",
    );
    repo.write(".arborist/prompts/review.md", "{prompt}\n\nBe strict.\n");
    repo.commit("templates\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert_eq!(repo.calls(), 0);
    repo.arborist(["garden", "--yes"]).succeeds();
    let prompt = repo.prompt(0);
    let expected = "Do T001, Create the project.\n\nPhase: Phase 1: Setup\n**Purpose**: Project initialization\n\nUse {tabs} and { spaces }.\n\nWork in the current directory.";
    assert!(prompt.starts_with(expected), "{prompt}");
    let review = repo.prompt(1);
    assert!(
        review.starts_with("Review the changes for task T001") && review.trim_end().ends_with("Be strict."),
        "{review}"
    );
    repo.arborist(["garden"]).succeeds();
    assert!(repo.prompt(2).starts_with("Do T002"), "an approved text is not asked for again");
}

#[test]
fn a_template_of_the_user_needs_no_approval() {
    let repo = repo();
    repo.git(["config", "arborist.prompts.implement", "Please do {task}."]).succeeds();
    repo.git(["config", "arborist.prompts.review", "Please judge {task}."]).succeeds();
    repo.arborist(["garden"]).succeeds();
    assert!(repo.prompt(0).starts_with("Please do T001.\n\nWork in"), "{}", repo.prompt(0));
    assert!(repo.prompt(1).starts_with("Please judge T001.\n\nDiff:\n"), "{}", repo.prompt(1));
}

#[test]
fn a_template_that_changed_since_the_start_of_a_run_stops_the_run() {
    let repo = repo();
    repo.write(".arborist/prompts/implement.md", "{prompt}\nOne.\n");
    repo.arborist(["garden", "--yes"]).succeeds();
    assert!(
        repo.git(["ls-files", ".arborist"]).answer().contains("implement.md"),
        "it is frozen with the run"
    );
    repo.write(".arborist/prompts/implement.md", "{prompt}\nTwo.\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    repo.arborist(["garden", "--accept-changes"]).exits(2).err("you have not approved them");
    repo.arborist(["garden", "--accept-changes", "--yes"]).succeeds();
    assert!(repo.prompt(2).trim_end().ends_with("Two."), "{}", repo.prompt(2));
}

#[test]
fn a_mistyped_template_or_placeholder_is_refused() {
    let repo = repo();
    repo.write(".arborist/prompts/implemnt.md", "x\n");
    repo.arborist(["garden"]).exits(1).matches_snapshot();
    std::fs::remove_file(repo.path(".arborist/prompts/implemnt.md")).unwrap();
    repo.write(".arborist/prompts/implement.md", "Do {tsk}.\n");
    repo.arborist(["garden"]).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), 0);
}

#[test]
fn uncommitted_templates_are_used_on_a_session_branch() {
    let repo = repo();
    repo.write(".arborist/prompts/implement.md", "{prompt}\nHere too.\n");
    repo.arborist(["gardener", "--session-branch", "--yes", "--only", "T001"]).succeeds();
    assert!(repo.prompt(0).trim_end().ends_with("Here too."), "{}", repo.prompt(0));
}

#[test]
fn a_prompt_that_is_too_long_for_an_argument_is_passed_in_a_file() {
    let repo = TestRepo::init();
    let words: String = "é".repeat(20_000);
    let plan = serde_json::json!({
        "nodes": {"T1": {"id": "T1", "name": "a", "description": words}}, "root_ids": ["T1"]
    });
    repo.write("task-tree.json", plan.to_string());
    repo.commit("a plan\n");
    let script = "prompt=$1\nfile=$(printf '%s' \"$prompt\" | sed -n 's/^Read all of the file \\(.*\\) and do what it says.$/\\1/p')\n[ -z \"$file\" ] || { echo long >> \"$HOME/long\"; prompt=$(cat \"$file\"); }\ncase \"$prompt\" in Review*APPROVED*) echo APPROVED ;; Implement*NOTHING*) awk 'BEGIN { for (i = 0; i < 40000; i++) print \"a line\" }' > big.txt; echo done ;; esac\n";
    repo.write_script("../agent.sh", script);
    let folder = repo.home().join(".config/git-arborist");
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "runner = \"robot\"\nreview.diff-limit = 400000\n[runners.robot]\ncommand = [\"sh\", \"{}\", \"{{prompt}}\"]\n",
        repo.root().join("agent.sh").display()
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    repo.arborist(["garden"]).succeeds();
    let long = std::fs::read_to_string(repo.home().join("long")).unwrap();
    assert_eq!(long, "long\n", "only the review is too long");
}

#[test]
fn a_task_name_with_line_breaks_is_shown_on_one_line_by_a_dry_run() {
    let name = r"Two\r    implement  forged\nT009 x\u2028T008 y\u0085z";
    let plan = format!(r#"{{"nodes": {{"T1": {{"id": "T1", "name": "{name}"}}}}, "root_ids": ["T1"]}}"#);
    let repo = TestRepo::planned("task-tree.json", &plan, "true");
    let shown = repo.arborist(["gardener", "--dry-run"]).succeeds().stdout();
    assert!(shown.contains("T1 Two implement forged T009 x T008 y z\n"), "{shown}");
    assert!(!shown.lines().any(|line| line.starts_with("T00") || line.contains("  forged")), "{shown}");
}
