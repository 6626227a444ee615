//! Closes a run, also after an error: its session is closed, its pushes are awaited and its account is computed.

use std::collections::BTreeSet;

use super::{
    OpenRun, Planned, RunListener, account::AccountFacts, monitor::RunMonitor, pushes::RunPushes,
    run_log::RunLog,
};
use crate::{
    event::{EventKind, RunAccount, RunEvent, RunOpening},
    failure::{Exit, Explain, Failure},
    gardener::{GardenerError, LeftoverWork, Selection, Summary, UnacceptedChange, left_over, wanted},
    git::Repository,
    history::Run,
    message::visible,
    name::{Oid, TaskId},
    pipeline::PipelineError,
    plan::Task,
    process::shell_word,
    progress::{NodeProgress, PlanMarks, Progress},
    settings::TRACKED_FILES,
    workspace::RunEnd,
};

/// How hints name the command that the user typed.
const SAME_COMMAND: &str = "run the same command again";
/// The same for a task that was interrupted too often.
const WITH_RETRY: &str = "run the same command again with --retry-failed";

/// A run that has ended.
pub struct EndedRun {
    /// What it did.
    pub account: RunAccount,
    /// The exit code of the command.
    pub result: Result<Exit, Failure>,
    /// Whether everything that was wanted is done and has landed.
    pub is_well: bool,
    /// Whether anything was committed.
    pub has_commits: bool,
}

impl OpenRun {
    /// Records the end in the session, waits for pushes and computes the account.
    pub(super) fn close(
        &self,
        planned: &Planned,
        selection: &Selection,
        ended: Result<Summary, GardenerError>,
        monitor: RunMonitor<'_>,
    ) -> Result<EndedRun, Failure> {
        let RunMonitor { listener, log, mut pushes } = monitor;
        listener.report(RunEvent::of_run(EventKind::RunEnds));
        if let Err(failure) = self.close_session(planned, &ended) {
            listener.warn_of_failure(&format!("the session could not be recorded: {}", failure.message));
        }
        let is_well = ended.as_ref().is_ok_and(Summary::is_well);
        let end = if is_well { RunEnd::Succeeded } else { RunEnd::Failed };
        let is_cut_short = pushes.close(end, &self.cancel, listener);
        let (summary, result) = match ended {
            Ok(summary) => {
                let exit =
                    if is_cut_short { PipelineError::stopped(&self.cancel).exit() } else { summary.exit() };
                (summary, Ok(exit))
            }
            Err(error) => {
                let so_far =
                    Summary { raise: error.raise(), blocking: error.find_blocking(), ..log.so_far() };
                (so_far, Err(self.explain(error, planned, selection, &log)))
            }
        };
        let stopped = result.as_ref().err().map(|failure| failure.message.clone());
        self.warn_of_edited_plan(planned, &log, listener);
        let account = self.account(planned, selection, &summary, stopped.as_deref(), &log, &pushes);
        let (is_well, has_commits) = (summary.is_well(), !log.is_empty());
        if is_well && self.session_worktree().is_some() {
            self.warn_of_overwritten_files(planned, listener);
        }
        match (account, result) {
            (Ok(mut account), result) => {
                account.merge = account.merge.map(|merge| self.with_committed_plan(planned, &merge));
                let result = result.map_err(|failure| with_raised_limit(failure, &summary, &account));
                Ok(EndedRun { account, result, is_well, has_commits })
            }
            (Err(_), Err(failure)) | (Err(failure), Ok(_)) => Err(failure),
        }
    }

    fn account(
        &self,
        planned: &Planned,
        selection: &Selection,
        summary: &Summary,
        stopped: Option<&str>,
        log: &RunLog,
        pushes: &RunPushes,
    ) -> Result<RunAccount, Failure> {
        let (tip, run) = self.scan_recorded_now()?;
        // A run that was stopped by an error did not count what is left.
        let left = match stopped {
            Some(_) => left_over(&planned.plan, &run, selection, &summary.failed),
            None => summary.left.clone(),
        };
        let summary = &Summary { left, ..summary.clone() };
        let implementers = self.list_implementers(planned);
        let implementers = || implementers.iter().map(String::as_str);
        let facts = AccountFacts {
            opening: log.opening.as_ref().ok_or(GardenerError::NoPlace)?,
            log,
            plan: &planned.plan,
            selection,
            typed_command: self.request.typed_command(),
            typed_selection: self.request.typed_selection(),
            tip,
            run: &run,
            summary,
            stopped,
            seconds: log.seconds((self.clock)()),
            session_worktree: self.session_worktree(),
            others: self.branches_of_others(planned),
            unpushed: &pushes.unpushed,
            remaining: self.find_remaining(&run, &summary.failed, tip),
            is_git_writable: self.works_in_checkout()
                && self.options.sandbox.leaves_git_writable(implementers()),
            lacks_sandbox: self.options.sandbox.is_absent_for(implementers()),
        };
        Ok(facts.account())
    }

