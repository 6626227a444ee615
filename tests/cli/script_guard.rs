//! A task cannot change the scripts that judge it or that git runs: they are put back, and the attempt fails.

use std::fs;

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{TestRepo, pairs};

use crate::test_workspace::TestWorkspace;

const STRICT: &str = "cat > /dev/null\necho 'REJECTED: the strict reviewer rejects everything'\n";
/// Replaces the reviewer's script by one that approves.
const BRIBE: &str = "printf '#!/bin/sh\\ncat > /dev/null; echo APPROVED\\n' >";
const RUN: [&str; 5] = ["gardener", "--max-retries", "1", "--test-command", "true"];

/// A repository with a reviewer's script in `ci`, whose agent writes a file for each task and then runs `deed`.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 a\n",
        &format!("echo x > \"$ARBORIST_TASK.txt\"\n{deed}\n"),
    );
    repo.write("ci/review.sh", STRICT);
    repo.write(".gitignore", ".venv/\n");
    repo.commit("a reviewer\n");
    repo
}

/// Lets this command review.
fn review_by(repo: &TestRepo, words: &[&str]) {
    repo.git(["config", "arborist.runners.judge.command", &words.join("\n")]).succeeds();
    repo.git(["config", "arborist.steps.review.runner", "judge"]).succeeds();
}

fn is_complete(repo: &TestRepo) -> bool {
    repo.git(["log", "--all", "--format=%s"]).answer().contains("@complete)")
}

#[test]
fn the_reviewers_script_is_restored_for_every_way_to_name_it_in_the_command() {
    for kind in ["ci/review.sh", "./ci/review.sh", "ABSOLUTE", "SHELL", "CHDIR", "VARIABLE"] {
        let repo = repo(&format!("{BRIBE} ci/review.sh"));
        let full = repo.path("ci/review.sh");
        match kind {
            "ABSOLUTE" => review_by(&repo, &["sh", full.to_str().unwrap()]),
            "SHELL" => review_by(&repo, &["sh", "-c", "cd ci && exec sh 'review.sh'"]),
            "CHDIR" => review_by(&repo, &["env", "-C", "ci", "sh", "review.sh"]),
            "VARIABLE" => review_by(&repo, &["sh", "-c", "sh \"$PWD/ci/review.sh\""]),
            path => review_by(&repo, &["sh", path]),
        }
        let run = repo.arborist(RUN.iter().chain(&["--sandbox", "off"]));
        let words = "the reviewer's command names 'ci/review.sh', so a task may not change it; it was changed, and was restored";
        assert!(run.stderr().contains(words), "{kind}: {}", run.report());
        assert!(!is_complete(&repo), "{kind}");
        assert_eq!(repo.read("ci/review.sh"), STRICT, "{kind}");
        assert_eq!(repo.git(["log", "--format=%s", "--", "ci"]).answer(), "a reviewer", "{kind}");
    }
}

#[test]
fn the_reviewers_script_behind_symlinks_is_restored() {
    let links = [("review.sh", "ci/review.sh"), ("tools/review.sh", "../ci/review.sh"), ("by", "ci")];
    for ((path, target), place) in pairs(&links, &[&[][..], &["--isolate"], &["--session-branch"]]) {
        let repo = repo(&format!("{BRIBE} ci/review.sh"));
        fs::create_dir_all(repo.path(path).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, repo.path(path)).unwrap();
        repo.commit("a link\n");
        let script = if path == "by" { "by/review.sh" } else { path };
        review_by(&repo, &["sh", script]);
        let run = repo.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(run.stderr().contains("the reviewer's command names 'ci/review.sh'"), "{}", run.report());
        assert!(!is_complete(&repo), "{path} {place:?}");
    }
}

#[test]
fn the_reviewers_script_cannot_be_replaced_by_a_link_or_another_folder() {
    for deed in [
        "mkdir evil; cp ci/review.sh evil; echo 'echo APPROVED' > evil/review.sh; rm -r ci; ln -s evil ci",
        "echo 'echo APPROVED' > evil.sh; ln -sf ../evil.sh ci/review.sh",
        "echo 'echo APPROVED' > evil.sh; ln -sf evil.sh review.sh",
        "mv ci tools; mkdir -p ci; echo 'echo APPROVED' > ci/review.sh",
    ] {
        let repo = repo(deed);
        std::os::unix::fs::symlink("ci/review.sh", repo.path("review.sh")).unwrap();
        repo.commit("a link\n");
        review_by(&repo, &["sh", "review.sh"]);
        let run = repo.arborist(RUN.iter().chain(&["--sandbox", "off"]));
        assert_ne!(run.code(), 0, "{deed}: {}", run.report());
        assert!(!is_complete(&repo), "{deed}");
        assert_eq!(repo.read("review.sh"), STRICT, "{deed}");
    }
}

