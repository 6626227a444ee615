//! Records of a run in its session: start, resume, pause and end; and the options that a continued run takes from them: the
//! test command, the budgets, and which protected files may be changed.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    CallSource, OpenRun, Planned,
    monitor::RunMonitor,
    opening::effective_options,
    recorded_options::{ALLOW, TEST, option_approvals, recorded_words},
    request::{inherit_budgets, test_approval},
};
use crate::{
    consent,
    event::RunEvent,
    failure::{Exit, Failure},
    gardener::{GardenerError, Summary, changed_settings},
    history::Run,
    message::{Status, visible},
    name::{Oid, SessionId, TaskId},
    pipeline::{CheckpointWriter, Playback, Protection, RecordedLists, repository_name},
    progress::{PlanMarks, Progress, Share},
    session::{
        DraftRecord, Driver, Fork, Record, RecordKind, RecordedOptions, RepositoryStart, ResumeContext,
        Resumed, SessionEnd, SessionError, SessionPause, SessionReader, SessionStart, SessionVerdict,
        SessionWriter, Trail,
    },
};

impl OpenRun {
    /// Context for the unfinished tasks of a session that is resumed.
    pub(super) fn recall(
        &self,
        session: &SessionId,
        planned: &Planned,
        run: &Run,
    ) -> Result<Vec<ResumeContext>, Failure> {
        let session_reader = SessionReader::new(&self.repository);
        let is_left = |task: &&TaskId| run.find(task).is_none_or(|known| !known.state().is_done());
        let left = planned.plan.leaves().map(|task| &task.id).filter(is_left).collect();
        match session_reader.newest(session)? {
            Some(newest) => Ok(session_reader.resume_contexts(&newest, &left)?),
            None => Ok(Vec::new()),
        }
    }

    /// A session that was replayed without calling agents is not continued by calling them.
    pub(super) fn refuse_played(&self, session: &SessionId) -> Result<(), Failure> {
        if self.request.source == CallSource::Records {
            return Ok(());
        }
        match SessionReader::new(&self.repository).newest(session)? {
            Some(newest) if newest.record.context.offline => Err(replay_only_error(&newest.record)),
            _ => Ok(()),
        }
    }

    /// The recording to replay, if agents are not to be called.
    pub(super) fn playback(&self, session: &SessionId) -> Result<Option<Arc<Playback>>, Failure> {
        if self.request.source == CallSource::Agents {
            return Ok(None);
        }
        let session_reader = SessionReader::new(&self.repository);
        let unknown = || SessionError::Unknown(session.to_string());
        let newest = session_reader.newest(session)?.ok_or_else(unknown)?;
        let RecordKind::Start(SessionStart { forked_from: Some(fork), .. }) = &newest.record.kind else {
            let words = format!("session '{session}' was not started by 'git arborist session replay'");
            return Err(Failure::new(Exit::No, words).hint(
                "to replay one, run: git arborist session replay <session> --turn <number> --offline",
            ));
        };
        let origin = session_reader.newest(&fork.session)?.ok_or_else(unknown)?;
        let recording = session_reader.recording(&origin, fork.turn)?;
        let first = session_reader.start_of(&origin)?;
        let RecordKind::Start(start) = &first.record.kind else {
            return Ok(None);
        };
        let mut trails = BTreeMap::new();
        for other in &self.others {
            let name = &other.section.name;
            if let Some(start) = start.repositories.iter().skip(1).find(|start| start.name == name.as_str()) {
                let trail = Trail::find(&other.repository, start)?;
                trails.extend(trail.map(|trail| (name.clone(), trail)));
            }
        }
        Ok(Some(Arc::new(Playback::new(recording, trails))))
    }

    /// Opens the records of a run that starts or continues at `tip`.
    pub(super) fn session_writer(
        &self,
        planned: &Planned,
        run: &Run,
        session: &SessionId,
        tip: Oid,
    ) -> Result<&SessionWriter, Failure> {
        let session_writer = match SessionWriter::find(&self.repository, session)? {
            Some(session_writer) => {
                let newest = session_writer.newest();
                let before = SessionReader::new(&self.repository).recorded_options_of(&newest)?;
                let now = self.request.recorded()?;
                let is_asked = self.request.source == CallSource::Agents && !self.has_no_task_left;
                let asked = (is_asked && now != before).then_some(now);
                let is_told = matches!(newest.record.kind, RecordKind::Resume(_) | RecordKind::Start(_));
                if !is_told || asked.is_some() {
                    let resumed = Resumed { turn: None, commit: tip, asked };
                    self.write(&session_writer, tip, &RecordKind::Resume(resumed))?;
                }
                session_writer
            }
            None => {
                let plan = run.frozen_plan().map(ToString::to_string);
                let start = self.start(planned, plan)?;
                SessionWriter::begin(&self.repository, session.clone(), start, (self.clock)())?
            }
        };
        Ok(self.session_writer.get_or_init(|| session_writer))
    }

