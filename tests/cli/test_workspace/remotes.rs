//! A workspace whose repositories are to be pushed to servers.

use std::fs;

use super::TestWorkspace;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 do a\n- [ ] T002 [repo:backend] do b\n- [ ] T003 do c\n";

/// T003 fails until it is mended.
pub(crate) const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T003:*) test -e "$ROOT/mended" || exit 1; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

impl TestWorkspace {
    /// Two repositories with bare ones beside them, which nothing leads to yet.
    pub(crate) fn of_remotes() -> Self {
        let workspace = Self::of(&["backend"], PLAN);
        workspace.agent(WORKER);
        workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
        workspace.set_network_timeout(60);
        workspace.git(["config", "--global", "arborist.workspace.repos.app.path", "."]).succeeds();
        workspace
    }

    /// How many seconds a remote may say nothing. Only a remote that hangs on purpose should get few: the others may be slow
    /// on a busy machine.
    pub(crate) fn set_network_timeout(&self, seconds: u32) {
        self.git(["config", "--global", "arborist.timeouts.network", &seconds.to_string()]).succeeds();
    }

    pub(crate) fn use_remotes(&self, url: impl Fn(&str) -> String, policy: &str) {
        for (name, repo) in [("app", "repo"), ("backend", "backend")] {
            self.set(name, "remote", &url(repo));
            self.set(name, "push", policy);
        }
    }

    /// What a bare repository has beside its own branch.
    pub(crate) fn pushed(&self, repo: &str) -> Vec<String> {
        let list = self.git_in(&self.remote_of(repo), ["for-each-ref", "--format=%(refname)"]).answer();
        list.lines().filter(|name| *name != "refs/heads/main").map(str::to_owned).collect()
    }

    /// Whether the session has a file at a remote.
    pub(crate) fn has(&self, repo: &str, file: &str) -> bool {
        let refs = self.pushed(repo);
        let branch = refs.iter().find(|name| name.starts_with("refs/heads/arborist/tasks/"));
        let is_there = |branch: &String| {
            self.git_in(&self.remote_of(repo), ["cat-file", "-e", &format!("{branch}:{file}")]).code() == 0
        };
        branch.is_some_and(is_there)
    }

    pub(crate) fn let_tests_pass(&self) {
        fs::write(self.root().join("mended"), "").unwrap();
    }
}
