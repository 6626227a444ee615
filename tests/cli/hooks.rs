//! The commit-msg hook, through real commits.

use std::{
    fs,
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TaskCommit, TestRepo};

const FORGED: &str = "all done\n\nArborist-Step: complete\nArborist-Result: pass\n";

fn guarded() -> TestRepo {
    let repo = TestRepo::init();
    repo.arborist(["hooks", "install", "-q"]).succeeds().silent();
    repo
}

fn valid_task_message() -> String {
    TaskCommit::new("T1", "test-pass").to_string()
}

fn commit(repo: &TestRepo, options: &[&str]) -> Run {
    repo.git(["commit", "--allow-empty", "-q"].iter().chain(options))
}

/// Commits with an editor that puts `text` above git's template.
fn commit_in_editor(repo: &TestRepo, text: &str, options: &[&str]) -> Run {
    fs::write(repo.root().join("text"), text).unwrap();
    let script = "#!/bin/sh\ncat \"${0%/*}/text\" \"$1\" >\"$1.new\" && mv \"$1.new\" \"$1\"\n";
    repo.write_script("../editor", script);
    let editor = format!("'{}'", repo.root().join("editor").display());
    let mut git = repo.command("git", &repo.path(""));
    git.env("GIT_EDITOR", editor).args(["commit", "--allow-empty", "-q"]).args(options);
    Run::of(&mut git, b"")
}

fn last_message(repo: &TestRepo) -> String {
    repo.git(["log", "-1", "--format=%B"]).answer()
}

/// Runs the hook by itself on a file with these bytes.
fn hook(repo: &TestRepo, message: &[u8]) -> Run {
    repo.write("message", message);
    repo.arborist(["hooks", "run", "commit-msg", "message"])
}

#[test]
fn a_forged_message_is_refused_with_its_line_and_the_fix() {
    let repo = guarded();
    let message = valid_task_message().replace("Arborist-Test: pass", "Arborist-Test: passed");
    commit(&repo, &["-m", &message])
        .exits(1)
        .err("error: this looks like a task commit, but its message is not valid")
        .err("  line 4: Arborist-Test: passed\n")
        .err("'passed' is not a valid value of Arborist-Test")
        .err("hint: line 4: write: Arborist-Test: <");
    commit(&repo, &["-m", FORGED]).exits(1).err("line 1: all done");
    assert_eq!(last_message(&repo), "begin");
}

#[test]
fn messages_that_are_not_task_commits_pass_unchanged() {
    let repo = guarded();
    for message in [
        "task(ui): fix",
        "task(ui@2): fix\n\nwith a body",
        "fix\n\n# heading\n\n> Arborist-Step: complete",
        "about Arborist-Step: in a line",
    ] {
        commit(&repo, &["-m", message]).succeeds();
        assert_eq!(last_message(&repo).trim_end(), message);
    }
}

#[test]
fn a_valid_message_passes_from_an_option_a_file_or_an_editor() {
    let repo = guarded();
    repo.write("file", valid_task_message());
    commit(&repo, &["-m", &valid_task_message()]).succeeds();
    commit(&repo, &["-F", "file"]).succeeds();
    commit(&repo, &["-F", "file", "-s"]).succeeds();
    commit_in_editor(&repo, &valid_task_message(), &[]).succeeds();
    assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end());
    repo.git(["add", "file"]).succeeds();
    commit_in_editor(&repo, &valid_task_message(), &["-v"]).succeeds();
    assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end());
}

#[test]
fn the_diff_that_commit_verbose_shows_is_not_checked_as_part_of_the_message() {
    let repo = guarded();
    repo.write("notes", "begin\nArborist-Step: complete\n--- x\n");
    repo.git(["add", "-A"]).succeeds();
    commit_in_editor(&repo, "explain the trailers\n", &["-v"]).succeeds();
    repo.write("notes", "Arborist-Step: complete\n");
    commit_in_editor(&repo, FORGED, &["-v", "-a"]).exits(1).err("line 1: all done");
}

#[test]
fn a_scissors_line_that_git_did_not_write_does_not_hide_trailers() {
    let repo = guarded();
    let hidden = "fix\n\n# ------------------------ >8 ------------------------\nArborist-Step: complete\n";
    commit_in_editor(&repo, hidden, &[]).exits(1).err("is not valid");
    commit(&repo, &["-m", hidden]).exits(1);
    let explained =
        hidden.replace("Arborist", "# Do not modify\n# Everything below\ndiff --git a b\nArborist");
    commit(&repo, &["-m", &explained]).exits(1);
}

