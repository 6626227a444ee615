//! Other repositories inside the user's checkout, such as an ignored clone: what git would run there is guarded, and builds
//! and tests can make and remove them.

use std::{fs, path::PathBuf};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{TestRepo, pairs};

/// A checkout with an ignored clone, and an agent that does this once.
fn repo(deed: &str) -> TestRepo {
    let agent = format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo work >> work.txt
[ -e spec/once ] && exit
mkdir -p spec; touch spec/once
{{
{deed}
}} >&2
true"
    );
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", &agent);
    repo.write(".gitignore", "/vendor/\n/spec/\n");
    repo.write("src/a.txt", "a\n");
    repo.commit("ignore vendor\n");
    repo.git(["clone", "-q", ".", "vendor/deep/lib"]).succeeds();
    repo
}

/// The modes that work here.
fn modes() -> Vec<&'static str> {
    let all = [("landlock", ConfinementBackend::Landlock), ("bwrap", ConfinementBackend::Bwrap)];
    let working = all.into_iter().filter(|(_, backend)| backend.works()).map(|(mode, _)| mode);
    working.chain(["off"]).collect()
}

/// What an agent plants in the clone, and the words that name it.
const PLANTS: [(&str, &str); 4] = [
    ("git -C vendor/deep/lib config core.fsmonitor 'touch \"$HOME/planted\"; false'", "config was changed"),
    ("git -C vendor/deep/lib config include.path ../planted", "config was changed"),
    ("git -C vendor/deep/lib config core.hooksPath ..", "config was changed"),
    (
        "cd vendor/deep/lib/.git/hooks; echo 'touch \"$HOME/planted\"' > post-checkout; chmod +x post-checkout",
        "the hook post-checkout was added",
    ),
];

#[test]
fn settings_and_hooks_planted_in_a_clone_inside_the_checkout_are_undone() {
    for ((deed, words), mode) in pairs(&PLANTS, &modes()) {
        let repo = repo(deed);
        let before = repo.read("vendor/deep/lib/.git/config");
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains(words), "{mode}: {deed}: {body}");
        assert_eq!(repo.read("vendor/deep/lib/.git/config"), before, "{mode}: {deed}");
        repo.git(["-C", "vendor/deep/lib", "checkout", "-q", "-b", "mine"]).succeeds();
        assert!(!repo.home().join("planted").exists(), "{mode}: {deed}");
    }
}

#[test]
fn the_git_directory_of_a_clone_inside_the_checkout_cannot_be_replaced() {
    let repo =
        repo("mv vendor/deep/lib/.git vendor/other; echo 'gitdir: ../../other' > vendor/deep/lib/.git");
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains("vendor/deep/lib/.git was changed"), "{body}");
    assert!(!repo.path("vendor/deep/lib/.git").is_file());
}

#[test]
fn creating_or_removing_ordinary_inner_repositories_fails_no_attempt() {
    let deeds = [
        "git init -q vendor/new; git -C vendor/new config core.fsmonitor true",
        "rm -rf vendor",
        "rm -rf vendor; git init -q vendor/deep/lib; git -C vendor/deep/lib remote add origin /elsewhere",
        "git -C vendor/deep/lib checkout -q -b mine; git -C vendor/deep/lib config user.name Me",
    ];
    for (deed, mode) in pairs(&deeds, &modes()) {
        let repo = repo(deed);
        repo.arborist(["gardener", "--sandbox", mode]).succeeds();
        let failed = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert_eq!(failed, "", "{mode}: {deed}");
    }
}

#[test]
fn a_clone_in_a_large_checkout_is_guarded_too() {
    let repo = repo(PLANTS[0].0);
    // More names than one scan of the worktree reads.
    for n in 0..25_000 {
        repo.write(&format!("spec/many/{}/{n}", n / 1000), "");
    }
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains(PLANTS[0].1), "{body}");
}

/// Everything with this name below the folder of the repository and its worktrees.
fn find_all(repo: &TestRepo, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![repo.path(""), repo.root().join("repo.arborist")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => open.push(entry.path()),
                _ => {}
            }
        }
        found.extend(Some(folder.join(name)).filter(|path| path.symlink_metadata().is_ok()));
    }
    found
}

