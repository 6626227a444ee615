//! The review step: a reviewer decides about a commit, in a worktree that contains nothing else.

use std::{fmt, io::Write, path::Path, thread, time::Duration};

use crate::{
    agent::{CallOutcome, FailureKind, limits::Chain},
    event::EventKind,
    git::{OtherWriters, Repository, Touched, TrackedFiles},
    history::{DENIED, FAILED},
    message::{Body, Key, Status, Step, visible},
    name::{Attempt, BranchName, Oid},
    pipeline::{
        AgentCall, CallReply, ConcurrentChildren, Expense, FinishedCall, IgnoredChanges, OtherRepo,
        PipelineError, ProtectedChanges, ReplyDoubt, Sessions, StepRunner, TaskContext, TaskRun, Verdict,
        checkout::{guard::CheckoutWatch, other_repo::TaskRepo, review_guard, violations::Violations},
        steps::{
            background::PromptFiles,
            prompt::PromptParts,
            review_diff::{RepoDiff, render_diff},
            unchanged,
        },
        task::{RejectedWork, StepOutcome, last_line},
        turns::{
            committer::TurnCommitter, turn_collector::TurnContext, turn_repo::TurnRepo,
            whole_call::CallChanges,
        },
    },
    process::OthersReach,
    record::UnfinishedAttempt,
    safe_files,
};

/// How often reviewers are called for one change before the user has to find out why they fail.
const MAX_TRIES: u32 = 3;
/// How many files of a rejected task are named to a reviewer.
const MAX_REJECTED: usize = 50;

/// A request for a reviewer's worktree.
struct WantedPlace<'a> {
    places: &'a dyn ReviewPlaces,
    repository: &'a Repository,
    branch: &'a BranchName,
    commit: Oid,
}

impl WantedPlace<'_> {
    fn take(wanted: Option<Self>) -> Result<Option<ReviewPlace>, PipelineError> {
        wanted.map(|wanted| wanted.places.take(wanted.repository, wanted.branch, wanted.commit)).transpose()
    }
}

/// The call of a reviewer.
struct ReviewerAnswer {
    called: FinishedCall,
    /// What the reviewer did without permission. The words of a finished answer contain it already.
    violation: Option<String>,
}

impl From<FinishedCall> for ReviewerAnswer {
    fn from(called: FinishedCall) -> Self {
        Self { called, violation: None }
    }
}

