//! Where single commands are measured: a home of their own, and repositories in it.

#![allow(dead_code, reason = "each measurement uses what it needs")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::measure::run;

/// A home that goes with this.
pub(crate) struct CommandHome {
    home: PathBuf,
    _folder: tempfile::TempDir,
}

impl CommandHome {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { home: folder.path().canonicalize().expect("a folder"), _folder: folder }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// A repository without commits.
    pub(crate) fn init(&self, name: &str) -> PathBuf {
        self.git(&self.home, &["init", "-q", "-b", "main", name]);
        self.home.join(name)
    }

    /// A repository with one commit of so many files.
    pub(crate) fn repository(&self, name: &str, files: usize) -> PathBuf {
        let dir = self.init(name);
        for n in 0..files {
            let file = dir.join(format!("src/{}/{}", n / 1000, n / 50 % 20)).join(format!("{n}.txt"));
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, format!("file {n}\n").repeat(8)).expect("a file");
        }
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-qm", "files"]);
        dir
    }

    /// Reads commits from a stream for `git fast-import`.
    pub(crate) fn import(&self, dir: &Path, stream: &str) {
        let mut import = self.command("git", dir);
        import.args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped());
        let mut import = import.spawn().expect("git");
        import.stdin.take().expect("a pipe").write_all(stream.as_bytes()).expect("commits");
        assert!(import.wait().expect("an end").success());
    }

    /// How long git takes.
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> Duration {
        run(self.command("git", dir).args(args))
    }

    /// A program that finds this home and an author.
    pub(crate) fn command(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.com");
        }
        command
    }
}
