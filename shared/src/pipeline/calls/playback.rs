//! What agents did in another session, played again: their streams are read anew, and what their turns wrote is taken from
//! the commits of these turns. Nobody is called.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fs::File,
    io::Write,
    sync::{Mutex, PoisonError},
};

use crate::{
    agent::{
        AgentEvent, CallOutcome, EventFormat, EventReader, FailureKind, ProcessEnd, Tally, redact::Secrets,
    },
    event::{EventKind, RunEvent},
    git::{GitError, Repository, TreeChange},
    history::Event,
    message::{Status, Step},
    name::{Oid, RepoName, SessionId, TaskId},
    pipeline::{
        AgentCall, CallReply, Called, Expense, Follower, OtherRepo, PipelineError, TaskContext, Who,
        calls::call::{Hearing, file_error, lend},
    },
    safe_files,
    session::{
        RecordedCall, RecordedTurn, Recording, SessionError, SessionReader, Speaker, Trail, Transcript, Turn,
        ref_of,
    },
};

/// The calls of another session that are not played yet.
#[derive(Debug)]
pub struct Playback {
    session: SessionId,
    /// Leads to all of the session's code.
    newest: Oid,
    tasks: Mutex<HashMap<TaskId, Calls>>,
    /// What it did in other repositories.
    trails: BTreeMap<RepoName, Trail>,
}

/// The calls of one task.
#[derive(Debug)]
struct Calls {
    left: VecDeque<RecordedCall>,
    last: Last,
}

/// The newest commits of what was played, in other repositories by their names.
type Last = BTreeMap<Option<RepoName>, Oid>;

impl Playback {
    /// Of what was recorded, and of what was done in other repositories.
    #[must_use]
    pub fn new(recording: Recording, trails: BTreeMap<RepoName, Trail>) -> Self {
        let calls = |calls: Vec<RecordedCall>| Calls { left: calls.into(), last: Last::new() };
        let tasks = recording.calls.into_iter().map(|(task, found)| (task, calls(found)));
        let Recording { session, newest, .. } = recording;
        Self { session, newest, tasks: Mutex::new(tasks.collect()), trails }
    }

    /// The call that comes next, if it is what is to be done, and the newest commits of what was played before it.
    fn next(&self, task: &TaskId, step: Step) -> Option<(RecordedCall, Last)> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = tasks.get_mut(task)?;
        calls.left.front().filter(|call| call.step == step)?;
        Some((calls.left.pop_front()?, calls.last.clone()))
    }

    fn keep(&self, task: &TaskId, last: Last) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.entry(task.clone()).and_modify(|calls| calls.last = last);
    }

    fn missing(&self, task: &TaskId, step: Step) -> PipelineError {
        let (session, task) = (self.session.clone(), task.clone());
        PipelineError::NotRecorded { session, task, step: step.as_str() }
    }
}

impl TaskContext<'_> {
    /// Plays the call that was recorded for an errand.
    pub(in crate::pipeline) fn play(
        &mut self,
        playback: &Playback,
        agent_call: AgentCall<'_>,
        follower: Option<&mut (dyn Follower + '_)>,
    ) -> Called {
        let AgentCall { task, step, place, other_repos, .. } = agent_call;
        let result = match playback.next(&task.id, step) {
            Some((call, last)) => {
                let on_event = &mut self.on_event;
                let mut tell = |kind| on_event(RunEvent::of(&task.id, kind));
                let secrets = &self.run.secrets;
                let interrupted = call.interrupted;
                let mut player = Player {
                    playback,
                    task: &task.id,
                    place,
                    other_repos,
                    secrets,
                    last,
                    spoken: None,
                    interrupted,
                };
                let played = player.play(&call, agent_call, &mut tell, follower);
                playback.keep(&task.id, player.last);
                let tally = player.spoken.map(|spoken| spoken.tally);
                played.and_then(|()| conclude(&call, tally).ok_or_else(|| playback.missing(&task.id, step)))
            }
            None => Err(playback.missing(&task.id, step)),
        };
        // What it cost was spent when it was recorded.
        // Whether it passed was decided then, too.
        Called { expense: Expense::default(), result, is_decided: true }
    }
}

