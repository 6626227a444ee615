//! A private, throw-away git directory for an agent that commits by itself: in the sandbox it is in the place of the real
//! one. It has the refs and the index of the real one, and uses its objects. Afterwards the agent's commits are
//! copied into the repository.
//!
//! Everything in the directory comes from the agent, so no git command ever opens it as a repository: its configuration,
//! hooks and alternates mean nothing. Its refs are read here. Its objects are read by a git of the real repository, and
//! written again under the ids that belong to their content.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    git::{Config, GitCommand, GitError, Repository},
    name::{BranchName, ObjectFormat, Oid},
    process::{Cancel, Confinement, ProcessError, ReplacedPath, within},
    safe_files::{self, FileKind},
};

/// The largest sum of the agent's object files, and how many there may be.
const MAX_SIZE: u64 = 256 * 1024 * 1024;
const MAX_FILES: usize = 50_000;
/// The largest list of refs, and the largest ref.
const MAX_PACKED_REFS: u64 = 16 * 1024 * 1024;
const MAX_REF: u64 = 4096;
/// How many commits are kept that are not on the agent's branch.
const MAX_OTHERS: usize = 100;
/// How long reading and writing the objects may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Settings of the repository that git needs to see the worktree as it is, and to commit.
const COPIED_SETTINGS: [&str; 11] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "user.name",
    "user.email",
];
/// Files of the git directory of a worktree, and of the one that all worktrees share, that git needs for the same.
const COPIED_FILES: [&str; 2] = ["index", "info/sparse-checkout"];
const COPIED_SHARED_FILES: [&str; 3] = ["info/exclude", "info/attributes", "shallow"];

/// The directory. It is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateGit {
    _folder: TempDir,
    root: PathBuf,
    /// The `.git` of the worktree, and whether that is a folder.
    link: PathBuf,
    is_folder: bool,
    common_dir: PathBuf,
    base: Oid,
    /// The commits that had a ref before.
    known: BTreeSet<Oid>,
}

/// The commits that an agent made.
#[derive(Debug, Default)]
pub struct PrivateCommits {
    /// The newest one on the branch that the agent left checked out.
    pub tip: Option<Oid>,
    /// Those of other branches, and stashes.
    pub others: Vec<Oid>,
}

impl Repository {
    /// Makes a private git directory for the worktree of this repository, with `branch` checked out at `base`.
    pub fn make_private_git(&self, branch: &BranchName, base: Oid) -> Result<PrivateGit, GitError> {
        let folder =
            tempfile::Builder::new().prefix("git-arborist-").tempdir().map_err(|error| unwritten(&error))?;
        let link = self.top().join(".git");
        let kind = safe_files::kind_of(&link);
        if !matches!(kind, Some(FileKind::File | FileKind::Folder)) {
            let why = format!("'{}' is neither a file nor a folder", link.display());
            return Err(GitError::PrivateGit { why });
        }
        let mut private = PrivateGit {
            root: safe_files::resolved(folder.path()),
            _folder: folder,
            link: safe_files::resolved(self.top()).join(".git"),
            is_folder: kind == Some(FileKind::Folder),
            common_dir: self.common_dir.clone(),
            base,
            known: BTreeSet::new(),
        };
        let refs = self.list_refs(&["refs/heads/", "refs/tags/", "refs/remotes/"])?;
        private.known = refs.iter().map(|known| known.target).chain([base]).collect();
        let packed: String = refs.iter().map(|known| format!("{} {}\n", known.target, known.name)).collect();
        let config = self.private_config()?;
        private.write(self, &packed, &config, branch).map_err(|error| unwritten(&error))?;
        Ok(private)
    }

