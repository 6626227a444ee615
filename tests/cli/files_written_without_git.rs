//! Files that are written for a task are what git would write, also where no git process writes them: reports in the
//! checkout, and everything in the place of a reviewer.

use std::fs;

use arborist_testkit::{Run, TestRepo};

const PLAN: &str = "- [ ] T001 make the files\n- [ ] T002 change them\n";

/// Two tasks that change files of all kinds. Reviewers note what is not as the commit says, and approve.
const AGENT: &str = r#"case "$prompt" in
Review*) git status --porcelain --ignored >> "$ROOT/status"; git rev-parse HEAD >> "$ROOT/heads"; git diff-index HEAD >> "$ROOT/status"
  git ls-files -s > "$ROOT/staged"; git ls-tree -r --format='%(objectmode) %(objectname) 0%x09%(path)' HEAD | cmp - "$ROOT/staged" >> "$ROOT/status"
  cat plain.txt >> "$ROOT/plain"; echo APPROVED ;;
"Implement task T001"*) mkdir -p deep/er; echo a > plain.txt; echo b > deep/er/b; echo c > deep/c; echo d > run; chmod +x run; ln -s run link; echo 'odd name' > 'ö "x".txt' ;;
*) echo more > plain.txt; rm -r deep/er; echo e > link2; rm link; chmod -x run; rm deep/c; echo f > deep/d ;;
esac"#;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, AGENT)
}

/// The reports in the checkout, as bytes.
fn reports(repo: &TestRepo) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(repo.path("spec/reports")).unwrap().flatten();
    entries.map(|entry| fs::read(entry.path()).unwrap()).collect()
}

/// Runs both tasks, and expects that everybody found what the commits hold.
fn run(repo: &TestRepo, arguments: &[&str]) {
    repo.arborist(["gardener"].iter().chain(arguments)).succeeds();
    let noted = |name: &str| fs::read_to_string(repo.root().join(name)).unwrap_or_default();
    assert_eq!(noted("status"), "", "reviewers find the commit and nothing else");
    assert_eq!(noted("heads").lines().count(), 2);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    assert_eq!(repo.git(["ls-files", "deep", "link", "link2"]).answer(), "deep/d\nlink2");
    repo.git(["fsck", "--strict"]).succeeds();
}

#[test]
fn worktrees_and_their_index_match_the_commit() {
    for arguments in [[].as_slice(), &["--jobs", "2"]] {
        run(&repo(), arguments);
    }
}

#[test]
fn small_files_are_written_without_a_git_process() {
    let repo = repo();
    repo.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
    let calls = repo.root().join("git-calls");
    let script =
        format!("#!/bin/sh\nPATH=${{PATH#*:}}\necho \"$*\" >> '{}'\nexec git \"$@\"\n", calls.display());
    repo.plant("git", &script);
    Run::of(&mut repo.command("git-arborist-gardener", &repo.path("")), b"").succeeds();
    let calls = fs::read_to_string(calls).unwrap();
    let checkouts: Vec<&str> = calls.lines().filter(|call| call.contains(" checkout ")).collect();
    assert!(checkouts.len() <= 1, "only the place of the reviewers is made: {checkouts:#?}");
    assert_eq!(reports(&repo).len(), 2);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn line_endings_follow_attributes_and_settings() {
    let attributes: [fn(&TestRepo); 5] = [
        |repo| {
            repo.write(".gitattributes", "* text=auto eol=crlf\n");
            repo.commit("attributes\n");
        },
        |repo| repo.write(".git/info/attributes", "* text=auto eol=crlf\n"),
        |repo| {
            let file = repo.home().join(".config/git/attributes");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "* text=auto eol=crlf\n").unwrap();
        },
        |repo| {
            fs::write(repo.root().join("attributes"), "* text=auto eol=crlf\n").unwrap();
            let file = repo.root().join("attributes").display().to_string();
            repo.git(["config", "core.attributesFile", &file]).succeeds();
        },
        |repo| drop(repo.git(["config", "core.autocrlf", "true"]).succeeds()),
    ];
    for (number, attribute) in attributes.iter().enumerate() {
        let repo = repo();
        attribute(&repo);
        run(&repo, &[]);
        let found = reports(&repo);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|report| report.ends_with(b"}\r\n")), "{number}: a report has other ends");
        let plain = fs::read_to_string(repo.root().join("plain")).unwrap();
        assert_eq!(plain, "a\r\nmore\r\n", "{number}: what reviewers see");
    }
}
