//! The arguments of each command, for manuals and completions. The dispatcher does not use this module, so that it
//! links no argument parser.

use clap::CommandFactory;

/// The definition of every command, in the order of [`VERBS`](super::VERBS), each called
/// `git-arborist-<verb>`. After a change: `BLESS=1 cargo test --test generated`.
#[must_use]
pub fn definitions() -> Vec<clap::Command> {
    vec![
        crate::plan::PlanArgs::command(),
        crate::gardener::GardenerArgs::command(),
        crate::garden::GardenArgs::command(),
        crate::work::WorkArgs::command(),
        crate::merge::MergeArgs::command(),
        crate::reset::ResetArgs::command(),
        crate::demo::DemoArgs::command(),
        crate::worktree::WorktreeArgs::command(),
        crate::workspace::WorkspaceArgs::command(),
        crate::cleanup::CleanupArgs::command(),
        crate::state::StateArgs::command(),
        crate::logs::LogsArgs::command(),
        crate::session::SessionArgs::command(),
        crate::verify::VerifyArgs::command(),
        crate::trailers::TrailersArgs::command(),
        crate::init::InitArgs::command(),
        crate::sandbox::SandboxArgs::command(),
        crate::hooks::HooksArgs::command(),
        crate::tools::ToolsArgs::command(),
        crate::install_assets::InstallAssetsArgs::command(),
    ]
}
