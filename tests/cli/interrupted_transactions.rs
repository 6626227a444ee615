//! Git moves the refs of one transaction by renaming one file after the other. A kill between two renames leaves the first of
//! them moved and the others where they were: whichever these are, the same command ends as if nothing had happened.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use arborist_testkit::{Run, TestRepo, call_stride};
use serde_json::Value;

use crate::test_workspace::TestWorkspace;

/// A git that writes down which refs each transaction moves, if it moves several. Of the one that `CUT` names it moves only the first few, in the
/// order in which git renames: those that are deleted come last. Then it kills who asked for it.
const GIT: &str = r#"#!/bin/sh
case " $* " in *" update-ref "*" --stdin "*) ;; *) exec 'GIT' "$@" ;; esac
zeros=0000000000000000000000000000000000000000
# Every ref is moved itself, and not what it leads to.
itself() { while IFS= read -r move; do printf 'option no-deref\n%s\n' "$move"; done; }
set -C
while IFS= read -r line; do
  case "$line" in
    start) moves=; gone=; count=0 ;;
    "update "*" $zeros "*) gone="$gone$line
"; count=$((count+1)) ;;
    prepare | "option no-deref") ;;
    commit)
      if [ $count -gt 1 ]; then
        n=1; until { printf '%s' "$moves$gone" > "CALLS/$n"; } 2>/dev/null; do n=$((n+1)); done
        for cut in 0 1 2 3 4 5; do
          if [ "$n:$cut" = "$CUT" ]; then
            printf '%s' "$moves$gone" | head -n $cut | itself | 'GIT' "$@" || exit 1
            kill -9 $PPID; exit 1
          fi
        done
      fi
      { echo start; printf '%s' "$moves$gone" | itself; echo prepare; echo commit; } | 'GIT' "$@" || exit 1 ;;
    *) moves="$moves$line
"; count=$((count+1)) ;;
  esac
done
"#;

/// Two turns, and no call writes what another has written.
const AGENT: &str = r#"
opens
calls 1 "Add one"; echo "one $n" > one.txt; answers 1
calls 2 "Add two"; mkdir -p deep; echo "two $n" > deep/two.txt; answers 2
ends done
"#;

/// The same by one who tells of no turns.
const PLAIN: &str = r#"
mkdir -p deep; echo "one $n" > one.txt; echo "two $n" > deep/two.txt; echo done
"#;

fn plant_git(repo: &TestRepo) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let calls = repo.root().join("calls");
    fs::create_dir(&calls).unwrap();
    repo.plant("git", &GIT.replace("CALLS", calls.to_str().unwrap()).replace("GIT", git.to_str().unwrap()));
}

/// Every cut of every transaction that moved several refs, and among them one that is called so: `NUMBER:MOVED`.
fn cuts(repo: &TestRepo, name: &str) -> Vec<String> {
    let read = |number: usize| fs::read_to_string(repo.root().join(format!("calls/{number}"))).ok();
    let all = (1..).map_while(|number| Some((number, read(number)?)));
    let wanted = all.filter(|(_, moves)| moves.contains(name));
    wanted
        .flat_map(|(number, moves)| (0..moves.lines().count()).map(move |moved| format!("{number}:{moved}")))
        .collect()
}

fn gardener(repo: &TestRepo, args: &[&str], cut: &str) -> Run {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--test-command", "true"]).args(args).env("CUT", cut), b"")
}

/// Every commit that the record of a turn names is on its branch, and what was said in it is kept.
fn assert_turn_records_are_complete(repo: &TestRepo, cut: &str, branch: &str, other: Option<(&Path, &str)>) {
    let read = |kind: &str, format: &str| {
        let from = format!("--glob=refs/arborist/{kind}");
        repo.git(["log", "--first-parent", format, &from]).answer()
    };
    let transcripts = read("transcripts", "--format=%s");
    let mut turns = Vec::new();
    // The first record follows the commit that the session began at, so commits of the code come behind it.
    for line in read("sessions", "--format=%b").lines().filter(|line| line.starts_with('{')) {
        let record: Value = serde_json::from_str(line).unwrap();
        if let Some(commit) = record["commit"].as_str().filter(|_| record["kind"] == "turn") {
            let asked = repo.git(["merge-base", "--is-ancestor", commit, branch]);
            assert_eq!(asked.code(), 0, "cut at {cut}: {line}");
        }
        for commit in record["others"].as_array().into_iter().flatten() {
            let (place, branch) = other.unwrap();
            let asked = ["merge-base", "--is-ancestor", commit["commit"].as_str().unwrap(), branch];
            assert_eq!(repo.git_in(place, asked).code(), 0, "cut at {cut}: {line}");
        }
        if let Some(number) = record["number"].as_u64().filter(|_| record["kind"] == "turn") {
            assert!(!turns.contains(&number), "cut at {cut}: {line}");
            assert!(transcripts.contains(&format!(": turn {number} of")), "cut at {cut}: {transcripts}");
            turns.push(number);
        }
    }
    assert!(turns.len() >= 2, "cut at {cut}: {turns:?}");
}

fn assert_task_completed_once(repo: &TestRepo, cut: &str, branch: &str) {
    let log = repo.git(["log", "--format=%s", branch]).answer();
    for step in ["@@run-start)", "@T001@implement-pass)", "@T001@test-pass)", "@T001@complete)"] {
        assert_eq!(log.matches(step).count(), 1, "cut at {cut}:\n{log}");
    }
}

