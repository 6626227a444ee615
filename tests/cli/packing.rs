//! A run packs the objects that it leaves, where git would: nothing is lost, and nobody who works beside it is disturbed.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use arborist_testkit::TestRepo;

const PLAN: &str = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n- [ ] T004 four\n- [ ] T005 five\n";

/// Writes a file of its own, and stores things in the first task and in the last that nobody can reach. Their ids begin with
/// 17: git tells by this folder how many files there are.
const WRITER: &str = r#"
store() { for n in $*; do echo "sample $n" | git hash-object -w --stdin > /dev/null; done; }
case "$prompt" in
  Review*) echo APPROVED ;;
  *) case $ARBORIST_TASK in T001) store A ;; T005) store B ;; esac
     echo $ARBORIST_TASK > $ARBORIST_TASK.txt; echo done ;;
esac
"#;

/// Numbers of such things.
const SAMPLES: [&str; 2] = ["128 161 781", "1119 1126 1136"];

/// A repository in which git would pack as soon as there are two files in that folder.
fn repo(agent: &str) -> TestRepo {
    let agent = agent.replace("store A", &format!("store {}", SAMPLES[0]));
    let repo =
        TestRepo::planned("tasks.md", PLAN, &agent.replace("store B", &format!("store {}", SAMPLES[1])));
    repo.git(["config", "gc.auto", "1"]).succeeds();
    repo
}

/// How many objects have files of their own, and how many are packed.
fn counts(repo: &TestRepo) -> (usize, usize) {
    let printed = repo.git(["count-objects", "-v"]).answer();
    let number = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.and_then(|number| number.parse().ok()).unwrap()
    };
    (number("count"), number("in-pack"))
}

fn is_complete(repo: &TestRepo, dir: &Path, branch: &str) {
    repo.arborist_in(dir, ["state", "--exit-code"]).succeeds();
    let subjects = repo.git(["log", "--format=%s", branch]).answer();
    assert!(!subjects.contains("-fail)"), "{subjects}");
    repo.git(["fsck", "--strict", "--no-dangling"]).succeeds();
}

#[test]
fn objects_are_packed_between_tasks_and_at_the_end_without_losing_any() {
    for jobs in [None, Some("2")] {
        let repo = repo(WRITER);
        let loose = |id: &str| repo.path(".git/objects").join(&id[..2]).join(&id[2..]);
        // Old, and out of anybody's reach: `git gc` would remove it.
        repo.write("../text", "nobody has this\n");
        let lost = repo.git(["hash-object", "-w", "../text"]).answer();
        let touch = ["-d", "2020-01-01"];
        assert!(repo.command("touch", repo.root()).args(touch).arg(loose(&lost)).status().unwrap().success());
        let args = jobs.map(|jobs| ["--jobs", jobs]);
        repo.arborist(["gardener"].into_iter().chain(args.into_iter().flatten())).succeeds();
        let (files, packed) = counts(&repo);
        assert!(packed > 40 && files < packed, "{jobs:?}: {files} files, {packed} packed");
        assert_eq!(repo.git(["cat-file", "-p", &lost]).answer(), "nobody has this");
        assert!(!loose(&lost).exists(), "{jobs:?}: it is packed, too");
        is_complete(&repo, &repo.path(""), "main");
    }
}

#[test]
fn nothing_is_packed_if_settings_or_a_hook_forbid_it() {
    let settings = [("gc.auto", "0"), ("maintenance.auto", "false"), ("gc.auto", "6700")];
    for (key, value) in settings {
        let repo = repo(WRITER);
        repo.git(["config", key, value]).succeeds();
        repo.arborist(["gardener", "--until", "T001"]).succeeds();
        assert_eq!(counts(&repo).1, 0, "{key}={value}");
    }
    let repo = repo(WRITER);
    repo.write_script(".git/hooks/pre-auto-gc", "exit 1\n");
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    assert_eq!(counts(&repo).1, 0, "a hook decides");
}

#[test]
fn a_concurrent_run_is_not_disturbed_by_packing() {
    let agent = "case $PWD in */other) touch \"$ROOT/begun\"; until [ -e \"$ROOT/go\" ]; do sleep 0.05; done ;; esac; ";
    let repo = repo(&WRITER.replace("echo $ARBORIST_TASK >", &format!("{agent}echo $ARBORIST_TASK >")));
    let other = repo.root().join("other");
    repo.git(["worktree", "add", "-q", "-b", "other", other.to_str().unwrap()]).succeeds();
    let mut command = repo.command("git-arborist-gardener", &other);
    let command = command.args(["--until", "T002"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let beside = command.stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !repo.root().join("begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(600), "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    repo.arborist(["gardener", "--until", "T003"]).succeeds();
    assert!(counts(&repo).1 > 20, "{:?}", counts(&repo));
    fs::write(repo.root().join("go"), "").unwrap();
    let ended = beside.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for branch in ["main", "other"] {
        let subjects = repo.git(["log", "--format=%s", branch]).answer();
        assert!(!subjects.contains("-fail)"), "{subjects}");
        assert!(subjects.contains("@T002@complete"), "{subjects}");
    }
    repo.git(["fsck", "--strict", "--no-dangling"]).succeeds();
}

#[test]
fn nothing_is_packed_if_an_object_does_not_match_its_id() {
    let repo = repo(WRITER);
    let old = repo.git(["hash-object", "-w", "tasks.md"]).answer();
    repo.write("../text", "another\n");
    let other = repo.git(["hash-object", "-w", "../text"]).answer();
    repo.write("../text", "claimed\n");
    let claimed = repo.git(["hash-object", "-w", "../text"]).answer();
    let loose = |id: &str| repo.path(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(loose(&claimed)).unwrap();
    fs::copy(loose(&other), loose(&claimed)).unwrap();
    repo.arborist(["gardener", "--until", "T002"]).succeeds();
    assert_eq!(counts(&repo).1, 0);
    assert!(loose(&old).exists() && loose(&other).exists() && loose(&claimed).exists());
    repo.arborist(["state", "T002", "--exit-code"]).succeeds();
}
