//! What a run owns of the refs of its repository.

use super::{ref_of, transcript_ref_of};
use crate::{
    git::Ownership,
    name::{BranchName, SessionId, TaskId},
    record::Unfinished,
};

/// The task branches of the run of `run`, the records of its session and its marks of unfinished work. Marks of other runs
/// are watched, too: after a crash they are believed. Its own branch is not among them: others commit to it at any time, and where it is owned, the steps in its checkout look after it.
#[must_use]
pub fn owned_by(run: &BranchName, session: Option<&SessionId>) -> Ownership {
    let records = session.into_iter().flat_map(|session| [ref_of(session), transcript_ref_of(session)]);
    let mut prefixes = vec![run.task_refs(), format!("{}{}/", Unfinished::REFS, run.component())];
    prefixes.extend(marks_of_tasks(run));
    Ownership {
        names: records.collect(),
        prefixes,
        shared: vec![Unfinished::REFS.to_owned()],
        bases: vec![run.to_ref()],
    }
}

/// The same in another repository of the run, where its session has this branch. It has no branches of tasks there, and no
/// records: what appears under such a name would be pushed with the branch.
#[must_use]
pub fn owned_elsewhere(branch: &BranchName, session: &SessionId) -> Ownership {
    let mut owned = owned_by(branch, Some(session));
    owned.names.append(&mut owned.bases);
    owned
}

/// How the marks of attempts on task branches begin. The name of a very long branch is cut, and tells nothing.
fn marks_of_tasks(run: &BranchName) -> Option<String> {
    let task: TaskId = "T".parse().ok()?;
    let component = run.task_branch(&task).component();
    Some(format!("{}{}", Unfinished::REFS, component.strip_suffix("%2FT")?.to_owned() + "%2F"))
}
