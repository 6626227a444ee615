//! The paths and names of worktrees. Paths are reused, so that build caches stay valid.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{WorktreeError, WorktreeOptions};
use crate::{
    git::{REPLACED, Repository, TRASH, Worktree, plain_path},
    name::TaskId,
    safe_files,
};

/// The default: next to the repository. Tools search parent directories, so inside the checkout they would find the
/// user's files.
const DEFAULT_BASE: &str = "../{repository}.arborist";
/// The fallback inside the checkout, if nothing can be written next to it.
const INSIDE: &str = ".arborist/worktrees";
/// The prefix of lane names.
const LANE_PREFIX: &str = "lane-";
/// Stands for the name of the repository in a configured folder.
const REPOSITORY: &str = "{repository}";

/// The folder of a repository's worktrees.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// The top of the main worktree.
    pub(super) main: PathBuf,
    /// Where worktrees are created.
    pub(super) base: PathBuf,
    common_dir: PathBuf,
    is_default: bool,
}

impl Places {
    pub(super) fn new(repository: &Repository, main: &Path, options: &WorktreeOptions) -> Self {
        let template = options.settings.base.as_deref().unwrap_or(DEFAULT_BASE);
        let name = main.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name);
        let path = expand_home(&template.replace(REPOSITORY, name));
        let places = Self {
            main: main.to_owned(),
            base: plain_path(&main.join(path)),
            common_dir: repository.common_dir.clone(),
            is_default: options.settings.base.is_none(),
        };
        repository.add_worktree_folder(&places.inside());
        // Several repositories, or the user, may use another folder.
        if template.contains(REPOSITORY) && !places.has_tracked_files(repository) {
            repository.add_worktree_folder(&places.base);
        }
        places
    }

    /// Creates the directory. If nothing can be written next
    /// to the repository, it is inside.
    pub(super) fn prepared(
        &self,
        repository: &Repository,
        worktrees: &[Worktree],
    ) -> Result<Self, WorktreeError> {
        let mut base = self.base.clone();
        if let Err(error) = make_writable(&base) {
            if !self.is_default {
                return Err(WorktreeError::file("write to", base)(error));
            }
            base = self.main.join(INSIDE);
            make_writable(&base).map_err(WorktreeError::file("write to", &base))?;
        }
        let base = base.canonicalize().map_err(WorktreeError::file("find", &base))?;
        let places = Self { base, ..self.clone() };
        places.refuse_nesting(worktrees)?;
        for names in [format!("{TRASH}*"), format!("*{REPLACED}*")] {
            places.hide(repository, &places.base, &names)?;
        }
        Ok(places)
    }

    /// Whether the folder for worktrees is one of the checkout that has tracked files.
    fn has_tracked_files(&self, repository: &Repository) -> bool {
        let inner = self.base.strip_prefix(&self.main).ok().and_then(Path::to_str);
        let commit = repository.head.commit;
        inner
            .zip(commit)
            .is_some_and(|(inner, commit)| !matches!(repository.find_path(commit, inner), Ok(None)))
    }

    fn refuse_nesting(&self, worktrees: &[Worktree]) -> Result<(), WorktreeError> {
        let linked = worktrees.iter().skip(1).map(|worktree| worktree.path.as_path());
        let git_dir = self.common_dir.as_path();
        let inside = linked.chain([git_dir]).find(|place| self.base.starts_with(place));
        match inside {
            Some(inside) => Err(WorktreeError::Nested { base: self.base.clone(), inside: inside.to_owned() }),
            None => Ok(()),
        }
    }

    /// Hides a worktree, or another folder that is made next to worktrees, if `git status` of a checkout would show it. The
    /// folder that contains it may have the user's files, so it stays visible.
    pub(super) fn hide(&self, repository: &Repository, base: &Path, name: &str) -> Result<(), WorktreeError> {
        let main = self.main.canonicalize().unwrap_or_else(|_| self.main.clone());
        let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
        let Ok(inside) = base.strip_prefix(&main) else {
            return Ok(());
        };
        let inside = inside.display().to_string();
        if inside == INSIDE {
            // This one belongs to us.
            return Ok(repository.exclude(&format!("/{INSIDE}/"))?);
        }
        Ok(repository.exclude_in(&inside, &format!("{name}/"))?)
    }

    /// The fallback directory inside the checkout.
    pub(super) fn inside(&self) -> PathBuf {
        self.main.join(INSIDE)
    }

    /// Whether a path is a directory directly in one of our directories for worktrees.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|found| found.is_dir()) && self.is_place(path)
    }

    /// Whether worktrees are created at this path, whatever is there now.
    pub(super) fn is_place(&self, path: &Path) -> bool {
        let real = |base: PathBuf| base.canonicalize().unwrap_or(base);
        let bases = [real(self.base.clone()), real(self.inside())];
        path.parent().is_some_and(|parent| bases.contains(&real(parent.to_owned())))
    }

    /// The path of a lane.
    pub(super) fn lane(&self, number: usize) -> PathBuf {
        self.base.join(format!("{LANE_PREFIX}{number}"))
    }

    /// The path of a worktree that the user asked for by the task's name. Other runs may have a task of this name, so
    /// there are several candidates.
    pub(super) fn named(&self, task: &TaskId, try_number: usize) -> PathBuf {
        let name = if is_lane(task.as_str()) { format!("task-{task}") } else { task.to_string() };
        match try_number {
            0 => self.base.join(name),
            more => self.base.join(format!("{name}-{}", more + 1)),
        }
    }
}

/// Whether this is the name of a lane.
pub(super) fn is_lane(name: &str) -> bool {
    lane_number(name).is_some()
}

/// The number of a lane.
pub(super) fn lane_number(name: &str) -> Option<usize> {
    name.strip_prefix(LANE_PREFIX)?.parse().ok()
}

fn make_writable(folder: &Path) -> io::Result<()> {
    safe_files::make_folders(folder)?;
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(io::Error::from)
}

fn expand_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_names_are_distinguished_from_task_ids() {
        assert!(is_lane("lane-1") && is_lane("lane-12"));
        assert!(!is_lane("lane-") && !is_lane("lane-x") && !is_lane("T1"));
    }
}
