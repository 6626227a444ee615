//! Plans that are named by a path: from the top of the repository, from the current directory, or absolute.

use std::{fs, os::unix::fs::symlink};

use arborist_testkit::{TestRepo, WORKER};

use crate::pasted_hints::{hinted, paste};

/// A plan at the top, one in a folder of `sub`, and one in `sub` itself.
fn repo() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 top\n", WORKER);
    repo.write("sub/tasks.md", "- [ ] S001 lower\n");
    repo.write("sub/my.md", "- [ ] M001 mine\n");
    repo.commit("more plans\n");
    repo
}

const COMMANDS: [&[&str]; 3] = [&["gardener", "--dry-run"], &["garden", "--dry-run"], &["state"]];

#[test]
fn all_commands_find_a_named_plan_from_a_subfolder_in_the_same_place() {
    let repo = repo();
    let sub = repo.path("sub");
    let absolute = repo.path("tasks.md").display().to_string();
    let linked = repo.root().join("link");
    symlink(repo.path(""), &linked).unwrap();
    let linked = linked.join("sub/my.md").display().to_string();
    let table = [
        ("tasks.md", "T001"),
        ("../tasks.md", "T001"),
        ("./tasks.md", "S001"),
        ("../sub/tasks.md", "S001"),
        ("sub/tasks.md", "S001"),
        ("my.md", "M001"),
        (&absolute, "T001"),
        (&linked, "M001"),
    ];
    for (path, task) in table {
        for command in COMMANDS {
            let run = repo.arborist_in(&sub, command.iter().copied().chain(["--tree", path]));
            run.succeeds().out(task);
        }
    }
    repo.git(["config", "arborist.tree", &absolute]).succeeds();
    for command in COMMANDS.into_iter().chain([&["plan"][..]]) {
        repo.arborist_in(&sub, command).succeeds().out("T001");
    }
}

#[test]
fn a_run_with_a_plan_of_the_current_folder_is_continued_from_the_top() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 top\n", "exit 4");
    repo.write("sub/my.md", "- [ ] T009 mine\n");
    repo.commit("another plan\n");
    let run = ["gardener", "--tree", "my.md", "--max-retries", "1"];
    let said = repo.arborist_in(&repo.path("sub"), run).exits(1).stdout();
    let next = said.lines().find_map(|line| line.trim().strip_prefix("next   "));
    let next = next.unwrap_or_else(|| panic!("no next command in {said}")).trim().to_owned();
    repo.agent(WORKER);
    assert!(next.contains("--tree sub/my.md"), "{next}");
    paste(&repo, &next).succeeds().out("1 completed (T009)");
    repo.arborist(["state"]).succeeds().out("1 of 1 done");
}

#[test]
fn a_plan_outside_of_the_repository_is_copied_by_the_hint() {
    let repo = repo();
    let outside = repo.root().join("my plan.md");
    fs::write(&outside, "- [ ] X001 out\n").unwrap();
    let refused = "my plan.md' is outside of the repository";
    for (path, from) in [("../../my plan.md", "sub"), ("../my plan.md", ""), (outside.to_str().unwrap(), "")]
    {
        for command in COMMANDS {
            let command = command.iter().copied().chain(["--tree", path]);
            repo.arborist_in(&repo.path(from), command).exits(1).err(refused);
        }
    }
    repo.git(["config", "arborist.tree", "../my plan.md"]).succeeds();
    for command in COMMANDS {
        repo.arborist(command).exits(1).err(refused).err("hint: correct arborist.tree in .git/config, or");
    }
    let said = repo.arborist(["plan"]).exits(1).err(refused).stderr();
    paste(&repo, &hinted(&said, "name the copy: ")).succeeds();
    repo.arborist(["gardener", "--dry-run", "--tree", "my plan.md"]).succeeds().out("X001");
    // Now the name is taken.
    let said = repo.arborist(["state", "--tree", "../my plan.md"]).exits(1);
    said.err("hint: name a file in '").never("cp ");
}

#[test]
fn state_names_all_plans_that_were_found() {
    let repo = TestRepo::planned("specs/001-x/tasks.md", "- [ ] T001 one\n", WORKER);
    repo.write("specs/002-y/tasks.md", "- [ ] U001 other\n");
    repo.commit("another plan\n");
    let found = "2 plans were found: specs/001-x/tasks.md, specs/002-y/tasks.md";
    repo.arborist(["plan"]).exits(1).err(found);
    repo.arborist(["gardener"]).exits(1).err(found);
    let said = repo.arborist(["state"]).succeeds();
    let said = said.out(&format!("{found}; 'main' has no run yet\n")).never("no plan").stderr();
    paste(&repo, &hinted(&said, "name one of them: ")).succeeds().out("T001");
    let document: serde_json::Value =
        serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    assert_eq!(document["plan"], serde_json::Value::Null);
}

#[test]
fn prose_beside_a_plan_is_not_taken_for_a_second_one() {
    let repo = TestRepo::planned("specs/001-x/tasks.md", "- [ ] T001 one\n", WORKER);
    repo.write("plan.md", "# Plan\n\nSmall steps.\n\n- first\n- second\n");
    repo.commit("prose\n");
    for command in COMMANDS.into_iter().chain([&["plan"][..]]) {
        repo.arborist(command).succeeds().out("T001");
    }
    // A plan with a mistake is still one.
    repo.write("plan.md", "- [ ] T001 one (depends on T009)\n");
    repo.arborist(["plan"]).exits(1).err("2 plans were found: specs/001-x/tasks.md, plan.md");
    // Without any other plan, the prose is named.
    fs::remove_file(repo.path("specs/001-x/tasks.md")).unwrap();
    repo.write("plan.md", "Small steps.\n");
    repo.arborist(["plan"]).exits(1).err("plan.md:1:1: no tasks were found");
}
