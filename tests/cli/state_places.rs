//! Where `git arborist state` is run, and what it meets there.

use arborist_testkit::{Garden, Run, TaskCommit};

/// A garden whose run has completed T1.
fn with_run() -> Garden {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.task("T1", "complete");
    garden
}

#[test]
fn a_detached_head_is_an_error_that_names_scope() {
    let garden = with_run();
    garden.git(["checkout", "-q", "--detach"]).succeeds();
    garden.arborist(["state"]).exits(128).shows().silent();
    garden.arborist(["state", "--scope", "main"]).succeeds().shows();
}

#[test]
fn an_unborn_branch_has_a_plan_but_no_history() {
    let garden = Garden::bare_ground(&[]);
    garden.arborist(["state"]).succeeds().shows();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.arborist(["state"]).succeeds().shows();
}

#[test]
fn a_tag_with_the_branchs_name_does_not_matter() {
    let garden = with_run();
    garden.git(["tag", "main", "HEAD~2"]).succeeds();
    garden.arborist(["state"]).succeeds().shows();
    garden.arborist(["state", "--scope", "main"]).succeeds().shows();
}

#[test]
fn a_branch_with_every_awkward_character_is_itself() {
    let garden = Garden::sprout();
    let branch = "a@b(c)/ü";
    garden.git(["switch", "-q", "-c", branch]).succeeds();
    garden.run_start(branch, "s1");
    garden.commit_complete(&TaskCommit::new("T1", "complete").branch(branch));
    garden.commit(TaskCommit::new("T1", "failed").branch("a@b(c)").to_string());
    garden.arborist(["state"]).succeeds().shows();
    garden.arborist(["state"]).succeeds().shows();
}

#[test]
fn a_bare_repository_has_state_too() {
    let garden = with_run();
    let bare = garden.root().join("bare.git");
    garden.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]).succeeds();
    garden.arborist_in(&bare, ["state"]).succeeds().shows();
}

