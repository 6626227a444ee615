//! Asks a model for the message of a turn's commit. The call has its own time limit and directory, and only the commit
//! waits for it; the agent continues meanwhile.

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, channel},
    thread,
};

use crate::{
    agent::{
        CallOutcome, Request, RunnerKind,
        limits::Backoff,
        redact::{Redactor, Secrets},
    },
    git::TreeChange,
    name::TaskId,
    pipeline::{
        AtLimit, Call, Caller, Expense, RunOptions, StepRunner, TaskContext,
        turns::message::{MAX_SUBJECT, TurnMessage},
    },
    process::{Cancel, Confinement, Limits},
    safe_files,
};

/// How many characters of the change and of the agent's words the model is shown.
const LONGEST_DIFF: usize = 6000;
const LONGEST_INTENT: usize = 2000;

/// The source of the message of a turn's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageOrigin {
    /// The agent's own words.
    Agent,
    /// A model that is shown the change.
    Model(Box<StepRunner>),
    /// The names of the changed files.
    Plain,
}

impl MessageOrigin {
    /// The message if no model is asked.
    pub(in crate::pipeline) fn without_model(&self, words: &str, changes: &[TreeChange]) -> TurnMessage {
        match self {
            Self::Plain => TurnMessage::plain(changes),
            Self::Agent | Self::Model(_) => TurnMessage::of(words, changes),
        }
    }
}

/// Asks a model for messages.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Messenger {
    step_runner: StepRunner,
    limits: Limits,
    secrets: Secrets,
    cancel: Cancel,
    confinement: Option<Confinement>,
    dir: PathBuf,
    log: PathBuf,
}

/// The result of one request.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct MessageReply {
    /// The message, if the reply contained a usable one.
    pub(in crate::pipeline) message: Option<TurnMessage>,
    /// What it cost.
    pub(in crate::pipeline) expense: Expense,
}

/// What a message is about.
pub(in crate::pipeline) struct MessageTopic<'a> {
    pub(in crate::pipeline) task: &'a TaskId,
    pub(in crate::pipeline) words: &'a str,
    pub(in crate::pipeline) patch: &'a str,
    pub(in crate::pipeline) stat: &'a str,
}

impl Messenger {
    /// For a task, if a model writes its messages.
    pub(in crate::pipeline) fn of(
        context: &TaskContext<'_>,
        git_dir: &std::path::Path,
        log: &str,
    ) -> Option<Self> {
        let RunOptions { message_by, message_limits, .. } = context.run.options;
        let MessageOrigin::Model(step_runner) = message_by else {
            return None;
        };
        if context.run.playback.is_some() {
            return None;
        }
        let dir = git_dir.join("arborist/commit-message");
        let child = step_runner.sandboxed("commit-message", vec![dir.clone()]);
        Some(Self {
            confinement: context.run.options.sandbox.confine(&child),
            step_runner: step_runner.as_ref().clone(),
            limits: *message_limits,
            secrets: context.run.secrets.clone(),
            cancel: context.run.cancel.clone(),
            dir,
            log: context.run.home.join(log),
        })
    }

    /// Asks without waiting for the reply.
    pub(in crate::pipeline) fn ask(&self, topic: &MessageTopic<'_>, number: usize) -> Receiver<MessageReply> {
        let (sender, answer) = channel();
        let prompt = prompt(topic);
        let mut messenger = self.clone();
        messenger.log = self.log.with_extension(format!("{number}.log"));
        thread::spawn(move || {
            let _ = sender.send(messenger.call(&prompt));
        });
        answer
    }

    fn call(&self, prompt: &str) -> MessageReply {
        let mut quiet = |_| {};
        let mut caller = Caller {
            runner: &self.step_runner.name,
            limits: self.limits,
            backoff: Backoff { patience: std::time::Duration::ZERO, ..Backoff::default() },
            secrets: &self.secrets,
            cancel: &self.cancel,
            orphan_lock: None,
            on_event: &mut quiet,
            observer: None,
            expense: Expense::default(),
            confinement: self.confinement.clone(),
            prior_usage: None,
        };
        let request = Request {
            prompt,
            model: self.step_runner.model.as_deref(),
            dir: &self.dir,
            session: None,
            prompt_file: None,
            tools: None,
        };
        let reply = match &self.step_runner.runner {
            RunnerKind::Program(runner) if safe_files::make_folders(&self.dir).is_ok() => {
                caller.call(AtLimit::Leave, || Call::of_runner(runner, request, &self.log)).ok()
            }
            _ => None,
        };
        let said = match reply.map(|reply| reply.outcome) {
            Some(CallOutcome::Success { text, .. }) => message_in(&Redactor::redact(&self.secrets, &text)),
            _ => None,
        };
        MessageReply { message: said, expense: caller.expense }
    }
}

fn prompt(topic: &MessageTopic<'_>) -> String {
    let MessageTopic { task, words, patch, stat } = topic;
    let intent: String = words.chars().take(LONGEST_INTENT).collect();
    format!(
        "Write the message of a git commit for one step of the work on task {task}.\n\
         The first line is in the imperative, at most {MAX_SUBJECT} characters, such as \"Add a health endpoint\". After an empty \
         line, write one to three sentences that say what was done and why. Reply with the message only.\n\n\
         What the one who did it said:\n{}\n\nDiff:\n{}\n",
        intent.trim(),
        cut_diff(patch, stat, LONGEST_DIFF).trim_end()
    )
}

/// The message in a reply, if its first line can be a subject.
fn message_in(reply: &str) -> Option<TurnMessage> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut lines = reply.lines().filter(|line| !is_fence(line)).skip_while(|line| line.trim().is_empty());
    let first = lines.next()?.trim().trim_matches(['"', '`', '*', '#', ' ']).trim_end_matches('.');
    let length = first.chars().count();
    let words = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
    (1..=MAX_SUBJECT).contains(&length).then(|| TurnMessage::told(first.to_owned(), &words))
}

/// Cuts `diff` to `longest` characters at the end of a line, and appends `stat` if something was cut.
fn cut_diff(diff: &str, stat: &str, longest: usize) -> String {
    if diff.chars().count() <= longest {
        return diff.to_owned();
    }
    let kept: String = diff.chars().take(longest).collect();
    let end = kept.rfind('\n').map_or(kept.len(), |at| at + 1);
    format!("{}[the diff was cut here; all changed files:]\n{}", &kept[..end], stat.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_diff_is_cut_at_a_line_and_the_remaining_files_are_listed() {
        let diff = "+one\n+two\n+three\n";
        assert_eq!(cut_diff(diff, " a | 3 +++\n", 100), diff);
        assert_eq!(
            cut_diff(diff, " a | 3 +++\n", 12),
            "+one\n+two\n[the diff was cut here; all changed files:]\n a | 3 +++"
        );
    }

    #[test]
    fn a_reply_is_a_message_only_if_its_first_line_is_a_valid_subject() {
        let told = |reply: &str| message_in(reply).map(|message| message.subject);
        assert_eq!(told("Add a form\n\nIt asks for a name."), Some("Add a form".into()));
        assert_eq!(told("```\n\"Add a form.\"\n```"), Some("Add a form".into()));
        assert_eq!(told(""), None);
        assert_eq!(told("\n \n"), None);
        assert_eq!(told(&"long ".repeat(20)), None);
    }
}
