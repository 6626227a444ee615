//! git believes what an index says about files, and whoever runs in a worktree can write its index. What is committed, reviewed,
//! tested and gated is what lies in files, whatever an index says.

use std::fs;

use arborist_testkit::{Run, TestRepo, pairs};

use crate::queue_repo::QueueRepo;

/// `forge FILE CLAIM`: the index says that FILE, as it lies there, holds what the file CLAIM holds. git itself writes such an
/// index, with a filter that nobody else knows of. Its time is old, so that git does not look again for that reason.
const FORGE: &str = r#"
forge() {
  touch -t 202001010000 "$1"
  printf '%s filter=claim\n' "$1" > "$ROOT/attributes"
  git -c core.attributesFile="$ROOT/attributes" -c filter.claim.clean="cat '$2'" add -f "$1"
}
"#;

/// Two tasks, one after the other, and a tracked file `check.sh`. The agent of each task does this; reviewers note what they see.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n");
    repo.write("check.sh", "echo honest\n");
    repo.commit("a plan\n");
    fs::copy(repo.path("check.sh"), repo.root().join("honest")).unwrap();
    repo.agent(&format!(
        "{FORGE}
case \"$prompt\" in Review*) cat check.sh >> \"$ROOT/seen\"; echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\"
{deed}
echo done"
    ));
    repo
}

fn noted(repo: &TestRepo, name: &str) -> String {
    fs::read_to_string(repo.root().join(name)).unwrap_or_default()
}

fn subjects(repo: &TestRepo) -> String {
    repo.git(["log", "--format=%s", "main"]).answer()
}

const PLACES: [&[&str]; 2] = [&["gardener"], &["gardener", "--isolate"]];

#[test]
fn the_content_of_files_is_committed_and_reviewed_despite_a_forged_index() {
    // The same size as before, so that only the times could tell.
    let tracked =
        "[ $ARBORIST_TASK = T001 ] && echo 'echo change' > check.sh && forge check.sh \"$ROOT/honest\"";
    let new = "[ $ARBORIST_TASK = T001 ] && { echo good > new; echo evil > \"$ROOT/evil\"; forge new \"$ROOT/evil\"; }";
    let back =
        "[ $ARBORIST_TASK = T002 ] && { cp \"$ROOT/honest\" check.sh; forge check.sh \"$ROOT/honest\"; }";
    for place in PLACES {
        let repo = repo(&format!("{tracked}; {new}; {back}"));
        repo.arborist(place).succeeds();
        let at = |subject: &str, path: &str| {
            let commit =
                repo.git(["log", "--format=%H", "--fixed-strings", "--grep", subject, "main"]).answer();
            repo.git(["show", &format!("{}:{path}", commit.lines().next().unwrap())]).answer()
        };
        assert_eq!(at("@T001@implement-pass)", "check.sh"), "echo change", "{place:?}");
        assert_eq!(at("@T001@implement-pass)", "new"), "good", "{place:?}");
        assert_eq!(noted(&repo, "seen"), "echo change\necho honest\n", "{place:?}");
        assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo honest", "{place:?}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{place:?}");
    }
}

#[test]
fn changes_to_assume_unchanged_and_skip_worktree_files_are_committed() {
    for (mark, place) in pairs(&["--assume-unchanged", "--skip-worktree"], &PLACES) {
        let repo = repo(&format!(
            "[ $ARBORIST_TASK = T001 ] && {{ git update-index {mark} check.sh; echo 'echo change' > check.sh; }}"
        ));
        repo.arborist(place).succeeds();
        assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo change", "{mark} {place:?}");
        assert_eq!(noted(&repo, "seen"), "echo change\necho change\n", "{mark} {place:?}");
    }
}

