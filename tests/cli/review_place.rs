//! A reviewer works in a worktree of the commit under review: what lies beside it is not seen, and what it does there is
//! discarded.

use std::fs;

use arborist_testkit::Garden;

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#;

/// Two tasks that write a file each; reviewers do this, and approve.
fn garden(review: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", PLAN);
    garden.write(".gitignore", ".env\n*.log\n");
    garden.commit("a plan\n");
    garden.agent(&format!(
        "case \"$prompt\" in Review*) {review}\necho APPROVED ;; *) echo work > $ARBORIST_TASK.txt; echo x > left.log ;; esac"
    ));
    garden
}

fn noted(garden: &Garden, name: &str) -> String {
    fs::read_to_string(garden.root().join(name)).unwrap_or_default()
}

#[test]
fn a_reviewer_sees_the_commit_and_nothing_else() {
    for place in [[].as_slice(), &["--jobs", "2"]] {
        let garden = garden(
            "pwd >> \"$ROOT/places\"; echo \"$ARBORIST_WORKTREE\" >> \"$ROOT/told\"; ls -A >> \"$ROOT/seen\"; git status --porcelain >> \"$ROOT/status\"; git rev-parse HEAD >> \"$ROOT/heads\"",
        );
        garden.write("mine.txt", "not committed\n");
        garden.arborist(["gardener", "--allow-dirty"].iter().chain(place)).succeeds();
        let (seen, places) = (noted(&garden, "seen"), noted(&garden, "places"));
        assert!(!seen.contains("mine.txt") && !seen.contains("left.log"), "{seen}");
        assert!(seen.contains("T1.txt") && seen.contains("T2.txt"), "{seen}");
        assert!(places.lines().all(|line| line.contains("/repo.arborist/review-")), "{places}");
        assert_eq!(places, noted(&garden, "told"), "the environment names the place");
        assert_eq!(noted(&garden, "status"), "");
        let log = garden.git(["log", "--format=%H", "--grep=@test-pass)"]).answer();
        for head in noted(&garden, "heads").lines() {
            assert!(log.contains(head), "{head} is no commit under review");
        }
    }
}

#[test]
fn what_a_reviewer_does_in_its_place_is_discarded_and_does_not_count_against_it() {
    let garden = garden(
        "cat .git > \"$ROOT/link\"; ls -A >> \"$ROOT/seen\"; echo more >> T1.txt; echo new > new.txt; echo y > y.log; mkdir d; echo z > d/z; rm task-tree.json; git add -A; git -c user.name=r -c user.email=r@example.com commit -qm mine",
    );
    garden.arborist(["gardener"]).succeeds().never("asked again");
    assert_eq!(garden.calls(), 4, "two who work, two reviews");
    let seen = noted(&garden, "seen");
    assert!(!seen.contains("new.txt") && !seen.contains("y.log") && !seen.contains("d\n"), "{seen}");
    assert_eq!(seen.matches("task-tree.json").count(), 2, "{seen}");
    assert_eq!(garden.git(["show", "HEAD:T1.txt"]).answer(), "work");
    assert!(!garden.git(["log", "--format=%s", "--branches"]).answer().contains("mine"));
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_place_that_was_broken_is_made_again() {
    for deed in [
        "echo x > .git",
        "rm -rf .git; mkdir .git",
        "rm -rf .git *",
        "git init -q .; mkdir sub; git init -q sub",
    ] {
        let garden = garden(&format!("pwd >> \"$ROOT/places\"; {deed}"));
        let said = garden.arborist(["gardener", "--keep-going"]);
        assert!([0, 2].contains(&said.code()), "{deed}: {}", said.report());
        garden.agent("case \"$prompt\" in Review*) ls > \"$ROOT/seen\"; echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
        garden.arborist(["gardener"]).succeeds();
        assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{deed}");
    }
}

#[test]
fn a_killed_review_leaves_nothing_that_stops_the_next_run() {
    let garden = garden("echo x >> T1.txt; touch .git/x 2>/dev/null; kill -9 $PPID");
    assert_ne!(garden.arborist(["gardener"]).code(), 0);
    let lock = garden.path(".git/worktrees/review-1/index.lock");
    fs::write(&lock, "").unwrap();
    garden.agent("case \"$prompt\" in Review*) cat T1.txt >> \"$ROOT/seen\"; echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(noted(&garden, "seen"), "work\nwork\n");
}

#[test]
fn files_that_worktrees_are_given_are_there_and_those_that_a_reviewer_changed_are_not() {
    let garden = garden("cat .env >> \"$ROOT/seen\"; echo theirs > .env");
    garden.write(".env", "mine\n");
    garden.write(".arborist/config.toml", "[worktree]\ncopy = [\".env\"]\n");
    garden.commit("a configuration\n");
    garden.arborist(["gardener", "--yes"]).succeeds();
    assert_eq!(noted(&garden, "seen"), "mine\nmine\n");
    assert_eq!(garden.read(".env"), "mine\n");
}

#[test]
fn a_reviewer_that_needs_what_is_installed_can_work_in_the_checkout() {
    let garden = garden("pwd >> \"$ROOT/places\"; ls -A >> \"$ROOT/seen\"");
    garden.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    assert!(noted(&garden, "seen").contains("left.log"));
    assert!(!noted(&garden, "places").contains("review-"));
    assert!(!garden.path("../repo.arborist/review-1").exists());
    garden.git(["config", "arborist.steps.review.place", "elsewhere"]).succeeds();
    assert_ne!(garden.arborist(["gardener"]).code(), 0);
}

#[test]
fn the_repository_itself_is_still_guarded() {
    let garden = garden(
        "[ -e \"$ROOT/once\" ] || { touch \"$ROOT/once\"; echo x > \"$ROOT/repo/T1.txt\"; git config core.editor evil; }",
    );
    garden.arborist(["gardener"]).succeeds().shows();
    assert_eq!(garden.read("T1.txt"), "work\n");
    assert_ne!(garden.git(["config", "core.editor"]).code(), 0);
}

#[test]
fn the_place_is_not_listed_as_work_and_cleanup_may_take_it() {
    let garden = garden("true");
    garden.arborist(["gardener"]).succeeds();
    assert!(garden.path("../repo.arborist/review-1").exists());
    let listed = garden.arborist(["worktree", "list", "--json"]).answer();
    assert!(!listed.contains("review-1"), "{listed}");
    garden.arborist(["cleanup", "--older-than", "0"]).succeeds();
    assert!(!garden.path("../repo.arborist/review-1").exists());
    garden.arborist(["reset", "T1"]).succeeds();
    garden.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo more > $ARBORIST_TASK.txt ;; esac");
    garden.arborist(["gardener"]).succeeds();
}

#[test]
fn a_reviewer_that_a_task_changes_does_not_decide_on_it() {
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 one\n");
    garden.write_script("tools/review.sh", "#!/bin/sh\ncat > /dev/null\necho 'REJECTED: no'\n");
    garden.commit("a plan\n");
    garden.agent("printf '#!/bin/sh\\necho APPROVED\\n' > tools/review.sh; echo done");
    let file = garden.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    let more = "[steps.review]\nrunner = \"rev\"\n[runners.rev]\ncommand = [\"./tools/review.sh\"]\n";
    std::fs::write(&file, known + more).unwrap();
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let subjects = garden.git(["log", "--format=%s"]).answer();
    assert!(subjects.contains("@T001@review-rejected") && !subjects.contains("approved"), "{subjects}");
}
