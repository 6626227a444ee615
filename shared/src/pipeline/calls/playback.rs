//! Replays the calls of another session without calling agents: their recorded streams are read again, and the files
//! that a turn wrote are taken from the commit of that turn.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fs::File,
    io::Write,
    sync::Mutex,
};

use crate::{
    agent::{
        AgentEvent, CallOutcome, EventFormat, EventReader, FailureKind, ProcessEnd, Tally, redact::Secrets,
    },
    event::{EventKind, RunEvent},
    git::{GitError, Repository, TreeChange},
    history::{DENIED, Event},
    message::{Status, Step},
    mutex::MutexExt,
    name::{Oid, RepoName, SessionId, TaskId},
    pipeline::{
        ActiveRunner, AgentCall, CallObserver, CallReply, Expense, FinishedCall, OtherRepo, PipelineError,
        TaskContext,
        calls::caller::{EventDispatcher, file_error, reborrow},
    },
    record::call_opening,
    safe_files,
    session::{
        RecordedCall, RecordedTurn, Recording, SessionError, SessionReader, Speaker, Trail, Transcript, Turn,
        ref_of,
    },
};

/// The calls of another session that were not replayed yet.
#[derive(Debug)]
pub struct Playback {
    session: SessionId,
    /// The session's newest record, from which all its commits are reachable.
    newest: Oid,
    tasks: Mutex<HashMap<TaskId, Calls>>,
    /// The session's commits in other repositories.
    trails: BTreeMap<RepoName, Trail>,
}

/// The calls of one task.
#[derive(Debug)]
struct Calls {
    left: VecDeque<RecordedCall>,
    last: PlayedCommits,
}

/// The last replayed commit of each repository; the key `None` is the repository of the plan.
type PlayedCommits = BTreeMap<Option<RepoName>, Oid>;

impl Playback {
    /// Replays a recording, with its commits in other repositories.
    #[must_use]
    pub fn new(recording: Recording, trails: BTreeMap<RepoName, Trail>) -> Self {
        let Recording { session, newest, calls, work_before } = recording;
        let tasks = calls.into_iter().map(|(task, found)| {
            let last = work_before.get(&task).map(|last| (None, *last)).into_iter().collect();
            (task, Calls { left: found.into(), last })
        });
        Self { session, newest, tasks: Mutex::new(tasks.collect()), trails }
    }

    /// Takes the next call of a task if it is a call for `step`, with the last replayed commits before it.
    fn next(&self, task: &TaskId, step: Step) -> Option<(RecordedCall, PlayedCommits)> {
        let mut tasks = self.tasks.hold();
        let calls = tasks.get_mut(task)?;
        calls.left.front().filter(|call| call.step == step)?;
        Some((calls.left.pop_front()?, calls.last.clone()))
    }

    fn keep(&self, task: &TaskId, last: PlayedCommits) {
        let mut tasks = self.tasks.hold();
        tasks.entry(task.clone()).and_modify(|calls| calls.last = last);
    }

    fn not_recorded(&self, task: &TaskId, step: Step) -> PipelineError {
        let (session, task) = (self.session.clone(), task.clone());
        PipelineError::NotRecorded { session, task, step: step.as_str() }
    }
}

impl TaskContext<'_> {
    /// Replays the recorded call that corresponds to `agent_call`.
    pub(in crate::pipeline) fn play(
        &mut self,
        playback: &Playback,
        agent_call: AgentCall<'_>,
        observer: Option<&mut (dyn CallObserver + '_)>,
    ) -> FinishedCall {
        let AgentCall { task, step, place, other_repos, .. } = agent_call;
        let result = match playback.next(&task.id, step) {
            Some((call, last)) => {
                let on_event = &mut self.on_event;
                let mut report = |kind| on_event(RunEvent::of(&task.id, kind));
                let secrets = &self.run.secrets;
                let interrupted = call.interrupted;
                let mut player = Player {
                    playback,
                    task: &task.id,
                    place,
                    other_repos,
                    secrets,
                    last,
                    stream: None,
                    interrupted,
                };
                let played = player.play(&call, agent_call, &mut report, observer);
                playback.keep(&task.id, player.last);
                let tally = player.stream.map(|stream| stream.tally);
                played.and_then(|()| {
                    conclude(&call, tally).ok_or_else(|| playback.not_recorded(&task.id, step))
                })
            }
            None => Err(playback.not_recorded(&task.id, step)),
        };
        // The cost was counted when the session was recorded, and whether it passed was decided then, too.
        FinishedCall { expense: Expense::default(), result, is_conclusive: true }
    }
}

