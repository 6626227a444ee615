//! An agent can write to the configuration of its repository at any moment. While it runs, git obeys the settings that were
//! there before it began.

use std::fs;

use arborist_testkit::{Run, TestRepo};

use crate::turn_scripts;

// Every git that the driver starts has ARBORIST_DRIVER in its environment. Agents run git, too, and theirs obeys their filter.

/// `canary DEED`: sets a filter for all text files that leaves a trace, does something, and takes the filter away again, so
/// that nobody finds it afterwards.
const CANARY: &str = r#"
canary() {
  cp "$(git rev-parse --git-common-dir)/config" "$ROOT/config.before"
  config=$(git rev-parse --path-format=absolute --git-common-dir)/config
  attributes=$(git rev-parse --path-format=absolute --git-common-dir)/info/attributes
  echo '*.txt filter=evil' > "$attributes"
  git config filter.evil.clean "[ -z \"\$ARBORIST_DRIVER\" ] || touch '$ROOT/ran'; cat"
  git config filter.evil.smudge "[ -z \"\$ARBORIST_DRIVER\" ] || touch '$ROOT/ran'; cat"
  "$@"
  cat "$ROOT/config.before" > "$config"
  rm "$attributes"
}
"#;

fn ran(repo: &TestRepo) -> bool {
    repo.root().join("ran").exists()
}

#[test]
fn work_saved_while_an_agent_runs_passes_no_filter_set_by_the_agent() {
    for place in [&["gardener"][..], &["gardener", "--isolate"]] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 write\n");
        repo.commit("a plan\n");
        repo.git(["config", "arborist.worktree.save-every", "1"]).succeeds();
        repo.agent(&format!(
            r#"{CANARY}
saved() {{ git show refs/arborist/wip/main/T001/tree:T001.txt > "$ROOT/saved" 2>/dev/null && [ -s "$ROOT/saved" ]; }}
waits() {{ tries=0; while ! saved && [ $tries -lt 2400 ]; do sleep 0.05; tries=$((tries+1)); done; }}
case "$prompt" in Review*) echo APPROVED; exit ;; esac
echo half > T001.txt
canary waits
echo whole > T001.txt"#
        ));
        drop(repo.arborist(place));
        assert_eq!(fs::read_to_string(repo.root().join("saved")).unwrap(), "half\n", "{place:?}");
        assert!(!ran(&repo), "{place:?}");
    }
}

#[test]
fn turn_commits_pass_no_filter_set_by_the_agent() {
    // It is set as soon as the turn has ended, and again and again: what is put back when the turn is looked at is there
    // again when git takes in the files.
    let repo = turn_scripts::repo(
        "claude",
        &format!(
            r#"{CANARY}
sets() {{ for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  echo '*.txt filter=evil' > .git/info/attributes; cp "$ROOT/evil" .git/config; sleep 0.005; done; }}
opens
cp .git/config "$ROOT/evil"; git config -f "$ROOT/evil" filter.evil.clean "[ -z \"\$ARBORIST_DRIVER\" ] || touch '$ROOT/ran'; cat"
for turn in 1 2 3; do
  calls $turn work; echo $turn > T$turn.txt
  sets & setter=$!
  answers $turn; wait $setter
done
ends done"#
        ),
    );
    repo.git(["config", "arborist.max-retries", "1"]).succeeds();
    repo.arborist(["gardener"]).exits(1);
    assert!(!ran(&repo));
    assert_eq!(repo.git(["config", "filter.evil.clean"]).code(), 1, "it is gone");
}

#[test]
fn landings_and_other_lanes_pass_no_filter_set_by_a_running_agent() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    repo.write(".gitattributes", "*.txt filter=evil\n");
    repo.commit("a plan\n");
    repo.agent(
        r#"
case "$prompt" in Review*) echo APPROVED; exit ;; esac
common=$(git rev-parse --path-format=absolute --git-common-dir)
landed() { git cat-file -e main:T001.txt 2>/dev/null; }
if [ $ARBORIST_TASK = T001 ]; then
  while [ ! -e "$ROOT/set" ]; do sleep 0.01; done
  echo a > T001.txt; exit
fi
cp "$common/config" "$ROOT/config.new"
git config -f "$ROOT/config.new" filter.evil.clean "[ -z \"\$ARBORIST_DRIVER\" ] || touch '$ROOT/ran'; cat"
git config -f "$ROOT/config.new" filter.evil.smudge "[ -z \"\$ARBORIST_DRIVER\" ] || touch '$ROOT/ran'; cat"
mv "$ROOT/config.new" "$ROOT/evil"
cat "$ROOT/evil" > "$common/config"; touch "$ROOT/set"
tries=0; while ! landed && [ $tries -lt 300 ]; do cat "$ROOT/evil" > "$common/config"; tries=$((tries+1)); done
echo b > T002.txt"#,
    );
    repo.git(["config", "arborist.max-retries", "1"]).succeeds();
    // Both were at work while it was changed.
    repo.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(1);
    assert!(!ran(&repo));
}

