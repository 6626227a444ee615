//! Refs: reading and moving them, and restoring those that a run owns. This file reads refs and revisions.

pub(super) mod branch_use;
pub(super) mod bulk_reads;
pub(super) mod forged_steps;
pub(super) mod moved_refs;
pub(super) mod notes;
pub(super) mod owned_refs;
pub(super) mod packed_refs;
pub(super) mod recovery_notes;
pub(super) mod ref_files;
pub(super) mod ref_updater;
pub(super) mod reflog_links;
pub(super) mod reflogs;
pub(super) mod transaction;
pub(super) mod user_refs;
pub(super) mod written_refs;

use std::collections::BTreeSet;

use crate::{
    git::{
        GitCommand, GitError, Head, RefMove, Repository,
        command::{checked, range_input},
        objects::odb::StoredKind,
        refs::owned_refs::OwnedRefs,
    },
    name::{BranchName, ObjectKind, Oid},
    process::BackgroundProgram,
};

/// A ref and the object that it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    /// The full name.
    pub name: String,
    /// The object.
    pub target: Oid,
}

/// The state of a branch, as seen from a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadOf {
    /// It is checked out there.
    Branch {
        /// Its newest commit.
        tip: Oid,
    },
    /// It exists, but something else is checked out.
    Elsewhere {
        /// Its newest commit.
        tip: Oid,
    },
    /// There is no such branch.
    Nowhere,
}

/// A list of refs that is being read.
#[derive(Debug)]
pub struct RefReader(Listing);

#[derive(Debug)]
enum Listing {
    /// The refs were read from their files.
    Read(Vec<Ref>),
    /// git is listing them.
    BackgroundProgram(BackgroundProgram),
}

impl RefReader {
    fn of(command: GitCommand, prefixes: &[&str]) -> Self {
        let command = command.arg("--format=%(objectname) %(refname)").args(prefixes);
        Self(Listing::BackgroundProgram(command.finish_in_background()))
    }

    /// Waits for the list.
    pub fn finish(self) -> Result<Vec<Ref>, GitError> {
        let awaited = match self.0 {
            Listing::Read(refs) => return Ok(refs),
            Listing::BackgroundProgram(awaited) => awaited,
        };
        let printed = checked("for-each-ref", awaited.finish()?)?;
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| parse_ref(line).ok_or_else(|| unexpected(line))).collect()
    }
}

/// A running check whether a commit is reachable from refs.
#[derive(Debug)]
pub struct ReachabilityCheck {
    running: BackgroundProgram,
    repository: Box<Repository>,
    commit: Oid,
}

impl ReachabilityCheck {
    /// Whether it is reachable.
    pub fn finish(self) -> Result<bool, GitError> {
        let ended = self.running.finish()?;
        if ended.status.success() {
            return Ok(ended.stdout.is_empty());
        }
        let is_lasting = |name: &str| !TEMPORARY.iter().any(|prefix| name.starts_with(prefix));
        Ok(self.repository.list_unheld(&["-1"], &[self.commit], is_lasting)?.is_empty())
    }
}

/// Refs that end with an operation or with a worktree. Each worktree has its own.
pub(in crate::git) const TEMPORARY: [&str; 3] = ["refs/bisect/", "refs/rewritten/", "refs/worktree/"];

impl Repository {
    /// The refs below each of `prefixes`.
    pub fn list_refs(&self, prefixes: &[&str]) -> Result<Vec<Ref>, GitError> {
        self.start_listing_refs(prefixes)?.finish()
    }