#[test]
fn a_linked_worktree_and_a_subfolder_see_the_same_run() {
    let garden = with_run();
    garden.write("deep/er/file", "x");
    garden.arborist_in(&garden.path("deep/er"), ["state"]).succeeds().shows();
    garden.write("task-tree.json", r#"{"nodes": {"T9": {"id": "T9", "name": "a"}}, "root_ids": ["T9"]}"#);
    garden.arborist_in(&garden.path("deep/er"), ["state"]).succeeds().shows();
    let linked = garden.root().join("linked");
    garden.git(["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]).succeeds();
    garden.arborist_in(&linked, ["state", "--scope", "main"]).succeeds().shows();
    garden.arborist_in(&linked, ["state"]).succeeds().shows();
}

#[test]
fn git_dir_set_by_hand_is_honoured() {
    let garden = with_run();
    let mut command = garden.command("git", garden.root());
    command.env("GIT_DIR", garden.path(".git")).args(["arborist", "state"]);
    Run::of(&mut command, b"").succeeds().shows();
    let git_dir = format!("--git-dir={}", garden.path(".git").display());
    garden.git_in(garden.root(), [&git_dir, "arborist", "state"]).succeeds().shows();
}

#[test]
fn outside_of_any_repository_it_says_so() {
    let garden = Garden::sprout();
    garden.arborist_in(garden.root(), ["state"]).exits(128).shows().silent();
}

#[test]
fn a_repository_of_another_owner_is_refused_with_gits_own_words() {
    let garden = with_run();
    let mut command = garden.command("git", &garden.path(""));
    command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1").args(["arborist", "state"]);
    Run::of(&mut command, b"").exits(128).shows().silent();
}

#[test]
fn a_shallow_clone_tells_rather_than_guesses() {
    let garden = with_run();
    let source = format!("file://{}", garden.path("").display());
    for (depth, code) in [("1", 128), ("4", 128), ("5", 0), ("6", 0)] {
        let clone = garden.root().join(format!("depth{depth}"));
        garden
            .git_in(garden.root(), ["clone", "-q", "--depth", depth, &source, clone.to_str().unwrap()])
            .succeeds();
        let said = garden.arborist_in(&clone, ["state"]).exits(code);
        if code == 0 {
            said.shows();
        } else {
            said.shows().silent();
            garden.git_in(&clone, ["fetch", "-q", "--unshallow"]).succeeds();
            garden.arborist_in(&clone, ["state"]).succeeds().shows();
        }
    }
}

#[test]
fn replace_refs_and_grafts_forge_nothing() {
    let garden = with_run();
    let tree = garden.git(["rev-parse", "HEAD^{tree}"]).answer();
    let failed = garden.task("T2", "failed");
    let parent = garden.git(["rev-parse", "HEAD~1"]).answer();
    let forged = garden.commit_object(&tree, &[parent], TaskCommit::new("T2", "complete").to_string());
    garden.git(["replace", &failed, &forged]).succeeds();
    garden.arborist(["state"]).succeeds().shows();
    garden.write(".git/info/grafts", format!("{failed}\n"));
    garden.arborist(["state"]).succeeds().shows();
    garden.git(["log", "--format=%s", "-1"]).succeeds().shows();
}

#[test]
fn sha256_and_reftable_repositories_work_if_git_can_make_them() {
    for options in [["--object-format=sha256", "-q"], ["--ref-format=reftable", "-q"]] {
        let probe = Garden::sprout();
        let made = probe.git(["init", options[0], "probe"]);
        if made.code() != 0 {
            eprintln!("skipped: this git cannot make a repository with {}", options[0]);
            continue;
        }
        let garden = Garden::bare_ground(&options);
        garden.commit("begin\n");
        garden.run_start("main", "s1");
        garden.task("T1", "complete");
        for _ in ["fresh", "cached"] {
            garden.arborist(["state"]).succeeds().shows();
        }
        garden.arborist(["trailers", "check", "HEAD~1.."]).succeeds().shows();
    }
}

#[test]
fn no_setting_hides_trailers_from_us() {
    let garden = with_run();
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
        garden.git(["config", key, value]).succeeds();
        std::fs::remove_dir_all(garden.path(".git/arborist")).unwrap_or_default();
        garden.arborist(["state"]).succeeds().shows();
    }
    assert!(!garden.path("ran-by-state").exists(), "reading ran a program");
}

#[test]
fn odd_bytes_in_messages_are_read_as_they_are() {
    let garden = with_run();
    let done = TaskCommit::new("T2", "complete");
    for step in done.steps_before() {
        garden.commit(step.to_string());
    }
    let sound = done.to_string();
    garden.commit(sound.replace('\n', "\r\n"));
    garden.arborist(["state"]).succeeds().shows();
    for bytes in [b"\xff\xfe nonsense\n".to_vec(), b"a\0b\n".to_vec(), Vec::new(), vec![b'x'; 5_000_000]] {
        garden.commit(&bytes);
    }
    garden.commit(TaskCommit::new("T2", "failed").body(&"> x\n".repeat(1_250_000)).to_string());
    let mut nul = TaskCommit::new("T1", "failed").to_string().into_bytes();
    nul.extend(b"\0hidden");
    garden.commit(&nul);
    let mut latin = TaskCommit::new("T1", "reset").to_string().into_bytes();
    latin.splice(0..0, b"\xe9".iter().copied());
    garden.commit(&latin);
    for _ in ["fresh", "cached"] {
        garden.arborist(["state"]).succeeds().shows();
    }
}

#[test]
fn an_encoding_header_does_not_change_what_is_read() {
    let garden = with_run();
    garden.git(["config", "i18n.commitEncoding", "ISO-8859-1"]).succeeds();
    let done = TaskCommit::new("T2", "complete");
    for step in done.steps_before().iter().chain([&done]) {
        garden.git(["commit", "-q", "--allow-empty", "-m", &step.to_string()]).succeeds();
    }
    garden.arborist(["state"]).succeeds().shows();
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let garden = with_run();
    garden.arborist(["state"]).succeeds().never("\u{1b}[");
    garden.git(["-c", "color.ui=always", "arborist", "state"]).succeeds().shows();
    garden.git(["config", "color.arborist", "always"]).succeeds();
    garden.git(["-c", "color.ui=never", "arborist", "state"]).succeeds().shows();
}

#[test]
fn a_terminals_language_decides_on_the_marks() {
    let garden = with_run();
    let mut command = garden.command("git", &garden.path(""));
    Run::of(command.env("LANG", "C.UTF-8").args(["arborist", "state"]), b"").succeeds().shows();
}

#[test]
fn an_older_git_is_told_in_one_line() {
    let garden = with_run();
    garden.write_script("old/git", "#!/bin/sh\necho git version 2.30.2\n");
    let state = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("git-arborist-state");
    let mut command = garden.command(state.to_str().unwrap(), &garden.path(""));
    let path = std::env::join_paths([garden.path("old"), "/usr/bin".into(), "/bin".into()]).unwrap();
    Run::of(command.env("PATH", path), b"").exits(128).shows();
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let garden = with_run();
    let mut command = garden.command("sh", &garden.path(""));
    command.args(["-c", "(git arborist state --json; echo \"exit $?\" >&2) | head -n 1 >/dev/null"]);
    Run::of(&mut command, b"").succeeds().shows().never("panic");
    let mut command = garden.command("sh", &garden.path(""));
    Run::of(command.args(["-c", "git arborist state >/dev/full"]), b"").exits(128).shows();
}

#[test]
fn a_branch_called_head_and_a_path_that_is_no_utf8_are_no_obstacle() {
    use std::os::unix::ffi::OsStrExt;
    let garden = with_run();
    garden.git(["update-ref", "refs/heads/HEAD", "HEAD"]).succeeds();
    garden.arborist(["state"]).succeeds().shows();
    let odd = garden.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    garden
        .git_in(
            garden.root(),
            [std::ffi::OsStr::new("clone"), "-q".as_ref(), garden.path("").as_ref(), odd.as_ref()],
        )
        .succeeds();
    garden.arborist_in(&odd, ["state"]).succeeds().shows();
}

#[test]
fn a_repository_that_git_cannot_read_is_not_called_none() {
    let garden = with_run();
    garden.git(["config", "core.bare", "maybe"]).succeeds();
    garden.arborist(["state"]).exits(128).shows().never("run this inside a repository");
}
