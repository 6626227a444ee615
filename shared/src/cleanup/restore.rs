//! Brings saved work back: as a branch, and what lay in a worktree into a fresh one. Nothing that is there is touched, and
//! what was saved stays saved.

use std::path::PathBuf;

use super::{
    CleanupError,
    apply::{message_of, staged_message},
    saved::{Part, SavedWork, list_saved},
};
use crate::{
    git::{RawCommit, RefMove, Repository},
    name::{BranchName, Oid, TASK_BRANCHES, TaskId},
    worktree::{Pool, Remembered},
};

/// What is wanted back, and where.
#[derive(Debug, Clone, Default)]
pub struct RestoreRequest {
    /// A name, as the list has it, or the end of one.
    pub name: String,
    /// The branch that it shall be, if not the one that it was.
    pub branch: Option<String>,
    /// Where the worktree shall be, if not where worktrees are.
    pub to: Option<PathBuf>,
}

/// What was brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredWork {
    /// The refs.
    pub refs: Vec<RestoredRef>,
    /// The worktree, and the branch that is checked out there.
    pub worktree: Option<(PathBuf, Option<BranchName>)>,
}

/// A ref that holds what was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRef {
    /// Its full name.
    pub name: String,
    /// Where it is.
    pub commit: Oid,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// What stands below `refs/arborist/` and is no branch.
const RECORDS: [&str; 4] = ["sessions/", "transcripts/", "wip/", "landing/"];

/// Brings back what `wish` names. Where a place is named, the worktree is made there, also if only commits were saved.
pub fn restore(
    repository: &Repository,
    pool: Option<&Pool>,
    wish: &RestoreRequest,
) -> Result<RestoredWork, CleanupError> {
    let parts = find(&list_saved(repository)?, &wish.name)?;
    let mut restored = RestoredWork::default();
    let identity = RestoreContext { repository, pool };
    let content = parts.iter().find(|saved| saved.part == Part::Worktree);
    let tip = parts.iter().find(|saved| saved.part != Part::Worktree);
    let placed = content.or(tip.filter(|_| wish.to.is_some()));
    let path = placed.map(|saved| identity.path_of(saved, wish)).transpose()?;
    if let Some(saved) = tip {
        if content.is_none() && wish.to.is_some() {
            identity.refuse_record(saved, wish)?;
        }
        restored.refs.push(identity.restore_ref(saved, wish)?);
    }
    let (Some(saved), Some(path), Some(pool)) = (placed, path, pool) else {
        return Ok(restored);
    };
    let remembered = match content {
        Some(saved) => identity.remember(saved, wish, &mut restored.refs)?,
        None => Some(identity.check_out(saved.commit, &restored.refs)?),
    };
    match remembered {
        Some(remembered) => {
            let path = pool.revive(&path, &remembered)?;
            restored.worktree = Some((path, remembered.branch));
        }
        None if tip.is_none() => restored.refs.push(identity.restore_ref(saved, wish)?),
        None => {}
    }
    Ok(restored)
}

/// Who brings back.
struct RestoreContext<'a> {
    repository: &'a Repository,
    pool: Option<&'a Pool>,
}

impl RestoreContext<'_> {
    fn restore_ref(&self, saved: &SavedWork, wish: &RestoreRequest) -> Result<RestoredRef, CleanupError> {
        let name = wished_ref(saved, wish)?;
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

    /// Records and marks are no branches, so there is nothing to check out.
    fn refuse_record(&self, saved: &SavedWork, wish: &RestoreRequest) -> Result<(), CleanupError> {
        let name = wished_ref(saved, wish)?;
        if name.starts_with("refs/heads/") { Ok(()) } else { Err(CleanupError::NoBranch(saved.name.clone())) }
    }

    /// The worktree of commits that were restored, with their branch unless somebody has it.
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

    /// What is to be put into a worktree; `None` if nothing was checked out when it was saved.
    fn remember(
        &self,
        saved: &SavedWork,
        wish: &RestoreRequest,
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
        let branch = self.free_branch(saved, wish, head, refs)?;
        Ok(Some(Remembered { head, branch, tree, staged }))
    }

    /// The branch of saved work, if it is where it was and nobody has it. One that is not there is made.
    fn free_branch(
        &self,
        saved: &SavedWork,
        wish: &RestoreRequest,
        head: Oid,
        refs: &mut Vec<RestoredRef>,
    ) -> Result<Option<BranchName>, CleanupError> {
        let name = match &wish.branch {
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

    /// Where the worktree of saved work goes. Nothing may be there.
    fn path_of(&self, saved: &SavedWork, wish: &RestoreRequest) -> Result<PathBuf, CleanupError> {
        let pool = self.pool.ok_or(CleanupError::Bare)?;
        let name = saved.unit().rsplit('/').next().unwrap_or_default();
        let path = wish.to.clone().unwrap_or_else(|| pool.path_for(name));
        match path.symlink_metadata() {
            Ok(_) => Err(CleanupError::PathExists(path)),
            Err(_) => Ok(path),
        }
    }
}

/// All that belongs to the name: one part, or the parts of one unit.
fn find(all: &[SavedWork], name: &str) -> Result<Vec<SavedWork>, CleanupError> {
    let name = name.trim_start_matches(super::saved::SAVED).trim_matches('/');
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

/// What a name means: all of a unit's name or the end of it, as it is filed or as its branch is called, or else a single part
/// of one.
fn named(all: &[SavedWork], name: &str) -> Vec<SavedWork> {
    let asked = unescaped(name);
    let ways: [&dyn Fn(&SavedWork) -> bool; 4] = [
        &|saved| saved.unit() == name,
        &|saved| is_end(name, saved.unit()),
        &|saved| is_end(&asked, &unescaped(saved.unit())),
        &|saved| is_end(&asked, &unescaped(&saved.name)),
    ];
    let mut found = ways.iter().map(|is_meant| all.iter().filter(|saved| is_meant(saved)).cloned().collect());
    found.find(|found: &Vec<SavedWork>| !found.is_empty()).unwrap_or_default()
}

fn is_end(end: &str, name: &str) -> bool {
    name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// A branch within the name of saved work, as people call it.
fn unescaped(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

/// What saved work is of, without the day.
fn rest_of(saved: &SavedWork) -> &str {
    let unit = saved.unit();
    match unit.split_once('/') {
        Some((day, rest)) if day.parse::<jiff::civil::Date>().is_ok() => rest,
        _ => unit,
    }
}

/// The ref that saved work shall be.
fn wished_ref(saved: &SavedWork, wish: &RestoreRequest) -> Result<String, CleanupError> {
    match &wish.branch {
        Some(branch) => branch_ref(branch),
        None => home_of(saved),
    }
}

/// The ref that saved work was.
fn home_of(saved: &SavedWork) -> Result<String, CleanupError> {
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
    Some(format!("refs/heads/{TASK_BRANCHES}{run}/{task}"))
}

fn branch_ref(name: &str) -> Result<String, CleanupError> {
    let branch: BranchName = name.parse().map_err(|_| CleanupError::BranchName(name.to_owned()))?;
    Ok(branch.to_ref())
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
