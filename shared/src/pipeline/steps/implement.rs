//! The implement step: an agent works, and its changes are committed however the call ended.
//!
//! An agent whose every command failed may still claim success. So a step that changes nothing fails, unless the agent
//! explicitly says that there is nothing to do; then the reviewer decides.

use std::iter;

use crate::{
    agent::{CallOutcome, limits::Chain},
    event::{EventKind, StepChanges},
    git::{PrivateGit, TreeChange},
    history::{DENIED, FAILED, REFUSED_BY_HOOK},
    message::{Body, Status, Step, last_chars},
    name::{Attempt, Oid},
    pipeline::{
        AgentCall, CallReply, Expense, FinishedCall, OtherRepo, PipelineError, ProtectedChanges, StepRunner,
        TaskContext, TaskRun,
        attempts::{describe_interruption, mark_interrupted},
        calls::caller::append_to_log,
        checkout::{
            other_repo,
            repo_attempt::{RepoAttempt, find_violations},
        },
        steps::{
            background::PromptFiles,
            prompt::PromptParts,
            unchanged::{NOTHING_TO_DO, find_idle_reason},
        },
        task::{NO_REASON, StepOutcome, describe_refusal},
        turns::{
            committer::{CommittedTurns, TurnCommitter},
            messenger::Messenger,
            turn_collector::TurnContext,
            whole_call::{CallChanges, WholeCallTurn},
        },
    },
    record::{RunRecorder, TaskEvent, Tip},
    session::OtherCommit,
};

/// How many characters of an agent's answer the commit contains.
const LONGEST_WORDS: usize = 2000;

/// The result of an attempt.
struct Judgement {
    status: Status,
    body: Body,
    /// Why it failed; or, if it passed, that it changed no file.
    why: Option<String>,
    /// The reason why the attempt does not count, if it does not.
    interruption: Option<String>,
}

/// What is known about an attempt that may have changed nothing.
struct UnchangedAttempt {
    /// The reason why it counts as unchanged. `None` if the task has changed something since it was last rejected.
    why: Option<String>,
    /// The agent's explanation.
    said: Option<String>,
    /// Whether this attempt alone changed no file.
    is_untouched: bool,
    /// Whether the result of the call decides alone: a shell command that succeeds without a change is no failure.
    is_conclusive: bool,
}

/// What is committed of an attempt beside its files.
struct AttemptVerdict<'o> {
    judgement: Judgement,
    changes: StepChanges,
    /// The whole call as one turn, if the agent reports none.
    whole_call: Option<WholeCallTurn>,
    /// The commits in other repositories.
    others: &'o [(OtherCommit, Vec<TreeChange>)],
}