    pub(super) fn start(&self, planned: &Planned, plan: Option<String>) -> Result<SessionStart, Failure> {
        let (name, branch) = (repository_name(&self.repository), self.branch.clone());
        let mut repositories = vec![RepositoryStart { name, branch, base: self.head }];
        repositories.extend(self.others.iter().filter_map(|other| {
            let (name, branch) = (other.section.name.to_string(), other.branch.clone());
            Some(RepositoryStart { name, branch, base: other.base? })
        }));
        let RecordedOptions { options, withheld } = self.request.recorded()?;
        Ok(SessionStart {
            repositories,
            plan,
            pipeline: planned.pipeline().to_string(),
            driver: Driver::Run,
            options,
            withheld,
            forked_from: None,
            offline: false,
        })
    }

    /// Records the start if the run works in lanes: no turn is committed on its own branch, so nothing else would
    /// record it.
    pub(super) fn record_start(
        &self,
        session_writer: &SessionWriter,
        checkpoints: &CheckpointWriter<'_>,
        monitor: &mut RunMonitor<'_>,
    ) {
        if let RecordKind::Start(_) = session_writer.newest().record.kind {
            let followed = checkpoints.follow(&self.repository, &self.branch, Status::RunStart);
            followed.into_iter().for_each(|kind| monitor.report(RunEvent::of_run(kind)));
        }
    }

    /// The number of the last recorded turn.
    pub(super) fn last_turn(&self) -> u32 {
        self.session_writer.get().map_or(0, |session_writer| session_writer.newest().record.totals.turns)
    }

    /// The session and the turn from which a replay continues the work of this session. Before its first turn, these are
    /// the ones that it began with.
    pub(super) fn continuing_turn(&self, session: &str) -> (String, u32) {
        let last = self.last_turn();
        let fork = self
            .session_writer
            .get()
            .and_then(|session_writer| session_writer.newest().record.context.forked_from.clone())
            .filter(|_| last == 0);
        fork.map_or_else(|| (session.to_owned(), last), |fork| (fork.session.to_string(), fork.turn))
    }

    /// Records the end of the run, or a pause. Whether all tasks are done is read from history: events also tell of
    /// landings that the run has only completed.
    pub(super) fn close_session(
        &self,
        planned: &Planned,
        ended: &Result<Summary, GardenerError>,
    ) -> Result<(), Failure> {
        let Some(session_writer) = self.session_writer.get() else {
            return Ok(());
        };
        let (_, run) = self.scan_recorded_now()?;
        let progress = Progress::new(Some(&planned.plan), &run, PlanMarks::Count);
        let Share { done, total } = progress.share();
        let words = format!("{done} of {total} tasks are done");
        let kind = match ended {
            Err(error) => RecordKind::Pause(SessionPause { why: error.to_string() }),
            Ok(summary) if progress.is_done() && summary.is_well() => {
                RecordKind::End(SessionEnd { result: SessionVerdict::Complete, words })
            }
            Ok(summary) if !summary.failed.is_empty() => {
                RecordKind::End(SessionEnd { result: SessionVerdict::Failed, words })
            }
            Ok(_) => RecordKind::Pause(SessionPause { why: words }),
        };
        let tip = self.repository.find_branch(&self.branch)?.unwrap_or(self.head);
        Ok(self.write(session_writer, tip, &kind)?)
    }

    fn write(&self, session_writer: &SessionWriter, tip: Oid, kind: &RecordKind) -> Result<(), SessionError> {
        session_writer
            .append((self.clock)(), |_| Ok::<_, SessionError>(DraftRecord::at(tip, kind.clone())))
            .map(drop)
    }
}

/// The error for continuing a replayed session with agents.
#[must_use]
pub fn replay_only_error(record: &Record) -> Failure {
    let (session, turns) = (&record.session, record.totals.turns);
    let words = format!("session '{session}' is an offline replay, which calls no model");
    let again = record.context.forked_from.as_ref().map(|fork| {
        let Fork { session, turn } = fork;
        format!("replay it again: git arborist session replay {session} --turn {turn} --offline\n")
    });
    Failure::new(Exit::No, words).hint(format!(
        "{}or let agents continue from the replayed work: git arborist session replay {session} --turn {turns}",
        again.unwrap_or_default()
    ))
}

