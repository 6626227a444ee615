//! The pre-push and update hooks, through real pushes to a bare repository.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use arborist_testkit::{Garden, Run};

const UNSOUND: &str = "done\n\nArborist-Step: complete\n";

/// Which side guards.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    PrePush,
    Update,
}

/// A garden with a bare remote `origin`, a run on `main` and a task's branch, both pushed.
fn grown(guard: Guard, format: &str) -> Garden {
    let garden = Garden::bare_ground(&[format]);
    garden.commit("begin\n");
    let remote = remote(&garden);
    garden.git(["init", "-q", "--bare", "-b", "main", format, remote.to_str().unwrap()]).succeeds();
    garden.git(["remote", "add", "origin", remote.to_str().unwrap()]).succeeds();
    let side = if guard == Guard::PrePush { garden.path("") } else { remote };
    garden.arborist_in(&side, ["hooks", "install", "-q"]).succeeds();
    garden.task("T1", "implement-pass");
    garden.git(["branch", "arborist/task/main/T2"]).succeeds();
    garden.git(["checkout", "-q", "arborist/task/main/T2"]).succeeds();
    garden.task("T2", "implement-pass");
    garden.git(["checkout", "-q", "main"]).succeeds();
    push(&garden, &["main", "arborist/task/main/T2"]).succeeds();
    garden
}

fn remote(garden: &Garden) -> PathBuf {
    garden.root().join("remote ö.git")
}

fn push(garden: &Garden, args: &[&str]) -> Run {
    garden.git(["push", "-q", "origin"].iter().chain(args))
}

fn on_both_sides(check: fn(&Garden)) {
    check(&grown(Guard::PrePush, "--object-format=sha1"));
    check(&grown(Guard::Update, "--object-format=sha1"));
    check(&grown(Guard::Update, "--object-format=sha256"));
    if Garden::sprout().git(["init", "-q", "--ref-format=reftable", "probe"]).code() == 0 {
        check(&grown(Guard::PrePush, "--ref-format=reftable"));
        check(&grown(Guard::Update, "--ref-format=reftable"));
    }
}

#[test]
fn sound_and_foreign_commits_are_pushed() {
    on_both_sides(|garden| {
        garden.commit("task(ui): fix\n");
        garden.task("T1", "test-pass");
        garden.commit(b"f\xfcr alle\n");
        garden.git(["tag", "-a", "-m", "a tag", "v1"]).succeeds();
        push(garden, &["main", "v1", "main:refs/arborist/saved/x"]).succeeds();
        push(garden, &["main"]).succeeds();
    });
}

#[test]
fn an_unsound_commit_is_refused_with_its_line_and_the_fix() {
    on_both_sides(|garden| {
        let bad = garden.commit(UNSOUND);
        garden.commit("on top\n");
        for target in ["main", "main:refs/heads/other", "main:refs/tags/v1", "main:refs/arborist/saved/x"] {
            push(garden, &[target])
                .exits(1)
                .err(&format!("error: commit {} claims to be a task's and is not sound", &bad[..10]))
                .err("line 1: done")
                .err("hint: reword it");
        }
    });
}

#[test]
fn a_nul_does_not_hide_a_claim() {
    let garden = grown(Guard::PrePush, "--object-format=sha1");
    garden.commit("task(main@T1@complete): complete\0\n");
    push(&garden, &["main"]).exits(1).err("a NUL byte");
}

#[test]
fn what_the_remote_has_already_is_not_checked_again() {
    let garden = grown(Guard::PrePush, "--object-format=sha1");
    garden.commit(UNSOUND);
    push(&garden, &["--no-verify", "main"]).succeeds();
    garden.commit("more\n");
    push(&garden, &["main"]).succeeds();
    push(&garden, &["main:refs/heads/copy"]).succeeds();
}

#[test]
fn a_branch_of_arborists_is_never_turned_back() {
    on_both_sides(|garden| {
        for target in ["arborist/task/main/T2", "refs/arborist/saved/x"] {
            push(garden, &[&format!("arborist/task/main/T2:{target}")]).succeeds();
            push(garden, &["-f", &format!("main:{target}")]).exits(1).err("may only grow");
        }
    });
}

