//! `git arborist session replay --offline` of a session that worked in several repositories: each of them comes to the same
//! end, and nobody is called.

use std::fs;

use crate::test_workspace::TestWorkspace;

/// Nobody can be called from now on.
fn disable_workspace_runners(workspace: &TestWorkspace) {
    let mut config =
        "runner = \"agent\"\ntest-command = \"true\"\n[steps.review]\nrunner = \"judge\"\n".to_owned();
    for name in ["agent", "plain", "judge"] {
        config += &format!("[runners.{name}]\ncommand = [\"nobody-is-called-so\"]\n");
        fs::remove_file(workspace.root().join(format!("{name}.sh"))).unwrap();
    }
    fs::write(workspace.home().join(".config/git-arborist/config.toml"), config).unwrap();
}

/// What a commit of a repository holds, without reports, which tell of the session.
fn files(workspace: &TestWorkspace, repo: &str, commit: &str) -> Vec<String> {
    let listed = workspace.git_in(&workspace.clone_of(repo), ["ls-tree", "-r", commit]).answer();
    listed.lines().filter(|line| !line.contains("spec/reports/")).map(str::to_owned).collect()
}

/// What each turn and step of a branch held and said, oldest first.
fn story(workspace: &TestWorkspace, repo: &str, branch: &str) -> Vec<(String, Vec<String>)> {
    let log = ["log", "--first-parent", "--reverse", "--format=%H %s", branch];
    let log = workspace.git_in(&workspace.clone_of(repo), log).answer();
    let told = |line: &str| {
        let (commit, subject) = line.split_once(' ').unwrap();
        let subject = subject.strip_prefix(&format!("task({branch}@"))?;
        Some((subject.to_owned(), files(workspace, repo, commit)))
    };
    log.lines().filter_map(told).collect()
}

/// All refs of a session in both repositories.
fn refs(workspace: &TestWorkspace, id: &str) -> Vec<String> {
    let all = ["repo", "backend"]
        .map(|repo| workspace.git_in(&workspace.clone_of(repo), ["for-each-ref"]).answer());
    all.join("\n")
        .lines()
        .filter(|line| line.contains(id) || line.ends_with("/main"))
        .map(str::to_owned)
        .collect()
}

/// Plays a session again, and gives the branch of the new one.
#[track_caller]
fn replay(workspace: &TestWorkspace, id: &str, turn: &str) -> String {
    let said = workspace.arborist(["session", "replay", id, "--turn", turn, "--offline"]).succeeds();
    format!("arborist/task-tree/{}", said.stdout().lines().next().unwrap())
}

#[test]
fn an_offline_replay_repeats_the_session_in_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let old = workspace.session_branch("backend");
    disable_workspace_runners(&workspace);
    let (before, calls) = (refs(&workspace, &id), workspace.calls());
    let new = replay(&workspace, &id, "0");
    assert_eq!(
        (refs(&workspace, &id), workspace.calls()),
        (before, calls),
        "the original is as it was, and nobody was called"
    );
    for repo in ["repo", "backend"] {
        let (old, new) = (story(&workspace, repo, &old), story(&workspace, repo, &new));
        assert!(old.iter().filter(|(subject, _)| subject.contains("@turn)")).count() == 2, "{old:#?}");
        assert_eq!(new, old, "{repo}");
    }
    let house = workspace
        .root()
        .join("backend.arborist")
        .join(format!("session-{}", new.rsplit_once('/').unwrap().1));
    assert_eq!(workspace.git_in(&house, ["status", "--porcelain"]).answer(), "");
    let new = new.rsplit_once('/').unwrap().1;
    let told = |id: &str| -> Vec<String> {
        let paths = |turn: &serde_json::Value| {
            format!("{} {} {} {}", turn["number"], turn["message"], turn["files"], turn["others"][0]["files"])
        };
        workspace.turns(id).iter().map(paths).collect()
    };
    assert_eq!(told(new), told(&id));
}

