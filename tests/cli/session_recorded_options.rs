//! What a session was asked for is recorded, taken up when it goes on, and holds no secret.

use std::{fs, path::Path};

use arborist_testkit::{TestRepo, WORKER};
use serde_json::Value;

const SECRET: &str = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER)
}

fn show(repo: &TestRepo) -> Value {
    let list: Value = serde_json::from_str(&repo.arborist(["session", "list", "--json"]).answer()).unwrap();
    let id = list["sessions"][0]["id"].as_str().unwrap();
    serde_json::from_str(&repo.arborist(["session", "show", id, "--json"]).answer()).unwrap()
}

fn id(repo: &TestRepo) -> String {
    show(repo)["session"]["id"].as_str().unwrap().to_owned()
}

/// All files below a folder.
fn files(dir: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![fs::read(path).unwrap()],
    };
    entries.flat_map(read).collect()
}

/// Nothing that git keeps, reachable or not, holds the secret, and nothing in the user's home.
#[track_caller]
fn assert_secret_stored_nowhere(repo: &TestRepo) {
    let objects = repo.git(["cat-file", "--batch-all-objects", "--batch"]).stdout();
    assert!(objects.contains("withheld") && !objects.contains(SECRET));
    let is_it = |text: &Vec<u8>| text.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!files(&repo.home()).iter().any(is_it));
    assert!(!files(&repo.path(".git/arborist")).iter().any(is_it));
}

#[test]
fn a_test_command_with_a_secret_is_not_recorded_and_must_be_given_again() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let command = format!("KEY={SECRET} test -f mended");
    let run = ["gardener", "--session-branch", "--max-retries", "1", "--test-command", &command];
    let said = repo.arborist(run).exits(1);
    let id = id(&repo);
    said.out(&format!("next   git arborist session resume {id} -- --test-command <the same as before>\n"));
    let shown = show(&repo);
    assert_eq!(shown["withheld"], serde_json::json!(["test-command"]));
    assert_eq!(shown["options"], serde_json::json!({"max-retries": "1"}));
    repo.arborist(["session", "show", &id]).succeeds().matches_snapshot();
    assert_secret_stored_nowhere(&repo);
    for args in [vec!["resume", &id], vec!["replay", &id, "--turn", "0"]] {
        let refs = repo.git(["for-each-ref"]).answer();
        let said = repo.arborist(["session"].into_iter().chain(args)).exits(2);
        said.matches_snapshot();
        assert_eq!(repo.git(["for-each-ref"]).answer(), refs, "nothing is begun");
    }
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    repo.arborist(["session", "resume", &id, "--", "--test-command", &command]).succeeds();
    assert_secret_stored_nowhere(&repo);
    assert_eq!(
        show(&repo)["withheld"],
        serde_json::json!(["test-command"]),
        "it must be given next time too"
    );
}

#[test]
fn resume_uses_the_recorded_folders_and_queue_policy() {
    let repo = repo();
    repo.agent("exit 1\n");
    let run = ["gardener", "--session-branch", "--max-retries", "1", "--report-dir", "out/reports"];
    let more = ["--log-dir", "out/logs", "--isolate", "--policy", "all-or-nothing"];
    repo.arborist(run.iter().chain(&more)).exits(1);
    let options = show(&repo)["options"].clone();
    for (name, value) in
        [("report-dir", "out/reports"), ("log-dir", "out/logs"), ("policy", "all-or-nothing")]
    {
        assert_eq!(options[name], value);
    }
    repo.agent(WORKER);
    repo.arborist(["session", "resume", &id(&repo)]).succeeds();
    let branch = show(&repo)["session"]["branch"].as_str().unwrap().to_owned();
    let files = repo.git(["ls-tree", "-r", "--name-only", &branch]).answer();
    assert!(files.contains("out/reports/T001_run_") && !files.contains("spec/reports"), "{files}");
    assert!(repo.path("out/logs").is_dir() && !repo.path("spec/logs").exists());
}

/// Makes the start of the only session name other options.
fn forge_start_options(repo: &TestRepo, options: &str) {
    let name = format!("refs/arborist/sessions/{}", id(repo));
    let log = ["log", "--first-parent", "--reverse", "--format=%H", "--grep=^session ", &name];
    let empty = repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let code = repo.git(["rev-parse", "HEAD"]).answer();
    let mut last: Option<(String, String)> = None;
    for record in repo.git(log).answer().lines() {
        let mut message = repo.git(["log", "-1", "--format=%B", record]).answer();
        message = message.replace("\"options\":{\"max-retries\":\"1\"}", &format!("\"options\":{options}"));
        if let Some((old, new)) = &last {
            message = message.replace(old.as_str(), new);
        }
        let before = last.map_or_else(|| code.clone(), |(_, new)| new);
        let new = repo.commit_object(&empty, &[before, code.clone()], format!("{message}\n"));
        last = Some((record.to_owned(), new));
    }
    repo.git(["update-ref", &name, &last.unwrap().1]).succeeds();
}