impl TaskRun<'_, '_, '_> {
    /// Calls the agent once. While it works, the recorders of all repositories of the task are in one list, the plan's
    /// first; afterwards the run continues from where they are, however the step ended.
    pub(in crate::pipeline) fn implement(&mut self, attempt: Attempt) -> Result<StepOutcome, PipelineError> {
        let mut other_repos = std::mem::take(&mut self.context.other_repos);
        let others = other_repos.iter().map(OtherRepo::recorder);
        let mut recorders: Vec<RunRecorder<'_>> = iter::once(self.recorder.another()).chain(others).collect();
        let step = self.implement_in_repos(attempt, &other_repos, &mut recorders);
        self.recorder.continue_after(&recorders[0]);
        let tips: Vec<Tip> = recorders.iter().skip(1).map(|recorder| recorder.tip().clone()).collect();
        other_repos.iter_mut().zip(tips).for_each(|(other_repo, tip)| other_repo.tip = tip);
        self.context.other_repos = other_repos;
        step
    }

    fn implement_in_repos(
        &mut self,
        attempt: Attempt,
        other_repos: &[OtherRepo],
        recorders: &mut [RunRecorder<'_>],
    ) -> Result<StepOutcome, PipelineError> {
        // Before the call: the log, the prompt, snapshots of all repositories.
        let chain = self.context.run.options.runners.implementers(self.task)?;
        let time_left = self.allowance(&Expense::default())?;
        let by = self.context.next_runner_name(&chain);
        let log = self.create_log(Step::Implement, attempt)?;
        let message_log = log.replace("_implement_", "_commit-message_");
        self.announce(Step::Implement, attempt, &by, &log);
        let prompt = self.implement_prompt() + &self.context.list_repositories(self.task);
        let (prompt, session) = self.context.recall(&self.task.id, &chain, prompt);
        let log = self.context.run.home.join(log);
        for denial in &self.context.set_up_denials {
            append_to_log(&log, &format!("=== {denial} ===\n"))?;
        }
        for words in other_repo::tidy(other_repos.iter(), &self.task.id, attempt)? {
            self.note(&words);
        }
        let mut repos = self.begin_in_repos(attempt, other_repos, recorders)?;
        let (task, place, step) = (self.task, self.recorder.repository(), Step::Implement);
        let private_git = self.make_private_git(&chain, repos[0].checkout.head)?;
        if private_git.is_some() {
            repos[0].checkout.unfinished.note_private_git(self.recorder.repository())?;
        }
        let agent_call = AgentCall {
            chain: &chain,
            time_left,
            session,
            task,
            step,
            place,
            other_repos,
            private_git: private_git.as_ref(),
            apart: None,
            prompt: &prompt,
            log: &log,
        };
        // The call. Each turn is committed when it ends.
        let messenger = Messenger::of(self.context, &place.git_dir, &message_log);
        let of = TurnContext::of(self.context, task, step, attempt).asking(messenger);
        // The plan's repository, the first, is the one whose git directory the agent may have a copy of.
        let private_gits = iter::once(private_git.as_ref()).chain(iter::repeat(None));
        let turn_repos =
            repos.iter_mut().zip(private_gits).map(|(repo, private)| repo.turns(private)).collect();
        let mut turns = TurnCommitter::new(turn_repos, of);
        let mut called = self.context.call(agent_call, Some(&mut turns));
        let CommittedTurns { events, expense, reported, repos: repo_turns, whole_call } = turns.finish();
        // After the call: what it has changed in each repository.
        called.expense.add(expense.usage, expense.time);
        self.context.checkpoints.add_unreported(&called.expense, reported);
        self.events.extend(events);
        let private_gits = iter::once(private_git).chain(iter::repeat_with(|| None));
        for ((repo, turns), private_git) in repos.iter_mut().zip(repo_turns).zip(private_gits) {
            repo.end(turns, private_git.as_ref())?;
        }
        let called = self.cut_short(called);
        self.conclude(attempt, repos, called, whole_call)
    }

    /// A private git directory, if a runner of the chain gets one.
    fn make_private_git(
        &self,
        chain: &Chain<StepRunner>,
        head: Oid,
    ) -> Result<Option<PrivateGit>, PipelineError> {
        let sandbox = &self.context.run.options.sandbox;
        let has_one = |step_runner: &StepRunner| {
            sandbox.has_private_git(&step_runner.sandboxed(Step::Implement.as_str(), Vec::new()))
        };
        let is_needed = self.context.run.playback.is_none() && chain.iter().any(has_one);
        let make = || self.recorder.repository().make_private_git(self.recorder.branch(), head);
        Ok(is_needed.then(make).transpose()?)
    }

    /// Judges the attempt, and commits the result: first in the other repositories, last in the one with the plan. Only
    /// the last commit ends the attempt, so that a crash in between leaves it unfinished.
    fn conclude(
        &mut self,
        attempt: Attempt,
        mut repos: Vec<RepoAttempt<'_, '_>>,
        called: FinishedCall,
        whole_call: Option<WholeCallTurn>,
    ) -> Result<StepOutcome, PipelineError> {
        let has_nothing = repos.iter().all(RepoAttempt::adds_nothing);
        let judgement = self.judge_attempt(&called, &mut repos)?;
        let folded: Vec<String> = repos.iter().filter_map(RepoAttempt::folded_message).collect();
        let denials = std::mem::take(&mut self.context.set_up_denials);
        self.report_work(&folded, &mut repos);
        let Some(judgement) = judgement else {
            // As below, the plan's repository is the last.
            repos.iter().rev().try_for_each(RepoAttempt::forget)?;
            // Always an error: only a call that failed is not judged.
            return called.result.map(|_| StepOutcome::Failed);
        };
        let judgement = judgement.folding(&folded).with_denials(&denials);
        let plans = repos.remove(0);
        let mut others = Vec::new();
        for repo in repos {
            if repo.is_untouched() {
                repo.forget()?;
            } else {
                others.extend(repo.commit(self.other_entry(attempt, &judgement, whole_call.as_ref()))?);
            }
        }
        let is_passed = judgement.status == Status::ImplementPass;
        let is_one_commit = plans.work.tip == plans.checkout.head && others.is_empty();
        let files = is_one_commit.then_some(plans.work.changes.len()).filter(|files| *files > 0);
        let changes = StepChanges { files, has_nothing };
        let verdict = AttemptVerdict { judgement, changes, whole_call, others: &others };
        self.commit(attempt, plans, &called, verdict)?;
        called.result.map(|_| if is_passed { StepOutcome::Passed } else { StepOutcome::Failed })
    }

    /// Judges the attempt. Hooks and the restoring of protected files may still change the work. `None` if there is
    /// nothing to record: the call failed for a reason outside of it and left nothing.
    fn judge_attempt(
        &self,
        called: &FinishedCall,
        repos: &mut [RepoAttempt<'_, '_>],
    ) -> Result<Option<Judgement>, PipelineError> {
        let is_untouched = repos.iter().all(RepoAttempt::is_untouched);
        let judgement = match &called.result {
            Ok(reply) => {
                let refusal = self.ask_hooks(repos)?;
                let unchanged = UnchangedAttempt {
                    why: self.find_unchanged_reason(repos)?,
                    said: find_idle_reason(reply),
                    is_untouched,
                    is_conclusive: called.is_conclusive,
                };
                let violation = find_violations(repos).of_agent();
                refused(judge(reply, violation), refusal).fail_if_unchanged(unchanged)
            }
            Err(error) if is_untouched && !called.is_worth_counting() && !error.is_interruption() => {
                return Ok(None);
            }
            Err(error) => interrupted(error, find_violations(repos).of_agent().as_deref()),
        };
        // After the hooks, which may change files, too.
        let mut protected = ProtectedChanges::default();
        for repo in repos {
            protected.add(repo.restore_protected()?);
        }
        Ok(Some(judgement.fail_if_protected(&protected)))
    }

    /// Runs the pre-commit hooks of all repositories, up to the first that rejects the work. None runs after something was
    /// done without permission in any of them.
    fn ask_hooks(&self, repos: &mut [RepoAttempt<'_, '_>]) -> Result<Option<String>, PipelineError> {
        for at in 0..repos.len() {
            if !find_violations(repos).is_empty() {
                return Ok(None);
            }
            if !repos[at].needs_hook() {
                continue;
            }
            // The hook of another repository could write to the plan's, too.
            let before = (at > 0).then(|| repos[0].recorder.repository().take_snapshot()).transpose()?;
            let refusal = repos[at].ask_hook(self.context.run)?;
            if let Some(before) = before {
                repos[0].undo_other_hook(before.tree)?;
            }
            if refusal.is_some() {
                return Ok(refusal);
            }
        }
        Ok(None)
    }

    /// Reports what else was found: folded commits, what was restored, secrets in files.
    fn report_work(&mut self, folded: &[String], repos: &mut [RepoAttempt<'_, '_>]) {
        folded.iter().for_each(|words| self.note(words));
        let notes = repos.first_mut().map(|plans| std::mem::take(&mut plans.work.notes));
        notes.iter().flatten().for_each(|words| self.note(words));
        for words in repos.iter_mut().flat_map(RepoAttempt::take_warnings) {
            self.context.emit(&self.task.id, EventKind::failure(words));
        }
    }

    fn note(&mut self, words: &str) {
        self.context.emit(&self.task.id, EventKind::step_note(words));
    }

    /// The entry for a commit of the attempt in another repository.
    fn other_entry(
        &self,
        attempt: Attempt,
        judgement: &Judgement,
        whole_call: Option<&WholeCallTurn>,
    ) -> TaskEvent<'static> {
        let mut entry = self.entry(judgement.status, attempt);
        entry.body = judgement.body.clone();
        if let Some(whole_call) = whole_call {
            whole_call.sign(&mut entry, self.context.checkpoints.pipeline.as_str());
        }
        if let Some(why) = &judgement.interruption {
            mark_interrupted(&mut entry, why);
        }
        entry
    }

    /// Commits the changes of an attempt in the plan's repository, with its cost. This ends the attempt.
    fn commit(
        &mut self,
        attempt: Attempt,
        plans: RepoAttempt<'_, '_>,
        called: &FinishedCall,
        verdict: AttemptVerdict<'_>,
    ) -> Result<(), PipelineError> {
        let AttemptVerdict { judgement, changes, whole_call, others } = verdict;
        let RepoAttempt { recorder, checkout, work, .. } = plans;
        let Judgement { status, body, why, interruption } = judgement;
        let mut entry = self.entry(status, attempt);
        // An attempt that passed has a reason only if it changed no file.
        entry.remark =
            if status == Status::ImplementPass && why.is_some() { " (no file changed)" } else { "" };
        entry.body = body;
        entry.trailers = called.expense.trailers();
        if let Some(why) = &interruption {
            mark_interrupted(&mut entry, why);
        }
        let (delivery, ended) = (work.of_step(), [checkout.unfinished.end_move()]);
        let changed = CallChanges { here: &work.changes, others };
        let event = match whole_call {
            // The record of the call moves together with the commit: a run that is killed between them would not know
            // its own work.
            Some(whole_call) => {
                let step = (entry, delivery, &ended[..]);
                self.record_with_whole_call(recorder, step, (whole_call, called), changed)?
            }
            None => recorder.record_staged(entry, delivery, &ended)?,
        };
        // The checkpoint of the step is about the commit that was just made.
        self.recorder.continue_after(recorder);
        self.apply_event_with_changes(event, why.as_deref(), called.expense, changes);
        Ok(())
    }
}

