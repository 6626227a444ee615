//! What agents must leave alone although they can reach it: configuration and hooks, which all agents of a repository
//! share, and what leads from a worktree to its repository.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::git::{RefWatch, Repository};

/// Watches what agents share while any of them is at work. Who of them changed it cannot be told. So it is put back as
/// it was before the first of them began, and every one that was at work has trespassed.
#[derive(Debug, Clone, Default)]
pub struct Sentry(Arc<Mutex<Post>>);

#[derive(Debug, Default)]
struct Post {
    at_work: usize,
    before: Option<Hooks>,
    /// Everything that was put back since the first of them began.
    changes: Vec<String>,
}

/// What is watched for one agent, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    sentry: Sentry,
    /// How many changes were known when it began.
    known: usize,
    own: Files,
    link: Option<Link>,
    refs: RefWatch,
}

impl Sentry {
    /// An agent begins to work in the worktree of `repository`.
    #[must_use]
    pub fn watch(&self, repository: &Repository) -> Watch {
        let mut post = self.post();
        if post.at_work == 0 {
            *post =
                Post { at_work: 0, before: Some(Hooks::take(&repository.common_dir)), changes: Vec::new() };
        } else {
            post.inspect();
        }
        post.at_work += 1;
        let known = post.changes.len();
        drop(post);
        let mut own = vec![repository.git_dir.join("config.worktree")];
        if repository.git_dir != repository.common_dir {
            own.extend(["commondir", "gitdir"].map(|name| repository.git_dir.join(name)));
        }
        let refs = repository.watch_refs();
        Watch { sentry: self.clone(), known, own: Files::take(own), link: Link::take(repository), refs }
    }

    /// Runs a child process of any kind, and tells what it did that it may not do. That has been undone: whoever reads
    /// anything afterwards reads what was there before. Everything that runs code of a repository goes through here or
    /// through a [`Watch`]: agents, reviewers, tests, gates, set-up commands, resolvers and hooks.
    pub fn guard<T>(&self, repository: &Repository, child: impl FnOnce() -> T) -> (T, Option<String>) {
        let watch = self.watch(repository);
        let ended = child();
        (ended, joined(&watch.restore()))
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post {
    fn inspect(&mut self) {
        if let Some(before) = &self.before {
            self.changes.extend(before.restore());
        }
    }
}

impl Watch {
    /// Puts back what was changed since it began, and says what it was.
    pub fn restore(&self) -> Vec<String> {
        let mut found: Vec<String> = self.link.iter().filter_map(Link::restore).collect();
        found.extend(self.own.restore());
        let mut post = self.sentry.post();
        post.inspect();
        found.extend(post.changes.iter().skip(self.known).cloned());
        drop(post);
        found.extend(self.refs.restore());
        found.dedup();
        found
    }
}

/// What was undone, in one sentence.
pub(super) fn joined(trespasses: &[String]) -> Option<String> {
    (!trespasses.is_empty()).then(|| trespasses.join("; "))
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut post = self.sentry.post();
        post.at_work -= 1;
    }
}

/// Files, byte for byte, with their permissions: a hook that cannot be executed is none.
#[derive(Debug)]
struct Files(Vec<(PathBuf, Option<Kept>)>);

#[derive(Debug, PartialEq, Eq)]
struct Kept {
    bytes: Vec<u8>,
    permissions: fs::Permissions,
}

impl Kept {
    fn read(path: &Path) -> Option<Self> {
        let (bytes, metadata) = (fs::read(path).ok()?, fs::metadata(path).ok()?);
        Some(Self { bytes, permissions: metadata.permissions() })
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        fs::write(path, &self.bytes)?;
        fs::set_permissions(path, self.permissions.clone())
    }
}

impl Files {
    fn take(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(paths.into_iter().map(|path| (path.clone(), Kept::read(&path))).collect())
    }

    fn restore(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, before) in &self.0 {
            if Kept::read(path) == *before {
                continue;
            }
            let _ = match before {
                Some(kept) => kept.write(path),
                None => fs::remove_file(path),
            };
            found.push(format!("{} was changed while it ran", shown(path)));
        }
        found
    }
}

/// The repository's configuration and hooks.
#[derive(Debug)]
struct Hooks {
    files: Files,
    folder: PathBuf,
    names: Vec<PathBuf>,
}

impl Hooks {
    fn take(common_dir: &Path) -> Self {
        let folder = common_dir.join("hooks");
        let names = list(&folder);
        let watched = [common_dir.join("config"), common_dir.join("info/attributes")];
        Self { files: Files::take(watched.into_iter().chain(names.clone())), folder, names }
    }

    fn restore(&self) -> Vec<String> {
        let mut found = self.files.restore();
        for path in list(&self.folder).into_iter().filter(|path| !self.names.contains(path)) {
            let _ = fs::remove_file(&path);
            found.push(format!("the hook {} was added while it ran", shown(&path)));
        }
        found
    }
}

/// The file that leads from a linked worktree to its repository. Whoever works there can put another in its place, or a
/// repository of their own.
#[derive(Debug)]
struct Link {
    file: PathBuf,
    kept: Kept,
    /// Where a folder goes that stands in its place.
    aside: PathBuf,
}

impl Link {
    fn take(repository: &Repository) -> Option<Self> {
        let file = repository.worktree.as_ref()?.join(".git");
        let kept = Kept::read(&file)?;
        Some(Self { file, kept, aside: repository.git_dir.join("replaced") })
    }

    fn restore(&self) -> Option<String> {
        if Kept::read(&self.file).as_ref() == Some(&self.kept) {
            return None;
        }
        let mut words = ".git was changed while it ran".to_owned();
        if self.file.is_dir() {
            let free = (1..).map(|n| self.aside.with_extension(n.to_string())).find(|path| !path.exists())?;
            let _ = fs::rename(&self.file, &free);
            words = format!("{words}: what stood there is kept in {}", free.display());
        }
        let _ = fs::remove_file(&self.file);
        let _ = self.kept.write(&self.file);
        Some(words)
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

fn shown(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
