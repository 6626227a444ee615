//! A hermetic repository for tests: its own home, no user or system configuration, a clock that stands
//! still unless told otherwise, and the commands of this build first on `PATH`.

#![allow(clippy::expect_used, reason = "a test that cannot set itself up must stop")]

mod message;
mod run;
mod shell;
mod snapshot;
mod template;
mod terminal;

pub use message::TaskCommit;
pub use run::{Run, Said};
pub use shell::{Shell, is_installed};
pub use snapshot::steady;
pub use terminal::Terminal;

use std::{
    cell::Cell,
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use rustix::fs::{Access, StatVfsMountFlags};
use tempfile::TempDir;
use template::Template;

/// Tests that kill a command at its calls of git try every n-th call: `usual`, or what `ARBORIST_EVERY_CALL` asks for.
pub fn call_stride(usual: usize) -> usize {
    std::env::var("ARBORIST_EVERY_CALL").ok().and_then(|stride| stride.parse().ok()).unwrap_or(usual)
}

/// Each deed with one of the modes in turn, so that every deed and every mode is tried. With `ARBORIST_EVERY_VARIANT`, each
/// deed with all modes.
///
/// Every mode has its turn even if there are fewer deeds than modes: the first deeds come again then.
pub fn pairs<A: Clone, B: Clone>(deeds: &[A], modes: &[B]) -> Vec<(A, B)> {
    if std::env::var_os("ARBORIST_EVERY_VARIANT").is_some() {
        let with_all = |deed: &A| modes.iter().map(|mode| (deed.clone(), mode.clone())).collect::<Vec<_>>();
        return deeds.iter().flat_map(with_all).collect();
    }
    let count = deeds.len().max(modes.len());
    let (deeds, modes) = (deeds.iter().cloned().cycle(), modes.iter().cloned().cycle());
    deeds.zip(modes).take(count).collect()
}

/// Runs a test with a limit of one second, and again with longer ones if it fails: on a busy machine, a short limit also ends
/// what is only slow. The test must have a repository of its own each time, and no snapshots.
pub fn with_longer_limits(test: impl Fn(u32)) {
    for seconds in [1, 10] {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(seconds))).is_ok() {
            return;
        }
    }
    test(60);
}

/// A new temporary folder with a space and a letter beyond ASCII in its name. Six digits tell it from others: random letters
/// would now and then spell what a test expects nowhere, such as the id of a task.
fn new_folder() -> TempDir {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static IN_MEMORY: LazyLock<bool> = LazyLock::new(has_memory);
    // Tables in snapshots are as wide as the paths in them, so that both paths are equally long.
    let is_in_memory = *IN_MEMORY && !ON_DISK.load(Ordering::Relaxed);
    let (place, name) = if is_in_memory { (MEMORY.into(), "ga") } else { (std::env::temp_dir(), "garden") };
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_mul(7919).wrapping_add(count) % 1_000_000;
        let mut builder = tempfile::Builder::new();
        match builder.prefix(&format!("{name} é {number:06}")).rand_bytes(0).tempdir_in(&place) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => return made.expect("a temporary directory"),
        }
    }
}

/// Whether folders must be on disk.
static ON_DISK: AtomicBool = AtomicBool::new(false);

/// Makes the folders of this process on disk from now on.
pub fn use_disk() {
    ON_DISK.store(true, Ordering::Relaxed);
}

/// Where files are in memory.
const MEMORY: &str = "/dev/shm";

/// Many times what the tests that run at the same moment hold together.
const LEAST_MEMORY: u64 = 2 << 30;

/// Whether folders are made in memory: unless `TMPDIR` names a place, and if programs can be started there. On ext4, all
/// tests together take half as much time again: whenever a file is created, it looks at every file that was deleted in the
/// last minutes.
fn has_memory() -> bool {
    let Ok(found) = rustix::fs::statvfs(MEMORY) else {
        return false;
    };
    let can_execute = !found.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let is_large = found.f_bavail.saturating_mul(found.f_frsize) >= LEAST_MEMORY;
    let is_writable = rustix::fs::access(MEMORY, Access::WRITE_OK).is_ok();
    std::env::var_os("TMPDIR").is_none() && can_execute && is_large && is_writable
}