#[test]
fn a_repository_that_is_planted_in_a_folder_with_tracked_files_is_moved_away() {
    let deeds = [
        "git init -q src; git -C src config core.fsmonitor 'touch \"$HOME/planted\"; false'",
        "mkdir -p src/.git; echo 'echo hidden' > src/.git/lib.sh",
        "ln -s /nowhere src/.git",
    ];
    for (deed, place) in pairs(&deeds, &[None, Some("--isolate"), Some("--session-branch")]) {
        let repo = repo(deed);
        let options = ["gardener", "--max-retries", "2"].into_iter().chain(place);
        repo.arborist(options).succeeds();
        let body = repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        let words = "made a repository in a folder of the checkout: src/.git";
        assert!(body.contains(words), "{place:?}: {deed}: {body}");
        assert_eq!(find_all(&repo, "src/.git"), Vec::<PathBuf>::new(), "{place:?}: {deed}");
    }
}

#[test]
fn a_clone_that_is_replaced_by_a_link_to_a_copy_with_other_settings_is_restored() {
    let copy = "cp -r vendor/deep/lib spec/copy; git -C spec/copy config core.fsmonitor 'touch \"$HOME/planted\"; false'";
    for link in [
        "mv vendor/deep/lib vendor/old; ln -s ../../spec/copy vendor/deep/lib",
        "mkdir spec/deep; mv spec/copy spec/deep/lib; mv vendor/deep vendor/old; ln -s ../spec/deep vendor/deep",
    ] {
        let repo = repo(&format!("{copy}; {link}"));
        repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("vendor/deep"), "{link}: {body}");
        drop(repo.git(["-C", "vendor/deep/lib", "status"]));
        assert!(!repo.home().join("planted").exists(), "{link}");
    }
}

#[test]
fn a_repository_whose_hooks_are_behind_a_link_is_moved_out_of_an_ignored_folder() {
    let deed = "mkdir spec/hooks; echo 'touch \"$HOME/planted\"' > spec/hooks/post-checkout; chmod +x spec/hooks/post-checkout
git init -q vendor; rm -r vendor/.git/hooks; ln -s ../../spec/hooks vendor/.git/hooks";
    let repo = repo(deed);
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains("made a repository in a folder of the checkout: vendor/.git"), "{body}");
}

#[test]
fn an_invalid_git_file_or_folder_fails_the_attempt_that_made_it() {
    for deed in ["mkdir a; echo garbage > a/.git; echo x > a/f", "mkdir -p a/.git; echo x > a/f"] {
        let repo = repo(deed);
        repo.arborist(["gardener", "--max-retries", "2"]).succeeds().never("the reviewer");
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("made a repository in a folder of the checkout: a/.git"), "{deed}: {body}");
        assert_eq!(repo.git(["show", "HEAD:a/f"]).answer(), "x", "{deed}");
    }
}

#[test]
fn a_repository_that_replaces_a_tracked_file_is_moved_away() {
    let repo = repo("rm src/a.txt; git init -q src/a.txt; echo x > src/a.txt/x");
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains("made a repository inside the repository: src/a.txt"), "{body}");
    assert_eq!(repo.read("src/a.txt"), "a\n");
}

#[test]
fn agents_may_create_repositories_in_ignored_folders() {
    let repo = repo("mkdir -p vendor/new && git init -q vendor/new");
    repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
    assert!(repo.path("vendor/new/.git").exists());
}

/// Makes the folder `$1` look like a bare repository that runs something.
const BARE: &str = "bare() {
mkdir -p \"$1\"/objects \"$1\"/refs; touch \"$1\"/objects/.keep \"$1\"/refs/.keep; echo 'ref: refs/heads/main' > \"$1\"/HEAD
printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"touch ~/planted; false\"\\n' > \"$1\"/config
}
";

