//! The commands of git-arborist. Each has a folder with its arguments and its body; `catalog` lists them.

pub mod arborist;
pub mod catalog;
pub mod entry;
pub mod ui;
