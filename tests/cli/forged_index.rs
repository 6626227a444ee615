//! git believes what an index says about files, and whoever runs in a worktree can write its index. What is committed, reviewed,
//! tested and gated is what lies in files, whatever an index says.

use std::fs;

use arborist_testkit::Garden;

use crate::orchard::Orchard;

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
fn garden(deed: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n");
    garden.write("check.sh", "echo honest\n");
    garden.commit("a plan\n");
    fs::copy(garden.path("check.sh"), garden.root().join("honest")).unwrap();
    garden.agent(&format!(
        "{FORGE}
case \"$prompt\" in Review*) cat check.sh >> \"$ROOT/seen\"; echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\"
{deed}
echo done"
    ));
    garden
}

fn noted(garden: &Garden, name: &str) -> String {
    fs::read_to_string(garden.root().join(name)).unwrap_or_default()
}

fn subjects(garden: &Garden) -> String {
    garden.git(["log", "--format=%s", "main"]).answer()
}

const PLACES: [&[&str]; 2] = [&["gardener"], &["gardener", "--isolate"]];

#[test]
fn what_lies_in_a_file_is_committed_and_reviewed_whatever_the_index_says() {
    // The same size as before, so that only the times could tell.
    let tracked =
        "[ $ARBORIST_TASK = T001 ] && echo 'echo change' > check.sh && forge check.sh \"$ROOT/honest\"";
    let new = "[ $ARBORIST_TASK = T001 ] && { echo good > new; echo evil > \"$ROOT/evil\"; forge new \"$ROOT/evil\"; }";
    let back =
        "[ $ARBORIST_TASK = T002 ] && { cp \"$ROOT/honest\" check.sh; forge check.sh \"$ROOT/honest\"; }";
    for place in PLACES {
        let garden = garden(&format!("{tracked}; {new}; {back}"));
        garden.arborist(place).succeeds();
        let at = |subject: &str, path: &str| {
            let commit =
                garden.git(["log", "--format=%H", "--fixed-strings", "--grep", subject, "main"]).answer();
            garden.git(["show", &format!("{}:{path}", commit.lines().next().unwrap())]).answer()
        };
        assert_eq!(at("@T001@implement-pass)", "check.sh"), "echo change", "{place:?}");
        assert_eq!(at("@T001@implement-pass)", "new"), "good", "{place:?}");
        assert_eq!(noted(&garden, "seen"), "echo change\necho honest\n", "{place:?}");
        assert_eq!(garden.git(["show", "main:check.sh"]).answer(), "echo honest", "{place:?}");
        assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{place:?}");
    }
}

#[test]
fn a_file_that_git_is_told_not_to_look_at_is_committed_too() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        for place in PLACES {
            let garden = garden(&format!(
                "[ $ARBORIST_TASK = T001 ] && {{ git update-index {mark} check.sh; echo 'echo change' > check.sh; }}"
            ));
            garden.arborist(place).succeeds();
            assert_eq!(garden.git(["show", "main:check.sh"]).answer(), "echo change", "{mark} {place:?}");
            assert_eq!(noted(&garden, "seen"), "echo change\necho change\n", "{mark} {place:?}");
        }
    }
}

#[test]
fn reviewers_and_gates_see_the_commit_whatever_the_indexes_of_their_worktrees_say() {
    for hide in [
        "forge check.sh \"$ROOT/honest\"",
        "git update-index --skip-worktree check.sh",
        "git update-index --assume-unchanged check.sh",
        "git update-index --split-index; forge check.sh \"$ROOT/honest\"",
        "forge check.sh \"$ROOT/honest\"; git update-index --index-version 4",
    ] {
        let garden = garden(&format!(
            "[ $ARBORIST_TASK = T001 ] || for place in gate-1 review-1; do
               cd \"$ROOT/repo.arborist/$place\" || exit 1
               echo 'echo forged' > check.sh; {hide}
             done"
        ));
        let command = format!("cat check.sh >> '{}/gated'", garden.root().display());
        garden.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
        garden.arborist(["gardener", "--isolate"]).succeeds();
        assert_eq!(noted(&garden, "seen"), "echo honest\necho honest\n", "{hide}");
        assert_eq!(noted(&garden, "gated"), "echo honest\necho honest\n", "{hide}");
    }
}

