//! The pre-push and pre-receive hooks, through real pushes to a bare repository.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo};

const UNSOUND: &str = "done\n\nArborist-Step: complete\n";

/// Which side guards.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    PrePush,
    PreReceive,
}

/// A repository with a bare remote `origin`, a run on `main` and a task's branch, both pushed.
fn with_finished(guard: Guard, format: &str) -> TestRepo {
    let repo = TestRepo::with_options(&[format]);
    repo.commit("begin\n");
    let remote = remote(&repo);
    repo.git(["init", "-q", "--bare", "-b", "main", format, remote.to_str().unwrap()]).succeeds();
    repo.git(["remote", "add", "origin", remote.to_str().unwrap()]).succeeds();
    let side = if guard == Guard::PrePush { repo.path("") } else { remote };
    repo.arborist_in(&side, ["hooks", "install", "-q"]).succeeds();
    repo.task("T1", "implement-pass");
    repo.git(["branch", "arborist/task/main/T2"]).succeeds();
    repo.git(["checkout", "-q", "arborist/task/main/T2"]).succeeds();
    repo.task("T2", "implement-pass");
    repo.git(["checkout", "-q", "main"]).succeeds();
    push(&repo, &["main", "arborist/task/main/T2"]).succeeds();
    repo
}

fn remote(repo: &TestRepo) -> PathBuf {
    repo.root().join("remote ö.git")
}

fn push(repo: &TestRepo, args: &[&str]) -> Run {
    repo.git(["push", "-q", "origin"].iter().chain(args))
}

fn on_both_sides(check: fn(&TestRepo)) {
    check(&with_finished(Guard::PrePush, "--object-format=sha1"));
    check(&with_finished(Guard::PreReceive, "--object-format=sha1"));
    if std::env::var_os("ARBORIST_EVERY_VARIANT").is_some() {
        in_other_formats(check);
    }
}

/// The same where objects and refs are stored in other ways.
fn in_other_formats(check: fn(&TestRepo)) {
    check(&with_finished(Guard::PreReceive, "--object-format=sha256"));
    if TestRepo::init().git(["init", "-q", "--ref-format=reftable", "probe"]).code() == 0 {
        check(&with_finished(Guard::PrePush, "--ref-format=reftable"));
        check(&with_finished(Guard::PreReceive, "--ref-format=reftable"));
    }
}

#[test]
fn valid_task_commits_and_ordinary_commits_are_pushed() {
    let check = |repo: &TestRepo| {
        repo.commit("task(ui): fix\n");
        repo.task("T1", "test-pass");
        repo.commit(b"f\xfcr alle\n");
        repo.git(["tag", "-a", "-m", "a tag", "v1"]).succeeds();
        push(repo, &["main", "v1", "main:refs/arborist/saved/x"]).succeeds();
        push(repo, &["main"]).succeeds();
    };
    on_both_sides(check);
    in_other_formats(check);
}

#[test]
fn an_invalid_task_commit_is_refused_with_its_line_and_the_fix() {
    on_both_sides(|repo| {
        let bad = repo.commit(UNSOUND);
        repo.commit("on top\n");
        for target in ["main", "main:refs/heads/other", "main:refs/tags/v1", "main:refs/arborist/saved/x"] {
            push(repo, &[target])
                .exits(1)
                .err(&format!(
                    "error: commit {} looks like a task commit, but its message is not valid",
                    &bad[..10]
                ))
                .err("line 1: done")
                .err("hint: reword it");
        }
    });
}

#[test]
fn a_commit_with_all_trailers_that_the_hints_name_is_pushed() {
    on_both_sides(|repo| {
        let subject = "task(main@T1@complete): complete \"do it\"";
        repo.commit(format!("{subject}\n"));
        let said = push(repo, &["main"]).exits(1).stderr();
        let lines = said.lines().filter_map(|line| line.split_once("hint:   "));
        // The name of the report is for the user to choose.
        let trailers: Vec<String> = lines
            .map(|(_, line)| line.split('<').next().unwrap_or_default().trim_end().to_owned())
            .map(|line| if line.ends_with(':') { line + " report.json" } else { line })
            .collect();
        assert!(trailers.len() > 1, "{said}");
        repo.git(["reset", "-q", "--soft", "HEAD~1"]).succeeds();
        repo.commit(format!("{subject}\n\n{}\n", trailers.join("\n")));
        push(repo, &["main"]).succeeds();
    });
}

