//! Restores saved work: commits as a branch, and files of a worktree into a new one. Nothing existing is touched, and the
//! saved refs stay.

use std::path::PathBuf;

use super::{
    CleanupError,
    saved::{Part, SavedWork, list_saved, message_of, staged_message},
};
use crate::{
    git::{RawCommit, RefMove, Repository},
    name::{BranchName, Oid, SAVED, TASK_BRANCHES, TASK_REFS, TaskId, split_day, unescaped},
    worktree::{Pool, Remembered},
};

/// What to restore, and where.
#[derive(Debug, Clone, Default)]
pub struct RestoreRequest {
    /// A name as in the list of saved work, or the end of one.
    pub name: String,
    /// The branch to create, if not the original one.
    pub branch: Option<String>,
    /// The path of the worktree, if not the default.
    pub to: Option<PathBuf>,
    /// The current time in seconds since 1970.
    pub now: i64,
}

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredWork {
    /// The refs.
    pub refs: Vec<RestoredRef>,
    /// The worktree, and the branch that is checked out there.
    pub worktree: Option<(PathBuf, Option<BranchName>)>,
}

/// A ref that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRef {
    /// Its full name.
    pub name: String,
    /// Its commit.
    pub commit: Oid,
    /// Whether it was created now.
    pub is_new: bool,
}

/// Prefixes below `refs/arborist/` of refs that are not branches.
const RECORDS: [&str; 4] = ["sessions/", "transcripts/", "wip/", "landing/"];

/// Restores what `request` names. If a path is given, the worktree is created there, even if only commits were saved.
pub fn restore(
    repository: &Repository,
    pool: Option<&Pool>,
    request: &RestoreRequest,
) -> Result<RestoredWork, CleanupError> {
    let parts = find(&list_saved(repository, request.now)?, &request.name)?;
    let mut restored = RestoredWork::default();
    let context = RestoreContext { repository, pool };
    let content = parts.iter().find(|saved| saved.part == Part::Worktree);
    let tip = parts.iter().find(|saved| saved.part != Part::Worktree);
    let placed = content.or(tip.filter(|_| request.to.is_some()));
    let path = placed.map(|saved| context.path_of(saved, request)).transpose()?;
    if let Some(saved) = tip {
        if content.is_none() && request.to.is_some() {
            context.refuse_record(saved, request)?;
        }
        restored.refs.push(context.restore_ref(saved, request)?);
    }
    let (Some(saved), Some(path), Some(pool)) = (placed, path, pool) else {
        return Ok(restored);
    };
    let remembered = match content {
        Some(saved) => context.remember(saved, request, &mut restored.refs)?,
        None => Some(context.check_out(saved.commit, &restored.refs)?),
    };
    match remembered {
        Some(remembered) => {
            let path = pool.revive(&path, &remembered)?;
            restored.worktree = Some((path, remembered.branch));
        }
        None if tip.is_none() => restored.refs.push(context.restore_ref(saved, request)?),
        None => {}
    }
    Ok(restored)
}

/// What a restore needs.
struct RestoreContext<'a> {
    repository: &'a Repository,
    pool: Option<&'a Pool>,
}

impl RestoreContext<'_> {
    fn restore_ref(&self, saved: &SavedWork, request: &RestoreRequest) -> Result<RestoredRef, CleanupError> {
        let name = requested_ref(saved, request)?;
        match self.repository.find_ref(&name)? {
            Some(known) if known == saved.commit => Ok(RestoredRef { name, commit: known, is_new: false }),
            Some(_) => Err(CleanupError::BranchExists { branch: short(&name) }),
            None => self.make_ref(name, saved.commit),
        }
    }

    fn make_ref(&self, name: String, commit: Oid) -> Result<RestoredRef, CleanupError> {
        let moves = [RefMove { name: &name, new: Some(commit), old: None }];
        self.repository.move_refs(&moves, "arborist: restore")?;
        Ok(RestoredRef { name, commit, is_new: true })
    }

    /// Refuses records and marks, which are not branches, so that there is nothing to check out.
    fn refuse_record(&self, saved: &SavedWork, request: &RestoreRequest) -> Result<(), CleanupError> {
        let name = requested_ref(saved, request)?;
        if name.starts_with("refs/heads/") { Ok(()) } else { Err(CleanupError::NoBranch(saved.name.clone())) }
    }

    /// The worktree for restored commits, with their branch unless that is checked out elsewhere.
    fn check_out(&self, head: Oid, refs: &[RestoredRef]) -> Result<Remembered, CleanupError> {
        let branch = refs.first().and_then(|found| short(&found.name).parse().ok());
        let branch = match branch {
            Some(branch) => (!self.is_checked_out(&branch)?).then_some(branch),
            None => None,
        };
        Ok(Remembered { head, branch, tree: self.repository.tree_of(head)?, staged: None })
    }

    fn is_checked_out(&self, branch: &BranchName) -> Result<bool, CleanupError> {
        let worktrees = self.repository.list_worktrees()?;
        Ok(worktrees.iter().any(|worktree| worktree.branch.as_ref() == Some(branch)))
    }

    /// The content of the worktree; `None` if nothing was checked out when it was saved.
    fn remember(
        &self,
        saved: &SavedWork,
        request: &RestoreRequest,
        refs: &mut Vec<RestoredRef>,
    ) -> Result<Option<Remembered>, CleanupError> {
        let Some(commit) = self.repository.load_commits(&[saved.commit])?.pop() else {
            return Ok(None);
        };
        let Some(parent) = commit.parents().next() else {
            return Ok(None);
        };
        let below = self.repository.load_commits(&[parent])?.pop();
        let is_staged = |below: &RawCommit| {
            let name = String::from_utf8_lossy(commit.message()).into_owned();
            let name =
                name.trim_end().strip_prefix(message_of("").trim_end()).map(str::trim).map(str::to_owned);
            name.is_some_and(|name| below.message() == staged_message(&name).as_bytes())
        };
        let (head, staged) = match below.filter(is_staged) {
            Some(staged) => {
                (staged.parents().next().unwrap_or(parent), Some(self.repository.tree_of(parent)?))
            }
            None => (parent, None),
        };
        let tree = self.repository.tree_of(saved.commit)?;
        let branch = self.free_branch(saved, request, head, refs)?;
        Ok(Some(Remembered { head, branch, tree, staged }))
    }

    /// The branch of saved work, if it is at the saved commit and not checked out. A missing one is created.
    fn free_branch(
        &self,
        saved: &SavedWork,
        request: &RestoreRequest,
        head: Oid,
        refs: &mut Vec<RestoredRef>,
    ) -> Result<Option<BranchName>, CleanupError> {
        let name = match &request.branch {
            Some(branch) => branch_ref(branch)?,
            None => match task_branch(rest_of(saved)) {
                Some(name) => name,
                None => return Ok(None),
            },
        };
        let Ok(branch) = short(&name).parse::<BranchName>() else {
            return Ok(None);
        };
        match self.repository.find_branch(&branch)? {
            None => {
                refs.push(self.make_ref(name, head)?);
                Ok(Some(branch))
            }
            Some(tip) if tip == head => Ok((!self.is_checked_out(&branch)?).then_some(branch)),
            Some(_) => Ok(None),
        }
    }

    /// The path of the worktree. It must not exist.
    fn path_of(&self, saved: &SavedWork, request: &RestoreRequest) -> Result<PathBuf, CleanupError> {
        let pool = self.pool.ok_or(CleanupError::Bare)?;
        let name = saved.unit().rsplit('/').next().unwrap_or_default();
        let path = request.to.clone().unwrap_or_else(|| pool.path_for(name));
        match path.symlink_metadata() {
            Ok(_) => Err(CleanupError::PathExists(path)),
            Err(_) => Ok(path),
        }
    }
}

