//! A repository with a run on `main` whose tasks are complete, each on its own branch.

#![allow(dead_code, reason = "each file of tests uses what it needs")]

use std::ops::Deref;

use arborist_testkit::{Run, TaskCommit, TestRepo};

/// A repository with finished tasks.
pub(crate) struct QueueRepo(TestRepo);

impl Deref for QueueRepo {
    type Target = TestRepo;

    fn deref(&self) -> &TestRepo {
        &self.0
    }
}

impl QueueRepo {
    /// The same as in any repository, for one that resolves conflicts: what it made of them is approved by the reviewer.
    pub(crate) fn agent(&self, script: &str) {
        self.0.agent(&format!("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n{script}"));
    }

    /// A run on `main` whose tasks each added a file of their name.
    pub(crate) fn with_finished(tasks: &[&str]) -> Self {
        Self::on(&[], tasks)
    }

    /// The same in a repository of another kind.
    pub(crate) fn on(options: &[&str], tasks: &[&str]) -> Self {
        let repo = Self::without_tasks(options);
        repo.run_start("main", "s1");
        tasks.iter().for_each(|task| repo.branch_off(task, "complete"));
        repo
    }

    /// The same with a plan that was frozen when the run began.
    pub(crate) fn planned(plan: &str, tasks: &[&str]) -> Self {
        let repo = Self::without_tasks(&[]);
        repo.write("task-tree.json", plan);
        let base = repo.commit("a plan\n");
        let blob = repo.git(["rev-parse", "HEAD:task-tree.json"]).answer();
        let start = TaskCommit::run_start("main", "s1", &base);
        repo.commit(start.trailer("Plan", &format!("task-tree.json@{blob}")).to_string());
        tasks.iter().for_each(|task| repo.branch_off(task, "complete"));
        repo
    }

    /// A repository with one commit, and no run yet.
    pub(crate) fn empty_queue_repo() -> Self {
        Self::without_tasks(&[])
    }

    fn without_tasks(options: &[&str]) -> Self {
        let repo = Self(TestRepo::with_options(options));
        repo.write("kept.txt", "kept\n");
        repo.commit("begin\n");
        repo
    }

    /// Begins the branch of a task from where we are, adds a file of its name and ends with this status.
    pub(crate) fn branch_off(&self, task: &str, status: &str) {
        self.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
        self.on_branch(task, |repo| {
            repo.write(&format!("{task}.txt"), task);
            repo.commit_complete(&TaskCommit::new(task, status).trailer("Session", "s1"));
        });
    }

    /// Does something on the branch of a task, and comes back.
    pub(crate) fn on_branch(&self, task: &str, work: impl FnOnce(&Self)) {
        let here = self.git(["symbolic-ref", "--short", "HEAD"]).answer();
        self.git(["checkout", "-q", &format!("arborist/task/main/{task}")]).succeeds();
        work(self);
        self.git(["checkout", "-q", &here]).succeeds();
    }

    /// Commits everything as the end of a task.
    pub(crate) fn finish(&self, task: &str) -> String {
        self.commit_complete(&TaskCommit::new(task, "complete").trailer("Session", "s1"))
    }

    /// Checks out another branch than the target.
    pub(crate) fn elsewhere(&self) {
        self.git(["checkout", "-q", "-b", "elsewhere"]).succeeds();
    }

    /// Runs `git arborist merge` for the run of `main`.
    pub(crate) fn merge(&self, args: &[&str]) -> Run {
        let scope: &[&str] = if args.contains(&"--scope") { &[] } else { &["--scope", "main"] };
        self.arborist(["merge"].iter().chain(args).chain(scope))
    }

    /// The subjects of the run's commits on a branch that have come since its start, newest first, along its own line.
    pub(crate) fn subjects(&self, branch: &str) -> Vec<String> {
        let log = self.git(["log", "--first-parent", "--format=%s", branch]).answer();
        let lines = log.lines().take_while(|line| !line.contains("@run-start"));
        lines.filter(|line| line.starts_with("task(")).map(str::to_owned).collect()
    }

    /// A file of a branch.
    pub(crate) fn show(&self, branch: &str, path: &str) -> String {
        self.git(["show", &format!("{branch}:{path}")]).answer()
    }
}

/// A repository whose task T1 has landed, and whose task T2 began beside it. Both did their work on a file `a.txt`.
pub(crate) fn conflicting_tasks(
    base: impl Fn(&QueueRepo),
    ours: impl Fn(&QueueRepo),
    theirs: impl Fn(&QueueRepo),
) -> QueueRepo {
    let repo = QueueRepo::empty_queue_repo();
    base(&repo);
    repo.commit("a base\n");
    repo.run_start("main", "s1");
    for (task, work) in [("T1", &ours as &dyn Fn(&QueueRepo)), ("T2", &theirs)] {
        repo.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
        repo.on_branch(task, |repo| {
            work(repo);
            repo.finish(task);
        });
    }
    repo.merge(&["T1"]).succeeds();
    repo
}

/// Both changed the same line.
pub(crate) fn content() -> QueueRepo {
    conflicting_tasks(
        |repo| repo.write("a.txt", "one\n"),
        |repo| repo.write("a.txt", "ours\n"),
        |repo| repo.write("a.txt", "theirs\n"),
    )
}

/// A `git` that does something once, before it is asked for this.
pub(crate) fn before_git(repo: &QueueRepo, asked: &str, script: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let (git, mark) = (git.display(), repo.root().join("done"));
    let mark = mark.display();
    repo.plant(
        "git",
        &format!(
            "#!/bin/sh\ncase \" $* \" in *' {asked} '*) test -e '{mark}' || {{ touch '{mark}'; \
             unset GIT_INDEX_FILE; cd '{}'; PATH=$(dirname '{git}'):$PATH; {script}; }} >&2 ;; esac\n\
             exec '{git}' \"$@\"\n",
            repo.path("").display()
        ),
    );
}
