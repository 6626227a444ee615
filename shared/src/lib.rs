//! The core of git-arborist. It never prints, never parses arguments and never ends the process.
//!
//! Modules are listed lowest first; each may use only those above it (`tests/cli/architecture.rs` enforces this).

#[cfg(all(feature = "without-guards", not(debug_assertions)))]
compile_error!("the feature 'without-guards' is for tests only");

pub mod words;

pub mod mutex;

pub mod safe_files;

pub mod process;

pub mod name;

pub mod failure;

pub mod message;

pub mod git;

pub mod settings;

pub mod consent;

pub mod sandbox;

pub mod history;

pub mod plan;

pub mod progress;

pub mod agent;

pub mod event;

pub mod record;

pub mod session;

pub mod workspace;

pub mod pipeline;

pub mod planner;

pub mod worktree;

pub mod engine;

pub mod coordination;

pub mod queue;

pub mod verify;

pub mod cleanup;

pub mod gardener;

pub mod run;