#[test]
fn a_nul_byte_does_not_hide_a_task_commit() {
    let repo = with_finished(Guard::PrePush, "--object-format=sha1");
    repo.commit("task(main@T1@complete): complete\0\n");
    push(&repo, &["main"]).exits(1).err("a NUL byte");
}

#[test]
fn commits_that_the_remote_already_has_are_not_checked_again() {
    let repo = with_finished(Guard::PrePush, "--object-format=sha1");
    repo.commit(UNSOUND);
    push(&repo, &["--no-verify", "main"]).succeeds();
    repo.commit("more\n");
    push(&repo, &["main"]).succeeds();
    push(&repo, &["main:refs/heads/copy"]).succeeds();
}

#[test]
fn arborist_refs_accept_only_fast_forward_pushes() {
    on_both_sides(|repo| {
        for target in ["arborist/task/main/T2", "refs/arborist/saved/x"] {
            push(repo, &[&format!("arborist/task/main/T2:{target}")]).succeeds();
            push(repo, &["-f", &format!("main:{target}")]).exits(1).err("this push is not a fast-forward");
        }
    });
}

#[test]
fn a_task_branch_can_be_deleted_only_if_no_commit_is_lost() {
    let check = |repo: &TestRepo| {
        push(repo, &["--delete", "arborist/task/main/T2"]).exits(1).err("1 commit would be lost");
        repo.git(["merge", "-q", "--no-ff", "-m", "land", "arborist/task/main/T2"]).succeeds();
        push(repo, &["main"]).succeeds();
        push(repo, &["--delete", "arborist/task/main/T2"]).succeeds();
    };
    on_both_sides(check);
    in_other_formats(check);
}

#[test]
fn refs_of_tickets_landings_and_claims_can_be_rewound_and_deleted() {
    on_both_sides(|repo| {
        repo.git(["commit", "-q", "--allow-empty", "-m", "a ticket"]).succeeds();
        for name in [
            "refs/arborist/queue/tickets/main/T1",
            "refs/arborist/landing/main",
            "refs/arborist/claims/main/T1",
        ] {
            push(repo, &[&format!("HEAD:{name}")]).succeeds();
            push(repo, &["-f", &format!("HEAD~1:{name}")]).succeeds();
            push(repo, &["--delete", name]).succeeds();
        }
        push(repo, &["HEAD:refs/arborist/gates/x"]).succeeds();
        push(repo, &["--delete", "refs/arborist/gates/x"]).exits(1).err("would be lost");
    });
}

#[test]
fn a_push_can_delete_a_task_branch_that_it_lands_but_not_together_with_its_only_copy() {
    let repo = with_finished(Guard::PrePush, "--object-format=sha1");
    repo.git(["branch", "copy", "arborist/task/main/T2"]).succeeds();
    push(&repo, &["copy"]).succeeds();
    push(&repo, &["--delete", "arborist/task/main/T2", "copy"]).exits(1).err("would be lost");
    repo.git(["merge", "-q", "--no-ff", "-m", "land", "copy"]).succeeds();
    push(&repo, &["main", ":copy", ":arborist/task/main/T2"]).succeeds();
}

#[test]
fn no_branch_can_lose_the_only_commits_with_the_state_of_tasks() {
    let check = |repo: &TestRepo| {
        repo.commit("mine\n");
        push(repo, &["main:feature"]).succeeds();
        push(repo, &["-f", "main~1:feature"]).succeeds();
        repo.task("T1", "test-pass");
        repo.task("T1", "failed");
        let last = repo.git(["rev-parse", "main"]).answer();
        push(repo, &["main:feature"]).succeeds();
        push(repo, &["-f", "main~3:feature"])
            .exits(1)
            .err("'refs/heads/feature' would lose 2 commits with the state of tasks")
            .err(&last[..10]);
        push(repo, &["--delete", "feature"]).exits(1).err("would lose 2 commits");
        push(repo, &["main"]).succeeds();
        push(repo, &["--delete", "feature"]).succeeds();
    };
    on_both_sides(check);
    in_other_formats(check);
}

