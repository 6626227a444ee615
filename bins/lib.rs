//! The commands of git-arborist. Each has a folder with its arguments and its body; `catalog` lists them.

pub mod arborist;
pub mod catalog;
pub mod clock;
pub mod document;
pub mod entry;
pub mod hooks;
pub mod install_assets;
pub mod plan;
pub mod state;
pub mod trailers;
pub mod ui;
