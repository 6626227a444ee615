//! The review step: a reviewer decides about the commit under review, in a worktree that holds nothing else.

use std::{fmt, path::Path, thread, time::Duration};

use crate::{
    agent::{CallOutcome, FailureKind, RunnerKind, limits::Chain},
    event::EventKind,
    git::{OtherWriters, Repository, Touched, TrackedFiles},
    message::{Body, Key, Status, Step as StepKind, visible},
    name::{Attempt, BranchName, Oid},
    pipeline::{
        AgentCall, CallReply, Called, Doubt, Expense, IgnoredChanges, Neighbours, OtherRepo, PipelineError,
        Resume, Sessions, Stage, StepRunner, TaskRun, Verdict,
        checkout::{
            guard::{PlaceWatch, joined},
            reading,
        },
        review,
        steps::{
            implement,
            prompt::{self, RepoDiff},
        },
        task::{StepOutcome, last_line},
        turns::{keeper::TurnKeeper, note::TurnsOf, whole_call::Changed},
    },
    record::Unfinished,
};

/// How often reviewers are asked about one change before a person has to look at why they fail.
const MOST_TRIES: u32 = 3;

/// A worktree for a reviewer that is still to be got ready.
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

impl TaskRun<'_, '_, '_> {
    pub(in crate::pipeline) fn review(&mut self, attempt: Attempt) -> Result<StepOutcome, PipelineError> {
        let log = self.log_path("review");
        let called = self.ask_reviewers(attempt, &log)?;
        let (verdict, body, why) = match &called.result {
            Ok(reply) => {
                let (verdict, words) = opinion(reply);
                let why = (verdict == Verdict::Rejected).then(|| reason(&words));
                (verdict, Body::new("Review:", &words), why)
            }
            Err(error) => {
                // Nobody has decided anything, so this is no rejection: the review alone is taken again.
                if error.is_interruption() || called.is_worth_counting() {
                    let next = Resume { attempt, stage: Stage::Review };
                    self.keep_interruption(next, &error.reason(), called.expense)?;
                }
                return called.result.map(|_| StepOutcome::Failed);
            }
        };
        self.keep_review(attempt, (verdict, body, why), (&log, called.expense))?;
        called
            .result
            .map(|_| if verdict == Verdict::Approved { StepOutcome::Passed } else { StepOutcome::Failed })
    }

    fn ask_reviewers(&mut self, attempt: Attempt, log: &str) -> Result<Called, PipelineError> {
        let chain = self.context.run.options.runners.reviewers()?;
        let by = self.context.name_of_next(&chain);
        self.announce("review", attempt, (&by, log));
        if let Some(path) = self.find_changed_reviewer(&chain)? {
            return Ok(rejected(&format!(
                "REJECTED: the change edits '{path}', which the reviewer is called with: a task cannot change its own reviewer"
            )));
        }
        // The worktree is filled while git compares the trees: neither needs the other.
        let (prompt, mut apart) = thread::scope(|scope| {
            let wanted = self.review_place();
            let place = scope.spawn(move || WantedPlace::take(wanted));
            let prompt = self.review_prompt();
            (prompt, place.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (prompt, file) = (prompt?, self.context.run.home.join(log));
        let mut expense = Expense::default();
        for tries in 1.. {
            let time_left = match self.allowance(&expense) {
                Ok(left) => left,
                Err(overrun) => {
                    return Ok(Called { expense, result: Err(overrun.into()), is_decided: false });
                }
            };
            // One who failed may have left anything there.
            let place = if tries == 1 {
                std::mem::replace(&mut apart, Ok(None))
            } else {
                WantedPlace::take(self.review_place())
            }?;
            let (called, trespass) =
                self.ask_reviewer(attempt, (&chain, time_left), (&prompt, &file), place.as_ref())?;
            expense.add(called.expense.usage, called.expense.time);
            let called = self.cut_short(Called { expense, ..discounted(called, trespass) });
            match &called.result {
                Ok(CallReply { outcome: CallOutcome::Failed { message, .. }, .. }) if tries < MOST_TRIES => {
                    let words = format!("  the reviewer failed and is asked again: {message}");
                    self.context.tell(&self.task.id, EventKind::note(words));
                }
                // Who breaks down has said nothing about the work, and to do that again would not help.
                Ok(CallReply { outcome: CallOutcome::Failed { message, .. }, .. }) => {
                    let error = PipelineError::NoReview { tries, said: message.clone() };
                    return Ok(Called { result: Err(error), ..called });
                }
                _ => return Ok(called),
            }
        }
        Err(PipelineError::stopped(&self.context.run.cancel))
    }

    /// A file that the task changes and that the command of a reviewer names: otherwise a task could rewrite the script that judges it.
    fn find_changed_reviewer(&self, chain: &Chain<StepRunner>) -> Result<Option<String>, PipelineError> {
        let changes = self.recorder.repository().changes(self.base.tree, self.recorder.tree())?;
        let names_it = |path: &str| {
            chain.iter().any(|step_runner| match &step_runner.runner {
                RunnerKind::Program(runner) => runner.names_path(path),
                RunnerKind::Shell | RunnerKind::Demo => false,
            })
        };
        let mut paths = changes.iter().filter_map(|change| std::str::from_utf8(&change.path).ok());
        Ok(paths.find(|path| names_it(path)).map(visible))
    }

    /// One call of a reviewer, and what it did that it may not do.
    fn ask_reviewer(
        &mut self,
        attempt: Attempt,
        (chain, time_left): (&Chain<StepRunner>, Option<Duration>),
        (prompt, log): (&str, &Path),
        apart: Option<&ReviewPlace>,
    ) -> Result<(Called, Option<String>), PipelineError> {
        let (task, place, step) = (self.task, self.recorder.repository(), StepKind::Review);
        let session = Sessions::Fresh;
        let agent_call =
            AgentCall { chain, time_left, session, task, step, place, other_repos: &[], apart, prompt, log };
        let neighbours = Neighbours::count(place);
        let files = self.look_at_reviewed(apart, neighbours)?;
        let lent = reading::lend(self.recorder, &self.context.run.config_guard)?;
        // The worktree of the reviewer has files of its own that git obeys.
        let apart_watch = apart.map(|apart| lent.watch_place(&apart.repository));
        let other_repos = self.context.other_repos.iter();
        let beside: Vec<PlaceWatch> =
            other_repos.map(|other_repo| lent.watch_place(&other_repo.repository)).collect();
        let of = TurnsOf::of(self.context, self.task, (StepKind::Review, attempt));
        let mut turns = TurnKeeper::new(self.recorder, None, of);
        let called = self.context.call(agent_call, Some(&mut turns));
        let (kept, _, plain) = turns.finish();
        self.context.checkpoints.owe(&called.expense, kept.told);
        self.keep_plain(plain, &called, Changed::NOTHING);
        let company = neighbours.since(1);
        let taken_back = lent.take_back(self.recorder, &self.mark_of(attempt));
        let places = apart_watch.iter().chain(&beside);
        let mut trespasses: Vec<String> = places.flat_map(PlaceWatch::end).collect();
        // One that was alone may write what it likes: its worktree is discarded.
        if let (Some((apart, before)), OtherWriters::Others) = (files, company) {
            trespasses.extend(altered(&apart.repository.look_again(&before, company)?));
        }
        if let Some(more) = taken_back? {
            trespasses.retain(|known| !more.contains(known));
            trespasses.push(more);
        }
        self.recorder.unsettle();
        Ok((called, joined(&trespasses)))
    }

    /// The files that a reviewer in a lane is about to see. Others are at work beside it.
    fn look_at_reviewed<'p>(
        &self,
        apart: Option<&'p ReviewPlace>,
        neighbours: Neighbours<'_>,
    ) -> Result<Option<(&'p ReviewPlace, TrackedFiles)>, PipelineError> {
        let is_lane = self.recorder.branch() != self.recorder.run();
        let Some(apart) = apart.filter(|_| is_lane) else { return Ok(None) };
        Ok(Some((apart, apart.repository.look_at_tracked(apart.tree, neighbours.now())?)))
    }

    /// The worktree that a reviewer is to have. A task that works in another repository first is reviewed there.
    fn review_place(&self) -> Option<WantedPlace<'_>> {
        // Where calls are played again, nobody works anywhere.
        let places = self.context.run.review_places().filter(|_| self.context.run.playback.is_none())?;
        let first = self.task.repos.first();
        let other_repo = self
            .context
            .other_repos
            .iter()
            .find(|other_repo| first.is_some_and(|name| other_repo.name.as_str() == name));
        Some(match other_repo {
            Some(OtherRepo { repository, identity, tip, .. }) => {
                WantedPlace { places, repository, branch: &identity.run, commit: tip.head }
            }
            None => {
                let (repository, branch) = (self.recorder.repository(), self.recorder.run());
                WantedPlace { places, repository, branch, commit: self.recorder.head() }
            }
        })
    }

    fn mark_of(&self, attempt: Attempt) -> String {
        Unfinished::name_of(self.recorder.branch(), &self.task.id, attempt)
    }

    fn review_prompt(&self) -> Result<String, PipelineError> {
        let repository = self.recorder.repository();
        let longest = self.context.run.options.diff_limit;
        let mut sections = vec![RepoDiff {
            repository: None,
            difference: repository.difference(self.base.tree, self.recorder.tree())?,
            command: format!("git diff --text {} {}", self.base.tree, self.recorder.head()),
        }];
        for other_repo in &self.context.other_repos {
            sections.push(other_repo.section()?);
        }
        let diff = prompt::render(&sections, longest) + &self.words_on_ignored()?;
        let idle = implement::recorded_reason(&self.events);
        Ok(review(self.subject(), &diff, idle.as_deref()))
    }

    /// A file that no commit has can make tests pass here and nowhere else.
    fn words_on_ignored(&self) -> Result<String, PipelineError> {
        let log_dir = &self.context.run.options.log_dir;
        let mut words = String::new();
        if let Some(ignored) = &self.context.ignored {
            let changes = ignored.look(self.recorder.repository(), self.recorder.tree(), log_dir)?;
            words += &words_on(&changes, "");
        }
        for OtherRepo { name, repository, tip, ignored, .. } in self.context.tested_elsewhere() {
            let changes = ignored.look(repository, tip.tree, log_dir)?;
            words += &words_on(&changes, &format!("In {name}: "));
        }
        Ok(words)
    }

    fn keep_review(
        &mut self,
        attempt: Attempt,
        (verdict, body, why): (Verdict, Body, Option<String>),
        (log, expense): (&str, Expense),
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
        self.recorded(event, why.as_deref(), expense);
        Ok(())
    }
}

