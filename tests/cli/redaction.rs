//! Secrets of the environment do not reach commits, logs, records or files, in whatever form they are printed.

use std::fs;

use arborist_testkit::{Run, Said, TestRepo};

const TOKEN: &str = "hunter2secretvalue";
const DATABASE: &str = "postgres://app:correcthorse9@db.example.com/app";
const PASSWORD: &str = "correct/horse battery";

/// The words of an agent, each line a way to print a secret, and what must not be left of it.
const WORDS: &[(&str, &str)] = &[
    ("split: hunter2\\033[31msecret\\033[0mvalue", "secretvalue"),
    ("overstruck: hunter2\\010secretvalue", "secretvalue"),
    ("returned: hunter2\\rsecretvalue", "secretvalue"),
    (
        "escaped: %%68%%75%%6E%%74%%65%%72%%32%%73%%65%%63%%72%%65%%74%%76%%61%%6C%%75%%65",
        "%72%32%73%65%63%72",
    ),
    ("database: postgres://app:correcthorse9@db.example.com/app", "correcthorse9"),
    ("its password: correcthorse9", "correcthorse9"),
    ("pwd: correct/horse battery", "horse battery"),
    ("encoded: correct%%2Fhorse%%20battery", "horse%20battery"),
    ("jwt: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "eyJzdWIi"),
    ("header: Authorization: Basic YWxpY2U6b3BlbnNlc2FtZQ==", "YWxpY2U6"),
    ("remote: https://alice:opensesame1@git.example.com/x.git", "opensesame1"),
    ("base64: aHVudGVyMnNlY3JldHZhbHVl", "aHVudGVyMnNlY3JldHZhbHVl"),
    ("inside: dXNlcjpodW50ZXIyc2VjcmV0dmFsdWU=", "ZXIyc2VjcmV0"),
    ("hex: 68756e7465723273656372657476616c7565", "68756e746572"),
    ("plain words stay: the Basic implementation of https://example.com/docs", ""),
];

fn repo(agent: &str) -> TestRepo {
    let agent = format!("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n{agent}");
    TestRepo::planned("tasks.md", "- [ ] T001 a\n", &agent)
}

fn garden(repo: &TestRepo, options: &[&str], code: i32) -> Said {
    let mut command = repo.command("git", &repo.path(""));
    command.env("API_TOKEN", TOKEN).env("DATABASE_URL", DATABASE).env("MY_PWD", PASSWORD);
    command.args(["arborist", "gardener", "--max-retries", "2"]).args(options);
    Run::of(&mut command, b"").exits(code)
}

#[test]
fn secrets_are_recognised_in_every_form_after_control_characters_are_removed() {
    let print: String = WORDS.iter().map(|(line, _)| format!("printf '{line}\\n'\n")).collect();
    let repo = repo(&format!("echo x > x.txt\n{print}"));
    garden(&repo, &[], 0);
    let commits = repo.git(["log", "--all", "--format=%B"]).answer();
    let records = repo.git(["log", "--all", "-p", "--format="]).answer();
    let logs: String = fs::read_dir(repo.path("spec/logs"))
        .unwrap()
        .map(|log| String::from_utf8_lossy(&fs::read(log.unwrap().path()).unwrap()).into_owned())
        .collect();
    assert!(commits.contains("split: [redacted]"), "{commits}");
    assert!(commits.contains("the Basic implementation of https://example.com/docs"), "{commits}");
    assert!(commits.contains("https://[redacted]@git.example.com/x.git"), "{commits}");
    for (line, secret) in WORDS.iter().filter(|(_, secret)| !secret.is_empty()) {
        for (place, text) in [("commits", &commits), ("records", &records), ("logs", &logs)] {
            assert!(!text.contains(secret), "{line} in {place}: {text}");
        }
    }
}

#[test]
fn a_secret_that_an_agent_writes_into_a_file_causes_a_warning() {
    let repo = repo("echo \"token = $API_TOKEN\" > config.py; printf %s \"$API_TOKEN\" | base64 > encoded\n");
    let said = garden(&repo, &[], 0);
    let said = said.err("warning: T001: the agent wrote the value of API_TOKEN into config.py");
    said.err("the agent wrote the value of API_TOKEN into encoded").never(TOKEN);
    assert_eq!(repo.git(["show", "HEAD:config.py"]).answer(), format!("token = {TOKEN}"));
}

#[test]
fn a_token_or_a_private_key_that_an_agent_writes_into_a_file_causes_a_warning() {
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let repo = repo(&format!(
        "echo 'token = {token}' > config.py
printf -- '-----BEGIN RSA PRIVATE KEY-----\\nAAAA\\n' > id_rsa
echo 'postgres://user:password@localhost/db; .sk-a-very-long-name-of-a-css-class' > harmless\n"
    ));
    let said = garden(&repo, &[], 0);
    let said = said.err("warning: T001: the agent wrote a token that begins with 'ghp_' into config.py");
    said.err("the agent wrote a private key into id_rsa").never("harmless").never(token);
}

#[test]
fn a_secret_that_was_in_the_file_before_causes_no_warning() {
    let repo = repo("echo more >> config.py\n");
    repo.write("config.py", format!("token = {TOKEN}\n"));
    repo.commit("a secret of the user's\n");
    garden(&repo, &[], 0).never("API_TOKEN");
}

#[test]
fn with_redact_files_refuse_an_attempt_that_writes_a_secret_fails() {
    let repo = repo(
        "echo good > good.txt; git add good.txt
case \"$prompt\" in *API_TOKEN*) echo 'token = env(1)' > config.py ;;
*) echo \"token = $API_TOKEN\" > config.py; git add config.py ;; esac\n",
    );
    repo.git(["config", "arborist.redact.files", "refuse"]).succeeds();
    garden(&repo, &[], 0);
    let why = repo.git(["log", "--format=%B", "--grep=T001@implement-fail"]).answer();
    assert!(why.contains("the agent wrote the value of API_TOKEN into config.py"), "{why}");
    assert_eq!(repo.git(["show", "HEAD:config.py"]).answer(), "token = env(1)");
    assert_eq!(repo.git(["show", "HEAD:good.txt"]).answer(), "good");
    assert!(!repo.git(["log", "--all", "-p", "--format=%B"]).answer().contains(TOKEN));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn with_redact_files_refuse_a_secret_in_a_file_name_or_in_utf_16_fails_the_attempt() {
    for (work, what) in [
        ("echo x > \"f-$API_TOKEN\"", "into the name of a file: f-"),
        ("printf %s \"$API_TOKEN\" | sed 's/./&\\x00/g' > wide", "into wide"),
    ] {
        let repo = repo(&format!("{work}\n"));
        repo.git(["config", "arborist.redact.files", "refuse"]).succeeds();
        let said = garden(&repo, &[], 1);
        said.err(&format!("the agent wrote the value of API_TOKEN {what}")).never(TOKEN);
        assert!(!repo.git(["log", "--all", "-p", "--text", "--format=%B"]).answer().contains(TOKEN));
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    }
}

#[test]
fn files_are_not_searched_for_secrets_if_the_search_is_off() {
    let repo = repo("echo \"token = $API_TOKEN\" > config.py\n");
    repo.git(["config", "arborist.redact.files", "off"]).succeeds();
    garden(&repo, &[], 0).never("API_TOKEN");
}

#[test]
fn a_tracked_configuration_cannot_relax_the_search_for_secrets_without_approval() {
    for value in ["off", "warn"] {
        let repo = repo("echo x > x.txt\n");
        repo.write(".arborist/config.toml", format!("redact.files = \"{value}\"\n"));
        repo.commit("settings\n");
        garden(&repo, &[], 2).err(&format!("redact.files = \"{value}\""));
        garden(&repo, &["--yes"], 0);
    }
}

#[test]
fn a_secret_in_a_test_command_is_not_printed_when_the_tests_begin() {
    for output in ["--verbose", "--json"] {
        let repo = repo("echo x > x.txt\n");
        let command = format!("echo {TOKEN} > /dev/null");
        let said = garden(&repo, &[output, "--test-command", &command], 0).never(TOKEN);
        let shown = format!("{}{}", said.stdout(), said.stderr());
        assert!(shown.contains("echo [redacted] > /dev/null"), "{shown}");
    }
}
