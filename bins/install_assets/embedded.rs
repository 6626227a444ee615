//! Everything that is installed. Made by `BLESS=1 cargo test --test generated`.

use super::assets::{Asset, AssetFolder};

macro_rules! asset {
    ($asset_folder:ident, $folder:literal, $name:literal) => {
        Asset {
            asset_folder: AssetFolder::$asset_folder,
            name: $name,
            text: include_str!(concat!("../../", $folder, "/", $name)),
        }
    };
}

pub(super) const ASSETS: &[Asset] = &[
    asset!(Zsh, "completions", "_git-arborist"),
    asset!(FishStart, "completions/conf.d", "git-arborist.fish"),
    asset!(Bash, "completions", "git-arborist"),
    asset!(FishCompletion, "completions", "git-arborist.fish"),
    asset!(Man1, "man", "git-arborist-cleanup.1"),
    asset!(Man1, "man", "git-arborist-demo.1"),
    asset!(Man1, "man", "git-arborist-garden.1"),
    asset!(Man1, "man", "git-arborist-gardener.1"),
    asset!(Man1, "man", "git-arborist-hooks.1"),
    asset!(Man1, "man", "git-arborist-init.1"),
    asset!(Man1, "man", "git-arborist-install-assets.1"),
    asset!(Man1, "man", "git-arborist-logs.1"),
    asset!(Man1, "man", "git-arborist-merge.1"),
    asset!(Man1, "man", "git-arborist-plan.1"),
    asset!(Man1, "man", "git-arborist-reset.1"),
    asset!(Man1, "man", "git-arborist-sandbox.1"),
    asset!(Man1, "man", "git-arborist-session.1"),
    asset!(Man1, "man", "git-arborist-state.1"),
    asset!(Man1, "man", "git-arborist-tools.1"),
    asset!(Man1, "man", "git-arborist-trailers.1"),
    asset!(Man5, "man", "git-arborist-trailers.5"),
    asset!(Man1, "man", "git-arborist-verify.1"),
    asset!(Man1, "man", "git-arborist-work.1"),
    asset!(Man1, "man", "git-arborist-workspace.1"),
    asset!(Man1, "man", "git-arborist-worktree.1"),
    asset!(Man1, "man", "git-arborist.1"),
];
