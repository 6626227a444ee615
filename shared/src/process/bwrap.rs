//! Runs a child with bubblewrap (`bwrap`), in mount and PID namespaces of its own: the file system is read-only except
//! for the folders of its [`Confinement`], it sees no process outside, and all of its processes end with it.
//!
//! `bwrap` forks. The process that we start waits for the child and passes its exit code on (128 and the number of a
//! signal that ended it). Process 1 of the namespace is a second `bwrap`, which adopts orphans. `--die-with-parent` kills
//! both when the thread ends that started them, so a confined child must be started by the thread that waits for it.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{
    Program,
    find::is_executable,
    mounts::{MountKind, Mounts, ReplacedPath, wrap_with},
    rights::KEPT_BY_ROOT,
};
use crate::safe_files;

/// Parts of `/proc` in which root could change settings of the whole machine, such as the program that handles crashes. The
/// kernel asks only for the user there, so dropping rights does not help, and bwrap itself leaves some of them writable.
const SETTINGS_OF_THE_KERNEL: [&str; 6] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/mtrr"];

/// A script that fails if the namespaces do not limit it.
const TRIAL: &str = "echo x > open/file && ! echo x 2>/dev/null > closed/file && test ! -e hidden/file \
                     && test $$ -lt 10 && test -r /proc/self/status && test ! -w /proc/sys/kernel/hostname && : > /dev/null";

/// The program, if a trial shows that it works here. This is tried once.
pub(super) fn find() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let search = || {
        let file = search_path(&std::env::var_os("PATH")?)?;
        try_out(&file).unwrap_or(false).then_some(file)
    };
    FOUND.get_or_init(search).as_deref()
}

/// Whether a program in it can start another one, as codex does. A security module may refuse that.
pub(super) fn can_nest() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let try_out = || {
        let bwrap = find()?;
        let own =
            ["--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev"];
        let program =
            Program::new(bwrap).args(options(&Mounts::default(), Path::new("/"))).arg(bwrap).args(own);
        let ended = program.args(["--", "/bin/sh", "-c", ":"]).writes_no_worktree().finish().ok()?;
        Some(ended.status.success())
    };
    *FOUND.get_or_init(|| try_out().unwrap_or(false))
}

/// The first `bwrap` in an absolute folder of `path` that is in no repository. One in a repository may come from an agent.
fn search_path(path: &OsStr) -> Option<PathBuf> {
    let is_in_repository =
        |file: &Path| file.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok());
    // A link in a repository may lead to a file that an agent wrote elsewhere, so both ends of a link count.
    let is_safe = |file: &PathBuf| {
        !is_in_repository(file) && file.canonicalize().is_ok_and(|target| !is_in_repository(&target))
    };
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let folders = folders.filter_map(|folder| folder.canonicalize().ok());
    folders.map(|folder| folder.join("bwrap")).filter(|file| is_executable(file)).find(is_safe)
}

fn try_out(bwrap: &Path) -> io::Result<bool> {
    let root = tempfile::Builder::new().prefix("git-arborist-").tempdir()?;
    let real = safe_files::resolved(root.path());
    let mounts = Mounts::for_trial(&real)?;
    let program = Program::new(bwrap).args(options(&mounts, &real)).args(["/bin/sh", "-c", TRIAL]);
    Ok(program.writes_no_worktree().finish().is_ok_and(|ended| ended.status.success()))
}

/// The command that runs `command` with these mounts. Its streams and its process group must be set afterwards.
pub(super) fn wrap(command: &Command, mounts: &Mounts) -> io::Result<Command> {
    let bwrap = find().ok_or_else(|| io::Error::other("bubblewrap (bwrap) does not work here"))?;
    wrap_with(bwrap, command, |dir| options(mounts, dir))
}

