//! Settings in tracked files come from whoever committed them: they do not weaken what the user has set up.

use arborist_core::settings::{SETTINGS, Setting, ValueKind};
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
fn tracked_configuration_cannot_turn_off_a_gate_of_the_user() {
    let repo = repo("[merge.gates.mine]\nwhen = \"nothing/**\"\ntimeout = 1\n");
    repo.git(["config", "arborist.merge.gates.mine.command", "echo asked >> \"$HOME/asked\""]).succeeds();
    repo.arborist(["gardener", "--isolate", "--yes"]).succeeds();
    assert!(repo.home().join("asked").exists());
}

#[test]
fn tracked_configuration_cannot_allow_landings_on_a_red_target_without_approval() {
    let repo = repo("[merge]\nred-target = \"land\"\n");
    repo.arborist(["gardener", "--isolate", "--test-command", "true"])
        .exits(2)
        .err("merge.red-target = \"land\"");
    repo.arborist(["gardener", "--isolate", "--test-command", "true", "--yes"]).succeeds();
}

#[test]
fn tracked_configuration_cannot_shorten_the_age_of_saved_work_without_approval() {
    let repo = repo("[cleanup]\nkeep-saved = \"0\"\n");
    repo.git(["update-ref", "--create-reflog", "refs/arborist/saved/reset/T001", "HEAD"]).succeeds();
    repo.wait(5);
    let saved = || repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    repo.arborist(["cleanup"]).exits(2).err("cleanup.keep-saved = \"0\"");
    repo.arborist(["cleanup", "--dry-run"]).succeeds();
    assert_eq!(saved(), "refs/arborist/saved/reset/T001");
    repo.arborist(["cleanup", "--yes"]).succeeds();
    assert_eq!(saved(), "");
}

#[test]
fn a_log_folder_set_in_tracked_configuration_hides_no_other_files() {
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
fn caches_listed_in_tracked_configuration_are_deleted_only_with_approval() {
    let repo = repo("[cleanup]\nreclaim = [\"data/\"]\n");
    repo.write(".gitignore", "data/\n");
    repo.commit("ignore data\n");
    let worktree = repo.arborist(["worktree", "add", "T001"]).answer();
    let file = std::path::Path::new(&worktree).join("data/file");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "x").unwrap();
    repo.arborist(["cleanup"]).succeeds();
    repo.arborist(["cleanup", "--reclaim"]).exits(2).err("cleanup.reclaim = [\"data/\"]");
    assert!(file.exists());
    repo.arborist(["cleanup", "--reclaim", "--yes"]).succeeds();
    assert!(!file.exists());
}

#[test]
fn the_shell_runner_cannot_be_a_fallback_for_reviews() {
    for fallback in ["steps.review.fallback", "fallback"] {
        let error = "'shell' cannot review, because it only runs the command of a task";
        let tracked = repo(&format!("{fallback} = [\"robot\", \"shell\"]\n"));
        tracked.arborist(["gardener", "--test-command", "true", "--yes"]).exits(1).err(error);
        let repo = repo("");
        repo.git(["config", &format!("arborist.{fallback}"), "shell"]).succeeds();
        repo.arborist(["gardener", "--test-command", "true"]).exits(1).err(error);
    }
}

/// A value for a key, written as in a file. Each round has other values for keys with few of them.
fn sample(setting: &Setting, round: usize) -> String {
    match (setting.key, setting.kind) {
        ("tree", _) => "\"tasks.md\"".to_owned(),
        ("log-dir" | "report-dir", _) => "\"x\"".to_owned(),
        (_, ValueKind::Text | ValueKind::InnerPath | ValueKind::Name | ValueKind::Command) => {
            ["\"../x\"", "\"x\""][round].to_owned()
        }
        (_, ValueKind::Switch) => (round == 0).to_string(),
        (_, ValueKind::Choice(words)) => format!("\"{}\"", words[words.len() - 1 - round]),
        (_, ValueKind::Amount) => "7.5".to_owned(),
        (_, ValueKind::Count | ValueKind::Positive | ValueKind::Size) => "7".to_owned(),
        (_, ValueKind::Age) => "\"7d\"".to_owned(),
        (_, ValueKind::Words) => "[\"x\", \"y \\\"z\\\"\"]".to_owned(),
        (_, ValueKind::Folders) => "[\"~/x\"]".to_owned(),
        (_, ValueKind::Pathspecs) => "\"tests\"".to_owned(),
    }
}

