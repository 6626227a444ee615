//! Merges without a checkout: `git merge-tree` merges two commits into a tree, and its conflicts are read by the type
//! names that git prints for machines.

pub(super) mod added_lines;
pub(super) mod conflict_markers;
pub(super) mod diff;
pub(super) mod renames;
pub(super) mod three_way;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    git::{
        GitCommand, GitError, Repository,
        command::{checked, without_prefix},
    },
    name::{ObjectKind, Oid, RepoName},
    process::ProgramOutput,
    words::words,
};

/// Settings that change the result of a merge, fixed so that every machine gets the same.
///
/// `merge=union` in a tracked file would join lines of both sides without review. A configured driver of that name
/// takes precedence over git's own, and this one merges like git without an attribute.
pub(in crate::git) const PINNED: [&str; 7] = [
    "merge.union.driver=git merge-file --zdiff3 --marker-size=%L -L ours -L base -L theirs %A %O %B",
    "merge.renames=true",
    "diff.renames=true",
    "merge.renameLimit=7000",
    "merge.directoryRenames=conflict",
    "merge.renormalize=false",
    "merge.conflictStyle=zdiff3",
];

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// A tree without conflicts.
    Clean(Oid),
    /// A tree with conflict markers, and the conflicts.
    Conflicted(Oid, Vec<MergeConflict>),
}

/// One conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeConflict {
    /// Its kind.
    pub kind: ConflictKind,
    /// The files with the conflict.
    pub paths: Vec<String>,
    /// git's message.
    pub message: String,
    /// The file in the common ancestor, if it existed.
    pub base: Option<Version>,
    /// The file on our side, if it exists.
    pub ours: Option<Version>,
    /// The file on their side, if it exists.
    pub theirs: Option<Version>,
}

impl MergeConflict {
    /// Whether it is about a path. Where a file conflicts with a folder, git renames the file to `path~branch`.
    #[must_use]
    pub fn is_about(&self, path: &str) -> bool {
        let versions = [&self.base, &self.ours, &self.theirs].into_iter().flatten();
        let mut known = self.paths.iter().chain(versions.map(|version| &version.path));
        known.any(|known| {
            let rest = path.strip_prefix(known.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '/']))
        })
    }
}

impl MergeConflict {
    /// This conflict, with paths that name the repository.
    #[must_use]
    pub fn in_repository(mut self, name: &RepoName) -> Self {
        self.paths.iter_mut().for_each(|path| *path = format!("{name}:{path}"));
        self
    }

    /// Whether the file in the worktree of a merge cannot be the resolution unchanged. The result of a merge driver
    /// can, if a reviewer approves it.
    #[must_use]
    pub fn needs_edits(&self) -> bool {
        self.kind != ConflictKind::Driver
    }
}

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Version {
    /// Its path.
    pub path: String,
    /// Its mode, in octal digits.
    pub mode: String,
    /// The blob.
    pub id: Oid,
}

words! {
    /// The kinds of conflicts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ConflictKind {
        /// Both sides changed the same lines.
        Content = "content",
        /// Both sides added the file with different content.
        AddAdd = "add/add",
        /// One side changed what the other deleted.
        ModifyDelete = "modify/delete",
        /// Both sides renamed it differently, or different files to the same name.
        RenameRename = "rename/rename",
        /// One side renamed what the other deleted.
        RenameDelete = "rename/delete",
        /// One side has a file where the other has a folder.
        FileDirectory = "file/directory",
        /// The kinds differ, for example a file and a link.
        Mode = "mode",
        /// Both sides changed a binary file.
        Binary = "binary",
        /// Both sides moved a submodule.
        Submodule = "submodule",
        /// Both sides changed it, and it was merged by something other than git's merge of lines.
        Driver = "merge driver",
        /// Any other conflict.
        Unknown = "unknown",
    }
}

