//! Remotes over a network: a daemon that serves, and others that hang, refuse, or ask for a password.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use crate::git_daemon::GitDaemon;
use arborist_testkit::{Run, Terminal, TestRepo};

/// A remote with one commit, and a repository that knows it as `url`.
fn repo(url: &str) -> TestRepo {
    let repo = TestRepo::init();
    let path = repo.root().join("backend.git");
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", path.to_str().unwrap()]).succeeds();
    configure(&repo, url);
    repo
}

fn configure(repo: &TestRepo, url: &str) {
    configure_with(repo, url, 60);
}

/// The same with so many seconds of patience. Only a remote that hangs on purpose should get few: the others may be slow on a
/// busy machine.
fn configure_with(repo: &TestRepo, url: &str, patience: u32) {
    let folder = repo.home().join(".config/git-arborist");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "[workspace.repos.backend]\npath = \"../backend\"\nremote = \"{url}\"\n[timeouts]\nnetwork = {patience}\n"
    );
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// A clone that was made while the remote was there.
fn cloned(url: &str) -> TestRepo {
    let repo = repo(url);
    repo.git_in(repo.root(), ["clone", "-q", "backend.git", "backend"]).succeeds();
    repo
}

/// A session that could be pushed.
fn commit(repo: &TestRepo) {
    let clone = repo.root().join("backend");
    repo.git_in(&clone, ["branch", "arborist/plan/s1"]).succeeds();
    repo.git(["update-ref", "refs/arborist/sessions/s1", "HEAD"]).succeeds();
}

#[test]
fn workspace_commands_clone_fetch_and_push_through_a_git_daemon() {
    let repo = repo("");
    let daemon = GitDaemon::start(&repo);
    configure(&repo, &daemon.url("backend"));
    repo.arborist(["workspace", "sync"]).succeeds().out("backend: cloned from git://127.0.0.1");
    commit(&repo);
    repo.arborist(["workspace", "push"]).succeeds().out("pushed refs/heads/arborist/plan/s1");
    repo.arborist(["workspace", "sync"]).succeeds().out("backend: fetched from origin");
    drop(daemon);
    repo.arborist(["workspace", "sync"]).exits(1).err("'backend' was not fetched").out("backend: offline");
    let clone = repo.root().join("backend");
    repo.git_in(&clone, ["branch", "arborist/other/s1"]).succeeds();
    repo.arborist(["workspace", "push"]).exits(1).err("'backend' was not pushed").never("Username");
    repo.arborist(["workspace", "status"]).succeeds().out("unpushed: 1 ref");
}

#[test]
fn a_remote_whose_path_or_name_has_an_equals_sign_is_pushed_to() {
    let repo = repo("../a=b.git");
    repo.git_in(repo.root(), ["clone", "-q", "backend.git", "backend"]).succeeds();
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "a=b.git"]).succeeds();
    commit(&repo);
    repo.arborist(["workspace", "push"]).succeeds().out("pushed refs/heads/arborist/plan/s1");
    let clone = repo.root().join("backend");
    repo.git_in(&clone, ["remote", "add", "c=d", "../a=b.git"]).succeeds();
    repo.git_in(&clone, ["config", "remote.c=d.mirror", "true"]).succeeds();
    configure(&repo, "c=d");
    repo.git_in(&clone, ["branch", "arborist/other/s1"]).succeeds();
    repo.arborist(["workspace", "push"]).succeeds().out("pushed refs/heads/arborist/other/s1");
}

#[test]
fn a_remote_that_never_answers_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/backend.git", listener.local_addr().unwrap());
    let repo = cloned(&url);
    configure_with(&repo, &url, 1);
    commit(&repo);
    repo.arborist(["workspace", "sync"]).exits(1).err("no answer for 1 s");
    repo.arborist(["workspace", "push"]).exits(1).err("no answer for 1 s");
    fs::remove_dir_all(repo.root().join("backend")).unwrap();
    repo.arborist(["workspace", "sync"]).exits(1).err("no answer for 1 s");
    let left: Vec<String> = fs::read_dir(repo.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("cloning") || name == "backend")
        .collect();
    assert_eq!(left, [""; 0], "a clone that failed leaves nothing");
}

