//! Folders outside of the repository that children need to write to: caches of package managers, and the folders in
//! which agent programs keep their own state. Only parts that hold no programs and no start-up files are listed.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::safe_files;

/// Where a program keeps something: below the folder that a variable names, or else below one in the home directory.
struct Cache {
    variable: &'static str,
    folder: &'static str,
    below: &'static str,
}

const fn cache(variable: &'static str, folder: &'static str, below: &'static str) -> Cache {
    Cache { variable, folder, below }
}

/// Folders that tests and builds write to.
const CACHES: [Cache; 20] = [
    cache("XDG_CACHE_HOME", ".cache", ""),
    cache("CARGO_HOME", ".cargo", "registry"),
    cache("CARGO_HOME", ".cargo", "git"),
    cache("npm_config_cache", ".npm", ""),
    cache("", ".local/share/pnpm", "store"),
    cache("", ".pnpm-store", ""),
    cache("", ".yarn/berry", "cache"),
    cache("BUN_INSTALL", ".bun", "install/cache"),
    cache("GOPATH", "go", "pkg"),
    cache("GRADLE_USER_HOME", ".gradle", "caches"),
    cache("GRADLE_USER_HOME", ".gradle", "daemon"),
    cache("GRADLE_USER_HOME", ".gradle", "native"),
    cache("GRADLE_USER_HOME", ".gradle", "wrapper/dists"),
    cache("", ".m2", "repository"),
    cache("", ".ivy2", "cache"),
    cache("NUGET_PACKAGES", ".nuget/packages", ""),
    cache("PUB_CACHE", ".pub-cache", ""),
    cache("", ".cabal", "packages"),
    cache("", ".composer", "cache"),
    // Shared memory, which browsers and worker pools need.
    cache("", "/dev/shm", ""),
];

/// Files that builds write to. Cargo locks the first two.
const FILES: [Cache; 5] = [
    cache("CARGO_HOME", ".cargo", ".package-cache"),
    cache("CARGO_HOME", ".cargo", ".package-cache-mutate"),
    cache("CARGO_HOME", ".cargo", ".global-cache"),
    cache("", "/dev/ptmx", ""),
    cache("", "/dev/pts", ""),
];

/// A folder or a file in which a program keeps its own state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFolder {
    /// Everything below it may be changed.
    Folder(PathBuf),
    /// It may be written to, but not replaced.
    File(PathBuf),
}

/// The caches and files that exist.
pub(super) fn caches() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let find = |cache: &Cache| {
        let path = base(cache.variable, cache.folder, |name| env::var(name).ok())?;
        let path = if cache.below.is_empty() { path } else { path.join(cache.below) };
        path.exists().then(|| safe_files::resolved(&path))
    };
    (CACHES.iter().filter_map(find).collect(), FILES.iter().filter_map(find).collect())
}

/// A folder of an agent program: the one that `variable` names, or else `folder` in the home directory. `value` returns
/// the value of a variable.
pub fn find_folder(
    variable: &str,
    folder: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Option<ProgramFolder> {
    let path = safe_files::resolved(&base(variable, folder, value)?);
    if path.extension().is_some_and(|extension| extension == "json") {
        return path.is_file().then_some(ProgramFolder::File(path));
    }
    Some(ProgramFolder::Folder(path))
}

fn base(variable: &str, folder: &str, value: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = value(variable).filter(|path| Path::new(path).is_absolute());
    match named {
        Some(path) => Some(PathBuf::from(path)),
        // An absolute path replaces the home directory.
        None => Some(home()?.join(folder)),
    }
}

/// The user's home directory.
pub(super) fn home() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}
