//! `git arborist worktree`: a worktree and a branch for each task, and the user's checkout left alone.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

/// Makes the worktree of a task, and gives its path.
fn add(repo: &TestRepo, task: &str) -> PathBuf {
    repo.arborist(["worktree", "add", task]).answer().into()
}

fn list(repo: &TestRepo, options: &[&str]) -> Vec<Value> {
    let answer = repo.arborist(["worktree", "list", "--json"].iter().chain(options)).answer();
    let document: Value = serde_json::from_str(&answer).unwrap();
    document["worktrees"].as_array().unwrap().clone()
}

fn tip(repo: &TestRepo, revision: &str) -> String {
    repo.git(["rev-parse", revision]).answer()
}

/// Refs, index, `HEAD` and files of the checkout.
fn checkout(repo: &TestRepo) -> [String; 4] {
    [
        repo.git(["symbolic-ref", "HEAD"]).answer(),
        tip(repo, "HEAD"),
        repo.git(["ls-files", "-s"]).answer(),
        repo.git(["status", "--porcelain", "--ignored"]).answer(),
    ]
}

#[test]
fn a_task_gets_a_folder_and_a_branch_and_the_checkout_is_untouched() {
    let repo = TestRepo::init();
    repo.write("a", "a");
    repo.commit("a\n");
    let before = checkout(&repo);
    let base = tip(&repo, "HEAD");
    let said = repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(path, repo.root().canonicalize().unwrap().join("repo.arborist/T1"));
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "a");
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), base);
    assert_eq!(repo.git_in(&path, ["symbolic-ref", "HEAD"]).answer(), "refs/heads/arborist/task/main/T1");
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), "");
    assert_eq!(checkout(&repo), before);
    assert_eq!(repo.arborist(["worktree", "path", "T1"]).answer(), path.display().to_string());
}

#[test]
fn tracked_instructions_for_agents_are_in_every_worktree_and_are_not_changed() {
    let worker = r#"case "$prompt" in Review*) echo APPROVED ;; *) cat CLAUDE.md .claude/settings.json > copy.txt ;; esac"#;
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", worker);
    repo.write("CLAUDE.md", "Be brief.\n");
    repo.write(".claude/settings.json", "{}\n");
    repo.commit("instructions\n");
    let path = add(&repo, "T002");
    assert_eq!(fs::read_to_string(path.join("CLAUDE.md")).unwrap(), "Be brief.\n");
    assert_eq!(fs::read_to_string(path.join(".claude/settings.json")).unwrap(), "{}\n");
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), "");
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).succeeds();
    assert_eq!(repo.git(["show", "HEAD:copy.txt"]).answer(), "Be brief.\n{}");
    assert_eq!(repo.git(["log", "--format=%s", "--", "CLAUDE.md", ".claude"]).answer(), "instructions");
}

#[test]
fn tasks_do_not_see_each_others_files() {
    let repo = TestRepo::init();
    let (one, other) = (add(&repo, "T1"), add(&repo, "T10"));
    fs::write(one.join("f"), "1").unwrap();
    assert!(!other.join("f").exists() && !repo.path("f").exists());
    assert_eq!(repo.arborist_in(&one, ["worktree", "path", "T10"]).answer(), other.display().to_string());
}

#[test]
fn add_reports_that_a_branch_with_commits_is_continued() {
    let repo = TestRepo::init();
    let path = add(&repo, "T1");
    repo.git_in(&path, ["commit", "-q", "--allow-empty", "-m", "work"]).succeeds();
    let work = tip(&repo, "arborist/task/main/T1");
    repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    repo.arborist(["worktree", "remove", "T1"]).succeeds().matches_snapshot();
    assert!(!path.exists());
    repo.commit("main goes on\n");
    repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), work);
    repo.arborist(["worktree", "remove", "T1"]).succeeds();
    repo.arborist(["worktree", "add", "T1", "--base", "main"]).exits(2).matches_snapshot();
}