impl TaskRun<'_, '_, '_> {
    pub(in crate::pipeline) fn review(&mut self, attempt: Attempt) -> Result<StepOutcome, PipelineError> {
        let log = self.create_log(Step::Review, attempt)?;
        let ReviewerAnswer { called, violation } = self.ask_reviewers(attempt, &log)?;
        let (verdict, body, why) = match &called.result {
            Ok(reply) => {
                let (verdict, words) = verdict_of(reply);
                let why = (verdict == Verdict::Rejected).then(|| reason(&words));
                let body = Body::new("Review:", &words);
                let missing = why.as_ref().filter(|_| !is_rejection(&words));
                let body = match missing {
                    Some(why) => Body::new(FAILED, why).followed_by(body),
                    None => body,
                };
                let body = match &reply.denial {
                    Some(denial) => body.with(DENIED, denial),
                    None => body,
                };
                (verdict, body, why)
            }
            Err(error) => {
                // There was no decision, so this is no rejection: only the review is repeated.
                if error.is_interruption() || called.is_worth_counting() || violation.is_some() {
                    self.record_interruption(attempt, &error.reason(), violation.as_deref(), called.expense)?;
                }
                // Always the error of this arm.
                return called.result.map(|_| StepOutcome::Failed);
            }
        };
        self.record_review(attempt, verdict, body, why.as_deref(), &log, called.expense)?;
        called
            .result
            .map(|_| if verdict == Verdict::Approved { StepOutcome::Passed } else { StepOutcome::Failed })
    }

    /// Calls reviewers until one of them answers.
    fn ask_reviewers(&mut self, attempt: Attempt, log: &str) -> Result<ReviewerAnswer, PipelineError> {
        let chain = self.context.run.options.runners.reviewers()?;
        let by = self.context.next_runner_name(&chain);
        self.announce(Step::Review, attempt, &by, log);
        let protected = self.find_protected_in_review()?;
        // The end of an attempt restores these files. Permission may have been taken back since.
        if let Some(refusal) = protected.refusal() {
            return Ok(rejected(&format!("REJECTED: {refusal}")).into());
        }
        // The worktree is filled while git compares the trees, because neither depends on the other.
        let (prompt, mut apart) = thread::scope(|scope| {
            let wanted = self.review_place();
            let place = scope.spawn(move || WantedPlace::take(wanted));
            let prompt = self.review_prompt(&protected);
            (prompt, place.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (prompt, file) = (prompt?, self.context.run.home.join(log));
        let mut expense = Expense::default();
        for try_number in 1.. {
            let time_left = match self.allowance(&expense) {
                Ok(left) => left,
                Err(overrun) => {
                    let result = Err(overrun.into());
                    return Ok(FinishedCall { expense, result, is_conclusive: false }.into());
                }
            };
            // A reviewer that failed may have changed its worktree.
            let place = if try_number == 1 {
                std::mem::replace(&mut apart, Ok(None))
            } else {
                WantedPlace::take(self.review_place())
            }?;
            let ReviewerAnswer { called, violation } =
                self.ask_reviewer(attempt, &chain, time_left, &prompt, &file, place.as_ref())?;
            expense.add(called.expense.usage, called.expense.time);
            let has_answered =
                matches!(&called.result, Ok(CallReply { outcome: CallOutcome::Success { .. }, .. }));
            let answer = reject_doubtful_answer(called, violation.clone());
            if let (true, Ok(CallReply { outcome: CallOutcome::Failed { message, .. }, .. })) =
                (has_answered, &answer.result)
            {
                note_in_log(&file, message);
            }
            let called = self.cut_short(FinishedCall { expense, ..answer });
            // An answer contains it already.
            let violation = violation.filter(|_| called.result.is_err());
            match &called.result {
                Ok(CallReply { outcome: CallOutcome::Failed { message, .. }, .. })
                    if try_number < MAX_TRIES =>
                {
                    let words = format!(
                        "{}: the reviewer failed; trying again ({} of {MAX_TRIES}): {message}",
                        self.task.id,
                        try_number + 1
                    );
                    self.context.emit(&self.task.id, EventKind::note(words));
                }
                // A failing reviewer says nothing about the work, and calling it once more would not help.
                Ok(CallReply { outcome: CallOutcome::Failed { message, .. }, .. }) => {
                    let (task, log) = (self.task.id.clone(), log.to_owned());
                    let error =
                        PipelineError::NoReview { task, log, tries: try_number, said: message.clone() };
                    return Ok(FinishedCall { result: Err(error), ..called }.into());
                }
                _ => return Ok(ReviewerAnswer { called, violation }),
            }
        }
        Err(PipelineError::stopped(&self.context.run.cancel))
    }

    /// Calls a reviewer once.
    fn ask_reviewer(
        &mut self,
        attempt: Attempt,
        chain: &Chain<StepRunner>,
        time_left: Option<Duration>,
        prompt: &str,
        log: &Path,
        apart: Option<&ReviewPlace>,
    ) -> Result<ReviewerAnswer, PipelineError> {
        let (task, place, step) = (self.task, self.recorder.repository(), Step::Review);
        let session = Sessions::Fresh;
        let agent_call = AgentCall {
            chain,
            time_left,
            session,
            task,
            step,
            place,
            other_repos: &[],
            private_git: None,
            apart,
            prompt,
            log,
        };
        let concurrent_children = ConcurrentChildren::count(place);
        let others_reach = apart.map(|apart| OthersReach::begin(apart.repository.top()));
        let files = self.look_at_reviewed(apart, concurrent_children)?;
        let reviewed_checkout = review_guard::begin(self.recorder, &self.context.run.config_guard)?;
        // The reviewer's worktree has its own files that git obeys.
        let apart_watch = apart.map(|apart| reviewed_checkout.watch_place(&apart.repository));
        let other_repos = self.context.other_repos.iter();
        let other_watches: Vec<CheckoutWatch> =
            other_repos.map(|other_repo| reviewed_checkout.watch_place(&other_repo.repository)).collect();
        let of = TurnContext::of(self.context, self.task, Step::Review, attempt);
        let read_only = TurnRepo::new(None, self.recorder, None);
        let mut turns = TurnCommitter::new(vec![read_only], of);
        let called = self.context.call(agent_call, Some(&mut turns));
        let turns = turns.finish();
        self.context.checkpoints.add_unreported(&called.expense, turns.reported);
        self.record_whole_call(turns.whole_call, &called, CallChanges::NOTHING);
        let other_writers = match others_reach {
            Some(reach) => concurrent_children.since_start_with_reach(ConcurrentChildren::ONE_WATCH, reach),
            None => concurrent_children.since_start(ConcurrentChildren::ONE_WATCH),
        };
        let taken_back = reviewed_checkout.restore(self.recorder, &self.mark_of(attempt));
        let places = apart_watch.iter().chain(&other_watches);
        let mut found: Violations = places.flat_map(CheckoutWatch::restore_after_child).collect();
        // The worktree is discarded, so changes matter only if another program could have made them.
        if let (Some((apart, before)), OtherWriters::Others) = (files, other_writers) {
            found.extend(describe_changed_during_review(
                &apart.repository.look_again(&before, other_writers)?,
            ));
        }
        let taken_back = taken_back?;
        // The same violation can be found from both places.
        let mut violations: Violations =
            found.into_iter().filter(|message| !taken_back.has(message)).collect();
        violations.extend(taken_back);
        self.recorder.forget_worktree();
        Ok(ReviewerAnswer { called, violation: violations.in_one_line() })
    }

    /// The tracked files that a reviewer in a lane is about to see. Other tasks run at the same time.
    fn look_at_reviewed<'p>(
        &self,
        apart: Option<&'p ReviewPlace>,
        concurrent_children: ConcurrentChildren<'_>,
    ) -> Result<Option<(&'p ReviewPlace, TrackedFiles)>, PipelineError> {
        let is_lane = !self.recorder.is_on_run_branch();
        let Some(apart) = apart.filter(|_| is_lane) else { return Ok(None) };
        Ok(Some((apart, apart.repository.read_tracked(apart.tree, concurrent_children.at_start())?)))
    }

    /// The worktree for a reviewer. A task that primarily works in another repository is reviewed there.
    fn review_place(&self) -> Option<WantedPlace<'_>> {
        // A replay calls no reviewer.
        let places = self.context.run.review_places().filter(|_| self.context.run.playback.is_none())?;
        let first = self.task.repos.first().map(String::as_str);
        let mut repos = self.repos();
        let at = repos.iter().position(|repo| repo.name.is_some_and(|name| Some(name.as_str()) == first));
        let TaskRepo { repository, run, tip, .. } = repos.swap_remove(at.unwrap_or(0));
        Some(WantedPlace { places, repository, branch: run, commit: tip.head })
    }

    fn mark_of(&self, attempt: Attempt) -> String {
        UnfinishedAttempt::name_of(self.recorder.branch(), &self.task.id, attempt)
    }

    fn review_prompt(&self, protected: &ProtectedChanges) -> Result<String, PipelineError> {
        let repository = self.recorder.repository();
        let longest = self.context.run.options.diff_limit;
        let sections: Vec<RepoDiff> = self.repos().iter().map(TaskRepo::diff).collect::<Result<_, _>>()?;
        let diff = render_diff(&sections, longest)
            + &self.describe_uncommitted()?
            + &list_rejected(&self.rejected)
            + &protected.review_words()
            + &self.describe_tests()?;
        let idle = unchanged::find_recorded_idle_reason(&self.events);
        let TaskContext { run, dir, .. } = &*self.context;
        let is_elsewhere = self.context.place_of(self.task) != *dir;
        // The reviewer's worktree has only committed files.
        let head = self.recorder.head();
        let exists = |path: &str| repository.find_path(head, path).is_ok_and(|found| found.is_some());
        let files = PromptFiles { exists: &exists, top: is_elsewhere.then_some(*dir) };
        let parts = PromptParts::new(self.task.into(), &self.background, &files, &run.options.context);
        Ok(parts.review(&diff, idle.as_deref(), run.options.prompts.review.as_ref()))
    }

    /// Lists uncommitted files for the reviewer: they can make tests pass here and nowhere else.
    fn describe_uncommitted(&self) -> Result<String, PipelineError> {
        let log_dir = &self.context.run.options.log_dir;
        let mut words = String::new();
        if let Some(ignored) = &self.context.ignored {
            let changes = ignored.look(self.recorder.repository(), self.recorder.tree(), log_dir)?;
            words += &list_uncommitted(&changes, "");
        }
        for OtherRepo { name, repository, tip, ignored, .. } in self.context.other_test_repos() {
            let changes = ignored.look(repository, tip.tree, log_dir)?;
            words += &list_uncommitted(&changes, &format!("In {name}: "));
        }
        Ok(words)
    }

    fn record_review(
        &mut self,
        attempt: Attempt,
        verdict: Verdict,
        body: Body,
        why: Option<&str>,
        log: &str,
        expense: Expense,
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
        self.apply_event(event, why, expense);
        Ok(())
    }
}

