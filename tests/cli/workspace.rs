//! `git arborist workspace`: configuration, status, sync, push and foreach, with bare repositories as remotes.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;
use serde_json::Value;

/// A remote with two branches and three commits, made in a scratch clone.
fn remote(repo: &TestRepo, name: &str) -> PathBuf {
    let (bare, work) = (repo.root().join(format!("{name}.git")), repo.root().join(format!("{name} work")));
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    repo.git_in(repo.root(), ["init", "-q", "--bare", "-b", "main", &text(&bare)]).succeeds();
    repo.git_in(repo.root(), ["clone", "-q", &text(&bare), &text(&work)]).succeeds();
    repo.git_in(&work, ["checkout", "-q", "-b", "main"]).succeeds();
    for n in 1..=3 {
        fs::write(work.join("file"), format!("{n}\n")).unwrap();
        repo.git_in(&work, ["add", "file"]).succeeds();
        repo.git_in(&work, ["commit", "-qm", &format!("commit {n}")]).succeeds();
    }
    repo.git_in(&work, ["push", "-q", "origin", "main", "main~1:refs/heads/develop"]).succeeds();
    bare
}

/// The user's own configuration.
fn configure(repo: &TestRepo, text: &str) {
    let folder = repo.home().join(".config/git-arborist");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

fn backend(repo: &TestRepo, more: &str) {
    let bare = remote(repo, "backend");
    let section = "[workspace.repos.backend]\npath = \"../backend\"\n";
    configure(repo, &format!("{section}remote = '{}'\n{more}\n", bare.display()));
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn without_configuration_the_workspace_is_this_repository() {
    let repo = TestRepo::init();
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot();
    repo.arborist(["workspace", "sync"]).succeeds().matches_snapshot();
    repo.arborist(["workspace", "push"]).exits(1).matches_snapshot();
}

#[test]
fn sync_clones_missing_repositories_and_fetches_existing_ones() {
    let repo = TestRepo::init();
    backend(&repo, "");
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot();
    repo.arborist(["workspace", "sync"]).succeeds().matches_snapshot();
    let clone = repo.root().join("backend");
    assert_eq!(repo.git_in(&clone, ["rev-list", "--count", "HEAD"]).answer(), "3");
    assert_eq!(repo.git_in(&clone, ["rev-parse", "--is-shallow-repository"]).answer(), "false");
    let work = repo.root().join("backend work");
    repo.git_in(&work, ["commit", "-q", "--allow-empty", "-m", "later"]).succeeds();
    repo.git_in(&work, ["push", "-q", "origin", "main"]).succeeds();
    repo.arborist(["workspace", "sync"]).succeeds().matches_snapshot();
    let later = repo.git_in(&work, ["rev-parse", "HEAD"]).answer();
    let seen = ["rev-parse", "refs/arborist/remote/backend/heads/main"];
    assert_eq!(repo.git_in(&clone, seen).answer(), later);
    assert_ne!(repo.git_in(&clone, ["rev-parse", "main"]).answer(), later, "the user's branch is theirs");
    let printed = repo.arborist(["workspace", "status", "--json"]).answer();
    let row = &json(&printed)["repositories"][1];
    assert_eq!((row["name"].as_str(), row["behind"].as_u64()), (Some("backend"), Some(1)));
    assert_eq!(row["pushed"], Value::Bool(true));
}

#[test]
fn sync_clones_with_the_configured_depth_and_branch() {
    let repo = TestRepo::init();
    backend(&repo, "clone-depth = 1\ndefault-branch = \"develop\"");
    repo.arborist(["workspace", "sync"]).succeeds();
    let clone = repo.root().join("backend");
    assert_eq!(repo.git_in(&clone, ["rev-list", "--count", "HEAD"]).answer(), "1");
    assert_eq!(repo.git_in(&clone, ["symbolic-ref", "--short", "HEAD"]).answer(), "develop");
    let printed = repo.arborist(["workspace", "status", "--json"]).answer();
    assert_eq!(json(&printed)["repositories"][1]["shallow"], Value::Bool(true));
}

#[test]
fn a_missing_path_without_a_remote_is_an_error_that_names_the_key() {
    let repo = TestRepo::init();
    configure(&repo, "[workspace.repos.backend]\npath = \"../backend\"\n");
    repo.arborist(["workspace", "sync"]).exits(1).matches_snapshot();
    fs::create_dir(repo.root().join("backend")).unwrap();
    fs::write(repo.root().join("backend/file"), "").unwrap();
    repo.arborist(["workspace", "sync"]).exits(1).matches_snapshot();
    assert!(!repo.root().join("backend/.git").exists());
}

#[test]
fn unknown_workspace_keys_and_values_are_errors_with_their_location() {
    let repo = TestRepo::init();
    let table = [
        (
            "path = '../b'\npsuh = 'never'",
            "config.toml:3: unknown key 'workspace.repos.b.psuh'",
            "did you mean 'workspace.repos.b.push'?",
        ),
        (
            "path = '../b'\npush = 'always'",
            "config.toml:3: 'workspace.repos.b.push' must be never, on_completion",
            "",
        ),
        ("path = '../b'\nclone-depth = 0", "config.toml:3: 'workspace.repos.b.clone-depth' must be", ""),
        ("path = '../b'\nbranch-prefix = 'a b'", "config.toml:3: 'workspace.repos.b.branch-prefix' must", ""),
        (
            "path = '../b'\ndefault-branch = '-x'",
            "config.toml:3: 'workspace.repos.b.default-branch' must",
            "",
        ),
        ("push = 'never'", "config.toml:2: 'workspace.repos.b.path' is missing", ""),
    ];
    for (text, error, hint) in table {
        configure(&repo, &format!("[workspace.repos.b]\n{text}\n"));
        repo.arborist(["workspace", "status"]).exits(1).err(error).err(hint);
    }
    configure(&repo, "[workspace.repos.'a b']\npath = '../b'\n");
    repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
    configure(&repo, "[workspace.repos.b]\npath = '../b'\n[workspace.repos.c]\npath = '../x/../b'\n");
    repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
}

#[test]
fn a_remote_in_tracked_configuration_needs_approval_and_runs_no_program() {
    let repo = TestRepo::init();
    let bare = remote(&repo, "backend");
    let canary = repo.root().join("canary");
    let write = |remote: &str| {
        let section = "[workspace.repos.backend]\npath = \"../backend\"\n";
        repo.write(".arborist/config.toml", format!("{section}remote = '{remote}'\n"));
    };
    for evil in [
        format!("ext::touch '{}'", canary.display()).replace('\'', "\""),
        format!("--upload-pack=touch {}", canary.display()),
        format!("ssh://-oProxyCommand=touch {}/x", canary.display()),
        "fd::17".into(),
    ] {
        write(&evil);
        repo.arborist(["workspace", "sync", "--yes"]).exits(1).matches_snapshot();
        assert!(!canary.exists() && !repo.root().join("backend").exists(), "{evil}");
    }
    write(&bare.display().to_string());
    let refused = repo.arborist(["workspace", "sync"]).exits(2).matches_snapshot();
    assert!(refused.stderr().contains(&bare.display().to_string()) && refused.stderr().contains("--yes"));
    assert!(!repo.root().join("backend").exists());
    repo.arborist(["workspace", "sync", "--yes"]).succeeds().matches_snapshot();
    repo.arborist(["workspace", "sync"]).succeeds().matches_snapshot();
}

#[test]
fn a_remote_helper_in_user_configuration_runs_no_program() {
    let repo = TestRepo::init();
    let canary = repo.root().join("canary");
    repo.git(["config", "--global", "protocol.ext.allow", "always"]).succeeds();
    let text = format!("remote = \"ext::touch '{}'\"", canary.display());
    configure(&repo, &format!("[workspace.repos.b]\npath = \"../b\"\n{text}\n"));
    repo.arborist(["workspace", "sync"]).exits(1).matches_snapshot();
    assert!(!canary.exists());
}

/// A session in the repository with the plan and in the backend, as a run leaves it.
fn session(repo: &TestRepo) {
    repo.arborist(["workspace", "sync"]).succeeds();
    let clone = repo.root().join("backend");
    repo.git_in(&clone, ["checkout", "-q", "-b", "mine"]).succeeds();
    for dir in [repo.path(""), clone] {
        repo.git_in(&dir, ["checkout", "-q", "-b", "arborist/plan/s1"]).succeeds();
        repo.git_in(&dir, ["commit", "-q", "--allow-empty", "-m", "work"]).succeeds();
        repo.git_in(&dir, ["branch", "arborist/task/arborist%2Fplan%2Fs1/T1"]).succeeds();
        repo.git_in(&dir, ["branch", "arborist/plan/other"]).succeeds();
        repo.git_in(&dir, ["update-ref", "refs/arborist/transcripts/s1", "HEAD"]).succeeds();
    }
    repo.git(["update-ref", "refs/arborist/sessions/s1", "HEAD"]).succeeds();
}

#[test]
fn workspace_push_pushes_only_branches_and_records_of_sessions() {
    let repo = TestRepo::init();
    backend(&repo, "");
    session(&repo);
    let clone = repo.root().join("backend");
    repo.git_in(&clone, ["update-ref", "refs/arborist/sessions/s1", "HEAD"]).succeeds();
    repo.git_in(&clone, ["tag", "-a", "-m", "a tag", "v1"]).succeeds();
    repo.git_in(&clone, ["config", "push.followTags", "true"]).succeeds();
    repo.git_in(&clone, ["config", "remote.origin.mirror", "true"]).succeeds();
    repo.git_in(&clone, ["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"]).succeeds();
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot();
    repo.arborist(["workspace", "push"]).succeeds().matches_snapshot();
    let bare = repo.root().join("backend.git");
    let refs = repo.git_in(&bare, ["for-each-ref", "--format=%(refname)"]).answer();
    let expected = [
        "refs/arborist/sessions/s1",
        "refs/heads/arborist/plan/s1",
        "refs/heads/arborist/task/arborist%2Fplan%2Fs1/T1",
        "refs/heads/develop",
        "refs/heads/main",
    ];
    assert_eq!(refs.lines().collect::<Vec<_>>(), expected);
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot().never("unpushed");
    repo.arborist(["workspace", "push"]).succeeds().matches_snapshot();
}

#[test]
fn workspace_push_never_forces_and_a_rejected_ref_does_not_block_others() {
    let repo = TestRepo::init();
    backend(&repo, "");
    session(&repo);
    repo.arborist(["workspace", "push"]).succeeds();
    let (clone, work) = (repo.root().join("backend"), repo.root().join("backend work"));
    repo.git_in(&work, ["fetch", "-q"]).succeeds();
    repo.git_in(&work, ["checkout", "-q", "arborist/plan/s1"]).succeeds();
    repo.git_in(&work, ["commit", "-q", "--allow-empty", "-m", "theirs"]).succeeds();
    repo.git_in(&work, ["push", "-q"]).succeeds();
    repo.git_in(&clone, ["commit", "-q", "--allow-empty", "-m", "ours"]).succeeds();
    repo.git_in(&clone, ["branch", "arborist/task/arborist%2Fplan%2Fs1/T2", "HEAD~1"]).succeeds();
    let refused = repo.arborist(["workspace", "push"]).exits(1).matches_snapshot();
    assert!(refused.stdout().contains("/T2"));
    let bare = repo.root().join("backend.git");
    assert_eq!(repo.git_in(&bare, ["log", "-1", "--format=%s", "arborist/plan/s1"]).answer(), "theirs");
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot();
}

#[test]
fn sync_fetches_sessions_that_others_pushed() {
    let repo = TestRepo::init();
    backend(&repo, "");
    session(&repo);
    repo.arborist(["workspace", "push"]).succeeds();
    let clone = repo.root().join("backend");
    let tip = repo.git_in(&clone, ["rev-parse", "arborist/plan/s1"]).answer();
    fs::remove_dir_all(&clone).unwrap();
    repo.arborist(["workspace", "sync"]).succeeds().matches_snapshot();
    assert_eq!(repo.git_in(&clone, ["rev-parse", "arborist/plan/s1"]).answer(), tip);
    assert_eq!(repo.git_in(&clone, ["symbolic-ref", "--short", "HEAD"]).answer(), "main");
    let other = ["rev-parse", "-q", "--verify", "refs/heads/arborist/plan/other"];
    repo.git_in(&clone, other).exits(1);
}

#[test]
fn foreach_runs_a_command_in_each_repository() {
    let repo = TestRepo::init();
    backend(&repo, "");
    repo.arborist(["workspace", "foreach", "pwd"]).exits(1).matches_snapshot();
    repo.arborist(["workspace", "sync"]).succeeds();
    let said = repo.arborist(["workspace", "foreach", "echo $ARBORIST_REPO; git rev-parse --show-toplevel"]);
    let said = said.succeeds().matches_snapshot();
    assert!(said.stdout().contains("/backend\n") && said.stdout().contains("/repo\n"));
    repo.arborist(["workspace", "foreach", "--repo", "backend", "git", "log", "-1"])
        .succeeds()
        .matches_snapshot();
    repo.arborist(["workspace", "foreach", "exit 7"]).exits(7).matches_snapshot().never("in backend");
    repo.arborist(["workspace", "foreach", "--keep-going", "exit 7"]).exits(7).matches_snapshot();
    repo.arborist(["workspace", "status", "--repo", "nobody"]).exits(1).matches_snapshot();
}
