//! The branch that tasks land on, landings that are parked because its checkout has changes in the way, and commits on it
//! that this process did not make.

use std::{collections::HashSet, ffi::OsStr, fmt, os::unix::ffi::OsStrExt, path::Path};

use super::{Parking, QueueError, git_backend::KNOWN_PARKINGS};
use crate::{
    git::{
        BranchUse, FastForward, OperationInProgress, RawCommit, Ref, RefMove, Repository, TreeChange,
        note_landing,
    },
    history::Event,
    message::{first_of, visible},
    name::{BranchName, Oid, SessionId},
    process::shell_word,
};

/// The position of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetTip {
    /// The commit of the branch.
    pub branch: Oid,
    /// The parked landing on top of it.
    pub parked: Option<Oid>,
    /// The commit of the landing ref, whether it still is on top of the branch or not.
    landing_ref: Option<Oid>,
}

impl TargetTip {
    /// The commit that the next merge is based on.
    #[must_use]
    pub fn tip(&self) -> Oid {
        self.parked.unwrap_or(self.branch)
    }

    /// The position, ignoring the parked landing.
    pub(super) fn without_parked(self) -> Self {
        Self { parked: None, ..self }
    }
}

/// The result of moving a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MoveResult {
    /// The branch was moved.
    Done,
    /// It must not be moved.
    Refused(Parking),
    /// It was not at the expected commit.
    TargetChanged,
}

/// What is in the way of a parked landing, in the checkout of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkingObstacle {
    /// An operation that is not finished, such as a merge.
    Operation(&'static str),
    /// Files with conflicts that are not resolved. git updates no checkout that has them.
    Unmerged(Vec<String>),
    /// Files that differ from the branch, or are not tracked.
    Files(Vec<String>),
}

impl ParkingObstacle {
    /// What a person does before `run` can land it; `None` if the changes can be stashed.
    #[must_use]
    pub fn advice_to_finish(&self, run: &str) -> Option<String> {
        match self {
            Self::Operation(what) => {
                Some(format!("finish or cancel the {what}, as 'git status' says, then run: {run}"))
            }
            Self::Unmerged(files) => {
                Some(format!("{}\nthen run: {run}", advice_to_commit_resolved("", files)))
            }
            Self::Files(_) => None,
        }
    }

    /// Whether the changes can be stashed.
    #[must_use]
    pub fn can_be_stashed(&self) -> bool {
        matches!(self, Self::Files(_))
    }
}

impl fmt::Display for ParkingObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(what) => write!(f, "a {what} is not finished"),
            Self::Unmerged(files) => f.write_str(&words_on_unmerged(files)),
            Self::Files(files) => {
                write!(f, "changed files are in the way ({})", first_of(files, MAX_FILES))
            }
        }
    }
}

/// How many files a message names.
const MAX_FILES: usize = 3;

/// A clause about files with conflicts that are not resolved.
#[must_use]
pub fn words_on_unmerged(files: &[String]) -> String {
    let have = if files.len() == 1 { "has" } else { "have" };
    format!("{} {have} unresolved conflicts", first_of(files, MAX_FILES))
}

/// How to commit files whose conflicts a person has resolved. `at` is git's option for the folder.
#[must_use]
pub fn advice_to_commit_resolved(at: &str, files: &[String]) -> String {
    let named: String = files.iter().map(|file| format!(" {}", shell_word(file))).collect();
    let named = if files.len() > MAX_FILES { " -u" } else { &named };
    format!("resolve the conflicts, then commit: git{at} add{named} && git{at} commit -m 'Resolve conflicts'")
}

/// How often a move is tried if the checkouts of the branch change meanwhile.
const MAX_MOVE_TRIES: usize = 5;

/// A branch that tasks land on.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    repository: &'a Repository,
    into: &'a BranchName,
}

impl<'a> Target<'a> {
    /// The branch `into`.
    #[must_use]
    pub fn new(repository: &'a Repository, into: &'a BranchName) -> Self {
        Self { repository, into }
    }

    /// Finds its position. A parked landing counts only while it is on top of the branch.
    pub fn find(&self) -> Result<Option<TargetTip>, QueueError> {
        let mut refs = Vec::new();
        for name in [self.into.to_ref(), self.into.landing_ref()] {
            refs.extend(self.repository.find_ref(&name)?.map(|target| Ref { name, target }));
        }
        self.find_among(&refs)
    }