#[test]
fn a_branch_without_commits_of_its_own_moves_to_the_base() {
    let repo = TestRepo::init();
    let path = add(&repo, "T1");
    repo.arborist(["worktree", "remove", "T1"]).succeeds();
    let head = repo.commit("main goes on\n");
    repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), head);
    repo.arborist(["worktree", "remove", "T1"]).succeeds();
    let said = repo.arborist(["worktree", "add", "T1"]).succeeds().never("created").never("moved");
    said.err("using the existing branch 'arborist/task/main/T1' at ");
}

#[test]
fn add_accepts_another_base() {
    let repo = TestRepo::init();
    let first = tip(&repo, "HEAD");
    repo.commit("more\n");
    let path = PathBuf::from(repo.arborist(["worktree", "add", "T1", "--base", "HEAD~1"]).answer());
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), first);
    repo.arborist(["worktree", "add", "T2", "--base", "nowhere"]).exits(1).matches_snapshot();
}

#[test]
fn files_and_worktrees_of_others_that_are_in_the_way_are_kept() {
    let repo = TestRepo::init();
    repo.write("../repo.arborist/T1/mine", "mine");
    repo.arborist(["worktree", "add", "T1"]).exits(2).matches_snapshot();
    assert_eq!(repo.read("../repo.arborist/T1/mine"), "mine");
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist"]).answer(), "", "no branch is left");
    assert_eq!(list(&repo, &[]).len(), 0);
    let other = repo.root().join("other");
    repo.git(["branch", "arborist/task/main/T2"]).succeeds();
    repo.git(["worktree", "add", "-q", other.to_str().unwrap(), "arborist/task/main/T2"]).succeeds();
    repo.arborist(["worktree", "add", "T2"]).exits(2).matches_snapshot();
    assert_eq!(list(&repo, &[])[0]["kind"], "foreign");
}

#[test]
fn tasks_with_the_same_id_in_two_runs_have_separate_worktrees() {
    let repo = TestRepo::init();
    let one = add(&repo, "T1");
    repo.git(["checkout", "-q", "-b", "feature/x"]).succeeds();
    let other = add(&repo, "T1");
    assert_ne!(one, other);
    assert_eq!(repo.git_in(&other, ["branch", "--show-current"]).answer(), "arborist/task/feature%2Fx/T1");
    assert_eq!(
        repo.arborist(["worktree", "path", "T1", "--scope", "main"]).answer(),
        one.display().to_string()
    );
    let runs: Vec<Value> = list(&repo, &[]).into_iter().map(|row| row["run"].clone()).collect();
    assert_eq!(runs, ["main", "feature/x"]);
}

