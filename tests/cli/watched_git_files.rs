//! Everything in a git directory that can run a program or hide something: one list, and a canary for each entry.

use std::fs;

use arborist_testkit::{TestRepo, pairs};

/// What an agent plants, where it is to be gone, and in which kind of run. `$git` is the repository's git directory,
/// `$own` that of the worktree.
const CANARIES: [(&str, &str); 32] = [
    // Those that need a git that works come first.
    ("git clone -q --bare . \"$git/modules/new\"", ".git/modules/new"),
    ("git replace --graft HEAD", ".git/refs/replace"),
    ("mkdir \"$git/reftable\"; echo x > \"$git/reftable/tables.list\"", ".git/reftable"),
    ("git config alias.x '!touch /tmp/x'", ".git/config"),
    ("echo '[core]' >> \"$git/config.worktree\"", ".git/config.worktree"),
    ("echo '#' > \"$git/hooks/pre-commit\"", ".git/hooks/pre-commit"),
    ("ln -s /nowhere \"$git/hooks/post-commit\"", ".git/hooks/post-commit"),
    ("mkfifo \"$git/hooks/pre-push\"", ".git/hooks/pre-push"),
    ("mkdir \"$git/hooks/sub\"; echo '#' > \"$git/hooks/sub/x\"", ".git/hooks/sub/x"),
    ("rm -rf \"$git/hooks\"; ln -s /tmp \"$git/hooks\"", ".git/hooks"),
    ("chmod -x \"$git/hooks/commit-msg\"", ".git/hooks/commit-msg"),
    ("echo secret.txt >> \"$git/info/exclude\"", ".git/info/exclude"),
    ("rm -rf \"$git/info\"; ln -s /tmp \"$git/info\"", ".git/info"),
    ("echo '* -diff' > \"$git/info/attributes\"", ".git/info/attributes"),
    ("echo '/*' > \"$git/info/sparse-checkout\"", ".git/info/sparse-checkout"),
    ("echo 843264d67ca30cb6c0a9c9a6d46bd1f09938b5e9 > \"$git/info/grafts\"", ".git/info/grafts"),
    ("echo /tmp > \"$git/objects/info/alternates\"", ".git/objects/info/alternates"),
    ("echo http://x > \"$git/objects/info/http-alternates\"", ".git/objects/info/http-alternates"),
    ("echo 843264d67ca30cb6c0a9c9a6d46bd1f09938b5e9 > \"$git/shallow\"", ".git/shallow"),
    ("echo ../elsewhere > \"$git/commondir\"", ".git/commondir"),
    ("echo /tmp/x/.git > \"$git/gitdir\"", ".git/gitdir"),
    ("printf '[core]\\n\\tfsmonitor = x\\n' > \"$ROOT/repo/included\"", "included"),
    ("echo '#' > \"$ROOT/repo/.hooks/pre-push\"", ".hooks/pre-push"),
    ("mkdir -p \"$git/remotes\"; echo URL: /tmp/x > \"$git/remotes/origin\"", ".git/remotes/origin"),
    ("mkdir -p \"$git/branches\"; echo /tmp/x > \"$git/branches/origin\"", ".git/branches/origin"),
    ("mkdir -p \"$git/rr-cache/0a\"; echo x > \"$git/rr-cache/0a/postimage\"", ".git/rr-cache"),
    ("printf '[core]\\n\\tfsmonitor = x\\n' > \"$git/local.cfg\"", ".git/local.cfg"),
    ("git rev-parse HEAD > \"$git/main\"", ".git/main"),
    ("echo '[x]' >> \"$git/modules/sub/config\"", ".git/modules/sub/config"),
    ("echo '[x]' >> \"$git/modules/a/b/c/d/e/f/g/config\"", ".git/modules/a/b/c/d/e/f/g/config"),
    ("echo '[x]' >> \"$git/worktrees/mine/modules/sub/config\"", ".git/worktrees/mine/modules/sub/config"),
    ("echo '#' > \"$git/modules/sub/hooks/post-checkout\"", ".git/modules/sub/hooks/post-checkout"),
];

