//! What an agent can leave that a snapshot cannot contain: repositories inside the worktree, and files and folders that git
//! cannot add. They are moved out as they are.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{GitError, Repository, TreeChange, Unreadable},
    message::visible,
    name::Oid,
    safe_files,
};

/// The folder for repositories that were moved out, below the common git directory.
const MOVED_OUT_FOLDER: &str = "arborist-aside";
/// How many characters of a path are shown that git cannot open.
const LONGEST_SHOWN: usize = 60;
/// How many reasons are shown why git cannot add files.
const MAX_REASONS: usize = 5;

/// A worktree before a child ran in it.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline) struct WorktreeBefore<'a> {
    /// The tree of the worktree.
    pub(in crate::pipeline) tree: Oid,
    /// The commit that the index corresponds to if nothing is staged.
    pub(in crate::pipeline) head: Oid,
    /// Nested repositories without a commit and folders that git cannot read, which no tree can contain.
    pub(in crate::pipeline) left_out: &'a [Vec<u8>],
}

/// Moves new repositories and new folders that git cannot read out of the worktree: gitlinks among the changes
/// `touched`, and paths that the snapshot had to leave out. Returns a message about them, and about those that existed
/// before and changed.
pub(in crate::pipeline) fn move_out(
    repository: &Repository,
    before: WorktreeBefore<'_>,
    touched: &[TreeChange],
    left_out: &[Vec<u8>],
) -> Result<Option<String>, GitError> {
    let links: Vec<&TreeChange> = touched.iter().filter(|change| change.is_gitlink()).collect();
    let was_there = |path: &Vec<u8>| before.left_out.contains(path);
    // If git names too many paths, it also leaves out some that the snapshot before contained.
    let known =
        if left_out.iter().all(was_there) { Vec::new() } else { repository.list_gitlinks_of(before.tree)? };
    let unborn = left_out.iter().filter(|path| !was_there(path) && !known.contains(path));
    let unborn: Vec<&Vec<u8>> = unborn.collect();
    let closed = if unborn.is_empty() { Vec::new() } else { repository.list_closed()? };
    let (closed, unborn): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
        unborn.into_iter().partition(|path| closed.contains(path));
    if !closed.is_empty() {
        let words = move_closed(repository, &closed);
        let others: Vec<Vec<u8>> = left_out.iter().filter(|path| !closed.contains(path)).cloned().collect();
        let more = move_out(repository, before, touched, &others)?;
        return Ok(Some([Some(words), more].into_iter().flatten().collect::<Vec<_>>().join("; ")));
    }
    let unborn = unborn.into_iter();
    let paths: Vec<&Vec<u8>> = links.iter().map(|change| &change.path).chain(unborn.clone()).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    let shown: Vec<String> = paths.iter().map(|path| visible(&String::from_utf8_lossy(path))).collect();
    let is_repository = |path: &&Vec<u8>| {
        let folder = repository.top().join(OsStr::from_bytes(path));
        folder.join(".git").symlink_metadata().is_ok()
    };
    let what = if links.is_empty() && !paths.iter().any(is_repository) {
        "it made a path that git refuses"
    } else if paths.len() == links.len() && links.iter().all(|change| change.was_gitlink()) {
        "it moved a repository inside the repository to another commit"
    } else {
        "it made a repository inside the repository"
    };
    let mut words = format!("{what}: {}", shown.join(", "));
    let new: Vec<TreeChange> = links
        .into_iter()
        .filter(|change| !change.was_gitlink() && !was_there(&change.path))
        .cloned()
        .collect();
    let moved: Vec<&Vec<u8>> = new.iter().map(|change| &change.path).chain(unborn.clone()).collect();
    if !moved.is_empty() {
        words += &match move_to_new_folder(repository, &moved) {
            Ok(folder) => format!("; it is kept in {}", folder.display()),
            Err(error) => format!("; it could not be moved away: {error}"),
        };
        let mut replaced = new.clone();
        for path in unborn {
            if repository.find_entry(before.tree, path)?.is_some() {
                replaced.push(TreeChange { path: path.clone(), before: None, after: None });
            }
        }
        repository.restore_paths(before.tree, &replaced)?;
        repository.stage_as_in(&before.head.to_string(), &replaced)?;
    }
    Ok(Some(words))
}

