//! The other repositories of a session: the commits that turns made there, their state right after one of its turns, and
//! how it is restored. Repositories share no clock, so the recorded turns and steps tell which commits existed then.

use std::{cell::OnceCell, collections::HashSet};

use arborist_core::{
    failure::{Exit, Failure},
    git::{RefMove, Repository},
    history::{BROUGHT_BACK, Event, Run},
    message::{Status, visible},
    name::{Attempt, BranchName, Oid, PipelineName, RepoName, SessionId, TaskId},
    process::Cancel,
    session::{OtherCommit, RepositoryStart, SessionStart, StoredRecord, Trail, TrailStep, Turn, turn_of},
    settings::Settings,
    workspace::RepoSection,
    worktree::{Pool, WorktreeOptions},
};

use super::{
    document::OtherPatchDocument,
    moment::merge_at,
    open::OpenSessions,
    restore::{Past, bring_back, restore},
    show::{patch_of, start_in},
};
use crate::ui::Ui;

/// Another repository, and the position of the session's branch there.
pub(super) struct RepoAtTurn {
    section: RepoSection,
    pub(super) repository: Repository,
    branch: BranchName,
    pub(super) point: Oid,
}

/// The text before the number of the last turn in a commit that restores an earlier one.
const LAST_TURN: &str = "; the last was turn ";

/// What had happened in the plan's repository.
struct Known {
    /// Since an earlier turn was last restored.
    current: HashSet<Key>,
    /// All of it.
    all: HashSet<Key>,
    /// What had landed in other repositories.
    landed: HashSet<(RepoName, Oid)>,
    /// What has landed there up to now.
    landings: HashSet<(RepoName, Oid)>,
    /// The turn; `None` at the start of the session.
    turn: Option<Turn>,
}

type Key = (TaskId, Status, Option<Attempt>);

/// The message of a commit that restores a turn of a session, at `head`.
pub(super) fn words_on(newest: &StoredRecord, turn: u32, head: Oid) -> String {
    let (session, last) = (&newest.record.session, newest.record.totals.turns);
    format!("turn {turn} of session {session}, {head}{LAST_TURN}{last}")
}

/// Whether a commit restores a turn. The user can also reset a task.
fn brings_back(event: &Event) -> bool {
    let is_it = || event.body().sections.iter().any(|section| section.heading == BROUGHT_BACK);
    event.status() == Status::Reset && is_it()
}

/// The last turn before an earlier one was restored.
fn last_turn(event: &Event) -> Option<u32> {
    let sections = event.body().sections.into_iter();
    sections.filter_map(|section| section.text.trim().rsplit_once(LAST_TURN)?.1.parse().ok()).next()
}

/// The repositories of the session of `newest`, in the state when it was at `point`, right after a turn.
pub(super) fn at(
    opened: &OpenSessions,
    newest: &StoredRecord,
    point: (u32, Oid),
) -> Result<Vec<RepoAtTurn>, Failure> {
    match seen_at(opened, newest, point.0, point.1)? {
        (others, missing) if missing.is_empty() => Ok(others),
        (_, missing) => Err(not_here(&missing[0])),
    }
}

/// Like [`at`], but returns the names of repositories that are missing here instead of failing.
pub(super) fn seen_at(
    opened: &OpenSessions,
    newest: &StoredRecord,
    turn: u32,
    point: Oid,
) -> Result<(Vec<RepoAtTurn>, Vec<RepoName>), Failure> {
    let workspace = opened.workspace(&Cancel::new())?;
    let (mut others, mut missing) = (Vec::new(), Vec::new());
    if workspace.sections.len() == 1 {
        return Ok((others, missing));
    }
    let (session, pipeline) = (&newest.record.session, PipelineName::new(&newest.record.context.pipeline));
    let known = known_at(opened, newest, turn, point)?;
    let first = opened.session_reader().start_of(newest)?;
    let bases = &start_in(&first)?.repositories;
    for section in workspace.sections.iter().filter(|section| !section.is_main) {
        let branch = section.session_branch(&pipeline, session)?;
        let Some(repository) = workspace.open(section)? else {
            missing.push(section.name.clone());
            continue;
        };
        let Some(tip) = repository.find_branch(&branch)? else {
            continue;
        };
        let base = bases.iter().find(|start| start.name == section.name.as_str()).map(|start| start.base);
        let line = Trail::scan_line(&repository, &branch, base, tip)?;
        let on_line: HashSet<Oid> = line.iter().map(|step| step.commit).collect();
        let point = match stood_at(&section.name, line, turn, &known) {
            Some(stood) => {
                let mut trail = Trail::scan(&repository, &branch, base, tip)?;
                trail.events.retain(|event| !on_line.contains(&event.commit));
                let lane = find_lane_commit(&section.name, &repository, &trail, turn, &known)?;
                Some(join(&repository, (stood, lane), (turn, &newest.record.session))?)
            }
            None => None,
        };
        others.extend(point.map(|point| RepoAtTurn { section: section.clone(), repository, branch, point }));
    }
    Ok((others, missing))
}

