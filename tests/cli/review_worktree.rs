//! A reviewer works in a worktree of the commit under review: what lies beside it is not seen, and what it does there is
//! discarded.

use std::fs;

use arborist_testkit::TestRepo;

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#;

/// Two tasks that write a file each; reviewers do this, and approve.
fn repo(review: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", PLAN);
    repo.write(".gitignore", ".env\n*.log\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) {review}\necho APPROVED ;; *) echo work > $ARBORIST_TASK.txt; echo x > left.log ;; esac"
    ));
    repo
}

fn noted(repo: &TestRepo, name: &str) -> String {
    fs::read_to_string(repo.root().join(name)).unwrap_or_default()
}

#[test]
fn a_reviewer_sees_only_the_files_of_the_commit() {
    for place in [[].as_slice(), &["--jobs", "2"]] {
        let repo = repo(
            "pwd >> \"$ROOT/places\"; echo \"$ARBORIST_WORKTREE\" >> \"$ROOT/told\"; ls -A >> \"$ROOT/seen\"; git status --porcelain >> \"$ROOT/status\"; git rev-parse HEAD >> \"$ROOT/heads\"",
        );
        repo.write("mine.txt", "not committed\n");
        repo.arborist(["gardener", "--allow-dirty"].iter().chain(place)).succeeds();
        let (seen, places) = (noted(&repo, "seen"), noted(&repo, "places"));
        assert!(!seen.contains("mine.txt") && !seen.contains("left.log"), "{seen}");
        assert!(seen.contains("T1.txt") && seen.contains("T2.txt"), "{seen}");
        assert!(places.lines().all(|line| line.contains("/repo.arborist/review-")), "{places}");
        assert_eq!(places, noted(&repo, "told"), "the environment names the place");
        assert_eq!(noted(&repo, "status"), "");
        let log = repo.git(["log", "--format=%H", "--grep=@test-pass)"]).answer();
        for head in noted(&repo, "heads").lines() {
            assert!(log.contains(head), "{head} is no commit under review");
        }
    }
}