/// A repository in which everything that is watched is there, and an agent that plants one canary.
fn test_repo(deed: &str) -> TestRepo {
    let agent = format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo work >> work.txt
[ -e \"$ROOT/once\" ] && exit
touch \"$ROOT/once\"
git=$(git rev-parse --path-format=absolute --git-common-dir)
{deed}
true"
    );
    let test_repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", &agent);
    let repo = test_repo.path("").display().to_string();
    test_repo.write("included", "[user]\n\tnickname = a\n");
    test_repo.write_script(".hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    test_repo.commit("hooks and settings\n");
    test_repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\nexit 0\n");
    let mine = test_repo.root().join("mine");
    test_repo.git(["worktree", "add", "-q", mine.to_str().unwrap()]).succeeds();
    for module in ["modules/sub", "modules/a/b/c/d/e/f/g", "worktrees/mine/modules/sub"] {
        test_repo.git(["clone", "-q", "--bare", ".", &format!(".git/{module}")]).succeeds();
    }
    test_repo.git(["config", "include.path", &format!("{repo}included")]).succeeds();
    test_repo.git(["config", "--add", "include.path", "local.cfg"]).succeeds();
    test_repo.git(["config", "core.hooksPath", &format!("{repo}.hooks")]).succeeds();
    test_repo
}

/// What is at a path: its kind and its content.
fn describe_path(test_repo: &TestRepo, path: &str) -> String {
    let path = test_repo.path(path);
    let Ok(found) = path.symlink_metadata() else { return "nothing".into() };
    if found.is_dir() {
        let count = fs::read_dir(&path).map_or(0, Iterator::count);
        // An empty folder is as good as none.
        return if count == 0 { "nothing".into() } else { format!("a folder of {count}") };
    }
    format!("{:?} {:?}", found.permissions(), fs::read(&path).unwrap_or_default())
}

/// Canaries that do not get in each other's way are planted together: a run for each would take minutes.
fn canary_groups() -> [Vec<(&'static str, &'static str)>; 3] {
    let is_folder = |path: &str| [".git/hooks", ".git/info"].contains(&path);
    let is_checkout = |path: &str| !path.starts_with(".git/");
    let chosen =
        |wanted: &dyn Fn(&str) -> bool| CANARIES.into_iter().filter(|(_, path)| wanted(path)).collect();
    [
        chosen(&|path| !is_folder(path) && !is_checkout(path)),
        chosen(&|path| is_folder(path)),
        chosen(&|path| is_checkout(path)),
    ]
}

fn check(test_repo: &TestRepo, canaries: &[(&str, &str)], before: &[String]) {
    let body = test_repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    for ((deed, path), before) in canaries.iter().zip(before) {
        let name = path.rsplit('/').next().unwrap();
        assert!(body.contains(name), "{deed} is not named in: {body}");
        if *path == ".git/info/exclude" {
            // Lines of our own may have come to it meanwhile.
            let text = test_repo.read(path);
            assert!(!text.contains("secret.txt") && text.contains("git ls-files"), "{deed}: {text}");
        } else {
            assert_eq!(describe_path(test_repo, path), *before, "{deed}");
        }
    }
}

#[test]
fn every_changed_file_of_the_git_directory_is_restored_and_fails_the_step() {
    for canaries in canary_groups() {
        for args in [&["gardener"][..], &["gardener", "--isolate"]] {
            let deeds: Vec<&str> = canaries.iter().map(|(deed, _)| *deed).collect();
            let test_repo = test_repo(&deeds.join("\n"));
            let before: Vec<String> =
                canaries.iter().map(|(_, path)| describe_path(&test_repo, path)).collect();
            let run = test_repo.arborist(args.iter().chain(&["--max-retries", "2"]));
            // What lies in the user's own checkout is not written while agents work elsewhere.
            if args.len() > 1 && !canaries[0].1.starts_with(".git/") {
                assert_ne!(run.code(), 0, "{}", run.report());
                continue;
            }
            run.succeeds();
            check(&test_repo, &canaries, &before);
            let log = test_repo.git(["log", "--format=%s"]).answer();
            assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{log}");
        }
    }
}

#[test]
fn changed_configuration_outside_the_repository_is_reported_and_not_restored() {
    let test_repo = test_repo("git config --global alias.x '!touch /tmp/x'");
    test_repo.git(["config", "--global", "user.nickname", "a"]).succeeds();
    let run = test_repo.arborist(["gardener", "--max-retries", "1"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert!(run.stderr().contains("outside the repository"), "{}", run.report());
    let global = fs::read_to_string(test_repo.home().join(".gitconfig")).unwrap();
    assert!(global.contains("touch"), "what is the user's is not written: {global}");
}

#[test]
fn files_that_our_commands_write_while_agents_run_fail_no_attempt() {
    let test_repo =
        test_repo("git arborist worktree list > /dev/null; echo '/spec/logs/' >> \"$git/info/exclude\"");
    test_repo.arborist(["gardener", "--isolate"]).succeeds().never("while an agent or a command ran");
}

/// Where git itself writes or reads: each becomes a link to a file of the user's. `$own` is the git directory
/// of the agent's worktree.
const PLACES: [&str; 17] = [
    "$git/logs/HEAD",
    "$own/logs/HEAD",
    "$git/logs/refs/heads/main",
    "$git/logs/refs/heads/new/deep",
    "$git/refs/heads/planted",
    "$git/refs/stash",
    "$own/ORIG_HEAD",
    "$git/FETCH_HEAD",
    "$own/CHERRY_PICK_HEAD",
    "$own/BISECT_LOG",
    "$git/objects/zz",
    "$git/objects/info/packs",
    "$git/objects/pack/pack-1.idx",
    "$git/objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904",
    "$git/worktrees/planted/gitdir",
    "$git/worktrees/planted/HEAD",
    "$own/index",
];

/// What is neither a file nor a folder below a folder.
fn special_files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut odd = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            odd.extend(special_files_below(&entry.path()));
        } else if !kind.is_file() {
            odd.push(entry.path());
        }
    }
    odd
}

