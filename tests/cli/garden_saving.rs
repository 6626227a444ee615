//! What an agent has done so far is saved while it works.

use std::{fs, process::Stdio, thread, time::Duration};

use arborist_testkit::TestRepo;

const SAVED: &str = "refs/arborist/wip/main/T001/tree";

/// Writes a file, and goes on only when it is told to.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo half > work.txt; while [ ! -e "$ROOT/go" ]; do sleep 0.05; done; echo whole > work.txt ;;
esac
"#;

fn saved(repo: &TestRepo, file: &str) -> Option<String> {
    let shown = repo.git(["show", &format!("{SAVED}:{file}")]);
    (shown.code() == 0).then(|| shown.stdout())
}

#[test]
fn unfinished_work_is_saved_while_an_agent_runs_until_it_is_committed() {
    for jobs in ["1", "2"] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 write\n");
        repo.commit("a plan\n");
        repo.agent(WORKER);
        repo.git(["config", "arborist.worktree.save-every", "1"]).succeeds();
        let mut gardener = repo.command("git-arborist-gardener", &repo.path(""));
        gardener.args(["--jobs", jobs]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = gardener.spawn().unwrap();
        let is_saved = (0..2400).any(|_| {
            thread::sleep(Duration::from_millis(50));
            saved(&repo, "work.txt").as_deref() == Some("half\n")
        });
        assert!(is_saved, "with {jobs} jobs");
        fs::write(repo.root().join("go"), "").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(repo.read("work.txt"), "whole\n");
        assert_eq!(saved(&repo, "work.txt"), None, "it is in the run's history now");
    }
}
