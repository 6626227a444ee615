//! `git arborist plan` through the command line.

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

const SPEC: &str = "\
# Tasks: login

## Phase 1: Setup

- [x] T001 Create the project in `src/main.rs`
- [ ] T002 [P] Configure it in `config.toml`
- [ ] T003 [P] Document it in `config.toml`

## Phase 2: Foundational

- [ ] T004 Add a schema (depends on T002)

## Phase 3: User Story 1 - Log in (Priority: P1)

- [ ] T005 [US1] Add the form

**Acceptance criteria**:

- [ ] check it by hand

## Phase 4: User Story 2 - Log out

- [ ] T006 [US2] Add the button

## Notes

- [P] tasks = different files
";

fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", SPEC);
    repo
}

fn json(run: Run) -> Value {
    serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn without_arguments_plan_shows_phases_tasks_and_dependencies() {
    repo()
        .arborist(["plan"])
        .succeeds()
        .out("Phase 1: Setup (phase-1)\n  [x] T001 Create the project in `src/main.rs`\n  [ ] T002 [P] Configure it")
        .out("Phase 2: Foundational (phase-2, waits for phase-1)\n  [ ] T004 Add a schema (depends on T002)  (waits for T002)\n")
        .out("Phase 4: User Story 2 - Log out (phase-4, waits for phase-2)\n")
        .out("6 tasks in 4 phases: 1 done, 5 to do; 3 waves (the tasks of a wave can run at the same time)\n")
        .out("1 box under 'Phase 3: User Story 1 - Log in (Priority: P1)' taken as checks, line 19\n");
}

#[test]
fn waves_show_tasks_that_can_run_at_once_and_files_that_two_of_them_name() {
    repo()
        .arborist(["plan", "--waves"])
        .succeeds()
        .out("wave 1, 2 tasks\n  T002 Configure it in `config.toml`\n  T003")
        .out("wave 3, 2 tasks\n  T005 Add the form\n  T006")
        .err("warning: T002, T003 may run at the same time, but name the same file 'config.toml'");
    let waves = json(repo().arborist(["plan", "--waves", "--format", "json"]));
    assert_eq!(waves["waves"][0], serde_json::json!(["T002", "T003"]));
    assert_eq!(waves["conflicts"][0]["file"], "config.toml");
}

#[test]
fn check_reports_position_error_and_fix_and_exits_with_1() {
    let repo = repo();
    repo.arborist(["plan", "--check"])
        .succeeds()
        .out("tasks.md:7:1: warning: 'T002' and 'T003' may run at the same time, but");
    repo.arborist(["plan", "--check", "--strict"]).exits(1).out("tasks.md:7:1: error: ");
    repo.arborist(["plan", "--strict"])
        .exits(1)
        .err("error: tasks.md:7:1: 'T002' and 'T003' may run at the same time, but");

    repo.write("bad.md", "- [ ] T001 a\n- [ ] T001 b\n- [y] T002 c (depends on T001)\n");
    repo.arborist(["plan", "--check", "bad.md"])
        .exits(1)
        .out("bad.md:3:26: error: a dependency names 'T001', which is the id of two tasks, in lines 1 and 2");
    repo.arborist(["plan", "bad.md"]).exits(1).silent().err("error: bad.md:3:26: ").err("hint: give one");
}

#[test]
fn each_error_of_a_plan_has_its_own_hint() {
    let repo = TestRepo::init();
    repo.write("bad.md", "- [ ] T001 a (depends on T002)\n- [ ] T002 b (depends on T001)\n- [ ] T002 c\n");
    let said = repo.arborist(["plan", "bad.md"]).exits(1).silent().stderr();
    let begins: Vec<&str> = said.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(begins, ["error", "hint", "error", "hint"], "{said}");
    assert!(said.lines().next().unwrap().contains("the id of two tasks"), "{said}");
}

#[test]
fn a_dependency_cycle_is_shown_as_a_path() {
    let repo = TestRepo::init();
    repo.write("a.md", "- [ ] T001 a (depends on T002)\n- [ ] T002 b (depends on T001)\n");
    repo.arborist(["plan", "a.md"])
        .exits(1)
        .err("a.md:1:26: tasks wait for each other: T001 (a.md:1) → T002 (a.md:2) → T001 (a.md:1)");
}

#[test]
fn a_tree_file_that_plan_writes_is_read_by_state() {
    let repo = repo();
    repo.write("Cargo.toml", "[package]\n");
    repo.arborist(["plan", "tasks.md", "-o", "task-tree.json"])
        .succeeds()
        .silent()
        .err("wrote task-tree.json");
    let tree: Value = serde_json::from_str(&repo.read("task-tree.json")).expect("JSON");
    assert_eq!(tree["execution_order"], serde_json::json!(["T001", "T002", "T003", "T004", "T005", "T006"]));
    assert_eq!(tree["nodes"]["T004"]["test_commands"][0]["command"], "cargo test");
    assert_eq!(tree["nodes"]["T004"]["source_line"], 11);
    assert_eq!(tree["spec_files"], serde_json::json!(["tasks.md"]));
    repo.arborist(["state"]).succeeds().out("T004");
    repo.arborist(["state", "--tree", "tasks.md", "--ready"]).succeeds().out("T002").never("T004");
}

#[test]
fn a_tree_file_updated_from_its_plan_keeps_ids_and_manual_additions() {
    let repo = repo();
    repo.arborist(["plan", "tasks.md", "-o", "tree.json"]).succeeds();
    let edited = repo
        .read("tree.json")
        .replace("\"id\": \"T004\",", "\"id\": \"T004\", \"runner\": \"codex\", \"ticket\": 7,");
    repo.write("tree.json", edited);
    repo.write("tasks.md", format!("{SPEC}\n## Phase 5: Polish\n\n- [ ] T007 Polish\n"));
    repo.arborist(["plan", "tasks.md", "-o", "tree.json"]).succeeds().err("new: phase-5 T007");
    let tree: Value = serde_json::from_str(&repo.read("tree.json")).expect("JSON");
    assert_eq!(
        (&tree["nodes"]["T004"]["runner"], &tree["nodes"]["T004"]["ticket"]),
        (&"codex".into(), &7.into())
    );
    assert_eq!(tree["nodes"]["phase-5"]["depends_on"], serde_json::json!(["phase-3", "phase-4"]));
}

#[test]
fn an_unreadable_tree_file_is_not_overwritten() {
    let repo = repo();
    repo.write("tree.json", "{broken");
    repo.arborist(["plan", "tasks.md", "-o", "tree.json"])
        .exits(1)
        .err("tree.json:1:")
        .err("hint: the file would be overwritten; correct it or move it away");
    assert_eq!(repo.read("tree.json"), "{broken");
}

#[test]
fn a_tree_file_is_rewritten_unchanged_from_any_folder() {
    let repo = repo();
    repo.write("Cargo.toml", "");
    let tree = r#"{"nodes": {"T1": {"name": "x", "source_file": "a.md", "source_line": 3, "mood": "good"}}, "spec_files": ["a.md"]}"#;
    repo.write("sub/tree.json", tree);
    repo.arborist_in(&repo.path("sub"), ["plan", "tree.json", "-o", "tree.json"]).succeeds();
    let written: Value = json(repo.arborist(["plan", "sub/tree.json", "--format", "json"]));
    let node = &written["nodes"]["T1"];
    assert_eq!((&node["mood"], &node["source_file"]), (&"good".into(), &"a.md".into()));
    assert_eq!((&written["spec_files"][0], &node["test_commands"]), (&"a.md".into(), &serde_json::json!([])));
}

#[test]
fn a_box_with_nested_boxes_is_ticked_with_the_last_of_them() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] 1. a\n  - [x] 1.1 b\n  - [ ] 1.2 c\n- [ ] 2. d\n  - [ ] 2.1 e\n");
    repo.run_start("main", "s1");
    repo.task("1.2", "complete");
    repo.arborist(["plan", "--tick"]).succeeds();
    assert_eq!(
        repo.read("tasks.md"),
        "- [x] 1. a\n  - [x] 1.1 b\n  - [x] 1.2 c\n- [ ] 2. d\n  - [ ] 2.1 e\n"
    );
}

