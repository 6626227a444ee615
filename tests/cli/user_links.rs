//! Links that the user made before a run: git follows them, and what they lead to is watched like a file in their place. Links
//! that a repository brings along lead nowhere outside of it.

use std::{fs, os::unix::fs::symlink};

use arborist_testkit::{TestRepo, WORKER};

fn link_out(repo: &TestRepo, path: &str, name: &str, text: &str) -> std::path::PathBuf {
    let target = repo.root().join(name);
    fs::write(&target, text).unwrap();
    let _ = fs::remove_file(repo.path(path));
    symlink(&target, repo.path(path)).unwrap();
    target
}

#[test]
fn an_exclude_file_that_is_a_link_is_read_but_not_written() {
    for args in [&["gardener"][..], &["gardener", "--isolate"]] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
        let target = link_out(&repo, ".git/info/exclude", "excludes", "*.tmp\n");
        repo.write("mine.tmp", "mine");
        repo.arborist(args).succeeds();
        assert_eq!(fs::read_to_string(&target).unwrap(), "*.tmp\n");
        assert!(repo.path(".git/info/exclude").is_symlink());
        let tree = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
        assert!(tree.contains("T001.txt") && !tree.contains("spec/logs") && !tree.contains(".tmp"), "{tree}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    }
}

#[test]
fn changes_to_the_target_of_a_link_of_the_user_fail_the_attempt() {
    for (path, change) in [
        (".git/info/exclude", "echo secret >> \"$ROOT/outside\""),
        (".git/info/attributes", "echo '* -diff' >> \"$ROOT/outside\""),
        (".git/hooks/pre-commit", "echo 'touch \"$ROOT/ran\"' >> \"$ROOT/outside\""),
        (".git/hooks/pre-commit", "rm .git/hooks/pre-commit; ln -s /bin/true .git/hooks/pre-commit"),
    ] {
        let agent = format!(
            "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho work >> work.txt\n[ -e \"$ROOT/once\" ] && exit\ntouch \"$ROOT/once\"\n{change}"
        );
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", &agent);
        fs::create_dir_all(repo.path(".git/hooks")).unwrap();
        let target = link_out(&repo, path, "outside", "#!/bin/sh\n");
        std::process::Command::new("chmod").arg("+x").arg(&target).status().unwrap();
        let run = repo.arborist(["gardener", "--max-retries", "1"]);
        assert_ne!(run.code(), 0, "{change}: {}", run.report());
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("while an agent or a command ran"), "{change}: {body}");
        assert_eq!(fs::read_link(repo.path(path)).unwrap(), target, "{change}");
        assert!(!repo.root().join("ran").exists(), "{change}");
    }
}

#[test]
fn a_tracked_plan_that_leads_out_of_the_repository_is_refused() {
    let repo = TestRepo::init();
    fs::write(repo.root().join("outside.md"), "- [ ] T001 a secret task\n").unwrap();
    symlink("../outside.md", repo.path("tasks.md")).unwrap();
    repo.commit("a plan\n");
    for args in
        [&["state"][..], &["state", "--tree", "tasks.md"], &["plan"], &["plan", "tasks.md"], &["gardener"]]
    {
        let run = repo.arborist(args);
        assert_ne!(run.code(), 0, "{args:?}: {}", run.report());
        assert!(run.stderr().contains("out of the repository"), "{args:?}: {}", run.report());
        assert!(!run.report().contains("secret"), "{args:?}: {}", run.report());
    }
    // A setting of a tracked file leads nowhere else, either.
    fs::remove_file(repo.path("tasks.md")).unwrap();
    repo.write(".arborist/config.toml", "tree = \"../outside.md\"\n");
    repo.commit("settings\n");
    for args in [&["state"][..], &["plan"], &["gardener"]] {
        let run = repo.arborist(args);
        assert_ne!(run.code(), 0, "{args:?}: {}", run.report());
        assert!(!run.report().contains("secret"), "{args:?}: {}", run.report());
    }
}

#[test]
fn a_plan_that_is_a_link_to_a_file_of_the_repository_is_read() {
    let repo = TestRepo::init();
    repo.write("docs/list.md", "- [ ] T001 do it\n");
    symlink("docs/list.md", repo.path("tasks.md")).unwrap();
    repo.commit("a plan\n");
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.arborist(["plan"]).succeeds().matches_snapshot();
}

#[test]
fn a_plan_folder_with_a_link_loop_is_read_completely() {
    let repo = TestRepo::init();
    repo.write("specs/a/tasks.md", "- [ ] T001 do it\n");
    symlink("..", repo.path("specs/a/up")).unwrap();
    repo.arborist(["plan", "specs"]).succeeds().matches_snapshot();
}

#[test]
fn logs_are_not_written_where_a_tracked_link_leads_out_of_the_repository() {
    for link in ["spec/logs", "spec"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
        let outside = repo.root().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(repo.path(link).parent().unwrap()).unwrap();
        symlink(&outside, repo.path(link)).unwrap();
        repo.commit("a link\n");
        let run = repo.arborist(["gardener", "--test-command", "true"]).exits(1);
        run.err("--log-dir");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(repo.calls(), 0);
        let options = ["--log-dir", "logs", "--report-dir", "reports", "--test-command", "true"];
        repo.arborist([&["gardener"], &options[..]].concat()).succeeds();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}

#[test]
fn logs_are_not_written_where_a_tracked_link_leads_into_the_git_directory() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
    symlink(".git", repo.path("logs")).unwrap();
    repo.commit("a link\n");
    let run = repo.arborist(["gardener", "--test-command", "true", "--log-dir", "logs/hooks"]).exits(1);
    run.err("'logs' is a tracked symbolic link").err("--log-dir");
    assert_eq!(repo.calls(), 0);
}

#[test]
fn a_run_works_in_a_checkout_whose_git_directory_is_behind_a_link() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
    fs::rename(repo.path(".git"), repo.root().join("real.git")).unwrap();
    symlink("../real.git", repo.path(".git")).unwrap();
    repo.arborist(["gardener", "--test-command", "true"]).succeeds().out("1 completed");
    assert!(repo.path(".git").is_symlink());
}

#[test]
fn logs_are_not_read_where_a_tracked_link_leads_out_of_the_repository() {
    for link in ["spec/logs", "spec"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
        let outside = repo.root().join("outside");
        let logs = if link == "spec" { outside.join("logs") } else { outside.clone() };
        fs::create_dir_all(&logs).unwrap();
        fs::write(logs.join("T001_implement_20261118T000000.log"), "SECRET\n").unwrap();
        fs::create_dir_all(repo.path(link).parent().unwrap()).unwrap();
        symlink(&outside, repo.path(link)).unwrap();
        let shown = |args: &[&str]| repo.arborist(args).report();
        assert!(shown(&["logs", "T001"]).contains("SECRET"), "the user's own link is followed");
        repo.commit("a link\n");
        for args in [&["logs"][..], &["logs", "T001"]] {
            let refused = repo.arborist(args).exits(1).never("SECRET");
            refused.err(&format!("'{link}' is a tracked symbolic link"));
        }
        assert!(!shown(&["state", "T001"]).contains("SECRET"));
    }
}
