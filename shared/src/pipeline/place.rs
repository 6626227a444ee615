//! Where an agent works: the user's own checkout. What was there before is told from what the agent did, and what the
//! agent did to the repository itself is undone.

use std::{fs, path::PathBuf};

use super::Dirt;
use crate::{
    git::{Change, GitError, HeadOf, RefMove, Repository},
    name::{Attempt, Oid, TaskId},
    record::{Mark, Recorder, Unfinished},
};

/// A checkout that an attempt has begun in.
#[derive(Debug)]
pub struct Begun {
    /// The mark that tells a later run of this attempt.
    pub unfinished: Unfinished,
    /// What lay in the worktree.
    before: Oid,
    /// What of that is not committed.
    dirt: Dirt,
    guard: Guard,
}

/// What an agent left.
#[derive(Debug)]
pub struct Work {
    /// The commit's tree: what the branch held, with the agent's changes.
    pub tree: Oid,
    /// Where the branch is now; beyond our own head if the agent committed by itself.
    pub tip: Oid,
    /// The paths that changed.
    pub changes: Vec<Change>,
    /// What the agent did that it may not do, in a sentence; it has been undone.
    pub trespass: Option<String>,
}

/// Remembers what lies in the worktree, and marks that an attempt begins.
pub fn begin(recorder: &Recorder<'_>, task: &TaskId, attempt: Attempt) -> Result<Begun, GitError> {
    let repository = recorder.repository();
    let (before, dirt) = if repository.is_clean()? {
        (recorder.tree(), Dirt::default())
    } else {
        let before = repository.snapshot()?;
        (before, Dirt::of_checkout(repository, recorder.tree(), before)?)
    };
    let guard = Guard::take(repository);
    let (head, head_tree) = (recorder.head(), recorder.tree());
    let mark = Mark { task, attempt, head, head_tree, tree: before };
    let unfinished = Unfinished::begin(repository, recorder.branch(), mark)?;
    Ok(Begun { unfinished, before, dirt, guard })
}

/// What has changed since, with everything undone that an agent may not do.
pub fn end(recorder: &Recorder<'_>, begun: &Begun) -> Result<Work, GitError> {
    let repository = recorder.repository();
    let mut trespasses = begun.guard.restore();
    let after = repository.snapshot()?;
    let (tip, moved) = put_back_branch(recorder, &begun.unfinished)?;
    trespasses.extend(moved);
    let changes = repository.changes(begun.before, after)?;
    let nested: Vec<String> =
        changes.iter().filter(|change| change.is_gitlink()).map(Change::shown).collect();
    if !nested.is_empty() {
        trespasses.push(format!("it made a repository inside the repository: {}", nested.join(", ")));
    }
    let changes: Vec<Change> = changes.into_iter().filter(|change| !change.is_gitlink()).collect();
    let sorted = begun.dirt.sort(repository, &begun.unfinished, (begun.before, after), changes)?;
    let changes = sorted.changes;
    trespasses.extend(sorted.trespass);
    let tree = if changes.is_empty() {
        recorder.tree()
    } else if begun.before == recorder.tree() && nested.is_empty() {
        after
    } else {
        repository.tree_with(recorder.tree(), &changes)?
    };
    Ok(Work { tree, tip, changes, trespass: (!trespasses.is_empty()).then(|| trespasses.join("; ")) })
}

/// `HEAD` is on the run's branch again. Commits of the agent's own are saved; the branch itself is moved when the work
/// is written down, or here if it does not follow our head any more.
fn put_back_branch(recorder: &Recorder<'_>, unfinished: &Unfinished) -> Result<(Oid, Vec<String>), GitError> {
    let repository = recorder.repository();
    let branch = recorder.branch();
    let mut trespasses = Vec::new();
    let ours = recorder.head();
    let found = repository.find_head(branch)?;
    if !matches!(found, HeadOf::Branch { .. }) {
        repository.change("symbolic-ref").args(["HEAD", &branch.to_ref()]).stdout()?;
    }
    let tip = match found {
        HeadOf::Branch { tip } => tip,
        HeadOf::Elsewhere { tip } => {
            trespasses.push("it switched to another branch".to_owned());
            tip
        }
        HeadOf::Nowhere => {
            let name = branch.to_ref();
            repository
                .move_refs(&[RefMove { name: &name, new: Some(ours), old: None }], "arborist: put back")?;
            trespasses.push("it deleted or renamed the branch".to_owned());
            return Ok((ours, trespasses));
        }
    };
    if tip == ours {
        return Ok((ours, trespasses));
    }
    save(repository, unfinished, tip)?;
    if !repository.is_ancestor(ours, tip)? {
        trespasses.push("it moved the branch away from the run's own commits".to_owned());
    }
    Ok((tip, trespasses))
}

/// Keeps commits that nothing else would hold, and tells where.
pub(super) fn save(repository: &Repository, unfinished: &Unfinished, tip: Oid) -> Result<String, GitError> {
    let folder = unfinished.name.replace("refs/arborist/wip/", "refs/arborist/saved/");
    let name = format!("{folder}-{}", tip.short());
    if repository.list_refs(&[&name])?.is_empty() {
        repository.move_refs(&[RefMove { name: &name, new: Some(tip), old: None }], "arborist: saved")?;
    }
    Ok(name)
}

/// The repository's configuration and hooks, byte for byte.
#[derive(Debug)]
struct Guard {
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    hooks: PathBuf,
    hook_names: Vec<PathBuf>,
}

impl Guard {
    fn take(repository: &Repository) -> Self {
        let common = &repository.common_dir;
        let hooks = common.join("hooks");
        let hook_names = list(&hooks);
        let watched = [
            common.join("config"),
            repository.git_dir.join("config.worktree"),
            common.join("info/attributes"),
        ];
        let files = watched
            .into_iter()
            .chain(hook_names.clone())
            .map(|path| (path.clone(), fs::read(path).ok()))
            .collect();
        Self { files, hooks, hook_names }
    }

    /// Puts back what was changed, and says what it was.
    fn restore(&self) -> Vec<String> {
        let mut trespasses = Vec::new();
        for (path, before) in &self.files {
            if fs::read(path).ok() == *before {
                continue;
            }
            let _ = match before {
                Some(bytes) => fs::write(path, bytes),
                None => fs::remove_file(path),
            };
            trespasses.push(format!("it changed {}", shown(path)));
        }
        for path in list(&self.hooks).into_iter().filter(|path| !self.hook_names.contains(path)) {
            let _ = fs::remove_file(&path);
            trespasses.push(format!("it added the hook {}", shown(&path)));
        }
        trespasses
    }
}

fn list(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

fn shown(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
