//! The checkout that an agent works in: what was there before is told from what the agent did, and what it did to the
//! repository itself is undone.
//!
//! An attempt begins and ends with a snapshot through a private index ([`place`]). Around every child process the `guard`
//! compares refs, hooks and configuration; nothing that a child wrote there is believed.

pub(super) mod changed_paths;
pub(super) mod guard;
pub(super) mod guarded;
pub(super) mod hook;
pub(super) mod ignored;
pub(super) mod leftovers;
pub(super) mod other_repo;
pub mod place;
pub(super) mod reading;
