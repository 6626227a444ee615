//! Folders of a checkout that a child replaced by links. `cd FOLDER` follows a link, and git then obeys the repository
//! that it finds there, which may be one that the child planted outside of the checkout.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    git::{
        Repository,
        files::planted_repositories::{FoldersBefore, could_run, looks_bare},
    },
    safe_files::{self, FileKind},
};

/// A link in the place of a folder, through which git finds a repository that could run something.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) struct FolderLink {
    pub(in crate::git) path: PathBuf,
    /// The repository that git finds.
    pub(in crate::git) repository: PathBuf,
}

impl Repository {
    /// Finds links in the place of folders that were there before. Links that lead to places without a repository, to this
    /// checkout or to repositories that were in it before are left alone: package managers make such links.
    pub(in crate::git) fn find_folder_links(
        &self,
        top: &Path,
        before: &FoldersBefore,
        found: &FoldersBefore,
    ) -> BTreeSet<FolderLink> {
        let mut links = BTreeSet::new();
        let mut missing: Option<&Path> = None;
        // Folders come before those in them.
        for folder in before.all.difference(&found.all) {
            if missing.is_some_and(|missing| folder.starts_with(missing)) {
                continue;
            }
            let Some(link) = find_link(top, folder) else {
                missing = folder.symlink_metadata().is_err().then_some(folder);
                continue;
            };
            let Ok(target) = folder.canonicalize() else { continue };
            if let Some(git_dir) = self.find_new_git_dir(top, before, &target)
                && could_run(&git_dir)
            {
                let repository = git_dir.parent().filter(|_| git_dir.ends_with(".git")).unwrap_or(&git_dir);
                links.insert(FolderLink { path: link, repository: repository.to_owned() });
            }
        }
        links
    }

    /// The git directory that git finds from a folder upwards, unless it was in this checkout before.
    fn find_new_git_dir(&self, top: &Path, before: &FoldersBefore, folder: &Path) -> Option<PathBuf> {
        let real_top = safe_files::resolved(top);
        for folder in folder.ancestors() {
            let git_dir = folder.join(".git");
            let is_there = git_dir.symlink_metadata().is_ok();
            if !is_there && !looks_bare(folder) {
                continue;
            }
            let git_dir = if is_there { git_dir } else { folder.to_owned() };
            // As the paths of the checkout are spelled.
            let inner = git_dir.strip_prefix(&real_top).map(|inner| top.join(inner));
            let spelled = inner.unwrap_or_else(|_| git_dir.clone());
            let is_known = spelled == top.join(".git")
                || before.git_dirs.contains(&spelled)
                || before.bare.contains(&spelled)
                || self.is_own_link(&git_dir);
            return (!is_known).then_some(git_dir);
        }
        None
    }
}

/// The first link on the way from `top` to a folder.
pub(in crate::git) fn find_link(top: &Path, folder: &Path) -> Option<PathBuf> {
    let mut path = top.to_owned();
    for name in folder.strip_prefix(top).ok()? {
        path.push(name);
        match path.symlink_metadata().ok().map(|found| FileKind::of(&found))? {
            FileKind::Link => return Some(path),
            FileKind::Folder => {}
            _ => return None,
        }
    }
    None
}
