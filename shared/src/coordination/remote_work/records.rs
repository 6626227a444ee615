//! The session's records of each worker at the remote, so that every clone can show what a worker did.

use std::collections::BTreeMap;

use super::{ClaimRefs, CoordinationError, Known, MOST_AT_ONCE, RemoteWork, Renewal, WorkOptions};
use crate::{
    git::{FetchDepth, LeasedPush, Network, Repository},
    name::{Oid, SessionId, WorkerName},
    session,
};

impl RemoteWork {
    /// Publishes the records of this session from now on.
    pub fn publish_session(&self, session: &SessionId) {
        let _ = self.session.set(session.clone());
    }

    /// The push of the newest record of this worker, if the remote does not have it.
    pub(super) fn record_push(&self, known: &Known) -> Result<Option<LeasedPush>, CoordinationError> {
        let push = |new| LeasedPush { name: self.record_name(), new: Some(new), old: known.published };
        Ok(self.newest_record()?.filter(|newest| Some(*newest) != known.published).map(push))
    }

    fn newest_record(&self) -> Result<Option<Oid>, CoordinationError> {
        let Some(session) = self.session.get() else { return Ok(None) };
        let name = session::ref_of(session);
        // A child process may have moved the ref.
        Ok(match self.repository.find_owned_ref(&name) {
            Some(owned) => owned,
            None => self.repository.find_ref(&name)?,
        })
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
        known.published = self.repository.find_remote_ref(self.options.claims_at(), &name, &self.network)?;
        Ok(())
    }

    /// The pushes that give these refs their values at the remote with the code, and publish the newest records of all
    /// workers there. `verify` in other clones fetches them from that remote, also if claims are at another one.
    pub(super) fn new_values_and_records(
        &self,
        refs: &[(String, Oid)],
    ) -> Result<Vec<LeasedPush>, CoordinationError> {
        let mut records = list_records(&self.repository, &self.options, &self.network)?;
        let own = self.newest_record()?.map(|newest| (self.record_name(), newest));
        records.extend(own.map(|own| (self.identity.name.clone(), own)));
        let all: Vec<(String, Oid)> = refs.iter().cloned().chain(records.into_values()).collect();
        let mut pushes = self.new_values(&all)?;
        let is_record = |name: &str| name.starts_with(&self.refs.records);
        let is_of_other = |push: &&LeasedPush| is_record(&push.name) && push.name != self.record_name();
        let names: Vec<String> = pushes.iter().filter(is_of_other).map(|push| push.name.clone()).collect();
        fetch(&self.repository, &self.options, &self.network, &names)?;
        // A worker may have replaced its records meanwhile. They are published by the next landing.
        let commits: Vec<Oid> = pushes.iter().filter_map(|push| push.new).collect();
        let found = self.repository.find_commits(&commits)?;
        pushes.retain(|push| !is_record(&push.name) || found.contains(&push.new));
        Ok(pushes)
    }

    fn record_name(&self) -> String {
        format!("{}{}", self.refs.records, self.identity.name)
    }

    /// Fetches the newest record of each worker.
    pub fn fetch_records(
        repository: &Repository,
        options: &WorkOptions,
        network: &Network,
    ) -> Result<BTreeMap<WorkerName, Oid>, CoordinationError> {
        let found = list_records(repository, options, network)?;
        let names: Vec<String> = found.values().map(|(name, _)| name.clone()).collect();
        fetch(repository, options, network, &names)?;
        Ok(found.into_iter().map(|(worker, (_, commit))| (worker, commit)).collect())
    }
}

/// The ref with the records of each worker, and its value.
fn list_records(
    repository: &Repository,
    options: &WorkOptions,
    network: &Network,
) -> Result<BTreeMap<WorkerName, (String, Oid)>, CoordinationError> {
    let refs = ClaimRefs::new(&options.run);
    let pattern = format!("{}*", refs.records);
    let listed = repository.list_remote_refs(options.claims_at(), &[&pattern], network)?;
    let found = listed.into_iter().filter_map(|(name, commit)| {
        let worker = name.strip_prefix(&refs.records)?.parse::<WorkerName>().ok()?;
        Some((worker, (name, commit)))
    });
    Ok(found.collect())
}

/// Fetches refs with records. The objects come without refs.
fn fetch(
    repository: &Repository,
    options: &WorkOptions,
    network: &Network,
    names: &[String],
) -> Result<(), CoordinationError> {
    for names in names.chunks(MOST_AT_ONCE) {
        repository.fetch_refs(options.claims_at(), names, FetchDepth::Newer, network)?;
    }
    Ok(())
}
