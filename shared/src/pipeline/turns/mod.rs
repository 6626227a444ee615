//! The turns of an agent. Each turn is committed when it ends, and recorded in the session.
//!
//! A turn's commit, its number, its record and the branch move in one transaction, so that a crash leaves either all of
//! them or none.

pub(super) mod checkpoint;
pub(super) mod committer;
pub(super) mod message;
pub(super) mod messenger;
pub(super) mod turn_collector;
pub(super) mod turn_repo;
pub(super) mod whole_call;