#[test]
fn a_branch_of_arborists_goes_only_when_nothing_goes_with_it() {
    on_both_sides(|garden| {
        push(garden, &["--delete", "arborist/task/main/T2"]).exits(1).err("1 commit would be lost with it");
        garden.git(["merge", "-q", "--no-ff", "-m", "land", "arborist/task/main/T2"]).succeeds();
        push(garden, &["main"]).succeeds();
        push(garden, &["--delete", "arborist/task/main/T2"]).succeeds();
    });
}

#[test]
fn what_comes_and_goes_while_a_run_works_may_go() {
    on_both_sides(|garden| {
        garden.git(["commit", "-q", "--allow-empty", "-m", "a ticket"]).succeeds();
        for name in [
            "refs/arborist/queue/tickets/main/T1",
            "refs/arborist/landing/main",
            "refs/arborist/claims/main/T1",
        ] {
            push(garden, &[&format!("HEAD:{name}")]).succeeds();
            push(garden, &["-f", &format!("HEAD~1:{name}")]).succeeds();
            push(garden, &["--delete", name]).succeeds();
        }
        push(garden, &["HEAD:refs/arborist/gates/x"]).succeeds();
        push(garden, &["--delete", "refs/arborist/gates/x"]).exits(1).err("would be lost");
    });
}

#[test]
fn a_branch_may_go_in_the_push_that_lands_it_but_not_with_the_branch_that_holds_it() {
    let garden = grown(Guard::PrePush, "--object-format=sha1");
    garden.git(["branch", "copy", "arborist/task/main/T2"]).succeeds();
    push(&garden, &["copy"]).succeeds();
    push(&garden, &["--delete", "arborist/task/main/T2", "copy"]).exits(1).err("would be lost");
    garden.git(["merge", "-q", "--no-ff", "-m", "land", "copy"]).succeeds();
    push(&garden, &["main", ":copy", ":arborist/task/main/T2"]).succeeds();
}

#[test]
fn recorded_state_is_not_dropped_from_any_branch() {
    on_both_sides(|garden| {
        garden.commit("mine\n");
        push(garden, &["main:feature"]).succeeds();
        push(garden, &["-f", "main~1:feature"]).succeeds();
        garden.task("T1", "test-pass");
        garden.task("T1", "failed");
        let last = garden.git(["rev-parse", "main"]).answer();
        push(garden, &["main:feature"]).succeeds();
        push(garden, &["-f", "main~3:feature"])
            .exits(1)
            .err("'refs/heads/feature' would lose 2 commits with the state of tasks")
            .err(&last[..10]);
        push(garden, &["--delete", "feature"]).exits(1).err("would lose 2 commits");
        push(garden, &["main"]).succeeds();
        push(garden, &["--delete", "feature"]).succeeds();
    });
}

