//! Whole lives of sessions over several repositories: turns, snapshots, lanes and pushes together.

use std::{collections::BTreeSet, fs, path::Path};

use crate::test_workspace::TestWorkspace;
use serde_json::Value;

/// The first turn works in both repositories, the second in the other one, the third here; the last only looks.
const BOTH: &str = r#"
other=$(printf '%s\n' "$prompt" | sed -n 's/^- backend: //p')
opens
calls 1 "I'll add a schema"; echo one > a.txt; echo one > "$other/a.txt"; answers 1
calls 2 "I'll add a query"; echo two > "$other/b.txt"; reads 2
calls 3 "I'll add a page"; echo three > c.txt; answers 3
calls 4 "I look around"; ls > /dev/null; reads 4
ends "done"
"#;

/// The turns on the branch of the only session: author, words, and the trailers that lead to the record.
fn turns(workspace: &TestWorkspace, dir: &Path, branch: &str) -> Vec<String> {
    let keys = ["Session", "Node", "Model", "Turn"]
        .map(|key| format!(" %(trailers:key=Arborist-{key},valueonly,separator=)"))
        .join("");
    let log = [
        "log",
        "--reverse",
        "--topo-order",
        &format!("--format=%an <%ae> %s{keys}"),
        "--grep=@turn)",
        branch,
    ];
    let text = workspace.git_in(dir, log).answer();
    text.lines()
        .map(|line| line.replace(branch, "RUN").replace(branch.rsplit_once('/').unwrap().1, "ID"))
        .collect()
}

fn turn(task: &str, words: &str, number: u32) -> String {
    format!(
        "{task} (claude-sonnet-5) <arborist@local> task(RUN@{task}@turn): {words} ID {task} claude-sonnet-5 {number}"
    )
}

#[test]
fn a_task_in_two_repositories_has_turns_snapshots_and_branches_in_both() {
    let workspace = TestWorkspace::of(&["backend"], "- [ ] T001 [repo:repo, backend] both\n");
    crate::turn_scripts::agent(&workspace, "claude", BOTH);
    let bases = ["repo", "backend"]
        .map(|repo| workspace.git_in(&workspace.clone_of(repo), ["rev-parse", "main"]).answer());
    let printed = workspace.arborist(["gardener", "--json"]).succeeds().stdout();
    let events: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let branch = workspace.session_branch("repo");
    assert_eq!(workspace.session_branch("backend"), branch, "a branch of the same name in each");
    assert_eq!(
        turns(&workspace, &workspace.clone_of("repo"), &branch),
        [turn("T001", "Add a schema", 1), turn("T001", "Add a page", 3)]
    );
    assert_eq!(
        turns(&workspace, &workspace.clone_of("backend"), &branch),
        [turn("T001", "Add a schema", 1), turn("T001", "Add a query", 2)]
    );
    // What is told of turns says where they were committed, and each commit is the one of its turn.
    let committed = events.iter().filter(|event| event["event"] == "turn-committed");
    let mut told = BTreeSet::new();
    for event in committed {
        let repo = event["repo"].as_str().unwrap_or("repo");
        let commit = event["commit"].as_str().unwrap();
        let format = "--format=%(trailers:key=Arborist-Turn,valueonly)";
        let number = workspace.git_in(&workspace.clone_of(repo), ["log", "-1", format, commit]).answer();
        assert_eq!(number.trim(), event["turn"].to_string());
        told.insert((repo.to_owned(), number.trim().to_owned()));
    }
    let expected = [("backend", "1"), ("backend", "2"), ("repo", "1"), ("repo", "3")];
    assert_eq!(told, expected.map(|(repo, turn)| (repo.to_owned(), turn.to_owned())).into());
    // The last snapshot has the head of each, and the branches are still there.
    let snapshot = &events.iter().rev().find(|event| event["event"] == "checkpoint").unwrap()["snapshot"];
    for (repo, base) in ["repo", "backend"].into_iter().zip(bases) {
        let clone = workspace.clone_of(repo);
        assert_eq!(snapshot[repo], workspace.git_in(&clone, ["rev-parse", &branch]).answer());
        assert_eq!(
            workspace.git_in(&clone, ["rev-parse", "main"]).answer(),
            base,
            "the user's branch is theirs"
        );
    }
    let session = branch.rsplit_once('/').unwrap().1;
    let shown: Value =
        serde_json::from_str(&workspace.arborist(["session", "show", session, "--json"]).answer()).unwrap();
    assert_eq!((&shown["session"]["state"], &shown["session"]["turns"]), (&"complete".into(), &6.into()));
}

