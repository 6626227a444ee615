//! What lands is a merge of what was reviewed: git's word for it is held against the trees, and whatever else has put a file
//! together is a conflict.

use std::fs;

use arborist_testkit::Run;

use crate::queue_repo::{QueueRepo, conflicting_tasks, content};

/// A git that finds another tree in the place of that of T1 while it merges, with a file in it that no task has written.
/// `root/times` says how often.
fn plant_git_that_reads_a_replaced_tree(repo: &QueueRepo) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = r#"#!/bin/sh
git='GIT' root='ROOT'
case " $* " in *" merge-tree "*) ;; *) exec "$git" "$@" ;; esac
times=$(cat "$root/times"); [ "$times" -gt 0 ] || exec "$git" "$@"
echo $((times - 1)) > "$root/times"
place() { printf '%s/repo/.git/objects/%s/%s' "$root" "$(echo $1 | cut -c1-2)" "$(echo $1 | cut -c3-)"; }
plain() { env -u GIT_DIR -u GIT_COMMON_DIR -u GIT_ATTR_SOURCE -u GIT_INDEX_FILE "$git" -C "$root/repo" "$@"; }
tree=$(plain rev-parse 'arborist/task/main/T1^{tree}'); blob=$(echo evil | plain hash-object -w --stdin)
false=$( (plain ls-tree $tree; printf '100755 blob %s\tzevil.sh\n' $blob) | plain mktree)
file=$(place $tree); cp "$file" "$root/true"; rm -f "$file"; cp "$(place $false)" "$file"
"$git" "$@"; code=$?
rm -f "$file"; cp "$root/true" "$file"; exit $code
"#;
    let root = repo.root().display().to_string();
    repo.plant("git", &script.replace("GIT'", &format!("{}'", git.display())).replace("ROOT", &root));
}

#[test]
fn a_file_from_a_tree_that_was_replaced_during_the_merge_does_not_land() {
    for (times, lands) in [("1", true), ("9", false)] {
        let repo = QueueRepo::with_finished(&["T1"]);
        repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
        plant_git_that_reads_a_replaced_tree(&repo);
        fs::write(repo.root().join("times"), times).unwrap();
        // Not by way of git, which puts its own folder first on `PATH`.
        let mut command = repo.command("git-arborist-merge", &repo.path(""));
        let run = Run::of(command.args(["T1", "--scope", "main"]), b"");
        if lands {
            run.succeeds()
        } else {
            run.exits(2)
        };
        assert_ne!(fs::read_to_string(repo.root().join("times")).unwrap().trim(), times, "it was deceived");
        let files = repo.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(!files.contains("zevil.sh"), "{files}");
        assert_eq!(files.contains("T1.txt"), lands, "{files}");
    }
}

#[test]
fn lines_that_a_union_merge_would_join_are_a_conflict() {
    let attributes = |repo: &QueueRepo| {
        repo.write(".gitattributes", "a.txt merge=union\n");
        repo.write("a.txt", "one\n");
    };
    let change = |text: &'static str| move |repo: &QueueRepo| repo.write("a.txt", text);
    let repo = conflicting_tasks(attributes, change("ours\n"), change("theirs\n"));
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2).err("T2 is in conflict: both sides changed a.txt");
    assert_eq!(repo.show("main", "a.txt"), "ours");
    // What does not meet is merged as ever.
    let repo = conflicting_tasks(
        |repo| {
            attributes(repo);
            repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n");
        },
        change("one\n2\n3\n4\n5\n6\n7\n"),
        change("1\n2\n3\n4\n5\n6\nseven\n"),
    );
    repo.merge(&["T2"]).succeeds();
    assert_eq!(repo.show("main", "a.txt"), "one\n2\n3\n4\n5\n6\nseven");
}

/// A conflict that a merge driver of the user settles.
fn conflict_with_a_merge_driver() -> QueueRepo {
    let repo = conflicting_tasks(
        |repo| {
            repo.write(".gitattributes", "a.txt merge=both\n");
            repo.write("a.txt", "one\n");
        },
        |repo| repo.write("a.txt", "ours\n"),
        |repo| repo.write("a.txt", "theirs\n"),
    );
    repo.git(["config", "merge.both.driver", "cat %B >> %A"]).succeeds();
    repo
}

#[test]
fn the_result_of_a_merge_driver_lands_only_if_a_reviewer_approves_it() {
    let repo = conflict_with_a_merge_driver();
    repo.agent("echo done");
    repo.merge(&["T2"]).succeeds().out("1 landed (T2)");
    assert_eq!(repo.show("main", "a.txt"), "ours\ntheirs");
    let review = repo.prompt(1);
    assert!(review.contains("-<<<<<<<") && review.contains("a.txt"), "{review}");

    let repo = conflict_with_a_merge_driver();
    (*repo).agent("case \"$prompt\" in Review*) echo 'REJECTED: no' ;; *) echo done ;; esac");
    repo.merge(&["T2"]).exits(2);
    assert_eq!(repo.show("main", "a.txt"), "ours");
}

