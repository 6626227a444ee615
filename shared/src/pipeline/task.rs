//! One task from where it stands to its end: each step is written down before the next begins.

use std::path::Path;

use super::{
    Errand, Happening, PipelineError, PreCommit, Resume, Stage, Subject, Verdict, Workshop, cut_diff,
    implement,
    place::{self, Work},
    review,
};
use crate::{
    agent::{Outcome, Usage},
    history::Event,
    message::{Body, Key, Status, Trailers, Wording},
    name::{Attempt, Oid},
    plan::Task,
    record::{Entry, Recorder},
};

/// How many characters of a change the reviewer sees.
const LONGEST_DIFF: usize = 8000;
/// How many characters of an agent's last words stand in the commit.
const LONGEST_WORDS: usize = 2000;

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Complete,
    /// Its attempts are used up.
    Failed,
}

/// A task at work.
pub struct TaskRun<'s, 'w, 'r> {
    /// What it works with.
    pub shop: &'s mut Workshop<'w>,
    /// Who writes it down.
    pub recorder: &'s mut Recorder<'r>,
    /// The task.
    pub task: &'s Task,
    /// Its events that attempts are counted from; what happens is added.
    pub events: Vec<Event>,
    /// The commit before its first change.
    pub base: Oid,
}

/// What a step came to.
enum Step {
    Passed,
    Failed,
}

