//! The refs that a run owns.

use super::{ref_of, transcript_ref_of};
use crate::{
    git::Ownership,
    name::{BranchName, SessionId, TaskId},
    record::Unfinished,
};

/// The refs of the run `run`: its task branches, the records of its session and its marks of unfinished work. Marks of
/// other runs are watched too, because they are trusted after a crash. The run's own branch is not included: others may
/// commit to it at any time, and where tasks work in its checkout, their steps watch it.
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

/// The refs of a session in another repository of its workspace. It has no records there, but refs under such names would
/// be pushed with the branch, so they are owned too. So is the branch itself: only landings and the run move it.
#[must_use]
pub fn owned_elsewhere(branch: &BranchName, session: &SessionId) -> Ownership {
    let mut owned = owned_by(branch, Some(session));
    owned.names.append(&mut owned.bases);
    owned
}

/// The prefix of marks of attempts on task branches. `None` for a very long branch, whose name is truncated.
fn marks_of_tasks(run: &BranchName) -> Option<String> {
    let task: TaskId = "T".parse().ok()?;
    let component = run.task_branch(&task).component();
    Some(format!("{}{}", Unfinished::REFS, component.strip_suffix("%2FT")?.to_owned() + "%2F"))
}
