//! The review step: somebody else decides on the change. A reviewer that breaks down has decided nothing, and is asked
//! again.

use super::{
    Called, Errand, Expense, Happening, PipelineError, Reply, Resume, Sessions, Stage, TaskRun, Verdict,
    cut_diff,
    guard::{Watch, joined},
    plain::Changed,
    reading, review,
    task::{Step, last_line},
    turn_note::TurnsOf,
    turns::TurnKeeper,
};
use crate::{
    agent::{FailureKind, Outcome},
    message::{Body, Key, Status, Step as StepKind, visible},
    name::Attempt,
    record::Unfinished,
};

/// How often reviewers are asked about one change before a person has to look at why they fail.
const MOST_TRIES: u32 = 3;

impl TaskRun<'_, '_, '_> {
    pub(super) fn review(&mut self, attempt: Attempt) -> Result<Step, PipelineError> {
        let log = self.log_path("review");
        let called = self.ask_reviewers(attempt, &log)?;
        let (verdict, body, why) = match &called.result {
            Ok(reply) => {
                let (verdict, words) = opinion(reply);
                let why = (verdict == Verdict::Rejected).then(|| reason(&words));
                (verdict, Body::new("Review:", &words), why)
            }
            Err(error) => {
                // Nobody has decided anything, so this is no rejection: the review alone is taken again.
                if error.is_interruption() || called.is_worth_counting() {
                    let next = Resume { attempt, stage: Stage::Review };
                    self.keep_interruption(next, &error.reason(), called.expense)?;
                }
                return called.result.map(|_| Step::Failed);
            }
        };
        self.keep_review(attempt, (verdict, body, why), (&log, called.expense))?;
        called.result.map(|_| if verdict == Verdict::Approved { Step::Passed } else { Step::Failed })
    }

    fn ask_reviewers(&mut self, attempt: Attempt, log: &str) -> Result<Called, PipelineError> {
        let chain = self.shop.options.staff.reviewers()?;
        let by = self.shop.name_of_next(&chain);
        self.announce("review", attempt, (&by, log));
        let (prompt, file) = (self.review_prompt()?, self.shop.home.join(log));
        let mut expense = Expense::default();
        for tries in 1.. {
            let time_left = match self.allowance(&expense) {
                Ok(left) => left,
                Err(overrun) => return Ok(Called { expense, result: Err(overrun.into()) }),
            };
            let session = Sessions::Fresh;
            let (task, place, step) = (self.task, self.recorder.repository(), StepKind::Review);
            let (prompt, log) = (&prompt, &file);
            let errand =
                Errand { chain: &chain, time_left, session, task, step, place, annexes: &[], prompt, log };
            let lent = reading::lend(self.recorder, &self.shop.sentry)?;
            let beside: Vec<Watch> =
                self.shop.annexes.iter().map(|annex| annex.sentry.watch(&annex.repository)).collect();
            let of = TurnsOf::of(self.shop, self.task, (StepKind::Review, attempt));
            let mut turns = TurnKeeper::new(self.recorder, None, of);
            let called = self.shop.call(errand, Some(&mut turns));
            let (kept, _, plain) = turns.finish();
            self.shop.scribe.owe(&called.expense, kept.told);
            self.keep_plain(plain, &called, Changed::NOTHING);
            let here = lent.take_back(self.recorder, &self.mark_of(attempt))?;
            let there = beside.iter().flat_map(Watch::restore);
            let trespass = joined(&here.into_iter().chain(there).collect::<Vec<_>>());
            self.recorder.unsettle();
            expense.add(called.expense.usage, called.expense.time);
            let called = self.cut_short(Called { expense, ..discounted(called, trespass) });
            match &called.result {
                Ok(Reply { outcome: Outcome::Failed { message, .. }, .. }) if tries < MOST_TRIES => {
                    let words = format!("  the reviewer failed and is asked again: {message}");
                    self.shop.tell(&self.task.id, Happening::Note { words });
                }
                // Who breaks down has said nothing about the work, and to do that again would not help.
                Ok(Reply { outcome: Outcome::Failed { message, .. }, .. }) => {
                    let error = PipelineError::NoReview { tries, said: message.clone() };
                    return Ok(Called { result: Err(error), ..called });
                }
                _ => return Ok(called),
            }
        }
        Err(PipelineError::stopped(&self.shop.cancel))
    }

    fn mark_of(&self, attempt: Attempt) -> String {
        Unfinished::name_of(self.recorder.branch(), &self.task.id, attempt)
    }

    fn review_prompt(&self) -> Result<String, PipelineError> {
        let repository = self.recorder.repository();
        let longest = self.shop.options.diff_limit;
        let (mut patch, mut stat) = repository.diff(self.base.tree, self.recorder.tree())?;
        for annex in &self.shop.annexes {
            let (more, lines) = annex.diff()?;
            patch += &format!("\nIn the repository {}:\n{more}", annex.name);
            stat += &format!("\nIn the repository {}:\n{lines}", annex.name);
        }
        let diff = cut_diff(&patch, &stat, longest) + &self.words_on_ignored()?;
        Ok(review(self.subject(), &diff))
    }

    /// A file that no commit has can make tests pass here and nowhere else.
    fn words_on_ignored(&self) -> Result<String, PipelineError> {
        let Some(ignored) = &self.shop.ignored else { return Ok(String::new()) };
        let new = ignored.look(self.recorder.repository(), &self.shop.options.log_dir)?;
        if new.is_empty() {
            return Ok(String::new());
        }
        let names: Vec<String> = new.iter().map(|name| format!("- {}", visible(name))).collect();
        Ok(format!(
            "\n\nIgnored files that are new and in no commit, but were there for the tests:\n{}",
            names.join("\n")
        ))
    }

    fn keep_review(
        &mut self,
        attempt: Attempt,
        (verdict, body, why): (Verdict, Body, Option<String>),
        (log, expense): (&str, Expense),
    ) -> Result<(), PipelineError> {
        let status = match verdict {
            Verdict::Approved => Status::ReviewApproved,
            Verdict::Rejected => Status::ReviewRejected,
        };
        let mut entry = self.entry(status, attempt);
        entry.body = body;
        entry.trailers = expense.trailers();
        let _ = entry.trailers.set(Key::ReviewLog, log);
        let event = self.recorder.record(entry, self.recorder.tree())?;
        self.recorded(event, why.as_deref(), expense);
        Ok(())
    }
}

/// Why it is a no, in one line.
fn reason(words: &str) -> String {
    let last = last_line(words);
    let is_verdict = ["REJECTED", "APPROVED"].iter().any(|word| last.contains(word));
    if is_verdict { last } else { format!("no verdict in the reviewer's last line: {last}") }
}

/// The word of a reviewer that did not keep to reading does not count.
fn discounted(called: Called, trespass: Option<String>) -> Called {
    let result = match (called.result, trespass) {
        (Ok(reply), Some(message)) => {
            let outcome = Outcome::Failed { kind: FailureKind::Other, message, usage: None, session: None };
            Ok(Reply { outcome, ..reply })
        }
        (result, _) => result,
    };
    Called { result, ..called }
}

/// Only what a reviewer says is an opinion.
fn opinion(reply: &Reply) -> (Verdict, String) {
    match &reply.outcome {
        Outcome::Success { text, .. } => (Verdict::of(text), text.clone()),
        Outcome::Failed { message, .. } | Outcome::Limited { message, .. } => {
            (Verdict::Rejected, format!("the reviewer failed: {message}"))
        }
    }
}