#[test]
fn a_task_branch_is_not_overwritten_if_the_clone_lacks_its_remote_commits() {
    let repo = with_finished(Guard::PrePush, "--object-format=sha1");
    let elsewhere = repo.root().join("clone");
    let url = remote(&repo);
    repo.git_in(repo.root(), ["clone", "-q", url.to_str().unwrap(), "clone"]).succeeds();
    let branch = "arborist/task/main/T2";
    repo.git_in(&elsewhere, ["checkout", "-q", branch]).succeeds();
    repo.git_in(&elsewhere, ["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    repo.git_in(&elsewhere, ["push", "-q", "origin", branch, &format!("{branch}:other")]).succeeds();

    push(&repo, &["-f", branch]).exits(1).err("this clone lacks its commits").err("hint: fetch first");
    push(&repo, &["--delete", branch]).exits(1).err("hint: fetch first");
    push(&repo, &["-f", "main:other"])
        .succeeds()
        .err("warning: the commits of 'refs/heads/other' are not in this clone");
    repo.git(["fetch", "-q"]).succeeds();
    push(&repo, &["-f", branch]).exits(1).err("this push is not a fast-forward");
}

#[test]
fn a_push_to_a_url_is_checked_too() {
    let repo = with_finished(Guard::PrePush, "--object-format=sha1");
    let url = remote(&repo);
    let url = url.to_str().unwrap();
    repo.git(["push", "-q", url, "main:refs/heads/third"]).succeeds();
    repo.commit(UNSOUND);
    repo.git(["push", "-q", url, "main:refs/heads/third"]).exits(1).err("is not valid");
}

#[test]
fn a_push_of_thousands_of_refs_is_checked_in_reasonable_time() {
    let repo = TestRepo::init();
    let old = repo.git(["rev-parse", "HEAD"]).answer();
    let new = repo.task("T1", "implement-pass");
    let lines = |new: &str, old: &str, prefix: &str| -> Vec<u8> {
        let line = |n| format!("refs/heads/x {new} {prefix}{n} {old}\n");
        (0..10_000).map(line).collect::<String>().into_bytes()
    };
    let zero = "0".repeat(40);
    let run = ["hooks", "run", "pre-push", "origin", "url"];
    let begun = Instant::now();
    for prefix in ["refs/heads/b", "refs/heads/arborist/task/main/T"] {
        repo.arborist_with(run, &lines(&new, &zero, prefix)).succeeds();
        repo.arborist_with(run, &lines(&new, &old, prefix)).succeeds();
        repo.arborist_with(run, &lines(&zero, &new, prefix)).exits(1).err("and 9995 more");
    }
    repo.arborist_with(run, &lines(&old, &new, "refs/heads/b")).exits(1).err("would lose 1 commit with");
    assert!(begun.elapsed() < Duration::from_secs(180), "{:?}", begun.elapsed());
}

#[test]
fn one_push_can_advance_many_task_branches_but_not_rewind_them() {
    on_both_sides(|repo| {
        let names: Vec<String> = (0..6).map(|n| format!("arborist/task/main/N{n}")).collect();
        let specs: Vec<String> = names.iter().map(|name| format!("main:refs/heads/{name}")).collect();
        let all = |force: &[&str]| {
            let specs = specs.iter().map(String::as_str);
            push(repo, &force.iter().copied().chain(specs).collect::<Vec<_>>())
        };
        all(&[]).succeeds();
        repo.task("T1", "test-pass");
        repo.git(["merge", "-q", "--no-ff", "-m", "land", "arborist/task/main/T2"]).succeeds();
        all(&[]).succeeds();
        repo.git(["reset", "-q", "--hard", "HEAD~1"]).succeeds();
        all(&["-f"]).exits(1).err("this push is not a fast-forward");
    });
}

#[test]
fn a_pushed_task_commit_with_empty_lines_before_its_subject_is_refused() {
    on_both_sides(|repo| {
        repo.commit("\n\ntask(main@T1@complete): complete\n");
        push(repo, &["main"]).exits(1).err("empty lines before the subject");
    });
}

#[test]
fn input_lines_that_git_does_not_write_are_an_error() {
    let repo = TestRepo::init();
    let run = ["hooks", "run", "pre-push", "origin", "url"];
    repo.arborist_with(run, b"").succeeds();
    repo.arborist_with(run, b"nonsense\n").exits(128).err("a line that git does not give to pre-push");
    repo.arborist(["hooks", "run", "update", "refs/heads/x", "zero", "one"]).exits(129);
}

#[test]
fn a_branch_whose_name_is_not_utf8_is_guarded_too() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let repo = with_finished(Guard::PreReceive, "--object-format=sha1");
    let push = |spec: &[u8]| repo.git([OsStr::new("push"), OsStr::new("origin"), OsStr::from_bytes(spec)]);
    push(b"main:refs/heads/f\xfcr").succeeds();
    repo.task("T1", "test-pass");
    push(b"main:refs/heads/f\xfcr").succeeds();
    push(b":refs/heads/f\xfcr").exits(1).err("would lose 1 commit with the state");
}

#[test]
fn without_the_binary_only_pushes_to_arborist_refs_are_refused() {
    for guard in [Guard::PrePush, Guard::PreReceive] {
        let repo = with_finished(guard, "--object-format=sha1");
        let (side, hook) = match guard {
            Guard::PrePush => (repo.path(".git"), "hooks/pre-push"),
            Guard::PreReceive => (remote(&repo), "hooks/pre-receive"),
        };
        let text = std::fs::read_to_string(side.join(hook)).unwrap();
        let named = text.lines().find(|line| line.starts_with("arborist=")).unwrap();
        std::fs::write(side.join(hook), text.replace(named, "arborist='/nowhere'")).unwrap();
        repo.task("T1", "test-pass");
        let push = |target: &str| {
            let mut git = repo.command("git", &repo.path(""));
            Run::of(git.env("PATH", "/usr/bin:/bin").args(["push", "-q", "origin", target]), b"")
        };
        push("main").succeeds();
        push("main:refs/arborist/saved/y").exits(1).err("git-arborist-hooks is not there to check");
    }
}

#[test]
fn one_push_cannot_delete_both_a_task_branch_and_the_last_ref_to_its_commits() {
    on_both_sides(|repo| {
        let session = "arborist/task/main/T2";
        push(repo, &[&format!("{session}:refs/heads/tmp")]).succeeds();
        repo.git(["fetch", "-q"]).succeeds();
        push(repo, &["--atomic", &format!(":{session}"), ":tmp"]).exits(1).err("would be lost");
        push(repo, &[&format!(":{session}"), ":tmp"]).exits(1).err("would be lost");
        let refs = repo.git(["ls-remote", "origin"]).answer();
        assert!(refs.contains(session), "{refs}");
        // One that stays keeps the commits.
        push(repo, &[&format!(":{session}")]).succeeds();
    });
}

#[test]
fn a_branch_is_not_rewound_if_only_saved_work_keeps_the_state_of_its_tasks() {
    let repo = with_finished(Guard::PreReceive, "--object-format=sha1");
    repo.task("T1", "test-pass");
    push(&repo, &["main", "main:refs/arborist/saved/x"]).succeeds();
    let rewind = push(&repo, &["--force", "main~1:refs/heads/main"]);
    rewind.exits(1).err("would lose 1 commit with the state of tasks");
    push(&repo, &["main:refs/heads/kept"]).succeeds();
    push(&repo, &["--force", "main~1:refs/heads/main"]).succeeds();
}

#[test]
fn the_last_tag_that_keeps_the_state_of_tasks_is_not_deleted_or_moved() {
    on_both_sides(|repo| {
        repo.task("T1", "test-pass");
        push(repo, &["main:refs/heads/feat"]).succeeds();
        for hold in ["refs/tags/hold", "refs/keep/x"] {
            push(repo, &[&format!("main:{hold}")]).succeeds();
        }
        // Tags are no remote-tracking refs, so only the receiver knows that they keep the commits.
        if push(repo, &[":feat"]).code() == 0 {
            push(repo, &[":refs/keep/x"]).succeeds();
            let lost = "'refs/tags/hold' would lose 1 commit with the state of tasks";
            push(repo, &[":refs/tags/hold"]).exits(1).err(lost);
            push(repo, &["-f", "main~1:refs/tags/hold"]).exits(1).err(lost);
        }
        // A branch keeps them, too.
        push(repo, &["main"]).succeeds();
        push(repo, &[":refs/tags/hold"]).succeeds();
    });
}

#[test]
fn the_last_ref_that_keeps_the_record_of_a_session_is_not_deleted() {
    let repo = with_finished(Guard::PreReceive, "--object-format=sha1");
    let session = "refs/arborist/sessions/20260102-030405-abcd";
    repo.commit("session 20260102-030405-abcd: start\n\n{}\n");
    push(&repo, &[&format!("main:{session}")]).succeeds();
    // A ticket comes and goes, so it keeps nothing.
    push(&repo, &["main:refs/arborist/queue/tickets/main/T9"]).succeeds();
    push(&repo, &[&format!(":{session}")]).exits(1).err("would be lost");
    push(&repo, &["main:refs/heads/tmp", "main:refs/tags/hold"]).succeeds();
    push(&repo, &[":tmp"]).succeeds();
    push(&repo, &[&format!(":{session}")]).succeeds();
    push(&repo, &[":refs/tags/hold"]).exits(1).err("would lose 1 commit with the record of a session");
    push(&repo, &[&format!("main:{session}"), ":refs/tags/hold"]).succeeds();
}
