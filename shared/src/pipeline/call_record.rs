//! Minutes of a call that is no step of a task's pipeline: one turn in the records of its session, whatever the agent
//! tells of turns.

use super::{
    Expense, Follower, PipelineEventKind, StepRunner, Who, Words,
    draft::OpenTurn,
    turn_note::{CallOf, Noted},
};
use crate::{
    agent::{AgentEvent, Tally, redact::Secrets},
    git::Repository,
    name::{Attempt, Oid, SessionId, TaskId},
    session::{DraftRecord, RecordKind as Record, SessionError, SessionWriter, Transcript, Turn},
};

/// Hears what is said in a call.
pub struct CallRecord {
    who: Who,
    draft: OpenTurn,
    model: Option<String>,
    session: Option<String>,
    words: Words,
}

/// What a call was about, and what it came to.
#[derive(Debug)]
pub struct CallFacts<'a> {
    /// The task.
    pub node: &'a TaskId,
    /// What was asked for.
    pub step: &'static str,
    /// Which time, from 0.
    pub attempt: Attempt,
    /// The code that it was about.
    pub about: Oid,
    /// What was spent.
    pub expense: Expense,
    /// The paths that were changed.
    pub files: Vec<String>,
    /// Why these are in no commit of the turn.
    pub not_committed: Option<String>,
    /// Whether it was stopped.
    pub interrupted: bool,
}

impl CallRecord {
    /// Of a call of this one that begins now.
    #[must_use]
    pub fn of(step_runner: &StepRunner, words: Words, now: i64) -> Self {
        let (who, draft) = (Who::called(step_runner), OpenTurn::new(now, words));
        let model = who.model.clone();
        Self { who, draft, model, session: None, words }
    }

    /// Writes the call down, if there is a session of this name.
    pub fn keep(
        mut self,
        (repository, session): (&Repository, &SessionId),
        matter: &CallFacts<'_>,
        (secrets, now): (&Secrets, i64),
    ) -> Result<(), SessionError> {
        let Some(session_writer) = SessionWriter::find(repository, session)? else {
            return Ok(());
        };
        self.draft.close();
        self.draft.usage = matter.expense.usage;
        let noted = Noted::new(&self.draft, (self.model, self.session), secrets);
        let (node, attempt, words) = (matter.node, matter.attempt, self.words);
        let call = CallOf { node, attempt, step: matter.step, words };
        session_writer.append(now, |number| {
            let (turn, transcript): (Turn, Option<Transcript>) =
                noted.written(&call, &self.who, (number, now));
            let turn = Turn {
                files: matter.files.clone(),
                not_committed: matter.not_committed.clone(),
                interrupted: matter.interrupted,
                ..turn
            };
            Ok::<_, SessionError>(DraftRecord {
                about: Some(matter.about),
                transcript,
                ..DraftRecord::of(Record::Turn(turn))
            })
        })?;
        Ok(())
    }
}

impl Follower for CallRecord {
    fn begins(&mut self, who: Who) {
        self.who = who;
    }

    fn goes_on(&mut self, who: Who) {
        self.who = who;
    }

    fn hear(&mut self, printed: &[u8], events: &[AgentEvent]) {
        self.draft.print(printed);
        events.iter().for_each(|event| self.draft.note(event, self.who.speaks_in_pieces()));
    }

    fn settle(&mut self, _: &Tally) -> Vec<PipelineEventKind> {
        Vec::new()
    }

    fn ends(&mut self, tally: &Tally) -> Vec<PipelineEventKind> {
        self.model = tally.model().map(str::to_owned).or(self.model.take());
        self.session = tally.session().map(str::to_owned);
        Vec::new()
    }
}