#[test]
fn a_lane_that_is_used_again_holds_its_commit_whatever_its_index_says() {
    let garden = garden("cat check.sh >> \"$ROOT/found\"");
    // The gate of the first task changes the lane that the second one gets.
    let gate = format!(
        "ROOT='{}'; {FORGE} cd \"$ROOT/repo.arborist/lane-1\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"",
        garden.root().display()
    );
    garden.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    garden.arborist(["gardener", "--isolate"]).succeeds();
    assert_eq!(noted(&garden, "found"), "echo honest\necho honest\n");
    assert_eq!(garden.git(["show", "main:check.sh"]).answer(), "echo honest");
}

#[test]
fn a_test_in_a_lane_that_changes_tracked_files_has_not_tested_the_commit() {
    let garden = garden("cat check.sh >> \"$ROOT/found\"");
    let test = format!(
        "ROOT='{}'; {FORGE} [ -n \"$ARBORIST_TASK\" ] && [ ! -e \"$ROOT/once\" ] || exit 0; : > \"$ROOT/once\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"; git reset -q",
        garden.root().display()
    );
    garden.git(["config", "arborist.test-command", &test]).succeeds();
    garden.arborist(["gardener", "--isolate"]).succeeds();
    assert_eq!(noted(&garden, "found"), "echo honest\n".repeat(3), "the second attempt finds it as it was");
    let log = garden.git(["log", "--format=%s", "main"]).answer();
    assert_eq!(log.matches("@test-fail)").count(), 1, "{log}");
    assert!(log.contains("@T001@test-fail)"), "{log}");
}

#[test]
fn a_test_in_the_checkout_that_changes_tracked_files_has_not_tested_the_commit() {
    let garden = garden(":");
    let test = format!(
        "ROOT='{}'; {FORGE} [ \"$ARBORIST_TASK\" = T001 ] && [ ! -e \"$ROOT/once\" ] || exit 0; : > \"$ROOT/once\"; echo 'echo forged' > check.sh; forge check.sh \"$ROOT/honest\"",
        garden.root().display()
    );
    garden.git(["config", "arborist.test-command", &test]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(garden.git(["status", "--porcelain"]).stdout(), "");
    assert_eq!(garden.git(["show", "main:check.sh"]).answer(), "echo honest");
    assert_eq!(noted(&garden, "seen"), "echo honest\necho honest\n");
    let log = garden.git(["log", "--format=%s", "main"]).answer();
    assert_eq!(log.matches("@test-fail)").count(), 1, "{log}");
    let kept = garden.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert!(
        kept.lines()
            .any(|name| garden.git(["show", &format!("{name}:check.sh")]).stdout() == "echo forged\n"),
        "{kept}"
    );
}

#[test]
fn an_index_that_is_gone_or_broken_is_the_users_again_and_the_run_goes_on() {
    for deed in ["rm .git/index", "echo junk > .git/index", ": > .git/index"] {
        let garden = garden(&format!("[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {deed}; }}"));
        garden.write(".gitignore", "kept.log\n");
        garden.write("kept.log", "tracked all the same\n");
        garden.git(["add", "-f", "kept.log"]).succeeds();
        garden.commit("an ignored file\n");
        garden.arborist(["gardener"]).succeeds();
        assert_eq!(garden.git(["show", "main:kept.log"]).answer(), "tracked all the same", "{deed}");
        assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{deed}");
        assert!(subjects(&garden).contains("@T002@complete)"), "{deed}");
    }
}

#[test]
fn a_landing_goes_over_no_change_of_the_user_that_an_index_hides() {
    let garden = garden(
        "[ $ARBORIST_TASK = T002 ] || {
           echo 'echo landed' > check.sh; cd \"$ROOT/repo\"
           echo 'echo edited' > check.sh; forge check.sh \"$ROOT/honest\"
         }",
    );
    garden.arborist(["gardener", "--isolate"]).exits(2);
    assert_eq!(garden.read("check.sh"), "echo edited\n");
    assert_eq!(
        garden.git(["show", "main:check.sh"]).answer(),
        "echo honest",
        "the landing waits for the user"
    );
}

