//! The commit-msg hook, through real commits.

use std::{
    fs,
    time::{Duration, Instant},
};

use arborist_testkit::{Garden, Run, TaskCommit};

const FORGED: &str = "all done\n\nArborist-Step: complete\nArborist-Result: pass\n";

fn guarded() -> Garden {
    let garden = Garden::sprout();
    garden.arborist(["hooks", "install", "-q"]).succeeds().silent();
    garden
}

fn sound() -> String {
    TaskCommit::new("T1", "test-pass").to_string()
}

fn commit(garden: &Garden, options: &[&str]) -> Run {
    garden.git(["commit", "--allow-empty", "-q"].iter().chain(options))
}

/// Commits with an editor that puts `text` above git's template.
fn commit_in_editor(garden: &Garden, text: &str, options: &[&str]) -> Run {
    fs::write(garden.root().join("text"), text).unwrap();
    let script = "#!/bin/sh\ncat \"${0%/*}/text\" \"$1\" >\"$1.new\" && mv \"$1.new\" \"$1\"\n";
    garden.write_script("../editor", script);
    let editor = format!("'{}'", garden.root().join("editor").display());
    let mut git = garden.command("git", &garden.path(""));
    git.env("GIT_EDITOR", editor).args(["commit", "--allow-empty", "-q"]).args(options);
    Run::of(&mut git, b"")
}

fn last_message(garden: &Garden) -> String {
    garden.git(["log", "-1", "--format=%B"]).answer()
}

/// Runs the hook by itself on a file with these bytes.
fn hook(garden: &Garden, message: &[u8]) -> Run {
    garden.write("message", message);
    garden.arborist(["hooks", "run", "commit-msg", "message"])
}

#[test]
fn a_forged_message_is_refused_with_its_line_and_the_fix() {
    let garden = guarded();
    let message = sound().replace("Arborist-Test: pass", "Arborist-Test: passed");
    commit(&garden, &["-m", &message])
        .exits(1)
        .err("error: this message claims to be a task's and is not sound")
        .err("  line 4: Arborist-Test: passed\n")
        .err("'passed' is not a legal value of Arborist-Test")
        .err("hint: line 4: write: Arborist-Test: <");
    commit(&garden, &["-m", FORGED]).exits(1).err("line 1: all done");
    assert_eq!(last_message(&garden), "begin");
}

#[test]
fn messages_of_others_pass_untouched() {
    let garden = guarded();
    for message in [
        "task(ui): fix",
        "task(ui@2): fix\n\nwith a body",
        "fix\n\n# heading\n\n> Arborist-Step: complete",
        "about Arborist-Step: in a line",
    ] {
        commit(&garden, &["-m", message]).succeeds();
        assert_eq!(last_message(&garden).trim_end(), message);
    }
}

#[test]
fn a_sound_message_passes_however_it_is_made() {
    let garden = guarded();
    garden.write("file", sound());
    commit(&garden, &["-m", &sound()]).succeeds();
    commit(&garden, &["-F", "file"]).succeeds();
    commit(&garden, &["-F", "file", "-s"]).succeeds();
    commit_in_editor(&garden, &sound(), &[]).succeeds();
    assert_eq!(last_message(&garden).trim_end(), sound().trim_end());
    garden.git(["add", "file"]).succeeds();
    commit_in_editor(&garden, &sound(), &["-v"]).succeeds();
    assert_eq!(last_message(&garden).trim_end(), sound().trim_end());
}

#[test]
fn the_diff_below_an_edited_message_is_not_part_of_it() {
    let garden = guarded();
    garden.write("notes", "begin\nArborist-Step: complete\n--- x\n");
    garden.git(["add", "-A"]).succeeds();
    commit_in_editor(&garden, "explain the trailers\n", &["-v"]).succeeds();
    garden.write("notes", "Arborist-Step: complete\n");
    commit_in_editor(&garden, FORGED, &["-v", "-a"]).exits(1).err("line 1: all done");
}