#[test]
fn reviewers_and_gates_see_the_commit_despite_forged_indexes_of_their_worktrees() {
    for hide in [
        "forge check.sh \"$ROOT/honest\"",
        "git update-index --skip-worktree check.sh",
        "git update-index --assume-unchanged check.sh",
        "git update-index --split-index; forge check.sh \"$ROOT/honest\"",
        "forge check.sh \"$ROOT/honest\"; git update-index --index-version 4",
    ] {
        let repo = repo(&format!(
            "[ $ARBORIST_TASK = T001 ] || for place in gate-1 review-1; do
               cd \"$ROOT/repo.arborist/$place\" || exit 1
               echo 'echo forged' > check.sh; {hide}
             done"
        ));
        let command = format!("cat check.sh >> '{}/gated'", repo.root().display());
        repo.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
        repo.arborist(["gardener", "--isolate"]).succeeds();
        assert_eq!(noted(&repo, "seen"), "echo honest\necho honest\n", "{hide}");
        assert_eq!(noted(&repo, "gated"), "echo honest\necho honest\n", "{hide}");
    }
}

#[test]
fn a_reused_lane_contains_its_commit_despite_a_forged_index() {
    let repo = repo("cat check.sh >> \"$ROOT/found\"");
    // The gate of the first task changes the lane that the second one gets.
    let gate = format!(
        "ROOT='{}'; {FORGE} cd \"$ROOT/repo.arborist/lane-1\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"",
        repo.root().display()
    );
    repo.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    repo.arborist(["gardener", "--isolate"]).succeeds();
    assert_eq!(noted(&repo, "found"), "echo honest\necho honest\n");
    assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo honest");
}

/// Runs one task, with the trace of each git in a file of this folder.
fn run_traced(repo: &TestRepo, task: &str, folder: &str) -> Vec<String> {
    let folder = repo.root().join(folder);
    fs::create_dir(&folder).unwrap();
    let mut command = repo.command("git-arborist", &repo.path(""));
    command.args(["gardener", "--isolate", "--only", task]).env("GIT_TRACE2_EVENT", &folder);
    Run::of(&mut command, b"").succeeds();
    let traces =
        fs::read_dir(folder).unwrap().map(|trace| fs::read_to_string(trace.unwrap().path()).unwrap());
    traces.collect()
}

#[test]
fn the_index_of_a_lane_is_known_in_the_next_run_unless_it_was_changed_between() {
    let is_refresh = |trace: &&String| trace.contains("\"--refresh\"") && trace.contains("lane-1");
    let repo = repo("cat check.sh >> \"$ROOT/found\"");
    run_traced(&repo, "T001", "first");
    let forged = repo.root().join("repo.arborist/lane-1");
    let before = fs::read(repo.path(".git/worktrees/lane-1/index")).unwrap();
    let second = run_traced(&repo, "T002", "second");
    assert_eq!(second.iter().filter(is_refresh).count(), 0);
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n- [ ] T003 do c\n");
    repo.commit("a third task\n");
    repo.arborist(["gardener", "--dry-run", "--accept-changes"]).succeeds();
    let forge = format!(
        "ROOT='{}'; {FORGE} echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"",
        repo.root().display()
    );
    let mut command = repo.command("sh", &forged);
    Run::of(command.args(["-c", &forge]), b"").succeeds();
    assert_ne!(fs::read(repo.path(".git/worktrees/lane-1/index")).unwrap(), before);
    repo.arborist(["gardener", "--isolate", "--accept-changes"]).succeeds();
    assert_eq!(noted(&repo, "found"), "echo honest\necho honest\necho honest\n");
    assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo honest");
}

#[test]
fn a_test_in_a_lane_that_changes_tracked_files_counts_as_failed() {
    let repo = repo("cat check.sh >> \"$ROOT/found\"");
    let test = format!(
        "ROOT='{}'; {FORGE} [ -n \"$ARBORIST_TASK\" ] && [ ! -e \"$ROOT/once\" ] || exit 0; : > \"$ROOT/once\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"; git reset -q",
        repo.root().display()
    );
    repo.git(["config", "arborist.test-command", &test]).succeeds();
    repo.arborist(["gardener", "--isolate"]).succeeds();
    assert_eq!(noted(&repo, "found"), "echo honest\n".repeat(3), "the second attempt finds it as it was");
    let log = repo.git(["log", "--format=%s", "main"]).answer();
    assert_eq!(log.matches("@test-fail)").count(), 1, "{log}");
    assert!(log.contains("@T001@test-fail)"), "{log}");
}