impl Judgement {
    /// Lists folded commits, so that their authors can find them.
    fn folding(self, words: &[String]) -> Self {
        if words.is_empty() {
            return self;
        }
        Self { body: self.body.with("Folded in:", &words.join("\n")), ..self }
    }

    /// Lists what the sandbox refused to set-up commands.
    fn with_denials(self, denials: &[String]) -> Self {
        if denials.is_empty() {
            return self;
        }
        Self { body: self.body.with(DENIED, &denials.join("\n")), ..self }
    }

    /// Turns a success into a failure if a protected file was changed without permission.
    fn fail_if_protected(self, protected: &ProtectedChanges) -> Self {
        let Some(refusal) = protected.refusal() else {
            let allowed = protected.describe_allowed().unwrap_or_default();
            return Self { body: self.body.followed_by(allowed), ..self };
        };
        let body = Body::new(FAILED, &refusal).followed_by(self.body);
        let before = self.why.filter(|_| self.status == Status::ImplementFail);
        let why = before.map_or_else(|| refusal.clone(), |before| format!("{before}; {refusal}"));
        Self { status: Status::ImplementFail, body, why: Some(why), ..self }
    }

    /// Turns a success without changes into a failure, unless the agent explained why there was nothing to do.
    fn fail_if_unchanged(self, attempt: UnchangedAttempt) -> Self {
        let UnchangedAttempt { why, said, is_untouched, is_conclusive } = attempt;
        if self.status != Status::ImplementPass {
            return self;
        }
        let why = why.filter(|_| !is_conclusive);
        let said = said.filter(|_| why.is_some() || is_untouched);
        match (why, said) {
            (_, Some(said)) => {
                let why = Some(format!("the agent changed no file and said: \"{said}\""));
                Self { body: Body::new(NOTHING_TO_DO, &said).followed_by(self.body), why, ..self }
            }
            (Some(why), None) => {
                let body = Body::new(FAILED, &why).followed_by(self.body.clone());
                Self { status: Status::ImplementFail, body, why: Some(why), ..self }
            }
            (None, None) if is_untouched => Self { why: Some("the agent changed no file".into()), ..self },
            (None, None) => self,
        }
    }
}