/// A rejection for which no reviewer was called.
fn rejected(words: &str) -> Called {
    let outcome = CallOutcome::Success { text: words.to_owned(), usage: None, session: None };
    let reply = CallReply { outcome, words: words.to_owned(), has_no_session: false, doubt: None };
    Called { expense: Expense::default(), result: Ok(reply), is_decided: false }
}

/// Whether tracked files were written where a change was reviewed. Who did it cannot be told, and a reviewer must not: it may have
/// seen something else than what lands, or followed instructions that no commit holds.
pub fn altered(touched: &Touched) -> Option<String> {
    let paths = touched.shown().join(", ");
    (!paths.is_empty()).then(|| format!("tracked files were written while it was reviewed: {paths}"))
}

/// Why it is a no, in one line.
fn reason(words: &str) -> String {
    let last = last_line(words);
    if last.trim_start_matches(['*', '_', '`', ' ']).starts_with("REJECTED") {
        return last;
    }
    format!("the reviewer's last line is neither 'APPROVED' nor 'REJECTED: ...': {last}")
}

/// The word of a reviewer that did not keep to reading does not count, nor one that may not be its own.
fn discounted(called: Called, trespass: Option<String>) -> Called {
    let result = called.result.map(|reply| {
        let is_success = matches!(reply.outcome, CallOutcome::Success { .. });
        let doubt = reply.doubt.filter(|_| is_success).and_then(|doubt| match doubt {
            Doubt::PrintedLate => Some("something that it had started printed after it had ended"),
            Doubt::Stopped => Some("it did not end after its result"),
            Doubt::Misled => Some("something else wrote to its prompt or to its list of tools"),
            Doubt::Rejected => None,
        });
        match trespass.or(doubt.map(str::to_owned)) {
            Some(message) => {
                let outcome =
                    CallOutcome::Failed { kind: FailureKind::Other, message, usage: None, session: None };
                CallReply { outcome, ..reply }
            }
            None => reply,
        }
    });
    Called { result, ..called }
}

