//! A file that a run relies on and that is not as it was accepted: who changed it, and how it comes back.

use crate::{
    git::{GitError, Repository},
    history::Run,
    message::{self, MessageReading},
    name::{Oid, TaskId},
};

/// A file that has changed since a run accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    path: String,
    /// The commit that has it as it was; none if it was not there.
    accepted: Option<Oid>,
    /// The commit of the run that changed it last, and whose it is.
    by: Option<(Oid, Option<TaskId>)>,
}

impl Drift {
    /// What became of a file since the run accepted it; `None` where no run has begun.
    pub fn find(repository: &Repository, run: &Run, path: &str) -> Result<Option<Self>, GitError> {
        let Some(start) = &run.start else { return Ok(None) };
        let accepted = repository.find_path(start.accepted, path)?.map(|_| start.accepted);
        let by = match run.scope.tip {
            Some(tip) => last_change(repository, (start.accepted, tip), path)?,
            None => None,
        };
        Ok(Some(Self { path: path.to_owned(), accepted, by }))
    }

    /// Whether a commit of a task between the two has changed a file: only agents' work is in such commits.
    pub(super) fn is_edited_by_run(
        repository: &Repository,
        (from, tip): (Oid, Oid),
        path: &str,
    ) -> Result<bool, GitError> {
        let revisions = [tip.to_string(), format!("^{from}"), "--".into(), format!(":(top,literal){path}")];
        for commit in repository.stream_commits(&revisions)? {
            if let MessageReading::Sound(message) = message::read(commit?.message())
                && message.subject.task.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Who changed it, and how it comes back, a line each.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { path, accepted, by } = self;
        let shown = shown(path);
        let who = by.as_ref().map(|(commit, task)| {
            let whose = task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
            let commit = commit.short();
            format!("commit {commit}{whose} changed it: git show {commit} -- {shown}\n")
        });
        let back = match (accepted, by) {
            (Some(accepted), None) => format!("git checkout {} -- {shown}", accepted.short()),
            (Some(accepted), Some(_)) => {
                let accepted = accepted.short();
                format!("git checkout {accepted} -- {shown} && git commit -m 'as it was' -- {shown}")
            }
            (None, None) => format!("rm {shown}"),
            (None, Some(_)) => format!("git rm {shown} && git commit -m 'as it was' -- {shown}"),
        };
        format!("{}bring it back with: {back}", who.unwrap_or_default())
    }
}

fn last_change(
    repository: &Repository,
    (from, tip): (Oid, Oid),
    path: &str,
) -> Result<Option<(Oid, Option<TaskId>)>, GitError> {
    let revisions = [
        "--max-count=1".into(),
        tip.to_string(),
        format!("^{from}"),
        "--".into(),
        format!(":(top,literal){path}"),
    ];
    let Some(commit) = repository.stream_commits(&revisions)?.next().transpose()? else {
        return Ok(None);
    };
    let task = match message::read(commit.message()) {
        MessageReading::Sound(message) => message.subject.task.clone(),
        _ => None,
    };
    Ok(Some((commit.id, task)))
}

/// A path as it is typed into a shell.
fn shown(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