#[test]
fn diagrams_are_printed_for_mermaid_and_graphviz() {
    let repo = repo();
    repo
        .arborist(["plan", "--format", "mermaid"])
        .succeeds()
        .out("flowchart TD\n  subgraph n0[\"Phase 1: Setup\"]\n    n1[\"T001 Create the project in `src/main.rs`\"]:::settled\n")
        .out("  n0 --> n4\n");
    repo.arborist(["plan", "--format", "dot"])
        .succeeds()
        .out("digraph plan {\n")
        .out("  n3 -> n5 [ltail=cluster_n0, lhead=cluster_n4];\n");
}

#[test]
fn tick_changes_one_byte_for_each_task_that_is_complete_in_history() {
    let repo = repo();
    let spec = SPEC.replace('\n', "\r\n");
    repo.write("tasks.md", &spec);
    repo.run_start("main", "s1");
    repo.task("T002", "complete");
    repo.task("T003", "implement-pass");
    repo.arborist(["plan", "--tick"]).succeeds().out("ticked T002 (tasks.md:6)\n").never("T003");
    assert_eq!(repo.read("tasks.md"), spec.replace("- [ ] T002", "- [x] T002"));
    repo.arborist(["plan", "--tick"]).succeeds().out("the boxes of all complete tasks are already ticked");
}