/// The first moment of every repository: 2025-02-16 14:30:22 UTC.
pub const NOON: i64 = 1_739_716_222;

/// An agent that writes a file for each task, and approves.
pub const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt"; echo done ;;
esac
"#;

/// A repository in a directory of its own, removed when dropped.
#[derive(Debug)]
pub struct TestRepo {
    root: TempDir,
    repo: PathBuf,
    clock: Cell<i64>,
}

impl TestRepo {
    /// A repository on branch `main` with one commit.
    #[must_use]
    pub fn init() -> Self {
        static BEGUN: LazyLock<Template> = LazyLock::new(|| {
            let test_repo = TestRepo::with_options(&[]);
            test_repo.commit("begin\n");
            Template::of(&test_repo.repo)
        });
        let test_repo = Self::new();
        BEGUN.write_to(&test_repo.repo);
        test_repo
    }

    /// The folders for a repository that does not exist yet.
    fn new() -> Self {
        let root = new_folder();
        let repo = root.path().join("repo");
        fs::create_dir_all(root.path().join("home")).expect("a home");
        Self { root, repo, clock: Cell::new(NOON) }
    }

    /// The same with a plan in this file, which is committed, and an agent that works by this script.
    #[must_use]
    pub fn planned(file: &str, plan: &str, agent: &str) -> Self {
        let test_repo = Self::init();
        test_repo.write(file, plan);
        test_repo.commit("a plan\n");
        test_repo.agent(agent);
        test_repo
    }

    /// A repository without commits, made with these options of `git init`.
    #[must_use]
    pub fn with_options(options: &[&str]) -> Self {
        let test_repo = Self::new();
        let mut args = vec!["init", "-q", "-b", "main"];
        args.extend(options);
        let repo = test_repo.repo.clone();
        test_repo.git_in(test_repo.root(), args.iter().map(OsStr::new).chain([repo.as_os_str()])).succeeds();
        test_repo
    }

