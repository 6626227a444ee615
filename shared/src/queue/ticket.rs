//! A ticket: the request to land one task's branch, with the history of its tries and what they cost. A ticket that another
//! run completed must not land in this run, because its branch would bring the start of the other run along: its target was
//! reset to before that run, or a new run was started since.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};

use super::reasons::{HoldReason, WithheldReason, read_optional_reason, read_reason};
use crate::{
    agent::Usage,
    git::{GitError, MergeConflict, Repository},
    history::{RevertedMerge, Run, State, TaskHistory},
    message::{self, Message, MessageReading},
    name::{BranchName, Oid, RepoName, SessionId, TaskId},
    pipeline::Expense,
    process::shell_word,
};

/// An entry of the queue. It is serialised into git as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The task.
    pub task: TaskId,
    /// The task's name.
    pub name: String,
    /// The branch of the run that the task belongs to.
    pub scope: BranchName,
    /// The branch that it lands on.
    pub into: BranchName,
    /// The commit that lands.
    pub source: Oid,
    /// The tips of the task's branches in other repositories, which land with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub elsewhere: BTreeMap<RepoName, Oid>,
    /// The run's session.
    pub session: Option<SessionId>,
    /// How urgent it is.
    #[serde(default, deserialize_with = "lenient")]
    pub priority: Priority,
    /// When it was queued: seconds since 1970.
    pub added: i64,
    /// When the task was completed: seconds since 1970.
    pub finished: i64,
    /// The tasks that must land before it.
    #[serde(default)]
    pub needs: Vec<TaskId>,
    /// The phases whose own tests gate this landing. A ticket names phases and never commands, because anyone who can
    /// write a ref could have written the ticket. The commands come from the frozen plan.
    #[serde(default)]
    pub phases: Vec<TaskId>,
    /// Whether it may land although its task is not complete.
    #[serde(default)]
    pub forced: bool,
    /// Its state.
    #[serde(rename = "standing")]
    pub state: TicketState,
    /// Why it could not be judged when it was last tried. It waits, and is tried again.
    #[serde(default, deserialize_with = "read_optional_reason")]
    pub held: Option<HoldReason>,
    /// The results of agents' tries to resolve its conflict, oldest first.
    #[serde(default)]
    pub tries: Vec<String>,
    /// The resolution of its conflict: a commit that joins the source and a target.
    #[serde(default)]
    pub resolved: Option<Oid>,
    /// Who made the resolution. If an agent made a part of it, only the agent.
    #[serde(default)]
    pub resolved_by: Option<ResolvedBy>,
    /// Whether a person made a part of the resolution, also if an agent made another.
    #[serde(default)]
    pub has_persons_work: bool,
    /// What all tries of agents have cost.
    #[serde(default)]
    pub paid: Paid,
}

impl Ticket {
    /// A ticket for the run's own branch without dependencies, queued and completed at `now`.
    #[must_use]
    pub fn new(scope: BranchName, task: TaskId, source: Oid, now: i64) -> Self {
        Self {
            name: task.to_string(),
            task,
            into: scope.clone(),
            scope,
            source,
            elsewhere: BTreeMap::new(),
            session: None,
            priority: Priority::USUAL,
            added: now,
            finished: now,
            needs: Vec::new(),
            phases: Vec::new(),
            forced: false,
            state: TicketState::Waiting,
            held: None,
            tries: Vec::new(),
            resolved: None,
            resolved_by: None,
            has_persons_work: false,
            paid: Paid::default(),
        }
    }

    /// Who resolved its conflict, if it is resolved.
    #[must_use]
    pub fn resolver(&self) -> Option<&ResolvedBy> {
        self.resolved.and(self.resolved_by.as_ref())
    }

    /// Who resolved it after `by` has resolved another conflict on top. An agent's work stays marked as such, even if a
    /// person resolved something after it.
    #[must_use]
    pub fn resolved_too(&self, by: ResolvedBy) -> ResolvedBy {
        match (self.resolver(), by) {
            (Some(ResolvedBy::Agent(names)), ResolvedBy::Agent(name))
                if names.split(", ").all(|known| known != name) =>
            {
                ResolvedBy::Agent(format!("{names}, {name}"))
            }
            (Some(agents @ ResolvedBy::Agent(_)), _) => agents.clone(),
            (_, by) => by,
        }
    }