    /// Like [`Self::find`], among refs that were listed before.
    pub(super) fn find_among(&self, refs: &[Ref]) -> Result<Option<TargetTip>, QueueError> {
        let find = |name: String| refs.iter().find(|found| found.name == name).map(|found| found.target);
        let Some(branch) = find(self.into.to_ref()) else {
            return Ok(None);
        };
        let parked = self.repository.find_landing(refs, self.into, branch)?;
        Ok(Some(TargetTip { branch, parked, landing_ref: find(self.into.landing_ref()) }))
    }

    /// Its position; an error if the branch does not exist.
    pub fn require(&self) -> Result<TargetTip, QueueError> {
        self.find()?.ok_or_else(|| QueueError::NoTarget(self.into.clone()))
    }

    /// Deletes a landing ref that is no longer on top of the branch. Commits that the branch lacks are saved; their
    /// tickets will be merged again.
    pub(super) fn clear_stale(&self, position: &TargetTip) -> Result<Option<String>, QueueError> {
        let (Some(parked), None) = (position.landing_ref, position.parked) else {
            return Ok(None);
        };
        let mut kept = None;
        if !self.repository.is_ancestor(parked, position.branch)? {
            let saved = self.into.saved_landing_ref(parked);
            self.repository.save_commit(&saved, parked)?;
            kept = Some(saved);
        }
        let name = self.into.landing_ref();
        let drop = RefMove { name: &name, new: None, old: Some(parked) };
        self.repository.move_refs(&[drop], "arborist: no longer parked")?;
        Ok(kept)
    }

    /// Moves the branch, and updates its checkout if that touches none of the user's changes.
    pub(super) fn advance(&self, from: Oid, to: Oid) -> Result<MoveResult, QueueError> {
        for _ in 0..MAX_MOVE_TRIES {
            let place = match self.repository.usage(self.into, to)? {
                BranchUse::Free => return self.swap(from, to),
                BranchUse::Busy(why) => return Ok(MoveResult::Refused(self.parking(&why, None, None))),
                BranchUse::CheckedOut(place) => place,
            };
            match self.repository.fast_forward(&place, self.into, from, to)? {
                FastForward::Done => return Ok(MoveResult::Done),
                _ if self.require()?.branch != from => return Ok(MoveResult::TargetChanged),
                FastForward::Refused(refusal) => {
                    // git's words name only one file, and in its own terms.
                    let obstacle = Self::find_obstacle_at(&place, from, to).ok().flatten();
                    let why = obstacle.as_ref().map_or(refusal, ToString::to_string);
                    return Ok(MoveResult::Refused(self.parking(&why, Some(&place), obstacle)));
                }
                FastForward::BranchChanged => {}
            }
        }
        Ok(MoveResult::Refused(self.parking("its checkouts keep changing", None, None)))
    }

    /// Moves the branch forward to a commit that other workers have landed. If its checkout does not permit that, the
    /// commit is parked.
    pub fn follow(&self, to: Oid) -> Result<(), QueueError> {
        let position = self.require()?;
        if self.repository.is_ancestor(to, position.tip())? {
            return Ok(());
        }
        if !self.repository.is_ancestor(position.tip(), to)? {
            return Err(QueueError::Diverged {
                into: self.into.clone(),
                here: position.tip(),
                there: to,
                remote: None,
            });
        }
        let line = ["--first-parent".to_owned(), to.to_string(), format!("^{}", position.tip())];
        for commit in self.repository.stream_commits(&line)? {
            note_landing(commit?.id);
        }
        match self.advance(position.branch, to)? {
            MoveResult::Done => Ok(()),
            MoveResult::TargetChanged => Err(QueueError::Changing(self.into.clone())),
            MoveResult::Refused(_) => {
                KNOWN_PARKINGS.add(to);
                self.park(&position, to)
            }
        }
    }

    fn swap(&self, from: Oid, to: Oid) -> Result<MoveResult, QueueError> {
        let name = self.into.to_ref();
        let swap = RefMove { name: &name, new: Some(to), old: Some(from) };
        match self.repository.move_refs(&[swap], "arborist: land") {
            Ok(()) => Ok(MoveResult::Done),
            Err(_) if self.require()?.branch != from => Ok(MoveResult::TargetChanged),
            Err(error) => Err(error.into()),
        }
    }

    /// What keeps the target from moving to its parked landing now. `None` if nothing is parked, or nothing is found.
    pub fn find_obstacle(&self) -> Result<Option<ParkingObstacle>, QueueError> {
        let position = self.find()?.and_then(|position| Some((position.branch, position.parked?)));
        let Some((from, to)) = position else { return Ok(None) };
        match self.repository.usage(self.into, to)? {
            BranchUse::CheckedOut(place) => Self::find_obstacle_at(&place, from, to),
            _ => Ok(None),
        }
    }

