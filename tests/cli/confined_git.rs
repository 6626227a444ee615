//! A git of ours that writes or removes files of a worktree does so only there, also if somebody replaces a folder by a link
//! in that very moment. Linux enforces it; elsewhere these tests have nothing to show.

use std::{fs, path::Path};

use arborist_core::process::Confinement;
use arborist_testkit::{Run, TestRepo};
use tempfile::TempDir;

use crate::queue_repo::QueueRepo;

/// Whether the system can show anything, with a word if it cannot.
fn is_enforced() -> bool {
    let is_enforced = Confinement::is_enforced();
    if !is_enforced {
        eprintln!("skipped: this system has no Landlock");
    }
    is_enforced
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A folder that is none of git's business, with a file in it. It is not in the folder for temporary files of the run.
fn outside() -> TempDir {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "precious\n").unwrap();
    outside
}

#[test]
fn git_commands_that_write_files_cannot_change_files_outside_the_worktree() {
    if !is_enforced() {
        return;
    }
    let plan = "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 do c\n";
    // Folders, an executable and a removed file: more than this process writes itself.
    let worker = r#"
touch "$ROOT/began"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     mkdir -p "d/$task"; echo "$task" > "d/$task/file"; chmod +x "d/$task/file"; rm -f "old/$task" ;;
esac
"#;
    let repo = TestRepo::init();
    repo.write("tasks.md", plan);
    for task in ["T001", "T002", "T003"] {
        repo.write(&format!("old/{task}"), "old\n");
    }
    repo.commit("a plan\n");
    repo.agent(worker);
    let (outside, seen) = (outside(), repo.path(".git/seen"));
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    // A git that was led astray: it writes and removes in another folder before it does what it was asked for.
    let commands = "checkout|checkout-index|clean|merge|read-tree|reset|restore";
    repo.plant(
        "git",
        &format!(
            "#!/bin/sh\nif test -e '{root}/began' && test -z \"$ARBORIST_TASK\"; then for word; do case \"$word\" in\n\
             {commands}) {{ echo \"$word\" >> '{seen}'\n\
             echo evil > '{out}/'$word; rm -f '{out}/precious'; }} 2>/dev/null; break ;; esac; done; fi\n\
             exec '{git}' \"$@\"\n",
            root = repo.root().display(),
            seen = seen.display(),
            out = outside.path().display(),
            git = git.display()
        ),
    );
    // Not by way of git, which puts its own folder first on `PATH`.
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--jobs", "2"]), b"").succeeds().out("3 completed");
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("read-tree") && seen.contains("checkout"), "git wrote files: {seen}");
    assert_eq!(names_in(outside.path()), ["precious"], "after {seen}");
    let files = repo.git(["ls-files", "d", "old"]).answer();
    assert_eq!(files, "d/T001/file\nd/T002/file\nd/T003/file");
}

/// A repository whose task adds files to a folder. They are converted by this program when they are written.
fn filtered(driver: &str, script: &str) -> QueueRepo {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    queue_repo.git(["config", &format!("filter.{driver}.clean"), "cat"]).succeeds();
    queue_repo.git(["config", &format!("filter.{driver}.smudge"), script]).succeeds();
    queue_repo.git(["config", &format!("filter.{driver}.required"), "true"]).succeeds();
    queue_repo.on_branch("T1", |queue_repo| {
        queue_repo.write(".gitattributes", format!("d/* filter={driver}\n"));
        ["d/a", "d/b", "d/c"].iter().for_each(|path| queue_repo.write(path, "new\n"));
        queue_repo.finish("T1");
    });
    fs::remove_dir_all(queue_repo.path("d")).ok();
    queue_repo
}

#[test]
fn git_writes_nothing_through_a_folder_that_becomes_a_link_during_a_checkout() {
    if !is_enforced() {
        return;
    }
    // In the worktree of a gate, and in the user's own checkout.
    for place in ["*/gate*/", "*/repo/"] {
        let queue_repo = filtered("lfs", "sh \"$HOME/swap\"");
        let outside = outside();
        // git has made the folder, and is about to write the first file there.
        let swap = format!(
            "cat; case \"$PWD/\" in {place}) test -L d || {{ mv d d.old; ln -s '{}' d; touch \"$TMPDIR/swapped\"; }} ;; \
             esac",
            outside.path().display()
        );
        queue_repo.write("../home/swap", swap);
        let said = queue_repo.merge(&["T1"]);
        assert!(queue_repo.root().join("swapped").exists(), "{place}: {}", said.report());
        assert_eq!(names_in(outside.path()), ["precious"], "{place}");
        assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "precious\n");
    }
}

#[test]
fn filters_of_the_user_can_still_write_outside_the_worktree() {
    // What git-lfs keeps, and where others may write.
    let outside = outside();
    let elsewhere = format!("d='{}'", outside.path().display());
    for (driver, place) in [
        ("lfs", "d=\"$(git rev-parse --git-common-dir)/lfs/tmp\""),
        ("lfs", "d=$(mktemp -d)"),
        ("lfs", "d=\"$HOME/.cache/x\""),
        ("mine", &elsewhere),
    ] {
        let script = format!("{place}; mkdir -p \"$d\" && cat > \"$d/x\" && cat \"$d/x\"");
        let queue_repo = filtered(driver, &script);
        fs::create_dir_all(queue_repo.home().join(".cache")).unwrap();
        queue_repo.merge(&["T1"]).succeeds().out("1 landed (T1)");
        for path in ["d/a", "d/b", "d/c"] {
            assert_eq!(queue_repo.read(path), "new\n", "{script}");
        }
        assert_eq!(queue_repo.git(["status", "--porcelain"]).answer(), "", "{script}");
    }
    assert_eq!(names_in(outside.path()), ["precious", "x"]);
}

#[test]
fn git_writes_nothing_through_a_reflog_that_becomes_a_link() {
    if !is_enforced() {
        return;
    }
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    let outside = outside();
    // T001 plants links again and again while the refs of T002 are moved.
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
[ \"$ARBORIST_TASK\" = T001 ] || exit 0
dir=$(git rev-parse --git-common-dir); i=0
while [ $i -lt 150 ]; do
  for log in HEAD refs/heads/main refs/heads/arborist/task/main/T002; do
    mkdir -p \"$(dirname \"$dir/logs/$log\")\"; ln -sf '{0}/precious' \"$dir/logs/$log\"
  done
  for tree in \"$dir\"/worktrees/*; do ln -sf '{0}/precious' \"$tree/logs/HEAD\"; done
  i=$((i+1)); sleep 0.005
done 2>/dev/null
true",
        outside.path().display()
    ));
    let run = repo.arborist(["gardener", "--jobs", "2", "--keep-going", "--max-retries", "1"]);
    assert_ne!(run.code(), 0);
    assert!(run.stderr().contains("was replaced by a link"), "{}", run.report());
    assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "precious\n");
}
