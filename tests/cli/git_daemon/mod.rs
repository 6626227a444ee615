//! `git daemon` on loopback, for what lies in a repository's root.

#![allow(dead_code, clippy::unwrap_used, reason = "each file of tests uses what it needs")]

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Stdio},
    thread,
};

use arborist_testkit::TestRepo;

/// A daemon that takes pushes; ended when dropped.
pub(crate) struct GitDaemon {
    child: Child,
    port: u16,
}

impl GitDaemon {
    /// On any port that is free.
    pub(crate) fn start(test_repo: &TestRepo) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::iter::repeat_with(|| Self::at(test_repo, free())).flatten().next().unwrap()
    }

    /// On this port, unless somebody else has it.
    pub(crate) fn at(test_repo: &TestRepo, port: u16) -> Option<Self> {
        // Not through git, which would leave it behind when it is killed.
        let program = format!("{}/git-daemon", test_repo.git(["--exec-path"]).answer());
        let mut command = test_repo.command(&program, test_repo.root());
        command.args(["--verbose", "--export-all", "--enable=receive-pack", "--reuseaddr"]);
        command.args(["--listen=127.0.0.1", &format!("--port={port}"), "--base-path=."]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        if lines.any(|line| line.is_ok_and(|line| line.contains("Ready to rumble"))) {
            thread::spawn(move || lines.for_each(drop));
            return Some(Self { child, port });
        }
        let _ = child.wait();
        None
    }

    /// Where it serves a bare repository.
    pub(crate) fn url(&self, repo: &str) -> String {
        format!("git://127.0.0.1:{}/{repo}.git", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process, for one who is to end it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for GitDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
