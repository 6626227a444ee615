//! Configuration and hooks: reading them as git does, and keeping children from changing what our own git obeys.

pub(super) mod config;
pub(super) mod exclude;
pub(super) mod frozen_settings;
pub(super) mod harmless_settings;
pub(super) mod hooks;
pub(super) mod pre_commit;