#[test]
fn links_and_named_pipes_planted_in_the_git_directory_are_removed_before_git_runs() {
    let plants = ["ln -s \"$ROOT/precious\"", "mkfifo"];
    for (plant, args) in pairs(&plants, &[&["gardener"][..], &["gardener", "--isolate"]]) {
        let deeds = PLACES
            .map(|path| format!("mkdir -p \"$(dirname \"{path}\")\"; rm -rf \"{path}\"; {plant} \"{path}\""));
        // No git of the agent's own runs any more, not even the one of the kit at its end: it would wait at a queue.
        let deeds =
            format!("own=$(git rev-parse --absolute-git-dir)\n{}\ntrap - EXIT; exit", deeds.join("\n"));
        let test_repo = test_repo(&deeds);
        let precious = test_repo.home().parent().unwrap().join("precious");
        fs::write(&precious, "precious\n").unwrap();
        // A link of the user's own stays.
        std::os::unix::fs::symlink(&precious, test_repo.path(".git/users-own")).unwrap();
        test_repo.arborist(args.iter().chain(&["--max-retries", "2"])).succeeds();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious\n", "{plant} {args:?}");
        let odd: Vec<_> = special_files_below(&test_repo.path(".git"));
        assert_eq!(odd, [test_repo.path(".git/users-own")], "{plant} {args:?}");
        let body = test_repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        for place in PLACES {
            let name = place.rsplit('/').next().unwrap();
            assert!(body.contains(name), "{place} is not named in: {body}");
        }
        let log = test_repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{log}");
    }
}

#[test]
fn caches_that_were_written_while_an_agent_ran_are_removed_and_no_attempt_fails() {
    let test_repo =
        test_repo("git commit-graph write --reachable; git repack -adq; git multi-pack-index write");
    test_repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
    for name in ["info/commit-graph", "pack/multi-pack-index"] {
        assert!(!test_repo.path(&format!(".git/objects/{name}")).exists(), "{name}");
    }
}

#[test]
fn a_hook_folder_with_too_many_files_is_moved_away_and_restored() {
    let deed = "i=0; while [ $i -lt 1100 ]; do : > \"$git/hooks/a$i\"; i=$((i+1)); done
printf '#!/bin/sh\\ntouch \"%s/ran\"\\n' \"$ROOT\" > \"$git/hooks/post-commit\"; chmod +x \"$git/hooks/post-commit\"
echo '#' > \"$git/hooks/commit-msg\"";
    for args in [&["gardener"][..], &["gardener", "--isolate"]] {
        let test_repo = test_repo(deed);
        let list = |test_repo: &TestRepo| fs::read_dir(test_repo.path(".git/hooks")).unwrap().count();
        let (count, hook) = (list(&test_repo), describe_path(&test_repo, ".git/hooks/commit-msg"));
        test_repo.arborist(args.iter().chain(&["--max-retries", "2"])).succeeds();
        assert_eq!((list(&test_repo), describe_path(&test_repo, ".git/hooks/commit-msg")), (count, hook));
        let body = test_repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("hooks"), "{body}");
        assert!(!test_repo.home().parent().unwrap().join("ran").exists());
    }
}

