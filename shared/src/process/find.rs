//! Finds programs without running them.
//!
//! A program that a run starts is searched for once, before the first child can write anywhere, and not in folders that
//! children can write: `.venv/bin` and `node_modules/.bin` of a checkout are often on `PATH`.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::{OsStr, OsString},
    io::Read,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
};

use crate::{mutex::MutexExt, safe_files};

/// The checkouts and worktrees of this process.
static CHECKOUTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The checkout in which this process was started.
static TOP: OnceLock<PathBuf> = OnceLock::new();

/// How much of a script is read to find its interpreter; Linux reads as much.
const LONGEST_SHEBANG: u64 = 256;

/// Where a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramPlace {
    /// In a folder that children cannot write, unless there is no sandbox.
    Found(PathBuf),
    /// Only in a folder of `PATH` that is relative or inside of a checkout.
    InCheckout(PathBuf),
    /// Nowhere.
    Missing,
}

/// The first executable file called `name` in the directories of `path` (the value of `PATH`).
#[must_use]
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    which::which_in(name, Some(path), env::current_dir().unwrap_or_default()).ok()
}

/// Whether `file` is a file with an execute permission.
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Records a checkout or a worktree. No program is taken from a folder of `PATH` in it.
pub fn add_checkout(top: &Path) {
    // A command opens the repository around it before all others.
    TOP.get_or_init(|| top.to_owned());
    let mut checkouts = CHECKOUTS.hold();
    if !checkouts.contains(top) {
        checkouts.insert(top.to_owned());
        checkouts.insert(safe_files::resolved(top));
    }
}

/// The file of a program that is named by its path. A relative path begins at the top of the checkout in which this process
/// was started: the same command then works in its folders and for tasks in other worktrees.
#[must_use]
pub fn resolve_program(path: &str) -> PathBuf {
    let path = Path::new(path);
    match TOP.get() {
        Some(top) if path.is_relative() => top.join(path.strip_prefix("./").unwrap_or(path)),
        _ => path.to_owned(),
    }
}

/// The interpreter that the first line of a script names, if there is no such file. The system would say that the script is
/// missing.
#[must_use]
pub fn find_missing_interpreter(script: &Path) -> Option<String> {
    let mut begin = Vec::new();
    safe_files::open(script).ok()?.take(LONGEST_SHEBANG).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    // A script with line ends of Windows names an interpreter that ends with a carriage return.
    let interpreter = line.trim_matches([' ', '\t']).split([' ', '\t']).next()?;
    (interpreter.starts_with('/') && !Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}

/// Whether a file or folder is in a checkout, or a link that leads into one.
#[must_use]
pub fn is_in_checkout(path: &Path) -> bool {
    let real = safe_files::resolved(path);
    let checkouts = CHECKOUTS.hold();
    checkouts.iter().any(|top| path.starts_with(top) || real.starts_with(top))
}

/// The folders of `PATH` in which no program of a run is searched for: relative ones, and those in a checkout.
#[must_use]
pub fn list_unused_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| is_unused(folder)).collect();
    folders.dedup();
    folders
}

fn is_unused(folder: &Path) -> bool {
    folder.is_relative() || is_in_checkout(folder)
}

/// Where a program of a run is, given the value of `PATH`. Once it is found, the answer does not change.
#[must_use]
pub fn locate_program(name: &str, path: &OsStr) -> ProgramPlace {
    static FOUND: Mutex<BTreeMap<(String, OsString), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.hold();
    let key = (name.to_owned(), path.to_owned());
    if let Some(file) = found.get(&key) {
        return if is_executable(file) { ProgramPlace::Found(file.clone()) } else { ProgramPlace::Missing };
    }
    let folders = || env::split_paths(path);
    let files = folders().filter(|folder| !is_unused(folder)).map(|folder| folder.join(name));
    // A link may lead into a checkout.
    if let Some(file) = files.into_iter().find(|file| is_executable(file) && !is_in_checkout(file)) {
        found.insert(key, file.clone());
        return ProgramPlace::Found(file);
    }
    match find_program(name, path) {
        Some(file) => ProgramPlace::InCheckout(file),
        None => ProgramPlace::Missing,
    }
}