/// Replays one call.
struct Player<'p> {
    playback: &'p Playback,
    task: &'p TaskId,
    place: &'p Repository,
    other_repos: &'p [OtherRepo],
    secrets: &'p Secrets,
    last: PlayedCommits,
    stream: Option<StreamState>,
    /// The commit that recorded an interruption of this call, if it was interrupted and repeated.
    interrupted: Option<Oid>,
}

/// The stream of one runner that was replayed so far.
struct StreamState {
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
        mut observer: Option<&mut (dyn CallObserver + '_)>,
    ) -> Result<(), PipelineError> {
        let mut log =
            safe_files::open_log(agent_call.log).map_err(|source| file_error(agent_call.log, source))?;
        for turn in &call.turns {
            let recorded_transcript =
                SessionReader::new(self.place).load_transcript(&self.playback.session, turn.transcript)?;
            self.play_turn(turn, &recorded_transcript, on_event, reborrow(&mut observer), &mut log)?;
        }
        if let (Step::Implement, Some(end)) = (call.step, &call.end) {
            self.restore_commit(None, self.place, self.first_of(end.commit)?, end.commit)?;
            self.restore_other_repos(|name, _| call.beside.get(name.as_str()).copied())?;
        }
        if let Some(stream) = &mut self.stream {
            EventDispatcher::new(on_event, reborrow(&mut observer), &mut stream.tally, self.secrets).end();
        }
        Ok(())
    }

