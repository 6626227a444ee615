//! What a command left behind. It must be looked at.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

/// The end of a command: standard output, standard error and exit code.
#[derive(Debug)]
#[must_use = "say what you expect of it: succeeds(), fails(), answer()"]
pub struct Run {
    shown: String,
    output: Output,
}

impl Run {
    /// Runs a command with `input` on standard input.
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("an end");
        writer.join().expect("a writer");
        Self { shown, output }
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
        self.succeeds().0.stdout().trim_end_matches('\n').to_owned()
    }
}

/// A command that ended as expected; what it said may be looked at further.
#[derive(Debug)]
pub struct Said(Run);

impl Said {
    /// Expects `text` on standard output.
    #[track_caller]
    pub fn out(self, text: &str) -> Self {
        assert!(self.0.stdout().contains(text), "no '{text}' on stdout in:\n{}", self.0.report());
        self
    }

    /// Expects `text` on standard error.
    #[track_caller]
    pub fn err(self, text: &str) -> Self {
        assert!(self.0.stderr().contains(text), "no '{text}' on stderr in:\n{}", self.0.report());
        self
    }

    /// Expects `text` neither on standard output nor on standard error.
    #[track_caller]
    pub fn never(self, text: &str) -> Self {
        let is_said = self.0.stdout().contains(text) || self.0.stderr().contains(text);
        assert!(!is_said, "'{text}' in:\n{}", self.0.report());
        self
    }

    /// Expects nothing on standard output.
    #[track_caller]
    pub fn silent(self) -> Self {
        assert_eq!(self.0.stdout(), "", "{}", self.0.report());
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
