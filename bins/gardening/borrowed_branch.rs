//! A run on the user's own branch in a worktree that was created for it. When the run ends, the branch is released.

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    name::BranchName,
    process::Cancel,
    settings::Settings,
    worktree::{GivenBack, Pool, WorktreeError, WorktreeOptions},
};

use crate::ui::Ui;

/// Releases the branch that is checked out in the current worktree. A failure is reported, but the run has ended
/// anyway.
pub(crate) fn release_branch_here(ui: &mut Ui) {
    let left = || -> Result<Option<(Repository, BranchName)>, Failure> {
        let here = Repository::discover()?;
        let main = here.list_worktrees()?.first().and_then(|main| here.linked(main));
        let (Some(main), Some(branch)) = (main, here.head.branch) else { return Ok(None) };
        // A directory in which a process works is not removed, and that includes us.
        let moved = std::env::set_current_dir(&main.dir);
        moved.map_err(|source| WorktreeError::File { doing: "enter", path: main.dir.clone(), source })?;
        Ok(Some((main, branch)))
    };
    match left() {
        Ok(Some((main, branch))) => release_branch(&main, &branch, ui),
        Ok(None) => {}
        Err(failure) => ui.warn(&failure.message),
    }
}

/// Releases a branch that is checked out in a session's worktree other than the current one.
pub(crate) fn release_branch(repository: &Repository, branch: &BranchName, ui: &mut Ui) {
    let release = || -> Result<Option<GivenBack>, Failure> {
        let settings = Settings::load(repository, &Config::load(repository)?)?;
        let options = WorktreeOptions::new(&settings, &Cancel::new());
        Ok(Pool::open(repository, branch, options)?.give_back()?)
    };
    match release() {
        Ok(None | Some(GivenBack::Removed)) => {}
        Ok(Some(GivenBack::Detached(path, why))) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            ui.warn(&format!(
                "the session's worktree '{}' was kept, but no longer has '{branch}' checked out: {why}",
                path.display()
            ));
            ui.hint(&format!("remove it with: git arborist worktree remove {name}"));
        }
        Err(failure) => {
            ui.warn(&format!(
                "'{branch}' is still checked out in the session's worktree: {}",
                failure.message
            ));
        }
    }
}
