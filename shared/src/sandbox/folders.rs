//! Folders outside of the repository that children need to write to: caches of package managers, and the folders in
//! which agent programs keep their own state. Only parts that hold no programs and no start-up files are listed.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
};

use crate::process::find_program;

/// Where a program keeps something: below the folder that a variable names, or else below one in the home directory.
#[derive(Clone, Copy)]
struct Cache {
    variable: &'static str,
    folder: &'static str,
    below: &'static str,
    /// If this program is installed, a missing folder or file is made, because the program fails or is slow without it.
    maker: Option<&'static str>,
}

const fn cache(variable: &'static str, folder: &'static str, below: &'static str) -> Cache {
    Cache { variable, folder, below, maker: None }
}

/// A folder in the user's folder for caches.
const fn xdg(below: &'static str) -> Cache {
    cache("XDG_CACHE_HOME", ".cache", below)
}

const fn made_for(program: &'static str, cache: Cache) -> Cache {
    Cache { maker: Some(program), ..cache }
}

/// Folders that tests and builds write to. The folder for caches itself is not among them: programs that the user and
/// the driver start outside of the sandbox are there, too (`pre-commit`, corepack, bazel, browsers, virtual environments).
const CACHES: [Cache; 49] = [
    made_for("pip", xdg("pip")),
    made_for("uv", xdg("uv")),
    made_for("go", xdg("go-build")),
    made_for("yarn", xdg("yarn")),
    xdg("Yarn"),
    xdg("pypoetry/artifacts"),
    xdg("pypoetry/cache"),
    xdg("pdm"),
    made_for("golangci-lint", xdg("golangci-lint")),
    xdg("staticcheck"),
    xdg("gopls"),
    made_for("npm", xdg("node-gyp")),
    made_for("pnpm", xdg("pnpm")),
    made_for("deno", xdg("deno")),
    made_for("bun", xdg("bun")),
    made_for("ccache", xdg("ccache")),
    made_for("sccache", xdg("sccache")),
    made_for("zig", xdg("zig")),
    xdg("coursier"),
    made_for("composer", xdg("composer")),
    xdg("cabal/packages"),
    xdg("typescript"),
    xdg("eslint"),
    xdg("prettier"),
    xdg("jest"),
    xdg("mypy"),
    xdg("ruff"),
    xdg("black"),
    xdg("pytest"),
    made_for("cargo", cache("CARGO_HOME", ".cargo", "registry")),
    made_for("cargo", cache("CARGO_HOME", ".cargo", "git")),
    made_for("npm", cache("npm_config_cache", ".npm", "")),
    made_for("pnpm", cache("", ".local/share/pnpm", "store")),
    cache("", ".pnpm-store", ""),
    made_for("yarn", cache("", ".yarn/berry", "cache")),
    made_for("bun", cache("BUN_INSTALL", ".bun", "install/cache")),
    made_for("go", cache("GOPATH", "go", "pkg")),
    made_for("gradle", cache("GRADLE_USER_HOME", ".gradle", "caches")),
    made_for("gradle", cache("GRADLE_USER_HOME", ".gradle", "daemon")),
    made_for("gradle", cache("GRADLE_USER_HOME", ".gradle", "native")),
    made_for("gradle", cache("GRADLE_USER_HOME", ".gradle", "wrapper/dists")),
    made_for("mvn", cache("", ".m2", "repository")),
    cache("", ".ivy2", "cache"),
    made_for("dotnet", cache("NUGET_PACKAGES", ".nuget/packages", "")),
    cache("PUB_CACHE", ".pub-cache", "git"),
    cache("PUB_CACHE", ".pub-cache", "hosted"),
    cache("", ".cabal", "packages"),
    cache("", ".composer", "cache"),
    // Shared memory, which browsers and worker pools need.
    cache("", "/dev/shm", ""),
];

/// Files that builds write to. Cargo locks the first two, and an empty one will do.
const FILES: [Cache; 5] = [
    made_for("cargo", cache("CARGO_HOME", ".cargo", ".package-cache")),
    made_for("cargo", cache("CARGO_HOME", ".cargo", ".package-cache-mutate")),
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

/// A cache or file that children may write to, by the path at which its program looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheFolder {
    pub(super) path: PathBuf,
    /// Whether it is made if it is missing.
    pub(super) is_needed: bool,
}

/// The caches and the files that exist or are needed.
pub(super) fn caches() -> (Vec<CacheFolder>, Vec<CacheFolder>) {
    let programs = env::var_os("PATH").unwrap_or_default();
    // Several caches belong to one program.
    let mut known: HashMap<&str, bool> = HashMap::new();
    let mut is_installed =
        |program| *known.entry(program).or_insert_with(|| find_program(program, &programs).is_some());
    let mut find = |cache: &Cache| {
        let path = find_path(cache.variable, cache.folder, |name| env::var(name).ok())?;
        let path = if cache.below.is_empty() { path } else { path.join(cache.below) };
        let is_needed = cache.maker.is_some_and(&mut is_installed);
        (is_needed || path.exists()).then_some(CacheFolder { path, is_needed })
    };
    (CACHES.iter().filter_map(&mut find).collect(), FILES.iter().filter_map(&mut find).collect())
}

/// A folder of an agent program: the one that `variable` names, or else `folder` in the home directory. `value` returns
/// the value of a variable.
pub fn find_folder(
    variable: &str,
    folder: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Option<ProgramFolder> {
    let path = find_path(variable, folder, value)?;
    if path.extension().is_some_and(|extension| extension == "json") {
        return path.is_file().then_some(ProgramFolder::File(path));
    }
    Some(ProgramFolder::Folder(path))
}

/// The folder that `variable` names, or else `folder` in the home directory.
pub fn find_path(variable: &str, folder: &str, value: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
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
