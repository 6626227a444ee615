//! Verifies that nothing has changed between the implementation that was tested and reviewed, and what was completed or
//! landed; and that it changed protected files only with permission.

use super::{Verifier, VerifyCheck, VerifyError, list_paths};
use crate::{
    git::{GitError, Merge, RawCommit, Repository},
    history::{Event, Run, TaskHistory},
    message::{Key, Status},
    name::{Oid, TaskId},
    pipeline::{CHANGED_WITH_PERMISSION, Protection, RecordedLists},
    settings::Settings,
};

/// The steps of the attempt that completed a task. History has already proven their order.
pub(super) struct FinalSteps<'a> {
    task: &'a TaskId,
    pub(super) implement: &'a Event,
    test: &'a Event,
    review: &'a Event,
    complete: &'a Event,
}

/// What a run protected from one of its commits on.
pub(super) struct ProtectedSince {
    commit: Oid,
    protection: Protection,
    /// The same without the lists that only this machine has.
    recorded: Protection,
}

impl<'a> FinalSteps<'a> {
    pub(super) fn find(task: &'a TaskHistory) -> Option<Self> {
        let end = task.events.iter().rposition(|event| event.status() == Status::Complete)?;
        let before = &task.events[..end];
        let find = |status: Status| before.iter().rfind(|event| event.status() == status);
        Some(Self {
            task: &task.id,
            implement: find(Status::ImplementPass)?,
            test: find(Status::TestPass)?,
            review: find(Status::ReviewApproved)?,
            complete: &task.events[end],
        })
    }

    /// A description of a commit that may change nothing but does. `is_reviewed` and `is_tested` say whether the review
    /// and the tests come before it.
    fn describe(&self, commit: Oid, is_reviewed: bool, is_tested: bool) -> &'static str {
        if commit == self.complete.commit {
            "the 'complete' commit also changes files that were neither tested nor reviewed"
        } else if commit == self.review.commit {
            "the approved tree is not the tested one"
        } else if commit == self.test.commit {
            "the tested tree is not the implemented one"
        } else if is_reviewed {
            "files were changed after the approved review"
        } else if is_tested {
            "files were changed between the tests and the review"
        } else {
            "files were changed between the implementation and the tests"
        }
    }
}

impl Verifier<'_> {
    /// Walks from the landed or completed commit back to the implementation. Steps change nothing; the completion adds
    /// its report; merges with the target must be clean.
    pub(super) fn check_steps(
        &mut self,
        task: &TaskHistory,
        landing: Option<&Event>,
    ) -> Result<(), VerifyError> {
        let Some(steps) = FinalSteps::find(task) else {
            let words = "its steps are not in this history";
            self.result.problem(VerifyCheck::Steps, Some(&task.id), task.state.commit, words);
            return Ok(());
        };
        let source = landing.and_then(|landing| landing.trailers.source());
        let mut at = source.unwrap_or(steps.complete.commit);
        let (mut is_reviewed, mut is_tested) = (true, true);
        while at != steps.implement.commit {
            let commit = self.load(at)?;
            let Some(parent) = self.parent_towards(&commit, steps.implement.commit)? else {
                let words = "its implementation is not in the history of its completion";
                self.result.problem(VerifyCheck::Steps, Some(steps.task), Some(at), words);
                return Ok(());
            };
            let changed = self.own_changes(&commit, parent, &steps)?;
            if !changed.is_empty() {
                let words = steps.describe(at, is_reviewed, is_tested);
                let words = format!("{words}: {}", list_paths(&changed));
                self.result.problem(VerifyCheck::Review, Some(steps.task), Some(at), words);
            }
            is_reviewed &= at != steps.review.commit;
            is_tested &= at != steps.test.commit;
            at = parent;
        }
        Ok(())
    }

    /// The parent through which `commit` descends from `goal`.
    fn parent_towards(&self, commit: &RawCommit, goal: Oid) -> Result<Option<Oid>, VerifyError> {
        for parent in commit.parents() {
            if parent == goal || self.repository.is_ancestor(goal, parent)? {
                return Ok(Some(parent));
            }
        }
        Ok(None)
    }

    /// The paths that a commit changes, other than by a clean merge or by the report of a completion.
    fn own_changes(
        &self,
        commit: &RawCommit,
        parent: Oid,
        steps: &FinalSteps<'_>,
    ) -> Result<Vec<String>, VerifyError> {
        let parents: Vec<Oid> = commit.parents().collect();
        if let [ours, theirs] = parents[..] {
            let (Merge::Clean(merged) | Merge::Conflicted(merged, _)) =
                self.repository.merge(ours, theirs)?;
            return Ok(self.differing_paths(merged, self.repository.tree_of(commit.id)?)?);
        }
        let mut changed = self.changed_paths(parent, commit.id)?;
        if commit.id == steps.complete.commit {
            let report = steps.complete.trailers.get(Key::Report).unwrap_or_default();
            changed.retain(|path| path != report);
        }
        Ok(changed)
    }
}

