//! What a session was asked for is recorded, taken up when it goes on, and holds no secret.

use std::{fs, path::Path};

use arborist_testkit::{Garden, WORKER};
use serde_json::Value;

const SECRET: &str = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn garden() -> Garden {
    Garden::planned("tasks.md", "- [ ] T001 do a\n", WORKER)
}

fn show(garden: &Garden) -> Value {
    let list: Value = serde_json::from_str(&garden.arborist(["session", "list", "--json"]).answer()).unwrap();
    let id = list["sessions"][0]["id"].as_str().unwrap();
    serde_json::from_str(&garden.arborist(["session", "show", id, "--json"]).answer()).unwrap()
}

fn id(garden: &Garden) -> String {
    show(garden)["session"]["id"].as_str().unwrap().to_owned()
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
fn assert_kept_nowhere(garden: &Garden) {
    let objects = garden.git(["cat-file", "--batch-all-objects", "--batch"]).stdout();
    assert!(objects.contains("withheld") && !objects.contains(SECRET));
    let is_it = |text: &Vec<u8>| text.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(!files(&garden.home()).iter().any(is_it));
    assert!(!files(&garden.path(".git/arborist")).iter().any(is_it));
}

#[test]
fn a_secret_in_the_test_command_is_not_recorded_and_must_be_given_again() {
    let garden = garden();
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let command = format!("KEY={SECRET} test -f mended");
    let run = ["gardener", "--session-branch", "--max-retries", "1", "--test-command", &command];
    let said = garden.arborist(run).exits(1);
    let id = id(&garden);
    said.out(&format!("next   git arborist session resume {id} -- --test-command <the same as before>\n"));
    let shown = show(&garden);
    assert_eq!(shown["withheld"], serde_json::json!(["test-command"]));
    assert_eq!(shown["options"], serde_json::json!({"max-retries": "1"}));
    garden.arborist(["session", "show", &id]).succeeds().shows();
    assert_kept_nowhere(&garden);
    for args in [vec!["resume", &id], vec!["replay", &id, "--turn", "0"]] {
        let refs = garden.git(["for-each-ref"]).answer();
        let said = garden.arborist(["session"].into_iter().chain(args)).exits(2);
        said.shows();
        assert_eq!(garden.git(["for-each-ref"]).answer(), refs, "nothing is begun");
    }
    garden.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    garden.arborist(["session", "resume", &id, "--", "--test-command", &command]).succeeds();
    assert_kept_nowhere(&garden);
    assert_eq!(
        show(&garden)["withheld"],
        serde_json::json!(["test-command"]),
        "it must be given next time too"
    );
}

#[test]
fn folders_and_the_policy_are_taken_up_again() {
    let garden = garden();
    garden.agent("exit 1\n");
    let run = ["gardener", "--session-branch", "--max-retries", "1", "--report-dir", "out/reports"];
    let more = ["--log-dir", "out/logs", "--isolate", "--policy", "all-or-nothing"];
    garden.arborist(run.iter().chain(&more)).exits(1);
    let options = show(&garden)["options"].clone();
    for (name, value) in
        [("report-dir", "out/reports"), ("log-dir", "out/logs"), ("policy", "all-or-nothing")]
    {
        assert_eq!(options[name], value);
    }
    garden.agent(WORKER);
    garden.arborist(["session", "resume", &id(&garden)]).succeeds();
    let branch = show(&garden)["session"]["branch"].as_str().unwrap().to_owned();
    let files = garden.git(["ls-tree", "-r", "--name-only", &branch]).answer();
    assert!(files.contains("out/reports/T001_run_") && !files.contains("spec/reports"), "{files}");
    assert!(garden.path("out/logs").is_dir() && !garden.path("spec/logs").exists());
}

/// Makes the start of the only session name other options.
fn forge(garden: &Garden, options: &str) {
    let name = format!("refs/arborist/sessions/{}", id(garden));
    let log = ["log", "--first-parent", "--reverse", "--format=%H", "--grep=^session ", &name];
    let empty = garden.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let code = garden.git(["rev-parse", "HEAD"]).answer();
    let mut last: Option<(String, String)> = None;
    for record in garden.git(log).answer().lines() {
        let mut message = garden.git(["log", "-1", "--format=%B", record]).answer();
        message = message.replace("\"options\":{\"max-retries\":\"1\"}", &format!("\"options\":{options}"));
        if let Some((old, new)) = &last {
            message = message.replace(old.as_str(), new);
        }
        let before = last.map_or_else(|| code.clone(), |(_, new)| new);
        let new = garden.commit_object(&empty, &[before, code.clone()], format!("{message}\n"));
        last = Some((record.to_owned(), new));
    }
    garden.git(["update-ref", &name, &last.unwrap().1]).succeeds();
}

#[test]
fn a_record_cannot_make_anybody_write_outside_of_the_repository() {
    for folder in ["../outside", "/tmp/outside-of-all", ".git/hooks", "a/../../outside"] {
        let garden = garden();
        garden.agent("echo 'Invalid API key · Please run /login'; exit 1\n");
        garden.arborist(["gardener", "--max-retries", "1"]).exits(2);
        forge(&garden, &format!(r#"{{"log-dir":"{folder}","report-dir":"{folder}"}}"#));
        assert_eq!(show(&garden)["options"]["log-dir"], folder, "it is forged");
        garden.agent(WORKER);
        garden.arborist(["session", "resume", &id(&garden)]).succeeds();
        assert!(garden.path("spec/logs").is_dir(), "{folder}");
        assert!(!garden.path("../outside").exists() && !garden.path(".git/hooks/T001").exists());
    }
}

#[test]
fn what_is_asked_for_later_is_not_forgotten() {
    let garden = garden();
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    garden.agent("exit 1\n");
    let run =
        ["gardener", "--session-branch", "--max-retries", "1", "--model", "small", "--max-tokens", "900"];
    garden.arborist(run).exits(1);
    let id = id(&garden);
    let more = ["session", "resume", &id, "--", "--runner", "robot", "--test-command", "test -f mended"];
    garden.arborist(more).exits(1);
    let expected = serde_json::json!({
        "max-retries": "1", "runner": "robot", "max-tokens": "900", "test-command": "test -f mended"
    });
    assert_eq!(show(&garden)["options"], expected, "the model was that of another runner");
    // Nothing new is asked for: nothing new is recorded.
    garden.arborist(["session", "resume", &id]).exits(1);
    let records =
        garden.git(["log", "--first-parent", "--format=%b", &format!("refs/arborist/sessions/{id}")]);
    assert_eq!(records.answer().matches("\"asked\":{").count(), 1);
    assert_eq!(show(&garden)["options"], expected);
    // The run itself records what it is given, and keeps the rest.
    garden.arborist(["gardener", "--session-branch", "--retry-failed", "--max-tokens", "800"]).exits(1);
    assert_eq!(show(&garden)["options"]["max-tokens"], "800");
    assert_eq!(show(&garden)["options"]["test-command"], "test -f mended");
    garden.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    garden.arborist(["session", "resume", &id]).succeeds();
}

const MENDER: &str = "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n";

#[test]
fn what_failed_its_tests_is_not_complete_without_them() {
    let garden = garden();
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let test = ["gardener", "--max-retries", "1", "--max-cost", "1.5", "--test-command", "test -f mended"];
    garden.arborist(test.iter().chain(&["--fallback", "demo", "--model", "small"])).exits(1);
    // The model is not asked for again, and is not said to be; the tests and the limit are.
    let again = ["gardener", "--retry-failed", "--max-retries", "1"];
    let said = garden.arborist(again).exits(1).shows();
    said.shows().never("no test command");
    let expected =
        serde_json::json!({"max-retries": "1", "max-cost": "1.5", "test-command": "test -f mended"});
    assert_eq!(show(&garden)["options"], expected);
    // One that nobody has approved here is shown first.
    fs::remove_dir_all(garden.home().join(".local/state/git-arborist/approved")).unwrap();
    let refused = garden.arborist(again).exits(2).shows();
    refused.shows();
    garden.agent(MENDER);
    garden.arborist(again.iter().chain(&["--yes"])).exits(2).shows();
    let given = ["--test-command", "test -f mended"];
    garden.arborist(again.iter().chain(&given)).succeeds().shows();
    // Where nothing is left to do, nothing is asked for.
    garden.arborist(["gardener"]).succeeds().shows();
    assert_eq!(show(&garden)["options"], expected);
}

#[test]
fn a_test_that_is_not_recorded_is_not_left_out_in_silence() {
    let garden = garden();
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let command = format!("KEY={SECRET} test -f mended");
    let said = garden.arborist(["gardener", "--max-retries", "1", "--test-command", &command]).exits(1);
    said.out(
        "next   git arborist gardener --retry-failed --max-retries 1 --test-command <the same as before>\n",
    );
    let (calls, refs) = (garden.calls(), garden.git(["for-each-ref"]).answer());
    let refused = garden.arborist(["gardener", "--retry-failed"]).exits(2);
    refused.shows();
    assert_eq!((garden.calls(), garden.git(["for-each-ref"]).answer()), (calls, refs));
    garden.agent(MENDER);
    garden.arborist(["gardener", "--retry-failed", "--test-command", &command]).succeeds();
    garden.arborist(["gardener"]).succeeds().shows();
    assert_eq!(show(&garden)["withheld"], serde_json::json!(["test-command"]));
}

#[test]
fn what_is_next_can_be_typed_as_it_stands() {
    let garden = garden();
    garden.agent("exit 1\n");
    let run = ["gardener", "--max-retries", "1", "--fallback", "robot", "--fallback", "demo:true"];
    let more = ["--model", "true", "--keep-going", "--test-command", "true"];
    let typed =
        "--fallback robot --fallback demo:true --keep-going --max-retries 1 --model true --test-command true";
    let said = garden.arborist(run.iter().chain(&more)).exits(1);
    said.out(&format!("next   git arborist gardener --retry-failed {typed}\n"));
    let again = ["gardener", "--retry-failed"].into_iter().chain(typed.split(' '));
    garden.arborist(again).exits(1).out(typed);
}
