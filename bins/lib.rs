//! The commands of git-arborist. Each has a folder with its arguments and its body; `catalog` lists them.

pub mod approval;
pub mod arborist;
pub mod catalog;
pub mod cleanup;
pub mod clock;
pub mod demo;
pub mod document;
pub mod entry;
pub mod garden;
pub mod gardener;
pub mod gardening;
pub mod hooks;
pub mod init;
pub mod install_assets;
pub mod merge;
pub mod plan;
pub mod reset;
pub mod sandbox;
mod scope;
pub mod session;
pub mod state;
pub mod tools;
pub mod trailers;
pub mod ui;
mod work;
pub mod workspace;
pub mod worktree;
