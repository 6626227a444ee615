//! A workspace for tests: a repository with a plan and others beside it, each with a bare repository as its remote.

#![allow(dead_code, clippy::unwrap_used, reason = "each file of tests uses what it needs")]

pub(crate) mod remotes;
pub(crate) mod turns;

use std::{fs, ops::Deref, path::PathBuf};

use arborist_testkit::TestRepo;

/// Everything that a container has.
const CONTAINER: [&str; 4] = ["repo", "backend", "repo.arborist", "backend.arborist"];

/// A repository with a plan, and others beside it.
pub(crate) struct TestWorkspace(TestRepo);

impl Deref for TestWorkspace {
    type Target = TestRepo;

    fn deref(&self) -> &TestRepo {
        &self.0
    }
}

impl TestWorkspace {
    /// Repositories of these names, cloned and configured, and a plan.
    pub(crate) fn of(repos: &[&str], plan: &str) -> Self {
        let workspace = Self(TestRepo::init());
        let file = if plan.starts_with('{') { "task-tree.json" } else { "tasks.md" };
        workspace.write(file, plan);
        workspace.commit("a plan\n");
        for repo in repos {
            workspace.build(repo);
            let config = [
                "config",
                "--global",
                &format!("arborist.workspace.repos.{repo}.path"),
                &format!("../{repo}"),
            ];
            workspace.git(config).succeeds();
        }
        workspace
    }

    /// A workspace of two repositories, 'app' with the plan and 'backend', that both have remotes, configured with more in
    /// a tracked file; and of all that only a clone of the first.
    pub(crate) fn of_containers(plan: &str, policy: &str, more: &str) -> Self {
        let workspace = Self::of(&["backend"], plan);
        workspace
            .git(["config", "--global", "--remove-section", "arborist.workspace.repos.backend"])
            .succeeds();
        let section = |name: &str, path: &str, bare: &str| {
            format!(
                "[workspace.repos.{name}]\npath = \"{path}\"\nremote = \"../{bare}\"\npush = \"{policy}\"\n"
            )
        };
        let text = section("app", ".", "repo.git") + &section("backend", "../backend", "backend.git");
        workspace.write(".arborist/config.toml", format!("{more}{text}"));
        workspace.commit("configuration\n");
        workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
        workspace.delete_container();
        workspace.clone_again();
        workspace
    }

    /// The container is gone, with everything that was in it.
    pub(crate) fn delete_container(&self) {
        for name in CONTAINER.iter().chain(&["home/.local", "home/.cache"]) {
            let _ = fs::remove_dir_all(self.root().join(name));
        }
    }

    /// A container stands aside while another is at work.
    pub(crate) fn move_container_away(&self, container: &str) {
        for name in CONTAINER {
            let _ = fs::rename(self.root().join(name), self.root().join(format!("{container}-{name}")));
        }
    }

    /// It is at work again.
    pub(crate) fn move_container_back(&self, container: &str) {
        for name in CONTAINER {
            let _ = fs::rename(self.root().join(format!("{container}-{name}")), self.root().join(name));
        }
    }

    /// A new container has a clone of the repository with the plan.
    pub(crate) fn clone_again(&self) {
        self.git_in(self.root(), ["clone", "-q", "repo.git", "repo"]).succeeds();
    }

    /// A bare repository with one commit, and a clone of it.
    fn build(&self, repo: &str) {
        let (bare, clone) = (format!("{repo}.git"), self.clone_of(repo));
        self.git_in(self.root(), ["init", "-q", "--bare", "-b", "main", &bare]).succeeds();
        self.git_in(self.root(), ["clone", "-q", &bare, repo]).succeeds();
        self.git_in(&clone, ["checkout", "-q", "-b", "main"]).succeeds();
        fs::write(clone.join("kept.txt"), repo).unwrap();
        self.git_in(&clone, ["add", "-A"]).succeeds();
        self.git_in(&clone, ["commit", "-q", "-m", &format!("begin {repo}")]).succeeds();
        self.git_in(&clone, ["push", "-q", "origin", "main"]).succeeds();
        self.git_in(&clone, ["remote", "set-head", "origin", "main"]).succeeds();
    }

    pub(crate) fn clone_of(&self, repo: &str) -> PathBuf {
        self.root().join(repo)
    }

    pub(crate) fn remote_of(&self, repo: &str) -> PathBuf {
        self.root().join(format!("{repo}.git"))
    }

    /// Says more of a repository, in a tracked file of the one that has the plan.
    pub(crate) fn section(&self, repo: &str, more: &str) {
        let text = format!("[workspace.repos.{repo}]\n{more}");
        self.write(".arborist/config.toml", text);
        self.commit("configuration\n");
    }

    /// Says something of a repository, in the user's own configuration.
    pub(crate) fn set(&self, repo: &str, key: &str, value: &str) {
        let key = format!("arborist.workspace.repos.{repo}.{key}");
        self.git(["config", "--global", &key, value]).succeeds();
    }

    /// The branch of the only session in a clone.
    #[track_caller]
    pub(crate) fn session_branch(&self, repo: &str) -> String {
        let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"];
        let found = self.git_in(&self.clone_of(repo), list).answer();
        let branches: Vec<&str> = found.lines().filter(|name| !name.contains("/task/")).collect();
        assert_eq!(branches.len(), 1, "{found}");
        branches[0].to_owned()
    }
}
