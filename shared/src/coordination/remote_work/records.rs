//! The session's records of each worker at the remote, so that every clone can show what a worker did.

use std::collections::BTreeMap;

use super::{ClaimRefs, CoordinationError, Known, RemoteWork, Renewal, WorkOptions, WorkerName};
use crate::{
    git::{FetchDepth, LeasedPush, Network, Repository},
    name::{Oid, SessionId},
    session,
};

impl RemoteWork {
    /// Publishes the records of this session from now on.
    pub fn publish_session(&self, session: &SessionId) {
        let _ = self.session.set(session.clone());
    }

    /// The push of the newest record of this worker, if the remote does not have it.
    pub(super) fn record_push(&self, known: &Known) -> Result<Option<LeasedPush>, CoordinationError> {
        let Some(session) = self.session.get() else { return Ok(None) };
        let name = session::ref_of(session);
        // A child process may have moved the ref.
        let newest = match self.repository.find_owned_ref(&name) {
            Some(owned) => owned,
            None => self.repository.find_ref(&name)?,
        };
        let push = |new| LeasedPush { name: self.record_name(), new: Some(new), old: known.published };
        Ok(newest.filter(|newest| Some(*newest) != known.published).map(push))
    }

    /// Publishes what no other push has taken along. The records are also in this clone, so an error does not matter.
    pub(super) fn publish_records(&self, known: &mut Known) {
        if let Ok(Some(push)) = self.record_push(known)
            && self
                .push(known, std::slice::from_ref(&push), Renewal::None)
                .is_ok_and(|refused| refused.is_empty())
        {
            known.published = push.new;
        }
    }

    /// Reads which record of this worker the remote has.
    pub(super) fn refresh_published(&self, known: &mut Known) -> Result<(), CoordinationError> {
        let name = self.record_name();
        let listed = self.repository.list_remote_refs((self.options.claims_at(), &[&name]), &self.network)?;
        known.published = listed.into_iter().find(|(found, _)| *found == name).map(|(_, commit)| commit);
        Ok(())
    }

    fn record_name(&self) -> String {
        format!("{}{}", self.refs.records, self.identity.name)
    }

    /// Fetches the newest record of each worker.
    pub fn fetch_records(
        repository: &Repository,
        (options, network): (&WorkOptions, &Network),
    ) -> Result<BTreeMap<WorkerName, Oid>, CoordinationError> {
        let refs = ClaimRefs::new(&options.run);
        let pattern = format!("{}*", refs.records);
        let listed = repository.list_remote_refs((options.claims_at(), &[&pattern]), network)?;
        let found = listed.into_iter().filter_map(|(name, commit)| {
            let worker = name.strip_prefix(&refs.records)?.parse::<WorkerName>().ok()?;
            Some((worker, (name, commit)))
        });
        let found: BTreeMap<WorkerName, (String, Oid)> = found.collect();
        let names: Vec<String> = found.values().map(|(name, _)| name.clone()).collect();
        if !names.is_empty() {
            repository.fetch_refs((options.claims_at(), &names), FetchDepth::Newer, network)?;
        }
        Ok(found.into_iter().map(|(worker, (_, commit))| (worker, commit)).collect())
    }
}