    /// The gate that a person's resolution failed, and how. The conflict is back then, although that person left nothing of
    /// it.
    #[must_use]
    pub fn failed_resolution(&self) -> Option<&str> {
        let is_of_person = self.resolved.is_none() && self.resolved_by == Some(ResolvedBy::Person);
        self.tries.last().filter(|_| is_of_person)?.lines().next()
    }

    /// A sentence about who resolved it.
    #[must_use]
    pub fn resolution(&self) -> Option<String> {
        self.resolver().map(|by| format!("its conflict was resolved by {}", by.words()))
    }

    /// The branch of its task.
    #[must_use]
    pub fn branch(&self) -> BranchName {
        self.scope.task_branch(&self.task)
    }

    /// The state in which only a person can help, if it is in one: its branch is gone, or its changes were merged and
    /// taken back. `tip` is the commit of its branch, if that exists.
    pub fn find_trouble(
        &self,
        repository: &Repository,
        run: &Run,
        tip: Option<Oid>,
    ) -> Result<Option<TicketState>, GitError> {
        let history = run.find(&self.task);
        if let Some(reverted) = history.and_then(|history| history.reverted.clone()) {
            return Ok(Some(TicketState::Reverted(reverted)));
        }
        if tip.is_some() || history.is_some_and(TaskHistory::has_landed) {
            return Ok(None);
        }
        // A ticket that was fetched from a remote has no branch here.
        Ok(Some(match OtherRun::find(repository, self, run)? {
            Some(other) => TicketState::Withheld { why: other.reason(self) },
            None => TicketState::Lost,
        }))
    }

    /// Why only a person can help, if that is so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &self.state {
            TicketState::Lost => Some(format!(
                "its branch '{}' is gone; the queue still has its commits, up to {}",
                self.branch(),
                self.source.short()
            )),
            TicketState::LostElsewhere { repo, branch, tip, .. } => {
                Some(format!("its branch '{branch}' in {repo} is gone; it was at {}", tip.short()))
            }
            TicketState::Reverted(reverted) => Some(reverted.words()),
            _ => None,
        }
    }

    /// The commands with which a person can help.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match &self.state {
            TicketState::Lost => Some(bring_back(&self.branch(), self.source)),
            TicketState::LostElsewhere { branch, tip, place, .. } => {
                let place = shell_word(&place.to_string_lossy());
                Some(format!("bring it back with: git -C {place} branch '{branch}' {tip}"))
            }
            TicketState::Reverted(reverted) => Some(reverted.advice(&self.task)),
            _ => None,
        }
    }
}

/// The command that creates a lost branch again.
#[must_use]
pub fn bring_back(branch: &BranchName, tip: Oid) -> String {
    format!("bring it back with: git branch '{branch}' {tip}")
}

/// Who resolved a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolvedBy {
    /// An agent, or several one after the other, by their names. A reviewer has approved the resolution.
    Agent(String),
    /// A person.
    Person,
}

impl ResolvedBy {
    /// The value of the trailer in the merge commit.
    #[must_use]
    pub fn trailer(&self) -> String {
        match self {
            Self::Agent(name) => format!("agent {name}"),
            Self::Person => "person".into(),
        }
    }

    /// A description for people.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Agent(name) => format!("the agent {name}"),
            Self::Person => "a person".into(),
        }
    }
}

/// The state of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum TicketState {
    /// It will be tried.
    Waiting,
    /// It has landed, but the checkout of its target has not been updated yet.
    Parked {
        /// Its merge commit.
        commit: Oid,
    },
    /// It cannot be merged.
    Conflict {
        /// The commit of the target that it was merged onto.
        onto: Oid,
        /// The conflicts.
        conflicts: Vec<MergeConflict>,
        /// Whether a person has to resolve it.
        escalated: bool,
    },
    /// A gate failed.
    Red {
        /// The gate.
        gate: String,
        /// The commit that was tested.
        commit: Oid,
        /// The log file of the gate.
        log: String,
        /// The end of the log.
        tail: String,
        /// The tasks together with which the gate fails, although it passes without them.
        with: Vec<TaskId>,
        /// Whether the gate passed, but ran fewer tests than before. It is tried again when that is allowed.
        #[serde(default)]
        ran_fewer: bool,
        /// What the sandbox refused to the gate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denied: Option<String>,
    },
    /// It must not land at the moment.
    Withheld {
        /// The reason.
        #[serde(deserialize_with = "read_reason")]
        why: WithheldReason,
    },
    /// Its branch is gone, and its work has not landed. The ticket keeps the commits.
    Lost,
    /// Its branch in another repository is gone, and its work there has not landed.
    LostElsewhere {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
        /// The last commit of the task there.
        tip: Oid,
        /// The main checkout of the repository.
        place: PathBuf,
    },
    /// A person merged it, and its changes were taken back.
    Reverted(RevertedMerge),
}

