//! The prompts of agents and reviewers, and the diff that a reviewer is shown. Pure.

use std::fmt::Write;

use crate::{
    git::Difference,
    history::Event,
    message::{Step, plain_text},
    name::{Oid, TaskId},
};

/// The task that a prompt is about.
#[derive(Debug, Clone, Copy)]
pub struct PromptSubject<'a> {
    /// The task's id.
    pub id: &'a TaskId,
    /// Its name.
    pub name: &'a str,
    /// The plan's text about it.
    pub description: &'a str,
    /// Whether it writes tests that must fail.
    pub is_red: bool,
}

/// The prompt of an implement step, with the failures of earlier attempts.
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

/// The prompt of a review.
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

/// Earlier failures, oldest first, as the commits quote them.
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

/// Cuts `diff` to `longest` characters at the end of a line, and appends `stat` if something was cut.
#[must_use]
pub fn cut_diff(diff: &str, stat: &str, longest: usize) -> String {
    if diff.chars().count() <= longest {
        return diff.to_owned();
    }
    let kept: String = diff.chars().take(longest).collect();
    let end = kept.rfind('\n').map_or(kept.len(), |at| at + 1);
    format!("{}[the diff was cut here; all of it touches:]\n{}", &kept[..end], stat.trim_end())
}

/// The command that shows a reviewer all of a difference, after the options of `git` itself. Neither the user's
/// settings nor attributes and `.gitmodules` of the change decide what it shows.
#[must_use]
pub fn diff_command(options: &str, from: Oid, to: Oid) -> String {
    format!(
        "git {options}diff --text --no-textconv --no-ext-diff --no-color --submodule=short --ignore-submodules=none {from} {to}"
    )
}

/// The longest list of changed files, in characters. The rest is only counted.
const LONGEST_LIST: usize = 20_000;

/// What a task has changed in one repository.
#[derive(Debug)]
pub struct RepoDiff {
    /// The name of the repository, unless it is the one with the plan.
    pub repository: Option<String>,
    /// The changes.
    pub difference: Difference,
    /// The command that shows all of them.
    pub command: String,
}

impl RepoDiff {
    fn heading(&self) -> String {
        self.repository.as_ref().map(|name| format!("\nIn the repository {name}:\n")).unwrap_or_default()
    }
}

/// Renders the changes for a prompt, in about `longest` characters.
#[must_use]
pub fn render(sections: &[RepoDiff], longest: usize) -> String {
    let files = || sections.iter().flat_map(|section| &section.difference.files);
    let sizes: Vec<usize> = files().map(|file| file.chars().count()).collect();
    if sizes.is_empty() {
        return "(no file was changed)".to_owned();
    }
    if sizes.iter().sum::<usize>() <= longest {
        return sections
            .iter()
            .map(|section| section.heading() + &section.difference.files.concat())
            .collect();
    }
    let mut shares = shares(&sizes, longest).into_iter();
    let mut text = String::from(
        "[The diff is longer than can be shown here, and is cut below. See all of it before you decide:]\n",
    );
    for section in sections {
        let _ = writeln!(text, "{}", section.command);
    }
    for section in sections {
        text += &section.heading();
        for file in &section.difference.files {
            text += &cut(file, shares.next().unwrap_or(0));
        }
    }
    text + &list(sections)
}

/// How much of each file is shown. Short files are shown completely; long ones share the rest equally.
fn shares(sizes: &[usize], longest: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| sizes[*at]);
    let mut shares = vec![0; sizes.len()];
    let mut left = longest;
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = sizes[at].min(left / (sizes.len() - done));
        left -= shares[at];
    }
    shares
}

/// The first lines of a file's diff, and how many follow.
fn cut(file: &str, longest: usize) -> String {
    if file.chars().count() <= longest {
        return file.to_owned();
    }
    let kept: String = file.chars().take(longest).collect();
    let kept = kept.rfind('\n').map_or("", |end| &kept[..=end]);
    if kept.is_empty() {
        return String::new();
    }
    let more = file[kept.len()..].lines().count();
    format!("{kept}[the diff was cut here: {more} more lines of this file]\n")
}

/// Lists all files with their numbers of added and removed lines.
fn list(sections: &[RepoDiff]) -> String {
    let count: usize = sections.iter().map(|section| section.difference.list.len()).sum();
    let mut text = format!("\nAll {count} changed files, with the lines added and removed:\n");
    let mut listed = 0;
    for section in sections {
        text += &section.heading();
        for line in &section.difference.list {
            if text.len() + line.len() > LONGEST_LIST {
                let _ = writeln!(text, "[{} more changed files are not listed]", count - listed);
                return text;
            }
            listed += 1;
            let _ = writeln!(text, "{line}");
        }
    }
    text
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

    fn section(files: &[String]) -> RepoDiff {
        let list = (0..files.len()).map(|at| format!("+1 -0 file{at}")).collect();
        let difference = Difference { files: files.to_vec(), list };
        RepoDiff { repository: None, difference, command: "git diff a b".into() }
    }

    #[test]
    fn a_short_change_is_shown_as_it_is() {
        assert_eq!(render(&[section(&["+one\n".into(), "+two\n".into()])], 100), "+one\n+two\n");
        assert_eq!(render(&[section(&[])], 100), "(no file was changed)");
    }

    #[test]
    fn a_file_behind_many_others_is_still_shown() {
        let harmless = "+harmless\n".repeat(2000);
        let text = render(&[section(&[harmless.clone(), harmless, "+evil\n".into()])], 4000);
        assert!(text.contains("+evil\n") && text.contains("git diff a b\n"), "{text}");
        assert!(text.contains("more lines of this file") && text.len() < 5000, "{text}");
        assert!(text.contains("All 3 changed files") && text.contains("+1 -0 file2\n"), "{text}");
    }

    #[test]
    fn a_list_that_is_too_long_says_how_many_files_it_leaves_out() {
        let text = render(&[section(&vec!["+x\n+y\n".to_owned(); 5000])], 100);
        let listed = text.lines().filter(|line| line.starts_with("+1 -0 ")).count();
        assert!(text.contains(&format!("[{} more changed files are not listed]", 5000 - listed)), "{text}");
    }
}
