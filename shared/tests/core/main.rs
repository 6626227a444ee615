//! The tests of the core, as one program. `cargo test -p arborist-core --test core MODULE::` runs those of one module.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod agents;
mod claims;
mod cleanup;
mod cleanup_model;
mod conformance;
mod corpus;
mod enclosure;
mod glances;
mod interrupts;
mod locks;
mod messages;
mod names;
mod objects;
mod orders;
mod plan_properties;
mod queue_model;
mod queue_world;
mod redaction;
mod session;
mod supervised;
mod worktree_homes;