/// Decides by the call's outcome. A violation makes a failure of any success.
fn judge(reply: &CallReply, violation: Option<String>) -> Judgement {
    const HEADING: &str = "Runner output (truncated to 2000 chars):";
    let first = |text: &str| text.chars().take(LONGEST_WORDS).collect::<String>();
    match (&reply.outcome, violation) {
        (CallOutcome::Success { text, .. }, None) => {
            let body = Body::new(HEADING, &first(text));
            let body = match &reply.denial {
                Some(denial) => body.with(DENIED, denial),
                None => body,
            };
            Judgement { status: Status::ImplementPass, body, why: None, interruption: None }
        }
        (CallOutcome::Success { text, .. }, Some(violation)) => {
            let body = Body::new(FAILED, &violation).with(HEADING, &first(text));
            Judgement { status: Status::ImplementFail, body, why: Some(violation), interruption: None }
        }
        (CallOutcome::Failed { message, .. } | CallOutcome::Limited { message, .. }, violation) => {
            let why =
                violation.map_or_else(|| message.clone(), |violation| format!("{message}; {violation}"));
            let body = Body::new(FAILED, &why);
            let said = last_chars(&reply.words, LONGEST_WORDS);
            let body = if said.is_empty() { body } else { body.with(HEADING, said) };
            Judgement { status: Status::ImplementFail, body, why: Some(why), interruption: None }
        }
    }
}

