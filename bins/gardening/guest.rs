//! A run on a branch that is the user's, in a worktree that was made for it: when it ends, the branch is given back.

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    name::BranchName,
    process::Cancel,
    settings::Settings,
    worktree::{GivenBack, Pool, WorktreeError, WorktreeOptions},
};

use crate::ui::Ui;

/// Gives the branch back that is checked out where we are. What cannot be done is told; the run has ended all the same.
pub(crate) fn give_back_here(ui: &mut Ui) {
    let left = || -> Result<Option<(Repository, BranchName)>, Failure> {
        let here = Repository::discover()?;
        let main = here.list_worktrees()?.first().and_then(|main| here.linked(main));
        let (Some(main), Some(branch)) = (main, here.head.branch) else { return Ok(None) };
        // Nobody removes a folder that somebody is in, and that counts for us too.
        let moved = std::env::set_current_dir(&main.dir);
        moved.map_err(|source| WorktreeError::File { doing: "enter", path: main.dir.clone(), source })?;
        Ok(Some((main, branch)))
    };
    match left() {
        Ok(Some((main, branch))) => give_back(&main, &branch, ui),
        Ok(None) => {}
        Err(failure) => ui.warn(&failure.message),
    }
}

/// Gives a branch back that a worktree of a session has, which is not the one that we are in.
pub(crate) fn give_back(repository: &Repository, branch: &BranchName, ui: &mut Ui) {
    let give = || -> Result<Option<GivenBack>, Failure> {
        let settings = Settings::load(repository, &Config::load(repository)?)?;
        let options = WorktreeOptions::new(&settings, &Cancel::new());
        Ok(Pool::open(repository, branch, options)?.give_back()?)
    };
    match give() {
        Ok(None | Some(GivenBack::Removed)) => {}
        Ok(Some(GivenBack::Detached(path, why))) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            ui.warn(&format!(
                "the session worked in '{}', which stays without '{branch}': {why}",
                path.display()
            ));
            ui.hint(&format!("remove it with: git arborist worktree remove {name}"));
        }
        Err(failure) => {
            ui.warn(&format!("'{branch}' stays checked out where the session worked: {}", failure.message));
        }
    }
}