impl ConflictKind {
    /// What happened to the files, for people. The paths follow.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Content => "both sides changed",
            Self::AddAdd => "both sides added",
            Self::ModifyDelete => "one side changed, and the other side deleted",
            Self::RenameRename => "both sides renamed, differently:",
            Self::RenameDelete => "one side renamed, and the other side deleted",
            Self::FileDirectory => "a file on one side and a folder on the other:",
            Self::Mode => "not the same kind of file on both sides:",
            Self::Binary => "both sides changed the binary file",
            Self::Submodule => "both sides changed the submodule",
            Self::Driver => "both sides changed, and git did not merge line by line:",
            Self::Unknown => "git could not merge",
        }
    }

    /// Whether git leaves conflict markers in the file, so that a file without them is resolved.
    #[must_use]
    pub fn leaves_marks(self) -> bool {
        matches!(self, Self::Content | Self::AddAdd)
    }

    /// The kind for git's stable type name; `None` for a type that is no conflict.
    fn of_type(name: &str) -> Option<Self> {
        let known = match name {
            "CONFLICT (contents)" => Self::Content,
            "CONFLICT (binary)" => Self::Binary,
            "CONFLICT (file/directory)" => Self::FileDirectory,
            "CONFLICT (distinct modes)" => Self::Mode,
            "CONFLICT (modify/delete)" => Self::ModifyDelete,
            "CONFLICT (rename/rename)" | "CONFLICT (rename involved in collision)" => Self::RenameRename,
            "CONFLICT (rename/delete)" => Self::RenameDelete,
            other if other.starts_with("CONFLICT (submodule") => Self::Submodule,
            other if other.starts_with("CONFLICT") || other.starts_with("ERROR") => Self::Unknown,
            _ => return None,
        };
        Some(known)
    }
}

impl Repository {
    /// Merges `theirs` into `ours`. Attributes are taken from `ours`, and no checkout is read or written. The result is
    /// verified against the merged trees.
    pub fn merge(&self, ours: Oid, theirs: Oid) -> Result<Merge, GitError> {
        let checked = self.check_merge([ours, theirs], self.ask_for_merge(ours, theirs)?)?;
        if checked.is_explained {
            return Ok(checked.merge);
        }
        // An object that was replaced for a moment is back by now. A merge driver gives the same result again.
        Ok(self.check_merge([ours, theirs], self.ask_for_merge(ours, theirs)?)?.merge)
    }

    fn ask_for_merge(&self, ours: Oid, theirs: Oid) -> Result<Merge, GitError> {
        let command = self
            .pin_shared(GitCommand::changing("merge-tree", &self.common_dir, &PINNED))
            .env("GIT_ATTR_SOURCE", ours.to_string())
            .args(["--write-tree", "-z"])
            .args([ours.to_string(), theirs.to_string()]);
        read_merge(&command.finish()?)
    }

    /// Starts a merge of `theirs` in this worktree, which must be ours. It is left there, with or without conflicts, to
    /// be continued.
    pub fn begin_merge(&self, theirs: Oid) -> Result<(), GitError> {
        let command = self.change_with("merge", &PINNED);
        let ended = command.args(["--quiet", "--no-commit", "--no-ff", &theirs.to_string()]).finish()?;
        match ended.status.code() {
            Some(0 | 1) => Ok(()),
            _ => checked("merge", ended).map(drop),
        }
    }

    /// The commit on top of which `theirs` is merged in this worktree: `HEAD`, or its first parent if the merge was
    /// committed; `None` if the merge was aborted, or another one is in progress.
    pub fn find_merge_onto(&self, theirs: Oid) -> Result<Option<Oid>, GitError> {
        let head = self.require_commit("HEAD")?;
        if let Some(merging) = self.find_commit("MERGE_HEAD")? {
            return Ok((merging == theirs).then_some(head));
        }
        if !self.is_ancestor(theirs, head)? {
            return Ok(None);
        }
        Ok(self.load_commits(&[head])?.first().and_then(|commit| commit.parents().next()))
    }

    /// The paths of this worktree with conflicts, according to the index alone.
    pub fn unmerged(&self) -> Result<Vec<String>, GitError> {
        let printed = self.git("ls-files").args(["--unmerged", "-z", "--full-name", "--", ":/"]).stdout()?;
        let sides = printed.split(|b| *b == 0).filter_map(|side| side.splitn(2, |b| *b == b'\t').nth(1));
        let mut names: Vec<String> = sides.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.dedup();
        Ok(names)
    }