/// A server that wants a password; tells what each request had to say for itself.
fn locked_server() -> (String, Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/backend.git", listener.local_addr().unwrap());
    let (sender, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = sender.send(refuse(stream.unwrap()));
        }
    });
    (url, heard)
}

fn refuse(mut stream: TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        request.push(byte[0]);
    }
    let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(answer.as_bytes());
    let request = String::from_utf8(request).unwrap();
    request.lines().find_map(|line| line.strip_prefix("Authorization: ").map(str::to_owned))
}

/// Whether a request says this for itself. The server tells of a request after it has answered it.
fn is_heard(heard: &Receiver<Option<String>>, wanted: &str) -> bool {
    let requests = std::iter::from_fn(|| heard.recv_timeout(Duration::from_secs(60)).ok());
    requests.flatten().any(|answer| answer == wanted)
}

#[test]
fn a_remote_that_asks_for_a_password_causes_no_prompt() {
    let (url, _heard) = locked_server();
    let repo = cloned(&url);
    repo.arborist(["workspace", "sync"]).exits(1).err("terminal prompts disabled");
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "workspace", "sync"]);
    let (code, _, written) = Terminal::start(command, 100).ends();
    let is_asked = written.lines().any(|line| line.starts_with("Username for"));
    assert!(code == 1 && !is_asked, "{written}");
}

#[test]
fn askpass_and_credential_helpers_are_used_as_by_git() {
    let (url, heard) = locked_server();
    let repo = cloned(&url);
    repo.plant("answer", "#!/bin/sh\necho from-askpass\n");
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "workspace", "sync"]).env("GIT_ASKPASS", repo.bin().join("answer"));
    Run::of(&mut command, b"").exits(1);
    assert!(is_heard(&heard, "Basic ZnJvbS1hc2twYXNzOmZyb20tYXNrcGFzcw=="));
    let helper = "!f() { echo username=a; echo password=b; }; f";
    let mut command = repo.command("git", &repo.path(""));
    command.args(["-c", &format!("credential.helper={helper}"), "arborist", "workspace", "sync"]);
    Run::of(&mut command, b"").exits(1);
    assert!(is_heard(&heard, "Basic YTpi"));
}

/// What ssh was started with.
fn ssh_arguments(repo: &TestRepo, set: impl Fn(&mut Command)) -> String {
    let log = repo.root().join("ssh.log");
    let _ = fs::remove_file(&log);
    for name in ["ssh", "own-ssh"] {
        repo.plant(name, &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 255\n", log.display()));
    }
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "workspace", "sync"]);
    set(&mut command);
    Run::of(&mut command, b"").exits(1);
    fs::read_to_string(log).unwrap().lines().last().unwrap().to_owned()
}

#[test]
fn ssh_runs_in_batch_mode_and_keeps_the_options_of_the_user() {
    let repo = cloned("ssh://example.invalid/backend.git");
    let said = ssh_arguments(&repo, |_| ());
    assert!(said.contains("/ssh -o BatchMode=yes") && said.contains("example.invalid"), "{said}");
    let said = ssh_arguments(&repo, |command| {
        command.env("GIT_SSH_COMMAND", "ssh -i my-key");
    });
    assert!(said.contains("/ssh -i my-key -o BatchMode=yes"), "{said}");
    let said = ssh_arguments(&repo, |command| {
        command.env("GIT_SSH_COMMAND", "own-ssh --mine");
    });
    assert!(said.contains("/own-ssh --mine") && !said.contains("BatchMode"), "{said}");
    repo.git_in(Path::new(&repo.root().join("backend")), ["config", "core.sshCommand", "ssh -p 7"])
        .succeeds();
    let said = ssh_arguments(&repo, |_| ());
    assert!(said.contains("/ssh -p 7 -o BatchMode=yes"), "{said}");
}