    /// Whether agents work in the user's own checkout, which has the git directory in it.
    fn works_in_checkout(&self) -> bool {
        self.session_worktree().is_none() && matches!(self.request.lanes.count(&self.settings), Ok(None))
    }

    /// The runners that may implement a task of this plan. Unknown ones are reported by others.
    fn list_implementers(&self, planned: &Planned) -> BTreeSet<String> {
        let chains = planned.plan.leaves().filter_map(|task| self.options.runners.implementers(task).ok());
        chains.flat_map(|chain| chain.iter().map(|runner| runner.name.clone()).collect::<Vec<_>>()).collect()
    }

    /// Warns about files of the user that the merges named by the account would overwrite. A repository that cannot be
    /// examined is left out, because this is only a warning.
    fn warn_of_overwritten_files(&self, planned: &Planned, listener: &mut dyn RunListener) {
        let own = (self.workspace.main().name.to_string(), self.branch.clone());
        for (name, branch) in std::iter::once(own).chain(self.branches_of_others(planned)) {
            let section = self.workspace.sections.iter().find(|section| section.name.as_str() == name);
            let Some(section) = section else { continue };
            let Ok(Some(user)) = self.workspace.open(section) else { continue };
            for path in user.find_overwritten_by(&branch).unwrap_or_default() {
                let file = visible(&user.top().join(path).to_string_lossy());
                listener.warn(&format!(
                    "merging '{branch}' overwrites '{file}', which git ignores: move that file away first"
                ));
            }
        }
    }

    /// Warns if agents have edited the plan or the configuration: this run ignores that, but the next one would stop.
    /// A run that cannot be read is left out, because this is only a warning.
    fn warn_of_edited_plan(&self, planned: &Planned, log: &RunLog, listener: &mut dyn RunListener) {
        let (Some(opening), Ok((tip, run))) = (log.opening.as_ref(), self.scan_recorded_now()) else {
            return;
        };
        let range = (opening.head, tip);
        for path in planned.path().into_iter().chain(TRACKED_FILES) {
            let Ok(Some(change)) = UnacceptedChange::find_by_run(&self.repository, &run, range, path) else {
                continue;
            };
            listener.warn(&visible(&format!(
                "agents have changed '{path}'; this run does not use the new version, and the next one would stop"
            )));
            // The commands that restore a file are for the checkout of the branch.
            let words = change.words();
            let hints = words.lines().filter(|hint| {
                self.session_worktree().is_none()
                    || hint.starts_with(char::is_numeric)
                    || hint.starts_with("commit ")
            });
            hints.for_each(|hint| listener.hint(hint));
        }
    }

    /// A command that merges the run's branch into the user's checkout. That branch has the plan and the configuration,
    /// so git refuses to merge it while these are not committed in the checkout.
    fn with_committed_plan(&self, planned: &Planned, merge: &str) -> String {
        let changed = Repository::open_at(&self.home).and_then(|user| user.changed_paths());
        let changed = changed.unwrap_or_default();
        let from_top = |path: &str| shell_word(&format!(":/{path}"));
        // A new folder is listed instead of its files.
        let is_changed = |path: &&str| {
            changed.iter().any(|one| {
                path.as_bytes() == one.path
                    || one.path.ends_with(b"/") && path.as_bytes().starts_with(&one.path)
            })
        };
        let paths: Vec<String> =
            planned.path().into_iter().chain(TRACKED_FILES).filter(is_changed).map(from_top).collect();
        if paths.is_empty() {
            return merge.to_owned();
        }
        let paths = paths.join(" ");
        format!("git add {paths} && git commit -m 'Add the plan' -- {paths} && {merge}")
    }