#[test]
fn a_planted_bare_repository_fails_the_attempt_and_is_made_harmless() {
    let deeds = [
        ("bare vendor", "vendor"),
        ("bare src", "src"),
        ("bare new", "new"),
        ("bare away; bare src; rm -r src/objects src/refs; echo ../away > src/commondir", "src"),
    ];
    for ((deed, folder), place) in pairs(&deeds, &[None, Some("--isolate"), Some("--session-branch")]) {
        if folder == "vendor" && place.is_some() {
            continue;
        }
        let repo = repo(&format!("{BARE}{deed}"));
        let options = ["gardener", "--max-retries", "2"].into_iter().chain(place);
        repo.arborist(options).succeeds();
        let body = repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        let words = "made a repository in a folder of the checkout: ";
        assert!(
            body.contains(words) && body.contains(&format!("{folder}/HEAD")),
            "{place:?}: {deed}: {body}"
        );
        assert_eq!(find_all(&repo, &format!("{folder}/HEAD")), Vec::<PathBuf>::new(), "{place:?}: {deed}");
        if repo.path(folder).exists() {
            repo.git_in(&repo.path(folder), ["status", "--short"]).succeeds();
        }
        assert!(!repo.home().join("planted").exists(), "{place:?}: {deed}");
    }
}