#[test]
fn an_offline_replay_from_any_turn_ends_with_the_same_files_in_every_repository() {
    let (workspace, id) = TestWorkspace::of_session();
    let old = workspace.session_branch("backend");
    let turns = ["Write here", "Write there", "Write in both", "Add T002.txt"];
    let turns = turns.map(|message| workspace.turn(&id, message)["number"].to_string());
    disable_workspace_runners(&workspace);
    let before = refs(&workspace, &id);
    for turn in turns {
        let new = replay(&workspace, &id, &turn);
        for repo in ["repo", "backend"] {
            assert_eq!(
                files(&workspace, repo, &new),
                files(&workspace, repo, &old),
                "{repo} after turn {turn}"
            );
        }
    }
    assert_eq!(refs(&workspace, &id), before);
}

#[test]
fn an_offline_replay_without_recorded_repositories_uses_their_commits() {
    let (workspace, id) = TestWorkspace::of_session();
    let old = workspace.session_branch("backend");
    workspace.remove_others_from_records(&id);
    disable_workspace_runners(&workspace);
    let new = replay(&workspace, &id, "0");
    for repo in ["repo", "backend"] {
        assert_eq!(story(&workspace, repo, &new), story(&workspace, repo, &old), "{repo}");
    }
}

#[test]
fn an_offline_replay_is_refused_if_a_repository_or_branch_is_missing() {
    let (workspace, id) = TestWorkspace::of_session();
    let (backend, old) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    let refused = |word: &str, hint: &str| {
        let refs = workspace.git(["for-each-ref"]).answer();
        let said = workspace.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).exits(2);
        said.err("'backend'").err(word).err(hint);
        assert_eq!(workspace.git(["for-each-ref"]).answer(), refs);
    };
    workspace.git_in(&backend, ["branch", "-q", "-m", &old, "kept"]).succeeds();
    refused(&format!("has no branch '{old}'"), "leave --offline out");
    fs::rename(&backend, workspace.root().join("away")).unwrap();
    refused("is not here", "workspace sync");
    workspace.git(["config", "--global", "--remove-section", "arborist.workspace.repos.backend"]).succeeds();
    refused("which the workspace does not have", "[workspace.repos.backend]");
}

#[test]
fn an_offline_replay_repeats_work_of_a_killed_attempt() {
    let half = "echo half > half.txt; echo half > \"$there/half.txt\"";
    let killed = format!("if mkdir \"$ROOT/killed\" 2>/dev/null; then {half}; kill -9 $PPID; exit 1; fi\n");
    for (agent, place) in [("agent", "calls 4"), ("plain", "[ \"$ARBORIST_TASK\" = T003 ]")] {
        let workspace = TestWorkspace::of_turns();
        let file = workspace.root().join(format!("{agent}.sh"));
        let script = fs::read_to_string(&file).unwrap();
        let (before, after) = script.split_once(place).unwrap();
        fs::write(&file, format!("{before}{killed}{place}{after}")).unwrap();
        assert_ne!(workspace.arborist(["gardener"]).code(), 0);
        workspace.arborist(["gardener"]).succeeds();
        let old = workspace.session_branch("backend");
        let id = old.rsplit_once('/').unwrap().1;
        disable_workspace_runners(&workspace);
        let new = replay(&workspace, id, "0");
        for repo in ["repo", "backend"] {
            let (old, new) = (files(&workspace, repo, &old), files(&workspace, repo, &new));
            assert!(old.iter().any(|line| line.ends_with("half.txt")), "{old:?}");
            assert_eq!(new, old, "{repo} by {agent}");
        }
    }
}

#[test]
fn an_offline_replay_of_a_session_in_lanes_works_in_every_repository() {
    let workspace = TestWorkspace::of_turns();
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    let old = workspace.session_branch("backend");
    let id = old.rsplit_once('/').unwrap().1;
    let turn = workspace.turn(id, "Write there")["number"].to_string();
    disable_workspace_runners(&workspace);
    for turn in ["0", &turn] {
        let new = replay(&workspace, id, turn);
        for repo in ["repo", "backend"] {
            assert_eq!(
                files(&workspace, repo, &new),
                files(&workspace, repo, &old),
                "{repo} after turn {turn}"
            );
        }
    }
}
