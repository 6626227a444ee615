//! The turns of an agent: each is committed when it ends, and recorded in its session.
//!
//! A turn's commit, its number, its record and the branch move in one transaction, so that a crash leaves either all of
//! them or none.

pub(super) mod checkpoint;
pub(super) mod keeper;
pub(super) mod message;
pub(super) mod messenger;
pub(super) mod note;
pub(super) mod whole_call;