/// How the last line of a log begins if the reviewer answered, but its answer is not used.
pub const UNUSED_ANSWER: &str = "the answer of the reviewer is not used: ";

/// Says at the end of the log why the answer is not used. The log is only for people.
fn note_in_log(log: &Path, why: &str) {
    if let Ok(mut file) = safe_files::open_log(log) {
        let _ = writeln!(file, "\n{UNUSED_ANSWER}{why}");
    }
}

/// A rejection without calling a reviewer.
fn rejected(words: &str) -> FinishedCall {
    let outcome = CallOutcome::Success { text: words.to_owned(), usage: None, session: None };
    let reply =
        CallReply { outcome, words: words.to_owned(), has_no_session: false, doubt: None, denial: None };
    FinishedCall { expense: Expense::default(), result: Ok(reply), is_conclusive: false }
}

/// A message if tracked files were written during a review. It is not known which process wrote them. The reviewer may
/// have seen something else than what lands, or followed instructions that are in no commit.
pub fn describe_changed_during_review(touched: &Touched) -> Option<String> {
    let paths = touched.shown().join(", ");
    (!paths.is_empty()).then(|| {
        format!("a reviewer may not change files, but these files in its worktree were changed: {paths}")
    })
}

/// The reason of a rejection in one line.
fn reason(words: &str) -> String {
    let last = last_line(words);
    if is_rejection(words) {
        return last;
    }
    let said =
        if words.trim().is_empty() { "it printed nothing".to_owned() } else { format!("it is: {last}") };
    format!(
        "the reviewer gave no verdict; its last line must be APPROVED or 'REJECTED: <reasons>', but {said}"
    )
}

