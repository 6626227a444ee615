//! A session that has gone on in another clone: whoever was there before finds out, follows, and does nothing twice.

use std::{fs, path::PathBuf};

use crate::town::Town;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 do a\n- [ ] T002 [repo:backend] do b (depends on T001)\n- [ ] T003 [repo:backend] do c (depends on T002)\n- [ ] T004 do d (depends on T003)\n";

/// T003 and T004 fail until each is mended.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED; exit ;;
  *T003:*) test -e "$ROOT/mended-3" || exit 1 ;;
  *T004:*) test -e "$ROOT/mended-4" || exit 1 ;;
esac
echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt"
"#;

fn town() -> Town {
    let town = Town::of_containers(PLAN, "on_checkpoint", "");
    town.agent(WORKER);
    town
}

fn mend(town: &Town, task: u32) {
    fs::write(town.root().join(format!("mended-{task}")), "").unwrap();
}

/// Runs up to a task that fails.
fn begin(town: &Town) -> String {
    town.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    town.session_branch("repo").rsplit_once('/').unwrap().1.to_owned()
}

/// A first clone comes to T002, a second to T003; then the first is at work again.
fn taken_over() -> (Town, String) {
    let town = town();
    let session = begin(&town);
    town.put_away("first");
    town.clone_again();
    mend(&town, 3);
    town.arborist(["session", "resume", "--yes"]).exits(1).out("1 completed (T003)");
    town.put_away("second");
    town.bring_back("first");
    mend(&town, 4);
    (town, session)
}

fn house(town: &Town, repo: &str, session: &str) -> PathBuf {
    town.root().join(format!("{repo}.arborist/session-{session}"))
}

#[test]
fn whoever_was_there_before_is_told_and_follows() {
    let (town, session) = taken_over();
    let calls = town.calls();
    let refused = town.arborist(["gardener"]).exits(2);
    refused.err(&format!("session '{session}' has gone on elsewhere")).err("git arborist session resume");
    assert_eq!(town.calls(), calls);

    let resumed = town.arborist(["session", "resume", "--json"]).succeeds();
    assert!(resumed.stdout().contains("\"completed\":[\"T004\"]"), "{}", resumed.stdout());
    assert_eq!(town.calls(), calls + 2, "what was complete is not done again");
    for (repo, files) in [("repo", ["T001.txt", "T004.txt"]), ("backend", ["T002.txt", "T003.txt"])] {
        let branch = format!("arborist/tasks/{session}");
        let there = town.git_in(&town.remote_of(repo), ["ls-tree", "--name-only", &branch]).answer();
        let there: Vec<&str> = there.lines().filter(|name| name.starts_with('T')).collect();
        assert_eq!(there, files);
        let house = house(&town, repo, &session);
        assert!(files.iter().all(|file| house.join(file).exists()), "{repo}");
        assert_eq!(town.git_in(&house, ["status", "--porcelain"]).answer(), "");
    }
    town.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
}

/// Only what is not checked out was taken over.
#[test]
fn whoever_has_fetched_the_records_is_told_too() {
    let (town, session) = taken_over();
    town.arborist(["workspace", "sync"])
        .succeeds()
        .out(&format!("took over refs/arborist/sessions/{session}"));
    let calls = town.calls();
    let refused =
        town.arborist(["gardener"]).exits(2).err(&format!("session '{session}' has gone on elsewhere"));
    refused.err(&format!("git arborist session resume {session}"));
    assert_eq!(town.calls(), calls);
    town.arborist(["session", "resume"]).succeeds().out("1 completed (T004)").never("was not pushed");
    assert!(house(&town, "backend", &session).join("T003.txt").exists());
}

#[test]
fn what_is_not_committed_there_is_in_the_way_and_stays() {
    for repo in ["repo", "backend"] {
        let (town, session) = taken_over();
        let branch = format!("arborist/tasks/{session}");
        let file = match repo {
            "backend" => "T003.txt".to_owned(),
            _ => {
                let added = ["log", "-1", "--format=", "--name-only", "--grep=@T003@complete", &branch];
                town.git_in(&town.remote_of("repo"), added).answer()
            }
        };
        let mine = house(&town, repo, &session).join(file);
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        let refused = town.arborist(["session", "resume"]).exits(2).err("cannot follow: ");
        refused.err("would be overwritten").err("merge --ff-only");
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        fs::remove_file(mine).unwrap();
        town.arborist(["session", "resume"]).succeeds().out("1 completed (T004)");
    }
}

#[test]
fn one_that_may_be_at_work_there_is_not_gone_on_with_here() {
    let (town, session) = taken_over();
    // The second clone has not come to its rest yet.
    for name in [format!("refs/arborist/sessions/{session}"), format!("refs/heads/arborist/tasks/{session}")]
    {
        town.git_in(&town.remote_of("repo"), ["update-ref", &name, &format!("{name}^")]).succeeds();
    }
    let refused = town.arborist(["session", "resume"]).exits(2);
    refused.err(&format!("session '{session}' may be at work elsewhere"));
    let named = ["session", "resume", &session, "--", "--max-retries", "2"];
    town.arborist(named).succeeds().out("1 completed (T004)").never("was not pushed");
}

#[test]
fn one_that_went_on_in_both_is_not_mixed() {
    let (town, session) = taken_over();
    let bare = town.root().join("repo.git");
    fs::rename(&bare, town.root().join("away.git")).unwrap();
    // Nobody knows, offline.
    let run = town.arborist(["gardener", "--max-retries", "1", "--retry-failed"]).succeeds();
    run.err(&format!("offline: whether session '{session}' has gone on elsewhere is not known"));
    fs::rename(town.root().join("away.git"), &bare).unwrap();
    let refused = town.arborist(["gardener"]).exits(2).err("--new-run");
    refused.err(&format!("session '{session}' has gone on elsewhere, and here too"));
}

#[test]
fn a_clone_that_is_older_than_the_session_finds_it_too() {
    let town = town();
    town.put_away("old");
    town.clone_again();
    let session = begin(&town);
    town.put_away("new");
    town.bring_back("old");
    let calls = town.calls();
    let refused = town.arborist(["gardener"]).exits(2);
    refused.err("you have begun 'tasks.md' elsewhere").err(&format!("git arborist session resume {session}"));
    assert_eq!(town.calls(), calls);
    assert!(!town.clone_of("backend").exists());
    mend(&town, 3);
    mend(&town, 4);
    town.arborist(["session", "resume"]).succeeds().out("2 completed (T003, T004)");
}