    /// The tree that holds nothing.
    pub fn empty_tree(&self) -> Result<Oid, GitError> {
        self.write_object(ObjectKind::Tree, b"")
    }
}

/// Exit code 1 is a conflict only if a tree is printed: an unknown name gives the same code.
fn read_merge(ended: &ProgramOutput) -> Result<Merge, GitError> {
    let tree = ended.stdout.split(|b| *b == 0).next().and_then(Oid::from_hex);
    match (ended.status.code(), tree) {
        (Some(0), Some(tree)) => Ok(Merge::Clean(tree)),
        (Some(1), Some(tree)) => Ok(Merge::Conflicted(tree, parse_conflicts(&ended.stdout)?)),
        _ => Err(GitError::Failed {
            command: "merge-tree".into(),
            complaint: without_prefix(&ended.complaint()),
        }),
    }
}

/// A path in the index of an unfinished merge.
struct Stage {
    number: u8,
    version: Version,
}

/// Parses `tree NUL`, records `mode SP id SP stage TAB path NUL`, `NUL`, records `count NUL path… NUL type NUL message
/// NUL`.
fn parse_conflicts(printed: &[u8]) -> Result<Vec<MergeConflict>, GitError> {
    let unexpected = || GitError::unexpected("merge-tree", "a record of another form");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = printed.split(|b| *b == 0).skip(1);
    let mut stages = Vec::new();
    for field in fields.by_ref().take_while(|field| !field.is_empty()) {
        stages.push(parse_stage(&text(field)).ok_or_else(unexpected)?);
    }
    let mut conflicts = Vec::new();
    while let Some(count) = fields.next().filter(|count| !count.is_empty()) {
        let count: usize = text(count).parse().map_err(|_| unexpected())?;
        let paths: Vec<String> = fields.by_ref().take(count).map(text).collect();
        let (Some(name), Some(message)) = (fields.next(), fields.next()) else {
            return Err(unexpected());
        };
        if let Some(kind) = ConflictKind::of_type(&text(name)) {
            conflicts.push(conflict(kind, paths, text(message).trim_end(), &stages));
        }
    }
    if conflicts.is_empty() {
        let paths = stages.iter().map(|stage| stage.version.path.clone()).collect();
        conflicts.push(conflict(ConflictKind::Unknown, paths, "the merge did not come to an end", &stages));
    }
    Ok(without_echoes(conflicts))
}

fn parse_stage(record: &str) -> Option<Stage> {
    let (head, path) = record.split_once('\t')?;
    let mut words = head.split(' ');
    let (mode, id, number) = (words.next()?, words.next()?, words.next()?);
    let version = Version { path: path.to_owned(), mode: mode.to_owned(), id: id.parse().ok()? };
    Some(Stage { number: number.parse().ok()?, version })
}

/// A file that both sides added has no base.
fn conflict(kind: ConflictKind, paths: Vec<String>, message: &str, stages: &[Stage]) -> MergeConflict {
    let version = |number: u8| {
        let found = paths.iter().find_map(|path| {
            stages.iter().find(|stage| stage.number == number && stage.version.path == *path)
        });
        found.map(|stage| stage.version.clone())
    };
    let (base, ours, theirs) = (version(1), version(2), version(3));
    let is_added = base.is_none() && ours.is_some() && theirs.is_some();
    let kind = if kind == ConflictKind::Content && is_added { ConflictKind::AddAdd } else { kind };
    MergeConflict { kind, paths, message: message.to_owned(), base, ours, theirs }
}

/// Removes duplicates: a binary file is reported twice, as binary and as a content conflict.
fn without_echoes(conflicts: Vec<MergeConflict>) -> Vec<MergeConflict> {
    let binary: Vec<Vec<String>> = conflicts
        .iter()
        .filter(|conflict| conflict.kind == ConflictKind::Binary)
        .map(|conflict| conflict.paths.clone())
        .collect();
    let is_echo = |conflict: &MergeConflict| {
        matches!(conflict.kind, ConflictKind::Content | ConflictKind::AddAdd)
            && binary.contains(&conflict.paths)
    };
    conflicts.into_iter().filter(|conflict| !is_echo(conflict)).collect()
}