#[test]
fn scissors_that_git_did_not_write_hide_nothing() {
    let garden = guarded();
    let hidden = "fix\n\n# ------------------------ >8 ------------------------\nArborist-Step: complete\n";
    commit_in_editor(&garden, hidden, &[]).exits(1).err("is not sound");
    commit(&garden, &["-m", hidden]).exits(1);
    let explained =
        hidden.replace("Arborist", "# Do not modify\n# Everything below\ndiff --git a b\nArborist");
    commit(&garden, &["-m", &explained]).exits(1);
}

#[test]
fn an_editor_that_does_nothing_still_leaves_a_template() {
    let garden = guarded();
    garden.write("file", sound());
    commit(&garden, &["-F", "file"]).succeeds();
    let mut amend = garden.command("git", &garden.path(""));
    amend.env("GIT_EDITOR", ":").args(["commit", "--amend", "--allow-empty", "-q", "-v"]);
    Run::of(&mut amend, b"").succeeds();
    assert_eq!(last_message(&garden).trim_end(), sound().trim_end());
}

#[test]
fn every_way_to_clean_up_is_seen_as_git_does_it() {
    for (cleanup, is_sound) in
        [("strip", true), ("whitespace", false), ("verbatim", false), ("scissors", false)]
    {
        let garden = guarded();
        garden.git(["config", "commit.cleanup", cleanup]).succeeds();
        let message = format!("{}# a comment among the trailers\n", sound());
        let run = commit(&garden, &["-m", &message]);
        assert_eq!(run.code() == 0, is_sound, "{cleanup}: {}", run.report());
    }
    let garden = guarded();
    garden.git(["config", "commit.cleanup", "scissors"]).succeeds();
    commit_in_editor(&garden, &sound(), &[]).succeeds();
    assert_eq!(last_message(&garden).trim_end(), sound().trim_end());
}

#[test]
fn every_comment_character_is_seen_as_git_sees_it() {
    let char = "core.commentChar";
    for (key, comment) in [(char, ";"), (char, "auto"), (char, "%"), ("core.commentString", "//")] {
        let garden = guarded();
        garden.git(["config", key, comment]).succeeds();
        commit_in_editor(&garden, &sound(), &[]).succeeds();
        assert_eq!(last_message(&garden).trim_end(), sound().trim_end(), "{comment}");
        commit_in_editor(&garden, FORGED, &[]).exits(1);
    }
    let garden = guarded();
    garden.git(["config", "core.commentChar", ";"]).succeeds();
    let lines = "# for ';' this is text\n";
    commit_in_editor(&garden, &format!("{lines}{}", sound()), &[]).exits(1).err("line 1: # for ';'");
    commit_in_editor(&garden, &format!("; gone\n\n{}", sound()), &[]).succeeds();
}

#[test]
fn a_subject_below_empty_lines_is_refused_if_they_may_stay() {
    let message = format!("\n\n{}", sound());
    let garden = guarded();
    garden.write("message", &message);
    commit(&garden, &["--cleanup=verbatim", "-F", "message"])
        .exits(1)
        .err("empty lines before the subject")
        .err("hint: line 1: begin the message with its subject");
    commit(&garden, &["-F", "message"]).succeeds();
    assert_eq!(last_message(&garden).trim_end(), sound().trim_end());
    garden.git(["config", "commit.cleanup", "verbatim"]).succeeds();
    commit(&garden, &["-F", "message"]).exits(1).err("empty lines before the subject");
    commit(&garden, &["-m", "\n\ntask(ui): fix\n"]).succeeds();
}

#[test]
fn a_subject_below_comments_is_refused_whether_they_stay_or_go() {
    let garden = guarded();
    let bare = "# note\ntask(main@T1@complete): x";
    for cleanup in ["strip", "whitespace", "verbatim", "scissors", "default"] {
        let run = commit(&garden, &[&format!("--cleanup={cleanup}"), "-m", bare]);
        run.exits(1)
            .err("error: this message claims to be a task's")
            .err("line 2: task(main@T1@complete): x");
        garden.git(["config", "commit.cleanup", cleanup]).succeeds();
        commit(&garden, &["-m", bare]).exits(1);
        commit(&garden, &["-m", &format!("# note\n{}", sound())]).exits(1);
        commit(&garden, &["-m", "# note\ntask(ui): x"]).succeeds();
        garden.git(["config", "--unset", "commit.cleanup"]).succeeds();
    }
    commit_in_editor(&garden, &format!("# note\n{}", sound()), &[]).succeeds();
}

