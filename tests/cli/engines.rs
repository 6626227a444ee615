//! `git arborist work --on`: engines start workers on other machines.

use std::fs;

use crate::shared_plan::{HELD, SharedPlan, WORKER};
use arborist_testkit::{Run, Said};
use serde_json::{Value, json};

/// Starts workers as processes of this machine.
const SUBMIT: &str = r#"cat > worker.sh; for n in $(seq {workers}); do nohup sh worker.sh >>workers.log 2>&1 </dev/null & echo $!; done"#;

impl SharedPlan {
    /// Defines an engine for all clones.
    pub(crate) fn define_engine(&self, name: &str, keys: &[(&str, &str)]) {
        for (key, value) in keys {
            let key = format!("arborist.engines.{name}.{key}");
            self.repo.git(["config", "--global", &key, value]).succeeds();
        }
    }

    /// Submits workers from the first clone.
    pub(crate) fn submit(&self, args: &[&str]) -> Run {
        let mut command = self.repo.command("git-arborist-work", &self.clone(0));
        Run::of(command.args(args), b"")
    }

    /// The claims that `state --remote` shows.
    pub(crate) fn claims(&self) -> Vec<Value> {
        let json = self.repo.arborist_in(&self.clone(0), ["state", "--remote", "--json"]).answer();
        crate::schemas::validate("state-remote", &json);
        let state: Value = serde_json::from_str(&json).unwrap();
        state["claims"].as_array().unwrap().clone()
    }

    /// Waits until the task is being worked on. Returns the job of its worker.
    pub(crate) fn job_of(&self, task: &str) -> String {
        Self::until("a claim", || self.exists(&format!("held-{task}")));
        let claims = self.claims();
        let claim = claims.iter().find(|claim| claim["task"] == task).unwrap();
        claim["job"].as_str().unwrap().to_owned()
    }

    /// Waits until all of the plan has landed and no claim is left.
    pub(crate) fn wait_for_all(&self, tasks: usize) {
        Self::until("the landings", || self.landings().len() == tasks);
        Self::until("the last claim", || self.left().is_empty());
    }

    /// Waits until these processes have ended.
    pub(crate) fn wait_for_end<'a>(processes: impl IntoIterator<Item = &'a str>) {
        for process in processes {
            Self::until("the end of a worker", || !is_alive(process));
        }
    }
}

