//! How worktrees are set up: every key that has a say in it changes something that can be seen.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo};

fn repo(config: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write(".gitignore", ".env\nnode_modules/\n");
    repo.commit("ignore\n");
    let folder = repo.home().join(".config/git-arborist");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), config).unwrap();
    repo
}

fn add(repo: &TestRepo, task: &str) -> PathBuf {
    repo.arborist(["worktree", "add", task]).answer().into()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn setup_commands_run_once_in_a_new_worktree() {
    let repo = repo(
        "[worktree]\nsetup = [\"echo $ARBORIST_TASK in $PWD >> ../../setup\", \"env | grep ARBORIST_ > .env\"]\n",
    );
    let path = add(&repo, "T1");
    add(&repo, "T1");
    assert_eq!(repo.read("../setup"), format!("T1 in {}\n", path.display()));
    let variables = read(&path.join(".env"));
    for line in [
        "ARBORIST_TASK=T1",
        &format!("ARBORIST_WORKTREE={}", path.display()),
        "ARBORIST_REPOSITORY=",
        "ARBORIST_PORT=2",
    ] {
        assert!(variables.contains(line), "{line} in {variables}");
    }
    let other = read(&add(&repo, "T2").join(".env"));
    let port = |text: &str| text.lines().find(|line| line.starts_with("ARBORIST_PORT=")).unwrap().to_owned();
    assert_ne!(port(&variables), port(&other), "no two worktrees share a port");
}

#[test]
fn a_setup_that_fails_or_hangs_leaves_nothing_behind() {
    let repo = repo("[worktree]\nsetup = [\"echo no network >&2; exit 7\"]\n");
    repo.arborist(["worktree", "add", "T1"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist"]).answer(), "");
    let mut command = repo.command("git", &repo.path(""));
    command.args(["-c", "arborist.worktree.setup=sleep 60", "arborist", "worktree", "add", "T1"]);
    Run::of(command.env("ARBORIST_TIMEOUT_SETUP", "1"), b"").exits(1).matches_snapshot();
}

#[test]
fn setup_commands_in_tracked_configuration_need_approval() {
    let repo = repo("");
    repo.write(".arborist/config.toml", "[worktree]\nsetup = [\"touch ../../ran\"]\n");
    repo.commit("configuration\n");
    repo.arborist(["worktree", "add", "T1"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("repo.arborist").exists(), "nothing was made");
    repo.arborist(["worktree", "add", "T1", "--yes"]).succeeds();
    assert!(repo.root().join("ran").exists());
    repo.arborist(["worktree", "add", "T2"]).succeeds();
}

#[test]
fn control_characters_cannot_hide_parts_of_a_command_shown_for_approval() {
    let repo = repo("");
    let commands = r#"["true", "touch ../../ran #\r  setup: true\u001b[K", "true\n  setup: more || true"]"#;
    repo.write(".arborist/config.toml", format!("[worktree]\nsetup = {commands}\n"));
    repo.commit("configuration\n");
    let said = repo.arborist(["worktree", "add", "T1"]).exits(2);
    let said = said.matches_snapshot().never("\r").never("\u{1b}");
    assert_eq!(said.stderr().matches("\n  setup: ").count(), 3, "{}", said.stderr());
    repo.arborist(["worktree", "add", "T1", "--yes"]).succeeds();
    repo.arborist(["worktree", "add", "T2"]).succeeds();
}

#[test]
fn ignored_files_are_copied_and_nothing_that_git_would_commit() {
    let repo = repo("[worktree]\ncopy = [\"node_modules\", \"notes\"]\n");
    repo.write(".worktreeinclude", "# secrets\n.env\n");
    repo.write(".env", "secret");
    repo.write("sub/.env", "inner");
    repo.write("node_modules/x/y", "dependency");
    std::os::unix::fs::symlink("x/y", repo.path("node_modules/link")).unwrap();
    repo.write("notes", "not ignored");
    let said = repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(read(&path.join(".env")), "secret");
    assert_eq!(read(&path.join("sub/.env")), "inner");
    assert_eq!(read(&path.join("node_modules/link")), "dependency");
    assert!(!path.join("notes").exists());
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), "");
    fs::write(path.join(".env"), "own").unwrap();
    assert_eq!(repo.read(".env"), "secret", "it is a copy");
}

#[test]
fn files_configured_later_are_copied_to_existing_worktrees() {
    let repo = repo("");
    repo.write(".env", "secret");
    repo.write("node_modules/x", "dependency");
    let path = add(&repo, "T1");
    assert!(!path.join(".env").exists());
    repo.write(".worktreeinclude", ".env\n");
    assert_eq!(add(&repo, "T1"), path);
    assert_eq!(read(&path.join(".env")), "secret");
    repo.git(["config", "arborist.worktree.copy", "node_modules"]).succeeds();
    add(&repo, "T1");
    assert_eq!(read(&path.join("node_modules/x")), "dependency");
}

#[test]
fn nothing_is_copied_through_a_link() {
    let repo = repo("[worktree]\ncopy = [\".env\"]\n");
    fs::create_dir(repo.root().join("outside")).unwrap();
    std::os::unix::fs::symlink("../../outside", repo.path("config")).unwrap();
    repo.commit("a link\n");
    fs::remove_file(repo.path("config")).unwrap();
    repo.write("config/.env", "secret");
    let path = add(&repo, "T1");
    assert!(path.join("config").is_symlink());
    assert!(!repo.root().join("outside/.env").exists());
}

#[test]
fn tracked_files_can_be_excluded_from_worktrees_and_included_again() {
    let repo = repo("[worktree]\nexclude = [\"/docs/\"]\n");
    repo.write("docs/large", "large");
    repo.write("CLAUDE.md", "instructions");
    repo.write(".claude/settings.json", "{}");
    repo.commit("docs\n");
    let lane = PathBuf::from(repo.arborist(["worktree", "add", "--lane", "T1"]).answer());
    assert!(!lane.join("docs").exists());
    assert!(lane.join("CLAUDE.md").exists() && lane.join(".claude/settings.json").exists());
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    assert_eq!(
        repo.git(["config", "--get", "core.sparseCheckout"]).code(),
        1,
        "the repository is not changed"
    );
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    fs::remove_file(repo.home().join(".config/git-arborist/config.toml")).unwrap();
    repo.arborist(["worktree", "add", "--lane", "T2"]).succeeds();
    assert_eq!(read(&lane.join("docs/large")), "large");
}

#[test]
fn git_lfs_files_can_stay_pointers() {
    let repo = repo("");
    repo.plant("smudge", "#!/bin/sh\nif [ \"$GIT_LFS_SKIP_SMUDGE\" = 1 ]; then cat; else echo large; fi\n");
    repo.git(["config", "filter.lfs.smudge", "smudge"]).succeeds();
    repo.git(["config", "filter.lfs.clean", "echo pointer"]).succeeds();
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.write("a.bin", "large\n");
    repo.commit("a large file\n");
    assert_eq!(read(&add(&repo, "T1").join("a.bin")), "large\n");
    repo.git(["config", "arborist.worktree.lfs", "false"]).succeeds();
    assert_eq!(read(&add(&repo, "T2").join("a.bin")), "pointer\n");
}