    /// Like [`Self::list_refs`], but always from git, and with whether each is a symbolic ref.
    pub(in crate::git) fn list_refs_and_links(
        &self,
        prefixes: &[&str],
    ) -> Result<Vec<(Ref, bool)>, GitError> {
        let command = self.git("for-each-ref").arg("--format=%(objectname) %(refname) %(symref)");
        let printed = command.args(prefixes).stdout()?;
        let parse = |line: &str| {
            let (found, link) = line.rsplit_once(' ')?;
            Some((parse_ref(found)?, !link.is_empty()))
        };
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| parse(line).ok_or_else(|| unexpected(line))).collect()
    }

    /// Starts to list the refs below each of `prefixes` in the background.
    pub fn start_listing_refs(&self, prefixes: &[&str]) -> Result<RefReader, GitError> {
        Ok(match self.read_refs(prefixes) {
            Some(refs) => RefReader(Listing::Read(refs)),
            None => RefReader::of(self.git("for-each-ref"), prefixes),
        })
    }

    /// The refs below `prefix`, newest commits first.
    pub fn list_refs_by_age(&self, prefix: &str) -> Result<Vec<Ref>, GitError> {
        RefReader::of(self.git("for-each-ref"), &["--sort=-creatordate", prefix]).finish()
    }

    /// The tip of a local branch, if it exists. A tag of the same name does not matter.
    pub fn find_branch(&self, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        self.find_ref(&branch.to_ref())
    }

    /// Refuses a branch whose name is a folder of this run's task branches: git cannot have both, and the run would take
    /// it for one that an agent created there.
    pub fn refuse_branch_in_the_way(&self, run: &BranchName) -> Result<(), GitError> {
        let refs = run.task_refs();
        let folder = refs.trim_end_matches('/').trim_start_matches("refs/heads/");
        for (end, _) in folder.match_indices('/').chain([(folder.len(), "")]) {
            let branch = &folder[..end];
            if self.find_ref(&format!("refs/heads/{branch}"))?.is_some() {
                let (branch, folder) = (branch.to_owned(), folder.to_owned());
                return Err(GitError::BranchInTheWay { branch, folder });
            }
        }
        Ok(())
    }

    /// The target of the ref with this full name, if it exists.
    pub fn find_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if let Some(found) = self.find_ref_in_files(name) {
            return Ok(found);
        }
        let refs = self.list_refs(&[name])?;
        Ok(refs.into_iter().find(|found| found.name == name).map(|found| found.target))
    }

    /// Saves a commit as the ref `name`, below `refs/arborist/saved/`. Returns whether it was not saved there yet. Fails if
    /// the ref is at another commit: another process wrote it, and it may be the only ref to that commit.
    pub fn save_commit(&self, name: &str, commit: Oid) -> Result<bool, GitError> {
        match self.find_ref(name)? {
            Some(found) if found == commit && !self.is_symbolic_ref(name) => return Ok(false),
            Some(_) => return Err(GitError::SavedElsewhere { name: name.to_owned(), commit }),
            None => {}
        }
        self.move_refs(&[RefMove { name, new: Some(commit), old: None }], "arborist: saved")?;
        Ok(true)
    }

    /// The recorded value of an owned ref, `Some(None)` if it should not exist; `None` if the ref is not owned.
    #[must_use]
    pub fn find_owned_ref(&self, name: &str) -> Option<Option<Oid>> {
        let owned = OwnedRefs::of(self);
        let table = owned.lock();
        table.owns(name).then(|| table.values.get(name).copied())
    }

    /// The recorded value of an owned ref, or of the branch that the run works on. Only the driver's own commits count
    /// there: commits of an agent are on disk until the driver replaces them.
    #[must_use]
    pub fn find_recorded_ref(&self, name: &str) -> Option<Option<Oid>> {
        OwnedRefs::of(self).lock().find_recorded(name)
    }

    /// The short names of the branches that runs of this process work on.
    #[must_use]
    pub fn run_branches(&self) -> Vec<String> {
        OwnedRefs::of(self).lock().run_branches()
    }

    /// The tip of a branch: the recorded value if the branch is owned, otherwise the value on disk.
    pub fn find_own_branch(&self, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        let name = branch.to_ref();
        match self.find_owned_ref(&name) {
            Some(known) => Ok(known),
            None => self.find_ref(&name),
        }
    }

    /// The tip of a branch, and whether it is checked out here.
    pub fn find_head(&self, branch: &BranchName) -> Result<HeadOf, GitError> {
        match self.read_head_file(&self.git_dir) {
            Some(head) => Ok(match self.find_branch(branch)? {
                Some(tip) if head.branch.as_ref() == Some(branch) => HeadOf::Branch { tip },
                Some(tip) => HeadOf::Elsewhere { tip },
                None => HeadOf::Nowhere,
            }),
            None => self.ask_git_for_head(branch),
        }
    }

    /// Whether `HEAD` is on this branch, which is at `tip` and is not symbolic.
    pub fn is_head_at(&self, branch: &BranchName, tip: Oid) -> Result<bool, GitError> {
        let name = branch.to_ref();
        if self.has_files_backend {
            return Ok(self.find_head_branch()?.as_ref() == Some(branch)
                && !self.is_symbolic_ref(&name)
                && self.find_branch(branch)? == Some(tip));
        }
        // One question instead of three: this is asked several times for each task.
        let command = self.git("for-each-ref").arg("--format=%(HEAD)%(objectname) %(refname) %(symref)");
        let printed = command.arg(&name).stdout()?;
        let wanted = format!("*{tip} {name} ");
        Ok(printed.split(|byte| *byte == b'\n').any(|line| line == wanted.as_bytes()))
    }

    /// Like [`Self::find_head`], by one question to git.
    fn ask_git_for_head(&self, branch: &BranchName) -> Result<HeadOf, GitError> {
        let name = branch.to_ref();
        let command = self.git("for-each-ref").arg("--format=%(HEAD)%(objectname) %(refname)").arg(&name);
        let text = command.text()?;
        let Some(line) = text.lines().find(|line| line.ends_with(&format!(" {name}"))) else {
            return Ok(HeadOf::Nowhere);
        };
        let is_head = line.starts_with('*');
        let tip = parse_ref(line.get(1..).unwrap_or_default()).ok_or_else(|| unexpected(line))?.target;
        Ok(if is_head { HeadOf::Branch { tip } } else { HeadOf::Elsewhere { tip } })
    }

    /// The commit that `revision` names, if it names one.
    pub fn find_commit(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        if let Some(id) = self.find_revision_in_files(revision)? {
            match self.find_object(id, ObjectKind::Commit.as_str())?.map(|found| found.kind) {
                Some(StoredKind::Known(ObjectKind::Commit)) => return Ok(Some(id)),
                Some(StoredKind::Known(_)) | None => return Ok(None),
                Some(StoredKind::Tag) => {}
            }
        }
        let printed = self
            .git("rev-parse")
            .args(["--verify", "--quiet", "--end-of-options"])
            .arg(format!("{revision}^{{commit}}"))
            .finish()?;
        if !printed.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&printed.stdout);
        text.trim().parse().map(Some).map_err(|_| unexpected(&text))
    }

    /// The object of a full id, of `HEAD` or of a full ref name, which mean the same to git. `None` if only git can
    /// tell.
    fn find_revision_in_files(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        if let Ok(id) = revision.parse::<Oid>() {
            return Ok((id.format() == self.format).then_some(id));
        }
        if revision != "HEAD" {
            return Ok(self.find_ref_in_files(revision).flatten());
        }
        Ok(match self.read_head_file(&self.git_dir) {
            Some(Head { branch: Some(branch), .. }) => self.find_branch(&branch)?,
            Some(head) => head.commit,
            None => None,
        })
    }

    /// Whether `old` is `new` or one of its ancestors.
    pub fn is_ancestor(&self, old: Oid, new: Oid) -> Result<bool, GitError> {
        if let Some(is_ancestor) = self.walk_to_ancestor(old, new)? {
            return Ok(is_ancestor);
        }
        let command = self.git("merge-base").arg("--is-ancestor").args([old.to_string(), new.to_string()]);
        Ok(command.answer()?.is_some())
    }

    /// Whether `commit` is reachable from a ref that outlives every worktree.
    pub fn is_reachable_from_refs(&self, commit: Oid) -> Result<bool, GitError> {
        self.start_reachability_check(commit).finish()
    }

    /// Starts to look for such a ref in the background.
    #[must_use]
    pub fn start_reachability_check(&self, commit: Oid) -> ReachabilityCheck {
        let temporary = TEMPORARY.map(|prefix| format!("--exclude={prefix}*"));
        let command = self.git("rev-list").args(["-1", &commit.to_string(), "--not"]).args(temporary);
        let running = command.arg("--glob=refs/*").finish_in_background();
        ReachabilityCheck { running, repository: Box::new(self.clone()), commit }
    }

    /// What `git rev-list` prints with these options for `tips`, without what leads from the refs that `is_wanted`
    /// selects. Refs that cannot be read are left out with a warning. `--all` and `--glob` fail if there is one, so this
    /// is for the case that they have failed.
    pub fn list_unheld(
        &self,
        options: &[&str],
        tips: &[Oid],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<u8>, GitError> {
        let held: BTreeSet<Oid> = (self.list_readable_refs()?.into_iter())
            .filter(|found| is_wanted(&found.name))
            .map(|found| found.target)
            .collect();
        let held: Vec<Oid> = held.into_iter().collect();
        let command = self.git("rev-list").args(options).arg("--stdin");
        command.stdout_with(&range_input(tips, &held))
    }

    /// The commit that `revision` names.
    pub fn require_commit(&self, revision: &str) -> Result<Oid, GitError> {
        self.find_commit(revision)?.ok_or_else(|| GitError::Unknown(revision.to_owned(), "commit"))
    }
}

fn parse_ref(line: &str) -> Option<Ref> {
    let (target, name) = line.split_once(' ')?;
    Some(Ref { name: name.to_owned(), target: target.parse().ok()? })
}

fn unexpected(line: &str) -> GitError {
    GitError::unexpected("for-each-ref", line)
}
