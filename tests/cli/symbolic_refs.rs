//! A ref can be made to lead to another one, and a target can be moved by anybody. Neither lands what nobody has approved, or
//! what no gate was asked about.

use arborist_testkit::{TestRepo, pairs};

/// Waits until a command succeeds.
const UNTIL: &str =
    "until_it() { i=0; until eval \"$1\"; do i=$((i+1)); [ $i -lt 1200 ] || exit 9; sleep 0.05; done; }";
const PLAN: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";
const FORMS: [&str; 2] = ["--ref-format=files", "--ref-format=reftable"];

/// A repository whose refs are kept in this form, `None` if git does not know it.
fn repo(form: &str) -> Option<TestRepo> {
    if form != FORMS[0] && TestRepo::init().git(["init", "-q", form, "probe"]).code() != 0 {
        return None;
    }
    let repo = TestRepo::with_options(if form == FORMS[0] { &[] } else { std::slice::from_ref(&form) });
    repo.write("tasks.md", PLAN);
    repo.commit("a plan\n");
    Some(repo)
}

/// Agents that do `deed` in T001 or T002, and a reviewer that approves of T002 alone.
fn set_agents(repo: &TestRepo, task: &str, deed: &str) {
    repo.agent(&format!(
        "{UNTIL}
case \"$prompt\" in Review*T001*) echo 'REJECTED: no'; exit ;; Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
if [ \"$ARBORIST_TASK\" = {task} ]; then {deed}; fi
echo done"
    ));
}

fn run(repo: &TestRepo) -> i32 {
    repo.arborist(["gardener", "--jobs", "2", "--keep-going", "--max-retries", "1"]).code()
}

fn tree_of_main(repo: &TestRepo) -> String {
    repo.git(["ls-tree", "-r", "--name-only", "main"]).answer()
}

fn links(repo: &TestRepo) -> String {
    repo.git(["for-each-ref", "--format=%(symref)"]).answer().trim().to_owned()
}

#[test]
fn a_task_branch_made_a_symref_to_the_target_does_not_move_the_target() {
    for repo in FORMS.iter().filter_map(|form| repo(form)) {
        set_agents(&repo, "T001", "git symbolic-ref refs/heads/arborist/task/main/T001 refs/heads/main");
        assert_eq!(run(&repo), 1);
        let tree = tree_of_main(&repo);
        assert!(tree.contains("T002.txt") && !tree.contains("T001.txt"), "{tree}");
        assert_eq!(links(&repo), "");
    }
}

#[test]
fn a_run_branch_made_a_symref_to_another_branch_does_not_move_that_branch() {
    for repo in FORMS.iter().filter_map(|form| repo(form)) {
        repo.git(["branch", "other"]).succeeds();
        set_agents(
            &repo,
            "T001",
            "git update-ref refs/heads/other main; git symbolic-ref refs/heads/main refs/heads/other",
        );
        let other = "git log -1 --format=%s other";
        assert_eq!(repo.arborist(["gardener", "--max-retries", "1"]).code(), 1);
        let subject = repo.git(other.split(' ').skip(1)).answer();
        assert!(!subject.contains("T001"), "{subject}");
        assert_eq!(links(&repo), "");
    }
}

#[test]
fn a_target_made_a_symref_to_a_task_branch_gets_none_of_its_commits() {
    for repo in FORMS.iter().filter_map(|form| repo(form)) {
        set_agents(&repo, "T001", "git symbolic-ref refs/heads/main refs/heads/arborist/task/main/T001");
        assert_eq!(run(&repo), 1);
        // Who of those at work did it cannot be told, so T002 may have failed as well.
        let tree = tree_of_main(&repo);
        assert!(!tree.contains("T001.txt"), "{tree}");
        assert_eq!(links(&repo), "");
    }
}

#[test]
fn moving_the_target_to_commits_of_a_task_does_not_land_the_task() {
    let repo = repo(FORMS[0]).unwrap();
    set_agents(
        &repo,
        "T002",
        "until_it 'git log --format=%s arborist/task/main/T001 | grep -q implement-pass'
git update-ref refs/heads/main \"$(git log --format=%H --grep=implement-pass -1 arborist/task/main/T001)\"",
    );
    assert_eq!(run(&repo), 1);
    assert!(!tree_of_main(&repo).contains("T001.txt"), "{}", tree_of_main(&repo));
    let saved = repo.git(["for-each-ref", "refs/arborist/saved/moved"]).answer();
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
fn a_landing_commit_forged_by_an_agent_does_not_count() {
    for (other_file, session) in pairs(&[true, false], &[false, true]) {
        let repo = repo(FORMS[0]).unwrap();
        let root = repo.root().display().to_string();
        repo.agent(&format!(
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
        repo.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
        assert_ne!(run(&repo), 0);
        let tree = tree_of_main(&repo);
        assert!(!tree.contains("evil.txt") && !tree.contains("T001.txt"), "{other_file} {session}: {tree}");
        let subjects = repo.git(["log", "--format=%s", "main"]).answer();
        assert!(!subjects.contains("@T001@merge"), "{other_file} {session}: {subjects}");
        let saved = repo.git(["for-each-ref", "refs/arborist/saved/moved"]).answer();
        assert!(!saved.is_empty(), "what was forged is kept");
    }
}

#[test]
fn a_fetch_does_not_move_a_branch_through_a_symref_in_arborist_refs() {
    for repo in FORMS.iter().filter_map(|form| repo(form)) {
        let remote = repo.root().join("remote.git");
        repo.git(["clone", "-q", "--bare", ".", &remote.display().to_string()]).succeeds();
        repo.git(["checkout", "-q", "-b", "mine"]).succeeds();
        repo.write("mine.txt", "mine");
        let mine = repo.commit("mine\n");
        repo.git(["checkout", "-q", "main"]).succeeds();
        for (key, value) in
            [("path", "."), ("remote", &remote.display().to_string()), ("default-branch", "main")]
        {
            repo.git(["config", &format!("arborist.workspace.repos.repo.{key}"), value]).succeeds();
        }
        repo.git(["symbolic-ref", "refs/arborist/remote/repo/heads/main", "refs/heads/mine"]).succeeds();
        repo.arborist(["workspace", "sync"]).succeeds();
        assert_eq!(repo.git(["rev-parse", "mine"]).answer(), mine);
        assert_eq!(links(&repo), "");
    }
}

#[test]
fn with_reftable_honest_agents_pass_at_the_first_attempt() {
    let Some(repo) = repo(FORMS[1]) else { return };
    repo.agent(arborist_testkit::WORKER);
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let subjects = repo.git(["log", "--format=%s", "--all"]).answer();
    assert!(!subjects.contains("-fail"), "{subjects}");
    assert!(repo.path(".git/refs/heads").is_file(), "it tells older versions of git to stay away");
}

/// git looks for `X` in the git directory, then for `refs/X` and `refs/tags/X`, and only then for the branch.
#[test]
fn refs_that_shadow_the_short_name_of_a_session_branch_fail_the_attempt_and_are_removed() {
    for shadow in [
        "git update-ref refs/tags/$B $C",
        "git update-ref refs/$B $C",
        "mkdir -p \"$G/${B%/*}\"; echo $C > \"$G/$B\"",
    ] {
        let repo = TestRepo::planned(
            "tasks.md",
            "- [ ] T001 a\n",
            &format!(
                "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > work.txt
[ -e \"$ROOT/once\" ] && exit
touch \"$ROOT/once\"
G=$(git rev-parse --path-format=absolute --git-common-dir); B=$(git symbolic-ref --short HEAD)
C=$(git commit-tree -p HEAD -m evil HEAD^{{tree}})
{shadow}"
            ),
        );
        repo.arborist(["gardener", "--session-branch", "--test-command", "true"]).succeeds();
        let full = repo.git(["for-each-ref", "--format=%(refname)", "refs/heads/arborist"]).answer();
        let short = full.strip_prefix("refs/heads/").unwrap();
        let tip = repo.git(["rev-parse", &full]).answer();
        assert_eq!(repo.git(["rev-parse", short]).answer(), tip, "{shadow}");
        let log = repo.git(["log", "--format=%s", &full]).answer();
        assert!(log.contains("@T001@implement-fail)"), "{shadow}: {log}");
    }
}