#[test]
fn a_worktree_that_becomes_a_link_is_never_written_through() {
    for deed in [
        // The lane itself, and the folder that it is in.
        "lane=$(pwd); cp .git \"$ROOT/victim/.git\"; cd /; mv \"$lane\" \"$ROOT/gone\"; ln -s \"$ROOT/victim\" \"$lane\"",
        "lane=$(pwd); base=$(dirname \"$lane\"); name=$(basename \"$lane\"); mkdir \"$ROOT/victim/$name\"; cp .git \"$ROOT/victim/$name\"
cd /; mv \"$base\" \"$ROOT/gone\"; ln -s \"$ROOT/victim\" \"$base\"",
    ] {
        let test_repo = test_repo(&format!("trap - EXIT; {deed}"));
        let victim = test_repo.root().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("tasks.md"), "precious\n").unwrap();
        let run = test_repo.arborist(["gardener", "--isolate", "--max-retries", "1"]);
        assert_ne!(run.code(), 0, "{}", run.report());
        let mut left: Vec<String> = Vec::new();
        let mut open = vec![victim.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => left.push(entry.file_name().into_string().unwrap()),
                }
            }
        }
        left.sort();
        assert_eq!(left, [".git", "tasks.md"], "{deed}");
        assert_eq!(fs::read_to_string(victim.join("tasks.md")).unwrap(), "precious\n");
    }
}

#[test]
fn hooks_in_the_users_checkout_are_restored_although_agents_work_in_worktrees() {
    for mode in [["--jobs", "2"].as_slice(), &["--session-branch"]] {
        let deed = "echo '#' > \"$ROOT/repo/.husky/_/post-checkout\"";
        let test_repo = test_repo(deed);
        test_repo.write(".husky/_/.gitignore", "*\n");
        test_repo.write_script(".husky/_/pre-push", "#!/bin/sh\n");
        test_repo.git(["config", "core.hooksPath", ".husky/_"]).succeeds();
        let _ = test_repo.arborist(["gardener", "--test-command", "true"].iter().chain(mode));
        assert!(test_repo.root().join("once").exists());
        assert_eq!(describe_path(&test_repo, ".husky/_/post-checkout"), "nothing", "{mode:?}");
        assert_ne!(describe_path(&test_repo, ".husky/_/pre-push"), "nothing");
        let log = test_repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(log.contains("post-checkout"), "{mode:?}: {log}");
    }
}

#[test]
fn nothing_is_written_through_a_hard_link_that_replaces_a_reflog() {
    let deed = "for log in HEAD refs/heads/main; do ln -f \"$ROOT/victim\" \"$git/logs/$log\"; done";
    let test_repo = test_repo(deed);
    let victim = test_repo.root().join("victim");
    fs::write(&victim, "precious\n").unwrap();
    test_repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious\n");
    let body = test_repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains("logs/HEAD became a hard link"), "{body}");
}

#[test]
fn reflogs_that_a_copy_of_the_repository_shares_are_separated() {
    let test_repo = test_repo("");
    let log = test_repo.path(".git/logs/HEAD");
    let copy = test_repo.root().join("copy");
    fs::hard_link(&log, &copy).unwrap();
    let before = fs::read_to_string(&copy).unwrap();
    test_repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert_eq!(fs::read_to_string(&copy).unwrap(), before);
    assert!(fs::read_to_string(&log).unwrap().starts_with(&before));
}

#[test]
fn an_agent_that_resolves_conflicts_leaves_no_recorded_resolution() {
    let deed = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git checkout -q -b side; echo one > c.txt; git add c.txt; git commit -qm one
git checkout -q main; git checkout -q -b other; echo two > c.txt; git add c.txt; git commit -qm two
git merge -q side > /dev/null; git merge --abort; git checkout -q main; git branch -D side other";
    let test_repo = test_repo(deed);
    test_repo.git(["config", "rerere.enabled", "true"]).succeeds();
    test_repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert_eq!(describe_path(&test_repo, ".git/rr-cache"), "nothing");
    assert_eq!(test_repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer(), "");
}