/// A hook that rejects the work makes a failure of any success.
fn refused(judgement: Judgement, refusal: Option<String>) -> Judgement {
    let Some(said) = refusal else {
        return judgement;
    };
    let said = if said.trim().is_empty() { NO_REASON.to_owned() } else { said };
    let body = Body::new(REFUSED_BY_HOOK, &said).followed_by(judgement.body);
    let why = describe_refusal(&said);
    Judgement { status: Status::ImplementFail, body, why: Some(why), interruption: None }
}

/// The result if the call was ended from outside. That is not the agent's fault, so the attempt does not count.
fn interrupted(error: &PipelineError, violation: Option<&str>) -> Judgement {
    let reason = error.reason();
    let body = violation.map_or_else(Body::default, |violation| Body::new(FAILED, violation));
    let why = Some(describe_interruption(&reason, violation));
    Judgement { status: Status::ImplementFail, body, why, interruption: Some(reason) }
}

impl TaskRun<'_, '_, '_> {
    fn implement_prompt(&self) -> String {
        let TaskContext { run, dir, .. } = &*self.context;
        let options = run.options;
        let is_elsewhere = self.context.place_of(self.task) != *dir;
        let files =
            PromptFiles { exists: &|path| dir.join(path).exists(), top: is_elsewhere.then_some(*dir) };
        let mut parts = PromptParts::new(self.task.into(), &self.background, &files, &options.context);
        parts.protection = options.protection.rule(self.task);
        parts.dependencies =
            self.background.describe_dependencies(self.recorder.repository(), &options.report_dir);
        parts.implement(&self.feedback(), options.prompts.implement.as_ref())
    }
}
