//! Installing hooks beside those of others, and taking them away again.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo};

const FORGED: &str = "done\n\nArborist-Step: complete\n";

/// Every file below `dir` with its permissions and bytes, links as links; git's note of the last message aside.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
        if meta.is_dir() {
            files.extend(snapshot(&path));
        } else if !path.ends_with("COMMIT_EDITMSG") {
            let link = fs::read_link(&path).map(|target| target.to_string_lossy().into_owned().into_bytes());
            let bytes = link.unwrap_or_else(|_| fs::read(&path).unwrap());
            files.insert(path, (meta.permissions().mode(), bytes));
        }
    }
    files
}

/// Installs, lets `check` look, uninstalls, and expects every byte to be as before.
fn expect_clean_install_and_uninstall(repo: &TestRepo, check: impl Fn()) {
    let before = snapshot(&repo.path(""));
    repo.arborist(["hooks", "install", "--dry-run"]).succeeds().out("would ");
    assert_eq!(snapshot(&repo.path("")), before);
    repo.arborist(["hooks", "install"]).succeeds();
    let installed = snapshot(&repo.path(""));
    repo.arborist(["hooks", "install"])
        .succeeds()
        .out("commit-msg: nothing to do")
        .out("pre-push: nothing to do");
    repo.arborist(["hooks", "test"]).succeeds().out("commit-msg: git runs it").out("pre-push: git runs it");
    assert_eq!(snapshot(&repo.path("")), installed);
    check();
    repo.arborist(["hooks", "uninstall", "-n"]).succeeds().out("would ");
    assert_eq!(snapshot(&repo.path("")), installed);
    repo.arborist(["hooks", "uninstall"]).succeeds();
    assert_eq!(snapshot(&repo.path("")), before);
    repo.arborist(["hooks", "test"])
        .exits(1)
        .out("commit-msg: git does not run it")
        .out("pre-push: git does not run it");
}

fn commit(repo: &TestRepo, message: &str) -> Run {
    repo.git(["commit", "--allow-empty", "-qm", message])
}

#[test]
fn install_writes_scripts_to_an_empty_or_missing_hooks_folder() {
    expect_clean_install_and_uninstall(&TestRepo::init(), || {});
    let repo = TestRepo::init();
    fs::remove_dir_all(repo.path(".git/hooks")).unwrap();
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds();
    commit(&repo, FORGED).exits(1);
    assert!(!repo.path(".git/hooks/pre-push").exists());
}

#[test]
fn an_existing_hook_is_called_first_and_can_refuse() {
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\necho \"mine: $1\" >&2\n! grep -q WIP \"$1\"\n");
    repo.write_script(".git/hooks/pre-push", "#!/bin/sh\nexit 0\n");
    let odd = fs::Permissions::from_mode(0o751);
    fs::set_permissions(repo.path(".git/hooks/commit-msg"), odd).unwrap();
    expect_clean_install_and_uninstall(&repo, || {
        commit(&repo, FORGED).exits(1).err("mine: .git/COMMIT_EDITMSG").err("is not valid");
        commit(&repo, "WIP\n\nArborist-Step: x").exits(1).err("mine: ").never("is not valid");
        repo.arborist(["hooks", "status"]).succeeds().out("commit-msg.pre-arborist' first");
    });
}

#[test]
fn an_existing_hook_that_is_not_executable_is_still_not_run() {
    let repo = TestRepo::init();
    repo.write(".git/hooks/commit-msg", "#!/bin/sh\nexit 1\n");
    expect_clean_install_and_uninstall(&repo, || {});
}

#[test]
fn an_existing_hook_that_is_a_symlink_is_called_and_restored() {
    let repo = TestRepo::init();
    repo.write_script("scripts/check", "#!/bin/sh\necho linked >&2\n");
    symlink("../../scripts/check", repo.path(".git/hooks/commit-msg")).unwrap();
    expect_clean_install_and_uninstall(&repo, || {
        commit(&repo, FORGED).exits(1).err("linked").err("is not valid");
    });
}

#[test]
fn an_existing_pre_push_hook_reads_the_same_lines_as_ours() {
    let repo = TestRepo::init();
    repo.git(["init", "-q", "--bare", "../remote"]).succeeds();
    repo.write_script(
        ".git/hooks/pre-push",
        "#!/bin/sh\nwhile read -r a b c d; do echo \"mine: $a $c\" >&2; done\n",
    );
    repo.arborist(["hooks", "install", "pre-push"]).succeeds();
    repo.git(["push", "-q", "../remote", "main"]).succeeds().err("mine: refs/heads/main refs/heads/main");
    repo.git(["push", "-q", "../remote", "main"]).succeeds().never("mine: ");
    repo.commit(FORGED);
    repo.git(["push", "-q", "../remote", "main", "main:x"]).exits(1).err("mine: ").err("is not valid");
}