    /// The settings of the private directory.
    fn private_config(&self) -> Result<String, GitError> {
        let settings = Config::load(self)?;
        let mut text =
            "[core]\n\tbare = false\n\tlogAllRefUpdates = false\n\trepositoryFormatVersion = ".to_owned();
        text += match self.format {
            ObjectFormat::Sha1 => "0\n",
            ObjectFormat::Sha256 => "1\n[extensions]\n\tobjectFormat = sha256\n",
        };
        // Signing needs keys that the sandbox hides. Nothing must be packed or removed: the directory is short-lived.
        text += "[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        for key in COPIED_SETTINGS {
            let value = settings.find_text(key).filter(|value| !value.contains(['\n', '\0']));
            if let (Some(value), Some((section, name))) = (value, key.split_once('.')) {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                text += &format!("[{section}]\n\t{name} = \"{value}\"\n");
            }
        }
        Ok(text)
    }
}

impl Drop for PrivateGit {
    fn drop(&mut self) {
        // A folder that the agent has closed cannot be removed.
        let _ = safe_files::allow_writing_below(&self.root);
    }
}

impl PrivateGit {
    fn git_dir(&self) -> PathBuf {
        self.root.join("git")
    }

    /// Where the child finds the objects of the repository. Their usual path may be behind the private directory.
    fn shared_objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    fn gitfile(&self) -> PathBuf {
        self.root.join("gitfile")
    }