impl TicketState {
    /// The name of the state.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Parked { .. } => "parked",
            Self::Conflict { escalated: true, .. } => "escalated",
            Self::Conflict { .. } => "conflict",
            Self::Red { .. } => "red",
            Self::Withheld { .. } => "withheld",
            Self::Lost | Self::LostElsewhere { .. } => "lost",
            Self::Reverted(_) => "reverted",
        }
    }
}

/// The priority of a ticket. 0 is the most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Priority(pub u8);

impl Priority {
    /// The default.
    pub const USUAL: Self = Self(2);
    /// The least urgent.
    pub const LOWEST: Self = Self(9);

    /// The priority after a wait. Each [`STEP`](Self::STEP) makes a ticket more urgent by one, so that the oldest lands
    /// within a bounded time whatever is queued after it.
    #[must_use]
    pub fn after(self, seconds: i64) -> Self {
        let steps = u8::try_from((seconds / Self::STEP).max(0)).unwrap_or(u8::MAX);
        Self(self.0.saturating_sub(steps))
    }

    /// The length of a step in seconds.
    pub const STEP: i64 = 600;
}

impl Default for Priority {
    fn default() -> Self {
        Self::LOWEST
    }
}

/// An invalid priority becomes the lowest, never the highest.
fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Priority, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok()).map(Priority);
    Ok(number.map_or(Priority::LOWEST, |priority| priority.min(Priority::LOWEST)))
}

/// Costs are kept in whole numbers, so that tickets can be compared.
const MICRO: f64 = 1_000_000.0;

/// The cost of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    /// Tokens read and written; `None` if no agent reported them.
    tokens: Option<(u64, u64)>,
    /// Millionths of a US dollar; `None` if no agent reported a cost.
    micro_dollars: Option<u64>,
    milliseconds: u64,
}

impl Paid {
    /// Adds the cost of another call.
    #[must_use]
    pub fn and(self, more: Expense) -> Self {
        let mut all = Expense::from(self);
        all.add(more.usage, more.time);
        Self::from(all)
    }

    /// The expense to record with a landing; `None` if no agent was called.
    #[must_use]
    pub fn expense(self) -> Option<Expense> {
        (self != Self::default()).then(|| self.into())
    }
}

