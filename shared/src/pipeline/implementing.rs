//! The implement step: an agent works, and what it left is written down, however it ended.

use super::{
    Called, Errand, Expense, PipelineError, PreCommit, Reply, TaskRun, implement,
    place::{self, Begun, Work},
    resume::STOPPED,
    task::{Step, last_line},
    turns::{Kept, TurnKeeper, TurnsOf},
};
use crate::{
    agent::Outcome,
    message::{Body, Status},
    name::Attempt,
    record::{Delivery, Index},
};

/// How many characters of an agent's last words stand in the commit.
const LONGEST_WORDS: usize = 2000;

/// What an attempt came to.
struct Judgement {
    status: Status,
    body: Body,
    why: Option<String>,
}

impl TaskRun<'_, '_, '_> {
    pub(super) fn implement(&mut self, attempt: Attempt) -> Result<Step, PipelineError> {
        let chain = self.shop.options.staff.implementers(self.task)?;
        let time_left = self.allowance(&Expense::default())?;
        let by = self.shop.choose(&chain).name.clone();
        self.announce("implement", attempt, &by);
        let prompt = implement(self.subject(), &self.events);
        let log = self.shop.home.join(self.log_path("implement"));
        let begun = place::begin(self.recorder, &self.shop.sentry, &self.task.id, attempt)?;
        let session = self.shop.options.sessions;
        let errand =
            Errand { chain: &chain, time_left, session, task: self.task, prompt: &prompt, log: &log };
        let mut turns = TurnKeeper::new(self.recorder, &begun, TurnsOf::of(self.shop, self.task, attempt));
        let called = self.shop.call(errand, Some(&mut turns));
        let Kept { events, noticed, index } = turns.finish();
        self.events.extend(events);
        let mut work = place::end(self.recorder, &begun, noticed)?;
        if index == Index::Behind {
            self.recorder.catch_up(begun.tree)?;
        }
        let called = self.cut_short(called);
        match &called.result {
            Ok(reply) => {
                let refusal = self.ask_hook(&begun, &mut work)?;
                let judgement = refused(judge(reply, &work), refusal);
                let is_passed = judgement.status == Status::ImplementPass;
                self.keep(attempt, (begun, work), (judgement, &called))?;
                Ok(if is_passed { Step::Passed } else { Step::Failed })
            }
            Err(error) => {
                let is_untouched = work.changes.is_empty() && work.tip == begun.head;
                if is_untouched && work.trespass.is_none() && !called.is_worth_counting() {
                    let repository = self.recorder.repository();
                    repository.move_refs(&[begun.unfinished.ended()], "arborist: stopped")?;
                } else {
                    let judgement = interrupted(error, is_untouched);
                    self.keep(attempt, (begun, work), (judgement, &called))?;
                }
                called.result.map(|_| Step::Failed)
            }
        }
    }

    /// Commits what an attempt left, with what it cost.
    fn keep(
        &mut self,
        attempt: Attempt,
        (begun, work): (Begun, Work),
        (judgement, called): (Judgement, &Called),
    ) -> Result<(), PipelineError> {
        let Judgement { status, body, why } = judgement;
        let mut entry = self.entry(status, attempt);
        entry.body = body;
        entry.trailers = called.expense.trailers();
        let delivery = Delivery { tree: work.tree, tip: work.tip, changes: &work.changes };
        let event = self.recorder.deliver(entry, delivery, &[begun.unfinished.ended()])?;
        self.recorded(event, why.as_deref(), called.expense);
        Ok(())
    }

    /// The user's pre-commit hook sees what is about to be committed, and may change it. A repository whose hooks or
    /// configuration were touched runs nothing.
    fn ask_hook(&self, begun: &Begun, work: &mut Work) -> Result<Option<String>, PipelineError> {
        if self.shop.hook == PreCommit::None || work.trespass.is_some() || work.tree == begun.tree {
            return Ok(None);
        }
        let mut noticed = Vec::new();
        begun.look_again(&mut noticed);
        work.trespass = place::joined(&noticed);
        if work.trespass.is_some() {
            return Ok(None);
        }
        let repository = self.recorder.repository();
        match repository.pre_commit(work.tree, begun.head)? {
            Ok(tree) if tree == work.tree => Ok(None),
            Ok(tree) => {
                work.changes = repository.changes(self.recorder.tree(), tree)?;
                work.tree = tree;
                Ok(None)
            }
            Err(said) => Ok(Some(said)),
        }
    }
}

/// The agent's word counts only if it kept to its place.
fn judge(reply: &Reply, work: &Work) -> Judgement {
    const HEADING: &str = "Runner output (truncated to 2000 chars):";
    let first = |text: &str| text.chars().take(LONGEST_WORDS).collect::<String>();
    match (&reply.outcome, &work.trespass) {
        (Outcome::Success { text, .. }, None) => {
            let body = Body::new(HEADING, &first(text));
            Judgement { status: Status::ImplementPass, body, why: None }
        }
        (Outcome::Success { text, .. }, Some(trespass)) => {
            let body = Body::new("Why it failed:", trespass).with(HEADING, &first(text));
            Judgement { status: Status::ImplementFail, body, why: Some(trespass.clone()) }
        }
        (Outcome::Failed { message, .. } | Outcome::Limited { message, .. }, trespass) => {
            let why = trespass
                .as_ref()
                .map_or_else(|| message.clone(), |trespass| format!("{message}; {trespass}"));
            let body = Body::new("Why it failed:", &why).with(HEADING, &first(&reply.complaints));
            Judgement { status: Status::ImplementFail, body, why: Some(why) }
        }
    }
}

/// A hook that refuses makes a failure of any success.
fn refused(judgement: Judgement, refusal: Option<String>) -> Judgement {
    let Some(said) = refusal else {
        return judgement;
    };
    let body = Body::new("The pre-commit hook refused it:", &said).followed_by(judgement.body);
    let why = format!("the pre-commit hook refused it: {}", last_line(&said));
    Judgement { status: Status::ImplementFail, body, why: Some(why) }
}

/// Work that the user's wish cut off is an attempt that failed; everything else that stops a run is not the agent's
/// fault, and uses up no attempt.
fn interrupted(error: &PipelineError, is_untouched: bool) -> Judgement {
    let body = match error {
        PipelineError::Stopped { .. } if !is_untouched => Body::new("Why it failed:", "interrupted"),
        error => Body::new(STOPPED, &error.to_string()),
    };
    Judgement { status: Status::ImplementFail, body, why: Some(error.to_string()) }
}
