//! Objects that are written: commits that `commit-tree` would have written, and trees that follow from others.

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    git::{NewCommit, Repository, Signing, TreeChange},
    name::Oid,
};
use arborist_testkit::TestRepo;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

fn repository(repo: &TestRepo) -> Repository {
    Repository::discover_from(&repo.path("")).unwrap()
}

/// What `commit-tree` writes at the time of `like`, whose lines and parents are given.
fn by_commit_tree(repo: &TestRepo, like: Oid, message: &str, parents: &[Oid]) -> String {
    let date = |format: &str| {
        let args = ["log", "-1", "--date=raw", &format!("--format={format}"), &like.to_string()];
        repo.git(args).succeeds().stdout().trim().to_owned()
    };
    repo.write("message", message);
    let file = repo.path("message");
    let (author, committer) = (format!("@{}", date("%ad")), format!("@{}", date("%cd")));
    let mut command = std::process::Command::new("git");
    command.current_dir(repo.path("")).arg("commit-tree").arg("-F").arg(file);
    command.env("GIT_AUTHOR_DATE", author).env("GIT_COMMITTER_DATE", committer);
    for parent in parents {
        command.args(["-p", &parent.to_string()]);
    }
    let output = command.arg(format!("{like}^{{tree}}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn written_commits_equal_those_of_git_commit_tree_byte_for_byte() {
    let settings: [&[(&str, &str)]; 3] = [
        &[("user.name", "Ada <Lovelace>\u{e9} ."), ("user.email", "ada@example.com")],
        &[("user.name", "A"), ("user.email", "a@b"), ("i18n.commitEncoding", "ISO-8859-1")],
        &[("user.name", "A"), ("user.email", "a@b"), ("author.name", "Somebody Else")],
    ];
    for (format, settings) in ["sha1", "sha256", "sha1"].into_iter().zip(settings) {
        let repo = TestRepo::with_options(&["--object-format", format]);
        repo.commit("begin\n");
        repo.git(["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
        for (name, value) in settings {
            repo.git(["config", name, value]).succeeds();
        }
        let repository = repository(&repo);
        let head = repository.head.commit.unwrap();
        let before = repository.find_commit("HEAD^").unwrap().unwrap();
        let tree = repository.tree_of(head).unwrap();
        let messages = ["one\n", "two\n\nwith a body\u{2014}\n", "no line end", "", "\n\n  odd \n\n"];
        for message in messages {
            let new = NewCommit { tree, parent: head, message, author: None };
            let commit = repository.write_commit(new, Signing::No).unwrap();
            assert_eq!(commit.to_string(), by_commit_tree(&repo, commit, message, &[head]), "{message:?}");
        }
        for parents in [&[][..], &[head, before], &[head, before, head]] {
            let commit = repository.write_commit_with_parents(tree, parents, "joint\n", Signing::No).unwrap();
            assert_eq!(commit.to_string(), by_commit_tree(&repo, commit, "joint\n", parents));
        }
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn a_missing_user_name_is_reported_by_git() {
    let repo = TestRepo::init();
    repo.git(["config", "user.name", ""]).succeeds();
    repo.git(["config", "user.email", "a@b"]).succeeds();
    let repository = repository(&repo);
    let head = repository.head.commit.unwrap();
    let new =
        NewCommit { tree: repository.tree_of(head).unwrap(), parent: head, message: "x\n", author: None };
    for _ in 0..2 {
        let error = repository.write_commit(new, Signing::No).unwrap_err().to_string();
        assert!(error.contains("empty ident name"), "{error}");
    }
}

#[test]
fn objects_are_written_with_settings_that_only_git_supports() {
    for format in ["sha1", "sha256"] {
        let repo = TestRepo::with_options(&["--object-format", format]);
        repo.git(["config", "core.fsync", "all"]).succeeds();
        repo.commit("begin\n");
        let repository = repository(&repo);
        for text in ["", "a", "with\0 zero\nand lines\n"] {
            let id = repository.write_blob(text.as_bytes()).unwrap();
            assert_eq!(repository.find_blob(id).unwrap().unwrap(), text.as_bytes());
        }
    }
}

type Files = BTreeMap<String, (u32, u8)>;

/// Files by path; where one stands in the way of another, the shorter path stays.
fn files() -> impl Strategy<Value = Files> {
    let path = proptest::collection::vec("[ab.-]|a\\.|\u{e9}", 1..4);
    let path = path
        .prop_map(|parts| parts.join("/"))
        .prop_filter("a name", |path| path.split('/').all(|part| part != "."));
    let file = (prop_oneof![Just(0o100_644), Just(0o100_755), Just(0o120_000)], 0..3_u8);
    proptest::collection::btree_map(path, file, 0..12).prop_map(|files: Files| {
        let taken: BTreeSet<String> = files.keys().cloned().collect();
        let is_free = |path: &String| path.match_indices('/').all(|(at, _)| !taken.contains(&path[..at]));
        files.into_iter().filter(|(path, _)| is_free(path)).collect()
    })
}

#[test]
fn applying_the_changes_between_two_trees_gives_the_second_tree() {
    for format in ["sha1", "sha256"] {
        let repo = TestRepo::with_options(&["--object-format", format]);
        repo.commit("begin\n");
        let repository = repository(&repo);
        let blobs: Vec<Oid> = (0..3).map(|n| repository.write_blob(&[n]).unwrap()).collect();
        let empty = repository.empty_tree().unwrap();
        let tree_of = |files: &Files| {
            let change = |(path, (mode, n)): (&String, &(u32, u8))| TreeChange {
                path: path.clone().into_bytes(),
                before: None,
                after: Some((*mode, blobs[usize::from(*n)])),
            };
            repository.tree_with(empty, &files.iter().map(change).collect::<Vec<_>>()).unwrap()
        };
        let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
        runner
            .run(&(files(), files()), |(before, after)| {
                let (old, new) = (tree_of(&before), tree_of(&after));
                let changes = repository.changes(old, new).unwrap();
                prop_assert_eq!(repository.tree_with(old, &changes).unwrap(), new);
                let listed =
                    repo.git(["ls-tree", "-r", "-z", "--name-only", &new.to_string()]).succeeds().stdout();
                let names: BTreeSet<&str> = listed.split_terminator('\0').collect();
                prop_assert_eq!(names, after.keys().map(String::as_str).collect::<BTreeSet<_>>());
                Ok(())
            })
            .unwrap();
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn an_unreadable_tree_is_an_error_and_not_unchanged() {
    let repo = TestRepo::init();
    let repository = repository(&repo);
    let missing: Oid = "1".repeat(40).parse().unwrap();
    let tree = repository.tree_of(repository.head.commit.unwrap()).unwrap();
    assert!(repository.changes(missing, tree).is_err());
    assert!(repository.changes(tree, tree).unwrap().is_empty());
}