/// Whether a reviewer that was called outside of a task's steps has approved; why not, otherwise.
pub fn judge(reply: CallReply) -> Result<(), String> {
    let called = Called { expense: Expense::default(), result: Ok(reply), is_decided: false };
    let Ok(reply) = discounted(called, None).result else { return Err("there was no reply".into()) };
    match opinion(&reply) {
        (Verdict::Approved, _) => Ok(()),
        (Verdict::Rejected, words) => Err(reason(&words)),
    }
}

/// Only what a reviewer says is an opinion.
fn opinion(reply: &CallReply) -> (Verdict, String) {
    match &reply.outcome {
        // What something else may have printed behind a no does not make it a yes.
        CallOutcome::Success { text, .. } if reply.doubt == Some(Doubt::Rejected) => {
            (Verdict::Rejected, text.clone())
        }
        CallOutcome::Success { text, .. } => (Verdict::of(text), text.clone()),
        CallOutcome::Failed { message, .. } | CallOutcome::Limited { message, .. } => {
            (Verdict::Rejected, format!("the reviewer failed: {message}"))
        }
    }
}

/// Gives reviewers places of their own.
pub trait ReviewPlaces: Sync {
    /// A place that holds exactly this commit of a repository, for the run of `branch`. Nobody else has it until it is
    /// dropped, and what was done there is discarded then.
    fn take(
        &self,
        repository: &Repository,
        branch: &BranchName,
        commit: Oid,
    ) -> Result<ReviewPlace, PipelineError>;
}

/// A worktree for one review.
pub struct ReviewPlace {
    /// The repository as it is seen from there.
    pub repository: Repository,
    /// What is checked out there.
    pub tree: Oid,
    /// What programs find in their environment there.
    pub environment: Vec<(String, String)>,
    /// Gives the place back when it is dropped.
    pub held: Box<dyn Send>,
}

impl fmt::Debug for ReviewPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewPlace").field("repository", &self.repository).finish_non_exhaustive()
    }
}

/// What a reviewer is told of files that no commit has. `place` says where they are.
fn words_on(changes: &IgnoredChanges, place: &str) -> String {
    let IgnoredChanges { new, changed, others, is_cut } = changes;
    let list = |heading: &str, names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("- {}", visible(name))).collect();
        if names.is_empty() { String::new() } else { format!("\n\n{place}{heading}:\n{}", names.join("\n")) }
    };
    let mut words = list("Ignored files that are new and in no commit, but were there for the tests", new);
    words += &list("Ignored files that were changed since the task began, and are in no commit", changed);
    words += &list(
        "Other files that are in no commit and were not there, or not like that, when the run began",
        others,
    );
    if *is_cut {
        words += "\n\nThere are more ignored files than were looked at: others may have been changed, too.";
    }
    words
}