#[test]
fn without_an_agent_a_person_decides_on_the_result_of_a_merge_driver() {
    let repo = conflict_with_a_merge_driver();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2).err("git did not merge line by line: a.txt");
    repo.merge(&["resolve", "T2"]).succeeds();
    repo.merge(&["resolve", "T2"]).succeeds();
    assert_eq!(repo.show("main", "a.txt"), "ours\ntheirs");
}

#[test]
fn a_file_renamed_on_one_side_and_changed_on_the_other_lands_with_both_changes() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n9\n{last}\n");
    let base = |repo: &QueueRepo| {
        repo.write("a.txt", lines("1", "10"));
        repo.write("b.txt", "other\n");
    };
    let renamed = |repo: &QueueRepo| {
        fs::remove_file(repo.path("a.txt")).unwrap();
        repo.write("sub/a.txt", lines("one", "10"));
    };
    let changed = |repo: &QueueRepo| repo.write("a.txt", lines("1", "ten"));
    for order in [true, false] {
        let repo = if order {
            conflicting_tasks(base, renamed, changed)
        } else {
            conflicting_tasks(base, changed, renamed)
        };
        repo.merge(&["T2"]).succeeds();
        assert_eq!(repo.show("main", "sub/a.txt"), lines("one", "ten").trim_end());
        assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("a.txt\n"));
    }
}

#[test]
fn the_review_of_a_resolution_shows_the_versions_of_both_sides() {
    let repo = content();
    repo.agent("printf 'both\\n' > a.txt; echo done");
    repo.merge(&["T2"]).succeeds();
    let review = repo.prompt(1);
    for line in ["-ours", "-theirs", "-one", "+both"] {
        assert!(review.contains(line), "{line}: {review}");
    }
}

/// Writes a commit-graph that says of `child` that it follows `parent`.
fn forge_graph(repo: &QueueRepo, child: &str, parent: &str) {
    repo.git(["-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable"]).succeeds();
    let path = repo.path(".git/objects/info/commit-graph");
    let mut graph = fs::read(&path).unwrap();
    let number = |at: usize, graph: &[u8]| u32::from_be_bytes(graph[at..at + 4].try_into().unwrap()) as usize;
    let chunk = |id: &[u8]| {
        let entry =
            (0..usize::from(graph[6])).map(|entry| 8 + 12 * entry).find(|at| graph[*at..].starts_with(id));
        number(entry.unwrap() + 8, &graph)
    };
    let (ids, data, count) = (chunk(b"OIDL"), chunk(b"CDAT"), number(chunk(b"OIDF") + 4 * 255, &graph));
    let size = child.len() / 2;
    let name = |at: usize| -> String {
        graph[ids + at * size..][..size].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let at = |id: &str| (0..count).find(|at| name(*at) == id).unwrap();
    let (entry, parent) = (data + at(child) * (size + 16) + size, u32::try_from(at(parent)).unwrap());
    graph[entry..entry + 4].copy_from_slice(&parent.to_be_bytes());
    // Its generation is beyond that of all others.
    graph[entry + 8..entry + 12].copy_from_slice(&(1000u32 << 2).to_be_bytes());
    fs::remove_file(&path).unwrap();
    fs::write(&path, graph).unwrap();
}

#[test]
fn a_forged_commit_graph_does_not_undo_landed_work() {
    for format in ["--object-format=sha256", "--object-format=sha1"] {
        let repo = QueueRepo::on(&[format], &["T1"]);
        repo.git(["branch", "arborist/task/main/T2"]).succeeds();
        repo.on_branch("T2", |repo| {
            repo.write("T2.txt", "T2");
            repo.commit("work\n");
            repo.finish("T2");
        });
        repo.merge(&["T1"]).succeeds();
        // Git reads the commits that it is asked about themselves, and asks the graph about those behind them.
        let of = |revision: &str| repo.git(["rev-parse", revision]).answer();
        let (tip, child, parent) = (of("arborist/task/main/T2"), of("arborist/task/main/T2~1"), of("main"));
        forge_graph(&repo, &child, &parent);
        assert_eq!(repo.git(["merge-base", &tip, &parent]).answer(), parent, "git believes it");
        repo.merge(&["T2"]).succeeds();
        let files = repo.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(files.contains("T1.txt") && files.contains("T2.txt"), "{format}: {files}");
    }
}