#[test]
fn limits_are_checked_before_a_worktree_is_created() {
    let repo = TestRepo::init();
    repo.git(["config", "arborist.worktree.max", "1"]).succeeds();
    add(&repo, "T1");
    repo.arborist(["worktree", "add", "T2"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist/task/main/T2"]).answer(), "");
    repo.arborist(["worktree", "add", "T1"]).succeeds();
    let repo = TestRepo::init();
    repo.git(["config", "arborist.worktree.min-free", "999999999"]).succeeds();
    repo.arborist(["worktree", "add", "T2"]).exits(128).matches_snapshot();
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist"]).answer(), "");
}

#[test]
fn a_deleted_worktree_folder_is_shown_as_missing_and_pruned_without_its_branch() {
    let repo = TestRepo::init();
    let path = add(&repo, "T1");
    add(&repo, "T2");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(list(&repo, &[])[0]["state"], "missing");
    repo.arborist(["worktree", "path", "T1"]).exits(1).matches_snapshot();
    repo.arborist(["worktree", "prune"]).succeeds().matches_snapshot();
    assert_eq!(list(&repo, &[]).len(), 1);
    assert_ne!(tip(&repo, "arborist/task/main/T1"), "", "the branch is kept");
    let path = add(&repo, "T1");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(add(&repo, "T1"), path, "it is made anew without pruning");
}

#[test]
fn a_worktree_with_uncommitted_files_is_removed_only_by_force_and_after_saving() {
    let repo = TestRepo::init();
    repo.write("a", "a");
    repo.commit("a\n");
    let path = add(&repo, "T1");
    fs::write(path.join("a"), "changed").unwrap();
    fs::write(path.join("new"), "new").unwrap();
    repo.arborist(["worktree", "remove", "T1"]).exits(1).matches_snapshot();
    let said = repo.arborist(["worktree", "remove", "--force", "T1"]).succeeds().matches_snapshot();
    let saved = said.stderr();
    let saved = saved.split_whitespace().find(|word| word.starts_with("refs/")).unwrap();
    assert!(!path.exists());
    assert_eq!(repo.git(["show", &format!("{saved}:new")]).answer(), "new");
    assert_eq!(repo.git(["show", &format!("{saved}:a")]).answer(), "changed");
    repo.arborist(["worktree", "remove", "T1"]).exits(1).matches_snapshot();
}

#[test]
fn commits_on_no_branch_are_saved_before_their_worktree_is_removed() {
    let repo = TestRepo::init();
    let goes: [(&str, &[&str]); 3] = [
        ("T1", &["worktree", "remove", "T1"]),
        ("T2", &["worktree", "prune"]),
        ("T3", &["worktree", "remove", "--force", "T3"]),
    ];
    for (task, command) in goes {
        let path = add(&repo, task);
        repo.git_in(&path, ["checkout", "-q", "--detach"]).succeeds();
        repo.git_in(&path, ["commit", "-q", "--allow-empty", "-m", task]).succeeds();
        let work = repo.git_in(&path, ["rev-parse", "HEAD"]).answer();
        repo.git_in(&path, ["update-ref", "refs/worktree/mine", "HEAD"]).succeeds();
        match task {
            "T2" => fs::remove_dir_all(&path).unwrap(),
            "T3" => fs::write(path.join("new"), "new").unwrap(),
            _ => {}
        }
        let under = format!("refs/arborist/saved/main/{task}/");
        repo.arborist(command).succeeds().err(&format!("saved as {under}"));
        assert_eq!(repo.git(["for-each-ref", "--contains", &work, &under]).answer().lines().count(), 1);
    }
    let path = add(&repo, "T4");
    repo.git_in(&path, ["checkout", "-q", "--detach"]).succeeds();
    repo.arborist(["worktree", "remove", "T4"]).succeeds().never("saved");
}

#[test]
fn a_dirty_checkout_causes_a_warning() {
    let repo = TestRepo::init();
    repo.write("mine", "mine");
    repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    repo.arborist(["worktree", "add", "T2", "--allow-dirty"]).succeeds().never("warning");
    assert_eq!(repo.read("mine"), "mine");
}

#[test]
fn add_explains_why_a_repository_cannot_have_worktrees() {
    let repo = TestRepo::with_options(&[]);
    repo.arborist(["worktree", "add", "T1"]).exits(128).matches_snapshot();
    let bare = TestRepo::with_options(&["--bare"]);
    bare.arborist(["worktree", "add", "T1"]).exits(128).matches_snapshot();
    repo.arborist_in(&repo.home(), ["worktree", "list"]).exits(128).matches_snapshot();
    let repo = TestRepo::init();
    repo.git(["checkout", "-q", "--detach"]).succeeds();
    repo.arborist(["worktree", "add", "T1"]).exits(128).matches_snapshot();
    repo.arborist(["worktree", "add", "../x"]).exits(129);
}

#[test]
fn worktree_list_shows_all_details() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    let path = add(&repo, "T1");
    repo.git(["branch", "arborist/task/main/T2"]).succeeds();
    let message = arborist_testkit::TaskCommit::new("T1", "implement-pass").to_string();
    repo.git_in(&path, ["commit", "-q", "--allow-empty", "-m", &message]).succeeds();
    fs::write(path.join("new"), "new").unwrap();
    let rows = list(&repo, &["--long", "--branches"]);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    let row = &rows[0];
    assert_eq!(
        (&row["task"], &row["kind"], &row["ahead"], &row["behind"], &row["dirty"]),
        (&"T1".into(), &"task".into(), &1.into(), &0.into(), &1.into())
    );
    assert_eq!(
        (&rows[1]["task"], &rows[1]["kind"], &rows[1]["path"]),
        (&"T2".into(), &"branch".into(), &Value::Null)
    );
    repo.arborist(["worktree", "list"]).succeeds().matches_snapshot().never("T2");
    repo.arborist(["worktree", "show", "T1"]).succeeds().matches_snapshot();
    assert_eq!(row["state"], "implementing", "{row:#}");
}

#[test]
fn a_worktree_inside_the_checkout_is_hidden_from_git_status() {
    let repo = TestRepo::init();
    repo.write("../repo.arborist", "a file");
    let path = add(&repo, "T1");
    assert!(path.ends_with("repo/.arborist/worktrees/T1"), "{}", path.display());
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    let repo = TestRepo::init();
    repo.git(["config", "arborist.worktree.base", "trees/{repository}"]).succeeds();
    assert!(add(&repo, "T1").ends_with("repo/trees/repo/T1"));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.git(["config", "arborist.worktree.base", "trees/repo/T1/more"]).succeeds();
    repo.arborist(["worktree", "add", "T2"]).exits(2).matches_snapshot();
    repo.git(["config", "arborist.worktree.base", ".git/trees"]).succeeds();
    repo.arborist(["worktree", "add", "T2"]).exits(2).matches_snapshot();
}

#[test]
fn existing_lines_of_the_exclude_file_are_kept() {
    let repo = TestRepo::init();
    let own = repo.path(".git/info/exclude");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, b"caf\xe9.txt").unwrap();
    repo.git(["config", "arborist.worktree.base", "trees"]).succeeds();
    add(&repo, "T1");
    add(&repo, "T2");
    assert_eq!(
        fs::read(&own).unwrap(),
        b"caf\xe9.txt\n/trees/.removed-*/\n/trees/*.replaced.*/\n/trees/T1/\n/trees/T2/\n"
    );
}

