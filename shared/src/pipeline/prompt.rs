//! What agents are asked, in words. Feedback is read back from the commits of earlier attempts.

use std::fmt::Write;

use crate::{
    history::Event,
    message::{Step, plain_text},
    name::TaskId,
};

/// What a prompt says about its task.
#[derive(Debug, Clone, Copy)]
pub struct PromptSubject<'a> {
    /// The task's id.
    pub id: &'a TaskId,
    /// Its name.
    pub name: &'a str,
    /// Everything that the plan says about it.
    pub description: &'a str,
    /// Whether it writes tests that must fail.
    pub is_red: bool,
}

/// Asks for the work, with what went wrong in earlier attempts.
#[must_use]
pub fn implement(subject: PromptSubject<'_>, earlier: &[Event]) -> String {
    let PromptSubject { id, name, description, is_red } = subject;
    let mut prompt = format!("Implement task {id}: {name}\n\n");
    if !description.trim().is_empty() {
        let _ = write!(prompt, "Description: {}\n\n", description.trim());
    }
    prompt.push_str("Work in the current directory. Make all necessary file changes.\n");
    prompt.push_str("Do not commit: what you leave in the directory is committed for you.\n");
    prompt.push_str("Leave the list of tasks alone: what is done is recorded for you.\n");
    if is_red {
        prompt.push_str("Write only tests, which must fail now: a later task makes them pass. All other tests must pass.\n");
    }
    prompt.push_str(
        "If nothing has to be changed, let the last line of your reply be NOTHING TO DO: and the reason.\n",
    );
    let feedback = feedback(earlier);
    if !feedback.is_empty() {
        let _ = write!(prompt, "\nPrevious feedback from failed attempts:\n\n{feedback}");
    }
    prompt
}

/// Asks for a decision on a change.
#[must_use]
pub fn review(subject: PromptSubject<'_>, diff: &str, idle: Option<&str>) -> String {
    let PromptSubject { id, name, description, is_red } = subject;
    let mut prompt = format!("Review the changes for task {id}: {name}\n\n");
    if !description.trim().is_empty() {
        let _ = write!(prompt, "Description: {}\n\n", description.trim());
    }
    if is_red {
        prompt.push_str("The new tests are meant to fail: a later task makes them pass.\n\n");
    }
    if let Some(reason) = idle {
        let _ = write!(
            prompt,
            "The implementing agent changed no file in this attempt. Its reason: {}\nDecide whether that is right.\n\n",
            plain_text(reason).trim()
        );
    }
    let _ = write!(
        prompt,
        "Diff:\n{}\n\nDo not change any file. Reply APPROVED if the code is correct, or REJECTED with reasons.\nThe last line of your reply must be exactly APPROVED, or begin with REJECTED: and say why.\n",
        diff.trim_end()
    );
    prompt
}

/// What failed before, oldest first, in the words that the commits quote.
fn feedback(earlier: &[Event]) -> String {
    let mut text = String::new();
    // An interruption says nothing about the work.
    for event in earlier.iter().filter(|event| event.is_failure() && !event.is_interruption()) {
        let heading = match event.status().step() {
            Step::Review => "Previous review (rejected)",
            Step::Test => "Previous test failure",
            _ => "Previous attempt (failed)",
        };
        let _ = writeln!(text, "--- {heading} ---");
        for section in event.body().sections.iter().filter(|section| !section.text.is_empty()) {
            let _ = writeln!(text, "{}", plain_text(&section.text));
        }
        text.push('\n');
    }
    text
}

/// `diff` cut to `longest` characters at the end of a line, with `stat` in place of what was cut.
#[must_use]
pub fn cut_diff(diff: &str, stat: &str, longest: usize) -> String {
    if diff.chars().count() <= longest {
        return diff.to_owned();
    }
    let kept: String = diff.chars().take(longest).collect();
    let end = kept.rfind('\n').map_or(kept.len(), |at| at + 1);
    format!("{}[the diff was cut here; all of it touches:]\n{}", &kept[..end], stat.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_diff_is_cut_at_a_line_and_the_rest_is_named() {
        let diff = "+one\n+two\n+three\n";
        assert_eq!(cut_diff(diff, " a | 3 +++\n", 100), diff);
        assert_eq!(
            cut_diff(diff, " a | 3 +++\n", 12),
            "+one\n+two\n[the diff was cut here; all of it touches:]\n a | 3 +++"
        );
    }

    #[test]
    fn the_prompts_name_the_task_and_ask_for_a_last_line() {
        let id = "T001".parse().unwrap();
        let subject =
            PromptSubject { id: &id, name: "Create schema", description: "with users", is_red: false };
        assert!(
            implement(subject, &[])
                .starts_with("Implement task T001: Create schema\n\nDescription: with users\n")
        );
        assert!(!implement(subject, &[]).contains("feedback"));
        assert!(review(subject, "+x\n", None).contains("Diff:\n+x\n"));
    }
}
