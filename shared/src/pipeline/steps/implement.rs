//! The implement step: an agent works, and its changes are committed however the call ended.
//!
//! An agent whose every command failed may still claim success. So a step that changes nothing fails, unless the agent
//! explicitly says that there is nothing to do; then the reviewer decides.

use crate::{
    agent::{CallOutcome, limits::Chain},
    event::{EventKind, StepChanges},
    git::{PrivateGit, TreeChange},
    history::{DENIED, FAILED},
    message::{Body, Status, Step as StepKind, last_chars},
    name::{Attempt, Oid},
    pipeline::{
        AgentCall, CallReply, Expense, FileSecrets, FinishedCall, IgnoredFiles, OtherRepo, PipelineError,
        ProtectedChanges, StepRunner, TaskContext, TaskRun,
        attempts::{describe_interruption, mark_interrupted},
        calls::call::open_log,
        checkout::{
            attempt::{AttemptCheckout, AttemptWork, WatchedFrom, begin_attempt, end_attempt},
            hook, leftovers,
            other_repo::{self, RepoAttempt},
            protected_files::TaskProtection,
            violations::Violations,
        },
        steps::{
            background::PromptFiles,
            prompt::PromptParts,
            unchanged::{NOTHING_TO_DO, reason},
        },
        task::{StepOutcome, last_line},
        turns::{
            committer::{CommittedTurns, TurnCommitter},
            messenger::Messenger,
            note::TurnContext,
            whole_call::{CallChanges, WholeCallTurn},
        },
    },
    record::{IndexUpdate, StagedCommit, Tip},
    session::OtherCommit,
};

/// How many characters of an agent's answer the commit contains.
const LONGEST_WORDS: usize = 2000;

/// The result of an attempt.
struct Judgement {
    status: Status,
    body: Body,
    why: Option<String>,
    /// The reason why the attempt does not count, if it does not.
    interruption: Option<String>,
}

/// What is known about an attempt that may have changed nothing.
struct UnchangedAttempt {
    /// The reason why it counts as unchanged, if it does.
    why: Option<String>,
    /// The agent's explanation.
    said: Option<String>,
    /// Whether this attempt changed no file.
    is_untouched: bool,
    /// Whether the result of the call decides alone: a shell command that succeeds without a change is no failure.
    is_conclusive: bool,
}

/// An attempt whose call has ended.
struct EndedAttempt<'o> {
    /// The checkout as it was when the attempt began.
    begun: AttemptCheckout,
    /// What was done in it.
    work: AttemptWork,
    /// The attempt in the other repositories, and what was done there.
    beside: Vec<(RepoAttempt<'o>, AttemptWork)>,
    called: FinishedCall,
    /// The only turn of an agent that reports none.
    plain: Option<WholeCallTurn>,
}

/// What is committed of an attempt beside its files.
struct AttemptVerdict<'o> {
    judgement: Judgement,
    changes: StepChanges,
    plain: Option<WholeCallTurn>,
    /// The commits in other repositories.
    others: &'o [(OtherCommit, Vec<TreeChange>)],
}

