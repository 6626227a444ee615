//! A run acts on the repository that it was started in, and on no other: also where that one is removed or replaced while
//! it runs, and another one lies around it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo, pairs};

/// Does a deed in its first call, then its work.
fn agent(deed: &str) -> String {
    format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo work >> work.txt
[ ! -e \"$ROOT/once\" ] && {{ touch \"$ROOT/once\"; {deed}; }}
true"
    )
}

/// A repository with another one in its folder `inner`, made with these options of `git init`.
fn nested(options: &[&str], deed: &str) -> (TestRepo, PathBuf) {
    let outer = TestRepo::init();
    outer.write(".gitignore", "/inner\n");
    outer.write("outer.txt", "outer\n");
    outer.commit("outer\n");
    outer.agent(&agent(deed));
    let inner = outer.path("inner");
    let init = ["init", "-q", "-b", "main"].iter().chain(options).map(ToString::to_string);
    outer.git(init.chain([inner.display().to_string()])).succeeds();
    fs::write(inner.join("tasks.md"), "- [ ] T001 do it\n").unwrap();
    outer.git_in(&inner, ["add", "-A"]).succeeds();
    outer.git_in(&inner, ["commit", "-qm", "a plan"]).succeeds();
    (outer, inner)
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
            }
        }
    }
    found
}

fn run(repo: &TestRepo, inner: &Path, args: &[&str]) -> Run {
    repo.arborist_in(inner, args)
}

#[test]
fn after_an_agent_removes_the_git_directory_the_outer_repository_is_never_used() {
    let deeds = [
        "rm -rf .git",
        "mv .git \"$ROOT/gone\"",
        "rm -rf .git; git init -q -b main .",
        "rm -rf .git; echo \"gitdir: $ROOT/repo/.git\" > .git",
        "rm -rf .git; ln -s ../.git .git",
    ];
    for (deed, args) in pairs(&deeds, &[&["gardener"][..], &["garden", "T001"]]) {
        let (outer, inner) = nested(&[], deed);
        let before = files(&outer.path(".git"));
        let ended = run(&outer, &inner, args);
        assert_eq!(ended.code(), 128, "{deed}: {}", ended.report());
        assert_eq!(files(&outer.path(".git")), before, "{deed}: {}", ended.report());
        outer.git(["status", "--porcelain"]).succeeds().silent();
    }
}

#[test]
fn nothing_is_written_to_the_path_of_a_removed_git_directory() {
    let (outer, inner) = nested(&[], "rm -rf .git");
    run(&outer, &inner, &["gardener"]).exits(128).matches_snapshot();
    assert!(!inner.join(".git").exists(), "{:?}", files(&inner.join(".git")));
}

#[test]
fn a_lane_whose_git_file_is_removed_still_belongs_to_its_own_repository() {
    let (outer, inner) = nested(&[], "rm -rf .git");
    let lanes = outer.path("lanes");
    outer.git_in(&inner, ["config", "arborist.worktree.base", &lanes.display().to_string()]).succeeds();
    let before = files(&outer.path(".git"));
    let ended = run(&outer, &inner, &["gardener", "--isolate"]);
    assert_eq!(files(&outer.path(".git")), before, "{}", ended.report());
    ended.succeeds();
    let log = outer.git_in(&inner, ["log", "--format=%s", "main"]).answer();
    assert!(log.contains("@T001@merge)"), "{log}");
}

#[test]
fn separate_git_directories_git_dir_variables_and_bare_repositories_work() {
    // With a git directory elsewhere, from a subfolder.
    let outer = TestRepo::init();
    let elsewhere = outer.root().join("elsewhere");
    let option = format!("--separate-git-dir={}", elsewhere.display());
    let (outer, inner) = nested(&[&option], "true");
    fs::create_dir(inner.join("sub")).unwrap();
    run(&outer, &inner.join("sub"), &["garden", "T001"]).succeeds();
    run(&outer, &inner, &["state", "--exit-code"]).succeeds();

    // With the repository named by the environment, from outside of it.
    let (outer, inner) = nested(&[], "true");
    let mut named = outer.command("git", &inner);
    named.args(["arborist", "garden", "T001"]).env("GIT_DIR", ".git").env("GIT_WORK_TREE", ".");
    Run::of(&mut named, b"").succeeds();
    run(&outer, &inner, &["state", "--exit-code"]).succeeds();

    // In a bare repository, and in a git directory itself.
    for place in [outer.path("inner/.git"), outer.root().join("bare.git")] {
        if !place.exists() {
            let names = [inner.as_os_str(), place.as_os_str()];
            outer.git(["clone", "-q", "--bare"].iter().map(std::ffi::OsStr::new).chain(names)).succeeds();
        }
        outer.arborist_in(&place, ["state", "--scope", "main", "--exit-code"]).succeeds();
    }
}

#[test]
fn git_config_and_pathspec_environment_variables_are_ignored() {
    let (outer, inner) = nested(&[], "true");
    let other = outer.root().join("other");
    fs::write(&other, "[arborist]\n\tmax-retries = nonsense\n").unwrap();
    let mut command = outer.command("git", &inner);
    command.args(["arborist", "garden", "T001"]).env("GIT_CONFIG", &other);
    command.env("GIT_LITERAL_PATHSPECS", "1").env("GIT_ICASE_PATHSPECS", "1");
    Run::of(&mut command, b"").succeeds();
}