/// Two turns for each task, which begin when both tasks are at work.
const SIDE_BY_SIDE: &str = r#"
touch "$ROOT/at-work-$ARBORIST_TASK"; pwd > "$ROOT/place-$ARBORIST_TASK"
tries=0
until [ -e "$ROOT/at-work-T001" ] && [ -e "$ROOT/at-work-T002" ]; do
  tries=$((tries+1)); [ $tries -gt 2400 ] && exit 1; sleep 0.05
done
opens
calls 1 "I add a file"; echo a > "$ARBORIST_TASK-a"; ls > "$ROOT/seen-$ARBORIST_TASK"; answers 1
calls 2 "I add another"; echo b > "$ARBORIST_TASK-b"; answers 2
ends "done"
"#;

#[test]
fn parallel_work_in_a_fresh_clone_is_merged_and_pushed_turn_by_turn() {
    let workspace =
        TestWorkspace::of_containers("- [ ] T001 [P] one\n- [ ] T002 [P] two\n", "on_completion", "");
    crate::turn_scripts::agent(&workspace, "claude", SIDE_BY_SIDE);
    workspace.arborist(["gardener", "--yes", "--jobs", "2"]).succeeds().out("2 completed (T00");
    let read = |name: &str| fs::read_to_string(workspace.root().join(name)).unwrap();
    assert_ne!(read("place-T001"), read("place-T002"), "each has a worktree of its own");
    assert!(!read("seen-T001").contains("T002") && !read("seen-T002").contains("T001"));
    let (bare, branch) = (workspace.remote_of("repo"), workspace.session_branch("repo"));
    let files = workspace.git_in(&bare, ["ls-tree", "--name-only", &branch]).answer();
    let files: Vec<&str> = files.lines().filter(|name| name.starts_with('T')).collect();
    assert_eq!(files, ["T001-a", "T001-b", "T002-a", "T002-b"]);
    let there = turns(&workspace, &bare, &branch);
    assert_eq!(there.len(), 4, "{there:?}");
    for task in ["T001", "T002"] {
        let of_task: Vec<&String> = there.iter().filter(|line| line.starts_with(task)).collect();
        assert!(of_task[0].contains("Add a file") && of_task[1].contains("Add another"), "{there:?}");
    }
    let merges = workspace.git_in(&bare, ["rev-list", "--count", "--merges", &branch]).answer();
    assert_eq!(merges, "2");
    assert_eq!(workspace.git(["status", "--porcelain", "-b"]).answer(), "## main...origin/main");
}

const FAILS_ONCE: &str = r#"
opens
calls 1 "I add a file"
case $ARBORIST_TASK in T002) test -e "$ROOT/mended" || exit 1 ;; esac
echo a > "$ARBORIST_TASK-a"; answers 1
ends "done"
"#;

#[test]
fn a_shallow_clone_can_be_worked_in_pushed_from_and_continued() {
    let plan = "- [ ] T001 [repo:backend] one\n- [ ] T002 [repo:backend] two\n- [ ] T003 three\n";
    for jobs in ["1", "2"] {
        let workspace = TestWorkspace::of_containers(plan, "on_checkpoint", "");
        let (bare, scratch) = (workspace.remote_of("backend"), workspace.root().join("scratch"));
        workspace.git_in(workspace.root(), ["clone", "-q", bare.to_str().unwrap(), "scratch"]).succeeds();
        for n in 0..3 {
            workspace
                .git_in(&scratch, ["commit", "-q", "--allow-empty", "-m", &format!("later {n}")])
                .succeeds();
        }
        workspace.git_in(&scratch, ["push", "-q", "origin", "HEAD:main"]).succeeds();
        workspace.set("backend", "clone-depth", "1");
        crate::turn_scripts::agent(&workspace, "claude", FAILS_ONCE);
        let is_shallow = || {
            let clone = workspace.clone_of("backend");
            assert_eq!(workspace.git_in(&clone, ["rev-parse", "--is-shallow-repository"]).answer(), "true");
            assert_eq!(workspace.git_in(&clone, ["rev-list", "--count", "main"]).answer(), "1");
        };
        let run = ["gardener", "--yes", "--max-retries", "1", "--keep-going", "--jobs", jobs];
        workspace.arborist(run).exits(1);
        is_shallow();
        workspace.delete_container();
        workspace.clone_again();
        fs::write(workspace.root().join("mended"), "").unwrap();
        workspace.arborist(["session", "resume", "--yes"]).succeeds().never("was not pushed");
        is_shallow();
        let branch = workspace.session_branch("backend");
        let files = workspace.git_in(&bare, ["ls-tree", "--name-only", &branch]).answer();
        assert!(files.contains("T001-a") && files.contains("T002-a"), "{jobs} jobs: {files}");
        assert_eq!(workspace.git_in(&bare, ["log", "--format=%s", "-1", "main"]).answer(), "later 2");
        workspace.git_in(&bare, ["merge-base", "--is-ancestor", "main", &branch]).succeeds();
        workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
    }
}
