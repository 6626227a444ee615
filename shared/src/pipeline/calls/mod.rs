//! Calls of agent programs: which runner is called, with what input, and what came of it.

pub(super) mod active_runner;
pub(super) mod call;
pub(super) mod chain;
pub(super) mod gemini_home;
pub(super) mod memory;
pub(super) mod playback;
pub(super) mod runners;