/// Whether the last line rejects the work. A review without a verdict counts as a rejection, but says nothing about it.
fn is_rejection(words: &str) -> bool {
    last_line(words).trim_start_matches(['*', '_', '`', ' ']).starts_with("REJECTED")
}

/// Turns the answer of a reviewer into a failure if it wrote files, or if the answer may not be its own.
fn reject_doubtful_answer(called: FinishedCall, violation: Option<String>) -> FinishedCall {
    let result = called.result.map(|reply| {
        let is_success = matches!(reply.outcome, CallOutcome::Success { .. });
        let doubt = reply.doubt.filter(|_| is_success).and_then(|doubt| match doubt {
            ReplyDoubt::PrintedLate => {
                Some("a process that it had started printed output after it had ended")
            }
            ReplyDoubt::Stopped => Some("it did not end after its result"),
            ReplyDoubt::Misled => Some("another process wrote to its prompt or to its list of tools"),
            ReplyDoubt::Rejected => None,
        });
        match violation.or(doubt.map(str::to_owned)) {
            Some(message) => {
                let outcome =
                    CallOutcome::Failed { kind: FailureKind::Other, message, usage: None, session: None };
                CallReply { outcome, ..reply }
            }
            None => reply,
        }
    });
    FinishedCall { result, ..called }
}

