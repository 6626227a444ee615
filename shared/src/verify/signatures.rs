//! Requires a valid signature of a known signer for task commits and for the records that were used.

use super::{Verifier, VerifyCheck, VerifyError};
use crate::{
    history::Event,
    name::{Oid, TaskId},
};

impl Verifier<'_> {
    pub(super) fn check_signatures(&mut self, events: &[Event]) -> Result<(), VerifyError> {
        let commits = events.iter().map(|event| (event.commit, event.task()));
        let records = self.records_used.iter().map(|record| (*record, None));
        let all: Vec<(Oid, Option<&TaskId>)> = commits.chain(records).collect();
        let ids: Vec<Oid> = all.iter().map(|(commit, _)| *commit).collect();
        for (commit, why) in self.repository.find_unsigned(&ids)? {
            let task = all.iter().find(|(known, _)| *known == commit).and_then(|(_, task)| *task);
            self.result.problem(VerifyCheck::Signature, task, Some(commit), why);
        }
        Ok(())
    }
}
