//! What an agent has done so far is saved while it works.

use std::{fs, process::Stdio, thread, time::Duration};

use arborist_testkit::Garden;

const SAVED: &str = "refs/arborist/wip/main/T001/tree";

/// Writes a file, and goes on only when it is told to.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo half > work.txt; while [ ! -e "$ROOT/go" ]; do sleep 0.05; done; echo whole > work.txt ;;
esac
"#;

fn saved(garden: &Garden, file: &str) -> Option<String> {
    let shown = garden.git(["show", &format!("{SAVED}:{file}")]);
    (shown.code() == 0).then(|| shown.stdout())
}

#[test]
fn unfinished_work_is_saved_while_an_agent_runs_and_forgotten_once_it_is_written_down() {
    for jobs in ["1", "2"] {
        let garden = Garden::sprout();
        garden.write("tasks.md", "- [ ] T001 write\n");
        garden.commit("a plan\n");
        garden.agent(WORKER);
        garden.git(["config", "arborist.worktree.save-every", "1"]).succeeds();
        let mut gardener = garden.command("git-arborist-gardener", &garden.path(""));
        gardener.args(["--jobs", jobs]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = gardener.spawn().unwrap();
        let is_saved = (0..600).any(|_| {
            thread::sleep(Duration::from_millis(50));
            saved(&garden, "work.txt").is_some()
        });
        assert!(is_saved, "with {jobs} jobs");
        assert_eq!(saved(&garden, "work.txt").as_deref(), Some("half\n"));
        fs::write(garden.root().join("go"), "").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(garden.read("work.txt"), "whole\n");
        assert_eq!(saved(&garden, "work.txt"), None, "it is in the run's history now");
    }
}