#[test]
fn every_tracked_setting_needs_approval_unless_it_is_harmless() {
    for round in [0, 1] {
        let line = |setting: &Setting| {
            let key = setting.key.replace("steps.*", "steps.review").replace('*', "some");
            format!("{key} = {}\n", sample(setting, round))
        };
        // A file cannot set this key at all.
        let settings = SETTINGS.iter().filter(|setting| setting.key != "sign");
        let repo = repo(&settings.map(line).collect::<String>());
        repo.arborist(["worktree", "add", "T001"]).exits(2).matches_snapshot();
    }
}

#[test]
fn tracked_configuration_weakens_tests_and_reviews_only_with_approval() {
    for (settings, line) in [
        ("[test]\nallow-red = true\n", "test.allow-red = true"),
        ("[steps.review]\nplace = \"checkout\"\n", "steps.review.place = \"checkout\""),
        ("[review]\ndiff-limit = 1\n", "review.diff-limit = 1"),
        ("[runners.robot]\nevents = \"text\"\n", "runners.robot.events = \"text\""),
        ("[worktree]\nexclude = [\"/tests/\"]\n", "worktree.exclude = [\"/tests/\"]"),
    ] {
        let repo = repo(settings);
        repo.arborist(["gardener", "--test-command", "true"]).exits(2).err(line);
        repo.arborist(["gardener", "--test-command", "true", "--yes"]).succeeds();
    }
}

#[test]
fn a_tracked_worktree_base_with_tracked_files_needs_approval() {
    for (base, is_harmless) in [
        ("src", false),
        ("src/", false),
        ("./src", false),
        (".//src/", false),
        ("{repository}", false),
        ("src/trees", true),
        (".arborist/trees", true),
    ] {
        let repo = repo(&format!("[worktree]\nbase = \"{base}\"\n"));
        repo.write("src/a.c", "int main;\n");
        repo.commit("sources\n");
        let added = repo.arborist(["worktree", "add", "T001"]);
        match is_harmless {
            true => drop(added.succeeds()),
            false => drop(added.exits(2).err(&format!("worktree.base = \"{base}\""))),
        }
    }
}

#[test]
fn the_worktree_base_hides_no_other_files() {
    let repo = repo("[worktree]\nbase = \"src\"\n");
    repo.write("src/a.c", "int main;\n");
    repo.commit("sources\n");
    let worktree = repo.arborist(["worktree", "add", "T001", "--yes"]).answer();
    repo.write("src/mine.c", "mine\n");
    repo.write("src/T001/src/new.c", "new\n");
    assert_eq!(repo.git(["status", "--porcelain", "-uall"]).answer(), "?? src/mine.c");
    let status = repo.git_in(std::path::Path::new(&worktree), ["status", "--porcelain", "-uall"]);
    assert_eq!(status.answer(), "?? src/new.c");
    let _ = repo.arborist(["cleanup", "--older-than", "0", "--yes"]);
    assert_eq!(repo.read("src/T001/src/new.c"), "new\n", "it has uncommitted work");
    repo.arborist(["gardener", "--jobs", "2", "--yes", "--test-command", "true"]).succeeds();
    assert!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer().contains("src/T001.txt"));
    assert_eq!(repo.read("src/mine.c"), "mine\n");
}

#[test]
fn arguments_of_a_runner_are_shown_as_they_would_be_typed() {
    let command = r#"command = ["sh", "-c", "echo it's; rm x", "", "a b"]"#;
    let repo = repo(&format!("runner = \"mine\"\n[runners.mine]\n{command}\n"));
    repo.arborist(["gardener"]).exits(2).err(r"runner mine: sh -c 'echo it'\''s; rm x' '' 'a b'");
}
