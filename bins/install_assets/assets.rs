//! The files to install, which are embedded in the program.

/// What a user may ask for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AssetKind {
    /// Manual pages
    Man,
    /// Completion for bash
    Bash,
    /// Completion for zsh
    Zsh,
    /// Completion for fish
    Fish,
}

/// The kind of directory that a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssetFolder {
    /// Manual pages of commands.
    Man1,
    /// Manual pages of formats.
    Man5,
    /// What bash loads when `git arborist` is completed.
    Bash,
    /// What zsh loads when `git arborist` is completed.
    Zsh,
    /// What fish loads when `git-arborist` is completed.
    FishCompletion,
    /// What fish loads when it starts.
    FishStart,
}

impl AssetFolder {
    pub(super) fn kind(self) -> AssetKind {
        match self {
            Self::Man1 | Self::Man5 => AssetKind::Man,
            Self::Bash => AssetKind::Bash,
            Self::Zsh => AssetKind::Zsh,
            Self::FishCompletion | Self::FishStart => AssetKind::Fish,
        }
    }
}

/// One file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asset {
    pub(super) asset_folder: AssetFolder,
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// A text near the top of every file that we create, by which later versions recognise it.
const MARKER: &[u8] = b"git-arborist asset: ";
const NEAR: usize = 1024;

/// Whether any version of ours created this file.
pub(super) fn is_ours(content: &[u8]) -> bool {
    let top = &content[..content.len().min(NEAR)];
    top.windows(MARKER.len()).any(|window| window == MARKER)
}

#[cfg(test)]
mod tests {
    use super::{super::embedded::ASSETS, *};

    #[test]
    fn embedded_assets_are_recognised_as_ours_and_other_files_are_not() {
        assert!(ASSETS.iter().all(|asset| is_ours(asset.text.as_bytes())));
        assert!(!is_ours(b""));
        assert!(!is_ours(b"#compdef git-arborist\n# by hand\n"));
    }
}