#[test]
fn an_amended_message_that_the_editor_leaves_unchanged_passes() {
    let repo = guarded();
    repo.write("file", valid_task_message());
    commit(&repo, &["-F", "file"]).succeeds();
    let mut amend = repo.command("git", &repo.path(""));
    amend.env("GIT_EDITOR", ":").args(["commit", "--amend", "--allow-empty", "-q", "-v"]);
    Run::of(&mut amend, b"").succeeds();
    assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end());
}

#[test]
fn each_commit_cleanup_mode_is_applied_as_git_applies_it() {
    for (cleanup, is_sound) in
        [("strip", true), ("whitespace", false), ("verbatim", false), ("scissors", false)]
    {
        let repo = guarded();
        repo.git(["config", "commit.cleanup", cleanup]).succeeds();
        let message = format!("{}# a comment among the trailers\n", valid_task_message());
        let run = commit(&repo, &["-m", &message]);
        assert_eq!(run.code() == 0, is_sound, "{cleanup}: {}", run.report());
    }
    let repo = guarded();
    repo.git(["config", "commit.cleanup", "scissors"]).succeeds();
    commit_in_editor(&repo, &valid_task_message(), &[]).succeeds();
    assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end());
}

#[test]
fn each_comment_character_is_interpreted_as_by_git() {
    let char = "core.commentChar";
    for (key, comment) in [(char, ";"), (char, "auto"), (char, "%"), ("core.commentString", "//")] {
        let repo = guarded();
        repo.git(["config", key, comment]).succeeds();
        commit_in_editor(&repo, &valid_task_message(), &[]).succeeds();
        assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end(), "{comment}");
        commit_in_editor(&repo, FORGED, &[]).exits(1);
    }
    let repo = guarded();
    repo.git(["config", "core.commentChar", ";"]).succeeds();
    let lines = "# for ';' this is text\n";
    commit_in_editor(&repo, &format!("{lines}{}", valid_task_message()), &[])
        .exits(1)
        .err("line 1: # for ';'");
    commit_in_editor(&repo, &format!("; gone\n\n{}", valid_task_message()), &[]).succeeds();
}

#[test]
fn a_subject_below_empty_lines_is_refused_unless_the_cleanup_mode_strips_them() {
    let message = format!("\n\n{}", valid_task_message());
    let repo = guarded();
    repo.write("message", &message);
    commit(&repo, &["--cleanup=verbatim", "-F", "message"])
        .exits(1)
        .err("empty lines before the subject")
        .err("hint: line 1: start the message with its subject");
    commit(&repo, &["-F", "message"]).succeeds();
    assert_eq!(last_message(&repo).trim_end(), valid_task_message().trim_end());
    repo.git(["config", "commit.cleanup", "verbatim"]).succeeds();
    commit(&repo, &["-F", "message"]).exits(1).err("empty lines before the subject");
    commit(&repo, &["-m", "\n\ntask(ui): fix\n"]).succeeds();
}

#[test]
fn a_subject_below_comments_is_refused_in_every_cleanup_mode() {
    let repo = guarded();
    let bare = "# note\ntask(main@T1@complete): x";
    for cleanup in ["strip", "whitespace", "verbatim", "scissors", "default"] {
        let run = commit(&repo, &[&format!("--cleanup={cleanup}"), "-m", bare]);
        run.exits(1).err("error: this looks like a task commit").err(" are missing: ");
        repo.git(["config", "commit.cleanup", cleanup]).succeeds();
        commit(&repo, &["-m", bare]).exits(1);
        commit(&repo, &["-m", &format!("# note\n{}", valid_task_message())]).exits(1);
        commit(&repo, &["-m", "# note\ntask(ui): x"]).succeeds();
        repo.git(["config", "--unset", "commit.cleanup"]).succeeds();
    }
    commit_in_editor(&repo, &format!("# note\n{}", valid_task_message()), &[]).succeeds();
}

#[test]
fn an_error_is_reported_with_its_line_in_the_message_file() {
    let repo = guarded();
    let message = format!("# one\n# two\n{}", valid_task_message().replace("Retry: 0", "Retry: none"));
    commit_in_editor(&repo, &message, &[]).exits(1).err("  line 7: Arborist-Retry: none\n");
}

