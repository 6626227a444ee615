//! Paths as a person sees them.

use std::path::{Component, Path, PathBuf};

/// The path relative to the current directory, if that is shorter.
pub(crate) fn seen_from_here(path: &Path) -> PathBuf {
    let Some(here) = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok()) else {
        return path.to_owned();
    };
    let shared = here.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(shared).map(|_| Component::ParentDir);
    let seen: PathBuf = up.chain(path.components().skip(shared)).collect();
    let seen = if seen.as_os_str().is_empty() { PathBuf::from(".") } else { seen };
    if seen.as_os_str().len() < path.as_os_str().len() { seen } else { path.to_owned() }
}
