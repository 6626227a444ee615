//! The baseline of a run: its test command runs on the untouched tree before the first agent is paid. The run of the
//! command itself is in `baseline_test.rs` of the module `gardener`.

use std::sync::Arc;

use super::{CallSource, OpenRun, Planned, RunListener, recorded_options::TEST, request::secrets};
use crate::{
    agent::redact::{Redactor, Secrets},
    failure::Failure,
    gardener::{
        Baseline, BaselineGuard, CleanPool, GardenerError, Lanes, OutsideResult, Probe, Selection, TEST_GATE,
        create_baseline_log, first_or_next, has_passed, wanted,
    },
    history::{Event, Run, State},
    message::{self, Body, MessageReading, plain_text},
    name::Oid,
    pipeline::{BEFORE_THE_RUN, CommandCounts, KnownRed, TestTally},
    plan::Task,
    process::OrphanLock,
    progress::{PlanMarks, Progress},
    queue::Target,
    record::{RunRecorder, log_time},
    session::SessionReader,
    worktree::{Pool, run_variables},
};

/// The test command of a baseline.
struct BaselineTest<'t> {
    command: &'t str,
    log: &'t str,
    secrets: &'t Secrets,
}

impl OpenRun {
    /// Refuses to continue without tests a run whose tasks were tested. A test command that was typed is recorded in the
    /// session, and one of git's configuration is in no record, so another clone may know neither.
    pub(super) fn refuse_lost_test_command(
        &self,
        planned: &Planned,
        selection: &Selection,
        run: &Run,
    ) -> Result<(), GardenerError> {
        // An empty command was given or recorded as the user's decision.
        let is_decided = self.request.new_run || self.request.flags.test_command.is_some();
        let Some(untested) = self.find_untested(planned, selection, run).first().copied() else {
            return Ok(());
        };
        let tested = run.tasks.iter().find(|history| {
            let task = planned.plan.find(&history.id);
            let has_own_command = task.is_some_and(|task| !task.test_commands.is_empty());
            // What is not on the run's branch may be forged.
            history.is_landed && !has_own_command && history.events.iter().any(Event::has_run_tests)
        });
        match tested {
            Some(tested) if !is_decided => Err(GardenerError::LostTestCommand {
                tested: tested.id.clone(),
                untested: untested.id.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// The selected tasks that are left and have no test command.
    pub(super) fn find_untested<'p>(
        &self,
        planned: &'p Planned,
        selection: &Selection,
        run: &Run,
    ) -> Vec<&'p Task> {
        let progress = Progress::new(Some(&planned.plan), run, PlanMarks::Count);
        let is_left = |task: &Task| self.request.new_run || progress.is_left(&task.id);
        let mut tasks = wanted(&planned.plan, selection);
        tasks.retain(|task| is_left(task) && self.options.tests_of(task).is_empty());
        tasks
    }

    /// Runs the test command unless it is known to pass, and refuses to continue if it fails. Returns the known
    /// failures, which are recorded in the commit that starts the run.
    pub(super) fn check_baseline(
        &self,
        planned: &Planned,
        run: &Run,
        recorder: &RunRecorder<'_>,
        lanes: Option<&Lanes<'_>>,
        orphan_lock: &mut OrphanLock,
        listener: &mut dyn RunListener,
    ) -> Result<Body, Failure> {
        let tip = match lanes {
            Some(_) => Target::new(&self.repository, &self.branch).require()?.tip(),
            None => self.head,
        };
        let Some(command) = self.untested_command(planned, run, lanes, tip)? else {
            return Ok(Body::default());
        };
        let log = create_baseline_log(&self.home, &self.options.log_dir, &log_time((self.clock)()))?;
        let secrets = secrets()?;
        let guard = BaselineGuard::begin(recorder, lanes.is_none())?;
        let test = BaselineTest { command, log: &log, secrets: &secrets };
        let baseline = guard.end(self.run_baseline(&test, lanes, tip, orphan_lock))?;
        if let Some(words) = baseline.log_warning() {
            listener.warn(&words);
        }
        let tally = match &baseline {
            Baseline::Green(observed) | Baseline::Red { observed, .. } => observed.tally,
            Baseline::NoTests(_) => TestTally::NONE,
            Baseline::Trespass(_) => TestTally::default(),
        };
        let counted = CommandCounts::of(&Redactor::redact(&secrets, command), tally);
        let counted = self.unless_known(counted, run)?;
        let has_reds = planned.plan.leaves().any(|task| task.red);
        let is_first = self.is_new_run(run) || run.tasks.is_empty();
        let (untried, cause);
        let (why, observed) = match baseline {
            Baseline::Green(observed) if has_reds && observed.counts.is_some() => {
                return Ok(KnownRed::of(&observed).quoted(BEFORE_THE_RUN).followed_by(counted));
            }
            Baseline::Green(_) => return Ok(counted),
            Baseline::NoTests(why) => {
                listener.remark(&plain_text(&format!("the tests cannot run yet, because {why}; the run starts anyway, but a task passes only if the test command succeeds")));
                return Ok(counted);
            }
            // A test command that moved refs or changed guarded files is not a failing test, so `--allow-red` does not
            // cover it.
            Baseline::Trespass(why) => return Err(GardenerError::MeddlingTests { is_first, why, log }.into()),
            Baseline::Red { why, outside: OutsideResult::Green(denials), .. } if !self.options.allow_red => {
                return Err(GardenerError::RedInSandbox { why, denials, log }.into());
            }
            Baseline::Red { why, cause: red_cause, observed, outside } => {
                cause = red_cause;
                let is_by_sandbox = matches!(outside, OutsideResult::Green(_));
                untried = match outside {
                    OutsideResult::Untried(untried) => Some(untried),
                    _ => None,
                };
                (if is_by_sandbox { format!("{why}, but only in the sandbox") } else { why }, observed)
            }
        };
        let known = KnownRed::of(&observed);
        let names_tests = known.count() > 0;
        if !self.options.allow_red {
            let is_elsewhere = lanes.is_some() || self.has_session_branch || self.options.tests_clean;
            let command = Redactor::redact(&secrets, command);
            let red = GardenerError::RedBaseline {
                is_first,
                why,
                log,
                is_elsewhere,
                names_tests,
                cause,
                untried,
                command,
            };
            return Err(red.into());
        }
        let rule = match names_tests {
            true => "a task fails only if it breaks a test that passed before",
            false => {
                "the output does not name the failed tests, so every task fails until the command succeeds"
            }
        };
        listener.warn(&plain_text(&format!(
            "the tests fail before the {} task: {why}; log: {log}",
            first_or_next(is_first)
        )));
        listener.remark(rule);
        let red = if known.is_empty() { Body::default() } else { known.quoted(BEFORE_THE_RUN) };
        Ok(red.followed_by(counted))
    }

    /// The counts of a baseline as a section of a commit, unless the run has recorded the same.
    fn unless_known(&self, counted: CommandCounts, run: &Run) -> Result<Body, Failure> {
        let is_start = self.is_new_run(run);
        let before = match is_start {
            true => CommandCounts::default(),
            false => CommandCounts::before(&self.repository, run, None)?,
        };
        // A user may have removed tests, or have made the command print less.
        let counted = counted.without_empty(&before);
        let is_known = !is_start && counted.is_part_of(&before);
        Ok(if is_known { Body::default() } else { counted.quoted() })
    }

    /// The test command, if it has to run before the first task.
    fn untested_command(
        &self,
        planned: &Planned,
        run: &Run,
        lanes: Option<&Lanes<'_>>,
        tip: Oid,
    ) -> Result<Option<&str>, Failure> {
        let command = self.options.test_command.as_deref();
        let is_tool = |command: &&str| {
            self.workspace.sections.iter().any(|section| section.find_tool(command).is_some())
        };
        let Some(command) = command.filter(|command| !is_tool(command)) else { return Ok(None) };
        let is_played = self.request.source != CallSource::Agents || self.has_no_task_left;
        if is_played || !self.has_use_of_command(planned, run) {
            return Ok(None);
        }
        let is_start = self.is_new_run(run);
        let is_other = self.is_other_command(run, command)?;
        if !is_start && !is_other && (!self.request.accept_changes && self.is_ours(run, tip)?) {
            return Ok(None);
        }
        // In the run's own checkout, the tree may hold unfinished work of a task, which says nothing about the state
        // before.
        let is_open = |state: State| state.is_under_way() || state == State::Failed;
        let is_touched = lanes.is_none() && run.tasks.iter().any(|task| is_open(task.state()));
        if !is_start && is_touched {
            return Ok(None);
        }
        let is_known = !self.request.accept_changes
            && !is_other
            && has_passed(&self.repository, tip, self.is_test_gate(command));
        Ok(Some(command).filter(|_| !is_known))
    }

    /// Whether the gate [`TEST_GATE`] runs this command. A configured gate may have the name and run another one.
    pub(super) fn is_test_gate(&self, command: &str) -> bool {
        let configured = self.settings.gates.find(TEST_GATE).and_then(|gate| gate.command.as_ref());
        configured.is_none_or(|gate| gate.value == command)
    }

    /// Whether the latest run of this branch may not have used this test command. Results of another one say nothing about
    /// it. A command from the configuration is recorded nowhere; it is the same as long as the run is continued.
    fn is_other_command(&self, run: &Run, command: &str) -> Result<bool, Failure> {
        let Some(start) = &run.start else { return Ok(true) };
        let session_reader = SessionReader::new(&self.repository);
        let Some(newest) = session_reader.newest(&start.session)? else { return Ok(true) };
        let before = session_reader.recorded_options_of(&newest)?;
        // A command that holds a secret was not recorded, so it counts as different.
        let is_withheld = before.withheld.iter().any(|name| name == TEST);
        let configured = self.settings.general.test_command.as_ref().filter(|_| !self.request.new_run);
        let named = before.options.get(TEST).map(String::as_str);
        let named = named.or_else(|| configured.map(|command| command.value.as_str()));
        Ok(is_withheld || named != Some(command))
    }

    /// Whether an unfinished task is tested by the test command in this repository.
    fn has_use_of_command(&self, planned: &Planned, run: &Run) -> bool {
        let progress = Progress::new(Some(&planned.plan), run, PlanMarks::Count);
        let main = self.workspace.main().name.as_str();
        let is_tested_here = |task: &&Task| {
            let is_here = task.repos.first().is_none_or(|repo| repo == main);
            let is_left =
                self.request.new_run || progress.find(&task.id).is_some_and(|node| !node.state.is_done());
            task.test_commands.is_empty() && is_here && is_left
        };
        planned.plan.leaves().any(|task| is_tested_here(&task))
    }

    /// Whether the run itself wrote this commit. Commits that others have made since are untested.
    fn is_ours(&self, run: &Run, tip: Oid) -> Result<bool, Failure> {
        let commits = self.repository.load_commits(&[tip])?;
        let session = run.start.as_ref().map(|start| &start.session);
        Ok(commits.first().is_some_and(|commit| match message::read(commit.message()) {
            MessageReading::WellFormed(message) => message.trailers.session().as_ref() == session,
            _ => false,
        }))
    }

    /// Runs the test command in the checkout, or, with lanes, in a worktree that is set up like a lane, so that files a
    /// lane would lack are missing here too.
    #[allow(
        clippy::result_large_err,
        reason = "the guard takes the error as the core gives it, once for each run"
    )]
    fn run_baseline(
        &self,
        &BaselineTest { command, log, secrets }: &BaselineTest<'_>,
        lanes: Option<&Lanes<'_>>,
        tip: Oid,
        orphan_lock: &mut OrphanLock,
    ) -> Result<Baseline, GardenerError> {
        let probe = |dir, places| Probe {
            command,
            dir,
            places,
            sandbox: &self.options.sandbox,
            config_guard: &self.config_guard,
            environment: run_variables(&self.workspace.main().name, &self.branch, self.session.get(), dir),
            limits: self.options.test_limits(),
            log: self.home.join(log),
            secrets,
            cancel: &self.cancel,
            learns: true,
            // Code of agents in other repositories of the workspace could run, too.
            may_leave_sandbox: self.workspace.sections.len() == 1,
        };
        let own;
        let pool = match lanes {
            Some(lanes) => &lanes.pool,
            None if self.options.tests_clean => {
                own = Pool::open(&self.repository, &self.branch, self.worktree_options())?;
                &own
            }
            None => return probe(self.repository.top(), vec![&self.repository]).run(orphan_lock),
        };
        let keep = &self.settings.merge.keep;
        let mut scratch = pool.scratch("gate", tip)?;
        pool.refresh(&scratch, tip, keep)?;
        let place = scratch.repository.clone();
        let places = vec![&place, &self.repository];
        let baseline = probe(&scratch.path, places).run(&mut scratch.orphan_lock);
        pool.remember_kept(&place, keep);
        let baseline = baseline?;
        if let (Some(lanes), Baseline::Green(_)) = (lanes, &baseline) {
            lanes.green_trees.add((self.repository.tree_of(tip)?, command.to_owned()));
        }
        Ok(baseline)
    }

    /// The pool for tests that need a clean checkout.
    pub(super) fn clean_pool(&self) -> Result<Option<Arc<CleanPool>>, Failure> {
        if !self.options.tests_clean {
            return Ok(None);
        }
        let pool = Pool::open(&self.repository, &self.branch, self.worktree_options())?;
        let keep = self.settings.merge.keep.clone();
        Ok(Some(Arc::new(CleanPool { pool, keep })))
    }
}
