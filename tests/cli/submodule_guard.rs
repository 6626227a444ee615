//! Repositories inside the repository: whatever an agent or a test puts in the place of a submodule, or beside it, no git of
//! the driver's runs a program that its settings name.

use std::fs;

use arborist_testkit::{TestRepo, pairs};

/// Gives the repository whose git directory is `$1` a filter for all files, which leaves a mark if it is run. The kit's own
/// look at the end of the agent would run it, too, so that is turned off.
const FILTER: &str = r#"
trap - EXIT
filter() {
  git config -f "$1/config" filter.mark.clean "touch '$ROOT/ran'; cat"
  mkdir -p "$1/info"; echo '* filter=mark' > "$1/info/attributes"
}
"#;

/// A repository with a submodule at `lib`, and an agent that does this once. `$module` is where the submodule's repository is.
fn repo(deed: &str) -> TestRepo {
    let agent = format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
{FILTER}
echo work >> work.txt
[ -e \"$ROOT/once\" ] && exit
touch \"$ROOT/once\"
module=$(git -C lib rev-parse --absolute-git-dir)
{{
{deed}
}} >&2
true"
    );
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", &agent);
    add_submodule(&repo);
    repo
}

fn add_submodule(repo: &TestRepo) {
    let origin = repo.root().join("origin");
    repo.git(["clone", "-q", ".", origin.to_str().unwrap()]).succeeds();
    repo.git(["config", "--global", "protocol.file.allow", "always"]).succeeds();
    repo.git(["submodule", "--quiet", "add", origin.to_str().unwrap(), "lib"]).succeeds();
    repo.commit("a submodule\n");
}

fn assert_nothing_ran(repo: &TestRepo, deed: &str) {
    assert!(!repo.root().join("ran").exists(), "a filter ran: {deed}");
}

const MODES: [&[&str]; 2] = [&["gardener"], &["gardener", "--isolate"]];

/// How the `.git` of the submodule is replaced.
const REPLACEMENTS: [&str; 4] = [
    "cp -r \"$module\" \"$ROOT/copy\"; rm lib/.git; mv \"$ROOT/copy\" lib/.git; filter lib/.git",
    "cp -r \"$module\" \"$ROOT/copy\"; filter \"$ROOT/copy\"; echo \"gitdir: $ROOT/copy\" > lib/.git",
    "cp -r \"$module\" \"$ROOT/copy\"; filter \"$ROOT/copy\"; rm lib/.git; ln -s \"$ROOT/copy\" lib/.git",
    // Taken out of the index, and changed inside.
    "git rm -q --cached lib; cp -r \"$module\" \"$ROOT/copy\"; rm lib/.git; mv \"$ROOT/copy\" lib/.git; filter lib/.git",
];

#[test]
fn the_git_file_of_a_submodule_is_restored_before_git_reads_it() {
    for (deed, args) in pairs(&REPLACEMENTS, &MODES) {
        let repo =
            repo(&format!("{deed}\ngit config -f \"$ROOT/copy/config\" --unset core.worktree; touch lib/*"));
        let before = fs::read(repo.path("lib/.git")).unwrap();
        repo.arborist(args.iter().chain(&["--max-retries", "2"])).succeeds();
        assert_nothing_ran(&repo, deed);
        assert_eq!(fs::read(repo.path("lib/.git")).unwrap(), before, "{deed}");
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("lib/.git was changed"), "{deed}: {body}");
    }
}

/// A new repository with a filter, in all the ways in which git may come to know of it.
const PLANTED: [&str; 4] = [
    "",
    "git add nested",
    "git add nested; git -c user.name=a -c user.email=a@b commit -qm mine",
    "git add nested; printf '[submodule \"nested\"]\\n\\tpath = nested\\n\\turl = ./nested\\n' >> .gitmodules; git add .gitmodules",
];

#[test]
fn a_repository_that_an_agent_creates_is_moved_away_before_git_reads_it() {
    for (how, args) in pairs(&PLANTED, &MODES) {
        let repo = repo(&format!(
            "git init -q nested; cp work.txt nested; git -C nested add -A; git -C nested -c user.name=a -c user.email=a@b commit -qm x
{how}
filter nested/.git; echo more >> nested/work.txt"
        ));
        repo.arborist(args.iter().chain(&["--max-retries", "2"])).succeeds();
        assert_nothing_ran(&repo, how);
        assert!(!repo.path("nested").exists(), "{how}");
        let tree = repo.git(["ls-tree", "-r", "HEAD"]).answer();
        assert!(!tree.contains("nested"), "{how}: {tree}");
    }
}