#[test]
fn forged_folders_in_a_record_are_ignored_if_they_are_outside_the_repository() {
    for folder in ["../outside", "/tmp/outside-of-all", ".git/hooks", "a/../../outside"] {
        let repo = repo();
        repo.agent("echo 'Invalid API key · Please run /login'; exit 1\n");
        repo.arborist(["gardener", "--max-retries", "1"]).exits(2);
        forge_start_options(&repo, &format!(r#"{{"log-dir":"{folder}","report-dir":"{folder}"}}"#));
        assert_eq!(show(&repo)["options"]["log-dir"], folder, "it is forged");
        repo.agent(WORKER);
        repo.arborist(["session", "resume", &id(&repo)]).succeeds();
        assert!(repo.path("spec/logs").is_dir(), "{folder}");
        assert!(!repo.path("../outside").exists() && !repo.path(".git/hooks/T001").exists());
    }
}

#[test]
fn options_given_to_resume_are_recorded_for_later_runs() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.agent("exit 1\n");
    let run =
        ["gardener", "--session-branch", "--max-retries", "1", "--model", "small", "--max-tokens", "900"];
    repo.arborist(run).exits(1);
    let id = id(&repo);
    let more = ["session", "resume", &id, "--", "--runner", "robot", "--test-command", "test -f mended"];
    repo.arborist(more).exits(1);
    let expected = serde_json::json!({
        "max-retries": "1", "runner": "robot", "max-tokens": "900", "test-command": "test -f mended"
    });
    assert_eq!(show(&repo)["options"], expected, "the model was that of another runner");
    // Nothing new is asked for: nothing new is recorded.
    repo.arborist(["session", "resume", &id]).exits(1);
    let records = repo.git(["log", "--first-parent", "--format=%b", &format!("refs/arborist/sessions/{id}")]);
    assert_eq!(records.answer().matches("\"asked\":{").count(), 1);
    assert_eq!(show(&repo)["options"], expected);
    // The run itself records what it is given, and keeps the rest.
    repo.arborist(["gardener", "--session-branch", "--retry-failed", "--max-tokens", "800"]).exits(1);
    assert_eq!(show(&repo)["options"]["max-tokens"], "800");
    assert_eq!(show(&repo)["options"]["test-command"], "test -f mended");
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    repo.arborist(["session", "resume", &id]).succeeds();
}

const MENDER: &str = "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n";

#[test]
fn a_rerun_after_failed_tests_uses_the_recorded_test_command() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let test = ["gardener", "--max-retries", "1", "--max-cost", "1.5", "--test-command", "test -f mended"];
    repo.arborist(test.iter().chain(&["--fallback", "demo", "--model", "small"])).exits(1);
    // The model is not asked for again, and is not said to be; the tests and the limit are.
    let again = ["gardener", "--retry-failed", "--max-retries", "1"];
    let said = repo.arborist(again).exits(1).matches_snapshot();
    said.matches_snapshot().never("no test command");
    let expected =
        serde_json::json!({"max-retries": "1", "max-cost": "1.5", "test-command": "test -f mended"});
    assert_eq!(show(&repo)["options"], expected);
    // One that nobody has approved here is shown first.
    fs::remove_dir_all(repo.home().join(".local/state/git-arborist/approved")).unwrap();
    let refused = repo.arborist(again).exits(2).matches_snapshot();
    refused.matches_snapshot();
    repo.agent(MENDER);
    repo.arborist(again.iter().chain(&["--yes"])).exits(2).matches_snapshot();
    let given = ["--test-command", "test -f mended"];
    repo.arborist(again.iter().chain(&given)).succeeds().matches_snapshot();
    // Where nothing is left to do, nothing is asked for.
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    assert_eq!(show(&repo)["options"], expected);
}

#[test]
fn a_rerun_is_refused_if_the_withheld_test_command_is_not_given_again() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let command = format!("KEY={SECRET} test -f mended");
    let said = repo.arborist(["gardener", "--max-retries", "1", "--test-command", &command]).exits(1);
    said.out(
        "next   git arborist gardener --retry-failed --max-retries 1 --test-command <the same as before>\n",
    );
    let (calls, refs) = (repo.calls(), repo.git(["for-each-ref"]).answer());
    let refused = repo.arborist(["gardener", "--retry-failed"]).exits(2);
    refused.matches_snapshot();
    assert_eq!((repo.calls(), repo.git(["for-each-ref"]).answer()), (calls, refs));
    repo.agent(MENDER);
    repo.arborist(["gardener", "--retry-failed", "--test-command", &command]).succeeds();
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    assert_eq!(show(&repo)["withheld"], serde_json::json!(["test-command"]));
}

#[test]
fn the_proposed_next_command_can_be_run_exactly_as_printed() {
    let repo = repo();
    repo.agent("exit 1\n");
    let run = ["gardener", "--max-retries", "1", "--fallback", "robot", "--fallback", "demo:true"];
    let more = ["--model", "true", "--keep-going", "--test-command", "true"];
    let typed =
        "--fallback robot --fallback demo:true --keep-going --max-retries 1 --model true --test-command true";
    let said = repo.arborist(run.iter().chain(&more)).exits(1);
    said.out(&format!("next   git arborist gardener --retry-failed {typed}\n"));
    let again = ["gardener", "--retry-failed"].into_iter().chain(typed.split(' '));
    repo.arborist(again).exits(1).out(typed);
}