    /// Why the branch and its checkout cannot move now to `commit` with this tree, and what is in the way, if it was
    /// found; `None` if they can.
    pub(super) fn find_obstacle_to(
        &self,
        commit: Oid,
        tree: Oid,
    ) -> Result<Option<(String, Option<ParkingObstacle>)>, QueueError> {
        match self.repository.usage(self.into, commit)? {
            BranchUse::Free => Ok(None),
            BranchUse::Busy(why) => Ok(Some((why, None))),
            BranchUse::CheckedOut(place) => {
                let obstacle = Self::find_obstacle_at(&place, self.require()?.branch, tree)?;
                Ok(obstacle.map(|obstacle| (obstacle.to_string(), Some(obstacle))))
            }
        }
    }

    /// What keeps a checkout from moving from one commit to another, or to a tree.
    fn find_obstacle_at(place: &Path, from: Oid, to: Oid) -> Result<Option<ParkingObstacle>, QueueError> {
        let checkout = Repository::open_at(place)?;
        if let Some(operation) = OperationInProgress::find_operation(&checkout.git_dir) {
            return Ok(Some(ParkingObstacle::Operation(operation.what)));
        }
        let unmerged = checkout.unmerged_paths()?;
        if !unmerged.is_empty() {
            return Ok(Some(ParkingObstacle::Unmerged(unmerged)));
        }
        let uncommitted: HashSet<Vec<u8>> =
            checkout.changed_paths()?.into_iter().map(|changed| changed.path).collect();
        let is_file = |path: &[u8]| place.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
        // git does not list ignored files, nor the files in an untracked folder.
        let is_in_the_way = |change: &TreeChange| {
            uncommitted.contains(&change.path) || (change.before.is_none() && is_file(&change.path))
        };
        let changes = checkout.changes(checkout.tree_of(from)?, checkout.tree_of(to)?)?;
        let files: Vec<String> =
            changes.iter().filter(|change| is_in_the_way(change)).map(TreeChange::shown).collect();
        Ok((!files.is_empty()).then_some(ParkingObstacle::Files(files)))
    }

    /// Describes why a landing is parked. Git's own hints are removed; our command replaces them.
    fn parking(&self, why: &str, place: Option<&Path>, obstacle: Option<ParkingObstacle>) -> Parking {
        let refusal: Vec<&str> = why.lines().filter(|line| !line.starts_with("hint:")).collect();
        let why = refusal.join("\n").trim().to_owned();
        let at = match place {
            Some(place) if place != self.repository.top() => format!(" -C '{}'", place.display()),
            _ => String::new(),
        };
        let way = match place {
            // To stash an unfinished merge would end it, and git does not stash unresolved conflicts. The queue names
            // them until they are finished.
            Some(_) if obstacle.as_ref().is_none_or(ParkingObstacle::can_be_stashed) => {
                UnparkWay::Stash { at, branch: self.into.clone() }
            }
            _ => UnparkWay::Run("git arborist merge run".into()),
        };
        Parking { why, way, obstacle }
    }

    /// Parks `to` for the branch.
    pub(super) fn park(&self, position: &TargetTip, to: Oid) -> Result<(), QueueError> {
        let name = self.into.landing_ref();
        let park = RefMove { name: &name, new: Some(to), old: position.landing_ref };
        Ok(self.repository.move_refs(&[park], "arborist: parked")?)
    }
}

/// How a parked landing is brought into the checkout of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnparkWay {
    /// Changed files are stashed first.
    Stash {
        /// git's option for the folder, with a space before it, or empty.
        at: String,
        /// The target.
        branch: BranchName,
    },
    /// The queue lands it, with this command.
    Run(String),
}

impl UnparkWay {
    /// The command.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Stash { at, branch } => land_after_stash(at, branch),
            Self::Run(command) => command.clone(),
        }
    }

    /// The command that gets the stashed changes back after it; see [`GET_BACK`].
    #[must_use]
    pub fn get_back(&self) -> Option<String> {
        match self {
            Self::Stash { at, .. } => Some(format!("git{at} stash pop")),
            Self::Run(_) => None,
        }
    }
}

/// What to do after [`land_after_stash`]. It is a separate command, because it fails if it leaves conflicts.
pub const GET_BACK: &str =
    "then get your changes back (they conflict where the landing changed the same lines): git stash pop";

