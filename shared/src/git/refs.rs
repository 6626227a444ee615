//! Refs and revisions.

use super::{GitCommand, GitError, Head, Repository, command::checked, odb::StoredKind};
use crate::{
    name::{BranchName, ObjectKind, Oid},
    process::Awaited,
};

/// A ref and what it points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    /// The full name.
    pub name: String,
    /// The object.
    pub target: Oid,
}

/// A branch, seen from a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadOf {
    /// It is checked out there.
    Branch {
        /// Its newest commit.
        tip: Oid,
    },
    /// It exists, and something else is checked out.
    Elsewhere {
        /// Its newest commit.
        tip: Oid,
    },
    /// There is no such branch.
    Nowhere,
}

/// Refs that are being listed.
#[derive(Debug)]
pub struct RefReader(Listing);

#[derive(Debug)]
enum Listing {
    /// They were read from their files.
    Read(Vec<Ref>),
    /// git lists them.
    Awaited(Awaited),
}

impl RefReader {
    fn of(command: GitCommand, prefixes: &[&str]) -> Self {
        let command = command.arg("--format=%(objectname) %(refname)").args(prefixes);
        Self(Listing::Awaited(command.finish_later()))
    }

    /// Waits for them.
    pub fn finish(self) -> Result<Vec<Ref>, GitError> {
        let awaited = match self.0 {
            Listing::Read(refs) => return Ok(refs),
            Listing::Awaited(awaited) => awaited,
        };
        let printed = checked("for-each-ref", awaited.finish()?)?;
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| parse_ref(line).ok_or_else(|| strange(line))).collect()
    }
}

/// The question whether a ref leads to a commit, while it is looked for.
#[derive(Debug)]
pub struct ReachabilityCheck(Awaited);

impl ReachabilityCheck {
    /// Whether one does.
    pub fn finish(self) -> Result<bool, GitError> {
        Ok(checked("rev-list", self.0.finish()?)?.is_empty())
    }
}

impl Repository {
    /// The refs below each of `prefixes`.
    pub fn list_refs(&self, prefixes: &[&str]) -> Result<Vec<Ref>, GitError> {
        self.start_listing_refs(prefixes)?.finish()
    }

