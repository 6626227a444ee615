//! The only door to git. It is asked in its machine voice and with a pinned environment, so that neither
//! the user's configuration nor the repository's can change an answer or run a program.

mod command;
mod commits;
mod config;
mod diff;
mod distance;
mod exclude;
mod forward;
mod hooks;
mod landing;
mod marks;
mod merge;
mod notes;
mod objects;
mod refs;
mod remote;
mod remote_names;
mod remote_ssh;
mod repository;
mod snapshot;
mod submodules;
mod transaction;
mod upstream;
mod version;
mod worktrees;
mod write;

pub use command::{GitCommand, GitError};
pub use commits::{CommitStream, RawCommit};
pub use config::{Config, ConfigEntry, ConfigReader};
pub use distance::Distance;
pub use forward::Taken;
pub use hooks::{Firing, HooksDir, Reach};
pub use landing::Usage;
pub use marks::Unmerged;
pub use merge::{Conflict, ConflictKind, Merge, Version};
pub use notes::NoteReader;
pub use refs::{HeadOf, Holding, Ref, RefReader};
pub use remote::{CloneDepth, Network, Push, Pushed, RemoteError, shown_url};
pub use repository::{Head, Repository};
pub use snapshot::{Change, PrivateIndex, Stamp};
pub use submodules::Submodule;
pub use upstream::Upstream;
pub use version::GitVersion;
pub use worktrees::{Dirt, Worktree, plain_path};
pub use write::{NewCommit, RefMove, Signing};