#[test]
fn a_hooks_path_inside_the_repository_is_used_from_any_folder() {
    let repo = TestRepo::init();
    repo.git(["config", "core.hooksPath", ".githooks"]).succeeds();
    repo.write_script(".githooks/commit-msg", "#!/bin/sh\n");
    expect_clean_install_and_uninstall(&repo, || {
        assert!(repo.path(".githooks/commit-msg.pre-arborist").exists());
        assert!(repo.read(".githooks/commit-msg").contains("arborist=''\n"), "others may share this file");
        commit(&repo, FORGED).exits(1);
    });
    repo.write("a/b/c", "");
    assert!(!repo.path(".githooks/commit-msg.pre-arborist").exists());
    repo.arborist_in(&repo.path("a/b"), ["hooks", "install"]).succeeds();
    assert!(repo.read(".githooks/pre-push").contains("run pre-push"));
    repo.arborist_in(&repo.path("a/b"), ["hooks", "test"]).succeeds();
}

#[test]
fn a_hooks_path_outside_of_the_repository_is_never_written_to() {
    let repo = TestRepo::init();
    let shared = repo.root().join("common hooks");
    fs::create_dir(&shared).unwrap();
    repo.git(["config", "--global", "core.hooksPath", shared.to_str().unwrap()]).succeeds();
    repo.arborist(["hooks", "install"])
        .exits(2)
        .err("(core.hooksPath, global configuration), outside this repository")
        .err("hint: to create the commit-msg hook: printf")
        .err("'git-arborist-hooks run commit-msg \"$@\" || exit'");
    assert_eq!(snapshot(&shared).len(), 0);
    repo.arborist(["hooks", "status"])
        .succeeds()
        .out("git reads hooks from outside this repository, where nothing is installed");

    repo.write_script(
        "../common hooks/commit-msg",
        "#!/bin/sh\ngit-arborist-hooks run commit-msg \"$@\" || exit\n",
    );
    repo.arborist(["hooks", "test", "commit-msg"]).succeeds().out("commit-msg: git runs it");
    repo.arborist(["hooks", "status"]).succeeds().out("commit-msg   installed: ");
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds().out("nothing to do");
    repo.git(["config", "core.hooksPath", "/dev/null"]).succeeds();
    repo.arborist(["hooks", "install"]).exits(2).err("hooks are switched off here");
    repo.arborist(["hooks", "uninstall"]).succeeds();
}

#[test]
fn uninstall_restores_a_hook_that_core_hooks_path_shadows() {
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\n# mine\n");
    let before = snapshot(&repo.path(".git/hooks"));
    repo.arborist(["hooks", "install"]).succeeds();
    repo.git(["config", "core.hooksPath", ".githooks"]).succeeds();
    repo.arborist(["hooks", "test"]).exits(1).err("so this one does not run");
    repo.arborist(["hooks", "uninstall"]).succeeds();
    assert_eq!(snapshot(&repo.path(".git/hooks")), before);
}

#[test]
fn a_hooks_folder_that_is_a_link_out_of_the_repository_is_not_written_to() {
    let repo = TestRepo::init();
    fs::remove_dir_all(repo.path(".git/hooks")).unwrap();
    fs::create_dir(repo.root().join("mine")).unwrap();
    symlink(repo.root().join("mine"), repo.path(".git/hooks")).unwrap();
    repo.arborist(["hooks", "install"]).exits(2).err(", outside this repository; nothing was written there");
    assert_eq!(snapshot(&repo.root().join("mine")).len(), 0);
}

#[test]
fn an_edited_hook_is_neither_replaced_nor_removed() {
    let repo = TestRepo::init();
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds();
    let edited = format!("{}# and mine\n", repo.read(".git/hooks/commit-msg"));
    repo.write(".git/hooks/commit-msg", &edited);
    repo.arborist(["hooks", "uninstall"]).exits(2).err("commit-msg' was edited");
    repo.arborist(["hooks", "status"]).succeeds().out("commit-msg   edited");
    assert_eq!(repo.read(".git/hooks/commit-msg"), edited);
    repo.arborist(["hooks", "install"]).exits(2).err("was edited, so it is left as it is");
    assert!(!repo.path(".git/hooks/pre-push").exists());
}

#[test]
fn an_existing_backup_of_an_earlier_hook_is_not_overwritten() {
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\n# one\n");
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds();
    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\n# two\n");
    repo.arborist(["hooks", "install"]).exits(2).err("because that file exists already");
    repo.arborist(["hooks", "uninstall"]).exits(2).err("'; the earlier hook is still in '");
    assert!(repo.read(".git/hooks/commit-msg").contains("two"));
    assert!(repo.read(".git/hooks/commit-msg.pre-arborist").contains("one"));
    assert!(!repo.path(".git/hooks/pre-push").exists());
}