impl TaskRun<'_, '_, '_> {
    /// Goes on until the task is complete or its attempts are used up.
    pub fn run(&mut self) -> Result<End, PipelineError> {
        let mut next = Resume::after(&self.events);
        loop {
            if next.attempt.0 >= self.shop.options.max_retries && next.stage == Stage::Implement {
                self.record(Status::Failed, next.attempt, Body::default(), None)?;
                return Ok(End::Failed);
            }
            if self.shop.cancel.is_cancelled() {
                return Err(PipelineError::Stopped);
            }
            let step = match next.stage {
                Stage::Implement => self.implement(next.attempt)?,
                Stage::Test => self.test(next.attempt)?,
                Stage::Review => self.review(next.attempt)?,
                Stage::Complete => {
                    self.complete(next.attempt)?;
                    return Ok(End::Complete);
                }
            };
            next = match step {
                Step::Passed => Resume { stage: after(next.stage), ..next },
                Step::Failed => Resume { attempt: next.attempt.next(), stage: Stage::Implement },
            };
        }
    }

    fn implement(&mut self, attempt: Attempt) -> Result<Step, PipelineError> {
        let options = self.shop.options;
        self.announce("implement", attempt, &options.implement.name);
        let prompt = implement(self.subject(), &self.events);
        let log = self.log_path("implement");
        let begun = place::begin(self.recorder, &self.task.id, attempt)?;
        let errand = Errand {
            crew: &options.implement,
            task: self.task,
            prompt: &prompt,
            log: &self.shop.home.join(&log),
        };
        let called = self.shop.call(errand);
        let mut work = place::end(self.recorder, &begun)?;
        let refusal = if called.is_ok() { self.ask_hook(&mut work)? } else { None };
        let (status, body, usage, why) = match &called {
            Ok(reply) => refused(judge(&reply.outcome, &work, &reply.complaints), refusal),
            Err(error) => (
                Status::ImplementFail,
                Body::new("Why it failed:", "interrupted"),
                None,
                Some(error.to_string()),
            ),
        };
        let mut entry = self.entry(status, attempt);
        entry.body = body;
        entry.trailers = spent(usage);
        let commit = self.recorder.record_over(entry, work.tree, work.tip, &[begun.unfinished.ended()])?;
        self.recorder.repository().stage(&work.changes)?;
        self.recorded(status, commit, why.as_deref(), usage)?;
        called?;
        Ok(if status == Status::ImplementPass { Step::Passed } else { Step::Failed })
    }

    /// The user's pre-commit hook sees what is about to be committed, and may change it. A repository whose hooks or
    /// configuration were touched runs nothing.
    fn ask_hook(&self, work: &mut Work) -> Result<Option<String>, PipelineError> {
        if self.shop.hook == PreCommit::None || work.trespass.is_some() || work.changes.is_empty() {
            return Ok(None);
        }
        let repository = self.recorder.repository();
        match repository.pre_commit(work.tree)? {
            Ok(tree) if tree == work.tree => Ok(None),
            Ok(tree) => {
                work.changes = repository.changes(self.recorder.tree(), tree)?;
                work.tree = tree;
                Ok(None)
            }
            Err(said) => Ok(Some(said)),
        }
    }

    fn test(&mut self, attempt: Attempt) -> Result<Step, PipelineError> {
        let (commands, has_command) = self.shop.options.tests_of(self.task);
        self.announce("test", attempt, &commands[0].command);
        let log = self.log_path("test");
        let result = self.shop.test(self.task, &commands, &log)?;
        let status = if result.is_passed { Status::TestPass } else { Status::TestFail };
        let mut entry = self.entry(status, attempt);
        entry.body = result.body;
        entry.trailers = result.trailers;
        entry.remark = if has_command { "" } else { " (no test command)" };
        let commit = self.recorder.record(entry, self.recorder.tree())?;
        self.recorded(status, commit, result.why.as_deref(), None)?;
        Ok(if result.is_passed { Step::Passed } else { Step::Failed })
    }

    fn review(&mut self, attempt: Attempt) -> Result<Step, PipelineError> {
        let options = self.shop.options;
        self.announce("review", attempt, &options.review.name);
        let repository = self.recorder.repository();
        let (base, head) = (self.base, self.recorder.head());
        let (patch, stat) = repository.diff(base, head)?;
        let diff = cut_diff(&patch, &stat, LONGEST_DIFF);
        let prompt = review(self.subject(), &diff);
        let log = self.log_path("review");
        let errand = Errand {
            crew: &options.review,
            task: self.task,
            prompt: &prompt,
            log: &self.shop.home.join(&log),
        };
        let reply = self.shop.call(errand)?;
        let (verdict, words, usage) = match reply.outcome {
            Outcome::Success { text, usage, .. } => (Verdict::of(&text), text, usage),
            Outcome::Failed { message, usage, .. } | Outcome::Limited { message, usage, .. } => {
                (Verdict::Rejected, format!("the reviewer failed: {message}"), usage)
            }
        };
        let status =
            if verdict == Verdict::Approved { Status::ReviewApproved } else { Status::ReviewRejected };
        let mut entry = self.entry(status, attempt);
        entry.body = Body::new("Review:", &words);
        entry.trailers = spent(usage);
        let _ = entry.trailers.set(Key::ReviewLog, &log);
        let commit = self.recorder.record(entry, self.recorder.tree())?;
        let why = (verdict == Verdict::Rejected).then(|| last_line(&words));
        self.recorded(status, commit, why.as_deref(), usage)?;
        Ok(if verdict == Verdict::Approved { Step::Passed } else { Step::Failed })
    }

    /// The report is committed with the word that the task is complete.
    fn complete(&mut self, attempt: Attempt) -> Result<(), PipelineError> {
        let path =
            format!("{}/{}_run_{}.json", self.shop.options.report_dir, self.task.id, self.shop.stamp());
        let report = self.report(attempt);
        let file = self.shop.dir.join(&path);
        let write = || {
            std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
            std::fs::write(&file, &report)
        };
        write().map_err(|source| super::call::file_error(&file, source))?;
        let repository = self.recorder.repository();
        let blob = repository.write_blob(report.into_bytes())?;
        let change = crate::git::Change { path: path.clone().into_bytes(), after: Some((0o100_644, blob)) };
        let tree = repository.tree_with(self.recorder.tree(), std::slice::from_ref(&change))?;
        let mut entry = self.entry(Status::Complete, attempt);
        let heading = format!("Completed after {} attempt(s). Report: {path}", attempt.ordinal());
        entry.body = Body::new(&heading, "");
        let _ = entry.trailers.set(Key::Report, &path);
        let commit = self.recorder.record(entry, tree)?;
        repository.stage(&[change])?;
        self.recorded(Status::Complete, commit, None, None)
    }

    fn report(&self, attempt: Attempt) -> String {
        let step = |event: &Event| {
            let attempt = event.attempt().map(|attempt| attempt.0);
            serde_json::json!({ "commit": event.commit.to_string(), "status": event.status().as_str(), "attempt": attempt })
        };
        let steps: Vec<_> = self.events.iter().map(step).collect();
        let report = serde_json::json!({
            "task_id": self.task.id.as_str(),
            "name": self.task.name,
            "result": "pass",
            "retries": attempt.0,
            "branch": self.recorder.run().as_str(),
            "steps": steps,
        });
        format!("{report:#}\n")
    }

    fn record(
        &mut self,
        status: Status,
        attempt: Attempt,
        body: Body,
        why: Option<&str>,
    ) -> Result<(), PipelineError> {
        let mut entry = self.entry(status, attempt);
        entry.body = body;
        let commit = self.recorder.record(entry, self.recorder.tree())?;
        self.recorded(status, commit, why, None)
    }

    /// Reads back what was written down: the next step is decided from it.
    fn recorded(
        &mut self,
        status: Status,
        commit: Oid,
        why: Option<&str>,
        usage: Option<Usage>,
    ) -> Result<(), PipelineError> {
        let why = why.map(str::to_owned);
        self.shop.tell(&self.task.id, Happening::Recorded { status, commit, why, usage });
        let commits = self.recorder.repository().load_commits(&[commit])?;
        self.events.extend(commits.iter().filter_map(Event::of));
        Ok(())
    }

    fn entry(&self, status: Status, attempt: Attempt) -> Entry<'static> {
        let wording = Wording { name: &self.task.name, attempt, max: self.shop.options.max_retries };
        Entry::new(self.task.id.clone(), status, wording)
    }

    fn announce(&mut self, step: &'static str, attempt: Attempt, by: &str) {
        let begins = Happening::Begins { name: self.task.name.clone(), attempt, step, by: by.to_owned() };
        self.shop.tell(&self.task.id, begins);
    }

    fn subject(&self) -> Subject<'_> {
        let Task { id, name, description, .. } = self.task;
        Subject { id, name, description: if description == name { "" } else { description } }
    }

    fn log_path(&self, step: &str) -> String {
        format!("{}/{}_{step}_{}.log", self.shop.options.log_dir, self.task.id, self.shop.stamp())
    }
}

