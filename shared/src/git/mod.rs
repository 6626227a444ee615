//! The only module that runs git or calls libgit2. It asks git for machine-readable output in a fixed environment, so
//! that neither the user's nor the repository's configuration can change an answer or start a program.

mod before_children;
pub mod checkout_locks;
mod command;
mod confined;
mod error;
mod files;
mod git_dir_id;
mod index;
mod locks;
mod merge;
mod misplaced_files;
mod notices;
mod objects;
mod refs;
mod remote;
mod repository;
mod settings;
mod version;
mod worktrees;

pub use command::GitCommand;
pub use error::GitError;
pub use files::{
    FileNames,
    child_input_files::ChildInputFiles,
    nested_repositories::find_repository,
    planted_repositories::{PlantedRepository, is_inner_path},
    saved_checkout::{SavedCheckout, SavedCheckouts},
    snapshot::{PrivateIndex, Stamp, TreeChange, Unreadable, WorktreeSnapshot},
    tracked::{OtherWriters, Touched, TrackedFiles},
    tracked_links::TrackedLinks,
    unchanged::UncommittedFiles,
};
pub use index::{
    index_entries::HiddenMarks,
    index_install::IndexFile,
    known_index::{IndexWriter, KnownIndex},
    users_index::{OwnCheckout, UsersMarks},
};
pub use merge::{
    ConflictKind, Merge, MergeConflict, Version,
    added_lines::AddedLines,
    conflict_markers::Unmerged,
    diff::{Difference, changed_lines},
};
pub use misplaced_files::{copy_aside, is_misplaced, move_aside};
pub use notices::{add_notice, report_moved, take_notices, take_repairs};
pub use objects::{
    commits::{CommitStream, RawCommit},
    object_files::ObjectWatch,
    packing::Packing,
    verified_objects::ForgedObject,
    write::{NewCommit, RefMove, Signing},
};
pub use refs::{
    HeadOf, ReachabilityCheck, Ref, RefReader,
    branch_use::BranchUse,
    bulk_reads::{LogLine, PathChange, RefFacts, RefFactsReader},
    forged_steps::note_landing,
    notes::{NoteReader, has_skipped_refs, list_skipped_refs, skip_ref, take_skipped_refs},
    owned_refs::{ExemptRef, OwnedRefs, Ownership, RefWatch, TemporaryOwnership},
};
pub use remote::{
    CloneDepth, LeasedPush, Network, Push, Pushed, RemoteError, RemoteFailure,
    shallow::{DeepenError, Deepened, FetchDepth},
    shown_url,
    upstream::{Distance, Upstream},
};
pub use repository::{Head, Repository, RepositorySearch};
pub use settings::{
    config::{Config, ConfigEntry, ConfigReader},
    exclude::{escaped_pattern, is_own_exclude},
    frozen_settings::{SettingsChange, find_state_folder, remove_at_end, remove_frozen_settings},
    harmless_settings::{runs_nothing, runs_program},
    hooks::{CHECKOUT_HOOKS, DirPlace, HookRun, HooksDir, husky_folder},
    pre_commit::HookVerdict,
};
pub use version::GitVersion;
pub use worktrees::{
    Checkout, UncommittedPath, Worktree,
    fast_forward::FastForward,
    operations::{EndedOperation, OperationInProgress},
    plain_path,
    private_git::{PrivateCommits, PrivateGit, object_folders},
    submodules::{Submodule, SubmoduleChanges, find_module_dirs},
    worktree_folders::{REPLACED, TRASH, list_worktree_folders},
    worktree_git_dirs::{EarlierChanges, ExemptGitDir, GitDirWatch, UsersCheckout},
    worktree_head::{has_valid_head, has_valid_index},
    worktree_link::{named_path, target_of},
};
