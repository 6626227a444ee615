//! The only module that runs git or calls libgit2. It asks git for machine-readable output in a fixed environment, so
//! that neither the user's nor the repository's configuration can change an answer or start a program.

// The repository, and every call of the git program.
mod command;
mod confined;
mod error;
mod identity;
mod repository;
mod version;

// Settings and hooks.
mod config;
mod exclude;
mod frozen_settings;
mod harmless_settings;
mod hooks;
mod pre_commit;

// Refs: reading and moving them, and restoring those that a run owns.
mod branch_use;
mod bulk_reads;
mod forged_steps;
mod moved_refs;
mod notes;
mod owned_refs;
mod packed_refs;
mod recovery_notes;
mod ref_files;
mod ref_updater;
mod reflog_links;
mod reflogs;
mod refs;
mod transaction;
mod user_refs;
mod users_index;
mod written_refs;

// Objects, commits and trees.
mod ancestry;
mod author;
mod commits;
mod held_objects;
mod object_files;
mod objects;
mod odb;
mod open_objects;
mod packing;
mod signatures;
mod trees;
mod verified_objects;
mod write;

// Differences and merges.
mod added_lines;
mod conflict_markers;
mod diff;
mod merge;
mod renames;
mod three_way;

// Index files, and snapshots of a worktree.
mod child_input_files;
mod files;
mod folder_links;
mod folder_watch;
mod hidden_files;
mod index_entries;
mod index_format;
mod index_install;
mod known_index;
mod nested_repositories;
mod plain_files;
mod planted_repositories;
mod saved_checkout;
mod scan;
mod snapshot;
mod special_files;
mod tracked;
mod tracked_links;
mod unchanged;

// Worktrees and checkouts.
mod fast_forward;
mod interrupted_updates;
mod operations;
mod private_git;
mod submodules;
mod verified_checkout;
mod worktree_cache;
mod worktree_folders;
mod worktree_git_dirs;
mod worktree_head;
mod worktree_link;
mod worktrees;

// Locks and other leftovers of killed processes.
mod locks;
mod misplaced_files;
pub mod stale;

// Remotes.
mod remote;
mod remote_ssh;
mod remotes;
mod shallow;
mod upstream;

pub use added_lines::AddedLines;
pub use branch_use::BranchUse;
pub use bulk_reads::{LogLine, PathChange, RefFacts, RefFactsReader};
pub use child_input_files::ChildInputFiles;
pub use command::GitCommand;
pub use commits::{CommitStream, RawCommit};
pub use config::{Config, ConfigEntry, ConfigReader};
pub use conflict_markers::Unmerged;
pub use diff::{Difference, changed_lines};
pub use error::GitError;
pub use exclude::{escaped_pattern, is_own_exclude};
pub use fast_forward::FastForward;
pub use files::FileNames;
pub use forged_steps::note_landing;
pub use frozen_settings::{SettingsChange, find_state_folder, remove_at_end, remove_frozen_settings};
pub use harmless_settings::runs_nothing;
pub use harmless_settings::runs_program;
pub use hooks::{CHECKOUT_HOOKS, DirPlace, HookRun, HooksDir, husky_folder};
pub use index_entries::HiddenMarks;
pub use index_install::IndexFile;
pub use interrupted_updates::take_saved_files;
pub use known_index::{IndexWriter, KnownIndex};
pub use locks::take_removed_locks;
pub use merge::{ConflictKind, Merge, MergeConflict, Version};
pub use misplaced_files::{copy_aside, is_misplaced, move_aside, report_moved, take_moved_aside};
pub use nested_repositories::find_repository;
pub use notes::{NoteReader, has_skipped_refs, list_skipped_refs, skip_ref, take_skipped_refs};
pub use object_files::ObjectWatch;
pub use operations::{EndedOperation, OperationInProgress};
pub use owned_refs::{ExemptRef, OwnedRefs, Ownership, RefWatch, TemporaryOwnership};
pub use packing::Packing;
pub use planted_repositories::{PlantedRepository, is_inner_path};
pub use private_git::{PrivateCommits, PrivateGit, object_folders};
pub use refs::{HeadOf, ReachabilityCheck, Ref, RefReader};
pub use remote::LeasedPush;
pub use remote::{CloneDepth, Network, Push, Pushed, RemoteError, RemoteFailure, shown_url};
pub use repository::{Head, Repository, RepositorySearch};
pub use saved_checkout::{SavedCheckout, SavedCheckouts};
pub use shallow::{DeepenError, Deepened, FetchDepth};
pub use snapshot::{PrivateIndex, Stamp, TreeChange, Unreadable, WorktreeSnapshot};
pub use submodules::{Submodule, SubmoduleChanges, find_module_dirs};
pub use tracked::{OtherWriters, Touched, TrackedFiles};
pub use tracked_links::TrackedLinks;
pub use unchanged::UncommittedFiles;
pub use upstream::Distance;
pub use upstream::Upstream;
pub use user_refs::{take_notices, tell};
pub use users_index::{OwnCheckout, UsersMarks};
pub use verified_objects::ForgedObject;
pub use version::GitVersion;
pub use worktree_folders::{REPLACED, TRASH, list_worktree_folders};
pub use worktree_git_dirs::{EarlierChanges, ExemptGitDir, GitDirWatch, UsersCheckout};
pub use worktree_head::{has_valid_head, has_valid_index};
pub use worktree_link::{named_path, target_of};
pub use worktrees::{Checkout, UncommittedPath, Worktree, plain_path};
pub use write::{NewCommit, RefMove, Signing};