fn after(stage: Stage) -> Stage {
    match stage {
        Stage::Implement => Stage::Test,
        Stage::Test => Stage::Review,
        Stage::Review | Stage::Complete => Stage::Complete,
    }
}

type Judgement = (Status, Body, Option<Usage>, Option<String>);

/// The agent's word counts only if it kept to its place.
fn judge(outcome: &Outcome, work: &Work, complaints: &str) -> Judgement {
    const HEADING: &str = "Runner output (truncated to 2000 chars):";
    let first = |text: &str| text.chars().take(LONGEST_WORDS).collect::<String>();
    match (outcome, &work.trespass) {
        (Outcome::Success { text, usage, .. }, None) => {
            (Status::ImplementPass, Body::new(HEADING, &first(text)), *usage, None)
        }
        (Outcome::Success { text, usage, .. }, Some(trespass)) => {
            let body = Body::new("Why it failed:", trespass).with(HEADING, &first(text));
            (Status::ImplementFail, body, *usage, Some(trespass.clone()))
        }
        (Outcome::Failed { message, usage, .. } | Outcome::Limited { message, usage, .. }, trespass) => {
            let why = trespass
                .as_ref()
                .map_or_else(|| message.clone(), |trespass| format!("{message}; {trespass}"));
            let body = Body::new("Why it failed:", &why).with(HEADING, &first(complaints));
            (Status::ImplementFail, body, *usage, Some(why))
        }
    }
}

/// A hook that refuses makes a failure of any success.
fn refused(judgement: Judgement, refusal: Option<String>) -> Judgement {
    let (_, body, usage, _) = match refusal {
        Some(_) => judgement,
        None => return judgement,
    };
    let said = refusal.unwrap_or_default();
    let body = Body::new("The pre-commit hook refused it:", &said).followed_by(body);
    (
        Status::ImplementFail,
        body,
        usage,
        Some(format!("the pre-commit hook refused it: {}", last_line(&said))),
    )
}

fn spent(usage: Option<Usage>) -> Trailers {
    let mut trailers = Trailers::default();
    if let Some(usage) = usage {
        let _ = trailers.set(Key::TokensIn, usage.tokens_in.to_string());
        let _ = trailers.set(Key::TokensOut, usage.tokens_out.to_string());
        if let Some(cost) = usage.cost {
            let _ = trailers.set(Key::Cost, format!("{cost:.6}"));
        }
    }
    trailers
}

fn last_line(text: &str) -> String {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}