#[test]
fn invalid_bytes_are_refused_only_in_messages_of_task_commits() {
    let repo = TestRepo::init();
    let sound = valid_task_message();
    for pass in [
        b"task(ui): f\xfcr alle\n".to_vec(),
        b"f\xfcr alle\n".to_vec(),
        sound.replace('\n', "\r\n").into_bytes(),
        format!("{sound}\n# a comment with a NUL: \0\n").into_bytes(),
        Vec::new(),
    ] {
        hook(&repo, &pass).succeeds().silent();
    }
    let latin = [sound.as_bytes(), b"Signed-off-by: J\xfcrgen <j@x>\n"].concat();
    hook(&repo, &latin).exits(1).err("bytes that are not UTF-8").err("line 6: Signed-off-by");
    hook(&repo, sound.replace("pass", "pa\0ss").as_bytes()).exits(1).err("a NUL byte");
    let mut template = sound.clone().into_bytes();
    template.extend_from_slice(
        b"\n# ------------------------ >8 ------------------------\n# below\n# it\ndiff --git\n+\xff\0\n",
    );
    hook(&repo, &template).succeeds();
}

#[test]
fn a_message_of_five_megabytes_is_checked() {
    let repo = TestRepo::init();
    let body = "> a line of an agent's words\n".repeat(180_000);
    let long = valid_task_message().replacen("\n\n", &format!("\n\n{body}\n"), 1);
    assert!(long.len() > 5_000_000);
    hook(&repo, long.as_bytes()).succeeds();
    hook(&repo, long.replace("Retry: 0", "Retry: x").as_bytes()).exits(1).err("Arborist-Retry: x");
    hook(&repo, "text\n".repeat(1_000_000).as_bytes()).succeeds();
}

#[test]
fn a_message_that_is_wrong_in_every_line_is_refused_in_reasonable_time() {
    let repo = TestRepo::init();
    let scissors = "# ------------------------ >8 ------------------------\n";
    let trailers = "Arborist-Foo: x\n".repeat(320_000);
    let begun = Instant::now();
    hook(&repo, format!("x\n\n{trailers}").as_bytes()).exits(1).err("  and many more");
    repo.write("message", format!("x\n\nArborist-Foo: x\n{}", scissors.repeat(12_000)));
    let mut unedited = repo.command("git", &repo.path(""));
    unedited.env("GIT_EDITOR", ":").args(["arborist", "hooks", "run", "commit-msg", "message"]);
    Run::of(&mut unedited, b"").exits(1);
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
}

#[test]
fn a_missing_message_file_is_an_error() {
    let repo = TestRepo::init();
    repo.arborist(["hooks", "run", "commit-msg", "nowhere"]).exits(128).err("could not read the message");
    repo.arborist(["hooks", "run", "commit-msg"]).exits(129);
}

#[test]
fn without_the_binary_only_messages_that_look_like_task_commits_are_refused() {
    let repo = guarded();
    let hook = repo.read(".git/hooks/commit-msg");
    let named = hook.lines().find(|line| line.starts_with("arborist=")).unwrap();
    repo.write(".git/hooks/commit-msg", hook.replace(named, "arborist='/nowhere/git-arborist-hooks'"));
    let commit = |message: &str| {
        let mut git = repo.command("git", &repo.path(""));
        Run::of(git.env("PATH", "/usr/bin:/bin").args(["commit", "--allow-empty", "-qm", message]), b"")
    };
    commit("task(ui): fix").succeeds();
    commit("fix").succeeds();
    commit(FORGED).exits(1).err("git-arborist-hooks is not there to check it");
    commit(&valid_task_message()).exits(1);
    repo.arborist(["hooks", "status"]).succeeds().out("is gone, so the one on PATH is used");
    repo.git(["commit", "--allow-empty", "-qm", &valid_task_message()]).succeeds();
}

#[test]
fn the_printed_edit_command_for_a_refused_message_works_in_any_folder() {
    let repo = guarded();
    repo.write("sub/file", "x");
    repo.git(["add", "-A"]).succeeds();
    let commit = ["commit", "-q", "-m", FORGED];
    let said = repo.git_in(&repo.path("sub"), commit).exits(1).stderr();
    let edit = said.lines().find_map(|line| line.split_once("edit it with: ")).unwrap().1;
    let mut shell = repo.command("sh", &repo.path("sub"));
    shell.env("GIT_EDITOR", "printf 'mended\\n' >").args(["-c", edit]);
    Run::of(&mut shell, b"").succeeds();
    assert_eq!(last_message(&repo).trim_end(), "mended");
}