/// Finds the saved work of this name: one part, or all parts of one unit.
fn find(all: &[SavedWork], name: &str) -> Result<Vec<SavedWork>, CleanupError> {
    let name = name.trim_start_matches(SAVED).trim_matches('/');
    let name = name.trim_start_matches("refs/heads/").trim_start_matches(TASK_BRANCHES);
    if let Some(exact) = all.iter().find(|saved| saved.name == name) {
        return Ok(vec![exact.clone()]);
    }
    let found = named(all, name);
    let ambiguous =
        |found: Vec<(String, Option<i64>)>| Err(CleanupError::Ambiguous { name: name.to_owned(), found });
    let mut units: Vec<(String, Option<i64>)> = Vec::new();
    for saved in &found {
        match units.iter_mut().find(|(unit, _)| unit == saved.unit()) {
            Some((_, time)) => *time = (*time).max(saved.time),
            None => units.push((saved.unit().to_owned(), saved.time)),
        }
    }
    match units.len() {
        0 => return Err(CleanupError::NoSaved(name.to_owned())),
        1 => {}
        _ => return ambiguous(units),
    }
    let trees = found.iter().filter(|saved| saved.part == Part::Worktree).count();
    if trees > 1 || found.len() - trees > 1 {
        return ambiguous(found.into_iter().map(|saved| (saved.name, saved.time)).collect());
    }
    Ok(found)
}

/// Finds the units that a name means: by the whole name or its end, in the form of the ref or of the branch; or else a
/// single part of one.
fn named(all: &[SavedWork], name: &str) -> Vec<SavedWork> {
    let wanted = unescaped(name);
    let ways: [&dyn Fn(&SavedWork) -> bool; 4] = [
        &|saved| saved.unit() == name,
        &|saved| is_end(name, saved.unit()),
        &|saved| is_end(&wanted, &unescaped(saved.unit())),
        &|saved| is_end(&wanted, &unescaped(&saved.name)),
    ];
    let mut found = ways.iter().map(|is_meant| all.iter().filter(|saved| is_meant(saved)).cloned().collect());
    found.find(|found: &Vec<SavedWork>| !found.is_empty()).unwrap_or_default()
}

fn is_end(end: &str, name: &str) -> bool {
    name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// The name of the unit without the day.
fn rest_of(saved: &SavedWork) -> &str {
    split_day(saved.unit()).1
}

/// The ref to create.
fn requested_ref(saved: &SavedWork, request: &RestoreRequest) -> Result<String, CleanupError> {
    match &request.branch {
        Some(branch) => branch_ref(branch),
        None => original_ref(saved),
    }
}

/// The original ref of saved work.
fn original_ref(saved: &SavedWork) -> Result<String, CleanupError> {
    let rest = rest_of(saved);
    if saved.part == Part::Commits && RECORDS.iter().any(|kind| rest.starts_with(kind)) {
        return Ok(format!("refs/arborist/{rest}"));
    }
    if saved.part == Part::Branch {
        if let Some(name) = task_branch(rest) {
            return Ok(name);
        }
        if !rest.contains('/') {
            return branch_ref(&unescaped(rest));
        }
    }
    branch_ref(&format!("restored/{rest}"))
}

/// The branch of a task, if this is `{run}/{task}`.
fn task_branch(rest: &str) -> Option<String> {
    let (run, task) = rest.split_once('/')?;
    let task: TaskId = task.parse().ok()?;
    Some(format!("{TASK_REFS}{run}/{task}"))
}

fn branch_ref(name: &str) -> Result<String, CleanupError> {
    let branch: BranchName = name.parse().map_err(|_| CleanupError::BranchName(name.to_owned()))?;
    Ok(branch.to_ref())
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