#[test]
fn a_repository_without_commits_is_moved_away_before_git_reads_it() {
    let repo = repo(
        "git init -q nested; echo x > nested/x; filter nested/.git
git init -q other; cp work.txt other; git -C other add -A; git -C other -c user.name=a -c user.email=a@b commit -qm x
filter other/.git; echo more >> other/work.txt",
    );
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    assert_nothing_ran(&repo, "unborn");
    assert!(!repo.path("nested").exists() && !repo.path("other").exists());
}

#[test]
fn a_repository_that_a_test_puts_in_place_of_a_submodule_runs_no_program() {
    for deed in [
        "cp -r .git/modules/lib lib/copy; rm lib/.git; mv lib/copy lib/.git; filter lib/.git",
        "git init -q nested; cp tasks.md nested; git -C nested add -A; git -C nested -c user.name=a -c user.email=a@b commit -qm x; git add nested; filter nested/.git; echo more >> nested/tasks.md",
    ] {
        let repo = repo("");
        // The first run is the baseline.
        let script = format!(
            "ROOT='{}'\n{FILTER}\n[ -e \"$ROOT/tested\" ] && exit 0\n[ -e work.txt ] || exit 0\ntouch \"$ROOT/tested\"\n{deed}\n",
            repo.root().display()
        );
        repo.write("test.sh", script);
        repo.commit("a test\n");
        repo.git(["config", "arborist.test-command", "sh test.sh"]).succeeds();
        let _ = repo.arborist(["gardener", "--max-retries", "3"]);
        assert!(repo.root().join("tested").exists(), "the test did not run");
        assert_nothing_ran(&repo, deed);
    }
}

#[test]
fn changes_in_a_submodule_of_a_submodule_are_detected() {
    let repo = repo("");
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo work >> work.txt
[ -e \"$ROOT/once\" ] && { git -C lib/inner checkout -q .; exit; }
touch \"$ROOT/once\"
echo changed >> lib/inner/tasks.md",
    );
    let origin = repo.root().join("origin");
    let outer = repo.root().join("outer");
    repo.git(["clone", "-q", origin.to_str().unwrap(), outer.to_str().unwrap()]).succeeds();
    repo.git_in(&outer, ["submodule", "--quiet", "add", origin.to_str().unwrap(), "inner"]).succeeds();
    repo.git_in(&outer, ["commit", "-qam", "inner"]).succeeds();
    repo.git_in(&repo.path("lib"), ["pull", "-q", outer.to_str().unwrap(), "main"]).succeeds();
    repo.git_in(&repo.path("lib"), ["submodule", "--quiet", "update", "--init"]).succeeds();
    repo.commit("with an inner one\n");
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds().matches_snapshot();
}

#[test]
fn a_submodule_whose_git_directory_is_in_the_worktree_keeps_it() {
    let repo = repo("");
    let inside = repo.path("old");
    let origin = repo.root().join("origin");
    repo.git(["clone", "-q", origin.to_str().unwrap(), inside.to_str().unwrap()]).succeeds();
    repo.git(["submodule", "--quiet", "add", origin.to_str().unwrap(), "old"]).succeeds();
    repo.commit("an old one\n");
    assert!(inside.join(".git").is_dir());
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo work >> work.txt
[ -e \"$ROOT/once\" ] && { git -C old checkout -q .; exit; }
touch \"$ROOT/once\"
echo changed >> old/tasks.md",
    );
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds().matches_snapshot();
    assert!(inside.join(".git").is_dir());
}

