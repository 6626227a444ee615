//! Index files: reading them, knowing which ones can be trusted, and installing new ones.

pub(super) mod hidden_files;
pub(super) mod index_entries;
pub(super) mod index_format;
pub(super) mod index_install;
pub(super) mod known_index;
pub(super) mod remembered_indexes;
pub(super) mod users_index;