#[test]
fn a_new_folder_that_looks_like_a_bare_repository_is_found_among_very_many_names() {
    // More names than one scan of the worktree reads, in folders that come first.
    let many = "mkdir -p spec/many; (cd spec/many; seq 1 20100 | xargs touch)";
    for place in [None, Some("--isolate")] {
        let repo = repo(&format!("{BARE}{many}; mkdir -p zoo/deep; bare zoo/deep/new"));
        repo.arborist(["gardener", "--max-retries", "2"].into_iter().chain(place)).succeeds();
        let body = repo.git(["log", "--all", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("zoo/deep/new/HEAD"), "{place:?}: {body}");
        assert_eq!(find_all(&repo, "zoo/deep/new/HEAD"), Vec::<PathBuf>::new(), "{place:?}");
    }
}

#[test]
fn a_repository_whose_settings_run_a_command_is_moved_out_of_an_existing_ignored_folder() {
    let repo =
        repo("git init -q vendor; git -C vendor config core.fsmonitor 'touch \"$HOME/planted\"; false'");
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
    assert!(body.contains("made a repository in a folder of the checkout: vendor/.git"), "{body}");
    repo.git_in(&repo.path("vendor"), ["status", "--short"]).succeeds();
    assert!(!repo.home().join("planted").exists());
}

#[test]
fn tracked_files_that_look_like_a_bare_repository_are_left_alone() {
    for place in [None, Some("--isolate")] {
        let repo = repo("echo more > tests/data/refs/new");
        for file in ["HEAD", "objects/.keep", "refs/.keep", "config"] {
            repo.write(&format!("tests/data/{file}"), "x\n");
        }
        repo.commit("test data\n");
        repo.arborist(["gardener", "--max-retries", "1"].into_iter().chain(place)).succeeds();
        assert_eq!(repo.read("tests/data/HEAD"), "x\n");
        assert_eq!(repo.git(["show", "HEAD:tests/data/refs/new"]).answer(), "more");
    }
}

#[test]
fn a_harmless_repository_in_an_ignored_folder_fails_no_attempt() {
    let repo = repo("git init -q vendor; git init -q --bare vendor/deep");
    repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
    assert!(repo.path("vendor/.git").exists() && repo.path("vendor/deep/HEAD").exists());
}

/// A planted repository in `$HOME/evil`, with a folder in it.
const EVIL: &str = "git init -q \"$HOME/evil\"; mkdir -p \"$HOME/evil/plain\"
git -C \"$HOME/evil\" config core.fsmonitor 'touch \"$HOME/planted\"; false'
";

#[test]
fn a_folder_replaced_by_a_link_to_a_planted_repository_fails_the_attempt_and_is_undone() {
    let deeds = [
        ("mv vendor/plain vendor/old; ln -s \"$HOME/evil\" vendor/plain", "vendor/plain"),
        ("rm -r vendor/plain; ln -s \"$HOME/evil/plain\" vendor/plain", "vendor/plain"),
        ("mv vendor/deep spec/deep; rm -r vendor; ln -s \"$HOME/evil\" vendor", "vendor"),
        ("rm -r vendor/plain; mv \"$HOME/evil\" spec/evil; ln -s ../spec/evil vendor/plain", "vendor/plain"),
        ("rm -r src; ln -s \"$HOME/evil\" src", "src"),
    ];
    for (deed, link) in deeds {
        let repo = repo(&format!("{EVIL}{deed}"));
        repo.write("vendor/plain/a.txt", "a\n");
        repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        // The link in the place of a folder with a watched clone is named by the clone.
        let is_named = body.contains(&format!("{link}, a link to '")) || link == "vendor";
        assert!(is_named && body.contains(link), "{deed}: {body}");
        assert!(!repo.path(link).is_symlink(), "{deed}");
        assert!(!repo.home().join("planted").exists(), "{deed}");
    }
}

#[test]
fn folders_may_be_replaced_by_links_to_folders_without_a_planted_repository() {
    for deed in [
        "mkdir vendor/store; mv vendor/plain vendor/store/plain; ln -s store/plain vendor/plain",
        "rm -r vendor/plain; ln -s deep/lib vendor/plain",
        "mkdir \"$HOME/store\"; rm -r vendor/plain; ln -s \"$HOME/store\" vendor/plain",
        "git init -q \"$HOME/fixture\"; rm -r vendor/plain; ln -s \"$HOME/fixture\" vendor/plain",
    ] {
        let repo = repo(deed);
        repo.write("vendor/plain/a.txt", "a\n");
        repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
        assert!(repo.path("vendor/plain").is_symlink(), "{deed}");
    }
}

#[test]
fn a_git_file_in_an_ignored_folder_that_points_into_git_worktrees_is_removed() {
    let config =
        "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \"touch $HOME/planted; false\"\\n'";
    let through_common = format!(
        "top=$PWD; mkdir -p vendor/ec/objects vendor/ec/refs .git/worktrees/w; {config} > vendor/ec/config
echo $top/vendor/.git > .git/worktrees/w/gitdir; echo $top/vendor/ec > .git/worktrees/w/commondir
echo 'ref: refs/heads/main' > .git/worktrees/w/HEAD; echo gitdir: $top/.git/worktrees/w > vendor/.git"
    );
    let deep = format!(
        "d=$PWD/.git/worktrees/x/y; mkdir -p \"$d/objects\" \"$d/refs\"; echo 'ref: refs/heads/main' > \"$d/HEAD\"
{config} > \"$d/config\"; echo gitdir: \"$d\" > vendor/.git"
    );
    for (deed, mode) in pairs(&[&through_common, &deep], &modes()) {
        let repo = repo(deed);
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        assert!(!repo.path("vendor/.git").exists(), "{mode}: {deed}");
        let _ = repo.git(["-C", "vendor", "status"]).code();
        assert!(!repo.home().join("planted").exists(), "{mode}: {deed}");
    }
}

#[test]
fn decoy_folders_do_not_hide_a_planted_repository() {
    let config =
        "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \"touch $HOME/planted; false\"\\n'";
    let plant = format!(
        "mkdir -p src/.git/objects src/.git/refs; echo 'ref: refs/heads/main' > src/.git/HEAD; {config} > src/.git/config"
    );
    for decoy in ["mkdir -p a/.GIT b/.GIT", "mkdir -p 0/.GIT; chmod 555 src"] {
        let repo = repo(&format!("{plant}; {decoy}"));
        repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
        assert!(!repo.path("src/.git").exists(), "{decoy}");
        let _ = repo.git(["-C", "src", "status"]).code();
        assert!(!repo.home().join("planted").exists(), "{decoy}");
    }
}

/// Functions that make a repository in a folder, one that runs something, one that does not, and add one as a submodule to
/// the index of another one.
const NESTED: &str = "plain() { git init -q --template= $1; git -C $1 -c user.name=a -c user.email=b@c commit -q --allow-empty -m x; }
evil() { git -C $1 config core.fsmonitor 'touch \"$HOME/planted\"; false'; }
gitlink() { git -C $1 update-index --add --cacheinfo 160000,$(git -C $1/$2 rev-parse HEAD),$2; }
";

#[test]
fn a_repository_with_a_planted_submodule_is_moved_out_of_an_existing_ignored_folder() {
    let deeds = [
        ("plain vendor; plain vendor/new; gitlink vendor new; evil vendor/new", "vendor/.git"),
        (
            "plain vendor; plain vendor/deep; gitlink vendor deep; plain vendor/deep/n; gitlink vendor/deep n; evil vendor/deep/n",
            "vendor/deep/.git",
        ),
        (
            "plain vendor/x; plain vendor/x/new; gitlink vendor/x new; evil vendor/x/new; rm -rf vendor/old; ln -s x vendor/old",
            "vendor/old",
        ),
        // An index that cannot be read by anyone but git.
        (
            "plain vendor; plain vendor/new; gitlink vendor new; evil vendor/new; git -C vendor update-index --split-index",
            "vendor/.git",
        ),
    ];
    for ((deed, named), mode) in pairs(&deeds, &modes()) {
        let repo = repo(&format!("{NESTED}{deed}"));
        repo.write("vendor/old/o", "o\n");
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("made a repository") && body.contains(named), "{mode}: {deed}: {body}");
        for folder in ["vendor", "vendor/deep", "vendor/old"] {
            let _ = repo.git(["-C", folder, "status"]).code();
        }
        assert!(!repo.home().join("planted").exists(), "{mode}: {deed}");
    }
}