/// Whether a reviewer that was called outside of a task's steps approved; if not, why.
pub fn judge_reply(reply: CallReply) -> Result<(), String> {
    let called = FinishedCall { expense: Expense::default(), result: Ok(reply), is_conclusive: false };
    let Ok(reply) = reject_doubtful_answer(called, None).result else {
        return Err("there was no reply".into());
    };
    match verdict_of(&reply) {
        (Verdict::Approved, _) => Ok(()),
        (Verdict::Rejected, words) => Err(reason(&words)),
    }
}

/// The verdict and its words.
fn verdict_of(reply: &CallReply) -> (Verdict, String) {
    match &reply.outcome {
        // Output after a rejection may come from another program, and does not turn it into an approval.
        CallOutcome::Success { text, .. } if reply.doubt == Some(ReplyDoubt::Rejected) => {
            (Verdict::Rejected, text.clone())
        }
        CallOutcome::Success { text, .. } => (Verdict::of(text), text.clone()),
        CallOutcome::Failed { message, .. } | CallOutcome::Limited { message, .. } => {
            (Verdict::Rejected, format!("the reviewer failed: {message}"))
        }
    }
}

/// Creates worktrees for reviewers.
pub trait ReviewPlaces: Sync {
    /// Returns a worktree of exactly this commit, for the run of `branch`. It is reserved until it is dropped; changes
    /// in it are then discarded.
    fn take(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<ReviewPlace, PipelineError>;
}

/// A worktree for one review.
pub struct ReviewPlace {
    /// The repository, opened from the worktree.
    pub repository: Repository,
    /// The tree that is checked out.
    pub tree: Oid,
    /// Environment variables for programs there.
    pub environment: Vec<(String, String)>,
    /// Returns the worktree when it is dropped.
    pub held: Box<dyn Send>,
}

impl fmt::Debug for ReviewPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewPlace").field("repository", &self.repository).finish_non_exhaustive()
    }
}

/// The part of the prompt about work of failed tasks, which the diff does not show.
fn list_rejected(rejected: &[RejectedWork]) -> String {
    let describe = |RejectedWork { task, paths }: &RejectedWork| {
        let names: Vec<String> =
            paths.iter().take(MAX_REJECTED).map(|path| format!("- {}", visible(path))).collect();
        let more = match paths.len().saturating_sub(MAX_REJECTED) {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        format!(
            "\n\nFiles that were changed by task {task}, which was rejected. Its changes are in the tree, but not in the \
             diff:\n{}{more}",
            names.join("\n")
        )
    };
    rejected.iter().map(describe).collect()
}

/// The part of the prompt about uncommitted files. `place` says where they are.
fn list_uncommitted(changes: &IgnoredChanges, place: &str) -> String {
    let IgnoredChanges { new, changed, others, is_cut } = changes;
    let list = |heading: &str, names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("- {}", visible(name))).collect();
        if names.is_empty() { String::new() } else { format!("\n\n{place}{heading}:\n{}", names.join("\n")) }
    };
    let mut words = list("New ignored files, which are not committed but were present for the tests", new);
    words += &list("Ignored files that changed since the task started, and are not committed", changed);
    words += &list("Other uncommitted files that are new or changed since the run started", others);
    if *is_cut {
        words += "\n\nThis list is not complete: other files may be new or changed, too.";
    }
    words
}