impl From<Expense> for Paid {
    fn from(expense: Expense) -> Self {
        let cost = expense.usage.and_then(|usage| usage.cost);
        Self {
            tokens: expense.usage.map(|usage| (usage.tokens_in, usage.tokens_out)),
            micro_dollars: cost.map(|cost| (cost * MICRO).round() as u64),
            milliseconds: u64::try_from(expense.time.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<Paid> for Expense {
    fn from(paid: Paid) -> Self {
        let usage = paid.tokens.map(|(tokens_in, tokens_out)| Usage {
            tokens_in,
            tokens_out,
            cost: paid.micro_dollars.map(|cost| cost as f64 / MICRO),
        });
        Self { usage, time: Duration::from_millis(paid.milliseconds) }
    }
}

/// How many commits of a task are looked at to find the one that it started from.
const MAX_COMMITS: usize = 1000;

/// The run that completed a ticket, if it is not the run that the ticket is to land in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherRun {
    /// The commit of that run that the task started from.
    pub base: Oid,
    /// Whether that commit is no longer in the target.
    pub is_gone: bool,
    /// Whether the target was once at that commit, in this clone.
    was_here: bool,
    /// Whether the target has a run.
    has_run: bool,
}

impl OtherRun {
    /// Finds it by the session that the ticket's commit names.
    pub fn find(repository: &Repository, ticket: &Ticket, run: &Run) -> Result<Option<Self>, GitError> {
        let Some((last, _)) = read(repository, ticket.source)? else { return Ok(None) };
        let Some(session) = last.trailers.session() else { return Ok(None) };
        if run.start.as_ref().is_some_and(|start| start.session == session) {
            return Ok(None);
        }
        let base = find_base(repository, ticket)?;
        let is_gone = run.scope.tip.map(|tip| repository.is_ancestor(base, tip)).transpose()? != Some(true);
        // A remote may have put anything before the start of its run, so a merge of that is not advised.
        let was_here = is_gone && repository.is_in_reflog(&ticket.into.to_ref(), base)?;
        Ok(Some(Self { base, is_gone, was_here, has_run: run.start.is_some() }))
    }

    /// Why the ticket does not land.
    #[must_use]
    pub fn reason(&self, ticket: &Ticket) -> WithheldReason {
        let into = ticket.into.clone();
        match (self.is_gone, self.was_here) {
            (true, true) => WithheldReason::RunIsGone { into },
            (true, false) => WithheldReason::ForeignRun { into },
            (false, _) => WithheldReason::EarlierRun { into },
        }
    }

    /// What a person can do. Two runs on two sides of a merge cannot be continued, so a run is brought back only where
    /// there is no other.
    #[must_use]
    pub fn advice(&self, ticket: &Ticket) -> String {
        if ticket.into != ticket.scope {
            return ticket.advice_to_land_at_home();
        }
        let give_up = format!("git arborist merge drop {}", ticket.task);
        match self.was_here && !self.has_run {
            true => format!(
                "to bring that run back, run: git merge {}\nor remove the task from the queue: {give_up}",
                self.base.short()
            ),
            false => format!("to remove the task from the queue, run: {give_up}"),
        }
    }
}

impl Ticket {
    /// How a task that was queued for another branch lands on that of its run.
    #[must_use]
    pub fn advice_to_land_at_home(&self) -> String {
        let Self { task, scope, .. } = self;
        format!("to land it on '{scope}' instead, run: git arborist merge {task} --scope {scope}")
    }

    /// Whether it failed a gate when it was landed by force, although its task is not complete. The failure is what the
    /// user has to know then, as long as the branch is the one that was tested and the task was not reset.
    #[must_use]
    pub fn has_failed_by_force(&self, run: &Run, tip: Option<Oid>) -> bool {
        let is_reset = || {
            let history = run.find(&self.task);
            let was_at_work = history.is_some_and(|history| history.state.commit.is_some());
            was_at_work && run.state_of(&self.task) == State::Pending
        };
        let is_red = matches!(self.state, TicketState::Red { .. });
        is_red && self.forced && tip == Some(self.source) && self.is_incomplete(run) && !is_reset()
    }

    /// Whether its task is not complete, so that only a command with `--force` lands it.
    #[must_use]
    pub fn is_incomplete(&self, run: &Run) -> bool {
        run.state_of(&self.task) != State::Complete
    }

    /// Why it must not land, as far as its branch, its task and its run tell. `tip` is the commit of its branch.
    pub fn find_withheld(
        &self,
        repository: &Repository,
        run: &Run,
        tip: Option<Oid>,
    ) -> Result<Option<WithheldReason>, GitError> {
        if let Some(tip) = tip
            && tip != self.source
            && !repository.is_ancestor(self.source, tip)?
        {
            return Ok(Some(WithheldReason::Rewritten));
        }
        if let Some(other) = OtherRun::find(repository, self, run)? {
            return Ok(Some(other.reason(self)));
        }
        let state = run.state_of(&self.task);
        if state == State::Complete {
            return Ok(None);
        }
        let forced = self.forced.then(|| self.task.clone());
        Ok(Some(WithheldReason::Incomplete { state: state.as_str().to_owned(), forced }))
    }
}

/// The commit before the first one of the ticket's task.
fn find_base(repository: &Repository, ticket: &Ticket) -> Result<Oid, GitError> {
    let mut base = ticket.source;
    for _ in 0..MAX_COMMITS {
        match read(repository, base)? {
            Some((message, Some(parent))) if message.subject.task.as_ref() == Some(&ticket.task) => {
                base = parent;
            }
            _ => break,
        }
    }
    Ok(base)
}

/// A commit of a run, and its first parent.
fn read(repository: &Repository, commit: Oid) -> Result<Option<(Message, Option<Oid>)>, GitError> {
    let commits = repository.load_commits(&[commit])?;
    let Some(commit) = commits.first() else { return Ok(None) };
    Ok(match message::read(commit.message()) {
        MessageReading::WellFormed(message) => Some((*message, commit.parents().next())),
        _ => None,
    })
}