/// Whether a process is running. A zombie is not.
fn is_alive(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Kills a process and everything that it has started.
pub(crate) fn kill_tree(process: &str) {
    let mut ids = vec![process.to_owned()];
    let mut at = 0;
    while at < ids.len() {
        let children = format!("/proc/{0}/task/{0}/children", ids[at]);
        let text = fs::read_to_string(children).unwrap_or_default();
        ids.extend(text.split_whitespace().map(str::to_owned));
        at += 1;
    }
    // Some of them may have ended.
    let _ = std::process::Command::new("kill").arg("-KILL").args(&ids).output().unwrap();
}

/// The jobs that a submission has printed.
pub(crate) fn jobs(said: &Said) -> Vec<String> {
    let text = said.stdout();
    let first = text.lines().next().unwrap();
    first.split_once(": ").unwrap().1.split(' ').map(str::to_owned).collect()
}

#[test]
fn workers_started_by_a_custom_engine_complete_the_plan() {
    let shared = SharedPlan::new(4, 1, WORKER);
    let dir = shared.repo.root().join("their clones").display().to_string();
    let logs = "echo 'job '{job}' in '{dir}; cat workers.log";
    let keys = [("submit", SUBMIT), ("cancel", "kill {job}"), ("dir", dir.as_str()), ("logs", logs)];
    shared.define_engine("local", &keys);
    let said = shared.submit(&["--on", "local", "--workers", "2"]).succeeds();
    let jobs = jobs(&said);
    assert_eq!(jobs.len(), 2, "{}", said.stdout());
    let logs = format!("logs    git arborist work logs --on local {}", jobs.join(" "));
    for line in
        ["watch   git arborist state --remote", "cancel  git arborist work cancel --on local ", logs.as_str()]
    {
        assert!(said.stdout().contains(line), "{}", said.stdout());
    }
    shared.wait_for_all(4);
    SharedPlan::wait_for_end(jobs.iter().map(String::as_str));
    let places: Vec<String> = (1..=4).flat_map(|task| shared.places(&format!("T{task:03}"))).collect();
    assert!(places.len() == 4 && places.iter().all(|place| place.contains("/their clones/arborist-main-")));
    shared.submit(&["logs", "--on", "local", &jobs[0], &jobs[1]]).succeeds().out("completed");
    for job in &jobs {
        let log = shared.clone(0).join(format!("spec/logs/workers/local/{job}.log"));
        let first = fs::read_to_string(log).unwrap().lines().next().unwrap().to_owned();
        assert_eq!(first, format!("job {job} in {dir}"));
    }
    assert_eq!(
        shared.repo.git_in(&shared.clone(0), ["status", "--porcelain"]).answer(),
        "?? worker.sh\n?? workers.log",
        "logs are hidden"
    );
}

#[test]
fn worker_logs_are_truncated_stripped_of_escape_sequences_and_not_written_through_links() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let logs = r"printf 'first\n'; yes line | head -n 400000; printf '\033[2J\033]0;x\007bad\r\n'";
    let jobs = "case {job} in all) echo 7; echo ../../8; echo ' '; echo '$(x)' ;; esac";
    shared.define_engine("mine", &[("submit", "true"), ("jobs", jobs), ("logs", logs)]);
    let folder = shared.clone(0).join("my logs/workers/mine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(shared.repo.root().join("precious"), "x").unwrap();
    std::os::unix::fs::symlink(shared.repo.root().join("precious"), folder.join("7.log")).unwrap();
    shared.repo.git_in(&shared.clone(0), ["config", "arborist.log-dir", "my logs"]).succeeds();
    shared.submit(&["logs", "--on", "mine", "all"]).succeeds().matches_snapshot();
    let log = fs::read_to_string(folder.join("7.log")).unwrap();
    assert_eq!((log.chars().count(), log.contains("first")), (1_000_000, false));
    assert!(folder.join(".._.._8.log").is_file());
    assert_eq!(fs::read_to_string(shared.repo.root().join("precious")).unwrap(), "x");
    assert_eq!(shared.repo.git_in(&shared.clone(0), ["status", "--porcelain"]).answer(), "");
    // A folder that is a link is not entered.
    fs::rename(&folder, folder.with_file_name("old")).unwrap();
    std::os::unix::fs::symlink(shared.repo.root(), &folder).unwrap();
    shared
        .submit(&["logs", "--on", "mine", "9"])
        .exits(128)
        .err("could not write 'my logs/workers/mine/9.log'");
    assert!(!shared.exists("9.log"));
}

#[test]
fn worker_logs_that_cannot_be_fetched_are_reported_and_the_others_are_stored() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let logs = "case {job} in 1) echo one ;; 2) echo 'no such job' >&2; exit 1 ;; *) exit 3 ;; esac";
    shared.define_engine("mine", &[("submit", "true"), ("logs", logs)]);
    shared.define_engine("silent", &[("submit", "true")]);
    shared.define_engine("wrong", &[("submit", "true"), ("logs", "cat {jbo}")]);
    shared.submit(&["logs", "--on", "mine", "1", "2", "3"]).exits(128).matches_snapshot();
    assert_eq!(fs::read_to_string(shared.clone(0).join("spec/logs/workers/mine/1.log")).unwrap(), "one\n");
    shared.submit(&["logs", "--on", "mine"]).exits(1).matches_snapshot();
    shared.submit(&["logs", "--on", "silent", "1"]).exits(1).matches_snapshot();
    shared.submit(&["logs", "--on", "wrong", "1"]).exits(1).matches_snapshot();
    shared.submit(&["logs", "--on", "mine", "1;x"]).exits(129).matches_snapshot();
}

#[test]
fn work_logs_without_a_job_fetches_the_logs_of_all_jobs_that_work_on_tasks() {
    let shared = SharedPlan::new(1, 1, HELD);
    let keys = [("submit", SUBMIT), ("logs", "echo {job} >> asked; cat workers.log")];
    shared.define_engine("local", &keys);
    let said = shared.submit(&["--on", "local"]).succeeds();
    let job = shared.job_of("T001");
    shared.submit(&["logs", "--on", "local"]).succeeds().out(&format!("workers/local/{job}.log"));
    assert_eq!(fs::read_to_string(shared.clone(0).join("asked")).unwrap(), format!("{job}\n"));
    shared.touch("go");
    shared.wait_for_all(1);
    SharedPlan::wait_for_end(jobs(&said).iter().map(String::as_str));
}