    fn write(
        &self,
        repository: &Repository,
        packed: &str,
        config: &str,
        branch: &BranchName,
    ) -> io::Result<()> {
        let git_dir = self.git_dir();
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            safe_files::make_folders(&git_dir.join(folder))?;
        }
        safe_files::make_folder(&self.shared_objects())?;
        let mut alternates = self.shared_objects().display().to_string() + "\n";
        // Git ignores relative paths in the alternates of alternates.
        for folder in object_folders(&self.common_dir).iter().skip(1) {
            alternates += &format!("{}\n", folder.display());
        }
        let branch = branch.to_ref();
        for (name, text) in [
            ("HEAD", format!("ref: {branch}\n")),
            (branch.as_str(), format!("{}\n", self.base)),
            ("packed-refs", packed.to_owned()),
            ("config", config.to_owned()),
            ("objects/info/alternates", alternates),
        ] {
            safe_files::write(&git_dir.join(name), text.as_bytes())?;
        }
        safe_files::write(&self.gitfile(), format!("gitdir: {}\n", git_dir.display()).as_bytes())?;
        let copied = COPIED_FILES.iter().map(|name| (repository.git_dir.join(name), *name));
        let shared = COPIED_SHARED_FILES.iter().map(|name| (self.common_dir.join(name), *name));
        for (from, name) in copied.chain(shared).filter(|(from, _)| from.is_file()) {
            safe_files::copy(&from, &git_dir.join(name))?;
        }
        let is_part_of_index = |name: &str| name.starts_with("sharedindex.");
        for entry in safe_files::list_kinds(&repository.git_dir)? {
            let name = entry.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_part_of_index(name) && entry.kind == FileKind::File {
                safe_files::copy(&entry.path, &git_dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Lets a child find the private directory in the place of the real one.
    pub fn grant(&self, confinement: &mut Confinement) {
        let replace = |path: PathBuf, by: PathBuf, is_writable| ReplacedPath { path, by, is_writable };
        confinement.replaced.push(replace(self.shared_objects(), self.common_dir.join("objects"), false));
        if !self.is_folder {
            confinement.add(self.git_dir());
            confinement.replaced.push(replace(self.link.clone(), self.gitfile(), false));
            return;
        }
        confinement.replaced.push(replace(self.link.clone(), self.git_dir(), true));
        // The checkouts of submodules lead there.
        let modules = self.common_dir.join("modules");
        if safe_files::kind_of(&modules) == Some(FileKind::Folder) {
            confinement.replaced.push(replace(self.link.join("modules"), modules, false));
        }
    }

    /// Copies the agent's commits into the repository, after the agent has ended. No ref is written.
    pub fn take_commits(&self, repository: &Repository) -> Result<PrivateCommits, GitError> {
        // The agent may have closed folders. What stays closed cannot be read.
        let _ = safe_files::allow_writing_below(&self.root);
        let tip = self.read_tip().filter(|tip| !self.known.contains(tip));
        let mut others = self.read_refs();
        others.retain(|other| !self.known.contains(other) && Some(*other) != tip);
        if tip.is_none() && others.is_empty() {
            return Ok(PrivateCommits::default());
        }
        if !self.remove_untrusted()? {
            return Err(GitError::PrivateGit { why: "they are too large".to_owned() });
        }
        within(TIME_LIMIT, &Cancel::new(), || self.copy_objects(repository, tip.iter().chain(&others)))?;
        for commit in tip.iter().chain(&others) {
            repository.require_commit(&commit.to_string())?;
        }
        Ok(PrivateCommits { tip, others: others.into_iter().collect() })
    }

    /// The commit that the agent has checked out, if the repository has it. Others are known after
    /// [`Self::take_commits`].
    pub fn find_checked_out(&self, repository: &Repository) -> Result<Option<Oid>, GitError> {
        self.read_tip().map_or(Ok(None), |tip| repository.find_commit(&tip.to_string()))
    }

    /// Whether the agent has checked out a commit on top of `head` that could not be copied. `false` if that is not
    /// known. The agent must have ended.
    pub fn is_on_top_of(&self, repository: &Repository, head: Oid) -> bool {
        let Some(tip) = self.read_tip() else { return false };
        if self.remove_untrusted().is_err() {
            return false;
        }
        let folders = std::env::join_paths(object_folders(&self.common_dir)).unwrap_or_default();
        let command = self.reading(repository, "merge-base", &folders).arg("--is-ancestor");
        let command = command.args([head.to_string(), tip.to_string()]);
        let answer = within(TIME_LIMIT, &Cancel::new(), || command.finish());
        answer.is_ok_and(|printed| printed.status.success())
    }

    /// The commit that is checked out. Only the forms that git writes are read; everything else is not known.
    fn read_tip(&self) -> Option<Oid> {
        let head = self.read_text("HEAD", MAX_REF)?;
        match head.strip_prefix("ref: ") {
            Some(name) => self.read_ref(name.trim_end()),
            None => head.trim_end().parse().ok(),
        }
    }

    fn read_ref(&self, name: &str) -> Option<Oid> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !name.starts_with("refs/") || !Path::new(name).components().all(is_plain) {
            return None;
        }
        let find_packed = || {
            let packed = self.read_text("packed-refs", MAX_PACKED_REFS)?;
            let mut found = packed.lines().filter_map(|line| line.split_once(' '));
            found.find(|(_, known)| *known == name).map(|(id, _)| id.to_owned())
        };
        let path = self.git_dir().join(name);
        let text = match safe_files::read_up_to(&path, MAX_REF) {
            Ok(text) => String::from_utf8(text).ok(),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                find_packed()
            }
            Err(_) if safe_files::kind_of(&path) == Some(FileKind::Folder) => find_packed(),
            // The packed ref may be older than the one that cannot be read.
            Err(_) => None,
        };
        text?.trim_end().parse().ok()
    }

    /// The targets of all refs that are files.
    fn read_refs(&self) -> BTreeSet<Oid> {
        let (mut found, mut open) = (BTreeSet::new(), vec![self.git_dir().join("refs")]);
        let mut count = 0;
        while let Some(folder) = open.pop().filter(|_| count < MAX_FILES && found.len() < MAX_OTHERS) {
            for entry in safe_files::list_kinds(&folder).unwrap_or_default() {
                count += 1;
                match entry.kind {
                    FileKind::Folder => open.push(entry.path),
                    FileKind::File => found.extend(
                        safe_files::read_up_to(&entry.path, MAX_REF)
                            .ok()
                            .and_then(|text| String::from_utf8(text).ok()?.trim_end().parse::<Oid>().ok()),
                    ),
                    FileKind::Link | FileKind::Special => {}
                }
            }
        }
        found
    }

    fn read_text(&self, name: &str, most: u64) -> Option<String> {
        String::from_utf8(safe_files::read_up_to(&self.git_dir().join(name), most).ok()?).ok()
    }

    /// Removes everything from the folder of objects that is neither an object nor a pack, so that git follows no link
    /// and uses no other folder. Returns whether the objects are small enough to be copied.
    fn remove_untrusted(&self) -> Result<bool, GitError> {
        let objects = self.git_dir().join("objects");
        let (mut count, mut size) = (0, 0);
        for folder in safe_files::list_kinds(&objects).map_err(unread)? {
            let is_pack = folder.path.ends_with("pack");
            let name = folder.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if folder.kind != FileKind::Folder || !(is_pack || (name.len() == 2 && is_hex(name))) {
                safe_files::remove_all(&folder.path).map_err(unread)?;
                continue;
            }
            for file in safe_files::list_kinds(&folder.path).map_err(unread)? {
                let is_object = if is_pack { is_pack_file(&file.path) } else { is_loose_object(&file.path) };
                if file.kind != FileKind::File || !is_object {
                    safe_files::remove_all(&file.path).map_err(unread)?;
                    continue;
                }
                count += 1;
                size += file.path.symlink_metadata().map_err(unread)?.len();
            }
        }
        Ok(count <= MAX_FILES && size <= MAX_SIZE)
    }

    /// Writes the objects of these commits into the repository. Their ids are computed again from their content, so a
    /// forged object gets another id, and the commit is missing afterwards.
    fn copy_objects<'c>(
        &self,
        repository: &Repository,
        commits: impl Iterator<Item = &'c Oid>,
    ) -> Result<(), GitError> {
        let folders = std::env::join_paths(object_folders(&self.common_dir))
            .map_err(|error| GitError::PrivateGit { why: error.to_string() })?;
        let names: Vec<String> = commits.map(ToString::to_string).collect();
        let new = self.reading(repository, "rev-list", &folders);
        let new = new.args(["--objects", "--no-object-names"]).args(&names).arg(format!("^{}", self.base));
        let new = new.stdout()?;
        let packed = self.reading(repository, "pack-objects", &folders).args(["--stdout", "-q"]);
        let packed = packed.stdout_with(&new)?;
        let write = repository.change_with("unpack-objects", &LARGE_BLOBS).args(["-q", "--strict"]);
        write.stdout_with(&packed).map(drop)
    }