/// All places that git reads settings from, and values that need quotes.
fn set_users_filter(repo: &TestRepo) {
    let include = repo.home().join("filters.inc");
    fs::write(
        &include,
        "[filter \"up \\\"per\"]\n\tclean = \"sed \\\"s/a/\\\\\\\\\\\\\\\\A/; s/#/;/\\\"\" ; a comment\n",
    )
    .unwrap();
    repo.git(["config", "--global", "include.path", include.to_str().unwrap()]).succeeds();
    repo.git(["config", "filter.loud.clean", "tr a-z A-Z"]).succeeds();
    repo.git(["config", "filter.loud.smudge", "cat"]).succeeds();
    repo.git(["config", "filter.loud.required", "true"]).succeeds();
    repo.git(["config", "extensions.worktreeConfig", "true"]).succeeds();
    repo.git(["config", "--worktree", "filter.own.clean", "rev"]).succeeds();
}

#[test]
fn filters_and_ignore_rules_of_the_user_still_apply_during_a_run() {
    let repo = TestRepo::init();
    set_users_filter(&repo);
    fs::create_dir_all(repo.home().join(".config/git")).unwrap();
    fs::write(repo.home().join(".config/git/ignore"), "*.swp\n").unwrap();
    fs::write(repo.home().join(".config/git/attributes"), "*.loud filter=loud\n").unwrap();
    repo.write(".gitattributes", "*.own filter=own\n");
    repo.write("tasks.md", "- [ ] T001 write\n");
    repo.commit("a plan\n");
    fs::write(repo.path(".git/info/exclude"), "secret\n").unwrap();
    repo.agent(
        r#"
case "$prompt" in Review*) echo APPROVED; exit ;; esac
for name in a.loud a.own a.swp secret a.txt; do echo 'abc#' > $name; done"#,
    );
    repo.arborist(["gardener"]).succeeds();
    let files = repo.git(["ls-tree", "--name-only", "main"]).answer();
    assert_eq!(files, ".gitattributes\na.loud\na.own\na.txt\nspec\ntasks.md");
    let at = |path: &str| repo.git(["cat-file", "blob", &format!("main:{path}")]).answer();
    assert_eq!((at("a.loud"), at("a.own"), at("a.txt")), ("ABC#".into(), "#cba".into(), "abc#".into()));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn copies_of_git_settings_are_removed_after_the_run() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 write\n");
    repo.commit("a plan\n");
    let copies = repo.home().join(".local/state/git-arborist/settings");
    // What a killed process left; no process has this number.
    fs::create_dir_all(copies.join("4194305-0/info")).unwrap();
    repo.agent("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho a > a.txt; ls \"$HOME/.local/state/git-arborist/settings\" > \"$ROOT/during\"");
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 0);
    let during = fs::read_to_string(repo.root().join("during")).unwrap();
    assert!(!during.trim().is_empty() && !during.contains("4194305"), "{during}");
}

/// A git that finds a filter in the copy of the settings, once the agent has worked. It is gone again when git has ended.
const MISLED: &str = r#"#!/bin/sh
root=$(dirname "$(dirname "$0")")
PATH=$(printf %s "$PATH" | sed "s|$root/bin:||"); export PATH
case "$GIT_COMMON_DIR" in */settings/*) ;; *) exec git "$@" ;; esac
case " $* " in *" add "* | *" update-index "* | *" hash-object "*) ;; *) exec git "$@" ;; esac
[ -e "$root/worked" ] && mkdir "$root/once" 2>/dev/null || exec git "$@"
mv "$GIT_COMMON_DIR/config" "$root/config"; cp "$root/config" "$GIT_COMMON_DIR/config"
printf '[filter "x"]\n\tclean = "cat > /dev/null; echo evil"\n' >> "$GIT_COMMON_DIR/config"
git "$@"; code=$?
mv "$root/config" "$GIT_COMMON_DIR/config"; exit $code
"#;

#[test]
fn results_of_git_are_discarded_if_the_copy_of_its_settings_was_replaced() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 write\n");
    repo.write(".gitattributes", "*.txt filter=x\n");
    repo.commit("a plan\n");
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho good > a.txt; touch \"$ROOT/worked\"; echo done",
    );
    repo.plant("git", MISLED);
    let run = || {
        let mut command = repo.command("git-arborist-gardener", &repo.path(""));
        Run::of(command.args(["--test-command", "true"]), b"")
    };
    let first = run();
    assert!(repo.root().join("once").exists(), "{}", first.report());
    first.exits(128);
    let all = repo.git(["log", "--all", "--format=%H"]).answer();
    for commit in all.lines() {
        let files = repo.git(["grep", "-l", "evil", commit]);
        assert_eq!(files.code(), 1, "{}", files.report());
    }
    run().succeeds();
    assert_eq!(repo.git(["show", "main:a.txt"]).answer(), "good");
}