    fn play_turn(
        &mut self,
        recorded: &RecordedTurn,
        recorded_transcript: &Transcript,
        on_event: &mut dyn FnMut(EventKind),
        mut observer: Option<&mut (dyn CallObserver + '_)>,
        log: &mut File,
    ) -> Result<(), PipelineError> {
        let events = recorded_transcript
            .events
            .parse()
            .or_else(|_| recorded_transcript.runner.parse())
            .unwrap_or(EventFormat::Text);
        let active_runner = ActiveRunner::recorded(&recorded.turn, events);
        let is_same =
            |stream: &StreamState| stream.runner == recorded_transcript.runner && stream.events == events;
        if let Some(observer) = &mut observer {
            if self.stream.as_ref().is_some_and(is_same) {
                observer.on_continue(active_runner);
            } else {
                observer.on_begin(active_runner, &recorded_transcript.prompt());
            }
        }
        if !self.stream.as_ref().is_some_and(is_same) {
            let _ = log.write_all(
                call_opening(&recorded_transcript.runner, events, &recorded_transcript.prompt()).as_bytes(),
            );
        }
        let mut stream = match self.stream.take().filter(is_same) {
            Some(stream) => stream,
            None => StreamState::new(recorded_transcript.runner.clone(), events),
        };
        let lines: Vec<&str> = recorded_transcript
            .lines
            .iter()
            .filter(|line| line.speaker == Speaker::Stream)
            .map(|line| line.text.as_str())
            .collect();
        let StreamState { reader, tally, .. } = &mut stream;
        let mut dispatcher = EventDispatcher::new(on_event, reborrow(&mut observer), tally, self.secrets);
        for (left, line) in lines.iter().enumerate().map(|(at, line)| (lines.len() - at - 1, line)) {
            let line = format!("{line}\n");
            let _ = log.write_all(line.as_bytes());
            let agent_events = match events {
                EventFormat::Text => reader.feed(line.as_bytes()),
                _ => without_ends(reader.feed(line.as_bytes()), left),
            };
            if left == 0 {
                self.restore_turn(&recorded.turn)?;
            }
            dispatcher.on_output(line.as_bytes(), &agent_events);
        }
        dispatcher.on_idle();
        self.stream = Some(stream);
        Ok(())
    }

    /// Restores all worktrees to their state at the end of the turn.
    fn restore_turn(&mut self, turn: &Turn) -> Result<(), PipelineError> {
        if let Some(commit) = turn.commit {
            self.require_own(commit)?;
            self.restore_commit(None, self.place, self.first_of(commit)?, commit)?;
        }
        self.restore_other_repos(|_, trail| trail.turn(turn.number))?;
        Ok(())
    }

    /// Restores the worktrees of other repositories to the task's commits there, if `find` returns one.
    fn restore_other_repos(
        &mut self,
        find: impl Fn(&RepoName, &Trail) -> Option<Oid>,
    ) -> Result<(), GitError> {
        for OtherRepo { name, repository, .. } in self.other_repos {
            let found = self.playback.trails.get(name).and_then(|trail| {
                let commit = find(name, trail)?;
                Some((trail.first_of(self.task, commit)?, commit))
            });
            if let Some((first, commit)) = found {
                self.restore_commit(Some(name), repository, first, commit)?;
            }
        }
        Ok(())
    }

    /// Refuses commits that do not belong to the session: a record could name any commit.
    fn require_own(&self, commit: Oid) -> Result<(), PipelineError> {
        let Playback { session, newest, .. } = self.playback;
        if self.place.is_ancestor(commit, *newest)? {
            return Ok(());
        }
        let (name, why) = (ref_of(session), "it is not a commit of this session".to_owned());
        Err(SessionError::Unreadable { name, commit, why }.into())
    }

    /// The first commit of the call up to `commit`: the commit that recorded an interruption contains what was done
    /// before it.
    fn first_of(&self, commit: Oid) -> Result<Oid, GitError> {
        match self.interrupted {
            Some(first) if !self.place.is_ancestor(commit, first)? => Ok(first),
            _ => Ok(commit),
        }
    }

    /// Changes a worktree from the last replayed commit to `commit`. If nothing was replayed yet, the parent of `first`
    /// is the starting point.
    fn restore_commit(
        &mut self,
        name: Option<&RepoName>,
        place: &Repository,
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
        if changes.is_empty() { Ok(()) } else { place.restore_paths(tree, &changes) }
    }
}

impl StreamState {
    fn new(runner: String, events: EventFormat) -> Self {
        Self { runner, events, reader: EventReader::new(events), tally: Tally::new(events) }
    }
}

/// Removes all ends of turns but one after the last line, because a recorded turn ends exactly once.
fn without_ends(agent_events: Vec<AgentEvent>, lines_left: usize) -> Vec<AgentEvent> {
    let is_end = |event: &AgentEvent| matches!(event, AgentEvent::TurnEnded { .. });
    let last = agent_events.iter().rposition(is_end).filter(|_| lines_left == 0);
    let kept = agent_events.into_iter().enumerate().filter(|(at, event)| Some(*at) == last || !is_end(event));
    let mut kept: Vec<AgentEvent> = kept.map(|(_, event)| event).collect();
    if lines_left == 0 && last.is_none() {
        kept.push(AgentEvent::TurnEnded { number: 0 });
    }
    kept
}

/// The result of a call according to its stream, if the recorded end agrees. `None` if the call had no end.
fn conclude(call: &RecordedCall, tally: Option<Tally>) -> Option<CallReply> {
    let end = call.end.as_ref().filter(|end| !end.is_interruption())?;
    let agent_events = tally.map(|tally| tally.conclude(&ProcessEnd::Code(0)));
    if end.status() == Status::ImplementFail {
        let outcome = CallOutcome::Failed {
            kind: FailureKind::Other,
            message: words_of(end),
            usage: None,
            session: None,
        };
        return Some(CallReply {
            outcome,
            words: String::new(),
            has_no_session: false,
            doubt: None,
            denial: None,
        });
    }
    Some(match agent_events {
        Some(outcome @ CallOutcome::Success { .. }) => {
            CallReply { outcome, words: String::new(), has_no_session: false, doubt: None, denial: None }
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
        denial: None,
    }
}

/// The recorded answer of an agent.
fn words_of(event: &Event) -> String {
    let sections = event.body().sections.into_iter().filter(|section| section.heading != DENIED);
    sections.map(|section| section.text).find(|text| !text.is_empty()).unwrap_or_default()
}
