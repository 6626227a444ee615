//! What a run has before its first task, while a test command runs on the untouched tree: that command is code of the
//! repository like any other, and it may move nothing.

use super::{Baseline, GardenerError};
use crate::{
    git::{FloatingRef, OwnedMeanwhile, RawCommit, RefWatch},
    message::{self, MessageReading},
    pipeline::put_back_checkout,
    queue::queue_refs,
    record::{RunRecorder, Unfinished},
    session::owned_by,
};

/// Everything that is compared once the baseline has ended.
#[derive(Debug)]
pub struct BaselineGuard<'a> {
    recorder: &'a RunRecorder<'a>,
    refs: RefWatch,
    /// Set where the branch is only a target, which its user may move at any time.
    target: Option<FloatingRef>,
    _meanwhile: OwnedMeanwhile,
}

impl<'a> BaselineGuard<'a> {
    /// From here on the refs of the run are owned: set-up commands that prepare the place of a baseline are watched, too.
    pub fn begin(recorder: &'a RunRecorder<'a>, is_in_place: bool) -> Result<Self, GardenerError> {
        let (repository, identity) = (recorder.repository(), recorder.identity());
        repository.own_refs(&owned_by(&identity.run, Some(&identity.session)))?;
        // Later others may queue and land what is finished. Nothing can be before the first task.
        let mut owned = queue_refs(&identity.run);
        owned.names.push(recorder.branch().to_ref());
        let meanwhile = repository.own_refs_meanwhile(&owned)?;
        let target = (!is_in_place).then(|| repository.float_ref(&recorder.branch().to_ref()));
        Ok(Self { recorder, refs: repository.watch_refs(), target, _meanwhile: meanwhile })
    }

    /// Puts back what was moved, also where the baseline did not come to its end. One that moved something has failed.
    pub fn end(self, ended: Result<Baseline, GardenerError>) -> Result<Baseline, GardenerError> {
        let repository = self.recorder.repository();
        let mut found = Vec::new();
        match &self.target {
            Some(_) if self.has_meddled()? => {
                repository.restore_ref(&self.recorder.branch().to_ref())?;
                found.extend(self.refs.restore());
            }
            Some(_) => found.extend(self.refs.restore()),
            None => {
                found.extend(self.refs.restore());
                found.extend(put_back_checkout(self.recorder, &self.mark())?);
            }
        }
        let baseline = ended?;
        if let Baseline::Trespass(why) = &baseline {
            found.retain(|change| !why.contains(change.as_str()));
            found.insert(0, why.clone());
        }
        Ok(if found.is_empty() { baseline } else { Baseline::Trespass(found.join("; ")) })
    }

    /// Whether the branch is gone, leads elsewhere, or has commits that claim to be the run's. What a user commits there
    /// stays: the run says later that its branch was moved.
    fn has_meddled(&self) -> Result<bool, GardenerError> {
        let (repository, branch) = (self.recorder.repository(), self.recorder.branch());
        let before = self.recorder.head();
        if repository.leads_elsewhere(&branch.to_ref()) {
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

    /// Whether a commit says that the run made it, soundly or not. What another run made may have been merged meanwhile.
    fn is_claim(&self, commit: &RawCommit) -> bool {
        match message::read(commit.message()) {
            MessageReading::Foreign => false,
            MessageReading::Unsound(_) => true,
            MessageReading::Sound(message) => message.subject.branch == *self.recorder.run(),
        }
    }

    /// The name under which commits are kept that something made in the checkout.
    fn mark(&self) -> String {
        format!("{}{}/baseline/0", Unfinished::REFS, self.recorder.branch().component())
    }
}