/// Plays one call.
struct Player<'p> {
    playback: &'p Playback,
    task: &'p TaskId,
    place: &'p Repository,
    other_repos: &'p [OtherRepo],
    secrets: &'p Secrets,
    last: Last,
    spoken: Option<Spoken>,
    /// Where the call was interrupted before it was taken again.
    interrupted: Option<Oid>,
}

/// What somebody has said so far.
struct Spoken {
    runner: String,
    events: EventFormat,
    reader: EventReader,
    tally: Tally,
}

impl Player<'_> {
    fn play(
        &mut self,
        call: &RecordedCall,
        agent_call: AgentCall<'_>,
        on_event: &mut dyn FnMut(EventKind),
        mut follower: Option<&mut (dyn Follower + '_)>,
    ) -> Result<(), PipelineError> {
        let mut log =
            safe_files::open_log(agent_call.log).map_err(|source| file_error(agent_call.log, source))?;
        for turn in &call.turns {
            let said =
                SessionReader::new(self.place).load_transcript(&self.playback.session, turn.transcript)?;
            self.play_turn(turn, &said, (on_event, lend(&mut follower)), &mut log)?;
        }
        if let (Step::Implement, Some(end)) = (call.step, &call.end) {
            self.bring((None, self.place), self.first_of(end.commit)?, end.commit)?;
            self.bring_beside(|name, _| call.beside.get(name.as_str()).copied())?;
        }
        if let Some(spoken) = &mut self.spoken {
            Hearing::new(on_event, lend(&mut follower), (&mut spoken.tally, self.secrets)).end();
        }
        Ok(())
    }

    fn play_turn(
        &mut self,
        recorded: &RecordedTurn,
        said: &Transcript,
        (on_event, mut follower): (&mut dyn FnMut(EventKind), Option<&mut (dyn Follower + '_)>),
        log: &mut File,
    ) -> Result<(), PipelineError> {
        let events = said.events.parse().or_else(|_| said.runner.parse()).unwrap_or(EventFormat::Text);
        let who = Who::recorded(&recorded.turn, events);
        let is_same = |spoken: &Spoken| spoken.runner == said.runner && spoken.events == events;
        if let Some(follower) = &mut follower {
            if self.spoken.as_ref().is_some_and(is_same) {
                follower.goes_on(who);
            } else {
                follower.begins(who);
            }
        }
        let mut spoken = match self.spoken.take().filter(is_same) {
            Some(spoken) => spoken,
            None => Spoken::new(said.runner.clone(), events),
        };
        let lines: Vec<&str> = said
            .lines
            .iter()
            .filter(|line| line.speaker == Speaker::Stream)
            .map(|line| line.text.as_str())
            .collect();
        let Spoken { reader, tally, .. } = &mut spoken;
        let mut hearing = Hearing::new(on_event, lend(&mut follower), (tally, self.secrets));
        for (left, line) in lines.iter().enumerate().map(|(at, line)| (lines.len() - at - 1, line)) {
            let line = format!("{line}\n");
            let _ = log.write_all(line.as_bytes());
            let told = match events {
                EventFormat::Text => reader.feed(line.as_bytes()),
                _ => without_ends(reader.feed(line.as_bytes()), left),
            };
            if left == 0 {
                self.bring_turn(&recorded.turn)?;
            }
            hearing.hear(line.as_bytes(), &told);
        }
        hearing.settle();
        self.spoken = Some(spoken);
        Ok(())
    }

    /// All worktrees become what they were when the turn ended.
    fn bring_turn(&mut self, turn: &Turn) -> Result<(), PipelineError> {
        if let Some(commit) = turn.commit {
            self.require_own(commit)?;
            self.bring((None, self.place), self.first_of(commit)?, commit)?;
        }
        self.bring_beside(|_, trail| trail.turn(turn.number))?;
        Ok(())
    }

    /// The worktrees of other repositories become what they were at a commit of the task there, where there is one.
    fn bring_beside(&mut self, find: impl Fn(&RepoName, &Trail) -> Option<Oid>) -> Result<(), GitError> {
        for OtherRepo { name, repository, .. } in self.other_repos {
            let found = self.playback.trails.get(name).and_then(|trail| {
                let commit = find(name, trail)?;
                Some((trail.first_of(self.task, commit)?, commit))
            });
            if let Some((first, commit)) = found {
                self.bring((Some(name), repository), first, commit)?;
            }
        }
        Ok(())
    }

    /// A record can name any commit; only those of the session are put anywhere.
    fn require_own(&self, commit: Oid) -> Result<(), PipelineError> {
        let Playback { session, newest, .. } = self.playback;
        if self.place.is_ancestor(commit, *newest)? {
            return Ok(());
        }
        let (name, why) = (ref_of(session), "it is no commit of this session".to_owned());
        Err(SessionError::Unreadable { name, commit, why }.into())
    }

    /// The first commit of the call up to `commit`: the one that recorded an interruption holds what was done before it.
    fn first_of(&self, commit: Oid) -> Result<Oid, GitError> {
        match self.interrupted {
            Some(first) if !self.place.is_ancestor(commit, first)? => Ok(first),
            _ => Ok(commit),
        }
    }

    /// Makes a worktree what it was at a commit of the task, as far as that differs from the one that was played before, or
    /// from what the `first` that was not played follows.
    fn bring(
        &mut self,
        (name, place): (Option<&RepoName>, &Repository),
        first: Oid,
        commit: Oid,
    ) -> Result<(), GitError> {
        let parent = || -> Result<Option<Oid>, GitError> {
            Ok(place.load_commits(&[first])?.first().and_then(|commit| commit.parents().next()))
        };
        let before = match self.last.insert(name.cloned(), commit) {
            Some(last) => Some(last),
            None => parent()?,
        };
        let Some(before) = before else {
            return Ok(());
        };
        let tree = place.tree_of(commit)?;
        let mut changes = place.changes(place.tree_of(before)?, tree)?;
        changes.retain(|change: &TreeChange| !change.is_gitlink());
        if changes.is_empty() { Ok(()) } else { place.put_back(tree, &changes) }
    }
}

impl Spoken {
    fn new(runner: String, events: EventFormat) -> Self {
        Self { runner, events, reader: EventReader::new(events), tally: Tally::new(events) }
    }
}

/// A recorded turn ends once, with its last line, whatever ended within it.
fn without_ends(told: Vec<AgentEvent>, lines_left: usize) -> Vec<AgentEvent> {
    let is_end = |event: &AgentEvent| matches!(event, AgentEvent::TurnEnded { .. });
    let last = told.iter().rposition(is_end).filter(|_| lines_left == 0);
    let kept = told.into_iter().enumerate().filter(|(at, event)| Some(*at) == last || !is_end(event));
    let mut kept: Vec<AgentEvent> = kept.map(|(_, event)| event).collect();
    if lines_left == 0 && last.is_none() {
        kept.push(AgentEvent::TurnEnded { number: 0 });
    }
    kept
}

/// What a call came to: what its stream says, as far as what was written down then agrees. `None` if it had no end.
fn conclude(call: &RecordedCall, tally: Option<Tally>) -> Option<CallReply> {
    let end = call.end.as_ref().filter(|end| !end.is_interruption())?;
    let told = tally.map(|tally| tally.conclude(&ProcessEnd::Code(0)));
    if end.status() == Status::ImplementFail {
        let outcome = CallOutcome::Failed {
            kind: FailureKind::Other,
            message: words_of(end),
            usage: None,
            session: None,
        };
        return Some(CallReply { outcome, words: String::new(), has_no_session: false, doubt: None });
    }
    Some(match told {
        Some(outcome @ CallOutcome::Success { .. }) => {
            CallReply { outcome, words: String::new(), has_no_session: false, doubt: None }
        }
        _ => succeeded(words_of(end)),
    })
}

fn succeeded(text: String) -> CallReply {
    CallReply {
        outcome: CallOutcome::Success { text, usage: None, session: None },
        words: String::new(),
        has_no_session: false,
        doubt: None,
    }
}

/// What somebody said, as it was written down.
fn words_of(event: &Event) -> String {
    let sections = event.body().sections.into_iter();
    sections.map(|section| section.text).find(|text| !text.is_empty()).unwrap_or_default()
}
