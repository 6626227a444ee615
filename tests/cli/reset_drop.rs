//! `git arborist reset` says what of the old attempts is still in the tree, and `--drop` takes it out.

use arborist_testkit::TestRepo;

/// A task that changed, added and deleted files, and failed; the user has committed something since.
fn failed(place: &[&str]) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.write("changed.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    repo.write("gone.txt", "there\n");
    repo.commit("a plan\n");
    repo.agent(
        "case \"$prompt\" in Review*) cp \"$ROOT/prompts/$n\" \"$ROOT/review\"; echo 'REJECTED: no'; exit ;; esac\n\
         sed -i 's/two/TWO/' changed.txt; rm gone.txt; mkdir -p new; echo bad > new/bad.py",
    );
    repo.arborist(["gardener", "--max-retries", "1"].iter().chain(place)).exits(1);
    if place.is_empty() {
        repo.write("changed.txt", repo.read("changed.txt").replace("seven", "SEVEN"));
    }
    repo.write("theirs.txt", "of the user\n");
    repo.commit("of the user\n");
    repo
}

fn files(repo: &TestRepo) -> String {
    repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer()
}

const DROPPED: &str = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN";

#[test]
fn reset_names_changes_of_the_task_that_are_still_in_the_tree() {
    let repo = failed(&[]);
    let before = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let said = repo.arborist(["reset", "T1"]).succeeds();
    said.matches_snapshot().never("theirs.txt");
    assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]).answer(), before);
}

#[test]
fn drop_undoes_and_saves_only_the_changes_of_the_task() {
    for is_reset in [false, true] {
        let repo = failed(&[]);
        if is_reset {
            repo.arborist(["reset", "T1"]).succeeds();
        }
        let before = repo.git(["rev-parse", "HEAD"]).answer();
        repo.write("notes.txt", "not committed\n");
        repo.arborist(["reset", "--drop", "T1"]).succeeds().matches_snapshot();
        assert_eq!(files(&repo), "changed.txt\ngone.txt\ntask-tree.json\ntheirs.txt");
        assert_eq!(repo.git(["show", "HEAD:changed.txt"]).answer(), DROPPED);
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "?? notes.txt");
        assert_eq!(repo.read("changed.txt").trim_end(), DROPPED);
        let saved = repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
        assert_eq!(saved, before);
        let subject = repo.git(["log", "-1", "--format=%s"]).answer();
        assert!(subject.starts_with("task(main@T1@reset)"), "{subject}");
        repo.arborist(["reset", "--drop", "T1"]).succeeds().matches_snapshot();
        repo.git(["stash", "-qu"]).succeeds();
        repo.agent(
            "case \"$prompt\" in Review*) cp \"$ROOT/prompts/$n\" \"$ROOT/review\"; echo APPROVED; exit ;; esac\necho fine > good.py",
        );
        repo.arborist(["gardener"]).succeeds();
        let diff = std::fs::read_to_string(repo.root().join("review")).unwrap();
        assert!(diff.contains("+++ b/good.py"), "{diff}");
        for other in ["bad.py", "changed.txt", "gone.txt", "theirs.txt"] {
            assert!(!diff.contains(other), "{other}: {diff}");
        }
    }
}

#[test]
fn drop_refuses_to_overwrite_uncommitted_changes() {
    for deed in ["worktree", "staged", "ignored"] {
        let repo = failed(&[]);
        match deed {
            "worktree" => repo.write("new/bad.py", "mine\n"),
            "staged" => {
                repo.write("changed.txt", "mine\n");
                repo.git(["add", "changed.txt"]).succeeds();
                repo.git(["restore", "--worktree", "--source=HEAD", "changed.txt"]).succeeds();
            }
            _ => {
                repo.write(".git/info/exclude", "gone.txt\n");
                repo.write("gone.txt", "mine\n");
            }
        }
        let before = (repo.git(["rev-parse", "HEAD"]).answer(), repo.git(["status", "--porcelain"]).answer());
        repo.arborist(["reset", "--drop", "T1"]).exits(2).matches_snapshot();
        let after = (repo.git(["rev-parse", "HEAD"]).answer(), repo.git(["status", "--porcelain"]).answer());
        assert_eq!(before, after, "{deed}");
        assert_eq!(repo.git(["for-each-ref", "refs/arborist/saved"]).answer(), "", "{deed}");
    }
}

#[test]
fn a_refused_drop_names_the_task_branch_that_it_has_saved() {
    let repo = failed(&[]);
    repo.arborist(["gardener", "--isolate", "--retry-failed", "--max-retries", "1"]).exits(1);
    repo.write("new/bad.py", "mine\n");
    let said = repo.arborist(["reset", "--drop", "T1"]).exits(2);
    said.err("note: its task branch is saved as refs/arborist/saved/").err("new/bad.py");
}

#[test]
fn a_killed_drop_is_completed_by_the_next_one() {
    let repo = failed(&[]);
    // Killed after the files were written, before anything was committed.
    repo.write("changed.txt", format!("{DROPPED}\n"));
    repo.write("gone.txt", "there\n");
    std::fs::remove_file(repo.path("new/bad.py")).unwrap();
    repo.arborist(["reset", "--drop", "T1"]).succeeds();
    assert_eq!(files(&repo), "changed.txt\ngone.txt\ntask-tree.json\ntheirs.txt");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn in_lanes_drop_saves_the_task_branch_and_the_next_run_starts_a_new_one() {
    let repo = failed(&["--isolate"]);
    let own = repo.git(["for-each-ref", "--format=%(objectname)", "refs/heads/arborist/task"]).answer();
    repo.arborist(["reset", "--drop", "T1"]).succeeds().matches_snapshot();
    let saved = repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
    assert!(saved.contains(&own), "{saved}");
    repo.agent("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho fine > good.py");
    repo.arborist(["gardener", "--isolate"]).succeeds();
    let files = files(&repo);
    assert!(files.contains("good.py") && files.contains("gone.txt") && !files.contains("bad.py"), "{files}");
}

#[test]
fn drop_refuses_to_undo_later_commits_of_the_user() {
    let edits: [(&str, &str); 2] = [("changed.txt", "one\nof the user\n"), ("new/bad.py", "mended\n")];
    for (path, text) in edits {
        let repo = failed(&[]);
        repo.write(path, text);
        repo.commit("another commit of the user\n");
        let before = repo.git(["rev-parse", "HEAD"]).answer();
        repo.arborist(["reset", "--drop", "T1"]).exits(2).err(path).err("git arborist reset T1");
        assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), before);
        assert_eq!(repo.read(path), text);
        repo.arborist(["reset", "T1"]).succeeds();
        assert_eq!(repo.read(path), text);
    }
}

#[test]
fn reset_and_drop_name_each_file_with_what_happened_to_it() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.write("keep.txt", "there\n");
    repo.write("run.sh", "true\n");
    repo.commit("a plan\n");
    repo.agent(
        "case \"$prompt\" in Review*) echo 'REJECTED: no'; exit ;; esac\nrm keep.txt; chmod +x run.sh; echo x > new.txt",
    );
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let said = repo.arborist(["reset", "T1"]).succeeds();
    said.err("the changes of T1 are still there: added new.txt; changed run.sh; deleted keep.txt");
    let said = repo.arborist(["reset", "--drop", "T1"]).succeeds();
    said.err("undid the changes of T1: removed new.txt; changed back run.sh; restored keep.txt");
    assert_eq!(files(&repo), "keep.txt\nrun.sh\ntask-tree.json");
}