#[test]
fn an_exclude_file_that_is_a_link_is_not_written_through() {
    let repo = TestRepo::init();
    let (own, shared) = (repo.path(".git/info/exclude"), repo.root().join("my-excludes"));
    let _ = fs::remove_file(&own);
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&shared, "mine\n").unwrap();
    std::os::unix::fs::symlink(&shared, &own).unwrap();
    repo.git(["config", "arborist.worktree.base", "trees"]).succeeds();
    repo.arborist(["worktree", "add", "T1"]).succeeds();
    assert_eq!(fs::read(&shared).unwrap(), b"mine\n");
    assert!(own.is_symlink());
    // The worktrees are hidden all the same.
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn add_works_the_same_from_subfolders_and_other_worktrees() {
    let repo = TestRepo::init();
    repo.write("sub/a", "a");
    repo.commit("a\n");
    let path = PathBuf::from(repo.arborist_in(&repo.path("sub"), ["worktree", "add", "T1"]).answer());
    let other = PathBuf::from(repo.arborist_in(&path, ["worktree", "add", "T2"]).answer());
    assert_eq!(path.parent(), other.parent(), "no nesting");
    assert_eq!(repo.git_in(&other, ["branch", "--show-current"]).answer(), "arborist/task/main/T2");
    let mut command = repo.command("git", repo.root());
    command.env("GIT_DIR", repo.path(".git")).env("GIT_WORK_TREE", repo.path(""));
    let path: String = Run::of(command.args(["arborist", "worktree", "add", "T3"]), b"").answer();
    assert_eq!(repo.git_in(Path::new(&path), ["status", "--porcelain"]).answer(), "");
    assert!(Path::new(&path).join("sub/a").exists());
}