/// The command that lands a parked landing in a checkout with changed files. Untracked files can be in the way too.
/// They are added before they are stashed: `git stash pop` merges an added file with the landed one, but refuses an
/// untracked one. `at` is git's option for the folder. The changes are in a stash then; see [`GET_BACK`].
fn land_after_stash(at: &str, branch: &BranchName) -> String {
    let landing = branch.landing_ref();
    format!("git{at} add -A && git{at} stash && git{at} merge --ff-only --no-overwrite-ignore {landing}")
}

/// How a person can land what is parked for a branch. `run` is the command that lands the queue.
#[must_use]
pub fn advice_to_unpark(branch: &BranchName, obstacle: Option<&ParkingObstacle>, run: &str) -> String {
    match obstacle.and_then(|obstacle| obstacle.advice_to_finish(run)) {
        Some(advice) => advice,
        None => format!(
            "stash your changes and update the checkout of {branch}: {}\n{GET_BACK}\nor, instead of stashing your changes, commit them and run: {run}",
            land_after_stash("", branch)
        ),
    }
}

/// How many commits are named in a message.
const MAX_COMMITS: usize = 10;

/// Commits on a target that this process did not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCommits {
    /// A sentence about them.
    pub words: String,
    /// All of them, with their subjects.
    pub commits: Vec<(Oid, String)>,
}

/// Takes note of what others committed to a target since this process last looked or moved it: the target belongs to the
/// user too, and their commits are built upon. A target that lost commits is an error, which a person has to handle.
/// Commits that claim to be this run's are removed, because no gate of this run has tested them.
pub fn accept_or_remove_others_commits(
    repository: &Repository,
    (into, scope): (&BranchName, &BranchName),
    session: Option<&SessionId>,
) -> Result<Vec<ForeignCommits>, QueueError> {
    let mut described = Vec::new();
    for (from, to) in repository.take_moves_by_others(&into.to_ref(), scope)? {
        if !repository.is_ancestor(from, to)? {
            return Err(QueueError::Rewound { into: into.clone(), from, to });
        }
        let commits = commits_between(repository, into, scope, from, to)?;
        // A commit that names no session would count as the run's as well.
        let is_claim = |commit: &&RawCommit| {
            let event = Event::of(commit).filter(|event| event.branch() == scope);
            event.is_some_and(|event| event.session().is_none() || event.session().as_ref() == session)
        };
        if let Some(forged) = commits.iter().find(is_claim) {
            let done = repository.remove_forged_commits(&into.to_ref(), scope, from, to)?;
            let done = done.map(|done| format!(": {done}")).unwrap_or_default();
            return Err(QueueError::Forged { into: into.clone(), commit: forged.id, done });
        }
        described.extend(words_on(into, &commits));
    }
    Ok(described)
}

/// The new commits of a target, except those on the run's task branches or parked for it: they are the run's own work,
/// even if another process merged them.
fn commits_between(
    repository: &Repository,
    into: &BranchName,
    scope: &BranchName,
    from: Oid,
    to: Oid,
) -> Result<Vec<RawCommit>, QueueError> {
    let mut revisions = vec![to.to_string(), format!("^{from}")];
    // A landing that another process both parked and brought up is not the run's own.
    let parked = repository.find_ref(&into.landing_ref())?.filter(|parked| KNOWN_PARKINGS.has(parked));
    revisions.extend(parked.map(|parked| format!("^{parked}")));
    let branches = repository.list_refs(&[&scope.task_refs()])?;
    revisions.extend(branches.iter().map(|branch| format!("^{}", branch.target)));
    let commits: Result<Vec<RawCommit>, _> = repository.stream_commits(&revisions)?.collect();
    Ok(commits?)
}

fn words_on(into: &BranchName, commits: &[RawCommit]) -> Option<ForeignCommits> {
    if commits.is_empty() {
        return None;
    }
    let subject = |commit: &RawCommit| {
        let message = String::from_utf8_lossy(commit.message()).into_owned();
        (commit.id, visible(message.lines().next().unwrap_or_default()))
    };
    let commits: Vec<(Oid, String)> = commits.iter().map(subject).collect();
    let shown = commits.iter().map(|(commit, subject)| format!("{} {subject}", commit.short()));
    let mut shown: Vec<String> = shown.take(MAX_COMMITS).collect();
    shown.extend((commits.len() > MAX_COMMITS).then(|| format!("and {} more", commits.len() - MAX_COMMITS)));
    let words = format!("'{into}' has commits that this run did not make: {}", shown.join(", "));
    Some(ForeignCommits { words, commits })
}