#[test]
fn a_test_in_the_checkout_that_changes_tracked_files_counts_as_failed() {
    let repo = repo(":");
    let test = format!(
        "ROOT='{}'; {FORGE} [ \"$ARBORIST_TASK\" = T001 ] && [ ! -e \"$ROOT/once\" ] || exit 0; : > \"$ROOT/once\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"",
        repo.root().display()
    );
    repo.git(["config", "arborist.test-command", &test]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).stdout(), "");
    assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo honest");
    assert_eq!(noted(&repo, "seen"), "echo honest\necho honest\n");
    let log = repo.git(["log", "--format=%s", "main"]).answer();
    assert_eq!(log.matches("@test-fail)").count(), 1, "{log}");
    let kept = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert!(
        kept.lines().any(|name| repo.git(["show", &format!("{name}:check.sh")]).stdout() == "echo forged\n"),
        "{kept}"
    );
}

#[test]
fn a_missing_or_broken_index_is_restored_and_the_run_continues() {
    for deed in ["rm .git/index", "echo junk > .git/index", ": > .git/index"] {
        let repo = repo(&format!("[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {deed}; }}"));
        repo.write(".gitignore", "kept.log\n");
        repo.write("kept.log", "tracked all the same\n");
        repo.git(["add", "-f", "kept.log"]).succeeds();
        repo.commit("an ignored file\n");
        repo.arborist(["gardener"]).succeeds();
        assert_eq!(repo.git(["show", "main:kept.log"]).answer(), "tracked all the same", "{deed}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{deed}");
        assert!(subjects(&repo).contains("@T002@complete)"), "{deed}");
    }
}

#[test]
fn a_landing_does_not_overwrite_a_change_of_the_user_hidden_by_a_forged_index() {
    let repo = repo(
        "[ $ARBORIST_TASK = T002 ] || {
           echo 'echo landed' > check.sh; cd \"$ROOT/repo\"
           echo 'echo edited' > check.sh; forge check.sh \"$ROOT/honest\"
         }",
    );
    repo.arborist(["gardener", "--isolate"]).exits(2);
    assert_eq!(repo.read("check.sh"), "echo edited\n");
    assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "echo honest", "the landing waits for the user");
}

/// A checkout with one file of the user's staged in one version and changed to another, and one staged as it lies there.
fn dirty(deed: &str) -> TestRepo {
    let repo = repo(&format!("[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {deed}; }}"));
    repo.write("both", "committed\n");
    repo.write("edited", "committed\n");
    repo.commit("files of the user\n");
    for (file, text) in [("both", "staged\n"), ("new", "staged\n"), ("whole", "staged\n")] {
        repo.write(file, text);
        repo.git(["add", file]).succeeds();
    }
    repo.write("both", "in the worktree\n");
    repo.write("new", "in the worktree\n");
    repo.write("edited", "in the worktree\n");
    repo.write("intended", "not staged\n");
    repo.git(["add", "-N", "intended"]).succeeds();
    repo
}

fn state(repo: &TestRepo) -> (String, String, Vec<String>) {
    let staged = repo.git(["ls-files", "--stage", "both", "new", "whole", "edited", "intended"]).answer();
    let status = repo.git(["status", "--porcelain", "both", "new", "whole", "edited", "intended"]).stdout();
    (staged, status, ["both", "new", "whole", "edited", "intended"].map(|file| repo.read(file)).to_vec())
}

