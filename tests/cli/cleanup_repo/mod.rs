//! A repository to clean up: its tasks land, its worktrees grow old, and nothing in it may be lost.

#![allow(dead_code, reason = "each file of tests uses what it needs")]
use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use arborist_testkit::{NOON, Run, TaskCommit, TestRepo};
use serde_json::Value;

/// A repository with a run on `main`.
pub(crate) struct CleanupRepo(TestRepo);

impl Deref for CleanupRepo {
    type Target = TestRepo;

    fn deref(&self) -> &TestRepo {
        &self.0
    }
}

impl CleanupRepo {
    /// A run on `main` with a few files.
    pub(crate) fn new() -> Self {
        Self::on(&[])
    }

    /// The same in a repository of another kind.
    pub(crate) fn on(options: &[&str]) -> Self {
        let repo = Self(TestRepo::with_options(options));
        repo.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        repo.write(".gitignore", "target/\nnode_modules/\n.env\n");
        repo.commit("begin\n");
        repo.run_start("main", "s1");
        repo
    }

    /// Begins the branch of a task from where we are, with a commit that writes this file.
    pub(crate) fn branch(&self, task: &str, file: &str, text: &str) -> String {
        self.grow(task, "main", &[(file, text)])
    }

    /// The branch of a task with a commit for each file.
    pub(crate) fn grow(&self, task: &str, from: &str, files: &[(&str, &str)]) -> String {
        let mut tip = self.git(["rev-parse", from]).answer();
        for (file, text) in files {
            tip = self.commit_on(&tip, file, text, &TaskCommit::new(task, "complete").to_string());
        }
        self.git(["update-ref", &format!("refs/heads/arborist/task/main/{task}"), &tip]).succeeds();
        tip
    }

    /// A commit on top of another that writes one file. No checkout is touched.
    pub(crate) fn commit_on(&self, parent: &str, file: &str, text: &str, message: &str) -> String {
        let index = self.root().join("index");
        let git = |args: &[&str], input: &[u8]| {
            let mut command = self.command("git", &self.path(""));
            Run::of(command.env("GIT_INDEX_FILE", &index).args(args), input).answer()
        };
        let parent = git(&["rev-parse", parent], b"");
        git(&["read-tree", &parent], b"");
        let blob = git(&["hash-object", "-w", "--stdin"], text.as_bytes());
        git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{file}")], b"");
        let tree = git(&["write-tree"], b"");
        self.commit_object(&tree, &[parent], message)
    }

    /// Merges the branch of a task into `main`.
    pub(crate) fn land(&self, task: &str) {
        let branch = format!("arborist/task/main/{task}");
        self.git(["merge", "-q", "--no-ff", "-m", &format!("land {task}"), &branch]).succeeds();
    }

    /// Brings the change of a task into `main` as one new commit.
    pub(crate) fn squash(&self, task: &str) {
        self.git(["merge", "-q", "--squash", &format!("arborist/task/main/{task}")]).succeeds();
        self.git(["commit", "-q", "-m", &format!("squash {task}")]).succeeds();
    }

    /// Makes the worktree of a task.
    pub(crate) fn worktree(&self, task: &str) -> PathBuf {
        self.arborist(["worktree", "add", "--allow-dirty", task]).answer().into()
    }

    /// Makes a lane for a task.
    pub(crate) fn lane(&self, task: &str) -> PathBuf {
        self.arborist(["worktree", "add", "--allow-dirty", "--lane", task]).answer().into()
    }

    /// Everything that lies on the disk is as old as the repository's first moment, and the clock goes on for so long.
    pub(crate) fn age(&self, seconds: i64) {
        let first = UNIX_EPOCH + Duration::from_secs(u64::try_from(NOON).unwrap());
        set_times(self.root(), first);
        self.wait(seconds);
    }

    /// Runs `git arborist cleanup`.
    pub(crate) fn cleanup(&self, args: &[&str]) -> Run {
        self.arborist(["cleanup"].iter().chain(args))
    }

    /// What `cleanup --json` says, whatever its exit code.
    pub(crate) fn report(&self, args: &[&str]) -> Value {
        let run = self.cleanup(&[args, &["--json"]].concat());
        serde_json::from_str(&run.stdout()).unwrap_or_else(|_| panic!("{}", run.report()))
    }

    /// What a plan says of one thing: verdict and reason.
    pub(crate) fn verdict(&self, args: &[&str], kind: &str, name: &str) -> (String, String) {
        let report = self.report(&[args, &["--dry-run"]].concat());
        let item = find(&report, kind, name);
        (item["verdict"].as_str().unwrap().to_owned(), item["reason"].as_str().unwrap().to_owned())
    }

    /// The record of a session, as it is written into git.
    pub(crate) fn session(&self, id: &str, (branch, driver): (&str, &str), kind: &str) {
        let head = self.git(["rev-parse", "main"]).answer();
        let tree = self.git(["hash-object", "-t", "tree", "-w", "/dev/null"]).answer();
        let json = format!(
            r#"{{"session":"{id}","sequence":0,"time":"2025-02-16T14:30:22Z","totals":{{"turns":0,"commits":0,"tokens_in":0,"tokens_out":0,"cost":null}},"context":{{"started":"2025-02-16T14:30:22Z","branch":"{branch}","plan":null,"pipeline":"gardener","driver":"{driver}","head":"{head}","tip":"{head}","start":null,"checkpoint":null}},{kind}}}"#
        );
        let commit = self.commit_object(&tree, &[head], format!("session {id}: x\n\n{json}\n"));
        self.git(["update-ref", &format!("refs/arborist/sessions/{id}"), &commit]).succeeds();
    }

    /// A branch as a run makes it for its session.
    pub(crate) fn session_branch(&self, name: &str, tip: &str) {
        let name = format!("refs/heads/{name}");
        self.git(["update-ref", "--create-reflog", "-m", "arborist: session", &name, tip]).succeeds();
    }

    /// The names of all refs below a prefix.
    pub(crate) fn refs(&self, prefix: &str) -> Vec<String> {
        let listed = self.git(["for-each-ref", "--format=%(refname)", prefix]).answer();
        listed.lines().map(str::to_owned).collect()
    }

    /// Whether there is a branch of a task.
    pub(crate) fn has(&self, task: &str) -> bool {
        !self.refs(&format!("refs/heads/arborist/task/main/{task}")).is_empty()
    }

    /// Refs, worktrees, and the files of the checkout and of all worktrees.
    pub(crate) fn everything(&self) -> String {
        let refs = self.git(["for-each-ref"]).answer();
        let worktrees = self.git(["worktree", "list", "--porcelain"]).answer();
        let status = self.git(["status", "--porcelain", "--ignored"]).answer();
        let mut files = Vec::new();
        list(&self.root().join("repo.arborist"), &mut files);
        list(&self.path("spec"), &mut files);
        format!("{refs}\n{worktrees}\n{status}\n{}", files.join("\n"))
    }
}

/// One item of a report.
pub(crate) fn find<'a>(report: &'a Value, kind: &str, name: &str) -> &'a Value {
    let items = report["items"].as_array().unwrap();
    let is_it = |item: &&Value| item["kind"] == kind && item["name"] == name;
    items.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} '{name}' in {report:#}"))
}

fn list(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => list(&entry.path(), found),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found.sort();
}

fn set_times(folder: &Path, time: std::time::SystemTime) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            set_times(&entry.path(), time);
        } else if kind.is_file()
            && let Ok(file) = fs::File::options().append(true).open(entry.path())
        {
            file.set_modified(time).unwrap();
        }
    }
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.set_modified(time);
    }
}
