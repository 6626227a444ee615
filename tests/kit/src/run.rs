//! What a command left behind. It must be looked at.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use predicates::{
    prelude::{Predicate, PredicateBooleanExt as _},
    str::{contains, is_empty},
};

use crate::snapshot;

/// The end of a command: standard output, standard error and exit code.
#[derive(Debug)]
#[must_use = "say what you expect of it: succeeds(), exits(), answer()"]
pub struct Run {
    shown: String,
    /// The program and what it was given, without its environment.
    arguments: String,
    output: Output,
}

impl Run {
    /// Runs a command with `input` on standard input.
    #[track_caller]
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        let shown = format!("{command:?}");
        let program = Path::new(command.get_program()).file_name().unwrap_or_default();
        let words = [program].into_iter().chain(command.get_args());
        let arguments = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        let command = std::mem::replace(command, Command::new("false"));
        let ended = assert_cmd::Command::from_std(command).write_stdin(input).output();
        let output = ended.unwrap_or_else(|error| panic!("{shown}: {error}"));
        Self { shown, arguments, output }
    }

    /// The exit code, 128+n for signal n.
    #[must_use]
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.output.status;
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
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
        Said(self)
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
pub struct Said(Run);

impl Said {
    /// Expects all that it said to be what the snapshot of this test has.
    #[track_caller]
    pub fn matches_snapshot(self) -> Self {
        let Run { arguments, .. } = &self.0;
        let (stdout, stderr) = (self.stdout(), self.stderr());
        let parts = [("stdout", stdout), ("stderr", stderr)].map(|(name, text)| match text.as_str() {
            "" => String::new(),
            _ => format!("----- {name}\n{text}"),
        });
        snapshot::compare(&format!("$ {arguments}\n{}----- exit {}\n", parts.concat(), self.0.code()));
        self
    }

    /// Expects `text` on standard output.
    #[track_caller]
    pub fn out(self, text: &str) -> Self {
        expect(&self.stdout(), &contains(text), &self.0);
        self
    }

    /// Expects `text` on standard error.
    #[track_caller]
    pub fn err(self, text: &str) -> Self {
        expect(&self.stderr(), &contains(text), &self.0);
        self
    }

    /// Expects `text` neither on standard output nor on standard error.
    #[track_caller]
    pub fn never(self, text: &str) -> Self {
        expect(&self.stdout(), &contains(text).not(), &self.0);
        expect(&self.stderr(), &contains(text).not(), &self.0);
        self
    }

    /// Expects nothing on standard output.
    #[track_caller]
    pub fn silent(self) -> Self {
        expect(&self.stdout(), &is_empty(), &self.0);
        self
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.0.stdout()
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.0.stderr()
    }
}

/// Not by `assert_cmd`'s own assertions, which accept no output that is not UTF-8.
#[track_caller]
fn expect(text: &str, wanted: &impl Predicate<str>, run: &Run) {
    assert!(wanted.eval(text), "expected {wanted} in:\n{}", run.report());
}
