//! Calls of agent programs: which runner is called, with what input, and what came of it.
//!
//! | | is |
//! |---|---|
//! | `AgentCall` | what a step asks for: a prompt, the runners that may answer it, the time that is left |
//! | `agent::Request` | the parameters of a call of one of these runners |
//! | `agent::Invocation` | the command line that the runner makes of a request |
//! | `Call` | an invocation with its sandbox, its input files and its log, ready to be started |
//! | `CallReply` | the result of one call; `CallOutcome` in it says whether the program succeeded |
//! | `FinishedCall` | the result of the `AgentCall`, after waits and fallbacks to other runners |
//!
//! A `Caller` has what all calls of a step share, and `CallMemory` what calls of a run have taught.

pub(super) mod active_runner;
pub(super) mod agent_call;
pub(super) mod caller;
pub(super) mod gemini_home;
pub(super) mod memory;
pub(super) mod playback;
pub(super) mod runners;