/// A checkout with one file of the user's staged in one version and changed to another, and one staged as it lies there.
fn dirty(deed: &str) -> Garden {
    let garden = garden(&format!("[ -e \"$ROOT/once\" ] || {{ : > \"$ROOT/once\"; {deed}; }}"));
    garden.write("both", "committed\n");
    garden.write("edited", "committed\n");
    garden.commit("files of the user\n");
    for (file, text) in [("both", "staged\n"), ("new", "staged\n"), ("whole", "staged\n")] {
        garden.write(file, text);
        garden.git(["add", file]).succeeds();
    }
    garden.write("both", "in the worktree\n");
    garden.write("new", "in the worktree\n");
    garden.write("edited", "in the worktree\n");
    garden.write("intended", "not staged\n");
    garden.git(["add", "-N", "intended"]).succeeds();
    garden
}

fn state(garden: &Garden) -> (String, String, Vec<String>) {
    let staged = garden.git(["ls-files", "--stage", "both", "new", "whole", "edited", "intended"]).answer();
    let status = garden.git(["status", "--porcelain", "both", "new", "whole", "edited", "intended"]).stdout();
    (staged, status, ["both", "new", "whole", "edited", "intended"].map(|file| garden.read(file)).to_vec())
}

#[test]
fn what_the_user_has_staged_is_staged_again_whatever_an_agent_does_to_the_index() {
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
        let garden = dirty(deed);
        let before = state(&garden);
        let start = garden.git(["rev-parse", "HEAD"]).answer();
        garden.arborist(["gardener", "--allow-dirty"]).succeeds();
        assert_eq!(state(&garden), before, "{deed}");
        assert!(subjects(&garden).contains("@T002@complete)"), "{deed}");
        let committed = garden.git(["diff", "--name-only", &start, "HEAD"]).answer();
        assert!(
            !committed.lines().any(|path| ["both", "new", "whole", "edited"].contains(&path)),
            "{committed}"
        );
    }
}

#[test]
fn what_the_user_has_staged_is_staged_again_after_a_crash() {
    let garden = dirty("git reset -q; kill -9 $PPID; sleep 60");
    garden.git(["rm", "-q", "--cached", "intended"]).succeeds();
    let before = state(&garden);
    let _killed = garden.arborist(["gardener", "--allow-dirty"]).code();
    assert_ne!(state(&garden), before);
    garden.arborist(["gardener", "--allow-dirty"]).succeeds();
    let staged = |file: &str| garden.git(["show", &format!(":{file}")]).answer();
    assert_eq!((staged("both"), staged("new")), ("staged".into(), "staged".into()));
    assert_eq!(state(&garden).2, before.2);
}

#[test]
fn what_was_staged_meanwhile_and_is_nowhere_else_is_kept() {
    let garden = dirty(
        "echo precious > \"$ROOT/text\"; git update-index --cacheinfo \"100644,$(git hash-object -w \"$ROOT/text\"),both\"",
    );
    let before = state(&garden);
    garden.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(state(&garden), before);
    let kept = garden.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(garden.git(["show", &format!("{kept}:both")]).answer(), "precious");
}

#[test]
fn a_gate_that_ran_on_other_files_than_those_of_the_commit_lands_nothing() {
    for gate in [
        "echo weaker > T1.txt",
        "rm T1.txt",
        "echo weaker > T1.txt; git add -A",
        "rm T1.txt; git rm -q --cached T1.txt",
    ] {
        let orchard = Orchard::grown(&["T1"]);
        let main = orchard.git(["rev-parse", "main"]).answer();
        let tracked = orchard.git(["ls-tree", "-r", "--name-only", "arborist/task/main/T1"]).answer();
        let file = tracked.lines().find(|path| path.contains("T1")).unwrap().to_owned();
        let command = gate.replace("T1.txt", &file);
        orchard.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
        orchard.merge(&["T1"]).exits(2).err(&file);
        assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main, "{gate}");
        // New files are what builds make.
        orchard.git(["config", "arborist.merge.gates.check.command", "echo x > built"]).succeeds();
        orchard.merge(&["run"]).succeeds();
        assert_ne!(orchard.git(["rev-parse", "main"]).answer(), main, "{gate}");
    }
}