#[test]
fn a_fault_is_shown_with_its_line_in_the_file() {
    let garden = guarded();
    let message = format!("# one\n# two\n{}", sound().replace("Retry: 0", "Retry: none"));
    commit_in_editor(&garden, &message, &[]).exits(1).err("  line 7: Arborist-Retry: none\n");
}

#[test]
fn odd_bytes_are_refused_where_they_claim_and_pass_where_they_do_not() {
    let garden = Garden::sprout();
    let sound = sound();
    for pass in [
        b"task(ui): f\xfcr alle\n".to_vec(),
        b"f\xfcr alle\n".to_vec(),
        sound.replace('\n', "\r\n").into_bytes(),
        format!("{sound}\n# a comment with a NUL: \0\n").into_bytes(),
        Vec::new(),
    ] {
        hook(&garden, &pass).succeeds().silent();
    }
    let latin = [sound.as_bytes(), b"Signed-off-by: J\xfcrgen <j@x>\n"].concat();
    hook(&garden, &latin).exits(1).err("bytes that are not UTF-8").err("line 6: Signed-off-by");
    hook(&garden, sound.replace("pass", "pa\0ss").as_bytes()).exits(1).err("a NUL byte");
    let mut template = sound.clone().into_bytes();
    template.extend_from_slice(
        b"\n# ------------------------ >8 ------------------------\n# below\n# it\ndiff --git\n+\xff\0\n",
    );
    hook(&garden, &template).succeeds();
}

#[test]
fn a_message_of_five_megabytes_is_answered() {
    let garden = Garden::sprout();
    let body = "> a line of an agent's words\n".repeat(180_000);
    let long = sound().replacen("\n\n", &format!("\n\n{body}\n"), 1);
    assert!(long.len() > 5_000_000);
    hook(&garden, long.as_bytes()).succeeds();
    hook(&garden, long.replace("Retry: 0", "Retry: x").as_bytes()).exits(1).err("Arborist-Retry: x");
    hook(&garden, "text\n".repeat(1_000_000).as_bytes()).succeeds();
}

#[test]
fn a_message_that_is_wrong_in_every_line_is_refused_at_once() {
    let garden = Garden::sprout();
    let scissors = "# ------------------------ >8 ------------------------\n";
    let trailers = "Arborist-Foo: x\n".repeat(320_000);
    let begun = Instant::now();
    hook(&garden, format!("x\n\n{trailers}").as_bytes()).exits(1).err("  and many more");
    garden.write("message", format!("x\n\nArborist-Foo: x\n{}", scissors.repeat(12_000)));
    let mut unedited = garden.command("git", &garden.path(""));
    unedited.env("GIT_EDITOR", ":").args(["arborist", "hooks", "run", "commit-msg", "message"]);
    Run::of(&mut unedited, b"").exits(1);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_message_file_that_is_not_there_is_an_error() {
    let garden = Garden::sprout();
    garden.arborist(["hooks", "run", "commit-msg", "nowhere"]).exits(128).err("could not read the message");
    garden.arborist(["hooks", "run", "commit-msg"]).exits(129);
}

#[test]
fn without_the_binary_only_messages_that_could_claim_are_refused() {
    let garden = guarded();
    let hook = garden.read(".git/hooks/commit-msg");
    let named = hook.lines().find(|line| line.starts_with("arborist=")).unwrap();
    garden.write(".git/hooks/commit-msg", hook.replace(named, "arborist='/nowhere/git-arborist-hooks'"));
    let commit = |message: &str| {
        let mut git = garden.command("git", &garden.path(""));
        Run::of(git.env("PATH", "/usr/bin:/bin").args(["commit", "--allow-empty", "-qm", message]), b"")
    };
    commit("task(ui): fix").succeeds();
    commit("fix").succeeds();
    commit(FORGED).exits(1).err("git-arborist-hooks is not there to check it");
    commit(&sound()).exits(1);
    garden.arborist(["hooks", "status"]).succeeds().out("is gone, so the one on PATH is used");
    garden.git(["commit", "--allow-empty", "-qm", &sound()]).succeeds();
}