/// Checks that everything that the session did in other repositories is here, so that it can be replayed.
pub(super) fn require_all(
    opened: &OpenSessions,
    newest: &StoredRecord,
    start: &SessionStart,
) -> Result<(), Failure> {
    let workspace = opened.workspace(&Cancel::new())?;
    for RepositoryStart { name, branch, .. } in start.repositories.iter().skip(1) {
        let Some(section) = workspace.find(name).filter(|section| !section.is_main) else {
            let session = &newest.record.session;
            let words = format!(
                "session '{session}' worked in the repository '{name}', which the workspace does not have"
            );
            let hint = format!("say where it is: [workspace.repos.{name}] in .arborist/config.toml");
            return Err(Failure::new(Exit::Person, words).hint(hint));
        };
        let repository = workspace.open(section)?.ok_or_else(|| not_here(&section.name))?;
        if repository.find_branch(branch)?.is_none() {
            let words = format!(
                "the repository '{name}' has no branch '{branch}': the session's work there cannot be replayed"
            );
            let hint =
                "restore it from its remote or with 'git arborist cleanup restore', or leave --offline out";
            return Err(Failure::new(Exit::Person, words).hint(hint));
        }
    }
    Ok(())
}

fn not_here(name: &RepoName) -> Failure {
    let words = format!("the repository '{name}', in which the session may have worked, is not here");
    Failure::new(Exit::Person, words).hint("clone it first: git arborist workspace sync")
}

fn known_at(opened: &OpenSessions, newest: &StoredRecord, turn: u32, point: Oid) -> Result<Known, Failure> {
    let base = opened.session_reader().start_of(newest)?.record.context.head;
    let before: HashSet<Oid> = opened.repository.list_between(&[point], &[base])?.into_iter().collect();
    let run = opened.run_at(newest, point)?;
    let turn = match turn {
        0 => None,
        _ => opened.session_reader().turn(newest, turn)?.record.turn().cloned(),
    };
    let landings = landings_of(&opened.run_at(newest, newest.record.context.tip)?, |_| true);
    let landed = landings_of(&run, |event| before.contains(&event.commit));
    let mut known = Known { current: HashSet::new(), all: HashSet::new(), landed, landings, turn };
    for task in &run.tasks {
        let events: Vec<&Event> = task.events.iter().filter(|event| before.contains(&event.commit)).collect();
        let from = events.iter().rposition(|event| brings_back(event)).unwrap_or(0);
        known.current.extend(events[from..].iter().copied().filter_map(key_of));
        known.all.extend(events.into_iter().filter_map(key_of));
    }
    Ok(known)
}

/// What the landings of a run brought to other repositories.
fn landings_of(run: &Run, is_wanted: impl Fn(&Event) -> bool) -> HashSet<(RepoName, Oid)> {
    let merges = run.tasks.iter().flat_map(|task| &task.events);
    let merges = merges.filter(|event| event.status() == Status::Merge && is_wanted(event));
    merges.flat_map(|event| event.trailers.landed_in().0).collect()
}

fn key_of(event: &Event) -> Option<Key> {
    Some((event.task()?.clone(), event.status(), event.attempt()))
}

fn is_in(keys: &HashSet<Key>, event: &Event) -> bool {
    key_of(event).is_some_and(|key| keys.contains(&key))
}

fn was_there(event: &Event, turn: u32, known: &Known) -> bool {
    match event.status() {
        Status::RunStart => true,
        Status::Turn => turn_of(event).is_some_and(|number| number <= turn),
        Status::Reset => false,
        _ => is_in(&known.current, event),
    }
}

/// The last commit that the task of the turn had made by then in its lane there. `trail` has what is on no first-parent
/// line. The record of the turn names its commit; others with the same status may have been made when it was repeated.
fn find_lane_commit(
    name: &RepoName,
    repository: &Repository,
    trail: &Trail,
    turn: u32,
    known: &Known,
) -> Result<Option<Oid>, Failure> {
    let Some(record) = &known.turn else { return Ok(None) };
    let named = record.others.iter().find(|other| other.repository == name.as_str());
    let named = named.map(|other| other.commit);
    let is_its = |event: &&Event| event.task() == Some(&record.node) && was_there(event, turn, known);
    for event in trail.events.iter().rev().filter(is_its) {
        match named {
            Some(named) if !repository.is_ancestor(named, event.commit)? => {}
            _ => return Ok(Some(event.commit)),
        }
    }
    Ok(None)
}

/// The last commit of a session's branch that existed right after a turn: the one before the first that did not. If an
/// earlier turn had been restored by then, everything before that existed, whatever has been repeated since. `None` if
/// the session had not started there.
fn stood_at(name: &RepoName, line: Vec<TrailStep>, turn: u32, known: &Known) -> Option<Oid> {
    let is_landing = |commit: Oid| known.landings.contains(&(name.clone(), commit));
    let steps: Vec<TrailStep> =
        line.into_iter().filter(|step| step.event.is_some() || is_landing(step.commit)).collect();
    let was_brought_back = |step: &TrailStep| {
        let was_before =
            |event: &Event| last_turn(event).map_or_else(|| is_in(&known.all, event), |last| last < turn);
        step.event.as_ref().is_some_and(|event| brings_back(event) && was_before(event))
    };
    let is_there = |step: &&TrailStep| match &step.event {
        Some(event) => was_there(event, turn, known),
        None => known.landed.contains(&(name.clone(), step.commit)),
    };
    let from = steps.iter().rposition(was_brought_back).map_or(0, |at| at + 1);
    let later = steps[from..].iter().take_while(is_there).count();
    let last = (from + later).checked_sub(1)?;
    Some(steps[last].commit)
}