    /// The directory that holds the repository, the home and everything else.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// A path in the repository.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.repo.join(path)
    }

    /// Writes a file of the repository, with its folders.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    /// Writes an executable file of the repository. Another process does it: a program that any child of this one holds open
    /// for writing cannot be started, and other threads make children at all times.
    pub fn write_script(&self, path: &str, text: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        let mut writer = Command::new("sh")
            .args(["-c", r#"rm -f "$1" && cat >"$1" && chmod 755 "$1""#, "sh"])
            .arg(&file)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        writer.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("a script");
        assert!(writer.wait().expect("an end").success(), "{} is not written", file.display());
    }

    /// A folder that is first on `PATH`, for the programs of others. It need not exist.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    /// Puts a program first on `PATH`.
    pub fn plant(&self, name: &str, text: &str) {
        self.write_script(&format!("../bin/{name}"), text);
    }

    /// Installs the commands of this build in `dir`. Only those that look where they are installed are copied: all of them
    /// together have two gigabytes.
    pub fn install(&self, dir: &Path) {
        fs::create_dir_all(dir).expect("a folder");
        for entry in fs::read_dir(binaries()).expect("a folder").flatten() {
            let name = entry.file_name();
            match name.to_str().filter(|name| !name.contains('.')) {
                Some("git-arborist" | "git-arborist-install-assets") => {
                    let copy = Command::new("cp").arg(entry.path()).arg(dir.join(name)).status();
                    assert!(copy.expect("cp").success());
                }
                Some(name) if name.starts_with("git-arborist") => {
                    std::os::unix::fs::symlink(entry.path(), dir.join(name)).expect("a link");
                }
                _ => {}
            }
        }
    }

    /// Reads a file of the repository.
    #[must_use]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file")
    }

    /// Runs git in the repository.
    pub fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Run {
        self.git_in(&self.repo, args)
    }

    /// The subjects of all commits that refs lead to.
    #[must_use]
    pub fn subjects(&self) -> String {
        self.git(["log", "--format=%s", "--all"]).answer()
    }

    /// Writes a recovery note as a driver of this clone does: the ref, and the file that proves who wrote it.
    pub fn write_note(&self, name: &str, target: &str) {
        self.git(["update-ref", name, target]).succeeds();
        let digest =
            Run::of(self.command("git", &self.repo).args(["hash-object", "--stdin"]), name.as_bytes());
        self.write(&format!(".git/arborist/written/{}", digest.answer()), format!("{name} {target}\n"));
    }

    /// Runs git in another directory.
    pub fn git_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, dir: &Path, args: I) -> Run {
        Run::of(self.command("git", dir).args(args), b"")
    }

    /// Runs `git arborist` in the repository.
    pub fn arborist<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Run {
        self.arborist_in(&self.repo, args)
    }

    /// Runs `git arborist` in another directory.
    pub fn arborist_in<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, dir: &Path, args: I) -> Run {
        Run::of(self.command("git", dir).arg("arborist").args(args), b"")
    }

    /// Runs `git arborist` in the repository with `input` on standard input.
    pub fn arborist_with<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I, input: &[u8]) -> Run {
        Run::of(self.command("git", &self.repo).arg("arborist").args(args), input)
    }

    /// A command in the repository's environment, to be changed further and given to [`Run::of`].
    #[must_use]
    pub fn command(&self, program: &str, dir: &Path) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = [self.bin(), binaries()].into_iter().chain(std::env::split_paths(&path));
        // git looks for a repository neither in the root, where there is none, nor above it.
        let ceilings = self.root().ancestors().take(2);
        let date = format!("{} +0000", self.clock.get());
        let path = std::env::join_paths(dirs).expect("a PATH");
        // A name would be looked up after a fork, which copies the page tables of the whole test program.
        let program = which::which_in(program, Some(&path), dir).unwrap_or_else(|_| PathBuf::from(program));
        let mut command = Command::new(program);
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("TMPDIR", self.root())
            .env("TERM", "dumb")
            // Agents of tests leave marks outside of their worktree.
            .env("ARBORIST_SANDBOX", "off")
            .env("ARBORIST_SANDBOX_WRITE", self.root().join("prompts"))
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", std::env::join_paths(ceilings).expect("paths"))
            .env("GIT_TEST_DATE_NOW", self.clock.get().to_string());
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Ada")
                .env(format!("GIT_{who}_EMAIL"), "ada@example.com")
                .env(format!("GIT_{who}_DATE"), &date);
        }
        command
    }

    /// Moves the clock.
    pub fn wait(&self, seconds: i64) {
        self.clock.set(self.clock.get() + seconds);
    }

    /// Makes this shell script the user's runner. It gets the prompt on standard input, and `$ROOT` is the repository's root.
    /// Where it implements a task, changes nothing and exits with 0, it says that there was nothing to do, unless it begins
    /// with `trap - EXIT`.
    pub fn agent(&self, script: &str) {
        let file = self.root().join("agent.sh");
        let keep = "prompt=$(cat)\n[ -d \"$ROOT/prompts\" ] || mkdir -p \"$ROOT/prompts\"\nn=0\nset -C\nuntil { printf '%s\\n' \"$prompt\" > \"$ROOT/prompts/$n\"; } 2>/dev/null; do n=$((n+1)); done\nset +C\n";
        // It looks with a git that no test has planted.
        let idle = "trap 'code=$?; case \"$code$prompt\" in 0Implement*) [ -n \"$(PATH=${PATH#*:} git --no-optional-locks status --porcelain 2>/dev/null)\" ] || echo \"NOTHING TO DO: the script changes nothing\" ;; esac; exit $code' EXIT\n";
        let root = self.root().display();
        fs::write(&file, format!("ROOT='{root}'\n{keep}{idle}{script}\n")).expect("a script");
        fs::create_dir_all(self.root().join("prompts")).expect("a folder");
        let folder = self.home().join(".config/git-arborist");
        fs::create_dir_all(&folder).expect("a folder");
        let config =
            format!("runner = \"robot\"\n[runners.robot]\ncommand = [\"sh\", \"{}\"]\n", file.display());
        fs::write(folder.join("config.toml"), config).expect("a configuration");
    }

    /// What the agent was told in its n-th call, from 0.
    #[must_use]
    pub fn prompt(&self, call: usize) -> String {
        fs::read_to_string(self.root().join(format!("prompts/{call}"))).unwrap_or_default()
    }

    /// How often the agent was called.
    #[must_use]
    pub fn calls(&self) -> usize {
        fs::read_dir(self.root().join("prompts")).map_or(0, Iterator::count)
    }

    /// Commits everything in the repository with exactly this message, and gives the commit's id.
    pub fn commit(&self, message: impl AsRef<[u8]>) -> String {
        self.git(["add", "-A"]).succeeds();
        if self.commit_at_once(message.as_ref()) {
            return self.read_head().unwrap_or_else(|| self.git(["rev-parse", "HEAD"]).answer());
        }
        let tree = self.git(["write-tree"]).answer();
        let parent = self.git(["rev-parse", "-q", "--verify", "HEAD"]);
        let parents = if parent.code() == 0 { vec![parent.answer()] } else { vec![] };
        let commit = self.commit_object(&tree, &parents, message);
        self.git(["reset", "-q", "--soft", &commit]).succeeds();
        commit
    }

    /// The commit of `HEAD`, if its ref is a file.
    fn read_head(&self) -> Option<String> {
        let head = fs::read_to_string(self.path(".git/HEAD")).ok()?;
        let name = head.trim_end().strip_prefix("ref: ")?;
        let id = fs::read_to_string(self.path(".git").join(name)).ok()?;
        Some(id.trim_end().to_owned()).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }

    /// Commits the index with one call of git, which runs no hook. Not while a merge or the like is in progress, which it would
    /// end, and not with a message that git refuses or changes.
    fn commit_at_once(&self, message: &[u8]) -> bool {
        let unfinished = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];
        if !message.is_ascii() || unfinished.iter().any(|name| self.path(".git").join(name).exists()) {
            return false;
        }
        let options = ["-c", "core.hooksPath=/dev/null", "-c", "maintenance.auto=false"];
        let commit = ["commit", "-q", "--cleanup=verbatim", "--allow-empty", "--allow-empty-message"];
        let plain = ["--no-gpg-sign", "--file=-"];
        let args = options.iter().chain(&commit).chain(&plain);
        Run::of(self.command("git", &self.repo).args(args), message).code() == 0
    }

    /// Writes a commit object with exactly this message, and moves no ref.
    pub fn commit_object(&self, tree: &str, parents: &[String], message: impl AsRef<[u8]>) -> String {
        let person = format!("Ada <ada@example.com> {} +0000", self.clock.get());
        let mut object = format!("tree {tree}\n");
        for parent in parents {
            object.push_str(&format!("parent {parent}\n"));
        }
        object.push_str(&format!("author {person}\ncommitter {person}\n\n"));
        let mut object = object.into_bytes();
        object.extend_from_slice(message.as_ref());
        let args = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
        Run::of(self.command("git", &self.repo).args(args), &object).answer()
    }

    /// Commits a task's step in the form of the contract. A completion follows the steps that it needs, which change
    /// nothing; what is in the checkout is committed with the completion itself.
    pub fn task(&self, task: &str, status: &str) -> String {
        self.commit_complete(&TaskCommit::new(task, status))
    }

    /// Commits everything with this message; a completion after the steps that it needs, which change nothing.
    pub fn commit_complete(&self, complete: &TaskCommit) -> String {
        let mut tip = "HEAD".to_owned();
        for step in complete.steps_before() {
            let args = ["commit-tree", "-p", &tip, "HEAD^{tree}"];
            let step = step.to_string();
            tip = Run::of(self.command("git", &self.repo).args(args), step.as_bytes()).answer();
        }
        if tip != "HEAD" {
            self.git(["reset", "-q", "--soft", &tip]).succeeds();
        }
        self.commit(complete.to_string())
    }

    /// The message of the landing of what `source` names.
    #[must_use]
    pub fn landing(&self, task: &str, source: &str) -> String {
        let source = self.git(["rev-parse", &format!("{source}^{{commit}}")]).answer();
        TaskCommit::new(task, "merge").trailer("Source", &source).to_string()
    }

    /// Commits the start of a run of `branch`.
    pub fn run_start(&self, branch: &str, session: &str) -> String {
        let base = self.git(["rev-parse", "HEAD"]).answer();
        self.commit(TaskCommit::run_start(branch, session, &base).to_string())
    }
}

/// Where this build put the commands: beside the folder of the test that runs.
fn binaries() -> PathBuf {
    let test = std::env::current_exe().expect("a test program");
    test.ancestors().nth(2).expect("a target folder").to_owned()
}
