//! The hooks that we know, and the text that runs our check in each.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

/// A hook of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Checks a message before it is committed.
    CommitMsg,
    /// Checks commits before they are pushed.
    PrePush,
    /// Checks a whole push where it is received.
    PreReceive,
    /// Checked each ref of a push alone. Earlier versions installed it; now it can only be removed.
    Update,
}

/// The first lines of everything that we write, by which it is recognised.
const MARKS: [&str; 2] = ["'git arborist hooks install'", "# >>> git-arborist"];
const BINARY_LINE: &str = "arborist=";

impl HookEvent {
    /// Every hook that we know.
    pub const ALL: [Self; 4] = [Self::CommitMsg, Self::PrePush, Self::PreReceive, Self::Update];

    /// Its name in git.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommitMsg => "commit-msg",
            Self::PrePush => "pre-push",
            Self::PreReceive => "pre-receive",
            Self::Update => "update",
        }
    }

    /// Whether git gives it lines on standard input.
    pub(super) fn reads_lines(self) -> bool {
        matches!(self, Self::PrePush | Self::PreReceive)
    }

    /// Whether it belongs into a repository that is pushed to.
    pub(super) fn is_for_receivers(self) -> bool {
        matches!(self, Self::PreReceive | Self::Update)
    }

    /// The name of its section in git's configuration; git forbids the bare name of an event.
    pub(super) fn config_section(self) -> String {
        format!("hook.arborist-{}", self.as_str())
    }

    /// The lines that find the binary and execute it. They are also a command for git's configuration: git appends
    /// `"$@"`, which ends up after the last `exit`.
    pub(super) fn check(self, binary: &Quoted) -> String {
        let text = match self {
            Self::CommitMsg => include_str!("../../hooks/commit-msg.sh"),
            Self::PrePush => include_str!("../../hooks/pre-push.sh"),
            Self::PreReceive => include_str!("../../hooks/pre-receive.sh"),
            Self::Update => include_str!("../../hooks/update.sh"),
        };
        text.replace("@BINARY@", &binary.0)
    }

    /// A hook file of our own.
    pub(super) fn script(self, binary: &Quoted) -> String {
        let frame = match self {
            _ if self.reads_lines() => include_str!("../../hooks/script-stdin.sh"),
            _ => include_str!("../../hooks/script.sh"),
        };
        frame.replace("@CHECK@\n", &self.check(binary))
    }

    /// Lines for a hook file of others.
    pub(super) fn block(self, binary: &Quoted) -> String {
        let frame = match self {
            _ if self.reads_lines() => include_str!("../../hooks/block-stdin.sh"),
            _ => include_str!("../../hooks/block.sh"),
        };
        frame.replace("@CHECK@\n", &self.check(binary))
    }
}

/// A path as a word of a shell command; `''` leaves the binary to `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted(String);

impl Quoted {
    /// For files that are shared with others: no path.
    pub(super) fn none() -> Self {
        Self("''".into())
    }

    /// `path`, unless it could not be read back.
    pub(super) fn path(path: &std::path::Path) -> Self {
        match path.to_str() {
            Some(path) if !path.contains('\n') => Self(format!("'{}'", path.replace('\'', r"'\''"))),
            _ => Self::none(),
        }
    }

    /// The word with which `text`, which we may have written, names the binary.
    pub(super) fn find_in(text: &str) -> Option<Self> {
        text.lines().find_map(|line| line.strip_prefix(BINARY_LINE)).map(|word| Self(word.to_owned()))
    }

    /// The word as written in a command.
    pub(super) fn word(&self) -> &str {
        &self.0
    }

    /// The path again; empty if the binary is left to `PATH`.
    pub(super) fn unquoted(&self) -> String {
        let inner = self.0.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')).unwrap_or(&self.0);
        inner.replace(r"'\''", "'")
    }
}

/// Whether `text` was made from something that we wrote, unchanged or not.
pub(super) fn is_marked(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_hook_text_is_recognised_for_any_path_of_the_binary() {
        for path in ["/usr/bin/x", "/o'brien/a b/ü", ""] {
            let binary = Quoted::path(path.as_ref());
            assert_eq!(binary.unquoted(), path);
            for event in HookEvent::ALL {
                for text in [event.script(&binary), event.block(&binary)] {
                    assert_eq!(Quoted::find_in(&text), Some(binary.clone()));
                    assert!(is_marked(&text) && !text.contains("@CHECK@") && !text.contains("@BINARY@"));
                }
            }
        }
        assert_eq!(Quoted::path("a\nb".as_ref()), Quoted::none());
    }
}
