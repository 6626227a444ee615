//! The engine `ssh` against real servers on loopback, each with its own home folder, port and key.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    engines::{jobs, kill_tree},
    shared_plan::{HELD, SharedPlan, WORKER},
};
use arborist_testkit::Run;

/// The place of the server on Debian, which is on no ordinary user's `PATH`.
const SERVERS: [&str; 2] = ["/usr/sbin/sshd", "/usr/bin/sshd"];

/// An SSH server on its own port, which clients know under its own host name. It ends when it is dropped.
struct Host {
    name: &'static str,
    server: Child,
    port: u16,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A plan, and the hosts that clients in its folder can reach.
struct Network {
    shared: SharedPlan,
    hosts: Vec<Host>,
}

impl Network {
    /// Starts these hosts. `None`, with a message, if there is no server or client.
    fn start(shared: SharedPlan, names: &[&'static str]) -> Option<Self> {
        let server = SERVERS.into_iter().find(|server| Path::new(server).exists());
        let (Some(server), true) = (server, Path::new("/usr/bin/ssh").exists()) else {
            eprintln!("skipped: sshd or ssh is not installed here");
            return None;
        };
        // As root, the server insists on this folder.
        let _ = fs::create_dir("/run/sshd");
        let root = shared.repo.root().to_owned();
        make_key(&root.join("client"));
        let hosts: Vec<Host> = names.iter().map(|name| start_host(&shared, server, name)).collect();
        let user = Run::of(shared.repo.command("id", &root).arg("-un"), b"").answer();
        let mut config = String::new();
        for Host { name, port, .. } in &hosts {
            config += &format!("Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias {name}\n");
        }
        let path = root.display();
        config += &format!(
            "Host *\n  User {user}\n  IdentityFile \"{path}/client\"\n  IdentitiesOnly yes\n  UserKnownHostsFile \"{path}/known_hosts\"\n  GlobalKnownHostsFile /dev/null\n"
        );
        fs::write(root.join("ssh_config"), config).unwrap();
        let client = format!("#!/bin/sh\nexec /usr/bin/ssh -F '{path}/ssh_config' \"$@\"\n");
        shared.repo.plant("ssh", &client);
        Some(Self { shared, hosts })
    }

    fn home(&self, host: &str) -> PathBuf {
        self.shared.repo.root().join(format!("home-{host}"))
    }

    /// What the workers at a host have printed.
    fn logs(&self, host: &str) -> String {
        let folder = self.home(host).join(".cache/git-arborist/workers");
        let logs = fs::read_dir(folder).into_iter().flatten().flatten();
        let logs = logs.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten());
        let logs = logs.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "log"));
        logs.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
    }
}

fn make_key(file: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
    assert!(made.unwrap().success());
}

/// Starts a server whose sessions have their own home folder, and makes its key known.
fn start_host(shared: &SharedPlan, server: &str, name: &'static str) -> Host {
    let root = shared.repo.root();
    let home = root.join(format!("home-{name}"));
    fs::create_dir(&home).unwrap();
    Run::of(shared.repo.command("cp", root).args(["-r", "home/.config", "home/.gitconfig"]).arg(&home), b"")
        .succeeds();
    let key = root.join(format!("key-{name}"));
    make_key(&key);
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    // One host is not known to clients.
    if name != "stranger" {
        let known = fs::read_to_string(root.join("known_hosts")).unwrap_or_default();
        fs::write(root.join("known_hosts"), format!("{known}{name} {public}")).unwrap();
    }
    // A session has the variables of the test, but another home folder, and not the suite on its PATH.
    let command = shared.repo.command("sh", root);
    let mut session = String::new();
    for (key, value) in command.get_envs().filter_map(|(key, value)| Some((key.to_str()?, value?.to_str()?)))
    {
        let value = match key {
            "HOME" => home.display().to_string(),
            "PATH" => format!("{}:/usr/local/bin:/usr/bin:/bin", shared.repo.bin().display()),
            _ => value.to_owned(),
        };
        session += &format!("export {key}='{value}'\n");
    }
    session += "cd \"$HOME\"\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";
    fs::write(root.join(format!("session-{name}.sh")), session).unwrap();
    let path = root.display();
    let config = format!(
        "HostKey \"{path}/key-{name}\"\nAuthorizedKeysFile \"{path}/client.pub\"\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nListenAddress 127.0.0.1\nPidFile none\nForceCommand exec sh \"{path}/session-{name}.sh\"\n"
    );
    let file = root.join(format!("sshd-{name}"));
    fs::write(&file, config).unwrap();
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(server);
        command.arg("-D").arg("-f").arg(&file).args([
            "-E",
            &format!("{path}/sshd-{name}.log"),
            "-p",
            &port.to_string(),
        ]);
        let mut server = command.stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(120) && server.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Host { name, server, port };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(server.try_wait().unwrap().is_some(), "the server does not answer");
        let log = fs::read_to_string(root.join(format!("sshd-{name}.log"))).unwrap_or_default();
        assert!(log.contains("Address already in use"), "{log}");
    }
}