#[test]
fn a_reviewer_program_that_git_ignores_is_restored() {
    for place in [&[][..], &["--isolate"]] {
        let repo = repo("");
        let judge = repo.path(".venv/bin/judge");
        repo.write_script(".venv/bin/judge", &format!("#!/bin/sh\n{STRICT}"));
        repo.agent(&format!("echo x > T001.txt; {BRIBE} '{}'", judge.display()));
        review_by(&repo, &[judge.to_str().unwrap()]);
        let run = repo.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(run.stderr().contains("judge', so a task may not change it"), "{place:?}: {}", run.report());
        assert!(!is_complete(&repo), "{place:?}");
        assert_eq!(repo.read(".venv/bin/judge"), format!("#!/bin/sh\n{STRICT}"));
    }
}

#[test]
fn a_task_cannot_add_a_script_that_the_reviewers_command_names() {
    for path in ["ci/more.sh", "./ci/more.sh", "more"] {
        let repo = repo(&format!("{BRIBE} {path}"));
        review_by(&repo, &["sh", "-c", &format!("sh {path} || sh ci/review.sh")]);
        let run = repo.arborist(RUN.iter().chain(&["--sandbox", "off"]));
        let words = format!(
            "the reviewer's command names '{}', so a task may not add it",
            path.trim_start_matches("./")
        );
        assert!(run.stderr().contains(&words), "{}", run.report());
        assert!(!is_complete(&repo) && !repo.path(path).exists());
    }
}

#[test]
fn a_task_in_another_repository_cannot_change_the_reviewers_script_in_it() {
    for place in [&[][..], &["--jobs", "2"]] {
        let workspace = TestWorkspace::of(&["backend"], "- [ ] T001 [repo:backend] an endpoint\n");
        let backend = workspace.clone_of("backend");
        fs::create_dir(backend.join("ci")).unwrap();
        fs::write(backend.join("ci/review.sh"), STRICT).unwrap();
        workspace.git_in(&backend, ["add", "-A"]).succeeds();
        workspace.git_in(&backend, ["commit", "-q", "-m", "a reviewer"]).succeeds();
        workspace.git_in(&backend, ["push", "-q", "origin", "main"]).succeeds();
        workspace.agent(&format!("echo x > a.txt; {BRIBE} ci/review.sh"));
        review_by(&workspace, &["sh", "ci/review.sh"]);
        let run = workspace.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(
            run.stderr().contains("the reviewer's command names 'ci/review.sh'"),
            "{place:?}: {}",
            run.report()
        );
        assert!(!is_complete(&workspace), "{place:?}");
    }
}

#[test]
fn other_tasks_are_not_reviewed_by_a_script_that_a_rejected_task_changed() {
    let ways = [(&["--keep-going"][..], None), (&["--only", "T001"], Some("T002"))];
    for ((first, second), place) in pairs(&ways, &[&[][..], &["--session-branch"]]) {
        let repo = repo(&format!("test $ARBORIST_TASK = T002 || {BRIBE} ci/review.sh"));
        repo.write("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n");
        repo.commit("two tasks\n");
        review_by(&repo, &["sh", "ci/review.sh"]);
        let run = repo.arborist(RUN.iter().chain(place).chain(first).chain(&["--sandbox", "off"]));
        assert_ne!(run.code(), 0, "{}", run.report());
        if let Some(task) = second {
            let run = repo.arborist(RUN.iter().chain(&["--only", task, "--sandbox", "off"]));
            assert_ne!(run.code(), 0, "{}", run.report());
        }
        let log = repo.git(["log", "--all", "--format=%s"]).answer();
        assert!(log.contains("T002@review-rejected") && !is_complete(&repo), "{place:?}: {log}");
    }
}

/// A repository with a clean filter, and an agent that rewrites `ci/s.sh` so that it leaves a mark.
fn filtered(command: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write_script("ci/s.sh", "#!/bin/sh\ncat\n");
    repo.write(".gitattributes", "*.txt filter=x\n");
    std::os::unix::fs::symlink("ci/s.sh", repo.path("s.sh")).unwrap();
    repo.commit("a plan\n");
    if !command.is_empty() {
        repo.git(["config", "filter.x.clean", command]).succeeds();
    }
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
printf '#!/bin/sh\\ntouch \"$HOME/planted\"\\ncat\\n' > ci/s.sh; echo x > T001.txt",
    );
    repo
}

#[test]
fn a_filters_script_is_restored_for_every_way_to_name_it_in_the_command() {
    let commands = [
        "sh \"$(git rev-parse --show-toplevel)/ci/s.sh\"",
        "sh \"$(git rev-parse --show-toplevel)/s.sh\"",
        "sh \"$PWD/ci/s.sh\"",
        "cd ci && sh s.sh",
        "sh ${PWD}/s.sh",
    ];
    for (command, place) in pairs(&commands, &[&[][..], &["--isolate"]]) {
        let repo = filtered(command);
        let run = repo.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(run.stderr().contains("'ci/s.sh' is run by git"), "{command}: {}", run.report());
        assert!(!repo.home().join("planted").exists(), "{command} {place:?}");
        assert_eq!(repo.read("ci/s.sh"), "#!/bin/sh\ncat\n");
    }
}

