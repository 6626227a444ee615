//! The engine `slurm` with a real cluster of several nodes on this machine.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    engines::kill_tree,
    shared_plan::{HELD, SharedPlan, WORKER},
};
use arborist_testkit::{Run, is_installed};
use tempfile::TempDir;

/// What a cluster needs.
const PROGRAMS: [&str; 4] = ["munged", "slurmctld", "slurmd", "sbatch"];

/// A cluster; ended when dropped.
struct Cluster {
    folder: TempDir,
    script: Child,
}

impl Cluster {
    /// Starts it. A node that does not answer for so many seconds is down. `None`, with a message, if it is not installed.
    fn start(nodes: u16, timeout: u16) -> Option<Self> {
        Self::start_with_disks((nodes, timeout), None)
    }

    /// The same, with a folder in which each node has its own files.
    fn start_with_disks((nodes, timeout): (u16, u16), local: Option<&Path>) -> Option<Self> {
        if let Some(missing) = PROGRAMS.into_iter().find(|program| !is_installed(program)) {
            eprintln!("skipped: {missing} is not installed here");
            return None;
        }
        // Another test may take a port before the cluster has it.
        let cluster = (0..3).find_map(|_| Self::try_start((nodes, timeout), local));
        assert!(cluster.is_some(), "the cluster does not start");
        cluster
    }

    fn try_start((nodes, timeout): (u16, u16), local: Option<&Path>) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("ga-slurm-").tempdir_in("/tmp").unwrap();
        let mut script = Command::new("tests/slurm/cluster.sh")
            .arg(folder.path())
            .args([nodes, free_ports(nodes + 1), timeout].map(|number| number.to_string()))
            .args(local)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.trim() != "ready" {
            let _ = script.wait();
            return None;
        }
        Some(Self { folder, script })
    }

    /// Submits workers.
    fn submit(&self, shared: &SharedPlan, args: &[&str]) -> Run {
        let mut command = shared.repo.command("git-arborist-work", &shared.clone(0));
        Run::of(command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).args(args), b"")
    }

    /// What a command of Slurm prints.
    fn ask(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).args(args);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// The processes of a job of this cluster: those that have its name in their environment.
    fn job_processes(&self, job: &str) -> Vec<String> {
        let cluster = format!("SLURM_CONF={}/", self.folder.path().display());
        let wanted = [format!("ARBORIST_JOB={job}\0"), cluster];
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let has_it = |id: &String| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            wanted.iter().all(|wanted| environment.contains(wanted))
        };
        ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())).filter(has_it).collect()
    }

    /// Waits until no job is left.
    fn wait_for_jobs(&self) {
        let begun = Instant::now();
        while !self.ask("squeue", &["--noheader"]).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{}", self.ask("squeue", &["--long"]));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ask("scancel", &["--me"]);
        let begun = Instant::now();
        while !self.ask("squeue", &["--noheader"]).is_empty() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// The first of so many ports that are free.
fn free_ports(count: u16) -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if first < u16::MAX - count && (first..first + count).all(is_free) {
            return first;
        }
    }
}

/// What the workers have printed.
fn logs(shared: &SharedPlan) -> String {
    let folder = shared.repo.home().join(".cache/git-arborist/workers");
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = folders.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten());
    let logs = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
    logs.map(|file| fs::read_to_string(file.path()).unwrap()).collect()
}

#[test]
fn a_slurm_array_of_workers_completes_the_plan() {
    let Some(cluster) = Cluster::start(2, 300) else { return };
    let shared = SharedPlan::new(4, 1, WORKER);
    let said = cluster.submit(&shared, &["--on", "slurm", "--workers", "2"]).succeeds();
    let said = said.out("submitted 2 workers to slurm: ").out("cancel  git arborist work cancel --on slurm ");
    let array = crate::engines::jobs(&said).remove(0);
    drop(said.out(&format!("logs    git arborist work logs --on slurm {array}")));
    shared.wait_for_all(4);
    cluster.wait_for_jobs();
    cluster.submit(&shared, &["logs", "--on", "slurm", &array]).succeeds().out("completed");
    for task in 1..=2 {
        let log = format!("spec/logs/workers/slurm/{array}_{task}.log");
        let there = format!(".cache/git-arborist/workers/*/{array}_{task}.log");
        let mut shell = shared.repo.command("sh", &shared.repo.home());
        let there = Run::of(shell.args(["-c", &format!("cat {there}")]), b"").succeeds().stdout();
        assert_eq!(fs::read_to_string(shared.clone(0).join(log)).unwrap(), there);
    }
    for task in 1..=4 {
        assert_eq!(shared.places(&format!("T{task:03}")).len(), 1, "{}", logs(&shared));
    }
    assert!(logs(&shared).contains("completed"));
}

