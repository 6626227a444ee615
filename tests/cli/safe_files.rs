//! Whatever agents put in the way of our files, nothing outside of the repository is written, and nothing hangs.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt, symlink},
    path::PathBuf,
};

use arborist_testkit::{Run, TestRepo, pairs};

/// Does a deed in its first call, then its work.
fn repo(deed: &str) -> TestRepo {
    let agent = format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
trap - EXIT
echo work >> work.txt
git=$(git rev-parse --path-format=absolute --git-common-dir)
[ ! -e \"$ROOT/once\" ] && {{ touch \"$ROOT/once\"; {deed}; }}
true"
    );
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", &agent);
    for (name, text) in [("file", "precious\n"), ("folder/a", "a\n"), ("folder/b", "b\n")] {
        repo.write(&format!("../precious/{name}"), text);
    }
    repo
}

/// What lies outside, with its content.
fn files_outside(repo: &TestRepo) -> BTreeMap<PathBuf, Vec<u8>> {
    let folders = ["precious", "precious/folder"].map(|name| repo.root().join(name));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
    entries.map(|entry| (entry.path(), fs::read(entry.path()).unwrap_or_default())).collect()
}

/// Runs a command that must end by itself.
fn run_with_timeout(repo: &TestRepo, args: &[&str]) -> Run {
    let mut command = repo.command("timeout", &repo.path(""));
    command.args(["-k", "1", "300", "git", "arborist"]).args(args);
    let run = Run::of(&mut command, b"");
    assert!(![124, 137].contains(&run.code()), "it hangs: {}", run.report());
    run
}

/// A shell that makes a link or a queue of everything that is named.
const PLANT: &str = "plant() { rm -rf \"$1\"; mkdir -p \"$(dirname \"$1\")\"; \
                     case $2 in fifo) mkfifo \"$1\" ;; *) ln -s \"$2\" \"$1\" ;; esac; }";

#[test]
fn links_that_an_agent_plants_in_the_git_directory_are_undone_and_their_targets_untouched() {
    let hooks = "plant \"$git/hooks\" \"$ROOT/precious/folder\"";
    let config = "cp \"$git/config\" \"$ROOT/precious/file\"; echo '# more' >> \"$ROOT/precious/file\"; \
                  plant \"$git/config\" \"$ROOT/precious/file\"";
    let dangling = "ln -s \"$ROOT/precious/new\" \"$git/hooks/pre-commit\"";
    let exclude = "plant \"$git/info/exclude\" \"$ROOT/precious/file\"";
    let info = "plant \"$git/info\" \"$ROOT/precious/folder\"";
    for deed in [hooks, config, dangling, exclude, info] {
        for args in [&["gardener"][..], &["gardener", "--isolate"]] {
            let repo = repo(&format!("{PLANT}; {deed}; ls \"$ROOT/precious\" > /dev/null"));
            let config = repo.read(".git/config");
            let before = files_outside(&repo);
            run_with_timeout(&repo, args).succeeds().matches_snapshot();
            let after = files_outside(&repo);
            let file = repo.root().join("precious/file");
            assert!(
                after.iter().all(|(path, text)| before[path] == *text || *path == file),
                "{deed}: {after:?}"
            );
            assert_eq!(after.len(), before.len(), "{deed}: {after:?}");
            assert_eq!(repo.read(".git/config"), config, "{deed}");
            assert!(repo.path(".git/hooks").symlink_metadata().unwrap().is_dir(), "{deed}");
            assert!(repo.path(".git/info").symlink_metadata().unwrap().is_dir(), "{deed}");
            let log = repo.git(["log", "--format=%s"]).answer();
            assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{deed}: {log}");
        }
    }
}

#[test]
fn temporary_files_and_logs_are_never_written_through_planted_links_or_named_pipes() {
    let names = "for n in $(seq 0 15); do for p in $PPID; do \
                 for x in object index-snapshot index-back index-turns index-staged index-hook; do \
                 plant \"$git/arborist/$x-$p-$n\" WHERE; done; done; done";
    let logs = "plant spec/logs WHERE";
    let folders = "plant \"$git/arborist/doing\" WHERE; plant \"$git/arborist/cache\" WHERE";
    for (deed, what) in pairs(&[names, logs, folders, names], &["\"$ROOT/precious/folder\"", "fifo"]) {
        let repo = repo(&format!("{PLANT}; {}", deed.replace("WHERE", what)));
        let before = files_outside(&repo);
        run_with_timeout(&repo, &["gardener"]).succeeds();
        assert_eq!(files_outside(&repo), before, "{deed} {what}");
        run_with_timeout(&repo, &["cleanup", "--older-than", "0"]).succeeds();
        assert_eq!(files_outside(&repo), before, "{deed} {what}");
    }
}

#[test]
fn a_log_folder_that_the_user_made_a_link_is_used() {
    let repo = repo("true");
    let logs = repo.root().join("elsewhere");
    fs::create_dir_all(&logs).unwrap();
    fs::create_dir_all(repo.path("spec")).unwrap();
    symlink(&logs, repo.path("spec/logs")).unwrap();
    repo.write(".gitignore", "/spec/logs\n");
    repo.commit("logs are elsewhere\n");
    run_with_timeout(&repo, &["gardener"]).succeeds();
    assert!(repo.path("spec/logs").is_symlink());
    assert!(fs::read_dir(&logs).unwrap().count() > 0, "logs go where the user wants them");
}