#[test]
fn a_submodule_that_is_added_to_the_index_of_a_clone_is_moved_away() {
    for mode in modes() {
        let deed = "plain vendor/deep/lib/new; gitlink vendor/deep/lib new; evil vendor/deep/lib/new";
        let repo = repo(&format!("{NESTED}{deed}"));
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("vendor/deep/lib/new/.git"), "{mode}: {body}");
        let _ = repo.git(["-C", "vendor/deep/lib", "status"]).code();
        assert!(!repo.home().join("planted").exists(), "{mode}");
    }
}

#[test]
fn a_git_file_in_an_ignored_folder_cannot_make_git_run_a_planted_submodule() {
    let deed = format!(
        "{NESTED}plain vendor; plain vendor/new; gitlink vendor new; evil vendor/new
w=$PWD/.git/worktrees/w; mkdir -p $w; cp vendor/.git/index $w/index; rm -rf vendor/.git; git rev-parse HEAD > $w/HEAD
echo ../.. > $w/commondir; echo $PWD/vendor/.git > $w/gitdir; echo \"gitdir: $w\" > vendor/.git"
    );
    for mode in modes().into_iter().filter(|mode| *mode != "bwrap") {
        let repo = repo(&deed);
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        let _ = repo.git(["-C", "vendor", "status"]).code();
        assert!(!repo.home().join("planted").exists(), "{mode}");
    }
}

/// Replaces a path in the index of the repository `$1`: git refuses to add such a path, but obeys it.
const FORGE: &str =
    "forge() { LC_ALL=C sed \"s#$2#$3#\" \"$1/index\" > spec/index; cp spec/index \"$1/index\"; }\n";

#[test]
fn an_index_with_a_submodule_path_outside_of_the_clone_is_moved_away() {
    let plant = "git -C vendor/deep/lib update-index --add --cacheinfo 160000,$(git -C vendor/deep/new rev-parse HEAD),zz/new
evil vendor/deep/new";
    let deeds = [
        format!("{plant}; forge vendor/deep/lib/.git zz/new ../new"),
        // Only git can read it then.
        format!(
            "{plant}; forge vendor/deep/lib/.git zz/new ../new; git -C vendor/deep/lib update-index --split-index"
        ),
    ];
    for (deed, mode) in pairs(&deeds, &modes()) {
        let repo = repo(&format!("{NESTED}{FORGE}plain vendor/deep/new; {deed}"));
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "2"]).succeeds();
        let body = repo.git(["log", "--grep=@implement-fail)", "--format=%B"]).answer();
        assert!(body.contains("vendor/deep/lib/.git/index (an index that leads"), "{mode}: {deed}: {body}");
        let _ = repo.git(["-C", "vendor/deep/lib", "status"]).code();
        assert!(!repo.home().join("planted").exists(), "{mode}: {deed}");
    }
}