impl TaskRun<'_, '_, '_> {
    pub(in crate::pipeline) fn implement(&mut self, attempt: Attempt) -> Result<StepOutcome, PipelineError> {
        let mut other_repos = std::mem::take(&mut self.context.other_repos);
        let ended = self.implement_with_other_repos(attempt, &other_repos);
        let step = ended.and_then(|(step, tips)| {
            other_repos.iter_mut().zip(tips).for_each(|(other_repo, tip)| other_repo.tip = tip);
            step
        });
        self.context.other_repos = other_repos;
        step
    }

    fn implement_with_other_repos(
        &mut self,
        attempt: Attempt,
        other_repos: &[OtherRepo],
    ) -> Result<(Result<StepOutcome, PipelineError>, Vec<Tip>), PipelineError> {
        // Before the call: the log, the prompt, snapshots of this repository and of the others.
        let chain = self.context.run.options.runners.implementers(self.task)?;
        let time_left = self.allowance(&Expense::default())?;
        let by = self.context.next_runner_name(&chain);
        let log = self.create_log(StepKind::Implement, attempt)?;
        let message_log = log.replace("_implement_", "_commit-message_");
        self.announce("implement", attempt, (&by, &log));
        let prompt = self.implement_prompt() + &self.context.list_repositories(self.task);
        let (prompt, session) = self.context.recall(&self.task.id, &chain, prompt);
        let log = self.context.run.home.join(log);
        for denial in &self.context.set_up_denials {
            open_log(&log, &format!("=== {denial} ===\n"))?;
        }
        self.recorder.forget_worktree();
        for words in other_repo::tidy(other_repos.iter(), &self.task.id, attempt)? {
            self.context.emit(&self.task.id, EventKind::note(format!("  {}: {words}", self.task.id)));
        }
        let watched_from = WatchedFrom::Here(&self.context.run.config_guard);
        let begun = begin_attempt(self.recorder, watched_from, &self.task.id, attempt)?;
        let ignored = self.context.ignored.as_ref().map(IgnoredFiles::users_files);
        let search = FileSecrets::new(self.context.run.options.secret_files, &self.context.run.secrets);
        let begun = begun.without(ignored.unwrap_or_default()).searched_for(search);
        let protection = &self.context.run.options.protection;
        let begun = begun.protected_by(TaskProtection::new(protection, self.task, self.base.tree));
        let mut repo_attempts = other_repo::enter(other_repos, (self.task, protection), attempt, &begun)?;
        let (task, place, step) = (self.task, self.recorder.repository(), StepKind::Implement);
        let (prompt, log) = (&prompt, &log);
        let private_git = self.make_private_git(&chain, begun.head)?;
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
            prompt,
            log,
        };
        // The call. Each turn is committed when it ends.
        let messenger = Messenger::of(self.context, &place.git_dir, &message_log);
        let of = TurnContext::of(self.context, self.task, (StepKind::Implement, attempt)).asking(messenger);
        let others = repo_attempts.iter_mut().map(RepoAttempt::beside).collect();
        let mut turns = TurnCommitter::new(self.recorder, Some(&begun), of).beside(others);
        let mut called = self.context.call(agent_call, Some(&mut turns));
        let (CommittedTurns { events, violations, folded, index, expense, told }, others, plain) =
            turns.finish();
        // After the call: what it has changed, here and in the other repositories.
        called.expense.add(expense.usage, expense.time);
        self.context.checkpoints.add_unreported(&called.expense, told);
        self.events.extend(events);
        let mut work = end_attempt(self.recorder, &begun, violations, self.base.tree)?;
        work.folded.splice(..0, folded);
        if let Some(private_git) = private_git {
            leftovers::keep_private(place, (&private_git, begun.head), (&begun.unfinished.name, &mut work))?;
        }
        if index == IndexUpdate::Behind {
            self.recorder.catch_up(begun.head_tree)?;
        }
        let mut beside = Vec::new();
        for (mut repo_attempt, kept) in repo_attempts.into_iter().zip(others) {
            let work = repo_attempt.end(kept)?;
            beside.push((repo_attempt, work));
        }
        let called = self.cut_short(called);
        self.conclude(attempt, EndedAttempt { begun, work, beside, called, plain })
    }

    /// A private git directory, if a runner of the chain gets one.
    fn make_private_git(
        &self,
        chain: &Chain<StepRunner>,
        head: Oid,
    ) -> Result<Option<PrivateGit>, PipelineError> {
        let sandbox = &self.context.run.options.sandbox;
        let has_one = |step_runner: &StepRunner| {
            sandbox.has_private_git(&step_runner.sandboxed(StepKind::Implement.as_str(), Vec::new()))
        };
        let is_needed = self.context.run.playback.is_none() && chain.iter().any(has_one);
        let make = || self.recorder.repository().make_private_git(self.recorder.branch(), head);
        Ok(is_needed.then(make).transpose()?)
    }

    /// Commits the result of the attempt: first in other repositories, last in the one with the plan. Only the last
    /// commit ends the attempt, so that a crash in between leaves it unfinished.
    fn conclude(
        &mut self,
        attempt: Attempt,
        EndedAttempt { begun, mut work, mut beside, called, plain }: EndedAttempt<'_>,
    ) -> Result<(Result<StepOutcome, PipelineError>, Vec<Tip>), PipelineError> {
        let is_untouched = work.changes.is_empty()
            && work.tip == begun.head
            && beside.iter().all(|(repo_attempt, work)| repo_attempt.is_untouched(work));
        let has_nothing = self.has_changed_nothing(&work, &beside);
        let works = std::iter::once(&work).chain(beside.iter().map(|(_, work)| work));
        let violations: Violations = works.filter_map(|work| work.violations.in_one_line()).collect();
        let judgement = match &called.result {
            Ok(reply) => {
                let refusal = self.ask_hooks((&begun, &mut work), &mut beside)?;
                let idle = UnchangedAttempt {
                    why: self.find_unchanged_reason((&begun, &work), &beside)?,
                    said: reason(reply),
                    is_untouched,
                    is_conclusive: called.is_conclusive,
                };
                Some(refused(judge(reply, &work), refusal).fail_if_unchanged(idle))
            }
            Err(error)
                if is_untouched
                    && violations.is_empty()
                    && !called.is_worth_counting()
                    && !error.is_interruption() =>
            {
                None
            }
            Err(error) => Some(interrupted(error, violations.in_one_line().as_deref())),
        };
        let judgement = match judgement {
            // After the hooks, which may change files, too.
            Some(judgement) => {
                let protected = self.put_back_protected((&begun, &mut work), &mut beside)?;
                Some(judgement.fail_if_protected(&protected))
            }
            None => None,
        };
        let folded: Vec<String> = leftovers::folded_message(&work.folded)
            .into_iter()
            .chain(beside.iter().filter_map(|(repo_attempt, work)| repo_attempt.folded_message(work)))
            .collect();
        let denials = std::mem::take(&mut self.context.set_up_denials);
        let judgement = judgement.map(|judgement| judgement.folding(&folded).with_denials(&denials));
        let notes = std::mem::take(&mut work.notes);
        for words in folded.into_iter().chain(notes) {
            self.context.emit(&self.task.id, EventKind::note(format!("  {}: {words}", self.task.id)));
        }
        let mut warnings = std::mem::take(&mut work.warnings);
        warnings.extend(beside.iter_mut().flat_map(|(repo_attempt, work)| repo_attempt.take_warnings(work)));
        for words in warnings {
            self.context.emit(&self.task.id, EventKind::failure(format!("{}: {words}", self.task.id)));
        }
        let (mut tips, mut others) = (Vec::new(), Vec::new());
        for (repo_attempt, work) in beside {
            let entry = judgement.as_ref().filter(|_| !repo_attempt.is_untouched(&work));
            let entry = entry.map(|judgement| {
                let mut entry = self.entry(judgement.status, attempt);
                entry.body = judgement.body.clone();
                if let Some(plain) = &plain {
                    plain.sign(&mut entry, self.context.checkpoints.pipeline.as_str());
                }
                if let Some(why) = &judgement.interruption {
                    mark_interrupted(&mut entry, why);
                }
                entry
            });
            let (tip, commit) = repo_attempt.commit(entry, &work)?;
            tips.push(tip);
            others.extend(commit.map(|commit| (commit, work.changes)));
        }
        let status = judgement.as_ref().map(|judgement| judgement.status);
        match judgement {
            Some(judgement) => {
                let is_all = work.tip == begun.head && others.is_empty();
                let files = is_all.then_some(work.changes.len()).filter(|files| *files > 0);
                let changes = StepChanges { files, has_nothing };
                let verdict = AttemptVerdict { judgement, changes, plain, others: &others };
                self.commit(attempt, (&begun, &work), &called, verdict)?;
            }
            None => {
                let repository = self.recorder.repository();
                repository.move_refs(&[begun.unfinished.ended()], "arborist: stopped")?;
            }
        }
        let is_passed = status == Some(Status::ImplementPass);
        Ok((called.result.map(|_| if is_passed { StepOutcome::Passed } else { StepOutcome::Failed }), tips))
    }

    /// Runs the pre-commit hooks of all repositories, up to the first that rejects the work. None runs if the agent did
    /// something that it may not do.
    fn ask_hooks(
        &self,
        (begun, work): (&AttemptCheckout, &mut AttemptWork),
        beside: &mut [(RepoAttempt<'_>, AttemptWork)],
    ) -> Result<Option<String>, PipelineError> {
        let run = &self.context.run;
        let mut noticed: Violations =
            beside.iter().filter_map(|(_, work)| work.violations.in_one_line()).collect();
        let mut refusal = match noticed.is_empty() {
            true => hook::ask_hook(self.recorder, (run.hook, run), begun, work)?,
            false => None,
        };
        for (repo_attempt, theirs) in
            beside.iter_mut().filter(|(repo_attempt, theirs)| repo_attempt.is_asked(theirs))
        {
            if !noticed.is_empty() || !work.violations.is_empty() || refusal.is_some() {
                break;
            }
            let before = self.recorder.repository().take_snapshot()?.tree;
            refusal = repo_attempt.ask_hook(theirs, run)?;
            // The hook ran in the other repository, but could write here.
            noticed.extend(begun.restore_after_end());
            noticed.extend(theirs.violations.in_one_line());
            work.notes.extend(hook::put_back_files(self.recorder, begun, (work, before))?);
        }
        work.violations.extend(noticed);
        Ok(refusal)
    }

    /// Commits the changes of an attempt, with its cost.
    fn commit(
        &mut self,
        attempt: Attempt,
        (begun, work): (&AttemptCheckout, &AttemptWork),
        called: &FinishedCall,
        AttemptVerdict { judgement, changes, plain, others }: AttemptVerdict<'_>,
    ) -> Result<(), PipelineError> {
        let Judgement { status, body, why, interruption } = judgement;
        let mut entry = self.entry(status, attempt);
        entry.remark =
            if status == Status::ImplementPass && why.is_some() { " (no file changed)" } else { "" };
        entry.body = body;
        entry.trailers = called.expense.trailers();
        if let Some(why) = &interruption {
            mark_interrupted(&mut entry, why);
        }
        let delivery = StagedCommit { index: work.whole_index(), ..work.delivery() };
        let ended = [begun.unfinished.ended()];
        let changed = CallChanges { here: &work.changes, others };
        let event = match plain {
            // The record of the call moves together with the commit: a run that is killed between them would not know
            // its own work.
            Some(plain) => self.deliver_plain((entry, delivery, &ended), (plain, called), changed)?,
            None => self.recorder.deliver(entry, delivery, &ended)?,
        };
        self.recorded_with(event, why.as_deref(), (called.expense, changes));
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
    fn fail_if_unchanged(self, idle: UnchangedAttempt) -> Self {
        let UnchangedAttempt { why, said, is_untouched, is_conclusive } = idle;
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
fn judge(reply: &CallReply, work: &AttemptWork) -> Judgement {
    const HEADING: &str = "Runner output (truncated to 2000 chars):";
    let first = |text: &str| text.chars().take(LONGEST_WORDS).collect::<String>();
    match (&reply.outcome, work.violations.in_one_line()) {
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

/// The heading over what the pre-commit hook said.
pub(super) const REFUSED_BY_HOOK: &str = "The pre-commit hook refused it:";

/// A hook that rejects the work makes a failure of any success.
fn refused(judgement: Judgement, refusal: Option<String>) -> Judgement {
    let Some(said) = refusal else {
        return judgement;
    };
    let body = Body::new(REFUSED_BY_HOOK, &said).followed_by(judgement.body);
    let why = format!("the pre-commit hook refused the change: {}", last_line(&said));
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