#[test]
fn programs_in_the_git_directory_are_restored() {
    for mode in [&[][..], &["--isolate"]] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 one\n");
        repo.commit("a plan\n");
        for path in [".git/named/pager", ".git/bin/check"] {
            repo.write(path, "#!/bin/sh\n");
        }
        repo.write_script(".git/bin/check", "#!/bin/sh\n");
        repo.git(["config", "core.pager", ".git/named/pager -x"]).succeeds();
        let git_dir = repo.path(".git").display().to_string();
        repo.agent(&format!(
            "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > $ARBORIST_TASK.txt\n\
             [ -e \"$ROOT/once\" ] && exit\ntouch \"$ROOT/once\"\n\
             for path in named/pager bin/check; do echo evil >> '{git_dir}'/$path; done"
        ));
        let run = repo.arborist([&["gardener"], mode].concat()).succeeds();
        run.err("named/pager was changed while an agent or a command ran")
            .err("bin/check was changed while an agent or a command ran");
        for path in [".git/named/pager", ".git/bin/check"] {
            assert!(!repo.read(path).contains("evil"), "{path}");
        }
    }
}

#[test]
fn an_exclude_line_that_could_hide_more_than_a_worktree_is_removed() {
    for (folder, line) in [("*", "/*/"), ("plain", "/plain/")] {
        let link = "mkdir -p \"$git/worktrees/w\"; echo \"gitdir: $git/worktrees/w\" >";
        let deed =
            format!("mkdir '{folder}'; {link} '{folder}/.git'; echo '{line}' >> \"$git/info/exclude\"");
        let repo = test_repo(&deed);
        repo.arborist(["gardener", "--max-retries", "2"])
            .succeeds()
            .err("info/exclude was changed while an agent or a command ran");
        assert!(!repo.read(".git/info/exclude").lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn new_files_in_the_users_git_configuration_folder_are_reported() {
    for name in [".config/git/config", ".config/git/ignore", ".config/git/attributes"] {
        let repo = test_repo(&format!("mkdir -p ~/.config/git; echo '#' > ~/{name}"));
        let path = repo.home().join(name);
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1).err(&format!(
            "{} was added while an agent or a command ran, and is not restored: it is outside the repository",
            path.display()
        ));
    }
}

#[test]
fn the_next_run_reports_hooks_and_settings_changed_before_the_driver_was_killed() {
    let plant = "echo '#' > \"$git/hooks/post-checkout\"; git config alias.x y";
    let repo = test_repo(&format!("{plant}; kill -9 $PPID; sleep 60"));
    let killed = repo.arborist(["gardener"]).code();
    assert_ne!(killed, 0);
    let folder = repo.path(".git").display().to_string();
    repo.arborist(["gardener"])
        .succeeds()
        .err(&format!(
            "warning: an earlier run was killed, and files that can change what git does were changed since: {folder}/config, \
             {folder}/hooks/post-checkout\n"
        ))
        .err("hint: an agent may have written them, so look at them before you call git: less ");
    assert!(repo.path(".git/hooks/post-checkout").exists(), "it may be the user's");
    repo.write("tasks.md", "- [ ] T001 do it\n- [ ] T002 more\n");
    repo.arborist(["gardener", "--accept-changes"]).succeeds().never("an earlier run was killed");
}

#[test]
fn a_killed_run_that_changed_no_setting_is_not_reported() {
    let repo = test_repo("kill -9 $PPID; sleep 60");
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
    repo.arborist(["gardener"]).succeeds().never("files that can change what git does were");
}

#[test]
fn files_that_git_settings_refer_to_are_watched() {
    let user = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap().trim().to_owned();
    let deeds = [
        ("core.excludesFile", ".local".to_owned(), "echo '*.py' >> .local"),
        ("core.attributesFile", ".local".to_owned(), "echo '* -diff' >> .local"),
        ("core.excludesFile", ".missing".to_owned(), "echo '*.py' > .missing"),
        (
            "include.path",
            format!("~{user}/../../../../../../../..$ROOT/repo/.missing"),
            "echo '[x]' > .missing",
        ),
    ];
    for ((key, value, deed), place) in pairs(&deeds, &[None, Some("--session-branch")]) {
        let repo = test_repo(deed);
        repo.write(".git/info/exclude", ".local\n.missing\n");
        repo.write(".local", "*.tmp text\n");
        let value = value.replace("$ROOT", repo.root().to_str().unwrap());
        repo.git(["config", "--add", key, &value]).succeeds();
        repo.arborist(["gardener", "--max-retries", "2"].into_iter().chain(place)).succeeds();
        if place.is_some() && key == "include.path" {
            // The worktree of the session has no such file.
            continue;
        }
        let body = repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        let named = if deed.contains(".missing") { ".missing" } else { ".local" };
        assert!(body.contains(named), "{place:?}: {deed}: {body}");
        assert_eq!((repo.read(".local").as_str(), repo.path(".missing").exists()), ("*.tmp text\n", false));
    }
}