#[test]
fn a_task_of_a_dead_job_is_taken_over_before_its_claim_expires() {
    let shared = SharedPlan::new(1, 1, HELD);
    shared.set_ttl(60);
    // A process that has ended stays in the table until its parent has waited for it.
    let alive = "state=$(ps -o stat= -p {job}); case $?$state in 1|0Z*) echo gone ;; 0*) echo alive ;; esac";
    shared.define_engine("local", &[("submit", SUBMIT), ("alive", alive)]);
    let said = shared.submit(&["--on", "local", "--workers", "2"]).succeeds();
    let jobs = jobs(&said);
    let job = shared.job_of("T001");
    assert!(jobs.contains(&job), "{job} {jobs:?}");
    kill_tree(&job);
    shared.touch("go");
    shared.wait_for_all(1);
    SharedPlan::wait_for_end(jobs.iter().map(String::as_str));
    assert_eq!(shared.places("T001").len(), 2);
    let log = fs::read_to_string(shared.clone(0).join("workers.log")).unwrap();
    assert!(
        log.contains(&format!("local says that job {job}, which held the claim on T001, is gone")),
        "{log}"
    );
}

#[test]
fn workers_run_only_commands_that_their_submitter_has_approved() {
    let agent = r#"env > "$ROOT/environment"; case "$prompt" in "Review"*) echo APPROVED ;; *) echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let shared = SharedPlan::new(1, 1, agent);
    shared.define_engine("later", &[("submit", "cat > ../worker.sh")]);
    let configure = |command: &str| {
        fs::create_dir_all(shared.clone(0).join(".arborist")).unwrap();
        let text = format!("test-command = \"{command}\"\n");
        fs::write(shared.clone(0).join(".arborist/config.toml"), text).unwrap();
        shared.repo.git_in(&shared.clone(0), ["add", "."]).succeeds();
        shared.repo.git_in(&shared.clone(0), ["commit", "-qm", "configure"]).succeeds();
        shared.repo.git_in(&shared.clone(0), ["push", "-q"]).succeeds();
    };
    let work = || {
        let mut command = shared.repo.command("sh", shared.repo.root());
        Run::of(command.arg("worker.sh"), b"")
    };
    configure("true");
    shared.submit(&["--on", "later"]).exits(2).matches_snapshot();
    assert!(!shared.exists("worker.sh"));
    shared.submit(&["--on", "later", "--yes"]).succeeds();
    configure("touch ../../../../../../../bad");
    work().exits(2).err("you have not approved them");
    assert_eq!(shared.repo.calls(), 0);
    configure("true");
    work().succeeds().out("1 completed");
    let seen = fs::read_to_string(shared.repo.root().join("environment")).unwrap();
    for name in ["ARBORIST_APPROVED", "ARBORIST_ENGINE", "ARBORIST_JOB"] {
        assert!(!seen.contains(&format!("{name}=")), "agents do not see {name}");
    }
}

#[test]
fn commands_of_an_engine_in_a_tracked_file_need_approval() {
    let shared = SharedPlan::new(1, 1, WORKER);
    fs::create_dir_all(shared.clone(0).join(".arborist")).unwrap();
    let text = "[engines.mine]\nsubmit = \"touch ../started\"\ncancel = \"touch ../cancelled\"\nlogs = \"touch ../asked\"\n";
    fs::write(shared.clone(0).join(".arborist/config.toml"), text).unwrap();
    shared.submit(&["--on", "mine"]).exits(2).matches_snapshot();
    shared.submit(&["cancel", "--on", "mine", "1"]).exits(2);
    shared.submit(&["logs", "--on", "mine", "1"]).exits(2).err("engines.mine.logs: touch ../asked");
    assert!(!shared.exists("started") && !shared.exists("cancelled") && !shared.exists("asked"));
    shared.submit(&["--on", "mine", "--yes"]).succeeds();
    shared.submit(&["cancel", "--on", "mine", "1"]).succeeds().out("cancelled 1");
    shared.submit(&["logs", "--on", "mine", "1"]).succeeds().out("workers/mine/1.log (empty)");
    assert!(shared.exists("started") && shared.exists("cancelled") && shared.exists("asked"));
}

