//! Refs and checkout during the tests before the first task: whatever these change is put back, and then the baseline has
//! failed.

use crate::{
    gardener::{Baseline, GardenerError},
    git::{ExemptRef, RawCommit, RefWatch, TemporaryOwnership},
    message::{self, MessageReading},
    pipeline::restore_checkout,
    queue::queue_refs,
    record::{RunRecorder, UnfinishedAttempt},
    session::owned_by,
};

/// Detects and undoes changes to refs and the checkout during the baseline.
#[derive(Debug)]
pub struct BaselineGuard<'a> {
    recorder: &'a RunRecorder<'a>,
    refs: RefWatch,
    /// Set if the branch is only the target of lanes, which the user may move at any time.
    target: Option<ExemptRef>,
    _meanwhile: Option<TemporaryOwnership>,
}

impl<'a> BaselineGuard<'a> {
    /// Takes ownership of the run's refs, so that set-up commands for the baseline's worktree are watched too.
    pub fn begin(recorder: &'a RunRecorder<'a>, is_in_place: bool) -> Result<Self, GardenerError> {
        let (repository, identity) = (recorder.repository(), recorder.identity());
        repository.own_refs(&owned_by(&identity.run_branch, Some(&identity.session)))?;
        // Before the first task nothing can be queued, so the queue's refs are owned too. Later, others may queue and
        // land.
        let mut owned = queue_refs(&identity.run_branch);
        owned.names.push(recorder.branch().to_ref());
        let meanwhile = repository.own_refs_temporarily(&owned)?;
        let target = (!is_in_place).then(|| repository.exempt_ref(&recorder.branch().to_ref()));
        Ok(Self { recorder, refs: repository.watch_refs(), target, _meanwhile: Some(meanwhile) })
    }

    /// Watches a test in the run's checkout between two tasks. The run owns its refs already; the queue is left to
    /// others.
    pub fn between_tasks(recorder: &'a RunRecorder<'a>) -> Result<Self, GardenerError> {
        let repository = recorder.repository();
        Ok(Self { recorder, refs: repository.watch_refs(), target: None, _meanwhile: None })
    }

    /// Undoes changes, even if the baseline was interrupted. A baseline that changed something has failed.
    pub fn end(self, ended: Result<Baseline, GardenerError>) -> Result<Baseline, GardenerError> {
        let repository = self.recorder.repository();
        let mut found = Vec::new();
        match &self.target {
            Some(_) if self.has_tampered()? => {
                repository.restore_ref(&self.recorder.branch().to_ref())?;
                found.extend(self.refs.restore());
            }
            Some(_) => found.extend(self.refs.restore()),
            None => {
                found.extend(self.refs.restore());
                found.extend(restore_checkout(self.recorder, &self.mark())?);
            }
        }
        let baseline = match ended {
            Err(error) if found.is_empty() => return Err(error),
            Err(error) => Baseline::Trespass(error.to_string()),
            Ok(baseline) => baseline,
        };
        if let Baseline::Trespass(why) = &baseline {
            found.retain(|change| !why.contains(change.as_str()));
            found.insert(0, why.clone());
        }
        Ok(if found.is_empty() { baseline } else { Baseline::Trespass(found.join("; ")) })
    }

    /// Whether the branch was deleted, became symbolic, or has new commits that claim to be the run's. Commits of the
    /// user stay: the run reports later that its branch was moved.
    fn has_tampered(&self) -> Result<bool, GardenerError> {
        let (repository, branch) = (self.recorder.repository(), self.recorder.branch());
        let before = self.recorder.head();
        if repository.is_symbolic_ref(&branch.to_ref()) {
            return Ok(true);
        }
        match repository.find_branch(branch)? {
            Some(now) if now == before => Ok(false),
            Some(now) => {
                let revisions = [now.to_string(), format!("^{before}")];
                for commit in repository.stream_commits(&revisions)? {
                    if self.is_claim(&commit?) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// Whether a commit claims to be made by this run, well-formed or not. Commits of other runs may have been merged
    /// meanwhile.
    fn is_claim(&self, commit: &RawCommit) -> bool {
        match message::read(commit.message()) {
            MessageReading::Foreign => false,
            MessageReading::Malformed(_) => true,
            MessageReading::WellFormed(message) => message.subject.branch == *self.recorder.run_branch(),
        }
    }

    /// The name under which commits that were made in the checkout are saved.
    fn mark(&self) -> String {
        format!("{}{}/baseline/0", UnfinishedAttempt::REFS, self.recorder.branch().component())
    }
}