#[test]
fn the_task_of_a_slurm_node_that_dies_is_finished_on_another_node() {
    let Some(cluster) = Cluster::start(2, 6) else { return };
    let shared = SharedPlan::new(1, 1, HELD);
    shared.set_ttl(90);
    cluster.submit(&shared, &["--on", "slurm", "--workers", "2"]).succeeds();
    let job = shared.job_of("T001");
    let node = cluster.ask("squeue", &["--noheader", "--format=%N", &format!("--jobs={job}")]);
    let node = node.trim();
    // Everything on the node: the worker, and what reports for it.
    let killed = Instant::now();
    let pid = fs::read_to_string(cluster.folder.path().join(format!("slurmd-{node}.pid"))).unwrap();
    kill_tree(pid.trim());
    for process in cluster.job_processes(&job) {
        kill_tree(&step_of(&process).unwrap_or(process));
    }
    shared.touch("go");
    shared.wait_for_all(1);
    // The other worker has asked, or the job was started again at the other node.
    let is_told = logs(&shared).contains("slurm says that job");
    assert!(is_told || killed.elapsed() < Duration::from_secs(90), "{}", logs(&shared));
    assert_eq!(shared.places("T001").len(), 2, "{}", logs(&shared));
}

/// Whether folders of the nodes can be different on this machine.
fn can_mount() -> bool {
    let mut command = Command::new("unshare");
    let tried = command.args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

#[test]
fn logs_on_disks_of_slurm_nodes_are_fetched_during_and_after_a_job() {
    if !can_mount() {
        eprintln!("skipped: nodes cannot have their own disks here, which needs root and unshare");
        return;
    }
    let shared = SharedPlan::new(1, 1, HELD);
    let folder = shared.repo.home().join(".cache/git-arborist/workers");
    fs::create_dir_all(&folder).unwrap();
    let Some(cluster) = Cluster::start_with_disks((1, 300), Some(&folder)) else { return };
    let said = cluster.submit(&shared, &["--on", "slurm", "--workers", "2"]).succeeds();
    let array = crate::engines::jobs(&said).remove(0);
    let job = shared.job_of("T001");
    assert_eq!(job, format!("{array}_1"));
    // The second worker has not begun: there is one node.
    let log = format!("spec/logs/workers/slurm/{job}.log");
    let said = cluster.submit(&shared, &["logs", "--on", "slurm", &array]).succeeds().out(&log);
    assert!(!said.stdout().contains(&format!("{array}_2")), "{}", said.stdout());
    cluster
        .submit(&shared, &["logs", "--on", "slurm", &format!("{array}_2")])
        .exits(128)
        .err("the job has not begun");
    let begin = fs::read_to_string(shared.clone(0).join(&log)).unwrap();
    assert!(begin.contains("cloned "), "{begin}");
    shared.touch("go");
    shared.wait_for_all(1);
    cluster.wait_for_jobs();
    cluster.submit(&shared, &["logs", "--on", "slurm", &job]).succeeds().out("1 completed");
    assert!(fs::read_to_string(shared.clone(0).join(&log)).unwrap().starts_with(&begin));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing of it is on this disk");
    cluster.submit(&shared, &["logs", "--on", "slurm", "999999"]).exits(128).err("999999");
}

#[test]
fn running_and_pending_slurm_jobs_can_be_cancelled() {
    let Some(cluster) = Cluster::start(1, 300) else { return };
    let shared = SharedPlan::new(1, 1, HELD);
    let said = cluster.submit(&shared, &["--on", "slurm", "--workers", "2"]).succeeds();
    let job = crate::engines::jobs(&said).remove(0);
    SharedPlan::until("the first task", || shared.exists("held-T001"));
    cluster.submit(&shared, &["cancel", "--on", "slurm", &job]).succeeds().out("cancelled ");
    cluster.wait_for_jobs();
    assert_eq!(shared.landings(), [] as [&str; 0]);
    assert_eq!(shared.left(), "", "the worker has given its task back");
}

/// The process of Slurm that has started a process and reports its end.
fn step_of(process: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned();
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    name.starts_with("slurmstepd").then_some(parent)
}