#[test]
fn an_unavailable_engine_is_an_error_and_nothing_runs_locally() {
    let shared = SharedPlan::new(1, 1, WORKER);
    shared
        .repo
        .plant("sbatch", "#!/bin/sh\necho 'sbatch: error: Unable to contact slurm controller' >&2\nexit 1\n");
    shared.submit(&["--on", "slurm", "--workers", "40"]).exits(128).matches_snapshot();
    shared.submit(&["--on", "nowhere"]).exits(129).matches_snapshot();
    shared.submit(&["--on", "ssh"]).exits(129).matches_snapshot();
    shared.submit(&["--on", "ssh:-oProxyCommand=x"]).exits(129).matches_snapshot();
    shared.define_engine("wrong", &[("submit", "true {wrokers}")]);
    shared.submit(&["--on", "wrong"]).exits(1).matches_snapshot();
    assert_eq!((shared.repo.calls(), shared.landings().len()), (0, 0));
}

#[test]
fn submitting_unpushed_commits_or_secrets_to_workers_is_refused() {
    let shared = SharedPlan::new(1, 1, WORKER);
    shared.define_engine("later", &[("submit", "cat > ../worker.sh")]);
    let mut command = shared.repo.command("git-arborist-work", &shared.clone(0));
    command.env("MY_TOKEN", "s3cret-value-of-a-token");
    command.args(["--on", "later", "--test-command", "curl -H s3cret-value-of-a-token x"]);
    Run::of(&mut command, b"").exits(129).matches_snapshot();
    shared.repo.git_in(&shared.clone(0), ["commit", "--allow-empty", "-qm", "mine"]).succeeds();
    shared.submit(&["--on", "later"]).exits(2).err("has commits that 'origin' does not have");
    shared.repo.git_in(&shared.clone(0), ["reset", "-q", "--hard", "origin/main"]).succeeds();
    let url = format!("file://ada:pass@{}", shared.origin().display());
    let key = format!("url.{}.insteadOf", shared.origin().display());
    shared.repo.git_in(&shared.clone(0), ["config", &key, &url]).succeeds();
    shared.repo.git_in(&shared.clone(0), ["config", "remote.origin.url", &url]).succeeds();
    shared.submit(&["--on", "later"]).exits(129).matches_snapshot();
    assert!(!shared.exists("worker.sh"));
}

#[test]
fn work_dry_run_shows_the_submission_without_starting_workers() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let said =
        shared.submit(&["--on", "ssh:one,two", "--workers", "3", "--jobs", "2", "--dry-run"]).succeeds();
    let said = said.out("StrictHostKeyChecking=yes").out("--branch=main --jobs=2");
    assert_eq!(said.stdout().matches("set -eu").count(), 2);
    let said = shared.submit(&["--on", "slurm", "--workers", "40", "--dry-run"]).succeeds();
    said.out("sbatch --parsable --requeue --array=1-40 ").out("SLURM_ARRAY_TASK_ID");
    assert_eq!(shared.repo.calls(), 0);
}

#[test]
fn workers_get_each_recorded_option_once_for_each_value() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let typed = ["--allow", "a.lock", "--allow", "b,c.lock", "--fallback", "claude", "--fallback", "codex"];
    let said = shared.submit(&[&["--on", "ssh:one", "--dry-run"], &typed[..]].concat()).succeeds();
    let script = said.stdout();
    let options = script.lines().find_map(|line| line.split_once("--branch=main ")).unwrap().1;
    let options: Vec<&str> = options.split(' ').filter(|option| option.starts_with("--")).collect();
    let expected = ["--allow=a.lock", "--allow=b,c.lock", "--fallback=claude", "--fallback=codex"];
    assert_eq!(options, expected, "{script}");
}