#[test]
fn ssh_workers_complete_the_plan_and_the_suite_is_copied_to_hosts_without_it() {
    let Some(network) = Network::start(SharedPlan::new(4, 1, WORKER), &["one", "two"]) else { return };
    let shared = &network.shared;
    let said = shared.submit(&["--on", "ssh:one,two"]).succeeds().out("submitted 2 workers to ssh: one/");
    let jobs = jobs(&said);
    shared.wait_for_all(4);
    SharedPlan::wait_for_end(jobs.iter().map(|job| job.split_once('/').unwrap().1));
    let places: Vec<String> = (1..=4).flat_map(|task| shared.places(&format!("T{task:03}"))).collect();
    assert_eq!(places.len(), 4, "every task is done once: {places:?}");
    for host in &network.hosts {
        let copies = network.home(host.name).join(".cache/git-arborist/bin");
        let copy = fs::read_dir(copies).unwrap().flatten().next().unwrap().path();
        assert!(copy.join("git-arborist-work").is_file());
        let workers = network.home(host.name).join(".cache/git-arborist/workers");
        assert!(workers.is_dir(), "{}", network.logs(host.name));
    }
    let printed = said.stdout();
    let show = printed.lines().find_map(|line| line.strip_prefix("  logs    git arborist work ")).unwrap();
    let shown = shared.submit(&show.split(' ').collect::<Vec<_>>()).succeeds().stdout();
    for job in &jobs {
        let (host, process) = job.split_once('/').unwrap();
        let log = format!("spec/logs/workers/ssh/{host}_{process}.log");
        assert!(shown.contains(&log), "{show}: {shown}");
        assert_eq!(fs::read_to_string(shared.clone(0).join(log)).unwrap(), network.logs(host));
    }
    let job = jobs[0].replace('/', "/9");
    shared.submit(&["logs", "--on", "ssh:one,two", &job]).exits(128).err("there is no log of job");
    shared.submit(&["logs", "--on", "ssh:one,two", "1"]).exits(129).err("names no host");
}

#[test]
fn the_task_of_a_killed_ssh_worker_is_finished_on_another_host() {
    let Some(network) = Network::start(SharedPlan::new(1, 1, HELD), &["one", "two"]) else { return };
    let shared = &network.shared;
    shared.set_ttl(60);
    for host in &network.hosts {
        fs::copy(shared.repo.home().join(".gitconfig"), network.home(host.name).join(".gitconfig")).unwrap();
    }
    let said = shared.submit(&["--on", "ssh:one,two"]).succeeds();
    let jobs = jobs(&said);
    let job = shared.job_of("T001");
    let (host, process) = job.split_once('/').unwrap();
    kill_tree(process);
    shared.touch("go");
    shared.wait_for_all(1);
    SharedPlan::wait_for_end(jobs.iter().map(|job| job.split_once('/').unwrap().1));
    let other = if host == "one" { "two" } else { "one" };
    let logs = network.logs(other);
    assert!(
        logs.contains(&format!("ssh says that job {job}, which held the claim on T001, is gone")),
        "{logs}"
    );
    assert_eq!(shared.places("T001").len(), 2);
}

#[test]
fn an_ssh_host_with_an_unknown_key_is_refused_and_no_worker_is_started() {
    let Some(network) = Network::start(SharedPlan::new(1, 1, WORKER), &["one", "stranger"]) else { return };
    let shared = &network.shared;
    let said = shared.submit(&["--on", "ssh:one,stranger"]).exits(128).err("Host key verification failed");
    drop(said.err("no worker was started"));
    assert!(!network.home("one").join(".cache/git-arborist/workers").exists());
    shared.submit(&["cancel", "--on", "ssh:one", "one/x;y"]).exits(129);
    assert_eq!(shared.repo.calls(), 0);
}