/// Options that were taken from the session's records.
#[derive(Debug, Clone, Default)]
pub struct InheritedOptions {
    /// The test command, in the form that is approved, because records may come from anywhere.
    pub(super) test: Option<String>,
    /// All of them as command-line options.
    pub(super) words: String,
}

impl OpenRun {
    /// Protects what the run has protected so far, until its user accepts the change with `--accept-changes`: the settings
    /// may have been changed without the knowledge of the run, and 'verify' expects what the run recorded.
    fn inherit_protection(&mut self, run: &Run) -> Result<(), Failure> {
        if self.request.new_run || self.request.accept_changes {
            return Ok(());
        }
        let Some(start) = &run.start else { return Ok(()) };
        if let Some(recorded) = RecordedLists::of_run(&self.repository, start)?.last() {
            self.options.protection = self.options.protection.clone().with_recorded(recorded);
        }
        Ok(())
    }

    /// What `--accept-changes` accepts in the configuration: the changed files, and the paths that are no longer protected.
    pub(super) fn list_accepted(&self, run: &Run) -> Result<Vec<String>, Failure> {
        let Some(start) = &run.start else { return Ok(Vec::new()) };
        let mut accepted = changed_settings::list_changed_settings(&self.repository, start)?;
        if let Some(recorded) = RecordedLists::of_run(&self.repository, start)?.last() {
            let before = Protection::default().with_recorded(recorded);
            let dropped = before.list_beyond(&Protection::new(&self.settings, &[])).join(", ");
            if !dropped.is_empty() {
                accepted.push(visible(&format!("no longer protected: {dropped}")));
            }
        }
        Ok(accepted)
    }

    /// Uses the recorded test command, budgets and approved `--allow` unless the user gives others. Otherwise a task that
    /// failed its tests would be complete as soon as the test command is omitted. What else is recorded counts only for
    /// `session resume`, see [`RunRequest`](super::RunRequest).
    pub fn inherit_options(&mut self, planned: &Planned, run: &Run) -> Result<(), Failure> {
        self.inherit_recorded_options(planned, run)?;
        self.inherit_protection(run)
    }

    fn inherit_recorded_options(&mut self, planned: &Planned, run: &Run) -> Result<(), Failure> {
        if self.request.new_run || self.request.source == CallSource::Records {
            return Ok(());
        }
        let session = self.session(run).clone();
        let session_reader = SessionReader::new(&self.repository);
        let Some(newest) = session_reader.newest(&session)? else {
            return Ok(());
        };
        let before = session_reader.recorded_options_of(&newest)?;
        let flags = &mut self.request.flags;
        let options = inherit_budgets(&mut flags.budgets, &before.options);
        let mut taken = RecordedOptions { options, withheld: Vec::new() };
        // A recorded option takes precedence over the configuration, as it did when it was given.
        let needs_command = planned.plan.leaves().any(|task| task.test_commands.is_empty());
        if flags.test_command.is_none() && needs_command {
            if before.withheld.iter().any(|name| name == TEST) {
                return Err(withheld(&session));
            }
            if let Some(command) = before.options.get(TEST) {
                flags.test_command = Some(command.clone());
                self.inherited.test = Some(test_approval(&self.repository, command));
                taken.options.insert(TEST.to_owned(), command.clone());
            }
        }
        // Records may come from anywhere, so only what the user has allowed in this repository is allowed again.
        let allowed = before.options.get_key_value(ALLOW).filter(|_| flags.allow.is_empty());
        if let Some((name, paths)) = allowed
            && consent::unseen(&self.repository.common_dir, &option_approvals([(name, paths)].into_iter()))
                .is_empty()
        {
            flags.allow = paths.lines().map(str::to_owned).collect();
            taken.options.insert(name.clone(), paths.clone());
        }
        self.inherited.words = recorded_words(&taken);
        self.options = effective_options(&self.request, &self.settings, &self.workspace, &self.repository)?;
        Ok(())
    }
}

/// An option that was not recorded cannot be inherited, and must not be dropped silently.
fn withheld(session: &SessionId) -> Failure {
    let words = format!("the --{TEST} of session '{session}' contains a secret, so it was not recorded");
    Failure::new(Exit::Person, words).hint(format!("give it again with: --{TEST} <the same as before>"))
}