#[test]
fn kubernetes_gets_an_indexed_job_from_a_manifest_that_can_be_edited() {
    let shared = SharedPlan::new(1, 1, WORKER);
    let root = shared.repo.root().display().to_string();
    let kubectl = format!(
        "#!/bin/sh\necho \"$*\" >> '{root}/kubectl.log'\ncase $1 in create) cat > '{root}/manifest'; echo job.batch/arborist-main-1 ;; get) echo arborist-main-1-0-x ;; logs) echo said ;; esac\n"
    );
    shared.repo.plant("kubectl", &kubectl);
    let submit = ["--on", "kubernetes", "--workers", "7"];
    shared.submit(&submit).exits(2).matches_snapshot();
    shared.submit(&submit).exits(2).matches_snapshot();
    let file = shared.clone(0).join(".arborist/engines/kubernetes.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("registry.example.com/git-arborist:latest", "mine/worker:1")).unwrap();
    shared.submit(&submit).exits(2).err("mine/worker:1");
    assert!(!shared.exists("manifest"));
    let mut yes = submit.to_vec();
    yes.push("--yes");
    let said =
        shared.submit(&yes).succeeds().out("submitted 7 workers to kubernetes: job.batch/arborist-main-1");
    drop(said.out("logs    git arborist work logs --on kubernetes job.batch/arborist-main-1"));
    // The manifest need not be approved again for this.
    let logs = shared.submit(&["logs", "--on", "kubernetes", "job.batch/arborist-main-1"]).succeeds();
    drop(logs.out("spec/logs/workers/kubernetes/arborist-main-1-0-x.log\n  said"));
    shared.submit(&["cancel", "--on", "kubernetes", "job.batch/arborist-main-1"]).succeeds();
    let log = fs::read_to_string(shared.repo.root().join("kubectl.log")).unwrap();
    assert_eq!(
        log,
        "create --output=name --filename=-\nget pods --selector=job-name=arborist-main-1 --no-headers --output=custom-columns=:metadata.name\nlogs --tail=100000 arborist-main-1-0-x\ndelete job.batch/arborist-main-1\n"
    );
    let manifest = yaml(&fs::read_to_string(shared.repo.root().join("manifest")).unwrap());
    let job = |pointer: &str| {
        manifest.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {manifest:#}")).clone()
    };
    assert_eq!((job("/apiVersion"), job("/kind")), (json!("batch/v1"), json!("Job")));
    let name = job("/metadata/name").as_str().unwrap().to_owned();
    assert!(name.starts_with("arborist-main-") && name.len() <= 63, "{name}");
    assert_eq!(job("/spec/completionMode"), "Indexed");
    assert_eq!((job("/spec/completions"), job("/spec/parallelism")), (json!(7), json!(7)));
    assert_eq!(job("/spec/template/spec/restartPolicy"), "Never");
    assert!(job("/spec/backoffLimitPerIndex").is_u64());
    assert_eq!(job("/spec/podFailurePolicy/rules/1/onExitCodes/values"), json!([1, 2, 3, 129]));
    let container = job("/spec/template/spec/containers/0");
    assert_eq!(container["image"], "mine/worker:1");
    assert_eq!(container["volumeMounts"][0]["name"], job("/spec/template/spec/volumes/0/name"));
    let command = container["command"].as_array().unwrap();
    assert_eq!(command[..2], [json!("sh"), json!("-c")]);
    // What Kubernetes makes of it is a shell script.
    let script = command[2].as_str().unwrap().replace("$$", "$");
    let mut shell = shared.repo.command("sh", shared.repo.root());
    Run::of(shell.args(["-n", "-c", &script]), b"").succeeds();
    assert!(script.contains("ARBORIST_JOB:=$HOSTNAME") && script.contains("exec git-arborist-work --clone="));
}

/// Reads the part of YAML that manifests use: maps and lists by indentation, and values on one line that are JSON or plain.
fn yaml(text: &str) -> Value {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines: Vec<(usize, String)> = text
        .lines()
        .filter(is_content)
        .map(|line| (line.len() - line.trim_start().len(), line.trim().to_owned()))
        .collect();
    let (value, rest) = block(&lines);
    assert!(rest.is_empty(), "not understood: {rest:?}");
    value
}

fn block(lines: &[(usize, String)]) -> (Value, &[(usize, String)]) {
    let indent = lines[0].0;
    let mut rest = lines;
    let mut value = if lines[0].1.starts_with("- ") { json!([]) } else { json!({}) };
    while let Some((at, line)) = rest.first().filter(|(at, _)| *at >= indent) {
        assert_eq!(*at, indent, "{line}");
        if let (Some(items), Some(item)) = (value.as_array_mut(), line.strip_prefix("- ")) {
            // The item is a map whose first line stands behind the dash.
            let end = rest[1..].iter().position(|(at, _)| *at <= indent).map_or(rest.len(), |end| end + 1);
            let mut inner = rest[..end].to_vec();
            inner[0] = (indent + 2, item.to_owned());
            let (item, left) = block(&inner);
            assert!(left.is_empty(), "{left:?}");
            items.push(item);
            rest = &rest[end..];
            continue;
        }
        let (key, inline) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
        rest = &rest[1..];
        let inner = match inline.trim() {
            "" => {
                let (inner, left) = block(rest);
                rest = left;
                inner
            }
            word => serde_json::from_str(word).unwrap_or_else(|_| json!(word)),
        };
        value.as_object_mut().unwrap().insert(key.to_owned(), inner);
    }
    (value, rest)
}