fn assert_clean_worktree(repo: &TestRepo, cut: &str, place: &Path) {
    assert_eq!(repo.git_in(place, ["status", "--porcelain"]).answer(), "", "cut at {cut}");
    assert_eq!(repo.git_in(place, ["for-each-ref", "refs/arborist/wip"]).answer(), "", "cut at {cut}");
}

/// Tries every third cut, two at a time; `ARBORIST_EVERY_CALL=1` for all of them.
fn assert_survives_each_cut(cuts: &[String], survives: impl Fn(&str) + Sync) {
    assert!(cuts.len() >= 4, "{cuts:?}");
    let stride = call_stride(3);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(cut) = cuts.get(next.fetch_add(stride, Ordering::SeqCst)) {
            survives(cut);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

fn in_place((events, agent): (&str, &str)) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 the work\n");
    // The plan is not committed: that is for the run to do.
    repo.git(["commit", "-q", "--allow-empty", "-m", "begin"]).succeeds();
    crate::turn_scripts::agent(&repo, events, agent);
    plant_git(&repo);
    repo
}

/// Kills a run at every n-th cut of all transactions, and runs it again. `ARBORIST_EVERY_CALL=1` for all.
fn assert_run_survives_every_cut(
    agent: (&str, &str),
    (args, stride): (&[&str], usize),
    branch: impl Fn(&TestRepo) -> String + Sync,
    status: &str,
) {
    let undisturbed = in_place(agent);
    gardener(&undisturbed, args, "").succeeds();
    let cuts: Vec<String> = cuts(&undisturbed, "refs/").into_iter().step_by(call_stride(stride)).collect();
    assert_survives_each_cut(&cuts, |cut| {
        let repo = in_place(agent);
        let killed = gardener(&repo, args, cut);
        assert_eq!(killed.code(), 137, "cut at {cut}: {}", killed.report());
        let again = gardener(&repo, args, "");
        assert_eq!(again.code(), 0, "cut at {cut}: {}", again.report());
        let branch = branch(&repo);
        assert_task_completed_once(&repo, cut, &branch);
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), status, "cut at {cut}");
        for refs in ["refs/arborist/wip", "refs/arborist/queue/tickets"] {
            assert_eq!(repo.git(["for-each-ref", refs]).answer(), "", "cut at {cut}");
        }
        assert_turn_records_are_complete(&repo, cut, &branch, None);
    });
}

#[test]
fn an_interrupted_transaction_in_the_checkout_leaves_branch_index_and_files_consistent() {
    assert_run_survives_every_cut(("claude", AGENT), (&[], 1), |_| "main".into(), "");
}

#[test]
fn a_task_lands_once_after_an_interrupted_transaction_in_a_lane() {
    assert_run_survives_every_cut(("claude", AGENT), (&["--isolate"], 1), |_| "main".into(), "");
}

#[test]
fn a_step_without_turns_keeps_its_record_after_an_interrupted_transaction() {
    assert_run_survives_every_cut(("text", PLAIN), (&[], 1), |_| "main".into(), "");
    assert_run_survives_every_cut(("text", PLAIN), (&["--isolate"], 1), |_| "main".into(), "");
}

#[test]
fn a_run_continues_on_its_session_branch_after_an_interrupted_transaction() {
    let branch = |repo: &TestRepo| {
        repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"]).answer()
    };
    assert_run_survives_every_cut(("claude", AGENT), (&["--session-branch"], 4), branch, "?? tasks.md");
}

fn two_repositories() -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend"], "- [ ] T001 [repo:backend] the work\n");
    crate::turn_scripts::agent(&workspace, "claude", AGENT);
    plant_git(&workspace);
    workspace
}

#[test]
fn a_turn_interrupted_in_another_repository_is_completed_by_the_next_run() {
    let undisturbed = two_repositories();
    gardener(&undisturbed, &[], "").succeeds();
    // Only there does a turn move a branch.
    assert_survives_each_cut(&cuts(&undisturbed, "/@staging/turn-"), |cut| {
        let workspace = two_repositories();
        let killed = gardener(&workspace, &[], cut);
        assert_eq!(killed.code(), 137, "cut at {cut}: {}", killed.report());
        let again = gardener(&workspace, &[], "");
        assert_eq!(again.code(), 0, "cut at {cut}: {}", again.report());
        let (backend, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
        assert_task_completed_once(&workspace, cut, &workspace.session_branch("repo"));
        assert_clean_worktree(&workspace, cut, &workspace.path(""));
        assert_clean_worktree(&workspace, cut, &backend);
        let house = backend
            .with_file_name("backend.arborist")
            .join(format!("session-{}", branch.rsplit_once('/').unwrap().1));
        assert_clean_worktree(&workspace, cut, &house);
        assert_turn_records_are_complete(
            &workspace,
            cut,
            &workspace.session_branch("repo"),
            Some((&backend, &branch)),
        );
    });
}

/// A report that git had begun to write: the file is there, and empty.
#[test]
fn an_incomplete_report_is_written_again() {
    let repo = in_place(("claude", AGENT));
    gardener(&repo, &[], "").succeeds();
    let report = repo.git(["ls-files", "spec/reports"]).answer();
    let before = repo.git(["rev-parse", "main~1"]).answer();
    fs::write(repo.path(&report), "").unwrap();
    repo.git(["rm", "-q", "--cached", &report]).succeeds();
    let mark = format!("refs/arborist/wip/main/@staging/written-{before}");
    repo.write_note(&mark, &before);
    gardener(&repo, &[], "").succeeds();
    assert_clean_worktree(&repo, "the report", &repo.path(""));
    assert!(repo.read(&report).contains("\"task_id\": \"T001\""));
}
