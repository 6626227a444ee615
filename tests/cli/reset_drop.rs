//! `git arborist reset` says what of the old attempts is still in the tree, and `--drop` takes it out.

use arborist_testkit::Garden;

/// A task that changed, added and deleted files, and failed; the user has committed something since.
fn failed(place: &[&str]) -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.write("changed.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    garden.write("gone.txt", "there\n");
    garden.commit("a plan\n");
    garden.agent(
        "case \"$prompt\" in Review*) cp \"$ROOT/prompts/$n\" \"$ROOT/review\"; echo 'REJECTED: no'; exit ;; esac\n\
         sed -i 's/two/TWO/' changed.txt; rm gone.txt; mkdir -p new; echo bad > new/bad.py",
    );
    garden.arborist(["gardener", "--max-retries", "1"].iter().chain(place)).exits(1);
    if place.is_empty() {
        garden.write("changed.txt", garden.read("changed.txt").replace("seven", "SEVEN"));
    }
    garden.write("theirs.txt", "of the user\n");
    garden.commit("of the user\n");
    garden
}

fn files(garden: &Garden) -> String {
    garden.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer()
}

const DROPPED: &str = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN";

#[test]
fn reset_names_what_is_still_in_the_tree() {
    let garden = failed(&[]);
    let before = garden.git(["rev-parse", "HEAD^{tree}"]).answer();
    let said = garden.arborist(["reset", "T1"]).succeeds();
    said.shows().never("theirs.txt");
    assert_eq!(garden.git(["rev-parse", "HEAD^{tree}"]).answer(), before);
}

#[test]
fn drop_takes_out_what_the_task_added_and_nothing_else_and_saves_it() {
    for is_reset in [false, true] {
        let garden = failed(&[]);
        if is_reset {
            garden.arborist(["reset", "T1"]).succeeds();
        }
        let before = garden.git(["rev-parse", "HEAD"]).answer();
        garden.write("notes.txt", "not committed\n");
        garden.arborist(["reset", "--drop", "T1"]).succeeds().shows();
        assert_eq!(files(&garden), "changed.txt\ngone.txt\ntask-tree.json\ntheirs.txt");
        assert_eq!(garden.git(["show", "HEAD:changed.txt"]).answer(), DROPPED);
        assert_eq!(garden.git(["status", "--porcelain"]).answer(), "?? notes.txt");
        assert_eq!(garden.read("changed.txt").trim_end(), DROPPED);
        let saved = garden.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
        assert_eq!(saved, before);
        let subject = garden.git(["log", "-1", "--format=%s"]).answer();
        assert!(subject.starts_with("task(main@T1@reset)"), "{subject}");
        garden.arborist(["reset", "--drop", "T1"]).succeeds().shows();
        garden.git(["stash", "-qu"]).succeeds();
        garden.agent(
            "case \"$prompt\" in Review*) cp \"$ROOT/prompts/$n\" \"$ROOT/review\"; echo APPROVED; exit ;; esac\necho fine > good.py",
        );
        garden.arborist(["gardener"]).succeeds();
        let diff = std::fs::read_to_string(garden.root().join("review")).unwrap();
        assert!(diff.contains("+++ b/good.py"), "{diff}");
        for other in ["bad.py", "changed.txt", "gone.txt", "theirs.txt"] {
            assert!(!diff.contains(other), "{other}: {diff}");
        }
    }
}

#[test]
fn drop_never_touches_what_is_not_committed() {
    for deed in ["worktree", "staged", "ignored"] {
        let garden = failed(&[]);
        match deed {
            "worktree" => garden.write("new/bad.py", "mine\n"),
            "staged" => {
                garden.write("changed.txt", "mine\n");
                garden.git(["add", "changed.txt"]).succeeds();
                garden.git(["restore", "--worktree", "--source=HEAD", "changed.txt"]).succeeds();
            }
            _ => {
                garden.write(".git/info/exclude", "gone.txt\n");
                garden.write("gone.txt", "mine\n");
            }
        }
        let before =
            (garden.git(["rev-parse", "HEAD"]).answer(), garden.git(["status", "--porcelain"]).answer());
        garden.arborist(["reset", "--drop", "T1"]).exits(2).shows();
        let after =
            (garden.git(["rev-parse", "HEAD"]).answer(), garden.git(["status", "--porcelain"]).answer());
        assert_eq!(before, after, "{deed}");
        assert_eq!(garden.git(["for-each-ref", "refs/arborist/saved"]).answer(), "", "{deed}");
    }
}

#[test]
fn drop_goes_on_where_it_was_killed() {
    let garden = failed(&[]);
    // Killed after the files were written, before anything was committed.
    garden.write("changed.txt", format!("{DROPPED}\n"));
    garden.write("gone.txt", "there\n");
    std::fs::remove_file(garden.path("new/bad.py")).unwrap();
    garden.arborist(["reset", "--drop", "T1"]).succeeds();
    assert_eq!(files(&garden), "changed.txt\ngone.txt\ntask-tree.json\ntheirs.txt");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn in_lanes_the_branch_is_saved_and_begun_again() {
    let garden = failed(&["--isolate"]);
    let own = garden.git(["for-each-ref", "--format=%(objectname)", "refs/heads/arborist/task"]).answer();
    garden.arborist(["reset", "--drop", "T1"]).succeeds().shows();
    let saved = garden.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
    assert!(saved.contains(&own), "{saved}");
    garden.agent("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho fine > good.py");
    garden.arborist(["gardener", "--isolate"]).succeeds();
    let files = files(&garden);
    assert!(files.contains("good.py") && files.contains("gone.txt") && !files.contains("bad.py"), "{files}");
}

#[test]
fn drop_never_undoes_what_others_have_committed_since() {
    let edits: [(&str, &str); 2] = [("changed.txt", "one\nof the user\n"), ("new/bad.py", "mended\n")];
    for (path, text) in edits {
        let garden = failed(&[]);
        garden.write(path, text);
        garden.commit("another commit of the user\n");
        let before = garden.git(["rev-parse", "HEAD"]).answer();
        garden.arborist(["reset", "--drop", "T1"]).exits(2).err(path).err("git arborist reset T1");
        assert_eq!(garden.git(["rev-parse", "HEAD"]).answer(), before);
        assert_eq!(garden.read(path), text);
        garden.arborist(["reset", "T1"]).succeeds();
        assert_eq!(garden.read(path), text);
    }
}