#[test]
fn a_mistyped_task_of_a_plan_creates_no_branch() {
    let repo = TestRepo::init();
    repo.arborist(["worktree", "add", "anything"]).succeeds();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    repo.commit("a plan\n");
    let refused = repo.arborist(["worktree", "add", "T0O1"]).exits(1);
    refused.matches_snapshot();
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist/task/main/T0O1"]).answer(), "");
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    repo.arborist(["worktree", "add", "anything"]).succeeds().matches_snapshot();
    repo.arborist(["worktree", "add", "T0O1", "--unplanned"]).succeeds();
}

#[test]
fn a_mistyped_task_is_reported_with_the_nearest_task() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    repo.commit("a plan\n");
    add(&repo, "T001");
    repo.arborist(["worktree", "path", "T01"]).exits(1).matches_snapshot();
    repo.arborist(["worktree", "show", "T01"]).exits(1).err("did you mean 'T001'?");
    repo.arborist(["worktree", "path", "T002"]).exits(1).err("git arborist worktree add T002");
}

#[test]
fn a_worktree_in_use_by_a_process_is_not_removed() {
    let repo = TestRepo::init();
    let place = add(&repo, "T1");
    let inside = place.join("sub");
    fs::create_dir(&inside).unwrap();
    let from_inside = repo.arborist_in(&inside, ["worktree", "remove", "T1"]).exits(1);
    from_inside.err("this command was started in '").err("leave the worktree");
    let mut sleeper = repo.command("sleep", &inside).arg("60").spawn().unwrap();
    let busy = repo.arborist(["worktree", "remove", "T1"]).exits(3);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    busy.err(&format!("process {} is running in '", sleeper.id()));
    assert!(inside.is_dir(), "nothing was removed");
    assert_eq!(list(&repo, &[])[0]["state"], "pending");
    repo.arborist(["worktree", "remove", "T1"]).succeeds().out("removed ");
}

#[test]
fn a_worktree_with_a_broken_git_file_is_shown_as_broken_and_repaired() {
    for broken in [Some("garbage\n"), Some("gitdir: /nowhere\n"), None] {
        let repo = TestRepo::init();
        let place = add(&repo, "T1");
        match broken {
            Some(text) => fs::write(place.join(".git"), text).unwrap(),
            None => fs::remove_file(place.join(".git")).unwrap(),
        }
        assert_eq!(list(&repo, &[])[0]["state"], "broken");
        repo.arborist(["worktree", "list"]).succeeds().out("broken").err("git arborist worktree repair");
        for verb in ["show", "path"] {
            repo.arborist(["worktree", verb, "T1"]).exits(1).err("git arborist worktree repair");
        }
        repo.arborist(["worktree", "repair"]).succeeds().out("repaired ").never("error");
        assert_eq!(list(&repo, &[])[0]["state"], "pending");
        assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "");
    }
}

#[test]
fn a_worktree_with_a_broken_head_is_shown_as_broken_and_repaired() {
    for head in [Some("zzz\n"), Some(""), None] {
        let repo = TestRepo::init();
        let place = add(&repo, "T1");
        fs::write(place.join("new"), "mine\n").unwrap();
        match head {
            Some(text) => repo.write(".git/worktrees/T1/HEAD", text),
            None => fs::remove_file(repo.path(".git/worktrees/T1/HEAD")).unwrap(),
        }
        assert_eq!(list(&repo, &[])[0]["state"], "broken", "{head:?}");
        repo.arborist(["worktree", "list", "--long"]).succeeds().err("git arborist worktree repair");
        for verb in ["show", "path"] {
            repo.arborist(["worktree", verb, "T1"]).exits(1).err("git arborist worktree repair");
        }
        repo.arborist(["worktree", "repair"]).succeeds().out("repaired ").never("broken");
        assert_eq!(list(&repo, &[])[0]["state"], "pending");
        assert_eq!(
            repo.git_in(&place, ["symbolic-ref", "HEAD"]).answer(),
            "refs/heads/arborist/task/main/T1"
        );
        assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "?? new");
    }
}

