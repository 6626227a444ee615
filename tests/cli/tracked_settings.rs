//! Settings in tracked files come from whoever committed them: they do not weaken what the user has set up.

use arborist_testkit::TestRepo;

const AGENT: &str = "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
mkdir -p src; echo x > src/$ARBORIST_TASK.txt\n";

fn repo(settings: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", AGENT);
    repo.write(".arborist/config.toml", settings);
    repo.commit("settings\n");
    repo
}

#[test]
fn a_tracked_file_does_not_turn_off_a_gate_of_the_users() {
    let repo = repo("[merge.gates.mine]\nwhen = \"nothing/**\"\ntimeout = 1\n");
    repo.git(["config", "arborist.merge.gates.mine.command", "echo asked >> \"$HOME/asked\""]).succeeds();
    repo.arborist(["gardener", "--isolate"]).succeeds();
    assert!(repo.home().join("asked").exists());
}

#[test]
fn a_tracked_file_lets_nothing_land_on_a_red_target_without_approval() {
    let repo = repo("[merge]\nred-target = \"land\"\n");
    repo.arborist(["gardener", "--isolate", "--test-command", "true"]).exits(2).err("merge.red-target: land");
    repo.arborist(["gardener", "--isolate", "--test-command", "true", "--yes"]).succeeds();
}

#[test]
fn a_tracked_file_does_not_have_saved_work_deleted_sooner() {
    let repo = repo("[cleanup]\nkeep-saved = \"0\"\n");
    repo.git(["update-ref", "refs/arborist/saved/reset/T001", "HEAD"]).succeeds();
    repo.wait(5);
    repo.arborist(["cleanup"]).succeeds();
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(saved, "refs/arborist/saved/reset/T001");
}

#[test]
fn a_tracked_folder_for_logs_hides_no_other_files() {
    for folder in ["src", "*", "[ab]", "a b"] {
        let repo = repo(&format!("log-dir = \"{folder}\"\n"));
        repo.arborist(["gardener", "--test-command", "true"]).succeeds();
        let tree = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
        assert!(tree.contains("src/T001.txt") && !tree.contains(".log"), "{folder}: {tree}");
        repo.write("src/mine.txt", "x\n");
        assert_eq!(repo.git(["status", "--porcelain", "-uall"]).answer(), "?? src/mine.txt", "{folder}");
    }
}

#[test]
fn a_tracked_file_does_not_shorten_the_diff_for_the_reviewer() {
    let repo = repo("[review]\ndiff-limit = 1\n");
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert!(repo.prompt(1).contains("\n+x\n"), "{}", repo.prompt(1));
    repo.arborist(["reset", "T001", "--drop"]).succeeds();
    repo.git(["config", "arborist.review.diff-limit", "1"]).succeeds();
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert!(!repo.prompt(3).contains("\n+x\n"), "{}", repo.prompt(3));
}

#[test]
fn a_tracked_file_weakens_tests_and_reviews_only_with_approval() {
    for (settings, line) in [
        ("[test]\nallow-red = true\n", "test.allow-red: true"),
        ("[steps.review]\nplace = \"checkout\"\n", "steps.review.place: checkout"),
    ] {
        let repo = repo(settings);
        repo.arborist(["gardener", "--test-command", "true"]).exits(2).err(line);
        repo.arborist(["gardener", "--test-command", "true", "--yes"]).succeeds();
    }
}