#[test]
fn a_plan_may_be_a_link_to_a_file_inside_the_repository_but_not_outside() {
    let repo = repo("true");
    repo.write("plans/real.md", "- [ ] T001 do it\n");
    fs::remove_file(repo.path("tasks.md")).unwrap();
    symlink("plans/real.md", repo.path("tasks.md")).unwrap();
    repo.commit("a linked plan\n");
    run_with_timeout(&repo, &["gardener", "--dry-run"]).succeeds().matches_snapshot();
    fs::remove_file(repo.path("tasks.md")).unwrap();
    symlink("../precious/file", repo.path("tasks.md")).unwrap();
    repo.commit("a plan elsewhere\n");
    let run = run_with_timeout(&repo, &["gardener", "--tree", "tasks.md"]);
    assert_ne!(run.code(), 0, "{}", run.report());
}

#[test]
fn a_plan_that_is_a_link_stays_a_link() {
    let repo = repo("true");
    repo.write("plans/real.md", "- [ ] T001 do it\n");
    fs::remove_file(repo.path("tasks.md")).unwrap();
    symlink("plans/real.md", repo.path("tasks.md")).unwrap();
    let refused =
        "'tasks.md' is a symbolic link to 'plans/real.md', and the link or the file is not committed";
    run_with_timeout(&repo, &["gardener", "--allow-dirty"])
        .exits(1)
        .err(refused)
        .err("git add tasks.md plans/real.md");
    repo.commit("a linked plan\n");
    repo.write("plans/real.md", "- [ ] T001 do it\n- [ ] T002 more\n");
    run_with_timeout(&repo, &["gardener", "--allow-dirty"]).exits(1).err(refused);
    repo.commit("more tasks\n");
    for mode in [&["gardener", "--only", "T001"][..], &["gardener", "--isolate"]] {
        run_with_timeout(&repo, mode).succeeds();
        let entry = repo.git(["ls-tree", "HEAD", "tasks.md"]).answer();
        assert!(entry.starts_with("120000 "), "{entry}");
        assert_eq!(repo.git(["status", "--short"]).answer(), "");
    }
}

#[test]
fn a_named_pipe_instead_of_an_input_file_is_an_error_and_does_not_block() {
    for name in ["tasks.md", ".arborist/config.toml", ".git/info/exclude", ".worktreeinclude"] {
        let repo = repo("true");
        let _ = fs::remove_file(repo.path(name));
        fs::create_dir_all(repo.path(name).parent().unwrap()).unwrap();
        let queue = repo.path(name).display().to_string();
        Run::of(repo.command("mkfifo", repo.root()).arg(queue), b"").succeeds();
        assert!(repo.path(name).symlink_metadata().unwrap().file_type().is_fifo());
        for args in [&["gardener"][..], &["state"], &["gardener", "--isolate"], &["worktree", "list"]] {
            let run = run_with_timeout(&repo, args);
            if name == "tasks.md" && args[0] != "worktree" {
                run.exits(1).err("'tasks.md'").err("not a regular file");
            }
        }
    }
}

#[test]
fn a_named_pipe_that_an_agent_leaves_where_git_reads_fails_its_attempt_and_the_run_continues() {
    let names = [".gitignore", "sub/.gitattributes", ".gitmodules", "tasks.md"];
    for (name, args) in pairs(&names, &[&["gardener"][..], &["gardener", "--isolate"]]) {
        let repo = repo(&format!("{PLANT}; plant {name} fifo"));
        run_with_timeout(&repo, args)
            .succeeds()
            .err("left a FIFO, a socket, a device or a huge file in place of a file:")
            .err(name);
        let log = repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{name}: {log}");
        assert_eq!(repo.read("tasks.md"), "- [ ] T001 do it\n");
    }
}

#[test]
fn a_named_pipe_of_the_user_where_git_reads_is_reported_before_an_agent_is_called() {
    for name in [".gitignore", ".gitattributes"] {
        let repo = repo("true");
        let queue = repo.path(name).display().to_string();
        Run::of(repo.command("mkfifo", repo.root()).arg(queue), b"").succeeds();
        for args in [&["gardener"][..], &["garden", "T001"]] {
            run_with_timeout(&repo, args).exits(128).err(name).err("hint: remove it");
        }
        assert_eq!(repo.calls(), 0);
    }
}

#[test]
fn a_log_is_never_written_into_a_file_that_has_another_hard_link() {
    // Which log is next can be told from the clock, which stands still here.
    let deed = "mkdir -p spec/logs; for part in '' .0; do
        ln \"$ROOT/precious\" \"spec/logs/T001_test_20250216T143022$part.log\"; done; echo a > T001.txt";
    let worker = format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {deed} ;; esac");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", &worker);
    fs::write(repo.root().join("precious"), "theirs\n").unwrap();
    let test = "echo red; [ ! -e T001.txt ]";
    repo.arborist(["garden", "--max-retries", "1", "--test-command", test]).exits(1);
    assert_eq!(fs::read_to_string(repo.root().join("precious")).unwrap(), "theirs\n");
    let log = fs::read_to_string(repo.path("spec/logs/T001_test_20250216T143022.log")).unwrap();
    assert!(log.contains("red"), "{log}");
}
