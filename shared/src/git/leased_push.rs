//! Atomic pushes with leases: either all refs are moved, each from the value that is expected, or none is.

use super::{Network, Pushed, RemoteError, Repository};
use crate::name::Oid;

/// One ref of an atomic push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedPush {
    /// Its full name at the remote.
    pub name: String,
    /// Its new value; `None` to delete it.
    pub new: Option<Oid>,
    /// The value that the remote must have; `None` if it must not exist.
    pub old: Option<Oid>,
}

impl Repository {
    /// Pushes all of these refs or none of them. Returns the refused ones; if there are none, all were moved.
    pub fn push_leased(
        &self,
        (remote, pushes): (&str, &[LeasedPush]),
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let mut options = vec!["--atomic".to_owned()];
        let mut refspecs = Vec::new();
        for LeasedPush { name, new, old } in pushes {
            let old = old.map(|old| old.to_string()).unwrap_or_default();
            options.push(format!("--force-with-lease={name}:{old}"));
            let new = new.map(|new| new.to_string()).unwrap_or_default();
            refspecs.push(format!("{new}:{name}"));
        }
        let mut rows = self.push((remote, &options, refspecs), network)?;
        rows.retain(|row| row.refused.is_some());
        Ok(rows)
    }
}