#[test]
fn paths_that_a_file_system_may_treat_as_dot_git_fail_the_attempt_and_never_land() {
    for args in MODES {
        let repo = repo(
            "hidden=$(printf '.g\\342\\200\\214it'); for folder in .GIT sub/.Git '.git ' git~1 \"$hidden\"; do mkdir -p \"$folder\"; echo x > \"$folder/config\"; echo y > \"$folder/other\"; done",
        );
        repo.arborist(args.iter().chain(&["--max-retries", "2"])).succeeds();
        let log = repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{log}");
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("a path that git refuses") && body.contains(".GIT"), "{body}");
        let tree = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
        assert!(tree.contains("work.txt") && !tree.contains("config"), "{tree}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    }
}

#[test]
fn submodule_settings_in_other_lanes_are_restored_before_files_are_written_there() {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 c (depends on T001, T002)\n\
         - [ ] T004 [P] d (depends on T003)\n- [ ] T005 [P] e (depends on T003)\n",
        &format!(
            "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
{FILTER}
echo $ARBORIST_TASK > $ARBORIST_TASK.txt
touch \"$ROOT/at-$ARBORIST_TASK\"
other() {{ i=0; while [ $i -lt 6000 ] && [ ! -e \"$ROOT/at-$1\" ]; do sleep 0.02; i=$((i+1)); done; }}
case $ARBORIST_TASK in
  T001) other T002 ;; T002) other T001 ;; T004) other T005 ;; T005) other T004 ;;
  T003) [ -e \"$ROOT/once\" ] || for module in \"$ROOT\"/repo/.git/worktrees/lane-*/modules/lib; do
    echo \"$module\" >> \"$ROOT/once\"; filter \"$module\"
    cp -r \"$module\" \"${{module%lib}}new\"; touch \"$ROOT\"/repo.arborist/lane-*/lib/*
  done ;;
esac
true"
        ),
    );
    add_submodule(&repo);
    repo.arborist(["gardener", "--jobs", "2", "--test-command", "true"]).succeeds();
    let planted = fs::read_to_string(repo.root().join("once")).unwrap();
    assert_eq!(planted.lines().count(), 2, "{planted}");
    assert_nothing_ran(&repo, "in another lane");
    for module in planted.lines() {
        assert!(!fs::read_to_string(format!("{module}/config")).unwrap().contains("mark"), "{module}");
        assert!(!std::path::Path::new(module).with_file_name("new").exists(), "{module}");
    }
    assert!(repo.git(["log", "--all", "--format=%s"]).answer().contains("@T003@implement-fail"));
}

/// What an agent in a lane does to the user's checkouts, `$M` and `$ROOT/mine`.
const IN_USERS_CHECKOUTS: [&str; 3] = [
    "echo \"gitdir: $ROOT/evil/.git\" > \"$M/lib/.git\"",
    "echo \"gitdir: $ROOT/evil/.git\" > \"$ROOT/mine/.git\"",
    "mv \"$ROOT/evil\" \"$M/zzz\"; C=$(git -C \"$M/zzz\" rev-parse HEAD)
git -C \"$M\" update-index --add --cacheinfo 160000,$C,zzz",
];

#[test]
fn git_files_and_links_in_the_users_checkouts_are_restored() {
    for deed in IN_USERS_CHECKOUTS {
        let repo = repo(&format!(
            "unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE; M=$ROOT/repo
git clone -q \"$M\" \"$ROOT/evil\"; git -C \"$ROOT/evil\" config core.fsmonitor \"touch '$ROOT/ran'; true\"
{deed}"
        ));
        let mine = repo.root().join("mine");
        repo.git(["worktree", "add", "-q", mine.to_str().unwrap()]).succeeds();
        repo.arborist(["gardener", "--isolate", "--test-command", "true"]).succeeds();
        let log = repo.git(["log", "--all", "--format=%s"]).answer();
        assert!(log.contains("@T001@implement-fail)"), "{deed}: {log}");
        let _ = repo.git(["status"]);
        let _ = repo.git_in(&mine, ["status"]);
        assert_nothing_ran(&repo, deed);
    }
}

#[test]
fn a_submodule_that_a_child_process_adds_to_the_index_is_removed_and_reported() {
    let add =
        |path: &str| format!("git update-index --add --cacheinfo \"160000,$(git rev-parse HEAD),{path}\"");
    let evil =
        "git init -q vendor/new; git -C vendor/new config core.fsmonitor 'touch \"$HOME/planted\"; false'";
    let deeds = [
        ("vendor/new", format!("{evil}; {}", add("vendor/new"))),
        ("vendor/plain", add("vendor/plain")),
        ("vendor/none", add("vendor/none")),
        ("src/none", add("src/none")),
    ];
    // The agent does it, or its test.
    for ((path, deed), by_test) in pairs(&deeds, &[false, true]) {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", "");
        let once = format!("[ -e '{0}/once' ] || {{ touch '{0}/once'; {deed}; }}", repo.root().display());
        let work = if by_test { "" } else { once.as_str() };
        repo.agent(&format!(
            "trap - EXIT\ncase \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho work >> work.txt\n{work}\ntrue"
        ));
        repo.write(".gitignore", "/vendor/\n/spec/\n");
        repo.write("src/a.txt", "a\n");
        repo.commit("ignore vendor\n");
        repo.write("vendor/plain/mine.txt", "mine\n");
        // The first call of the test command is that before the first task.
        let test = format!("test ! -e work.txt || {{ {once}; }}");
        let test: &[&str] = if by_test { &["--test-command", &test] } else { &[] };
        let run = ["gardener", "--max-retries", "2"].into_iter().chain(test.iter().copied());
        repo.arborist(run).succeeds();
        let body = repo.git(["log", "--grep=-fail)", "--format=%B"]).answer();
        let words = format!("added a submodule to the index, which was removed again: {path}");
        assert!(body.contains(&words), "{by_test}: {deed}: {body}");
        assert!(!repo.git(["ls-files", "-s"]).answer().contains("160000"), "{by_test}: {deed}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{by_test}: {deed}");
        assert_eq!(repo.read("vendor/plain/mine.txt"), "mine\n");
        assert!(!repo.home().join("planted").exists(), "{by_test}: {deed}");
    }
}