#[test]
fn a_set_up_of_the_users_may_change_tracked_files() {
    let orchard = Orchard::grown(&["T1"]);
    orchard
        .git([
            "config",
            "arborist.worktree.setup",
            "echo x >> file-of-set-up; ls | while read f; do [ -d \"$f\" ] || echo more >> \"$f\"; done",
        ])
        .succeeds();
    orchard.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    orchard.merge(&["T1"]).succeeds();
}

#[test]
fn what_another_agent_writes_into_the_worktrees_of_a_task_lands_nothing_red() {
    let garden = Garden::sprout();
    garden.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    garden.write("check.sh", "[ ! -e broken ]\n");
    garden.commit("a plan\n");
    // The second agent weakens the check wherever the first one's work is tested, until that is over.
    garden.agent(
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
    let root = garden.root().display().to_string();
    // The test of the first task waits until its check is weaker.
    let test = format!(
        "[ ! -e broken ] || {{ n=0; until [ -e '{root}/weakened' ] || [ $n = 3000 ]; do n=$((n+1)); sleep 0.01; done; sh check.sh; e=$?; : > '{root}/tested'; exit $e; }}"
    );
    garden.git(["config", "arborist.test-command", &test]).succeeds();
    garden.arborist(["gardener", "--jobs", "2", "--max-retries", "1", "--keep-going"]).exits(1);
    assert!(garden.root().join("weakened").exists());
    let files = garden.git(["ls-tree", "--name-only", "main"]).answer();
    assert!(files.contains("T002.txt") && !files.contains("broken"), "{files}");
    assert_eq!(garden.git(["show", "main:check.sh"]).answer(), "[ ! -e broken ]");
}

/// `.gitattributes` says how a file is encoded, and the file is not: git refuses to take in anything.
const UNREADABLE: &str = "printf '*.wide working-tree-encoding=UTF-16\\n' > .gitattributes; printf a > new.wide; printf b > kept.wide";

#[test]
fn a_file_that_git_cannot_take_in_fails_the_attempt_and_not_the_run() {
    for place in PLACES {
        let garden = garden(&format!(
            "[ $ARBORIST_TASK = T002 ] || {{ if [ -e \"$ROOT/once\" ]; then rm new.wide .gitattributes; else : > \"$ROOT/once\"; {UNREADABLE}; fi; }}"
        ));
        garden.write("kept.wide", "plain\n");
        garden.commit("a file\n");
        garden.arborist(place).succeeds();
        let log = subjects(&garden);
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{place:?}: {log}");
        assert!(log.contains("@T002@complete)"), "{place:?}: {log}");
        let why = garden
            .git(["log", "--format=%B", "--fixed-strings", "--grep=@T001@implement-fail)", "main"])
            .answer();
        assert!(why.contains(".wide") && !why.contains("Arborist-Interrupted"), "{place:?}: {why}");
        assert_eq!(garden.git(["show", "main:kept.wide"]).answer(), "b", "{place:?}");
    }
}

#[test]
fn a_file_that_git_can_never_take_in_uses_up_the_attempts() {
    for place in PLACES {
        let garden = garden(&format!("{UNREADABLE}; echo \"$prompt\" | wc -c > count"));
        garden.arborist(place.iter().chain(&["--max-retries", "2"])).exits(1);
        let log = garden.git(["log", "--format=%s", "--all"]).answer();
        assert!(log.contains("@T001@failed)"), "{place:?}: {log}");
    }
}

#[test]
fn an_edit_of_the_users_survives_an_index_that_is_forged_again_and_again_while_tasks_land() {
    let garden = Garden::sprout();
    garden.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    garden.write("check.sh", "echo honest\n");
    garden.commit("a plan\n");
    fs::copy(garden.path("check.sh"), garden.root().join("honest")).unwrap();
    garden.agent(&format!(
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
tries=0
while ! is_over && [ $tries -lt 300 ]; do
  for n in 1 2 3 4 5 6 7 8 9 10; do cp "$ROOT/forged" "$ROOT/copy"; mv "$ROOT/copy" .git/index; done
  tries=$((tries+1))
done"#
    ));
    garden.write("check.sh", "echo my own edit\n");
    let _ = garden.arborist(["gardener", "--jobs", "2"]);
    assert_eq!(garden.read("check.sh"), "echo my own edit\n");
}