/// Moves files that git cannot add out of the worktree, because the next task could not begin with them. They become
/// what `after` contains, the tree of the snapshot without them. Returns a message.
pub fn move_unreadable(
    repository: &Repository,
    after: Oid,
    unreadable: &[&Unreadable],
) -> Result<Option<String>, GitError> {
    if unreadable.is_empty() {
        return Ok(None);
    }
    let paths: Vec<&Vec<u8>> = unreadable.iter().map(|found| &found.path).collect();
    let refusals = refusals(unreadable);
    let folder = match move_to_new_folder(repository, &paths) {
        Ok(folder) => folder,
        Err(error) => return Ok(Some(format!("{refusals}; moving this away failed: {error}"))),
    };
    let moved = |path: &&Vec<u8>| TreeChange { path: path.to_vec(), before: None, after: None };
    repository.restore_paths(after, &paths.iter().map(moved).collect::<Vec<_>>())?;
    Ok(Some(format!("{refusals}; this is kept in {}", folder.display())))
}

/// Why git cannot add files.
pub(in crate::pipeline) fn refusals(unreadable: &[&Unreadable]) -> String {
    let reasons = unreadable.iter().take(MAX_REASONS).map(|found| found.why.as_str());
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let more = match unreadable.len().saturating_sub(MAX_REASONS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("git cannot add {}: {reasons}{more}", if unreadable.len() == 1 { "a file" } else { "files" })
}

/// Moves folders that git cannot read out of the worktree, each with the folders around it that contain nothing else.
/// Returns a message.
fn move_closed(repository: &Repository, closed: &[&Vec<u8>]) -> String {
    let top = repository.top();
    let holders: BTreeSet<Vec<u8>> = closed.iter().map(|path| holder_of(top, path)).collect();
    let shown: Vec<String> = holders.iter().map(|path| shortened(&String::from_utf8_lossy(path))).collect();
    for path in closed {
        // Only a folder that its owner may write can be moved. If that fails, moving it fails, too.
        let _ = safe_files::allow_owner(&top.join(OsStr::from_bytes(path)));
    }
    let kept = match move_to_new_folder(repository, &holders.iter().collect::<Vec<_>>()) {
        Ok(folder) => format!("that is kept in {}", folder.display()),
        Err(error) => format!("it could not be moved away: {error}"),
    };
    format!("it made a folder that git cannot read: {}; {kept}", shown.join(", "))
}

/// The outermost folder that contains nothing but this one. Folders that cannot be listed count as such.
fn holder_of(top: &Path, path: &[u8]) -> Vec<u8> {
    let mut holder = Path::new(OsStr::from_bytes(path));
    while let Some(parent) = holder.parent().filter(|parent| !parent.as_os_str().is_empty())
        && safe_files::list_kinds(&top.join(parent)).is_ok_and(|names| names.len() == 1)
    {
        holder = parent;
    }
    holder.as_os_str().as_bytes().to_vec()
}

/// The beginning of a path that may be very long.
fn shortened(path: &str) -> String {
    let start: String = path.chars().take(LONGEST_SHOWN).collect();
    if start.len() == path.len() { visible(path) } else { visible(&start) + "..." }
}

/// Moves folders of the worktree into a new, empty folder.
fn move_to_new_folder(repository: &Repository, paths: &[&Vec<u8>]) -> io::Result<PathBuf> {
    let aside = new_folder(&repository.common_dir.join(MOVED_OUT_FOLDER))?;
    for path in paths {
        let path = Path::new(OsStr::from_bytes(path));
        let to = aside.join(path);
        safe_files::rename(&repository.top().join(path), &to)?;
    }
    Ok(aside)
}

fn new_folder(below: &Path) -> io::Result<PathBuf> {
    safe_files::make_folders(below)?;
    let mut number = 1;
    loop {
        let folder = below.join(number.to_string());
        match safe_files::make_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| folder),
        }
    }
}