#[test]
fn a_script_that_a_git_setting_names_is_restored() {
    let settings = [
        ("gpg.program", true),
        ("core.fsmonitor", false),
        ("core.sshCommand", true),
        ("diff.x.textconv", false),
    ];
    for ((key, is_absolute), place) in pairs(&settings, &[&[][..], &["--isolate"]]) {
        let repo = filtered("");
        let script = if is_absolute { repo.path("ci/s.sh") } else { "ci/s.sh".into() };
        repo.git(["config", key, script.to_str().unwrap()]).succeeds();
        let run = repo.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(run.stderr().contains("'ci/s.sh' is run by git"), "{key} {place:?}: {}", run.report());
        assert_eq!(repo.git(["show", "main:ci/s.sh"]).answer(), "#!/bin/sh\ncat");
    }
}

#[test]
fn a_tracked_file_that_a_hook_links_to_is_restored_in_every_worktree() {
    for place in [&[][..], &["--isolate"], &["--session-branch"]] {
        let repo = filtered("");
        fs::create_dir_all(repo.path(".git/hooks")).unwrap();
        std::os::unix::fs::symlink("../../ci/s.sh", repo.path(".git/hooks/post-checkout")).unwrap();
        let run = repo.arborist(RUN.iter().chain(place).chain(&["--sandbox", "off"]));
        assert!(run.stderr().contains("ci/s.sh"), "{place:?}: {}", run.report());
        assert!(!is_complete(&repo), "{place:?}");
        let tips = repo.git(["for-each-ref", "--format=%(objectname)", "refs/heads"]).answer();
        for tip in tips.lines() {
            assert_eq!(repo.git(["show", &format!("{tip}:ci/s.sh")]).answer(), "#!/bin/sh\ncat", "{place:?}");
        }
    }
}

#[test]
fn bwrap_makes_the_reviewers_scripts_read_only() {
    if !ConfinementBackend::Bwrap.works() {
        println!("skipped: bwrap does not work here");
        return;
    }
    let repo = repo("echo x > ci/review.sh || echo refused > refused.txt");
    review_by(&repo, &["sh", "ci/review.sh"]);
    repo.write("ci/review.sh", "cat > /dev/null\necho APPROVED\n");
    repo.commit("approve\n");
    repo.arborist(RUN.iter().chain(&["--sandbox", "bwrap"])).succeeds();
    assert!(is_complete(&repo) && repo.path("refused.txt").exists());
}

#[test]
fn files_with_the_name_of_a_script_in_other_folders_may_change() {
    let repo = repo("mkdir -p src; for f in src/review.sh src/sh sh review.sh store; do echo x > $f; done");
    review_by(&repo, &["sh", "ci/review.sh"]);
    // This is the program git-credential-store.
    repo.git(["config", "credential.helper", "store"]).succeeds();
    repo.write("ci/review.sh", "cat > /dev/null\necho APPROVED\n");
    repo.commit("approve\n");
    repo.arborist(RUN.iter().chain(&["--sandbox", "off"])).succeeds();
    assert!(is_complete(&repo));
}

#[test]
fn the_reviewers_script_is_restored_even_if_its_folder_is_read_only_or_replaced() {
    let bribe = format!("mkdir build; {BRIBE} build/review.sh");
    for deed in [
        format!("{BRIBE} ci/review.sh; chmod 555 ci"),
        format!("{bribe}; mv ci build/old; ln -s build ci; chmod 555 ."),
    ] {
        let repo = repo(&deed);
        repo.write(".gitignore", "build/\n");
        repo.commit("ignore\n");
        review_by(&repo, &["sh", "ci/review.sh"]);
        let options = ["gardener", "--max-retries", "2", "--test-command", "true", "--sandbox", "off"];
        let run = repo.arborist(options);
        assert!(run.code() != 0 && !is_complete(&repo), "{deed}: {}", run.report());
        assert_eq!(repo.read("ci/review.sh"), STRICT, "{deed}");
    }
}

#[test]
fn a_task_cannot_provide_a_missing_script_of_the_reviewer_through_a_link() {
    let repo = repo(&format!("mkdir build; {BRIBE} build/more.sh; ln -s build extra"));
    repo.write(".gitignore", "build/\n");
    repo.commit("ignore\n");
    review_by(&repo, &["sh", "-c", "[ ! -e extra/more.sh ] || exec sh extra/more.sh; exec sh ci/review.sh"]);
    let run = repo.arborist(RUN.iter().chain(&["--sandbox", "off"]));
    assert!(run.code() != 0 && !is_complete(&repo), "{}", run.report());
    assert!(!repo.path("extra").is_symlink());
}