#[test]
fn a_plan_in_another_encoding_is_read_with_a_warning_and_never_changed() {
    let repo = repo();
    repo.run_start("main", "s1");
    repo.task("T001", "complete");
    let text = "- [ ] T001 café\n- [ ] T002 b\n";
    let utf16: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    for (bytes, encoding) in [(utf16, "UTF-16"), (latin, "Windows-1252")] {
        repo.write("tasks.md", &bytes);
        repo.arborist(["plan"]).succeeds().out("café").err(encoding);
        repo.arborist(["plan", "--check", "--strict"]).exits(1).out("not UTF-8");
        repo.arborist(["plan", "--tick"]).succeeds().err("'T001' is complete and has no box to tick");
        assert_eq!(std::fs::read(repo.path("tasks.md")).unwrap(), bytes);
    }
    repo.write("tasks.md", b"- [ ] T001 a\0\xff");
    repo.arborist(["plan"]).exits(1).err("this is not UTF-8 text");
}

#[test]
fn assign_ids_adds_ids_to_boxes_without_one() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "# Plan\n- [ ] first\n- [x] second\n");
    repo.arborist(["plan"]).succeeds().out("[ ] first first\n[x] second second  (waits for first)\n");
    repo.arborist(["plan", "--assign-ids"]).succeeds().out("tasks.md:2: T001\ntasks.md:3: T002\n");
    assert_eq!(repo.read("tasks.md"), "# Plan\n- [ ] T001 first\n- [x] T002 second\n");
    repo.arborist(["plan"]).succeeds().out("2 tasks: 1 done, 1 to do");
}

#[test]
fn assigned_ids_avoid_ids_that_the_plan_already_names() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T009 a (depends on T010)\n- [ ] Write docs, as in T011\n- [ ] Publish\n");
    repo.arborist(["plan", "--assign-ids"]).succeeds().out("tasks.md:2: T012\ntasks.md:3: T013\n");
    repo.write("specs/a/tasks.md", "- [ ] first\n");
    repo.write("specs/b/tasks.md", "- [ ] second\n");
    repo.arborist(["plan", "specs", "--assign-ids"])
        .succeeds()
        .out("specs/a/tasks.md:1: T001\n")
        .out(": T002\n");
    repo.arborist(["plan", "specs"]).succeeds().out("2 tasks");
}

