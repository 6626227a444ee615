//! Reads the run that is shown.

use arborist_core::{
    failure::{Explain, Failure},
    git::{Ref, Repository},
    history::{HistoryError, ReadAhead, Run, RunScope},
    name::Oid,
};

use crate::{active_work::ActiveWork, ui::Ui};

/// Reads a run, what is in progress, and what is parked.
pub(super) fn read(
    repository: &Repository,
    mut scope: RunScope,
    refs: &[Ref],
    ahead: Option<ReadAhead>,
    ui: &mut Ui,
) -> Result<(ActiveWork, Run, Option<Oid>), Failure> {
    let mut parked = None;
    if let Some(tip) = scope.tip {
        parked = repository.find_landing(refs, &scope.branch, tip)?;
        scope.tip = parked.or(scope.tip);
    }
    let work = ActiveWork::find(repository, &scope.branch, refs);
    let run = match Run::scan_listed(repository, scope.clone(), ahead, refs.to_vec()) {
        Err(error @ HistoryError::ForkedRun { .. }) => scan_one_side(repository, scope, refs, error, ui)?,
        run => run?,
    };
    Ok((work, run, parked))
}

/// Reads one of two runs that a merge has joined: the one on the side of its first parent.
fn scan_one_side(
    repository: &Repository,
    scope: RunScope,
    refs: &[Ref],
    mut error: HistoryError,
    ui: &mut Ui,
) -> Result<Run, Failure> {
    let mut side = scope.clone();
    // The side may have been joined with a third one.
    while let HistoryError::ForkedRun { commits } = error {
        side.tip = side.find_sides(repository, commits)?.first().copied();
        match Run::scan_listed(repository, side.clone(), None, refs.to_vec()) {
            Ok(run) => {
                let session = run.start.as_ref().map(|start| start.session.to_string()).unwrap_or_default();
                ui.warn(&format!("{error}; this is the state of the first one (session '{session}')"));
                error.hint().into_iter().for_each(|hint| ui.hint(&hint));
                return Ok(Run { scope, ..run });
            }
            Err(next) => error = next,
        }
    }
    Err(error.into())
}
