//! Where `git arborist state` is run, and what it meets there.

use arborist_testkit::{Run, TaskCommit, TestRepo};

/// A repository whose run has completed T1.
fn with_run() -> TestRepo {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo
}

#[test]
fn a_detached_head_is_an_error_that_names_scope() {
    let repo = with_run();
    repo.git(["checkout", "-q", "--detach"]).succeeds();
    repo.arborist(["state"]).exits(128).matches_snapshot().silent();
    repo.arborist(["state", "--scope", "main"]).succeeds().matches_snapshot();
}

#[test]
fn an_unborn_branch_has_a_plan_but_no_history() {
    let repo = TestRepo::with_options(&[]);
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn a_tag_with_the_name_of_the_branch_is_ignored() {
    let repo = with_run();
    repo.git(["tag", "main", "HEAD~2"]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.arborist(["state", "--scope", "main"]).succeeds().matches_snapshot();
}

#[test]
fn a_branch_with_unusual_characters_is_read_correctly() {
    let repo = TestRepo::init();
    let branch = "a@b(c)/ü";
    repo.git(["switch", "-q", "-c", branch]).succeeds();
    repo.run_start(branch, "s1");
    repo.commit_complete(&TaskCommit::new("T1", "complete").branch(branch));
    repo.commit(TaskCommit::new("T1", "failed").branch("a@b(c)").to_string());
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn state_works_in_a_bare_repository() {
    let repo = with_run();
    let bare = repo.root().join("bare.git");
    repo.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]).succeeds();
    repo.arborist_in(&bare, ["state"]).succeeds().matches_snapshot();
}

#[test]
fn a_linked_worktree_and_a_subfolder_see_the_same_run() {
    let repo = with_run();
    repo.write("deep/er/file", "x");
    repo.arborist_in(&repo.path("deep/er"), ["state"]).succeeds().matches_snapshot();
    repo.write("task-tree.json", r#"{"nodes": {"T9": {"id": "T9", "name": "a"}}, "root_ids": ["T9"]}"#);
    repo.arborist_in(&repo.path("deep/er"), ["state"]).succeeds().matches_snapshot();
    let linked = repo.root().join("linked");
    repo.git(["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]).succeeds();
    repo.arborist_in(&linked, ["state", "--scope", "main"]).succeeds().matches_snapshot();
    repo.arborist_in(&linked, ["state"]).succeeds().matches_snapshot();
}

#[test]
fn git_dir_set_by_hand_is_honoured() {
    let repo = with_run();
    let mut command = repo.command("git", repo.root());
    command.env("GIT_DIR", repo.path(".git")).args(["arborist", "state"]);
    Run::of(&mut command, b"").succeeds().matches_snapshot();
    let git_dir = format!("--git-dir={}", repo.path(".git").display());
    repo.git_in(repo.root(), [&git_dir, "arborist", "state"]).succeeds().matches_snapshot();
}

#[test]
fn state_outside_a_repository_is_an_error() {
    let repo = TestRepo::init();
    repo.arborist_in(repo.root(), ["state"]).exits(128).matches_snapshot().silent();
}

#[test]
fn a_repository_of_another_owner_is_refused_with_gits_own_words() {
    let repo = with_run();
    let mut command = repo.command("git", &repo.path(""));
    command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1").args(["arborist", "state"]);
    Run::of(&mut command, b"").exits(128).matches_snapshot().silent();
}

#[test]
fn state_is_an_error_if_a_shallow_clone_lacks_commits_of_the_run() {
    let repo = with_run();
    let source = format!("file://{}", repo.path("").display());
    for (depth, code) in [("1", 128), ("4", 128), ("5", 0), ("6", 0)] {
        let clone = repo.root().join(format!("depth{depth}"));
        repo.git_in(repo.root(), ["clone", "-q", "--depth", depth, &source, clone.to_str().unwrap()])
            .succeeds();
        let said = repo.arborist_in(&clone, ["state"]).exits(code);
        if code == 0 {
            said.matches_snapshot();
        } else {
            said.matches_snapshot().silent();
            repo.git_in(&clone, ["fetch", "-q", "--unshallow"]).succeeds();
            repo.arborist_in(&clone, ["state"]).succeeds().matches_snapshot();
        }
    }
}

#[test]
fn replace_refs_and_grafts_do_not_change_the_state() {
    let repo = with_run();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let failed = repo.task("T2", "failed");
    let parent = repo.git(["rev-parse", "HEAD~1"]).answer();
    let forged = repo.commit_object(&tree, &[parent], TaskCommit::new("T2", "complete").to_string());
    repo.git(["replace", &failed, &forged]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.write(".git/info/grafts", format!("{failed}\n"));
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.git(["log", "--format=%s", "-1"]).succeeds().matches_snapshot();
}

#[test]
fn sha256_and_reftable_repositories_work_if_git_can_make_them() {
    for options in [["--object-format=sha256", "-q"], ["--ref-format=reftable", "-q"]] {
        let probe = TestRepo::init();
        let made = probe.git(["init", options[0], "probe"]);
        if made.code() != 0 {
            eprintln!("skipped: this git cannot make a repository with {}", options[0]);
            continue;
        }
        let repo = TestRepo::with_options(&options);
        repo.commit("begin\n");
        repo.run_start("main", "s1");
        repo.task("T1", "complete");
        for _ in ["fresh", "cached"] {
            repo.arborist(["state"]).succeeds().matches_snapshot();
        }
        repo.arborist(["trailers", "check", "HEAD~1.."]).succeeds().matches_snapshot();
    }
}

#[test]
fn git_settings_cannot_hide_trailers_from_state() {
    let repo = with_run();
    for (key, value) in [
        ("trailer.separators", "="),
        ("core.commentChar", "A"),
        ("trailer.x.key", "Arborist-Step"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("log.showSignature", "true"),
        ("core.fsmonitor", "touch ran-by-state"),
        ("core.hooksPath", "nowhere"),
        ("core.abbrev", "4"),
        ("color.ui", "never"),
    ] {
        repo.git(["config", key, value]).succeeds();
        std::fs::remove_dir_all(repo.path(".git/arborist")).unwrap_or_default();
        repo.arborist(["state"]).succeeds().matches_snapshot();
    }
    assert!(!repo.path("ran-by-state").exists(), "reading ran a program");
}

#[test]
fn unusual_bytes_in_commit_messages_are_read_correctly() {
    let repo = with_run();
    let done = TaskCommit::new("T2", "complete");
    for step in done.steps_before() {
        repo.commit(step.to_string());
    }
    let sound = done.to_string();
    repo.commit(sound.replace('\n', "\r\n"));
    repo.arborist(["state"]).succeeds().matches_snapshot();
    for bytes in [b"\xff\xfe nonsense\n".to_vec(), b"a\0b\n".to_vec(), Vec::new(), vec![b'x'; 5_000_000]] {
        repo.commit(&bytes);
    }
    repo.commit(TaskCommit::new("T2", "failed").body(&"> x\n".repeat(1_250_000)).to_string());
    let mut nul = TaskCommit::new("T1", "failed").to_string().into_bytes();
    nul.extend(b"\0hidden");
    repo.commit(&nul);
    let mut latin = TaskCommit::new("T1", "reset").to_string().into_bytes();
    latin.splice(0..0, b"\xe9".iter().copied());
    repo.commit(&latin);
    for _ in ["fresh", "cached"] {
        repo.arborist(["state"]).succeeds().matches_snapshot();
    }
}

#[test]
fn an_encoding_header_does_not_change_what_is_read() {
    let repo = with_run();
    repo.git(["config", "i18n.commitEncoding", "ISO-8859-1"]).succeeds();
    let done = TaskCommit::new("T2", "complete");
    for step in done.steps_before().iter().chain([&done]) {
        repo.git(["commit", "-q", "--allow-empty", "-m", &step.to_string()]).succeeds();
    }
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn colour_is_used_only_for_terminals_unless_requested() {
    let repo = with_run();
    repo.arborist(["state"]).succeeds().never("\u{1b}[");
    repo.git(["-c", "color.ui=always", "arborist", "state"]).succeeds().matches_snapshot();
    repo.git(["config", "color.arborist", "always"]).succeeds();
    repo.git(["-c", "color.ui=never", "arborist", "state"]).succeeds().matches_snapshot();
}

#[test]
fn the_locale_of_the_terminal_selects_the_status_marks() {
    let repo = with_run();
    let mut command = repo.command("git", &repo.path(""));
    Run::of(command.env("LANG", "C.UTF-8").args(["arborist", "state"]), b"").succeeds().matches_snapshot();
}

#[test]
fn a_git_that_is_too_old_is_reported_in_one_line() {
    let repo = with_run();
    repo.write_script("old/git", "#!/bin/sh\necho git version 2.30.2\n");
    let state = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("git-arborist-state");
    let mut command = repo.command(state.to_str().unwrap(), &repo.path(""));
    let path = std::env::join_paths([repo.path("old"), "/usr/bin".into(), "/bin".into()]).unwrap();
    Run::of(command.env("PATH", path), b"").exits(128).matches_snapshot();
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let repo = with_run();
    let mut command = repo.command("sh", &repo.path(""));
    command.args(["-c", "(git arborist state --json; echo \"exit $?\" >&2) | head -n 1 >/dev/null"]);
    Run::of(&mut command, b"").succeeds().matches_snapshot().never("panic");
    let mut command = repo.command("sh", &repo.path(""));
    Run::of(command.args(["-c", "git arborist state >/dev/full"]), b"").exits(128).matches_snapshot();
}

#[test]
fn state_works_with_a_branch_named_head_and_a_path_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let repo = with_run();
    repo.git(["update-ref", "refs/heads/HEAD", "HEAD"]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    let odd = repo.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    repo.git_in(
        repo.root(),
        [std::ffi::OsStr::new("clone"), "-q".as_ref(), repo.path("").as_ref(), odd.as_ref()],
    )
    .succeeds();
    repo.arborist_in(&odd, ["state"]).succeeds().matches_snapshot();
}

#[test]
fn a_repository_that_git_cannot_read_is_not_reported_as_missing() {
    let repo = with_run();
    repo.git(["config", "core.bare", "maybe"]).succeeds();
    repo.arborist(["state"]).exits(128).matches_snapshot().never("run this inside a repository");
}
