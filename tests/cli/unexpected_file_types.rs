//! Things of the wrong kind: a folder where git keeps a file, a file where it keeps a folder, something else in the place of a
//! worktree, files without end. A run is neither held up by them nor stuck afterwards.

use std::{fs, os::unix::fs::symlink};

use arborist_testkit::{TestRepo, pairs};

/// Two tasks. The first agent does something once; all write a file.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n");
    repo.write("kept", "kept\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        r#"case "$prompt" in Review*) echo APPROVED; exit ;; esac
echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt"
[ -e "$ROOT/once" ] && exit
: > "$ROOT/once"; G="$ROOT/repo/.git"; W=$PWD
{deed}"#
    ));
    repo
}

fn completes(repo: &TestRepo, args: &[&str], what: &str) {
    drop(repo.arborist(args));
    repo.arborist(args).succeeds();
    let done = repo.git(["log", "--format=%s", "main"]).answer();
    for task in ["T001", "T002"] {
        assert!(done.contains(&format!("@{task}@complete")), "{what}: {done}");
        assert!(repo.path(&format!("{task}.txt")).exists(), "{what}: {task}");
    }
}

#[test]
fn folders_in_place_of_git_files_and_files_in_place_of_git_folders_are_moved_away() {
    let deeds = [
        r#"mkdir "$G/index.lock" "$G/HEAD.lock" "$G/packed-refs.lock" "$G/refs/heads/main.lock""#,
        r#"rm -f "$G/packed-refs"; mkdir -p "$G/packed-refs/x""#,
        r#"rm -rf "$G/logs"; echo x > "$G/logs""#,
        r#"rm -f "$G/logs/HEAD" "$G/logs/refs/heads/main"; mkdir -p "$G/logs/HEAD/x" "$G/logs/refs/heads/main/x""#,
        r#"for d in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do for e in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do
             [ -e "$G/objects/$d$e" ] || echo x > "$G/objects/$d$e"; done; done"#,
        r#"rm -rf "$G/refs/arborist"; echo x > "$G/refs/arborist""#,
    ];
    for (deed, args) in pairs(&deeds, &[&["gardener"][..], &["gardener", "--isolate"]]) {
        let repo = repo(deed);
        completes(&repo, args, deed);
    }
}

#[test]
fn obstacles_that_a_killed_run_left_in_the_git_directory_are_moved_away_by_the_next_run() {
    let repo = repo("true");
    fs::create_dir(repo.path(".git/index.lock")).unwrap();
    fs::remove_dir_all(repo.path(".git/logs")).unwrap();
    repo.write(".git/logs", "x");
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    assert!(repo.path(".git/replaced.1").exists() && repo.path(".git/replaced.2").exists());
}

#[test]
fn a_file_or_link_in_place_of_a_worktree_stops_no_later_run() {
    for deed in [
        r#"cd /; rm -rf "$W"; echo x > "$W""#,
        r#"cd /; mv "$W" "$ROOT/moved"; ln -s "$ROOT/moved" "$W""#,
        r#"rm -rf "$ROOT/repo.arborist/gate-1"; echo x > "$ROOT/repo.arborist/gate-1""#,
        r#"mkdir "$ROOT/victim"; rm -rf "$ROOT/repo.arborist/gate-1"; ln -s "$ROOT/victim" "$ROOT/repo.arborist/gate-1""#,
    ] {
        let repo = repo(deed);
        let args = ["gardener", "--isolate", "--test-command", "true"];
        completes(&repo, &args, deed);
        let victim = repo.root().join("victim");
        assert!(!victim.exists() || fs::read_dir(victim).unwrap().count() == 0, "{deed}");
    }
}

#[test]
fn files_of_enormous_size_are_not_read_and_fail_the_attempt() {
    let huge = "1000G";
    for deed in [
        format!("truncate -s {huge} big.bin"),
        format!("truncate -s {huge} kept"),
        format!("truncate -s {huge} .gitignore"),
        format!("echo kept > .gitignore; truncate -s {huge} kept"),
        format!("truncate -s {huge} \"$G/logs/HEAD\""),
        format!("truncate -s {huge} \"$G/refs/heads/other\""),
        r#"truncate -s 7G "$G/index""#.to_owned(),
    ] {
        // The next attempt takes it away.
        let repo = repo(&format!("{deed}; exit"));
        let script = repo.root().join("agent.sh");
        let text = fs::read_to_string(&script).unwrap();
        let mend = "[ -e \"$ROOT/once\" ] && { rm -f big.bin .gitignore; echo kept > kept; }\n";
        fs::write(&script, text.replacen("case \"$prompt\"", &format!("{mend}case \"$prompt\""), 1)).unwrap();
        completes(&repo, &["gardener"], &deed);
        assert_eq!(repo.git(["show", "main:kept"]).answer(), "kept", "{deed}");
        if deed.ends_with("G kept") && !deed.contains(".gitignore") {
            assert!(repo.path(".git/replaced.1").exists(), "what was in the file is kept");
        }
    }
}