#[test]
fn staged_changes_of_the_user_are_restored_after_an_agent_changes_the_index() {
    for deed in [
        "git reset -q",
        "git add -A",
        "git add -A; git commit -qm mine",
        "git stash -q",
        "git stash -q; git stash pop -q",
        "git reset -q --hard; git clean -fdq",
        "git rm -rq --cached both new",
        "git rm -rqf both new whole; mkdir both; echo x > both/inner; git add both/inner",
        "rm .git/index",
        "echo junk > .git/index",
        "git read-tree --empty",
        "echo other > both; git add both; git checkout -q -- .",
        "git update-index --assume-unchanged both edited; echo other > both; echo other > edited",
        "echo other > \"$ROOT/claim\"; cp edited \"$ROOT/claim\"; echo 'by the agent...' > edited; forge edited \"$ROOT/claim\"",
    ] {
        let repo = dirty(deed);
        let before = state(&repo);
        let start = repo.git(["rev-parse", "HEAD"]).answer();
        repo.arborist(["gardener", "--allow-dirty"]).succeeds();
        assert_eq!(state(&repo), before, "{deed}");
        assert!(subjects(&repo).contains("@T002@complete)"), "{deed}");
        let committed = repo.git(["diff", "--name-only", &start, "HEAD"]).answer();
        assert!(
            !committed.lines().any(|path| ["both", "new", "whole", "edited"].contains(&path)),
            "{committed}"
        );
    }
}

#[test]
fn staged_changes_of_the_user_are_restored_after_a_crash() {
    let repo = dirty("git reset -q; kill -9 $PPID; sleep 60");
    repo.git(["rm", "-q", "--cached", "intended"]).succeeds();
    let before = state(&repo);
    let _killed = repo.arborist(["gardener", "--allow-dirty"]).code();
    assert_ne!(state(&repo), before);
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    let staged = |file: &str| repo.git(["show", &format!(":{file}")]).answer();
    assert_eq!((staged("both"), staged("new")), ("staged".into(), "staged".into()));
    assert_eq!(state(&repo).2, before.2);
}

#[test]
fn content_staged_while_an_agent_works_is_saved() {
    let repo = dirty(
        "echo precious > \"$ROOT/text\"; git update-index --cacheinfo \"100644,$(git hash-object -w \"$ROOT/text\"),both\"",
    );
    let before = state(&repo);
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(state(&repo), before);
    let kept = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(repo.git(["show", &format!("{kept}:both")]).answer(), "precious");
}

#[test]
fn a_gate_that_changes_files_of_the_commit_lands_nothing() {
    for gate in [
        "echo weaker > T1.txt",
        "rm T1.txt",
        "echo weaker > T1.txt; git add -A",
        "rm T1.txt; git rm -q --cached T1.txt",
    ] {
        let queue_repo = QueueRepo::with_finished(&["T1"]);
        let main = queue_repo.git(["rev-parse", "main"]).answer();
        let tracked = queue_repo.git(["ls-tree", "-r", "--name-only", "arborist/task/main/T1"]).answer();
        let file = tracked.lines().find(|path| path.contains("T1")).unwrap().to_owned();
        let command = gate.replace("T1.txt", &file);
        queue_repo.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
        queue_repo.merge(&["T1"]).exits(2).err(&file);
        assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), main, "{gate}");
        // New files are what builds make.
        queue_repo.git(["config", "arborist.merge.gates.check.command", "echo x > built"]).succeeds();
        queue_repo.merge(&["run"]).succeeds();
        assert_ne!(queue_repo.git(["rev-parse", "main"]).answer(), main, "{gate}");
    }
}

#[test]
fn the_setup_command_of_a_worktree_may_change_tracked_files() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo
        .git([
            "config",
            "arborist.worktree.setup",
            "echo x >> file-of-set-up; ls | while read f; do [ -d \"$f\" ] || echo more >> \"$f\"; done",
        ])
        .succeeds();
    queue_repo.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    queue_repo.merge(&["T1"]).succeeds();
}