#[test]
fn a_worktree_that_cannot_be_repaired_is_reported() {
    let repo = TestRepo::init();
    let place = add(&repo, "T1");
    repo.write(".git/worktrees/T1/HEAD", "zzz\n");
    fs::remove_file(repo.path(".git/worktrees/T1/logs/HEAD")).unwrap();
    repo.arborist(["worktree", "repair"]).exits(1).err("is still broken");
    assert!(place.exists());
}

#[test]
fn an_empty_folder_in_the_place_of_a_git_file_is_replaced() {
    let repo = TestRepo::init();
    let place = add(&repo, "T1");
    fs::remove_file(place.join(".git")).unwrap();
    fs::create_dir(place.join(".git")).unwrap();
    repo.arborist(["worktree", "repair"]).succeeds().out("repaired ");
    assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_worktree_with_a_damaged_git_directory_is_shown_as_broken_and_repaired() {
    let damages: [fn(&TestRepo); 4] = [
        |repo| fs::remove_dir_all(repo.path(".git/worktrees/T1")).unwrap(),
        |repo| repo.write(".git/worktrees/T1/commondir", "/nowhere\n"),
        |repo| repo.write(".git/worktrees/T1/index", "zzz\n"),
        |repo| repo.write(".git/worktrees/T1/index", ""),
    ];
    for damage in damages {
        let repo = TestRepo::init();
        let place = add(&repo, "T1");
        fs::write(place.join("done"), "done\n").unwrap();
        repo.git_in(&place, ["add", "done"]).succeeds();
        repo.git_in(&place, ["commit", "-q", "-m", "done"]).succeeds();
        fs::write(place.join("done"), "changed\n").unwrap();
        fs::write(place.join("new"), "mine\n").unwrap();
        damage(&repo);
        assert_eq!(list(&repo, &[])[0]["state"], "broken");
        repo.arborist(["worktree", "list"]).succeeds().out("broken").err("git arborist worktree repair");
        for verb in ["show", "path"] {
            repo.arborist(["worktree", verb, "T1"]).exits(1).err("git arborist worktree repair");
        }
        repo.arborist(["worktree", "repair"]).succeeds().out("repaired ").never("error");
        assert_eq!(list(&repo, &[])[0]["state"], "pending");
        assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), " M done\n?? new");
        assert_eq!(
            repo.git_in(&place, ["symbolic-ref", "HEAD"]).answer(),
            "refs/heads/arborist/task/main/T1"
        );
        repo.arborist(["worktree", "repair"]).succeeds().never("repaired");
        repo.arborist(["worktree", "remove", "T1", "--force"]).succeeds().out("removed ");
    }
}

#[test]
fn a_broken_worktree_with_an_unknown_branch_is_kept_and_reported_with_advice() {
    let repo = TestRepo::init();
    let place = add(&repo, "T1");
    let lane = place.with_file_name("lane-7");
    fs::remove_dir_all(repo.path(".git/worktrees/T1")).unwrap();
    fs::rename(&place, &lane).unwrap();
    fs::write(lane.join("new"), "mine\n").unwrap();
    assert_eq!(list(&repo, &[])[0]["state"], "broken");
    let said = repo.arborist(["worktree", "repair"]).exits(1).err("is still broken");
    said.err("keep its files and move it away with: mv ").never("unable to locate");
    assert_eq!(fs::read_to_string(lane.join("new")).unwrap(), "mine\n");
}