    /// The same as git tells it, with whether each leads to another ref instead of an object.
    pub(super) fn list_refs_and_links(&self, prefixes: &[&str]) -> Result<Vec<(Ref, bool)>, GitError> {
        let command = self.git("for-each-ref").arg("--format=%(objectname) %(refname) %(symref)");
        let printed = command.args(prefixes).stdout()?;
        let parse = |line: &str| {
            let (found, link) = line.rsplit_once(' ')?;
            Some((parse_ref(found)?, !link.is_empty()))
        };
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| parse(line).ok_or_else(|| strange(line))).collect()
    }

    /// Begins to list the refs below each of `prefixes` while others read.
    pub fn start_listing_refs(&self, prefixes: &[&str]) -> Result<RefReader, GitError> {
        Ok(match self.read_refs(prefixes) {
            Some(refs) => RefReader(Listing::Read(refs)),
            None => RefReader::of(self.git("for-each-ref"), prefixes),
        })
    }

    /// The refs below `prefix`, those of the newest commits first.
    pub fn list_refs_by_age(&self, prefix: &str) -> Result<Vec<Ref>, GitError> {
        RefReader::of(self.git("for-each-ref"), &["--sort=-creatordate", prefix]).finish()
    }

    /// The tip of a local branch, if there is such a branch. A tag of the same name does not matter.
    pub fn find_branch(&self, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        self.find_ref(&branch.to_ref())
    }

    /// Whether a branch was ever moved to this very commit here, as far as its reflog goes.
    pub fn was_at(&self, branch: &BranchName, commit: Oid) -> Result<bool, GitError> {
        let ended = self.git("reflog").args(["show", "--format=%H", &branch.to_ref(), "--"]).finish()?;
        let id = commit.to_string();
        Ok(ended.status.success() && String::from_utf8_lossy(&ended.stdout).lines().any(|line| line == id))
    }

    /// What the ref of this full name points at, if there is one.
    pub fn find_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if let Some(found) = self.glance_at_ref(name) {
            return Ok(found);
        }
        let refs = self.list_refs(&[name])?;
        Ok(refs.into_iter().find(|found| found.name == name).map(|found| found.target))
    }

    /// Where a branch is, and whether it is the one that is checked out here.
    pub fn find_head(&self, branch: &BranchName) -> Result<HeadOf, GitError> {
        match self.glance_at_head(&self.git_dir) {
            Some(head) => Ok(match self.find_branch(branch)? {
                Some(tip) if head.branch.as_ref() == Some(branch) => HeadOf::Branch { tip },
                Some(tip) => HeadOf::Elsewhere { tip },
                None => HeadOf::Nowhere,
            }),
            None => self.ask_for_head(branch),
        }
    }

    /// Whether `HEAD` is on this branch, which is at `tip` and leads to no other ref.
    pub fn is_head_at(&self, branch: &BranchName, tip: Oid) -> Result<bool, GitError> {
        let name = branch.to_ref();
        if self.keeps_loose_refs {
            return Ok(self.find_head_branch()?.as_ref() == Some(branch)
                && !self.leads_elsewhere(&name)
                && self.find_branch(branch)? == Some(tip));
        }
        // One question instead of three: it is asked several times for a task.
        let command = self.git("for-each-ref").arg("--format=%(HEAD)%(objectname) %(refname) %(symref)");
        let printed = command.arg(&name).stdout()?;
        let wanted = format!("*{tip} {name} ");
        Ok(printed.split(|byte| *byte == b'\n').any(|line| line == wanted.as_bytes()))
    }

    /// The same as git tells it, in one question.
    fn ask_for_head(&self, branch: &BranchName) -> Result<HeadOf, GitError> {
        let name = branch.to_ref();
        let command = self.git("for-each-ref").arg("--format=%(HEAD)%(objectname) %(refname)").arg(&name);
        let printed = command.stdout()?;
        let text = String::from_utf8_lossy(&printed);
        let Some(line) = text.lines().find(|line| line.ends_with(&format!(" {name}"))) else {
            return Ok(HeadOf::Nowhere);
        };
        let is_head = line.starts_with('*');
        let tip = parse_ref(line.get(1..).unwrap_or_default()).ok_or_else(|| strange(line))?.target;
        Ok(if is_head { HeadOf::Branch { tip } } else { HeadOf::Elsewhere { tip } })
    }

    /// The commit that `revision` names, if it names one.
    pub fn find_commit(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        if let Some(id) = self.glance_at_revision(revision)? {
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
        text.trim().parse().map(Some).map_err(|_| strange(&text))
    }

    /// The object that a whole id, `HEAD` or the full name of a ref means to git too. `None` if only git can tell.
    fn glance_at_revision(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        if let Ok(id) = revision.parse::<Oid>() {
            return Ok((id.format() == self.format).then_some(id));
        }
        if revision != "HEAD" {
            return Ok(self.glance_at_ref(revision).flatten());
        }
        Ok(match self.glance_at_head(&self.git_dir) {
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

    /// Whether a ref that outlives every worktree leads to `commit`.
    pub fn is_held(&self, commit: Oid) -> Result<bool, GitError> {
        self.start_holding(commit).finish()
    }

    /// Begins to look for such a ref.
    #[must_use]
    pub fn start_holding(&self, commit: Oid) -> ReachabilityCheck {
        let passing = ["bisect", "rewritten", "worktree"].map(|name| format!("--exclude=refs/{name}/*"));
        let command = self.git("rev-list").args(["-1", &commit.to_string(), "--not"]).args(passing);
        ReachabilityCheck(command.arg("--glob=refs/*").finish_later())
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

fn strange(line: &str) -> GitError {
    GitError::Strange { command: "for-each-ref".into(), what: line.to_owned() }
}