#[test]
fn a_huge_ignored_file_of_the_user_does_not_stop_a_run() {
    let repo = repo("true");
    repo.write(".gitignore", "data/\n");
    repo.commit("ignore\n");
    fs::create_dir(repo.path("data")).unwrap();
    fs::File::create(repo.path("data/set")).unwrap().set_len(1 << 40).unwrap();
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn a_huge_untracked_file_of_the_user_is_reported_before_an_agent_is_called() {
    let repo = repo("true");
    fs::File::create(repo.path("new")).unwrap().set_len(1 << 40).unwrap();
    repo.arborist(["gardener", "--allow-dirty"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("once").exists());
}

#[test]
fn folders_nested_deeper_than_the_path_limit_are_removed_with_their_worktree() {
    let repo = repo("true");
    let deep = repo.root().join("deep.sh");
    fs::write(&deep, "n=0; while [ $n -lt 1500 ]; do mkdir dddd && cd dddd || exit; n=$((n+1)); done\n")
        .unwrap();
    repo.write(".gitignore", "node_modules\n");
    repo.commit("ignore\n");
    let path = repo.arborist(["worktree", "add", "T001"]).answer();
    let path = path.lines().last().unwrap().to_owned();
    let script = format!("cd '{path}' && mkdir node_modules && cd node_modules && . '{}'", deep.display());
    std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
    symlink(repo.root().join("home"), std::path::Path::new(&path).join("link")).unwrap();
    repo.arborist(["worktree", "remove", "T001", "--force"]).succeeds();
    assert!(!std::path::Path::new(&path).exists());
    assert!(repo.home().exists());
}

/// Makes a folder with a file below a path that is longer than git can open.
const DEEP: &str = r#"
name=$(printf 'd%.0s' $(seq 200))
(mkdir -p deep && cd deep && for i in $(seq 30); do mkdir -p "$name" && cd -P "./$name" || exit 1; done; echo poison > poison)
"#;

#[test]
fn a_folder_that_git_cannot_read_fails_the_attempt_and_is_moved_away() {
    for args in [&[][..], &["--session-branch"], &["--jobs", "2"]] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "## Phase 1: Work\n\n- [ ] T001 one\n- [ ] T002 two\n");
        repo.commit("a plan\n");
        repo.agent(&format!(
            "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n\
             ls -d deep >> \"$ROOT/seen\" 2>/dev/null\n\
             [ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; {DEEP} }}"
        ));
        let out = repo.arborist([&["gardener"], args].concat()).succeeds();
        let subjects = repo.git(["log", "--all", "--format=%s"]).answer();
        assert!(subjects.contains("T001@implement-fail"), "{args:?}: {subjects}");
        let bodies = repo.git(["log", "--all", "--format=%B"]).answer() + &out.stdout();
        assert!(bodies.contains("made a folder that git cannot read: deep"), "{args:?}: {bodies}");
        assert!(!repo.root().join("seen").exists() || fs::read(repo.root().join("seen")).unwrap().is_empty());
        assert!(repo.path(".git/arborist-aside/1/deep").is_dir(), "{args:?}");
    }
}

#[test]
fn a_folder_that_git_could_not_read_before_the_run_is_kept() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    let made = std::process::Command::new("sh").args(["-ec", DEEP]).current_dir(repo.path("")).status();
    assert!(made.unwrap().success());
    repo.agent("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"");
    repo.arborist(["gardener"]).succeeds();
    assert!(repo.path("deep").is_dir());
}

#[test]
fn a_folder_made_by_tests_that_git_cannot_read_is_named_in_the_review_prompt() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("test.sh", format!("if [ -e T001.txt ]; then {DEEP} fi"));
    repo.commit("a plan\n");
    repo.agent(
        "case \"$prompt\" in Review*) echo \"$prompt\" > \"$ROOT/prompt\"; echo APPROVED; exit ;; esac\n\
         echo x > \"$ARBORIST_TASK.txt\"",
    );
    repo.arborist(["gardener", "--test-command", "sh test.sh"]).succeeds();
    let prompt = fs::read_to_string(repo.root().join("prompt")).unwrap();
    assert!(prompt.contains("- deep/d"), "{prompt}");
}