impl Verifier<'_> {
    /// What was protected since a run started, and since each commit that accepted changes: what the repository's
    /// configuration listed then, what the commit recorded, and what this machine lists.
    pub(super) fn protections_of(&mut self, run: &Run) -> Result<Vec<ProtectedSince>, VerifyError> {
        let Some(start) = &run.start else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for recorded in RecordedLists::of_run(self.repository, start)? {
            found.extend(self.protection_since(&recorded)?);
        }
        Ok(found)
    }

    fn protection_since(&mut self, recorded: &RecordedLists) -> Result<Option<ProtectedSince>, VerifyError> {
        let settings = match Settings::load_at(self.repository, self.config, recorded.commit) {
            Ok(settings) => settings,
            Err(error) => {
                // If this machine's own settings are wrong, this is an error of the command.
                let own = Settings::load_own(self.config)?;
                let why = format!("the settings of the run cannot be read: {error}");
                self.result.unchecked(VerifyCheck::Protected, None, why);
                own
            }
        };
        let protection = Protection::new(&settings, &[]).with_recorded(recorded);
        if let Some(mistake) = protection.find_mistake(self.repository, std::iter::empty()) {
            self.result.unchecked(VerifyCheck::Protected, None, mistake);
            return Ok(None);
        }
        let own = Protection::new(&Settings::load_own(self.config)?, &[]);
        let then = Protection::new(&settings, &[]).without(&own).with_recorded(recorded);
        Ok(Some(ProtectedSince { commit: recorded.commit, protection, recorded: then }))
    }

    /// Compares the implementation with the state before the task. The commit of the implementation lists the protected
    /// files that were changed with permission.
    pub(super) fn check_protected(
        &mut self,
        run: &Run,
        protections: &[ProtectedSince],
        task: &TaskHistory,
    ) -> Result<(), VerifyError> {
        let Some(steps) = FinalSteps::find(task) else { return Ok(()) };
        let implemented = steps.implement.commit;
        let Some(base) = run.find_base(self.repository, &task.id, implemented)? else {
            let why = "it is not known at which commit the task began";
            self.result.unchecked(VerifyCheck::Protected, Some(&task.id), why);
            return Ok(());
        };
        let trees = (base.tree, self.repository.tree_of(implemented)?);
        let allowed: Vec<String> = task.events.iter().flat_map(changed_with_permission).collect();
        let find_refused = |protection: &Protection| -> Result<Vec<String>, VerifyError> {
            let changes = protection.find_changes(self.repository, trees, &[])?.refused;
            let refused = changes.iter().map(ToString::to_string);
            Ok(refused.filter(|change| !allowed.contains(change)).collect())
        };
        let (mut refused, mut was_listed) = (Vec::new(), true);
        for since in self.in_force_at(implemented, protections)? {
            refused = find_refused(&since.protection)?;
            if refused.is_empty() {
                break;
            }
            was_listed = was_listed && !find_refused(&since.recorded)?.is_empty();
        }
        if !refused.is_empty() {
            let why = match was_listed {
                true => "",
                false => {
                    " (listed by 'protect' on this machine, but not when the task was done: verify a range after it, or take the path off the list)"
                }
            };
            let words =
                format!("protected files were changed without permission: {}{why}", list_paths(&refused));
            self.result.problem(VerifyCheck::Protected, Some(&task.id), Some(implemented), words);
        }
        Ok(())
    }
}

impl Verifier<'_> {
    /// What was protected when a commit was made. The branch of a lane need not contain a change that was accepted while
    /// the task was open, so it is not known whether such a change counted for the task.
    fn in_force_at<'p>(
        &self,
        commit: Oid,
        protections: &'p [ProtectedSince],
    ) -> Result<Vec<&'p ProtectedSince>, VerifyError> {
        let mut found = Vec::new();
        for since in protections {
            if self.repository.is_ancestor(since.commit, commit)? {
                found.clear();
            } else if self.repository.is_ancestor(commit, since.commit)? {
                continue;
            }
            found.push(since);
        }
        Ok(found)
    }
}

impl ProtectedSince {
    /// The protected files that differ between two trees.
    pub(super) fn list_changes(
        &self,
        repository: &Repository,
        trees: (Oid, Oid),
    ) -> Result<Vec<String>, GitError> {
        let changes = self.protection.find_changes(repository, trees, &[])?.refused;
        Ok(changes.iter().map(ToString::to_string).collect())
    }
}

/// The protected files that a commit lists as changed with permission.
fn changed_with_permission(event: &Event) -> Vec<String> {
    let body = event.body();
    let sections = body.sections.iter().filter(|section| section.heading == CHANGED_WITH_PERMISSION);
    sections.flat_map(|section| section.text.lines()).map(str::to_owned).collect()
}
