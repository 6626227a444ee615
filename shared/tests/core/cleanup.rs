//! What we say that git will record is what git records.

use std::fs;

use arborist_core::message::{Cleanup, CommentPrefix, Editing, final_message};
use arborist_testkit::{Run, TestRepo};
use proptest::prelude::*;

const LINES: [&str; 12] = [
    "",
    "   ",
    "text",
    "text \t",
    "  indented",
    "text\r",
    "# comment",
    "; comment",
    "# ------------------------ >8 ------------------------",
    "; ------------------------ >8 ------------------------",
    "Arborist-Step: test",
    "@ %",
];
const CLEANUPS: [Option<&str>; 6] =
    [None, Some("default"), Some("strip"), Some("whitespace"), Some("verbatim"), Some("scissors")];
const COMMENTS: [Option<&str>; 4] = [None, Some(";"), Some("auto"), Some("%")];
/// Not among them is `-v` without an editor, which a hook cannot know of.
const WAYS: [&[&str]; 4] = [&["-F", "../text"], &["-e"], &["-v"], &["-v", "-e", "-F", "../text"]];
/// Keeps what the commit-msg hook is given.
const CAPTURE: &str = "#!/bin/sh\ncp \"$1\" ../captured\nprintf %s \"${GIT_EDITOR-}\" >../editor-was\n";
const EDITOR: &str = "#!/bin/sh\ncat ../text \"$1\" >../new && cp ../new \"$1\"\n";

fn without_tasks() -> TestRepo {
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", CAPTURE);
    repo.write_script("../editor", EDITOR);
    repo
}

fn commit(repo: &TestRepo, options: &[String]) -> Run {
    let mut git = repo.command("git", &repo.path(""));
    git.env("GIT_EDITOR", "../editor").args(options);
    Run::of(&mut git, b"")
}

fn config(key: &str, value: Option<&str>) -> Vec<String> {
    value.map(|value| vec!["-c".into(), format!("{key}={value}")]).unwrap_or_default()
}

/// Commits `text` and gives what the hook saw, the editor that it was told of, and what was recorded.
fn recorded(repo: &TestRepo, text: &str, options: &[String]) -> (String, String, String) {
    fs::write(repo.root().join("text"), text).unwrap();
    commit(repo, options).succeeds();
    let read = |name: &str| fs::read_to_string(repo.root().join(name)).unwrap();
    let object = repo.git(["cat-file", "commit", "HEAD"]).succeeds().stdout();
    let message = object.split_once("\n\n").unwrap().1.to_owned();
    (read("captured"), read("editor-was"), message)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn message_cleanup_gives_the_same_result_as_git_commit(
        lines in prop::collection::vec(prop::sample::select(&LINES[..]), 0..8),
        cleanup in prop::sample::select(&CLEANUPS[..]),
        comment in prop::sample::select(&COMMENTS[..]),
        how in prop::sample::select(&WAYS[..]),
    ) {
        thread_local!(static GARDEN: TestRepo = without_tasks());
        GARDEN.with(|repo| {
            repo.write("file", format!("{lines:?}{how:?}"));
            let text = format!("subject\n{}\n", lines.join("\n"));
            let mut options = config("commit.cleanup", cleanup);
            options.extend(config("core.commentChar", comment));
            options.extend(["commit", "-q", "-a", "--allow-empty"].map(String::from));
            options.extend(how.iter().map(|option| (*option).to_owned()));
            repo.git(["add", "file"]).succeeds();
            let (file, editor, expected) = recorded(repo, &text, &options);

            let prefix = CommentPrefix::from_config(comment, &file);
            let editing = Editing::of_file(&file, Some(&editor), &prefix);
            let mode = Cleanup::from_config(cleanup, editing);
            let ours = final_message(&file, mode, editing, &prefix);
            assert_eq!(ours.text, expected, "{mode:?} {editing:?} {comment:?} of {file}");
        });
    }
}