#[test]
fn changes_of_a_reviewer_in_its_worktree_are_discarded_and_do_not_fail_the_review() {
    let repo = repo(
        "cat .git > \"$ROOT/link\"; ls -A >> \"$ROOT/seen\"; echo more >> T1.txt; echo new > new.txt; echo y > y.log; mkdir d; echo z > d/z; rm task-tree.json; git add -A; git -c user.name=r -c user.email=r@example.com commit -qm mine",
    );
    repo.arborist(["gardener"]).succeeds().never("trying again");
    assert_eq!(repo.calls(), 4, "two who work, two reviews");
    let seen = noted(&repo, "seen");
    assert!(!seen.contains("new.txt") && !seen.contains("y.log") && !seen.contains("d\n"), "{seen}");
    assert_eq!(seen.matches("task-tree.json").count(), 2, "{seen}");
    assert_eq!(repo.git(["show", "HEAD:T1.txt"]).answer(), "work");
    assert!(!repo.git(["log", "--format=%s", "--branches"]).answer().contains("mine"));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_broken_review_worktree_is_recreated() {
    for deed in [
        "echo x > .git",
        "rm -rf .git; mkdir .git",
        "rm -rf .git *",
        "git init -q .; mkdir sub; git init -q sub",
    ] {
        let repo = repo(&format!("pwd >> \"$ROOT/places\"; {deed}"));
        let said = repo.arborist(["gardener", "--keep-going"]);
        assert!([0, 2].contains(&said.code()), "{deed}: {}", said.report());
        repo.agent("case \"$prompt\" in Review*) ls > \"$ROOT/seen\"; echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
        repo.arborist(["gardener"]).succeeds();
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{deed}");
    }
}

#[test]
fn a_killed_review_leaves_nothing_that_stops_the_next_run() {
    let repo = repo("echo x >> T1.txt; touch .git/x 2>/dev/null; kill -9 $PPID");
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
    let lock = repo.path(".git/worktrees/review-1/index.lock");
    fs::write(&lock, "").unwrap();
    repo.agent("case \"$prompt\" in Review*) cat T1.txt >> \"$ROOT/seen\"; echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(noted(&repo, "seen"), "work\nwork\n");
}

#[test]
fn files_copied_to_a_review_worktree_are_fresh_for_each_review() {
    let repo = repo("cat .env >> \"$ROOT/seen\"; echo theirs > .env");
    repo.write(".env", "mine\n");
    repo.write(".arborist/config.toml", "[worktree]\ncopy = [\".env\"]\n");
    repo.commit("a configuration\n");
    repo.arborist(["gardener", "--yes"]).succeeds();
    assert_eq!(noted(&repo, "seen"), "mine\nmine\n");
    assert_eq!(repo.read(".env"), "mine\n");
}

#[test]
fn a_reviewer_that_needs_installed_files_can_work_in_the_checkout() {
    let repo = repo("pwd >> \"$ROOT/places\"; ls -A >> \"$ROOT/seen\"");
    repo.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert!(noted(&repo, "seen").contains("left.log"));
    assert!(!noted(&repo, "places").contains("review-"));
    assert!(!repo.path("../repo.arborist/review-1").exists());
    repo.git(["config", "arborist.steps.review.place", "elsewhere"]).succeeds();
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
}

#[test]
fn a_reviewer_cannot_change_the_checkout_or_the_git_configuration() {
    let repo = repo(
        "[ -e \"$ROOT/once\" ] || { touch \"$ROOT/once\"; echo x > \"$ROOT/repo/T1.txt\"; git config core.editor evil; }",
    );
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    assert_eq!(repo.read("T1.txt"), "work\n");
    assert_ne!(repo.git(["config", "core.editor"]).code(), 0);
}

#[test]
fn the_review_worktree_is_not_listed_and_cleanup_may_remove_it() {
    let repo = repo("true");
    repo.arborist(["gardener"]).succeeds();
    assert!(repo.path("../repo.arborist/review-1").exists());
    let listed = repo.arborist(["worktree", "list", "--json"]).answer();
    assert!(!listed.contains("review-1"), "{listed}");
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds();
    assert!(!repo.path("../repo.arborist/review-1").exists());
    repo.arborist(["reset", "T1"]).succeeds();
    repo.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo more > $ARBORIST_TASK.txt ;; esac");
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn a_task_that_changes_its_reviewers_script_is_not_approved_by_it() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write_script("tools/review.sh", "#!/bin/sh\ncat > /dev/null\necho 'REJECTED: no'\n");
    repo.commit("a plan\n");
    repo.agent("printf '#!/bin/sh\\necho APPROVED\\n' > tools/review.sh; echo done");
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    let more = "[steps.review]\nrunner = \"rev\"\n[runners.rev]\ncommand = [\"./tools/review.sh\"]\n";
    std::fs::write(&file, known + more).unwrap();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let subjects = repo.git(["log", "--format=%s"]).answer();
    assert!(subjects.contains("@T001@implement-fail") && !subjects.contains("approved"), "{subjects}");
}

/// A task that does this once, and a reviewer called `claude` that works in the checkout and notes the settings it finds.
fn reviewed_in_checkout(deed: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", "");
    repo.agent(&format!(
        "echo work >> work.txt; [ -e \"$ROOT/once\" ] && exit; touch \"$ROOT/once\"; mkdir -p .claude\n{deed}\ntrue"
    ));
    repo.write(".gitignore", "/.claude/settings.local.json\n/spec/\n");
    repo.commit("ignore settings\n");
    let judge = repo.root().join("claude");
    let read = format!("cat .claude/settings.local.json >> '{}/read' 2>/dev/null", repo.root().display());
    fs::write(&judge, format!("cat > /dev/null\n{read}\necho APPROVED\n")).unwrap();
    repo.git(["config", "--global", "arborist.steps.review.runner", "judge"]).succeeds();
    repo.git(["config", "--global", "arborist.steps.review.place", "checkout"]).succeeds();
    for word in ["sh", judge.to_str().unwrap()] {
        repo.git(["config", "--global", "--add", "arborist.runners.judge.command", word]).succeeds();
    }
    repo
}

#[test]
fn a_reviewer_in_the_checkout_does_not_see_ignored_settings_that_a_task_wrote() {
    let words = "'.claude/settings.local.json' is read by the reviewer's program; it was ";
    for options in [&[][..], &["--isolate"]] {
        let repo = reviewed_in_checkout("echo planted > .claude/settings.local.json");
        repo.arborist(["gardener", "--max-retries", "2"].iter().chain(options)).succeeds();
        let body = repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains(&format!("{words}added")), "{options:?}: {body}");
        assert_eq!(noted(&repo, "read"), "", "{options:?}");
        assert!(!repo.path(".claude/settings.local.json").exists(), "{options:?}");
    }
    let repo = reviewed_in_checkout("echo planted > .claude/settings.local.json");
    repo.write(".claude/settings.local.json", "mine\n");
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains(&format!("{words}changed")), "{body}");
    assert_eq!(
        (noted(&repo, "read"), repo.read(".claude/settings.local.json")),
        ("mine\n".into(), "mine\n".into())
    );
}

#[test]
fn existing_ignored_settings_of_the_user_fail_no_attempt() {
    let repo =
        reviewed_in_checkout("cat .claude/settings.local.json > copy.txt; mkdir -p spec; echo x > spec/x");
    repo.write(".claude/settings.local.json", "mine\n");
    repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
    assert_eq!(noted(&repo, "read"), "mine\n");
}
