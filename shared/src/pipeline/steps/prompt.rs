//! The prompts of agents and reviewers. Pure.

use super::{
    background::{PromptFiles, TaskBackground},
    template::{PromptBlock, PromptTemplate},
};
use crate::{message::plain_text, name::TaskId, plan::Task};

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
        self.fill(&title, &own.map(String::as_str), &rules, &feedback, "", template)
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
        self.fill(&title, &own.map(String::as_str), &rules, "", &diff, template)
    }

    /// The built-in prompt, or the filled template. Blocks without which a step cannot work are appended if the
    /// template does not place them.
    fn fill(
        &self,
        title: &str,
        own: &[&str],
        rules: &str,
        feedback: &str,
        diff: &str,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(id: &TaskId) -> PromptParts<'_> {
        let subject = PromptSubject { id, name: "Create schema", description: "with users", is_red: false };
        let files = PromptFiles { exists: &|_| false, top: None };
        PromptParts::new(subject, &TaskBackground::default(), &files, &[])
    }

    #[test]
    fn prompts_name_the_task_and_request_a_last_line() {
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
    fn a_prompt_template_cannot_omit_required_parts() {
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
}
