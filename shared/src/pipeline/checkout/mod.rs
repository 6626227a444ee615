//! The checkout that an agent works in. This module tells the agent's changes from what was there before, and undoes
//! what the agent did to the repository itself.
//!
//! An attempt begins and ends with a snapshot through a private index ([`attempt`]). Around every child process the
//! `guard` compares refs, hooks and configuration, and restores whatever the child changed there.

pub mod attempt;
pub(super) mod branch;
pub(super) mod file_secrets;
pub(super) mod folded_commits;
pub(super) mod guard;
pub(super) mod hook;
pub(super) mod ignored;
pub(super) mod leftovers;
pub(super) mod other_repo;
pub(super) mod protected_files;
pub(super) mod repo_attempt;
pub(super) mod review_guard;
mod submodules;
pub(super) mod test_guard;
pub(super) mod turn_snapshots;
pub(super) mod users_paths;
pub(super) mod violations;
