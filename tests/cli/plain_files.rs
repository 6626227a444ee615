//! Files that are written for a task are what git would write, also where no git process writes them: reports in the
//! checkout, and everything in the place of a reviewer.

use std::fs;

use arborist_testkit::{Garden, Run};

const PLAN: &str = "- [ ] T001 make the files\n- [ ] T002 change them\n";

/// Two tasks that change files of all kinds. Reviewers note what is not as the commit says, and approve.
const AGENT: &str = r#"case "$prompt" in
Review*) git status --porcelain --ignored >> "$ROOT/status"; git rev-parse HEAD >> "$ROOT/heads"; git diff-index HEAD >> "$ROOT/status"
  git ls-files -s > "$ROOT/staged"; git ls-tree -r --format='%(objectmode) %(objectname) 0%x09%(path)' HEAD | cmp - "$ROOT/staged" >> "$ROOT/status"
  cat plain.txt >> "$ROOT/plain"; echo APPROVED ;;
"Implement task T001"*) mkdir -p deep/er; echo a > plain.txt; echo b > deep/er/b; echo c > deep/c; echo d > run; chmod +x run; ln -s run link; echo 'odd name' > 'ö "x".txt' ;;
*) echo more > plain.txt; rm -r deep/er; echo e > link2; rm link; chmod -x run; rm deep/c; echo f > deep/d ;;
esac"#;

fn garden() -> Garden {
    Garden::planned("tasks.md", PLAN, AGENT)
}

/// The reports in the checkout, as bytes.
fn reports(garden: &Garden) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(garden.path("spec/reports")).unwrap().flatten();
    entries.map(|entry| fs::read(entry.path()).unwrap()).collect()
}

/// Runs both tasks, and expects that everybody found what the commits hold.
fn run(garden: &Garden, arguments: &[&str]) {
    garden.arborist(["gardener"].iter().chain(arguments)).succeeds();
    let noted = |name: &str| fs::read_to_string(garden.root().join(name)).unwrap_or_default();
    assert_eq!(noted("status"), "", "reviewers find the commit and nothing else");
    assert_eq!(noted("heads").lines().count(), 2);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
    assert_eq!(garden.git(["ls-files", "deep", "link", "link2"]).answer(), "deep/d\nlink2");
    garden.git(["fsck", "--strict"]).succeeds();
}

#[test]
fn a_worktree_and_its_index_hold_what_was_committed() {
    for arguments in [[].as_slice(), &["--jobs", "2"]] {
        run(&garden(), arguments);
    }
}

#[test]
fn small_files_are_written_without_a_git_process() {
    let garden = garden();
    garden.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo work > $ARBORIST_TASK.txt ;; esac");
    let calls = garden.root().join("git-calls");
    let script =
        format!("#!/bin/sh\nPATH=${{PATH#*:}}\necho \"$*\" >> '{}'\nexec git \"$@\"\n", calls.display());
    garden.plant("git", &script);
    Run::of(&mut garden.command("git-arborist-gardener", &garden.path("")), b"").succeeds();
    let calls = fs::read_to_string(calls).unwrap();
    let checkouts: Vec<&str> = calls.lines().filter(|call| call.contains(" checkout ")).collect();
    assert!(checkouts.len() <= 1, "only the place of the reviewers is made: {checkouts:#?}");
    assert_eq!(reports(&garden).len(), 2);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn the_ends_of_lines_are_what_attributes_and_settings_say() {
    let attributes: [fn(&Garden); 5] = [
        |garden| {
            garden.write(".gitattributes", "* text=auto eol=crlf\n");
            garden.commit("attributes\n");
        },
        |garden| garden.write(".git/info/attributes", "* text=auto eol=crlf\n"),
        |garden| {
            let file = garden.home().join(".config/git/attributes");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "* text=auto eol=crlf\n").unwrap();
        },
        |garden| {
            fs::write(garden.root().join("attributes"), "* text=auto eol=crlf\n").unwrap();
            let file = garden.root().join("attributes").display().to_string();
            garden.git(["config", "core.attributesFile", &file]).succeeds();
        },
        |garden| drop(garden.git(["config", "core.autocrlf", "true"]).succeeds()),
    ];
    for (number, attribute) in attributes.iter().enumerate() {
        let garden = garden();
        attribute(&garden);
        run(&garden, &[]);
        let found = reports(&garden);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|report| report.ends_with(b"}\r\n")), "{number}: a report has other ends");
        let plain = fs::read_to_string(garden.root().join("plain")).unwrap();
        assert_eq!(plain, "a\r\nmore\r\n", "{number}: what reviewers see");
    }
}