#[test]
fn a_failing_task_does_not_land_if_another_agent_weakens_its_tests() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    repo.write("check.sh", "[ ! -e broken ]\n");
    repo.commit("a plan\n");
    // The second agent weakens the check wherever the first one's work is tested, until that is over.
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\"
[ $ARBORIST_TASK = T002 ] || { echo x > broken; exit; }
me=$PWD; n=0
until git log -1 --format=%s arborist/task/main/T001 2>/dev/null | grep -q implement-pass || [ $n = 3000 ]; do n=$((n+1)); sleep 0.01; done
n=0
until [ -e \"$ROOT/tested\" ] || [ $n = 3000 ]; do
  n=$((n+1))
  for d in \"$ROOT\"/repo.arborist/*; do
    [ \"$d\" = \"$me\" ] || [ ! -e \"$d/broken\" ] || { echo true > \"$d/check.sh\"; : > \"$ROOT/weakened\"; }
  done
  sleep 0.01
done",
    );
    let root = repo.root().display().to_string();
    // The test of the first task waits until its check is weaker.
    let test = format!(
        "[ ! -e broken ] || {{ n=0; until [ -e '{root}/weakened' ] || [ $n = 3000 ]; do n=$((n+1)); sleep 0.01; done; sh check.sh; e=$?; : > '{root}/tested'; exit $e; }}"
    );
    repo.git(["config", "arborist.test-command", &test]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--max-retries", "1", "--keep-going"]).exits(1);
    assert!(repo.root().join("weakened").exists());
    let files = repo.git(["ls-tree", "--name-only", "main"]).answer();
    assert!(files.contains("T002.txt") && !files.contains("broken"), "{files}");
    assert_eq!(repo.git(["show", "main:check.sh"]).answer(), "[ ! -e broken ]");
}

/// `.gitattributes` says how a file is encoded, and the file is not: git refuses to take in anything.
const UNREADABLE: &str = "printf '*.wide working-tree-encoding=UTF-16\\n' > .gitattributes; printf a > new.wide; printf b > kept.wide";

#[test]
fn a_file_that_git_cannot_add_fails_the_attempt_and_not_the_run() {
    for place in PLACES {
        let repo = repo(&format!(
            "[ $ARBORIST_TASK = T002 ] || {{ if [ -e \"$ROOT/once\" ]; then rm .gitattributes; printf b > kept.wide; else : > \"$ROOT/once\"; {UNREADABLE}; fi; }}"
        ));
        repo.write("kept.wide", "plain\n");
        repo.commit("a file\n");
        repo.arborist(place).succeeds();
        let log = subjects(&repo);
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{place:?}: {log}");
        assert!(log.contains("@T002@complete)"), "{place:?}: {log}");
        let why = repo
            .git(["log", "--format=%B", "--fixed-strings", "--grep=@T001@implement-fail)", "main"])
            .answer();
        assert!(why.contains(".wide") && !why.contains("Arborist-Interrupted"), "{place:?}: {why}");
        assert_eq!(repo.git(["show", "main:kept.wide"]).answer(), "b", "{place:?}");
    }
}

#[test]
fn a_file_that_git_can_never_add_uses_up_all_attempts() {
    for place in PLACES {
        let repo = repo(&format!("{UNREADABLE}; echo \"$prompt\" | wc -c > count"));
        repo.arborist(place.iter().chain(&["--max-retries", "2"])).exits(1);
        let log = repo.git(["log", "--format=%s", "--all"]).answer();
        assert!(log.contains("@T001@failed)"), "{place:?}: {log}");
    }
}

/// Files of a task that git refuses to add, each with the settings that make it refuse.
const REFUSED: [(&str, &[[&str; 2]]); 4] = [
    (
        "printf '*.wide working-tree-encoding=UTF-16\\n' > .gitattributes; printf '\\300\\301bad' > T001.wide",
        &[],
    ),
    ("printf 'a\\r\\nb\\n' > T001.txt", &[["core.safecrlf", "true"], ["core.autocrlf", "input"]]),
    (
        "printf '*.bin filter=need\\n' > .gitattributes; echo x > 'T001 x.bin'",
        &[["filter.need.clean", "false"], ["filter.need.required", "true"]],
    ),
    // More files than one, and a tracked one.
    (
        "for n in 1 2 3 4 5 6 7 8 9; do printf 'a\\r\\nb\\n' > d$n; done; printf 'a\\r\\nb\\n' > check.sh",
        &[["core.safecrlf", "true"], ["core.autocrlf", "input"]],
    ),
];

#[test]
fn files_of_a_failed_task_that_git_cannot_add_are_kept_and_the_next_task_starts() {
    for ((deed, settings), place) in pairs(&REFUSED, &PLACES) {
        let repo = repo(&format!("[ $ARBORIST_TASK = T002 ] || {{ {deed}; }}"));
        repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
        repo.commit("independent tasks\n");
        for [key, value] in settings {
            repo.git(["config", key, value]).succeeds();
        }
        let options = ["--max-retries", "2", "--keep-going"];
        let said = repo.arborist(place.iter().chain(&options)).exits(1).err("git cannot add");
        assert!(subjects(&repo).contains("@T002@complete)"), "{deed} {place:?}: {}", said.stderr());
        let kept = repo.path(".git/arborist-aside/1");
        assert!(said.stderr().contains(&kept.display().to_string()), "{}", said.stderr());
        assert!(fs::read_dir(&kept).unwrap().count() > 0);
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{deed} {place:?}");
        assert_eq!(repo.read("check.sh"), "echo honest\n");
        // The same again, and then a task that heeds the reason.
        let options = ["--retry-failed", "--max-retries", "1", "--keep-going"];
        repo.arborist(place.iter().chain(&options)).exits(1).err("git cannot add");
        repo.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo a > T001.md ;; esac");
        repo.arborist(place.iter().chain(&["--retry-failed"])).succeeds();
    }
}

#[test]
fn files_that_git_cannot_add_do_not_stop_the_run_after_a_crash() {
    let repo = repo(&format!(
        "[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {UNREADABLE}; kill -9 $PPID; sleep 60; }}; rm -f .gitattributes"
    ));
    let _killed = repo.arborist(["gardener"]).code();
    let said = repo.arborist(["gardener"]).succeeds().err("was interrupted");
    assert!(said.stderr().contains("arborist-aside/1"), "{}", said.stderr());
    assert!(repo.path(".git/arborist-aside/1/new.wide").exists());
}

#[test]
fn a_broken_index_or_stale_lock_left_by_an_agent_is_repaired_and_reported() {
    for (deed, words) in [
        ("echo junk > .git/index", ".git/index' was missing or damaged"),
        ("rm .git/index", "T001 attempt 1: .git/index was changed while an agent or a command ran"),
        (": > .git/packed-refs.lock", ".git/packed-refs.lock'"),
    ] {
        let repo = repo(&format!("[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {deed}; }}"));
        repo.arborist(["gardener"]).succeeds().err(words);
        assert!(!repo.path(".git/packed-refs.lock").exists());
    }
}

#[test]
fn an_edit_of_the_user_survives_repeated_forging_of_the_index_during_landings() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    repo.write("check.sh", "echo honest\n");
    repo.commit("a plan\n");
    fs::copy(repo.path("check.sh"), repo.root().join("honest")).unwrap();
    repo.agent(&format!(
        r#"{FORGE}
case "$prompt" in Review*) echo APPROVED; exit ;; esac
if [ $ARBORIST_TASK = T001 ]; then
  while [ ! -e "$ROOT/forged" ]; do sleep 0.02; done
  echo 'echo landed' > check.sh; exit
fi
echo b > T002.txt
cd "$ROOT/repo"
cp .git/index "$ROOT/index.before"
GIT_INDEX_FILE="$ROOT/index.before" forge check.sh "$ROOT/honest"
mv "$ROOT/index.before" "$ROOT/forged"
is_over() {{ git rev-parse -q --verify refs/arborist/landing/main > /dev/null || git log --format=%s main | grep -q T001@merge; }}
is_queued() {{ git rev-parse -q --verify refs/arborist/queue/tickets/main/T001 > /dev/null; }}
tries=0 after=0
while ! is_over && [ $tries -lt 300 ] && [ $after -lt 60 ]; do
  for n in 1 2 3 4 5 6 7 8 9 10; do cp "$ROOT/forged" "$ROOT/copy"; mv "$ROOT/copy" .git/index; done
  tries=$((tries+1))
  is_queued && after=$((after+1))
done"#
    ));
    repo.write("check.sh", "echo my own edit\n");
    let _ = repo.arborist(["gardener", "--jobs", "2"]);
    assert_eq!(repo.read("check.sh"), "echo my own edit\n");
}
