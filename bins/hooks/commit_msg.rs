//! `hooks run commit-msg`: refuses a message that claims to be ours and is malformed. Every other message passes
//! untouched, and most of them without a git command.

use std::path::Path;

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, GitError, GitVersion},
    message::{self, Cleanup, CommentPrefix, Editing, Fault, MessageReading, Recorded},
};

use super::fault::{FaultPlace, refusal};
use crate::entry::Outcome;

/// The git settings that decide how a message file is cleaned up.
struct Settings {
    cleanup: Option<String>,
    comment: Option<String>,
}

pub(super) fn run(file: &Path) -> Outcome {
    let bytes =
        std::fs::read(file).with_context(|| format!("could not read the message '{}'", file.display()))?;
    if !message::could_be_ours(&bytes) || is_sound_whatever_git_does(&bytes) {
        return Ok(Exit::Done);
    }
    let editor = std::env::var("GIT_EDITOR").ok();
    for recorded in readings(&bytes, &Settings::load()?, editor.as_deref()) {
        if let MessageReading::Malformed(faults) = message::read_to_check(&recorded.message) {
            return Err(refused(file, &bytes, &recorded.lines, &faults));
        }
    }
    Ok(Exit::Done)
}

fn refused(file: &Path, bytes: &[u8], recorded: &Recorded, faults: &[Fault]) -> Failure {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let place = |line| {
        let line = recorded.line_in_file(line);
        FaultPlace { line, text: lines.get(line - 1).copied().unwrap_or_default() }
    };
    // The command of the hint may be run in another folder than the hook.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    refusal("this looks like a task commit, but its message is not valid", faults, place)
        .hint(not_about_a_task(&lines))
        .hint(format!("your message was kept; edit it with: git commit -e -F '{}'", file.display()))
}

/// How to make it the message of a commit that is not about a task.
fn not_about_a_task(lines: &[&str]) -> &'static str {
    let has_subject = lines.first().is_some_and(|subject| subject.starts_with("task("));
    let has_trailers = lines.iter().any(|line| line.starts_with("Arborist-"));
    match (has_subject, has_trailers) {
        (true, false) => "if the commit is not about a task, change its subject",
        (false, _) => "if the commit is not about a task, remove the Arborist- lines",
        (true, true) => {
            "if the commit is not about a task, change its subject and remove the Arborist- lines"
        }
    }
}

/// Whether cleaning up cannot change a well-formed message. It removes white space, comments and everything below
/// scissors. If all lines start with a letter, `>` or `(`, there is none of these, and git need not be asked how it
/// will clean up.
fn is_sound_whatever_git_does(file: &[u8]) -> bool {
    let plain =
        |line: &[u8]| line.first().is_none_or(|b| b.is_ascii_alphabetic() || matches!(b, b'>' | b'('));
    file.split(|b| *b == b'\n').all(plain)
        && matches!(message::read_to_check(file), MessageReading::WellFormed(_))
}

impl Settings {
    fn load() -> Result<Self, GitError> {
        let here = Path::new(".");
        let config = Config::start(here)?.finish()?;
        let text = |key: &str| config.find_text(key).map(str::to_owned);
        let mut comment = text("core.commentchar");
        if config.find("core.commentstring").is_some() && GitVersion::ask(here)? >= GitVersion::COMMENT_STRING
        {
            let strongest = config.find_any(&["core.commentchar", "core.commentstring"]);
            comment = strongest.and_then(|entry| entry.value.clone());
        }
        Ok(Self { cleanup: text("commit.cleanup"), comment })
    }
}

/// The bytes that git will record, and their position in the file.
struct RecordedBytes {
    message: Vec<u8>,
    lines: Recorded,
}

/// What git may record of the file. Hooks are not told about `--cleanup`, so if it decides whether the message claims
/// to be ours, there are several possibilities.
fn readings(file: &[u8], settings: &Settings, editor: Option<&str>) -> Vec<RecordedBytes> {
    let Ok(text) = std::str::from_utf8(file) else {
        return read_as_bytes(file, settings, editor);
    };
    let readings = text_readings(text, settings, editor).into_iter();
    readings.map(|lines| RecordedBytes { message: lines.text.clone().into_bytes(), lines }).collect()
}

/// Text that is not UTF-8 is cleaned up byte by byte: each byte becomes one character.
fn read_as_bytes(file: &[u8], settings: &Settings, editor: Option<&str>) -> Vec<RecordedBytes> {
    let widen = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    let narrow = |text: &str| text.chars().filter_map(|c| u8::try_from(c).ok()).collect();
    let comment = settings.comment.as_ref().map(|prefix| widen(prefix.as_bytes()));
    let settings = Settings { cleanup: settings.cleanup.clone(), comment };
    let readings = text_readings(&widen(file), &settings, editor).into_iter();
    readings.map(|lines| RecordedBytes { message: narrow(&lines.text), lines }).collect()
}

fn text_readings(file: &str, settings: &Settings, editor: Option<&str>) -> Vec<Recorded> {
    let comment = CommentPrefix::from_config(settings.comment.as_deref(), file);
    let editing = Editing::of_file(file, editor, &comment);
    let configured = Cleanup::from_config(settings.cleanup.as_deref(), editing);
    let mut modes = vec![configured];
    // An editor showed which lines are comments that will be removed.
    let is_settled = configured == Cleanup::Strip && editing == Editing::Editor;
    if !is_settled && comment.hides_a_subject(file) {
        let others = [Cleanup::Strip, Cleanup::Whitespace, Cleanup::Verbatim].into_iter();
        modes.extend(others.filter(|mode| *mode != configured));
    }
    modes.into_iter().map(|mode| message::final_message(file, mode, editing, &comment)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_kept_and_comments_between_them_removed() {
        let settings = Settings { cleanup: None, comment: Some("§".into()) };
        let file = b"f\xfcr\n\xc2\xa7 note\n\n\xff\n";
        let [recorded] = &readings(file, &settings, None)[..] else {
            panic!("one way to read it");
        };
        assert_eq!(recorded.message, b"f\xfcr\n\n\xff\n");
        assert_eq!(recorded.lines.line_in_file(3), 4);
    }

    #[test]
    fn only_a_valid_message_without_comments_passes_without_a_git_command() {
        let sound = "task(main@T1@reset): reset \"x\"\n\nArborist-Step: reset\n";
        assert!(is_sound_whatever_git_does(sound.as_bytes()));
        assert!(!is_sound_whatever_git_does(format!("{sound}# note\n").as_bytes()));
        assert!(!is_sound_whatever_git_does(sound.replace("Step", "Stop").as_bytes()));
    }
}
