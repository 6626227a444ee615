//! The prompts of agents and reviewers, and the diff that a reviewer is shown. Pure.

use std::fmt::Write;

use super::{
    background::{PromptFiles, TaskBackground},
    template::{PromptBlock, PromptTemplate},
};
use crate::{
    git::Difference,
    message::plain_text,
    name::{Oid, TaskId},
    plan::Task,
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

impl<'a> From<&'a Task> for PromptSubject<'a> {
    fn from(task: &'a Task) -> Self {
        let Task { id, name, description, .. } = task;
        let description = if description == name { "" } else { description };
        Self { id, name, description, is_red: task.red }
    }
}

/// What all prompts about a task have in common.
#[derive(Debug)]
pub struct PromptParts<'a> {
    /// The task.
    pub subject: PromptSubject<'a>,
    /// The phases around it.
    pub phase: String,
    /// The tasks that it builds on.
    pub dependencies: String,
    /// The plan and its documents.
    pub documents: String,
    /// The files of the setting `context`.
    pub context: String,
    /// The rule about protected files.
    pub protection: String,
}

impl<'a> PromptParts<'a> {
    /// Collects them. `context` are the files of the setting.
    pub fn new(
        subject: PromptSubject<'a>,
        background: &TaskBackground,
        files: &PromptFiles<'_>,
        context: &[String],
    ) -> Self {
        let context = match files.list(context.iter().cloned()) {
            list if list.is_empty() => list,
            list => format!("Read these files first:\n{list}"),
        };
        Self {
            subject,
            phase: background.describe_phases(),
            dependencies: String::new(),
            documents: background.list_documents(files),
            context,
            protection: String::new(),
        }
    }

    /// The prompt of an implement step, with the failures of earlier attempts.
    #[must_use]
    pub fn implement(&self, feedback: &str, template: Option<&PromptTemplate>) -> String {
        let title = format!("Implement task {}: {}", self.subject.id, self.subject.name);
        let mut rules = "Work in the current directory. Make all necessary file changes.\n\
            Do not commit: your changes are committed for you.\n\
            Do not edit the list of tasks: finished tasks are recorded for you.\n"
            .to_owned();
        if self.subject.is_red {
            rules.push_str("Write only tests, which must fail now: a later task makes them pass. All other tests must pass.\n");
        }
        rules.push_str(&self.protection);
        rules.push_str(
            "If nothing has to be changed, end your reply with the line 'NOTHING TO DO: <reason>'.",
        );
        let feedback = match feedback {
            "" => String::new(),
            feedback => format!("Previous feedback from failed attempts:\n\n{feedback}"),
        };
        let own = [&self.dependencies, &self.documents, &self.context, &rules, &feedback];
        self.fill(&title, &own.map(String::as_str), (&rules, &feedback, ""), template)
    }

    /// The prompt of a review. `idle` is the reason of an agent that changed nothing.
    #[must_use]
    pub fn review(&self, diff: &str, idle: Option<&str>, template: Option<&PromptTemplate>) -> String {
        let title = format!("Review the changes for task {}: {}", self.subject.id, self.subject.name);
        let mut rules = Vec::new();
        if self.subject.is_red {
            rules.push("The new tests are meant to fail: a later task makes them pass.".to_owned());
        }
        if let Some(reason) = idle {
            rules.push(format!(
                "The implementing agent changed no files in this attempt. Its reason: {}\nDecide whether it is right.",
                plain_text(reason).trim()
            ));
        }
        rules.push(
            "Do not change any file. Reply APPROVED if the code is correct, or REJECTED with reasons.\n\
             The last line of your reply must be exactly APPROVED, or begin with REJECTED: and say why."
                .to_owned(),
        );
        let rules = rules.join("\n\n");
        let diff = format!("Diff:\n{}", diff.trim_end());
        let own = [&self.documents, &self.context, &diff, &rules];
        self.fill(&title, &own.map(String::as_str), (&rules, "", &diff), template)
    }

    /// The built-in prompt, or the filled template. Blocks without which a step cannot work are appended if the
    /// template does not place them.
    fn fill(
        &self,
        title: &str,
        own: &[&str],
        (rules, feedback, diff): (&str, &str, &str),
        template: Option<&PromptTemplate>,
    ) -> String {
        let description = match self.subject.description.trim() {
            "" => String::new(),
            text => format!("Description: {text}"),
        };
        let all = [&[title, &description, &self.phase], own].concat();
        let blocks: Vec<&str> = all.into_iter().filter(|block| !block.is_empty()).collect();
        let prompt = blocks.join("\n\n") + "\n";
        let Some(template) = template else { return prompt };
        let mut text = template.fill(|block| match block {
            PromptBlock::Prompt => prompt.trim_end(),
            PromptBlock::Task => self.subject.id.as_str(),
            PromptBlock::Name => self.subject.name,
            PromptBlock::Description => self.subject.description.trim(),
            PromptBlock::Phase => &self.phase,
            PromptBlock::Dependencies => &self.dependencies,
            PromptBlock::Documents => &self.documents,
            PromptBlock::Context => &self.context,
            PromptBlock::Rules => rules,
            PromptBlock::Feedback => feedback,
            PromptBlock::Diff => diff,
        });
        let needed =
            [(PromptBlock::Diff, diff), (PromptBlock::Feedback, feedback), (PromptBlock::Rules, rules)];
        for (block, value) in needed {
            if !value.is_empty() && !template.uses(block) && !template.uses(PromptBlock::Prompt) {
                text = format!("{}\n\n{value}\n", text.trim_end());
            }
        }
        text
    }
}

