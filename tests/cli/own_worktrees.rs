//! Worktrees that a run makes and removes while children are at work are its own doing; one that a child makes is never
//! used.

use std::fs;

use arborist_testkit::{Run, TestRepo};

/// A git that is slow in the midst of removing or making a worktree: half of it is done, then the reviewer who waits is let
/// go, and the rest follows once that one has been called again, or after a while.
const SLOW: &str = r#"#!/bin/sh
root=$(dirname "$(dirname "$0")")
real() { PATH=$(printf %s "$PATH" | sed "s|$root/bin:||"); export PATH; git "$@"; }
linger() {
  touch "$root/go"
  i=0
  while [ $i -lt 40 ] && [ ! -e "$root/again" ]; do sleep 0.02; i=$((i+1)); done
}
[ -e "$root/called" ] || { real "$@"; exit; }
case " $* " in
  *" worktree remove "*gate-1*)
    home=$root/repo/.git/worktrees/gate-1
    cp "$home/gitdir" "$root/gitdir"; rm "$home/gitdir"
    linger
    # What came back meanwhile would keep git from removing the folder.
    [ -e "$home/gitdir" ] && { echo "gate-1: Directory not empty" >&2; exit 128; }
    cp "$root/gitdir" "$home/gitdir"
    real "$@" ;;
  *" worktree add "*gate-1*)
    real "$@" || exit
    linger ;;
  *) real "$@" ;;
esac
"#;

#[test]
fn worktrees_that_the_run_recreates_during_a_review_do_not_invalidate_the_review() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    repo.plant("git", SLOW);
    let root = repo.root().display().to_string();
    repo.agent(&format!(
        "case \"$prompt\" in Review*)
  if [ $ARBORIST_TASK = T002 ]; then
    [ -e '{root}/called' ] && touch '{root}/again'
    touch '{root}/called'
    i=0; while [ $i -lt 6000 ] && [ ! -e '{root}/go' ]; do sleep 0.02; i=$((i+1)); done
  fi
  echo APPROVED; exit ;; esac
echo $ARBORIST_TASK > $ARBORIST_TASK.txt
if [ $ARBORIST_TASK = T001 ]; then
  i=0; while [ $i -lt 6000 ] && [ ! -e '{root}/called' ]; do sleep 0.02; i=$((i+1)); done
  # The folder of a worktree that was made for the baseline, as if somebody had cleaned up.
  rm -r '{root}/repo.arborist/gate-1'
fi
echo done"
    ));
    // Not by way of git, which puts its own folder first on `PATH`.
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--jobs", "2", "--test-command", "true"]), b"").succeeds();
    assert!(repo.root().join("go").exists() && !repo.root().join("again").exists());
    assert_eq!(repo.calls(), 4, "nobody was called again");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_worktree_that_an_agent_created_with_its_own_settings_is_never_used() {
    for jobs in ["1", "2"] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
        repo.write(".gitattributes", "*.dat filter=evil\n");
        repo.commit("a plan\n");
        repo.git(["config", "extensions.worktreeConfig", "true"]).succeeds();
        let root = repo.root().display().to_string();
        repo.agent(&format!(
            "case \"$prompt\" in Review*) pwd >> '{root}/where'; echo APPROVED; exit ;; esac
echo $ARBORIST_TASK >> $ARBORIST_TASK.dat
if [ ! -e '{root}/once' ]; then
  touch '{root}/once'
  for name in review-1 gate-1 lane-2 lane-3; do
    [ -e '{root}/repo.arborist/'$name ] && continue
    reason='arborist scratch'; case $name in lane*) reason=arborist ;; esac
    git worktree add -q --detach --lock --reason \"$reason\" '{root}/repo.arborist/'$name HEAD >&2
    printf '[filter \"evil\"]\\n\\tsmudge = touch {root}/ran; cat\\n\\tclean = touch {root}/ran; cat\\n' \
      > '{root}/repo/.git/worktrees/'$name/config.worktree
  done
fi
echo done"
        ));
        repo.arborist(["gardener", "--jobs", jobs, "--test-command", "true"]).succeeds();
        assert!(!repo.root().join("ran").exists(), "--jobs {jobs}");
        let subjects = repo.git(["log", "--format=%s", "--all"]).answer();
        assert!(subjects.contains("@T001@implement-fail"), "{subjects}");
        let whereabouts = fs::read_to_string(repo.root().join("where")).unwrap();
        assert!(!whereabouts.contains("/review-1"), "{whereabouts}");
        // The next run finds nothing of it either.
        repo.arborist(["gardener", "--jobs", jobs, "--test-command", "true"]).succeeds();
        assert!(!repo.root().join("ran").exists(), "--jobs {jobs}, again");
    }
}

#[test]
fn a_worktree_that_was_created_during_a_step_is_kept_and_fails_no_attempt() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    let root = repo.root().display().to_string();
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo $ARBORIST_TASK > $ARBORIST_TASK.txt
git worktree add -q -b mine '{root}/mine' >&2
echo done"
    ));
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert_eq!(repo.calls(), 2);
    repo.git_in(&repo.root().join("mine"), ["status"]).succeeds();
}

#[test]
fn the_git_file_of_an_idle_worktree_is_restored() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    repo.arborist(["worktree", "add", "idle", "--unplanned"]).succeeds();
    let idle = repo.root().join("repo.arborist/idle");
    let link = fs::read_to_string(idle.join(".git")).unwrap();
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > $ARBORIST_TASK.txt\n\
         [ -e \"$ROOT/once\" ] && exit\ntouch \"$ROOT/once\"; rm '{0}/.git'; git init -q '{0}'",
        idle.display()
    ));
    repo.arborist(["gardener"]).succeeds().err("idle/.git was changed while an agent or a command ran");
    assert_eq!(fs::read_to_string(idle.join(".git")).unwrap(), link);
    let log = repo.git(["log", "--format=%s"]).answer();
    assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{log}");
}