#[test]
fn an_id_with_a_lowercase_letter_is_reported_and_corrected() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] t010 lower\n- [ ] T009 upper\n- [ ] other\n");
    repo.arborist(["plan", "--check"]).succeeds().out("tasks.md:1:7: warning: 't010' is not read as an id");
    repo.arborist(["plan", "--assign-ids"]).succeeds().out("tasks.md:1: T010\ntasks.md:3: T011\n");
    assert_eq!(repo.read("tasks.md"), "- [ ] T010 lower\n- [ ] T009 upper\n- [ ] T011 other\n");
    repo.arborist(["plan", "--check"]).succeeds().never("warning");
}

#[test]
fn a_task_that_depends_on_itself_is_reported() {
    let repo = TestRepo::init();
    repo.write(
        "tasks.md",
        "- [ ] T007 a\n- [ ] T008 self (depends on T008)\n- [ ] T009 b (depends on T007-T009)\n",
    );
    let said = repo.arborist(["plan", "--check"]).succeeds();
    said.out("tasks.md:2:29: warning: 'T008' depends on itself; this is ignored\n    fix: remove")
        .never("'T009' depends on itself");
}

#[test]
fn the_plan_is_found_where_it_is_usually_kept() {
    let repo = TestRepo::init();
    repo.arborist(["plan"]).exits(1).err("error: no plan was found").err("specs/main/tasks.md");
    for (place, id) in [("tasks.md", "T1"), ("spec/tasks.md", "T2"), ("specs/main/tasks.md", "T3")] {
        repo.write(place, format!("- [ ] {id} x\n"));
        repo.arborist(["plan"]).succeeds().out(&format!("[ ] {id} x"));
    }
    repo.write("task-tree.json", r#"{"nodes": {"T4": {"name": "x"}}}"#);
    repo.arborist(["plan"]).succeeds().out("[ ] T4 x");
    repo.write("other.md", "- [ ] T5 x\n");
    repo.git(["config", "arborist.tree", "other.md"]).succeeds();
    repo.arborist(["plan"]).succeeds().out("[ ] T5 x");
    repo.write("sub/x", "");
    repo.arborist_in(&repo.path("sub"), ["plan"]).succeeds().out("[ ] T5 x");
}

#[test]
fn the_task_lists_of_a_folder_are_read_as_one_plan() {
    let repo = TestRepo::init();
    repo.write("specs/001-a/tasks.md", "- [ ] T001 a\n");
    repo.write("specs/001-a/spec.md", "- [ ] T009 not this\n");
    repo.write("specs/002-b/tasks.md", "- [ ] T002 [P] b (depends on T001)\n");
    repo.arborist(["plan", "specs"]).succeeds().out("[ ] T001 a\n[ ] T002 [P] b").never("T009");
    repo.write("specs/002-b/tasks.md", "- [ ] T001 b\n");
    repo.arborist(["plan", "specs"])
        .exits(1)
        .err("specs/002-b/tasks.md:1:3: the id 'T001' is already used, at specs/001-a/tasks.md:1");
}

#[test]
fn plan_works_outside_of_a_repository_if_a_file_is_named() {
    let repo = repo();
    let place = repo.root().join("elsewhere");
    std::fs::create_dir_all(&place).expect("a folder");
    std::fs::write(place.join("my tasks é.md"), "- [ ] T001 x\n").expect("a file");
    repo.arborist_in(&place, ["plan", "my tasks é.md"]).succeeds().out("[ ] T001 x");
    repo.arborist_in(&place, ["plan"]).exits(128).err("not a git repository");
    repo.arborist_in(&place, ["plan", "missing.md"]).exits(1).err("there is no file 'missing.md'");
}

#[test]
fn a_file_conflict_in_a_tree_file_without_line_numbers_is_reported() {
    let repo = TestRepo::init();
    let node = |id: &str| format!(r#""{id}": {{"id": "{id}", "name": "a", "files": ["src/a.rs"]}}"#);
    repo.write(
        "tree.json",
        format!(r#"{{"nodes": {{{}, {}}}, "root_ids": ["T1", "T2"]}}"#, node("T1"), node("T2")),
    );
    let run = repo.arborist(["plan", "--check", "--strict", "tree.json"]);
    assert!(
        run.report().contains("'T1' and 'T2' may run at the same time, but name the same file 'src/a.rs'"),
        "{}",
        run.report()
    );
    let _ = run.exits(1);
}

#[test]
fn misspelt_keys_of_a_json_plan_are_reported_and_unrelated_ones_are_ignored() {
    let repo = TestRepo::init();
    let tasks = |second: &str| {
        format!(
            "{{\"tasks\": [\n  {{\"id\": \"T001\", \"title\": \"a\"}},\n  {{\"id\": \"T002\", {second}}}\n]}}\n"
        )
    };
    for (second, fault, fix) in [
        (r#""title": "b", "dependson": ["T001"]"#, "the key 'dependson' is not known", "'dependencies'"),
        (r#""title": "b", "dependancies": ["T001"]"#, "the key 'dependancies'", "'dependencies'"),
        (r#""tittle": "b""#, "the key 'tittle'", "did you mean 'title'?"),
        (r#""title": " ""#, "the task 'T002' has no title", "give it a 'title'"),
    ] {
        repo.write("plan.json", tasks(second));
        let check = repo.arborist(["plan", "--check", "plan.json"]).exits(1).out(fix);
        check.out("plan.json:3:").out(&format!("error: {fault}"));
        repo.arborist(["plan", "plan.json"]).succeeds().err("warning: plan.json:3:").err(fault);
    }
    repo.write("plan.json", tasks(r#""title": "b", "priority": "high", "updatedAt": "now", "tag": "x""#));
    repo.arborist(["plan", "--check", "plan.json"]).succeeds().never("not known");
    let node =
        |key: &str| format!("{{\"nodes\": {{\"T1\": {{\"id\": \"T1\", {key}}}}}, \"root_ids\": [\"T1\"]}}");
    for (key, meant) in [
        (r#""dependsOn": []"#, "depends_on"),
        (r#""dependencies": []"#, "depends_on"),
        (r#""Title": "a""#, "name"),
        (r#""test_command": []"#, "test_commands"),
        (r#""test_commands": [{"command": "true", "time-out": 3}]"#, "timeout"),
    ] {
        repo.write("plan.json", node(key));
        repo.arborist(["plan", "--check", "plan.json"]).exits(1).out(&format!("did you mean '{meant}'?"));
    }
    repo.write("plan.json", node(r#""name": "a", "x_owner": "me""#));
    repo.arborist(["plan", "--check", "plan.json"]).succeeds().never("not known");
}

#[test]
fn text_of_a_plan_prints_no_escape_sequences() {
    let repo = TestRepo::init();
    repo.write(
        "tasks.md",
        "## Phase 1: \u{1b}[31mAll\u{7}\n\n- [ ] T001 do \u{1b}[2Ja \u{202e}evil\n- [ ] T002 do b\u{9b}31m (depends on T001)\n",
    );
    repo.write("f\u{1b}[31m.md", "- [ ] T001 a\n");
    repo.commit("a plan\n");
    repo.git(["branch", "m\u{202e}"]).succeeds();
    for args in [
        &["plan"][..],
        &["plan", "--explain", "T002"],
        &["plan", "--check"],
        &["plan", "--waves"],
        &["plan", "--format", "mermaid"],
        &["plan", "--format", "dot"],
        &["state"],
        &["plan", "--tree", "tasks.m\u{1b}[31m"],
        &["plan", "--no-such\u{1b}[31m"],
        &["state", "no-such\u{1b}[31m task"],
        &["plan", "--tree", "f\u{1b}[31.md"],
        &["state", "--scope", "m\u{202e}"],
    ] {
        let said = repo.arborist(args);
        let report = format!("{}{}", said.stdout(), said.stderr());
        let is_bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!report.contains(is_bad), "{args:?}: {report:?}");
    }
}

#[test]
fn check_lists_every_error_and_warning_at_once() {
    let repo = TestRepo::init();
    repo.write(
        "tasks.md",
        "- [ ] T001 a (depends on T002)\n- [ ] T002 b (depends on T001)\n- [?] T003 c (depends on T004)\n\
         - [ ] T004 d (depends on T003)\n- [z] T005 e (depends on T999)\n",
    );
    let check = repo.arborist(["plan", "--check"]).exits(1);
    let check = check.out("tasks.md:1:").out("tasks.md:3:").out("tasks.md:5:");
    assert_eq!(check.stdout().matches("tasks wait for each other").count(), 2);
    assert_eq!(check.stdout().matches("warning: ").count(), 2);
}

#[test]
fn the_proposal_of_a_red_mark_shows_the_line_with_the_mark() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 write tests that must fail first\n- [ ] T002 b\n");
    for arguments in [&["plan"][..], &["plan", "--check"], &["plan", "--explain", "T001"]] {
        repo.arborist(arguments).succeeds().out("- [ ] T001 [red]");
    }
}

#[test]
fn equal_boxes_keep_their_ids_when_one_of_them_is_edited() {
    let repo = TestRepo::init();
    let ids = |text: &str| -> Vec<String> {
        repo.write("tasks.md", text);
        let tree: serde_json::Value =
            serde_json::from_str(&repo.arborist(["plan", "--format", "json"]).answer()).unwrap_or_default();
        tree["nodes"].as_object().map(|nodes| nodes.keys().cloned().collect()).unwrap_or_default()
    };
    let before = ids("## Server\n- [ ] Add tests\n- [ ] Ship\n## Client\n- [ ] Add tests\n- [ ] Add tests\n");
    let after =
        ids("## Server\n- [ ] Add more tests\n- [ ] Ship\n## Client\n- [ ] Add tests\n- [ ] Add tests\n");
    assert_eq!(after[4..], before[4..]);
    let alone = ids("## Server\n- [ ] Add more tests\n- [ ] Ship\n## Client\n- [ ] Add tests\n");
    assert!(!before.contains(&alone[4]));
}

#[test]
fn a_word_that_looks_like_an_id_is_reported_if_other_tasks_have_ids() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] AUTH1 Log in\n- [ ] T002 Log out\n");
    let words = "tasks.md:1:7: warning: 'AUTH1' is not read as an id, so the task is called 'auth1-log-in'";
    repo.arborist(["plan", "--check"]).succeeds().out(words);
    for plan in ["- [ ] S3 upload\n- [ ] write docs\n", "- [ ] AUTH1 Log in\n- [ ] AUTH2 Log out\n"] {
        repo.write("tasks.md", plan);
        repo.arborist(["plan", "--check"]).succeeds().never("is not read as an id");
    }
}

#[test]
fn a_json_plan_without_tasks_is_an_error() {
    let repo = TestRepo::init();
    for plan in [r#"{"tasks": []}"#, r#"{"nodes": {}}"#] {
        repo.write("empty.json", plan);
        repo.arborist(["plan", "empty.json"]).exits(1).err("empty.json:1:1: no tasks were found");
    }
}

#[test]
fn a_plan_is_not_written_to_a_folder_that_does_not_exist() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 a\n");
    let said = repo.arborist(["plan", "-o", "nowhere/tree.json"]).exits(128);
    said.err("could not write 'nowhere/tree.json': there is no folder 'nowhere'").err("mkdir -p nowhere");
    assert!(!repo.path("nowhere").exists());
}

#[test]
fn tick_without_a_complete_task_says_that_no_box_was_ticked() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 a\n");
    repo.arborist(["plan", "--tick"]).succeeds().out("no task is complete, so no box was ticked");
}
