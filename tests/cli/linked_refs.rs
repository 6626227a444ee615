//! A ref can be made to lead to another one, and a target can be moved by anybody. Neither lands what nobody has approved, or
//! what no gate was asked about.

use arborist_testkit::Garden;

/// Waits until a command succeeds.
const UNTIL: &str =
    "until_it() { i=0; until eval \"$1\"; do i=$((i+1)); [ $i -lt 1200 ] || exit 9; sleep 0.05; done; }";
const PLAN: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";
const FORMS: [&str; 2] = ["--ref-format=files", "--ref-format=reftable"];

/// A repository whose refs are kept in this form, `None` if git does not know it.
fn garden(form: &str) -> Option<Garden> {
    if form != FORMS[0] && Garden::sprout().git(["init", "-q", form, "probe"]).code() != 0 {
        return None;
    }
    let garden = Garden::bare_ground(if form == FORMS[0] { &[] } else { std::slice::from_ref(&form) });
    garden.write("tasks.md", PLAN);
    garden.commit("a plan\n");
    Some(garden)
}

/// Agents that do `deed` in T001 or T002, and a reviewer that approves of T002 alone.
fn hire(garden: &Garden, task: &str, deed: &str) {
    garden.agent(&format!(
        "{UNTIL}
case \"$prompt\" in Review*T001*) echo 'REJECTED: no'; exit ;; Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
if [ \"$ARBORIST_TASK\" = {task} ]; then {deed}; fi
echo done"
    ));
}

fn run(garden: &Garden) -> i32 {
    garden.arborist(["gardener", "--jobs", "2", "--keep-going", "--max-retries", "1"]).code()
}

fn tree_of_main(garden: &Garden) -> String {
    garden.git(["ls-tree", "-r", "--name-only", "main"]).answer()
}

fn links(garden: &Garden) -> String {
    garden.git(["for-each-ref", "--format=%(symref)"]).answer().trim().to_owned()
}

#[test]
fn a_task_branch_that_leads_to_the_target_moves_only_itself() {
    for garden in FORMS.iter().filter_map(|form| garden(form)) {
        hire(&garden, "T001", "git symbolic-ref refs/heads/arborist/task/main/T001 refs/heads/main");
        assert_eq!(run(&garden), 1);
        let tree = tree_of_main(&garden);
        assert!(tree.contains("T002.txt") && !tree.contains("T001.txt"), "{tree}");
        assert_eq!(links(&garden), "");
    }
}

#[test]
fn the_branch_of_a_run_in_place_that_leads_to_another_one_moves_only_itself() {
    for garden in FORMS.iter().filter_map(|form| garden(form)) {
        garden.git(["branch", "other"]).succeeds();
        hire(
            &garden,
            "T001",
            "git update-ref refs/heads/other main; git symbolic-ref refs/heads/main refs/heads/other",
        );
        let other = "git log -1 --format=%s other";
        assert_eq!(garden.arborist(["gardener", "--max-retries", "1"]).code(), 1);
        let subject = garden.git(other.split(' ').skip(1)).answer();
        assert!(!subject.contains("T001"), "{subject}");
        assert_eq!(links(&garden), "");
    }
}

#[test]
fn a_target_that_leads_to_a_task_branch_takes_in_nothing_of_it() {
    for garden in FORMS.iter().filter_map(|form| garden(form)) {
        hire(&garden, "T001", "git symbolic-ref refs/heads/main refs/heads/arborist/task/main/T001");
        assert_eq!(run(&garden), 1);
        // Who of those at work did it cannot be told, so T002 may have failed as well.
        let tree = tree_of_main(&garden);
        assert!(!tree.contains("T001.txt"), "{tree}");
        assert_eq!(links(&garden), "");
    }
}

#[test]
fn a_target_that_is_moved_to_the_work_of_a_task_has_not_landed_it() {
    let garden = garden(FORMS[0]).unwrap();
    hire(
        &garden,
        "T002",
        "until_it 'git log --format=%s arborist/task/main/T001 | grep -q implement-pass'
git update-ref refs/heads/main \"$(git log --format=%H --grep=implement-pass -1 arborist/task/main/T001)\"",
    );
    assert_eq!(run(&garden), 1);
    assert!(!tree_of_main(&garden).contains("T001.txt"), "{}", tree_of_main(&garden));
    let saved = garden.git(["for-each-ref", "refs/arborist/saved/moved"]).answer();
    assert!(!saved.is_empty(), "where it was moved to is kept");
}

/// Lands T001 by plumbing, once it is complete, with another file or as it is.
fn forge_landing(other_file: bool, session: bool) -> String {
    let more = if other_file { "printf '100644 blob %s\\tevil.txt\\n' \"$blob\"" } else { ":" };
    let trailer = if session { "Arborist-Session: $s\\n" } else { "" };
    format!(
        "until_it 'git log -1 --format=%s arborist/task/main/T001 | grep -q @complete'
src=$(git rev-parse arborist/task/main/T001); main=$(git rev-parse main)
s=$(git for-each-ref --format='%(refname)' refs/arborist/sessions); s=${{s##*/}}
blob=$(echo evil | git hash-object -w --stdin)
tree=$( {{ git ls-tree \"$src\"; {more}; }} | git mktree)
c=$(printf \"task(main@T001@merge): land \\\"one\\\"\\n\\nArborist-Step: merge\\nArborist-Result: pass\\nArborist-Source: $src\\nArborist-Gate: check\\n{trailer}\" | git commit-tree \"$tree\" -p \"$main\" -p \"$src\")
git update-ref refs/heads/main \"$c\" \"$main\" && touch \"$ROOT/forged\""
    )
}

#[test]
fn a_landing_that_the_run_did_not_make_does_not_count() {
    for (other_file, session) in [(true, false), (true, true), (false, false), (false, true)] {
        let garden = garden(FORMS[0]).unwrap();
        let root = garden.root().display().to_string();
        garden.agent(&format!(
            "{UNTIL}
case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
if [ \"$ARBORIST_TASK\" = T002 ]; then {}; fi
echo done",
            forge_landing(other_file, session)
        ));
        // The gate of T001 is red, and waits until the landing is forged.
        let gate = format!(
            "i=0; until [ -e '{root}/forged' ] || [ $i -gt 1200 ]; do i=$((i+1)); sleep 0.05; done; ! test -e T001.txt"
        );
        garden.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
        assert_ne!(run(&garden), 0);
        let tree = tree_of_main(&garden);
        assert!(!tree.contains("evil.txt") && !tree.contains("T001.txt"), "{other_file} {session}: {tree}");
        let subjects = garden.git(["log", "--format=%s", "main"]).answer();
        assert!(!subjects.contains("@T001@merge"), "{other_file} {session}: {subjects}");
        let saved = garden.git(["for-each-ref", "refs/arborist/saved/moved"]).answer();
        assert!(!saved.is_empty(), "what was forged is kept");
    }
}

#[test]
fn a_fetch_moves_no_branch_that_one_of_our_refs_was_made_to_lead_to() {
    for garden in FORMS.iter().filter_map(|form| garden(form)) {
        let remote = garden.root().join("remote.git");
        garden.git(["clone", "-q", "--bare", ".", &remote.display().to_string()]).succeeds();
        garden.git(["checkout", "-q", "-b", "mine"]).succeeds();
        garden.write("mine.txt", "mine");
        let mine = garden.commit("mine\n");
        garden.git(["checkout", "-q", "main"]).succeeds();
        for (key, value) in
            [("path", "."), ("remote", &remote.display().to_string()), ("default-branch", "main")]
        {
            garden.git(["config", &format!("arborist.workspace.repos.repo.{key}"), value]).succeeds();
        }
        garden.git(["symbolic-ref", "refs/arborist/remote/repo/heads/main", "refs/heads/mine"]).succeeds();
        garden.arborist(["workspace", "sync"]).succeeds();
        assert_eq!(garden.git(["rev-parse", "mine"]).answer(), mine);
        assert_eq!(links(&garden), "");
    }
}

#[test]
fn honest_agents_pass_at_once_where_refs_are_kept_in_tables() {
    let Some(garden) = garden(FORMS[1]) else { return };
    garden.agent(arborist_testkit::WORKER);
    garden.arborist(["gardener", "--jobs", "2"]).succeeds();
    let subjects = garden.git(["log", "--format=%s", "--all"]).answer();
    assert!(!subjects.contains("-fail"), "{subjects}");
    assert!(garden.path(".git/refs/heads").is_file(), "it tells older versions of git to stay away");
}