#[test]
fn commits_that_are_not_here_cannot_be_judged_so_ours_are_refused() {
    let garden = grown(Guard::PrePush, "--object-format=sha1");
    let elsewhere = garden.root().join("clone");
    let url = remote(&garden);
    garden.git_in(garden.root(), ["clone", "-q", url.to_str().unwrap(), "clone"]).succeeds();
    let branch = "arborist/task/main/T2";
    garden.git_in(&elsewhere, ["checkout", "-q", branch]).succeeds();
    garden.git_in(&elsewhere, ["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    garden.git_in(&elsewhere, ["push", "-q", "origin", branch, &format!("{branch}:other")]).succeeds();

    push(&garden, &["-f", branch]).exits(1).err("commits that are not here").err("hint: fetch first");
    push(&garden, &["--delete", branch]).exits(1).err("hint: fetch first");
    push(&garden, &["-f", "main:other"]).succeeds().err("warning: what 'refs/heads/other' holds is not here");
    garden.git(["fetch", "-q"]).succeeds();
    push(&garden, &["-f", branch]).exits(1).err("may only grow");
}

#[test]
fn a_push_by_address_is_checked_as_well() {
    let garden = grown(Guard::PrePush, "--object-format=sha1");
    let url = remote(&garden);
    let url = url.to_str().unwrap();
    garden.git(["push", "-q", url, "main:refs/heads/third"]).succeeds();
    garden.commit(UNSOUND);
    garden.git(["push", "-q", url, "main:refs/heads/third"]).exits(1).err("is not sound");
}

#[test]
fn thousands_of_refs_are_checked_in_one_go() {
    let garden = Garden::sprout();
    let old = garden.git(["rev-parse", "HEAD"]).answer();
    let new = garden.task("T1", "implement-pass");
    let lines = |new: &str, old: &str, prefix: &str| -> Vec<u8> {
        let line = |n| format!("refs/heads/x {new} {prefix}{n} {old}\n");
        (0..40_000).map(line).collect::<String>().into_bytes()
    };
    let zero = "0".repeat(40);
    let run = ["hooks", "run", "pre-push", "origin", "url"];
    let begun = Instant::now();
    for prefix in ["refs/heads/b", "refs/heads/arborist/task/main/T"] {
        garden.arborist_with(run, &lines(&new, &zero, prefix)).succeeds();
        garden.arborist_with(run, &lines(&new, &old, prefix)).succeeds();
        garden.arborist_with(run, &lines(&zero, &new, prefix)).exits(1).err("and 39995 more");
    }
    garden.arborist_with(run, &lines(&old, &new, "refs/heads/b")).exits(1).err("would lose 1 commit with");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn many_branches_of_arborists_may_grow_and_only_grow_in_one_push() {
    on_both_sides(|garden| {
        let names: Vec<String> = (0..6).map(|n| format!("arborist/task/main/N{n}")).collect();
        let specs: Vec<String> = names.iter().map(|name| format!("main:refs/heads/{name}")).collect();
        let all = |force: &[&str]| {
            let specs = specs.iter().map(String::as_str);
            push(garden, &force.iter().copied().chain(specs).collect::<Vec<_>>())
        };
        all(&[]).succeeds();
        garden.task("T1", "test-pass");
        garden.git(["merge", "-q", "--no-ff", "-m", "land", "arborist/task/main/T2"]).succeeds();
        all(&[]).succeeds();
        garden.git(["reset", "-q", "--hard", "HEAD~1"]).succeeds();
        all(&["-f"]).exits(1).err("may only grow");
    });
}

#[test]
fn a_subject_below_empty_lines_is_found() {
    on_both_sides(|garden| {
        garden.commit("\n\ntask(main@T1@complete): complete\n");
        push(garden, &["main"]).exits(1).err("empty lines before the subject");
    });
}

#[test]
fn lines_that_git_does_not_write_are_an_error() {
    let garden = Garden::sprout();
    let run = ["hooks", "run", "pre-push", "origin", "url"];
    garden.arborist_with(run, b"").succeeds();
    garden.arborist_with(run, b"nonsense\n").exits(128).err("a line that git does not give to pre-push");
    garden.arborist(["hooks", "run", "update", "refs/heads/x", "zero", "one"]).exits(129);
}

#[test]
fn a_branch_whose_name_is_not_utf8_is_guarded_too() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let garden = grown(Guard::Update, "--object-format=sha1");
    let push = |spec: &[u8]| garden.git([OsStr::new("push"), OsStr::new("origin"), OsStr::from_bytes(spec)]);
    push(b"main:refs/heads/f\xfcr").succeeds();
    garden.task("T1", "test-pass");
    push(b"main:refs/heads/f\xfcr").succeeds();
    push(b":refs/heads/f\xfcr").exits(1).err("would lose 1 commit with the state");
}

#[test]
fn without_the_binary_only_arborists_refs_are_refused() {
    for guard in [Guard::PrePush, Guard::Update] {
        let garden = grown(guard, "--object-format=sha1");
        let (side, hook) = match guard {
            Guard::PrePush => (garden.path(".git"), "hooks/pre-push"),
            Guard::Update => (remote(&garden), "hooks/update"),
        };
        let text = std::fs::read_to_string(side.join(hook)).unwrap();
        let named = text.lines().find(|line| line.starts_with("arborist=")).unwrap();
        std::fs::write(side.join(hook), text.replace(named, "arborist='/nowhere'")).unwrap();
        garden.task("T1", "test-pass");
        let push = |target: &str| {
            let mut git = garden.command("git", &garden.path(""));
            Run::of(git.env("PATH", "/usr/bin:/bin").args(["push", "-q", "origin", target]), b"")
        };
        push("main").succeeds();
        push("main:refs/arborist/saved/y").exits(1).err("git-arborist-hooks is not there to check");
    }
}
