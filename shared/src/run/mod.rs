//! A whole run, from the request on the command line to its summary: everything before the first agent starts and after
//! the last one ends. The [`gardener`](crate::gardener) does what is between.
//!
//! The stages, in order. Each can stop the run with an error. Nothing is changed before the lock is taken; if the process is killed in a
//! later stage, the same command continues where it ended.
//!
//! | stage | what it does | where |
//! |---|---|---|
//! | [`OpenRun::open`] | choose the branch, take its lock, repair the branch after a crash | `opening`, `branch_choice`, `recovery` |
//! | [`OpenRun::plan`] | the frozen plan, or the file, or the user's own words | `planned` |
//! | [`OpenRun::inherit_options`] | test command and budgets of the session that continues | `session_records` |
//! | [`OpenRun::require_runnable`] | programs that are there; what the user has to approve | `approval` |
//! | [`OpenRun::enter_workplace`] | other repositories and remotes; move to the session's worktree, if the run has one | `branch_choice`, `repositories`, `other_clones` |
//! | [`OpenRun::drive`] | end processes of a killed run, record its attempts, test the baseline, freeze the plan; then run and close | `drive`, `recovery`, `check_baseline`, `closing` |

mod account;
mod branch_choice;
mod caveats;
mod check_baseline;
mod closing;
mod commands_to_approve;
mod continue_command;
mod drive;
mod listener;
mod monitor;
mod opening;
mod other_clones;
mod planned;
mod pushes;
mod recorded_options;
mod recovery;
mod refuse_in_step;
mod repositories;
mod request;
mod run_lock;
mod run_log;
mod session_records;
mod shared_work;
mod submission;
mod workplaces;

pub use branch_choice::bring_file;
pub use caveats::CLEAN_UP;
pub use closing::EndedRun;
pub use continue_command::Continuation;
pub use listener::RunListener;
pub use opening::{OpenRun, RunHost};
pub use planned::{Planned, PromptPreview, find_plan};
pub use recorded_options::{OptionArgument, OptionKind, RECORDED, RecordedOption, TEST, option_approvals};
pub use refuse_in_step::{refuse_here_in_step, refuse_in_step};
pub use request::{CallSource, LaneRequest, RunRequest, SingleTask, dollars, require_given, test_approval};
pub use run_lock::lock_branch;
pub use session_records::{InheritedOptions, replay_only_error};
pub use shared_work::{DEFAULT_REMOTE, SharedWork};
pub use submission::PlannedSubmission;