    /// The tasks whose work is still on the run's branch, although they have failed. One that cannot be examined is left
    /// out, because this is only a hint.
    fn find_remaining(&self, run: &Run, failed: &[TaskId], tip: Oid) -> Vec<TaskId> {
        let is_there = |task: &&TaskId| {
            LeftoverWork::find(&self.repository, run, task, tip)
                .is_ok_and(|remains| !remains.changes.is_empty())
        };
        failed.iter().filter(is_there).cloned().collect()
    }

    /// Whether history has the first commit of this run.
    fn has_started(&self, log: &RunLog) -> bool {
        let Some(opening) = log.opening.as_ref() else { return false };
        let run = self.scan_recorded_now().ok().map(|(_, run)| run);
        run.and_then(|run| run.start).is_some_and(|start| start.session == opening.session)
    }

    /// The failure for an error that stopped the run, with hints about the command that continues it.
    fn explain(
        &self,
        error: GardenerError,
        planned: &Planned,
        selection: &Selection,
        log: &RunLog,
    ) -> Failure {
        let is_stopped = matches!(error, GardenerError::Pipeline(PipelineError::Stopped { .. }));
        let needs_retry = is_stopped && self.needs_retry(planned, selection);
        let session_command = self.find_session_command(log);
        let is_started_anew = self.request.new_run && self.has_started(log);
        let words = |needs_retry: bool| match &session_command {
            Some(command) => words_on_session_command(command, needs_retry),
            None => words_on_same_command(is_started_anew, needs_retry),
        };
        let mut failure = self.with_hints(error);
        for hint in &mut failure.hints {
            *hint = match hint.contains(WITH_RETRY) {
                true => hint.replace(WITH_RETRY, &words(true)),
                false => hint.replace(SAME_COMMAND, &words(needs_retry)),
            };
        }
        if let Some(opening) = log.opening.as_ref().filter(|_| session_command.is_some()) {
            let (origin, turn) = self.continuing_turn(opening.session.as_str());
            for hint in &mut failure.hints {
                *hint = hint.replace("<session>", &origin).replace("<turn>", &turn.to_string());
            }
        }
        failure
    }

    /// The command that continues a run with a session branch, or one that was resumed: by the session's name.
    fn find_session_command(&self, log: &RunLog) -> Option<String> {
        let is_of_session = self.session_worktree().is_some() || self.request.is_resumed;
        let RunOpening { session, offline, .. } = log.opening.as_ref().filter(|_| is_of_session)?;
        Some(match offline {
            true => format!("git arborist session replay {session} --turn {}", self.last_turn()),
            false => format!("git arborist session resume {session}"),
        })
    }

    /// Whether a selected task was interrupted so often that the same command would refuse it. False if that cannot be
    /// read, because this is only a hint.
    fn needs_retry(&self, planned: &Planned, selection: &Selection) -> bool {
        let Ok((_, run)) = self.scan_recorded_now() else { return false };
        let progress = Progress::new(Some(&planned.plan), &run, PlanMarks::Count);
        let needs_retry = |task: &&Task| progress.find(&task.id).is_some_and(NodeProgress::needs_retry);
        !selection.retry_failed && wanted(&planned.plan, selection).iter().any(needs_retry)
    }
}

/// The advice to continue a run with the command of its session. A task that was interrupted too often is continued only
/// with `--retry-failed`.
fn words_on_session_command(command: &str, needs_retry: bool) -> String {
    let retry = if needs_retry { " -- --retry-failed" } else { "" };
    format!("run '{command}{retry}'")
}

/// The same advice for the command that was typed. A new run that has started is continued without `--new-run`.
fn words_on_same_command(is_started_anew: bool, needs_retry: bool) -> String {
    match (is_started_anew, needs_retry) {
        (true, true) => format!("{SAME_COMMAND} without --new-run and with --retry-failed"),
        (true, false) => format!("{SAME_COMMAND} without --new-run"),
        (false, true) => WITH_RETRY.to_owned(),
        (false, false) => SAME_COMMAND.to_owned(),
    }
}

/// The failure of a run whose budget is used up, with the command that continues it.
fn with_raised_limit(failure: Failure, summary: &Summary, account: &RunAccount) -> Failure {
    match (&summary.raise, &account.next) {
        (Some((option, _)), Some(next)) if next.contains(option) => {
            let hint = format!("to continue, raise the limit (this uses up no attempt): {next}");
            Failure { hints: vec![hint], ..failure }
        }
        _ => failure,
    }
}
