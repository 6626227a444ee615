//! Calls of agent programs: which runner is called, what it is given, and what came of it.

pub(super) mod call;
pub(super) mod chain;
pub(super) mod gemini_home;
pub(super) mod memory;
pub(super) mod playback;
pub(super) mod runners;
pub(super) mod who;