#[test]
fn an_existing_hook_survives_repeated_and_concurrent_installs() {
    let mine = "#!/bin/sh\n# mine\n";
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", mine);
    repo.arborist(["hooks", "install", "commit-msg", "commit-msg"]).succeeds();
    assert_eq!(repo.read(".git/hooks/commit-msg.pre-arborist"), mine);
    repo.arborist(["hooks", "uninstall", "commit-msg", "commit-msg"]).succeeds();
    assert_eq!(repo.read(".git/hooks/commit-msg"), mine);

    for _ in 0..5 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut install = repo.command("git", &repo.path(""));
                install.args(["arborist", "hooks", "install"]);
                scope.spawn(move || Run::of(&mut install, b"").code());
            }
        });
        assert_eq!(repo.read(".git/hooks/commit-msg.pre-arborist"), mine);
        repo.arborist(["hooks", "test"]).succeeds();
        repo.arborist(["hooks", "uninstall"]).succeeds();
        assert_eq!(repo.read(".git/hooks/commit-msg"), mine);
    }
}

#[test]
fn an_interrupted_install_or_uninstall_is_completed_by_the_next() {
    let mine = "#!/bin/sh\n# mine\n";
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", mine);
    fs::hard_link(repo.path(".git/hooks/commit-msg"), repo.path(".git/hooks/commit-msg.pre-arborist"))
        .unwrap();
    repo.arborist(["hooks", "install"]).succeeds();
    assert_eq!(repo.read(".git/hooks/commit-msg.pre-arborist"), mine);
    fs::remove_file(repo.path(".git/hooks/commit-msg")).unwrap();
    repo.arborist(["hooks", "uninstall"]).succeeds();
    assert_eq!(repo.read(".git/hooks/commit-msg"), mine);
}

#[test]
fn all_worktrees_share_the_hook_and_a_bare_repository_gets_pre_receive() {
    let repo = TestRepo::init();
    repo.git(["worktree", "add", "-q", "-b", "linked", "../linked tree"]).succeeds();
    let linked = repo.root().join("linked tree");
    repo.arborist_in(&linked, ["hooks", "install"]).succeeds();
    commit(&repo, FORGED).exits(1);
    repo.git_in(&linked, ["commit", "--allow-empty", "-qm", FORGED]).exits(1);
    repo.arborist_in(&linked, ["hooks", "test"]).succeeds();

    let bare = TestRepo::with_options(&["--bare"]);
    bare.arborist(["hooks", "install"]).succeeds().out("pre-receive: wrote");
    bare.arborist(["hooks", "test"]).succeeds().out("pre-receive: git runs it");
    assert!(!bare.path("hooks/commit-msg").exists());
    bare.arborist(["hooks", "uninstall"]).succeeds();
    assert!(!bare.path("hooks/pre-receive").exists());
}

/// The update hook as earlier versions installed it.
const OLD_UPDATE: &str = "#!/bin/sh
# Installed by 'git arborist hooks install'; 'git arborist hooks uninstall' takes it away again.
# The hook that stood here before, if any, goes first.
[ ! -x \"$0.pre-arborist\" ] || \"$0.pre-arborist\" \"$@\" || exit
arborist='/usr/bin/git-arborist-hooks'
[ -x \"$arborist\" ] || arborist=$(command -v git-arborist-hooks) || arborist=
[ -z \"$arborist\" ] || exec \"$arborist\" run update \"$@\"
case $1 in refs/heads/arborist/* | refs/arborist/*) ;; *) exit 0 ;; esac
echo \"error: '$1' is arborist's, and git-arborist-hooks is not there to check the push\" >&2
echo \"hint: install git-arborist on the server again\" >&2
exit 1
";

#[test]
fn the_update_hook_of_earlier_versions_is_replaced_by_pre_receive() {
    let mine = "#!/bin/sh\nexit 0\n";
    for kept in [None, Some(mine)] {
        let bare = TestRepo::with_options(&["--bare"]);
        let install = || {
            bare.write_script("hooks/update", OLD_UPDATE);
            kept.into_iter().for_each(|text| bare.write_script("hooks/update.pre-arborist", text));
        };
        install();
        bare.arborist(["hooks", "status"]).succeeds().out("update ");
        bare.arborist(["hooks", "install"]).succeeds().out("update: re");
        assert_eq!(fs::read_to_string(bare.path("hooks/update")).ok().as_deref(), kept);
        bare.arborist(["hooks", "test"]).succeeds().out("pre-receive: git runs it");
        bare.arborist(["hooks", "status"]).succeeds().never("update ");
        install();
        bare.arborist(["hooks", "uninstall"]).succeeds();
        assert_eq!(fs::read_to_string(bare.path("hooks/update")).ok().as_deref(), kept);
        assert!(!bare.path("hooks/pre-receive").exists());
    }
    TestRepo::init().arborist(["hooks", "install", "update"]).exits(129).err("hooks install pre-receive");
}