/// A commit that has what had landed there by then, and the work of the turn's task.
fn join(
    repository: &Repository,
    (stood, lane): (Oid, Option<Oid>),
    (turn, session): (u32, &SessionId),
) -> Result<Oid, Failure> {
    let Some(lane) = lane else { return Ok(stood) };
    if repository.is_ancestor(lane, stood)? {
        return Ok(stood);
    }
    if repository.is_ancestor(stood, lane)? {
        return Ok(lane);
    }
    merge_at(repository, stood, lane, turn, session)
}

impl RepoAtTurn {
    /// Its name.
    pub(super) fn name(&self) -> &RepoName {
        &self.section.name
    }

    /// Creates the branch of another session there.
    pub(super) fn fork(
        &self,
        pipeline: &PipelineName,
        session: &SessionId,
    ) -> Result<RepositoryStart, Failure> {
        let branch = self.section.session_branch(pipeline, session)?;
        let made = RefMove { name: &branch.to_ref(), new: Some(self.point), old: None };
        self.repository.move_refs(&[made], "arborist: session")?;
        Ok(RepositoryStart { name: self.section.name.to_string(), branch, base: self.point })
    }

    /// Restores the tree there, with a commit on the session's branch.
    pub(super) fn restore(&self, session: &SessionId, task: &TaskId, words: &str) -> Result<(), Failure> {
        let options = WorktreeOptions::new(&Settings::default(), &Cancel::new());
        let session_worktree =
            Pool::open(&self.repository, &self.branch, options)?.session_worktree(session)?;
        let (mut recorder, tree, changes) = restore(&session_worktree, &self.branch, session, self.point)?;
        let tip = session_worktree.repository.load_commits(&[recorder.head()])?;
        let is_back = tip.first().and_then(Event::of).is_some_and(|event| event.status() == Status::Reset);
        let is_there = recorder.head() == self.point || (is_back && changes.is_empty());
        if !is_there {
            let tasks = [(task.clone(), task.to_string())];
            let past = Past { tasks: Vec::new(), words: words.to_owned() };
            bring_back(&mut recorder, &tasks, tree, &changes, &past)?;
        }
        Ok(())
    }
}

/// A repository and its name.
type Place = (String, Repository);

/// The other repositories of the workspace, opened when needed.
pub(super) struct OtherRepos<'a> {
    opened: &'a OpenSessions,
    found: OnceCell<Vec<Place>>,
}

impl<'a> OtherRepos<'a> {
    pub(super) fn of(opened: &'a OpenSessions) -> Self {
        Self { opened, found: OnceCell::new() }
    }

    /// Those that exist here, by name.
    pub(super) fn all(&self) -> Result<&[Place], Failure> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let workspace = self.opened.workspace(&Cancel::new())?;
        let mut found = Vec::new();
        for section in workspace.sections.iter().filter(|section| !section.is_main) {
            let repository = workspace.open(section)?;
            found.extend(repository.map(|repository| (section.name.to_string(), repository)));
        }
        Ok(self.found.get_or_init(|| found))
    }

    /// The repository that has the commit of a turn. A missing one is reported.
    pub(super) fn find(&self, other: &OtherCommit, ui: &mut Ui) -> Result<Option<&Repository>, Failure> {
        let named = self.all()?.iter().find(|(name, _)| *name == other.repository);
        let (name, commit) = (visible(&other.repository), other.commit.short());
        match named {
            Some((_, repository)) if repository.find_commits(&[other.commit])? == [Some(other.commit)] => {
                return Ok(Some(repository));
            }
            Some(_) => ui.warn(&format!("commit {commit} is not in the repository '{name}'")),
            None => ui.warn(&format!("the repository '{name}', which has commit {commit}, is not here")),
        }
        Ok(None)
    }

    /// The changes of a turn in them.
    pub(super) fn patches(&self, turn: &Turn, ui: &mut Ui) -> Result<Vec<OtherPatchDocument>, Failure> {
        let mut patches = Vec::new();
        for other in &turn.others {
            if let Some(repository) = self.find(other, ui)? {
                let (repository, patch) = (other.repository.clone(), patch_of(repository, other.commit)?);
                patches.push(OtherPatchDocument { repository, patch });
            }
        }
        Ok(patches)
    }

    /// Finds a commit in any of them.
    pub(super) fn find_commit(&self, revision: &str) -> Result<Option<(&Place, Oid)>, Failure> {
        for place in self.all()? {
            if let Some(commit) = place.1.find_commit(revision)? {
                return Ok(Some((place, commit)));
            }
        }
        Ok(None)
    }
}