/// Cuts `diff` to `longest` characters at the end of a line, and appends `stat` if something was cut.
#[must_use]
pub fn cut_diff(diff: &str, stat: &str, longest: usize) -> String {
    if diff.chars().count() <= longest {
        return diff.to_owned();
    }
    let kept: String = diff.chars().take(longest).collect();
    let end = kept.rfind('\n').map_or(kept.len(), |at| at + 1);
    format!("{}[the diff was cut here; all changed files:]\n{}", &kept[..end], stat.trim_end())
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
pub fn render_diff(sections: &[RepoDiff], longest: usize) -> String {
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
        "[The diff is too long to show here and is cut below. Read all of it before you decide:]\n",
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
pub(super) fn shares(sizes: &[usize], longest: usize) -> Vec<usize> {
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
            "+one\n+two\n[the diff was cut here; all changed files:]\n a | 3 +++"
        );
    }

    fn parts(id: &TaskId) -> PromptParts<'_> {
        let subject = PromptSubject { id, name: "Create schema", description: "with users", is_red: false };
        let files = PromptFiles { exists: &|_| false, top: None };
        PromptParts::new(subject, &TaskBackground::default(), &files, &[])
    }

    #[test]
    fn the_prompts_name_the_task_and_ask_for_a_last_line() {
        let id = "T001".parse().unwrap();
        let parts = parts(&id);
        let prompt = parts.implement("", None);
        assert!(
            prompt.starts_with("Implement task T001: Create schema\n\nDescription: with users\n\nWork in"),
            "{prompt}"
        );
        assert!(!prompt.contains("feedback"));
        assert!(parts.review("+x\n", None, None).contains("Diff:\n+x\n"));
    }

    #[test]
    fn a_template_cannot_lose_what_a_step_needs() {
        let id = "T001".parse().unwrap();
        let parts = parts(&id);
        let template = |text: &str| PromptTemplate::parse("x.md", text).unwrap();
        let prompt = parts.review("+x\n", None, Some(&template("Judge {task}.\n")));
        assert!(prompt.starts_with("Judge T001.\n\nDiff:\n+x\n\nDo not change any file."), "{prompt}");
        let prompt = parts.implement("it broke", Some(&template("{feedback}\n{rules}\nDo {task}.\n")));
        assert!(prompt.starts_with("Previous feedback") && prompt.ends_with("Do T001.\n"), "{prompt}");
        let prompt = parts.implement("it broke", Some(&template("{prompt}\n\nUse tabs.\n")));
        assert_eq!(prompt.matches("it broke").count(), 1, "{prompt}");
        assert!(prompt.starts_with("Implement task T001") && prompt.ends_with("Use tabs.\n"), "{prompt}");
    }

    fn section(files: &[String]) -> RepoDiff {
        let list = (0..files.len()).map(|at| format!("+1 -0 file{at}")).collect();
        let difference = Difference { files: files.to_vec(), list };
        RepoDiff { repository: None, difference, command: "git diff a b".into() }
    }

    #[test]
    fn a_short_change_is_shown_as_it_is() {
        assert_eq!(render_diff(&[section(&["+one\n".into(), "+two\n".into()])], 100), "+one\n+two\n");
        assert_eq!(render_diff(&[section(&[])], 100), "(no file was changed)");
    }

    #[test]
    fn a_file_behind_many_others_is_still_shown() {
        let harmless = "+harmless\n".repeat(2000);
        let text = render_diff(&[section(&[harmless.clone(), harmless, "+evil\n".into()])], 4000);
        assert!(text.contains("+evil\n") && text.contains("git diff a b\n"), "{text}");
        assert!(text.contains("more lines of this file") && text.len() < 5000, "{text}");
        assert!(text.contains("All 3 changed files") && text.contains("+1 -0 file2\n"), "{text}");
    }

    #[test]
    fn a_list_that_is_too_long_says_how_many_files_it_leaves_out() {
        let text = render_diff(&[section(&vec!["+x\n+y\n".to_owned(); 5000])], 100);
        let listed = text.lines().filter(|line| line.starts_with("+1 -0 ")).count();
        assert!(text.contains(&format!("[{} more changed files are not listed]", 5000 - listed)), "{text}");
    }
}