/// Makes the folder `$1` a repository whose settings leave a mark as soon as git looks at its files.
const EVIL: &str = r#"
evil() {
  git init -q --template= "$1"; git -C "$1" -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
  git -C "$1" config core.fsmonitor "touch '$ROOT/ran'; false"
}
"#;

/// A repository with a submodule at `lib`, which has a tracked folder, an ignored one, and a submodule that is not checked out.
fn nested_repo(deed: &str) -> TestRepo {
    let repo = repo(&format!("{EVIL}{deed}"));
    let origin = repo.root().join("origin");
    let lib = repo.path("lib");
    fs::create_dir_all(lib.join("src")).unwrap();
    fs::write(lib.join("src/a"), "a\n").unwrap();
    fs::write(lib.join(".gitignore"), "build/\n").unwrap();
    repo.git_in(&lib, ["add", "-A"]).succeeds();
    repo.git_in(&lib, ["submodule", "--quiet", "add", origin.to_str().unwrap(), "deep"]).succeeds();
    repo.git_in(&lib, ["commit", "-qm", "folders"]).succeeds();
    repo.git_in(&lib, ["submodule", "--quiet", "deinit", "-f", "deep"]).succeeds();
    fs::remove_dir_all(repo.path(".git/modules/lib/modules")).unwrap();
    fs::create_dir_all(lib.join("build/old")).unwrap();
    repo.commit("folders in the submodule\n");
    repo
}

#[test]
fn a_repository_that_is_planted_in_a_submodule_is_moved_away() {
    let deeds = [
        ("evil lib/deep", "lib/deep"),
        ("evil lib/src", "lib/src"),
        ("evil lib/build", "lib/build"),
        ("evil lib/build/old", "lib/build/old"),
        ("evil lib/build/new", "lib/build/new"),
        // Harmless itself, but it has a submodule that is not.
        ("evil lib/build/x; git init -q --template= lib/build; git -C lib/build add -f x 2>&1", "lib/build"),
        ("evil spec/x; mv spec/x/.git lib/build/g; echo 'gitdir: ../build/g' > lib/src/.git", "lib/src"),
    ];
    let modes: [&[&str]; 2] = [&[], &["--sandbox", "off"]];
    for ((deed, folder), mode) in pairs(&deeds, &modes) {
        let repo = nested_repo(deed);
        let _ = repo.arborist(["gardener", "--max-retries", "2"].iter().chain(mode));
        assert!(repo.root().join("once").exists(), "the agent did not run: {deed}");
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        let words = "made a repository in a folder of the checkout: ";
        assert!(body.contains(words) && body.contains(&format!("{folder}/.git")), "{deed}: {body}");
        for place in [".", "lib", "lib/deep", "lib/src", "lib/build", folder] {
            let _ = repo.git(["-C", place, "status"]).code();
        }
        assert_nothing_ran(&repo, deed);
    }
}

#[test]
fn a_repository_that_a_test_plants_in_a_submodule_is_moved_away() {
    let repo = nested_repo("");
    let script =
        format!("ROOT='{}'\n{EVIL}\n[ -e work.txt ] || exit 0\nevil lib/src\n", repo.root().display());
    repo.write("test.sh", script);
    repo.commit("a test\n");
    repo.git(["config", "arborist.test-command", "sh test.sh"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert!(!repo.path("lib/src/.git").exists());
    let _ = repo.git(["-C", "lib/src", "status"]).code();
    assert_nothing_ran(&repo, "test");
}
