//! What a command left behind. It must be looked at.

use std::process::Command;

use assert_cmd::assert::Assert;
use predicates::{
    prelude::PredicateBooleanExt as _,
    str::{contains, is_empty},
};

/// The end of a command: standard output, standard error and exit code.
#[derive(Debug)]
#[must_use = "say what you expect of it: succeeds(), exits(), answer()"]
pub struct Run {
    shown: String,
    ended: Assert,
}

impl Run {
    /// Runs a command with `input` on standard input.
    #[track_caller]
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        let shown = format!("{command:?}");
        let command = std::mem::replace(command, Command::new("false"));
        let ended = assert_cmd::Command::from_std(command).write_stdin(input).assert();
        Self { ended: ended.append_context("command", shown.clone()), shown }
    }

    /// The exit code, 128+n for signal n.
    #[must_use]
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.ended.get_output().status;
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.ended.get_output().stdout).into_owned()
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.ended.get_output().stderr).into_owned()
    }

    /// Everything at once, for reading and for messages.
    #[must_use]
    pub fn report(&self) -> String {
        format!("$ {}\n{}{}exit {}\n", self.shown, self.stdout(), self.stderr(), self.code())
    }

    /// Expects exit code 0.
    #[track_caller]
    pub fn succeeds(self) -> Said {
        self.exits(0)
    }

    /// Expects this exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code(), code, "{}", self.report());
        Said(self.ended)
    }

    /// Expects success, and gives standard output without its line end.
    #[must_use]
    #[track_caller]
    pub fn answer(self) -> String {
        self.succeeds().stdout().trim_end_matches('\n').to_owned()
    }
}

/// A command that ended as expected; what it said may be looked at further.
#[derive(Debug)]
pub struct Said(Assert);

impl Said {
    /// Expects `text` on standard output.
    #[track_caller]
    pub fn out(self, text: &str) -> Self {
        Self(self.0.stdout(contains(text)))
    }

    /// Expects `text` on standard error.
    #[track_caller]
    pub fn err(self, text: &str) -> Self {
        Self(self.0.stderr(contains(text)))
    }

    /// Expects `text` neither on standard output nor on standard error.
    #[track_caller]
    pub fn never(self, text: &str) -> Self {
        Self(self.0.stdout(contains(text).not()).stderr(contains(text).not()))
    }

    /// Expects nothing on standard output.
    #[track_caller]
    pub fn silent(self) -> Self {
        Self(self.0.stdout(is_empty()))
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.get_output().stdout).into_owned()
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.get_output().stderr).into_owned()
    }
}