    /// A git command of the real repository that also finds the agent's objects.
    fn reading(&self, repository: &Repository, name: &str, folders: &OsString) -> GitCommand {
        let command = repository.change_with(name, &LARGE_BLOBS);
        command
            .env("GIT_OBJECT_DIRECTORY", self.git_dir().join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", folders)
    }
}

/// Larger blobs are not kept in memory.
const LARGE_BLOBS: [&str; 1] = ["core.bigFileThreshold=16m"];

/// The folders of a repository's objects: its own, and its alternates.
#[must_use]
pub fn object_folders(common_dir: &Path) -> Vec<PathBuf> {
    let objects = common_dir.join("objects");
    let text = safe_files::read_up_to(&objects.join("info/alternates"), MAX_PACKED_REFS).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let others = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let others: Vec<PathBuf> = others.map(|line| objects.join(line)).collect();
    [objects].into_iter().chain(others).collect()
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_loose_object(file: &Path) -> bool {
    file.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| matches!(name.len(), 38 | 62) && is_hex(name))
}

fn is_pack_file(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = name.strip_prefix("pack-").and_then(|rest| rest.split_once('.'));
    id.is_some_and(|(id, ending)| is_hex(id) && matches!(ending, "pack" | "idx"))
}

fn unwritten(source: &io::Error) -> GitError {
    GitError::PrivateGit { why: format!("a private git directory cannot be made: {source}") }
}

fn unread(source: io::Error) -> GitError {
    GitError::Process(ProcessError { program: "git".into(), source })
}