/// The arguments of bwrap up to the program.
fn options(mounts: &Mounts, dir: &Path) -> Vec<OsString> {
    let mut args = Arguments::default();
    // A new session has no terminal, so nothing can be typed into the user's.
    args.add(["--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "--cap-drop", "ALL"]);
    if rustix::process::geteuid().is_root() {
        // Without a user namespace: in one, files of other users would belong to nobody, and git would refuse them.
        KEPT_BY_ROOT.iter().for_each(|right| args.add(["--cap-add", right]));
    } else {
        args.add(["--unshare-user"]);
    }
    if mounts.is_offline {
        args.add(["--unshare-net"]);
    }
    let root = Path::new("/");
    let is_open = mounts.paths.contains(&(root.to_owned(), MountKind::Writable));
    args.mount(root, if is_open { MountKind::Writable } else { MountKind::ReadOnly });
    args.add(["--dev", "/dev", "--proc", "/proc"]);
    let kernel = SETTINGS_OF_THE_KERNEL.iter().map(Path::new).filter(|path| path.exists());
    kernel.for_each(|path| args.mount(path, MountKind::ReadOnly));
    let is_ordinary = |(path, _): &&(PathBuf, MountKind)| path != root && !path.starts_with("/proc");
    let mut paths: Vec<_> = mounts.paths.iter().filter(is_ordinary).cloned().collect();
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() && !paths.iter().any(|(path, _)| path == shared_memory) {
        paths.push((shared_memory.to_owned(), MountKind::ReadOnly));
    }
    let mut replaced = mounts.replaced.clone();
    // Folders before what is in them, and what replaces a path after the path itself.
    paths.sort();
    paths.dedup();
    replaced.sort_by(|a, b| a.path.cmp(&b.path));
    let mut replaced = replaced.iter().peekable();
    for (path, kind) in &paths {
        while let Some(earlier) = replaced.next_if(|replaced| replaced.path < *path) {
            args.replace(earlier);
        }
        args.mount(path, *kind);
    }
    replaced.for_each(|replaced| args.replace(replaced));
    // Only now, because folders inside of a hidden one may have been made for later mounts. This takes 0.4 ms each, and there
    // may be many git directories; what is written to them is lost anyway.
    let is_hidden = |(path, kind): &&(PathBuf, MountKind)| {
        *kind == MountKind::Hidden && path.is_dir() && !path.ends_with(".git")
    };
    paths
        .iter()
        .filter(is_hidden)
        .for_each(|(path, _)| args.add([OsStr::new("--remount-ro"), path.as_os_str()]));
    args.add([OsStr::new("--chdir"), dir.as_os_str(), OsStr::new("--")]);
    args.0
}

/// The arguments of bwrap.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<S: AsRef<OsStr>, const N: usize>(&mut self, args: [S; N]) {
        self.0.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
    }

    fn replace(&mut self, replaced: &ReplacedPath) {
        let option = if replaced.is_writable { "--bind" } else { "--ro-bind" };
        self.add([OsStr::new(option), replaced.by.as_os_str(), replaced.path.as_os_str()]);
    }

    fn mount(&mut self, path: &Path, kind: MountKind) {
        let target = path.as_os_str();
        let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
        match kind {
            MountKind::Writable if is_device => self.add([OsStr::new("--dev-bind"), target, target]),
            MountKind::Writable => self.add([OsStr::new("--bind"), target, target]),
            MountKind::ReadOnly => self.add([OsStr::new("--ro-bind"), target, target]),
            MountKind::Private => self.add([OsStr::new("--tmpfs"), target]),
            MountKind::Hidden if path.is_dir() => self.add([OsStr::new("--tmpfs"), target]),
            MountKind::Hidden => self.add([OsStr::new("--dev-bind"), OsStr::new("/dev/null"), target]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, os::unix::fs::symlink, time::Duration};

    use super::*;
    use crate::process::{Confinement, ConfinementBackend, Ending, Limits, Supervised, SupervisedEnd};

    /// A folder with a name that is no UTF-8; `None` if bubblewrap does not work here.
    fn folder() -> Option<(tempfile::TempDir, PathBuf)> {
        if find().is_none() {
            println!("skipped: bwrap does not work here");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap().join(OsString::from_vec(b"a \xff".to_vec()));
        fs::create_dir(&folder).unwrap();
        Some((root, folder))
    }

    fn confined(program: Program, folders: &[PathBuf]) -> Supervised<'static> {
        let confinement = Confinement::new(folders.iter().cloned());
        let mut confinement = confinement.enforced_by(ConfinementBackend::Bwrap);
        confinement.has_private_temp = true;
        Supervised::new(program.confined(confinement))
    }

    fn run(script: &str, folder: &PathBuf) -> SupervisedEnd {
        let program = Program::new("sh").args(["-c", script]).dir(folder);
        confined(program, std::slice::from_ref(folder)).input(b"words".to_vec()).run(|_| {})
    }

    #[test]
    fn bwrap_passes_on_streams_exit_codes_and_temporary_files() {
        let Some((_root, folder)) = folder() else { return };
        let ended = run("cat; echo error >&2; touch made \"$TMPDIR/x\" && exit 7", &folder);
        assert_eq!(ended.ending.code(), Some(7), "{:?} {}", ended.ending, ended.stderr.text);
        assert_eq!((ended.stdout.text.as_str(), ended.stderr.text.as_str()), ("words", "error\n"));
        assert!(folder.join("made").exists() && ended.survivors.is_empty());
    }

    #[test]
    fn a_program_that_bwrap_cannot_start_is_reported_as_such() {
        let Some((_root, folder)) = folder() else { return };
        fs::write(folder.join("plain"), "").unwrap();
        for (name, kind) in [
            ("no-such-program", io::ErrorKind::NotFound),
            ("./missing", io::ErrorKind::NotFound),
            ("./plain", io::ErrorKind::PermissionDenied),
        ] {
            let ended = confined(Program::new(name).dir(&folder), &[]).run(|_| {});
            assert!(matches!(&ended.ending, Ending::NotStarted(error) if error.kind() == kind), "{name}");
        }
    }

    #[test]
    fn a_program_in_bwrap_has_time_to_end_gracefully() {
        let Some((_root, folder)) = folder() else { return };
        let script =
            "trap 'sleep 0.1; echo ended > file; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
        // On a busy machine it may not be ready in time, and gets more in the next try.
        let run = |whole: u64| {
            let program = Program::new("sh").args(["-c", script]).dir(&folder);
            let limits = Limits {
                whole: Some(Duration::from_secs(whole)),
                grace: Duration::from_secs(60),
                ..Limits::default()
            };
            confined(program, std::slice::from_ref(&folder)).limits(limits).run(|_| {})
        };
        let is_ready = |ended: &SupervisedEnd| ended.stdout.text.contains("ready");
        let ended = [2, 10, 60].into_iter().map(run).find(is_ready).unwrap();
        assert!(matches!(ended.ending, Ending::TimedOut { .. }), "{:?}", ended.ending);
        assert!(folder.join("file").exists() && ended.survivors.is_empty());
    }

    #[test]
    fn a_daemon_in_bwrap_ends_with_the_program() {
        let Some((_root, folder)) = folder() else { return };
        let ended = run("env -i setsid sh -c 'sleep 1; touch late' </dev/null >/dev/null 2>&1 &", &folder);
        assert!(ended.ending.is_success() && ended.survivors.is_empty(), "{:?}", ended.ending);
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!folder.join("late").exists());
    }

    #[test]
    fn bwrap_grants_no_folders_that_are_links() {
        let Some((_root, folder)) = folder() else { return };
        let (real, link) = (folder.join("real"), folder.join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let program = Program::new("touch").arg("x").dir(&real);
        assert_eq!(confined(program, &[link, folder.join("missing")]).run(|_| {}).ending.code(), Some(1));
    }

    #[test]
    fn a_bwrap_program_in_a_repository_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        if real.ancestors().any(|folder| folder.join(".git").exists()) {
            println!("skipped: the folder for temporary files is in a repository");
            return;
        }
        let path = |name: &str| real.join(name);
        for folder in ["repo/.git", "repo/bin", "bin"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        for folder in ["repo/bin", "bin"] {
            fs::copy("/bin/sh", path(folder).join("bwrap")).unwrap();
        }
        let folders = ["relative".into(), path("repo/bin"), path("bin")];
        assert_eq!(search_path(&std::env::join_paths(folders).unwrap()), Some(path("bin/bwrap")));
        assert_eq!(search_path(path("repo/bin").as_os_str()), None);
    }
}
