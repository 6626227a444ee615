//! What an agent puts in the place of refs or objects fails its attempt, is moved away and named, and stops no later step.

use std::{
    fs,
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo};

use crate::queue_repo::QueueRepo;

/// A run of one task whose agent does this once. The user has a tag among the packed refs.
fn run(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    repo.git(["tag", "mine"]).succeeds();
    repo.git(["pack-refs", "--all"]).succeeds();
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo one > one.txt
if [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"; {deed}
fi
echo done"
    ));
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    let subjects = repo.git(["log", "--format=%s", "main"]).answer();
    assert!(subjects.contains("@T001@implement-fail") && subjects.contains("@T001@complete"), "{subjects}");
    assert_eq!(repo.git(["rev-parse", "--symbolic-full-name", "HEAD"]).answer(), "refs/heads/main");
    repo.git(["rev-parse", "--verify", "refs/tags/mine"]).succeeds();
    repo.git(["status"]).succeeds();
    repo
}

#[test]
fn a_folder_that_replaces_the_file_of_the_branch_is_moved_away() {
    let repo = run(
        "h=$(git rev-parse HEAD); rm -f .git/refs/heads/main; mkdir -p .git/refs/heads/main/x; echo $h > .git/refs/heads/main/x/y",
    );
    assert!(repo.path(".git/replaced.1/x/y").exists());
}

#[test]
fn an_invalid_line_is_removed_from_packed_refs() {
    let repo = run("echo zzz bad line >> .git/packed-refs");
    assert!(!repo.read(".git/packed-refs").contains("zzz"));
    assert!(repo.read(".git/replaced.1").contains("zzz"));
}

#[test]
fn unsorted_or_deleted_packed_refs_are_restored() {
    let repo = run("echo \"$(git rev-parse HEAD) refs/heads/aaa\" >> .git/packed-refs");
    repo.git(["rev-parse", "--verify", "refs/heads/aaa"]).succeeds();
    run("h=$(git rev-parse HEAD); echo $h > .git/refs/heads/main; rm .git/packed-refs");
}

#[test]
fn an_invalid_branch_file_is_restored_even_if_an_older_value_is_packed() {
    run("echo nonsense > .git/refs/heads/main");
}

#[test]
fn git_is_restarted_if_it_hangs_on_a_named_pipe_that_replaced_an_object() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = r#"#!/bin/sh
git='GIT' root='ROOT'
case " $* " in *" merge-tree "*) ;; *) exec "$git" "$@" ;; esac
if ! mkdir "$root/once" 2>/dev/null; then
  # Not before the object is there again, however slow the other shell is.
  i=0; until [ -e "$root/back" ] || [ $i -ge 2400 ]; do i=$((i+1)); sleep 0.05; done
  exec "$git" "$@"
fi
tree=$(env -u GIT_DIR -u GIT_COMMON_DIR -u GIT_ATTR_SOURCE "$git" -C "$root/repo" rev-parse 'arborist/task/main/T1^{tree}')
file="$root/repo/.git/objects/$(echo $tree | cut -c1-2)/$(echo $tree | cut -c3-)"
mkfifo "$root/queue"; mv "$file" "$root/true"; mv "$root/queue" "$file"
# The object is put back when git (this shell, after exec) waits for a writer of the queue, or has been ended because of that.
# So the process that does it must outlive git.
( env -u ARBORIST_PROCESS setsid sh -c 'until grep -q wait_for_partner /proc/$1/wchan && touch "$2/waited" || [ ! -e /proc/$1 ]; do sleep 0.05; done
mv "$2/true" "$3"; touch "$2/back"' sh $$ "$root" "$file" > /dev/null 2>&1 & )
exec "$git" "$@"
"#;
    let root = queue_repo.root().display().to_string();
    queue_repo.plant("git", &script.replace("GIT'", &format!("{}'", git.display())).replace("ROOT", &root));
    if !std::path::Path::new("/proc/self/wchan").exists() {
        eprintln!("skipped: the system does not tell what a process waits for");
        return;
    }
    let mut command = queue_repo.command("git-arborist-merge", &queue_repo.path(""));
    let begun = Instant::now();
    Run::of(command.args(["T1", "--scope", "main"]), b"").succeeds();
    // On a busy machine it may be ended before anybody has seen that it waits, but not sooner than after a second.
    let is_slow = begun.elapsed() >= Duration::from_secs(1);
    assert!(is_slow || fs::exists(queue_repo.root().join("waited")).unwrap());
    assert!(queue_repo.git(["ls-tree", "--name-only", "main"]).answer().contains("T1.txt"));
}
